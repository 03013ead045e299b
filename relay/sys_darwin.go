package relay

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a socket in bytes, without the final NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// peerUID is the user at the other end of a connection.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// closeSocketMode does nothing: this system takes no mode before bind. The directory
// is closed to others, and the mode is set after bind.
func closeSocketMode(int) error { return nil }

// alive reports whether a process of the user runs; a zombie does not.
func alive(pid, uid int) bool {
	const zombie = 5
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(info.Proc.P_pid) == pid && info.Proc.P_stat != zombie && int(info.Eproc.Ucred.Uid) == uid
}
