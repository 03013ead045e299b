package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
)

// sseClient reads a stream.
type sseClient struct {
	t     testing.TB
	lines chan []string // of one message each
	close func()
}

// follow opens a stream. Its messages come whole.
func (s *station) follow(query string) *sseClient {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/stream"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+stationToken)
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("stream = %d %v", resp.StatusCode, resp.Header)
	}
	c := &sseClient{t: s.t, lines: make(chan []string, 100000)}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(c.lines)
		in := bufio.NewReader(resp.Body)
		var m []string
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			if line = strings.TrimSuffix(line, "\n"); line != "" {
				m = append(m, line)
				continue
			}
			c.lines <- m
			m = nil
		}
	})
	c.close = func() { cancel(); resp.Body.Close(); wg.Wait() }
	s.t.Cleanup(c.close)
	return c
}

// next is the next message: its name, its id and its data.
func (c *sseClient) next() (name, id, data string, ok bool) {
	c.t.Helper()
	select {
	case m, ok := <-c.lines:
		for _, line := range m {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "event":
				name = value
			case "id":
				id = value
			case "data":
				data = value
			default:
				name, data = "comment", line
			}
		}
		return name, id, data, ok
	case <-time.After(limit):
		c.t.Fatal("the stream says nothing")
		return
	}
}

// told is a short form of what a stream said, up to a message that stop accepts.
func (c *sseClient) told(stop func(string) bool) []string {
	c.t.Helper()
	var out []string
	for {
		name, id, data, ok := c.next()
		if !ok {
			return append(out, "end")
		}
		text := name
		switch name {
		case msgEvent:
			var env Envelope
			if err := json.Unmarshal([]byte(data), &env); err != nil {
				c.t.Fatal(err)
			}
			if id != fmt.Sprint(env.Event.Seq) {
				c.t.Errorf("event %d has the id %s", env.Event.Seq, id)
			}
			if env.Event.Kind.Live() {
				continue
			}
			text = fmt.Sprintf("%d %s", env.Event.Seq, env.Event.Kind)
			if env.Approval != "" {
				text += " " + env.Approval
			}
		case msgState, msgSwitched:
			var st State
			if err := json.Unmarshal([]byte(data), &st); err != nil {
				c.t.Fatal(err)
			}
			text = fmt.Sprintf("%s %s at %d", name, st.Session, st.Seq)
			if st.Turn != "" {
				text += " turn " + st.Turn
			}
			if st.Last != nil {
				text += fmt.Sprintf(" last %s %s%s%s", st.Last.Turn, st.Last.Reason, st.Last.Error, st.Last.Submit)
			}
		case msgForm:
			text += " " + data
		}
		out = append(out, text)
		if stop(text) {
			return out
		}
	}
}

func has(word string) func(string) bool {
	return func(text string) bool { return strings.Contains(text, word) }
}

func TestStreamOfATurn(t *testing.T) {
	s := newStation(t).listen()
	c := s.follow("?id=1_1&after=0")
	if got := c.told(has("1 session")); fmt.Sprint(got) != "[state 1_1 at 1 1 session]" {
		t.Errorf("the stream begins with %q", got)
	}
	id := s.turn("say hello")
	want := []string{
		"state 1_1 at 1 turn " + id, "2 turn_start", "3 user", "4 text", "5 reply", "6 turn_end", "state 1_1 at 6 last " + id + " complete",
	}
	if got := c.told(has("last")); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	next := s.turn("/fail badly")
	want = []string{"state 1_1 at 6 turn " + next + " last " + id + " complete", "state 1_1 at 6 last " + next + " badly"}
	if got := c.told(has("badly")); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	late := s.follow("?after=4")
	want = []string{"state 1_1 at 6 last " + next + " badly", "5 reply", "6 turn_end"}
	if got := late.told(has("turn_end")); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("resumed: got  %q\nwant %q", got, want)
	}
}

func TestStreamOfAnotherSession(t *testing.T) {
	s := newStation(t).listen()
	want := "[state 1_1 at 1 switched 1_1 at 1 end]"
	if got := s.follow("?id=7_7&after=9").told(has("end")); fmt.Sprint(got) != want {
		t.Errorf("got %q; want %s", got, want)
	}
}

func TestStreamEndsWhenAnotherConversationIsCurrent(t *testing.T) {
	for _, c := range []struct{ name, want string }{
		{"new", "[state 1_1 at 1 1 session switched 1_2 at 1 end]"},
		{"a slash command", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t).listen()
			stream := s.follow("")
			stream.told(has("1 session"))
			if c.name == "new" {
				s.must("POST", "/v1/session/new", "{}")
			} else {
				s.turn("/new")
			}
			got := stream.told(has("end"))
			if n := len(got); n < 2 || !strings.HasPrefix(got[n-2], "switched 1_2 at ") {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestStreamShowsApprovalsThatWait(t *testing.T) {
	s := newStation(t).listen()
	c := s.follow("")
	s.turn("run ls")
	got := c.told(has("question"))
	_, id, _ := strings.Cut(got[len(got)-1], "question ")
	if id == "" {
		t.Fatalf("no approval id: %q", got)
	}
	again := s.follow("")
	if got := again.told(has("question")); !strings.HasSuffix(got[len(got)-1], id) {
		t.Errorf("after a reconnect: %q; want the id %s", got, id)
	}
	s.must("POST", "/v1/approval", jsonOf("id", id, "decision", "y"))
	c.told(has("complete"))
	again.told(has("complete"))
	old := s.follow("")
	for _, text := range old.told(has("turn_end")) {
		if strings.Contains(text, "question ") {
			t.Errorf("a question that is settled has an id: %q", text)
		}
	}
	if status, _ := s.ask("POST", "/v1/approval", jsonOf("id", id, "decision", "y")); status != 409 {
		t.Errorf("a second answer = %d", status)
	}
	if got := s.host.ran(); fmt.Sprint(got) != "[ls]" {
		t.Errorf("ran %q", got)
	}
}

func TestForms(t *testing.T) {
	for _, c := range []struct{ name, prompt, form, answer, want string }{
		{"a list", "/choose a,b", `{"id":"ID","title":"Which?","items":["a","b"]}`, `"ok":true,"index":1`, "1 true"},
		{"a list left", "/choose a,b", `{"id":"ID","title":"Which?","items":["a","b"]}`, `"ok":false`, "0 false"},
		{"a line", "/line Name", `{"id":"ID","title":"Name"}`, `"ok":true,"line":"x y"`, "x ytrue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t).listen()
			stream := s.follow("")
			turn := s.must("POST", "/v1/turn", jsonOf("prompt", c.prompt, "interactive", true))["turn_id"]
			got := stream.told(has("form"))
			text := got[len(got)-1]
			var f Form
			if err := json.Unmarshal([]byte(strings.TrimPrefix(text, "form ")), &f); err != nil || f.ID == "" {
				t.Fatalf("%q: %v", text, err)
			}
			if got := strings.Replace(text, f.ID, "ID", 1); got != "form "+c.form {
				t.Errorf("form %q; want %q", got, c.form)
			}
			again := s.follow("").told(has("form"))
			if again[len(again)-1] != text {
				t.Errorf("after a reconnect: %q", again)
			}
			for _, bad := range []struct {
				body   string
				status int
			}{
				{`{"ok":true}`, 400}, {`{"id":"1_1","ok":true}`, 409}, {`{"id":"` + f.ID + `","ok":"yes"}`, 400}, {`{"id":"` + f.ID + `","ok":true,"index":-1}`, 400},
			} {
				if status, _ := s.ask("POST", "/v1/form", bad.body); status != bad.status {
					t.Errorf("%s = %d; want %d", bad.body, status, bad.status)
				}
			}
			if len(f.Items) > 0 {
				if status, _ := s.ask("POST", "/v1/form", `{"id":"`+f.ID+`","ok":true,"index":2}`); status != 400 {
					t.Errorf("an item that is not there = %d", status)
				}
			}
			s.must("POST", "/v1/form", `{"id":"`+f.ID+`",`+c.answer+`}`)
			if status, _ := s.ask("POST", "/v1/form", `{"id":"`+f.ID+`",`+c.answer+`}`); status != 409 {
				t.Errorf("a second answer = %d", status)
			}
			stream.told(has("last " + turn.(string)))
			if got := fmt.Sprint(s.host.answers); got != "["+c.want+"]" {
				t.Errorf("the command got %s; want %s", got, c.want)
			}
		})
	}
}

func TestFormsOfAClientThatShowsNone(t *testing.T) {
	s := newStation(t)
	for _, prompt := range []string{"/choose a,b", "/line Name", "/submit text"} {
		s.turn(prompt)
		s.idle()
	}
	if got := fmt.Sprint(s.host.answers); got != "[0 false false false]" {
		t.Errorf("the commands got %s", got)
	}
}

func TestFormsEndWithTheirCommandAndTheirTime(t *testing.T) {
	m := &manual{}
	s := newStation(t, func(c *Config) { c.AfterFunc = m.after })
	s.must("POST", "/v1/turn", jsonOf("prompt", "/choose a,b", "interactive", true))
	s.forms(1)
	s.must("POST", "/v1/cancel", "{}")
	s.idle()
	s.must("POST", "/v1/turn", jsonOf("prompt", "/line Name", "interactive", true))
	s.forms(1)
	m.fire(300 * time.Second)
	s.idle()
	s.forms(0)
	if got := fmt.Sprint(s.host.answers); got != "[0 false false]" {
		t.Errorf("the commands got %s", got)
	}
}

// forms waits until so many forms wait.
func (s *station) forms(n int) {
	s.t.Helper()
	for start := time.Now(); time.Since(start) < limit; time.Sleep(time.Millisecond) {
		s.server.mu.Lock()
		have := len(s.server.forms)
		s.server.mu.Unlock()
		if have == n {
			return
		}
	}
	s.t.Fatalf("never %d forms", n)
}

func TestSubmit(t *testing.T) {
	s := newStation(t).listen()
	c := s.follow("")
	s.must("POST", "/v1/turn", jsonOf("prompt", "/submit do it", "interactive", true))
	got := c.told(has("last"))
	if text := got[len(got)-1]; !strings.HasSuffix(text, "do it") {
		t.Errorf("the turn ends with %q", text)
	}
}

func TestStreamHeartbeat(t *testing.T) {
	s := newStation(t)
	s.server.limits.beat = 5 * time.Millisecond
	s.server.limits.write = 100 * time.Millisecond // a stream outlives it
	s.listen()
	c := s.follow("")
	start := time.Now()
	for n := 0; n < 20 || time.Since(start) < 250*time.Millisecond; n++ {
		if got := c.told(has("comment")); got[len(got)-1] != "comment" {
			t.Fatalf("after %d comments: %q", n, got)
		}
	}
}

// What is told of a turn comes after the last event of the one before it.
func TestNewsWaitForTheEventsBeforeThem(t *testing.T) {
	s := newStation(t)
	u := &subscriber{server: s.server, from: s.server.follow()}
	s.turn("say hello")
	s.idle()
	for _, c := range []struct {
		sent int64
		want int
	}{{0, 0}, {1, 1}, {5, 1}, {6, 2}, {7, 2}} {
		u.sent = c.sent
		u.news()
		if got := strings.Count(u.buf.String(), "event: state\n"); got != c.want {
			t.Errorf("after event %d: %d states; want %d", c.sent, got, c.want)
		}
	}
}

func TestStreamEndsWithTheServer(t *testing.T) {
	s := newStation(t).listen()
	c := s.follow("")
	c.told(has("1 session"))
	s.server.Close()
	if got := c.told(has("end")); fmt.Sprint(got) != "[end]" {
		t.Errorf("got %q", got)
	}
}

// H04, H05: clients that take nothing are cut off, and one that takes is served
// meanwhile, without a gap or a repetition.
func TestSlowClientsDoNotStopAHealthyOne(t *testing.T) {
	s := newStation(t)
	s.server.limits.write = time.Second
	s.small = true
	s.listen()
	const slow = 200
	for range slow {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(conn, "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", stationToken)
	}
	c := s.follow("")
	c.told(has("1 session"))
	big := strings.Repeat("x", 8<<10)
	for i := range 100 {
		s.host.current().Emit(event.Event{Kind: event.Printed, Text: fmt.Sprint(i, " ", big)})
	}
	for want := int64(2); want <= 101; want++ {
		if got := c.told(has("printed")); fmt.Sprint(got) != fmt.Sprintf("[%d printed]", want) {
			t.Fatalf("got %q; want event %d", got, want)
		}
	}
	s.turn("say hello")
	if got := short(s.until("complete")); got != "assistant: hello\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
	for start := time.Now(); s.closed.Load() < slow; time.Sleep(time.Millisecond) {
		if time.Since(start) > limit {
			t.Fatalf("%d of %d clients that took nothing were cut off", s.closed.Load(), slow)
		}
	}
}

// A client that reconnects over and over has every stored event once.
func TestResumeByNumber(t *testing.T) {
	s := newStation(t).listen()
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 300 {
			s.host.current().Emit(event.Event{Kind: event.Printed, Text: fmt.Sprint(i)})
		}
	}()
	want := int64(1)
	for want <= 301 {
		c := s.follow(fmt.Sprintf("?id=1_1&after=%d", want-1))
		for range 7 {
			name, _, data, ok := c.next()
			if !ok {
				t.Fatal("the stream ended")
			}
			if name != msgEvent {
				continue
			}
			var env Envelope
			if err := json.Unmarshal([]byte(data), &env); err != nil {
				t.Fatal(err)
			}
			if env.Event.Seq != want {
				t.Fatalf("event %d comes where %d should", env.Event.Seq, want)
			}
			if want++; want > 301 {
				break
			}
		}
		c.close()
	}
	<-done
}
