package search

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// wantLines finds matching lines the plain way.
func wantLines(re *regexp.Regexp, text string) []string {
	var out []string
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if l = strings.TrimSuffix(l, "\r"); text != "" && re.MatchString(l) {
			out = append(out, l)
		}
	}
	return out
}

func foundLines(q *query, text string) []string {
	f, buf := newFinder(q), []byte(text)
	var out []string
	f.begin(buf)
	for from := 0; ; {
		l, ok := f.next(buf, from)
		if !ok {
			return out
		}
		out = append(out, string(buf[l.start:l.end]))
		from = l.next
	}
}

func TestFinder(t *testing.T) {
	text := "func main() {\n\tfoo := bar\r\n\nérror Error ERROR\nx.y(z)\nword\na b  c\nнет да\n\xff\xfe raw\nKelvin \u212a \u017ft\nlast"
	for _, pattern := range []string{
		`main`, `foo|word`, `^func`, `\bb\b`, `\Bo\B`, `^$`, `bar$`, `(?i)ERROR`, `(?i)error|WORD`, `x\.y\(`, `^.{4}$`, `[^a-z]$`, `.`, `x*`, `\w+\s+\w+\s+`,
		`é`, `[é]rr`, `(?i)НЕТ`, `\p{Cyrillic}+ \p{Cyrillic}`, `^[^a]* raw`, `(?i)k`, `(?i)st`, `last$`, `^last`, `\S$`, `(a|b).*c`, `e(r)+or`, `\d`, `^\t`, `[\x80-\x{10ffff}]`,
		`(?s)a.b`, `^a|t$`, `\Afunc`, `d\z`, `o{2}`, `(?:ro){0,3}r`, `func|word|last`, `main\(|Error`, "last\nfoo :=\nraw", `^.* $`,
	} {
		t.Run(pattern, func(t *testing.T) {
			q, err := parseQuery(pattern, false)
			must(t, err)
			if got, want := foundLines(q, text), wantLines(q.re, text); !slices.Equal(got, want) {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func TestFinderWithoutAutomaton(t *testing.T) {
	q, err := parseQuery(`a.{990}z`, false)
	must(t, err)
	if q.program != nil {
		t.Fatal("the program is not refused for its size")
	}
	text := "a\nxa" + strings.Repeat("b", 990) + "z\n"
	if got := foundLines(q, text); len(got) != 1 || len(got[0]) != 993 {
		t.Errorf("found %d lines", len(got))
	}
}

func TestWornAutomaton(t *testing.T) {
	q, err := parseQuery(`a[ab]{20}c$`, false)
	must(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	want := 0
	for range 25000 {
		line := make([]byte, 40)
		for i := range line {
			line[i] = "ab"[r.IntN(2)]
		}
		line[39] = 'c'
		if line[18] == 'a' {
			want++
		}
		text.Write(append(line, '\n'))
	}
	f, buf, got := newFinder(q), []byte(text.String()), 0
	f.begin(buf)
	for l, ok := f.next(buf, 0); ok; l, ok = f.next(buf, l.next) {
		got++
	}
	if got != want || !f.auto.worn() {
		t.Errorf("found %d lines, want %d; worn: %v", got, want, f.auto.worn())
	}
}

func TestNeedle(t *testing.T) {
	n := newNeedle("timeout_x")
	text := []byte(strings.Repeat("xxxxxxxxxx_x timeout ", 300) + "timeout_x" + strings.Repeat("x", 50))
	if got, want := n.index(text, 0), bytes.Index(text, n.text); got != want {
		t.Errorf("index = %d, want %d", got, want)
	}
	if got := n.index(text, len(text)-5); got != -1 {
		t.Errorf("index near the end = %d, want -1", got)
	}
	for _, tt := range []struct {
		query string
		want  int
	}{{"e", 0}, {"timeout", 1}, {"timeout|retry_x", 2}, {"(foo_|bar_x)+baz", 1}, {"(?i)timeout", 0}, {"x|timeout", 0}, {"a(_limit_|_offset_)?b", 0}} {
		q, err := parseQuery(tt.query, false)
		must(t, err)
		if len(q.needles) != tt.want {
			t.Errorf("query %q has %d needles, want %d", tt.query, len(q.needles), tt.want)
		}
	}
}

// FuzzQuery checks that an accepted query finds exactly the lines that the regexp
// package finds, whatever the text.
func FuzzQuery(f *testing.F) {
	for _, s := range [][2]string{
		{"foo|ba[rz]", "a foo\nbaz\r\n\n"}, {`\bx\b$`, "x\nxx\n"}, {"(?i)straSSe", "straße\nSTRASSE"}, {"(", ""}, {"a\nb", "a\n\xff\xfeb\n"}, {`[^\x00]\B`, "\x00é"},
		{`^(é|[α-ω]+)*$`, "éαω\n\nx"}, {"(?s:.{2,4})z", "ab\rz\n\r\n"}, {"a++", "b"}, {`\pL\PL`, "ab c\x80"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if strings.ContainsRune(pattern, utf8.RuneError) {
			return // stands for invalid bytes in one engine and for itself in the other
		}
		q, err := parseQuery(pattern, false)
		if err != nil {
			return
		}
		if got, want := foundLines(q, text), wantLines(q.re, text); !slices.Equal(got, want) {
			t.Errorf("query %q in %q: found %q, want %q", pattern, text, got, want)
		}
	})
}
