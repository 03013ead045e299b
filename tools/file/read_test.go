package file

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"zcoder/tools"
)

func TestReadFile(t *testing.T) {
	d := newDesk(t, Options{MaxOutput: 100})
	for name, c := range map[string]struct {
		content string
		status  tools.Status
		want    string
		line    string
	}{
		"plain":         {"one\ntwo\n", tools.OK, "one\ntwo\n", "2 lines"},
		"no line end":   {"one", tools.OK, "one", "1 line"},
		"empty":         {"", tools.OK, "[empty is empty]", "0 lines"},
		"tabs":          {"\tx  \n", tools.OK, "\tx  \n", "1 line"},
		"mark":          {"\xEF\xBB\xBFone\n", tools.OK, "one\n", "1 line"},
		"crlf":          {"one\r\ntwo\r\n", tools.OK, "one\ntwo\n", "2 lines"},
		"old mac":       {"one\rtwo\r", tools.OK, "one\ntwo\n", "2 lines"},
		"lone cr":       {"a\rb\n", tools.OK, "a\rb\n", "1 line"},
		"separators":    {"a\u2028b\u2029c\x1b[31m\n", tools.OK, "a\u2028b\u2029c\x1b[31m\n", "1 line"},
		"latin1":        {"caf\xe9\n", tools.OK, "[not UTF-8: 1 byte not valid; edits keep them]\ncaf\xe9\n", "1 line"},
		"at the limit":  {strings.Repeat("é", 100), tools.OK, strings.Repeat("é", 100), "1 line"},
		"over":          {strings.Repeat("é", 101), tools.Failed, "over has 1 line (202 bytes), over the limit of 100 characters. Read a part with read_file_range, such as start_line 1, end_line 1, or use search.", ""},
		"far over":      {strings.Repeat("12345678\n", 1000), tools.Failed, "far over has 1000 lines (9000 bytes), over the limit of 100 characters. Read a part with read_file_range, such as start_line 1, end_line 8, or use search.", ""},
		"binary":        {"\x7fELF\x00\x01", tools.Failed, "binary is binary (6 bytes), not text", ""},
		"large binary":  {"\x7fELF" + strings.Repeat("\x00", 996), tools.Failed, "large binary is binary (1000 bytes), not text", ""},
		"utf16":         {"\xff\xfea\x00", tools.Failed, "utf16 (4 bytes) is UTF-16 text, which the file tools do not read or change; convert it with a command such as iconv", ""},
		"large utf16":   {"\xfe\xff" + strings.Repeat("\x00a", 499), tools.Failed, "large utf16 (1000 bytes) is UTF-16 text, which the file tools do not read or change; convert it with a command such as iconv", ""},
		"odd\x1b[2Jone": {"", tools.OK, `["odd\x1b[2Jone" is empty]`, "0 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			d.put(name, c.content)
			r := d.call("read_file", args{"path": name})
			if r.Status != c.status || r.Text != c.want || r.Line != c.line {
				t.Errorf("got %s %q (%q), want %s %q (%q)", r.Status, r.Text, r.Line, c.status, c.want, c.line)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("sub/main.go", "x")
	if err := syscall.Mkfifo(filepath.Join(d.root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"sub/mian.go":    `"sub/mian.go" does not exist; did you mean "sub/main.go"?`,
		"sub/Main.go":    `did you mean "sub/main.go"?`,
		"sub/other.txt":  "does not exist; find it with list_files or search",
		"nodir/x":        "does not exist; find it with list_files or search",
		"sub":            "is a directory; use list_files",
		"pipe":           "not a regular file",
		"../x":           "outside the workspace",
		"sub/main.go/..": "not a directory",
	} {
		for _, tool := range []string{"read_file", "read_file_range", "replace_text"} {
			_, err := d.plan(tool, args{"path": path, "start_line": 1, "end_line": 1, "old_text": "a", "new_text": "b"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %v, want %q", tool, path, err, want)
			}
		}
	}
}

func TestReadFileRange(t *testing.T) {
	d := newDesk(t, Options{MaxOutput: 1000})
	var numbered strings.Builder
	for i := range 500 {
		fmt.Fprintf(&numbered, "line %d\n", i+1)
	}
	d.put("n", numbered.String())
	d.put("crlf", "\xEF\xBB\xBFa\r\nb\r\n\r\nd")
	d.put("mac", "a\rb\rc")
	d.put("cr", "a\rb\nc\r\n")
	d.put("empty", "")
	d.put("long", "short\n"+strings.Repeat("é", 20000)+"\nend\n")
	d.put("bin", "a\x00b")
	for name, c := range map[string]struct {
		path        string
		first, last int
		status      tools.Status
		want        string
		line        string
	}{
		"one line":       {"n", 7, 7, tools.OK, "7: line 7\n", "line 7"},
		"some":           {"n", 1, 3, tools.OK, "1: line 1\n2: line 2\n3: line 3\n", "lines 1-3"},
		"clamped":        {"n", 499, 900, tools.OK, "499: line 499\n500: line 500\n[the file ends at line 500]\n", "lines 499-500"},
		"past the end":   {"n", 501, 502, tools.Failed, "start_line 501 is past the end: n has 500 lines", ""},
		"no line end":    {"crlf", 1, 4, tools.OK, "1: a\n2: b\n3: \n4: d\n", "lines 1-4"},
		"past a partial": {"crlf", 5, 5, tools.Failed, "start_line 5 is past the end: crlf has 4 lines", ""},
		"old mac":        {"mac", 2, 9, tools.OK, "2: b\n3: c\n[the file ends at line 3]\n", "lines 2-3"},
		"lone cr":        {"cr", 1, 2, tools.OK, "1: a\rb\n2: c\n", "lines 1-2"},
		"empty":          {"empty", 1, 1, tools.Failed, "empty is empty", ""},
		"binary":         {"bin", 1, 1, tools.Failed, "bin is binary (3 bytes), not text", ""},
		"after a long":   {"long", 3, 3, tools.OK, "3: end\n", "line 3"},
		"a long one":     {"long", 2, 2, tools.OK, "2: " + strings.Repeat("é", 800) + "… [line of 40000 bytes, cut]\n", "line 2"},
		"long and next":  {"long", 1, 3, tools.OK, "1: short\n[output limit; go on with start_line 2]\n", "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.call("read_file_range", args{"path": c.path, "start_line": c.first, "end_line": c.last})
			if r.Status != c.status || r.Text != c.want || r.Line != c.line {
				t.Errorf("got %s %q (%q), want %s %q (%q)", r.Status, r.Text, r.Line, c.status, c.want, c.line)
			}
		})
	}
	r := d.call("read_file_range", args{"path": "n", "start_line": 1, "end_line": 500})
	wants(t, r, tools.OK, "1: line 1\n", "[output limit; go on with start_line ")
	if len(r.Text) > 1000 {
		t.Errorf("%d characters for a limit of 1000", len(r.Text))
	}
	for _, c := range [][2]int{{0, 5}, {-1, 5}, {5, 4}} {
		if _, err := d.plan("read_file_range", args{"path": "n", "start_line": c[0], "end_line": c[1]}); err == nil {
			t.Errorf("%v is planned", c)
		}
	}
}

// TestLargeFiles reads from a 2 GB log and a line of 30 MB in little memory.
func TestLargeFiles(t *testing.T) {
	d := newDesk(t, Options{})
	log, err := os.Create(filepath.Join(d.root, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	head := strings.Repeat("entry\n", 20000)
	if _, err := log.WriteString(head); err != nil {
		t.Fatal(err)
	}
	if err := log.Truncate(2 << 30); err != nil { // a hole: no disk is used
		t.Fatal(err)
	}
	d.put("line", strings.Repeat("x", 30<<20)+"\nlast\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	wants(t, d.call("read_file_range", args{"path": "log", "start_line": 15000, "end_line": 15001}), tools.OK, "15000: entry\n15001: entry\n")
	wants(t, d.call("read_file_range", args{"path": "line", "start_line": 1, "end_line": 2}), tools.OK, "[line of 31457280 bytes, cut]\n2: last\n")
	wants(t, d.call("read_file", args{"path": "line"}), tools.Failed, "2 lines (31457286 bytes)")
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 4<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
	t.Logf("took %v", time.Since(start))
}

// FuzzRange compares the reader of lines with splitting the whole text.
func FuzzRange(f *testing.F) {
	f.Add("a\nb\n", 1, 3)
	f.Add("a\r\nb", 0, 1)
	f.Add("a\rb\r", 1, 2)
	f.Add("\n\n\n", 2, 100)
	f.Fuzz(func(t *testing.T, content string, skip, size int) {
		if skip < 0 || size < 1 {
			return
		}
		r := newLineReader(context.Background(), strings.NewReader(content))
		r.buf = make([]byte, min(size, 100)+len(content)/2) // the whole decides on old Mac line ends in production
		mac := oldMac([]byte(content))
		if _, err := r.head(); err != nil {
			t.Fatal(err)
		}
		r.mac = mac
		if err := r.skip(skip); err != nil {
			t.Fatal(err)
		}
		end := "\n"
		if mac {
			end = "\r"
		}
		var want []string
		for line := range strings.SplitAfterSeq(content, end) {
			if line != "" {
				line = strings.TrimSuffix(line, end)
				want = append(want, line)
			}
		}
		total := len(want)
		want = want[min(skip, len(want)):]
		for i, w := range want {
			line, n, ok, err := r.next(1 << 20)
			complete := skip+i < strings.Count(content, end)
			if !mac && complete {
				w = strings.TrimSuffix(w, "\r")
			}
			if err != nil || !ok || string(line) != w || n != len(w) {
				t.Fatalf("line %d: %q (%d, %v, %v), want %q", i, line, n, ok, err, w)
			}
		}
		if _, _, ok, _ := r.next(10); ok {
			t.Fatal("there is one more line")
		}
		if n, err := r.total(); err != nil || n != total {
			t.Fatalf("%d lines, want %d", n, total)
		}
	})
}

// BenchmarkReadFileRange reads the last two lines of a log.
func BenchmarkReadFileRange(b *testing.B) {
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprintf("%dMB", size), func(b *testing.B) {
			d := newDesk(b, Options{})
			line := strings.Repeat("x", 49) + "\n"
			lines := size * 20_000
			d.put("log", strings.Repeat(line, lines))
			b.SetBytes(int64(len(line) * lines))
			for b.Loop() {
				r := d.call("read_file_range", args{"path": "log", "start_line": lines - 1, "end_line": lines})
				if r.Status != tools.OK {
					b.Fatal(r.Text)
				}
			}
		})
	}
}

func BenchmarkReadFile(b *testing.B) {
	d := newDesk(b, Options{})
	content := bytes.Repeat([]byte("a line of text\n"), 2000)
	d.put("f", string(content))
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if r := d.call("read_file", args{"path": "f"}); r.Status != tools.OK {
			b.Fatal(r.Text)
		}
	}
}
