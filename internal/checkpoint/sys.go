package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"
)

// The calls below name every file by an open directory and one component and follow
// no link, so that nothing that happens to the tree meanwhile leads out of it.

// retry repeats a call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func openAt(at int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

func openDirAt(at int, name string) (int, error) {
	return openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// openFileAt opens for reading and never waits, whatever the file is.
func openFileAt(at int, name string) (int, error) {
	return openAt(at, name, unix.O_RDONLY|unix.O_NONBLOCK, 0)
}

// openPath opens the directory rel, "" for the root, one component at a time.
func openPath(root int, rel string) (int, error) {
	fd, err := openDirAt(root, ".")
	if rel == "" || err != nil {
		return fd, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := openDirAt(fd, name)
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
	return retry(func() error { return unix.Fstatat(at, name, st, unix.AT_SYMLINK_NOFOLLOW) })
}

func fstat(fd int, st *unix.Stat_t) error {
	return retry(func() error { return unix.Fstat(fd, st) })
}

// listDir returns the names in a directory, unsorted, without "." and "..".
func listDir(fd int, buf []byte, names []string) ([]string, error) {
	for {
		n, err := 0, error(nil)
		err = retry(func() error {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
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
	err = retry(func() error {
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
	err := retry(func() error { return unix.Flock(int(fd), how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock: %w", err)
	}
	return true, nil
}
