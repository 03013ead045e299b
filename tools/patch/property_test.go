package patch

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"zcoder/internal/diff"
)

// maker makes random files.
type maker struct {
	*rand.Rand
	unique  bool // no line occurs twice
	headers bool // some lines look like headers of a patch
	n       int
}

func (m *maker) line() string {
	words := []string{"", " ", "\t", "}", "foo()", "\tx = 1", "  y", "caf\xe9", "trailing  ", "a\rb", `\ back`, "@@ -1 +1 @@", "*** End Patch", "```", "&lt;", `\n`}
	if m.headers {
		words = append(words, "-- x", "++ y", "- ", "-- a/f")
	}
	word := words[m.IntN(len(words))]
	if m.unique {
		m.n++
		word = fmt.Sprintf("%s%d", word, m.n)
	}
	return word
}

func (m *maker) lines(most int) []string {
	out := make([]string, m.IntN(most))
	for i := range out {
		out[i] = m.line()
	}
	return out
}

// change removes, replaces and inserts some lines.
func (m *maker) change(lines []string) []string {
	var out []string
	for _, l := range lines {
		switch m.IntN(12) {
		case 0:
		case 1:
			out = append(out, m.line())
		case 2:
			out = append(out, m.line(), l)
		default:
			out = append(out, l)
		}
	}
	return append(out, m.lines(2)...)
}

// text joins lines with one kind of line end; sometimes the last one has none.
func (m *maker) text(lines []string, end string) []byte {
	text := strings.Join(lines, end)
	if len(lines) > 0 && m.IntN(3) > 0 || strings.HasSuffix(text, "\r") {
		text += end
	}
	return []byte(text)
}

// patched applies the only section of a patch.
func patched(t *testing.T, content []byte, text string) ([]byte, error) {
	t.Helper()
	sections, err := parse(text)
	if err != nil {
		return nil, err
	}
	if len(sections) != 1 {
		t.Fatalf("%d sections in\n%s", len(sections), text)
	}
	return apply(content, sections[0].hunks, false)
}

// TestReproduces: the diff of two texts, applied to the first, gives the second,
// byte for byte.
func TestReproduces(t *testing.T) {
	for seed := range uint64(4000) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 1)), unique: seed%2 == 0, headers: true}
		end := []string{"\n", "\r\n"}[m.IntN(2)]
		lines := m.lines(40)
		a, b := m.text(lines, end), m.text(m.change(lines), end)
		if m.IntN(8) == 0 {
			a, b = append([]byte(bom), a...), append([]byte(bom), b...)
		}
		text := diff.Unified("a/f", "b/f", a, b, diff.Options{})
		if text == "" {
			continue
		}
		got, err := patched(t, a, text)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("seed %d: from\n%q\ngot\n%q\nwant\n%q\nerror %v\nby\n%s", seed, a, got, b, err, text)
		}
	}
}

var numbers = regexp.MustCompile(`(?m)^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@`)

// TestWrongNumbers: when each line occurs once, the numbers of hunk headers do not
// matter at all; otherwise they lead to the right bytes or to an error, unless they
// name another place that fits.
func TestWrongNumbers(t *testing.T) {
	for seed := range uint64(4000) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 2)), unique: true}
		lines := m.lines(40)
		a, b := m.text(lines, "\n"), m.text(m.change(lines), "\n")
		if len(a) == 0 || bytes.Equal(a, b) {
			continue
		}
		text := numbers.ReplaceAllStringFunc(diff.Unified("a/f", "b/f", a, b, diff.Options{}), func(string) string {
			if m.IntN(4) == 0 {
				return "@@"
			}
			return fmt.Sprintf("@@ -%d,%d +%d,%d @@", m.IntN(50), m.IntN(9), m.IntN(50), m.IntN(9))
		})
		got, err := patched(t, a, text)
		if err != nil || !bytes.Equal(got, b) {
			t.Fatalf("seed %d: from\n%q\ngot\n%q\nwant\n%q\nerror %v\nby\n%s", seed, a, got, b, err, text)
		}
	}
}

// TestOffsets: with repeated lines and all numbers off by the same amount, the
// result is right or the patch is ambiguous.
func TestOffsets(t *testing.T) {
	landed := 0
	for seed := range uint64(4000) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 3))}
		lines := m.lines(60)
		a, b := m.text(lines, "\n"), m.text(m.change(lines), "\n")
		if len(a) == 0 || bytes.Equal(a, b) {
			continue
		}
		text := numbers.ReplaceAllString(diff.Unified("a/f", "b/f", a, b, diff.Options{}), "@@ -1000,1 +1000,1 @@")
		got, err := patched(t, a, text)
		var wrong *problem
		switch {
		case err == nil && bytes.Equal(got, b):
			landed++
		case errors.As(err, &wrong) && (strings.Contains(wrong.text, "not clear") || strings.Contains(wrong.text, "only adds")):
		default:
			t.Fatalf("seed %d: from\n%q\ngot\n%q\nwant\n%q\nerror %v\nby\n%s", seed, a, got, b, err, text)
		}
	}
	if landed < 500 {
		t.Errorf("only %d patches landed", landed)
	}
}

// TestMixedLineEnds: in a file with mixed line ends only the changed lines change,
// and each keeps its line end.
func TestMixedLineEnds(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 4))
		var a, b, patch strings.Builder
		patch.WriteString("--- a/f\n+++ b/f\n@@\n")
		changed := false
		for i := range 1 + r.IntN(20) {
			end := []string{"\n", "\r\n"}[r.IntN(2)]
			fmt.Fprintf(&a, "line %d%s", i, end)
			switch r.IntN(4) {
			case 0:
				fmt.Fprintf(&b, "new %d%s", i, end)
				fmt.Fprintf(&patch, "-line %d\n+new %d\n", i, i)
				changed = true
			case 1:
				fmt.Fprintf(&patch, "-line %d\n", i)
				changed = true
			default:
				fmt.Fprintf(&b, "line %d%s", i, end)
				fmt.Fprintf(&patch, " line %d\n", i)
			}
		}
		if !changed {
			continue
		}
		got, err := patched(t, []byte(a.String()), patch.String())
		if err != nil || string(got) != b.String() && !adjacent(patch.String()) {
			t.Fatalf("seed %d: from\n%q\ngot\n%q\nwant\n%q\nerror %v\nby\n%s", seed, a.String(), got, b.String(), err, patch.String())
		}
	}
}

// adjacent reports a removal next to a replacement, which pair differently.
func adjacent(patch string) bool {
	return strings.Contains(patch, "\n-line") && regexp.MustCompile(`\n-[^\n]*\n-|\n\+[^\n]*\n-`).MatchString(patch)
}

// render writes sections as a patch that parses to the same.
func render(sections []section) string {
	var b strings.Builder
	for _, s := range sections {
		a, z := quoted("a/"+s.name), quoted("b/"+s.name)
		switch {
		case s.whole:
			fmt.Fprintf(&b, "*** Delete File: %s\n", quoted(s.name))
			continue
		case s.op == create && s.exec == execKept:
			fmt.Fprintf(&b, "*** Add File: %s\n", quoted(s.name))
			renderHunks(&b, s.hunks)
			continue
		case s.to != "":
			z = quoted("b/" + s.to)
		}
		fmt.Fprintf(&b, "diff --git %s %s\n", a, z)
		mode := "100644"
		if s.exec == execOn {
			mode = "100755"
		}
		switch {
		case s.op == create:
			fmt.Fprintf(&b, "new file mode %s\n", mode)
			a = devNull
		case s.exec != execKept:
			fmt.Fprintf(&b, "old mode 100644\nnew mode %s\n", mode)
		case s.op == remove:
			b.WriteString("deleted file mode 100644\n")
			z = devNull
		}
		if s.op == remove {
			z = devNull
			b.WriteString("deleted file mode 100644\n")
		}
		if s.to != "" {
			verb := "rename"
			if s.keep {
				verb = "copy"
			}
			fmt.Fprintf(&b, "%s from %s\n%s to %s\n", verb, quoted(s.name), verb, quoted(s.to))
		}
		if len(s.hunks) > 0 {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n", a, z)
		}
		renderHunks(&b, s.hunks)
	}
	return b.String()
}

func renderHunks(b *strings.Builder, hunks []hunk) {
	for _, h := range hunks {
		for _, head := range h.heads {
			fmt.Fprintf(b, "@@ %s\n", head)
		}
		switch {
		case h.old >= 0:
			fmt.Fprintf(b, "@@ -%d,%d +1,%d @@\n", h.start, h.old, h.new)
		case h.start > 0:
			fmt.Fprintf(b, "@@ -%d @@\n", h.start)
		case len(h.heads) == 0:
			b.WriteString("@@\n")
		}
		bare := false
		for i, l := range h.lines {
			if i < len(h.lines)-h.soft {
				b.WriteByte(l.mark)
			}
			b.WriteString(l.text)
			if l.cr {
				b.WriteByte('\r')
			}
			b.WriteByte('\n')
			if l.bare {
				b.WriteString("\\ No newline at end of file\n")
				bare = true
			}
		}
		if h.atEnd && !bare {
			b.WriteString("*** End of File\n")
		}
	}
}

func quoted(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\%03o`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// essence drops what only says where in the text something stood.
func essence(sections []section) []section {
	out := make([]section, len(sections))
	for i, s := range sections {
		s.line, s.other = 0, ""
		hunks := s.hunks
		s.hunks = nil
		for _, h := range hunks {
			h.line = 0
			if s.op == create {
				h.start, h.old, h.new, h.heads, h.atEnd = 0, -1, -1, nil, false
			}
			if len(h.lines) > 0 {
				s.hunks = append(s.hunks, h)
			}
		}
		out[i] = s
	}
	return out
}

// looksLikeHeader reports lines of hunks that only counts tell from headers.
func looksLikeHeader(sections []section) bool {
	for _, s := range sections {
		for _, h := range s.hunks {
			for _, l := range h.lines {
				if l.mark == '-' && strings.HasPrefix(l.text, "-- ") {
					return true
				}
			}
		}
	}
	return false
}

var seeds = []string{
	onF("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
	onF("@@ class A\n@@ def f\n a\n-b\n\\ No newline at end of file\n+B\n"),
	"diff --git a/f b/g\nsimilarity index 50%\nrename from f\nrename to g\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/g\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n",
	"diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n",
	"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n",
	"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file\n",
	"*** Begin Patch\r\n*** Add File: n\r\n+a\r\n\r\n+b\r\n*** Update File: f\r\n*** Move to: g\r\n@@ x\r\n a\r\n-b\r\n*** End of File\r\n*** Delete File: h\r\n*** End Patch\r",
	"```diff\n" + onF("@@\n-a\n+b\n\n") + "```\n",
	"apply_patch <<'EOF'\n*** Update File: l\n-a\n+b\nEOF\n",
	"--- l\n+++ l\n@@\n-a\n+b\n", "*** Add File: ../x\n+a\n", "*** Add File: up/x\n+a\n", `--- a/f\n+++ b/f\n`,
	"--- \n+++ \n@@\n+\n", "--- a/f\n+++ b/f\n@@ -1,3 +1@\n a\n\n-b+B\n c\n", "*** Update File: f\r\n@@x\r \n a\r\n-b\r\n",
	"diff --git \xfa/n b/n\nnew file mode 100755\n--- /dev/null\n+++ bEn\n@@ -0,0 +1 x+@@\n\n",
	"--- \"a/\\303\\244\"\n+++ \"b/\\303\\244\"\n@@ -1 +1 @@\n-a\n+b\n",
}

// FuzzParse holds that the parser never panics, that nothing it accepts is without
// an effect, and that a parsed patch written again parses the same.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sections, err := parse(text)
		if err != nil || looksLikeHeader(sections) {
			return
		}
		for _, s := range sections {
			if s.name == "" || s.op == update && len(s.hunks) == 0 && s.to == "" && s.exec == execKept {
				t.Fatalf("section without name or effect: %+v", s)
			}
		}
		again, err := parse(render(sections))
		if err != nil {
			t.Fatalf("%v\nof %+v\nwritten as\n%q", err, sections, render(sections))
		}
		if want, got := essence(sections), essence(again); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v\nwant\n%+v\nwritten as\n%q", got, want, render(sections))
		}
	})
}

// FuzzApply holds that applying never panics and that lines which no hunk removes
// stay, in order.
func FuzzApply(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte("a\nb\nc\n"), s)
		f.Add([]byte("\ufeffa\r\nb"), s)
	}
	f.Fuzz(func(t *testing.T, content []byte, text string) {
		sections, err := parse(text)
		if err != nil {
			return
		}
		for _, s := range sections {
			if s.op != update {
				continue
			}
			got, err := apply(content, s.hunks, false)
			if err != nil {
				continue
			}
			added, removed := 0, 0
			for _, h := range s.hunks {
				added, removed = added+h.count('+'), removed+h.count('-')
			}
			plus, minus := diff.Stat(content, got)
			// a newline that the last line gets or loses counts on both sides
			if plus > added+1 || minus > removed+1 {
				t.Fatalf("%d lines added and %d removed by a patch of +%d -%d\n%q\n%q", plus, minus, added, removed, content, got)
			}
		}
	})
}

// FuzzTool runs whole patches in a workspace with a link that leaves it: nothing
// outside changes, and success means that something inside did.
func FuzzTool(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := newBench(t, map[string]string{"f": "a\nb\n", "h": "x\ny\nx\n", "d/g": "g\n"})
		outside := filepath.Join(filepath.Dir(b.root), "outside")
		if err := os.WriteFile(outside, []byte("a\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for name, target := range map[string]string{"l": outside, "up": ".."} {
			if err := os.Symlink(target, filepath.Join(b.root, name)); err != nil {
				t.Fatal(err)
			}
		}
		before := fmt.Sprint(b.tree(), modes(t, b.root))
		action, err := b.plan(text)
		if after := fmt.Sprint(b.tree(), modes(t, b.root)); after != before {
			t.Fatalf("planning changed the files from\n%s\nto\n%s", before, after)
		}
		if err != nil {
			return
		}
		res := b.do(action)
		if after := fmt.Sprint(b.tree(), modes(t, b.root)); after == before || len(res.Changed) == 0 || action.Request().Text == "" {
			t.Fatalf("%s without a change: %+v", res.Status, res)
		}
		entries, err := os.ReadDir(filepath.Dir(b.root))
		content, _ := os.ReadFile(outside)
		if err != nil || len(entries) != 2 || string(content) != "a\n" {
			t.Fatalf("outside: %v %v %q", err, entries, content)
		}
	})
}

func modes(t *testing.T, root string) string {
	var b strings.Builder
	for _, name := range []string{"f", "h", "d/g"} {
		if info, err := os.Lstat(filepath.Join(root, name)); err == nil {
			fmt.Fprintln(&b, name, info.Mode())
		}
	}
	return b.String()
}

// TestBounded applies what is expensive for a plain search. Each took less than 1 s
// where it was written; the limit only catches quadratic time.
func TestBounded(t *testing.T) {
	same := strings.Repeat("x\n", 1<<20)
	deep := strings.Repeat(" x\n", 2000)
	tests := []struct{ name, content, hunk, want string }{
		{"equal lines, end differs", same, "@@\n" + deep + "-y\n+z\n", "too much alike"},
		{"equal lines, start differs", same, "@@\n-y\n+z\n" + deep, "not in the file"},
		{"long line found late", same + "long\n" + same, "@@\n" + deep + "-long\n+z\n x\n", ""},
		{"frequent long line below many", strings.Repeat("xx\n", 1<<20), "@@\n" + deep + "-xx\n+z\n", "too much alike"},
		{"one line of 20 MB", strings.Repeat("x", 20<<20), "@@\n-y\n+z\n", "No line"},
		{"one line of 20 MB without an end", strings.Repeat("xy", 10<<20), "@@\n-yx\n+z\n", "No line"},
		{"many heads", same, "@@ x\n@@ x\n@@ x\n-y\n+z\n", "not in the file"},
		{"empty lines", strings.Repeat("\n", 1<<20), "@@\n \n-\n+z\n \n", "lines 1, 2, 3"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sections, err := parse(onF(tt.hunk))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = apply([]byte(tt.content), sections[0].hunks, false)
			took := time.Since(start)
			if took > time.Minute {
				t.Errorf("took %s", took)
			}
			t.Logf("took %s", took.Round(time.Millisecond))
			if fmt.Sprint(err) == "<nil>" != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || len(err.Error()) > 4000) {
				t.Errorf("error %.400s, want %q", fmt.Sprint(err), tt.want)
			}
		})
	}
}
