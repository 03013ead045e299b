package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"zcoder/internal/event"
)

// subscriber is one client that follows the conversation over a stream.
type subscriber struct {
	server *Server
	from   *follower
	who    visitor
	w      http.ResponseWriter
	rc     *http.ResponseController
	buf    bytes.Buffer // what is written next

	sent  int64 // number of the last event that was handed over
	told  int64 // number of the last news of a turn that was
	forms int64 // number of the last form that was
}

const (
	streamAhead = 256     // events that are read before they can be written
	streamChunk = 1 << 15 // bytes that are written at once
)

// stream answers GET /v1/stream until the client leaves, another conversation is the
// current one, the login of a browser is over, or the server ends. A client that takes nothing is cut off; it goes on by
// the number of the last event that it has.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q query, who visitor) {
	if c := connOf(r); c != nil {
		c.streams(true)
		defer c.streams(false)
	}
	u := &subscriber{server: s, from: s.follow(), who: who, w: w, rc: http.NewResponseController(w), sent: q.after}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	if q.id != "" && q.id != u.from.id {
		u.begin()
		u.message(msgSwitched, u.state())
		_ = u.flush()
		return
	}
	u.run(r.Context())
}

func (u *subscriber) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	events := make(chan event.Event, streamAhead)
	var pump sync.WaitGroup
	defer pump.Wait()
	defer cancel()
	pump.Go(func() {
		defer close(events)
		for e, err := range u.from.conv.Events(ctx, u.sent) {
			if err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	beat := time.NewTicker(u.server.limits.beat)
	defer beat.Stop()
	u.begin()
	for more := true; more; {
		changed, switched := u.news()
		if u.flush() != nil || switched {
			return
		}
		more = u.wait(ctx, events, changed, beat.C)
	}
	if ctx.Err() == nil { // the conversation was closed: another is the current one
		u.server.follow()
		u.news()
		_ = u.flush()
	}
}

// wait takes what comes next. It returns false when nothing more will come.
func (u *subscriber) wait(ctx context.Context, events <-chan event.Event, changed <-chan struct{}, beat <-chan time.Time) bool {
	select {
	case e, ok := <-events:
		for ok {
			u.event(e)
			if u.buf.Len() > streamChunk {
				return true
			}
			select {
			case e, ok = <-events:
				continue
			default:
			}
			return true
		}
		return false
	case <-changed:
	case <-beat:
		u.buf.WriteString(": alive\n\n")
	case <-ctx.Done():
		return false
	case <-u.who.ended:
		return false
	case <-u.server.over:
		return false
	}
	return true
}

// begin writes the state, with which every stream begins.
func (u *subscriber) begin() {
	u.told = u.server.newsCount.Load()
	u.message(msgState, u.state())
}

// state is what the server is at now.
func (u *subscriber) state() State {
	s := u.server
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Session: s.following.id, Seq: s.following.conv.LastSeq(), Run: s.runID, Last: s.last}
	if t := s.active(); t != nil {
		st.Turn = t.id
	}
	return st
}

// event writes one event, and before it the news of turns that it comes after.
func (u *subscriber) event(e event.Event) {
	if s := u.server; s.newsCount.Load() != u.told {
		s.mu.Lock()
		u.turns()
		s.mu.Unlock()
	}
	env := Envelope{Event: e}
	if e.Kind == event.Asked {
		env.Approval = u.approval(e)
	}
	if e.Kind == event.Asked && u.who.page != nil {
		u.write(msgEvent, e.Seq, pageEnvelope{env, u.who.page.Show(*e.Question)})
	} else {
		u.write(msgEvent, e.Seq, env)
	}
	u.sent = max(u.sent, e.Seq)
}

// approval is the id of a question, if that still waits.
func (u *subscriber) approval(e event.Event) string {
	s := u.server
	s.await(u.from, max(e.Seq, u.from.ready))
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.waiting(u.from, e.Question.CallID); p != nil {
		return p.id
	}
	return ""
}

// turns writes the news of turns that is due: the one before it and its events were
// written. The server's lock is held.
func (u *subscriber) turns() {
	for _, n := range u.server.turns {
		if n.number <= u.told {
			continue
		}
		if u.sent < n.last[u.from.id] {
			return
		}
		u.told = n.number
		u.message(msgState, n.state)
	}
}

// news writes what came beside events: news of turns, forms, and that another
// conversation is the current one, when all of this one was written. It returns the
// channel that says when to look again.
func (u *subscriber) news() (changed <-chan struct{}, switched bool) {
	s := u.server
	s.mu.Lock()
	defer s.mu.Unlock()
	u.turns()
	for _, f := range s.newForms(u.forms) {
		u.forms = f.number
		u.message(msgForm, f.shown)
	}
	if s.following.id != u.from.id && u.sent >= u.from.conv.LastSeq() {
		u.message(msgSwitched, State{Session: s.following.id, Seq: s.following.conv.LastSeq()})
		return nil, true
	}
	return s.changed, false
}

// newForms are the forms that wait after a number, in the order of asking. The lock is
// held.
func (s *Server) newForms(after int64) []*form {
	var list []*form
	for _, f := range s.forms {
		if f.number > after {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *form) int { return cmp.Compare(a.number, b.number) })
	return list
}

func (u *subscriber) message(name string, v any) { u.write(name, 0, v) }

// write adds a message; one with a number above 0 has that as its id.
func (u *subscriber) write(name string, id int64, v any) {
	data, err := encodeJSON(v)
	if err != nil { // every message is made of texts and numbers
		panic(err)
	}
	fmt.Fprintf(&u.buf, "event: %s\n", name)
	if id > 0 {
		fmt.Fprintf(&u.buf, "id: %d\n", id)
	}
	fmt.Fprintf(&u.buf, "data: %s\n\n", data)
}

// flush sends what was written. It blocks no longer than a reply may take.
func (u *subscriber) flush() error {
	if u.buf.Len() == 0 {
		return nil
	}
	err := u.rc.SetWriteDeadline(time.Now().Add(u.server.limits.write))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	_, err = u.w.Write(u.buf.Bytes())
	u.buf.Reset()
	if err == nil {
		err = u.rc.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	return err
}
