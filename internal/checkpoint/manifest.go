package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"zcoder/internal/ownfile"
)

// ErrBusy means that another process has the session open.
var ErrBusy = errors.New("another process has the checkpoints of this session open")

// A manifest is the append-only record of one session, one JSON object a line. What
// a kill cut short is no line. Its process holds a lock on it.
type manifest struct {
	f *os.File
}

// The kinds of lines. A later line about a turn adds to what earlier ones said.
const (
	lineTurn = "turn" // a turn begins; with a tree: its state is complete, or known so far
	lineActs = "acts" // something in the turn may change files from here on
	lineEnd  = "end"  // the state after the turn
	lineUndo = "undo" // files are about to be restored
	lineDone = "done" // they were
	lineDrop = "drop" // turns that were forgotten to save space
)

// line is one line of a manifest.
type line struct {
	Kind    string            `json:"kind"`
	Turn    ID                `json:"turn,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Label   string            `json:"label,omitempty"`
	Tree    string            `json:"tree,omitempty"`
	Changes int               `json:"changes,omitempty"`
	Refs    map[string]string `json:"refs,omitempty"`
	// Of undo and done: the number of the step, the step that it takes back when it is
	// a redo, the turns, and the name of its temporary files.
	Step  int    `json:"step,omitempty"`
	Redo  int    `json:"redo,omitempty"`
	Turns []ID   `json:"turns,omitempty"`
	Temp  string `json:"temp,omitempty"`
}

// openManifest opens or makes the manifest of a session and reads it.
func openManifest(dir, session string) (*manifest, *history, error) {
	if !validSession(session) {
		return nil, nil, fmt.Errorf("open checkpoints: session %q is no plain name", session)
	}
	path := filepath.Join(dir, session+".jsonl")
	f, err := ownfile.Open(path, os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, nil, fmt.Errorf("open checkpoints: %w", err)
	}
	ok, err := lockFile(f.Fd(), unix.LOCK_EX)
	if err == nil && !ok {
		err = ErrBusy
	}
	var h *history
	if err == nil {
		h, err = readHistory(f)
	}
	if err == nil && !sameAsNamed(f, path) {
		err = ErrBusy // it was pruned while it was opened
	}
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("open checkpoints of session %q: %w", session, err)
	}
	return &manifest{f: f}, h, nil
}

func validSession(id string) bool {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)
	}
	return id != "" && len(id) <= 128 && id[0] != '.' && strings.TrimFunc(id, plain) == ""
}

func sameAsNamed(f *os.File, path string) bool {
	mine, err := f.Stat()
	named, err2 := os.Lstat(path)
	return err == nil && err2 == nil && os.SameFile(mine, named)
}

// append writes one line, which a kill does not lose.
func (m *manifest) append(l line) error {
	text, err := json.Marshal(l)
	if err == nil {
		// The leading line end keeps a line that a full disk cut short apart.
		_, err = m.f.Write(append(append([]byte{'\n'}, text...), '\n'))
	}
	if err != nil {
		return fmt.Errorf("write checkpoint record: %w", err)
	}
	return nil
}

// sync makes all lines durable, for a loss of power.
func (m *manifest) sync() error {
	if err := m.f.Sync(); err != nil {
		return fmt.Errorf("write checkpoint record: %w", err)
	}
	return nil
}

// idle reports whether there is nothing in the history to undo.
func (h *history) idle() bool {
	return len(h.steps) == 0 && !slices.ContainsFunc(h.turns, func(t *turn) bool { return t.acts })
}

// history is what a manifest says.
type history struct {
	turns []*turn
	steps []*step
	max   ID // the newest turn there ever was
}

// turn is the time from one input of the user to the next.
type turn struct {
	id      ID
	label   string
	at      time.Time
	begin   plumbing.Hash // zero: not known
	end     plumbing.Hash // zero: not known
	acts    bool
	changes int
	refs    map[string]string
	undone  bool
}

// step is one undo or redo.
type step struct {
	number, redo  int
	turns         []ID
	before, after plumbing.Hash
	temp          string
	last          ID // the newest turn when it was made
	takenBack     bool
	cut           bool // a kill ended it
}

func (s *step) done() bool { return !s.after.IsZero() }

// maxManifest bounds a manifest that is read, in bytes.
const maxManifest = 1 << 28

func readHistory(r io.Reader) (*history, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest))
	if err != nil {
		return nil, err
	}
	h := &history{}
	for raw := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(raw, &l) == nil {
			h.apply(l)
		}
	}
	for _, s := range h.steps {
		s.cut = !s.done()
	}
	return h, nil
}

func (h *history) apply(l line) {
	tree := parseHash(l.Tree)
	switch l.Kind {
	case lineTurn:
		t := h.turn(l.Turn)
		if t == nil {
			if l.Turn <= h.max {
				return
			}
			t = &turn{id: l.Turn, label: l.Label, at: l.Time}
			h.turns, h.max = append(h.turns, t), l.Turn
		}
		if l.Refs != nil {
			t.refs = l.Refs
		}
		if !tree.IsZero() {
			t.begin = tree
		}
	case lineActs:
		if t := h.turn(l.Turn); t != nil {
			t.acts = true
		}
	case lineEnd:
		if t := h.turn(l.Turn); t != nil {
			t.end, t.changes, t.acts = tree, l.Changes, true
		}
	case lineUndo:
		h.steps = append(h.steps, &step{number: l.Step, redo: l.Redo, turns: l.Turns, before: tree, temp: l.Temp, last: h.max})
	case lineDone:
		h.finish(l.Step, tree)
	case lineDrop:
		for len(h.turns) > 0 && h.turns[0].id <= l.Turn {
			h.turns = h.turns[1:]
		}
		h.steps = slices.DeleteFunc(h.steps, func(s *step) bool { return len(s.turns) > 0 && slices.Max(s.turns) <= l.Turn })
	}
}

// finish notes that the files of a step were restored.
func (h *history) finish(number int, after plumbing.Hash) {
	s := h.step(number)
	if s == nil {
		return
	}
	s.after = after
	for _, id := range s.turns {
		if t := h.turn(id); t != nil {
			t.undone = s.redo == 0
		}
	}
	if taken := h.step(s.redo); taken != nil {
		taken.takenBack = true
	}
}

func (h *history) turn(id ID) *turn {
	for i := len(h.turns) - 1; i >= 0; i-- {
		if h.turns[i].id == id {
			return h.turns[i]
		}
	}
	return nil
}

func (h *history) step(number int) *step {
	for i := len(h.steps) - 1; i >= 0 && number > 0; i-- {
		if h.steps[i].number == number {
			return h.steps[i]
		}
	}
	return nil
}

// redoable returns the newest undo that can be taken back: one that was finished,
// that was not taken back, and after which no turn changed anything.
func (h *history) redoable() *step {
	for i := len(h.steps) - 1; i >= 0; i-- {
		s := h.steps[i]
		if s.redo != 0 || s.takenBack || !s.done() {
			continue
		}
		for _, t := range h.turns {
			if t.id > s.last && t.changes > 0 {
				return nil
			}
		}
		return s
	}
	return nil
}

// trees returns the states that the history needs.
func (h *history) trees() []plumbing.Hash {
	var list []plumbing.Hash
	for _, t := range h.turns {
		list = append(list, t.begin, t.end)
	}
	for _, s := range h.steps {
		list = append(list, s.before, s.after)
	}
	return list
}

func parseHash(text string) (h plumbing.Hash) {
	if len(text) != 2*len(h) {
		return h
	}
	return plumbing.NewHash(text)
}

// readManifest reads the manifest of a session that may be another process's.
func readManifest(path string) (*history, error) {
	f, err := ownfile.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readHistory(f)
}
