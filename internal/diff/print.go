package diff

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// printer writes lines until a bound is reached and counts the rest.
type printer struct {
	out                  *strings.Builder
	maxLines, maxBytes   int
	lines, bytes         int
	cut                  bool
	lostLines, lostBytes int
}

// cursor walks the lines of a text.
type cursor struct {
	rest []byte
	at   int // index of the next line
}

func (c *cursor) take() []byte {
	line, rest := cutLine(c.rest)
	c.rest, c.at = rest, c.at+1
	return line
}

// hunks writes the spans with their context; spans whose context touches share a
// hunk.
func (p *printer) hunks(w window, spans []span, context int) {
	a, b := cursor{rest: w.a}, cursor{rest: w.b}
	na := countLines(w.a)
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].a-spans[n-1].aEnd <= 2*context {
			n++
		}
		p.hunk(w.first, &a, &b, spans[:n], context, na)
		spans = spans[n:]
	}
}

func (p *printer) hunk(first int, a, b *cursor, spans []span, context, na int) {
	begin, end := spans[0], spans[len(spans)-1]
	before := min(context, begin.a)
	after := min(context, na-end.aEnd)
	for a.at < begin.a-before {
		a.take()
	}
	for b.at < begin.b-before {
		b.take()
	}
	p.write("@@", []byte(" -"+place(first+a.at, end.aEnd+after-a.at)+" +"+place(first+b.at, end.bEnd+after-b.at)+" @@"), "\n")
	for _, s := range spans {
		for a.at < s.a {
			p.line(" ", a.take())
			b.take()
		}
		for a.at < s.aEnd {
			p.line("-", a.take())
		}
		for b.at < s.bEnd {
			p.line("+", b.take())
		}
	}
	for range after {
		p.line(" ", a.take())
		b.take()
	}
}

// place is the range of a hunk header; an empty range names the line before it.
func place(index, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", index)
	case 1:
		return fmt.Sprint(index + 1)
	default:
		return fmt.Sprintf("%d,%d", index+1, count)
	}
}

func (p *printer) line(mark string, text []byte) {
	if text[len(text)-1] != '\n' {
		p.write(mark, text, "\n\\ No newline at end of file\n")
		return
	}
	p.write(mark, text, "")
}

// write writes one line. Of the first that does not fit it writes the head, so that
// one huge line still shows how it begins.
func (p *printer) write(mark string, text []byte, tail string) {
	size := len(mark) + len(text) + len(tail)
	fits := p.maxBytes <= 0 || size <= p.maxBytes-p.bytes
	switch {
	case p.cut || (p.maxLines > 0 && p.lines >= p.maxLines):
		p.lose(size)
	case fits:
		p.out.WriteString(mark)
		p.out.Write(text)
		p.out.WriteString(tail)
		p.lines++
		p.bytes += size
	default:
		room := min(p.maxBytes-p.bytes-len(mark)-len("…\n"), len(text)-1)
		for room > 0 && !utf8.RuneStart(text[room]) {
			room--
		}
		if room > 0 {
			p.out.WriteString(mark)
			p.out.Write(text[:room])
			p.out.WriteString("…\n")
			size -= len(mark) + room
		}
		p.lose(size)
	}
}

func (p *printer) lose(bytes int) {
	p.cut = true
	p.lostLines++
	p.lostBytes += bytes
}

func (p *printer) finish() {
	if p.cut {
		fmt.Fprintf(p.out, "[diff cut here: %d lines, %d bytes not shown]\n", p.lostLines, p.lostBytes)
	}
}
