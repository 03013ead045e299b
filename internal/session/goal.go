package session

import (
	"context"
	"errors"
	"fmt"

	"zcoder/internal/agent"
	"zcoder/internal/event"
	"zcoder/tools"
)

// States of a goal.
const (
	goalNone      = "none"
	goalActive    = "active"
	goalVerifying = "verifying"
	goalPaused    = "paused"
	goalBlocked   = "blocked"
	goalLimited   = "budget_limited"
	goalComplete  = "complete"
)

// ErrNoGoal means that there is no goal to act on.
var ErrNoGoal = errors.New("there is no goal")

// GoalConfig is what goals need besides turns.
type GoalConfig struct {
	// Readers are the tools of the verifier: they only read.
	Readers []tools.Tool
	// MaxRejections is how many times in a row the verifier may refuse.
	MaxRejections int
}

// Goal returns the goal as it is; its State is "none" when there is none.
func (s *Session) Goal() event.Goal {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.goal.State == "" {
		return event.Goal{State: goalNone}
	}
	return s.goal
}

func (s *Session) setGoal(change func(*event.Goal)) event.Goal {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.goal
	change(&g)
	s.emitLocked(event.Event{Kind: event.GoalState, Goal: &g})
	return g
}

// StartGoal sets an objective, with a token budget if limit is not 0, and works on
// it until it is complete, blocked or stopped. It blocks that long.
func (s *Session) StartGoal(ctx context.Context, objective string, limit int) (event.Reason, error) {
	if s.Busy() {
		return "", ErrBusy
	}
	s.setGoal(func(g *event.Goal) { *g = event.Goal{Objective: objective, State: goalActive, Limit: limit} })
	return s.pursue(ctx, "Work on this objective until it is reached, then call finish: "+objective)
}

// ResumeGoal goes on with a goal that is paused, blocked or out of budget; the last
// loses its limit.
func (s *Session) ResumeGoal(ctx context.Context) (event.Reason, error) {
	if s.Busy() {
		return "", ErrBusy
	}
	switch s.Goal().State {
	case goalPaused, goalBlocked, goalLimited:
	default:
		return "", ErrNoGoal
	}
	g := s.setGoal(func(g *event.Goal) {
		if g.State == goalLimited {
			g.Limit = 0
		}
		g.State, g.Rejections, g.Reason = goalActive, 0, ""
	})
	return s.pursue(ctx, "Go on with the objective, then call finish: "+g.Objective)
}

// PauseGoal stops working on the goal, and the running turn with it.
func (s *Session) PauseGoal() error {
	switch s.Goal().State {
	case goalActive, goalVerifying:
	default:
		return ErrNoGoal
	}
	s.setGoal(func(g *event.Goal) { g.State, g.Reason = goalPaused, "by the user" })
	s.Cancel()
	return nil
}

// ClearGoal forgets the goal, and stops the turn that works on it.
func (s *Session) ClearGoal() error {
	switch s.Goal().State {
	case goalNone:
		return ErrNoGoal
	case goalActive, goalVerifying:
		s.Cancel()
	}
	s.setGoal(func(g *event.Goal) { *g = event.Goal{State: goalNone} })
	return nil
}

// pursue runs turns until the goal is no longer active.
func (s *Session) pursue(ctx context.Context, input string) (event.Reason, error) {
	// Only what the person wrote mentions files; the verifier's words do not.
	in := s.expand(ctx, event.Input{Text: input})
	for {
		end, err := s.goalTurn(ctx, in)
		if err != nil {
			return "", err
		}
		if s.Goal().State != goalActive {
			return end.Reason, nil
		}
		if end.Reason != event.Complete {
			s.stopGoal(end)
			return end.Reason, nil
		}
		feedback, done, err := s.verify(ctx, end)
		if err != nil || done {
			return end.Reason, err
		}
		in = event.Input{Text: feedback}
	}
}

// goalTurn is a turn in which finish is mandatory.
func (s *Session) goalTurn(ctx context.Context, in event.Input) (event.End, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return event.End{}, err
	}
	defer done()
	cfg, turn := s.prepare(ctx)
	cfg.RequireFinish = true
	if g := s.Goal(); g.Limit > 0 {
		cfg.MaxTokens = max(1, g.Limit-g.Used)
	}
	turn.Input = in
	s.adjust(event.Input{Text: s.Goal().Objective}, &cfg)
	end := agent.Run(ctx, cfg, turn)
	s.afterTurn(end)
	s.setGoal(func(g *event.Goal) { g.Used += end.FreshTokens })
	return end, nil
}

// stopGoal says why a turn that did not complete ends the work.
func (s *Session) stopGoal(end event.End) {
	s.setGoal(func(g *event.Goal) {
		g.Reason = end.Text
		switch end.Reason {
		case event.Blocked:
			g.State = goalBlocked
		case event.Budget:
			g.State = goalLimited
		default:
			g.State = goalPaused
		}
	})
}

// verify has the work judged. It returns what the worker must hear, or done.
func (s *Session) verify(ctx context.Context, end event.End) (feedback string, done bool, err error) {
	ctx, release, err := s.begin(ctx)
	if err != nil {
		return "", true, err
	}
	defer release()
	s.setGoal(func(g *event.Goal) { g.State = goalVerifying })
	cfg, turn := s.prepare(ctx)
	verdict, vend, verr := agent.Verify(ctx, cfg, turn, s.Goal().Objective, s.cfg.Goals.Readers)
	g := s.setGoal(func(g *event.Goal) {
		g.Used += vend.FreshTokens
		s.judge(g, verdict, verr)
	})
	return rejection(verdict), g.State != goalActive, nil
}

// judge moves the goal on after a verification.
func (s *Session) judge(g *event.Goal, v agent.Verdict, err error) {
	switch {
	case g.State != goalVerifying: // paused or cleared meanwhile
	case err != nil:
		g.State, g.Reason = goalPaused, err.Error()
	case v.Accepted:
		g.State, g.Reason = goalComplete, v.Reason
	default:
		g.Rejections++
		g.State, g.Reason = goalActive, v.Reason
		if g.Rejections >= s.cfg.Goals.MaxRejections {
			g.State = goalBlocked
			g.Reason = fmt.Sprintf("rejected %d times: %s", g.Rejections, v.Reason)
		} else if g.Limit > 0 && g.Used >= g.Limit {
			g.State = goalLimited
		}
	}
}

func rejection(v agent.Verdict) string {
	text := "An independent verifier rejected the work: " + v.Reason
	if v.MissingEvidence != "" {
		text += "\nMissing evidence: " + v.MissingEvidence
	}
	if v.NextAction != "" {
		text += "\nNext: " + v.NextAction
	}
	return text + "\nGo on, then call finish again."
}
