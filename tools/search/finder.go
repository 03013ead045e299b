package search

import (
	"bytes"
	"unicode/utf8"
)

// finder finds lines that match a query in buffers of whole lines. One goroutine
// uses it.
type finder struct {
	*query
	auto *automaton // nil when the query is plain or has no program
	at   []int      // where each needle is next; -1 when that is not known
	slow bool       // the buffer holds carriage returns, which the automaton does not leave out
}

func newFinder(q *query) *finder {
	f := &finder{query: q, at: make([]int, len(q.needles))}
	if !q.plain && q.program != nil {
		f.auto = newAutomaton(q.program)
	}
	return f
}

// line is a line in a buffer, without its line feed and the carriage return before.
type line struct {
	start, end int
	next       int // where the next line begins
	match      int // a place in or next to what matched
}

// lineAt returns the line that holds the byte at i; a line feed belongs to the line
// that it ends.
func lineAt(buf []byte, i int) line {
	l := line{start: bytes.LastIndexByte(buf[:i], '\n') + 1, match: i}
	end := bytes.IndexByte(buf[i:], '\n')
	if end < 0 {
		l.end, l.next = len(buf), len(buf)
	} else {
		l.end, l.next = i+end, i+end+1
	}
	if l.end > l.start && buf[l.end-1] == '\r' {
		l.end--
	}
	return l
}

// begin makes the finder ready for another buffer.
func (f *finder) begin(buf []byte) {
	for i := range f.at {
		f.at[i] = -1
	}
	f.slow = len(f.at) == 0 && bytes.IndexByte(buf, '\r') >= 0
}

// next returns the first matching line that begins at or after from, where a line
// begins. Within a buffer from only grows.
func (f *finder) next(buf []byte, from int) (line, bool) {
	switch {
	case len(f.needles) > 0:
		return f.byNeedle(buf, from)
	case f.auto != nil && !f.auto.worn() && !f.slow:
		return f.byAutomaton(buf, from)
	}
	return f.byLine(buf, from)
}

func (f *finder) byNeedle(buf []byte, from int) (line, bool) {
	for from < len(buf) {
		at := f.needleAt(buf, from)
		if at < 0 {
			break
		}
		l := lineAt(buf, at)
		if f.plain {
			return l, true
		}
		if f.matches(buf, &l) {
			return l, true
		}
		from = l.next
	}
	return line{}, false
}

// needleAt returns where the first needle is at or after from, or -1.
func (f *finder) needleAt(buf []byte, from int) int {
	if len(f.needles) == 1 {
		return f.needles[0].index(buf, from)
	}
	first := len(buf)
	for i := range f.needles {
		if f.at[i] < from {
			if f.at[i] = f.needles[i].index(buf, from); f.at[i] < 0 {
				f.at[i] = len(buf)
			}
		}
		first = min(first, f.at[i])
	}
	if first == len(buf) {
		return -1
	}
	return first
}

func (f *finder) byAutomaton(buf []byte, from int) (line, bool) {
	for from < len(buf) {
		at := f.auto.find(buf, from)
		if at < 0 {
			break
		}
		l := lineAt(buf, at)
		if f.confirm(buf[l.start:l.end]) {
			return l, true
		}
		from = l.next
	}
	return line{}, false
}

func (f *finder) byLine(buf []byte, from int) (line, bool) {
	for from < len(buf) {
		l := lineAt(buf, from)
		if f.matches(buf, &l) {
			return l, true
		}
		from = l.next
	}
	return line{}, false
}

// matches reports whether a line matches, and notes where.
func (f *finder) matches(buf []byte, l *line) bool {
	text := buf[l.start:l.end]
	if f.auto == nil || f.auto.worn() {
		at := f.re.FindIndex(text)
		if at != nil {
			l.match = l.start + at[0]
		}
		return at != nil
	}
	at := f.auto.find(text, 0)
	if at >= 0 {
		l.match = l.start + at
	}
	return at >= 0 && f.confirm(text)
}

// confirm checks what the automaton accepts too readily.
func (f *finder) confirm(text []byte) bool {
	return !f.auto.inexact || isASCII(text) || f.re.Match(text)
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
