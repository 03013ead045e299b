package repl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Terminal is the terminal that Run talks to. Its zero value needs In and Out.
type Terminal struct {
	In, Out *os.File
	// Dumb means no control bytes at all: TERM=dumb, or output that is no terminal.
	Dumb bool
	// Color allows colours; without it there is bold, dim and inverse only.
	Color bool
	// Size returns cells and rows; nil asks the kernel about Out.
	Size func() (cols, rows int)
	// Resize has a value after the size changed; nil waits for SIGWINCH.
	Resize <-chan struct{}
	// Interrupt has a value for each SIGINT that means Ctrl-C: where the terminal
	// makes a signal of it, which is when it is dumb.
	Interrupt <-chan struct{}
	// Suspend stops the program for Ctrl-Z and returns when it goes on; nil stops the
	// process group.
	Suspend func()

	mu    sync.Mutex
	saved *term.State // nil while the terminal is not ours
	alt   bool        // the alternate screen is shown
}

const (
	modesOn  = "\x1b[?2004h"
	modesOff = "\x1b[?2004l\x1b[0m\x1b[?25h"
	altOn    = "\x1b[?1049h\x1b[?25l"
	altOff   = "\x1b[?25h\x1b[?1049l"
	// afterProgram undoes what a program may leave behind: mouse reports, cursor and
	// keypad modes, the other screen, a character set, a hidden cursor.
	afterProgram = "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1l\x1b>\x1b[?1047l\x1b(B\x0f\x1b[0m\x1b[?25h\x1b[?7h\x1b[4l"
)

// take sets raw mode and bracketed paste. A dumb terminal stays as it is.
func (t *Terminal) take() error {
	if t.Dumb {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	state, err := term.MakeRaw(int(t.In.Fd()))
	if err != nil {
		return fmt.Errorf("set the terminal to raw mode: %w", err)
	}
	if t.saved == nil {
		t.saved = state
	}
	_, err = t.Out.WriteString(modesOn)
	return err
}

// Restore gives the terminal back as it was before Run. It may be called from any
// goroutine and more than once: before an exit that does not return from Run, or when
// another goroutine panics.
func (t *Terminal) Restore() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.saved == nil {
		return
	}
	modes := modesOff
	if t.alt {
		modes = altOff + modes
		t.alt = false
	}
	_, _ = t.Out.WriteString(modes)
	_ = term.Restore(int(t.In.Fd()), t.saved)
	t.saved = nil
}

// setAlt shows the alternate screen, or the usual one.
func (t *Terminal) setAlt(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	modes := altOff
	if on {
		modes = altOn
	}
	t.alt = on
	_, _ = t.Out.WriteString(modes)
}

// size returns the terminal's size, a usual one when it is not known.
func (t *Terminal) size() (cols, rows int) {
	if t.Size != nil {
		cols, rows = t.Size()
	} else {
		cols, rows, _ = term.GetSize(int(t.Out.Fd()))
	}
	if cols < 1 || rows < 1 {
		return 80, 24
	}
	return cols, rows
}

// shows reports whether a person sees what is written.
func (t *Terminal) shows() bool { return term.IsTerminal(int(t.Out.Fd())) }

// chunk is what one read of the terminal gave, or several that belong together.
type chunk struct {
	data []byte
	at   time.Time
	end  bool // nothing follows
}

const (
	readSize = 64 << 10
	// maxBurst bounds what is read together, in bytes.
	maxBurst = 1 << 20
	// burstGap is how long what follows a line end may take to belong to the same
	// paste. Nobody types that fast, and terminals send pastes without pauses.
	burstGap = 8 * time.Millisecond
	// lineGap is the same where the kernel hands out lines one by one.
	lineGap = 20 * time.Millisecond
)

// reader reads the terminal until it is stopped. Bytes that were not read yet stay
// for whoever reads next.
type reader struct {
	t            *Terminal
	now          func() time.Time
	wake, wakeUp *os.File
}

func newReader(t *Terminal, now func() time.Time) (*reader, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	return &reader{t: t, now: now, wake: r, wakeUp: w}, nil
}

func (r *reader) stop() { _ = r.wakeUp.Close() }

// run hands chunks to deliver until stop, an error, or deliver says no.
func (r *reader) run(deliver func(chunk) bool) {
	defer r.wake.Close()
	fd, wake := int(r.t.In.Fd()), int(r.wake.Fd())
	buf := make([]byte, readSize)
	for {
		ready, err := waitInput(fd, wake, -1)
		if err != nil || !ready {
			if err != nil {
				deliver(chunk{at: r.now(), end: true})
			}
			return
		}
		n, err := r.t.In.Read(buf)
		if n <= 0 || err != nil && !errors.Is(err, unix.EINTR) {
			deliver(chunk{at: r.now(), end: true})
			return
		}
		data := append([]byte(nil), buf[:n]...)
		at := r.now()
		data = r.rest(fd, wake, buf, data)
		if !deliver(chunk{data: data, at: at}) {
			return
		}
	}
}

// rest adds what follows a line end at once: more of a paste.
func (r *reader) rest(fd, wake int, buf, data []byte) []byte {
	gap := burstGap
	if r.t.Dumb {
		gap = lineGap
	}
	for len(data) < maxBurst && (len(data) > 1 || r.t.Dumb) && isLineEnd(data[len(data)-1]) {
		ready, err := waitInput(fd, wake, gap)
		if err != nil || !ready {
			break
		}
		n, err := r.t.In.Read(buf)
		if n <= 0 || err != nil {
			break
		}
		data = append(data, buf[:n]...)
	}
	return data
}

func isLineEnd(b byte) bool { return b == '\r' || b == '\n' }

// waitInput blocks until fd can be read, and returns false when wake can, or time is
// up; a negative time never is.
func waitInput(fd, wake int, wait time.Duration) (bool, error) {
	if fd >= unix.FD_SETSIZE || wake >= unix.FD_SETSIZE {
		return false, errors.New("wait for input: too many open files")
	}
	for {
		var set unix.FdSet
		set.Set(fd)
		set.Set(wake)
		var limit *unix.Timeval
		if wait >= 0 {
			tv := unix.NsecToTimeval(wait.Nanoseconds())
			limit = &tv
		}
		_, err := unix.Select(max(fd, wake)+1, &set, nil, nil, limit)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("wait for input: %w", err)
		}
		return set.IsSet(fd) && !set.IsSet(wake), nil
	}
}

// ttyInput holds what is typed for a program until it reads.
type ttyInput struct {
	mu     sync.Mutex
	more   *sync.Cond
	data   []byte
	closed bool
}

// maxTyped bounds what is held for a program that does not read, in bytes.
const maxTyped = 1 << 20

func newTTYInput() *ttyInput {
	in := &ttyInput{}
	in.more = sync.NewCond(&in.mu)
	return in
}

func (in *ttyInput) add(p []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.data)+len(p) <= maxTyped {
		in.data = append(in.data, p...)
	}
	in.more.Signal()
}

func (in *ttyInput) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Broadcast()
}

// Read blocks until there is something.
func (in *ttyInput) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.data) == 0 && !in.closed {
		in.more.Wait()
	}
	if in.closed {
		return 0, io.EOF
	}
	n := copy(p, in.data)
	in.data = in.data[n:]
	return n, nil
}

// ttyOutput passes bytes on and remembers whether they end a line.
type ttyOutput struct {
	mu   sync.Mutex
	out  io.Writer
	last byte
}

func (o *ttyOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(p) > 0 {
		o.last = p[len(p)-1]
	}
	return o.out.Write(p)
}

func (o *ttyOutput) midLine() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last != 0 && o.last != '\n'
}
