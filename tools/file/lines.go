package file

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// lineReader goes through a file of any size line by line, in bounded memory.
type lineReader struct {
	ctx     context.Context
	from    io.Reader
	buf     []byte
	data    []byte // of buf, not taken yet
	ended   bool
	partial bool // bytes were taken after the last line end
	mac     bool // lines end in a lone carriage return
	count   int  // lines taken, the partial one not counted
}

const chunk = 256 << 10 // bytes read at once

func newLineReader(ctx context.Context, from io.Reader) *lineReader {
	return &lineReader{ctx: ctx, from: from, buf: make([]byte, chunk)}
}

// fill reads on when all data was taken. At the end of the file it leaves data
// empty.
func (r *lineReader) fill() error {
	for len(r.data) == 0 && !r.ended {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		n, err := r.from.Read(r.buf)
		r.data = r.buf[:n]
		if errors.Is(err, io.EOF) {
			r.ended = true
		} else if err != nil {
			return err
		}
	}
	return nil
}

// head returns the first bytes without taking them and sets the line end.
func (r *lineReader) head() ([]byte, error) {
	if err := r.fill(); err != nil {
		return nil, err
	}
	r.mac = oldMac(r.data)
	return r.data, nil
}

func (r *lineReader) end() byte {
	if r.mac {
		return '\r'
	}
	return '\n'
}

// skip takes n lines, or all when there are fewer.
func (r *lineReader) skip(n int) error {
	for n > 0 {
		if err := r.fill(); err != nil || len(r.data) == 0 {
			return err
		}
		c := bytes.Count(r.data, []byte{r.end()})
		if c < n {
			r.count += c
			n -= c
			r.partial = r.data[len(r.data)-1] != r.end()
			r.data = nil
			continue
		}
		for ; n > 0; n-- {
			r.data = r.data[bytes.IndexByte(r.data, r.end())+1:]
			r.count++
		}
		r.partial = false
	}
	return nil
}

// next takes one line and returns it without its line end, at most limit bytes of
// it, and its whole length. ok is false at the end of the file.
func (r *lineReader) next(limit int) (line []byte, size int, ok bool, err error) {
	for {
		if err := r.fill(); err != nil {
			return nil, 0, false, err
		}
		if len(r.data) == 0 {
			if size > 0 {
				r.count++
			}
			return line, size, size > 0, nil
		}
		i := bytes.IndexByte(r.data, r.end())
		piece := r.data
		if i >= 0 {
			piece = r.data[:i]
		}
		size += len(piece)
		line = append(line, piece[:min(len(piece), max(0, limit-len(line)))]...)
		r.data = r.data[len(piece):]
		if i >= 0 {
			r.data = r.data[1:]
			r.count++
			if n := len(line); !r.mac && n == size && n > 0 && line[n-1] == '\r' {
				line, size = line[:n-1], size-1
			}
			return line, size, true, nil
		}
	}
}

// total takes the rest and returns the number of lines of the file.
func (r *lineReader) total() (int, error) {
	err := r.skip(int(^uint(0) >> 1))
	if r.partial {
		return r.count + 1, err
	}
	return r.count, err
}
