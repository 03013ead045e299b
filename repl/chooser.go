package repl

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"zcoder/internal/termtext"
)

// chooser is a list from which a person picks. What is typed narrows it.
type chooser struct {
	st         style
	title      string
	items      []string // safe, one line each
	match      []int    // the items that hold filter
	filter     string
	at, top    int // in match
	cols, rows int
}

func newChooser(st style, title string, items []string, current, cols, rows int) *chooser {
	c := &chooser{st: st, title: termtext.Line(title), cols: cols, rows: rows}
	for _, item := range items {
		c.items = append(c.items, termtext.Line(item))
	}
	c.narrow("")
	c.move(current)
	return c
}

func (c *chooser) resize(cols, rows int) {
	c.cols, c.rows = cols, rows
	c.move(0)
}

// narrow shows the items that hold text, in any letter case.
func (c *chooser) narrow(text string) {
	c.filter, c.at, c.top = text, 0, 0
	c.match = c.match[:0]
	for i, item := range c.items {
		if strings.Contains(strings.ToLower(item), strings.ToLower(text)) {
			c.match = append(c.match, i)
		}
	}
}

func (c *chooser) room() int { return max(c.rows-2, 1) }

func (c *chooser) move(by int) {
	c.at = max(0, min(c.at+by, len(c.match)-1))
	c.top = max(0, min(c.top, c.at), c.at-c.room()+1)
}

// key takes a key. When done is set, index is the choice, -1 for none.
func (c *chooser) key(k key) (index int, done bool) {
	switch k.name {
	case keyEsc:
		return -1, true
	case keyCtrl:
		if k.r == 'c' || k.r == 'd' {
			return -1, true
		}
	case keyEnter:
		if c.at < len(c.match) {
			return c.match[c.at], true
		}
	case keyUp:
		c.move(-1)
	case keyDown, keyTab:
		c.move(1)
	case keyPageUp:
		c.move(-c.room())
	case keyPageDown:
		c.move(c.room())
	case keyHome:
		c.move(-len(c.items))
	case keyEnd:
		c.move(len(c.items))
	case keyBackspace:
		_, n := utf8.DecodeLastRuneInString(c.filter)
		c.narrow(c.filter[:len(c.filter)-n])
	case keyRune:
		if !k.alt {
			c.narrow(c.filter + string(k.r))
		}
	}
	return -1, false
}

func (c *chooser) frame() []string {
	width := max(c.cols-1, 1)
	frame := []string{c.st.bold(termtext.Cut(c.title, width))}
	for i := c.top; i < min(c.top+c.room(), len(c.match)); i++ {
		item := c.items[c.match[i]]
		if i == c.at {
			frame = append(frame, c.st.invert(pad("> "+item, width)))
		} else {
			frame = append(frame, termtext.Cut("  "+item, width))
		}
	}
	for len(frame) < c.rows-1 {
		frame = append(frame, "")
	}
	foot := fmt.Sprintf("%d of %d · Enter picks, Esc leaves, type to narrow", min(c.at+1, len(c.match)), len(c.match))
	if c.filter != "" {
		foot = termtext.Line(c.filter) + "_ · " + foot
	}
	frame = append(frame, c.st.dim(termtext.Cut(foot, width)))
	return frame[:min(len(frame), max(c.rows, 1))]
}
