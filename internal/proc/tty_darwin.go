package proc

import "golang.org/x/sys/unix"

const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)
