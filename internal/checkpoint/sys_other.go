//go:build !linux

package checkpoint

import (
	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
)

// copyAttributes does nothing here: extended attributes are not looked at.
func copyAttributes(_, _ int) error { return nil }

// chmodAt changes the mode of a file or directory that is still the one it was, by
// identity and type. It follows no link.
func chmodAt(at int, name string, was stamp, mode uint32) error {
	var st unix.Stat_t
	if err := lstatAt(at, name, &st); err != nil {
		return err
	}
	if now := stampOf(&st); now.dev != was.dev || now.ino != was.ino || now.mode&unix.S_IFMT != was.mode&unix.S_IFMT || now.mode&unix.S_IFMT == unix.S_IFLNK {
		return errNotRegular
	}
	return dirfd.Retry(func() error { return unix.Fchmodat(at, name, mode, unix.AT_SYMLINK_NOFOLLOW) })
}
