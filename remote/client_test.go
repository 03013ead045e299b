package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zcoder/internal/event"
)

// serveTest serves a handler on loopback and returns its address.
func serveTest(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func hintOfError(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

func TestDialErrors(t *testing.T) {
	reply := func(status int, kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	tests := []struct {
		name       string
		answer     http.HandlerFunc
		want, hint string
	}{
		{"a wrong token", reply(401, "application/json", `{"error":"unauthorized"}`), "refuses the token", "--token-file"},
		{"a wrong token, as text", reply(401, "text/plain", `no`), "refuses the token", "--token-file"},
		{"a host that is not allowed", reply(421, "application/json", `{"error":"host"}`), "does not take requests for the host \"127.0.0.1:", "--allow-host"},
		{"another kind of server", reply(200, "text/html", "<html>"), "no zcoder server: it answers with status 200 and the content type \"text/html\"", "check the address"},
		{"no route", reply(404, "application/json", `{"error":"what?"}`), "no zcoder server: what?", "check the address"},
		{"not JSON", reply(200, "application/json", `hello`), "no zcoder server", "check the address"},
		{"other JSON", reply(200, "application/json", `{"name":"x"}`), "names no protocol", "check the address"},
		{"a number of text", reply(200, "application/json", `{"protocol":"1"}`), "names no protocol", "check the address"},
		{"a newer protocol", reply(200, "application/json", `{"protocol":2}`), "protocol 2, this program protocol 1", "same version"},
		{"a huge reply", reply(200, "application/json", `{"protocol":1,"x":"`+strings.Repeat("x", maxReply)+`"}`), "larger than", ""},
		{"a huge number", reply(200, "application/json", `{"protocol":1e99}`), "names no protocol", "check the address"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "no zcoder server", "check the address"},
		{"it hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF", "check that a zcoder server listens"},
		{"an error with a long text", reply(500, "application/json", `{"error":"`+strings.Repeat("é", 9999)+`"}`), "é…", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Dial(testContext(t), clientConfig(t, serveTest(t, tt.answer)))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(hintOfError(err), tt.hint) {
				t.Errorf("got %v (hint %q), want %q (%q)", err, hintOfError(err), tt.want, tt.hint)
			}
			if err != nil && (len(err.Error()) > 2*maxError || strings.Contains(err.Error(), testToken)) {
				t.Errorf("the error is %d bytes: %.300s", len(err.Error()), err)
			}
		})
	}
}

func TestDialNowhere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, addr := range []string{l.Addr().String(), "unix:" + filepath.Join(t.TempDir(), "none")} {
		_, err = Dial(testContext(t), clientConfig(t, addr))
		if err == nil || !strings.Contains(err.Error(), "no server answers there") || !strings.Contains(hintOfError(err), "zcoder --server") {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	cfg := clientConfig(t, l.Addr().String())
	cfg.Token = "short"
	if _, err = Dial(testContext(t), cfg); err == nil || strings.Contains(err.Error(), "short\"") {
		t.Errorf("a bad token: %v", err)
	}
}

func TestDialSilence(t *testing.T) {
	silent := make(chan struct{})
	addr := serveTest(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-silent }))
	defer close(silent)
	cfg := clientConfig(t, addr)
	cfg.Timeout = 50 * time.Millisecond
	if _, err := Dial(testContext(t), cfg); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("got %v", err)
	}
}

// TestUnixSocket: the requests go over a socket, with a host that every server takes.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := newStreamServer()
	s.stream = idleStream
	var host atomic.Value
	server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		s.ServeHTTP(w, r)
	})}
	go server.Serve(l)
	defer server.Close()
	c := dialTest(t, clientConfig(t, "unix:"+path))
	if host.Load() != "localhost" || c.Host() != "box at unix:"+path {
		t.Errorf("host %v, name %q", host.Load(), c.Host())
	}
}

func text(seq int64, text string) Envelope {
	return Envelope{Event: event.Event{Seq: seq, Kind: event.Info, Text: text}}
}

func asks(seq int64, call, approval string) Envelope {
	return Envelope{Event: event.Event{Seq: seq, Kind: event.Asked, Question: &event.Question{CallID: call, Text: "ls", Digest: "d-" + call}}, Approval: approval}
}

func answered(seq int64, call, choice string) Envelope {
	return Envelope{Event: event.Event{Seq: seq, Kind: event.Answered, Answer: &event.Answer{CallID: call, Choice: choice}}}
}

// TestHostileStream: what a server may send that is wrong ends in a plain error, or is
// ignored; text comes through as it is.
func TestHostileStream(t *testing.T) {
	raw := func(text string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { fmt.Fprint(w, text) }
	}
	events := func(list ...Envelope) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for _, e := range list {
				say(w, msgEvent, e)
			}
		}
	}
	bidi := "\u202eevil\x1b]0;x\a\u2066"
	live := Envelope{Event: event.Event{Seq: 99, Kind: event.Output, Text: "o"}}
	warning := Envelope{Event: event.Event{Seq: 1, Kind: event.Warning, Text: "disk full"}}
	tests := []struct {
		name  string
		send  func(http.ResponseWriter)
		error string   // of the events; empty: there is none
		lines []string // seen before
	}{
		{"an endless line", func(w http.ResponseWriter) {
			chunk := []byte(strings.Repeat("x", 1<<20))
			for range maxMessage>>20 + 1 {
				w.Write(chunk)
			}
		}, "a message of more than 64 MiB", nil},
		{"an endless message", func(w http.ResponseWriter) {
			chunk := []byte("data: " + strings.Repeat("x", 1<<20) + "\n")
			for range maxMessage>>20 + 1 {
				w.Write(chunk)
			}
		}, "a message of more than 64 MiB", nil},
		{"a number that is none", raw("event: event\ndata: {\"event\":{\"seq\":1e99,\"event\":\"info\"}}\n\n"), "not what a server sends", nil},
		{"a large number", events(text(1<<60, "x")), "an event of number 1152921504606846976", nil},
		{"a negative number", events(text(-1, "x")), "an event of number -1", nil},
		{"no number", events(text(0, "x")), "an event of number 0", nil},
		{"no JSON", raw("event: event\ndata: <html>\n\n"), "not what a server sends", nil},
		{"deep JSON", raw("event: event\ndata: " + strings.Repeat("[", 100_000) + "\n\n"), "not what a server sends", nil},
		{"numbers that go back", events(text(5, "a"), text(3, "b"), text(6, "c")), "", []string{"5 info a", "6 info c"}},
		{"repeats", events(text(1, "a"), text(1, "a"), text(2, "b"), text(1, "a"), text(2, "b")), "", []string{"1 info a", "2 info b"}},
		{"a live event from the future", events(text(1, "a"), live, text(2, "b")), "", []string{"1 info a", "1 output o", "2 info b"}},
		{"a warning that is not stored", events(text(1, "a"), warning, warning, text(2, "b")), "", []string{"1 info a", "1 warning disk full", "2 info b"}},
		{"bidirectional text", events(text(1, bidi)), "", []string{"1 info " + bidi}},
		{"another conversation", events(Envelope{Event: event.Event{Seq: 1, Kind: event.Opened, Session: &event.Session{ID: "6_6"}}}), "another conversation (\"6_6\")", nil},
		{"a kind without its content", events(Envelope{Event: event.Event{Seq: 1, Kind: event.TurnEnd}}), "\"turn_end\" without its content", nil},
		{"no kind", events(Envelope{Event: event.Event{Seq: 1}}), "without its content", nil},
		{"a question about nothing", events(Envelope{Event: event.Event{Seq: 1, Kind: event.Asked, Question: &event.Question{}}}), "without its content", nil},
		{"a kind of the future", events(Envelope{Event: event.Event{Seq: 1, Kind: "hologram"}}), "", []string{"1 hologram"}},
		{"a message of the future", raw("event: hologram\ndata: x\n\n: comment\nid: 7\nretry: 1\nnonsense\n\n"), "", nil},
		{"a state of another conversation", func(w http.ResponseWriter) { say(w, msgState, State{Session: "6_6\x1b"}) }, "another conversation: 6_6", nil},
		{"a state from nowhere", func(w http.ResponseWriter) { say(w, msgState, State{Session: "1_1", Seq: 1 << 60}) }, "its newest event is number", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStreamServer()
			s.stream = func(w http.ResponseWriter, r *http.Request) {
				say(w, msgState, State{Session: "1_1"})
				tt.send(w)
				w.(http.Flusher).Flush()
				if tt.error == "" {
					say(w, msgEvent, text(1000, "end"))
				}
				<-r.Context().Done()
			}
			c := dialTest(t, clientConfig(t, serveTest(t, s)))
			w := watchEvents(testContext(t), c, 0, nil)
			if tt.error != "" {
				wait(t, "the end of the events", w.ended)
				if w.err == nil || !strings.Contains(w.err.Error(), tt.error) || strings.Contains(w.err.Error(), "connect again") {
					t.Errorf("the events ended with %v, want %q", w.err, tt.error)
				}
				return
			}
			w.until(t, "the last event", func(e event.Event) bool { return e.Seq == 1000 })
			var got []string
			for _, e := range w.events[:len(w.events)-1] {
				got = append(got, fmt.Sprint(e.Seq, " ", lineOf(e)))
			}
			wantLines(t, got, tt.lines...)
		})
	}
}

// TestManyEvents: a million events come in order, and those that a later one repeats are
// not kept for ever.
func TestManyEvents(t *testing.T) {
	t.Parallel()
	most := int64(1_000_000)
	if testing.Short() {
		most = 100_000
	}
	s := newStreamServer()
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		say(w, msgState, State{Session: "1_1"})
		for n := int64(1); n <= most; n++ {
			fmt.Fprintf(w, "event: event\ndata: {\"event\":{\"seq\":%d,\"event\":\"text\",\"text\":\"0123456789\"}}\n\n", n)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	c.f.mu.Lock()
	c.f.trimAt = 1 << 20
	c.f.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	last := int64(0)
	for e, err := range c.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != last+1 {
			t.Fatalf("event %d follows %d", e.Seq, last)
		}
		if last = e.Seq; last == most {
			break
		}
	}
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	if int64(len(c.f.events)) == most {
		t.Error("every piece is still kept")
	}
}

// TestStreamCutAnywhere cuts a stream at every byte, and goes on with the next one.
func TestStreamCutAnywhere(t *testing.T) {
	list := []Envelope{text(1, "a"), asks(2, "c", "1_1"), answered(3, "c", "once"), text(7, "é"), text(8, "z")}
	var cut atomic.Int64
	s := newStreamServer()
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		rec := &replyRecorder{header: http.Header{}}
		say(recorderFlusher{rec}, msgState, State{Session: "1_1", Seq: 8})
		var after int64
		fmt.Sscanf(r.URL.RawQuery, "id=1_1&after=%d", &after)
		for _, e := range list {
			if e.Event.Seq > after {
				say(recorderFlusher{rec}, msgEvent, e)
			}
		}
		n := int(cut.Swap(9999))
		w.Write(rec.body.Bytes()[:min(n, rec.body.Len())])
		if w.(http.Flusher).Flush(); n%2 == 0 {
			panic(http.ErrAbortHandler)
		}
	}
	cfg := clientConfig(t, serveTest(t, s))
	l, err := newLink(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	l.plain = false
	for at, whole := 0, false; !whole; at++ {
		cut.Store(int64(at))
		f := newFeed("box", "1_1", time.Now)
		for n := range 2 {
			if _, err := l.stream(t.Context(), f, func() {}); l.final(t.Context(), err) != nil {
				t.Fatalf("cut at byte %d: %v", at, err)
			}
			whole = whole || n == 0 && f.position() == 8
		}
		var got []string
		for _, k := range f.events {
			got = append(got, fmt.Sprint(k.Seq, " ", k.Kind))
		}
		if want := "1 info 2 question 3 answer 7 info 8 info"; strings.Join(got, " ") != want {
			t.Fatalf("cut at byte %d: %q", at, got)
		}
	}
}

type recorderFlusher struct{ *replyRecorder }

func (recorderFlusher) Flush() {}

// TestLossIsTold: a connection that stays away is told once, and its return too.
func TestLossIsTold(t *testing.T) {
	s := newStreamServer()
	var n atomic.Int64
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		switch n.Add(1) {
		case 1:
			say(w, msgState, State{Session: "1_1"})
			say(w, msgEvent, text(1, "before"))
		case 2, 3, 4, 5:
			panic(http.ErrAbortHandler)
		case 6:
			writeJSON(w, 503, object{"error": "busy"})
		default:
			if r.URL.RawQuery != "id=1_1&after=1" {
				t.Errorf("it goes on with %q", r.URL.RawQuery)
			}
			say(w, msgState, State{Session: "1_1", Seq: 2})
			say(w, msgEvent, text(2, "after"))
			<-r.Context().Done()
		}
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	w := watchEvents(testContext(t), c, 0, nil)
	w.until(t, "the event after", func(e event.Event) bool { return e.Seq == 2 })
	lines := w.lines()
	if len(lines) != 4 || lines[0] != "info before" || !strings.Contains(lines[1], "is lost: trying again") || !strings.HasPrefix(lines[2], "info connected again to box at ") {
		t.Errorf("got %q", lines)
	}
}

// TestTokenChanges: a refusal in the middle ends everything with its reason.
func TestTokenChanges(t *testing.T) {
	s := newStreamServer()
	var streams atomic.Int64
	prompted := make(chan struct{})
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		if streams.Add(1) > 1 {
			writeJSON(w, 401, object{"error": "unauthorized"})
			return
		}
		say(w, msgState, State{Session: "1_1"})
		<-prompted
	}
	s.other = func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 202, object{"turn_id": "1_9"})
		close(prompted)
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	w := watchEvents(testContext(t), c, 0, nil)
	if _, err := c.Prompt(testContext(t), event.Input{Text: "x"}); !errors.Is(err, ErrToken) {
		t.Errorf("the prompt ended with %v", err)
	}
	wait(t, "the end of the events", w.ended)
	if !errors.Is(w.err, ErrToken) {
		t.Errorf("the events ended with %v", w.err)
	}
}

// turns is a server whose streams say what comes over a channel.
type turns struct {
	*streamServer
	out   chan func(http.ResponseWriter)
	cut   chan struct{}
	first atomic.Value // State
}

// begin is the state with which streams begin from now on.
func (s *turns) begin(st State) { s.first.Store(st) }

func newTurns() *turns {
	s := &turns{streamServer: newStreamServer(), out: make(chan func(http.ResponseWriter)), cut: make(chan struct{})}
	s.begin(State{Session: "1_1"})
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		first := s.first.Load().(State)
		say(w, msgState, first)
		if r.URL.Query().Get("id") != first.Session {
			say(w, msgSwitched, first)
			return
		}
		for {
			select {
			case f := <-s.out:
				f(w)
			case <-s.cut:
				return
			case <-r.Context().Done():
				return
			}
		}
	}
	return s
}

func (s *turns) say(name string, data any) {
	s.out <- func(w http.ResponseWriter) { say(w, name, data) }
}

// TestOutcomes: a prompt ends as its own turn did, whichever way that is learned.
func TestOutcomes(t *testing.T) {
	end := func(turn string, r event.Reason) *Outcome { return &Outcome{Turn: turn, Reason: r} }
	tests := []struct {
		name  string
		then  func(s *turns)
		want  event.Reason
		error string
	}{
		{"the stream tells", func(s *turns) {
			s.say(msgState, State{Session: "1_1", Turn: "1_9"})
			s.say(msgState, State{Session: "1_1", Last: end("1_9", event.Complete)})
		}, event.Complete, ""},
		{"another turn ended before", func(s *turns) {
			s.say(msgState, State{Session: "1_1", Turn: "1_9", Last: end("1_8", event.Errored)})
			s.say(msgState, State{Session: "1_1", Last: end("1_9", event.Looped)})
		}, event.Looped, ""},
		{"it is learned after a cut", func(s *turns) {
			s.begin(State{Session: "1_1", Last: end("1_9", event.Blocked)})
			s.cut <- struct{}{}
		}, event.Blocked, ""},
		{"it is learned before its events", func(s *turns) {
			s.begin(State{Session: "1_1", Seq: 4, Last: end("1_9", event.Complete)})
			s.cut <- struct{}{}
			s.say(msgEvent, text(4, "the last event"))
		}, event.Complete, ""},
		{"a turn of another client ended since: the events tell", func(s *turns) {
			s.begin(State{Session: "1_1", Seq: 2, Last: end("2_2", event.Complete)})
			s.say(msgEvent, Envelope{Event: event.Event{Seq: 2, Kind: event.TurnEnd, End: &event.End{Reason: event.Limited}}})
			s.cut <- struct{}{}
		}, event.Limited, ""},
		{"nothing tells", func(s *turns) {
			s.begin(State{Session: "1_1", Last: end("2_2", event.Complete)})
			s.cut <- struct{}{}
		}, "", "does not say how"},
		{"it could not be done", func(s *turns) {
			s.say(msgState, State{Session: "1_1", Last: &Outcome{Turn: "1_9", Error: "no such command", Hint: "try /help"}})
		}, "", "no such command"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newTurns()
			taken := make(chan struct{})
			s.other = func(w http.ResponseWriter, r *http.Request) {
				writeJSON(w, 202, object{"turn_id": "1_9"})
				close(taken)
			}
			c := dialTest(t, clientConfig(t, serveTest(t, s)))
			go func() {
				<-taken
				// The reply has been read when the turn has its name.
				if turn := c.theTurn(testContext(t)); turn != "1_9" {
					t.Errorf("the turn is %q", turn)
				}
				tt.then(s)
			}()
			reason, err := c.Prompt(testContext(t), event.Input{Text: "x"})
			if c.f.position() < c.LastSeq() {
				t.Errorf("the prompt ended at event %d of %d", c.f.position(), c.LastSeq())
			}
			if reason != tt.want || (err == nil) != (tt.error == "") || err != nil && !strings.Contains(err.Error(), tt.error) {
				t.Errorf("got %q, %v", reason, err)
			}
			if tt.name == "it could not be done" && hintOfError(err) != "try /help" {
				t.Errorf("hint %q", hintOfError(err))
			}
		})
	}
}

// TestPromptIsRepeated: a request whose reply was lost is sent again under its id.
func TestPromptIsRepeated(t *testing.T) {
	s := newTurns()
	var mu sync.Mutex
	var bodies []string
	s.other = func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var b [1000]byte
		n, _ := r.Body.Read(b[:])
		if bodies = append(bodies, string(b[:n])); len(bodies) < 4 {
			panic(http.ErrAbortHandler)
		}
		writeJSON(w, 202, object{"turn_id": "1_9"})
		go s.say(msgState, State{Session: "1_1", Last: &Outcome{Turn: "1_9", Reason: event.Complete}})
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	if reason, err := c.Prompt(testContext(t), event.Input{Text: "x"}); reason != event.Complete || err != nil {
		t.Errorf("got %q, %v", reason, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, b := range bodies {
		if b != `{"prompt":"x","request_id":"r1","session_id":"1_1"}` {
			t.Errorf("sent %s", b)
		}
	}
}

// TestAnswers: an answer carries the id of the approval and the digest of what was
// shown; one that was settled meanwhile is told apart from one whose reply was lost.
func TestAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer event.Answer
		status int
		shows  string // the choice that the stream shows when the server says 409
		sent   string
		want   error
	}{
		{"allowed", event.Answer{Choice: "once", Digest: "d-c"}, 200, "", `{"id":"5_5","decision":"y","digest":"d-c"}`, nil},
		{"for the conversation", event.Answer{Choice: "conversation"}, 200, "", `{"id":"5_5","decision":"a","digest":"d-c"}`, nil},
		{"denied with a reason", event.Answer{Choice: "no", Reason: "not now"}, 200, "", `{"id":"5_5","decision":"n","digest":"d-c","reason":"not now"}`, nil},
		{"its reply was lost", event.Answer{Choice: "once"}, 409, "once", `{"id":"5_5","decision":"y","digest":"d-c"}`, nil},
		{"another was faster", event.Answer{Choice: "once"}, 409, "no", `{"id":"5_5","decision":"y","digest":"d-c"}`, ErrSettled},
		{"about another text", event.Answer{Choice: "once", Digest: "d-x"}, 200, "", "", errors.New("")},
		{"no choice", event.Answer{Choice: "maybe"}, 200, "", "", errors.New("")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newTurns()
			var sent atomic.Value
			sent.Store("")
			s.other = func(w http.ResponseWriter, r *http.Request) {
				var b [1000]byte
				n, _ := r.Body.Read(b[:])
				sent.Store(string(b[:n]))
				writeJSON(w, tt.status, object{"ok": true})
				if tt.shows != "" {
					go s.say(msgEvent, answered(2, "c", tt.shows))
				}
			}
			c := dialTest(t, clientConfig(t, serveTest(t, s)))
			w := watchEvents(testContext(t), c, 0, nil)
			s.say(msgEvent, asks(1, "c", "5_5"))
			if q := w.until(t, "the question", isKind(event.Asked)).Question; !strings.HasPrefix(q.Host, "box at 127.0.0.1:") {
				t.Errorf("the host is %q", q.Host)
			}
			err := c.Answer("c", tt.answer)
			if (err == nil) != (tt.want == nil) || errors.Is(tt.want, ErrSettled) && !errors.Is(err, ErrSettled) || sent.Load() != tt.sent {
				t.Errorf("got %v, sent %s", err, sent.Load())
			}
			if err := c.Answer("other", tt.answer); err == nil {
				t.Error("an answer to nothing was taken")
			}
		})
	}
}

// fixedForms answers forms as told.
type fixedForms struct {
	mu    sync.Mutex
	shown []string
}

func (f *fixedForms) Choose(title string, items []string, current int) (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, fmt.Sprint(title, items, current))
	return 1, true
}

func (f *fixedForms) AskLine(prompt string) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = append(f.shown, prompt)
	return "line", true
}

// TestCommandForms: each form is shown once, also when it comes again after a reconnect,
// and answered under its id.
func TestCommandForms(t *testing.T) {
	s := newTurns()
	answers := make(chan string, 10)
	s.other = func(w http.ResponseWriter, r *http.Request) {
		var b [1000]byte
		n, _ := r.Body.Read(b[:])
		answers <- r.URL.Path + " " + string(b[:n])
		if r.URL.Path == "/v1/turn" {
			writeJSON(w, 202, object{"turn_id": "1_9"})
			return
		}
		writeJSON(w, 200, object{"ok": true})
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	forms := &fixedForms{}
	type result struct {
		out Outcome
		err error
	}
	over := make(chan result, 1)
	go func() {
		out, err := c.Command(testContext(t), "/model", forms)
		over <- result{out, err}
	}()
	if got := wait(t, "the command", answers); got != `/v1/turn {"prompt":"/model","interactive":true,"request_id":"r1","session_id":"1_1"}` {
		t.Errorf("got %s", got)
	}
	s.begin(State{Session: "1_1", Turn: "1_9"})
	list := Form{ID: "7_1", Title: "Models", Items: []string{"a", "b"}, Current: 99}
	s.say(msgForm, list)
	if got := wait(t, "the answer", answers); got != `/v1/form {"id":"7_1","ok":true,"index":1,"line":""}` {
		t.Errorf("got %s", got)
	}
	s.cut <- struct{}{}
	s.say(msgForm, list)
	s.say(msgForm, Form{ID: "7_2", Title: "Name?"})
	if got := wait(t, "the answer", answers); got != `/v1/form {"id":"7_2","ok":true,"index":0,"line":"line"}` {
		t.Errorf("got %s", got)
	}
	s.say(msgState, State{Session: "1_1", Last: &Outcome{Turn: "1_9", Submit: "go"}})
	if r := wait(t, "the end", over); r.err != nil || r.out.Submit != "go" {
		t.Errorf("got %+v", r)
	}
	wantLines(t, forms.shown, "Models[a b] 1", "Name?")
}

// TestSwitches: what another client does to the conversation ends it with its name; what
// this one does is told by the call that did it.
func TestSwitches(t *testing.T) {
	s := newTurns()
	s.other = func(w http.ResponseWriter, r *http.Request) {
		s.begin(State{Session: "1_2"})
		s.cut <- struct{}{}
		writeJSON(w, 200, object{"id": "1_2"})
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	ctx, cancel := context.WithCancel(testContext(t))
	w := watchEvents(ctx, c, 0, nil)
	s.say(msgEvent, text(1, "old"))
	w.until(t, "the old event", isKind(event.Info))
	next, err := c.NewSession(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	nw := watchEvents(testContext(t), next, 0, nil)
	s.say(msgEvent, text(1, "new"))
	nw.until(t, "the new event", isKind(event.Info))
	cancel()
	wait(t, "the end", w.ended)
	if !errors.Is(w.err, context.Canceled) || next.Info().ID != "1_2" {
		t.Errorf("the old one ended with %v, the new one is %q", w.err, next.Info().ID)
	}
	var switched *SwitchedError
	if _, err := c.Prompt(testContext(t), event.Input{Text: "x"}); !errors.As(err, &switched) || switched.Session != "1_2" {
		t.Errorf("a client that was left takes prompts: %v", err)
	}

	s.begin(State{Session: "1_3"})
	s.cut <- struct{}{}
	wait(t, "the end", nw.ended)
	if !errors.As(nw.err, &switched) || switched.Session != "1_3" {
		t.Fatalf("ended with %v", nw.err)
	}
	last, err := next.With(testContext(t), switched.Session)
	if err != nil {
		t.Fatal(err)
	}
	lw := watchEvents(testContext(t), last, 0, nil)
	s.say(msgEvent, text(1, "newest"))
	lw.until(t, "the newest event", isKind(event.Info))
	last.Close()
	wait(t, "the end", lw.ended)
	if !errors.Is(lw.err, ErrClosed) {
		t.Errorf("ended with %v", lw.err)
	}
}

// TestAnEndCountsAfterItsEvents: a new stream begins with the state, which may tell the
// end of a turn whose events come after it.
func TestAnEndCountsAfterItsEvents(t *testing.T) {
	f := newFeed("box", "1_1", time.Now)
	f.begin()
	if err := f.state(State{Session: "1_1", Seq: 2, Last: &Outcome{Turn: "1_9", Reason: event.Complete}}); err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 2; n++ {
		if _, over := f.ended("1_9"); over || f.missed("1_9", 0) {
			t.Errorf("the turn is over before event %d", n)
		}
		if err := f.take(text(n, "x"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, over := f.ended("1_9"); !over {
		t.Error("the turn is not over after its events")
	}
}

// TestPromptForAnotherConversation: when the server says that the conversation is not the
// current one, nothing was sent, and which one is comes over the stream.
func TestPromptForAnotherConversation(t *testing.T) {
	s := newTurns()
	s.other = func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 404, object{"error": "not the current one"})
		s.say(msgSwitched, State{Session: "1_5"})
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	var switched *SwitchedError
	for range 2 {
		if _, err := c.Prompt(testContext(t), event.Input{Text: "x"}); !errors.As(err, &switched) || switched.Session != "1_5" || switched.Anew || !errors.Is(err, ErrNotSent) {
			t.Errorf("the prompt ended with %v", err)
		}
	}
}

// TestAnotherRunOfTheServer: a server that was started anew is told from one whose clients
// chose another conversation.
func TestAnotherRunOfTheServer(t *testing.T) {
	for _, c := range []struct {
		name string
		runs []string // of the states in the conversation
		run  string   // of the state with another one
		want bool
	}{
		{"the same run", []string{"a"}, "a", false},
		{"another run", []string{"a"}, "b", true},
		{"news in between name none", []string{"a", ""}, "b", true},
		{"started anew before, unnoticed", []string{"a", "b"}, "b", false},
		{"a server that names none", []string{""}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFeed("box", "1_1", time.Now)
			for _, run := range c.runs {
				f.begin()
				if err := f.state(State{Session: "1_1", Run: run}); err != nil {
					t.Fatal(err)
				}
			}
			var s *SwitchedError
			if err := f.state(State{Session: "1_2", Run: c.run}); !errors.As(err, &s) || s.Anew != c.want {
				t.Errorf("got %+v", err)
			}
		})
	}
}

// TestServerStartsAnew: a prompt whose server comes back with another conversation ends,
// and so do the events, with the name of that.
func TestServerStartsAnew(t *testing.T) {
	s := newTurns()
	s.other = func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 202, object{"turn_id": "1_9"})
		s.begin(State{Session: "1_5"})
		go func() { s.cut <- struct{}{} }()
	}
	c := dialTest(t, clientConfig(t, serveTest(t, s)))
	w := watchEvents(testContext(t), c, 0, nil)
	var switched *SwitchedError
	if _, err := c.Prompt(testContext(t), event.Input{Text: "x"}); !errors.As(err, &switched) {
		t.Errorf("the prompt ended with %v", err)
	}
	wait(t, "the end of the events", w.ended)
	if !errors.As(w.err, &switched) || switched.Session != "1_5" {
		t.Errorf("the events ended with %v", w.err)
	}
}

// TestEventsThatWereSeenDoNotComeAgain: whoever has seen events before a new client
// began to load them gets the later ones alone.
func TestEventsThatWereSeenDoNotComeAgain(t *testing.T) {
	f := newFeed("box", "1_1", time.Now)
	f.begin()
	ctx, cancel := context.WithCancel(testContext(t))
	got := make(chan event.Event, 10)
	begun := make(chan struct{})
	go func() {
		defer close(got)
		events := f.follow(ctx, 2)
		close(begun)
		for e, err := range events {
			if err == nil {
				got <- e
			}
		}
	}()
	<-begun
	for n := int64(1); n <= 3; n++ {
		if err := f.take(text(n, fmt.Sprint(n)), 1); err != nil {
			t.Fatal(err)
		}
	}
	if e := <-got; e.Seq != 3 {
		t.Errorf("event %d came first", e.Seq)
	}
	cancel()
	for e := range got {
		t.Errorf("event %d came as well", e.Seq)
	}
}
