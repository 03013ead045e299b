// Package session is one conversation: one turn at a time, its events in order to
// the log and then to subscribers, its open question, and its cancelling.
//
// It knows the loop and the log, and no frontend: the REPL, a one-shot run and a
// server all use the same four methods, Prompt, Cancel, Answer and Events.
package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// Log is where a session's events go. *store.Log is one.
type Log interface {
	Append(event.Event) error
	Sync() error
	Behind() bool
	Close() error
}

// Config is what a session needs. Log, Gate, Turn and Now are required.
type Config struct {
	Info event.Session
	Log  Log
	// Gate is this conversation's own. The session becomes its Asker, unless
	// Unattended is set.
	Gate       *approval.Gate
	Unattended bool
	// Origin is who types the prompts.
	Origin approval.Origin
	// Turn returns what the next turn runs with. The session sets Emit and Gate.
	Turn func() (system string, cfg agent.Config)
	// Adjust changes what one turn runs with, by the input that it starts with: for a
	// goal the objective. Nil: nothing.
	Adjust func(in event.Input, cfg *agent.Config)
	Now    func() time.Time
	// PauseAfterTurn pauses the queue after every turn.
	PauseAfterTurn bool
	Goals          GoalConfig
	// Expand completes an input before it enters the history, e.g. with what it
	// mentions. It may block on reading. Nil: inputs stay as they are.
	Expand func(ctx context.Context, in event.Input) event.Input
	// EndTurn is called after every turn with its end; what it returns is shown as
	// notices. Nil: nothing.
	EndTurn func(event.End) []string
	// NewTurnID returns an id that is unique in the session.
	NewTurnID func() string
}

// Session is a conversation. Its methods may be called from several goroutines.
type Session struct {
	cfg Config

	mu          sync.Mutex
	hub         hub
	seq         int64
	history     []chat.Message
	compactions int         // how often the history was replaced by a checkpoint
	known       agent.Known // what the server counted of the history
	opened      bool        // the header is in the log
	warned      bool        // that the log cannot be written
	cancel      context.CancelFunc
	skipped     bool // the turn was stopped so that the queue goes on
	question    *question
	queue       queue
	goal        event.Goal
}

// Errors that callers may test for.
var (
	ErrBusy    = errors.New("a turn is already running")
	ErrSettled = errors.New("the question is already settled")
)

// New starts a conversation, or goes on with the one that past holds.
func New(cfg Config, past []event.Event) *Session {
	s := &Session{cfg: cfg}
	s.hub.init()
	for _, e := range past {
		s.fold(e)
		s.seq = max(s.seq, e.Seq)
		s.opened = true
	}
	s.hub.load(past)
	s.queue.paused = len(s.queue.pending) > 0
	if !cfg.Unattended {
		cfg.Gate.Asker = s
	}
	s.announce()
	s.settle(past)
	if s.goal.State == goalActive || s.goal.State == goalVerifying {
		s.setGoal(func(g *event.Goal) { g.State, g.Reason = goalPaused, "the program was started anew" })
	}
	return s
}

// announce tells subscribers about the session. A new one's header waits for the
// first event that is worth a file.
func (s *Session) announce() {
	if !s.opened {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seq++
		s.hub.publish(s.header())
	}
}

func (s *Session) header() event.Event {
	info := s.cfg.Info
	return event.Event{Seq: 1, Time: s.cfg.Now(), Kind: event.Opened, Session: &info}
}

// settle ends what a crash left open: the reply that was being written, the calls
// without a result, and the turn.
func (s *Session) settle(past []event.Event) {
	left := interrupted(past)
	if left.turn == "" {
		return
	}
	if left.reply.Content != "" || left.reply.Thinking != "" {
		s.emit(event.Event{Kind: event.Reply, Turn: left.turn, Reply: &event.ModelReply{Message: left.reply, Partial: true}})
	}
	for _, c := range event.OpenCalls(s.history) {
		s.emit(event.Event{Kind: event.CallEnd, Turn: left.turn, Result: &event.Result{
			CallID: c.ID, Name: c.Name, Status: "skipped", Line: "interrupted",
			Text: "interrupted: the program ended before this call was finished. It may have run in part; look at the current state first.",
		}})
	}
	s.emit(event.Event{Kind: event.TurnEnd, Turn: left.turn, End: &event.End{
		Reason: event.Cancelled, Text: "interrupted: the program ended in the middle of this turn",
	}})
}

// leftOpen is what a log without a TurnEnd at its end holds.
type leftOpen struct {
	turn  string
	reply chat.Message
}

func interrupted(past []event.Event) leftOpen {
	turn := ""
	var content, thinking strings.Builder
	for _, e := range past {
		switch e.Kind {
		case event.Content:
			content.WriteString(e.Text)
		case event.Thinking:
			thinking.WriteString(e.Text)
		case event.TurnStart, event.Reply, event.TurnEnd:
			content.Reset()
			thinking.Reset()
		}
		switch e.Kind {
		case event.TurnStart:
			turn = e.Turn
		case event.TurnEnd:
			turn = ""
		}
	}
	return leftOpen{turn: turn, reply: chat.Message{Role: chat.Assistant, Content: content.String(), Thinking: thinking.String()}}
}

// Info describes the session.
func (s *Session) Info() event.Session { return s.cfg.Info }

// LastSeq is the number of the newest stored event.
func (s *Session) LastSeq() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// Compactions is how often the history was replaced by a checkpoint so far.
func (s *Session) Compactions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compactions
}

// Known is what the server counted of the history last.
func (s *Session) Known() agent.Known {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// History returns what the model would be sent, without the system prompt. The
// caller must not change it.
func (s *Session) History() []chat.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history
}

// Prompt runs one turn, and then those that the queue starts, and blocks until the
// last one's end, whose reason it returns. It returns ErrBusy when a turn is
// running. Cancelling ctx is the same as Cancel.
func (s *Session) Prompt(ctx context.Context, in event.Input) (event.Reason, error) {
	for {
		end, err := s.turn(ctx, in)
		if err != nil {
			return "", err
		}
		s.afterTurn(end)
		next, more := s.Next()
		if !more || ctx.Err() != nil {
			return end.Reason, nil
		}
		in = next
	}
}

func (s *Session) turn(ctx context.Context, in event.Input) (event.End, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return event.End{}, err
	}
	defer done()
	cfg, turn := s.prepare(ctx)
	turn.Input = s.expand(ctx, in)
	if in.Peer != nil {
		turn.Origin = approval.OriginPeer
	}
	s.adjust(in, &cfg)
	return agent.Run(ctx, cfg, turn), nil
}

// afterTurn tells what there is to tell at the end of a turn.
func (s *Session) afterTurn(end event.End) {
	if s.cfg.EndTurn != nil {
		for _, notice := range s.cfg.EndTurn(end) {
			s.emit(event.Event{Kind: event.Info, Text: notice})
		}
	}
}

// pauseAfter pauses the queue after an end that a person should look at. It comes before
// anybody sees the end. The lock is held.
func (s *Session) pauseAfter(end event.End) {
	stop := end.Reason != event.Complete && end.Reason != event.Blocked && !s.skipped
	if len(s.queue.pending) > 0 && (stop || s.cfg.PauseAfterTurn) {
		s.queue.paused = true
	}
	s.skipped = false
}

func (s *Session) adjust(in event.Input, cfg *agent.Config) {
	if s.cfg.Adjust != nil {
		s.cfg.Adjust(in, cfg)
	}
}

// expand leaves what another instance sent as it is: it mentions nothing here.
func (s *Session) expand(ctx context.Context, in event.Input) event.Input {
	if s.cfg.Expand == nil || in.Peer != nil {
		return in
	}
	return s.cfg.Expand(ctx, in)
}

// prepare is what a turn, or a compaction, runs with.
func (s *Session) prepare(ctx context.Context) (agent.Config, agent.Turn) {
	system, cfg := s.cfg.Turn()
	cfg.Emit, cfg.Gate = s.emit, s.cfg.Gate
	cfg.Steer = func() []event.Input {
		list := s.steering()
		for i := range list {
			list[i] = s.expand(ctx, list[i])
		}
		return list
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return cfg, agent.Turn{
		ID: s.cfg.NewTurnID(), Origin: s.cfg.Origin, System: system, History: s.history, Known: s.known,
	}
}

// Direct runs one call that a person asked for in writing, as a turn of its own. It
// returns ErrBusy when a turn is running.
func (s *Session) Direct(ctx context.Context, c chat.ToolCall, record func(tools.Result) string) (event.Reason, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	cfg, turn := s.prepare(ctx)
	end := agent.Direct(ctx, cfg, turn, c, record)
	s.afterTurn(end)
	return end.Reason, nil
}

// Rewind makes the history end after its first n records, as if what came later had
// not been said. The log keeps it. It returns ErrBusy during a turn.
func (s *Session) Rewind(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return ErrBusy
	}
	if n < 0 || n > len(s.history) {
		return fmt.Errorf("rewind to record %d of %d: there is none", n, len(s.history))
	}
	s.emitLocked(event.Event{Kind: event.Compacted, Messages: s.history[:n:n], Text: event.Rewound})
	return nil
}

// Compact shortens the history now. It returns ErrBusy during a turn.
func (s *Session) Compact(ctx context.Context) error {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	cfg, turn := s.prepare(ctx)
	return agent.Compact(ctx, cfg, turn)
}

func (s *Session) begin(ctx context.Context) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return nil, nil, ErrBusy
	}
	ctx, cancel := context.WithCancel(ctx)
	s.cancel, s.skipped = cancel, false
	return ctx, func() {
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		cancel()
		s.sync()
	}, nil
}

// Cancel stops the running turn, if there is one, and pauses the queue. It does not
// wait for the turn's end.
func (s *Session) Cancel() { s.stop(false) }

// Skip stops the running turn and goes on with the queue.
func (s *Session) Skip() { s.stop(true) }

func (s *Session) stop(goOn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.skipped = goOn
		s.cancel()
	}
}

// Busy reports whether a turn is running.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancel != nil
}

// Emit adds an event from outside a turn: a person's own command, a notice, a title.
func (s *Session) Emit(e event.Event) { s.emit(e) }

// emit stores the event, then shows it. Live events are only shown.
func (s *Session) emit(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitLocked(e)
}

func (s *Session) emitLocked(e event.Event) {
	e.Time = s.cfg.Now()
	if e.Kind.Live() {
		e.Seq = s.seq
		s.hub.publish(e)
		return
	}
	s.seq++
	e.Seq = s.seq
	s.store(e)
	s.fold(e)
	if e.Kind == event.TurnEnd {
		s.pauseAfter(*e.End)
	}
	s.hub.publish(e)
	if e.Kind == event.CallEnd || e.Kind == event.TurnEnd {
		s.syncLocked()
	}
}

// fold adds the event to the history, and notes what the server counted of it.
func (s *Session) fold(e event.Event) {
	switch {
	case e.Kind == event.GoalState:
		s.goal = *e.Goal
	case e.Kind == event.Compacted:
		if e.Text != event.Rewound {
			s.compactions++
		}
		s.known = agent.Known{}
	case e.Kind == event.Reply && e.Reply.Usage.PromptTokens > 0:
		s.known = agent.Known{Tokens: e.Reply.Usage.PromptTokens, Messages: len(s.history), Prefix: e.Reply.Prefix}
	}
	s.history = event.Append(s.history, e)
	s.queue.fold(e)
}

// store hands the event to the kernel. When that fails the session goes on in
// memory, says so once, and tries again with the next event.
func (s *Session) store(e event.Event) {
	var err error
	if !s.opened && e.Kind != event.Opened {
		s.opened = true
		err = s.cfg.Log.Append(s.header())
	}
	if aerr := s.cfg.Log.Append(e); aerr != nil {
		err = aerr
	}
	s.tell(err)
}

// tell warns once when the log cannot be written, and says when it can be again.
func (s *Session) tell(err error) {
	behind := err != nil
	if behind == s.warned {
		return
	}
	s.warned = behind
	text := "the session is stored again"
	if behind {
		text = fmt.Sprintf("the session cannot be stored (%v): it goes on in memory, and nothing but reading is allowed until it can be", err)
	}
	s.hub.publish(event.Event{Seq: s.seq, Time: s.cfg.Now(), Kind: event.Warning, Text: text})
}

func (s *Session) sync() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.syncLocked()
}

func (s *Session) syncLocked() {
	if s.opened {
		s.tell(s.cfg.Log.Sync())
	}
}

// Behind reports whether events wait to be stored.
func (s *Session) Behind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cfg.Log.Behind()
}

// Close ends the subscriptions and the log. A running turn must have ended.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hub.close()
	return s.cfg.Log.Close()
}
