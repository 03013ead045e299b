package relay

import (
	"bytes"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a socket in bytes, without the final NUL.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// peerUID is the user at the other end of a connection.
func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return int(cred.Uid), nil
}

// closeSocketMode has the socket file made private by bind itself.
func closeSocketMode(fd int) error { return unix.Fchmod(fd, 0o600) }

// alive reports whether a process of the user runs; a zombie does not. The files of
// a process that may not be dumped belong to root.
func alive(pid, uid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	// A zombie has no memory. The state itself would cost a look at every thread.
	f, err := os.Open(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return os.IsPermission(err) // it runs, and /proc hides it
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false
	}
	if owner, ok := ownerOf(info); !ok || owner != uid && owner != 0 {
		return false
	}
	var buf [128]byte
	n, err := f.Read(buf[:])
	return err == nil && !bytes.HasPrefix(buf[:n], []byte("0 "))
}
