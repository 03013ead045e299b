package termtext

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

var safeCases = []struct {
	name, in, want string
}{
	{"empty", "", ""},
	{"plain", "ls -l\n\tdone\n", "ls -l\n\tdone\n"},
	{"umlauts and CJK", "Größe 大小 かな 한글 привет", "Größe 大小 かな 한글 привет"},
	{"clipboard escape", "ok\x1b]52;c;cm0gLXJmIH4=\x07done", `ok\x1b]52;c;cm0gLXJmIH4=\x07done`},
	{"terminal query", "\x1b[6n", `\x1b[6n`},
	{"OSC without end", "a\x1b]0;title", `a\x1b]0;title`},
	{"C1 as a rune", "a\u009b31mb", `a\x9b31mb`},
	{"C1 as a byte", "a\x9b31mb", `a\x9b31mb`},
	{"backspace", "abc\b\b\bxyz", `abc\x08\x08\x08xyz`},
	{"delete and NUL", "a\x7fb\x00", `a\x7fb\x00`},
	{"CR overwrites", "safe\rrm -rf", `safe\rrm -rf`},
	{"CRLF", "a\r\nb\r\n", "a\nb\n"},
	{"two CR and LF", "a\r\r\n", "a\\r\n"},
	{"CR at the end", "a\r", `a\r`},
	{"bidi override", "rm -rf \u202e/pmt/ \u2066# cleanup\u2069", "rm -rf <U+202E>/pmt/ <U+2066># cleanup<U+2069>"},
	{"bidi marks", "a\u200e\u200f\u061cb", "a<U+200E><U+200F><U+061C>b"},
	{"zero width", "a\u200bb\u2060c\ufeffd\u200ce", "a<U+200B>b<U+2060>c<U+FEFF>d<U+200C>e"},
	{"soft hyphen", "a\u00adb", "a<U+00AD>b"},
	{"variation selectors", "a\ufe0fb\ufe0ec\U000e0100d\u180be", "a<U+FE0F>b<U+FE0E>c<U+E0100>d<U+180B>e"},
	{"tags", "x\U000e0041\U000e007f", "x<U+E0041><U+E007F>"},
	{"musical and shorthand format", "\U0001d173\U0001bca0", "<U+1D173><U+1BCA0>"},
	{"blanks that are letters", "a\u3164\u2800\u115f\u1160\uffa0b", "a<U+3164><U+2800><U+115F><U+1160><U+FFA0>b"},
	{"Mongolian separator", "a\u180eb", "a<U+180E>b"},
	{"line separators", "a\u2028b\u2029c", "a<U+2028>b<U+2029>c"},
	{"private use", "\ue000\U000f0000", "<U+E000><U+F0000>"},
	{"noncharacter and unassigned", "\ufffe\U0001ffff\u0378", "<U+FFFE><U+1FFFF><U+0378>"},
	{"invalid UTF-8", "a\xff\xc3(\xe2\x82", `a\xff\xc3(\xe2\x82`},
	{"surrogate", "\xed\xa0\x80", `\xed\xa0\x80`},
	{"overlong", "\xc0\xaf", `\xc0\xaf`},
	{"replacement character", "a\ufffdb", "a\ufffdb"},
	{"no-break space stays", "a\u00a0b\u3000c", "a\u00a0b\u3000c"},
	{"accent", "e\u0301", "e\u0301"},
	{"accent at the start", "\u0301e", "<U+0301>e"},
	{"accent after a line end", "a\n\u0301", "a\n<U+0301>"},
	{"accent after a marker", "\u202e\u0338", "<U+202E><U+0338>"},
	{"flood of accents", "e" + strings.Repeat("\u0301", 10), "e" + strings.Repeat("\u0301", 8) + "<U+0301><U+0301>"},
	{"Hangul parts", "\u1112\u1161\u11ab", "\u1112\u1161\u11ab"},
	{"Hangul vowel on a Latin letter", "a\u1161", "a<U+1161>"},
	{"flood of Hangul vowels", "\u1112" + strings.Repeat("\u1161", 9), "\u1112" + strings.Repeat("\u1161", 8) + "<U+1161>"},
	{"emoji", "😀🎉 ok", "😀🎉 ok"},
	{"emoji form", "❤\ufe0f ☠\ufe0f ©\ufe0f", "❤\ufe0f ☠\ufe0f ©\ufe0f"},
	{"emoji form twice", "❤\ufe0f\ufe0f", "❤\ufe0f<U+FE0F>"},
	{"keycap", "1\ufe0f\u20e3 #\ufe0f\u20e3", "1\ufe0f\u20e3 #\ufe0f\u20e3"},
	{"digit and selector only", "1\ufe0f2", "1<U+FE0F>2"},
	{"family", "👨\u200d👩\u200d👧\u200d👦", "👨\u200d👩\u200d👧\u200d👦"},
	{"kiss with tones", "👩🏻\u200d❤\ufe0f\u200d💋\u200d👩🏼", "👩🏻\u200d❤\ufe0f\u200d💋\u200d👩🏼"},
	{"rainbow flag", "🏳\ufe0f\u200d🌈", "🏳\ufe0f\u200d🌈"},
	{"joiner without a partner", "👩\u200dx", "👩<U+200D>x"},
	{"joiner between letters", "a\u200db", "a<U+200D>b"},
	{"joiner at the end", "👩\u200d", "👩<U+200D>"},
	{"joiner twice", "👩\u200d\u200d👩", "👩<U+200D><U+200D>👩"},
	{"too many joiners", "😀\u200d😀\u200d😀\u200d😀\u200d😀", "😀\u200d😀\u200d😀\u200d😀<U+200D>😀"},
	{"flag of letters", "🇩🇪", "🇩🇪"},
}

func TestSafe(t *testing.T) {
	for _, c := range safeCases {
		t.Run(c.name, func(t *testing.T) {
			if got := Safe(c.in); got != c.want {
				t.Errorf("Safe(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestStreamCutEverywhere(t *testing.T) {
	for _, c := range safeCases {
		t.Run(c.name, func(t *testing.T) {
			var bytewise Stream
			got := ""
			for i := range len(c.in) {
				got += bytewise.Write(c.in[i : i+1])
			}
			if got += bytewise.Close(); got != c.want {
				t.Errorf("byte by byte\n got %q\nwant %q", got, c.want)
			}
			for i := range len(c.in) {
				var s Stream
				if got := s.Write(c.in[:i]) + s.Write(c.in[i:]) + s.Close(); got != c.want {
					t.Errorf("cut at %d\n got %q\nwant %q", i, got, c.want)
				}
			}
		})
	}
}

func TestStreamHoldsLittle(t *testing.T) {
	var s Stream
	if got := s.Write("abc\r"); got != "abc" {
		t.Errorf("Write gave %q, want the text before the CR", got)
	}
	if got := s.Write("\n"); got != "\n" {
		t.Errorf("Write gave %q, want a line end", got)
	}
	if got := s.Write("👩\u200d\xf0\x9f"); got != "👩" {
		t.Errorf("Write gave %q, want what stands before the joiner", got)
	}
	if got := s.Close(); got != `<U+200D>\xf0\x9f` {
		t.Errorf("Close gave %q", got)
	}
	if got := s.Write("\u0301") + s.Close(); got != "<U+0301>" {
		t.Errorf("after Close the stream gave %q, want that of a new one", got)
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "main.go", "main.go"},
		{"line end", "b\nIGNORE", "b⏎IGNORE"},
		{"CRLF", "a\r\nb", "a⏎b"},
		{"tab", "a\tb", "a b"},
		{"escape", "a\x1b[31m.txt", `a\x1b[31m.txt`},
		{"accent after a line end", "a\n\u0301", "a⏎<U+0301>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Line(c.in); got != c.want {
				t.Errorf("Line(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// TestEveryRune feeds every code point, and all that can act on a neighbour also
// after a letter, after a sign and between two emoji. It looks at what is left by
// the categories of Unicode.
func TestEveryRune(t *testing.T) {
	for block := rune(0); block <= unicode.MaxRune; block += 256 {
		var in strings.Builder
		for r := block; r < block+256; r++ {
			in.WriteRune(r)
		}
		if bad, ok := firstUnsafe(Safe(in.String()), false); !ok {
			t.Fatalf("Safe leaves %U of the runes from %U", bad, block)
		}
		if bad, ok := firstUnsafe(Line(in.String()), true); !ok {
			t.Fatalf("Line leaves %U of the runes from %U", bad, block)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		ignorable := unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point)
		if !ignorable && (!unicode.IsGraphic(r) || unicode.Is(unicode.Lo, r)) {
			continue
		}
		in := "a" + string(r) + "☠" + string(r) + "😀" + string(r) + "😀"
		if bad, ok := firstUnsafe(Safe(in), false); !ok {
			t.Fatalf("Safe(%q) leaves %U", in, bad)
		}
	}
}

// firstUnsafe finds a rune that no text for a terminal may hold. It is written from
// the tables, not from the code under test.
func firstUnsafe(s string, oneLine bool) (rune, bool) {
	if !utf8.ValidString(s) {
		return utf8.RuneError, false
	}
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case r >= 0x20 && r < 0x7F:
		case (r == '\n' || r == '\t') && !oneLine:
		case r == 0x200D && i > 0 && i+1 < len(runes) && runes[i-1] >= 0xA9 && isPictograph(runes[i+1]):
		case r == 0xFE0F && i > 0 && isPictograph(runes[i-1]):
		case r == 0xFE0F && i+1 < len(runes) && runes[i+1] == 0x20E3 && strings.ContainsRune("0123456789#*", runes[i-1]):
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp),
			unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control, unicode.Noncharacter_Code_Point),
			strings.ContainsRune("\u2800\u3164\u115f\u1160\uffa0\u034f\ufffc\U0001d159", r),
			!unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs):
			return r, false
		}
	}
	return 0, true
}

func TestPictographsAreThoseOfTheSegmenter(t *testing.T) {
	for r := rune(0x80); r <= 0x1FFFF; r++ {
		if !unicode.IsGraphic(r) {
			continue
		}
		s := string(r) + "\u200d😀"
		g := graphemes.FromString(s)
		g.Next()
		if want := g.End() == len(s); isPictograph(r) != want {
			t.Errorf("isPictograph(%U) = %v, the segmenter says %v", r, !want, want)
		}
	}
}

func TestHiddenIn(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []Hidden
	}{
		{"none", "rm -rf build\r\n", nil},
		{"emoji are not hidden", "👩\u200d👧 ❤\ufe0f é", nil},
		{"bidi", "a\u202eb\u202ec\u2069", []Hidden{{"<U+202E> reorders text", 2}, {"<U+2069> reorders text", 1}}},
		{"escape", "\x1b[2J\x07", []Hidden{{`\x1b terminal escape`, 1}, {`\x07 control character`, 1}}},
		{"CR", "a\rb", []Hidden{{`\r carriage return`, 1}}},
		{"zero width", "a\u200b\u200b", []Hidden{{"<U+200B> invisible", 2}}},
		{"blank letter", "\u3164", []Hidden{{"<U+3164> draws a blank", 1}}},
		{"tags are one kind", "\U000e0041\U000e0042", []Hidden{{"invisible tag characters", 2}}},
		{"selectors are one kind", "a\ufe00\U000e0101", []Hidden{{"variation selectors", 2}}},
		{"private, unassigned, broken", "\ue001\u0378\xff", []Hidden{{"private use characters", 1}, {"unassigned code points", 1}, {"invalid UTF-8", 1}}},
		{"mark flood", "e" + strings.Repeat("\u0301", 20), []Hidden{{"combining marks without a base, or too many", 12}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := HiddenIn(c.in); !slices.Equal(got, c.want) {
				t.Errorf("HiddenIn(%q)\n got %v\nwant %v", c.in, got, c.want)
			}
		})
	}
}

func TestMarkBlanks(t *testing.T) {
	sp := func(n int) string { return strings.Repeat(" ", n) }
	for _, c := range []struct{ name, in, want string }{
		{"plain", "echo ok\n    indented\n", "echo ok\n    indented\n"},
		{"spaces hide the tail", "echo ok" + sp(4000) + "; rm -rf ~", "echo ok ·×4000 ; rm -rf ~"},
		{"em spaces", "echo ok" + strings.Repeat("\u2003", 4000) + ";rm", "echo ok ·×4000 ;rm"},
		{"ideographic", "a" + strings.Repeat("\u3000", 9) + "b", "a ·×9 b"},
		{"tabs and no-break spaces", "a\t\t\t\t\u00a0\u00a0\u00a0\u00a0 b", "a ·×9 b"},
		{"eight stay", "a" + sp(8) + "b", "a" + sp(8) + "b"},
		{"at the end", "a" + sp(9) + "\nb", "a ·×9\nb"},
		{"indentation of code", sp(40) + "x", sp(40) + "x"},
		{"indentation in a diff", "+" + sp(24) + "x", "+" + sp(24) + "x"},
		{"indentation that hides", "a\n" + sp(4000) + "; rm", "a\n ·×4000 ; rm"},
		{"a line of blanks", sp(12), " ·×12"},
		{"newlines hide the tail", "echo ok" + strings.Repeat("\n", 200) + "; rm", "echo ok\n⏎×200\n; rm"},
		{"lines of blanks", "a" + strings.Repeat("\n ", 200) + "\nb", "a\n⏎×201\nb"},
		{"three empty lines stay", "a\n\n\n\nb", "a\n\n\n\nb"},
		{"four are marked", "a\n\n\n\n\nb", "a\n⏎×5\nb"},
		{"at the start", "\n\n\n\nb", "⏎×4\nb"},
		{"newlines at the end", "a\n\n\n\n\n", "a\n⏎×5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := MarkBlanks(c.in); got != c.want {
				t.Errorf("MarkBlanks(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestWidth(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{
		{"", 0}, {"abc", 3}, {"大小", 4}, {"한글", 4}, {"、。", 4}, {"ＡＢ", 4}, {"é", 1}, {"e\u0301", 1},
		{"😀", 2}, {"👨\u200d👩\u200d👧", 2}, {"🇩🇪", 2}, {"👍🏽", 2}, {"±", 1}, {"…", 1}, {"\t", 8}, {"ab\tc", 9}, {"大\t", 8},
	} {
		if got := Width(c.in); got != c.want {
			t.Errorf("Width(%q) = %d, want %d", c.in, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		name, in string
		width    int
		want     []string
	}{
		{"empty", "", 10, []string{""}},
		{"fits", "abc", 3, []string{"abc"}},
		{"hard", "abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"line ends", "a\n\nb\n", 3, []string{"a", "", "b", ""}},
		{"wide", "大小ab", 3, []string{"大", "小a", "b"}},
		{"wider than the row", "大小", 1, []string{"大", "小"}},
		{"no width", "ab", 0, []string{"a", "b"}},
		{"cluster stays whole", "aé👨\u200d👩\u200d👧b", 3, []string{"aé", "👨\u200d👩\u200d👧b"}},
		{"accent stays", "abe\u0301c", 3, []string{"abe\u0301", "c"}},
		{"tab", "a\tb", 6, []string{"a     ", "  b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Wrap(c.in, c.width); !slices.Equal(got, c.want) {
				t.Errorf("Wrap(%q, %d)\n got %q\nwant %q", c.in, c.width, got, c.want)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"大小大", 5, "大小…"}, {"大小大", 4, "大…"}, {"大小", 1, "…"}, {"abc", 0, ""}, {"", 3, ""},
		{"👨\u200d👩\u200d👧abc", 4, "👨\u200d👩\u200d👧a…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	} {
		if got := Cut(c.in, c.width); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.in, c.width, got, c.want)
		}
	}
}
