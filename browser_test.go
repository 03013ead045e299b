package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// browserPatience is how long tests wait for what a browser must show.
const browserPatience = 30 * time.Second

// browser is a headless Chromium, driven by its own protocol over a pair of pipes:
// objects of JSON that end with a zero byte.
type browser struct {
	t   *testing.T
	cmd *exec.Cmd
	to  io.WriteCloser

	mu      sync.Mutex
	number  int
	waiting map[int]chan answer
	tabs    map[string]*tab // by session
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// tab is one page of a browser, with cookies and storage of its own.
type tab struct {
	b       *browser
	t       *testing.T
	session string
	errors  []string // that its scripts had; the browser's lock guards them
	failed  []string // requests that the browser refused
}

func startBrowser(t *testing.T, program string) *browser {
	t.Helper()
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "browser")
	must(t, err)
	b := &browser{t: t, to: ourOut, waiting: map[int]chan answer{}, tabs: map[string]*tab{}}
	b.cmd = exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+home, "about:blank")
	b.cmd.Env = append(os.Environ(), "HOME="+home)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.listen(ourIn)
	}()
	t.Cleanup(func() {
		_ = b.call("", "Browser.close", map[string]any{}, nil)
		ourOut.Close()
		late := time.AfterFunc(browserPatience, func() { _ = b.cmd.Process.Kill() })
		_ = b.cmd.Wait()
		late.Stop()
		<-done
		ourIn.Close()
		for start := time.Now(); os.RemoveAll(home) != nil && time.Since(start) < browserPatience; {
			time.Sleep(50 * time.Millisecond) // its other processes end a little later
		}
	})
	return b
}

// listen takes what the browser says until it ends.
func (b *browser) listen(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			break
		}
		var m struct {
			ID        int
			Method    string
			SessionID string
			Params    json.RawMessage
			answer
		}
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; c != nil {
			delete(b.waiting, m.ID)
			c <- m.answer
		} else if tab := b.tabs[m.SessionID]; tab != nil {
			tab.note(m.Method, string(m.Params))
		}
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.waiting {
		c <- answer{Error: &struct{ Message string }{"the browser ended"}}
	}
	b.waiting = nil
}

// note keeps what a test may ask for. The browser's lock is held.
func (p *tab) note(method, params string) {
	switch method {
	case "Runtime.exceptionThrown", "Page.javascriptDialogOpening", "Audits.issueAdded":
		p.errors = append(p.errors, method+" "+params)
	case "Log.entryAdded":
		if strings.Contains(params, `"source":"recommendation"`) {
			return
		}
		p.failed = append(p.failed, params)
	}
}

// call has the browser do something and fills in what it says.
func (b *browser) call(session, method string, params, result any) error {
	c := make(chan answer, 1)
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return errors.New("the browser ended")
	}
	b.number++
	n := b.number
	b.waiting[n] = c
	b.mu.Unlock()
	m := map[string]any{"id": n, "method": method, "params": params}
	if session != "" {
		m["sessionId"] = session
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(data, 0)); err != nil {
		return err
	}
	select {
	case a := <-c:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-time.After(browserPatience):
		return fmt.Errorf("%s: no answer", method)
	}
}

// open opens a page with cookies and storage of its own.
func (b *browser) open(t *testing.T, url string) *tab {
	t.Helper()
	var made struct{ BrowserContextID, TargetID, SessionID string }
	must(t, b.call("", "Target.createBrowserContext", map[string]any{}, &made))
	return b.openIn(t, made.BrowserContextID, url)
}

func (b *browser) openIn(t *testing.T, context, url string) *tab {
	t.Helper()
	var made struct{ TargetID, SessionID string }
	must(t, b.call("", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": context}, &made))
	must(t, b.call("", "Target.attachToTarget", map[string]any{"targetId": made.TargetID, "flatten": true}, &made))
	p := &tab{b: b, t: t, session: made.SessionID}
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Runtime.enable", "Page.enable", "Log.enable"} {
		p.do(domain, map[string]any{})
	}
	p.do("Page.navigate", map[string]any{"url": url})
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *tab) do(method string, params map[string]any) {
	p.t.Helper()
	must(p.t, p.b.call(p.session, method, params, nil))
}

// eval evaluates an expression in the page.
func (p *tab) eval(expression string) any {
	p.t.Helper()
	value, err := p.try(expression)
	must(p.t, err)
	return value
}

func (p *tab) try(expression string) (any, error) {
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	err := p.b.call(p.session, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &out)
	if err == nil && out.ExceptionDetails != nil {
		err = fmt.Errorf("%s: %s", expression, out.ExceptionDetails)
	}
	return out.Result.Value, err
}

// until waits for an expression to be true.
func (p *tab) until(expression string) {
	p.t.Helper()
	var last any
	var err error
	for start := time.Now(); time.Since(start) < browserPatience; time.Sleep(20 * time.Millisecond) {
		if last, err = p.try(expression); err == nil && last == true {
			return
		}
	}
	text, _ := p.try("document.body.innerText.replace(/x{100,}/g, '…').slice(-4000)")
	p.t.Fatalf("it does not come true: %s (%v %v)\nthe page:\n%v\n%v", expression, last, err, text, p.trouble())
}

// shows waits for a text on the page.
func (p *tab) shows(text string) {
	p.t.Helper()
	quoted, _ := json.Marshal(text)
	p.until(fmt.Sprintf("document.body.innerText.includes(%s)", quoted))
}

// text is what an element shows.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return fmt.Sprint(p.eval(fmt.Sprintf("document.querySelector(%q).innerText", selector)))
}

// click presses an element in its middle, as a mouse does.
func (p *tab) click(selector string) {
	p.t.Helper()
	p.mouse("mousePressed", selector)
	p.mouse("mouseReleased", selector)
}

// mouse does one half of a click.
func (p *tab) mouse(kind, selector string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.querySelector(%q)?.getClientRects().length > 0", selector))
	at := p.eval(fmt.Sprintf("{ const r = document.querySelector(%q).getBoundingClientRect(); [r.x + r.width/2, r.y + r.height/2] }", selector)).([]any)
	p.do("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
}

// write writes a text where the focus is.
func (p *tab) write(text string) {
	p.t.Helper()
	p.do("Input.insertText", map[string]any{"text": text})
}

// press presses and releases a key.
func (p *tab) press(key string) {
	p.t.Helper()
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9, " ": 32, "End": 35, "y": 89}
	params := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	if text := map[string]string{"Enter": "\r", " ": " ", "y": "y"}[key]; text != "" {
		params["text"] = text
	}
	p.do("Input.dispatchKeyEvent", params)
	p.do("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]})
}

// readToEnd has the end of a request on the screen.
func (p *tab) readToEnd() {
	p.t.Helper()
	p.until(dialogOpen)
	p.until(free("deny"))
	p.press("End")
	p.until(free("allow-once"))
}

// trouble is what went wrong in the page.
func (p *tab) trouble() string {
	p.b.mu.Lock()
	defer p.b.mu.Unlock()
	return strings.Join(append(append([]string(nil), p.errors...), p.failed...), "\n")
}

// phone makes the tab one of a phone, in a size of CSS pixels.
func (p *tab) phone(width, height int) {
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 2, "mobile": true})
	p.do("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": true})
}

func (p *tab) prefers(name, value string) {
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": name, "value": value}}})
}

// picture keeps what the tab shows, where ZCODER_TEST_PICTURES says.
func (p *tab) picture(name string) {
	p.t.Helper()
	dir := os.Getenv("ZCODER_TEST_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	must(p.t, p.b.call(p.session, "Page.captureScreenshot", map[string]any{"format": "png"}, &shot))
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	must(p.t, err)
	must(p.t, os.WriteFile(dir+"/"+name+".png", data, 0o644))
}
