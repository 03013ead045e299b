package patch

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

var hunkRow = regexp.MustCompile(`^-(\d+)(?:,(\d+))?(?:[ \t]+\+(\d+)(?:,(\d+))?)?[ \t]*(?:@@.*)?$`)

// hunk reads a hunk from its "@@" line on.
func (r *reader) hunk() error {
	if r.cur == nil {
		return reject("line %d, %s, begins a hunk, but no file is named before it.", r.at+1, show(r.head(r.at)))
	}
	h := hunk{line: r.at + 1, old: -1, new: -1}
	for r.at < len(r.lines) && strings.HasPrefix(r.lines[r.at], "@@") {
		text := r.head(r.at)
		if strings.HasPrefix(text, "@@@") {
			return reject("line %d is of a combined diff; send a plain unified diff.", r.at+1)
		}
		if literalBreak.MatchString(text) && !r.bodyAt(r.at+1) {
			return literalBreaks()
		}
		h.header(text)
		r.at++
	}
	return r.body(h)
}

func (r *reader) bodyAt(i int) bool {
	return i < len(r.lines) && r.lines[i] != "" && strings.IndexByte(" +-", r.lines[i][0]) >= 0
}

// header reads one "@@" line: positions, or a line of the file above the hunk.
func (h *hunk) header(text string) {
	text = strings.TrimSpace(text[2:])
	head := strings.TrimRightFunc(text, func(r rune) bool { return r == '@' || unicode.IsSpace(r) })
	m := hunkRow.FindStringSubmatch(text)
	if m == nil {
		m = hunkRow.FindStringSubmatch(head)
	}
	if m != nil {
		h.start, h.old, h.new = number(m[1], 0), number(m[2], 1), number(m[4], 1)
		if m[3] == "" {
			h.old, h.new = -1, -1
		}
		return
	}
	if head != "" && head != "..." && head != "…" {
		h.heads = append(h.heads, head)
	}
}

// number reads digits; what is absent is the default, what no line has is 0.
func number(digits string, absent int) int {
	if digits == "" {
		return absent
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n > 1<<30 {
		return 0
	}
	return n
}

// body reads the lines of a hunk: the body decides what the hunk is, the counts of
// the header do not.
func (r *reader) body(h hunk) error {
lines:
	for ; r.at < len(r.lines); r.at++ {
		raw := r.lines[r.at]
		switch {
		case strings.TrimRight(raw, "\r") == "":
			h.add(' ', raw, r.crlf)
			h.soft++
			continue
		case raw[0] == '\\' && len(raw) > 1 && raw[1] == ' ':
			if !h.endsBare(r.crlf) {
				return reject("line %d, %s, stands below no line.", r.at+1, show(raw))
			}
			continue
		case strings.IndexByte(" +-", raw[0]) < 0 || r.nextFile(h):
			break lines
		}
		h.add(raw[0], raw[1:], r.crlf)
		h.soft = 0
	}
	if len(h.lines) == 0 {
		return reject("the hunk at line %d has no lines.", h.line)
	}
	r.cur.hunks = append(r.cur.hunks, h)
	return nil
}

func (h *hunk) add(mark byte, text string, crlf bool) {
	l := line{mark: mark, text: text}
	if crlf {
		l.text = strings.TrimSuffix(l.text, "\r")
	}
	l.text, l.cr = strings.CutSuffix(l.text, "\r")
	h.lines = append(h.lines, l)
}

// endsBare marks the last line as one without a newline.
func (h *hunk) endsBare(crlf bool) bool {
	if len(h.lines) == 0 || h.soft > 0 {
		return false
	}
	l := &h.lines[len(h.lines)-1]
	if l.cr && !crlf {
		l.text, l.cr = l.text+"\r", false
	}
	l.bare, h.atEnd = true, true
	return true
}

// nextFile tells the header of the next file from removed and added lines that
// look like one ("-- x" removed, "++ y" added).
func (r *reader) nextFile(h hunk) bool {
	if !r.pair(r.at) {
		return false
	}
	if prefixed(r.lines[r.at][4:], 'a') && prefixed(r.lines[r.at+1][4:], 'b') {
		return true
	}
	after := r.at + 2
	for after < len(r.lines) && r.kind(after) == kindBlank {
		after++
	}
	if r.cur.envelope || after == len(r.lines) || !strings.HasPrefix(r.lines[after], "@@") {
		return false
	}
	oldLeft := h.old - h.count(' ') - h.count('-')
	newLeft := h.new - h.count(' ') - h.count('+')
	return oldLeft != 1 || newLeft != 1
}

// prefixed reports that a header's name is surely one: it begins with the prefix
// that git gives it, or is no file.
func prefixed(name string, letter byte) bool {
	name = strings.TrimPrefix(name, `"`)
	return strings.HasPrefix(name, string(letter)+"/") || strings.HasPrefix(name, devNull)
}
