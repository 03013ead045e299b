package modeltext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

const (
	// MaxLine is the limit of one line in bytes: far above any real reply, below
	// what hurts.
	MaxLine = 64 << 20
	// MaxReply is the limit of text and arguments of one reply in bytes.
	MaxReply = 64 << 20
)

// ErrTooLong is the failure of a line or a reply without a reasonable end.
var ErrTooLong = errors.New("longer than 64 MiB")

// Lines reads a stream whose records are each one line, of any length up to a limit.
type Lines struct {
	r     *bufio.Reader
	buf   []byte
	limit int // bytes of one line
}

// NewLines reads r, through a buffer.
func NewLines(r io.Reader) *Lines { return &Lines{r: bufio.NewReaderSize(r, 32<<10), limit: MaxLine} }

// Next returns the next line without its end and the blanks around it; empty lines
// are left out. It is valid until the next call. cut says that the text ended without
// a line end. The error is io.EOF at a clean end, ErrTooLong, or the reader's.
func (l *Lines) Next() (line []byte, cut bool, err error) {
	for {
		line, err = l.read()
		cut = err == io.EOF
		if line = bytes.TrimSpace(line); len(line) > 0 && (err == nil || cut) {
			return line, cut, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
}

func (l *Lines) read() ([]byte, error) {
	part, err := l.r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return part, err
	}
	l.buf = l.buf[:0]
	for err == bufio.ErrBufferFull {
		if len(l.buf)+len(part) > l.limit {
			return nil, ErrTooLong
		}
		l.buf = append(l.buf, part...)
		part, err = l.r.ReadSlice('\n')
	}
	line := append(l.buf, part...)
	if l.buf = line[:0]; cap(line) > 1<<20 {
		l.buf = nil // one huge record does not stay for the rest of the reply
	}
	return line, err
}
