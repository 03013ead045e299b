package repl

import (
	"io"
	"strconv"
	"strings"

	"zcoder/internal/termtext"
)

// screen writes to the terminal: text that scrolls and is never touched again, and
// below it a region of a few rows (the draft, the status) that is erased before text
// is printed and drawn again after it. Nothing is written before flush.
//
// An open line is text without its line end yet. With hold set it waits until it is
// finished, since the draft stands below; else it is on the screen, and the region
// starts in the row after it.
type screen struct {
	out  io.Writer
	dumb bool
	size func() (cols, rows int)
	err  error // of the last failed write

	buf     []byte
	hold    bool
	held    []byte // of the open line, not on the screen
	open    []byte // of the open line, on the screen, without styles
	printed int    // how often something was
	// below is set when the cursor went to the row after an open line that fills
	// its last row: the line goes on there.
	below bool

	want     region
	shown    region
	drawn    bool // shown is on the screen
	away     bool // something else has the screen; text waits
	deferred []byte
}

// eraseBelow erases this row and all below it. Not from the first column on: tmux takes
// that in the first row for clearing the screen, and keeps what was there.
const eraseBelow = "\r\x1b[K\x1b[C\x1b[J\r"

// maxBuffer is how much is gathered before it is written anyway, in bytes.
const maxBuffer = 256 << 10

// region is rows of styled text and where the cursor stands in them. Each row is
// narrower than the screen.
type region struct {
	rows     []string
	row, col int
}

func (r region) equal(o region) bool {
	if len(r.rows) != len(o.rows) || r.row != o.row || r.col != o.col {
		return false
	}
	for i := range r.rows {
		if r.rows[i] != o.rows[i] {
			return false
		}
	}
	return true
}

// print adds safe text, styled, to what scrolls.
func (s *screen) print(text string) {
	s.printed++
	switch {
	case text == "":
	case s.away:
		s.deferred = append(s.deferred, text...)
	case s.hold:
		s.held = append(s.held, text...)
		if i := strings.LastIndexByte(text, '\n'); i >= 0 {
			n := len(s.held) - (len(text) - i - 1)
			whole := string(s.held[:n])
			s.held = append(s.held[:0], s.held[n:]...)
			s.scroll(whole)
		}
	default:
		s.scroll(text)
	}
}

// println prints text as lines of its own.
func (s *screen) println(text string) {
	s.freshLine()
	s.print(strings.TrimSuffix(text, "\n") + "\n")
}

// freshLine ends an open line.
func (s *screen) freshLine() {
	if s.midLine() {
		s.print("\n")
	}
}

// midLine reports whether an open line has text.
func (s *screen) midLine() bool {
	if s.away {
		n := len(s.deferred)
		return n > 0 && s.deferred[n-1] != '\n' || n == 0 && len(s.open)+len(s.held) > 0
	}
	return len(s.open) > 0 || len(s.held) > 0
}

// setHold says whether the open line waits.
func (s *screen) setHold(hold bool) {
	s.hold = hold
	if !hold && len(s.held) > 0 && !s.away {
		text := string(s.held)
		s.held = s.held[:0]
		s.scroll(text)
	}
}

// scroll puts text after the text before it.
func (s *screen) scroll(text string) {
	s.erase()
	if s.below && text != "" {
		s.below = false
		if text[0] == '\n' { // its line end was made by going below
			text = text[1:]
			s.open = s.open[:0]
		}
	}
	for {
		line, rest, found := strings.Cut(text, "\n")
		s.buf = append(s.buf, line...)
		if !found {
			s.open = append(s.open, unstyled(line)...)
			return
		}
		s.lineEnd()
		s.open = s.open[:0]
		text = rest
		if len(s.buf) > maxBuffer {
			s.write()
		}
	}
}

func (s *screen) lineEnd() {
	if !s.dumb {
		s.buf = append(s.buf, '\r')
	}
	s.buf = append(s.buf, '\n')
}

// setRegion says what stands below the text from the next flush on.
func (s *screen) setRegion(r region) { s.want = r }

// flush draws the region and writes everything out.
func (s *screen) flush() {
	if !s.away && !s.dumb && (!s.drawn || !s.want.equal(s.shown)) {
		s.erase()
		s.draw()
	}
	s.write()
}

func (s *screen) write() {
	if len(s.buf) == 0 {
		return
	}
	if _, err := s.out.Write(s.buf); err != nil {
		s.err = err
	}
	s.buf = s.buf[:0]
}

func (s *screen) draw() {
	s.shown, s.drawn = s.want, true
	if len(s.want.rows) == 0 {
		return
	}
	if len(s.open) > 0 && !s.below {
		s.buf = append(s.buf, "\r\n"...)
	}
	for i, row := range s.want.rows {
		if i > 0 {
			s.buf = append(s.buf, "\r\n"...)
		}
		s.buf = append(s.buf, row...)
	}
	s.up(len(s.want.rows) - 1 - s.want.row)
	s.column(s.want.col)
}

// erase removes the region and puts the cursor behind the text.
func (s *screen) erase() {
	if !s.drawn {
		return
	}
	s.drawn = false
	if len(s.shown.rows) == 0 {
		return
	}
	cols, _ := s.size()
	s.up(s.rowsAbove(cols))
	s.buf = append(s.buf, eraseBelow...)
	if len(s.open) == 0 || s.below {
		return
	}
	col := lastColumn(string(s.open), cols)
	if col >= cols {
		s.below = true
		return
	}
	s.up(1)
	s.column(col)
}

// rowsAbove is how many screen rows of the region are above the cursor. Terminals
// that became narrower have wrapped the rows that no longer fit.
func (s *screen) rowsAbove(cols int) int {
	cols = max(cols, 1)
	n := s.shown.col / cols
	if s.shown.col > 0 && s.shown.col >= termtext.Width(unstyled(s.shown.rows[s.shown.row])) {
		n = (s.shown.col - 1) / cols // behind text that just fits
	}
	for _, row := range s.shown.rows[:s.shown.row] {
		n += max(1, (termtext.Width(unstyled(row))+cols-1)/cols)
	}
	return n
}

// lastColumn is the column behind an open line, cols when it fills its last row.
func lastColumn(open string, cols int) int {
	if len(open) < cols && !strings.Contains(open, "\t") {
		return termtext.Width(open)
	}
	rows := termtext.Wrap(open, cols)
	return termtext.Width(rows[len(rows)-1])
}

func (s *screen) up(n int) {
	if n > 0 {
		s.buf = append(s.buf, "\x1b["...)
		s.buf = append(strconv.AppendInt(s.buf, int64(n), 10), 'A')
	}
}

func (s *screen) column(n int) {
	s.buf = append(s.buf, '\r')
	if n > 0 {
		s.buf = append(s.buf, "\x1b["...)
		s.buf = append(strconv.AppendInt(s.buf, int64(n), 10), 'C')
	}
}

// leave gives the screen to something else. Text waits until comeBack.
func (s *screen) leave() {
	s.erase()
	s.write()
	s.away = true
}

// comeBack takes the screen again. It has the text above the cursor unchanged.
func (s *screen) comeBack() {
	s.away = false
	text := string(s.deferred)
	s.deferred = nil
	s.print(text)
}

// lostLine says that the cursor is at the start of an unknown empty row.
func (s *screen) lostLine() {
	s.open, s.below, s.drawn = s.open[:0], false, false
}

// clear empties the visible screen; the scrollback keeps what was there.
func (s *screen) clear() {
	if s.dumb {
		return
	}
	s.erase()
	s.buf = append(s.buf, "\x1b[H\x1b[2J"...)
	s.lostLine()
}

// touch has the region drawn again, since the size changed.
func (s *screen) touch() {
	if s.drawn && !s.away {
		s.erase()
	}
}
