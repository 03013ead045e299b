package patch

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

const (
	// maxCandidates bounds the places that are looked for and listed.
	maxCandidates = 8
	// maxCompares bounds the line comparisons for all hunks of a file; each takes
	// some 10 ns, as does looking through scanned bytes.
	maxCompares = 1 << 25
	scanned     = 512
)

// blanks are what a model loses at the ends of lines.
const blanks = " \t\r\f\v"

// place is where a hunk's old lines are in a file: the bytes [start,end).
type place struct{ start, end int }

// matcher finds hunks in one text.
type matcher struct {
	data []byte
	left int  // comparisons
	hide bool // error texts must not show what the file holds
}

var errRepetitive = errors.New("too repetitive")

// lineAt returns the line that starts at offset without its line end, and where
// the next one starts.
func lineAt(data []byte, offset int) (text []byte, next int) {
	n := bytes.IndexByte(data[offset:], '\n')
	if n < 0 {
		return data[offset:], len(data)
	}
	text = data[offset : offset+n]
	if n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	return text, offset + n + 1
}

// matchAt reports whether the lines are at offset, and where they end. loose does
// not compare blanks at line ends.
func (m *matcher) matchAt(offset int, lines []string, loose bool) (int, bool) {
	for _, want := range lines {
		if offset >= len(m.data) {
			return 0, false
		}
		m.left--
		var have []byte
		have, offset = lineAt(m.data, offset)
		if loose {
			have, want = bytes.TrimRight(have, blanks), strings.TrimRight(want, blanks)
		}
		if string(have) != want {
			return 0, false
		}
	}
	return offset, true
}

// find returns up to limit places of the lines at or after from.
func (m *matcher) find(from int, lines []string, loose bool, limit int) ([]place, error) {
	pivot := 0
	for i, l := range lines {
		if len(strings.TrimRight(l, blanks)) > len(strings.TrimRight(lines[pivot], blanks)) {
			pivot = i
		}
	}
	needle := []byte(lines[pivot])
	if loose {
		needle = bytes.TrimRight(needle, blanks)
	}
	var out []place
	for at := from; at < len(m.data) && len(out) < limit; {
		at = m.nextLine(at, needle)
		if m.left -= pivot; m.left < 0 {
			return nil, errRepetitive
		}
		if at < 0 {
			break
		}
		if start, ok := back(m.data, at, pivot); ok && start >= from {
			if end, ok := m.matchAt(start, lines, loose); ok {
				out = append(out, place{start, end})
			}
		}
		_, at = lineAt(m.data, at)
	}
	return out, nil
}

// nextLine returns the start of the next line, at or after the line start at, that
// begins with needle, or -1.
func (m *matcher) nextLine(at int, needle []byte) int {
	if len(needle) == 0 || bytes.HasPrefix(m.data[at:], needle) {
		m.left--
		return at
	}
	for {
		n := bytes.Index(m.data[at:], needle)
		if n < 0 {
			m.left -= (len(m.data) - at) / scanned
			return -1
		}
		m.left -= n / scanned
		if m.data[at+n-1] == '\n' {
			return at + n
		}
		m.left--
		skip := bytes.IndexByte(m.data[at+n:], '\n')
		if skip < 0 || m.left < 0 {
			return -1
		}
		at += n + skip + 1
		if bytes.HasPrefix(m.data[at:], needle) {
			return at
		}
	}
}

// back returns the start of the line that is n lines above the line start at.
func back(data []byte, at, n int) (int, bool) {
	for range n {
		if at == 0 {
			return 0, false
		}
		at = bytes.LastIndexByte(data[:at-1], '\n') + 1
	}
	return at, true
}

// candidates returns the places where the hunk can stand by its own lines alone.
func (m *matcher) candidates(h hunk) ([]place, error) {
	variants := []int{0}
	if h.soft > 0 {
		variants = append(variants, h.soft)
	}
	for _, drop := range variants {
		lines := h.oldLines(drop)
		if len(lines) == 0 {
			continue
		}
		for _, loose := range []bool{false, true} {
			found, err := m.candidatesOf(h, lines, loose)
			if err != nil || len(found) > 0 {
				return found, err
			}
		}
	}
	return nil, nil
}

func (m *matcher) candidatesOf(h hunk, lines []string, loose bool) ([]place, error) {
	if h.atEnd {
		return m.atEnd(lines, loose), nil
	}
	if len(h.heads) == 0 {
		return m.find(0, lines, loose, maxCandidates)
	}
	starts, err := m.below(h.heads)
	if err != nil {
		return nil, err
	}
	var out []place
	for _, from := range starts {
		found, err := m.find(from, lines, loose, 1)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 && !slices.Contains(out, found[0]) {
			out = append(out, found[0])
		}
	}
	return out, nil
}

// atEnd finds the lines at the end of the text.
func (m *matcher) atEnd(lines []string, loose bool) []place {
	at, above := len(m.data), len(lines)
	if at > 0 && m.data[at-1] != '\n' {
		at, above = bytes.LastIndexByte(m.data, '\n')+1, above-1
	}
	start, ok := back(m.data, at, above)
	if !ok {
		return nil
	}
	if end, ok := m.matchAt(start, lines, loose); ok && end == len(m.data) {
		return []place{{start, end}}
	}
	return nil
}

// maxHeads bounds the places of one "@@" line that are followed.
const maxHeads = 256

// below returns where the text goes on below the lines that the "@@" rows name, one
// below the other. Each is compared without the blanks around it; when no line is
// equal, lines that begin with it count. It starts at the line itself, since a hunk may repeat it.
func (m *matcher) below(heads []string) ([]int, error) {
	starts := []int{0}
	for _, head := range heads {
		var next []int
		for _, prefix := range []bool{false, true} {
			for _, from := range starts {
				found, err := m.headLines(from, head, prefix, len(starts) > 1)
				if err != nil {
					return nil, err
				}
				next = append(next, found...)
			}
			if len(next) > 0 {
				break
			}
		}
		if len(next) == 0 {
			return nil, &headMissing{head}
		}
		slices.Sort(next)
		starts = slices.Compact(next)
	}
	return starts, nil
}

type headMissing struct{ head string }

func (e *headMissing) Error() string { return "no line is " + show(e.head) }

func (m *matcher) headLines(from int, head string, prefix, first bool) ([]int, error) {
	var out []int
	for at := from; at < len(m.data) && len(out) < maxHeads; {
		if m.left--; m.left < 0 {
			return nil, errRepetitive
		}
		n := bytes.Index(m.data[at:], []byte(head))
		if n < 0 {
			m.left -= (len(m.data) - at) / scanned
			break
		}
		m.left -= n / scanned
		start := bytes.LastIndexByte(m.data[:at+n], '\n') + 1
		text, next := lineAt(m.data, start)
		text = bytes.TrimSpace(text)
		if string(text) == head || prefix && bytes.HasPrefix(text, []byte(head)) {
			out = append(out, start)
			if first {
				break
			}
		}
		at = next
	}
	return out, nil
}

// numberOf is lineNumber on the matcher's account.
func (m *matcher) numberOf(offset int) int {
	m.left -= offset / scanned
	return lineNumber(m.data, offset)
}

// lineNumber returns the number of the line that starts at offset, from 1.
func lineNumber(data []byte, offset int) int {
	return bytes.Count(data[:offset], []byte{'\n'}) + 1
}

// offsetOf returns where line number n starts, from 1.
func offsetOf(data []byte, n int) (int, bool) {
	at := 0
	for range n - 1 {
		if at >= len(data) {
			return 0, false
		}
		_, at = lineAt(data, at)
	}
	return at, n >= 1 && at < len(data)
}
