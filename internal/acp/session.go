package acp

import (
	"context"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

func sessionID(id string) sdk.SessionId { return sdk.SessionId(id) }

// session is a conversation that the editor has open. It does one thing at a time.
type session struct {
	a    *agent
	id   string
	dir  string // as the editor names it
	conv Conversation

	mu   sync.Mutex
	busy string             // what it does; empty: nothing
	idle chan struct{}      // closed when it does nothing
	halt context.CancelFunc // stops the prompt that runs; nil: none does
	feed *feed              // what follows the conversation; nil: nothing
}

func newSession(a *agent, conv Conversation, dir string) *session {
	idle := make(chan struct{})
	close(idle)
	return &session{a: a, id: conv.Info().ID, dir: dir, conv: conv, idle: idle}
}

// claim reserves the session for one thing, which what names: "runs a prompt".
func (s *session) claim(what string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy != "" {
		return refused("session %s %s already; wait for its end, or stop it with session/cancel", s.id, s.busy)
	}
	s.busy, s.idle = what, make(chan struct{})
	return nil
}

func (s *session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.halt = "", nil
	close(s.idle)
}

// begin claims the session for a prompt that stop can end.
func (s *session) begin(ctx context.Context) (context.Context, func(), error) {
	if err := s.claim("runs a prompt"); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.halt = cancel
	s.mu.Unlock()
	return ctx, func() { cancel(); s.release() }, nil
}

// stop ends the prompt that runs, if there is one. It does not wait.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halt != nil {
		s.halt()
	}
}

// close stops what runs, unless the caller claimed the session, and closes the
// conversation.
func (s *session) close() error {
	s.stop()
	s.mu.Lock()
	idle, claimed := s.idle, s.busy == reopening
	s.mu.Unlock()
	if !claimed {
		<-idle
	}
	s.unfollow()
	return s.conv.Close()
}

// follow sends what happens in the conversation after an event to the editor, from
// when told is closed on; nil is at once.
func (s *session) follow(after int64, told <-chan struct{}) {
	f := newFeed(s, after, told)
	s.mu.Lock()
	s.feed = f
	s.mu.Unlock()
}

// unfollow ends that. It waits for a moment only: an editor that reads nothing cannot
// hold it up.
func (s *session) unfollow() {
	s.mu.Lock()
	f := s.feed
	s.mu.Unlock()
	if f != nil {
		f.end()
	}
}

func (s *session) following() *feed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.feed
}

// shown is the last event that was sent.
func (s *session) shown() int64 { return s.following().last() }

// sent waits until the editor was sent everything up to an event. It ends early with
// ctx and with the connection.
func (s *session) sent(ctx context.Context, seq int64) {
	if f := s.following(); f != nil {
		f.await(ctx, seq)
	}
}

func (s *session) update(ctx context.Context, u sdk.SessionUpdate) error {
	return s.a.conn.SendNotification(ctx, sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: sessionID(s.id), Update: u})
}

// prompt runs a prompt to its end. took lets the next message be handled.
func (a *agent) prompt(ctx context.Context, p sdk.PromptRequest, took func()) (any, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	in, err := readPrompt(p.Prompt, s.dir, s.conv.Info().Workspace)
	if err != nil {
		return nil, err
	}
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	took()
	return s.run(ctx, in)
}

// run gives a prompt to the conversation and answers when the editor was sent all that
// came of it.
func (s *session) run(ctx context.Context, in event.Input) (any, error) {
	f := s.following()
	f.expect()
	reason, err := s.conv.Run(ctx, in, s.forms(ctx))
	s.sent(s.a.base, s.conv.LastSeq())
	out := f.outcome()
	switch {
	case ctx.Err() != nil:
		reason = event.Cancelled
	case err != nil && isCommand(in.Text):
		text := err.Error()
		if hint := hintOf(err); hint != "" {
			text += "; " + hint
		}
		if err := s.update(s.a.base, sdk.UpdateAgentMessageText(quote("error", text))); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case reason == event.Errored && !out.direct:
		return nil, failure(out.end)
	}
	return sdk.PromptResponse{StopReason: stopReason(reason), Usage: out.tokens()}, nil
}

// isCommand reports whether a prompt is a command of the person.
func isCommand(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") || strings.HasPrefix(text, "!")
}

// failure is what the editor is told of a turn that the model or its server ended.
func failure(end event.End) error {
	e := sdk.NewInternalError(nil)
	e.Message = end.Text
	if e.Message == "" {
		e.Message = "the turn failed"
	}
	if end.Hint != "" {
		e.Data = map[string]any{"hint": end.Hint}
	}
	return e
}

// stopReason maps the end of a turn. What the protocol has no word for is the end of
// the turn; the text says more.
func stopReason(r event.Reason) sdk.StopReason {
	switch r {
	case event.Cancelled:
		return sdk.StopReasonCancelled
	case event.Limited, event.Looped:
		return sdk.StopReasonMaxTurnRequests
	case event.Budget:
		return sdk.StopReasonMaxTokens
	}
	return sdk.StopReasonEndTurn
}

// reopening is what a session does that is closed in order to be opened anew.
const reopening = "is opened"
