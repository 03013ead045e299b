// Package shell holds the tool run_command: a shell command of the model, run in
// the workspace.
//
// It knows which shell runs it, with which flags and environment, and how its end
// is told to a model. Running and ending processes is package proc's business,
// whether a command may run the gate's, what it does package shellread's. The
// application makes the tool; the loop calls it.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/proc"
	"zcoder/internal/termtext"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Options configure run_command. The zero value runs /bin/sh with an empty
// environment and the default limits, and ends what a command leaves running.
type Options struct {
	Shell Program
	// Env is the user's environment without secrets; New makes the commands' own
	// from it with CommandEnv.
	Env []string
	// MaxOutput is the most bytes of one result; 0 is 32768.
	MaxOutput int
	// Default and Ceiling are the time a command gets if it asks for none, and the
	// most it can ask for, in whole seconds; 0 is 120 s and 3600 s.
	Default, Ceiling time.Duration
	// Tracker takes what commands leave running, until the end of the turn.
	Tracker *proc.Tracker
	// KeepDetached reports whether what a command leaves running stays after the
	// turn: its text detaches it and a person approved exactly this request. It is
	// asked when the command is about to run. Nil is never.
	KeepDetached func(approval.Request) bool
}

const (
	defaultMaxOutput = 32768
	defaultTime      = 120 * time.Second
	defaultCeiling   = 3600 * time.Second
	// noteRoom is kept free for the lines around the output, in bytes.
	noteRoom = 1024
	// maxCommand is the longest argument that Linux passes to a program, in bytes,
	// less its final NUL (MAX_ARG_STRLEN).
	maxCommand = 131071
	// maxSummary bounds the command in a summary, in runes.
	maxSummary = 100
)

type runner struct {
	w   *workspace.Workspace
	o   Options
	env []string
}

// New returns the tool run_command for a workspace.
func New(w *workspace.Workspace, o Options) tools.Tool {
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	if o.Ceiling <= 0 {
		o.Ceiling = defaultCeiling
	}
	if o.Default <= 0 {
		o.Default = defaultTime
	}
	o.Default = min(o.Default, o.Ceiling)
	return runner{w: w, o: o, env: CommandEnv(o.Env)}
}

// Spec names the shell, since what is right differs between shells.
func (r runner) Spec() tools.Spec {
	about := "Run a shell command (" + r.o.Shell.Name() + ") without terminal or input; returns exit code and output."
	if r.o.Shell.Name() == "zsh" {
		about += " A glob without a match fails: quote it."
	}
	return tools.Spec{
		Name:        "run_command",
		Description: about + " Background processes end with the turn.",
		Params: []tools.Param{
			{Name: "command", Type: tools.String, Required: true, Aliases: []string{"cmd", "command_line", "shell_command", "script"}},
			{Name: "cwd", Type: tools.String, Description: "default .", Aliases: []string{"dir", "workdir", "directory", "working_directory", "working_dir"}},
			{Name: "timeout_seconds", Type: tools.Integer, Description: fmt.Sprintf("default %d, at most %d", seconds(r.o.Default), seconds(r.o.Ceiling)),
				Min: 1, Max: seconds(r.o.Ceiling), Aliases: []string{"timeout", "timeout_secs", "timeout_sec"}},
		},
	}
}

func seconds(d time.Duration) int { return int(d / time.Second) }

// Plan checks the call and describes it; what is approved is the command byte by
// byte, in a directory inside the workspace.
func (r runner) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	command := call.Args.Text("command")
	if err := checkCommand(command); err != nil {
		return tools.Action{}, err
	}
	limit, err := r.limit(call.Args)
	if err != nil {
		return tools.Action{}, err
	}
	cwd := "."
	if text := call.Args.Text("cwd"); text != "" {
		cwd = text
	}
	dir, err := r.directory(cwd)
	if err != nil {
		return tools.Action{}, err
	}
	req := approval.Request{
		CallID:  call.ID,
		Tool:    "run_command",
		Effect:  approval.Exec,
		Summary: "run_command " + firstLine(termtext.MarkBlanks(strings.TrimSpace(command))),
		Text:    command,
		Shell:   r.o.Shell.Argv(),
		Dir:     dir.Abs(),
		Timeout: limit.String(),
		Args:    string(call.Args.JSON()),
	}
	return tools.NewRequestAction(req, func(ctx context.Context, req approval.Request, progress tools.Progress) tools.Result {
		again, err := r.directory(cwd)
		if err != nil || again.Abs() != dir.Abs() || !os.SameFile(again.Info(), dir.Info()) {
			return tools.Fail("not run: the directory %q changed since the command was approved; call run_command again", cwd)
		}
		return r.run(ctx, req, limit, progress)
	}), nil
}

func checkCommand(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return errors.New("the command is empty; give the text to run")
	case strings.IndexByte(command, 0) >= 0:
		return errors.New(`the command holds a NUL byte, which no program can get; write \0 with printf inside the command instead`)
	case len(command) > maxCommand:
		return fmt.Errorf("the command is %d bytes long and at most %d can be passed on; write a script with write_file and run that", len(command), maxCommand)
	}
	return nil
}

func (r runner) limit(args tools.Args) (time.Duration, error) {
	n, most := args.Int("timeout_seconds", seconds(r.o.Default)), seconds(r.o.Ceiling)
	if n < 1 || n > most {
		return 0, fmt.Errorf("timeout_seconds is %d; it counts seconds, from 1 to %d", n, most)
	}
	return time.Duration(n) * time.Second, nil
}

func (r runner) directory(cwd string) (workspace.Path, error) {
	p, err := r.w.Resolve(cwd)
	switch {
	case err != nil:
		return p, fmt.Errorf("cwd: %w", err)
	case !p.Exists():
		return p, fmt.Errorf("cwd %q does not exist; give a directory of the workspace, or leave cwd out", cwd)
	case !p.Info().IsDir():
		return p, fmt.Errorf("cwd %q is not a directory; give a directory of the workspace, or leave cwd out", cwd)
	}
	return p, nil
}

// firstLine returns the beginning of a command as one line.
func firstLine(command string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(command), "\n")
	line = strings.TrimRight(line, " \t\r")
	if utf8.RuneCountInString(line) > maxSummary {
		return string([]rune(line)[:maxSummary]) + "…"
	}
	if strings.TrimSpace(rest) != "" {
		return line + " …"
	}
	return line
}

func (r runner) run(ctx context.Context, req approval.Request, limit time.Duration, progress tools.Progress) tools.Result {
	keep := r.o.KeepDetached != nil && r.o.KeepDetached(req)
	out, err := proc.Run(ctx, proc.Spec{
		Argv:         append(req.Shell[:len(req.Shell):len(req.Shell)], req.Text),
		Dir:          req.Dir,
		Env:          append(r.env[:len(r.env):len(r.env)], "PWD="+req.Dir),
		MaxOutput:    max(r.o.MaxOutput-noteRoom, r.o.MaxOutput/2),
		OnOutput:     func(b []byte) { progress(string(b)) },
		Timeout:      limit,
		Tracker:      r.o.Tracker,
		KeepDetached: keep,
	})
	if err != nil {
		return tools.Fail("not run: %v", err)
	}
	return result(out, ending{limit: limit, kept: keep, tracked: r.o.Tracker != nil}, r.o.MaxOutput)
}
