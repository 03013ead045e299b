package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

func users(s *Session) []string {
	var out []string
	for _, m := range s.History() {
		if m.Role == chat.User {
			out = append(out, m.Content)
		}
	}
	return out
}

func enqueue(t *testing.T, s *Session, id string, mode event.Mode, text string) {
	t.Helper()
	if _, err := s.Enqueue(event.Item{ID: id, Mode: mode, Text: text}); err != nil {
		t.Fatal(err)
	}
}

func TestSteeringEntersAfterTheRoundsTools(t *testing.T) {
	s, _, requests := newSession(t, nil, call("ls"), chat.Message{Role: chat.Assistant, Content: "done"})
	done := prompt(s, "go")
	q := wait(t, s, event.Asked).Question
	enqueue(t, s, "a", event.Steer, "and quickly")
	s.Answer(q.CallID, event.Answer{Choice: "once"})
	<-done
	var got []string
	for _, m := range (*requests)[1].Messages[1:] {
		got = append(got, string(m.Role)+" "+m.Content)
	}
	want := []string{"user go", "assistant ", "tool ran ls", "user and quickly"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("second request = %q; want %q", got, want)
	}
}

func TestSteeringBeforeTheAnswerIsAccepted(t *testing.T) {
	s, _, _ := newSession(t, nil, chat.Message{Role: chat.Assistant, Content: "one"}, chat.Message{Role: chat.Assistant, Content: "two"})
	enqueue(t, s, "a", event.Steer, "wait")
	<-prompt(s, "go")
	if got := fmt.Sprint(users(s)); got != "[go wait]" {
		t.Errorf("user messages = %s", got)
	}
}

func TestFollowUpsStartTurnsOfTheirOwn(t *testing.T) {
	say := chat.Message{Role: chat.Assistant, Content: "ok"}
	s, log, _ := newSession(t, nil, say, say, say)
	enqueue(t, s, "a", event.FollowUp, "second")
	enqueue(t, s, "b", event.FollowUp, "third")
	<-prompt(s, "first")
	if got := fmt.Sprint(users(s)); got != "[first second third]" {
		t.Errorf("user messages = %s", got)
	}
	ends := 0
	for _, e := range log.events {
		if e.Kind == event.TurnEnd {
			ends++
		}
	}
	if ends != 3 {
		t.Errorf("%d turns; want 3", ends)
	}
}

func TestACommandHoldsWhatIsBehindIt(t *testing.T) {
	say := chat.Message{Role: chat.Assistant, Content: "ok"}
	s, _, _ := newSession(t, nil, say, say)
	enqueue(t, s, "a", event.Command, "make")
	enqueue(t, s, "b", event.Steer, "look at it")
	<-prompt(s, "first")
	if got := fmt.Sprint(users(s)); got != "[first]" {
		t.Errorf("user messages = %s; the command should hold the rest", got)
	}
	if command, ok := s.ClaimCommand(); !ok || command != "make" {
		t.Errorf("ClaimCommand = %q, %v", command, ok)
	}
	if _, ok := s.ClaimCommand(); ok {
		t.Error("the command was claimed twice")
	}
	if in, ok := s.Next(); !ok || in.Text != "look at it" {
		t.Errorf("Next = %+v, %v", in, ok)
	}
}

func TestStoppingPausesAndSkippingGoesOn(t *testing.T) {
	say := chat.Message{Role: chat.Assistant, Content: "ok"}
	for _, tt := range []struct {
		name   string
		stop   func(*Session)
		want   string
		paused bool
	}{
		{"stop", (*Session).Cancel, "[go]", true},
		{"skip", (*Session).Skip, "[go later]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _, _ := newSession(t, nil, call("ls"), say)
			done := prompt(s, "go")
			wait(t, s, event.Asked)
			enqueue(t, s, "a", event.FollowUp, "later")
			tt.stop(s)
			<-done
			if got := fmt.Sprint(users(s)); got != tt.want {
				t.Errorf("user messages = %s; want %s", got, tt.want)
			}
			if _, paused := s.Pending(); paused != tt.paused {
				t.Errorf("paused = %v; want %v", paused, tt.paused)
			}
		})
	}
}

func TestItemsAreIdempotentAndBounded(t *testing.T) {
	s, _, _ := newSession(t, nil)
	enqueue(t, s, "a", event.Steer, "x")
	if state, err := s.Enqueue(event.Item{ID: "a", Mode: event.Steer, Text: "x"}); err != nil || state != "accepted" {
		t.Errorf("again = %q, %v", state, err)
	}
	if _, err := s.Enqueue(event.Item{ID: "a", Mode: event.Steer, Text: "y"}); !errors.Is(err, ErrConflict) {
		t.Errorf("other content = %v; want ErrConflict", err)
	}
	for _, bad := range []event.Item{
		{ID: "", Mode: event.Steer, Text: "x"}, {ID: "a b", Mode: event.Steer, Text: "x"}, {ID: strings.Repeat("a", 65), Mode: event.Steer, Text: "x"},
		{ID: "c", Mode: event.Steer}, {ID: "c", Mode: event.Steer, Text: strings.Repeat("x", 65537)}, {ID: "c", Mode: "soon", Text: "x"},
	} {
		if _, err := s.Enqueue(bad); err == nil {
			t.Errorf("Enqueue(%.40v) was taken", bad)
		}
	}
	for i := range maxPending - 1 {
		enqueue(t, s, fmt.Sprint("n", i), event.Steer, "x")
	}
	if _, err := s.Enqueue(event.Item{ID: "more", Mode: event.Steer, Text: "x"}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("item 101 = %v; want ErrQueueFull", err)
	}
	if err := s.Drop("n5"); err != nil {
		t.Error(err)
	}
	if err := s.Drop("n5"); !errors.Is(err, ErrNoItem) {
		t.Errorf("second Drop = %v; want ErrNoItem", err)
	}
	if item, _ := s.Receipt("n5"); item.State != "discarded" {
		t.Errorf("state = %q", item.State)
	}
}

// TestACrashAtAnyPointRunsNothingTwice cuts the log after every record: an item is
// either still waiting, or was used, never both and never neither.
func TestACrashAtAnyPointRunsNothingTwice(t *testing.T) {
	say := chat.Message{Role: chat.Assistant, Content: "ok"}
	s, log, _ := newSession(t, nil, say, say, say)
	enqueue(t, s, "a", event.FollowUp, "second")
	enqueue(t, s, "b", event.Command, "make")
	<-prompt(s, "first")
	s.ClaimCommand()
	full := log.events
	for n := range len(full) + 1 {
		queuedA, queuedB, claimed := false, false, false
		for _, e := range full[:n] {
			if e.Kind == event.Queued {
				queuedA = queuedA || e.Item.ID == "a"
				queuedB = queuedB || e.Item.ID == "b"
			}
			claimed = claimed || e.Kind == event.Unqueued
		}
		again, _, _ := newSession(t, full[:n:n])
		items, paused := again.Pending()
		waiting := map[string]bool{}
		for _, i := range items {
			waiting[i.ID] = true
		}
		used := strings.Contains(fmt.Sprint(users(again)), "second")
		if queuedA && waiting["a"] == used {
			t.Errorf("after %d records: waiting %v, used %v", n, waiting["a"], used)
		}
		if queuedB && waiting["b"] == claimed {
			t.Errorf("after %d records: command waiting %v, claimed %v", n, waiting["b"], claimed)
		}
		if len(items) > 0 && !paused {
			t.Errorf("after %d records: the queue of a resumed session is not paused", n)
		}
	}
}

// TestTheQueueIsPausedBeforeTheEndIsSeen: who sees that the turn was stopped finds the
// queue paused.
func TestTheQueueIsPausedBeforeTheEndIsSeen(t *testing.T) {
	s, _, _ := newSession(t, nil)
	paused := false
	s.cfg.EndTurn = func(event.End) []string { _, paused = s.Pending(); return nil }
	done := make(chan struct{})
	go func() { defer close(done); _, _ = s.Prompt(t.Context(), event.Input{Text: "go"}) }()
	wait(t, s, event.TurnStart)
	if _, err := s.Enqueue(event.Item{ID: "q1", Mode: event.FollowUp, Text: "then"}); err != nil {
		t.Fatal(err)
	}
	s.Cancel()
	<-done
	if !paused {
		t.Error("the queue was not paused when the turn had ended")
	}
}
