package remote

import (
	"context"
	"net/http"
)

// loading is the model being loaded, once for all who wait for it.
type loading struct {
	done  chan struct{} // closed at its end
	model Model         // then: how that was
}

// load has the model loaded, or joins those who wait for that already.
func (s *Server) load() *loading {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loading != nil {
		return s.loading
	}
	l := &loading{done: make(chan struct{})}
	s.loading = l
	began := s.spawn(func(ctx context.Context) { s.loaded(l, s.cfg.Host.Model(ctx, true)) })
	if !began {
		s.loading, l.model = nil, Model{Status: Failed, Error: errClosing.text}
		close(l.done)
	}
	return l
}

func (s *Server) loaded(l *loading, m Model) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading, l.model = nil, m
	close(l.done)
}

// readiness is what is known of the model without starting anything.
func (s *Server) readiness(ctx context.Context) Model {
	s.mu.Lock()
	busy := s.loading != nil
	s.mu.Unlock()
	if busy {
		return Model{Status: Warming}
	}
	return s.cfg.Host.Model(ctx, false)
}

// modelReply is what the model routes say.
type modelReply struct {
	Status string `json:"model_status"`
	Error  string `json:"model_error"`
}

func (s *Server) model(ctx context.Context, _ asked) (reply, error) {
	m := s.readiness(ctx)
	return reply{http.StatusOK, modelReply(m)}, nil
}

// ensure starts loading the model if it is not there. It waits a moment, so that a
// model that is there is said to be ready at once.
func (s *Server) ensure(ctx context.Context, _ asked) (reply, error) {
	l := s.load()
	late, stop := s.soon(s.limits.patience)
	defer stop()
	m := Model{Status: Warming}
	select {
	case <-l.done:
		m = l.model
	case <-late:
	case <-ctx.Done():
	}
	return reply{http.StatusOK, modelReply(m)}, nil
}
