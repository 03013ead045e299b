package app

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipePatience is how long the writer of an optional pipe may take to say something.
const pipePatience = 200 * time.Millisecond

// readable waits shortly until f has something to read or its writer is gone.
func readable(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, int(pipePatience.Milliseconds()))
	return err == nil && n > 0
}
