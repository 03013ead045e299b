package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRanksOfIgnoreFiles(t *testing.T) {
	w := newWorkspace(t, files{
		".git/info/exclude": "by-exclude\nkept-by-git\n",
		".gitignore":        "!kept-by-git\nby-git\n",
		".ignore":           "!kept-by-ignore\nby-ignore\n",
		"d/.gitignore":      "kept-by-ignore\n!by-ignore\n!by-git\n",
		"d/by-exclude":      "", "d/kept-by-git": "", "d/by-git": "", "d/by-ignore": "", "d/kept-by-ignore": "",
	})
	r := call(t, w, "list_files", args{"path": "d"})
	if want := "d/by-git\nd/kept-by-git\nd/kept-by-ignore\n"; !strings.HasPrefix(r.Text, want) {
		t.Errorf("got %s, want %s", r.Text, want)
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
