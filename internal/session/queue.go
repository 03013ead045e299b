package session

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"zcoder/internal/event"
)

// Bounds of the input queue.
const (
	maxPending  = 100   // items that wait
	maxReceipts = 1000  // items that are remembered
	maxItemText = 65536 // bytes of one item
)

// States of an item.
const (
	accepted  = "accepted"
	consumed  = "consumed"
	discarded = "discarded"
)

// Errors of the queue that callers may test for.
var (
	ErrConflict  = errors.New("another message has this id")
	ErrQueueFull = errors.New("the queue is full")
	ErrNoItem    = errors.New("no such message waits")
)

var validItemID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// queue is the input that waits. The events of the log make it, so that a crash
// loses nothing and runs nothing twice: what consumes an item is the same record
// that uses it.
type queue struct {
	pending  []event.Item
	receipts map[string]event.Item
	order    []string // ids of receipts, oldest first
	paused   bool
}

// fold follows the events that add and consume items.
func (q *queue) fold(e event.Event) {
	switch {
	case e.Item == nil:
	case e.Kind == event.Queued:
		q.pending = append(q.pending, *e.Item)
		q.receipt(*e.Item, accepted)
	case e.Kind == event.Unqueued:
		q.remove(*e.Item, e.Item.State)
	case e.Kind == event.User:
		q.remove(*e.Item, consumed)
	}
}

func (q *queue) remove(item event.Item, state string) {
	q.pending = slices.DeleteFunc(q.pending, func(i event.Item) bool { return i.ID == item.ID })
	if have, ok := q.receipts[item.ID]; ok {
		item = have
	}
	q.receipt(item, state)
}

func (q *queue) receipt(item event.Item, state string) {
	if q.receipts == nil {
		q.receipts = map[string]event.Item{}
	}
	if _, known := q.receipts[item.ID]; !known {
		q.order = append(q.order, item.ID)
	}
	item.State = state
	q.receipts[item.ID] = item
	for len(q.order) > maxReceipts {
		delete(q.receipts, q.order[0])
		q.order = q.order[1:]
	}
}

// Enqueue adds input that is taken in its mode's time, and returns its state. The
// same id and content again returns the current state; other content is
// ErrConflict. The text is stored before Enqueue returns.
func (s *Session) Enqueue(item event.Item) (state string, err error) {
	if err := checkItem(item); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if have, known := s.queue.receipts[item.ID]; known {
		if have.Mode != item.Mode || have.Text != item.Text {
			return "", ErrConflict
		}
		return have.State, nil
	}
	if len(s.queue.pending) >= maxPending {
		return "", ErrQueueFull
	}
	item.State = ""
	s.emitLocked(event.Event{Kind: event.Queued, Item: &item})
	return accepted, nil
}

func checkItem(item event.Item) error {
	switch {
	case !validItemID.MatchString(item.ID):
		return fmt.Errorf("queue message %q: an id has 1 to 64 of A-Z a-z 0-9 _ -", item.ID)
	case item.Text == "" || len(item.Text) > maxItemText:
		return fmt.Errorf("queue message %q: its text must have 1 to %d bytes", item.ID, maxItemText)
	case item.Mode != event.Steer && item.Mode != event.FollowUp && item.Mode != event.Command:
		return fmt.Errorf("queue message %q: the mode %q is none of steer, follow_up, command", item.ID, item.Mode)
	}
	return nil
}

// Pending returns what waits, oldest first, and whether the queue is paused.
func (s *Session) Pending() (items []event.Item, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queue.pending), s.queue.paused
}

// Receipt returns the state of an item.
func (s *Session) Receipt(id string) (event.Item, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	item, ok := s.queue.receipts[id]
	return item, ok
}

// Drop discards an item that waits; ErrNoItem when it does not.
func (s *Session) Drop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range s.queue.pending {
		if item.ID == id {
			s.emitLocked(event.Event{Kind: event.Unqueued, Item: &event.Item{ID: id, State: discarded}})
			return nil
		}
	}
	return ErrNoItem
}

// PauseQueue stops taking items; ResumeQueue goes on.
func (s *Session) PauseQueue() { s.setPaused(true) }

// ResumeQueue lets items be taken again. It starts no turn.
func (s *Session) ResumeQueue() { s.setPaused(false) }

func (s *Session) setPaused(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue.paused = on
}

// steering takes the steering messages that wait, up to a command: a command holds
// what was queued after it. The caller's User event consumes each.
func (s *Session) steering() []event.Input {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []event.Input
	for _, item := range s.queue.pending {
		if s.queue.paused || item.Mode == event.Command {
			break
		}
		if item.Mode == event.Steer {
			list = append(list, inputOf(item))
		}
	}
	return list
}

func inputOf(item event.Item) event.Input {
	return event.Input{Text: item.Text, Item: &event.Item{ID: item.ID, Mode: item.Mode}}
}

// Next returns the input with which the next turn starts, if the queue is not
// paused and no command stands before it.
func (s *Session) Next() (event.Input, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.paused || len(s.queue.pending) == 0 || s.queue.pending[0].Mode == event.Command {
		return event.Input{}, false
	}
	return inputOf(s.queue.pending[0]), true
}

// ClaimCommand takes the command at the head of the queue. The claim is stored
// before it returns, so that the command never runs twice.
func (s *Session) ClaimCommand() (command string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.paused || len(s.queue.pending) == 0 || s.queue.pending[0].Mode != event.Command {
		return "", false
	}
	item := s.queue.pending[0]
	s.emitLocked(event.Event{Kind: event.Unqueued, Item: &event.Item{ID: item.ID, State: consumed}})
	s.syncLocked()
	return item.Text, true
}
