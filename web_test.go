package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"zcoder/internal/scripted"
	"zcoder/internal/termtext"
)

const webToken = "a-token-of-the-tests-0123456789abcdef"

// webServer is the program as `zcoder --server … --web`, with a scripted model.
type webServer struct {
	url       string // where browsers find it
	token     string // file
	dir, home string
	farServer
}

func startWeb(t *testing.T, story string, flags ...string) *webServer {
	t.Helper()
	script, err := scripted.Parse(story)
	must(t, err)
	model := scripted.New(script, scripted.Options{})
	host, stop, err := model.Start()
	must(t, err)
	t.Cleanup(func() {
		stop()
		for _, failure := range model.Failures() {
			t.Error("the model server: " + failure)
		}
	})
	s := &webServer{dir: t.TempDir(), home: t.TempDir()}
	s.token = filepath.Join(s.home, "token")
	must(t, os.WriteFile(s.token, []byte(webToken+"\n"), 0o600))
	s.cmd = exec.Command("zcoder", append([]string{"--server", "script", "--web", "--port", "0", "--token-file", s.token}, flags...)...)
	s.cmd.Dir = s.dir
	s.cmd.Env = append(os.Environ(), "HOME="+s.home, "ZCODER_HOME="+s.home+"/zcoder", "ZCODER_MODEL=test-model", "OLLAMA_HOST="+host, "ZCODER_WARMUP=off", "SHELL=/bin/sh")
	must(t, s.await("in a browser: "))
	t.Cleanup(func() { must(t, s.end()) })
	s.url = regexp.MustCompile(`http://\S+`).FindString(s.ready)
	return s
}

// logIn opens the page and logs in as a person does.
func (s *webServer) logIn(t *testing.T, b *browser) *tab {
	t.Helper()
	p := b.open(t, s.url)
	p.enter()
	return p
}

func (p *tab) enter() {
	p.t.Helper()
	p.until("document.activeElement?.id === 'token'")
	p.write(webToken)
	p.press("Enter")
	p.shows("connected")
}

// ask writes a prompt and sends it.
func (p *tab) ask(text string) {
	p.t.Helper()
	p.until("!document.querySelector('#send').disabled && document.querySelector('#net').className === 'live'")
	p.eval("document.querySelector('#prompt').focus()")
	p.write(text)
	p.click("#send")
}

const dialogOpen = "document.querySelector('#approval').open"

func free(id string) string { return fmt.Sprintf("!document.querySelector('#%s').disabled", id) }

// TestBrowser uses the page in a real browser, which .ci/real-web names.
func TestBrowser(t *testing.T) {
	program := os.Getenv("ZCODER_TEST_CHROMIUM")
	if program == "" {
		t.Skip("ZCODER_TEST_CHROMIUM names no Chromium; .ci/real-web does")
	}
	b := startBrowser(t, program)
	for _, c := range []struct {
		name string
		test func(*testing.T, *browser)
	}{
		{"the main job", webMainJob},
		{"login and logout", webLogin},
		{"deny with a reason, steer and stop", webDeny},
		{"the end must be seen", webEndSeen},
		{"hostile text", webHostile},
		{"characters that are named", webNames},
		{"the connection breaks", webReconnect},
		{"two at one question", webTwo},
		{"commands that ask, and conversations", webCommands},
		{"what a command asks about can be read", webTrust},
		{"phone and dark", webPhone},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b) })
	}
}

func webMainJob(t *testing.T, b *browser) {
	s := startWeb(t, "> think Let me look.\n> say I make it.\n> call run_command {\"command\":\"echo made >made.txt\"}\n\n"+
		"> call write_file {\"path\":\"b.txt\",\"content\":\"one\\ntwo\\n\"}\n\n> say All is made.\n")
	p := s.logIn(t, b)
	p.ask("make a file")
	p.until(dialogOpen)
	p.mouse("mousePressed", "#allow-once")
	early := p.eval("document.querySelector('#allow-once').disabled") == true
	p.until(free("allow-once"))
	if early { // else the machine was slow, and it was no early click
		p.mouse("mouseReleased", "#allow-once")
	}
	p.shows("echo made >made.txt")
	for _, key := range []string{"Enter", " ", "y"} { // none of them answers
		p.press(key)
	}
	p.until(free("allow-once"))
	for _, key := range []string{"Enter", " ", "y"} {
		p.press(key)
	}
	if p.eval(dialogOpen) != true {
		t.Fatal("a key that was no choice answered")
	}
	if got := p.text("#facts"); !strings.Contains(got, s.dir) || !strings.Contains(got, "run_command (exec)") {
		t.Errorf("the dialog shows %q", got)
	}
	p.picture("approval")
	p.click("#allow-once")
	p.shows("All is made.")
	p.shows("done · 1 file changed (b.txt)")
	if data, err := os.ReadFile(filepath.Join(s.dir, "made.txt")); err != nil || string(data) != "made\n" {
		t.Errorf("the command made %q, %v", data, err)
	}
	for _, want := range []string{"you", "make a file", "I make it.", "approved once by remote", "+two", "thinking"} {
		if text := p.text("#transcript"); !strings.Contains(text, want) {
			t.Errorf("the transcript lacks %q:\n%s", want, text)
		}
	}
	if p.eval("document.querySelector('.thought details').open") != false {
		t.Error("the thinking is not folded")
	}
	p.picture("transcript")
	p.do("Page.reload", map[string]any{})
	p.shows("All is made.") // the login holds
	if trouble := p.trouble(); trouble != "" {
		t.Errorf("the page had trouble: %s", trouble)
	}
}

func webLogin(t *testing.T, b *browser) {
	s := startWeb(t, "> say hello\n")
	p := b.open(t, s.url)
	p.until("document.activeElement?.id === 'token'")
	p.write("not the token")
	p.press("Enter")
	p.shows("this is not the token")
	if p.eval("localStorage.length + document.cookie.length") != 0.0 {
		t.Error("a wrong token left something")
	}
	p.eval("document.querySelector('#token').value = ''; document.querySelector('#token').focus()")
	p.enter()
	kept := fmt.Sprint(p.eval("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage) + location.href + document.documentElement.outerHTML + document.querySelector('#token').value"))
	if strings.Contains(kept, webToken) || strings.Contains(kept, "zcoder_") {
		t.Errorf("scripts find the token or the cookie: %s", kept)
	}
	p.click("#logout")
	p.until("document.activeElement?.id === 'token'")
	if status := p.eval("fetch('/v1/hello').then((r) => r.status)"); status != 401.0 {
		t.Errorf("after the logout a request gets %v", status)
	}
}

func webDeny(t *testing.T, b *browser) {
	s := startWeb(t, `> call run_command {"command":"touch denied"}

> expect denied by the user, who says: use <b>another</b> name
> expect-last and be quick
> say I see.
> hang
`)
	p := s.logIn(t, b)
	p.ask("go")
	p.until(dialogOpen)
	p.eval("document.querySelector('#prompt').value = ''")
	p.until(free("deny"))
	if tcp := s.post(t, "/v1/input", map[string]any{"session_id": p.session1(s), "turn_id": s.turn(t), "message_id": "m1", "text": "and be quick"}); !strings.Contains(tcp, "accepted") {
		t.Fatal(tcp)
	}
	p.shows("queued: and be quick")
	p.eval("document.querySelector('#reason').focus()")
	p.write("use <b>another</b> name")
	p.press("Enter")
	p.shows("I see.")
	p.shows("reason: use <b>another</b> name")
	p.until("document.querySelector('#queue').childElementCount === 0")
	p.ask("more")
	p.shows("queued: more")
	p.click("#queue button")
	p.until("document.querySelector('#queue').childElementCount === 0")
	p.click("#stop")
	p.shows("stopped ·")
	if _, err := os.Stat(filepath.Join(s.dir, "denied")); err == nil {
		t.Error("the denied command ran")
	}
}

// session1 is the id of the current conversation.
func (p *tab) session1(s *webServer) string {
	var e struct{ ID string }
	must(p.t, json.Unmarshal([]byte(s.get(p.t, "/v1/sessions?after=0")), &e))
	return e.ID
}

func webEndSeen(t *testing.T, b *browser) {
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("echo %d", i))
	}
	command, err := json.Marshal(map[string]string{"command": strings.Join(append(lines, "touch ran"), "\n")})
	must(t, err)
	s := startWeb(t, fmt.Sprintf("> call run_command {\"command\":\"true\"}\n\n> call run_command %s\n\n> say over\n", command))
	p := s.logIn(t, b)
	p.ask("go")
	p.readToEnd()
	p.click("#allow-once")
	p.until("document.querySelectorAll('#lines .line').length === 301")
	p.until(free("deny"))
	p.shows("read to the end")
	if p.eval(free("allow-once")) != false {
		t.Fatal("it can be allowed unread")
	}
	p.eval("document.querySelector('#allow-once').click()") // a disabled button takes none
	if n := p.eval("document.querySelectorAll('#lines .line').length"); n != 301.0 {
		t.Errorf("the dialog has %v lines", n)
	}
	p.press("End")
	p.until(free("allow-once"))
	p.eval("document.querySelector('#request').scrollTop = 0")
	p.press("Tab")
	if at := p.eval("document.activeElement.id"); at != "allow-once" {
		t.Errorf("Tab leads to %v", at)
	}
	p.press("Enter")
	p.shows("over")
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err != nil {
		t.Error(err)
	}
}

func webHostile(t *testing.T, b *browser) {
	nasty := "<script>document.title='owned'</script><img src=x onerror=\"fetch('/owned')\">\u202egnp\u202c \x1b[31mred\x07 javascript:alert(1) " +
		"</div></article><header id=net>connected</header>\u2066 <a href=\"javascript:alert(1)\">x</a>\u0301\u0301\n"
	say, err := json.Marshal(map[string]any{"message": map[string]string{"role": "assistant", "content": nasty, "thinking": nasty + strings.Repeat("x", 300000)}, "done": false})
	must(t, err)
	command, err := json.Marshal(map[string]string{"command": "echo '<img src=x onerror=alert(1)>' \u202e/pmt/ \u2066# safe\u2069" + strings.Repeat(" ", 4000) + "; touch evil"})
	must(t, err)
	s := startWeb(t, fmt.Sprintf("> raw %s\n> call run_command %s\n\n> say over\n", say, command))
	must(t, os.WriteFile(filepath.Join(s.dir, "<img src=x onerror=alert(1)>"), nil, 0o600))
	p := s.logIn(t, b)
	p.ask("<script>alert(1)</script>")
	p.readToEnd()
	shown := p.text("#lines")
	for _, want := range []string{"<img src=x onerror=alert(1)>", "<U+202E>/pmt/ <U+2066># safe<U+2069>", "·×4000", "; touch evil"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the dialog shows %q, without %q", shown, want)
		}
	}
	if notes := p.text("#notes"); !strings.Contains(notes, "hidden characters: <U+202E> reorders text") {
		t.Errorf("the notes are %q", notes)
	}
	p.picture("hostile")
	p.press("Escape")
	p.shows("over")
	for _, want := range []string{"<script>document.title='owned'</script>", "<U+202E>gnp<U+202C>", `\x1b[31mred\x07`} {
		p.shows(want)
	}
	if thought := fmt.Sprint(p.eval("document.querySelector('.thought').textContent")); len(thought) > 210000 || !strings.Contains(thought, "more characters are not shown here") {
		t.Errorf("a text of 300000 characters shows as one of %d", len(thought))
	}
	found := p.eval("document.querySelectorAll('#transcript script, #transcript img, #transcript a, #transcript header, dialog img').length")
	if title := p.eval("document.title"); found != 0.0 || title == "owned" {
		t.Errorf("%v elements were made of text, the title is %v", found, title)
	}
	p.eval("window.ran = false")
	_, _ = p.try("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.ran = true\">')")
	_, _ = p.try("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = true'}))")
	if p.eval("window.ran") != false {
		t.Error("the policy lets markup run")
	}
	if trouble := p.trouble(); strings.Contains(trouble, "exceptionThrown") || strings.Contains(trouble, "owned") {
		t.Errorf("the page had trouble: %s", trouble)
	}
}

// webNames: the page names what termtext names, for every character there is. Two that
// emoji are made of pass, and what is not assigned is the browser's own knowledge.
func webNames(t *testing.T, b *browser) {
	p := b.open(t, startWeb(t, "> say hello\n").url)
	p.until("document.activeElement?.id === 'token'")
	list := p.eval(`import("/web/text.js").then(({ plain }) => {
		const marked = [];
		for (let n = 0; n <= 0x10ffff; n++) {
			if (n >= 0xd800 && n < 0xe000) continue;
			const c = "a" + String.fromCodePoint(n);
			if (plain(c) !== c) marked.push(n, plain(c), /\p{Cn}/u.test(c));
		}
		return marked;
	})`).([]any)
	named, unknown := map[rune]string{}, map[rune]bool{}
	for i := 0; i < len(list); i += 3 {
		r := rune(list[i].(float64))
		named[r], unknown[r] = list[i+1].(string), list[i+2].(bool)
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		text := "a" + string(r)
		hidden := termtext.HiddenIn(text)
		switch {
		case r >= 0xD800 && r < 0xE000, r == 0x200D, r == 0xFE0F:
		case len(hidden) > 0 && (hidden[0].Name == "unassigned code points" || unicode.Is(unicode.Hangul, r)):
		case len(hidden) == 0 && unknown[r]:
		case len(hidden) == 0 && named[r] != "", len(hidden) > 0 && named[r] != termtext.Safe(text):
			if r == '\r' && named[r] == `a\r` {
				continue
			}
			t.Errorf("U+%04X: the page shows %q, the terminal %q", r, named[r], termtext.Safe(text))
		}
	}
}

// wire carries connections to a server, and can be cut.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{Listener: l, to: to}
	t.Cleanup(func() { l.Close(); w.cut(true) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			w.carry(conn)
		}
	}()
	return w
}

func (w *wire) carry(conn net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	far, err := net.Dial("tcp", w.to)
	if err != nil || w.down {
		conn.Close()
		return
	}
	w.conns = append(w.conns, conn, far)
	go func() { _, _ = io.Copy(far, conn); far.Close() }()
	go func() { _, _ = io.Copy(conn, far); conn.Close() }()
}

// cut breaks what there is; down says whether it stays so.
func (w *wire) cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

func webReconnect(t *testing.T, b *browser) {
	s := startWeb(t, "> call run_command {\"command\":\"touch first\"}\n\n> say one\n\n> say two\n")
	w := newWire(t, strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"))
	p := b.open(t, "http://"+w.Addr().String()+"/")
	p.enter()
	p.ask("go")
	p.until(dialogOpen)
	p.until(free("allow-once"))
	p.do("Page.reload", map[string]any{})
	p.readToEnd()
	w.cut(true)
	p.shows("connection lost")
	p.click("#allow-once")
	p.shows("not sent: the server cannot be reached")
	if p.eval(dialogOpen) != true {
		t.Fatal("the question is gone though nobody answered it")
	}
	w.cut(false)
	p.until("document.querySelector('#net').className === 'live'")
	p.click("#allow-once")
	p.shows("one")
	w.cut(true)
	p.shows("connection lost")
	s.post(t, "/v1/turn", map[string]any{"prompt": "while it is away"})
	w.cut(false)
	p.shows("two")
	for _, text := range []string{"go", "one", "while it is away", "two"} {
		if n := p.eval(fmt.Sprintf("[...document.querySelectorAll('#transcript .text')].filter((e) => e.textContent === %q).length", text)); n != 1.0 {
			t.Errorf("%q stands there %v times", text, n)
		}
	}
}

func webTwo(t *testing.T, b *browser) {
	s := startWeb(t, "> call run_command {\"command\":\"echo ran >>ran\"}\n\n> say over\n")
	one, two := s.logIn(t, b), s.logIn(t, b)
	one.ask("go")
	for _, p := range []*tab{one, two} {
		p.until(dialogOpen)
		p.until(free("allow-once"))
	}
	one.eval("document.querySelector('#allow-once').click()")
	for _, p := range []*tab{one, two} {
		p.until("!" + dialogOpen)
		p.shows("approved once by remote")
		p.shows("over")
	}
	if data, err := os.ReadFile(filepath.Join(s.dir, "ran")); err != nil || string(data) != "ran\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func webCommands(t *testing.T, b *browser) {
	s := startWeb(t, "> say first answer\n")
	p := s.logIn(t, b)
	p.ask("first question")
	p.shows("first answer")
	p.ask("/help")
	p.shows("/compact")
	p.ask("/sessions")
	p.until("document.querySelector('#question').open")
	p.picture("question")
	p.press("Escape")
	p.until("!document.querySelector('#question').open")
	p.ask("/nonsense")
	p.shows("there is no command /nonsense here")
	p.click("#open-sessions")
	p.shows("first question")
	p.picture("sessions")
	p.click("#new-session")
	p.until("document.querySelector('#transcript').childElementCount === 0 && !document.querySelector('#sessions').open")
	p.until("document.querySelector('#net').className === 'live'")
	p.click("#open-sessions")
	p.until("document.querySelectorAll('#session-list .choice:not(.current)').length === 1")
	p.click("#session-list .choice:not(.current)")
	p.shows("first answer")
	if trouble := p.trouble(); strings.Contains(trouble, "exceptionThrown") {
		t.Errorf("the page had trouble: %s", trouble)
	}
}

// webTrust trusts a server of the project from a phone: all that was printed can be
// scrolled to while the question waits, by touch and by keyboard.
func webTrust(t *testing.T, b *browser) {
	s := startWeb(t, "> say unused\n")
	args := make([]string, 60)
	for i := range args {
		args[i] = fmt.Sprintf("%q", fmt.Sprintf("-unknown%d", i))
	}
	must(t, os.WriteFile(filepath.Join(s.dir, ".mcp.json"), []byte(`{"mcpServers":{"stub":{"command":"no-such-program","args":[`+strings.Join(args, ",")+`]}}}`), 0o644))
	p := s.logIn(t, b)
	p.phone(360, 640)
	p.ask("/mcp trust")
	p.until("document.querySelector('#question').open")
	p.shows("-unknown59")
	p.until("document.activeElement.id === 'line'")
	p.picture("trust")
	const seen = "(() => { const s = document.querySelector('#scroll').getBoundingClientRect(); return s.height > 150 && document.elementFromPoint(s.left + s.width / 2, s.top + s.height / 2).closest('#scroll') !== null })()"
	if p.eval(seen) != true {
		t.Error("what is asked about cannot be reached while the question waits")
	}
	p.eval("document.querySelector('#scroll').focus()")
	if p.eval("document.activeElement.id") != "scroll" {
		t.Error("the keyboard does not reach it")
	}
	p.eval("document.querySelector('#line').focus()")
	p.press("Escape")
	p.until("!document.querySelector('#question').open")
	p.shows("nothing was trusted")
	if trouble := p.trouble(); strings.Contains(trouble, "exceptionThrown") {
		t.Errorf("the page had trouble: %s", trouble)
	}
}

func webPhone(t *testing.T, b *browser) {
	s := startWeb(t, "> say I look.\n> call run_command {\"command\":\"cd src && go test ./... && git commit -m 'a message that is long enough to need a second line on a phone'\"}\n\n> say over\n")
	p := s.logIn(t, b)
	p.phone(390, 844)
	p.prefers("prefers-color-scheme", "dark")
	p.ask("go")
	p.until(dialogOpen)
	p.until(free("allow-once"))
	p.picture("phone-dark-approval")
	if wide := p.eval("document.documentElement.scrollWidth"); wide != 390.0 {
		t.Errorf("the page is %v wide", wide)
	}
	small := p.eval("[...document.querySelectorAll('button')].filter((b) => b.getClientRects().length && Math.min(b.offsetHeight, b.offsetWidth) < 44).map((b) => b.id).join()")
	if small != "" {
		t.Errorf("small targets: %v", small)
	}
	if back := p.eval("getComputedStyle(document.body).backgroundColor"); back != "rgb(22, 22, 21)" {
		t.Errorf("the dark background is %v", back)
	}
	p.click("#deny")
	p.shows("over")
	p.picture("phone-dark")
	p.prefers("prefers-color-scheme", "light")
	if back := p.eval("getComputedStyle(document.body).backgroundColor"); back != "rgb(253, 253, 252)" {
		t.Errorf("the light background is %v", back)
	}
	p.picture("phone-light")
}

// get and post are a client with the token.
func (s *webServer) get(t *testing.T, path string) string { return s.request(t, "GET", path, "") }

func (s *webServer) post(t *testing.T, path string, body any) string {
	data, err := json.Marshal(body)
	must(t, err)
	return s.request(t, "POST", path, string(data))
}

func (s *webServer) request(t *testing.T, method, path, body string) string {
	t.Helper()
	conn, err := net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"), browserPatience)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(browserPatience)))
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", method, path, webToken, len(body), body)
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		must(t, err)
		if line == "\r\n" {
			break
		}
	}
	data, err := io.ReadAll(in)
	must(t, err)
	return string(data)
}

// turn is the id of the turn that runs.
func (s *webServer) turn(t *testing.T) string {
	var list struct {
		Turn string `json:"turn_id"`
	}
	var one struct{ ID string }
	must(t, json.Unmarshal([]byte(s.get(t, "/v1/sessions?after=0")), &one))
	must(t, json.Unmarshal([]byte(s.post(t, "/v1/input/list", map[string]any{"session_id": one.ID})), &list))
	return list.Turn
}
