package acp

import (
	"context"

	"zcoder/internal/event"
)

// inputRequest is input for later: with mode steer the model gets it after the tools
// that run, with follow_up it starts the next turn.
type inputRequest struct {
	SessionID string     `json:"sessionId"`
	Text      string     `json:"text"`
	Mode      event.Mode `json:"mode"`
	// MessageID is the client's; the same id and content again changes nothing.
	MessageID string `json:"messageId,omitempty"`
}

// inputReceipt says what became of it: accepted, consumed or discarded.
type inputReceipt struct {
	MessageID string `json:"messageId"`
	State     string `json:"state"`
}

func (a *agent) input(_ context.Context, p inputRequest) (inputReceipt, error) {
	if p.Mode != event.Steer && p.Mode != event.FollowUp {
		return inputReceipt{}, invalid("the mode %q is none of %s, %s", p.Mode, event.Steer, event.FollowUp)
	}
	s, err := a.find(sessionID(p.SessionID))
	if err != nil {
		return inputReceipt{}, err
	}
	if p.MessageID == "" {
		p.MessageID = a.o.NewID()
	}
	state, err := s.conv.Enqueue(event.Item{ID: p.MessageID, Mode: p.Mode, Text: p.Text})
	if err != nil {
		return inputReceipt{}, invalid("%v", err)
	}
	return inputReceipt{MessageID: p.MessageID, State: state}, nil
}
