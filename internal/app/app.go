// Package app puts the program together: it reads flags, environment, home and
// standard streams, builds the parts, hands them to a frontend and turns the end
// into an exit status. Nothing else in the tree reads the process or exits.
package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"

	"zcoder/internal/config"
)

// Exit statuses, as listed in --help.
const (
	statusOK      = 0
	statusFailed  = 1   // the turn ended in an error, a limit or the loop detector
	statusUsage   = 2   // wrong usage or settings
	statusRefused = 3   // finished, but something was refused for want of a person, or blocked
	statusHangup  = 129 // SIGHUP
	statusBreak   = 130 // SIGINT
	statusTerm    = 143 // SIGTERM
)

// Process is all that the program gets from the system.
type Process struct {
	Args                  []string // without the program's name
	Env                   []string
	Dir                   string // working directory
	UserHome              string
	Stdin, Stdout, Stderr *os.File
}

// Main runs the program with the real process and returns its exit status.
func Main() int {
	hideMemory()
	dir, err := os.Getwd()
	if err != nil {
		fmt.Fprintf(os.Stderr, "error: find the working directory: %v\n", err)
		return statusUsage
	}
	return Run(context.Background(), Process{
		Args: os.Args[1:], Env: os.Environ(), Dir: dir, UserHome: userHome(),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

// userHome is $HOME, or what the user database says when that is unset.
func userHome() string {
	if home := os.Getenv("HOME"); home != "" {
		return home
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return "/"
}

// lookup returns a variable of the environment.
func (p Process) lookup(name string) (string, bool) {
	for i := len(p.Env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(p.Env[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

func (p Process) getenv(name string) string {
	value, _ := p.lookup(name)
	return value
}

// hinted is an error with what to do next, which goes on a line of its own.
type hinted struct {
	err  error
	hint string
}

func (h hinted) Error() string { return h.err.Error() }
func (h hinted) Unwrap() error { return h.err }
func (h hinted) Hint() string  { return h.hint }

func withHint(err error, format string, args ...any) error {
	return hinted{err, fmt.Sprintf(format, args...)}
}

// Run runs the program and returns its exit status.
func Run(ctx context.Context, p Process) int {
	status, err := run(ctx, p)
	if err == nil {
		return status
	}
	report(p, err)
	var usage *config.UsageError
	if status == statusOK && errors.As(err, &usage) {
		return statusUsage
	}
	if status == statusOK {
		return statusFailed
	}
	return status
}
