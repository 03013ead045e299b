package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"zcoder/internal/checkpoint"
	"zcoder/internal/diff"
	"zcoder/internal/termtext"
)

// edited is what a worker changed in the workspace.
type edited struct {
	files  []string // relative paths, for the model
	lines  []string // the same with what happened, for people
	unsure string   // why this may not be all of it, or ""
}

// watch compares the workspace with a state of it that was kept before a worker began.
type watch struct {
	k   *checkpoint.Keeper
	own bool // it is closed with the watch
}

// watchTyped keeps the state before a worker that a person asked for, as the beginning
// of a turn: /diff and /undo know it. An error means that what the worker changes
// cannot be seen or undone.
func (c *conversation) watchTyped(ctx context.Context, label string) (*watch, error) {
	if c.keeper == nil {
		return nil, errors.New(strings.TrimPrefix(c.undoNotice, "undo: "))
	}
	c.keeper.begin(label, c.place())
	e := &watch{k: c.keeper.Keeper}
	return e, e.ready(ctx)
}

// watchCall keeps the state before a worker that the model asked for in the middle of a
// turn. /undo covers it with the turn; this state only tells its changes from others.
func (w *workbench) watchCall(ctx context.Context, session string) (*watch, error) {
	k, err := checkpoint.Open(ctx, checkpoint.Options{
		Store: filepath.Join(w.home, "checkpoints"), Root: w.ws.Root(), UserHome: w.p.UserHome,
		Session: session + "-workers", Exclude: []string{w.home}, Limits: checkpoint.Limits{Store: int64(w.v.Int("checkpoints-max-mb")) << 20},
	})
	if err != nil {
		return nil, err
	}
	e := &watch{k: k, own: true}
	if _, err = k.Turn(ctx, "delegate"); err == nil {
		err = e.ready(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// ready waits until all of the workspace is kept.
func (e *watch) ready(ctx context.Context) error {
	if err := e.k.Ready(ctx); err != nil {
		return err
	}
	if mode, why := e.k.Mode(); mode == checkpoint.EditsOnly {
		return errors.New(why)
	}
	return nil
}

func (e *watch) close() error {
	if !e.own {
		return nil
	}
	return e.k.Close()
}

// Bounds of what is told about changes.
const (
	maxEdited    = 100     // files
	maxDiffBytes = 1 << 20 // of one file, to count its lines
)

// changes compares with the state before.
func (e *watch) changes(ctx context.Context) edited {
	changes, err := e.k.After(ctx)
	if err != nil {
		return edited{unsure: "the workspace could not be compared: " + err.Error()}
	}
	var got edited
	for _, c := range changes.Files {
		if c.Dir && c.What != checkpoint.ModeOnly {
			continue // the files in it are named
		}
		got.files = append(got.files, c.Path)
		if len(got.lines) < maxEdited {
			got.lines = append(got.lines, e.line(c))
		}
	}
	if more := len(got.files) - len(got.lines); more > 0 {
		got.lines = append(got.lines, fmt.Sprintf("… and %s", plural(more, "more file", "more files")))
	}
	if n := len(changes.Unsure); n > 0 {
		got.unsure = plural(n, "file was written to", "files were written to") + " while the state was taken"
	}
	return got
}

// line tells of one change and counts its lines.
func (e *watch) line(c checkpoint.Change) string {
	name := termtext.Line(c.Path)
	if c.From != "" {
		name = termtext.Line(c.From) + " → " + name
	}
	text := fmt.Sprintf("%-8s %s", c.What, name)
	if unified, err := e.k.Unified(c, diff.Options{MaxBytes: maxDiffBytes}); err == nil {
		if plus, minus := countLines(unified); plus+minus > 0 {
			text += fmt.Sprintf("  +%d −%d", plus, minus)
		}
	}
	if c.Unkept != "" {
		text += "  (" + c.Unkept + ")"
	}
	return text
}

func countLines(unified string) (plus, minus int) {
	hunks := false
	for line := range strings.SplitSeq(unified, "\n") {
		switch {
		case strings.HasPrefix(line, "@@"):
			hunks = true
		case hunks && strings.HasPrefix(line, "+"):
			plus++
		case hunks && strings.HasPrefix(line, "-"):
			minus++
		}
	}
	return plus, minus
}
