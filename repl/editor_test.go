package repl

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

func newTestEditor(t testing.TB) *editor {
	t.Helper()
	e, err := newEditor()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.close)
	return e
}

// press feeds bytes through the decoder, as the terminal would send them.
func press(e *editor, s string) {
	var d decoder
	for _, k := range append(d.feed([]byte(s)), d.expire()...) {
		e.edit(k)
	}
}

func TestEditor(t *testing.T) {
	for _, test := range []struct{ name, keys, text, left string }{
		{"plain", "abc", "abc", "abc"},
		{"insert", "ac\x1b[Db", "abc", "ab"},
		{"home and end", "b\x1b[1~a\x1b[4~c", "abc", "abc"},
		{"other home and end", "b\x1bOHa\x1b[Fc", "abc", "abc"},
		{"delete at the end", "ab\x1b[3~", "ab", "ab"},
		{"delete when empty", "\x1b[3~", "", ""},
		{"backspace when empty", "\x7f\x08", "", ""},
		{"backspace takes a letter with its mark", "xe\u0301\x7f", "x", "x"},
		{"backspace takes a whole family", "x👨‍👩‍👧\x7f", "x", "x"},
		{"left goes over a flag", "a🇩🇪b\x02\x02-", "a-🇩🇪b", "a-"},
		{"two flags", "🇩🇪🇫🇷\x02-", "🇩🇪-🇫🇷", "🇩🇪-"},
		{"keycap", "1\ufe0f\u20e3\x7f", "", ""},
		{"kill and yank", "one two\x17three \x19", "one three two", "one three two"},
		{"kill a word in another script", "привет мир\x17", "привет ", "привет "},
		{"alt-backspace stops at a sign", "a.größe\x1b\x7f", "a.", "a."},
		{"alt-b and alt-d", "one größe two\x1bb\x1bb\x1bd", "one  two", "one "},
		{"alt-f", "größe two\x01\x1bf!", "größe! two", "größe!"},
		{"ctrl-arrows", "one two\x1b[1;5D-\x1b[1;5C+", "one -two+", "one -two+"},
		{"kill to the end", "one two\x1bb\x0b", "one ", "one "},
		{"kill to the start", "one two\x15x", "x", "x"},
		{"transpose", "ab\x14", "ba", "ba"},
		{"transpose of one letter", "a\x14b", "ab", "ab"},
		{"new line", "a\x1b\rb", "a\nb", "a\nb"},
		{"paste", "x\x1b[200~a\r\nb\rc\x1b[201~y", "xa\nb\ncy", "xa\nb\ncy"},
		{"private runes survive", "\U00100000\U0010fffda", "\U00100000\U0010fffda", "\U00100000\U0010fffda"},
		{"broken UTF-8", "a\xffb\xc3(c", "a\ufffdb\ufffd(c", "a\ufffdb\ufffd(c"},
		{"C1 controls vanish", "a\u009bb", "ab", "ab"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := newTestEditor(t)
			press(e, test.keys)
			if got := e.text(); got != test.text {
				t.Errorf("text %q, want %q", got, test.text)
			}
			if got := e.cells.text(e.line[:e.pos]); got != test.left {
				t.Errorf("before the cursor %q, want %q", got, test.left)
			}
			if got := e.take(); got != test.text {
				t.Errorf("take %q, want %q", got, test.text)
			}
			if !e.empty() || e.pos != 0 {
				t.Errorf("not empty after take: %q", e.text())
			}
		})
	}
}

func TestEditorLongPaste(t *testing.T) {
	e := newTestEditor(t)
	long := strings.Repeat("some words\n", 20000)
	press(e, "see \x1b[200~"+long+"\x1b[201~ please")
	if n := len(e.line); n != len("see  please")+1 {
		t.Errorf("the draft has %d runes", n)
	}
	shown, _ := e.show(e.line[4])
	if shown != "[pasted 20000 lines]" {
		t.Errorf("shown as %q", shown)
	}
	if got := e.take(); got != "see "+long+" please" {
		t.Errorf("take gave %d bytes", len(got))
	}
	press(e, "\x19x") // nothing is left of the paste
	if got := e.take(); got != "x" {
		t.Errorf("after it %q", got)
	}
}

func TestEditorUpDown(t *testing.T) {
	e := newTestEditor(t)
	press(e, "abc\x1b\rd\x1b\refgh")
	for i, step := range []struct {
		down bool
		ok   bool
		left string
	}{
		{false, true, "abc\nd"}, {false, true, "a"}, {false, false, "a"},
		{true, true, "abc\nd"}, {true, true, "abc\nd\ne"}, {true, false, "abc\nd\ne"},
	} {
		if ok := e.upDown(step.down); ok != step.ok || e.cells.text(e.line[:e.pos]) != step.left {
			t.Errorf("step %d: %v, before the cursor %q; want %v, %q", i, ok, e.cells.text(e.line[:e.pos]), step.ok, step.left)
		}
	}
}

// FuzzEditor checks that no keys make readline or us panic, that the cursor stays
// inside the line, and that what take gives is what was shown.
func FuzzEditor(f *testing.F) {
	for _, seed := range []string{
		"abc\x1b[D\x1b[C\x01\x05\x0b\x19", "a\x14\x14b\x14", "\x12\x13\x10\x0e\x07\x03", "👨‍👩‍👧e\u0301\x7f\x7f",
		"\x1b[200~x\ny\x1b[201~\x17\x19\x19", "\x1b\r\x1b\r\x15\x1bb\x1bf\x1bd\x1b\x7f", "\xff\xfe\x00\x1c\x1f",
	} {
		f.Add(seed)
	}
	e := newTestEditor(f)
	f.Fuzz(func(t *testing.T, s string) {
		e.set(nil, 0)
		press(e, s)
		if e.pos < 0 || e.pos > len(e.line) {
			t.Fatalf("cursor %d of %d", e.pos, len(e.line))
		}
		text := e.text()
		for _, r := range e.line {
			e.show(r)
		}
		if got := e.take(); got != text {
			t.Fatalf("take %q, shown %q", got, text)
		}
	})
}

func TestEditorClose(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		e, err := newEditor()
		if err != nil {
			t.Fatal(err)
		}
		press(e, "a draft")
		e.close()
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}
