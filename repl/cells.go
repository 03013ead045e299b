package repl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"zcoder/internal/termtext"
)

const (
	// standinBase is the first stand-in, in the last private plane.
	standinBase = '\U00100000'
	standinEnd  = '\U0010FFFD'

	// Text that is longer, or has more lines, appears in the draft as a placeholder.
	longPaste      = 1000 // bytes
	longPasteLines = 8
)

// cells maps what a person sees as one character to one rune, so that the line
// editor moves over it and deletes it as a whole: joined emoji, letters with marks,
// long pastes. Everything else stands for itself. Stand-ins belong to one editor
// and mean nothing elsewhere.
type cells struct {
	texts  map[rune]string
	runes  map[string]rune // of clusters; pastes are not looked up
	pastes map[rune]bool
	next   rune
}

func newCells() *cells {
	return &cells{texts: map[rune]string{}, runes: map[string]rune{}, pastes: map[rune]bool{}, next: standinBase}
}

// fromText returns the editor's runes for text.
func (c *cells) fromText(text string) []rune {
	var line []rune
	for len(text) > 0 {
		n := clusterLen(text)
		line = append(line, c.cluster(text[:n]))
		text = text[n:]
	}
	return line
}

// cluster returns the rune for one cluster.
func (c *cells) cluster(text string) rune {
	r, n := utf8.DecodeRuneInString(text)
	if n == len(text) && (r < standinBase) {
		return r
	}
	if r, ok := c.runes[text]; ok {
		return r
	}
	r = c.add(text)
	c.runes[text] = r
	return r
}

// placeholder returns one rune for a long text.
func (c *cells) placeholder(text string) rune {
	r := c.add(text)
	c.pastes[r] = true
	return r
}

func (c *cells) add(text string) rune {
	if c.next >= standinEnd {
		return utf8.RuneError
	}
	r := c.next
	c.next++
	c.texts[r] = text
	return r
}

// text returns what the runes stand for.
func (c *cells) text(line []rune) string {
	var b strings.Builder
	for _, r := range line {
		if r < standinBase {
			b.WriteRune(r)
		} else {
			b.WriteString(c.texts[r])
		}
	}
	return b.String()
}

// forgetPastes frees the texts of placeholders.
func (c *cells) forgetPastes() {
	for r := range c.pastes {
		delete(c.texts, r)
	}
	clear(c.pastes)
}

// join returns the rune for prev with r added, when the two are seen as one.
func (c *cells) join(prev, r rune) (rune, bool) {
	text := string(prev)
	if prev >= standinBase {
		text = c.texts[prev]
	}
	if prev == '\n' || c.pastes[prev] || text == "" || !joins(text, r) {
		return 0, false
	}
	return c.cluster(text + string(r)), true
}

// show returns how a rune of the draft appears and how many display cells it takes.
func (c *cells) show(r rune) (string, int) {
	if r >= 0x20 && r < 0x7f {
		return asciiCells[r-0x20 : r-0x1f], 1
	}
	if r == '\t' {
		return "    ", 4
	}
	text := string(r)
	if r >= standinBase {
		text = c.texts[r]
	}
	if c.pastes[r] {
		text = pasteLabel(text)
	}
	text = termtext.Line(text)
	return text, termtext.Width(text)
}

const asciiCells = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"

// isLong reports whether text appears as a placeholder.
func isLong(text string) bool {
	return len(text) > longPaste || strings.Count(text, "\n") >= longPasteLines
}

func pasteLabel(text string) string {
	if n := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1; n > 1 {
		return fmt.Sprintf("[pasted %d lines]", n)
	}
	return fmt.Sprintf("[pasted %d characters]", utf8.RuneCountInString(text))
}

// clusterLen returns the length of the first cluster of text.
func clusterLen(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	for n < len(text) {
		r, size := utf8.DecodeRuneInString(text[n:])
		if r < 0x300 || text[0] == '\n' || !joins(text[:n], r) {
			break
		}
		n += size
	}
	return n
}

const maxCluster = 64 // bytes; longer ones are divided

// joins reports whether r is seen as part of the cluster before it. It is a reading
// of the usual sequences, no more: a wrong guess costs a cursor step, nothing else.
func joins(cluster string, r rune) bool {
	if len(cluster) > maxCluster {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(cluster)
	switch {
	case r == '\u200d' || r == '\ufe0f' || r == '\ufe0e':
		return true
	case last == '\u200d':
		return r >= 0x203c
	case r >= 0x1f3fb && r <= 0x1f3ff: // skin tones
		return last >= 0x203c
	case isFlagLetter(r):
		return isFlagLetter(last) && utf8.RuneCountInString(cluster) == 1
	case r >= 0xe0020 && r <= 0xe007f: // tags of flags
		return last == '\U0001f3f4' || last >= 0xe0020 && last <= 0xe007f
	case r >= 0x1160 && r <= 0x11ff: // Hangul vowels and tails
		return last >= 0x1100 && last <= 0x11ff || last >= 0xac00 && last <= 0xd7a3
	}
	return unicode.Is(unicode.M, r)
}

func isFlagLetter(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
