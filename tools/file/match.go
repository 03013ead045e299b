package file

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxCandidates is how many places an error names.
const maxCandidates = 10

// source is the text of a file, with its own line ends and with those of the model.
type source struct {
	raw []byte // without byte order mark
	lf  []byte // the same with line feeds; the same memory where there are no others
	mac bool   // lines end in a lone carriage return
}

func newSource(raw []byte) source {
	s := source{raw: raw, lf: raw, mac: oldMac(raw)}
	s.lf = lineFeeds(raw, s.mac)
	return s
}

// lineFeeds gives text plain line feeds.
func lineFeeds(text []byte, mac bool) []byte {
	text = toLF(text)
	if mac {
		text = bytes.ReplaceAll(text, []byte{'\r'}, []byte{'\n'})
	}
	return text
}

// find returns the offsets in s.lf of text, overlapping ones too, at most limit.
func (s source) find(text []byte, limit int) []int {
	text = lineFeeds(text, s.mac)
	var found []int
	for from := 0; len(found) < limit; {
		i := bytes.Index(s.lf[from:], text)
		if i < 0 {
			break
		}
		found = append(found, from+i)
		from += i + 1
	}
	return found
}

// lines returns the line numbers, from 1, of ascending offsets in s.lf.
func (s source) lines(offsets []int) []int {
	var numbers []int
	line, at := 1, 0
	for _, offset := range offsets {
		line += bytes.Count(s.lf[at:offset], []byte{'\n'})
		at = offset
		numbers = append(numbers, line)
	}
	return numbers
}

// rawOffset returns the offset in s.raw of an offset in s.lf: as many lines before
// it, and the same place in its line. The place before a line end is that before
// the whole of it.
func (s source) rawOffset(offset int) int {
	if len(s.raw) == len(s.lf) {
		return offset
	}
	column := offset - 1 - bytes.LastIndexByte(s.lf[:offset], '\n')
	start := 0
	for range bytes.Count(s.lf[:offset], []byte{'\n'}) {
		start += bytes.IndexByte(s.raw[start:], '\n') + 1
	}
	return start + column
}

// endAt returns the line end that the byte at offset i of s.raw closes.
func (s source) endAt(i int) string {
	switch {
	case s.mac:
		return "\r"
	case i > 0 && s.raw[i-1] == '\r':
		return "\r\n"
	default:
		return "\n"
	}
}

func (s source) closer() byte {
	if s.mac {
		return '\r'
	}
	return '\n'
}

// ends returns the line ends between two offsets of s.raw.
func (s source) ends(start, end int) []string {
	var list []string
	for at := start; ; at++ {
		i := bytes.IndexByte(s.raw[at:end], s.closer())
		if i < 0 {
			return list
		}
		at += i
		list = append(list, s.endAt(at))
	}
}

// style returns the line end that new lines get: the first in the replaced text,
// else the one that ends its line, else the one before it, else "".
func (s source) style(start int) string {
	if i := bytes.IndexByte(s.raw[start:], s.closer()); i >= 0 {
		return s.endAt(start + i)
	}
	if i := bytes.LastIndexByte(s.raw[:start], s.closer()); i >= 0 {
		return s.endAt(i)
	}
	return ""
}

// edit is one replacement in a file.
type edit struct {
	start, end  int // in the content, without byte order mark
	replacement []byte
	line, lines int // the first line, from 1, and how many the old text touches
}

var errNotFound = errors.New("not found")

// findEdit finds the one place of old in s and prepares its replacement by text.
func findEdit(s source, old, text []byte) (edit, error) {
	found := s.find(old, maxCandidates+1)
	if len(found) == 0 {
		return edit{}, errNotFound
	}
	lines := s.lines(found)
	if len(found) > 1 {
		return edit{}, notUnique(lines)
	}
	old = lineFeeds(old, s.mac)
	e := edit{start: s.rawOffset(found[0]), end: s.rawOffset(found[0] + len(old)), line: lines[0], lines: countLines(old)}
	e.replacement = s.render(e, old, text)
	return e, nil
}

func notUnique(lines []int) error {
	var list []string
	for _, n := range lines[:min(len(lines), maxCandidates)] {
		list = append(list, fmt.Sprint(n))
	}
	times := count(len(lines), "time")
	if len(lines) > maxCandidates {
		times = fmt.Sprintf("more than %d times", maxCandidates)
	}
	return fmt.Errorf("old_text is in the file %s, starting at lines %s; add surrounding lines to old_text so that it is unique", times, strings.Join(list, ", "))
}

// render returns the new text with the line ends of the file. Lines that old and
// new text share at the beginning and the end keep the ones they have; the others
// get those of the place. A file without any keeps the text as it is.
func (s source) render(e edit, old, text []byte) []byte {
	style := s.style(e.start)
	if style == "" {
		return text
	}
	have := s.ends(e.start, e.end)
	was, parts := bytes.Split(old, []byte{'\n'}), bytes.Split(lineFeeds(text, s.mac), []byte{'\n'})
	last := len(parts) - 1
	if rest := s.raw[e.end:]; !s.mac && (bytes.HasPrefix(rest, []byte{'\n'}) || bytes.HasPrefix(rest, []byte("\r\n"))) {
		parts[last] = bytes.TrimSuffix(parts[last], []byte{'\r'}) // half of the line end that stands there
	}
	shared := min(len(have), last)
	lead, trail := 0, 0
	for lead < shared && bytes.Equal(was[lead], parts[lead]) {
		lead++
	}
	for trail < shared-lead && bytes.Equal(was[len(have)-trail], parts[last-trail]) {
		trail++
	}
	var out bytes.Buffer
	for i, part := range parts {
		out.Write(part)
		switch {
		case i == last:
		case i < lead:
			out.WriteString(have[i])
		case last-i <= trail:
			out.WriteString(have[len(have)-(last-i)])
		default:
			out.WriteString(style)
		}
	}
	return out.Bytes()
}
