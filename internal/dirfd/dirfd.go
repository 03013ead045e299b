// Package dirfd opens and lists what lies in a directory by the open directory and one
// component, and follows no link, so that nothing that happens to the tree meanwhile
// leads out of it.
//
// It knows descriptors and names. It knows nothing of workspaces, of what is read, or of
// file systems that answer for the kernel. Whoever walks whole trees calls it: the
// checkpoints, the state of a repository and the search tools.
package dirfd

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Retry repeats a call that a signal interrupted.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Open opens name in the directory at with the flags of open(2). It never follows a link
// as the last component. The caller closes the descriptor.
func Open(at int, name string, flags int, mode uint32) (fd int, err error) {
	err = Retry(func() error {
		fd, err = unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
		return err
	})
	return fd, err
}

// Dir opens a directory.
func Dir(at int, name string) (int, error) {
	return Open(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
}

// File opens for reading and never waits, whatever the file is; it may be no regular
// one.
func File(at int, name string) (int, error) {
	return Open(at, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// List appends the names in the directory fd to names, unsorted, without "." and "..".
// It reads from where the last reading of fd ended, and overwrites buf.
func List(fd int, buf []byte, names []string) ([]string, error) {
	for {
		n, err := 0, error(nil)
		err = Retry(func() error {
			n, err = unix.ReadDirent(fd, buf)
			return err
		})
		if err != nil || n <= 0 {
			return names, err
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
