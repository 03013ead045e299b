package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"zcoder/internal/event"
)

// Bounds of what is kept of a conversation.
const (
	maxFeed      = 512 << 20 // bytes of events
	trimFeed     = 32 << 20  // bytes after which pieces that everybody has seen are forgotten
	maxSeq       = 1 << 53   // what every JSON reader takes exactly
	maxAsks      = 256       // approvals that are remembered
	maxOutcomes  = 256
	maxFormsWait = 16
)

// feed holds the events of one conversation for subscribers, each of which reads at
// its own pace, and what else is known of it. One goroutine fills it.
type feed struct {
	host      string
	session   string
	grantable bool // a plain server takes grants for commands
	now       func() time.Time

	mu      sync.Mutex
	events  []kept
	size    int // bytes of events
	trimAt  int // bytes after which to trim
	readers map[*place]bool
	changed chan struct{} // closed and replaced when anything changes
	err     error         // why no more comes

	seq      int64  // of the newest stored event here
	known    int64  // of the newest stored event on the server
	run      string // of the server, as it calls it
	turn     string
	opened   int // streams so far
	stateOf  int // the stream that the state is of
	outcomes []outcome
	asks     []ask
	forms    []Form
}

// kept is an event with its size in bytes.
type kept struct {
	event.Event
	size int
}

// outcome is the end of a turn, which counts when the events up to it are here: the
// state that tells of it comes before them on a new stream.
type outcome struct {
	Outcome
	seq int64
}

// place is a subscriber's: the next event is events[at].
type place struct{ at int }

// ask is an approval that was asked for.
type ask struct {
	callID   string
	approval string // the id that an answer names
	digest   string
	sent     bool // an answer is on its way to a plain server
	settled  bool
	choice   string // of the Answered event, if there was one
}

func newFeed(host, session string, now func() time.Time) *feed {
	return &feed{host: host, session: session, now: now, readers: map[*place]bool{}, changed: make(chan struct{}), trimAt: trimFeed}
}

// touch wakes all who wait. The lock is held.
func (f *feed) touch() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// end says why no more comes; the first reason stands.
func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
		f.touch()
	}
}

// reason is why no more comes, nil while it may.
func (f *feed) reason() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// await blocks until done, which is called with the lock held, reports true. It
// returns why no more comes, or ctx's error.
func (f *feed) await(ctx context.Context, done func() bool) error {
	for {
		f.mu.Lock()
		ok, err, changed := done(), f.err, f.changed
		f.mu.Unlock()
		switch {
		case ok:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take adds an event that the server sent, unless it came before. Its error means
// that the other side is no server that can be followed.
func (f *feed) take(e Envelope, size int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check(e.Event); err != nil {
		return err
	}
	if q := e.Event.Question; e.Event.Kind == event.Asked {
		q.Host = f.host
		f.asked(ask{callID: q.CallID, approval: e.Approval, digest: q.Digest})
	}
	if !f.number(&e.Event) {
		return nil
	}
	f.note(e.Event)
	f.publish(e.Event, size)
	return f.roomLocked()
}

// room reports events that are more than a conversation can have.
func (f *feed) room() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.roomLocked()
}

func (f *feed) roomLocked() error {
	if f.size > maxFeed {
		return fmt.Errorf("the server sent more than %d MiB of events", maxFeed>>20)
	}
	return nil
}

// check reports an event that no conversation has.
func (f *feed) check(e event.Event) error {
	switch {
	case e.Seq < 0 || e.Seq > maxSeq || e.Seq == 0 && !unstored(e.Kind):
		return fmt.Errorf("the server sent an event of number %d", e.Seq)
	case !whole(e):
		return fmt.Errorf("the server sent an event %q without its content", clip(string(e.Kind), 40))
	case e.Kind == event.Opened && f.session != "" && e.Session.ID != f.session:
		return fmt.Errorf("the server sent events of another conversation (%q)", clip(e.Session.ID, maxIDBytes))
	}
	return nil
}

// unstored reports whether events of a kind may have the number of the stored event
// before them.
func unstored(k event.Kind) bool { return k.Live() || k == event.Warning }

// whole reports whether an event has what its kind names.
func whole(e event.Event) bool {
	switch e.Kind {
	case "":
		return false
	case event.Opened:
		return e.Session != nil
	case event.Progress:
		return e.State != nil
	case event.Reply:
		return e.Reply != nil
	case event.CallStart:
		return e.Call != nil
	case event.CallEnd:
		return e.Result != nil
	case event.Asked:
		return e.Question != nil && e.Question.CallID != ""
	case event.Answered:
		return e.Answer != nil
	case event.Queued, event.Unqueued:
		return e.Item != nil
	case event.GoalState:
		return e.Goal != nil
	case event.Relayed:
		return e.Peer != nil
	case event.TurnEnd:
		return e.End != nil
	}
	return true
}

// number decides whether an event is new, and gives one that is not stored the number
// of the one before it here.
func (f *feed) number(e *event.Event) bool {
	switch {
	case e.Kind.Live():
		e.Seq = f.seq
		return true
	case e.Seq > f.seq:
		f.seq = e.Seq
		f.known = max(f.known, e.Seq)
		return true
	case e.Seq == f.seq && e.Kind == event.Warning: // one that the server does not store
		for _, k := range slices.Backward(f.events) {
			if k.Seq != e.Seq {
				break
			}
			if k.Kind == e.Kind && k.Text == e.Text && k.Time.Equal(e.Time) {
				return false
			}
		}
		return true
	}
	return false
}

// note remembers what an event says of an approval.
func (f *feed) note(e event.Event) {
	switch e.Kind {
	case event.Answered:
		f.settle(e.Answer.CallID, e.Answer.Choice)
	case event.CallEnd:
		f.settle(e.Result.CallID, "")
	}
}

func (f *feed) settle(callID, choice string) {
	for i := range f.asks {
		if a := &f.asks[i]; a.callID == callID && !a.settled {
			a.settled, a.choice = true, choice
		}
	}
}

// asked remembers an approval, or its new id after a reconnect.
func (f *feed) asked(a ask) {
	for i := range f.asks {
		if have := &f.asks[i]; have.callID == a.callID && have.digest == a.digest {
			have.approval = withDefault(a.approval, have.approval)
			return
		}
	}
	f.asks = append(f.asks, a)
	f.asks = f.asks[max(0, len(f.asks)-maxAsks):]
}

// asking returns the newest approval of a call.
func (f *feed) asking(callID string) (ask, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.askingLocked(callID)
}

func (f *feed) askingLocked(callID string) (ask, bool) {
	for _, a := range slices.Backward(f.asks) {
		if a.callID == callID {
			return a, true
		}
	}
	return ask{}, false
}

// say shows the person something of the connection. It has no number of its own.
func (f *feed) say(kind event.Kind, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.publish(event.Event{Seq: f.seq, Time: f.now(), Kind: kind, Text: text}, len(text))
}

// emit adds an event that this side made from what a plain server sent.
func (f *feed) emit(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e.Time = f.now(); !e.Kind.Live() {
		f.seq++
		f.known = f.seq
	}
	e.Seq = f.seq
	f.note(e)
	f.publish(e, sizeOf(e))
}

// sizeOf is about what an event that was made here takes.
func sizeOf(e event.Event) int {
	n := 512 + len(e.Text)
	switch {
	case e.Reply != nil:
		n += len(e.Reply.Message.Content) + len(e.Reply.Message.Thinking)
	case e.Call != nil:
		n += len(e.Call.Args) + len(e.Call.Text)
	case e.Result != nil:
		n += len(e.Result.Text) + len(e.Result.Diff)
	case e.Question != nil:
		n += len(e.Question.Text)
	}
	return n
}

func (f *feed) publish(e event.Event, size int) {
	if e.Kind == event.TurnStart || f.size > f.trimAt {
		f.trim()
	}
	f.events = append(f.events, kept{e, size})
	f.size += size
	f.touch()
}

// trim forgets pieces and live events that every reader has seen and a later event
// repeats: those of turns that are over, and whatever is too much.
func (f *feed) trim() {
	seen := len(f.events)
	for r := range f.readers {
		seen = min(seen, r.at)
	}
	left := make([]kept, 0, len(f.events))
	size := 0
	for i, k := range f.events {
		if i >= seen || !k.Kind.Live() && k.Kind != event.Content && k.Kind != event.Thinking {
			left = append(left, k)
			size += k.size
		}
	}
	removed := len(f.events) - len(left)
	for r := range f.readers {
		r.at -= removed
	}
	f.events, f.size = left, size
	f.trimAt = max(trimFeed, 2*size)
}

// follow yields the events after a number; see Client.Events.
func (f *feed) follow(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r := f.subscribe(after)
		defer f.unsubscribe(r)
		for {
			over := ctx.Err()
			batch, changed, err := f.next(r)
			for _, e := range batch {
				if e.Seq < after || e.Seq == after && !e.Kind.Live() {
					continue // a feed that has just begun gets them late
				}
				if !yield(e, nil) {
					return
				}
			}
			if over != nil {
				err = over
			}
			var left *leftError
			switch {
			case len(batch) > 0 && over == nil:
				continue
			case errors.As(err, &left):
				changed = nil // whoever left it ends ctx
			case err != nil:
				yield(event.Event{}, err)
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}
}

func (f *feed) subscribe(after int64) *place {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &place{at: sort.Search(len(f.events), func(i int) bool { return f.events[i].Seq > after })}
	f.readers[r] = true
	return r
}

func (f *feed) unsubscribe(r *place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
}

// next takes what the reader has not seen, at most so many at once that trimming goes
// on meanwhile.
func (f *feed) next(r *place) (batch []event.Event, changed <-chan struct{}, err error) {
	const most = 1000
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; r.at < len(f.events) && len(batch) < most; r.at++ {
		batch = append(batch, f.events[r.at].Event)
	}
	return batch, f.changed, f.err
}

// state takes what the server says of itself.
func (f *feed) state(s State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case s.Seq < 0 || s.Seq > maxSeq:
		return fmt.Errorf("the server says that its newest event is number %d", s.Seq)
	case s.Session != f.session:
		return &SwitchedError{Session: clip(s.Session, maxIDBytes), Anew: f.run != "" && s.Run != "" && clip(s.Run, maxIDBytes) != f.run}
	case s.Seq < f.seq && f.stateOf != f.opened:
		return fmt.Errorf("the conversation on the server ends at event %d, and event %d was seen: it is not the same any more", s.Seq, f.seq)
	}
	f.known = max(f.known, s.Seq)
	f.run = withDefault(clip(s.Run, maxIDBytes), f.run)
	if turn := clip(s.Turn, maxIDBytes); turn != f.turn {
		f.turn, f.forms = turn, nil // a question ends with its command
	}
	f.stateOf = f.opened
	if s.Last != nil {
		f.over(outcome{*s.Last, s.Seq})
	}
	f.touch()
	return nil
}

func (f *feed) over(o outcome) {
	if !slices.ContainsFunc(f.outcomes, func(have outcome) bool { return have.Turn == o.Turn }) {
		f.outcomes = append(f.outcomes, o)
		f.outcomes = f.outcomes[max(0, len(f.outcomes)-maxOutcomes):]
	}
}

// ended looks for the end of a turn. The lock is held.
func (f *feed) ended(turn string) (Outcome, bool) {
	for _, o := range f.outcomes {
		if o.Turn == turn && o.seq <= f.seq {
			return o.Outcome, true
		}
	}
	return Outcome{}, false
}

// missed reports whether a turn is over and how is not known. opened is the number of
// streams when the server took the turn: an older one may tell what was before. The lock
// is held.
func (f *feed) missed(turn string, opened int) bool {
	told := slices.ContainsFunc(f.outcomes, func(o outcome) bool { return o.Turn == turn })
	return !told && f.turn != turn && f.stateOf > opened && f.seq >= f.known
}

// form takes a question of a slash command, once.
func (f *feed) form(q Form) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(f.forms, func(have Form) bool { return have.ID == q.ID }) {
		f.forms = append(f.forms, q)
		f.forms = f.forms[max(0, len(f.forms)-maxFormsWait):]
		f.touch()
	}
}

func (f *feed) lastSeq() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

func (f *feed) running() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turn
}

func (f *feed) position() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// begin counts a new stream.
func (f *feed) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
}

// oneLine makes text of the far side fit for a message.
func oneLine(text string, most int) string {
	return clip(strings.Join(strings.Fields(text), " "), most)
}
