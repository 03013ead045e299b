package diff

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUnified(t *testing.T) {
	tests := []struct {
		name, a, b, want string
		o                Options
	}{
		{name: "equal", a: "x\n", b: "x\n", want: ""},
		{name: "one line changed", a: "1\n2\n3\n4\n5\n6\n7\n8\n9\n", b: "1\n2\n3\n4\nfive\n6\n7\n8\n9\n",
			want: "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"},
		{name: "no context", a: "1\n2\n3\n", b: "1\n3\n", o: Options{Context: -1}, want: "@@ -2 +1,0 @@\n-2\n"},
		{name: "insert without context", a: "1\n3\n", b: "1\n2\n3\n", o: Options{Context: -1}, want: "@@ -1,0 +2 @@\n+2\n"},
		{name: "created", a: "", b: "a\nb\n", want: "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{name: "emptied", a: "a\n", b: "", want: "@@ -1 +0,0 @@\n-a\n"},
		{name: "newline at the end lost", a: "a\nb\n", b: "a\nb", want: "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		{name: "newline at the end gained", a: "a\nb", b: "a\nb\n", want: "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"},
		{name: "no newline on both sides", a: "a\nb", b: "c\nb", want: "@@ -1,2 +1,2 @@\n-a\n+c\n b\n\\ No newline at end of file\n"},
		{name: "crlf kept", a: "a\r\nb\r\n", b: "a\nb\r\n", want: "@@ -1,2 +1,2 @@\n-a\r\n+a\n b\r\n"},
		{name: "latin-1 is text", a: "caf\xe9\n", b: "cafe\n", want: "@@ -1 +1 @@\n-caf\xe9\n+cafe\n"},
		{name: "binary", a: "a\x00b", b: "a\x00", want: "binary files differ: 3 bytes, then 2 bytes\n"},
		{name: "two hunks", a: "1\n2\n3\n4\n5\n6\n", b: "one\n2\n3\n4\n5\nsix\n", o: Options{Context: 1},
			want: "@@ -1,2 +1,2 @@\n-1\n+one\n 2\n@@ -5,2 +5,2 @@\n 5\n-6\n+six\n"},
		{name: "hunks that touch are one", a: "1\n2\n3\n4\n", b: "one\n2\n3\nfour\n", o: Options{Context: 1},
			want: "@@ -1,4 +1,4 @@\n-1\n+one\n 2\n 3\n-4\n+four\n"},
		{name: "line bound", a: "1\n2\n3\n", b: "a\nb\nc\n", o: Options{MaxLines: 3},
			want: "@@ -1,3 +1,3 @@\n-1\n-2\n[diff cut here: 4 lines, 12 bytes not shown]\n"},
		{name: "byte bound inside a line", a: "", b: "xééééééééééé\n", o: Options{MaxBytes: 24},
			want: "@@ -0,0 +1 @@\n+xéé…\n[diff cut here: 1 lines, 19 bytes not shown]\n"},
		{name: "byte bound before a line", a: "", b: "xxxxxxxxx\n", o: Options{MaxBytes: 15},
			want: "@@ -0,0 +1 @@\n[diff cut here: 1 lines, 11 bytes not shown]\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := tt.want
			if want != "" {
				want = "--- a/f\n+++ b/f\n" + want
			}
			if got := Unified("a/f", "b/f", []byte(tt.a), []byte(tt.b), tt.o); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"", "/dev/null"}, {"a/x", "a/x"}, {"a/my file", "a/my file\t"},
		{"a/x\n+++ b/y", `"a/x\n+++ b/y"`}, {"a/\x1b[2J", `"a/\033[2J"`}, {`a/"q"\`, `"a/\"q\"\\"`}, {"a/é", "a/é"},
	} {
		if got := Name(tt.name); got != tt.want {
			t.Errorf("Name(%q) = %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestStat(t *testing.T) {
	for _, tt := range []struct {
		name, a, b     string
		added, removed int
	}{
		{"equal", "a\n", "a\n", 0, 0}, {"changed", "a\nb\nc\n", "a\nx\ny\nc\n", 2, 1}, {"created", "", "a\nb", 2, 0},
		{"binary", "\x00", "", 0, 0}, {"end of file", "a", "a\n", 1, 1},
	} {
		if added, removed := Stat([]byte(tt.a), []byte(tt.b)); added != tt.added || removed != tt.removed {
			t.Errorf("%s: got +%d -%d, want +%d -%d", tt.name, added, removed, tt.added, tt.removed)
		}
	}
}

// TestShortest holds the search to the length of a shortest edit, found by dynamic
// programming.
func TestShortest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		a, b := randomText(r, 12, 3), randomText(r, 12, 3)
		added, removed := Stat(a, b)
		if got, want := added+removed, editDistance(a, b); got != want {
			t.Fatalf("%q to %q: %d edits, want %d", a, b, got, want)
		}
	}
}

func editDistance(a, b []byte) int {
	x, y := bytes.SplitAfter(a, []byte("\n")), bytes.SplitAfter(b, []byte("\n"))
	x, y = dropEmpty(x), dropEmpty(y)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			above := row[j+1]
			row[j+1] = 1 + min(row[j], above)
			if bytes.Equal(x[i], y[j]) {
				row[j+1] = diagonal
			}
			diagonal = above
		}
	}
	return row[len(y)]
}

func dropEmpty(lines [][]byte) [][]byte {
	if n := len(lines); n > 0 && len(lines[n-1]) == 0 {
		return lines[:n-1]
	}
	return lines
}

func randomText(r *rand.Rand, lines, letters int) []byte {
	var b bytes.Buffer
	for range r.IntN(lines) {
		b.WriteByte(byte('a' + r.IntN(letters)))
		if r.IntN(8) == 0 {
			b.WriteByte('\r')
		}
		b.WriteByte('\n')
	}
	if r.IntN(3) == 0 {
		b.WriteString("end")
	}
	return b.Bytes()
}

func TestReproduces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		a, b := randomText(r, 40, 4), randomText(r, 40, 4)
		checkReproduces(t, a, b, r.IntN(5)-1)
	}
}

func FuzzUnified(f *testing.F) {
	f.Add([]byte("a\nb\n"), []byte("a\nc"), 3)
	f.Add([]byte("\n\n\n"), []byte("\n"), 0)
	f.Add([]byte("a\r\nb"), []byte("a\nb"), -1)
	f.Fuzz(func(t *testing.T, a, b []byte, context int) {
		if bytes.IndexByte(a, 0) >= 0 || bytes.IndexByte(b, 0) >= 0 {
			return
		}
		checkReproduces(t, a, b, context%10)
		bounded := Unified("a", "b", a, b, Options{MaxBytes: 40, MaxLines: 5})
		if len(bounded) > len("--- a\n+++ b\n")+140 {
			t.Errorf("%d bytes in a diff bounded to 40", len(bounded))
		}
	})
}

func checkReproduces(t *testing.T, a, b []byte, context int) {
	t.Helper()
	text := Unified("a", "b", a, b, Options{Context: context})
	got, err := applyTo(a, text)
	if err != nil || !bytes.Equal(got, b) {
		t.Fatalf("from %q: got %q (%v), want %q, by\n%s", a, got, err, b, text)
	}
	added, removed := Stat(a, b)
	body := strings.Join(strings.SplitAfter(text, "\n")[min(2, strings.Count(text, "\n")):], "")
	if p, m := strings.Count("\n"+body, "\n+"), strings.Count("\n"+body, "\n-"); p != added || m != removed {
		t.Fatalf("Stat says +%d -%d, the diff has +%d -%d", added, removed, p, m)
	}
}

// applyTo is a strict applier: every count and position must be right.
func applyTo(a []byte, text string) ([]byte, error) {
	if text == "" {
		return a, nil
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")[2:]
	old := strings.SplitAfter(string(a), "\n")
	if old[len(old)-1] == "" {
		old = old[:len(old)-1]
	}
	var out strings.Builder
	at, written := 0, 0
	for len(lines) > 0 {
		var from, n, to, m int
		head := strings.TrimSuffix(lines[0], "\n")
		if _, err := fmt.Sscanf(expandRange(head), "@@ -%d,%d +%d,%d @@", &from, &n, &to, &m); err != nil {
			return nil, fmt.Errorf("header %q: %w", head, err)
		}
		if n == 0 {
			from++
		}
		if m == 0 {
			to++
		}
		for ; at < from-1; at, written = at+1, written+1 {
			out.WriteString(old[at])
		}
		if written != to-1 {
			return nil, fmt.Errorf("header %q: the new text is at line %d", head, written+1)
		}
		for lines = lines[1:]; n > 0 || m > 0; lines = lines[1:] {
			mark, line := lines[0][0], lines[0][1:]
			if !strings.HasSuffix(line, "\n") {
				line += "\n"
			}
			if len(lines) > 1 && strings.HasPrefix(lines[1], `\`) {
				line = strings.TrimSuffix(line, "\n")
				lines = lines[1:]
			}
			if mark != '+' {
				if old[at] != line {
					return nil, fmt.Errorf("line %d is %q, not %q", at+1, old[at], line)
				}
				at, n = at+1, n-1
			}
			if mark != '-' {
				out.WriteString(line)
				written, m = written+1, m-1
			}
		}
	}
	for ; at < len(old); at++ {
		out.WriteString(old[at])
	}
	return []byte(out.String()), nil
}

func expandRange(head string) string {
	fields := strings.Fields(head)
	for i := 1; i < len(fields)-1; i++ {
		if !strings.Contains(fields[i], ",") {
			fields[i] += ",1"
		}
	}
	return strings.Join(fields, " ")
}

func TestOtherAppliers(t *testing.T) {
	for _, program := range []string{"git", "patch"} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("%s is not installed: skipped", program)
			continue
		}
		r := rand.New(rand.NewPCG(5, 6))
		for range 25 {
			a, b := randomText(r, 40, 6), randomText(r, 40, 6)
			if len(a) == 0 || len(b) == 0 || bytes.Equal(a, b) {
				continue
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "my file")
			if err := os.WriteFile(file, a, 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"apply", "-"}
			if program == "patch" {
				args = []string{"--binary", "-s", "-p1"}
			}
			cmd := exec.Command(path, args...)
			cmd.Dir = dir
			text := Unified("a/my file", "b/my file", a, b, Options{})
			cmd.Stdin = strings.NewReader(text)
			out, err := cmd.CombinedOutput()
			got, _ := os.ReadFile(file)
			if err != nil || !bytes.Equal(got, b) {
				t.Fatalf("%s: %v %s\nfrom %q got %q want %q by\n%s", program, err, out, a, got, b, text)
			}
		}
	}
}

// TestBounded compares what is expensive for a plain search. Each took less than
// 2 s where it was written; the limit only catches quadratic time.
func TestBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	noise := func(lines, letters int) []byte {
		var b bytes.Buffer
		for range lines {
			fmt.Fprintf(&b, "%d\n", r.IntN(letters))
		}
		return b.Bytes()
	}
	line := bytes.Repeat([]byte("x"), 50<<20)
	other := append([]byte("y"), line...)
	newlines := bytes.Repeat([]byte("\n"), 5<<20)
	tests := []struct {
		name string
		a, b []byte
	}{
		{"different, few kinds of lines", noise(200_000, 5), noise(200_000, 5)},
		{"different, many kinds of lines", noise(200_000, 1<<30), noise(200_000, 1<<30)},
		{"one line of 50 MB", line, other},
		{"empty lines", newlines, append(append([]byte("a\n"), newlines...), "b\n"...)},
		{"changes at both ends", append([]byte("a\n"), append(newlines, 'a')...), append([]byte("b\n"), append(newlines, 'b')...)},
		{"too many lines", append(bytes.Repeat([]byte("a\n"), 200), append(newlines, 'a')...), append(bytes.Repeat([]byte("b\n"), 200), append(newlines, 'b')...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			text := Unified("a", "b", tt.a, tt.b, Options{MaxBytes: 4096})
			took := time.Since(start)
			if len(text) > 4300 {
				t.Errorf("%d bytes in a diff bounded to 4096", len(text))
			}
			if took > time.Minute {
				t.Errorf("took %s", took)
			}
			t.Logf("took %s: %.60q", took.Round(time.Millisecond), text)
		})
	}
}

// TestChangesFarApart holds the diff of a large text with some small changes to no more
// lines than were changed, also where lines repeat.
func TestChangesFarApart(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 200 {
		var lines []string
		kinds := 2 + r.IntN(3000)
		for range 2000 {
			lines = append(lines, fmt.Sprintln("line", r.IntN(kinds)))
		}
		a := []byte(strings.Join(lines, ""))
		added, removed := 0, 0
		for range 1 + r.IntN(8) {
			at, n, more := r.IntN(len(lines)-10), r.IntN(6), r.IntN(6)
			added, removed = added+more, removed+n
			lines = slices.Replace(lines, at, at+n, slices.Repeat([]string{"new\n"}, more)...)
		}
		b := []byte(strings.Join(lines, ""))
		checkReproduces(t, a, b, r.IntN(5)-1)
		if p, m := Stat(a, b); p+m > added+removed {
			t.Errorf("the diff has +%d -%d, the change was +%d -%d", p, m, added, removed)
		}
	}
}

// TestFewEditsInManyLines holds the quality of the result for a large file whose
// changes are too many for one search.
func TestFewEditsInManyLines(t *testing.T) {
	var a, b bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&a, "line %d\n", i)
		switch {
		case i%20 == 0:
			fmt.Fprintf(&b, "changed %d\n", i)
		default:
			fmt.Fprintf(&b, "line %d\n", i)
		}
	}
	if added, removed := Stat(a.Bytes(), b.Bytes()); added != 5000 || removed != 5000 {
		t.Errorf("got +%d -%d, want 5000 of each", added, removed)
	}
}
