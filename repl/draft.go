package repl

import (
	"strings"

	"zcoder/internal/termtext"
)

// continued stands before the further lines of a draft.
const continued = "  "

// draftLayout places a draft on rows.
type draftLayout struct {
	width    int
	rows     []string
	used     int // cells of the row under way
	b        strings.Builder
	row, col int // the cursor
}

// layoutDraft returns the rows of a prompt and a draft, each narrower than cols, and
// at most maxRows of them around the cursor.
func layoutDraft(st style, prompt string, c *cells, line []rune, pos, cols, maxRows int) region {
	l := draftLayout{width: max(cols-1, 1)}
	prompt = termtext.Cut(termtext.Line(prompt), max(l.width/2, l.width-20, 1))
	l.b.WriteString(st.cyan(prompt))
	l.used = termtext.Width(prompt)
	for i, r := range line {
		if i == pos {
			l.mark()
		}
		if r == '\n' {
			l.newRow(continued)
			continue
		}
		text, width := c.show(r)
		for _, part := range l.parts(text, width) {
			l.add(st, part, c.pastes[r])
		}
	}
	if pos >= len(line) {
		l.mark()
	}
	l.rows = append(l.rows, l.b.String())
	return l.window(maxRows)
}

// parts divides what is wider than a row, which a marker on a tiny screen can be.
func (l *draftLayout) parts(text string, width int) []string {
	if width <= l.width {
		return []string{text}
	}
	return termtext.Wrap(text, l.width)
}

func (l *draftLayout) add(st style, text string, label bool) {
	width := termtext.Width(text)
	if l.used+width > l.width {
		l.newRow("")
	}
	if width > l.width { // a wide letter on a screen of one cell
		text, width = "?", 1
	}
	if label {
		text = st.dim(text)
	}
	l.b.WriteString(text)
	l.used += width
}

func (l *draftLayout) newRow(indent string) {
	if len(indent) >= l.width {
		indent = ""
	}
	l.rows = append(l.rows, l.b.String())
	l.b.Reset()
	l.b.WriteString(indent)
	l.used = len(indent)
}

// mark puts the cursor here.
func (l *draftLayout) mark() { l.row, l.col = len(l.rows), l.used }

// window keeps the rows around the cursor.
func (l *draftLayout) window(maxRows int) region {
	maxRows = max(maxRows, 1)
	if len(l.rows) <= maxRows {
		return region{l.rows, l.row, l.col}
	}
	top := max(0, min(l.row-maxRows/2, len(l.rows)-maxRows))
	return region{l.rows[top : top+maxRows], l.row - top, l.col}
}
