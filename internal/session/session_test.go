package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// memoryLog is a Log that can be made to fail.
type memoryLog struct {
	events []event.Event
	full   bool
	behind bool
}

func (l *memoryLog) Append(e event.Event) error {
	if l.full {
		l.behind = true
		return errors.New("no space left on device")
	}
	l.behind = false
	l.events = append(l.events, e)
	return nil
}
func (l *memoryLog) Sync() error {
	if l.full {
		return errors.New("no space left on device")
	}
	return nil
}
func (l *memoryLog) Behind() bool { return l.behind }
func (l *memoryLog) Close() error { return nil }

type modelFunc func(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)

func (f modelFunc) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	return f(ctx, r, emit)
}

// askAll asks for everything but reading.
type askAll struct{}

func (askAll) Judge(r approval.Request) approval.Verdict {
	if r.Effect == approval.Read {
		return approval.Verdict{Decision: approval.Allow}
	}
	return approval.Verdict{}
}

type noRecorder struct{}

func (noRecorder) Record(approval.Record) error { return nil }

// runTool is an Exec tool that says what it ran.
type runTool struct{}

func (runTool) Spec() tools.Spec {
	return tools.Spec{Name: "run", Params: []tools.Param{{Name: "command", Type: tools.String, Required: true}}}
}

func (runTool) Plan(_ context.Context, c tools.Call) (tools.Action, error) {
	req := approval.Request{CallID: c.ID, Tool: "run", Effect: approval.Exec, Summary: "run", Text: c.Args.Text("command")}
	return tools.NewAction(req, func(context.Context, tools.Progress) tools.Result {
		return tools.Result{Status: tools.OK, Text: "ran " + req.Text}
	}), nil
}

func call(command string) chat.Message {
	args, _ := json.Marshal(map[string]string{"command": command})
	return chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{Name: "run", Args: args}}}
}

// newSession starts a session whose model plays the messages in order.
func newSession(t *testing.T, past []event.Event, replies ...chat.Message) (*Session, *memoryLog, *[]chat.Request) {
	t.Helper()
	log := &memoryLog{}
	var requests []chat.Request
	model := modelFunc(func(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
		requests = append(requests, r)
		if len(requests) > len(replies) {
			<-ctx.Done()
			return chat.Reply{}, ctx.Err()
		}
		m := replies[len(requests)-1]
		emit(chat.Delta{Content: m.Content})
		return chat.Reply{Message: m, Done: true, DoneReason: "stop"}, nil
	})
	reg, err := tools.NewRegistry(runTool{})
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	next := func() string { ids++; return fmt.Sprint("id", ids) }
	s := New(Config{
		Info: event.Session{ID: "1_1"}, Log: log, Origin: approval.OriginUser, Now: time.Now, NewTurnID: next,
		Gate: &approval.Gate{Policy: askAll{}, Recorder: noRecorder{}},
		Turn: func() (string, agent.Config) {
			return "sys", agent.Config{Model: model, Tools: reg, Now: time.Now, NewID: next, MaxResult: 1000}
		},
	}, past)
	return s, log, &requests
}

// wait returns the first event of a kind.
func wait(t *testing.T, s *Session, kind event.Kind) event.Event {
	t.Helper()
	for e, err := range s.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == kind {
			return e
		}
	}
	return event.Event{}
}

func prompt(s *Session, text string) chan event.Reason {
	done := make(chan event.Reason, 1)
	go func() {
		reason, err := s.Prompt(context.Background(), event.Input{Text: text})
		if err != nil {
			reason = event.Reason(err.Error())
		}
		done <- reason
	}()
	return done
}

func TestFirstAnswerWins(t *testing.T) {
	s, _, _ := newSession(t, nil, call("ls"), chat.Message{Role: chat.Assistant, Content: "done"})
	done := prompt(s, "go")
	q := wait(t, s, event.Asked).Question
	if err := s.Answer(q.CallID, event.Answer{Choice: "once", Digest: "other"}); err == nil {
		t.Error("Answer with another digest was taken")
	}
	if err := s.Answer(q.CallID, event.Answer{Choice: "yes"}); err == nil {
		t.Error("Answer with an unknown choice was taken")
	}
	if err := s.Answer("other", event.Answer{Choice: "once"}); !errors.Is(err, ErrSettled) {
		t.Errorf("Answer for another call = %v; want ErrSettled", err)
	}
	if err := s.Answer(q.CallID, event.Answer{Choice: "once", Digest: q.Digest}); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(q.CallID, event.Answer{Choice: "no"}); !errors.Is(err, ErrSettled) {
		t.Errorf("second Answer = %v; want ErrSettled", err)
	}
	if got := <-done; got != event.Complete {
		t.Errorf("reason = %q", got)
	}
	if got := wait(t, s, event.CallEnd).Result.Text; got != "ran ls" {
		t.Errorf("result = %q", got)
	}
}

func TestAQuestionGivesAReasonOnce(t *testing.T) {
	r := approval.Request{MustAsk: []string{"a secret", "two links"}}
	for _, tt := range []struct{ name, verdict, want string }{
		{"the request's own", "a secret; two links", "a secret|two links"},
		{"one more", "an ask rule", "a secret|two links|an ask rule"},
		{"none", "", "a secret|two links"},
	} {
		if got := strings.Join(show(r, approval.Verdict{Reason: tt.verdict}).Reasons, "|"); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestCancelWithdrawsTheQuestion(t *testing.T) {
	s, _, _ := newSession(t, nil, call("ls"))
	done := prompt(s, "go")
	q := wait(t, s, event.Asked).Question
	s.Cancel()
	if got := <-done; got != event.Cancelled {
		t.Errorf("reason = %q; want cancelled", got)
	}
	if a := wait(t, s, event.Answered).Answer; a.Choice != "no" {
		t.Errorf("answer = %+v; want no", a)
	}
	if err := s.Answer(q.CallID, event.Answer{Choice: "once"}); !errors.Is(err, ErrSettled) {
		t.Errorf("late Answer = %v; want ErrSettled", err)
	}
}

func TestOneTurnAtATime(t *testing.T) {
	s, _, _ := newSession(t, nil)
	done := prompt(s, "go")
	wait(t, s, event.TurnStart)
	if _, err := s.Prompt(t.Context(), event.Input{Text: "too"}); !errors.Is(err, ErrBusy) {
		t.Errorf("second Prompt = %v; want ErrBusy", err)
	}
	s.Cancel()
	<-done
}

func TestAnUnusedSessionWritesNothing(t *testing.T) {
	s, log, _ := newSession(t, nil)
	s.Close()
	if len(log.events) != 0 {
		t.Errorf("log = %v; want nothing", log.events)
	}
}

func TestEventsAreStoredBeforeTheyAreShown(t *testing.T) {
	s, log, _ := newSession(t, nil, chat.Message{Role: chat.Assistant, Content: "hello"})
	<-prompt(s, "go")
	for e := range s.Events(t.Context(), 0) {
		if e.Kind.Live() {
			continue
		}
		if got := log.events[e.Seq-1]; got.Seq != e.Seq || got.Kind != e.Kind {
			t.Fatalf("log record %d = %+v; shown %+v", e.Seq, got, e)
		}
		if e.Kind == event.TurnEnd {
			break
		}
	}
}

func TestResumeSendsTheSameBytes(t *testing.T) {
	s, log, first := newSession(t, nil, call("ls"), chat.Message{Role: chat.Assistant, Content: "done"})
	done := prompt(s, "go")
	s.Answer(wait(t, s, event.Asked).Question.CallID, event.Answer{Choice: "once"})
	<-done
	resumed, _, second := newSession(t, log.events, chat.Message{Role: chat.Assistant, Content: "again"})
	<-prompt(resumed, "more")
	before, after := (*first)[1].Messages, (*second)[0].Messages
	if got, want := fmt.Sprintf("%+v", after[:len(before)]), fmt.Sprintf("%+v", before); got != want {
		t.Errorf("resumed prefix = %s\nwant %s", got, want)
	}
}

func TestACrashIsSettledOnResume(t *testing.T) {
	reply := call("ls")
	reply.Calls[0].ID = "c1"
	past := []event.Event{
		{Seq: 1, Kind: event.Opened, Session: &event.Session{ID: "1_1"}},
		{Seq: 2, Kind: event.TurnStart, Turn: "t1"},
		{Seq: 3, Kind: event.User, Turn: "t1", Text: "go"},
	}
	t.Run("between call and result", func(t *testing.T) {
		s, log, _ := newSession(t, append(past[:3:3], event.Event{Seq: 4, Kind: event.Reply, Turn: "t1", Reply: &event.ModelReply{Message: reply}}))
		h := s.History()
		last := h[len(h)-1]
		if last.Role != chat.ToolRole || last.CallID != "c1" || !strings.HasPrefix(last.Content, "interrupted") {
			t.Errorf("last message = %+v; want an interrupted result", last)
		}
		if n := len(log.events); n != 2 || log.events[1].Kind != event.TurnEnd {
			t.Errorf("log = %+v; want a result and the turn's end", log.events)
		}
	})
	t.Run("in the middle of a reply", func(t *testing.T) {
		s, _, _ := newSession(t, append(past[:3:3], event.Event{Seq: 4, Kind: event.Content, Turn: "t1", Text: "half an ans"}))
		h := s.History()
		if got := h[len(h)-1].Content; got != "half an ans" {
			t.Errorf("last message = %q; want what had been shown", got)
		}
	})
}

func TestAFullDiskWarnsOnceAndGoesOn(t *testing.T) {
	s, log, _ := newSession(t, nil, chat.Message{Role: chat.Assistant, Content: "a"}, chat.Message{Role: chat.Assistant, Content: "b"})
	log.full = true
	<-prompt(s, "one")
	if !s.Behind() {
		t.Error("Behind = false on a full disk")
	}
	log.full = false
	<-prompt(s, "two")
	var warnings []string
	s.Close()
	for e := range s.Events(t.Context(), 0) {
		if e.Kind == event.Warning {
			warnings = append(warnings, e.Text)
		}
	}
	if len(warnings) != 2 || !strings.Contains(warnings[0], "goes on in memory") || !strings.Contains(warnings[1], "stored again") {
		t.Errorf("warnings = %q", warnings)
	}
}

func TestSlowReadersMissNothing(t *testing.T) {
	s, _, _ := newSession(t, nil)
	next := make(chan int64)
	go func() {
		for e, err := range s.Events(context.Background(), 1) {
			if err != nil {
				close(next)
				return
			}
			next <- e.Seq
		}
	}()
	for i := range 50 {
		s.Emit(event.Event{Kind: event.Info, Text: fmt.Sprint(i)})
		if i%10 == 9 {
			s.Emit(event.Event{Kind: event.TurnStart})
		}
	}
	for want := int64(2); want <= 56; want++ {
		if got := <-next; got != want {
			t.Fatalf("event %d came; want %d", got, want)
		}
	}
	s.Close()
	for range next {
	}
}
