package remote

import (
	"context"

	"zcoder/internal/event"
)

// follower reads the current conversation from its first event on: it keeps the ids
// of the questions that wait, and hands the events of a turn to those who poll.
// The server's lock guards what changes in it.
type follower struct {
	conv  Conversation
	id    string // of the conversation
	ready int64  // what came up to here is past
	stop  context.CancelFunc

	seen  int64 // number of the last event that was read
	ended bool  // nothing more is read
	moved chan struct{}
}

// follow makes sure that the current conversation is followed, and returns its
// follower. When another was, that is read to its last event first.
func (s *Server) follow() *follower {
	s.followMu.Lock()
	defer s.followMu.Unlock()
	conv := s.cfg.Host.Current()
	id := conv.Info().ID
	s.mu.Lock()
	old := s.following
	s.mu.Unlock()
	if old != nil {
		if old.id == id && !s.hasEnded(old) {
			return old
		}
		s.await(old, old.conv.LastSeq())
		old.stop()
	}
	f := &follower{conv: conv, id: id, ready: conv.LastSeq(), stop: func() {}}
	began := make(chan struct{})
	if !s.spawn(func(ctx context.Context) {
		ctx, f.stop = context.WithCancel(ctx)
		close(began)
		s.read(ctx, f)
	}) {
		f.ended = true
		close(began)
	}
	<-began
	s.mu.Lock()
	defer s.mu.Unlock()
	s.following = f
	s.announce()
	return f
}

func (s *Server) hasEnded(f *follower) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.ended
}

// read takes the events until the conversation is closed or another one is followed.
func (s *Server) read(ctx context.Context, f *follower) {
	defer f.stop()
	for e, err := range f.conv.Events(ctx, 0) {
		if err != nil {
			break
		}
		s.take(f, e)
	}
	s.mu.Lock()
	f.ended = true
	f.wake()
	s.forgetAll(f)
	s.mu.Unlock()
	if ctx.Err() == nil && s.cfg.Host.Current().Info().ID != f.id {
		s.follow()
	}
}

func (s *Server) take(f *follower, e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var approval *pending
	switch e.Kind {
	case event.Asked:
		approval = s.ask(f, *e.Question)
	case event.Answered:
		s.settled(f, e.Answer.CallID)
	case event.CallEnd:
		s.settled(f, e.Result.CallID)
	case event.TurnEnd:
		s.forgetAll(f)
	}
	if t := s.active(); t != nil && t.owns(f, e) {
		t.project(e, approval)
	}
	f.seen = max(f.seen, e.Seq)
	f.wake()
}

// wake tells those who wait for the follower. The server's lock is held.
func (f *follower) wake() {
	if f.moved != nil {
		close(f.moved)
		f.moved = nil
	}
}

// await blocks until the follower has read the event of a number, or reads no more. It
// gives up after a while, so that a conversation that lost an event holds up nobody.
func (s *Server) await(f *follower, seq int64) {
	var late <-chan struct{}
	for {
		s.mu.Lock()
		if f.seen >= seq || f.ended {
			s.mu.Unlock()
			return
		}
		if f.moved == nil {
			f.moved = make(chan struct{})
		}
		moved := f.moved
		s.mu.Unlock()
		if late == nil {
			timer, stop := s.soon(s.limits.settle)
			defer stop()
			late = timer
		}
		select {
		case <-moved:
		case <-late:
			return
		}
	}
}
