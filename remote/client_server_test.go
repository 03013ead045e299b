package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// dialStation connects to a server of ours.
func dialStation(t *testing.T, s *station) *Client {
	t.Helper()
	return dialTest(t, clientConfig(t, strings.TrimPrefix(s.url, "http://")))
}

func TestClientAndServer(t *testing.T) {
	s := newStation(t).listen()
	c := dialStation(t, s)
	ctx := testContext(t)
	if h := c.Hello(); h.Name != "test" || h.Workspace != "/work" || h.Version != "9" || !h.Commands || !h.InputQueue || h.Readiness.Status != Ready || strings.Join(h.Harnesses, " ") != "claude codex" {
		t.Errorf("hello %+v", h)
	}
	if m, err := c.EnsureModel(ctx); err != nil || m.Status != Ready {
		t.Errorf("ensure: %+v, %v", m, err)
	}
	w := watchEvents(ctx, c, 0, answering(t, c, "once"))
	if reason, err := c.Prompt(ctx, event.Input{Text: "run ls"}); reason != event.Complete || err != nil {
		t.Fatalf("got %q, %v", reason, err)
	}
	w.until(t, "the end", isKind(event.TurnEnd))
	if got := strings.Join(w.stored(), "\n"); !strings.Contains(got, "test at "+strings.TrimPrefix(s.url, "http://")+"|run|ls|true") || !strings.Contains(got, "ok ran ls") {
		t.Errorf("got\n%s", got)
	}
	if c.LastSeq() != s.host.current().LastSeq() {
		t.Errorf("the client is at %d, the server at %d", c.LastSeq(), s.host.current().LastSeq())
	}
}

func TestCommandsOfAServer(t *testing.T) {
	s := newStation(t).listen()
	c := dialStation(t, s)
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, nil)
	forms := &fixedForms{}
	tests := []struct {
		command string
		want    Outcome
	}{
		{"/print hello", Outcome{}},
		{"/choose a,b,c", Outcome{}},
		{"/line name?", Outcome{}},
		{"/submit now do this", Outcome{Submit: "now do this"}},
		{"/fail it broke", Outcome{Error: "it broke", Hint: "do better"}},
	}
	for _, tt := range tests {
		got, err := c.Command(ctx, tt.command, forms)
		if got.Turn = ""; err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v", tt.command, got, err)
		}
	}
	w.until(t, "what was printed", func(e event.Event) bool { return e.Kind == event.Printed && e.Text == "hello" })
	wantLines(t, forms.shown, "Which?[a b c] 0", "name?")
	s.host.mu.Lock()
	wantLines(t, s.host.answers, "1 true", "linetrue", "true")
	s.host.mu.Unlock()

	_, err := c.Command(ctx, "/new", forms)
	var switched *SwitchedError
	if !errors.As(err, &switched) || switched.Session != "1_2" {
		t.Fatalf("/new: got %v", err)
	}
	next, err := c.With(ctx, switched.Session)
	if err != nil {
		t.Fatal(err)
	}
	nw := watchEvents(ctx, next, 0, nil)
	nw.until(t, "what the command printed there", func(e event.Event) bool { return e.Kind == event.Printed && e.Text == "new conversation" })
	if _, err := next.Prompt(ctx, event.Input{Text: "say hi"}); err != nil {
		t.Error(err)
	}
}

// TestCommandBesideATurn: a command that may run during a turn does not end with it, nor
// the turn with the command.
func TestCommandBesideATurn(t *testing.T) {
	s := newStation(t).listen()
	c := dialStation(t, s)
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, nil)
	over := make(chan error, 1)
	go func() {
		_, err := c.Prompt(ctx, event.Input{Text: "wait"})
		over <- err
	}()
	wait(t, "the model's call", s.host.calling)
	if out, err := c.Command(ctx, "/print beside", &fixedForms{}); err != nil || out.Error != "" {
		t.Errorf("got %+v, %v", out, err)
	}
	w.until(t, "what was printed", func(e event.Event) bool { return e.Kind == event.Printed })
	if _, err := c.Command(ctx, "/choose a,b", &fixedForms{}); !errors.Is(err, ErrBusy) {
		t.Errorf("a command that may not run beside a turn: %v", err)
	}
	if _, err := c.Prompt(ctx, event.Input{Text: "say x"}); !errors.Is(err, ErrBusy) {
		t.Errorf("a second turn: %v", err)
	}
	if _, err := c.NewSession(ctx); !errors.Is(err, ErrBusy) {
		t.Errorf("a new conversation during a turn: %v", err)
	}
	s.host.release <- struct{}{}
	if err := wait(t, "the end", over); err != nil {
		t.Error(err)
	}
}

func TestCancelAndQueue(t *testing.T) {
	s := newStation(t).listen()
	c := dialStation(t, s)
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, nil)
	if _, err := c.Enqueue(event.Item{ID: "q0", Mode: event.Steer, Text: "x"}); !errors.Is(err, ErrIdle) {
		t.Errorf("input with no turn: %v", err)
	}
	type result struct {
		reason event.Reason
		err    error
	}
	over := make(chan result, 1)
	prompt := func(ctx context.Context, text string) {
		reason, err := c.Prompt(ctx, event.Input{Text: text})
		over <- result{reason, err}
	}
	go prompt(ctx, "wait")
	wait(t, "the model's call", s.host.calling)
	item := event.Item{ID: "q1", Mode: event.FollowUp, Text: "say after"}
	for range 2 {
		if state, err := c.Enqueue(item); state != "accepted" || err != nil {
			t.Errorf("enqueue: %q, %v", state, err)
		}
	}
	if text, err := c.Pending(ctx); err != nil || !strings.Contains(text, "say after") {
		t.Errorf("pending: %q, %v", text, err)
	}
	if state, err := c.Receipt(ctx, "q1"); state != "accepted" || err != nil {
		t.Errorf("receipt: %q, %v", state, err)
	}
	if err := c.Drop(ctx, "q1"); err != nil {
		t.Error(err)
	}
	item.ID, item.Text = "q2", "say instead"
	if _, err := c.Enqueue(item); err != nil {
		t.Error(err)
	}
	c.Skip()
	if r := wait(t, "the end", over); r.err != nil || r.reason != event.Complete {
		t.Errorf("skipped: got %+v", r)
	}
	w.until(t, "the queued turn", func(e event.Event) bool { return e.Kind == event.Reply && e.Reply.Message.Content == "instead" })

	go prompt(ctx, "wait")
	wait(t, "the model's call", s.host.calling)
	c.Cancel()
	if r := wait(t, "the end", over); r.err != nil || r.reason != event.Cancelled {
		t.Errorf("cancelled: got %+v", r)
	}
	pctx, cancel := context.WithCancel(ctx)
	go prompt(pctx, "wait")
	wait(t, "the model's call", s.host.calling)
	cancel()
	if r := wait(t, "the end", over); r.err != nil || r.reason != event.Cancelled {
		t.Errorf("with its context: got %+v", r)
	}
	// What another client started is stopped too.
	go prompt(ctx, "wait")
	wait(t, "the model's call", s.host.calling)
	other := dialStation(t, s)
	other.Cancel()
	if r := wait(t, "the end", over); r.err != nil || r.reason != event.Cancelled {
		t.Errorf("by another client: got %+v", r)
	}
}

// TestApprovalForANewcomer: a client that goes away in the middle of an approval leaves it
// to the next one, which is asked again.
func TestApprovalForANewcomer(t *testing.T) {
	s := newStation(t).listen()
	first := dialStation(t, s)
	ctx := testContext(t)
	w := watchEvents(ctx, first, 0, nil)
	over := make(chan error, 1)
	go func() {
		_, err := first.Prompt(ctx, event.Input{Text: "run ls"})
		over <- err
	}()
	w.until(t, "the question", isKind(event.Asked))
	first.Close()
	if err := wait(t, "the end of the prompt", over); !errors.Is(err, ErrClosed) {
		t.Errorf("the prompt of a client that left: %v", err)
	}
	second := dialStation(t, s)
	if !second.Busy() || second.Info().ID != "1_1" {
		t.Errorf("the second client is at %q, busy %v", second.Info().ID, second.Busy())
	}
	sw := watchEvents(ctx, second, 0, answering(t, second, "once"))
	sw.until(t, "the end", isKind(event.TurnEnd))
	if got := s.host.ran(); len(got) != 1 {
		t.Errorf("ran %q", got)
	}
}

// TestTwoAnswers: of two clients that answer, one is told that it was too late.
func TestTwoAnswers(t *testing.T) {
	s := newStation(t).listen()
	a, b := dialStation(t, s), dialStation(t, s)
	ctx := testContext(t)
	aw, bw := watchEvents(ctx, a, 0, nil), watchEvents(ctx, b, 0, nil)
	over := make(chan error, 1)
	go func() {
		_, err := a.Prompt(ctx, event.Input{Text: "run ls"})
		over <- err
	}()
	q := aw.until(t, "the question", isKind(event.Asked)).Question
	bw.until(t, "the question", isKind(event.Asked))
	results := make(chan error, 2)
	go func() { results <- a.Answer(q.CallID, event.Answer{Choice: "once"}) }()
	go func() { results <- b.Answer(q.CallID, event.Answer{Choice: "no"}) }()
	one, two := wait(t, "an answer", results), wait(t, "an answer", results)
	if (one == nil) == (two == nil) || !errors.Is(errors.Join(one, two), ErrSettled) {
		t.Errorf("got %v and %v", one, two)
	}
	if err := wait(t, "the end", over); err != nil {
		t.Error(err)
	}
}

func TestConversationsOfAServer(t *testing.T) {
	s := newStation(t).listen()
	c := dialStation(t, s)
	ctx := testContext(t)
	if _, err := c.Prompt(ctx, event.Input{Text: "say one"}); err != nil {
		t.Fatal(err)
	}
	next, err := c.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := next.Prompt(ctx, event.Input{Text: "say two"}); err != nil {
		t.Fatal(err)
	}
	list, err := next.Sessions(ctx)
	if err != nil || len(list) != 2 || list[0].ID != "1_2" || !list[0].Current || list[1].Empty {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := next.Select(ctx, "7_7"); !errors.Is(err, store.ErrUnknown) {
		t.Errorf("an unknown one: %v", err)
	}
	onlooker := dialTest(t, func() ClientConfig {
		cfg := clientConfig(t, strings.TrimPrefix(s.url, "http://"))
		cfg.Continue = true
		return cfg
	}())
	ow := watchEvents(ctx, onlooker, 0, nil)
	ow.until(t, "the second conversation", func(e event.Event) bool { return e.Kind == event.User && e.Text == "say two" })
	back, err := next.Select(ctx, "1_1")
	if err != nil {
		t.Fatal(err)
	}
	bw := watchEvents(ctx, back, 0, nil)
	bw.until(t, "the first conversation", func(e event.Event) bool { return e.Kind == event.User && e.Text == "say one" })
	wait(t, "the onlooker's end", ow.ended)
	var switched *SwitchedError
	if !errors.As(ow.err, &switched) || switched.Session != "1_1" {
		t.Errorf("the onlooker's events ended with %v", ow.err)
	}
}

// TestServerOverAPipe: a whole turn through one pipe, then the client leaves and the
// server's side is over.
func TestServerOverAPipe(t *testing.T) {
	s := newStation(t, func(c *Config) { c.Token = "" })
	near, far := systemPipe(t)
	ended := make(chan error, 1)
	ctx := testContext(t)
	go func() {
		ended <- PipeServe(ctx, PipeServer{Conn: far, Version: "9", Open: func(context.Context, Opening) (http.Handler, error) { return s.server, nil }})
	}()
	p, err := PipeDial(ctx, PipeClient{Conn: near, Opening: Opening{Workspace: "/work"}})
	if err != nil {
		t.Fatal(err)
	}
	c := dialTest(t, ClientConfig{Pipe: p, Name: "me@far", NewID: counter("r")})
	w := watchEvents(ctx, c, 0, answering(t, c, "once"))
	for n := range 5 {
		if reason, err := c.Prompt(ctx, event.Input{Text: fmt.Sprint("run ", n)}); reason != event.Complete || err != nil {
			t.Fatalf("got %q, %v", reason, err)
		}
		if err := c.Drop(ctx, "nothing"); err == nil { // a refusal does not end the one pipe
			t.Error("dropped what never waited")
		}
	}
	if q := w.until(t, "a question", isKind(event.Asked)).Question; q.Host != "me@far" {
		t.Errorf("asked for %q", q.Host)
	}
	if got := s.host.ran(); len(got) != 5 {
		t.Errorf("ran %q", got)
	}
	c.Close()
	if err := wait(t, "the server's end", ended); err != nil {
		t.Error(err)
	}
}
