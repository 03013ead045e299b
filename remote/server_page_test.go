package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
	"zcoder/remote/web"
)

func withPage(c *Config) {
	c.Page = web.New(web.Config{Token: stationToken, AfterFunc: c.AfterFunc})
}

// surfer is a browser that is logged in on a station's page.
type surfer struct {
	s      *station
	url    string
	cookie string
	key    string
}

func logInAt(s *station, url string) *surfer {
	s.t.Helper()
	b := &surfer{s: s, url: url}
	status, text, h := b.ask("POST", "/web/login", jsonOf("token", stationToken), nil)
	var out struct{ Key string }
	if err := json.Unmarshal([]byte(text), &out); err != nil || status != 200 {
		s.t.Fatalf("login = %d %s", status, text)
	}
	b.cookie, _, _ = strings.Cut(h.Get("Set-Cookie"), ";")
	b.key = out.Key
	return b
}

func (b *surfer) request(method, path, body string, change func(*http.Request)) *http.Request {
	r, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.s.t.Fatal(err)
	}
	if body == "" {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	if method == "POST" {
		r.Header.Set("Origin", b.url)
	}
	if b.key != "" {
		r.Header.Set("Cookie", b.cookie)
		r.Header.Set("Zcoder-Page", b.key)
	}
	if change != nil {
		change(r)
	}
	return r
}

func (b *surfer) ask(method, path, body string, change func(*http.Request)) (int, string, http.Header) {
	b.s.t.Helper()
	r := b.request(method, path, body, change)
	if b.s.http == nil {
		r.Host, r.RequestURI = r.URL.Host, path
		r.URL.Scheme, r.URL.Host = "", ""
		w := httptest.NewRecorder()
		if r.Body == nil {
			r.Body = http.NoBody
		}
		b.s.server.ServeHTTP(w, r)
		return w.Code, w.Body.String(), w.Header()
	}
	resp, err := b.s.http.Do(r)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header
}

func TestPageRequests(t *testing.T) {
	const at = "http://localhost:7337"
	s := newStation(t, withPage)
	b := logInAt(s, at)
	for _, c := range []struct {
		name         string
		method, path string
		body         string
		change       func(r *http.Request)
		want         int
	}{
		{"read", "GET", "/v1/hello", "", nil, 200},
		{"do", "POST", "/v1/session/new", "{}", nil, 200},
		{"the page of a stranger", "GET", "/", "", func(r *http.Request) { r.Header.Del("Cookie"); r.Header.Del("Zcoder-Page") }, 200},
		{"by another name", "GET", "/", "", func(r *http.Request) { r.URL.Host = "evil.example" }, 421},
		{"its files by another name", "GET", "/web/app.js", "", func(r *http.Request) { r.URL.Host = "evil.example" }, 421},
		{"login by another name", "POST", "/web/login", jsonOf("token", stationToken), func(r *http.Request) { r.URL.Host = "evil.example"; r.Header.Set("Origin", "http://evil.example") }, 421},
		{"login of another origin", "POST", "/web/login", jsonOf("token", stationToken), func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }, 403},
		{"a name that was pointed here", "GET", "/v1/hello", "", func(r *http.Request) { r.URL.Host = "evil.example:7337" }, 421},
		{"do of another origin", "POST", "/v1/cancel", "{}", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"do of another port", "POST", "/v1/cancel", "{}", func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }, 403},
		{"do of no origin", "POST", "/v1/cancel", "{}", func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		{"do without origin", "POST", "/v1/cancel", "{}", func(r *http.Request) { r.Header.Del("Origin") }, 401},
		{"read of another site", "GET", "/v1/hello", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 401},
		{"read of another port", "GET", "/v1/stream", "", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") }, 401},
		{"the cookie alone", "POST", "/v1/cancel", "{}", func(r *http.Request) { r.Header.Del("Zcoder-Page") }, 401},
		{"the key alone", "GET", "/v1/hello", "", func(r *http.Request) { r.Header.Del("Cookie") }, 401},
		{"a wrong token besides", "GET", "/v1/hello", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		{"asked before, from elsewhere", "OPTIONS", "/v1/turn", "", func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, 403},
		{"the cookie as token", "GET", "/v1/hello", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+b.key)
		}, 401},
		{"a client with the token", "GET", "/v1/hello", "", func(r *http.Request) {
			r.Header = http.Header{"Authorization": {"Bearer " + stationToken}}
		}, 200},
		{"an unknown route", "GET", "/v1/nothing", "", nil, 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, text, h := b.ask(c.method, c.path, c.body, c.change)
			if status != c.want {
				t.Errorf("%d %s; want %d", status, text, c.want)
			}
			if h.Get("Access-Control-Allow-Origin") != "" || strings.Contains(text, stationToken) {
				t.Errorf("headers %v, body %s", h, text)
			}
		})
	}
}

// Without a page there is none of it: the paths are unknown, and no cookie counts.
func TestNoPageUnlessAsked(t *testing.T) {
	s := newStation(t)
	for _, path := range []string{"/", "/web/app.js", "/favicon.ico"} {
		if status, _ := s.ask("GET", path, ""); status != 404 {
			t.Errorf("%s = %d", path, status)
		}
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("%s without token = %d", path, w.Code)
		}
	}
}

// streamed reads a stream until a message of a kind holds a text, and returns it.
func streamed(t *testing.T, in *bufio.Reader, text string) string {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ended before %q: %v", text, err)
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && strings.Contains(data, text) {
			return data
		}
	}
}

func (b *surfer) stream(ctx context.Context) *bufio.Reader {
	b.s.t.Helper()
	r := b.request("GET", "/v1/stream", "", nil).WithContext(ctx)
	resp, err := (&http.Client{Transport: b.s.http.Transport}).Do(r)
	if err != nil {
		b.s.t.Fatal(err)
	}
	b.s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != 200 {
		b.s.t.Fatalf("stream = %d", resp.StatusCode)
	}
	return bufio.NewReader(resp.Body)
}

func TestPageStreamEndsWithTheLogin(t *testing.T) {
	s := newStation(t, withPage).listen()
	b := logInAt(s, s.url)
	in := b.stream(testContext(t))
	streamed(t, in, `"session":"1_1"`)
	if status, text, _ := b.ask("POST", "/web/logout", "{}", nil); status != 200 {
		t.Fatalf("logout = %d %s", status, text)
	}
	if _, err := io.ReadAll(in); err != nil {
		t.Errorf("the stream ends with %v", err)
	}
	if status, _, _ := b.ask("GET", "/v1/hello", "", nil); status != 401 {
		t.Errorf("after the logout: %d", status)
	}
}

// TestSettledOnceEverywhere: a client with the token and a browser see one question and
// both answer. One counts, the other is told.
func TestSettledOnceEverywhere(t *testing.T) {
	for _, order := range []string{"client first", "browser first", "both at once"} {
		t.Run(order, func(t *testing.T) {
			s := newStation(t, withPage).listen()
			ctx := testContext(t)
			c := dialStation(t, s)
			b := logInAt(s, s.url)
			in := b.stream(ctx)
			w := watchEvents(ctx, c, 0, nil)
			s.turn("run ls")
			var shown struct {
				Approval string
				Event    event.Event
				Shown    struct{ Lines []string }
			}
			if err := json.Unmarshal([]byte(streamed(t, in, `"event":"question"`)), &shown); err != nil || shown.Approval == "" || strings.Join(shown.Shown.Lines, "") != "ls" {
				t.Fatalf("the browser is shown %+v, %v", shown, err)
			}
			w.until(t, "the question", isKind(event.Asked))
			q := shown.Event.Question
			var clientErr error
			var status int
			var text string
			client := func() { clientErr = c.Answer(q.CallID, event.Answer{Choice: "once", Digest: q.Digest}) }
			browser := func() {
				status, text, _ = b.ask("POST", "/v1/approval", jsonOf("id", shown.Approval, "decision", "n", "digest", q.Digest, "reason", "no"), nil)
			}
			switch order {
			case "client first":
				client()
				browser()
			case "browser first":
				browser()
				client()
			default:
				var both sync.WaitGroup
				both.Go(client)
				both.Go(browser)
				both.Wait()
			}
			s.idle()
			told := errors.Is(clientErr, ErrSettled) && status == 200
			if won := clientErr == nil && status == 409 && strings.Contains(text, "it was answered"); won == told {
				t.Errorf("the client gets %v, the browser %d %s", clientErr, status, text)
			}
			if order == "client first" && told || order == "browser first" && !told {
				t.Errorf("the first answer did not count: %v, %d", clientErr, status)
			}
			if ran := len(s.host.ran()); ran != map[bool]int{false: 1, true: 0}[told] {
				t.Errorf("%d commands ran", ran)
			}
			streamed(t, in, `"event":"answer"`) // which closes the dialog
		})
	}
}

// Nothing that a server says of connections holds a token, a cookie or a key.
func TestPageLeaksNothing(t *testing.T) {
	var mu sync.Mutex
	var said []string
	s := newStation(t, withPage, func(c *Config) {
		c.Warn = func(line string) { mu.Lock(); defer mu.Unlock(); said = append(said, line) }
	}).listen()
	b := logInAt(s, s.url)
	b.ask("POST", "/web/login", `{"token":"`+stationToken, nil)
	b.ask("GET", "/?token="+stationToken, "", nil)
	b.ask("GET", "/v1/hello?token="+stationToken, "", nil)
	s.raw("GET /" + stationToken + "\r\n\r\n")
	_, page, _ := b.ask("GET", "/", "", nil)
	mu.Lock()
	defer mu.Unlock()
	_, cookie, _ := strings.Cut(b.cookie, "=")
	for _, secret := range []string{stationToken, b.key, cookie} {
		if secret == "" || strings.Contains(page+strings.Join(said, "\n"), secret) {
			t.Errorf("%q is said in %q", secret, said)
		}
	}
}

// A stream of a client with the token is as it was: it holds nothing for pages.
func TestClientsNoticeNoPage(t *testing.T) {
	s := newStation(t, withPage, func(c *Config) { c.ApprovalTimeout = time.Hour }).listen()
	ctx := testContext(t)
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+stationToken)
	resp, err := (&http.Client{Transport: s.http.Transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	s.turn("run ls")
	if question := streamed(t, in, `"event":"question"`); strings.Contains(question, `"shown"`) {
		t.Errorf("the client gets %s", question)
	}
}
