// Package guidetext prepares text of files that guide a model (AGENTS.md, skills), so
// that the model gets no more than a person who reads the file sees.
//
// It knows characters that draw nothing, HTML comments in Markdown and padding. It
// opens no file and grants nothing. The instruction chain and the skills call it.
package guidetext

import (
	"bytes"
	"fmt"
	"strings"

	"zcoder/internal/termtext"
)

// maxPadding is how many blanks or empty lines in a row may stand before text without
// being mentioned: more push it out of view.
const maxPadding = 120

// Clean returns the text as a model may get it: characters that cannot be seen are
// named markers such as `<U+202E>`, HTML comments outside code are left out, line
// ends are "\n", and there is no byte order mark. found says what was hidden, for the
// person; it is empty for plain text. Any text may be given.
func Clean(text string) (clean string, found []string) {
	text = strings.TrimPrefix(text, "\uFEFF")
	for _, h := range termtext.HiddenIn(text) {
		found = append(found, fmt.Sprintf("%s (%d), shown as a marker", h.Name, h.Count))
	}
	clean = termtext.Safe(text)
	clean, comments, open := withoutComments(clean)
	if comments > 0 {
		found = append(found, count(comments, "HTML comment")+" left out")
	}
	if open {
		found = append(found, "an HTML comment that does not end")
	}
	if n := padding(clean); n > maxPadding {
		found = append(found, fmt.Sprintf("text behind %d blanks or empty lines", n))
	}
	return clean, found
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// withoutComments leaves out the HTML comments that a Markdown reader does not see,
// and the lines that held nothing else. open tells of one without an end, which
// stays.
func withoutComments(text string) (out string, n int, open bool) {
	if !strings.Contains(text, commentOpen) {
		return text, 0, false
	}
	s := stripper{text: text}
	for s.at < len(text) && !s.open {
		s.line()
	}
	return string(s.out), s.n, s.open
}

const commentOpen, commentClose = "<!--", "-->"

// stripper is the state of leaving out comments. Each byte of text is looked at a
// bounded number of times.
type stripper struct {
	text  string
	at    int
	out   []byte
	fence string // of the code block that is open
	n     int
	open  bool
}

// line takes one line, and the lines that a comment in it reaches to.
func (s *stripper) line() {
	end := s.lineEnd(s.at)
	before := s.fence
	s.fence = nextFence(s.fence, s.text[s.at:end])
	if before != "" || s.fence != "" {
		s.copy(end)
		return
	}
	kept, first := len(s.out), s.n
	ticks, lastTick := 0, s.lastTick(end)
	for from := s.at; from < end; {
		i := strings.Index(s.text[from:end], commentOpen)
		if i < 0 {
			break
		}
		ticks += strings.Count(s.text[from:from+i], "`")
		from += i
		if ticks%2 == 1 && lastTick > from { // in a span of code
			from++
			continue
		}
		length := strings.Index(s.text[from+len(commentOpen):], commentClose)
		if length < 0 {
			s.open = true
			s.copy(len(s.text))
			return
		}
		s.copy(from)
		s.n++
		from += len(commentOpen) + length + len(commentClose)
		s.at = from
		if from > end {
			end = s.lineEnd(from)
			lastTick = s.lastTick(end)
		}
	}
	s.copy(end)
	if s.n > first && len(bytes.TrimSpace(s.out[kept:])) == 0 {
		s.out = s.out[:kept]
	}
}

func (s *stripper) lineEnd(from int) int {
	if i := strings.IndexByte(s.text[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(s.text)
}

// lastTick is where the last backtick before end stands, on the lines that are looked
// at.
func (s *stripper) lastTick(end int) int {
	return s.at + strings.LastIndexByte(s.text[s.at:end], '`')
}

func (s *stripper) copy(to int) {
	s.out = append(s.out, s.text[s.at:to]...)
	s.at = to
}

// nextFence follows the fences of code blocks: it returns the fence that is open
// after the line, or "".
func nextFence(open, line string) string {
	line = strings.TrimRight(line, " \t\n")
	body := strings.TrimLeft(line, " ")
	if len(line)-len(body) > 3 {
		return open
	}
	run := len(body) - len(strings.TrimLeft(body, body[:min(1, len(body))]))
	if run < 3 || body[0] != '`' && body[0] != '~' {
		return open
	}
	switch {
	case open == "" && (body[0] == '~' || !strings.Contains(body[run:], "`")):
		return body[:run]
	case open != "" && body[0] == open[0] && run >= len(open) && run == len(body):
		return ""
	}
	return open
}

// padding is the longest run of blanks, or of empty lines, that has text behind it.
func padding(text string) int {
	longest, empty := 0, 0
	for line := range strings.SplitSeq(strings.TrimRight(text, " \t\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "" {
			empty++
			continue
		}
		longest = max(longest, empty, blanksIn(line))
		empty = 0
	}
	return longest
}

func blanksIn(line string) int {
	longest, run := 0, 0
	for i := range len(line) {
		if line[i] == ' ' || line[i] == '\t' {
			run++
			continue
		}
		longest, run = max(longest, run), 0
	}
	return longest
}
