package repl

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// keyName says what a key is.
type keyName uint8

const (
	keyRune      keyName = iota // r is a rune to insert
	keyCtrl                     // r is the letter: 'c' for Ctrl-C
	keyEnter                    // Return, Ctrl-J, Enter of the keypad
	keyNewline                  // Alt-Return
	keyTab                      //
	keyBackspace                // with alt: Alt-Backspace
	keyEsc                      //
	keyUp                       //
	keyDown                     //
	keyLeft                     // with alt: by words (Ctrl or Alt)
	keyRight                    //
	keyHome                     //
	keyEnd                      //
	keyPageUp                   //
	keyPageDown                 //
	keyDelete                   //
	keyPaste                    // text is what was pasted, with '\n' as line end
)

// key is one thing that a person did at the keyboard.
type key struct {
	name keyName
	r    rune
	alt  bool
	text string
}

type decoderState uint8

const (
	ground    decoderState = iota
	inRune                 // inside a UTF-8 sequence
	afterEsc               // after ESC
	inCSI                  // after ESC [
	inSS3                  // after ESC O
	inString               // inside OSC, DCS, APC, PM or SOS
	stringEsc              // after ESC in a string
	inPaste                // between the marks of a bracketed paste
	skipping               // inside a mouse report or a console function key
)

const (
	pasteEnd = "\x1b[201~"
	// maxPaste is what one paste may hold; more is dropped. In bytes.
	maxPaste = 16 << 20
	// maxSequence is what is kept of a control sequence; longer ones mean nothing
	// to us. In bytes.
	maxSequence = 64
)

// decoder turns the bytes of a terminal into keys. Replies of the terminal,
// unknown sequences and mouse reports vanish. How the bytes are divided does not
// matter; only wait and expire know about time.
type decoder struct {
	state decoderState
	seq   []byte // the sequence or rune under way
	paste []byte
	skip  int  // bytes that skipping drops
	alt   bool // ESC came before the rune under way
}

// feed takes bytes and returns the keys that they complete.
func (d *decoder) feed(p []byte) []key {
	var keys []key
	for i := 0; i < len(p); i++ {
		if d.state == inPaste {
			if n := bytes.IndexByte(p[i:], '~'); n > 0 {
				d.addPaste(p[i : i+n])
				i += n
			} else if n < 0 {
				d.addPaste(p[i:])
				break
			}
		}
		keys = d.step(p[i], keys)
	}
	return keys
}

// step takes one byte.
func (d *decoder) step(b byte, keys []key) []key {
	switch d.state {
	case ground:
		return d.plain(b, keys)
	case inRune:
		return d.addRune(b, keys)
	case afterEsc:
		return d.escaped(b, keys)
	case inCSI:
		return d.addCSI(b, keys)
	case inSS3:
		return d.ss3(b, keys)
	case inString:
		switch b {
		case 0x1b:
			d.state = stringEsc
		case 0x07, 0x18, 0x1a:
			d.state = ground
		}
	case stringEsc:
		if b == '\\' {
			d.state = ground
			return keys
		}
		d.state = afterEsc
		return d.escaped(b, keys)
	case inPaste:
		return d.pasted(b, keys)
	case skipping:
		if d.skip--; d.skip <= 0 {
			d.state = ground
		}
	}
	return keys
}

// plain takes a byte outside any sequence.
func (d *decoder) plain(b byte, keys []key) []key {
	switch {
	case b == 0x1b:
		d.state = afterEsc
		return keys
	case b >= utf8.RuneSelf:
		d.state = inRune
		d.seq = append(d.seq[:0], b)
		return keys
	}
	alt := d.alt
	d.alt = false
	if b >= 0x20 && b != 0x7f {
		return append(keys, key{name: keyRune, r: rune(b), alt: alt})
	}
	return append(keys, control(b, alt))
}

// control is the key of a control byte.
func control(b byte, alt bool) key {
	switch b {
	case '\r', '\n':
		if alt {
			return key{name: keyNewline}
		}
		return key{name: keyEnter}
	case '\t':
		return key{name: keyTab, alt: alt}
	case 0x08, 0x7f:
		return key{name: keyBackspace, alt: alt}
	}
	return key{name: keyCtrl, r: rune(b|0x40) | 0x20}
}

// addRune collects a UTF-8 sequence. Broken bytes become U+FFFD; C1 controls vanish.
func (d *decoder) addRune(b byte, keys []key) []key {
	d.seq = append(d.seq, b)
	if !utf8.FullRune(d.seq) {
		return keys
	}
	r, n := utf8.DecodeRune(d.seq)
	alt := d.alt
	d.state, d.alt = ground, false
	if r >= 0xa0 {
		keys = append(keys, key{name: keyRune, r: r, alt: alt})
	}
	rest := bytes.Clone(d.seq[n:])
	for _, b := range rest {
		keys = d.step(b, keys)
	}
	return keys
}

// escaped takes the byte after ESC.
func (d *decoder) escaped(b byte, keys []key) []key {
	d.seq = d.seq[:0]
	switch b {
	case 0x1b:
		return append(keys, key{name: keyEsc})
	case '[':
		d.state = inCSI
		return keys
	case 'O':
		d.state = inSS3
		return keys
	case ']', 'P', 'X', '^', '_':
		d.state = inString
		return keys
	}
	d.state, d.alt = ground, true
	return d.plain(b, keys)
}

// addCSI collects a control sequence up to its final byte.
func (d *decoder) addCSI(b byte, keys []key) []key {
	switch {
	case b >= 0x20 && b < 0x40:
		if len(d.seq) < maxSequence {
			d.seq = append(d.seq, b)
		}
		return keys
	case b < 0x20 || b >= 0x7f:
		d.state = ground
		return d.plain(b, keys)
	}
	d.state = ground
	params := string(d.seq)
	switch {
	case b == '[' && params == "": // a function key of the Linux console
		d.state, d.skip = skipping, 1
		return keys
	case b == 'M' && params == "": // an old mouse report
		d.state, d.skip = skipping, 3
		return keys
	case b == '~' && params == "200":
		d.state, d.paste = inPaste, nil
		return keys
	}
	if k, ok := sequenceKey(b, params); ok {
		keys = append(keys, k)
	}
	return keys
}

func (d *decoder) ss3(b byte, keys []key) []key {
	d.state = ground
	if b < 0x20 || b >= 0x7f {
		return d.plain(b, keys)
	}
	if b == 'M' {
		return append(keys, key{name: keyEnter})
	}
	if k, ok := sequenceKey(b, ""); ok && b != '~' {
		keys = append(keys, k)
	}
	return keys
}

// sequenceKey is the key of a control sequence that we know.
func sequenceKey(final byte, params string) (key, bool) {
	k, ok := cursorKey(final, params)
	if !ok {
		return key{}, false
	}
	if _, mod, found := strings.Cut(params, ";"); found {
		switch mod {
		case "3", "5", "7": // Alt, Ctrl, both
			k.alt = k.name == keyLeft || k.name == keyRight
		case "1", "2", "4", "6", "8": // none, or with Shift
		default: // key releases and whatever comes next
			return key{}, false
		}
	}
	return k, true
}

func cursorKey(final byte, params string) (key, bool) {
	first, _, _ := strings.Cut(params, ";")
	if final != '~' && first != "" && first != "1" {
		return key{}, false
	}
	switch final {
	case 'A':
		return key{name: keyUp}, true
	case 'B':
		return key{name: keyDown}, true
	case 'C':
		return key{name: keyRight}, true
	case 'D':
		return key{name: keyLeft}, true
	case 'H':
		return key{name: keyHome}, true
	case 'F':
		return key{name: keyEnd}, true
	case '~':
		return tildeKey(first)
	}
	return key{}, false
}

func tildeKey(number string) (key, bool) {
	switch number {
	case "1", "7":
		return key{name: keyHome}, true
	case "4", "8":
		return key{name: keyEnd}, true
	case "3":
		return key{name: keyDelete}, true
	case "5":
		return key{name: keyPageUp}, true
	case "6":
		return key{name: keyPageDown}, true
	}
	return key{}, false
}

func (d *decoder) addPaste(p []byte) {
	d.paste = append(d.paste, p...)
	if over := len(d.paste) - maxPaste - 2*len(pasteEnd); over > 0 {
		keep := d.paste[len(d.paste)-len(pasteEnd):]
		d.paste = append(d.paste[:maxPaste], keep...)
	}
}

func (d *decoder) pasted(b byte, keys []key) []key {
	d.addPaste([]byte{b})
	if !bytes.HasSuffix(d.paste, []byte(pasteEnd)) {
		return keys
	}
	d.paste = d.paste[:len(d.paste)-len(pasteEnd)]
	return append(keys, d.endPaste()...)
}

// endPaste ends a paste, complete or not.
func (d *decoder) endPaste() []key {
	if d.state != inPaste {
		return nil
	}
	text := pastedText(d.paste)
	d.state, d.paste = ground, nil
	return []key{{name: keyPaste, text: text}}
}

// pastedText makes line ends of every kind '\n' and broken UTF-8 visible.
func pastedText(p []byte) string {
	text := strings.ToValidUTF8(string(p), "\uFFFD")
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
}

// waitFor says what the decoder needs to decide what it holds.
type waitFor uint8

const (
	waitNothing  waitFor = iota
	waitEsc              // an ESC that may be the key
	waitSequence         // a sequence that may never end
)

func (d *decoder) wait() waitFor {
	switch d.state {
	case afterEsc:
		return waitEsc
	case inCSI, inSS3, inString, stringEsc, skipping:
		return waitSequence
	}
	return waitNothing
}

// expire decides what the decoder holds, since nothing followed in time: a lone ESC
// is the key, a sequence without an end is nothing.
func (d *decoder) expire() []key {
	switch d.wait() {
	case waitEsc:
		d.state = ground
		return []key{{name: keyEsc}}
	case waitSequence:
		d.state = ground
	}
	return nil
}
