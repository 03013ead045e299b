package session

import (
	"context"
	"fmt"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

func TestEveryInputIsExpandedOnce(t *testing.T) {
	say := chat.Message{Role: chat.Assistant, Content: "ok"}
	s, log, _ := newSession(t, nil, call("ls"), say, say)
	s.cfg.Expand = func(_ context.Context, in event.Input) event.Input {
		in.Before = append(in.Before, event.Event{Kind: event.Note, Text: "before " + in.Text})
		return in
	}
	enqueue(t, s, "b", event.FollowUp, "later")
	done := prompt(s, "go")
	q := wait(t, s, event.Asked).Question
	enqueue(t, s, "a", event.Steer, "steer")
	if err := s.Answer(q.CallID, event.Answer{Choice: "once"}); err != nil {
		t.Fatal(err)
	}
	<-done
	want := "[before go go before steer steer before later later]"
	if got := fmt.Sprint(users(s)); got != want {
		t.Errorf("user records %s, want %s", got, want)
	}
	var stored []chat.Message
	for _, e := range log.events {
		stored = event.Append(stored, e)
	}
	if len(stored) != len(s.History()) {
		t.Errorf("the log folds to %d records, the history has %d", len(stored), len(s.History()))
	}
}
