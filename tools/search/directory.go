package search

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
	"zcoder/internal/ignore"
	"zcoder/internal/workspace"
)

// directory is an open directory. Everything below is opened relative to it, so no
// path is walked twice and no link that is swapped in can lead elsewhere. It closes
// with its last user.
type directory struct {
	fd    int
	rel   string // from the workspace root, "" for the root itself
	rules ignores
	lax   bool // its own ignore files do not count
	id    identity
	users atomic.Int32
}

type identity struct{ dev, ino uint64 }

// same reports whether an open directory or file is the one that was planned.
func same(id identity, planned fs.FileInfo) bool {
	st, ok := planned.Sys().(*syscall.Stat_t)
	return ok && id == identity{uint64(st.Dev), st.Ino}
}

func identityOf(st *unix.Stat_t) identity { return identity{uint64(st.Dev), st.Ino} }

// errKernel is what opening a file of the kernel's own file systems returns.
var errKernel = errors.New("it is a file of the kernel, not of the workspace")

// openRoot opens the workspace. The caller releases it.
func openRoot(path string) (*directory, error) {
	d := &directory{}
	return d, d.open(unix.AT_FDCWD, path)
}

func (d *directory) open(at int, name string) error {
	fd, err := dirfd.Dir(at, name)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return fmt.Errorf("look at it: %w", err)
	}
	d.fd, d.id = fd, identityOf(&st)
	d.users.Store(1)
	return nil
}

// child opens a directory in d that is no link. The caller releases it. The child
// starts with the rules of d.
func (d *directory) child(name string) (*directory, error) {
	c := &directory{rel: d.path(name), rules: d.rules}
	if err := c.open(d.fd, name); err != nil {
		return nil, err
	}
	if c.id.dev != d.id.dev && workspace.OfKernel(c.fd) {
		c.release()
		return nil, errKernel
	}
	return c, nil
}

// path returns the path of an entry of d from the workspace root.
func (d *directory) path(name string) string {
	if d.rel == "" {
		return name
	}
	return d.rel + "/" + name
}

// named opens what the call names: d itself for "", else the directory name in d,
// which must be the planned one. With lax set neither the rules above nor its own
// count. The caller releases it.
func (d *directory) named(name string, planned fs.FileInfo, lax bool) (*directory, error) {
	if lax {
		d.rules = ignores{}
	}
	start := d.hold()
	if name != "" {
		d.release()
		var err error
		if start, err = d.child(name); err != nil {
			return nil, err
		}
	}
	if !same(start.id, planned) {
		start.release()
		return nil, workspace.ErrChanged
	}
	start.lax = lax
	return start, nil
}

func (d *directory) hold() *directory {
	d.users.Add(1)
	return d
}

func (d *directory) release() {
	if d.users.Add(-1) == 0 {
		unix.Close(d.fd)
	}
}

// file opens a regular file in d, without blocking and without following a link. The
// caller closes the descriptor.
func (d *directory) file(name string, st *unix.Stat_t) (fd int, err error) {
	fd, err = dirfd.File(d.fd, name)
	if err != nil {
		return -1, err
	}
	err = unix.Fstat(fd, st)
	switch {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = errors.New("it is not a regular file")
	case uint64(st.Dev) != d.id.dev && workspace.OfKernel(fd):
		err = errKernel
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// read fills buf from fd until it is full or the file ends.
func read(fd int, buf []byte) (n int, err error) {
	for n < len(buf) {
		got, err := unix.Read(fd, buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return n, err
		}
		if got == 0 {
			return n, io.EOF
		}
		n += got
	}
	return n, nil
}

// list returns the entries of d in no order.
func (d *directory) list(root string) ([]fs.DirEntry, error) {
	fd, err := unix.FcntlInt(uintptr(d.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), filepath.Join(root, d.rel))
	defer f.Close()
	return f.ReadDir(-1)
}

// maxRules bounds an ignore file, in bytes; the rest of a larger one is not read.
const maxRules = 1 << 20

// readRules reads an ignore file of d given by path, or returns nil.
func (d *directory) readRules(path string) *ignore.Rules {
	at := d
	dir, name := splitLast(path)
	if dir != "" {
		below, err := d.descend(dir)
		if err != nil {
			return nil
		}
		defer below.release()
		at = below
	}
	var st unix.Stat_t
	fd, err := at.file(name, &st)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	text := make([]byte, min(st.Size, maxRules))
	n, _ := read(fd, text)
	return ignore.Parse(d.rel, string(text[:n]))
}

// descend opens the directory at a relative path without links.
func (d *directory) descend(rel string) (*directory, error) {
	at := d.hold()
	for name := range strings.SplitSeq(rel, "/") {
		next, err := at.child(name)
		at.release()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

func splitLast(path string) (dir, name string) {
	if slash := strings.LastIndexByte(path, '/'); slash >= 0 {
		return path[:slash], path[slash+1:]
	}
	return "", path
}
