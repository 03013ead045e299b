package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxAttributes bounds the extended attributes of one file, in bytes; Linux allows
// 64 KiB for a value and for the list.
const maxAttributes = 1 << 16

// notKept returns what a replaced file would lose.
func (p Path) notKept() []string {
	if p.info == nil {
		return nil
	}
	st, ok := p.info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	var reasons []string
	if uid := os.Geteuid(); uid != 0 && (st.Uid != uint32(uid) || !inGroup(st.Gid)) {
		reasons = append(reasons, fmt.Sprintf("its owner (user %d, group %d) is not kept", st.Uid, st.Gid))
	}
	if p.info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		reasons = append(reasons, "its setuid or setgid bit is not kept")
	}
	names, err := attributeNames(p.Abs())
	if err != nil {
		return append(reasons, "its extended attributes cannot be read, so they are not kept")
	}
	for _, name := range names {
		if !settable(name) {
			reasons = append(reasons, fmt.Sprintf("its attribute %q is not kept", name))
		}
	}
	return reasons
}

func inGroup(gid uint32) bool {
	groups, err := os.Getgroups()
	return gid == uint32(os.Getegid()) || err == nil && slices.Contains(groups, int(gid))
}

// settable reports whether this process may give another file the attribute. A
// file capability belongs to the old content and is never passed on.
func settable(name string) bool {
	if name == "security.capability" || name == "security.ima" || name == "security.evm" {
		return false
	}
	return os.Geteuid() == 0 || strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_") || name == "security.selinux"
}

// attributeNames does not follow a link at the end of abs.
func attributeNames(abs string) ([]string, error) {
	buf := make([]byte, maxAttributes)
	n, err := unix.Llistxattr(abs, buf)
	return splitNames(buf, n, err)
}

func splitNames(buf []byte, n int, err error) ([]string, error) {
	if errors.Is(err, unix.ENOTSUP) || n <= 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(string(buf[:n]), "\x00"), "\x00"), nil
}

// keepAttributes copies the extended attributes that can be kept.
func keepAttributes(to, from *os.File) error {
	buf := make([]byte, maxAttributes)
	n, err := unix.Flistxattr(int(from.Fd()), buf)
	names, err := splitNames(buf, n, err)
	if err != nil {
		return nil // WriteReasons said so, and a person agreed
	}
	for _, name := range names {
		if !settable(name) {
			continue
		}
		n, err := unix.Fgetxattr(int(from.Fd()), name, buf)
		if err != nil {
			return fmt.Errorf("read attribute %q: %w", name, err)
		}
		have := make([]byte, n+1)
		if m, err := unix.Fgetxattr(int(to.Fd()), name, have); err == nil && string(have[:m]) == string(buf[:n]) {
			continue
		}
		if err := unix.Fsetxattr(int(to.Fd()), name, buf[:n], 0); err != nil {
			return fmt.Errorf("keep attribute %q: %w", name, err)
		}
	}
	return nil
}
