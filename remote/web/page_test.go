package web

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

const token = "0123456789abcdef0123456789abcdef"

// clock holds what is to be called later.
type clock struct {
	mu    sync.Mutex
	later []*alarm
}

type alarm struct {
	d time.Duration
	f func()
}

func (c *clock) after(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{d, f}
	c.later = append(c.later, a)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		had := a.f != nil
		a.f = nil
		return had
	}
}

// ring calls what waits for just this long, and returns how many that were.
func (c *clock) ring(d time.Duration) int {
	c.mu.Lock()
	var due []func()
	for _, a := range c.later {
		if a.d == d && a.f != nil {
			due = append(due, a.f)
			a.f = nil
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
	return len(due)
}

func newPage() (*Page, *clock) {
	c := &clock{}
	return New(Config{Token: token, AfterFunc: c.after}), c
}

// request is one of the page's own.
func request(method, target, body string) *http.Request {
	r := httptest.NewRequest(method, "http://localhost:7337"+target, strings.NewReader(body))
	if method == "POST" {
		r.Header.Set("Origin", "http://localhost:7337")
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func serve(p *Page, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// logIn logs in and returns what makes a request one of that login.
func logIn(t *testing.T, p *Page) (cookie *http.Cookie, key string) {
	t.Helper()
	w := serve(p, request("POST", "/web/login", `{"token":"`+token+`"}`))
	var out struct{ Key string }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != 200 || len(w.Result().Cookies()) != 1 || out.Key == "" {
		t.Fatalf("login: %d %s %v", w.Code, w.Body, err)
	}
	return w.Result().Cookies()[0], out.Key
}

func with(r *http.Request, c *http.Cookie, key string) *http.Request {
	if c != nil {
		r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
	}
	if key != "" {
		r.Header.Set("Zcoder-Page", key)
	}
	return r
}

func TestLoginCookie(t *testing.T) {
	p, _ := newPage()
	c, key := logIn(t, p)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 86400 || c.Name != "zcoder_7337" || len(c.Value) < 26 {
		t.Errorf("the cookie is %v", c)
	}
	if again, otherKey := logIn(t, p); again.Value == c.Value || key == otherKey || key == c.Value || strings.Contains(c.String()+key, token) {
		t.Errorf("logins are no random values: %v %v %q %q", c, again, key, otherKey)
	}
}

func TestWhoIsLoggedIn(t *testing.T) {
	p, _ := newPage()
	c, key := logIn(t, p)
	other, otherKey := logIn(t, p)
	for _, x := range []struct {
		name   string
		method string
		change func(r *http.Request)
		want   bool
	}{
		{"GET", "GET", func(*http.Request) {}, true},
		{"GET without word of its sender", "GET", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, true},
		{"POST", "POST", func(*http.Request) {}, true},
		{"POST without word of its sender", "POST", func(r *http.Request) { r.Header.Del("Sec-Fetch-Site") }, true},
		{"POST without origin", "POST", func(r *http.Request) { r.Header.Del("Origin") }, false},
		{"POST with two origins", "POST", func(r *http.Request) { r.Header.Add("Origin", "http://localhost:7337") }, false},
		{"of another port", "GET", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, false},
		{"of another site", "POST", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, false},
		{"typed in", "GET", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "none") }, false},
		{"the cookie alone", "GET", func(r *http.Request) { r.Header.Del("Zcoder-Page") }, false},
		{"the key alone", "GET", func(r *http.Request) { r.Header.Del("Cookie") }, false},
		{"the key of another login", "GET", func(r *http.Request) { r.Header.Set("Zcoder-Page", otherKey) }, false},
		{"two keys", "GET", func(r *http.Request) { r.Header.Add("Zcoder-Page", key) }, false},
		{"the token as key", "GET", func(r *http.Request) { r.Header.Set("Zcoder-Page", token) }, false},
		{"the cookie of another port", "GET", func(r *http.Request) { r.Host = "localhost:7338" }, false},
		{"a planted cookie besides", "GET", func(r *http.Request) {
			r.Header.Set("Cookie", "zcoder_7337=planted; zcoder_7337="+c.Value)
		}, true},
		{"another cookie", "GET", func(r *http.Request) { r.Header.Set("Cookie", "zcoder_7337="+other.Value) }, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := with(request(x.method, "/v1/hello", ""), c, key)
			x.change(r)
			if ended, ok := p.Login(r); ok != x.want || ok && isClosed(ended) {
				t.Errorf("logged in: %v", ok)
			}
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestLoginIsRefused(t *testing.T) {
	for _, x := range []struct {
		name   string
		body   string
		change func(r *http.Request)
		want   int
	}{
		{"a wrong token", `{"token":"` + strings.Repeat("x", 32) + `"}`, nil, 401},
		{"no token", `{}`, nil, 401},
		{"no JSON", "token=" + token, nil, 400},
		{"a form", "token=" + token, func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, 400},
		{"JSON as text, which forms can send", `{"token":"` + token + `"}`, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, 400},
		{"too much", `{"token":"` + strings.Repeat(" ", 10000) + token + `"}`, nil, 400},
		{"no origin", `{"token":"` + token + `"}`, func(r *http.Request) { r.Header.Del("Origin") }, 403},
		{"of another site", `{"token":"` + token + `"}`, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		{"in the address", `{}`, func(r *http.Request) { r.URL.RawQuery = "token=" + token }, 400},
		{"a GET", "", func(r *http.Request) { r.Method = "GET" }, 404},
	} {
		t.Run(x.name, func(t *testing.T) {
			p, c := newPage()
			r := request("POST", "/web/login", x.body)
			if x.change != nil {
				x.change(r)
			}
			done := make(chan *httptest.ResponseRecorder)
			go func() { done <- serve(p, r) }()
			var w *httptest.ResponseRecorder
			for w == nil {
				select {
				case w = <-done:
				default:
					if n := c.ring(wrongToken); n > 0 && x.want != 401 {
						t.Error("it waits though no token was tried")
					}
				}
			}
			if w.Code != x.want || len(w.Result().Cookies()) != 0 || strings.Contains(w.Body.String(), token) {
				t.Errorf("%d %s %v; want %d", w.Code, w.Body, w.Result().Cookies(), x.want)
			}
			if len(p.logins) != 0 {
				t.Error("somebody is logged in")
			}
		})
	}
}

// A wrong token is answered late, or when the client leaves.
func TestWrongTokensAreSlow(t *testing.T) {
	p, c := newPage()
	done := make(chan int)
	go func() { done <- serve(p, request("POST", "/web/login", `{"token":"x"}`)).Code }()
	for waits := 0; waits == 0; {
		select {
		case code := <-done:
			t.Fatalf("it was answered at once with %d", code)
		default:
			waits = c.ring(wrongToken)
		}
	}
	if code := <-done; code != 401 {
		t.Errorf("got %d", code)
	}
}

func TestLoginsEnd(t *testing.T) {
	p, clock := newPage()
	c, key := logIn(t, p)
	ended, ok := p.Login(with(request("GET", "/", ""), c, key))
	if !ok {
		t.Fatal("not logged in")
	}
	if w := serve(p, with(request("POST", "/web/logout", "{}"), c, "")); w.Code != 401 || isClosed(ended) {
		t.Errorf("a logout by the cookie alone = %d", w.Code)
	}
	w := serve(p, with(request("POST", "/web/logout", "{}"), c, key))
	if w.Code != 200 || w.Result().Cookies()[0].MaxAge != -1 || !isClosed(ended) {
		t.Errorf("logout = %d %v, ended %v", w.Code, w.Result().Cookies(), isClosed(ended))
	}
	if _, ok := p.Login(with(request("GET", "/", ""), c, key)); ok {
		t.Error("still logged in")
	}

	c, key = logIn(t, p)
	ended, _ = p.Login(with(request("GET", "/", ""), c, key))
	if clock.ring(lifetime) != 1 || !isClosed(ended) {
		t.Error("a login lasts for ever")
	}
}

// One more browser than there is room for ends the login that was away longest.
func TestLoginsAreBounded(t *testing.T) {
	p, _ := newPage()
	first, firstKey := logIn(t, p)
	second, secondKey := logIn(t, p)
	for range maxLogins - 2 {
		logIn(t, p)
	}
	if _, ok := p.Login(with(request("GET", "/", ""), first, firstKey)); !ok {
		t.Fatal("the first is not logged in")
	}
	logIn(t, p)
	if _, ok := p.Login(with(request("GET", "/", ""), first, firstKey)); !ok || len(p.logins) != maxLogins {
		t.Errorf("the first, which was just used: %v of %d", ok, len(p.logins))
	}
	if _, ok := p.Login(with(request("GET", "/", ""), second, secondKey)); ok {
		t.Error("the second is still logged in")
	}
}

func TestCookieName(t *testing.T) {
	for host, want := range map[string]string{
		"localhost": "zcoder_80", "localhost:7337": "zcoder_7337", "[::1]:7": "zcoder_7", "[::1]": "zcoder_80", "a:": "zcoder_80",
	} {
		if got := cookieName(host); got != want {
			t.Errorf("%s: %s; want %s", host, got, want)
		}
	}
}

func TestEveryAnswerIsFencedIn(t *testing.T) {
	for _, x := range []struct {
		method, target, body string
		status               int
		kind                 string
	}{
		{"GET", "/", "", 200, "text/html; charset=utf-8"},
		{"GET", "/web/app.js", "", 200, "text/javascript; charset=utf-8"},
		{"GET", "/web/style.css", "", 200, "text/css; charset=utf-8"},
		{"GET", "/favicon.ico", "", 404, "application/json"},
		{"GET", "/web/", "", 404, "application/json"},
		{"GET", "/web/nothing.js", "", 404, "application/json"},
		{"GET", "/web/../page.go", "", 404, "application/json"},
		{"GET", "/web/static/app.js", "", 404, "application/json"},
		{"GET", "/web/%2e%2e/page.go", "", 404, "application/json"},
		{"GET", "/?token=x", "", 400, "application/json"},
		{"GET", "/web/app.js?v=1", "", 400, "application/json"},
		{"HEAD", "/", "", 404, "application/json"},
		{"POST", "/", "{}", 404, "application/json"},
		{"POST", "/web/login", "", 400, "application/json"},
		{"POST", "/web/login", `{"token":"` + token + `"}`, 200, "application/json"},
		{"POST", "/web/logout", "{}", 401, "application/json"},
	} {
		p, _ := newPage()
		w := serve(p, request(x.method, x.target, x.body))
		h := w.Header()
		if w.Code != x.status || h.Get("Content-Type") != x.kind {
			t.Errorf("%s %s = %d %s; want %d %s", x.method, x.target, w.Code, h.Get("Content-Type"), x.status, x.kind)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy":      policy,
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Cache-Control":                "no-store",
			"Access-Control-Allow-Origin":  "",
		} {
			if h.Get(name) != want {
				t.Errorf("%s %s: %s is %q", x.method, x.target, name, h.Get(name))
			}
		}
	}
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self';", "img-src 'none'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("the policy lacks %s", want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Error("the policy allows what is unsafe")
	}
}

// forbidden is what no file of the page holds: ways to make markup or code of text, and
// what the policy would refuse anyway.
var forbidden = map[string]*regexp.Regexp{
	"markup from text":    regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|setHTML|srcdoc`),
	"code from text":      regexp.MustCompile(`\beval\b|new Function|set(?:Timeout|Interval)\(\s*["'\x60]|import\(|javascript:`),
	"an address":          regexp.MustCompile(`https?:|\bwss?:|["'(]//|@import|url\(`),
	"an inline handler":   regexp.MustCompile(`(?i)<[^>]*\son[a-z]+\s*=`),
	"an inline style":     regexp.MustCompile(`(?i)<[^>]*\sstyle\s*=|<style|\.style\b|cssText|setAttribute`),
	"an inline script":    regexp.MustCompile(`(?is)<script[^>]*>\s*\S[^<]*</script>`),
	"another way in":      regexp.MustCompile(`window\.open|postMessage|location\s*=|location\.(?:href|assign|replace)|\.href\b|\.src\b`),
	"a handler by a name": regexp.MustCompile(`\.on[a-z]+\s*=[^=]`),
}

func TestAssetsMakeNoMarkup(t *testing.T) {
	names, err := fs.Glob(files, "static/*")
	if err != nil || len(names) < 9 {
		t.Fatal(names, err)
	}
	sets := 0
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, pattern := range forbidden {
			if found := pattern.FindString(string(data)); found != "" {
				t.Errorf("%s holds %s: %q", name, what, found)
			}
		}
		sets += len(regexp.MustCompile(`\.textContent\s*=[^=]|createTextNode\([^"]`).FindAll(data, -1))
		if path.Ext(name) == ".js" && strings.Contains(string(data), "textContent =") && name != "static/text.js" {
			t.Errorf("%s sets text past text.js", name)
		}
	}
	if sets != 1 {
		t.Errorf("text is set in %d places; want the one in text.js", sets)
	}
	for what, sample := range map[string]string{
		"markup from text": "x.innerHTML = y", "code from text": "setTimeout('x')", "an address": `<img src="//a.example/x">`,
		"an inline handler": `<a onclick="x">`, "an inline style": `<p style="x">`, "an inline script": "<script>x</script>",
		"another way in": "location = x", "a handler by a name": "x.onclick = y",
	} {
		if !forbidden[what].MatchString(sample) {
			t.Errorf("%s is not found in %q", what, sample)
		}
	}
}

// Every file that the page names is there, and every one that is there is named.
func TestAssetsAreThere(t *testing.T) {
	p, _ := newPage()
	names, err := fs.Glob(files, "static/*")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	used := map[string]bool{"index.html": true}
	for _, m := range regexp.MustCompile(`"/web/([\w-]+\.\w+)"|from "\./([\w-]+\.js)"`).FindAllStringSubmatch(all.String(), -1) {
		used[m[1]+m[2]] = true
		if w := serve(p, request("GET", "/web/"+m[1]+m[2], "")); w.Code != 200 {
			t.Errorf("%s: %d", m[0], w.Code)
		}
	}
	for _, name := range names {
		if !used[path.Base(name)] {
			t.Errorf("nothing uses %s", name)
		}
	}
	ids := map[string]bool{}
	html, _ := files.ReadFile("static/index.html")
	for _, m := range regexp.MustCompile(`\bid="([^"]+)"`).FindAllStringSubmatch(string(html), -1) {
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`\bget\("([^"]+)"\)`).FindAllStringSubmatch(all.String(), -1) {
		if !ids[m[1]] {
			t.Errorf("the page has no element %q", m[1])
		}
	}
}

func TestShow(t *testing.T) {
	p, _ := newPage()
	got := p.Show(event.Question{
		Tool: "run_command", Effect: "exec", Origin: "remote", Text: "rm \u202e/x\n\n\ty" + strings.Repeat(" ", 20) + "z", Shell: []string{"/bin/sh", "-c", "a b"},
		Dir: "/w\x1b[31m", Timeout: "2m", Reasons: []string{"commands ask", "a\nb"}, Notes: []string{"runs: rm"},
	})
	want := shown{
		Facts: []fact{
			{"tool", "run_command (exec)"}, {"shell", "/bin/sh -c 'a b'"}, {"dir", `/w\x1b[31m`}, {"limit", "2m"}, {"asked by", "remote"},
			{"because", "commands ask"}, {"because", "a⏎b"},
		},
		Lines: []string{"rm <U+202E>/x", "", "\ty ·×20 z"},
		Notes: []string{"runs: rm", "hidden characters: <U+202E> reorders text (1×)"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := fmt.Sprint(p.Show(event.Question{Tool: "x", Text: " \n"})); !strings.Contains(got, "the text is empty") {
		t.Errorf("an empty text: %s", got)
	}
	data, err := json.Marshal(p.Show(event.Question{}))
	if err != nil || string(data) != `{"facts":[],"lines":[""],"notes":["the text is empty"]}` {
		t.Errorf("nothing at all: %s %v", data, err)
	}
}

// FuzzShow: nothing of a question reaches the page raw, and no line of it is lost.
func FuzzShow(f *testing.F) {
	f.Add("ls", "/work", "note")
	f.Add("a\r\nb\x1b[31m\u202e\xff\u0301", "\n", "\u2028")
	f.Fuzz(func(t *testing.T, text, dir, note string) {
		p, _ := newPage()
		s := p.Show(event.Question{Tool: dir, Text: text, Dir: dir, Shell: []string{note, text}, Reasons: []string{note}, Notes: []string{note}}).(shown)
		all := append(append([]string(nil), s.Lines...), s.Notes...)
		for _, f := range s.Facts {
			all = append(all, f.Value)
		}
		for _, one := range all {
			if strings.Contains(one, "\n") || termtext.Safe(one) != one {
				t.Errorf("%q is shown", one)
			}
		}
		if got, want := strings.Join(s.Lines, "\n"), termtext.MarkBlanks(termtext.Safe(text)); got != want {
			t.Errorf("%q is shown as %q", text, got)
		}
	})
}
