package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"zcoder/internal/workspace"
	"zcoder/tools"
)

func TestReplaceText(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	for name, c := range map[string]struct{ content, old, new, want string }{
		"one word":                    {"a b c\n", "b", "x", "a x c\n"},
		"whole file":                  {"abc", "abc", "", ""},
		"meta characters":             {"f(a.*)[$1]\n", "f(a.*)[$1]", `$& $1 $$ \1 %s`, `$& $1 $$ \1 %s` + "\n"},
		"trailing blanks kept":        {"a\nb\n", "a\nb", "a  \nb  ", "a  \nb  \n"},
		"curly quotes kept":           {"x = \"a\"\n", `"a"`, "“a”", "x = “a”\n"},
		"indentation kept":            {"if x {\n\ty()\n}\n", "\ty()", "\ty()\n\t  z()", "if x {\n\ty()\n\t  z()\n}\n"},
		"crlf from lf":                {"a\r\nb\r\nc\r\n", "b\nc", "x\ny\nz", "a\r\nx\r\ny\r\nz\r\n"},
		"crlf one line":               {"a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"},
		"crlf last line":              {"a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
		"crlf line end":               {"a\r\nb\r\nc", "b\n", "", "a\r\nc"},
		"crlf leading end":            {"a\r\nb\r\nc", "\nb", "\nx", "a\r\nx\r\nc"},
		"crlf sent as crlf":           {"a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n"},
		"lf sent as crlf":             {"a\nb\n", "a\r\nb", "x\r\ny\r\nz", "x\ny\nz\n"},
		"mixed, one line":             {"a\r\nb\nc\r\n", "b", "x", "a\r\nx\nc\r\n"},
		"mixed, shared lines":         {"a\r\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nx\nc\nd", "a\r\nx\nc\r\nd\n"},
		"mixed, insert":               {"a\nb\r\nc\n", "b\nc", "b\nx\nc", "a\nb\r\nx\r\nc\n"},
		"half a line end":             {"a\nb\nc\n", "b", "x\r", "a\nx\nc\n"},
		"half a line end, crlf":       {"a\r\nb\r\n", "b", "x\r", "a\r\nx\r\n"},
		"no line end in the file":     {"ab", "b", "x\r\ny\n", "ax\r\ny\n"},
		"old mac":                     {"a\rb\rc", "a\nb", "a\nx\nb", "a\rx\rb\rc"},
		"lone cr is text":             {"a\rb\nc\n", "a\rb", "a\rx", "a\rx\nc\n"},
		"mark kept":                   {mark + "a\nb\n", "a", "x", mark + "x\nb\n"},
		"mark in old":                 {mark + "a\nb\n", "\uFEFFa", "\uFEFFx", mark + "x\nb\n"},
		"mark and crlf":               {mark + "a\r\nb\r\n", "a\nb", "x\ny", mark + "x\r\ny\r\n"},
		"latin1 elsewhere":            {"one\ncaf\xe9 \xff\n", "one", "two", "two\ncaf\xe9 \xff\n"},
		"shift-jis elsewhere":         {"one\n\x83\x65\x83\x58\x83\x67\n", "one", "two", "two\n\x83\x65\x83\x58\x83\x67\n"},
		"nul far away":                {"one\n" + strings.Repeat("x", 9000) + "\x00", "one", "two", "two\n" + strings.Repeat("x", 9000) + "\x00"},
		"separators":                  {"a\u2028b\n", "b", "c\u2029", "a\u2028c\u2029\n"},
		"tabs kept elsewhere":         {"\ta\n    b\n", "b", "c", "\ta\n    c\n"},
		"line end dropped":            {"a\nb\nc\n", "b\n", "", "a\nc\n"},
		"escape sequences as content": {"x\n", "x", `"\n"`, "\"\\n\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, Options{})
			d.put("f", c.content)
			r := d.call("replace_text", args{"path": "f", "old_text": c.old, "new_text": c.new})
			wants(t, r, tools.OK)
			if got := d.content("f"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if len(r.Changed) != 1 || r.Changed[0] != "f" || r.Diff == "" {
				t.Errorf("changed %q, diff %q", r.Changed, r.Diff)
			}
		})
	}
}

func TestReplaceTextRefuses(t *testing.T) {
	code := "package main\n\nfunc main() {\n\tif ok {\n\t\trun(\"a\")\n\t}\n\tprintln(“hi”)\n}\n"
	for name, c := range map[string]struct {
		content, old, new string
		want              []string
	}{
		"empty":                 {code, "", "x", []string{"old_text is empty"}},
		"blank":                 {code, " ", "x", []string{"only blanks"}},
		"line end":              {code, "\n", "x", []string{"only blanks"}},
		"tabs":                  {code, "\t\n\t", "x", []string{"only blanks"}},
		"no-break space":        {"a\u00a0b", "\u00a0", "x", []string{"only blanks"}},
		"zero width":            {"a\u200bb", "\u200b", "x", []string{"only blanks"}},
		"same":                  {code, "main", "main", []string{"the same"}},
		"same but line ends":    {"a\r\nb\r\n", "a\nb", "a\r\nb", []string{"has there already"}},
		"twice":                 {"a\nx\nb\nx\n", "x", "y", []string{"is in the file 2 times, starting at lines 2, 4;"}},
		"twice on a line":       {"xx\n", "x", "y", []string{"2 times, starting at lines 1, 1;"}},
		"overlapping":           {"aaa", "aa", "b", []string{"2 times, starting at lines 1, 1;"}},
		"lines twice":           {"h\na\nb\nc\na\nb\n", "a\nb", "x", []string{"2 times, starting at lines 2, 5;"}},
		"lines twice, crlf":     {"h\r\na\r\nb\r\nc\na\nb\n", "a\nb", "x", []string{"2 times, starting at lines 2, 5;"}},
		"many":                  {strings.Repeat("x\n", 50), "x", "y", []string{"more than 10 times, starting at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10;"}},
		"gutter":                {code, "4: \tif ok {\n5: \t\trun(\"a\")", "x", []string{"line numbers", "without the numbers"}},
		"gutter without blank":  {code, "4:\tif ok {", "x", []string{"line numbers"}},
		"gutter of cat":         {code, "     4\t\tif ok {", "x", []string{"line numbers"}},
		"literal escapes":       {code, `if ok {\n\t\trun(\"a\")`, "x", []string{`the characters \n`}},
		"spaces for tabs":       {code, "    if ok {\n        run(\"a\")", "x", []string{"only in blanks", `4: "\tif ok {"`, `5: "\t\trun(\"a\")"`}},
		"tabs for spaces":       {"f:\n    a: 1\n", "\ta: 1", "x", []string{"only in blanks", `2: "    a: 1"`}},
		"trailing blank":        {code, "func main() { \n", "x", []string{"only in blanks", `3: "func main() {"`}},
		"line end at the end":   {"a\nlast", "last\n", "x", []string{"only in blanks", `2: "last"`}},
		"straight quotes":       {code, `println("hi")`, "x", []string{"only in quotes", `7: "\tprintln(“hi”)"`}},
		"letter case":           {code, "Func Main() {", "x", []string{"letter case", `3: "func main() {"`}},
		"decomposed":            {"caf\u00e9 au lait\n", "cafe\u0301 au lait", "x", []string{"Unicode form", `1: "café au lait"`}},
		"done already":          {"package x\n\nvar b = 2\n", "var a = 1", "var b = 2", []string{"new_text is, at line 3", "made already"}},
		"near":                  {code, "\t\trun(\"b\", 1)", "x", []string{"nearest lines", `5: "\t\trun(\"a\")"`}},
		"near block":            {code, "func main() {\n\tif okay {\n", "x", []string{"nearest lines", `3: "func main() {"`, `4: "\tif ok {"`}},
		"far":                   {code, "completely different words here", "x", []string{"no line is like it", "8 lines"}},
		"in an empty file":      {"", "abc", "x", []string{"no line is like it"}},
		"binary":                {"a\x00b", "a", "x", []string{"is binary (3 bytes)"}},
		"utf16":                 {"\xff\xfea\x00", "a", "x", []string{"UTF-16"}},
		"long line is cut":      {strings.Repeat("long ", 100) + "x", strings.Repeat("long ", 100) + "y", "x", []string{"nearest lines", "[cut]"}},
		"html is not escaped":   {"<a>&amp;</a>\n", "<a>&amp; </a>", "x", []string{`1: "<a>&amp;</a>"`}},
		"utf-8 mark is no text": {"\xEF\xBB\xBFa\n", "\uFEFF", "x", []string{"only blanks"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, Options{})
			d.put("f", c.content)
			_, err := d.plan("replace_text", args{"path": "f", "old_text": c.old, "new_text": c.new})
			if err == nil {
				t.Fatal("it is planned")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if len(err.Error()) > 2000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if got := d.content("f"); got != c.content {
				t.Errorf("the file changed to %q", got)
			}
		})
	}
}

func TestReplaceResult(t *testing.T) {
	d := newDesk(t, Options{})
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	d.put("f", b.String())
	r := d.call("replace_text", args{"path": "f", "old_text": "line 50\nline 51\n", "new_text": "fifty\n"})
	if want := "Replaced lines 50-51 of f (+1 -2 lines)."; r.Text != want || r.Line != "+1 -2" {
		t.Errorf("text %q, line %q, want %q", r.Text, r.Line, want)
	}
	want := "--- a/f\n+++ b/f\n@@ -47,8 +47,7 @@\n line 47\n line 48\n line 49\n-line 50\n-line 51\n+fifty\n line 52\n line 53\n line 54\n"
	if r.Diff != want {
		t.Errorf("diff\n%s\nwant\n%s", r.Diff, want)
	}
}

func TestExpectedSum(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("f", "old\n")
	for _, tool := range []string{"write_file", "replace_text"} {
		call := func(path, expected string) tools.Result {
			return d.call(tool, args{"path": path, "old_text": "old", "new_text": "old", "content": "old\n", "expected_sha256": expected})
		}
		if tool == "replace_text" {
			call = func(path, expected string) tools.Result {
				return d.call(tool, args{"path": path, "old_text": "old", "new_text": "new", "expected_sha256": expected})
			}
		}
		wants(t, call("f", sum("other")), tools.Failed, "the file changed", sum("old\n"), "read it again")
		wants(t, call("f", "abc"), tools.Failed, "64 hexadecimal digits")
		wants(t, call("f", strings.Repeat("g", 64)), tools.Failed, "64 hexadecimal digits")
		wants(t, call("f", strings.ToUpper(sum("old\n"))), tools.OK)
	}
	wants(t, d.call("write_file", args{"path": "none", "content": "x", "expected_sha256": sum("")}), tools.Failed, "does not exist")
	wants(t, d.call("write_file", args{"path": "none", "content": "x", "expected_sha256": ""}), tools.OK)
}

// TestReplaceLarge edits a file with no more copies of it than the two reads.
func TestReplaceLarge(t *testing.T) {
	const size = 20 << 20
	d := largeDesk(t, size)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	wants(t, d.call("replace_text", args{"path": "big", "old_text": "needle\n", "new_text": "pin\n"}), tools.OK)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > size*23/10 {
		t.Errorf("%d bytes were allocated for a file of %d", used, size)
	}
}

// largeDesk has a file "big", in memory where there is such a place.
func largeDesk(t testing.TB, size int) *desk {
	root, err := os.MkdirTemp("/dev/shm", "zcoder-test-")
	if err != nil {
		root = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	content := bytes.Repeat([]byte("a line of some length, as in a log\n"), size/35)
	copy(content[len(content)-70:], "needle\n")
	if err := os.WriteFile(filepath.Join(root, "big"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	return deskAt(t, root, workspace.Options{}, Options{})
}

// FuzzReplace edits arbitrary content. Whatever is found is found once; what stands
// before and after it does not change; a file keeps its one kind of line end.
func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\nc\n", "b\nc", "x\ny")
	f.Add("aaa", "aa", "b")
	f.Add("a\rb\r", "a\nb", "c\nd\ne")
	f.Add("caf\xe9\r\nx\r\n", "x", "\n\n")
	f.Add("\n\n\na\n", "\na", "\r\n")
	f.Fuzz(func(t *testing.T, content, old, text string) {
		if checkOld(old, text) != nil {
			return
		}
		s := newSource([]byte(content))
		e, err := findEdit(s, []byte(old), []byte(text))
		if err != nil {
			if message := explain(context.Background(), s, old, text); message == "" {
				t.Fatal("no explanation")
			}
			return
		}
		if e.start < 0 || e.end < e.start || e.end > len(content) {
			t.Fatalf("edit %d-%d of %d bytes", e.start, e.end, len(content))
		}
		if got, want := lineFeeds([]byte(content[e.start:e.end]), s.mac), lineFeeds([]byte(old), s.mac); !bytes.Equal(got, want) {
			t.Fatalf("found %q for %q", got, want)
		}
		if want := strings.Count(string(lineFeeds([]byte(content[:e.start]), s.mac)), "\n") + 1; e.line != want {
			t.Fatalf("line %d, want %d", e.line, want)
		}
		after := content[:e.start] + string(e.replacement) + content[e.end:]
		if strings.Contains(strings.ReplaceAll(content, "\r\n", ""), "\r") || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
			return // lone carriage returns are text and may meet a line feed
		}
		if onlyCRLF([]byte(content)) && strings.Contains(after, "\n") && !onlyCRLF([]byte(after)) {
			t.Fatalf("%q became %q", content, after)
		}
		if strings.Contains(content, "\n") && !strings.Contains(content, "\r\n") && strings.Contains(after, "\r\n") {
			t.Fatalf("%q became %q", content, after)
		}
		if got, want := lineFeeds(e.replacement, s.mac), lineFeeds([]byte(text), s.mac); !bytes.Equal(got, want) {
			t.Fatalf("the new text %q became %q", want, got)
		}
	})
}

func BenchmarkReplaceText(b *testing.B) {
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprintf("%dMB", size), func(b *testing.B) {
			d := largeDesk(b, size*1_000_000)
			words := []string{"needle\n", "pin\n"}
			b.SetBytes(int64(size) * 1_000_000)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := d.call("replace_text", args{"path": "big", "old_text": words[i%2], "new_text": words[(i+1)%2]})
				if r.Status != tools.OK {
					b.Fatal(r.Text)
				}
			}
		})
	}
}

func BenchmarkReplaceTextSmall(b *testing.B) {
	d := largeDesk(b, 1<<20)
	words := []string{"needle", "pin"}
	if err := os.WriteFile(filepath.Join(d.w.Root(), "small"), append(bytes.Repeat([]byte("a line of text\n"), 500), "needle"...), 0o644); err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		r := d.call("replace_text", args{"path": "small", "old_text": words[i%2], "new_text": words[(i+1)%2]})
		if r.Status != tools.OK {
			b.Fatal(r.Text)
		}
	}
}
