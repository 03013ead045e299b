package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"zcoder/internal/event"
	"zcoder/internal/session"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// goalRequest is what `/goal …` asks for.
type goalRequest struct {
	verb      string // start, status, pause, resume, clear
	objective string
	tokens    int
}

func parseGoal(args string) (goalRequest, error) {
	args = strings.TrimSpace(args)
	switch args {
	case "", "status":
		return goalRequest{verb: "status"}, nil
	case "pause", "resume", "clear":
		return goalRequest{verb: args}, nil
	}
	r := goalRequest{verb: "start", objective: args}
	words := strings.Fields(args)
	for i, word := range words {
		value, joined := strings.CutPrefix(word, "--tokens=")
		if word != "--tokens" && !joined {
			continue
		}
		rest := words[i+1:]
		if !joined {
			if len(rest) == 0 {
				return r, withHint(errors.New("--tokens needs a number"), "/goal --tokens 50000 OBJECTIVE")
			}
			value, rest = rest[0], rest[1:]
		}
		n, err := strconv.Atoi(value)
		if err != nil || n <= 0 {
			return r, withHint(fmt.Errorf("--tokens %q is no positive number", value), "/goal --tokens 50000 OBJECTIVE")
		}
		r.tokens = n
		r.objective = strings.Join(append(append([]string(nil), words[:i]...), rest...), " ")
		break
	}
	if r.objective == "" {
		return r, withHint(errors.New("the objective is missing"), "/goal OBJECTIVE, with --tokens N for a budget")
	}
	return r, nil
}

func (d *desk) cmdGoal(ctx context.Context, ui repl.UI, args string) error {
	r, err := parseGoal(args)
	if err != nil {
		return err
	}
	switch r.verb {
	case "status":
		ui.Print(goalLine(d.conv().Goal()))
		return nil
	case "pause":
		return goalHint(d.conv().PauseGoal())
	case "clear":
		return goalHint(d.conv().ClearGoal())
	case "resume":
		if state := d.conv().Goal().State; state != "paused" && state != "blocked" && state != "budget_limited" {
			return goalHint(session.ErrNoGoal)
		}
	}
	if d.conv().Busy() {
		return withHint(session.ErrBusy, "/goal pause stops it; or wait for its end")
	}
	// The REPL runs the turn, so that keys, dialogs and the status line work as ever.
	ui.Submit("//goal " + args)
	return nil
}

func goalHint(err error) error {
	if errors.Is(err, session.ErrNoGoal) {
		return withHint(err, "/goal OBJECTIVE sets one")
	}
	return err
}

// Prompt runs a turn. A text that begins with /goal works on the goal instead,
// /queue resume goes on with the queue, and `! command` runs a command behind the gate,
// as they do when they come from a script or from another machine.
func (c *conversation) Prompt(ctx context.Context, in event.Input) (event.Reason, error) {
	if in.Peer != nil { // what another instance sends is never a command
		return c.Session.Prompt(ctx, in)
	}
	if in.Text == queueResume {
		return c.resumeQueue(ctx)
	}
	if command, ok := strings.CutPrefix(in.Text, "!"); ok {
		return c.direct(ctx, strings.TrimSpace(command))
	}
	args, isGoal := strings.CutPrefix(in.Text, "/goal ")
	if !isGoal {
		return c.Session.Prompt(ctx, in)
	}
	r, err := parseGoal(args)
	if err != nil {
		return "", err
	}
	switch r.verb {
	case "start":
		return c.StartGoal(ctx, r.objective, r.tokens)
	case "resume":
		reason, err := c.ResumeGoal(ctx)
		return reason, goalHint(err)
	}
	return "", withHint(fmt.Errorf("/goal %s starts no work", r.verb), "say /goal OBJECTIVE or /goal resume")
}

const queueResume = "/queue resume"

func (c *conversation) resumeQueue(ctx context.Context) (event.Reason, error) {
	c.ResumeQueue()
	next, ok := c.Next()
	if !ok {
		return "", errors.New("nothing waits that starts a turn")
	}
	return c.Session.Prompt(ctx, next)
}

func goalLine(g event.Goal) string {
	if g.State == "none" {
		return "no goal is set; /goal OBJECTIVE sets one"
	}
	line := fmt.Sprintf("goal %s: %s · %d tokens used", g.State, termtext.Line(g.Objective), g.Used)
	if g.Limit > 0 {
		line += fmt.Sprintf(" of %d", g.Limit)
	}
	if g.Rejections > 0 {
		line += fmt.Sprintf(" · rejected %d times", g.Rejections)
	}
	if g.Reason != "" {
		line += " · " + termtext.Line(g.Reason)
	}
	return line
}
