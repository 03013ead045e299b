package repl

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func runes(s string) []key {
	var keys []key
	for _, r := range s {
		keys = append(keys, key{name: keyRune, r: r})
	}
	return keys
}

func TestDecoder(t *testing.T) {
	named := func(n keyName) []key { return []key{{name: n}} }
	for _, test := range []struct {
		name, in string
		want     []key
	}{
		{"text", "aß漢", runes("aß漢")},
		{"Return and Ctrl-J", "\r\n", []key{{name: keyEnter}, {name: keyEnter}}},
		{"Tab, both backspaces", "\t\x7f\x08", []key{{name: keyTab}, {name: keyBackspace}, {name: keyBackspace}}},
		{"Ctrl-C", "\x03", []key{{name: keyCtrl, r: 'c'}}},
		{"arrows", "\x1b[A\x1bOB\x1b[C\x1bOD", []key{{name: keyUp}, {name: keyDown}, {name: keyRight}, {name: keyLeft}}},
		{"Home of three kinds", "\x1b[H\x1b[1~\x1b[7~", []key{{name: keyHome}, {name: keyHome}, {name: keyHome}}},
		{"End of three kinds", "\x1bOF\x1b[4~\x1b[8~", []key{{name: keyEnd}, {name: keyEnd}, {name: keyEnd}}},
		{"Ctrl-Left, Alt-Right", "\x1b[1;5D\x1b[1;3C", []key{{name: keyLeft, alt: true}, {name: keyRight, alt: true}}},
		{"Page keys, Delete", "\x1b[5~\x1b[6~\x1b[3~", []key{{name: keyPageUp}, {name: keyPageDown}, {name: keyDelete}}},
		{"Alt-Return", "\x1b\r", named(keyNewline)},
		{"Alt-b, Alt-é", "\x1bb\x1bé", []key{{name: keyRune, r: 'b', alt: true}, {name: keyRune, r: 'é', alt: true}}},
		{"Esc", "\x1b", named(keyEsc)},
		{"Esc and an arrow", "\x1b\x1b[A", []key{{name: keyEsc}, {name: keyUp}}},
		{"paste", "\x1b[200~a\r\nb\x1b[Ac\x03\x1b[201~d", []key{{name: keyPaste, text: "a\nb\x1b[Ac\x03"}, {name: keyRune, r: 'd'}}},
		{"paste of broken UTF-8", "\x1b[200~\xff\x1b[201~", []key{{name: keyPaste, text: "\uFFFD"}}},
		{"paste end alone", "\x1b[201~", nil},
		{"kitty key", "\x1b[105;1:3u", nil},
		{"modifyOtherKeys", "\x1b[27;2;13~", nil},
		{"function keys", "\x1b[25~\x1bOP\x1b[[Ax", runes("x")},
		{"key release of an arrow", "\x1b[1;1:3A", nil},
		{"cursor report", "\x1b[12;40R", nil},
		{"colour report, BEL and ST", "\x1b]11;rgb:ffff/0000/aaaa\x07\x1b]11;rgb:y/y/y\x1b\\x", runes("x")},
		{"DCS, APC", "\x1bP>|xterm y\x1b\\\x1b_Gy\x1b\\x", runes("x")},
		{"device attributes", "\x1b[?62;4c\x1b[>1;2;3c", nil},
		{"mouse", "\x1b[<0;1;1M\x1b[M yy", nil},
		{"focus", "\x1b[I\x1b[O", nil},
		{"control in a sequence", "\x1b[12\rx", append(named(keyEnter), runes("x")...)},
		{"broken rune in a sequence", "\x1b[1\xffx", runes("\uFFFDx")},
		{"an overlong sequence", "\x1b[" + strings.Repeat("1;", 500) + "Rx", runes("x")},
	} {
		t.Run(test.name, func(t *testing.T) {
			var d decoder
			got := d.feed([]byte(test.in))
			got = append(got, d.expire()...)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// FuzzDecoder checks that no bytes make the decoder panic, that their division does
// not matter, and that no key is a control byte in disguise.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("a\x1b[200~b\r\n\x1b[201~c\x1b[1;5D\x1b]11;x\x07\xc3\xa9\xff"), uint8(1))
	f.Add([]byte("\x1b[105;1:3u\x1b[27;2;13~\x1b[25~\x1b"), uint8(3))
	f.Add([]byte("\x1b[[A\x1b[M   \x1bOP\x1bPx\x1b\\"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		var whole, parts decoder
		want := whole.feed(in)
		var got []key
		for rest := in; len(rest) > 0; {
			n := min(int(step%7)+1, len(rest))
			got = append(got, parts.feed(rest[:n])...)
			rest = rest[n:]
		}
		got, want = append(got, parts.expire()...), append(want, whole.expire()...)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("divided %+v\nwhole %+v", got, want)
		}
		for _, k := range got {
			if k.name == keyRune && (k.r < 0x20 || k.r >= 0x7f && k.r < 0xa0) {
				t.Fatalf("control %#x as a rune", k.r)
			}
		}
	})
}

// FuzzPaste checks that nothing in a paste is a key: all of it is one text.
func FuzzPaste(f *testing.F) {
	f.Add("/quit\n!id\r\n\x03\x04\x1b[A", "x")
	f.Fuzz(func(t *testing.T, text, after string) {
		if strings.Contains(text+pasteEnd[:len(pasteEnd)-1], pasteEnd) || strings.Contains(text, pasteEnd) {
			return
		}
		var d, alone decoder
		got := d.feed([]byte("\x1b[200~" + text + pasteEnd + after))
		if len(got) == 0 || got[0].name != keyPaste || got[0].text != pastedText([]byte(text)) {
			t.Fatalf("got %+v", got)
		}
		if want := alone.feed([]byte(after)); len(got)-1 != len(want) || len(want) > 0 && !reflect.DeepEqual(got[1:], want) {
			t.Fatalf("after it %+v, want %+v", got[1:], want)
		}
	})
}

func TestBurst(t *testing.T) {
	const soon, later = 10 * time.Millisecond, time.Second
	for _, test := range []struct {
		name   string
		first  string // taken before
		gap    time.Duration
		second string
		want   string // keys in short
	}{
		{"typed line", "", 0, "abc\r", "a b c Enter"},
		{"Return twice", "", 0, "\r\r", "Enter Enter"},
		{"two lines", "", 0, "ab\rc\r", `"ab\nc\n"`},
		{"two lines with keys in them", "", 0, "a\r\x03\x1b[A\tb", `"a\n\tb"`},
		{"rest of a paste", "ab\rc\r", soon, "de\r", `"de\n"`},
		{"its last line end", "ab\rc", soon, "\r", `"\n"`},
		{"Return later", "ab\rc", later, "\r", "Enter"},
		{"Return soon after a marked paste", "\x1b[200~x\x1b[201~", soon, "\r", "doubtful"},
		{"Ctrl-C soon after a paste", "\x1b[200~x\x1b[201~", soon, "\x03", ""},
		{"Ctrl-C later", "\x1b[200~x\x1b[201~", later, "\x03", "Ctrl-c"},
		{"paste and Return", "", 0, "\x1b[200~x\x1b[201~\r", `"x" doubtful`},
		{"paste that ends itself", "", 0, "\x1b[200~x\x1b[201~\x15!id\r!x\r", `"x" ! i d Newline ! x Newline`},
		{"keys before a paste", "", 0, "\x03\x1b[200~x\x1b[201~", `Ctrl-c "x"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &console{}
			var d decoder
			if test.first != "" {
				c.burst(d.feed([]byte(test.first)), start)
			}
			if got := brief(c.burst(d.feed([]byte(test.second)), start.Add(test.gap))); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// brief names keys.
func brief(keys []key) string {
	var names []string
	for _, k := range keys {
		switch {
		case k.name == keyEnter && k.alt:
			names = append(names, "doubtful")
		case k.name == keyEnter:
			names = append(names, "Enter")
		case k.name == keyNewline:
			names = append(names, "Newline")
		case k.name == keyCtrl:
			names = append(names, "Ctrl-"+string(k.r))
		case k.name == keyPaste:
			names = append(names, `"`+strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(k.text)+`"`)
		case k.name == keyRune:
			names = append(names, string(k.r))
		default:
			names = append(names, "?")
		}
	}
	return strings.Join(names, " ")
}
