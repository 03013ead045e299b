package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"zcoder/internal/dirfd"
	"zcoder/internal/workspace"
)

// ID names a turn: 1, 2, … within a session.
type ID int

// Now stands for the present state where an ID is asked for.
const Now ID = 0

// maxLabel bounds the label of a turn, in bytes.
const maxLabel = 200

// Begin starts the first snapshot in the background, so that it is there when the
// first turn needs it. It returns at once.
func (k *Keeper) Begin(ctx context.Context) { k.start(ctx, nil) }

// Turn notes that a turn begins and starts to mark its state in the background. It
// returns at once; Ready waits. The label is shown by List. The state is the one that
// the workspace has some time between this call and the return of Ready or, for a
// file, of KeepFile.
func (k *Keeper) Turn(ctx context.Context, label string) (ID, error) {
	k.mu.Lock()
	t := &turn{id: k.history.max + 1, label: cutLabel(label), at: k.o.Now()}
	k.mu.Unlock()
	err := k.manifest.append(line{Kind: lineTurn, Turn: t.id, Time: t.at, Label: t.label})
	if err != nil {
		return 0, err
	}
	current := &open{turn: t}
	k.mu.Lock()
	k.history.turns, k.history.max = append(k.history.turns, t), t.id
	k.turn = current
	k.mu.Unlock()
	k.start(ctx, current)
	return t.id, nil
}

func cutLabel(label string) string {
	label = strings.ToValidUTF8(label, "\uFFFD")
	if len(label) <= maxLabel {
		return label
	}
	end := maxLabel - len("…")
	for !utf8.RuneStart(label[end]) {
		end--
	}
	return label[:end] + "…"
}

// start marks the state of a turn, or of none, after the work before it.
func (k *Keeper) start(ctx context.Context, t *open) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &work{done: make(chan struct{})}
	k.mu.Lock()
	before := k.work
	k.work = w
	if k.closed {
		k.mu.Unlock()
		cancel()
		w.err = errors.New("the checkpoints are closed")
		close(w.done)
		return
	}
	k.running.Add(2)
	k.mu.Unlock()
	go func() {
		defer k.running.Done()
		select {
		case <-k.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		defer k.running.Done()
		defer cancel()
		if before != nil {
			<-before.done
		}
		w.err = k.background(ctx, t)
		close(w.done)
		if w.err == nil {
			k.tidy(ctx)
		}
	}()
}

func (k *Keeper) background(ctx context.Context, t *open) error {
	if err := k.enter(ctx); err != nil {
		return err
	}
	defer k.leave()
	if err := k.mark(ctx, t); err != nil {
		return fmt.Errorf("take a checkpoint: %w", err)
	}
	return nil
}

// tidy saves time and space for later, once in the life of a Keeper and when there
// are many packs. The checkpoint is there without it.
func (k *Keeper) tidy(ctx context.Context) {
	first := false
	k.once.Do(func() { first = true })
	if first {
		k.sweep(ctx)
		_ = k.saveCache()
	}
	if packs, size := k.store.count(); first || packs > maxPacks || size > k.limits.Store {
		_ = k.prune(ctx)
	}
}

// mark scans the workspace and makes the state that it finds the beginning of t.
func (k *Keeper) mark(ctx context.Context, t *open) error {
	if err := k.store.share(ctx); err != nil {
		return err
	}
	defer k.store.unlock()
	pack := newPackWriter(k.store)
	defer pack.abort()
	refs := k.refs(ctx)
	seen, err := k.look(ctx, pack)
	if err == nil && t != nil {
		err = pack.settle()
	}
	if err != nil {
		return err
	}
	k.keep.Lock()
	defer k.keep.Unlock()
	begin, now := seen.state, seen.state
	if t != nil && t.kept != nil {
		begin, now = overlay(begin, t.kept), pin(now, t.kept)
	}
	if err := pack.finishStates(begin, now); err != nil {
		return err
	}
	if t != nil {
		err = k.record(pack, line{Kind: lineTurn, Turn: t.id, Tree: begin.hash.String(), Refs: refs})
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now = now
	if t != nil {
		t.state, t.begin, t.refs = begin, begin.hash, refs
	}
	return nil
}

// record appends a line about a state at the beginning of a turn. It is made durable
// when the pack brought something that no line named before.
func (k *Keeper) record(pack *packWriter, l line) error {
	err := k.manifest.append(l)
	if err == nil && pack.wrote {
		err = k.manifest.sync()
	}
	return err
}

// finishStates writes the directories of the states and commits the pack.
func (p *packWriter) finishStates(states ...*dir) error {
	q := p.s.squeezer()
	defer p.s.putSqueezer(q)
	for _, d := range states {
		if err := p.seal(q, d); err != nil {
			return err
		}
	}
	return p.commit()
}

// sight is what a scan brought.
type sight struct {
	state  *dir
	unsure []string // files that may be kept with mixed content
}

// look scans the workspace and puts what is new into the pack. The caller holds the
// operation and shares the store.
func (k *Keeper) look(ctx context.Context, pack *packWriter) (sight, error) {
	k.mu.Lock()
	before, known := k.now, k.known
	k.mu.Unlock()
	s := k.scanner(known)
	switch {
	case before == nil:
		s.fresh = true
		before = k.loadCache()
	case before.hash.IsZero(): // an empty one that others may look at while this one is sealed
		before = emptyState()
	}
	state, err := s.tree(ctx, k.root, before)
	if errors.Is(err, errLimit) {
		k.mu.Lock()
		k.restrict(fmt.Sprintf("the workspace has more than %d files or %d MB", k.limits.Files, k.limits.Bytes>>20))
		k.mu.Unlock()
		s, before = k.scanner(true), emptyState()
		state, err = s.tree(ctx, k.root, before)
	}
	if err != nil {
		return sight{}, err
	}
	unsure, err := readAll(ctx, k.root, s.todo, pack, k.limits.Bytes, &k.read)
	if err != nil {
		return sight{}, err
	}
	q := k.store.squeezer()
	defer k.store.putSqueezer(q)
	if err := pack.seal(q, state); err != nil {
		return sight{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stale = k.stale || state != before
	if s.known && !k.known {
		k.restrict(fmt.Sprintf("the workspace grew to more than %d files or %d MB; new files are kept only when tools edit them", k.limits.Files, k.limits.Bytes>>20))
	}
	return sight{state, unsure}, nil
}

func (k *Keeper) scanner(known bool) *scanner {
	return &scanner{
		limits: k.limits, has: k.store.has, exclude: k.exclude, owners: k.owners, known: known,
		started: k.o.Now().UnixNano(), progress: &k.looked,
	}
}

// Ready waits until the state at the beginning of the turn is kept, and notes that
// the turn may change files from here on. It is for the first action of a turn that
// may change anything; more calls cost nothing. An error means that what is changed
// now cannot be undone.
func (k *Keeper) Ready(ctx context.Context) error {
	k.mu.Lock()
	w, t := k.work, k.turn
	k.mu.Unlock()
	if t == nil {
		return errors.New("no turn was begun")
	}
	if err := k.acts(t); err != nil {
		return err
	}
	return w.wait(ctx)
}

func (w *work) wait(ctx context.Context) error {
	if w == nil {
		return nil
	}
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acts notes that the turn may change files.
func (k *Keeper) acts(t *open) error {
	k.mu.Lock()
	had := t.turn.acts
	t.turn.acts = true
	k.mu.Unlock()
	if had {
		return nil
	}
	return k.manifest.append(line{Kind: lineActs, Turn: t.id})
}

// KeepFile keeps files as they are before a tool edits them. The paths are relative to
// the workspace, with slashes and without links in them; a file need not exist. It
// waits only for these files, also while the whole workspace is being looked at, and
// does nothing for files that are kept already. An error means that the edit could not
// be undone.
func (k *Keeper) KeepFile(ctx context.Context, rels ...string) error {
	k.keep.Lock()
	defer k.keep.Unlock()
	k.mu.Lock()
	t := k.turn
	k.mu.Unlock()
	if t == nil {
		return errors.New("no turn was begun")
	}
	if err := k.acts(t); err != nil {
		return err
	}
	var need []string
	for _, rel := range rels {
		if err := checkRel(rel); err != nil {
			return err
		}
		covered, err := k.covered(t, rel)
		if err != nil {
			return err
		}
		if !covered {
			need = append(need, rel)
		}
	}
	if len(need) == 0 {
		return nil
	}
	return k.keepNow(ctx, t, need)
}

func checkRel(rel string) error {
	for name := range strings.SplitSeq(rel, "/") {
		if !plainName(name) || strings.HasPrefix(name, tempPrefix) {
			return fmt.Errorf("keep %q: it is no plain relative path", rel)
		}
	}
	if workspace.Protected(rel) {
		return fmt.Errorf("keep %q: it is git's own", rel)
	}
	return nil
}

// covered reports whether the beginning of the turn knows a file.
func (k *Keeper) covered(t *open, rel string) (bool, error) {
	k.mu.Lock()
	state := t.state
	if state == nil {
		state = t.kept
	}
	k.mu.Unlock()
	if state == nil {
		return false, nil
	}
	_, known, err := k.store.lookup(state, rel)
	return known, err
}

// keepNow reads files and adds them to the beginning of the turn. The caller holds
// keep.
func (k *Keeper) keepNow(ctx context.Context, t *open, rels []string) error {
	if err := k.store.share(ctx); err != nil {
		return err
	}
	defer k.store.unlock()
	pack := newPackWriter(k.store)
	defer pack.abort()
	kept, err := k.capture(pack, t.kept, rels, false)
	if err != nil {
		return err
	}
	k.mu.Lock()
	begin, now := kept, k.now
	if t.state != nil {
		begin, now = overlay(t.state, kept), pin(k.now, kept)
	}
	k.mu.Unlock()
	states := []*dir{kept, begin}
	if t.state != nil {
		states = append(states, now)
	}
	if err := pack.finishStates(states...); err != nil {
		return err
	}
	if err := k.record(pack, line{Kind: lineTurn, Turn: t.id, Tree: begin.hash.String()}); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t.kept, t.begin = kept, begin.hash
	if t.state != nil {
		t.state, k.now = begin, now
	}
	return nil
}

// capture reads files, wherever they are and whatever the rules say, and returns kept
// with them.
func (k *Keeper) capture(pack *packWriter, kept *dir, rels []string, force bool) (*dir, error) {
	if kept == nil {
		kept = emptyState()
	}
	r := &reader{pack: pack, limit: k.limits.Bytes, force: force, q: k.store.squeezer()}
	defer k.store.putSqueezer(r.q)
	for _, rel := range rels {
		chain, err := k.chain(r, rel)
		if err != nil {
			return nil, fmt.Errorf("keep %q: %w", rel, err)
		}
		if last := chain[len(chain)-1]; last.kind == unkept && !force {
			return nil, fmt.Errorf("keep %q: it is %s", rel, last.why)
		}
		kept = insert(kept, chain)
	}
	return kept, nil
}

// chain returns what there is on the way to a path, the outermost first: directories,
// then what it ends with. When something is missing, so is the rest.
func (k *Keeper) chain(r *reader, rel string) ([]entry, error) {
	fd, err := dirfd.Dir(k.root, ".")
	if err != nil {
		return nil, err
	}
	defer func() { unix.Close(fd) }()
	var chain []entry
	names := strings.Split(rel, "/")
	for i, name := range names {
		e, err := k.glance(r, fd, name)
		if err != nil {
			return nil, err
		}
		chain = append(chain, e)
		switch {
		case e.kind == absent:
			for _, rest := range names[i+1:] {
				chain = append(chain, entry{name: rest, kind: absent})
			}
			return chain, nil
		case e.kind != folder || i == len(names)-1:
			return chain, nil
		}
		next, err := dirfd.Dir(fd, name)
		if errors.Is(err, unix.EACCES) {
			chain[i] = e.leave(unreadable)
			return chain, nil
		}
		if err != nil {
			return nil, err
		}
		unix.Close(fd)
		fd = next
	}
	return chain, nil
}

// glance looks at one name and reads what it finds.
func (k *Keeper) glance(r *reader, fd int, name string) (entry, error) {
	var st unix.Stat_t
	err := lstatAt(fd, name, &st)
	if errors.Is(err, unix.ENOENT) {
		return entry{name: name, kind: absent}, nil
	}
	if err != nil {
		return entry{}, err
	}
	e := entry{name: name, mode: uint32(st.Mode) & 0o7777, stamp: stampOf(&st), pinned: true, racy: true}
	if k.owners {
		e.uid, e.gid = st.Uid, st.Gid
	}
	switch e.stamp.mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.kind, e.racy, e.dir = folder, false, emptyState()
		e.stamp = stamp{dev: e.stamp.dev, ino: e.stamp.ino, mode: e.stamp.mode}
		return e, nil
	case unix.S_IFLNK:
		e.kind, e.mode = link, 0
	case unix.S_IFREG:
		e.kind = file
	default:
		return e.leave(special), nil
	}
	if err := r.entry(fd, &e); err != nil {
		return entry{}, err
	}
	if e.kind == vanished {
		return entry{name: name, kind: absent}, nil
	}
	e.racy = true
	return e, nil
}
