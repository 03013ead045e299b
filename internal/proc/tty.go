package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// TTY connects a child under a terminal of its own with the person's terminal.
//
// The caller puts the person's terminal into raw mode before RunTTY and restores it
// after; RunTTY changes no mode. Keys then arrive here as bytes, and Ctrl-C, Ctrl-Z
// and Ctrl-D take their effect in the child's terminal. The caller may read the
// person's terminal itself and send what it reads to Keys, or give the terminal as
// In; while RunTTY runs nothing else may read that.
type TTY struct {
	// In is read only while the child runs; what comes later stays in it. Its end is
	// passed on as Ctrl-D. Nil when Keys is used.
	In *os.File
	// Keys carries what is typed. It is received from only while the child runs, and
	// closing it counts as the end of the input.
	Keys <-chan []byte
	// Out gets the child's output as it comes. A slow writer slows the child; after
	// an error it gets no more.
	Out io.Writer
	// Size is the size of the child's terminal at the start; zero is 24 by 80.
	Size Size
	// Resize carries new sizes. It may be nil.
	Resize <-chan Size
}

// Size is the size of a terminal in cells.
type Size struct{ Rows, Cols int }

// RunTTY runs a child under a new terminal, which it and all that it starts may
// control, and returns when the child has ended. Outcome.Output is what appeared
// on that terminal, escape sequences included, without the echo of what was typed
// there line by line; what programs with key handling of their own draw is theirs.
// Typed input is recorded nowhere. Spec.Stdin, Stdout and OnOutput are not used.
//
// When ctx ends or the time is up the child's processes get a hangup, as if the
// terminal were closed, and are killed after the grace.
func RunTTY(ctx context.Context, s Spec, t TTY) (Outcome, error) {
	path, err := s.check()
	if err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{ExitCode: -1, Cancelled: true}, nil
	}
	master, slave, err := openPTY(t.Size)
	if err != nil {
		return Outcome{}, s.wrong(err)
	}
	s.Stdin, s.Stdout, s.OnOutput = nil, nil, nil
	r := &run{spec: s, out: newOutput(s.MaxOutput), interrupt: unix.SIGHUP}
	k := &keyboard{master: master, tty: t}
	screen := t.Out
	r.streams = []*stream{{file: master, sink: func(b []byte) {
		r.out.add(k.withoutEcho(b))
		if screen != nil {
			if _, err := screen.Write(b); err != nil {
				screen = nil
			}
		}
	}}}
	p := plumbing{child: []*os.File{slave, slave, slave}, ours: []*os.File{master}, theirs: []*os.File{slave}}
	if err := r.start(path, &p, &syscall.SysProcAttr{Setsid: true, Setctty: true}); err != nil {
		p.abandon()
		return Outcome{}, s.wrong(err)
	}
	if err := k.start(r.exited); err != nil {
		ended, stop := context.WithCancel(ctx)
		stop()
		r.wait(ended)
		return Outcome{}, s.wrong(err)
	}
	defer k.stop()
	return r.wait(ctx), nil
}

// openPTY opens a terminal whose near end works with deadlines.
func openPTY(size Size) (master, slave *os.File, err error) {
	blocking, slave, err := pty.Open()
	if err != nil {
		return nil, nil, fmt.Errorf("open a terminal: %w", err)
	}
	defer blocking.Close()
	fd, err := unix.FcntlInt(blocking.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open a terminal: %w", err), slave.Close())
	}
	master = os.NewFile(uintptr(fd), "pty")
	if size == (Size{}) {
		size = Size{Rows: 24, Cols: 80}
	}
	resize(master, size)
	control(master, func(fd int) {
		if mode, err := unix.IoctlGetTermios(fd, getMode); err == nil {
			mode.Iflag |= unix.IUTF8 // so that erasing takes whole runes
			_ = unix.IoctlSetTermios(fd, setMode, mode)
		}
	})
	return master, slave, nil
}

func control(f *os.File, do func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { do(int(fd)) })
	}
}

func resize(master *os.File, s Size) {
	control(master, func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: cells(s.Rows), Col: cells(s.Cols)})
	})
}

func cells(n int) uint16 { return uint16(min(max(n, 1), 1<<15)) }
