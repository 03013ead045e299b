// Package agent is the loop: it asks a model, plans the calls of its reply, has the
// gate authorise them, does them in the model's order and goes on until the turn
// has its one end.
//
// It keeps nothing between turns and knows no provider, no frontend and no disk:
// the model, the gate and the event sink come in through Config. internal/session
// calls it.
package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// Model answers requests. It is called by one goroutine at a time; emit is called
// only while Chat runs. Its error is a *chat.Error or the context's.
type Model interface {
	Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)
}

// Gate authorises requests and records how they ended. *approval.Gate is one.
type Gate interface {
	Authorize(ctx context.Context, r approval.Request) (approval.Permit, error)
	Finished(r approval.Request, outcome string, took time.Duration) error
}

// Setup is what a turn finds out about its model before the first request. The zero
// value knows nothing and leaves all to the server.
type Setup struct {
	Window       int    // context window in tokens that every request names
	Loaded       bool   // the model is in memory already
	Think        string // as in chat.Request
	NoThink      string // what Think is for side requests: "off", or "" for a model without thinking
	KeepThinking bool   // the model family wants its thinking back in the history
	Notice       string // for the person, or ""
	// Tools replaces the configured tools, for a small window. Nil keeps them.
	Tools *tools.Registry
	// System replaces the system prompt along with the tools. Empty keeps it.
	System string
}

// Config is what a turn runs with. Zero limits mean none, except where stated.
type Config struct {
	Model Model
	Gate  Gate
	Tools *tools.Registry
	// Emit takes each event in order. An event is stored before Emit returns. Seq,
	// Time and Turn are set by whoever takes it.
	Emit func(event.Event)
	// Now is the clock.
	Now func() time.Time
	// NewID returns a fresh call id.
	NewID func() string
	// Prepare runs once at the start of a turn. Its error, a *chat.Error, ends the
	// turn. Nil: the zero Setup.
	Prepare func(context.Context) (Setup, error)
	// Notes returns what the model (Note) and the person (Info, Warning) must be told
	// after a round, given the requests that were authorised in it. Nil: nothing.
	Notes func([]approval.Request) []event.Event
	// Carry returns records of before, a history that is about to be shortened, that
	// must stay and that after lacks. They become notes. Nil: none.
	Carry func(before, after []chat.Message) []string
	// Before is called when an action that may change something is about to run, and
	// blocks until that can be undone. What it returns is a warning. Nil: nothing.
	Before func(context.Context, approval.Request) string
	// Steer returns the input that came while the turn ran, each once. It is called
	// after a round's tools and before an answer ends the turn. Nil: none comes.
	Steer func() []event.Input

	ModelName     string
	KeepAlive     string
	MaxOutput     int           // tokens of one reply; 0 leaves it to the server
	MaxRounds     int           // rounds of one turn
	MaxTime       time.Duration // of one turn
	MaxResult     int           // characters of one tool result that the model gets
	MaxTokens     int           // of one turn: tokens written, and read for the first time
	RequireFinish bool          // a reply without calls does not end the turn
	OneCall       bool          // of several calls in a reply only the first runs
	Staged        bool          // the model chooses the phase of a turn before it gets tools
	// IncompleteRetries bounds corrective requests in a row.
	IncompleteRetries int
	Loops             LoopLimits
	Compact           CompactLimits
}

// Turn is one turn's input.
type Turn struct {
	ID      string
	Origin  approval.Origin
	System  string
	History []chat.Message // without the system prompt; the loop appends to a copy
	Input   event.Input
	Known   Known // what the server counted of History, if anything
}

// Run drives one turn to its end. It emits TurnStart first and TurnEnd last, and
// returns what TurnEnd says. It blocks until then; cancelling ctx ends the turn as
// cancelled after the running call was stopped.
func Run(ctx context.Context, cfg Config, t Turn) event.End {
	r := newRun(cfg, t)
	ctx, stop := r.deadline(ctx)
	defer stop()
	r.emit(event.Event{Kind: event.TurnStart})
	r.input(t.Input)
	end := r.rounds(ctx)
	end = r.facts(end)
	r.emit(event.Event{Kind: event.TurnEnd, End: &end})
	return end
}

// Compact shortens the history outside a turn, as a person asks for it. It emits
// what it did and returns why it did nothing.
func Compact(ctx context.Context, cfg Config, t Turn) error {
	r := newRun(cfg, t)
	if err := r.prepare(ctx); err != nil {
		return err
	}
	return r.compact(ctx, true)
}

// run is the state of one turn.
type run struct {
	cfg     Config
	turn    Turn
	history []chat.Message
	sent    []chat.Message // the newest request's; nil when the next one does not extend it
	start   time.Time
	setup   Setup
	sum     event.End // facts as they are gathered

	retries    int  // corrective requests in a row
	nudged     bool // a call in prose was pointed out
	withheld   bool // a patch was rejected: blunt tools are withheld
	loops      loopDetector
	meter      meter
	prefix     string // of the requests, as in Known
	lastPrompt int    // tokens of the request before, also of the turn before
	rearm      int    // size in tokens below which compaction does not start again

	entered []approval.Request // authorised in this round
	dropped int                // notes that the last shortening had no room for
}

func newRun(cfg Config, t Turn) *run {
	return &run{
		cfg:     cfg,
		turn:    t,
		history: append([]chat.Message(nil), t.History...),
		start:   cfg.Now(),
		loops:   loopDetector{limits: cfg.Loops},
	}
}

// errTimeUp is the cause with which the turn's deadline ends its context.
var errTimeUp = errors.New("the turn's time is up")

func (r *run) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.cfg.MaxTime <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, r.cfg.MaxTime, errTimeUp)
}

// emit folds the event into the turn's history and hands it on.
func (r *run) emit(e event.Event) {
	e.Turn = r.turn.ID
	r.history = event.Append(r.history, e)
	if e.Kind == event.Compacted {
		r.sent = nil
	}
	r.cfg.Emit(e)
}

func (r *run) input(in event.Input) {
	if in.Peer != nil {
		r.emit(event.Event{Kind: event.Relayed, Peer: in.Peer})
		r.note(in.Text)
		return
	}
	r.before(in)
	r.emit(event.Event{Kind: event.User, Text: in.Text, Images: in.Images, Item: in.Item})
}

// steer takes the input that came meanwhile and reports whether there was any.
func (r *run) steer() bool {
	if r.cfg.Steer == nil {
		return false
	}
	list := r.cfg.Steer()
	for _, in := range list {
		r.input(in)
	}
	return len(list) > 0
}

func (r *run) note(text string) { r.emit(event.Event{Kind: event.Note, Text: text}) }

// rounds goes on until the turn ends.
func (r *run) rounds(ctx context.Context) event.End {
	if err := r.prepare(ctx); err != nil {
		return r.failed(ctx, err)
	}
	if end, over := r.route(ctx); over {
		return end
	}
	r.settlePrefix()
	for {
		if end, over := r.limits(ctx); over {
			return end
		}
		r.sum.Rounds++
		reply, err := r.generate(ctx)
		if err != nil {
			return r.failed(ctx, err)
		}
		end, over := r.take(ctx, reply)
		if over {
			return end
		}
	}
}

func (r *run) prepare(ctx context.Context) error {
	if r.cfg.Prepare != nil {
		setup, err := r.cfg.Prepare(ctx)
		if err != nil {
			return err
		}
		r.setup = setup
	}
	if r.setup.Tools != nil {
		r.cfg.Tools = r.setup.Tools
	}
	if r.setup.System != "" {
		r.turn.System = r.setup.System
	}
	if r.setup.Window > 0 && r.cfg.MaxOutput > r.setup.Window/2 {
		r.cfg.MaxOutput = r.setup.Window / 2
	}
	if r.setup.Notice != "" {
		r.emit(event.Event{Kind: event.Warning, Text: r.setup.Notice})
	}
	r.meter = newMeter(r.turn.System, r.cfg.Tools.Specs(), r.turn.Known)
	return nil
}

func (r *run) limits(ctx context.Context) (event.End, bool) {
	switch {
	case ctx.Err() != nil:
		return r.stopped(ctx), true
	case r.cfg.MaxRounds > 0 && r.sum.Rounds >= r.cfg.MaxRounds:
		return event.End{Reason: event.Limited, Text: fmt.Sprintf("stopped after %d rounds (--max-rounds)", r.cfg.MaxRounds), Hint: "say \"go on\" to continue"}, true
	case r.cfg.MaxTokens > 0 && r.sum.FreshTokens >= r.cfg.MaxTokens:
		return event.End{Reason: event.Budget, Text: fmt.Sprintf("stopped: the budget of %d tokens is used", r.cfg.MaxTokens)}, true
	}
	return event.End{}, false
}

// stopped is the end of a turn whose context ended.
func (r *run) stopped(ctx context.Context) event.End {
	if errors.Is(context.Cause(ctx), errTimeUp) {
		return event.End{Reason: event.Limited, Text: fmt.Sprintf("stopped after %s (--max-time)", r.cfg.MaxTime), Hint: "say \"go on\" to continue"}
	}
	return event.End{Reason: event.Cancelled, Text: "stopped"}
}

// failed is the end of a turn whose model request failed.
func (r *run) failed(ctx context.Context, err error) event.End {
	if ctx.Err() != nil {
		return r.stopped(ctx)
	}
	end := event.End{Reason: event.Errored, Text: err.Error()}
	var failure *chat.Error
	if errors.As(err, &failure) {
		end.Hint = failure.Hint
	}
	return end
}

// take decides what a reply means: calls to run, an answer that ends the turn, or
// something to correct.
func (r *run) take(ctx context.Context, reply chat.Reply) (event.End, bool) {
	if len(reply.Message.Calls) > 0 {
		r.retries = 0
		return r.batch(ctx, reply.Message.Calls)
	}
	if trouble := r.trouble(reply); trouble != "" {
		return r.correct(trouble, reply)
	}
	return event.End{Reason: event.Complete}, !r.steer()
}

// facts completes an end with what happened in the turn.
func (r *run) facts(end event.End) event.End {
	sum := r.sum
	sum.Reason, sum.Text, sum.Hint = end.Reason, end.Text, end.Hint
	sum.Took = r.cfg.Now().Sub(r.start)
	return sum
}
