package session

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// peerInput is a turn that another instance asked for.
func peerInput() event.Input {
	return event.Input{Text: "wrapped: @a.txt", Peer: &event.Peer{Instance: "7-8", PID: 7, Project: "api", Workspace: "/w", Message: "@a.txt"}}
}

func TestATurnOfAPeer(t *testing.T) {
	s, log, requests := newSession(t, nil, call("ls"), chat.Message{Role: chat.Assistant, Content: "done"}, chat.Message{Role: chat.Assistant, Content: "mine"})
	var adjusted []string
	s.cfg.Adjust = func(in event.Input, _ *agent.Config) { adjusted = append(adjusted, in.Text) }
	s.cfg.Expand = func(_ context.Context, in event.Input) event.Input {
		in.Before = append(in.Before, event.Event{Kind: event.Note, Text: "expanded " + in.Text})
		return in
	}
	done := make(chan event.Reason, 1)
	go func() {
		reason, err := s.Prompt(context.Background(), peerInput())
		if err != nil {
			t.Error(err)
		}
		done <- reason
	}()
	asked := wait(t, s, event.Asked)
	if asked.Question.Origin != approval.OriginPeer.String() {
		t.Errorf("asked for %q", asked.Question.Origin)
	}
	// A text that a person sends meanwhile is a person's.
	if _, err := s.Enqueue(event.Item{ID: "q1", Mode: event.FollowUp, Text: "and mine"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(asked.Question.CallID, event.Answer{Choice: "conversation"}); err != nil {
		t.Fatal(err)
	}
	<-done
	if s.cfg.Gate.Granted() {
		t.Error("`a` in a peer's turn granted more than this once")
	}
	var kinds []string
	for _, e := range log.events {
		switch e.Kind {
		case event.Relayed:
			kinds = append(kinds, "relay "+e.Peer.Message)
		case event.Note, event.User:
			kinds = append(kinds, string(e.Kind)+" "+e.Text)
		}
	}
	if got := strings.Join(kinds, " | "); got != "relay @a.txt | note wrapped: @a.txt | note expanded and mine | user and mine" {
		t.Errorf("records: %s", got)
	}
	if first := (*requests)[0].Messages[1]; first.Role != chat.User || !first.Note || first.Content != "wrapped: @a.txt" {
		t.Errorf("the model got %+v", first)
	}
	if got := strings.Join(adjusted, " | "); got != "wrapped: @a.txt | and mine" {
		t.Errorf("adjusted for %s", got)
	}
}

func TestNoWireMakesAPeersTurn(t *testing.T) {
	var in event.Input
	if err := json.Unmarshal([]byte(`{"text":"x","peer":{"instance":"7-8"},"Peer":{"instance":"7-8"}}`), &in); err != nil || in.Peer != nil {
		t.Errorf("decoded %+v (%v)", in.Peer, err)
	}
}
