package remote

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"zcoder/internal/event"
)

// form is a question of a slash command that waits for a client.
type form struct {
	shown  Form
	number int64 // in the order of asking
	answer chan formRequest
}

// turnUI is what a slash command may ask of the client that sent it.
type turnUI struct {
	server *Server
	turn   *turn           // nil: nobody can be asked
	gone   <-chan struct{} // closed when the command ends: its questions end with it
}

// Choose implements UI.
func (u turnUI) Choose(title string, items []string, current int) (int, bool) {
	if len(items) == 0 {
		return 0, false
	}
	a, ok := u.put(Form{Title: title, Items: items, Current: current})
	return a.Index, ok
}

// AskLine implements UI.
func (u turnUI) AskLine(prompt string) (string, bool) {
	a, ok := u.put(Form{Title: prompt})
	return a.Line, ok
}

// Submit implements UI.
func (u turnUI) Submit(text string) bool {
	if u.turn == nil || !u.turn.interactive {
		return false
	}
	u.server.mu.Lock()
	defer u.server.mu.Unlock()
	u.turn.submit = text
	return true
}

// Draft implements UI.
func (u turnUI) Draft(text string) bool {
	if u.turn == nil || !u.turn.interactive {
		return false
	}
	u.server.mu.Lock()
	defer u.server.mu.Unlock()
	u.turn.draft = text
	return true
}

// put shows a form and waits for its answer as long as for an approval.
func (u turnUI) put(shown Form) (formRequest, bool) {
	s := u.server
	if u.turn == nil || !u.turn.interactive {
		s.cfg.Host.Current().Emit(event.Event{Kind: event.Warning, Text: "this asks a person, and nobody can be asked now: " + shown.Title})
		return formRequest{}, false
	}
	f := &form{shown: shown, answer: make(chan formRequest, 1)}
	s.mu.Lock()
	f.shown.ID = s.newID()
	s.formCount++
	f.number = s.formCount
	s.forms[f.shown.ID] = f
	s.announce()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.forms, f.shown.ID)
	}()
	late, stop := s.soon(s.cfg.ApprovalTimeout)
	defer stop()
	select {
	case a := <-f.answer:
		return a, a.OK
	case <-late:
		s.cfg.Host.Current().Emit(event.Event{Kind: event.Info, Text: fmt.Sprintf("nobody answered within %s", s.cfg.ApprovalTimeout)})
	case <-u.gone:
	}
	return formRequest{}, false
}

func (s *Server) postForm(_ context.Context, a asked) (reply, error) {
	in, err := readForm(a.fields)
	if err != nil {
		return reply{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.forms[in.ID]
	if f == nil {
		return reply{}, refuse(http.StatusConflict, "no question of this id waits: it was answered, or its time is over")
	}
	if in.OK && len(f.shown.Items) > 0 && in.Index >= len(f.shown.Items) {
		return reply{}, refuse(http.StatusBadRequest, "the list has no item %s", strconv.Itoa(in.Index))
	}
	delete(s.forms, in.ID)
	f.answer <- in
	return reply{http.StatusOK, okay{OK: true}}, nil
}

func readForm(f fields) (in formRequest, err error) {
	if err = f.texts(map[string]*string{"id": &in.ID, "line": &in.Line}); err != nil {
		return in, err
	}
	if in.OK, err = f.flag("ok"); err != nil {
		return in, err
	}
	if in.Index, err = f.whole("index"); err == nil && in.ID == "" {
		err = refuse(http.StatusBadRequest, "the field \"id\" is missing")
	}
	return in, err
}
