package checkpoint

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"zcoder/internal/diff"
)

// What says how a path differs between two states.
type What string

// The ways in which a path can differ.
const (
	Created  What = "created"
	Modified What = "modified" // content, link target, or what kind of thing it is
	Deleted  What = "deleted"
	Renamed  What = "renamed" // with the same content; From is the old path
	ModeOnly What = "mode"    // only permission bits or the owner
)

// Change is one path that differs between two states. Paths are raw: they may hold
// any bytes.
type Change struct {
	Path, From       string // relative, with slashes; From only for Renamed
	What             What
	Dir              bool // it is, or was, a directory
	OldMode, NewMode fs.FileMode
	// Unkept says why the difference cannot be undone: one of the two contents was not
	// kept. Empty: it can.
	Unkept string

	old, new entry
}

// Changes are the differences between two states.
type Changes struct {
	Turn  ID
	Files []Change // sorted by path
	// Unsure are files that changed each time they were read, so that what is kept of
	// them may mix two contents.
	Unsure []string
}

// Entry is one turn, as List shows it.
type Entry struct {
	ID      ID
	Label   string
	Time    time.Time
	Changes int  // paths that the turn changed; 0 also before After was called
	Undone  bool // by Undo, and not brought back by Redo
	Kept    bool // its beginning is kept, so that it can be undone
}

// After marks the state after the turn and returns what changed since it began. It
// blocks while the workspace is looked at, unless the turn called neither Ready nor
// KeepFile: then nothing was changed by it. Called again in the same turn it marks
// the state anew.
func (k *Keeper) After(ctx context.Context) (Changes, error) {
	k.mu.Lock()
	t, w := k.turn, k.work
	acts := t != nil && t.turn.acts
	k.mu.Unlock()
	if !acts {
		return Changes{}, nil
	}
	workErr := w.wait(ctx)
	if ctx.Err() != nil {
		return Changes{}, ctx.Err()
	}
	k.mu.Lock()
	known := !t.begin.IsZero()
	k.mu.Unlock()
	if !known {
		return Changes{}, fmt.Errorf("the state at the beginning of the turn is not kept: %w", workErr)
	}
	if err := k.enter(ctx); err != nil {
		return Changes{}, err
	}
	defer k.leave()
	return k.finishTurn(ctx, t)
}

// finishTurn is After for whoever holds the operation.
func (k *Keeper) finishTurn(ctx context.Context, t *open) (Changes, error) {
	c := Changes{Turn: t.id}
	err := k.snapshot(ctx, func(seen sight) error {
		k.mu.Lock()
		begin := t.begin
		k.mu.Unlock()
		var err error
		if c.Files, err = k.changes(ctx, begin, seen.state.hash); err != nil {
			return err
		}
		c.Unsure = seen.unsure
		if err := k.manifest.append(line{Kind: lineEnd, Turn: t.id, Tree: seen.state.hash.String(), Changes: len(c.Files)}); err != nil {
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		t.turn.end, t.turn.changes = seen.state.hash, len(c.Files)
		return nil
	})
	if err != nil {
		return Changes{}, fmt.Errorf("look for changes: %w", err)
	}
	return c, nil
}

// snapshot scans the workspace, stores what it finds and calls record while nothing
// can be pruned. The caller holds the operation.
func (k *Keeper) snapshot(ctx context.Context, record func(sight) error) error {
	if err := k.store.share(ctx); err != nil {
		return err
	}
	defer k.store.unlock()
	pack := newPackWriter(k.store)
	defer pack.abort()
	seen, err := k.look(ctx, pack)
	if err == nil {
		err = pack.commit()
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.now = seen.state
	k.mu.Unlock()
	return record(seen)
}

// changes compares two stored states.
func (k *Keeper) changes(ctx context.Context, a, b plumbing.Hash) ([]Change, error) {
	var list []Change
	err := k.compareTrees(ctx, a, b, func(d difference) { list = append(list, changeOf(d)) })
	if err != nil {
		return nil, err
	}
	return pairRenames(list), nil
}

func (k *Keeper) compareTrees(ctx context.Context, a, b plumbing.Hash, emit func(difference)) error {
	if a == b {
		return nil
	}
	old, err := k.state(a)
	if err != nil {
		return err
	}
	now, err := k.state(b)
	if err != nil {
		return err
	}
	return k.store.compare(ctx, "", old, now, emit)
}

// state returns a state that was stored, from memory when it is there.
func (k *Keeper) state(h plumbing.Hash) (*dir, error) {
	k.mu.Lock()
	known := []*dir{k.now}
	if k.turn != nil {
		known = append(known, k.turn.state)
	}
	k.mu.Unlock()
	for _, d := range known {
		if d != nil && d.hash == h {
			return d, nil
		}
	}
	return k.store.tree(h)
}

func changeOf(d difference) Change {
	c := Change{Path: d.path, old: d.old, new: d.new, OldMode: d.old.fileMode(), NewMode: d.new.fileMode()}
	c.Dir = d.old.kind == folder || d.new.kind == folder
	switch {
	case d.old.kind == absent:
		c.What = Created
	case d.new.kind == absent:
		c.What = Deleted
	case d.old.kind == d.new.kind && d.old.kind != unkept && (d.old.kind == folder || d.old.hash == d.new.hash):
		c.What = ModeOnly
	default:
		c.What = Modified
	}
	for _, e := range []entry{d.new, d.old} {
		if e.kind == unkept {
			c.Unkept = e.why.String()
		}
	}
	return c
}

func (e *entry) fileMode() fs.FileMode {
	mode := fs.FileMode(e.mode & 0o777)
	for bit, m := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if e.mode&bit != 0 {
			mode |= m
		}
	}
	switch e.kind {
	case folder:
		mode |= fs.ModeDir
	case link:
		mode |= fs.ModeSymlink
	case unkept:
		mode |= fs.ModeIrregular
	}
	return mode
}

// emptyBlob is the name of the content of empty files, which are no renames of each
// other.
var emptyBlob = plumbing.NewHash("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391")

// pairRenames makes one change of a file that is gone and one that came with the same
// content.
func pairRenames(list []Change) []Change {
	gone := map[plumbing.Hash][]Change{}
	for _, c := range list {
		if c.What == Deleted && c.old.kind == file && c.old.hash != emptyBlob {
			gone[c.old.hash] = append(gone[c.old.hash], c)
		}
	}
	renamed := map[string]bool{}
	for i := range list {
		c := &list[i]
		if from := gone[c.new.hash]; c.What == Created && c.new.kind == file && len(from) > 0 {
			c.What, c.From = Renamed, from[0].Path
			c.old, c.OldMode = from[0].old, from[0].OldMode
			renamed[c.From], gone[c.new.hash] = true, from[1:]
		}
	}
	list = slices.DeleteFunc(list, func(c Change) bool { return c.What == Deleted && renamed[c.Path] })
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// Diff returns what differs between the beginning of the turn from and that of the
// turn to, or the present state when to is Now. It blocks while the workspace is
// looked at.
func (k *Keeper) Diff(ctx context.Context, from, to ID) (Changes, error) {
	c := Changes{Turn: from}
	if err := k.waitForWork(ctx); err != nil {
		return c, err
	}
	if err := k.enter(ctx); err != nil {
		return c, err
	}
	defer k.leave()
	a, err := k.beginning(from)
	if err != nil {
		return c, err
	}
	if to != Now {
		b, err := k.beginning(to)
		if err == nil {
			c.Files, err = k.changes(ctx, a, b)
		}
		return c, err
	}
	err = k.snapshot(ctx, func(seen sight) (err error) {
		c.Unsure = seen.unsure
		c.Files, err = k.changes(ctx, a, seen.state.hash)
		return err
	})
	return c, err
}

func (k *Keeper) waitForWork(ctx context.Context) error {
	k.mu.Lock()
	w := k.work
	k.mu.Unlock()
	_ = w.wait(ctx) // what it could not do shows when it is needed
	return ctx.Err()
}

func (k *Keeper) beginning(id ID) (plumbing.Hash, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.history.turn(id)
	if t == nil || t.begin.IsZero() {
		return plumbing.ZeroHash, fmt.Errorf("the state at the beginning of turn %d is not kept", id)
	}
	return t.begin, nil
}

// List returns the turns of the session, the oldest first.
func (k *Keeper) List() []Entry {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]Entry, len(k.history.turns))
	for i, t := range k.history.turns {
		list[i] = t.entry()
	}
	return list
}

func (t *turn) entry() Entry {
	return Entry{ID: t.id, Label: t.label, Time: t.at, Changes: t.changes, Undone: t.undone, Kept: !t.begin.IsZero()}
}

// maxShown bounds a content that Unified shows, in bytes.
const maxShown = 4 << 20

// Unified returns the change as a unified diff, or one line that says why there is
// none. It may be called concurrently with everything.
func (k *Keeper) Unified(c Change, o diff.Options) (string, error) {
	from := c.From
	if from == "" {
		from = c.Path
	}
	switch {
	case c.Unkept != "":
		return fmt.Sprintf("%s %s: no diff, it is %s\n", c.What, diff.Name(c.Path), c.Unkept), nil
	case c.Dir && c.old.kind != file && c.new.kind != file && c.old.kind != link && c.new.kind != link:
		return fmt.Sprintf("%s directory %s%s\n", c.What, diff.Name(c.Path), modes(c)), nil
	}
	a, sizeA, err := k.content(c.old)
	if err != nil {
		return "", err
	}
	b, sizeB, err := k.content(c.new)
	if err != nil {
		return "", err
	}
	if a == nil && sizeA > 0 || b == nil && sizeB > 0 {
		return fmt.Sprintf("%s %s: no diff, it has %d, then %d bytes\n", c.What, diff.Name(c.Path), sizeA, sizeB), nil
	}
	head := ""
	if c.What == Renamed {
		head = fmt.Sprintf("renamed %s to %s%s\n", diff.Name(from), diff.Name(c.Path), modes(c))
	} else if m := modes(c); m != "" || len(a) == 0 && len(b) == 0 {
		head = fmt.Sprintf("%s %s%s\n", c.What, diff.Name(c.Path), m)
	}
	return head + diff.Unified(sideName("a/", from, c.old), sideName("b/", c.Path, c.new), a, b, o), nil
}

func modes(c Change) string {
	if c.OldMode == c.NewMode || c.old.kind == absent || c.new.kind == absent {
		return ""
	}
	return fmt.Sprintf(" (mode %v, then %v)", c.OldMode, c.NewMode)
}

func sideName(prefix, rel string, e entry) string {
	if e.kind != file && e.kind != link {
		return ""
	}
	return prefix + rel
}

// content returns what a diff shows of an entry; nil when it is too large.
func (k *Keeper) content(e entry) ([]byte, int64, error) {
	if e.kind != file && e.kind != link {
		return nil, 0, nil
	}
	o, err := k.store.open(e.hash)
	if err != nil {
		return nil, 0, err
	}
	size := o.size
	o.Close()
	if size > maxShown {
		return nil, size, nil
	}
	text, err := k.store.read(e.hash, maxShown)
	return text, size, err
}
