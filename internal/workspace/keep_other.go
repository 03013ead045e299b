//go:build !linux

package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// notKept returns what a replaced file would lose. Extended attributes are not
// looked at on this system.
func (p Path) notKept() []string {
	if p.info == nil {
		return nil
	}
	var reasons []string
	if st, ok := p.info.Sys().(*syscall.Stat_t); ok && os.Geteuid() != 0 && st.Uid != uint32(os.Geteuid()) {
		reasons = append(reasons, fmt.Sprintf("its owner (user %d, group %d) is not kept", st.Uid, st.Gid))
	}
	if p.info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		reasons = append(reasons, "its setuid or setgid bit is not kept")
	}
	return reasons
}

func keepAttributes(_, _ *os.File) error { return nil }
