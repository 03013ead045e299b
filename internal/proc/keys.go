package proc

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// echoWait is how long an echo may be on its way.
	echoWait = time.Second
	// endOfInput is Ctrl-D, which ends the input of a program that reads lines.
	endOfInput = 0x04
)

// maxEcho bounds the echo that is waited for, in bytes; a terminal holds less.
const maxEcho = 1 << 16

// keyboard passes on what is typed and recognises its echo.
type keyboard struct {
	master *os.File
	tty    TTY
	quit   chan struct{} // closed by stop
	over   chan struct{} // closed when the child has ended, or by stop
	sleep  *os.File      // ends the wait for In
	ends   sync.WaitGroup

	mu    sync.Mutex
	typed []byte // what the terminal will echo
	since time.Time
}

// start begins to pass keys and sizes on, until exited is closed.
func (k *keyboard) start(exited <-chan struct{}) error {
	k.quit, k.over = make(chan struct{}), make(chan struct{})
	keys := k.tty.Keys
	var wake *os.File
	if k.tty.In != nil {
		var err error
		if k.sleep, wake, err = os.Pipe(); err != nil {
			return err
		}
		read := make(chan []byte)
		keys = read
		k.ends.Go(func() { k.read(read) })
	}
	k.ends.Go(func() { k.pass(keys) })
	k.ends.Go(func() {
		select {
		case <-exited:
		case <-k.quit:
		}
		close(k.over)
		_ = k.master.SetWriteDeadline(time.Now()) // it may be closed already
		if wake != nil {
			_ = wake.Close() // which ends the wait
		}
	})
	return nil
}

// stop ends what start began.
func (k *keyboard) stop() {
	close(k.quit)
	k.ends.Wait()
	if k.sleep != nil {
		_ = k.sleep.Close()
	}
}

// read sends what the person's terminal yields until the child ends.
func (k *keyboard) read(keys chan<- []byte) {
	defer close(keys)
	fds := []unix.PollFd{{Fd: int32(k.tty.In.Fd()), Events: unix.POLLIN}, {Fd: int32(k.sleep.Fd()), Events: unix.POLLIN}}
	for {
		fds[0].Revents, fds[1].Revents = 0, 0
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if fds[1].Revents != 0 {
			return
		}
		if fds[0].Revents == 0 {
			continue
		}
		buf := make([]byte, 4096)
		n, err := unix.Read(int(fds[0].Fd), buf)
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case n <= 0:
			return
		}
		select {
		case keys <- buf[:n]:
		case <-k.over:
			return
		}
	}
}

// pass writes keys to the child's terminal and sets its size.
func (k *keyboard) pass(keys <-chan []byte) {
	for {
		select {
		case b, ok := <-keys:
			if !ok {
				keys = nil
				b = []byte{endOfInput}
			}
			k.expectEcho(b)
			_, _ = k.master.Write(b) // the child may be ending
		case s, ok := <-k.tty.Resize:
			if !ok {
				k.tty.Resize = nil
				continue
			}
			resize(k.master, s)
		case <-k.over:
			return
		}
	}
}

// expectEcho notes what the terminal will echo, if it does at this moment.
func (k *keyboard) expectEcho(b []byte) {
	echoes := false
	control(k.master, func(fd int) {
		mode, err := unix.IoctlGetTermios(fd, getMode)
		echoes = err == nil && mode.Lflag&unix.ECHO != 0
	})
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.since) > echoWait {
		k.typed = nil
	}
	if !echoes {
		return
	}
	k.since = time.Now()
	for _, c := range b {
		if c >= ' ' && c != 0x7f && len(k.typed) < maxEcho {
			k.typed = append(k.typed, c)
		}
	}
}

// withoutEcho returns output without the echo of what was typed.
func (k *keyboard) withoutEcho(b []byte) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.typed) == 0 {
		return b
	}
	if time.Since(k.since) > echoWait {
		k.typed = nil
		return b
	}
	kept := make([]byte, 0, len(b))
	for _, c := range b {
		if len(k.typed) > 0 && c == k.typed[0] {
			k.typed = k.typed[1:]
			continue
		}
		kept = append(kept, c)
	}
	return kept
}
