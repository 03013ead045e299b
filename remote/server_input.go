package remote

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"zcoder/internal/event"
)

// maxItemID and maxItemText bound queued input, in bytes.
const (
	maxItemID   = 64
	maxItemText = 65536
)

// isItemID reports whether an id is 1 to 64 of [A-Za-z0-9_-].
func isItemID(id string) bool {
	return id != "" && len(id) <= maxItemID && !strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	})
}

// receipt is what the input routes say of an item.
type receipt struct {
	ID    string `json:"message_id"`
	State string `json:"state"`
}

// queued returns the conversation that the request names, which must be the current
// one, and the message that it names.
func (s *Server) queued(f fields, withID bool) (Conversation, string, error) {
	var session, id string
	if err := f.texts(map[string]*string{"session_id": &session, "message_id": &id}); err != nil {
		return nil, "", err
	}
	if session == "" || withID && !isItemID(id) {
		return nil, "", refuse(http.StatusBadRequest, "input is named by a \"session_id\" and a \"message_id\" of 1 to 64 of A-Z a-z 0-9 _ -")
	}
	conv := s.cfg.Host.Current()
	if conv.Info().ID != session {
		return nil, "", errNotCurrent
	}
	return conv, id, nil
}

func (s *Server) postInput(_ context.Context, a asked) (reply, error) {
	conv, id, err := s.queued(a.fields, true)
	if err != nil {
		return reply{}, err
	}
	var turn, mode string
	item := event.Item{ID: id}
	if err := a.texts(map[string]*string{"turn_id": &turn, "text": &item.Text, "mode": &mode}); err != nil {
		return reply{}, err
	}
	if item.Mode = event.Mode(mode); mode == "" {
		item.Mode = event.Steer
	}
	if turn == "" || item.Text == "" || len(item.Text) > maxItemText || item.Mode != event.Steer && item.Mode != event.FollowUp {
		return reply{}, refuse(http.StatusBadRequest, "input has a \"turn_id\", a \"text\" of 1 to %d bytes and the mode steer or follow_up", maxItemText)
	}
	return s.enqueue(conv, turn, item)
}

// enqueue hands input to the turn that runs. The turn cannot end in between, so what
// is accepted is taken.
func (s *Server) enqueue(conv Conversation, turn string, item event.Item) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, known := conv.Receipt(item.ID); known {
		if have.Text != item.Text || have.Mode != item.Mode {
			return reply{}, refuse(http.StatusConflict, "another message has this id")
		}
		return reply{http.StatusOK, receipt{have.ID, have.State}}, nil
	}
	if t := s.active(); t == nil || t.id != turn || t.sealed {
		return reply{}, refuse(http.StatusConflict, "this turn is not running")
	}
	state, err := conv.Enqueue(item)
	if err != nil {
		return reply{}, refuse(http.StatusConflict, "%v", err)
	}
	return reply{http.StatusOK, receipt{item.ID, state}}, nil
}

func (s *Server) inputStatus(_ context.Context, a asked) (reply, error) {
	conv, id, err := s.queued(a.fields, true)
	if err != nil {
		return reply{}, err
	}
	return receiptOf(conv, id)
}

func receiptOf(conv Conversation, id string) (reply, error) {
	item, known := conv.Receipt(id)
	if !known {
		return reply{}, refuse(http.StatusNotFound, "there is no message of this id")
	}
	return reply{http.StatusOK, receipt{item.ID, item.State}}, nil
}

// inputDrop discards a message that waits. One that was taken already is not changed,
// which its receipt says.
func (s *Server) inputDrop(_ context.Context, a asked) (reply, error) {
	conv, id, err := s.queued(a.fields, true)
	if err != nil {
		return reply{}, err
	}
	_ = conv.Drop(id) // an error means that it does not wait
	return receiptOf(conv, id)
}

func (s *Server) inputList(_ context.Context, a asked) (reply, error) {
	conv, _, err := s.queued(a.fields, false)
	if err != nil {
		return reply{}, err
	}
	items, paused := conv.Pending()
	var lines []string
	for _, item := range items {
		lines = append(lines, fmt.Sprintf("%s %s: %s", item.ID, item.Mode, item.Text))
	}
	if paused && len(items) > 0 {
		lines = append(lines, "the queue is paused: /queue resume goes on")
	}
	out := struct {
		Turn    string `json:"turn_id"`
		Pending string `json:"pending"` // for display
	}{Pending: strings.Join(lines, "\n")}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.active(); t != nil {
		out.Turn = t.id
	}
	return reply{http.StatusOK, out}, nil
}
