package remote

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
	"zcoder/remote/web"
)

func TestHello(t *testing.T) {
	s := newStation(t)
	status, text := s.ask("GET", "/v1/hello", "")
	want := `{"protocol":1,"server_name":"test","workspace":"/work","model":"m","profile":"coding","command_policy":"ask",` +
		`"model_status":"ready","model_error":"","harnesses":"claude,codex","sessions":true,"goals":true,"input_queue":true,` +
		`"documents":true,"document_context":true,"git_status":"main","commands":true,"stream":true,"version":"9"}`
	if status != 200 || text != want {
		t.Errorf("hello = %d\n%s\nwant\n%s", status, text, want)
	}
}

// H10: what is let in, and what a request may look like.
func TestAdmission(t *testing.T) {
	for _, c := range []struct {
		name         string
		method, path string
		host, auth   string
		header       map[string]string
		body         string
		want         int
	}{
		{name: "plain", want: 200},
		{name: "no token", auth: "none", want: 401},
		{name: "wrong token", auth: "Bearer " + strings.Repeat("x", 32), want: 401},
		{name: "token with more", auth: "Bearer " + stationToken + "x", want: 401},
		{name: "another scheme", auth: "Basic " + stationToken, want: 401},
		{name: "no scheme", auth: stationToken, want: 401},
		{name: "scheme in other case", auth: "bearer " + stationToken, want: 200},
		{name: "token in the query", path: "/v1/hello?token=" + stationToken, auth: "none", want: 401},
		{name: "unknown path without token", path: "/v2/hello", auth: "none", want: 401},
		{name: "forwarded from here", auth: "none", header: map[string]string{"X-Forwarded-For": "127.0.0.1"}, want: 401},
		{name: "localhost with a port", host: "LocalHost.:1", want: 200},
		{name: "IPv4", host: "192.0.2.7:7337", want: 200},
		{name: "IPv6", host: "[2001:db8::1]:7337", want: 200},
		{name: "IPv6 without port", host: "[::1]", want: 200},
		{name: "allowed name", host: "build.example:7337", want: 200},
		{name: "another name", host: "evil.example", want: 421},
		{name: "a name that begins like an address", host: "127.0.0.1.evil.example", want: 421},
		{name: "an odd port", host: "localhost:x", want: 421},
		{name: "two ports", host: "localhost:1:2", want: 421},
		{name: "brackets left open", host: "[::1", want: 421},
		{name: "a number as address", host: "2130706433", want: 421},
		{name: "another page", header: map[string]string{"Origin": "https://evil.example"}, want: 403},
		{name: "a page of ours, without pages", header: map[string]string{"Origin": "http://localhost"}, want: 403},
		{name: "no page", header: map[string]string{"Origin": "null"}, want: 403},
		{name: "HEAD", method: "HEAD", want: 404},
		{name: "OPTIONS", method: "OPTIONS", want: 404},
		{name: "TRACE", method: "TRACE", want: 404},
		{name: "POST where GET is", method: "POST", body: "{}", want: 404},
		{name: "GET where POST is", path: "/v1/turn", want: 404},
		{name: "lower case method", method: "get", want: 404},
		{name: "slash behind", path: "/v1/hello/", want: 404},
		{name: "slashes", path: "//v1/hello", want: 404},
		{name: "encoded letters", path: "/v1/%68ello", want: 404},
		{name: "encoded slash", path: "/v1%2fhello", want: 404},
		{name: "dots", path: "/v1/x/../hello", want: 404},
		{name: "encoded dots", path: "/v1/session/..%2f..%2fetc", want: 404},
		{name: "upper case", path: "/v1/Hello", want: 404},
		{name: "profiling", path: "/debug/pprof/", want: 404},
		{name: "variables", path: "/debug/vars", want: 404},
		{name: "root", path: "/", want: 404},
		{name: "upgrade", header: map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, want: 400},
		{name: "encoded body", method: "POST", path: "/v1/cancel", body: "{}", header: map[string]string{"Content-Encoding": "gzip"}, want: 400},
		{name: "GET with a body", body: "{}", want: 400},
		{name: "a query where none is", path: "/v1/hello?x=1", want: 400},
		{name: "an empty query", path: "/v1/hello?", want: 400},
		{name: "events", path: "/v1/events?after=0", want: 200},
		{name: "events from far on", path: "/v1/events?after=999999999999999999", want: 200},
		{name: "events without cursor", path: "/v1/events", want: 400},
		{name: "a negative cursor", path: "/v1/events?after=-1", want: 400},
		{name: "a signed cursor", path: "/v1/events?after=+1", want: 400},
		{name: "an empty cursor", path: "/v1/events?after=", want: 400},
		{name: "a huge cursor", path: "/v1/events?after=9999999999999999999", want: 400},
		{name: "two cursors", path: "/v1/events?after=1&after=2", want: 400},
		{name: "an encoded cursor", path: "/v1/events?after=%31", want: 400},
		{name: "more behind the cursor", path: "/v1/events?after=1&", want: 400},
		{name: "session", path: "/v1/session?id=1_1&after=0", want: 200},
		{name: "session in other order", path: "/v1/session?after=0&id=1_1", want: 400},
		{name: "session without cursor", path: "/v1/session?id=1_1", want: 400},
		{name: "unknown session", path: "/v1/session?id=9_9&after=0", want: 404},
		{name: "a path as id", path: "/v1/session?id=../../etc/passwd&after=0", want: 404},
		{name: "an encoded path as id", path: "/v1/session?id=..%2f..%2fetc&after=0", want: 404},
		{name: "a huge id", path: "/v1/session?id=" + strings.Repeat("9", 5000) + "_1&after=0", want: 404},
		{name: "an empty id", path: "/v1/session?id=&after=0", want: 404},
		{name: "stream with an odd query", path: "/v1/stream?session=1_1", want: 400},
		{name: "stream with a broken id", path: "/v1/stream?id=x&after=0", want: 404},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t, func(cfg *Config) { cfg.AllowHosts = []string{"Build.Example"} })
			method, path, host := c.method, c.path, c.host
			if method == "" {
				method = "GET"
			}
			if path == "" {
				path = "/v1/hello"
			}
			var body io.Reader
			if c.body != "" {
				body = strings.NewReader(c.body)
			}
			r := httptest.NewRequest(method, path, body)
			r.Host = "localhost"
			if host != "" {
				r.Host = host
			}
			switch c.auth {
			case "":
				r.Header.Set("Authorization", "Bearer "+stationToken)
			case "none":
			default:
				r.Header.Set("Authorization", c.auth)
			}
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			s.server.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Fatalf("status %d %s; want %d", w.Code, w.Body, c.want)
			}
			if got := w.Header().Get("Content-Type") + " " + w.Header().Get("Cache-Control"); got != "application/json no-store" {
				t.Errorf("headers %q", got)
			}
			if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
				t.Errorf("Content-Length %q for %d bytes", got, w.Body.Len())
			}
			var e struct{ Error string }
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || (w.Code != 200) != (e.Error != "") {
				t.Errorf("body %q: %v", w.Body, err)
			}
			if strings.Contains(w.Body.String(), stationToken) {
				t.Errorf("the reply holds the token: %s", w.Body)
			}
		})
	}
}

func TestOwnPage(t *testing.T) {
	s := newStation(t, func(c *Config) { c.Page = web.New(web.Config{Token: stationToken, AfterFunc: c.AfterFunc}) })
	for origin, want := range map[string]int{"http://localhost:7337": 200, "https://localhost:7337": 403, "http://localhost": 403, "http://evil.example": 403} {
		r := httptest.NewRequest("GET", "/v1/hello", nil)
		r.Host = "localhost:7337"
		r.Header.Set("Authorization", "Bearer "+stationToken)
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("a page of %s = %d; want %d", origin, w.Code, want)
		}
	}
}

func TestTwoTokensAreNone(t *testing.T) {
	s := newStation(t)
	for _, values := range [][]string{{"Bearer x", "Bearer " + stationToken}, {"Bearer " + stationToken, "Bearer x"}} {
		r := httptest.NewRequest("GET", "/v1/hello", nil)
		r.Host = "localhost"
		r.Header["Authorization"] = values
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		if w.Code != 401 {
			t.Errorf("status %d", w.Code)
		}
	}
}

func TestPrivatePipeNeedsNoToken(t *testing.T) {
	s := newStation(t, func(c *Config) { c.Token = "" })
	r := httptest.NewRequest("GET", "/v1/hello", nil)
	r.Host = "pipe"
	w := httptest.NewRecorder()
	s.server.ServeHTTP(w, r)
	if w.Code != 200 {
		t.Errorf("status %d", w.Code)
	}
	l, err := Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.server.Serve(t.Context(), l); err == nil || !strings.Contains(err.Error(), "without a token") {
		t.Errorf("Serve without a token: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it listens")
	}
}

func TestBodies(t *testing.T) {
	s := newStation(t, func(c *Config) { c.MaxBody = 1000 })
	for _, c := range []struct {
		name, body string
		want       int
	}{
		{"nothing running", `{}`, 409},
		{"unknown fields", `{"x":1,"y":"z","n":null,"f":1.5e3,"b":true}`, 409},
		{"blanks", " {\n} \n", 409},
		{"empty", ` `, 400},
		{"a list", `[]`, 400},
		{"a text", `"x"`, 400},
		{"cut short", `{"a":1`, 400},
		{"something behind", `{} {}`, 400},
		{"a comma too many", `{"a":1,}`, 400},
		{"an object in it", `{"a":{}}`, 400},
		{"a list in it", `{"a":[1]}`, 400},
		{"twice", `{"turn_id":"1_1","turn_id":"1_1"}`, 400},
		{"twice with an escape", `{"turn_id":"1_1","turn\u005fid":"1_1"}`, 400},
		{"twice in other case", `{"x":"1_1","X":"1_1"}`, 400},
		{"known field in other case", `{"Turn_ID":"1_1"}`, 400},
		{"known field with a Kelvin sign", `{"x":1,"K":1,"` + "\u212a" + `":1}`, 400},
		{"not UTF-8", "{\"a\":\"\xff\"}", 400},
		{"a number for a text", `{"turn_id":1,"session_id":"1_1"}`, 400},
		{"null for a text", `{"turn_id":null,"session_id":"1_1"}`, 400},
		{"a text for a boolean", `{"continue_queued":"true"}`, 400},
		{"as large as it may be", `{"a":"` + strings.Repeat("x", 1000-8) + `"}`, 409},
		{"too large", `{"a":"` + strings.Repeat("x", 1000-7) + `"}`, 413},
	} {
		if status, text := s.ask("POST", "/v1/cancel", c.body); status != c.want {
			t.Errorf("%s = %d %s; want %d", c.name, status, text, c.want)
		}
	}
	for _, body := range []string{`{}`, `{"prompt":""}`, `{"prompt":5}`, `{"prompt":"x","structured_events":1}`, `{"prompt":"x","open_documents":[]}`} {
		if status, _ := s.ask("POST", "/v1/turn", body); status != 400 {
			t.Errorf("turn %s = %d", body, status)
		}
	}
}

func TestSessions(t *testing.T) {
	s := newStation(t)
	s.turn("run ls")
	list := s.until("approval_required")
	s.must("POST", "/v1/approval", jsonOf("id", list[len(list)-1]["id"], "decision", "y"))
	s.until("complete")
	s.idle()
	if got := s.must("POST", "/v1/session/new", "{}")["id"]; got != "1_2" {
		t.Errorf("new = %v", got)
	}
	for i, want := range []string{
		`{"event":"session","seq":1,"id":"1_2","title":"title 1_2","model":"m","current":1,"empty":1}`,
		`{"event":"session","seq":2,"id":"1_1","title":"title 1_1","model":"m","current":0,"empty":0}`,
		`{"event":"none"}`,
	} {
		if _, got := s.ask("GET", fmt.Sprintf("/v1/sessions?after=%d", i), ""); got != want {
			t.Errorf("session %d = %s; want %s", i, got, want)
		}
	}
	want := []string{"user: run ls", "tool: ran ls", "assistant: done", "none"}
	check := func(id string, want []string) {
		t.Helper()
		for i, w := range want {
			m := s.must("GET", fmt.Sprintf("/v1/session?id=%s&after=%d", id, i), "")
			if m["event"] == "none" {
				if w != "none" {
					t.Errorf("message %d is missing", i+1)
				}
				return
			}
			if got := fmt.Sprintf("%v: %v", m["role"], m["content"]); got != w || m["seq"] != float64(i+1) || len(m["time"].(string)) != 5 || m["reasoning_open"] != 0.0 {
				t.Errorf("message %d = %v; want %s", i+1, m, w)
			}
		}
	}
	check("1_1", want)
	s.must("POST", "/v1/session/select", jsonOf("id", "1_1"))
	check("1_1", want)
	s.turn("say more")
	s.until("complete")
	check("1_1", append(want[:3], "user: say more", "assistant: more", "none"))
	for _, c := range []struct {
		body string
		want int
	}{{`{}`, 400}, {jsonOf("id", "9_9"), 404}, {jsonOf("id", "../x"), 404}, {jsonOf("id", "1_2"), 200}} {
		s.idle()
		if status, _ := s.ask("POST", "/v1/session/select", c.body); status != c.want {
			t.Errorf("select %s = %d; want %d", c.body, status, c.want)
		}
	}
}

// What a turn that nobody polled showed is in the session.
func TestAnotherConversationHasItsOwnTurns(t *testing.T) {
	s := newStation(t)
	s.turn("say one")
	s.until("complete")
	s.idle()
	s.must("POST", "/v1/session/new", "{}")
	s.turn("say two")
	if got := short(s.until("complete")); got != "assistant: two\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

// TestATurnIsForItsConversation: what a client meant for one conversation runs in no other,
// though its news of another may come late.
func TestATurnIsForItsConversation(t *testing.T) {
	s := newStation(t)
	s.must("POST", "/v1/session/new", "{}")
	for _, prompt := range []string{"say one", "/print one"} {
		if status, got := s.ask("POST", "/v1/turn", jsonOf("prompt", prompt, "session_id", "1_1")); status != 404 {
			t.Errorf("%s for another conversation: %d %s", prompt, status, got)
		}
	}
	s.must("POST", "/v1/turn", jsonOf("prompt", "wait", "session_id", "1_2"))
	wait(t, "the model's call", s.host.calling)
	if status, got := s.ask("POST", "/v1/turn", jsonOf("prompt", "/print two", "session_id", "1_1")); status != 404 {
		t.Errorf("beside a turn: %d %s", status, got)
	}
	s.host.release <- struct{}{}
	s.until("complete")
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	if len(s.host.prompts) != 1 {
		t.Errorf("ran %+v", s.host.prompts)
	}
}

func TestThinkingOfMessages(t *testing.T) {
	s := newStation(t)
	s.turn("say hello")
	for _, e := range s.until("complete") {
		if e["role"] == "assistant" && e["thinking"] != "thought" {
			t.Errorf("message %v", e)
		}
	}
}

func TestCloseCancelsTheTurn(t *testing.T) {
	s := newStation(t)
	s.turn("wait")
	s.blocked()
	if err := s.server.Close(); err != nil {
		t.Fatal(err)
	}
	s.idle()
	if status, _ := s.ask("POST", "/v1/turn", jsonOf("prompt", "say x")); status != 503 {
		t.Errorf("a turn after the end = %d", status)
	}
	last := s.host.logs["1_1"].events
	if e := last[len(last)-1]; e.Kind != event.TurnEnd || e.End.Reason != event.Cancelled {
		t.Errorf("the last event is %+v", e)
	}
}

// peer writes a request as existing clients do.
func peer(method, path, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost:7337\r\nAuthorization: Bearer %s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, stationToken, len(body), body)
}

func TestPlainPeers(t *testing.T) {
	s := newStation(t).listen()
	for _, c := range []struct{ name, send, status, body string }{
		{"GET with Content-Length", peer("GET", "/v1/model", ""), "200 OK", `{"model_status":"ready","model_error":""}`},
		{"POST", peer("POST", "/v1/cancel", "{}"), "409 Conflict", `{"error":"nothing is running"}`},
		{"HTTP/1.0", "GET /v1/model HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer " + stationToken + "\r\n\r\n", "200 OK", `{"model_status":"ready","model_error":""}`},
	} {
		got := s.raw(c.send)
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.Contains(head, " "+c.status) || body != c.body ||
			!strings.Contains(head, fmt.Sprintf("\r\nContent-Length: %d", len(body))) || strings.Contains(head, "Transfer-Encoding") {
			t.Errorf("%s:\n%s", c.name, got)
		}
	}
}

// H04: what is refused before it costs anything.
func TestHostileRequests(t *testing.T) {
	s := newStation(t)
	s.server.limits.read = time.Second
	s.listen()
	auth := "Host: localhost\r\nConnection: close\r\nAuthorization: Bearer " + stationToken + "\r\n"
	var wg sync.WaitGroup
	for _, c := range []struct{ name, send, want string }{
		{"no token, a body that never comes", "POST /v1/turn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", " 401 "},
		{"no token, asks first", "POST /v1/turn HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n", "HTTP/1.1 401 "},
		{"2 GB", "POST /v1/turn HTTP/1.1\r\n" + auth + "Content-Length: 2000000000\r\n\r\n", " 413 "},
		{"chunks for ever", "POST /v1/turn HTTP/1.1\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("10000\r\n"+strings.Repeat("x", 0x10000)+"\r\n", 20), " 413 "},
		{"a body cut short", "POST /v1/turn HTTP/1.1\r\n" + auth + "Content-Length: 10\r\n\r\n{", " 400 "},
		{"too many headers", "GET /v1/hello HTTP/1.1\r\n" + auth + strings.Repeat("X-Y: z\r\n", 20000) + "\r\n", " 431 "},
		{"a header too long", "GET /v1/hello HTTP/1.1\r\n" + auth + "X: " + strings.Repeat("x", 100000) + "\r\n\r\n", " 431 "},
		{"no host", "GET /v1/hello HTTP/1.1\r\nAuthorization: Bearer " + stationToken + "\r\n\r\n", " 400 "},
		{"two hosts", "GET /v1/hello HTTP/1.1\r\nHost: evil.example\r\n" + auth + "\r\n", " 400 "},
		{"to a proxy", "GET http://localhost/v1/hello HTTP/1.1\r\n" + auth + "\r\n", " 400 "},
		{"a tunnel", "CONNECT localhost:22 HTTP/1.1\r\n" + auth + "\r\n", " 404 "},
		{"options of everything", "OPTIONS * HTTP/1.1\r\n" + auth + "\r\n", " 404 "},
		{"lengths that differ", "POST /v1/cancel HTTP/1.1\r\n" + auth + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", " 400 "},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""},
		{"headers that never end", "GET /v1/hello HTTP/1.1\r\nHost: localhost\r\n", ""},
		{"nothing", "", ""},
	} {
		wg.Go(func() {
			start := time.Now()
			got := s.raw(c.send)
			line, _, _ := strings.Cut(got, "\r\n")
			if !strings.Contains(line, c.want) || c.want == "" && strings.Contains(line, " 200 ") {
				t.Errorf("%s: %.200q; want %q", c.name, got, c.want)
			}
			if time.Since(start) > limit-time.Second {
				t.Errorf("%s: the connection stayed open", c.name)
			}
		})
	}
	wg.Wait()
	s.must("GET", "/v1/hello", "")
}

// H04: many who send nothing, or slowly, are no reason to turn anybody away.
func TestManyConnections(t *testing.T) {
	s := newStation(t)
	s.server.limits.connections = 20
	s.listen()
	addr := strings.TrimPrefix(s.url, "http://")
	stream := s.follow("")
	stream.told(has("1 session"))
	var conns []net.Conn
	for i := range 200 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
		if i%2 == 0 {
			fmt.Fprint(conn, "POST /v1/turn HTTP/1.1\r\nHost: localhost\r\nContent-Le")
		}
	}
	s.must("GET", "/v1/hello", "")
	_ = conns[0].SetReadDeadline(time.Now().Add(limit))
	if _, err := io.ReadAll(conns[0]); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("the oldest connection was not closed")
	}
	s.turn("say hello")
	stream.told(has("complete"))
}

// When everything is streams the oldest gives way.
func TestManyStreams(t *testing.T) {
	s := newStation(t)
	s.server.limits.connections = 10
	s.listen()
	var streams []*sseClient
	for range 30 {
		c := s.follow("")
		c.told(has("1 session"))
		streams = append(streams, c)
	}
	if got := streams[0].told(has("end")); fmt.Sprint(got) != "[end]" {
		t.Errorf("the oldest stream says %q", got)
	}
	s.turn("say hello")
	streams[29].told(has("complete"))
}

func TestRequestsInProgressAreBounded(t *testing.T) {
	s := newStation(t)
	s.server.limits.write = 20 * time.Millisecond
	s.server.slots = make(chan struct{}, 1)
	s.server.slots <- struct{}{}
	if status, text := s.ask("GET", "/v1/model", ""); status != 503 {
		t.Errorf("= %d %s", status, text)
	}
	<-s.server.slots
	s.must("GET", "/v1/model", "")
}

// A request that takes longer than reading and writing may is answered all the same.
func TestLongAnswers(t *testing.T) {
	s := newStation(t)
	s.server.limits.read, s.server.limits.write, s.server.limits.patience = 50*time.Millisecond, 50*time.Millisecond, limit
	s.host.model, s.host.loaded = Model{Status: Warming}, make(chan Model)
	s.listen()
	time.AfterFunc(200*time.Millisecond, func() { s.host.loaded <- Model{Status: Ready} })
	if got := s.must("POST", "/v1/model/ensure", "{}"); got["model_status"] != "ready" {
		t.Errorf("ensure = %v", got)
	}
}

// No turn starts while the current conversation changes.
func TestNoTurnWhileASessionIsMade(t *testing.T) {
	s := newStation(t)
	s.host.making = make(chan bool)
	made := make(chan map[string]any)
	go func() { made <- s.must("POST", "/v1/session/new", "{}") }()
	<-s.host.making
	for path, body := range map[string]string{"/v1/turn": jsonOf("prompt", "say x"), "/v1/session/new": "{}", "/v1/session/select": jsonOf("id", "1_1")} {
		if status, _ := s.ask("POST", path, body); status != 409 {
			t.Errorf("%s meanwhile = %d", path, status)
		}
	}
	s.host.making <- true
	if got := <-made; got["id"] != "1_2" {
		t.Errorf("new = %v", got)
	}
	s.turn("say x")
	s.until("complete")
}

func FuzzParseFields(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":"x","A":2}`, `{"prompt":"x","structured_events":true}`, `{"a":{"b":1}}`, "{\"a\":\"\xff\"}", `{"a":1} x`, `{"a":null,"b":1e9}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseFields(data)
		if err != nil {
			if _, ok := err.(*refusal); !ok {
				t.Errorf("%q: the error has no status: %v", data, err)
			}
			return
		}
		var plain map[string]any
		if err := json.Unmarshal(data, &plain); err != nil || len(plain) != len(got) {
			t.Errorf("%q is taken as %v; json says %v, %v", data, got, plain, err)
		}
		seen := map[string]bool{}
		for key, value := range got {
			if seen[foldKey(key)] {
				t.Errorf("%q: key %q stands twice", data, key)
			}
			seen[foldKey(key)] = true
			switch value.(type) {
			case string, bool, nil, json.Number:
			default:
				t.Errorf("%q: value %T", data, value)
			}
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	for _, seed := range []string{"", "after=0", "after=18446744073709551616", "id=1_1&after=3", "id=1_1", "after=1&after=2", "id=1_1&", "id=..%2f&after=1"} {
		for s := range 4 {
			f.Add(seed, uint8(s))
		}
	}
	f.Fuzz(func(t *testing.T, raw string, kind uint8) {
		s := shape(kind % 4)
		q, err := parseQuery(raw, s)
		if err != nil {
			return
		}
		if q.after < 0 || q.id != "" && !isID(q.id) {
			t.Errorf("%q gives %+v", raw, q)
		}
		// What is taken has one spelling, but for zeros before the cursor.
		want := ""
		if q.id != "" {
			want = "id=" + q.id
		}
		if _, digits, ok := strings.Cut(raw, "after="); ok {
			want = strings.TrimPrefix(want+"&after="+digits, "&")
		}
		if raw != want {
			t.Errorf("%q is taken as %q", raw, want)
		}
	})
}

// BenchmarkStream is an event from the conversation to a client over loopback, one
// after the other.
func BenchmarkStream(b *testing.B) {
	for _, c := range []struct {
		name  string
		burst int
	}{{"one by one", 1}, {"bursts", 200}} {
		b.Run(c.name, func(b *testing.B) {
			s := newStation(b).listen()
			stream := s.follow("")
			stream.told(has("1 session"))
			start := time.Now()
			for n := 0; n < b.N; n += c.burst {
				for range c.burst {
					s.host.current().Emit(event.Event{Kind: event.Content, Text: "a few words of a reply "})
				}
				for range c.burst {
					if _, _, _, ok := stream.next(); !ok {
						b.Fatal("the stream ended")
					}
				}
			}
			b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "events/s")
		})
	}
}

// BenchmarkPoll is what existing clients do for one event.
func BenchmarkPoll(b *testing.B) {
	s := newStation(b).listen()
	s.turn("say hello")
	s.until("complete")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	s.http = client
	for b.Loop() {
		s.must("GET", "/v1/events?after=0", "")
	}
}
