package repl

import (
	"io"
	"unicode"

	"github.com/chzyer/readline"
)

// editor is the draft: readline's buffer, cursor and kill ring without its drawing,
// history and completion, whose widths and limits are not ours. Keys go in one by
// one, and each is done before key returns, so that all of it belongs to the
// caller's goroutine.
//
// readline reads a source that never ends. Its input filter waits for our key and
// puts it in the place of what was read, so that a filter that waits again means
// that the key before is done.
type editor struct {
	*cells
	rl    *readline.Instance
	feed  chan rune
	ready chan struct{}
	quit  chan struct{}

	line []rune // what readline's buffer holds
	pos  int
	put  *change // for the listener to set
}

// maxYank is the draft length in runes above which nothing is yanked: a killed line
// that is yanked twice and killed again doubles each time.
const maxYank = 1 << 15

type change struct {
	line []rune
	pos  int
}

func newEditor() (*editor, error) {
	e := &editor{cells: newCells(), feed: make(chan rune), ready: make(chan struct{}), quit: make(chan struct{})}
	rl, err := readline.NewEx(&readline.Config{
		Stdin:                  keySource{e.quit},
		Stdout:                 io.Discard,
		Stderr:                 io.Discard,
		Listener:               e,
		HistoryLimit:           -1,
		DisableAutoSaveHistory: true,
		FuncFilterInputRune:    e.next,
		FuncGetWidth:           func() int { return 80 },
		FuncIsTerminal:         func() bool { return false },
		FuncMakeRaw:            func() error { return nil },
		FuncExitRaw:            func() error { return nil },
		FuncOnWidthChanged:     func(func()) {},
	})
	if err != nil {
		return nil, err
	}
	e.rl = rl
	rl.Terminal.KickRead()
	<-e.ready
	return e, nil
}

// close ends readline's goroutines.
func (e *editor) close() {
	e.set(nil, 0)
	close(e.quit)
	_, _ = e.rl.Readline() // takes the end of the source, without which its loop stays
	_ = e.rl.Close()       // it has no file and no terminal to fail on
}

// keySource gives readline something to read for each key.
type keySource struct{ quit <-chan struct{} }

func (s keySource) Read(p []byte) (int, error) {
	select {
	case <-s.quit:
		return 0, io.EOF
	default:
		p[0] = '.'
		return 1, nil
	}
}

func (s keySource) Close() error { return nil }

// next runs in readline's goroutine.
func (e *editor) next(r rune) (rune, bool) {
	select {
	case e.ready <- struct{}{}:
	case <-e.quit:
		return 0, r == 0
	}
	select {
	case r := <-e.feed:
		return r, true
	case <-e.quit:
		return 0, r == 0
	}
}

// OnChange implements readline.Listener; it runs while key waits.
func (e *editor) OnChange(line []rune, pos int, k rune) ([]rune, int, bool) {
	if k == 0 {
		return nil, 0, false
	}
	if e.put != nil {
		c := e.put
		e.put = nil
		e.line, e.pos = append([]rune(nil), c.line...), c.pos
		return append([]rune(nil), c.line...), c.pos, true
	}
	e.line, e.pos = line, pos
	return nil, 0, false
}

// key gives readline one of its own keys. Those that leave the line, complete,
// search or suspend must not come here.
func (e *editor) key(r rune) {
	e.feed <- r
	<-e.ready
}

// set replaces the draft.
func (e *editor) set(line []rune, pos int) {
	e.put = &change{line, pos}
	e.key(readline.CharBell)
}

func (e *editor) setText(text string) {
	line := e.shorten(text)
	e.set(line, len(line))
}

func (e *editor) text() string { return e.cells.text(e.line) }

func (e *editor) empty() bool { return len(e.line) == 0 }

// take ends the line as Return does and gives its text.
func (e *editor) take() string {
	e.feed <- readline.CharEnter
	line, _ := e.rl.Readline() // no error: the key was Return
	<-e.ready
	text := e.cells.text([]rune(line))
	e.forgetPastes()
	return text
}

// insert puts text at the cursor.
func (e *editor) insert(text string) { e.insertRunes(e.shorten(text)) }

// shorten returns the runes for text, a placeholder when it is long.
func (e *editor) shorten(text string) []rune {
	if isLong(text) {
		return []rune{e.placeholder(text)}
	}
	return e.fromText(text)
}

func (e *editor) insertRunes(add []rune) {
	line := append(append(append([]rune(nil), e.line[:e.pos]...), add...), e.line[e.pos:]...)
	e.set(line, e.pos+len(add))
}

// typed inserts one rune that came from the keyboard.
func (e *editor) typed(r rune) {
	if e.pos > 0 && r >= 0x300 {
		if joined, ok := e.join(e.line[e.pos-1], r); ok {
			line := append([]rune(nil), e.line...)
			line[e.pos-1] = joined
			e.set(line, e.pos)
			return
		}
	}
	if r >= standinBase {
		e.insertRunes([]rune{e.cluster(string(r))})
		return
	}
	e.key(r)
}

// edit does an editing key and reports whether it is one.
func (e *editor) edit(k key) bool {
	switch k.name {
	case keyRune:
		if k.alt {
			return e.editAlt(k.r)
		}
		e.typed(k.r)
	case keyPaste:
		e.insert(k.text)
	case keyNewline:
		e.insertRunes([]rune{'\n'})
	case keyBackspace:
		if k.alt {
			e.killWord(e.wordStart(), e.pos)
		} else {
			e.key(readline.CharBackspace)
		}
	case keyDelete:
		if !e.empty() {
			e.key(readline.CharDelete)
		}
	case keyLeft, keyRight:
		e.move(k)
	case keyHome:
		e.key(readline.CharLineStart)
	case keyEnd:
		e.key(readline.CharLineEnd)
	case keyCtrl:
		return e.editCtrl(k.r)
	default:
		return false
	}
	return true
}

func (e *editor) editAlt(r rune) bool {
	switch r {
	case 'b':
		e.goTo(e.wordStart())
	case 'f':
		e.goTo(e.wordEnd())
	case 'd':
		e.killWord(e.pos, e.wordEnd())
	default:
		return false
	}
	return true
}

func (e *editor) editCtrl(r rune) bool {
	switch r {
	case 'a':
		e.key(readline.CharLineStart)
	case 'b':
		e.key(readline.CharBackward)
	case 'e':
		e.key(readline.CharLineEnd)
	case 'f':
		e.key(readline.CharForward)
	case 'k':
		e.key(readline.CharKill)
	case 't':
		if len(e.line) > 1 { // readline puts the cursor behind the end of a shorter line
			e.key(readline.CharTranspose)
		}
	case 'u':
		e.key(readline.CharCtrlU)
	case 'w':
		e.killWord(e.blankStart(), e.pos)
	case 'y':
		if len(e.line) < maxYank {
			e.key(readline.CharCtrlY)
		}
	default:
		return false
	}
	return true
}

func (e *editor) move(k key) {
	switch {
	case k.name == keyLeft && k.alt:
		e.goTo(e.wordStart())
	case k.name == keyLeft:
		e.key(readline.CharBackward)
	case k.alt:
		e.goTo(e.wordEnd())
	default:
		e.key(readline.CharForward)
	}
}

func (e *editor) goTo(pos int) { e.set(e.line, pos) }

// killWord moves a part of the line to readline's kill ring. Its own word commands
// take every letter outside ASCII for a gap.
func (e *editor) killWord(from, to int) {
	if from >= to {
		return
	}
	rest := append(append([]rune(nil), e.line[:from]...), e.line[to:]...)
	e.set(e.line[from:to], 0)
	e.key(readline.CharKill)
	e.set(rest, from)
}

func (e *editor) isWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r >= standinBase
}

func (e *editor) wordStart() int {
	i := e.pos
	for i > 0 && !e.isWord(e.line[i-1]) {
		i--
	}
	for i > 0 && e.isWord(e.line[i-1]) {
		i--
	}
	return i
}

func (e *editor) wordEnd() int {
	i := e.pos
	for i < len(e.line) && !e.isWord(e.line[i]) {
		i++
	}
	for i < len(e.line) && e.isWord(e.line[i]) {
		i++
	}
	return i
}

// blankStart is where the word before the cursor starts, words being divided by
// blanks only.
func (e *editor) blankStart() int {
	i := e.pos
	for i > 0 && unicode.IsSpace(e.line[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.line[i-1]) {
		i--
	}
	return i
}

// upDown moves the cursor by one line of the draft and reports whether there is
// one in that direction.
func (e *editor) upDown(down bool) bool {
	start := lineStart(e.line, e.pos)
	column := e.pos - start
	if down {
		end := lineEnd(e.line, e.pos)
		if end == len(e.line) {
			return false
		}
		e.goTo(min(end+1+column, lineEnd(e.line, end+1)))
		return true
	}
	if start == 0 {
		return false
	}
	e.goTo(min(lineStart(e.line, start-1)+column, start-1))
	return true
}

func lineStart(line []rune, pos int) int {
	for pos > 0 && line[pos-1] != '\n' {
		pos--
	}
	return pos
}

func lineEnd(line []rune, pos int) int {
	for pos < len(line) && line[pos] != '\n' {
		pos++
	}
	return pos
}
