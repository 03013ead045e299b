package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// patience is how long tests wait for what must come.
const patience = 30 * time.Second

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func counter(prefix string) func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s%d", prefix, n.Add(1)) }
}

// clientConfig connects to a server of a test.
func clientConfig(t *testing.T, addr string) ClientConfig {
	t.Helper()
	a, err := ParseAddress(addr)
	if err != nil {
		t.Fatal(err)
	}
	return ClientConfig{Address: a, Token: testToken, NewID: counter("r"), Timeout: patience}
}

func dialTest(t *testing.T, cfg ClientConfig) *Client {
	t.Helper()
	c, err := Dial(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// watch collects what a client's events say, a line each, and answers questions. It
// ends with ctx; wait then returns the lines.
type watch struct {
	mu     sync.Mutex
	events []event.Event
	err    error
	ended  chan struct{}
	more   chan struct{}
}

func watchEvents(ctx context.Context, c *Client, after int64, on func(event.Event)) *watch {
	w := &watch{ended: make(chan struct{}), more: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for e, err := range c.Events(ctx, after) {
			if err != nil {
				w.mu.Lock()
				w.err = err
				w.mu.Unlock()
				return
			}
			if on != nil {
				on(e)
			}
			w.mu.Lock()
			w.events = append(w.events, e)
			close(w.more)
			w.more = make(chan struct{})
			w.mu.Unlock()
		}
	}()
	return w
}

// until waits for an event.
func (w *watch) until(t *testing.T, what string, is func(event.Event) bool) event.Event {
	t.Helper()
	late := time.After(patience)
	for from := 0; ; {
		w.mu.Lock()
		list, more := w.events, w.more
		w.mu.Unlock()
		for ; from < len(list); from++ {
			if is(list[from]) {
				return list[from]
			}
		}
		select {
		case <-more:
		case <-w.ended:
			t.Fatalf("the events ended (%v) before %s came: %q", w.err, what, w.lines())
		case <-late:
			t.Fatalf("%s did not come: %q", what, w.lines())
		}
	}
}

func (w *watch) lines() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		lines = append(lines, lineOf(e))
	}
	return lines
}

// lineOf writes an event with what tests look at.
func lineOf(e event.Event) string {
	text := fmt.Sprintf("%s %s", e.Kind, e.Text)
	switch e.Kind {
	case event.Progress:
		text += string(e.State.Phase) + " " + e.State.Detail
	case event.Reply:
		text += e.Reply.Message.Content
	case event.CallStart:
		text += e.Call.ID + " " + e.Call.Summary
	case event.CallEnd:
		text += strings.Join([]string{e.Result.CallID, e.Result.Status, e.Result.Text}, " ")
	case event.Asked:
		text += strings.Join([]string{e.Question.Host, e.Question.Tool, e.Question.Text, fmt.Sprint(e.Question.Grantable)}, "|")
	case event.Answered:
		text += e.Answer.Choice + " " + e.Answer.By
	case event.TurnEnd:
		text += string(e.End.Reason) + " " + e.End.Text
	}
	return strings.TrimSpace(text)
}

func isKind(k event.Kind) func(event.Event) bool {
	return func(e event.Event) bool { return e.Kind == k }
}

// sameLines compares with stored events only.
func (w *watch) stored() (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if !e.Kind.Live() {
			lines = append(lines, fmt.Sprint(e.Seq, " ", lineOf(e)))
		}
	}
	return lines
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func answering(t *testing.T, c *Client, choice string) func(event.Event) {
	return func(e event.Event) {
		if e.Kind == event.Asked {
			if err := c.Answer(e.Question.CallID, event.Answer{Choice: choice, Digest: e.Question.Digest}); err != nil {
				t.Errorf("answer: %v", err)
			}
		}
	}
}

// commandTurn is a turn that runs one command.
func commandTurn(string) ([]object, func(string) []object) {
	return []object{
			{"event": "status", "status": "thinking"},
			{"event": "message", "role": "assistant", "content": "I look.", "thinking": "hm"},
			{"event": "tool", "phase": "begin", "tool_call_id": "c1", "name": "run_command", "args": `{"command":"ls -l"}`},
			{"event": "approval_required", "id": "12_34", "kind": "command", "command": "ls -l\n"},
		}, func(decision string) []object {
			if decision == "n" {
				return []object{
					{"event": "tool", "phase": "complete", "tool_call_id": "c1", "name": "run_command", "args": `{"command":"ls -l"}`, "result": "denied", "succeeded": false},
					{"event": "complete", "exit_code": 0},
				}
			}
			return []object{
				{"event": "tool", "phase": "running", "tool_call_id": "c1", "name": "run_command", "args": `{"command":"ls -l"}`},
				{"event": "message", "role": "tool", "content": "total 0"},
				{"event": "tool", "phase": "complete", "tool_call_id": "c1", "name": "run_command", "args": `{"command":"ls -l"}`, "result": "total 0", "succeeded": true},
				{"event": "message", "role": "assistant", "content": "It is empty."},
				{"event": "complete", "exit_code": 0},
			}
		}
}

func TestPolledTurn(t *testing.T) {
	s := newPlainServer(t)
	s.script = commandTurn
	s.model = []string{"warming", "warming", "ready"}
	c := dialTest(t, clientConfig(t, s.addr))
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, answering(t, c, "conversation"))
	reason, err := c.Prompt(ctx, event.Input{Text: "look"})
	if err != nil || reason != event.Complete {
		t.Fatalf("got %q, %v", reason, err)
	}
	w.until(t, "the end", isKind(event.TurnEnd))
	wantLines(t, w.stored(),
		"1 turn_start",
		"2 user look",
		"3 reply I look.",
		"4 call call-1 run_command ls -l",
		"5 question box at "+s.addr+"|run_command|ls -l\n|true",
		"6 answer conversation",
		"7 result call-1 ok total 0",
		"8 reply It is empty.",
		"9 turn_end complete",
	)
	if b := s.body("/v1/approval"); b["id"] != "12_34" || b["decision"] != "a" {
		t.Errorf("the answer was %v", b)
	}
	if b := s.body("/v1/turn"); b["structured_events"] != true || b["prompt"] != "look" {
		t.Errorf("the turn was %v", b)
	}
	if n := len(s.asked("/v1/model")); n != 3 {
		t.Errorf("the model was looked at %d times, want 3", n)
	}
	if c.Busy() {
		t.Error("the client is busy after the turn")
	}
}

func TestPolledStart(t *testing.T) {
	said := []object{{"event": "message", "seq": 1, "role": "user", "content": "hi", "time": "10:00"}, {"event": "message", "seq": 2, "role": "assistant", "content": "hello"}, {"event": "message", "seq": 3, "role": "tool", "content": "a\nb"}}
	sessions := func(empty int) []object {
		return []object{
			{"event": "session", "seq": 1, "id": "1_2", "title": "other", "current": 0, "empty": 0},
			{"event": "session", "seq": 2, "id": "1_1", "title": "t", "current": 1, "empty": empty},
		}
	}
	tests := []struct {
		name    string
		list    []object
		cfg     func(*ClientConfig)
		want    string
		last    int64
		isError error
	}{
		{"nothing there", nil, func(*ClientConfig) {}, "1700000001_1", 0, nil},
		{"the current one is empty", sessions(1), func(*ClientConfig) {}, "1_1", 3, nil},
		{"the current one is used", sessions(0), func(*ClientConfig) {}, "1700000001_3", 0, nil},
		{"go on", sessions(0), func(c *ClientConfig) { c.Continue = true }, "1_1", 3, nil},
		{"a named one", sessions(0), func(c *ClientConfig) { c.Session = "1_2" }, "1_2", 0, nil},
		{"an unknown one", sessions(0), func(c *ClientConfig) { c.Session = "9_9" }, "", 0, store.ErrUnknown},
		{"no id", sessions(0), func(c *ClientConfig) { c.Session = "a&b" }, "", 0, store.ErrUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newPlainServer(t)
			s.sessions, s.history = tt.list, map[string][]object{"1_1": said, "1_2": nil}
			cfg := clientConfig(t, s.addr)
			tt.cfg(&cfg)
			c, err := Dial(testContext(t), cfg)
			if tt.isError != nil {
				if !errors.Is(err, tt.isError) {
					t.Fatalf("got %v, want %v", err, tt.isError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if c.Info().ID != tt.want || c.LastSeq() != tt.last || c.Busy() {
				t.Errorf("got session %q, %d events, busy %v; want %q, %d", c.Info().ID, c.LastSeq(), c.Busy(), tt.want, tt.last)
			}
		})
	}
}

func TestPolledHistoryAndChange(t *testing.T) {
	s := newPlainServer(t)
	s.sessions = []object{{"event": "session", "seq": 1, "id": "1_1", "title": "t\x1b", "current": 1, "empty": 0}}
	s.history["1_1"] = []object{{"event": "message", "seq": 1, "role": "user", "content": "hi"}, {"event": "message", "seq": 2, "role": "assistant", "content": "hello"}, {"event": "message", "seq": 3, "role": "error", "content": "oops"}, {"event": "message", "seq": 4, "role": "system", "content": "note"}}
	cfg := clientConfig(t, s.addr)
	cfg.Continue = true
	c := dialTest(t, cfg)
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, nil)
	w.until(t, "the note", isKind(event.Info))
	wantLines(t, w.stored(), "1 user hi", "2 reply hello", "3 warning oops", "4 info note")
	next, err := c.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list, err := next.Sessions(ctx)
	if err != nil || len(list) != 2 || !list[0].Current || !list[0].Empty || list[1].Title != "t\x1b" {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := next.Select(ctx, "1_1"); err != nil {
		t.Error(err)
	}
	if _, err := next.Select(ctx, "5_5"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

func TestPolledApprovalElsewhere(t *testing.T) {
	s := newPlainServer(t)
	s.script = commandTurn
	c := dialTest(t, clientConfig(t, s.addr))
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, func(e event.Event) {
		if e.Kind == event.Asked { // another client is faster
			s.mu.Lock()
			defer s.mu.Unlock()
			s.approve(object{"id": "12_34", "decision": "y"})
		}
	})
	if _, err := c.Prompt(ctx, event.Input{Text: "look"}); err != nil {
		t.Fatal(err)
	}
	w.until(t, "the end", isKind(event.TurnEnd))
	got := strings.Join(w.stored(), "\n")
	if !strings.Contains(got, "answer no another client") && !strings.Contains(got, "answer once another client") {
		t.Errorf("the question is not closed:\n%s", got)
	}
	q := w.until(t, "the question", isKind(event.Asked)).Question
	if err := c.Answer(q.CallID, event.Answer{Choice: "once"}); !errors.Is(err, ErrSettled) {
		t.Errorf("got %v, want ErrSettled", err)
	}
}

func TestPolledCancel(t *testing.T) {
	for _, how := range []string{"Cancel", "the context"} {
		t.Run(how, func(t *testing.T) {
			s := newPlainServer(t)
			s.script = commandTurn
			c := dialTest(t, clientConfig(t, s.addr))
			ctx, cancel := context.WithCancel(testContext(t))
			watchEvents(testContext(t), c, 0, func(e event.Event) {
				switch {
				case e.Kind != event.Asked:
				case how == "Cancel":
					c.Cancel()
				default:
					cancel()
				}
			})
			reason, err := c.Prompt(ctx, event.Input{Text: "look"})
			cancel()
			if reason != event.Cancelled || err != nil {
				t.Errorf("got %q, %v", reason, err)
			}
			if b := s.body("/v1/cancel"); b["turn_id"] != "1700000000_1" || b["session_id"] != c.Info().ID {
				t.Errorf("cancelled with %v", b)
			}
		})
	}
}

// TestPolledLostReplies: a lost reply to anything but the turn itself changes nothing,
// and a turn is never sent twice.
func TestPolledLostReplies(t *testing.T) {
	for lost := range 12 {
		t.Run(fmt.Sprint("request ", lost), func(t *testing.T) {
			s := newPlainServer(t)
			s.script = commandTurn
			c := dialTest(t, clientConfig(t, s.addr))
			first := len(s.asked("/"))
			s.mu.Lock()
			s.cut = func(n int, _ string) bool { return n == first+lost }
			s.mu.Unlock()
			ctx := testContext(t)
			w := watchEvents(ctx, c, 0, answering(t, c, "once"))
			reason, err := c.Prompt(ctx, event.Input{Text: "look"})
			if err != nil || reason != event.Complete {
				t.Fatalf("got %q, %v after %q", reason, err, s.asked("/"))
			}
			w.until(t, "the end", isKind(event.TurnEnd))
			if n := len(s.asked("/v1/turn")); n != 1 {
				t.Errorf("the turn was sent %d times", n)
			}
			if got := strings.Join(w.stored(), "\n"); strings.Count(got, "It is empty.") != 1 || strings.Count(got, "question ") != 1 {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

// TestPolledTurnUncertain: when nothing tells whether a turn arrived the person is told
// so.
func TestPolledTurnUncertain(t *testing.T) {
	s := newPlainServer(t)
	s.script = func(string) ([]object, func(string) []object) {
		return []object{{"event": "complete", "exit_code": 0}}, nil
	}
	c := dialTest(t, clientConfig(t, s.addr))
	s.mu.Lock()
	s.cut = func(_ int, target string) bool { return target == "/v1/turn" }
	s.mu.Unlock()
	_, err := c.Prompt(testContext(t), event.Input{Text: "look"})
	if err == nil || !strings.Contains(err.Error(), "may have worked on it") || len(s.asked("/v1/turn")) != 1 {
		t.Errorf("got %v after %q", err, s.asked("/v1/turn"))
	}
}

// TestPolledRestart: a server that was started anew has forgotten the turn, which ends.
func TestPolledRestart(t *testing.T) {
	s := newPlainServer(t)
	s.script = commandTurn
	c := dialTest(t, clientConfig(t, s.addr))
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, func(e event.Event) {
		if e.Kind != event.Asked {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events, s.running, s.pending = nil, false, ""
		till := len(s.requests) + 3
		s.cut = func(n int, _ string) bool { return n < till }
	})
	reason, err := c.Prompt(ctx, event.Input{Text: "look"})
	if reason != event.Errored || err != nil {
		t.Fatalf("got %q, %v", reason, err)
	}
	w.until(t, "the end", isKind(event.TurnEnd))
	got := strings.Join(w.lines(), "\n")
	for _, want := range []string{"is lost", "connected again", "started anew"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
}

// TestPolledAttach: a client that connects during a turn follows it and is asked.
func TestPolledAttach(t *testing.T) {
	s := newPlainServer(t)
	s.script = commandTurn
	first := dialTest(t, clientConfig(t, s.addr))
	ctx := testContext(t)
	fw := watchEvents(ctx, first, 0, nil)
	over := make(chan error, 1)
	go func() {
		_, err := first.Prompt(ctx, event.Input{Text: "look"})
		over <- err
	}()
	fw.until(t, "the question", isKind(event.Asked))
	cfg := clientConfig(t, s.addr)
	cfg.Continue = true
	second := dialTest(t, cfg)
	if !second.Busy() {
		t.Error("the second client does not see the turn")
	}
	if _, err := second.Prompt(ctx, event.Input{Text: "me too"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second turn: %v", err)
	}
	w := watchEvents(ctx, second, 0, answering(t, second, "once"))
	w.until(t, "the end", isKind(event.TurnEnd))
	if err := <-over; err != nil {
		t.Error(err)
	}
	wantLines(t, w.stored(), "1 turn_start", "2 question box at "+s.addr+"|run_command|ls -l\n|true", "3 answer once",
		"4 call call-1 run_command ls -l", "5 result call-1 ok total 0", "6 reply It is empty.", "7 turn_end complete")
}

func TestPolledVariants(t *testing.T) {
	t.Run("the oldest server", func(t *testing.T) {
		s := newPlainServer(t)
		s.script = commandTurn
		s.hello = object{"protocol": 1, "server_name": "old", "workspace": "/w", "model": "m", "profile": "sysadmin", "command_policy": "ask", "future": 1}
		c := dialTest(t, clientConfig(t, s.addr))
		h := c.Hello()
		if h.HarnessesKnown || h.Readiness.Status != "" || h.Sessions || c.Info().ID != "" {
			t.Errorf("got %+v", h)
		}
		ctx := testContext(t)
		w := watchEvents(ctx, c, 0, answering(t, c, "no"))
		if reason, err := c.Prompt(ctx, event.Input{Text: "look"}); err != nil || reason != event.Complete {
			t.Fatalf("got %q, %v", reason, err)
		}
		if q := w.until(t, "the question", isKind(event.Asked)).Question; q.Grantable {
			t.Error("the sysadmin profile gives no grants")
		}
		if len(s.asked("/v1/model")) > 0 || len(s.asked("/v1/session")) > 0 {
			t.Errorf("asked for what it does not have: %q", s.requests)
		}
		if _, err := c.Enqueue(event.Item{ID: "q1", Mode: event.Steer, Text: "x"}); !errors.Is(err, ErrIdle) {
			t.Errorf("enqueue: %v", err)
		}
		if m, err := c.EnsureModel(ctx); err != nil || m != (Model{}) {
			t.Errorf("ensure: %v, %v", m, err)
		}
	})
	t.Run("the model fails", func(t *testing.T) {
		s := newPlainServer(t)
		s.model = []string{"warming", "error"}
		c := dialTest(t, clientConfig(t, s.addr))
		_, err := c.Prompt(testContext(t), event.Input{Text: "look"})
		if err == nil || !strings.Contains(err.Error(), "no such model") || len(s.asked("/v1/turn")) != 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a turn that fails", func(t *testing.T) {
		s := newPlainServer(t)
		s.script = func(string) ([]object, func(string) []object) {
			return []object{{"event": "message", "role": "error", "content": "the model is gone"}, {"event": "complete", "exit_code": 1}}, nil
		}
		c := dialTest(t, clientConfig(t, s.addr))
		ctx := testContext(t)
		w := watchEvents(ctx, c, 0, nil)
		if reason, err := c.Prompt(ctx, event.Input{Text: "look"}); reason != event.Errored || err != nil {
			t.Errorf("got %q, %v", reason, err)
		}
		if end := w.until(t, "the end", isKind(event.TurnEnd)).End; end.Text != "the model is gone" {
			t.Errorf("got %+v", end)
		}
	})
	t.Run("queued input", func(t *testing.T) {
		s := newPlainServer(t)
		s.script = commandTurn
		c := dialTest(t, clientConfig(t, s.addr))
		ctx := testContext(t)
		watchEvents(ctx, c, 0, func(e event.Event) {
			if e.Kind == event.Asked {
				state, err := c.Enqueue(event.Item{ID: "q1", Mode: event.FollowUp, Text: "then this"})
				if state != "accepted" || err != nil {
					t.Errorf("got %q, %v", state, err)
				}
				c.Cancel()
			}
		})
		if reason, err := c.Prompt(ctx, event.Input{Text: "look"}); err != nil || reason != event.Cancelled {
			t.Errorf("got %q, %v", reason, err)
		}
		want := object{"session_id": c.Info().ID, "turn_id": "1700000000_1", "message_id": "q1", "text": "then this", "mode": "follow_up"}
		if got := s.body("/v1/input"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestPolledAnswerUnderWay: the turn may go on before the reply to an answer is there;
// then nobody else gave it.
func TestPolledAnswerUnderWay(t *testing.T) {
	for _, sent := range []bool{false, true} {
		f := newFeed("box", "1_1", time.Now)
		p := projector{f: f}
		p.begin("1_9")
		p.take(polled{Event: "approval_required", ID: "5_5", Kind: "command", Command: "ls"})
		f.sending("approval-5_5", sent)
		p.take(polled{Event: "message", Role: "assistant", Content: "on"})
		if q, _ := f.asking("approval-5_5"); q.settled == sent {
			t.Errorf("an answer is on its way: %v; the question is settled by another client: %v", sent, q.settled)
		}
	}
}
