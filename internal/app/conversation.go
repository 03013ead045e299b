package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/event"
	"zcoder/internal/session"
	"zcoder/internal/shellread"
	"zcoder/internal/store"
)

// conversation is a session with what belongs to it alone: its gate, whose grant
// ends with it.
type conversation struct {
	*session.Session
	gate       *approval.Gate
	keeper     *keeper // nil when nothing is kept for undo
	undoNotice string
}

// Close ends the conversation and lets go of what is kept for it.
func (c *conversation) Close() error { return errors.Join(c.keeper.close(), c.Session.Close()) }

// start begins a new conversation.
func (w *workbench) start(unattended bool) (*conversation, error) {
	id := store.NewID(time.Now(), rand.Uint32())
	log, err := w.store.Create(id)
	if err != nil {
		return nil, err
	}
	return w.converse(id, log, nil, unattended), nil
}

func (w *workbench) converse(id string, log *store.Log, past []event.Event, unattended bool) *conversation {
	w.refresh()
	gate := &approval.Gate{Policy: w.policy}
	w.gate.Store(gate)
	c := &conversation{gate: gate}
	c.keeper, c.undoNotice = w.openKeeper(id)
	c.Session = session.New(session.Config{
		Info:       event.Session{ID: id, Workspace: w.ws.Root(), Profile: w.profile.Name, Model: w.model()},
		Log:        log,
		Gate:       gate,
		Unattended: unattended,
		Origin:     w.origin,
		Turn:       w.guided(c),
		Expand:     w.reporting(id, w.withResources(w.expander(c))),
		Adjust: func(in event.Input, cfg *agent.Config) {
			w.post.turnStarts(id, in, cfg)
			c.keeper.begin(in.Text, c.place())
			cfg.Before = c.keeper.before
		},
		EndTurn: func(end event.End) []string {
			notices := append(w.endTurn(), c.keeper.end(end.Changed)...)
			if !unattended {
				notices = appendSaid(notices, w.brain.grow(context.Background(), c.Known().Tokens, freeMemory))
			}
			return notices
		},
		Now:       time.Now,
		NewTurnID: newCounter("t"),
		// On a host a person looks at each turn's end before the next begins.
		PauseAfterTurn: w.profile.CommandsAlwaysAsk,
		Goals:          session.GoalConfig{Readers: w.readers, MaxRejections: w.v.Int("goal-max-rejections")},
	}, past)
	gate.Recorder = recorder{audit: w.audit, behind: c.Behind}
	w.guide.conv.Store(c)
	return c
}

// appendSaid adds a notice, if there is one.
func appendSaid(list []string, notice string) []string {
	if notice == "" {
		return list
	}
	return append(list, notice)
}

// endTurn ends what the turn's commands left running.
func (w *workbench) endTurn() []string {
	var notices []string
	for _, s := range w.tracker.EndTurn() {
		notices = append(notices, fmt.Sprintf("ended what a command left running: %s (pid %d)", s.Command, s.PID))
	}
	return append(notices, w.post.turnEnds()...)
}

// keepDetached reports whether what a command leaves running may stay: its text
// detaches it, and a person approved exactly this text.
func (w *workbench) keepDetached(r approval.Request) bool {
	gate := w.gate.Load()
	if gate == nil || !gate.ApprovedByPerson(r) {
		return false
	}
	reading := shellread.Read(r.Text, shellread.Options{Dialect: w.shell.Dialect(), Dir: r.Dir})
	return len(reading.Detached) > 0
}

func (w *workbench) model() string {
	_, name := w.brain.current()
	return name
}

// turn returns what the next turn runs with.
func (w *workbench) turn() (string, agent.Config) {
	system, set := w.stable()
	return system, agent.Config{
		Model: w.brain, Tools: set, Staged: w.v.String("tool-exposure") == "staged", Now: time.Now, NewID: newCallID, Prepare: w.brain.prepare,
		ModelName:         w.model(),
		KeepAlive:         w.v.String("keep-alive"),
		MaxOutput:         w.v.Int("max-output-tokens"),
		MaxRounds:         w.v.Int("max-rounds"),
		MaxTime:           w.v.Duration("max-time"),
		MaxResult:         w.v.Int("max-tool-output"),
		RequireFinish:     w.v.Bool("require-finish-tool"),
		IncompleteRetries: w.v.Int("incomplete-retry-limit"),
		Loops:             agent.LoopLimits{Repeat: w.v.Int("loop-repeat-limit"), Cycle: w.v.Int("loop-max-cycle")},
		Compact: agent.CompactLimits{
			Percent: w.v.Int("compact-percent"), MaxTokens: w.v.Int("compact-max-tokens"),
			KeepUser: w.v.Int("compact-keep-user-tokens"), KeepRecent: w.v.Int("compact-keep-recent-tokens"),
			MinYield: w.v.Int("compact-min-yield-tokens"), Retries: w.v.Int("compact-retry-limit"),
		},
	}
}

// newCallID makes an id that is unique over resumes too, and short, since some
// templates show it to the model.
func newCallID() string { return fmt.Sprintf("c%08x", rand.Uint32()) }

func newCounter(prefix string) func() string {
	start := time.Now().Unix()
	var n atomic.Int64
	return func() string { return fmt.Sprintf("%s%d_%d", prefix, start, n.Add(1)) }
}

// recorder is the gate's record. What could not be stored in the session must not
// be done either.
type recorder struct {
	audit  approval.Recorder
	behind func() bool
}

func (r recorder) Record(rec approval.Record) error {
	if r.behind() && rec.Kind != "end" {
		return errNotRecorded
	}
	return r.audit.Record(rec)
}
