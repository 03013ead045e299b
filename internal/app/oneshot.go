package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// oneShot runs one turn without a REPL: the answer goes to stdout, the progress to
// stderr, or every event as a JSON line to stdout.
func (w *workbench) oneShot(ctx context.Context, prompt string) (int, error) {
	c, err := w.conversationFor(ctx, true)
	if err != nil {
		return statusUsage, err
	}
	defer c.Close()
	if err := w.ensureModel(ctx, nil); err != nil {
		return statusFailed, err
	}
	for _, notice := range w.startNotices() {
		fmt.Fprintln(w.p.Stderr, termtext.Line(notice))
	}
	ctx, stop, caught := catchSignals(ctx)
	defer stop()
	w.startServers(ctx, true)
	end, err := w.play(ctx, c, prompt)
	if errors.Is(err, syscall.EPIPE) {
		return statusFailed, nil
	}
	if err != nil {
		return statusFailed, err
	}
	if s := caught(); s != 0 {
		return s, nil
	}
	if !w.v.Bool("json") && w.scratch == "" {
		fmt.Fprintln(w.p.Stderr, resumeLine(w.v, c.Info().ID))
	}
	return statusOf(end, c.Goal()), nil
}

// catchSignals ends the context on the first INT, TERM or HUP; caught returns the
// exit status that belongs to it, or 0.
func catchSignals(ctx context.Context) (_ context.Context, stop func(), caught func() int) {
	return endOn(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
}

// endOn ends the context on the first of the signals, as catchSignals says.
func endOn(ctx context.Context, signals ...os.Signal) (_ context.Context, stop func(), caught func() int) {
	ctx, cancel := context.WithCancelCause(ctx)
	got := make(chan os.Signal, 1)
	signal.Notify(got, signals...)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-got:
			cancel(signalled{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(got); cancel(nil); <-done }, func() int {
		var s signalled
		if errors.As(context.Cause(ctx), &s) {
			return 128 + int(s.signal)
		}
		return 0
	}
}

type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return "stopped by " + s.signal.String() }

// play runs the turn and shows its events until the last one.
func (w *workbench) play(ctx context.Context, c *conversation, prompt string) (event.End, error) {
	show := eventShower(w.p, w.v.Bool("json"))
	if err := showHeader(w.v.Bool("json"), show, c.Info()); err != nil {
		return event.End{}, err
	}
	return drive(ctx, c, prompt, show)
}

// driven is what drive needs of a conversation, here or on a server.
type driven interface {
	Prompt(ctx context.Context, in event.Input) (event.Reason, error)
	Cancel()
	Events(ctx context.Context, after int64) iter.Seq2[event.Event, error]
	LastSeq() int64
}

// drive runs a turn and hands its events on until the last one. An error of show stops
// the turn.
func drive(ctx context.Context, c driven, prompt string, show func(event.Event) error) (event.End, error) {
	after := c.LastSeq()
	// The events are read to the end also when the turn was cancelled; they end when
	// the last turn did.
	events, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	turn := make(chan error, 1)
	go func() {
		_, err := c.Prompt(ctx, event.Input{Text: prompt})
		turn <- err
		stop()
	}()
	var end event.End
	var failed error
	for e, err := range c.Events(events, after) {
		if err != nil {
			break
		}
		if failed == nil {
			if failed = show(e); failed != nil {
				c.Cancel()
			}
		}
		if e.Kind == event.TurnEnd {
			end = *e.End
		}
	}
	return end, errors.Join(<-turn, failed)
}

// showHeader begins the JSON stream with the session's description.
func showHeader(asJSON bool, show func(event.Event) error, info event.Session) error {
	if !asJSON {
		return nil
	}
	return show(event.Event{Seq: 1, Time: time.Now(), Kind: event.Opened, Session: &info})
}

// eventShower prints the events of a turn: as JSON lines, or the answer and the progress.
func eventShower(p Process, asJSON bool) func(event.Event) error {
	if asJSON {
		enc := json.NewEncoder(p.Stdout)
		enc.SetEscapeHTML(false)
		return func(e event.Event) error { return enc.Encode(e) }
	}
	return (&plainShow{out: p.Stdout, progress: p.Stderr, safe: isTerminal(p.Stdout)}).show
}

// plainShow prints the answer exactly to a pipe, and safely to a terminal; the
// progress is always safe text.
type plainShow struct {
	out, progress io.Writer
	safe          bool
	text          termtext.Stream
	open          bool // the last line of the answer has no end yet
}

func (s *plainShow) show(e event.Event) error {
	switch e.Kind {
	case event.Content:
		return s.answer(e.Text)
	case event.Printed:
		return s.answer(strings.TrimSuffix(e.Text, "\n") + "\n")
	case event.CallEnd:
		if e.Result.Direct {
			if err := s.answer(e.Result.Text); err != nil {
				return err
			}
			if err := s.endLine(); err != nil {
				return err
			}
		}
	case event.Reply, event.TurnEnd:
		if err := s.endLine(); err != nil {
			return err
		}
	}
	if e.Kind == event.TurnEnd && e.End.Reason == event.Complete && e.End.Text != "" {
		if err := s.answer(e.End.Text); err != nil {
			return err
		}
		if err := s.endLine(); err != nil {
			return err
		}
	}
	for _, line := range progressLines(e) {
		fmt.Fprintln(s.progress, line)
	}
	return nil
}

func (s *plainShow) answer(text string) error {
	if text == "" {
		return nil
	}
	s.open = !strings.HasSuffix(text, "\n")
	if s.safe {
		text = s.text.Write(text)
	}
	_, err := io.WriteString(s.out, text)
	return err
}

func (s *plainShow) endLine() error {
	rest := ""
	if s.safe {
		rest = s.text.Close()
	}
	if s.open {
		rest += "\n"
	}
	s.open = false
	_, err := io.WriteString(s.out, rest)
	return err
}

// progressLines says for stderr what an event means, one line each.
func progressLines(e event.Event) []string {
	switch e.Kind {
	case event.CallStart:
		lines := []string{"· " + termtext.Line(e.Call.Summary)}
		for _, line := range e.Call.Whole() {
			lines = append(lines, "  | "+termtext.Line(line))
		}
		return lines
	case event.CallEnd:
		r := e.Result
		line := "  " + r.Status
		if r.Line != "" {
			line += ": " + r.Line
		}
		return []string{termtext.Line(line)}
	case event.Info, event.Warning:
		return []string{string(e.Kind) + ": " + termtext.Line(e.Text)}
	case event.GoalState:
		return []string{goalLine(*e.Goal)}
	case event.TurnEnd:
		return endLines(*e.End)
	}
	return nil
}

func endLines(end event.End) []string {
	lines := []string{"· " + closing(end)}
	if end.Reason != event.Complete && end.Text != "" {
		lines = append(lines, string(end.Reason)+": "+termtext.Line(end.Text))
	}
	if end.Hint != "" {
		lines = append(lines, "hint: "+termtext.Line(end.Hint))
	}
	if n := end.Unattended - end.OnlyPerson; n > 0 {
		lines = append(lines, fmt.Sprintf("hint: %s refused because nobody was there to approve; --yes allows shell commands, or run zcoder in a terminal", plural(n, "call was", "calls were")))
	}
	if n := end.OnlyPerson; n > 0 {
		lines = append(lines, fmt.Sprintf("hint: %s refused that only a person can approve, with --yes too: run zcoder in a terminal", plural(n, "call was", "calls were")))
	}
	return lines
}

// closing is the facts of a turn in one line.
func closing(end event.End) string {
	files := "no files edited"
	if n := len(end.Changed); n > 0 {
		files = "edited " + termtext.Line(strings.Join(end.Changed, ", "))
	}
	parts := []string{files}
	for _, c := range end.Commands {
		exit := "stopped"
		if c.Exit != nil {
			exit = fmt.Sprintf("exit %d", *c.Exit)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", termtext.Line(c.Summary), exit))
	}
	parts = append(parts, plural(end.Rounds, "round", "rounds"))
	if end.Refused > 0 {
		parts = append(parts, fmt.Sprintf("%d refused", end.Refused))
	}
	return strings.Join(parts, " · ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// statusOf maps the end of a turn to an exit status.
func statusOf(end event.End, goal event.Goal) int {
	switch goal.State {
	case "blocked":
		return statusRefused
	case "budget_limited", "paused":
		return statusFailed
	}
	switch end.Reason {
	case event.Complete:
		if end.Unattended > 0 {
			return statusRefused
		}
		return statusOK
	case event.Blocked:
		return statusRefused
	case event.Cancelled:
		return statusBreak
	}
	return statusFailed
}
