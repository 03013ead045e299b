package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zcoder/internal/workspace"
	"zcoder/tools"
)

func TestSearch(t *testing.T) {
	w := newWorkspace(t, files{
		"a.go": "package a\n\nfunc Foo() {\n\tbar()\n}\n", "b/b.go": "func Foo2() {}\r\nlast Foo", "b/c.md": "# Foo\n\nfoo again\n", "vendor/v.go": "Foo\n", ".github/w.yml": "Foo\n",
		"node_modules/x/i.js": "Foo\n", "skip.log": "Foo\n", ".gitignore": "*.log\n", "secret/id_rsa": "Foo\n", "app.env": "Foo=1\n", "img.png": "\x89PNG\x00Foo", "other.bin": "\x00\x01",
		"many.txt": strings.Repeat("Foo line\nx\n", 30), "sub/.ignore": "no.txt\n", "sub/no.txt": "Foo\n", "sub/yes.txt": "a\nb\nc\nFoo\nd\ne\nFoo\nf\ng\nh\ni\nj\nFoo\n",
	})
	must(t, os.Link(filepath.Join(w.Root(), "a.go"), filepath.Join(w.Root(), "linked.go")))
	must(t, os.Remove(filepath.Join(w.Root(), "a.go")))
	must(t, os.WriteFile(filepath.Join(w.Root(), "a.go"), []byte("package a\n\nfunc Foo() {\n\tbar()\n}\n"), 0o600))
	must(t, os.Link(filepath.Join(w.Root(), "linked.go"), filepath.Join(w.Root(), "linked2.go")))
	must(t, syscall.Mkfifo(filepath.Join(w.Root(), "fifo"), 0o600))
	must(t, os.Symlink("a.go", filepath.Join(w.Root(), "link.go")))
	left := "Not searched unless named as path: 3 hidden, 2 ignored, node_modules/, vendor/, 1 links, 1 special files, 2 with several hard links, 2 secret-like, 1 binary with the text.\n"
	for _, tt := range []struct {
		name string
		args args
		want string
		line string
	}{
		{"context merges", args{"query": "Foo", "path": "sub", "context_lines": 1}, `3 matches in 1 file:
sub/yes.txt
3- c
4: Foo
5- d
6- e
7: Foo
8- f
--
12- j
13: Foo

Not searched unless named as path: 1 hidden, 1 ignored.
`, "3 matches in 1 file"},
		{"round robin", args{"query": "Foo", "max_results": 7, "context_lines": 0}, `7 of 37 matches in 5 files:
a.go
3: func Foo() {

b/b.go
1: func Foo2() {}
2: last Foo

b/c.md
1: # Foo

many.txt (2 of 30)
1: Foo line
3: Foo line

sub/yes.txt (1 of 3)
4: Foo

To see the rest narrow the search by path, glob, file_type or a longer query, or raise max_results or max_chars.
` + left, "37 matches in 5 files"},
		{"files", args{"query": "Foo", "mode": "files"}, "5 files:\na.go\nb/b.go\nb/c.md\nmany.txt\nsub/yes.txt\n" + left, "5 files"},
		{"some files", args{"query": "Foo", "mode": "files", "max_results": 2}, "2 of 5 files:\na.go\nb/b.go\n" +
			"To see the rest narrow the search by path, glob, file_type or a longer query, or raise max_results or max_chars.\n" + left, "5 files"},
		{"named hidden", args{"query": "Foo", "path": ".github"}, "1 match in 1 file:\n.github/w.yml\n1: Foo\n\n", "1 match in 1 file"},
		{"named file", args{"query": "Foo", "path": "skip.log"}, "1 match in 1 file:\nskip.log\n1: Foo\n\n", "1 match in 1 file"},
		{"named link", args{"query": "Foo", "path": "link.go", "context_lines": 0}, "1 match in 1 file:\na.go\n3: func Foo() {\n\n", "1 match in 1 file"},
		{"named linked file", args{"query": "Foo", "path": "linked.go", "context_lines": 0}, "1 match in 1 file:\nlinked.go\n3: func Foo() {\n\n", "1 match in 1 file"},
		{"named secret", args{"query": "Foo", "path": "secret/id_rsa"}, "1 match in 1 file:\nsecret/id_rsa\n1: Foo\n\n", "1 match in 1 file"},
		{"literal", args{"query": "Foo() {", "literal": true, "path": "a.go", "context_lines": 0}, "1 match in 1 file:\na.go\n3: func Foo() {\n\n", "1 match in 1 file"},
		{"alternatives", args{"query": "bar\nagain", "context_lines": 0, "glob": "*.{go,md}", "path": "."}, "2 matches in 2 files:\na.go\n4: \tbar()\n\nb/c.md\n3: foo again\n\n" +
			"Not searched unless named as path: 3 hidden, 2 ignored, node_modules/, vendor/, 1 links, 1 special files, 2 with several hard links.\n", "2 matches in 2 files"},
		{"type", args{"query": "Foo$", "file_type": "go", "path": "b", "context_lines": 0}, "1 match in 1 file:\nb/b.go\n2: last Foo\n\n", "1 match in 1 file"},
		{"carriage return is not in the line", args{"query": `\{\}$`, "path": "b", "context_lines": 0}, "1 match in 1 file:\nb/b.go\n1: func Foo2() {}\n\n", "1 match in 1 file"},
		{"none", args{"query": "absent_thing", "path": "b"}, "No matches for \"absent_thing\" in b (2 files searched).\n", "no matches"},
		{"nothing fits", args{"query": "Foo", "path": "b", "glob": "*.py"}, "No file in b fits glob and file_type: all of 2 files were left out.\n", "no matches"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := call(t, w, "search", tt.args)
			wantText(t, r.Text, tt.want)
			if r.Line != tt.line || r.Status != tools.OK {
				t.Errorf("line %q, want %q; status %s", r.Line, tt.line, r.Status)
			}
		})
	}
	t.Run("named binary", func(t *testing.T) {
		r := call(t, w, "search", args{"query": "Foo", "path": "img.png"})
		if want := "img.png is binary (8 bytes), so it was not searched."; r.Text != want || r.Status != tools.Failed {
			t.Errorf("got %s %q, want %q", r.Status, r.Text, want)
		}
	})
}

func TestRequest(t *testing.T) {
	home := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(home, "ws/.zcoder/deep"), 0o700))
	root := filepath.Join(home, "ws")
	must(t, os.WriteFile(filepath.Join(root, "id_rsa"), []byte("key\n"), 0o600))
	must(t, os.WriteFile(filepath.Join(root, ".zcoder/deep/config"), []byte("key\n"), 0o600))
	must(t, os.Symlink("id_rsa", filepath.Join(root, "harmless")))
	w := open(t, root, workspace.Options{SettingsDir: filepath.Join(root, ".zcoder")})
	for _, tt := range []struct {
		name, tool string
		args       args
		summary    string
		rel        string
		asks       bool
	}{
		{"plain", "search", args{"query": "foo"}, `search "foo"`, ".", false},
		{"in", "search", args{"pattern": "a\nb", "dir": "x/.."}, `search "a\nb"`, ".", false},
		{"secret", "search", args{"q": strings.Repeat("é", 100), "file": "id_rsa"}, `search "` + strings.Repeat("é", 59) + `…" in id_rsa`, "id_rsa", true},
		{"link to a secret", "search", args{"query": "foo", "path": "harmless"}, `search "foo" in id_rsa`, "id_rsa", true},
		{"settings", "search", args{"query": "foo", "path": ".zcoder"}, `search "foo" in .zcoder`, ".zcoder", true},
		{"below settings", "list_files", args{"folder": ".zcoder/deep"}, `list_files .zcoder/deep`, ".zcoder/deep", true},
		{"list", "list_files", args{}, `list_files .`, ".", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			action, err := plan(w, Options{}, tt.tool, tt.args)
			must(t, err)
			r := action.Request()
			if r.Summary != tt.summary || len(r.Paths) != 1 || r.Paths[0].Rel != tt.rel || r.Paths[0].Write || r.Effect.String() != "read" || (len(r.MustAsk) > 0) != tt.asks {
				t.Errorf("request %+v", r)
			}
		})
	}
}

func TestSettingsAreNotEntered(t *testing.T) {
	w := newWorkspace(t, files{"conf/zcoder/mcp.json": "token\n", "conf/x": "token\n"})
	w = open(t, w.Root(), workspace.Options{SettingsDir: filepath.Join(w.Root(), "conf/zcoder")})
	r := call(t, w, "search", args{"query": "token"})
	wantText(t, r.Text, "1 match in 1 file:\nconf/x\n1: token\n\nNot searched unless named as path: the settings directory.\n")
	r = call(t, w, "list_files", args{})
	wantText(t, r.Text, "conf/\nconf/x\nconf/zcoder/ (the settings directory, not listed)\n")
	r = call(t, w, "search", args{"query": "token", "path": "conf/zcoder"})
	wantText(t, r.Text, "1 match in 1 file:\nconf/zcoder/mcp.json\n1: token\n\n")
}

func TestRefusals(t *testing.T) {
	w := newWorkspace(t, files{"a": "x\n"})
	must(t, syscall.Mkfifo(filepath.Join(w.Root(), "fifo"), 0o600))
	must(t, os.Symlink("/etc", filepath.Join(w.Root(), "etc")))
	for _, tt := range []struct {
		name, tool string
		args       args
		want       string // part of the error
	}{
		{"outside", "search", args{"query": "x", "path": "../x"}, "outside"},
		{"link outside", "list_files", args{"path": "etc"}, "outside"},
		{"absent", "list_files", args{"path": "b/c"}, `path "b/c" does not exist; list_files of "b" shows what is there`},
		{"fifo", "search", args{"query": "x", "path": "fifo"}, "neither a directory nor a regular file"},
		{"empty", "search", args{"query": "\n \n"[:1]}, "query is empty"},
		{"no query", "search", args{}, `"query" is missing`},
		{"many", "search", args{"query": strings.Repeat("a\n", 17)}, "17 lines; at most 16 alternatives"},
		{"long", "search", args{"query": strings.Repeat("a", 8193)}, "8193 bytes long; at most 8192"},
		{"look ahead", "search", args{"query": "foo(?!bar)"}, "RE2 has no look-ahead"},
		{"back reference", "search", args{"query": `(a)\1`}, "RE2 has no back-references"},
		{"open call", "search", args{"query": "main("}, "(missing closing )). To search for the text as it stands set literal=true"},
		{"one of several", "search", args{"query": "ok\n*x"}, `query "*x" is not a regular expression in RE2 syntax (missing argument to repetition operator: *)`},
		{"end", "search", args{"query": `a\Z`}, "Use $ for the end"},
		{"newline", "search", args{"query": `a\nb`}, "can never match: files are searched line by line"},
		{"glob", "search", args{"query": "a", "glob": "[a"}, "close each ["},
		{"long glob", "search", args{"query": "a", "glob": strings.Repeat("a", 1025)}, "at most 1024"},
		{"braces", "search", args{"query": "a", "glob": strings.Repeat("{a,b}", 8)}, "more than 128 patterns"},
		{"type", "search", args{"query": "a", "file_type": "go,ts"}, "file_type \"go,ts\" is unknown"},
		{"mode", "search", args{"query": "a", "mode": "names"}, "must be one of content, files"},
		{"context", "search", args{"query": "a", "context_lines": 9}, "from 0 to 5"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan(w, Options{}, tt.tool, tt.args)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestChangedBetweenPlanAndDo(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "f"), []byte("needle\n"), 0o600))
	for _, tt := range []struct {
		name, path string
		swap       func(root string) error
	}{
		{"directory becomes a link", "d", func(root string) error {
			return os.Symlink(outside, filepath.Join(root, "d"))
		}},
		{"parent becomes a link", "d/e", func(root string) error {
			return os.Symlink(outside, filepath.Join(root, "d"))
		}},
		{"another directory", "d", func(root string) error { return os.Mkdir(filepath.Join(root, "d"), 0o700) }},
		{"file becomes a link", "d/f", func(root string) error {
			if err := os.Mkdir(filepath.Join(root, "d"), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(outside, "f"), filepath.Join(root, "d/f"))
		}},
		{"another file", "d/f", func(root string) error {
			if err := os.Mkdir(filepath.Join(root, "d"), 0o700); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(root, "d/f"), []byte("needle\n"), 0o600)
		}},
		{"gone", "d", func(string) error { return nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorkspace(t, files{"d/f": "needle\n", "d/e/f": "needle\n"})
			search, err := plan(w, Options{}, "search", args{"query": "needle", "path": tt.path})
			must(t, err)
			list, err := plan(w, Options{}, "list_files", args{"path": tt.path})
			must(t, err)
			must(t, os.Rename(filepath.Join(w.Root(), "d"), filepath.Join(w.Root(), "old")))
			must(t, tt.swap(w.Root()))
			if r := act(t, context.Background(), search); r.Status != tools.Failed {
				t.Errorf("search: %s %s", r.Status, r.Text)
			}
			if r := act(t, context.Background(), list); r.Status != tools.Failed && tt.path != "d/f" {
				t.Errorf("list: %s %s", r.Status, r.Text)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	content := files{}
	for i := range 100 {
		content[fmt.Sprintf("dir%02d/a rather long name of a file %d.txt", i%20, i)] = strings.Repeat("here is the needle of this line "+strings.Repeat("é", 400)+"\n", 20)
	}
	w := newWorkspace(t, content)
	for _, tt := range []struct {
		name string
		tool string
		args args
		max  int // of the option
		most int // bytes of the result
	}{
		{"search", "search", args{"query": "needle", "max_results": 1000}, 0, 8192 + reserved},
		{"small", "search", args{"query": "needle", "max_chars": 256}, 0, 256 + reserved},
		{"option", "search", args{"query": "needle", "max_chars": 32768}, 2000, 2000},
		{"list", "list_files", args{"max_entries": 5000}, 2000, 2000},
		{"files", "search", args{"query": "needle", "mode": "files", "max_results": 1000}, 2000, 2000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			action, err := plan(w, Options{MaxOutput: tt.max}, tt.tool, tt.args)
			must(t, err)
			r := act(t, context.Background(), action)
			if len(r.Text) > tt.most || len(r.Text) < tt.most/5 {
				t.Errorf("%d bytes, want at most %d and not much less:\n%s", len(r.Text), tt.most, r.Text)
			}
			if !strings.Contains(r.Text, "raise max_") {
				t.Errorf("it is not said how to go on:\n%s", r.Text)
			}
		})
	}
}

func TestContextGivesWayToMatches(t *testing.T) {
	w := newWorkspace(t, files{"a": strings.Repeat("needle\n"+strings.Repeat("filler filler filler filler filler\n", 9), 50)})
	r := call(t, w, "search", args{"query": "needle", "max_chars": 2000})
	if !strings.HasPrefix(r.Text, "50 matches in 1 file:\n") || !strings.Contains(r.Text, "Context lines: 0, to show more matches.") {
		t.Errorf("got:\n%s", r.Text)
	}
	r = call(t, w, "search", args{"query": "needle", "max_chars": 2000, "context_lines": 2})
	if !strings.HasPrefix(r.Text, "11 of 50 matches in 1 file:\n") {
		t.Errorf("context that was asked for gives way:\n%s", r.Text)
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 30<<20)
	w := newWorkspace(t, files{"min.js": "first\n" + long + " needle " + long[:100] + "é\nlast needle", "bad.txt": "\xff needle \xfe\n"})
	r := call(t, w, "search", args{"query": "needle", "context_lines": 1})
	wantText(t, r.Text, "3 matches in 2 files:\nbad.txt\n1: \uFFFD needle \uFFFD\n\nmin.js\n1- first\n2: …"+strings.Repeat("x", 190)+" needle "+strings.Repeat("x", 100)+"é\n3: last needle\n\n")
	r = call(t, w, "search", args{"query": `needle \w{3,}`, "context_lines": 0})
	if !strings.Contains(r.Text, "2: …") || !strings.Contains(r.Text, " needle xxx") {
		t.Errorf("got:\n%s", r.Text)
	}
}

// TestWindows compares a file that is read in windows with one pass over its text.
func TestWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var text strings.Builder
	for n := 1; text.Len() < 3*chunk; n++ {
		word := "plain"
		if r.IntN(4000) == 0 {
			word = "needle"
		}
		length := r.IntN(80)
		if r.IntN(2000) == 0 {
			length = r.IntN(200 << 10)
		}
		fmt.Fprintf(&text, "%d %s %s\n", n, word, strings.Repeat("y", length))
	}
	w := newWorkspace(t, files{"big.txt": text.String()})
	result := call(t, w, "search", args{"query": "needle", "max_results": 1000, "max_chars": 32768, "context_lines": 2})
	lines := strings.Split(text.String(), "\n")
	want := 0
	for _, l := range lines {
		if strings.Contains(l, "needle") {
			want++
		}
	}
	if result.Line != fmt.Sprintf("%d matches in 1 file", want) || want < 10 {
		t.Errorf("%s, want %d", result.Line, want)
	}
	shown := 0
	for _, m := range regexp.MustCompile(`(?m)^(\d+)([:-]) (\d+) (\w+)`).FindAllStringSubmatch(result.Text, -1) {
		if m[1] != m[3] || (m[2] == ":") != (m[4] == "needle") {
			t.Errorf("line %q is not what it says", m[0])
		}
		shown++
	}
	if shown < 2*want {
		t.Errorf("%d lines with context shown for %d matches:\n%s", shown, want, result.Text)
	}
}

func TestSameResultEachTime(t *testing.T) {
	root := t.TempDir()
	makeTree(t, root, 200)
	w := open(t, root, workspace.Options{})
	for _, a := range []args{{"query": "timeout"}, {"query": "e", "max_results": 7}, {"query": "err", "mode": "files"}, {"query": "(?i)FILE[0-9]", "context_lines": 5, "max_chars": 900}} {
		first := call(t, w, "search", a)
		for range 3 {
			if again := call(t, w, "search", a); again.Text != first.Text || again.Line != first.Line {
				t.Fatalf("%v: results differ:\n%s\n%s", a, first.Text, again.Text)
			}
		}
	}
}

func TestCancel(t *testing.T) {
	w := newWorkspace(t, files{"a": strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaa é\n", 400000)})
	action, err := plan(w, Options{}, "search", args{"query": `(a|aa|aaa)+[b-é]z|(a|aa)+y`})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	start := time.Now()
	if r := act(t, ctx, action); r.Status != tools.Cancelled {
		t.Errorf("status %s, want cancelled", r.Status)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("cancelling took %s", took)
	}
	list, err := plan(w, Options{}, "list_files", args{})
	must(t, err)
	if r := act(t, ctx, list); r.Status != tools.Cancelled {
		t.Errorf("list: status %s, want cancelled", r.Status)
	}
}

// stopper sets the stop flag at its first file.
type stopper struct {
	stop   *atomic.Bool
	visits atomic.Int32
	left   left
}

func (s *stopper) visit(*directory, string) { s.visits.Add(1); s.stop.Store(true) }
func (s *stopper) leftOut() *left           { return &s.left }

func TestStopEndsWorkersAndClosesDirectories(t *testing.T) {
	root := t.TempDir()
	makeTree(t, root, 500)
	descriptors := func() int {
		list, err := os.ReadDir("/dev/fd")
		must(t, err)
		return len(list)
	}
	before := descriptors()
	for range 20 {
		dir, err := openRoot(root)
		must(t, err)
		var stop atomic.Bool
		a, b := &stopper{stop: &stop}, &stopper{stop: &stop}
		(&sweep{walker: &walker{root: root}, stop: &stop}).run(task{dir: dir}, []visitor{a, b})
		if n := a.visits.Load() + b.visits.Load(); n < 1 || n > 2 {
			t.Fatalf("%d files were visited after the stop", n)
		}
	}
	if after := descriptors(); after != before {
		t.Errorf("%d descriptors are open, %d before", after, before)
	}
}

func TestGlobAndType(t *testing.T) {
	names := []string{"a.go", "a_test.go", "src/b.go", "src/lib/c.ts", "src/lib/d.tsx", "docs/x.md", "Makefile", "Dockerfile", "w{1}.txt", "src/a,b"}
	content := files{}
	for _, n := range names {
		content[n] = "x\n"
	}
	w := newWorkspace(t, content)
	for _, tt := range []struct {
		glob, typ, path string
		want            string
	}{
		{glob: "*.go", want: "a.go a_test.go src/b.go"},
		{glob: "!*.go", want: "Dockerfile Makefile docs/x.md src/a,b src/lib/c.ts src/lib/d.tsx w{1}.txt"},
		{glob: "*.{ts,tsx}", want: "src/lib/c.ts src/lib/d.tsx"},
		{glob: "*.md, *.tsx", want: "docs/x.md src/lib/d.tsx"},
		{glob: "src/**", want: "src/a,b src/b.go src/lib/c.ts src/lib/d.tsx"},
		{glob: "src/*.go", want: "src/b.go"},
		{glob: "src/lib", want: "src/lib/c.ts src/lib/d.tsx"},
		{glob: "lib/", want: "src/lib/c.ts src/lib/d.tsx"},
		{glob: "**/lib/*.ts", want: "src/lib/c.ts"},
		{glob: "lib/*.ts", path: "src", want: "src/lib/c.ts"},
		{glob: "src/lib/*.ts", path: "src", want: "src/lib/c.ts"},
		{glob: "./src/b.go", want: "src/b.go"},
		{glob: "/a.go", want: "a.go"},
		{glob: `w\{1\}.txt`, want: "w{1}.txt"},
		{glob: "w{1", want: ""},
		{glob: "[A-Z]*", want: "Dockerfile Makefile"},
		{typ: "go", want: "a.go a_test.go src/b.go"},
		{typ: ".TS", want: "src/lib/c.ts src/lib/d.tsx"},
		{typ: "make", want: "Makefile"},
		{typ: "docker", want: "Dockerfile"},
		{typ: "tsx", want: "src/lib/d.tsx"},
		{typ: "go", glob: "src/", want: "src/b.go"},
	} {
		t.Run(fmt.Sprint(tt.glob, tt.typ, tt.path), func(t *testing.T) {
			a := args{"query": "x", "mode": "files", "glob": tt.glob, "file_type": tt.typ, "path": tt.path}
			var got []string
			for line := range strings.Lines(call(t, w, "search", a).Text) {
				if line = strings.TrimSpace(line); !strings.HasSuffix(line, ":") && !strings.HasPrefix(line, "No") {
					got = append(got, line)
				}
			}
			if s := strings.Join(got, " "); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

// FuzzGlob checks that a glob argument either is refused or selects without a panic.
func FuzzGlob(f *testing.F) {
	for _, s := range []string{"*.{go,ts}", "!src/**", "{{a,b},c}", "{", "a,b", "[", "\\", "{a,{b,{c,d}}}/*"} {
		f.Add(s, "src/a.go")
	}
	f.Fuzz(func(t *testing.T, glob, path string) {
		filter, err := newFilter(glob, "", "/root", ".")
		if err != nil {
			return
		}
		filter.wants(path[strings.LastIndexByte(path, '/')+1:], path)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	w := newWorkspace(t, files{"big.log": strings.Repeat("some line of a log with text in it\n", 1<<20)})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := call(t, w, "search", args{"query": `(?i)LINE of .* text`})
	runtime.ReadMemStats(&after)
	if r.Line != "1048576 matches in 1 file" {
		t.Error(r.Line)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 8 {
		t.Errorf("%d MiB were allocated to search a file of 36 MB", used)
	}
}
