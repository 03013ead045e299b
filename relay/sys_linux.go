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
	name := fmt.Sprintf("/proc/%d/stat", pid)
	f, err := os.Open(name)
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
	var buf [512]byte
	n, err := f.Read(buf[:])
	if err != nil {
		return false
	}
	// The name of the program stands in parentheses and may hold anything.
	rest := buf[bytes.LastIndexByte(buf[:n], ')')+1 : n]
	return len(rest) > 2 && rest[1] != 'Z' && rest[1] != 'X'
}
