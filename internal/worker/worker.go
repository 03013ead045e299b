// Package worker runs other agents' command lines: it knows their argument vectors,
// what they need in the environment, how their output is to be read, and how a run
// can end.
//
// It knows nothing of policy, questions, checkpoints, history or terminals, and reads
// no environment: the application decides whether a worker may run, hands in
// everything, and shows what came of it. Prompts are never part of a shell's text.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"time"

	"zcoder/internal/proc"
)

// Mode is what a worker may do.
type Mode uint8

// The modes. The zero value is the harmless one.
const (
	Consult Mode = iota // read and answer
	Edit                // change files of the workspace, in the worker's own edit mode
)

// String returns the mode's name as used in requests and reports.
func (m Mode) String() string {
	if m == Edit {
		return "edit"
	}
	return "consult"
}

// Status says how a run ended.
type Status string

// The ends of a run. Only Done is a success.
const (
	Done       Status = "done"
	Missing    Status = "missing"     // the program is not there
	SignIn     Status = "not_signed"  // it needs a login or a key
	Asks       Status = "asks"        // it ended with a question
	Permission Status = "permission"  // it stopped at something that it may not do
	Failed     Status = "failed"      // it or its model reported an error, or it broke off
	Empty      Status = "empty"       // it ended in order and said nothing
	TooLong    Status = "output_size" // a line, or all of its output, was too long
	Killed     Status = "killed"      // by a signal that did not come from us
	TimedOut   Status = "timeout"     // the time was up
	Silent     Status = "silent"      // it showed no sign of life
	Cancelled  Status = "cancelled"   // by a person
)

// Bounds of a run. Lines hold whole messages and file contents.
const (
	maxLine   = 8 << 20   // bytes
	maxStream = 512 << 20 // bytes; some repeat the message with every piece of it
	maxErrors = 8192      // bytes of standard error
	maxReply  = 4 << 20   // bytes of the answer
	maxDetail = 400       // bytes
	// grace is what a worker needs to end its tools, as measured.
	grace = 3 * time.Second
	// follow is how often a worker's processes are listed: its tools may hide from us,
	// and it may crash.
	follow = 500 * time.Millisecond
)

// Spec describes a run. Harness, Path, Dir and Prompt are required.
type Spec struct {
	Harness Harness
	Path    string // of the program, absolute
	Mode    Mode
	Model   string // empty is the worker's own choice
	Variant string // of the model, where the worker has variants
	Dir     string
	// Env is the whole environment, as Environment makes it.
	Env    []string
	Prompt string
	// Timeout ends the run. Idle ends one that printed nothing for so long; 0 is
	// never.
	Timeout, Idle time.Duration
	// Progress is told what the worker does, one line each. It may be called from
	// another goroutine, but not after Run returned. The lines are not sanitised.
	Progress func(line string)
	// OnStart is told who the child is.
	OnStart func(proc.Ident)
}

// Usage is what the worker counted.
type Usage struct {
	Input  int `json:"input_tokens,omitempty"`
	Output int `json:"output_tokens,omitempty"`
}

// Report says how a run ended. Its texts are the worker's own and not sanitised.
type Report struct {
	Status Status
	Reply  string // the last message of the worker; also after a failure, if there was one
	Detail string // why, for every status but Done
	// Denied are actions that the worker was refused and went on without.
	Denied []string
	Usage  Usage
	// Left are processes that could not be ended.
	Left []proc.Survivor
	Took time.Duration
}

// Run runs a worker and returns how it ended; every end is a report. It blocks until
// the worker and all that it started have ended. Cancelling ctx ends them.
func Run(ctx context.Context, s Spec) Report {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Progress == nil {
		s.Progress = func(string) {}
	}
	in := &intake{read: reading{say: s.Progress}, decode: s.Harness.decode, whole: s.Harness.whole, stop: cancel}
	if s.Idle > 0 && !s.Harness.whole {
		in.idle, in.patience = time.AfterFunc(s.Idle, func() { cancel(errSilent) }), s.Idle
		defer in.idle.Stop()
	}
	spec := proc.Spec{
		Argv: append([]string{s.Path}, s.Harness.args(s)...), Dir: s.Dir, Env: s.Env,
		Stdout: in, MaxOutput: maxErrors, Timeout: s.Timeout, Grace: grace, Follow: follow, OnStart: s.OnStart,
	}
	if s.Harness.stdin {
		spec.Stdin = strings.NewReader(s.Prompt)
	}
	out, err := proc.Run(ctx, spec)
	if err != nil {
		return notStarted(err)
	}
	in.end()
	return in.report(out, context.Cause(ctx), s)
}

// Reasons for ending a run ourselves.
var (
	errSilent  = errors.New("no sign of life")
	errTooLong = errors.New("too much output")
)

func notStarted(err error) Report {
	status := Failed
	if errors.Is(err, fs.ErrNotExist) {
		status = Missing
	}
	return Report{Status: status, Detail: err.Error()}
}

// intake divides standard output into lines and has them read. Write is called from
// one goroutine.
type intake struct {
	read     reading
	decode   func(*reading, []byte)
	whole    bool // all of it is one document
	stop     context.CancelCauseFunc
	idle     *time.Timer
	patience time.Duration

	mu    sync.Mutex // a late write of what held the pipe must not meet the report
	ended bool
	line  []byte
	total int
	over  bool
}

func (in *intake) Write(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended || in.over {
		return len(p), nil
	}
	if in.idle != nil {
		in.idle.Reset(in.patience)
	}
	n := len(p)
	in.total += n
	for len(p) > 0 && !in.over {
		line, rest, found := cutLine(p)
		in.line = append(in.line, line...)
		p = rest
		if found && !in.whole {
			in.take()
		} else if found {
			in.line = append(in.line, '\n')
		}
		in.over = len(in.line) > maxLine || in.total > maxStream
	}
	if in.over {
		in.line = nil
		in.stop(errTooLong)
	}
	return n, nil
}

func cutLine(p []byte) (line, rest []byte, found bool) {
	for i, b := range p {
		if b == '\n' {
			return p[:i], p[i+1:], true
		}
	}
	return p, nil, false
}

func (in *intake) take() {
	if len(in.line) > 0 {
		in.decode(&in.read, in.line)
	}
	in.line = in.line[:0]
}

// end takes the last line, which may have no end.
func (in *intake) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.over {
		in.take()
	}
	in.ended = true
}

func (in *intake) report(out proc.Outcome, cause error, s Spec) Report {
	r := Report{Reply: in.read.reply(), Denied: in.read.denied, Usage: in.read.usage, Took: out.Took}
	if out.Cancelled || out.TimedOut {
		r.Left = out.Survivors
	}
	r.Status, r.Detail = in.read.verdict(end{
		code: out.ExitCode, signal: out.Signal, stderr: out.Output, bytes: in.total, stopped: stopped(out, cause, in.over), harness: s.Harness,
	})
	switch r.Status {
	case TimedOut:
		r.Detail = fmt.Sprintf("stopped after %s", s.Timeout)
	case Silent:
		r.Detail = fmt.Sprintf("stopped: it printed nothing for %s", s.Idle)
	}
	return r
}

// stopped is the status of a run that we ended, or "".
func stopped(out proc.Outcome, cause error, over bool) Status {
	switch {
	case over || errors.Is(cause, errTooLong):
		return TooLong
	case out.TimedOut:
		return TimedOut
	case out.Cancelled && errors.Is(cause, errSilent):
		return Silent
	case out.Cancelled:
		return Cancelled
	}
	return ""
}

// versionTime bounds asking a program for its version; some need seconds to start.
const versionTime = 15 * time.Second

// Version asks a program for its version. It returns "" when it does not say. It
// blocks until the program ended.
func Version(ctx context.Context, path string, env []string) string {
	out, err := proc.Run(ctx, proc.Spec{Argv: []string{path, "--version"}, Dir: "/", Env: env, MaxOutput: maxErrors, Timeout: versionTime})
	if err != nil || out.ExitCode != 0 {
		return ""
	}
	return versionNumber.FindString(out.Output)
}

var versionNumber = regexp.MustCompile(`\d+(\.\d+)+[-.+\w]*`)
