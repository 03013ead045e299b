package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
)

// The calls below name every file by an open directory and one component and follow
// no link, so that nothing that happens to the tree meanwhile leads out of it.

// openPath opens the directory rel, "" for the root, one component at a time.
func openPath(root int, rel string) (int, error) {
	fd, err := dirfd.Dir(root, ".")
	if rel == "" || err != nil {
		return fd, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := dirfd.Dir(fd, name)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// openParent opens the directory that holds rel.
func openParent(root int, rel string) (fd int, name string, err error) {
	dir, name := splitPath(rel)
	fd, err = openPath(root, dir)
	return fd, name, err
}

func splitPath(rel string) (dir, name string) {
	cut := strings.LastIndexByte(rel, '/')
	return rel[:max(cut, 0)], rel[cut+1:]
}

func joinPath(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func lstatAt(at int, name string, st *unix.Stat_t) error {
	return dirfd.Retry(func() error { return unix.Fstatat(at, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func fstat(fd int, st *unix.Stat_t) error {
	return dirfd.Retry(func() error { return unix.Fstat(fd, st) })
}

func readLinkAt(at int, name string) (string, error) {
	for size := 256; size <= 1<<16; size *= 2 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(at, name, buf)
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
	return "", unix.ENAMETOOLONG
}

// fdReader reads a file descriptor and never closes it.
type fdReader int

func (fd fdReader) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = dirfd.Retry(func() error {
		n, err = unix.Read(int(fd), p)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// stamp is what decides whether a file is read again.
type stamp struct {
	dev, ino           uint64
	size, mtime, ctime int64 // bytes; nanoseconds
	mode               uint32
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, size: st.Size,
		mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(), mode: uint32(st.Mode),
	}
}

func (s stamp) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// like compares without the time of the last change of the inode, which this
// program's own work on another name of the file moves.
func (s stamp) like(o stamp) bool {
	s.ctime, o.ctime = 0, 0
	return s == o
}

// lockFile takes an advisory lock without waiting and reports whether it got it.
func lockFile(fd uintptr, how int) (bool, error) {
	err := dirfd.Retry(func() error { return unix.Flock(int(fd), how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	return true, nil
}
