package termtext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	variation16 = '\uFE0F' // asks for the emoji form of the rune before it
	joiner      = '\u200D' // joins two emoji to one glyph
	keycap      = "\u20E3" // the box around a digit

	// maxMarks is how many marks may follow one base. Hebrew with points and
	// accents, Tibetan stacks and Vedic signs stay below it.
	maxMarks = 8
	// maxJoins is how many joiners one emoji sequence may hold. The longest
	// sequences recommended for interchange hold three.
	maxJoins = 3
)

// emojiState says what the text so far allows next.
type emojiState uint8

const (
	noEmoji     emojiState = iota
	digitBase              // a digit, # or *: variation16 and keycap may follow
	pictograph             // variation16, a skin tone or a joiner may follow
	pictographs            // complete: only a joiner may follow
	joined                 // a pictograph follows for sure
)

// cleaner is the state between two pieces of one text.
type cleaner struct {
	oneLine bool
	found   func(name string) // told of each marked character; may be nil

	attach bool // the rune before can carry a mark
	hangul bool // the rune before is part of a Hangul syllable
	marks  uint8
	emoji  emojiState
	joins  uint8
}

// run appends the safe form of s to dst. When final is false it returns the end of
// s that it cannot decide yet.
func (c *cleaner) run(dst []byte, s string, final bool) (out []byte, rest string) {
	for s != "" {
		if n := plainRun(s, c.oneLine); n > 0 {
			dst = append(dst, s[:n]...)
			c.plain(s[:n])
			s = s[n:]
			continue
		}
		var n int
		if s[0] < utf8.RuneSelf {
			dst, n = c.control(dst, s, final)
		} else {
			dst, n = c.wide(dst, s, final)
		}
		if n == 0 {
			return dst, s
		}
		s = s[n:]
	}
	return dst, ""
}

// plainRun returns the length of the leading run that is shown as it is.
func plainRun(s string, oneLine bool) int {
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b-0x20 < 0x5f || !oneLine && (b == '\n' || b == '\t') {
			continue
		}
		return i
	}
	return len(s)
}

// plain notes what a run of plain ASCII means for the rune after it.
func (c *cleaner) plain(s string) {
	if s == "" {
		return
	}
	last := s[len(s)-1]
	c.reset(last >= 0x20)
	if last >= '0' && last <= '9' || last == '#' || last == '*' {
		c.emoji = digitBase
	}
}

func (c *cleaner) reset(attach bool) {
	c.attach, c.hangul, c.marks, c.emoji, c.joins = attach, false, 0, noEmoji, 0
}

// control appends one control character and returns how many bytes it took, 0 when
// more text has to come first.
func (c *cleaner) control(dst []byte, s string, final bool) ([]byte, int) {
	b := s[0]
	switch {
	case b == '\n':
		c.reset(false)
		return append(dst, "⏎"...), 1
	case b == '\t':
		c.reset(true)
		return append(dst, ' '), 1
	case b != '\r':
		return c.escape(dst, b, controlName(rune(b))), 1
	case len(s) == 1 && !final:
		return dst, 0
	case len(s) > 1 && s[1] == '\n':
		c.reset(false)
		return dst, 1
	default:
		c.note(`\r carriage return`)
		c.reset(false)
		return append(dst, `\r`...), 1
	}
}

// wide appends the rune or broken byte at the start of s and returns how many
// bytes it took, 0 when more text has to come first.
func (c *cleaner) wide(dst []byte, s string, final bool) ([]byte, int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case n == 1: // not UTF-8, or not yet
		if !final && !utf8.FullRuneInString(s) {
			return dst, 0
		}
		return c.escape(dst, s[0], "invalid UTF-8"), 1
	case r < 0xA0:
		return c.escape(dst, byte(r), controlName(r)), n
	case common(r):
		c.reset(true)
		return append(dst, s[:n]...), n
	case r == variation16:
		return c.variation(dst, s, final)
	case r == joiner:
		return c.join(dst, s, final)
	case !shown(r):
		return c.mark(dst, r, kindOf(r)), n
	case isMark(r):
		return c.attachMark(dst, r), n
	}
	c.base(r)
	return append(dst, s[:n]...), n
}

// base notes what a shown rune that is no mark means for the rune after it.
func (c *cleaner) base(r rune) {
	tone := isSkinTone(r) && c.emoji == pictograph
	joins := c.joins
	carry := c.emoji == joined || tone
	c.reset(true)
	c.hangul = isHangul(r)
	switch {
	case tone:
		c.emoji = pictographs
	case isPictograph(r):
		c.emoji = pictograph
	}
	if carry {
		c.joins = joins
	}
}

// variation passes variation16 after a pictograph, and between a digit and its
// keycap.
func (c *cleaner) variation(dst []byte, s string, final bool) ([]byte, int) {
	const n = len("\uFE0F")
	switch after := s[n:]; {
	case c.emoji == pictograph:
		c.emoji = pictographs
		return append(dst, s[:n]...), n
	case c.emoji == digitBase && strings.HasPrefix(after, keycap):
		c.reset(true)
		return append(dst, s[:n+len(keycap)]...), n + len(keycap)
	case c.emoji == digitBase && !final && strings.HasPrefix(keycap, after):
		return dst, 0
	}
	return c.mark(dst, variation16, kindOf(variation16)), n
}

// join passes a joiner between two pictographs.
func (c *cleaner) join(dst []byte, s string, final bool) ([]byte, int) {
	const n = len("\u200D")
	if (c.emoji == pictograph || c.emoji == pictographs) && c.joins < maxJoins {
		after := s[n:]
		if !final && !utf8.FullRuneInString(after) {
			return dst, 0
		}
		if r, _ := utf8.DecodeRuneInString(after); isPictograph(r) {
			c.emoji = joined
			c.joins++
			return append(dst, s[:n]...), n
		}
	}
	return c.mark(dst, joiner, kindOf(joiner)), n
}

// attachMark appends a mark as it is when it has a base and few siblings, else by
// name.
func (c *cleaner) attachMark(dst []byte, r rune) []byte {
	if !c.attach || c.marks >= maxMarks || isJamoTail(r) && !c.hangul {
		return c.mark(dst, r, "combining marks without a base, or too many")
	}
	c.marks++
	c.emoji = noEmoji
	return utf8.AppendRune(dst, r)
}

func (c *cleaner) escape(dst []byte, b byte, name string) []byte {
	c.note(name)
	c.reset(false)
	return fmt.Appendf(dst, `\x%02x`, b)
}

func (c *cleaner) mark(dst []byte, r rune, kind string) []byte {
	if c.found != nil {
		c.note(hiddenName(r, kind))
	}
	c.reset(false)
	return fmt.Appendf(dst, "<U+%04X>", r)
}

func (c *cleaner) note(name string) {
	if c.found != nil {
		c.found(name)
	}
}

// common is a cheap test for the letters that most texts consist of.
func common(r rune) bool {
	return r >= 0xA1 && r < 0x300 && r != 0xAD && r != 0xA9 && r != 0xAE ||
		r >= 0x0410 && r <= 0x044F ||
		r >= 0x2010 && r <= 0x2027 || // dashes, quotes, dots
		r >= 0x2500 && r <= 0x259F || // box drawing and blocks
		r >= 0x3041 && r <= 0x3096 || r >= 0x30A1 && r <= 0x30FA ||
		r >= 0x4E00 && r <= 0x9FFF
}

// shown reports whether r may stand in safe text at all.
func shown(r rune) bool {
	return unicode.IsGraphic(r) &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		!unicode.Is(unicode.Variation_Selector, r) &&
		!drawsBlank(r)
}

// drawsBlank reports whether r is no blank by its category but draws none or
// nothing.
func drawsBlank(r rune) bool {
	switch r {
	case 0x115F, 0x1160, 0x3164, 0xFFA0, // Hangul fillers
		0x17B4, 0x17B5, // Khmer inherent vowels
		0x2800,  // braille pattern without dots
		0xFFFC,  // stands for an object that is not there
		0x1107F, // joins two Brahmi digits
		0x16FE4, // fills a Khitan cluster
		0x1D159: // musical notehead without a shape
		return true
	}
	return false
}

// isMark reports whether r draws over the rune before it.
func isMark(r rune) bool { return unicode.Is(unicode.M, r) || isJamoTail(r) }

// isJamoTail reports whether r is a Hangul vowel or final consonant, which
// terminals draw into the cell of the consonant before it.
func isJamoTail(r rune) bool {
	return r >= 0x1161 && r <= 0x11FF || r >= 0xD7B0 && r <= 0xD7FB
}

func isHangul(r rune) bool {
	return r >= 0x1100 && r <= 0x115E || r >= 0xA960 && r <= 0xA97C || r >= 0xAC00 && r <= 0xD7A3
}
