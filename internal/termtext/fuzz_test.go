package termtext

import (
	"strings"
	"testing"
)

// FuzzSafe holds: nothing unsafe is left, safe text stays as it is, and any
// division into chunks gives the same text.
func FuzzSafe(f *testing.F) {
	for _, c := range safeCases {
		f.Add(c.in, uint8(1))
		f.Add(c.in, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, step uint8) {
		safe := Safe(s)
		if bad, ok := firstUnsafe(safe, false); !ok {
			t.Fatalf("Safe(%q) leaves %U", s, bad)
		}
		if bad, ok := firstUnsafe(Line(s), true); !ok {
			t.Fatalf("Line(%q) leaves %U", s, bad)
		}
		if again := Safe(safe); again != safe {
			t.Fatalf("Safe(%q) changes to %q", safe, again)
		}
		if (HiddenIn(s) == nil) != (safe == strings.ReplaceAll(s, "\r\n", "\n")) {
			t.Fatalf("HiddenIn(%q) = %v, but Safe gives %q", s, HiddenIn(s), safe)
		}
		var stream Stream
		var out strings.Builder
		n := int(step%7) + 1
		for rest := s; rest != ""; {
			k := min(n, len(rest))
			out.WriteString(stream.Write(rest[:k]))
			rest = rest[k:]
		}
		out.WriteString(stream.Close())
		if out.String() != safe {
			t.Fatalf("chunks of %d: %q, want %q", n, out.String(), safe)
		}
	})
}

// FuzzWrap holds: the rows together are the text, no row of several clusters is
// wider than asked, Cut keeps within its width, and MarkBlanks keeps all that is
// not blank.
func FuzzWrap(f *testing.F) {
	for _, c := range safeCases {
		f.Add(c.in, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, w uint8) {
		width := int(w%40) + 1
		rows := Wrap(s, width)
		if got, want := strings.Join(rows, ""), strings.ReplaceAll(s, "\n", ""); blankless(got) != blankless(want) {
			t.Fatalf("Wrap(%q, %d) holds %q", s, width, got)
		}
		for _, row := range Wrap(Safe(s), width) {
			if got := Width(row); got > width && clusterLen(row) < len(row) {
				t.Fatalf("Wrap(%q, %d): row %q has %d cells", s, width, row, got)
			}
		}
		if got := Width(Cut(Line(s), width)); got > width {
			t.Fatalf("Cut(%q, %d) has %d cells", s, width, got)
		}
		if strings.ContainsAny(s, "·×⏎0123456789") {
			return
		}
		if got := strings.TrimFunc(MarkBlanks(s), isBlank); blankless(got) != blankless(s) {
			t.Fatalf("MarkBlanks(%q) = %q", s, got)
		}
	})
}

// blankless drops blanks, line ends and the marks that stand for them.
func blankless(s string) string {
	return strings.Map(func(r rune) rune {
		if isBlank(r) || strings.ContainsRune("\n·×⏎0123456789", r) {
			return -1
		}
		return r
	}, s)
}

func BenchmarkSafe(b *testing.B) {
	line := "func (c *cleaner) run(dst []byte, s string, final bool) (out []byte, rest string) {\n"
	for _, c := range []struct{ name, text string }{
		{"ascii", strings.Repeat(line, 200)},
		{"german", strings.Repeat("Die Größe der Fläche überrascht. ", 500)},
		{"chinese", strings.Repeat("终端输出的每个字符都要检查。", 500)},
		{"escapes", strings.Repeat("\x1b[31mred\x1b[0m ", 1000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				Safe(c.text)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	text := strings.Repeat("a word of the model ", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s Stream
		for i := 0; i < len(text); i += 5 {
			s.Write(text[i : i+5])
		}
		s.Close()
	}
}

func BenchmarkWrap(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"ascii", strings.Repeat("x", 100_000)},
		{"chinese", strings.Repeat("终端输出", 10_000)},
		{"tabs", strings.Repeat("\tx", 50_000)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				Wrap(c.text, 80)
			}
		})
	}
}
