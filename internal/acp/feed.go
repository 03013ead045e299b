package acp

import (
	"context"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

// feed sends the events of a conversation to the editor, in their order, and asks what
// they ask.
type feed struct {
	s      *session
	past   int64 // the last event from before: what it asked is settled
	cancel context.CancelFunc
	ended  chan struct{}

	// Of the feed's own goroutine.
	tell stream
	asks sync.WaitGroup
	open map[string]context.CancelFunc // questions that wait, by call

	mu      sync.Mutex
	seq     int64         // the last event that was sent
	changed chan struct{} // closed and replaced with seq
	own     bool          // the next request is the prompt, which the editor shows itself
	out     outcome
}

// outcome is what a prompt came to.
type outcome struct {
	end    event.End // of its last turn
	direct bool      // that was a command of the person
	usage  sdk.Usage
}

func (o outcome) tokens() *sdk.Usage {
	if o.usage.TotalTokens == 0 {
		return nil
	}
	return &o.usage
}

func newFeed(s *session, after int64, told <-chan struct{}) *feed {
	ctx, cancel := context.WithCancel(s.a.base)
	f := &feed{
		s: s, past: s.conv.LastSeq(), cancel: cancel, ended: make(chan struct{}), seq: after,
		tell: newStream(s.conv.Info().Workspace), open: map[string]context.CancelFunc{}, changed: make(chan struct{}),
	}
	go f.run(ctx, after, told)
	return f
}

// run sends until ctx ends or the conversation is closed.
func (f *feed) run(ctx context.Context, after int64, told <-chan struct{}) {
	defer close(f.ended)
	defer f.asks.Wait()
	defer f.cancel()
	if told != nil {
		select {
		case <-told:
		case <-ctx.Done():
			return
		}
	}
	if f.send(ctx, commandsUpdate(f.s.conv.Commands())) != nil {
		return
	}
	for e, err := range f.s.conv.Events(ctx, after) {
		if err != nil || f.take(ctx, e) != nil {
			return
		}
	}
}

// end ends the feed and waits for it, but not for an editor that does not read.
func (f *feed) end() {
	f.cancel()
	select {
	case <-f.ended:
	case <-time.After(endPatience):
	}
}

func (f *feed) send(ctx context.Context, updates ...sdk.SessionUpdate) error {
	for _, u := range updates {
		if err := f.s.update(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// take handles one event.
func (f *feed) take(ctx context.Context, e event.Event) error {
	past := e.Seq <= f.past && !e.Kind.Live()
	if !(e.Kind == event.User && e.Item == nil && f.shownAlready()) {
		if err := f.send(ctx, f.tell.updates(e, past)...); err != nil {
			return err
		}
	}
	switch {
	case past:
	case e.Kind == event.Asked:
		f.ask(ctx, *e.Question)
	case e.Kind == event.Answered:
		f.settled(e.Answer.CallID)
	case e.Kind == event.TurnEnd:
		for id := range f.open {
			f.settled(id)
		}
	}
	f.note(e, past)
	return nil
}

// ask asks the editor, while events go on.
func (f *feed) ask(ctx context.Context, q event.Question) {
	ctx, cancel := context.WithCancel(ctx)
	f.open[q.CallID] = cancel
	call := f.tell.calls[q.CallID]
	f.asks.Add(1)
	go func() {
		defer f.asks.Done()
		defer cancel()
		f.s.decide(ctx, q, call)
	}()
}

// settled takes back a question that has its answer.
func (f *feed) settled(callID string) {
	if cancel := f.open[callID]; cancel != nil {
		cancel()
		delete(f.open, callID)
	}
}

// note keeps how far the editor is, and what the prompt came to.
func (f *feed) note(e event.Event, past bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case past:
	case e.Kind == event.TurnStart:
		f.out.direct = false
	case e.Kind == event.CallEnd && e.Result.Direct:
		f.out.direct = true
	case e.Kind == event.TurnEnd:
		f.out.end = *e.End
	case e.Kind == event.Reply:
		u := e.Reply.Usage
		f.out.usage.InputTokens += u.PromptTokens
		f.out.usage.OutputTokens += u.OutputTokens
		f.out.usage.TotalTokens += u.PromptTokens + u.OutputTokens
	}
	if e.Seq > f.seq {
		f.seq = e.Seq
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// expect says that a prompt begins.
func (f *feed) expect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.own, f.out = true, outcome{}
}

func (f *feed) shownAlready() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.own
	f.own = false
	return own
}

func (f *feed) outcome() outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.out
}

func (f *feed) last() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// await waits until an event was sent.
func (f *feed) await(ctx context.Context, seq int64) {
	for {
		f.mu.Lock()
		done, changed := f.seq >= seq, f.changed
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-f.ended:
			return
		case <-ctx.Done():
			return
		}
	}
}
