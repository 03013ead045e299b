package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
)

// restorer puts files back. It opens every directory from the root of the workspace
// on without following links, and replaces a file by renaming a complete one over it.
// What is not as it was looked at just before stays.
type restorer struct {
	store  *store
	root   int
	temp   string // the name of temporary files
	owners bool

	left   []Left
	dirs   map[string]bool // directories to sync
	opened []openedDir
}

// openedDir is a directory that was made writable for the moment.
type openedDir struct {
	rel string
	was stamp
}

func (r *restorer) leave(rel string, err error) {
	r.left = append(r.left, Left{rel, err.Error()})
}

// run restores the items, which are sorted by path. Its error is that of the context
// or of a last sync; whatever else goes wrong is in left.
func (r *restorer) run(ctx context.Context, items []*item) error {
	r.dirs = map[string]bool{}
	err := r.steps(ctx, items)
	for _, d := range slices.Backward(r.opened) {
		if dir, name := splitPath(d.rel); name != "" {
			if fd, err := openPath(r.root, dir); err == nil {
				_ = chmodAt(fd, name, d.was, d.was.mode&0o7777)
				unix.Close(fd)
			}
		}
	}
	return errors.Join(err, r.sync())
}

func (r *restorer) steps(ctx context.Context, items []*item) error {
	failed := map[string]bool{}
	for _, it := range slices.Backward(items) { // what is in a directory before it
		if err := ctx.Err(); err != nil {
			return err
		}
		if it.mustGo() {
			if err := r.remove(it); err != nil {
				failed[it.path] = true
				r.leave(it.path, err)
			}
		}
	}
	for _, it := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		if failed[it.path] || it.target.kind == absent {
			continue
		}
		if err := r.create(it); err != nil {
			failed[it.path] = true
			r.leave(it.path, err)
		}
	}
	for _, it := range slices.Backward(items) {
		if it.target.kind == folder && !failed[it.path] {
			if err := r.finishDir(it); err != nil {
				r.leave(it.path, err)
			}
		}
	}
	return nil
}

var (
	errChangedNow = errors.New("it changed just now")
	errNotEmpty   = errors.New("the directory is not empty: it holds files that are not restored")
)

// mustGo reports whether what is there has to go before the target can come.
func (it *item) mustGo() bool {
	return it.now.kind != absent && (it.target.kind == absent || (it.now.kind == folder) != (it.target.kind == folder))
}

// parent opens the directory that holds rel and makes sure that this process may
// change it.
func (r *restorer) parent(rel string) (int, string, error) {
	dir, name := splitPath(rel)
	fd, err := openPath(r.root, dir)
	if err != nil {
		return -1, "", plain(err)
	}
	var st unix.Stat_t
	if err := fstat(fd, &st); err == nil && dir != "" && os.Geteuid() != 0 && st.Mode&0o300 != 0o300 && int(st.Uid) == os.Geteuid() {
		was := stampOf(&st)
		if err := unix.Fchmod(fd, uint32(st.Mode)&0o7777|0o700); err == nil {
			r.opened = append(r.opened, openedDir{dir, was})
		}
	}
	r.dirs[dir] = true
	return fd, name, nil
}

// plain says what the codes of the system mean here.
func plain(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		return errors.New("a directory on its way is something else now")
	case errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST):
		return errNotEmpty
	}
	return err
}

// check compares what is at a name with what was seen before.
func (it *item) check(fd int, name string) error {
	var st unix.Stat_t
	err := lstatAt(fd, name, &st)
	if errors.Is(err, unix.ENOENT) {
		if it.now.kind == absent {
			return nil
		}
		return errChangedNow
	}
	if err != nil {
		return err
	}
	seen, now := it.now.stamp, stampOf(&st)
	switch {
	case it.now.kind == absent:
		return errChangedNow
	case it.now.kind == folder && now.isDir():
		return nil
	case !now.like(seen):
		return errChangedNow
	}
	return nil
}

func (r *restorer) remove(it *item) error {
	fd, name, err := r.parent(it.path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := it.check(fd, name); err != nil {
		return err
	}
	flags := 0
	if it.now.kind == folder {
		flags = unix.AT_REMOVEDIR
	}
	if err := dirfd.Retry(func() error { return unix.Unlinkat(fd, name, flags) }); err != nil {
		return plain(err)
	}
	it.now = entry{kind: absent}
	return nil
}

func (r *restorer) create(it *item) error {
	if err := r.makeParents(it.path); err != nil {
		return err
	}
	fd, name, err := r.parent(it.path)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := it.check(fd, name); err != nil {
		return err
	}
	switch {
	case it.target.kind == folder:
		return r.makeDir(fd, name, it)
	case it.target.kind == link:
		return r.putLink(fd, name, it)
	case it.now.kind == file && it.now.hash == it.target.hash:
		return r.putAttributes(fd, name, it)
	}
	return r.putFile(fd, name, it)
}

// makeParents makes the directories on the way that somebody removed meanwhile.
func (r *restorer) makeParents(rel string) error {
	dir, _ := splitPath(rel)
	if dir == "" {
		return nil
	}
	if fd, err := openPath(r.root, dir); err == nil {
		unix.Close(fd)
		return nil
	}
	for i, c := range dir + "/" {
		if c != '/' {
			continue
		}
		fd, name, err := r.parent(dir[:i])
		if err != nil {
			return err
		}
		err = unix.Mkdirat(fd, name, 0o777)
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return nil
}

// makeDir makes a directory, open for this user until finishDir.
func (r *restorer) makeDir(fd int, name string, it *item) error {
	if it.now.kind == folder {
		if want := it.now.mode | 0o700; want != it.now.mode {
			return chmodAt(fd, name, it.now.stamp, want)
		}
		return nil
	}
	return unix.Mkdirat(fd, name, 0o700)
}

// finishDir gives a directory its mode and owner, when all in it is restored.
func (r *restorer) finishDir(it *item) error {
	fd, err := openPath(r.root, it.path)
	if err != nil {
		return plain(err)
	}
	defer unix.Close(fd)
	r.dirs[it.path] = true
	r.opened = slices.DeleteFunc(r.opened, func(d openedDir) bool { return d.rel == it.path })
	return r.attributes(fd, it.target, -1)
}

// attributes gives an open file the owner and the mode of e, the mode last, since a
// change of owner clears bits. The group of what was there before, when it is given,
// is kept where states have no owners.
func (r *restorer) attributes(fd int, e entry, before int) error {
	var st unix.Stat_t
	mode := e.mode
	switch {
	case r.owners:
		if err := unix.Fchown(fd, int(e.uid), int(e.gid)); err != nil {
			return fmt.Errorf("give it its owner back: %w", err)
		}
	case before >= 0 && fstat(before, &st) == nil:
		if err := unix.Fchown(fd, int(st.Uid), int(st.Gid)); err != nil {
			mode &^= unix.S_ISUID | unix.S_ISGID // they meant another owner
		}
	}
	return unix.Fchmod(fd, mode)
}

func (r *restorer) putLink(fd int, name string, it *item) error {
	target, err := r.store.read(it.target.hash, 1<<16)
	if err != nil {
		return err
	}
	if err := unix.Symlinkat(string(target), fd, r.temp); err != nil {
		return err
	}
	if r.owners {
		err = unix.Fchownat(fd, r.temp, int(it.target.uid), int(it.target.gid), unix.AT_SYMLINK_NOFOLLOW)
	}
	return r.rename(fd, name, it, err)
}

// rename puts the temporary file in place, or removes it when err is set or the
// target changed.
func (r *restorer) rename(fd int, name string, it *item, err error) error {
	if err == nil {
		err = it.check(fd, name)
	}
	if err == nil {
		err = dirfd.Retry(func() error { return unix.Renameat(fd, r.temp, fd, name) })
	}
	if err != nil {
		_ = unix.Unlinkat(fd, r.temp, 0)
		return plain(err)
	}
	return nil
}

// putAttributes restores a file of which only mode or owner changed. All its names
// see that, as they saw the change.
func (r *restorer) putAttributes(fd int, name string, it *item) error {
	if r.owners && (it.now.uid != it.target.uid || it.now.gid != it.target.gid) {
		if err := unix.Fchownat(fd, name, int(it.target.uid), int(it.target.gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
	}
	return chmodAt(fd, name, it.now.stamp, it.target.mode)
}

// putFile writes the content beside the file and renames it into place. Other names
// of the file keep what they have, inside and outside the workspace.
func (r *restorer) putFile(fd int, name string, it *item) error {
	content, err := r.store.open(it.target.hash)
	if err != nil {
		return err
	}
	defer content.Close()
	to, err := dirfd.Open(fd, r.temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(to), r.temp)
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{content}, make([]byte, 1<<16))
	if err == nil {
		err = content.verify()
	}
	if err == nil {
		err = r.inherit(to, fd, name, it)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	return r.rename(fd, name, it, err)
}

// inherit gives a new file what the one that it replaces has beside its content, and
// its mode.
func (r *restorer) inherit(to, fd int, name string, it *item) error {
	if it.now.kind != file {
		return r.attributes(to, it.target, -1)
	}
	old, err := dirfd.File(fd, name)
	if err != nil {
		return r.attributes(to, it.target, -1)
	}
	defer unix.Close(old)
	if err := copyAttributes(to, old); err != nil {
		return fmt.Errorf("keep its extended attributes: %w", err)
	}
	return r.attributes(to, it.target, old)
}

// sync makes the names durable.
func (r *restorer) sync() error {
	for dir := range r.dirs {
		fd, err := openPath(r.root, dir)
		if err != nil {
			continue // it is gone
		}
		err = dirfd.Retry(func() error { return unix.Fsync(fd) })
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("sync directory %q: %w", strings.ToValidUTF8(dir, "?"), err)
		}
	}
	return nil
}
