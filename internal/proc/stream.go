package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	pipeSize   = 1 << 20 // bytes that a pipe is made to hold where that is possible
	readBuffer = 1 << 17 // bytes
)

// stream is the reading end of a pipe or pty that a goroutine empties. Its methods
// are called from one goroutine.
//
// The file is read through the runtime's poller: with a large pipe that costs less
// processor time than blocking reads do.
type stream struct {
	file *os.File
	sink func([]byte)
	done chan struct{} // closed when the reading goroutine has ended
	held bool          // valid then: it ended before the stream did
}

// start reads into the sink until the stream ends or stop is called.
func (s *stream) start() {
	s.done = make(chan struct{})
	s.held = false
	go func() {
		defer close(s.done)
		buf := make([]byte, readBuffer)
		for {
			n, err := s.file.Read(buf)
			if n > 0 {
				s.sink(buf[:n])
			}
			if err != nil {
				s.held = errors.Is(err, os.ErrDeadlineExceeded)
				return
			}
		}
	}()
}

// stop ends the reading and waits for it. What is in the pipe at this moment is
// read first; what a background process goes on writing is not waited for.
func (s *stream) stop() {
	select {
	case <-s.done:
		return
	default:
	}
	_ = s.file.SetReadDeadline(time.Now())
	<-s.done
	_ = s.file.SetReadDeadline(time.Time{})
	if s.held {
		s.empty()
	}
}

// empty reads what is there without waiting, at most what a pipe can hold.
func (s *stream) empty() {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, readBuffer)
	for total := 0; total < pipeSize; {
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			n = readNow(fd, buf)
			return true
		})
		if err != nil || n <= 0 {
			return
		}
		s.sink(buf[:n])
		total += n
	}
}

// readNow reads without waiting. It returns 0 or less at the end and when nothing
// is there.
func readNow(fd uintptr, buf []byte) int {
	for {
		n, err := unix.Read(int(fd), buf)
		if !errors.Is(err, unix.EINTR) {
			return n
		}
	}
}

// ended reports whether the stream itself has ended.
func (s *stream) ended() bool {
	select {
	case <-s.done:
		return !s.held
	default:
		return false
	}
}

// close gives the stream up; whoever still writes to it gets an error.
func (s *stream) close() {
	_ = s.file.Close()
	<-s.done
}
