package session

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"zcoder/internal/event"
)

// hub keeps the events for subscribers, each of which reads at its own pace. The
// session's lock guards it.
type hub struct {
	events  []event.Event
	pieces  int // among events: pieces of replies and live events
	readers map[*reader]bool
	changed chan struct{} // closed and replaced when events are added
	closed  bool
}

// reader is a subscriber's place: the next event is events[at].
type reader struct{ at int }

func (h *hub) init() {
	h.readers = map[*reader]bool{}
	h.changed = make(chan struct{})
}

func (h *hub) load(past []event.Event) {
	h.events = slices.Grow(h.events, len(past))
	for _, e := range past {
		if !isPiece(e) {
			h.events = append(h.events, e)
		}
	}
}

func (h *hub) publish(e event.Event) {
	if e.Kind == event.TurnStart && h.pieces > len(h.events)/4 {
		h.trim()
	}
	if isPiece(e) {
		h.pieces++
	}
	h.events = append(h.events, e)
	close(h.changed)
	h.changed = make(chan struct{})
}

// trim forgets the pieces and live events of earlier turns that every reader has
// seen: the whole replies hold the same text. It costs as much as there are events, so
// it is called when a share of them may go.
func (h *hub) trim() {
	seen := len(h.events)
	for r := range h.readers {
		seen = min(seen, r.at)
	}
	kept := slices.DeleteFunc(h.events[:seen], isPiece)
	removed := seen - len(kept)
	h.events = slices.Delete(h.events, len(kept), seen)
	h.pieces -= removed
	for r := range h.readers {
		r.at -= removed
	}
}

// isPiece reports whether a later event of the same turn repeats it whole, or it is of
// no lasting interest.
func isPiece(e event.Event) bool {
	return e.Kind == event.Content || e.Kind == event.Thinking || e.Kind.Live()
}

func (h *hub) close() {
	if !h.closed {
		h.closed = true
		close(h.changed)
	}
}

// ErrClosed ends a subscription whose session was closed.
var ErrClosed = errors.New("the session was closed")

// Events yields the events after the given sequence number, in order, and then
// waits for more until ctx ends or the session is closed; the last pair holds that
// error. A slow consumer misses no event, and what happened before ctx ended comes
// before its error.
func (s *Session) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := s.subscribe(after)
		defer s.unsubscribe(r)
		for {
			ended := ctx.Err()
			batch, changed, closed := s.next(r)
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
			}
			switch {
			case ended != nil:
				yield(event.Event{}, ended)
				return
			case len(batch) > 0:
				continue
			case closed:
				yield(event.Event{}, ErrClosed)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

func (s *Session) subscribe(after int64) *reader {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.hub.events
	r := &reader{at: sort.Search(len(events), func(i int) bool { return events[i].Seq > after })}
	s.hub.readers[r] = true
	return r
}

func (s *Session) unsubscribe(r *reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hub.readers, r)
}

// next takes what the reader has not seen, and the channel that says when there is
// more.
func (s *Session) next(r *reader) (batch []event.Event, changed <-chan struct{}, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &s.hub
	batch = append(batch, h.events[r.at:]...)
	r.at = len(h.events)
	return batch, h.changed, h.closed
}
