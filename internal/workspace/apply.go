package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// Change is one file to write or to remove.
type Change struct {
	Path Path
	// Content is the new content; Parts, when not nil, are written one after the
	// other in its stead, so that an edit of a large file needs no copy of it.
	Content []byte
	Parts   [][]byte
	Remove  bool
	// Expect is what the file must still be; zero: it must not exist.
	Expect Stamp
	// Mode holds permission bits: exact for a file that exists, less umask for a
	// new one. Zero keeps the mode, or is 0666 less umask.
	Mode fs.FileMode
}

// pending is a change on its way.
type pending struct {
	Change
	dir    *os.Root    // the parent of the target
	name   string      // the last component of the target
	before fs.FileInfo // of the target, nil when there is none
	temp   string      // the staged content, "" when there is none
	backup string      // the old content, "" when there is none
	made   []madeDir   // directories made for the target, outermost first
	done   bool        // the target has the new content
}

type madeDir struct {
	parent *os.Root
	name   string
}

// Apply makes all changes or none. It refuses what WriteReasons says is never
// writable and what is not as expected (ErrChanged), writes the new contents beside
// their targets, syncs them and renames them into place. A target keeps its mode,
// owner, extended attributes and, when it was reached through one, its link; missing
// parent directories are made. When one change fails, those that were made are taken
// back; the error says which could not be. A kill leaves each file with its old or
// its new content. Apply blocks on the disk; calls run one at a time.
func (w *Workspace) Apply(changes ...Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.check(changes); err != nil {
		return err
	}
	list := make([]*pending, len(changes))
	for i, c := range changes {
		list[i] = &pending{Change: c, name: path.Base(c.Path.rel)}
	}
	err := w.stageAll(list)
	if err == nil {
		err = w.commitAll(list)
	}
	if err != nil {
		return errors.Join(rollBack(list, err), w.tidy(list))
	}
	// What tidying leaves after all changes were made is still in the journal.
	_ = w.tidy(list)
	return nil
}

// check refuses changes that can be seen to be wrong before anything is written.
func (w *Workspace) check(changes []Change) error {
	seen := map[string]bool{}
	for _, c := range changes {
		if c.Path.w != w {
			return fmt.Errorf("write %q: the path is of another workspace", c.Path.rel)
		}
		if seen[c.Path.rel] {
			return fmt.Errorf("write %q: it is named twice", c.Path.rel)
		}
		seen[c.Path.rel] = true
		if c.Mode&^fs.ModePerm != 0 {
			return fmt.Errorf("write %q: mode %v has more than permission bits", c.Path.rel, c.Mode)
		}
		if err := c.Path.neverWritable(); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		now, err := w.StampOf(c.Path)
		if errors.Is(err, fs.ErrNotExist) {
			now, err = Stamp{}, nil
		}
		if err != nil {
			return fmt.Errorf("write %q: %w", c.Path.rel, err)
		}
		if !now.Same(c.Expect) {
			return fmt.Errorf("write %q: it %w", c.Path.rel, ErrChanged)
		}
		if c.Remove && c.Expect == (Stamp{}) {
			return fmt.Errorf("remove %q: it does not exist", c.Path.rel)
		}
	}
	return nil
}

func (w *Workspace) stageAll(list []*pending) error {
	for _, p := range list {
		if err := w.prepare(p); err != nil {
			return err
		}
		if p.Remove {
			continue
		}
		if err := w.stage(p); err != nil {
			return fmt.Errorf("write %q: %w", p.Path.rel, plainError(err))
		}
	}
	return nil
}

// prepare opens the parent, makes it when it is missing, and looks at the target.
func (w *Workspace) prepare(p *pending) error {
	dir, err := w.dir.OpenRoot(".")
	if err != nil {
		return fmt.Errorf("open the workspace: %w", plainError(err))
	}
	p.dir = dir
	if parent := path.Dir(p.Path.rel); parent != "." {
		for name := range strings.SplitSeq(parent, "/") {
			if err := p.descend(name); err != nil {
				return fmt.Errorf("write %q: %w", p.Path.rel, err)
			}
		}
	}
	p.before, err = p.dir.Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		p.before, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", p.Path.rel, plainError(err))
	}
	return p.isExpected(p.before)
}

// descend goes on to the directory called name and makes it when it is missing. A
// directory whose child was made stays open for a rollback.
func (p *pending) descend(name string) error {
	err := p.dir.Mkdir(name, 0o777)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory %q: %w", name, plainError(err))
	}
	parent := p.dir
	if err == nil {
		p.made = append(p.made, madeDir{parent, name})
	}
	next, enterErr := enter(parent, name)
	if enterErr != nil {
		return enterErr
	}
	if err != nil {
		parent.Close()
	}
	p.dir = next
	return nil
}

// isExpected compares what is at the target with the stamp that was checked.
func (p *pending) isExpected(now fs.FileInfo) error {
	if now == nil && p.Expect == (Stamp{}) {
		return nil
	}
	if now != nil {
		dev, ino := identity(now)
		if dev == p.Expect.Dev && ino == p.Expect.Ino && now.Size() == p.Expect.Size && now.Mode() == p.Expect.Mode {
			return nil
		}
	}
	return fmt.Errorf("write %q: it %w", p.Path.rel, ErrChanged)
}

// commitAll puts the staged contents into place.
func (w *Workspace) commitAll(list []*pending) error {
	for _, p := range list {
		if len(list) > 1 && p.before != nil {
			if err := w.backUp(p); err != nil {
				return fmt.Errorf("keep the old %q: %w", p.Path.rel, plainError(err))
			}
		}
	}
	for _, p := range list {
		if err := p.commit(); err != nil {
			return err
		}
	}
	for _, p := range list {
		if err := p.syncDirs(); err != nil {
			return fmt.Errorf("write %q: sync its directory: %w", p.Path.rel, plainError(err))
		}
	}
	return nil
}

// commit looks once more at the target and replaces or removes it. Renaming
// replaces a link and never follows it.
func (p *pending) commit() error {
	now, err := p.dir.Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		now, err = nil, nil
	}
	if err == nil {
		err = p.isExpected(now)
	}
	if err != nil {
		return err
	}
	if p.Remove {
		err = p.dir.Remove(p.name)
	} else {
		err = p.dir.Rename(p.temp, p.name)
	}
	if err != nil {
		return fmt.Errorf("write %q: %w", p.Path.rel, plainError(err))
	}
	p.done = true
	if !p.Remove {
		p.temp = ""
	}
	return nil
}

// syncDirs makes the names durable, in the directories that were made too.
func (p *pending) syncDirs() error {
	dirs := []*os.Root{p.dir}
	for _, made := range p.made {
		dirs = append(dirs, made.parent)
	}
	for _, dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // this file system has no sync for directories
	}
	return err
}

// rollBack takes back what was done, in reverse order, and adds to cause what it
// could not.
func rollBack(list []*pending, cause error) error {
	var left []string
	for i := len(list) - 1; i >= 0; i-- {
		p := list[i]
		if p.done && p.undo() != nil {
			left = append(left, fmt.Sprintf("%q", p.Path.rel))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%w; these changes were made and could not be taken back: %s", cause, strings.Join(left, ", "))
	}
	return cause
}

func (p *pending) undo() error {
	if p.before == nil {
		err := p.dir.Remove(p.name)
		p.done = err != nil
		return err
	}
	if p.backup == "" {
		return errors.New("no old content was kept")
	}
	if err := p.dir.Rename(p.backup, p.name); err != nil {
		return err
	}
	p.backup, p.done = "", false
	return nil
}

// tidy removes temporary files and, for changes that were not made, the directories
// that were made for them, and closes what was opened. It says which temporary
// files are left; the journal still has those.
func (w *Workspace) tidy(list []*pending) error {
	var errs []error
	for i := len(list) - 1; i >= 0; i-- {
		p := list[i]
		if p.dir == nil {
			continue
		}
		for _, name := range []string{p.temp, p.backup} {
			if name == "" {
				continue
			}
			if err := p.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, fmt.Errorf("remove temporary file %q: %w", path.Join(path.Dir(p.Path.rel), name), plainError(err)))
			}
		}
		for j := len(p.made) - 1; j >= 0; j-- {
			if !p.done {
				_ = p.made[j].parent.Remove(p.made[j].name) // only succeeds when it is empty
			}
			p.made[j].parent.Close()
		}
		p.dir.Close()
	}
	if len(errs) == 0 {
		errs = append(errs, w.forget())
	}
	return errors.Join(errs...)
}
