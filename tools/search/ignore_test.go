package search

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

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

func TestDirectoryFollowsNoLink(t *testing.T) {
	w := newWorkspace(t, files{"d/f": "x"})
	must(t, os.Symlink("d", filepath.Join(w.Root(), "dirlink")))
	must(t, os.Symlink("d/f", filepath.Join(w.Root(), "filelink")))
	root, err := openRoot(w.Root())
	must(t, err)
	defer root.release()
	if c, err := root.child("dirlink"); err == nil {
		c.release()
		t.Error("a link to a directory was followed")
	}
	if c, err := root.descend("dirlink"); err == nil {
		c.release()
		t.Error("a link to a directory was followed")
	}
	for _, name := range []string{"filelink", "d"} {
		if _, err := root.file(name, &unix.Stat_t{}); err == nil {
			t.Errorf("%s was opened as a file", name)
		}
	}
	if set := root.readRules("dirlink/f"); set != nil {
		t.Error("rules were read through a link")
	}
}

func TestFoundKeepsWhatCanBeShown(t *testing.T) {
	c := found{most: 10}
	for i := range 200 {
		name := fmt.Sprintf("f%03d", (i*37)%200)
		f := &fileHits{path: name, count: 30}
		for n := range c.room(name) {
			f.hits = append(f.hits, hit{number: n + 1})
		}
		c.add(f)
		if c.held > 2*c.most {
			t.Fatalf("%d hits are kept, more than twice of %d", c.held, c.most)
		}
	}
	c.trim()
	if c.total != 200 || c.matches != 6000 || len(c.files) != 10 || c.files[9].path != "f009" || len(c.files[0].hits) != 1 {
		t.Errorf("total %d, matches %d, %d files", c.total, c.matches, len(c.files))
	}
}
