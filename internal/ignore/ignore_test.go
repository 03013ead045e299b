package ignore

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestIgnored(t *testing.T) {
	tests := []struct {
		name, root, sub string // files in "" and in "sub"
		path            string
		isDir, want     bool
	}{
		{name: "plain name at any depth", root: "x", path: "sub/x", want: true},
		{name: "directory rule and a file", root: "x/", path: "x", want: false},
		{name: "directory rule and a directory", root: "x/", path: "x", isDir: true, want: true},
		{name: "later rule decides", root: "*.o\n!a.o", path: "a.o", want: false},
		{name: "deeper file decides", root: "*.o", sub: "!*.o", path: "sub/a.o", want: false},
		{name: "anchored", root: "/x", path: "sub/x", want: false},
		{name: "anchored in its own directory", sub: "/x", path: "sub/x", want: true},
		{name: "comment", root: "#x", path: "#x", want: false},
		{name: "escaped", root: `\#x`, path: "#x", want: true},
		{name: "two stars", root: "a/**/z", path: "a/b/c/z", want: true},
		{name: "malformed", root: "a[", path: "a[", want: false},
		{name: "carriage return", root: "x\r\n", path: "x", want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chain := (*Chain)(nil).With(Parse("", tt.root))
			if path.Dir(tt.path) == "sub" {
				chain = chain.With(Parse("sub", tt.sub))
			}
			if got := chain.Ignored(path.Base(tt.path), tt.path, tt.isDir); got != tt.want {
				t.Errorf("ignored: %v, want %v", got, tt.want)
			}
		})
	}
}

// rulesTable pairs an ignore file with the entries that it ignores, of those listed
// in rulesEntries.
var rulesTable = []struct{ rules, ignored string }{
	{"*.log", "a.log d/a.log d/e/a.log"},
	{"*.log\n!d/*.log", "a.log d/e/a.log"},
	{"*.log\n!/d/\n!a.log", ""},
	{"/a.log", "a.log"},
	{"d/a.log", "d/a.log"},
	{"e", "d/e d/e/a.log d/e/f d/e/f/x"},
	{"e/", "d/e d/e/a.log d/e/f d/e/f/x"},
	{"f/", "d/e/f d/e/f/x"},
	{"x/", ""},
	{"d/e", "d/e d/e/a.log d/e/f d/e/f/x"},
	{"**/f", "d/e/f d/e/f/x"},
	{"d/**", "d/a.log d/e d/e/a.log d/e/f d/e/f/x"},
	{"d/**/x", "d/e/f/x"},
	{"d/**/a.log", "d/a.log d/e/a.log"},
	{"d/*/a.log", "d/e/a.log"},
	{"d**/x", "d/e/f/x"},
	{"/**x", "foox"},
	{"[d]**/f", ""},
	{"?.log", "a.log d/a.log d/e/a.log"},
	{"[!b].log", "a.log d/a.log d/e/a.log"},
	{"[a-c][.]log", "a.log d/a.log d/e/a.log"},
	{"[[:lower:]].log", "a.log d/a.log d/e/a.log"},
	{"foo\\x", "foox"},
	{"\\#c\n#c", "#c"},
	{"\\!n", "!n"},
	{"sp\\ ", "sp "},
	{"sp  ", "sp"},
	{"sp\t", ""},
	{"foox\r\n", "foox"},
	{"foox\\", ""},
	{"[foo", ""},
	{"d/*\n!d/e", "d/a.log"},
	{"/*\n!/d", "!n #c a.log foox sp sp\u00a0"},
	{"d/e/**/x\n!x", ""},
	{"\xef\xbb\xbffoox", "foox"},
	{"fo*x", "foox"},
	{"d*x", ""},
	{"d/*x", ""},
	{"*/x", ""},
	{"*/*/*/x", "d/e/f/x"},
}

func rulesEntries() []string {
	return []string{"!n", "#c", "a.log", "d/", "d/a.log", "d/e/", "d/e/a.log", "d/e/f/", "d/e/f/x", "foox", "sp", "sp "}
}

func TestIgnoreRules(t *testing.T) {
	root := t.TempDir()
	for _, e := range rulesEntries() {
		if strings.HasSuffix(e, "/") {
			must(t, os.Mkdir(filepath.Join(root, e), 0o700))
			continue
		}
		must(t, os.WriteFile(filepath.Join(root, e), nil, 0o600))
	}
	_, err := exec.LookPath("git")
	if err == nil {
		must(t, exec.Command("git", "init", "-q", root).Run())
	}
	for _, tt := range rulesTable {
		t.Run(fmt.Sprintf("%q", tt.rules), func(t *testing.T) {
			got := strings.Join(ourIgnored(rulesEntries(), map[string]string{"": tt.rules}, ""), " ")
			if want := strings.ReplaceAll(tt.ignored, "\u00a0", " "); got != want {
				t.Errorf("ignored: %q, want %q", got, want)
			}
			if err != nil {
				return
			}
			must(t, os.WriteFile(filepath.Join(root, ".gitignore"), []byte(tt.rules), 0o600))
			git := gitIgnored(t, root, rulesEntries())
			slices.Sort(git)
			if want := strings.Join(git, " "); got != want {
				t.Errorf("git ignores %q, we %q", want, got)
			}
		})
	}
}

func TestFromPatterns(t *testing.T) {
	tests := []struct {
		name, pattern, path string
		want, ok            bool
	}{
		{"a hash is a name", "#x", "#x", true, true},
		{"blanks count", "x ", "x ", true, true},
		{"a path from the base", "a/x", "d/a/x", true, true},
		{"nothing", "/", "x", false, true},
		{"malformed", "x[", "x[", false, false},
		{"ends in a backslash", `x\`, "x", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rules, ok := FromPatterns("d", []string{tt.pattern})
			if got := (*Chain)(nil).With(rules).Ignored(path.Base(tt.path), "d/"+strings.TrimPrefix(tt.path, "d/"), false); got != tt.want || ok != tt.ok {
				t.Errorf("selects %v, well-formed %v", got, ok)
			}
		})
	}
}

// FuzzIgnored: any text is read and any question answered, in bounded time, a chain
// of an empty file answers like no chain, and a plain name ignores exactly itself.
func FuzzIgnored(f *testing.F) {
	f.Add("*.o\n!a.o\n", "a/b.o", false)
	f.Add("a/**/b\n[[:alpha:]]/\n", "a/x/b", true)
	f.Add("\\\n[\n***/\n", "", false)
	for _, s := range []string{"*.log\n!a.log\n/x/\n", "**/a/**/b\n", "[!a-]x\n[[:alpha:]]\\\n", "a\\ \r\n#c\n\\#c", "\xef\xbb\xbf*a*b*c*d*e*f*g*h\n", "*/*/**/**/x**y"} {
		f.Add(s, "a/b/c.log", true)
	}
	f.Fuzz(func(t *testing.T, text, full string, isDir bool) {
		if len(text) > 200 || len(full) > 200 {
			return
		}
		name := full[strings.LastIndexByte(full, '/')+1:]
		chain := (*Chain)(nil).With(Parse("", text))
		got := chain.Ignored(name, full, isDir)
		if again := chain.With(Parse("", "# nothing\n")).Ignored(name, full, isDir); again != got {
			t.Errorf("%v, then %v", got, again)
		}
		if name == "" || strings.ContainsAny(name, wildcards+"\n\r\x00!# ") {
			return
		}
		plain := (*Chain)(nil).With(Parse("", name))
		if plain.Judge(name, full, isDir) != Ignored || plain.Judge(name+"x", full+"x", isDir) != Silent {
			t.Errorf("the rule %q does not stand for itself", name)
		}
	})
}
