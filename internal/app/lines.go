package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/term"

	"zcoder/internal/chat"
	"zcoder/internal/config"
	"zcoder/internal/secret"
	"zcoder/internal/termtext"
)

// report prints an error, and what to do next on a line of its own.
func report(p Process, err error) {
	mask := secret.New(p.Env)
	fmt.Fprintln(p.Stderr, "error: "+termtext.Line(mask.Mask(err.Error())))
	for _, hint := range hintsOf(err) {
		fmt.Fprintln(p.Stderr, "hint: "+termtext.Line(mask.Mask(hint)))
	}
}

func hintsOf(err error) []string {
	var usage *config.UsageError
	if errors.As(err, &usage) {
		return usage.Hints
	}
	if hint := hintOf(err); hint != "" {
		return []string{hint}
	}
	return nil
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	var failure *chat.Error
	switch {
	case errors.As(err, &h):
		return h.Hint()
	case errors.As(err, &failure):
		return failure.Hint
	}
	return ""
}

func isTerminal(f interface{ Fd() uintptr }) bool { return term.IsTerminal(int(f.Fd())) }

// modelLine describes a model in a list.
func modelLine(m chat.ModelInfo, facts chat.ModelFacts, err error) string {
	bytes := size(m.Size)
	if m.Size == 0 {
		bytes = "-" // the server does not tell, or the model runs elsewhere
	}
	parts := []string{fmt.Sprintf("%-32s", m.Name), fmt.Sprintf("%7s", bytes)}
	if err != nil {
		return strings.Join(append(parts, "facts unknown: "+err.Error()), "  ")
	}
	if window := cmp.Or(facts.FixedContext, facts.TrainedContext); window > 0 {
		parts = append(parts, fmt.Sprintf("%4dk", window/1024))
	}
	for _, c := range []struct {
		has  bool
		word string
	}{{facts.Tools && !facts.Untold, "tools"}, {facts.Thinking, "thinking"}, {facts.Vision, "vision"}} {
		if c.has {
			parts = append(parts, c.word)
		}
	}
	if !facts.Tools {
		parts = append(parts, "no tools")
	}
	return termtext.Line(strings.Join(parts, "  "))
}

func size(bytes int64) string {
	const unit = 1000
	switch {
	case bytes >= unit*unit*unit:
		return fmt.Sprintf("%.1f GB", float64(bytes)/unit/unit/unit)
	case bytes >= unit*unit:
		return fmt.Sprintf("%.0f MB", float64(bytes)/unit/unit)
	}
	return fmt.Sprintf("%d kB", bytes/unit)
}

func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// bill says what fills the window, part by part.
func (w *workbench) bill(ctx context.Context, c *conversation) ([]string, error) {
	setup, err := w.brain.prepare(ctx)
	if err != nil {
		return nil, err
	}
	system, set := w.stable()
	reg := set
	if setup.Tools != nil {
		reg, system = setup.Tools, setup.System
	}
	toolChars := 0
	for _, t := range reg.Specs() {
		toolChars += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	var user, answers, results int
	history := c.History()
	for _, m := range history {
		switch m.Role {
		case chat.User:
			user += len(m.Content)
		case chat.Assistant:
			answers += len(m.Content)
			for _, call := range m.Calls {
				answers += len(call.Name) + len(call.Args)
			}
		case chat.ToolRole:
			results += len(m.Content)
		}
	}
	lines := []string{
		fmt.Sprintf("system prompt   %7d characters  ~%d tokens", len(system), len(system)/4),
		fmt.Sprintf("%2d tools        %7d characters  ~%d tokens", len(reg.Specs()), toolChars, toolChars/4),
	}
	lines = append(lines, w.serverBill()...)
	lines = append(lines,
		fmt.Sprintf("your messages   %7d characters  ~%d tokens", user, user/4),
		fmt.Sprintf("replies, calls  %7d characters  ~%d tokens", answers, answers/4),
		fmt.Sprintf("tool results    %7d characters  ~%d tokens", results, results/4),
	)
	if known := c.Known(); known.Tokens > 0 {
		lines = append(lines, fmt.Sprintf("the server counted %d tokens for the last request", known.Tokens))
	}
	if setup.Window > 0 {
		lines = append(lines, fmt.Sprintf("window          %7d tokens, %s", setup.Window, w.brain.source()))
	}
	lines = append(lines, w.brain.residency(ctx))
	if setup.Tools != nil {
		lines = append(lines, "the window is small, so the small set of tools is used")
	}
	return lines, nil
}

// promptShow writes exactly what the first request would send.
func (w *workbench) promptShow(out io.Writer) {
	fmt.Fprintf(out, "%s\n", w.system)
	for _, t := range w.tools.Specs() {
		fmt.Fprintf(out, "\n%s: %s\n%s\n", t.Name, t.Description, t.Schema)
	}
}
