// Package doctor looks at everything that the program needs: the server, the model and
// its window, shell, git, sandbox, terminal, settings, directories, disk and audit. For
// each it says what is, and what to do where something is wrong.
//
// It changes nothing, makes nothing and shows no secret. What it looks at comes in
// through Subject; app is the only caller.
package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/termtext"
)

// State says how a check ended.
type State string

// The states. Only Fail keeps the program from working.
const (
	OK   State = "ok"
	Warn State = "warn"
	Fail State = "fail"
)

// Check is one thing that was looked at. Text and Remedy are not sanitised.
type Check struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// Server is the model server. What only some servers can do is asked for by type.
type Server interface {
	Models(ctx context.Context) ([]chat.ModelInfo, error)
	Show(ctx context.Context, name string) (chat.ModelFacts, error)
	BaseURL() string
}

// Window is a context window with where it comes from.
type Window struct {
	Tokens         int
	Source, Notice string
}

// Subject is what is looked at. Empty paths and nil functions are left out.
type Subject struct {
	Server   Server
	Provider string
	Model    string
	// Size chooses the window for a model, as a turn would. loaded is the window that
	// it is loaded with, or 0.
	Size func(facts chat.ModelFacts, loaded int) Window

	Path  string   // $PATH
	Shell []string // the command line that commands of the model are appended to
	Bwrap string   // where bubblewrap would be

	Terminal Terminal

	Home     string   // the settings directory
	Private  []string // directories of ours in it or elsewhere
	Settings string   // the settings file
	HoldsKey bool     // the settings file holds a key
	Policies func() error

	Workspace string
	// Audit checks the record and returns how many entries it has; broken says where
	// its chain is.
	Audit func() (records int64, broken string, err error)
}

// Terminal is what is known of the terminal.
type Terminal struct {
	Is         bool // standard input and output are one
	Term       string
	Cols, Rows int
	UTF8       bool // the locale says so
}

// Examine looks at everything and returns the checks in the order in which one would
// mend things. It blocks for as long as the server takes to answer.
func Examine(ctx context.Context, s Subject) []Check {
	checks := s.model(ctx)
	for _, check := range []func(context.Context) Check{s.shell, s.git, s.sandbox, s.terminal, s.settings, s.directories, s.disk, s.audit} {
		checks = append(checks, check(ctx))
	}
	return checks
}

// Failed reports whether any of the checks failed.
func Failed(checks []Check) bool {
	for _, c := range checks {
		if c.State == Fail {
			return true
		}
	}
	return false
}

// Print writes the checks as safe text, with what to do below each trouble.
func Print(w io.Writer, checks []Check) error {
	var b strings.Builder
	count := map[State]int{}
	for _, c := range checks {
		count[c.State]++
		fmt.Fprintf(&b, "%-4s  %-11s %s\n", c.State, c.Name, termtext.Line(c.Text))
		if c.Remedy != "" {
			fmt.Fprintf(&b, "      hint: %s\n", termtext.Line(c.Remedy))
		}
	}
	switch {
	case count[Fail] > 0:
		fmt.Fprintf(&b, "\n%d of %d checks failed\n", count[Fail], len(checks))
	case count[Warn] > 0:
		fmt.Fprintf(&b, "\nnothing failed, %d of %d checks could be better\n", count[Warn], len(checks))
	default:
		b.WriteString("\nall is well\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PrintJSON writes the checks as one JSON list.
func PrintJSON(w io.Writer, checks []Check) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(checks)
}
