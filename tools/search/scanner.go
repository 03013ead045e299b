package search

import (
	"bytes"
	"io"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"zcoder/internal/workspace"
)

// Bounds of a scan, in bytes.
const (
	chunk      = 1 << 20  // read at once; smaller files are read whole
	maxLine    = 64 << 20 // a longer line is searched in pieces
	maxBuffer  = 4 << 20  // a larger buffer is not kept for the next file
	maxAround  = 64 << 10 // context that is carried from chunk to chunk
	binaryHead = 8 << 10  // a NUL in it makes a file binary
)

// scanner searches files. Each worker has its own.
type scanner struct {
	job     *job
	finder  *finder
	stop    *atomic.Bool
	buf     []byte
	left    left
	files   int  // searched
	skipped int  // not wanted by glob or type
	named   bool // the one file is named: what a tree leaves out does not matter
}

func (s *scanner) leftOut() *left { return &s.left }

// visit searches a file that nobody named.
func (s *scanner) visit(d *directory, name string) {
	path := d.path(name)
	switch {
	case !s.job.filter.wants(name, path):
		s.skipped++
		return
	case workspace.Secret(path) != "":
		s.left.secret++
		return
	}
	s.open(d, name, path)
}

func (s *scanner) open(d *directory, name, path string) {
	var st unix.Stat_t
	fd, err := d.file(name, &st)
	if err != nil {
		s.left.fail(path, err)
		return
	}
	defer unix.Close(fd)
	switch {
	case s.named && !s.job.planned(&st):
		s.left.fail(path, workspace.ErrChanged)
		return
	case st.Nlink > 1 && !s.named:
		s.left.hardLinks++
		return
	}
	s.files++
	if st.Size == 0 {
		return
	}
	s.search(fd, st.Size, path)
}

// search reads a file in windows of whole lines and hands the hits to the job.
func (s *scanner) search(fd int, size int64, path string) {
	f := fileHits{path: path, number: 1}
	if err := s.scan(fd, size, &f); err != nil {
		s.left.fail(path, err)
	}
	if cap(s.buf) > maxBuffer {
		s.buf = nil
	}
	if f.count > 0 {
		s.job.found.add(&f)
	}
}

func (s *scanner) scan(fd int, size int64, f *fileHits) error {
	lo, n := 0, 0 // buf[lo:n] is not searched yet; what is before is context
	blank := 0    // buf[lo:blank] is known to hold no line feed
	for first := true; !s.stop.Load(); first = false {
		s.room(n, size)
		got, err := read(fd, s.buf[n:])
		n += got
		size -= int64(got)
		if err != nil && err != io.EOF {
			return err
		}
		end := err == io.EOF || size <= 0
		if first && s.binary(s.buf[:n]) {
			return nil
		}
		hi := n
		if !end {
			if hi = s.cut(lo, max(lo, blank), n); hi == lo && n < maxLine {
				blank = n
				continue
			}
			if hi == lo {
				hi = n
			}
		}
		s.window(s.buf[:n], lo, hi, end, f)
		if end || f.count > 0 && s.job.filesOnly {
			return nil
		}
		keep := back(s.buf[:n], hi, s.job.context)
		copy(s.buf, s.buf[keep:n])
		lo, n, blank = hi-keep, n-keep, 0
	}
	return nil
}

// room makes space behind the first n bytes for the next chunk, or for all that is
// left of the file.
func (s *scanner) room(n int, size int64) {
	need := n + int(min(size, chunk))
	if need > cap(s.buf) {
		buf := make([]byte, max(need, min(2*cap(s.buf), maxLine+chunk), 64<<10))
		copy(buf, s.buf[:n])
		s.buf = buf
	}
	s.buf = s.buf[:need]
}

// binary reports whether a file that begins with head is binary, and counts it when
// the search would have found something there.
func (s *scanner) binary(head []byte) bool {
	if bytes.IndexByte(head[:min(len(head), binaryHead)], 0) < 0 {
		return false
	}
	s.finder.begin(head)
	if s.named || len(s.finder.needles) > 0 && s.finder.needleAt(head, 0) >= 0 {
		s.left.binary++
	}
	return true
}

// cut returns the end of the lines in buf[lo:n] that can be searched now, with lines
// left behind them for context, or lo when no line is complete. There is no line
// feed before from.
func (s *scanner) cut(lo, from, n int) int {
	end := bytes.LastIndexByte(s.buf[from:n], '\n') + 1
	if end == 0 {
		return lo
	}
	end += from
	if at := back(s.buf[:n], end, s.job.context); at > lo {
		return at
	}
	return end
}

// back returns the start of the given number of lines before at, which begins a
// line, or of fewer when those are long.
func back(buf []byte, at, lines int) int {
	limit := max(at-maxAround, 0)
	start := at
	for range lines {
		if start == 0 {
			break
		}
		from := bytes.LastIndexByte(buf[limit:start-1], '\n') + 1 + limit
		if from == limit && limit > 0 {
			break
		}
		start = from
	}
	return start
}

// window searches the lines that begin in buf[lo:hi]; the rest of buf is context.
func (s *scanner) window(buf []byte, lo, hi int, end bool, f *fileHits) {
	counted := lo
	s.finder.begin(buf[lo:hi])
	for from := lo; from < hi; {
		l, ok := s.finder.next(buf[:hi], from)
		if !ok {
			break
		}
		if f.count++; f.count == 1 {
			f.room = s.job.found.room(f.path)
		}
		if s.job.filesOnly {
			return
		}
		if f.room > 0 {
			f.number += bytes.Count(buf[counted:l.start], newline)
			counted = l.start
			f.keep(buf, l, s.job.context, end)
		}
		from = l.next
		if s.stop.Load() {
			return
		}
	}
	if !end && (f.count == 0 || f.room > 0) {
		f.number += bytes.Count(buf[counted:hi], newline)
	}
}

var newline = []byte{'\n'}
