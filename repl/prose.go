package repl

import (
	"fmt"
	"strings"

	"zcoder/internal/termtext"
)

const (
	// maxLine is what is shown of one line of a reply, in bytes; the rest is counted.
	maxLine = 64 << 10
	// maxStart is how much of a line is held back until it shows whether it starts
	// with a Markdown mark, in bytes.
	maxStart = 100
	proseGap = 32 << 10 // how much is made safe at once, in bytes
)

// prose shows the text of a reply as it streams: safe, the marks of Markdown dimmed,
// nothing removed, moved or added. What it holds back for a decision is at most the
// first bytes of a line and a run of marks.
type prose struct {
	st   style
	safe termtext.Stream
	out  []byte

	inLine bool   // the start of the line is decided
	start  []byte // the start of a line that is not
	fence  byte   // the mark of the code block that the text is in, 0 for none
	ticks  int    // how many marks opened it
	span   int    // how many backquotes opened the code span that the text is in
	run    byte   // the kind of marks at the end of the text so far
	runLen int
	length int // of the line, in bytes
	over   int // bytes of the line that are not shown
}

// write returns the next piece of the reply as it is shown.
func (p *prose) write(text string) string {
	p.out = p.out[:0]
	for len(text) > proseGap {
		p.take(p.safe.Write(text[:proseGap]))
		text = text[proseGap:]
	}
	p.take(p.safe.Write(text))
	return string(p.out)
}

// end returns what was held back. The next text is a new one.
func (p *prose) end() string {
	p.out = p.out[:0]
	p.take(p.safe.Close())
	if !p.inLine {
		p.decide(true)
	}
	p.flushRun()
	p.noteOver()
	out := string(p.out)
	*p = prose{st: p.st, out: p.out[:0]}
	return out
}

// interrupt returns what was held back, since other lines come in between. The reply
// goes on after them in a new row, in the same code block.
func (p *prose) interrupt() string {
	p.out = p.out[:0]
	if !p.inLine {
		p.decide(true)
	}
	p.flushRun()
	p.inLine, p.start, p.span = false, p.start[:0], 0
	return string(p.out)
}

func (p *prose) take(text string) {
	for text != "" {
		switch {
		case p.length >= maxLine:
			text = p.skipLine(text)
		case p.inLine:
			text = p.line(text)
		default:
			text = p.lineStart(text)
		}
	}
}

// skipLine counts the rest of a line that is too long.
func (p *prose) skipLine(text string) string {
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		p.over += len(text)
		return ""
	}
	p.over += i
	p.noteOver()
	p.newLine()
	return text[i+1:]
}

func (p *prose) noteOver() {
	if p.over > 0 {
		p.flushRun()
		p.out = append(p.out, p.st.dim(fmt.Sprintf(" … %d more bytes of this line are not shown", p.over))...)
	}
}

func (p *prose) newLine() {
	p.flushRun()
	p.out = append(p.out, '\n')
	p.inLine, p.start, p.span, p.length, p.over = false, p.start[:0], 0, 0, 0
}

// lineStart collects the start of a line until it is decided.
func (p *prose) lineStart(text string) string {
	if len(p.start) == 0 && !p.mayMark(text[0]) {
		p.inLine = true
		return text
	}
	for i := range len(text) {
		if text[i] == '\n' {
			p.decide(true)
			return text[i:]
		}
		p.start = append(p.start, text[i])
		if p.mayMark(text[i]) && len(p.start) < maxStart {
			continue
		}
		if p.decide(len(p.start) >= maxStart) {
			return text[i+1:]
		}
	}
	return ""
}

// mayMark reports whether a byte can be part of what decides the start of a line.
func (p *prose) mayMark(c byte) bool {
	if p.fence != 0 {
		return c == ' ' || c == '\t' || c == p.fence
	}
	return strings.IndexByte(" \t#>-*+_`~0123456789.)", c) >= 0
}

// decide puts out the start of a line when what it is is clear, or has to be.
func (p *prose) decide(final bool) bool {
	indent := 0
	for indent < len(p.start) && (p.start[indent] == ' ' || p.start[indent] == '\t') {
		indent++
	}
	mark, more := p.mark(string(p.start[indent:]), final)
	if more && !final {
		return false
	}
	p.inLine = true
	p.out = append(p.out, p.start[:indent]...)
	p.length += indent + mark
	if mark > 0 {
		p.out = append(p.out, p.st.dim(string(p.start[indent:indent+mark]))...)
	}
	if rest := string(p.start[indent+mark:]); rest != "" {
		p.line(rest)
	}
	return true
}

// mark returns the length of the block mark that s, a line after its indent, starts
// with; more says that it depends on what follows.
func (p *prose) mark(s string, final bool) (n int, more bool) {
	if s == "" {
		return 0, true
	}
	c := s[0]
	run := len(s) - len(strings.TrimLeft(s, s[:1]))
	rest := s[run:]
	if p.fence != 0 {
		return p.closing(s, c, run, final)
	}
	switch c {
	case '#':
		if run <= 6 && strings.HasPrefix(rest, " ") {
			return run, false
		}
		return 0, run <= 6 && rest == ""
	case '>':
		return 1, false
	case '-', '*', '+', '_':
		return listOrRule(s, c, run, final)
	case '`', '~':
		return p.opening(s, c, run, final)
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return numbered(s)
	}
	return 0, false
}

func listOrRule(s string, c byte, run int, final bool) (int, bool) {
	switch {
	case run == len(s) && run >= 3 && final && c != '+':
		return run, false
	case run == len(s):
		return 0, true
	case run == 1 && s[1] == ' ' && c != '_':
		return 1, false
	}
	return 0, false
}

func numbered(s string) (int, bool) {
	rest := strings.TrimLeft(s, "0123456789")
	n := len(s) - len(rest)
	switch {
	case n > 9:
		return 0, false
	case rest == "" || rest == "." || rest == ")":
		return 0, true
	case strings.HasPrefix(rest, ". ") || strings.HasPrefix(rest, ") "):
		return n + 1, false
	}
	return 0, false
}

// opening sees whether a line opens a code block, for which all of it must be there.
func (p *prose) opening(s string, c byte, run int, final bool) (int, bool) {
	if run < 3 {
		return 0, run == len(s)
	}
	if strings.IndexByte(s[run:], c) >= 0 {
		return 0, false
	}
	if !final {
		return 0, true
	}
	p.fence, p.ticks = c, run
	return len(s), false
}

func (p *prose) closing(s string, c byte, run int, final bool) (int, bool) {
	if c != p.fence || strings.TrimRight(s[run:], " \t") != "" {
		return 0, false
	}
	if run < p.ticks {
		return 0, run == len(s)
	}
	if !final {
		return 0, true
	}
	p.fence = 0
	return len(s), false
}

// line puts out text inside a line, up to its end, and returns what follows.
func (p *prose) line(text string) string {
	if over := p.length + len(text) - maxLine; over > 0 && strings.IndexByte(text[:len(text)-over], '\n') < 0 {
		n := cutBefore(text, len(text)-over)
		p.inside(text[:n])
		p.length = maxLine
		return text[n:]
	}
	i := strings.IndexByte(text, '\n')
	if i < 0 {
		p.inside(text)
		p.length += len(text)
		return ""
	}
	p.inside(text[:i])
	p.newLine()
	return text[i+1:]
}

// cutBefore returns the last place at or before n that does not divide a rune.
func cutBefore(text string, n int) int {
	for n > 0 && n < len(text) && text[n]&0xc0 == 0x80 {
		n--
	}
	return n
}

// inside puts out a part of one line.
func (p *prose) inside(text string) {
	if p.fence != 0 {
		p.out = append(p.out, text...)
		return
	}
	for text != "" {
		i := nextMark(text)
		if i > 0 {
			p.flushRun()
			p.out = append(p.out, text[:i]...)
		}
		if i == len(text) {
			return
		}
		if text[i] != p.run {
			p.flushRun()
			p.run = text[i]
		}
		p.runLen++
		text = text[i+1:]
	}
}

func nextMark(text string) int {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c == '`' || c == '*' || c == '~' {
			return i
		}
	}
	return len(text)
}

// flushRun puts out a run of marks whose length is now known.
func (p *prose) flushRun() {
	if p.runLen == 0 {
		return
	}
	isMark := false
	switch {
	case p.run == '`' && p.span == 0:
		isMark, p.span = true, p.runLen
	case p.run == '`':
		if isMark = p.span == p.runLen; isMark {
			p.span = 0
		}
	case p.span > 0:
	case p.run == '*':
		isMark = p.runLen > 1
	case p.run == '~':
		isMark = p.runLen == 2
	}
	styled := isMark && !p.st.plain
	if styled {
		p.out = append(p.out, "\x1b[2m"...)
	}
	for range p.runLen {
		p.out = append(p.out, p.run)
	}
	if styled {
		p.out = append(p.out, "\x1b[0m"...)
	}
	p.run, p.runLen = 0, 0
}

// codeBlocks returns the contents of the fenced blocks of a reply, byte for byte.
func codeBlocks(reply string) []string {
	var blocks []string
	var p prose
	at, start := 0, -1
	for _, line := range strings.SplitAfter(reply, "\n") {
		text := strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		was := p.fence
		p.mark(text, true)
		switch {
		case was == 0 && p.fence != 0:
			start = at + len(line)
		case was != 0 && p.fence == 0:
			blocks = append(blocks, reply[start:at])
			start = -1
		}
		at += len(line)
	}
	if start >= 0 && start <= len(reply) {
		blocks = append(blocks, reply[start:])
	}
	return blocks
}
