package remote

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// reading is what clients read item by item. It is kept from one item to the next, and
// read anew with the first.
type reading struct {
	mu       sync.Mutex
	list     []store.Info
	id       string // of the conversation whose messages are here
	seq      int64  // number of its last event that was read; the current one's grow
	messages []sessionMessage
}

// sessionItem is one conversation in the list.
type sessionItem struct {
	Event   string `json:"event"`
	Seq     int64  `json:"seq"`
	ID      string `json:"id"`
	Title   string `json:"title"`
	Model   string `json:"model"`
	Current int    `json:"current"` // 0 or 1
	Empty   int    `json:"empty"`   // 0 or 1
}

// sessionMessage is one message of a conversation.
type sessionMessage struct {
	Event string `json:"event"`
	Seq   int64  `json:"seq"`
	message
	Time          string `json:"time"`           // HH:MM
	ReasoningOpen int    `json:"reasoning_open"` // 0 or 1
	Metadata      string `json:"metadata"`
}

func digit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func (s *Server) sessions(_ context.Context, a asked) (reply, error) {
	r := &s.reading
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.after == 0 || r.list == nil {
		list, err := s.cfg.Host.Sessions()
		if err != nil {
			return reply{}, err
		}
		r.list = list
	}
	if a.after >= int64(len(r.list)) {
		return nothing(), nil
	}
	info := r.list[a.after]
	return reply{http.StatusOK, sessionItem{
		Event: "session", Seq: a.after + 1, ID: info.ID, Title: info.Title, Model: info.Model,
		Current: digit(info.ID == s.cfg.Host.Current().Info().ID), Empty: digit(info.Turns == 0),
	}}, nil
}

func (s *Server) session(ctx context.Context, a asked) (reply, error) {
	r := &s.reading
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.refresh(ctx, a.id, a.after == 0); err != nil {
		return reply{}, err
	}
	if a.after >= int64(len(r.messages)) {
		return nothing(), nil
	}
	return reply{http.StatusOK, r.messages[a.after]}, nil
}

// refresh has the messages of a conversation at hand. Those of the current one grow;
// another is read from its log, anew if again is set. The lock of reading is held.
func (s *Server) refresh(ctx context.Context, id string, again bool) error {
	r := &s.reading
	conv := s.cfg.Host.Current()
	if conv.Info().ID == id {
		if r.id != id {
			r.id, r.seq, r.messages = id, 0, nil
		}
		s.grow(ctx, conv)
		return nil
	}
	if r.id == id && !again {
		return nil
	}
	past, err := s.cfg.Host.Past(id)
	if errors.Is(err, store.ErrUnknown) {
		return refuse(http.StatusNotFound, "there is no session of this id")
	}
	if err != nil {
		return err
	}
	r.id, r.seq, r.messages = id, 0, nil
	for _, e := range past {
		r.add(e)
	}
	return nil
}

// grow reads what came since. It waits for nothing that is not there yet.
func (s *Server) grow(ctx context.Context, conv Conversation) {
	last := conv.LastSeq()
	if last <= s.reading.seq {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.limits.settle)
	defer cancel()
	for e, err := range conv.Events(ctx, s.reading.seq) {
		if err != nil {
			return
		}
		s.reading.add(e)
		if e.Seq >= last {
			return
		}
	}
}

func (r *reading) add(e event.Event) {
	if e.Seq <= r.seq {
		return
	}
	r.seq = e.Seq
	m, ok := said(e)
	if !ok {
		return
	}
	one := sessionMessage{Event: "message", Seq: int64(len(r.messages)) + 1, message: m, Time: e.Time.Format("15:04")}
	if e.Kind == event.CallEnd {
		one.Metadata = e.Result.Name
	}
	r.messages = append(r.messages, one)
}

// hold keeps turns from starting while do changes the current conversation.
func (s *Server) hold(why string, do func() error) error {
	s.follow()
	s.mu.Lock()
	err := s.busy()
	if err == nil {
		s.held = why
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = do()
	s.follow()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = ""
	return err
}

func (s *Server) selectSession(ctx context.Context, a asked) (reply, error) {
	id, err := a.text("id")
	if err != nil {
		return reply{}, err
	}
	if id == "" {
		return reply{}, refuse(http.StatusBadRequest, "the field \"id\" is missing")
	}
	ctx = context.WithoutCancel(ctx) // a client that leaves does not leave it half done
	err = s.hold("another session is being selected", func() error { return s.cfg.Host.Select(ctx, id) })
	switch {
	case errors.Is(err, store.ErrUnknown):
		return reply{}, refuse(http.StatusNotFound, "there is no session of this id")
	case errors.Is(err, store.ErrInUse):
		return reply{}, refuse(http.StatusConflict, "%v", err)
	case err != nil:
		return reply{}, err
	}
	return reply{http.StatusOK, okay{OK: true}}, nil
}

func (s *Server) newSession(ctx context.Context, a asked) (reply, error) {
	request, err := a.text("request_id")
	if err != nil {
		return reply{}, err
	}
	ctx = context.WithoutCancel(ctx)
	return s.once(ctx, "new", request, "", func() (reply, error) {
		var out struct {
			ID string `json:"id"`
		}
		err := s.hold("a session is being made", func() (err error) {
			out.ID, err = s.cfg.Host.New(ctx)
			return err
		})
		return reply{http.StatusOK, out}, err
	})
}
