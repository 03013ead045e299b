package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sys/unix"

	"zcoder/internal/dirfd"
	"zcoder/internal/ignore"
	"zcoder/internal/workspace"
)

// tempPrefix begins the names of the temporary files that this program makes in a
// workspace; package workspace uses it too.
const tempPrefix = ".zcoder-tmp-"

// maxDepth bounds how deep directories are entered; each level holds one descriptor.
const maxDepth = 256

// maxIgnoreFile bounds an ignore file in bytes.
const maxIgnoreFile = 1 << 20

// errLimit means that the workspace has more than is kept.
var errLimit = errors.New("too much to keep")

// scanner looks at a workspace once and says what has to be read. One goroutine
// uses it.
type scanner struct {
	limits   Limits
	has      func(plumbing.Hash) bool
	exclude  []stamp // directories that are not entered, by identity
	owners   bool    // states have owners
	fresh    bool    // what is kept is decided anew; the state before only saves reading
	known    bool    // only names that the state before has are looked at
	started  int64   // nanoseconds; what changed later than this is racy
	rootDev  uint64
	total    total // what is kept so far
	todo     []group
	progress *atomic.Int64 // files looked at

	buf   []byte
	names []string
}

// group is what has to be read in one directory.
type group struct {
	rel   string
	dir   *dir
	items []int // of dir.entries
}

// place is an open directory on the way of a scan.
type place struct {
	fd      int
	rel     string
	depth   int
	ignored bool
	rules   *rules
}

// tree scans the directory root. It returns before itself when nothing differs; in
// what is new the entries in todo have no hash yet. Its error is errLimit when a
// workspace that was not scanned before has too much in it.
func (s *scanner) tree(ctx context.Context, root int, before *dir) (*dir, error) {
	if before != nil && !s.fresh {
		s.total = before.total
	}
	var st unix.Stat_t
	if err := fstat(root, &st); err != nil {
		return nil, fmt.Errorf("look at the workspace: %w", err)
	}
	s.rootDev, s.buf = uint64(st.Dev), make([]byte, 1<<15)
	fd, err := dirfd.Dir(root, ".")
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", err)
	}
	defer unix.Close(fd)
	d, err := s.walk(ctx, place{fd: fd, rules: &rules{fd: fd, top: true}}, before)
	if err != nil && !errors.Is(err, errLimit) && ctx.Err() == nil {
		err = fmt.Errorf("look at the workspace: %w", err)
	}
	return d, err
}

// walk scans one directory.
func (s *scanner) walk(ctx context.Context, at place, before *dir) (*dir, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	known, partial := s.known, s.known || before != nil && before.partial && !s.fresh
	names, err := s.list(at, before, partial)
	if err != nil {
		return nil, err
	}
	defer func(n int) { s.names = s.names[:n] }(len(s.names) - len(names))
	out := collector{before: before, next: &dir{partial: partial}, same: before != nil && !s.fresh && before.partial == partial}
	mark := len(s.todo)
	for _, name := range names {
		if skipped(name) {
			continue
		}
		e, err := s.entry(ctx, at, name, out.old(name))
		if err != nil {
			return nil, err
		}
		if s.known != known { // a limit was reached: only what was known before counts
			s.todo = s.todo[:mark]
			return s.walk(ctx, at, before)
		}
		if e.kind != vanished {
			s.add(&out, at, e)
		}
	}
	return out.dir(), nil
}

// add appends an entry and notes it when it has to be read.
func (s *scanner) add(out *collector, at place, e entry) {
	i := out.add(e)
	if (e.kind != file && e.kind != link) || !e.hash.IsZero() {
		return
	}
	if n := len(s.todo); n == 0 || s.todo[n-1].dir != out.next {
		s.todo = append(s.todo, group{rel: at.rel, dir: out.next})
	}
	last := &s.todo[len(s.todo)-1]
	last.items = append(last.items, i)
}

// collector builds a directory and copies nothing as long as all is as before.
type collector struct {
	before, next *dir
	same         bool
	n            int // entries of before that were added unchanged
	pos          int // where the search for old entries goes on
}

// old returns the entry of before called name. Names come in order.
func (c *collector) old(name string) *entry {
	if c.before == nil {
		return nil
	}
	list := c.before.entries
	for c.pos < len(list) && list[c.pos].name < name {
		c.pos++
	}
	if c.pos < len(list) && list[c.pos].name == name {
		return &list[c.pos]
	}
	return nil
}

func (c *collector) add(e entry) int {
	if c.same && c.n < len(c.before.entries) && c.before.entries[c.n] == e {
		c.n++
		return c.n - 1
	}
	if c.same {
		c.next.entries = append(make([]entry, 0, len(c.before.entries)+1), c.before.entries[:c.n]...)
		c.same = false
	}
	c.next.entries = append(c.next.entries, e)
	return len(c.next.entries) - 1
}

func (c *collector) dir() *dir {
	if c.same && c.n == len(c.before.entries) {
		return c.before
	}
	if c.same {
		c.next.entries = slices.Clone(c.before.entries[:c.n])
	}
	return c.next
}

// list returns the names to look at, in order, on the stack of names.
func (s *scanner) list(at place, before *dir, partial bool) ([]string, error) {
	start := len(s.names)
	if partial {
		if before != nil {
			for i := range before.entries {
				s.names = append(s.names, before.entries[i].name)
			}
		}
		return s.names[start:], nil
	}
	var err error
	if s.names, err = dirfd.List(at.fd, s.buf, s.names); err != nil && at.depth > 0 {
		err = refusal(unreadable)
	}
	names := s.names[start:]
	slices.Sort(names)
	if err == nil && (before == nil || s.fresh) {
		err = s.refuse(at, names)
	}
	if err != nil {
		s.names = s.names[:start]
	}
	return names, err
}

// refusal is a directory that is not entered, as an error.
type refusal why

func (r refusal) Error() string { return why(r).String() }

// refuse decides about a directory by what is in it.
func (s *scanner) refuse(at place, names []string) error {
	if at.depth > 0 && has(names, "HEAD") && has(names, "objects") && has(names, "refs") {
		return refusal(repository)
	}
	if at.ignored && s.total.ignoredFiles+len(names) > s.limits.IgnoredFiles {
		return refusal(ignoredMany)
	}
	return nil
}

func has(names []string, name string) bool {
	_, ok := slices.BinarySearch(names, name)
	return ok
}

// skipped reports whether a name is never part of a state: temporary files and all
// that git could take for its own directory.
func skipped(name string) bool {
	return strings.HasPrefix(name, tempPrefix) || workspace.Protected(name)
}

// entry looks at one name.
func (s *scanner) entry(ctx context.Context, at place, name string, old *entry) (entry, error) {
	var st unix.Stat_t
	err := lstatAt(at.fd, name, &st)
	switch {
	case errors.Is(err, unix.ENOENT):
		if old != nil && (s.known || old.kind == absent || old.pinned) {
			return entry{name: old.name, kind: absent, pinned: old.pinned, dir: old.dir}, nil
		}
		return entry{kind: vanished}, nil
	case err != nil:
		return entry{name: name, kind: unkept, why: unreadable}, nil
	}
	s.progress.Add(1)
	now := stampOf(&st)
	if old != nil && !s.fresh && !old.racy && old.stamp == now && (old.kind == file || old.kind == link) {
		return *old, nil
	}
	e := entry{name: name, mode: uint32(st.Mode) & 0o7777, stamp: now}
	if old != nil && old.name == name {
		e.name = old.name // one string for all states
	}
	if s.owners {
		e.uid, e.gid = st.Uid, st.Gid
	}
	if old != nil && old.kind == unkept && s.known {
		return e.leave(old.why), nil
	}
	switch now.mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFLNK:
		return s.leaf(at, e, old)
	case unix.S_IFDIR:
		return s.folder(ctx, at, e, old)
	}
	return e.leave(special), nil
}

// leave makes e something that is not kept.
func (e entry) leave(because why) entry {
	e.kind, e.why, e.hash = unkept, because, outerSigns(e.stamp)
	if because == ownFiles || because == kernelFiles {
		e.hash = hashOf("unkept", nil) // they change all the time
	}
	e.ignored, e.racy, e.dir, e.mode, e.uid, e.gid = false, false, nil, 0, 0, 0
	return e
}

// leaf decides about a file or a link. What was kept stays kept, whatever the rules
// say now, unless git ignores it and it grew too large.
func (s *scanner) leaf(at place, e entry, old *entry) (entry, error) {
	e.kind = file
	if e.stamp.mode&unix.S_IFMT == unix.S_IFLNK {
		e.kind, e.mode = link, 0
	}
	kept := old != nil && !s.fresh && (old.kind == file || old.kind == link || old.kind == absent)
	if kept {
		e.ignored, e.pinned = old.ignored, old.pinned
	} else {
		e.ignored = at.ignored || at.rules.get().Ignored(e.name, joinPath(at.rel, e.name), false)
	}
	if e.ignored && !e.pinned && e.stamp.size > s.limits.IgnoredFile {
		return e.leave(ignoredLarge), nil
	}
	if !kept {
		next := s.total
		next.add(e.total())
		switch {
		case e.ignored && (next.ignoredFiles > s.limits.IgnoredFiles || next.ignoredBytes > s.limits.IgnoredBytes):
			return e.leave(ignoredMany), nil
		case !e.ignored && (next.files > s.limits.Files || next.bytes > s.limits.Bytes):
			return entry{kind: vanished}, s.full()
		}
		s.total = next
	}
	if old != nil && s.fresh && !old.racy && old.stamp == e.stamp && old.kind == e.kind && s.has(old.hash) {
		e.hash = old.hash
		return e, nil
	}
	e.racy = max(e.stamp.mtime, e.stamp.ctime) >= s.started-slack(e.stamp)
	return e, nil
}

// slack is how far a time stamp may lie behind the moment of the change, in
// nanoseconds: a tick of the kernel, or two seconds on file systems that store whole
// ones.
func slack(s stamp) int64 {
	if s.mtime%1e9 == 0 && s.ctime%1e9 == 0 {
		return 2_100_000_000
	}
	return 20_000_000
}

// full reacts to a limit: a first scan ends, a later one goes on with what is known.
func (s *scanner) full() error {
	if s.fresh {
		return errLimit
	}
	s.known = true
	return nil
}

// dependencyFolders hold what a package manager brings back; ignoredFolders do when
// git ignores them.
var (
	dependencyFolders = []string{".nox", ".tox", ".venv", "bower_components", "jspm_packages", "node_modules"}
	ignoredFolders    = []string{
		".bundle", ".cargo", ".dart_tool", ".direnv", ".eggs", ".gradle", ".m2", ".next", ".nuxt", ".pnpm-store", ".stack-work",
		".terraform", ".yarn", "Pods", "_build", "deps", "elm-stuff", "env", "target", "vendor", "venv",
	}
)

// folder decides about a directory and scans it.
func (s *scanner) folder(ctx context.Context, at place, e entry, old *entry) (entry, error) {
	kept := old != nil && !s.fresh && (old.kind == folder || old.kind == absent)
	because, err := s.judge(at, &e, old, kept)
	if err != nil || because != notWhy {
		return e.leave(because), err
	}
	fd, err := dirfd.Dir(at.fd, e.name)
	switch {
	case errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM):
		return e.leave(unreadable), nil
	case errors.Is(err, unix.ENOENT):
		return entry{kind: vanished}, nil
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		return e.leave(unsteady), nil
	case err != nil:
		return entry{}, err
	}
	defer unix.Close(fd)
	if e.stamp.dev != s.rootDev && workspace.OfKernel(fd) {
		return e.leave(kernelFiles), nil
	}
	var before *dir
	if old != nil {
		before = old.dir
	}
	e.kind = folder
	rel := joinPath(at.rel, e.name)
	e.dir, err = s.walk(ctx, place{fd: fd, rel: rel, depth: at.depth + 1, ignored: e.ignored, rules: &rules{above: at.rules, fd: fd, base: rel}}, before)
	var no refusal
	if errors.As(err, &no) {
		return e.leave(why(no)), nil
	}
	if err != nil {
		return entry{}, err
	}
	e.hash = e.dir.hash
	e.stamp = stamp{dev: e.stamp.dev, ino: e.stamp.ino, mode: e.stamp.mode}
	return e, nil
}

// judge says why a directory is not entered, by its name and identity.
func (s *scanner) judge(at place, e *entry, old *entry, kept bool) (why, error) {
	for _, x := range s.exclude {
		if x.dev == e.stamp.dev && x.ino == e.stamp.ino {
			return ownFiles, nil
		}
	}
	if at.depth >= maxDepth {
		return tooDeep, nil
	}
	if kept {
		e.ignored, e.pinned = old.ignored, old.pinned
		return notWhy, nil
	}
	e.ignored = at.ignored || at.rules.get().Ignored(e.name, joinPath(at.rel, e.name), true)
	switch {
	case slices.Contains(dependencyFolders, e.name), e.ignored && slices.Contains(ignoredFolders, e.name):
		return dependencies, nil
	case e.ignored && old != nil && old.kind == unkept && old.why == ignoredMany && !s.fresh:
		return ignoredMany, nil
	}
	return notWhy, nil
}

// rules are the ignore rules in force in a directory, read when they are first asked
// for.
type rules struct {
	above *rules
	fd    int
	base  string
	top   bool
	read  bool
	chain *ignore.Chain
}

func (r *rules) get() *ignore.Chain {
	if r.read {
		return r.chain
	}
	r.read = true
	if r.above != nil {
		r.chain = r.above.get()
	}
	if r.top {
		if fd, err := openPath(r.fd, ".git/info"); err == nil {
			r.chain = r.chain.With(ignore.Parse("", smallFile(fd, "exclude", maxIgnoreFile)))
			unix.Close(fd)
		}
	}
	r.chain = r.chain.With(ignore.Parse(r.base, smallFile(r.fd, ".gitignore", maxIgnoreFile)))
	return r.chain
}

// smallFile returns the content of a regular file, or "" when there is none or it
// is too large.
func smallFile(at int, name string, limit int64) string {
	fd, err := dirfd.File(at, name)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > limit {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(fdReader(fd), limit))
	if err != nil {
		return ""
	}
	return string(text)
}
