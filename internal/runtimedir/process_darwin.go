package runtimedir

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// startTime returns a text that differs between two processes that had the same
// id. It is "" when no such process lives.
func startTime(pid int) string {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return ""
	}
	at := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", at.Sec, at.Usec)
}
