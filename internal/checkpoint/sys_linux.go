package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
)

// maxAttributes bounds the extended attributes of one file, in bytes; Linux allows
// 64 KiB for a value and for the list.
const maxAttributes = 1 << 16

// copyAttributes gives a new file the extended attributes of the one that it
// replaces, as far as this process may. File capabilities belong to the old content
// and are not passed on.
func copyAttributes(to, from int) error {
	buf := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(from, buf)
	if err != nil || n <= 0 {
		return nil // the file system has none, or says so
	}
	var errs []error
	for name := range bytes.SplitSeq(bytes.TrimRight(buf[:n], "\x00"), []byte{0}) {
		attr := string(name)
		if !settable(attr) {
			continue
		}
		value := make([]byte, maxAttributes)
		n, err := unix.Fgetxattr(from, attr, value)
		if err == nil {
			err = unix.Fsetxattr(to, attr, value[:n], 0)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func settable(attr string) bool {
	switch attr {
	case "security.capability", "security.ima", "security.evm":
		return false
	}
	return os.Geteuid() == 0 || strings.HasPrefix(attr, "user.") || strings.HasPrefix(attr, "system.posix_acl_") || attr == "security.selinux"
}

// chmodAt changes the mode of a file or directory that is still the one it was, by
// identity and type. It needs no right to read it and follows no link.
func chmodAt(at int, name string, was stamp, mode uint32) error {
	fd, err := dirfd.Open(at, name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := fstat(fd, &st); err != nil {
		return err
	}
	if now := stampOf(&st); now.dev != was.dev || now.ino != was.ino || now.mode&unix.S_IFMT != was.mode&unix.S_IFMT || now.mode&unix.S_IFMT == unix.S_IFLNK {
		return errNotRegular
	}
	return dirfd.Retry(func() error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) })
}
