// Package proc runs child processes and ends them. It knows sessions, process
// groups, pipes, ptys and signals, bounds on output and time, and how to find what
// a child left running.
//
// It knows nothing of shells, tools, policy or terminals in raw mode, and reads no
// environment: everything comes in through Spec. Whoever starts a program of any
// kind calls it: tools/shell, workers, MCP clients and the user's own commands.
//
// A child gets its own session and so no controlling terminal. It and what it
// starts are known by three signs: the session id, the chain of parents, and the
// variable ZCODER_RUN in the environment, whose value is unique to the run (Linux
// only; other systems go by group, session and parents). What gives up all three
// and our pipe as well is not found.
//
// A small watching shell ends the child's processes if this program is killed.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Spec describes one child process. Only Argv is required.
type Spec struct {
	// Argv is the program and its arguments. A name without a slash is looked up
	// in the PATH of Env.
	Argv []string
	// Dir is the working directory; empty is the caller's own.
	Dir string
	// Env is the whole environment; nil is an empty one.
	Env []string
	// Stdin is the child's input; nil is /dev/null. An *os.File goes to the child
	// as it is. Anything else is copied, and closed after the child ended if it has
	// a Close method: its Read must return then.
	Stdin io.Reader
	// Stdout, when set, receives every byte of standard output as it comes, and
	// Output holds standard error alone. A slow writer slows the child.
	Stdout io.Writer
	// MaxOutput bounds Output in bytes: 60 % of its head and 40 % of its tail
	// around a line that names what was left out. 0 is DefaultMaxOutput.
	MaxOutput int
	// OnOutput sees the output while it is produced, at most every 50 ms, from one
	// goroutine. Runes are not cut in two. A flood is shown in part, with a line
	// that says so. It is not called after Run returned, and Run waits for it.
	OnOutput func([]byte)
	// Follow is how often the run's processes are listed while the child runs, so that
	// one is known that clears its environment, changes the session and loses its
	// parent; 0 is never.
	Follow time.Duration
	// OnStart is told who the child is before anything else is done with it, e.g. to
	// keep a record for EndOrphan. It must return soon.
	OnStart func(Ident)
	// Timeout ends the child; 0 is none.
	Timeout time.Duration
	// Grace is the time between the interrupt and the kill; 0 is DefaultGrace.
	Grace time.Duration
	// Tracker takes over what the child left running. With none, that is ended
	// before Run returns.
	Tracker *Tracker
	// KeepDetached leaves what the child left running alone at the end of the turn
	// too: the command itself detached it and a person approved that.
	KeepDetached bool
}

// Defaults of a Spec.
const (
	DefaultMaxOutput = 32768 // bytes
	DefaultGrace     = 2 * time.Second
)

// Outcome says how a child ended.
type Outcome struct {
	// ExitCode is the exit status, 128 plus the signal's number after a signal, and
	// -1 when the child could not be ended.
	ExitCode int
	// Signal is the name of the signal that killed the child, e.g. "SIGSEGV".
	Signal string
	// Output is standard output and error in the order of arrival, bounded. It is
	// as the child wrote it and may not be valid UTF-8.
	Output string
	// Truncated is the number of bytes left out of Output.
	Truncated int64
	// TimedOut and Cancelled say that the child was ended early and why.
	TimedOut, Cancelled bool
	// Survivors were still running when the child itself had ended.
	Survivors []Survivor
	// Took is the time from the start to the end of the child.
	Took time.Duration
}

// Survivor is a process that outlived the child it came from.
type Survivor struct {
	PID     int
	Command string // its command line, bounded
}

// Run starts a child, waits for its end and returns how it went. The end is that
// of the child itself: something in the background that still holds the output
// delays Run by at most 200 ms.
//
// When ctx ends or the time is up, the child's group is interrupted, and after the
// grace everything that belongs to the run is killed; that is an outcome, not an
// error. The error says why the child could not be started. Run may be called from
// several goroutines.
func Run(ctx context.Context, s Spec) (Outcome, error) {
	path, err := s.check()
	if err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{ExitCode: -1, Cancelled: true}, nil
	}
	r, err := startPiped(s, path)
	if err != nil {
		return Outcome{}, s.wrong(err)
	}
	return r.wait(ctx), nil
}

// check validates a Spec and returns the path of its program.
func (s Spec) check() (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", errors.New("run a program: no program is named")
	}
	for i, arg := range s.Argv {
		if strings.IndexByte(arg, 0) >= 0 {
			return "", s.wrong(fmt.Errorf("argument %d holds a NUL byte", i))
		}
	}
	for _, v := range s.Env {
		if strings.IndexByte(v, 0) >= 0 {
			name, _, _ := strings.Cut(v, "=")
			return "", s.wrong(fmt.Errorf("the variable %q holds a NUL byte", name))
		}
	}
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil {
			return "", s.wrong(fmt.Errorf("enter directory %q: %w", s.Dir, bare(err)))
		} else if !info.IsDir() {
			return "", s.wrong(fmt.Errorf("enter directory %q: not a directory", s.Dir))
		}
	}
	path, err := lookPath(s.Argv[0], s.Env)
	if err != nil {
		return "", s.wrong(err)
	}
	return path, nil
}

func (s Spec) wrong(err error) error { return fmt.Errorf("run %q: %w", s.Argv[0], err) }

// bare strips the path that the message around it names already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// lookPath finds a program the way a shell does, in the PATH of env.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	list := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			list = value
		}
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue // what a directory below the caller holds is not looked for
		}
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no such program in PATH %q", list)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return bare(err)
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return os.ErrPermission
	}
	return nil
}
