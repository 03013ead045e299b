package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"zcoder/internal/gitstate"
)

var (
	// ErrOthers means that files were changed after the turn by somebody else, so that
	// restoring them needs a yes. The report names them.
	ErrOthers = errors.New("files were changed after the turn")
	// ErrNothing means that there is no turn to undo, or no undo to take back.
	ErrNothing = errors.New("there is nothing to restore")
)

// Report says what an undo or redo did, or would do.
type Report struct {
	Turns []Entry  // that were undone or redone, the oldest first
	Files []Change // from what there was to what was restored, sorted by path
	// Others are files among them that changed after the turn, so that a force is
	// needed. Their content before the undo is kept: Redo brings it back.
	Others []Left
	// Left are files that were not restored.
	Left []Left
	// Moved are the HEAD and the branches of the user's repository that moved since.
	// They are never moved back.
	Moved []Move
}

// Left is a path with the reason why it was not restored, or why it needs a yes.
type Left struct{ Path, Why string }

// Move is a ref that is not what it was. An empty value means that there was none.
type Move struct{ Ref, From, To string }

// CannotUndo says what no undo covers.
const CannotUndo = "Not undone: what was done outside the workspace, processes that run, and effects on other machines."

// item is one path of an undo.
type item struct {
	path   string
	target entry  // what it shall be
	last   entry  // what the turns left
	seen   entry  // what the state knows of the present
	now    entry  // what there is, kept or at least looked at
	others string // why it needs a yes
}

// PlanUndo returns what Undo would do, and changes nothing in the workspace. It does
// not return ErrOthers.
func (k *Keeper) PlanUndo(ctx context.Context, n int) (Report, error) {
	return k.restore(ctx, restoring{n: n, plan: true})
}

// Undo restores what the last n turns changed that changed anything, and nothing
// else: content, mode, links, directories; as root owners too. Turns in between that
// changed nothing are undone with them. When one of these files changed after the
// turn by somebody else, it does nothing and returns ErrOthers with the report,
// unless force is set. What it replaces is kept and can be brought back with Redo.
// An error in the middle leaves the rest as it was; calling it again goes on.
func (k *Keeper) Undo(ctx context.Context, n int, force bool) (Report, error) {
	return k.restore(ctx, restoring{n: n, force: force})
}

// Redo takes the last Undo back. A turn that changed something ends that chance. It
// returns ErrOthers as Undo does.
func (k *Keeper) Redo(ctx context.Context, force bool) (Report, error) {
	return k.restore(ctx, restoring{redo: true, force: force})
}

// restoring is one request to restore.
type restoring struct {
	n                 int
	redo, force, plan bool
}

func (k *Keeper) restore(ctx context.Context, r restoring) (Report, error) {
	if err := k.waitForWork(ctx); err != nil {
		return Report{}, err
	}
	if err := k.enter(ctx); err != nil {
		return Report{}, err
	}
	defer k.leave()
	if err := k.sameRoot(); err != nil {
		return Report{}, err
	}
	k.mu.Lock()
	t := k.turn
	unfinished := t != nil && t.turn.acts && t.turn.end.IsZero() && !t.begin.IsZero()
	k.mu.Unlock()
	if unfinished {
		if _, err := k.finishTurn(ctx, t); err != nil {
			return Report{}, err
		}
	}
	report := Report{}
	err := k.snapshot(ctx, func(seen sight) error { return k.restoreFrom(ctx, r, seen.state, &report) })
	return report, err
}

// sameRoot makes sure that the workspace is still the directory that was opened.
func (k *Keeper) sameRoot() error {
	var mine, named unix.Stat_t
	err := errors.Join(fstat(k.root, &mine), unix.Lstat(k.o.Root, &named))
	if err != nil || mine.Dev != named.Dev || mine.Ino != named.Ino {
		return fmt.Errorf("restore files: workspace %q is not the directory that was opened", k.o.Root)
	}
	return nil
}

// restoreFrom restores in a workspace whose state is now, which is stored. The store
// is shared.
func (k *Keeper) restoreFrom(ctx context.Context, r restoring, now *dir, report *Report) error {
	if err := k.countCutShort(ctx); err != nil {
		return fmt.Errorf("plan to restore: %w", err)
	}
	s, turns, err := k.choose(r)
	if err != nil {
		return err
	}
	items, err := k.plan(ctx, s, turns)
	if err == nil {
		now, err = k.lookAtItems(items, now)
	}
	if err != nil {
		return fmt.Errorf("plan to restore: %w", err)
	}
	items = k.judge(items, report)
	for _, t := range turns {
		report.Turns = append(report.Turns, t.entry())
	}
	report.Moved = k.moved(ctx, turns[0])
	if r.plan {
		return nil
	}
	if len(report.Others) > 0 && !r.force {
		return ErrOthers
	}
	return k.carryOut(ctx, s, turns, items, now, report)
}

// choose returns the undo to take back, nil when turns are undone, and the turns.
func (k *Keeper) choose(r restoring) (*step, []*turn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.redo {
		s := k.history.redoable()
		if s == nil {
			return nil, nil, ErrNothing
		}
		var turns []*turn
		for _, id := range s.turns {
			if t := k.history.turn(id); t != nil {
				turns = append(turns, t)
			}
		}
		if len(turns) == 0 {
			return nil, nil, ErrNothing
		}
		return s, turns, nil
	}
	var turns []*turn
	first, n := -1, max(r.n, 1)
	for i := len(k.history.turns) - 1; i >= 0 && n > 0; i-- {
		t := k.history.turns[i]
		if t.undone {
			continue
		}
		turns = append(turns, t)
		if t.changes > 0 {
			first = len(turns)
			n--
		}
	}
	if first < 0 {
		return nil, nil, ErrNothing
	}
	turns = turns[:first]
	slices.Reverse(turns)
	return nil, turns, nil
}

// cutShort reports whether the turn acted and nobody saw it end.
func (t *turn) cutShort() bool { return t.acts && t.end.IsZero() && !t.begin.IsZero() }

// countCutShort counts the changes of such turns.
func (k *Keeper) countCutShort(ctx context.Context) error {
	k.mu.Lock()
	turns := slices.Clone(k.history.turns)
	k.mu.Unlock()
	for _, t := range turns {
		if !t.cutShort() || t.undone {
			continue
		}
		n := 0
		if err := k.compareTrees(ctx, t.begin, k.endOf(t), func(difference) { n++ }); err != nil {
			return err
		}
		k.mu.Lock()
		t.changes = n
		k.mu.Unlock()
	}
	return nil
}

// plan collects the paths that the turns changed. Each shall become what it was when
// the first of the turns that changed it began; or, when s is given, what it was
// before that undo.
func (k *Keeper) plan(ctx context.Context, s *step, turns []*turn) ([]*item, error) {
	at := map[string]*item{}
	for _, t := range turns {
		end, why := t.end, ""
		if t.cutShort() {
			if end = k.endOf(t); s != nil {
				end = s.before
			}
			why = "its turn was cut short, so what came later cannot be told apart"
		}
		if end.IsZero() {
			continue
		}
		err := k.compareTrees(ctx, t.begin, end, func(d difference) {
			it := at[d.path]
			if it == nil {
				it = &item{path: d.path, target: d.old}
				at[d.path] = it
			} else if !it.last.alike(&d.old) {
				it.others = "it was changed between the turns"
			}
			it.last = d.new
			if why != "" {
				it.others = why
			}
		})
		if err != nil {
			return nil, err
		}
	}
	var items []*item
	for _, it := range at {
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b *item) int { return strings.Compare(a.path, b.path) })
	if s != nil {
		return items, k.fromStep(items, s)
	}
	return items, nil
}

// endOf returns a state after a turn whose end nobody saw: the next one that is kept,
// or the present one.
func (k *Keeper) endOf(t *turn) plumbing.Hash {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, next := range k.history.turns {
		if next.id > t.id && !next.begin.IsZero() {
			return next.begin
		}
	}
	return k.now.hash
}

// fromStep turns the items of an undo into those of its redo.
func (k *Keeper) fromStep(items []*item, s *step) error {
	before, err := k.state(s.before)
	if err != nil {
		return err
	}
	after, err := k.state(s.after)
	if err != nil {
		return err
	}
	for _, it := range items {
		it.others = ""
		var known bool
		if it.target, known, err = k.store.lookup(before, it.path); err != nil {
			return err
		}
		if !known && it.target.kind == absent {
			it.target = entry{kind: unkept}
		}
		if it.last, _, err = k.store.lookup(after, it.path); err != nil {
			return err
		}
	}
	return nil
}

// lookAtItems says of each item what there is now. What the state does not hold is
// kept too, so that nothing is replaced that cannot be brought back; the state with it
// is returned.
func (k *Keeper) lookAtItems(items []*item, now *dir) (*dir, error) {
	var missing []string
	for _, it := range items {
		var known bool
		var err error
		if it.seen, known, err = k.store.lookup(now, it.path); err != nil {
			return nil, err
		}
		if it.now = it.seen; !known {
			missing = append(missing, it.path)
		}
	}
	if len(missing) == 0 {
		return now, nil
	}
	pack := newPackWriter(k.store)
	defer pack.abort()
	kept, err := k.capture(pack, nil, missing, true)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if !slices.Contains(missing, it.path) {
			continue
		}
		if it.now, _, err = k.store.lookup(kept, it.path); err != nil {
			return nil, err
		}
	}
	now = overlay(now, kept)
	return now, pack.finishStates(now)
}

// judge drops the items that need nothing, and reports those that cannot be restored
// and those that need a yes.
func (k *Keeper) judge(items []*item, report *Report) []*item {
	var todo []*item
	for _, it := range items {
		switch {
		case it.now.alike(&it.target):
		case it.closedDir():
			it.now.kind, it.now.mode = folder, it.now.stamp.mode&0o7777
			report.Files = append(report.Files, changeOf(difference{it.path, it.now, it.target}))
			todo = append(todo, it)
		case it.target.kind == unkept:
			report.Left = append(report.Left, Left{it.path, "its content was not kept: it was " + it.target.why.String()})
		case it.now.kind == unkept, it.seen.kind == unkept && it.now.kind == folder:
			report.Left = append(report.Left, Left{it.path, "it is " + it.seen.why.String() + ", and is not replaced"})
		default:
			if it.others == "" && !it.now.alike(&it.last) && !it.seen.alike(&it.last) {
				it.others = "it was changed after the turn"
			}
			if it.others != "" {
				report.Others = append(report.Others, Left{it.path, it.others})
			}
			report.Files = append(report.Files, changeOf(difference{it.path, it.now, it.target}))
			todo = append(todo, it)
		}
	}
	report.Files = pairRenames(report.Files)
	return todo
}

// closedDir reports whether a directory is there and was only made unreadable.
func (it *item) closedDir() bool {
	return it.target.kind == folder && it.seen.kind == unkept && it.seen.why == unreadable && it.now.stamp.isDir()
}

// carryOut writes down what it is about to do, restores, and writes down that it did.
func (k *Keeper) carryOut(ctx context.Context, taken *step, turns []*turn, items []*item, now *dir, report *Report) error {
	k.mu.Lock()
	s := &step{number: 1, before: now.hash, temp: tempPrefix + randomName(), last: k.history.max}
	if n := len(k.history.steps); n > 0 {
		s.number = k.history.steps[n-1].number + 1
	}
	k.mu.Unlock()
	for _, t := range turns {
		s.turns = append(s.turns, t.id)
	}
	if taken != nil {
		s.redo = taken.number
	}
	l := line{Kind: lineUndo, Step: s.number, Redo: s.redo, Turns: s.turns, Tree: s.before.String(), Temp: s.temp, Time: k.o.Now()}
	if err := errors.Join(k.manifest.append(l), k.manifest.sync()); err != nil {
		return err
	}
	k.mu.Lock()
	k.history.steps = append(k.history.steps, s)
	k.mu.Unlock()
	rest := &restorer{store: k.store, root: k.root, temp: s.temp, owners: k.owners}
	err := rest.run(ctx, items)
	report.Left = append(report.Left, rest.left...)
	report.Files = slices.DeleteFunc(report.Files, func(c Change) bool {
		return slices.ContainsFunc(rest.left, func(l Left) bool { return l.Path == c.Path || l.Path == c.From })
	})
	if err != nil {
		return fmt.Errorf("restore files: %w", err)
	}
	return k.snapshot(ctx, func(seen sight) error {
		if err := k.manifest.append(line{Kind: lineDone, Step: s.number, Tree: seen.state.hash.String()}); err != nil {
			return err
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		k.history.finish(s.number, seen.state.hash)
		return nil
	})
}

// sweep removes the temporary files that a killed undo left. They lie in directories
// of its paths and bear a name that only it used.
func (k *Keeper) sweep(ctx context.Context) {
	k.mu.Lock()
	var cut []*step
	for _, s := range k.history.steps {
		if s.cut && validTemp(s.temp) {
			cut = append(cut, s)
		}
	}
	k.mu.Unlock()
	for _, s := range cut {
		var turns []*turn
		k.mu.Lock()
		for _, id := range s.turns {
			if t := k.history.turn(id); t != nil && !t.end.IsZero() {
				turns = append(turns, t)
			}
		}
		k.mu.Unlock()
		items, err := k.plan(ctx, nil, turns)
		if err != nil {
			continue
		}
		for _, it := range items {
			fd, _, err := openParent(k.root, it.path)
			if err == nil {
				_ = unix.Unlinkat(fd, s.temp, 0)
				unix.Close(fd)
			}
		}
	}
}

// validTemp guards what a manifest has deleted.
func validTemp(name string) bool {
	id, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(id) == 16 && strings.Trim(id, "0123456789abcdef") == ""
}

// refs returns HEAD and the branches of the user's repository.
func (k *Keeper) refs(ctx context.Context) map[string]string {
	return gitstate.Refs(ctx, k.o.Root)
}

// moved compares them with what they were when a turn began.
func (k *Keeper) moved(ctx context.Context, t *turn) []Move {
	if t.refs == nil {
		return nil
	}
	now := k.refs(ctx)
	var list []Move
	for ref, from := range t.refs {
		if to := now[ref]; to != from {
			list = append(list, Move{ref, from, to})
		}
	}
	for ref, to := range now {
		if _, ok := t.refs[ref]; !ok {
			list = append(list, Move{ref, "", to})
		}
	}
	slices.SortFunc(list, func(a, b Move) int { return strings.Compare(a.Ref, b.Ref) })
	return list
}
