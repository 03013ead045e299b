package gitstate

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"zcoder/internal/dirfd"
	"zcoder/internal/ignore"
)

const (
	maxIndex  = 1 << 27 // bytes
	maxIgnore = 1 << 20 // bytes of an ignore file
	maxConfig = 1 << 20 // bytes of a configuration
	maxDepth  = 256     // of directories; each level holds one descriptor
)

// errDirty and errUnsure end a walk with its answer.
var (
	errDirty  = errors.New("dirty")
	errUnsure = errors.New("unsure")
)

// dirty answers as git status does without filters: from the commit, the index and
// the work tree. Nothing in the repository is changed; git refreshes its index, this
// does not.
func (r *repository) dirty(ctx context.Context, h head, home string) Dirt {
	c := &checker{repo: r, config: r.config()}
	err := c.compare(ctx, h, home)
	switch {
	case errors.Is(err, errDirty):
		return Dirty
	case err != nil || ctx.Err() != nil:
		return Unknown
	case c.unsure:
		return Unknown
	}
	return Clean
}

// checker compares one work tree.
type checker struct {
	repo    *repository
	config  config
	entries []indexEntry
	indexAt int64 // when the index was written, in nanoseconds
	unsure  bool  // something was not looked into
	buf     []byte
}

// config is what of a repository's configuration bears on the answer. It is only
// read: what it names is never opened or run.
type config struct {
	converts   bool // content may differ from the file: no comparing of bytes
	noFileMode bool
	sha256     bool
	elsewhere  bool // the work tree is not where it seems
}

// config reads a few keys, loosely: a key that stands anywhere counts.
func (r *repository) config() config {
	var c config
	for _, path := range []string{filepath.Join(r.common, "config"), filepath.Join(r.dir, "config.worktree")} {
		text, err := readFile(path, maxConfig)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			c.converts = true
		}
		for key, value := range configKeys(text) {
			value = strings.ToLower(value)
			c.converts = c.converts || key == "autocrlf" || key == "eol" || strings.HasPrefix(key, "[include")
			c.noFileMode = c.noFileMode || key == "filemode" && value == "false"
			c.sha256 = c.sha256 || key == "objectformat" && value == "sha256"
			c.elsewhere = c.elsewhere || key == "worktree" || (key == "bare" || key == "sparsecheckout") && value == "true"
		}
	}
	if _, err := readFile(filepath.Join(r.common, "info", "attributes"), maxIgnore); !errors.Is(err, unix.ENOENT) {
		c.converts = true
	}
	return c
}

// configKeys yields the keys of a configuration, in lower case and without their
// sections, with their values. A section header is a key of its own.
func configKeys(text string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "[") {
				head, rest, _ := strings.Cut(line, "]")
				if !yield(strings.ToLower(head), "") {
					return
				}
				line = rest
			}
			key, value, assigned := strings.Cut(line, "=")
			if !assigned {
				value = "true"
			}
			if !yield(strings.ToLower(strings.TrimSpace(key)), strings.Trim(strings.TrimSpace(value), `"`)) {
				return
			}
		}
	}
}

// userSettings reads what the user's own configuration says about ignored files and
// line ends.
func (c *checker) userSettings(home string) *ignore.Rules {
	if home == "" {
		return nil
	}
	path := filepath.Join(home, ".config", "git", "ignore")
	for _, file := range []string{filepath.Join(home, ".config", "git", "config"), filepath.Join(home, ".gitconfig")} {
		text, _ := readFile(file, maxConfig)
		for key, value := range configKeys(text) {
			c.config.converts = c.config.converts || key == "autocrlf" || key == "eol"
			if key == "excludesfile" {
				if rest, ok := strings.CutPrefix(value, "~/"); ok {
					value = filepath.Join(home, rest)
				}
				path = value
			}
		}
	}
	text, _ := readFile(path, maxIgnore)
	return ignore.Parse("", text)
}

func (c *checker) compare(ctx context.Context, h head, home string) error {
	if c.config.sha256 || c.config.elsewhere {
		return errUnsure
	}
	path := filepath.Join(c.repo.dir, "index")
	text, err := readFile(path, maxIndex)
	if errors.Is(err, unix.ENOENT) {
		text, err = "DIRC\x00\x00\x00\x02\x00\x00\x00\x00"+strings.Repeat("\x00", sha1.Size), nil
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) == nil {
		c.indexAt = st.Mtim.Nano()
	}
	if c.entries, err = parseIndex([]byte(text)); err != nil {
		return err
	}
	for i := range c.entries {
		e := &c.entries[i]
		if e.stage != 0 || e.intent {
			return errDirty
		}
		c.config.converts = c.config.converts || e.path == ".gitattributes" || strings.HasSuffix(e.path, "/.gitattributes")
	}
	rules := (*ignore.Chain)(nil).With(c.userSettings(home))
	if err := c.staged(ctx, h); err != nil {
		return err
	}
	return c.worktree(ctx, rules)
}

// staged compares the index with the commit.
func (c *checker) staged(ctx context.Context, h head) error {
	if h.commit == "" {
		if h.ref == "" || len(c.entries) > 0 {
			return errDirty
		}
		return nil
	}
	want, err := c.repo.treeOfCommit(ctx, h.commit)
	if err != nil {
		return err
	}
	if treeOf(c.entries) != want {
		return errDirty
	}
	return nil
}

// worktree compares the work tree with the index.
func (c *checker) worktree(ctx context.Context, rules *ignore.Chain) error {
	fd, err := dirfd.Dir(unix.AT_FDCWD, c.repo.tree)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	c.buf = make([]byte, 1<<15)
	text, _ := readFile(filepath.Join(c.repo.common, "info", "exclude"), maxIgnore)
	rules = rules.With(ignore.Parse("", text))
	return c.dir(ctx, place{fd: fd, rules: rules, entries: c.entries})
}

// place is an open directory with the entries of the index below it.
type place struct {
	fd      int
	rel     string // with a slash at the end, or ""
	rules   *ignore.Chain
	entries []indexEntry
	depth   int
	ignored bool
}

// dir compares one directory: every entry of the index is there and the same, and
// nothing is there that is neither in the index nor ignored.
func (c *checker) dir(ctx context.Context, at place) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if at.depth > maxDepth {
		return errUnsure
	}
	names, err := dirfd.List(at.fd, c.buf, nil)
	if err != nil {
		return err
	}
	if slices.Contains(names, ".gitignore") && !at.ignored {
		at.rules = at.rules.With(ignore.Parse(strings.TrimSuffix(at.rel, "/"), smallFile(ctx, at.fd, ".gitignore")))
	}
	slices.Sort(names)
	if err := c.tracked(ctx, at); err != nil {
		return err
	}
	return c.untracked(ctx, at, names)
}

// tracked looks at what the index has in a directory.
func (c *checker) tracked(ctx context.Context, at place) error {
	for i := 0; i < len(at.entries); {
		name, _, below := strings.Cut(at.entries[i].path[len(at.rel):], "/")
		if !below {
			if err := c.file(ctx, at, name, &at.entries[i]); err != nil {
				return err
			}
			i++
			continue
		}
		sub := at.rel + name + "/"
		n := i
		for n < len(at.entries) && strings.HasPrefix(at.entries[n].path, sub) {
			n++
		}
		if err := c.subdir(ctx, at, name, at.entries[i:n]); err != nil {
			return err
		}
		i = n
	}
	return nil
}

// subdir goes into a directory of which the index has something.
func (c *checker) subdir(ctx context.Context, at place, name string, entries []indexEntry) error {
	fd, err := dirfd.Dir(at.fd, name)
	if err != nil {
		if slices.ContainsFunc(entries, func(e indexEntry) bool { return !e.skipWorktree }) {
			return errDirty
		}
		return nil
	}
	defer unix.Close(fd)
	rel := at.rel + name
	ignored := at.ignored || at.rules.Ignored(name, rel, true)
	return c.dir(ctx, place{fd: fd, rel: rel + "/", rules: at.rules, entries: entries, depth: at.depth + 1, ignored: ignored})
}

// untracked looks for what the index does not have.
func (c *checker) untracked(ctx context.Context, at place, names []string) error {
	for _, name := range names {
		if name == ".git" || at.ignored || c.has(at, name) {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(at.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue
		}
		isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		kept := st.Mode&unix.S_IFMT == unix.S_IFREG || st.Mode&unix.S_IFMT == unix.S_IFLNK
		if !isDir && !kept || at.rules.Ignored(name, at.rel+name, isDir) {
			continue
		}
		if !isDir {
			return errDirty
		}
		if err := c.newDir(ctx, at, name); err != nil {
			return err
		}
	}
	return nil
}

// newDir looks for a file in a directory that the index does not have. A repository
// of its own in it counts as one.
func (c *checker) newDir(ctx context.Context, at place, name string) error {
	fd, err := dirfd.Dir(at.fd, name)
	if err != nil {
		return nil // git cannot look into it either, and does not count it
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstatat(fd, ".git", &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		return errDirty
	}
	return c.dir(ctx, place{fd: fd, rel: at.rel + name + "/", rules: at.rules, depth: at.depth + 1})
}

// has reports whether the index has a file called name in the directory, or something
// below it.
func (c *checker) has(at place, name string) bool {
	path := at.rel + name
	byPath := func(e indexEntry, p string) int { return strings.Compare(e.path, p) }
	if _, found := slices.BinarySearchFunc(at.entries, path, byPath); found {
		return true
	}
	i, _ := slices.BinarySearchFunc(at.entries, path+"/", byPath)
	return i < len(at.entries) && strings.HasPrefix(at.entries[i].path, path+"/")
}

// The modes of the index.
const (
	modeFile    = 0o100644
	modeProgram = 0o100755
	modeLink    = 0o120000
	modeModule  = 0o160000
)

// file compares one entry of the index.
func (c *checker) file(ctx context.Context, at place, name string, e *indexEntry) error {
	if e.skipWorktree || e.assumeValid {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var st unix.Stat_t
	if unix.Fstatat(at.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return errDirty
	}
	kind := uint32(st.Mode) & unix.S_IFMT
	switch e.mode {
	case modeModule:
		if kind != unix.S_IFDIR {
			return errDirty
		}
		return c.submodule(at, name, e)
	case modeLink:
		if kind != unix.S_IFLNK {
			return errDirty
		}
	case modeFile, modeProgram:
		if kind != unix.S_IFREG || !c.config.noFileMode && (st.Mode&0o100 != 0) != (e.mode == modeProgram) {
			return errDirty
		}
	default:
		return errUnsure
	}
	if c.unchanged(e, &st) {
		return nil
	}
	return c.content(ctx, at, name, e, &st)
}

// unchanged reports whether the stamps prove that a file is as it was, by git's rule:
// a file as new as the index itself proves nothing.
func (c *checker) unchanged(e *indexEntry, st *unix.Stat_t) bool {
	m, t := st.Mtim, st.Ctim
	return e.size == uint32(st.Size) && e.mtime == uint32(m.Sec) && (e.mtimeNano == 0 || e.mtimeNano == uint32(m.Nsec)) &&
		e.ctime == uint32(t.Sec) && (e.ctimeNano == 0 || e.ctimeNano == uint32(t.Nsec)) && e.ino == uint32(st.Ino) &&
		m.Nano() < c.indexAt
}

// content compares by content, when git's filters cannot change it.
func (c *checker) content(ctx context.Context, at place, name string, e *indexEntry, st *unix.Stat_t) error {
	if e.size != uint32(st.Size) && e.size != 0 && !c.config.converts {
		return errDirty
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "blob %d\x00", st.Size)
	if e.mode == modeLink {
		target := make([]byte, st.Size+1)
		n, err := unix.Readlinkat(at.fd, name, target)
		if err != nil || int64(n) != st.Size {
			return errUnsure
		}
		sum.Write(target[:n])
	} else if err := copyFile(ctx, sum, at.fd, name, st.Size); err != nil {
		return err
	}
	switch {
	case [sha1.Size]byte(sum.Sum(nil)) == e.hash:
		return nil
	case c.config.converts && e.mode != modeLink:
		return errUnsure
	}
	return errDirty
}

// submodule compares the commit of a submodule. What is in it is not looked at.
func (c *checker) submodule(at place, name string, e *indexEntry) error {
	dir := filepath.Join(c.repo.tree, at.rel, name)
	sub, ok := repositoryAt(dir, dir)
	if !ok {
		return nil // it was not fetched
	}
	c.unsure = true
	if !inside(sub.dir, c.repo.tree) {
		return nil
	}
	if commit := sub.head().commit; commit != "" && commit != fmt.Sprintf("%x", e.hash) {
		return errDirty
	}
	return nil
}

func copyFile(ctx context.Context, to io.Writer, at int, name string, size int64) error {
	fd, err := dirfd.File(at, name)
	if err != nil {
		return errUnsure
	}
	defer unix.Close(fd)
	buf := make([]byte, 1<<16)
	for size > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Read(fd, buf[:min(size, int64(len(buf)))])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return errUnsure
		}
		_, _ = to.Write(buf[:n]) // a hash takes all
		size -= int64(n)
	}
	return nil
}

// smallFile returns the content of an ignore file, or "".
func smallFile(ctx context.Context, at int, name string) string {
	var st unix.Stat_t
	if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxIgnore {
		return ""
	}
	var b strings.Builder
	if copyFile(ctx, &b, at, name, st.Size) != nil {
		return ""
	}
	return b.String()
}
