package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func stamp(t testing.TB, w *Workspace, p Path) Stamp {
	t.Helper()
	s, err := w.StampOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write replaces the file at text as a tool does.
func write(t testing.TB, w *Workspace, text, content string) error {
	t.Helper()
	p, err := w.Resolve(text)
	if err != nil {
		return err
	}
	s, err := w.StampOf(p)
	if err != nil {
		return err
	}
	return w.Apply(Change{Path: p, Content: []byte(content), Expect: s})
}

// digest sums up names, modes, links and contents below dir.
func digest(t testing.TB, dir string) string {
	t.Helper()
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v\n", path, info.Mode())
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			fmt.Fprintf(h, "%x %v\n", sha256.Sum256(b), err)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(h, "%q %v\n", target, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// temps lists the temporary files below dir.
func temps(t testing.TB, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), tempPrefix) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReplaceKeeps(t *testing.T) {
	w, root := open(t, Options{})
	file := filepath.Join(root, "tool.sh")
	put(t, file, "old")
	if err := os.Chmod(file, 0o751); err != nil {
		t.Fatal(err)
	}
	owned := os.Chown(file, 1234, 4321) == nil
	attr := unix.Setxattr(file, "user.zcoder.test", []byte("kept"), 0) == nil
	if err := os.Symlink("tool.sh", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	if err := write(t, w, "link", "new"); err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, file); got != "new" {
		t.Errorf("the file holds %q", got)
	}
	if target, err := os.Readlink(filepath.Join(root, "link")); err != nil || target != "tool.sh" {
		t.Errorf("the link is %q, %v", target, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o751 {
		t.Errorf("mode is %v, want 0751", info.Mode())
	}
	if st := info.Sys().(*syscall.Stat_t); owned && (st.Uid != 1234 || st.Gid != 4321) {
		t.Errorf("owner is %d:%d, want 1234:4321", st.Uid, st.Gid)
	}
	value := make([]byte, 20)
	if n, err := unix.Getxattr(file, "user.zcoder.test", value); attr && (err != nil || string(value[:n]) != "kept") {
		t.Errorf("the attribute is %q, %v", value, err)
	}
	if !owned || !attr {
		t.Logf("not compared: owner %v, attributes %v", !owned, !attr)
	}
}

func TestNewFileMode(t *testing.T) {
	w, root := open(t, Options{})
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	for name, c := range map[string]struct{ mode, want fs.FileMode }{
		"plain":      {0, 0o640},
		"script":     {0o755, 0o750},
		"dir/script": {0o777, 0o750},
	} {
		if err := w.Apply(Change{Path: resolve(t, w, name), Content: []byte("x"), Mode: c.mode}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode() != c.want {
			t.Errorf("%s: mode %v, %v, want %v", name, info.Mode(), err, c.want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "dir")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the directory has %v, %v, want 0750", info.Mode(), err)
	}
	p := resolve(t, w, "plain")
	if err := w.Apply(Change{Path: p, Content: []byte("y"), Expect: stamp(t, w, p), Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "plain")); err != nil || info.Mode() != 0o755 {
		t.Errorf("the changed mode is %v, %v, want 0755 exactly", info.Mode(), err)
	}
}

func TestNeverWritable(t *testing.T) {
	w, root := open(t, Options{SettingsDir: ""})
	w.Close()
	settings := filepath.Join(root, "conf/zcoder")
	put(t, filepath.Join(settings, "policy.toml"), "x")
	put(t, filepath.Join(root, "readonly"), "x")
	put(t, filepath.Join(root, "rodir/x"), "x")
	put(t, filepath.Join(root, ".git/config"), "x")
	put(t, filepath.Join(root, "sub/store/config"), "x")
	put(t, filepath.Join(root, "sub/.git"), "gitdir: ./x/../store\n")
	for path, mode := range map[string]fs.FileMode{"readonly": 0o444, "rodir": 0o555} {
		if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"alias": "conf/zcoder", "gitlink": ".git", "tolink": ".git/config", ".git/away": "../plain", "rolink": "readonly"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, "plain"), "x")
	w, err := Open(root, Options{SettingsDir: filepath.Join(root, "alias")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	before := digest(t, root)
	for name, want := range map[string]string{
		".git/config":              "git's own",
		".git/hooks/new":           "git's own",
		".git":                     "git's own",
		".GIT/config":              "git's own",
		"new/.git/config":          "git's own",
		".git\u200c/config":        "git's own",
		"git~1/config":             "git's own",
		".git./config":             "git's own",
		"gitlink/config":           "git's own",
		"gitlink/new":              "git's own",
		"tolink":                   "git's own",
		".git/away":                "git's own",
		"sub/.git":                 "git's own",
		"sub/store/config":         "repository that",
		"sub/store/hooks/x":        "repository that",
		"conf/zcoder/policy.toml":  "settings directory",
		"conf/zcoder/new":          "settings directory",
		"conf/ZCODER/new":          "settings directory",
		"alias/policy.toml":        "settings directory",
		"readonly":                 "read-only",
		"rolink":                   "read-only",
		"rodir/x":                  "read-only",
		"rodir/new/x":              "read-only",
		"sub":                      "is a directory",
		".":                        "is a directory",
		".zcoder-tmp-x":            "temporary",
		".ZCODER-TMP-0123":         "temporary",
		"sub/.zcoder-tmp-01234567": "temporary",
	} {
		p := resolve(t, w, name)
		_, err := p.WriteReasons()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", name, err, want)
		}
		s, _ := w.StampOf(p)
		if err := w.Apply(Change{Path: p, Content: []byte("evil"), Expect: s}); err == nil {
			t.Errorf("%q was written", name)
		}
		if err := w.Apply(Change{Path: p, Remove: true, Expect: s}); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	if digest(t, root) != before {
		t.Error("the workspace changed")
	}
}

func TestReasons(t *testing.T) {
	w, root := open(t, Options{})
	w.Close()
	put(t, filepath.Join(root, "plain"), "x")
	put(t, filepath.Join(root, "config/app"), "x")
	put(t, filepath.Join(root, "two"), "x")
	put(t, filepath.Join(root, "setid"), "x")
	put(t, filepath.Join(root, "conf/zcoder/x"), "x")
	put(t, filepath.Join(root, "bare/HEAD"), "x")
	put(t, filepath.Join(root, "bare/refs/x"), "x")
	if err := os.Chmod(filepath.Join(root, "setid"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(root, "two"), filepath.Join(root, "one")); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{".env": "plain", ".envrc": "config/app", "innocent": ".netrc"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(root, ".netrc"), "x")
	w, err := Open(root, Options{SettingsDir: filepath.Join(root, "conf/zcoder")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct{ name, read, write string }{
		{"plain", "", ""},
		{"new/file", "", ""},
		{"two", "2 hard links", "2 hard links"},
		{".env", "environment file", ""},
		{"innocent", "credential file", ""},
		{".envrc", "environment file", "environment loader"},
		{"new/.mcp.json", "", "MCP"},
		{"conf/zcoder/x", "settings directory", "-"},
		{"conf/zcoder", "settings directory", "-"},
		{"conf", "", "-"},
		{"setid", "", "setuid"},
		{"bare/config", "", `git takes "bare" for a repository`},
		{"bare/objects/x", "", `git takes "bare" for a repository`},
		{"esc\x1b[2J", "", "cannot be seen"},
		{"zero\u200bwidth", "", "cannot be seen"},
	} {
		p := resolve(t, w, c.name)
		if got := strings.Join(p.ReadReasons(), "; "); (got == "") != (c.read == "") || !strings.Contains(got, c.read) {
			t.Errorf("%q: reading: %q, want %q", c.name, got, c.read)
		}
		reasons, err := p.WriteReasons()
		if got := strings.Join(reasons, "; "); c.write != "-" && (err != nil || (got == "") != (c.write == "") || !strings.Contains(got, c.write)) {
			t.Errorf("%q: writing: %q (%v), want %q", c.name, got, err, c.write)
		} else if c.write == "-" && err == nil {
			t.Errorf("%q: writing is no error", c.name)
		}
	}
}

func TestSetuidIsDropped(t *testing.T) {
	w, root := open(t, Options{})
	put(t, filepath.Join(root, "x"), "old")
	if err := os.Chmod(filepath.Join(root, "x"), 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if err := write(t, w, "x", "new"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(root, "x")); err != nil || info.Mode() != 0o755 {
		t.Errorf("mode is %v, %v, want 0755", info.Mode(), err)
	}
	if err := w.Apply(Change{Path: resolve(t, w, "y"), Mode: 0o755 | fs.ModeSetuid}); err == nil {
		t.Error("a new setuid file was made")
	}
}

func TestSettingsAroundRoot(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "skills/x/SKILL.md"), "x")
	w, err := Open(filepath.Join(dir, "skills"), Options{SettingsDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p := resolve(t, w, "x/SKILL.md")
	if _, err := p.WriteReasons(); err == nil || len(p.ReadReasons()) == 0 {
		t.Errorf("the settings are open: %v, %v", err, p.ReadReasons())
	}
}

func TestApplyIsAllOrNone(t *testing.T) {
	w, root := open(t, Options{Journal: filepath.Join(t.TempDir(), "j")})
	for _, name := range []string{"a", "b", "c", "blocked"} {
		put(t, filepath.Join(root, name), "old "+name)
	}
	before := digest(t, root)
	change := func(name string) Change {
		p := resolve(t, w, name)
		return Change{Path: p, Content: []byte("new"), Expect: stamp(t, w, p)}
	}
	remove := func(name string) Change {
		c := change(name)
		c.Remove, c.Content = true, nil
		return c
	}
	stale := func(name string) Change {
		c := change(name)
		c.Expect.Sum[0]++
		return c
	}
	for name, changes := range map[string][]Change{
		"a stale file":      {change("a"), change("x/y/new"), stale("b")},
		"a file in its way": {change("a"), remove("b"), change("x/y/new"), {Path: resolve(t, w, "x/y/new/z"), Content: []byte("n")}},
		"a file twice":      {change("a"), change("a")},
		"a missing file":    {change("a"), {Path: resolve(t, w, "none"), Remove: true}},
		"an existing file":  {change("a"), {Path: resolve(t, w, "b"), Content: []byte("n")}},
		"a git file":        {change("a"), change(".git/x")},
		"a setuid mode":     {change("a"), {Path: resolve(t, w, "n"), Mode: fs.ModeSetuid | 0o755}},
		"no workspace":      {change("a"), {}},
	} {
		if err := w.Apply(changes...); err == nil {
			t.Errorf("%s: applied", name)
		}
		if got := digest(t, root); got != before {
			t.Fatalf("%s: the workspace changed", name)
		}
	}
	if err := w.Apply(change("a"), remove("b"), change("x/y/new")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("b is still there")
	}
	if contentOf(t, filepath.Join(root, "a")) != "new" || contentOf(t, filepath.Join(root, "x/y/new")) != "new" {
		t.Error("a or new was not written")
	}
	if left := temps(t, root); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestRollBack makes a late change fail after early ones were made.
func TestRollBack(t *testing.T) {
	w, root := open(t, Options{})
	for _, name := range []string{"a", "b", "d/c"} {
		put(t, filepath.Join(root, name), "old "+name)
	}
	before := digest(t, root)
	var list []*pending
	for i, name := range []string{"a", "b", "new/x", "d/c"} {
		p := resolve(t, w, name)
		c := Change{Path: p, Content: []byte("new"), Expect: stamp(t, w, p), Remove: i == 1}
		list = append(list, &pending{Change: c, name: filepath.Base(name)})
	}
	if err := w.stageAll(list); err != nil {
		t.Fatal(err)
	}
	list[3].temp = "gone" // what the last rename needs is not there
	err := w.commitAll(list)
	if err == nil {
		t.Fatal("the commit succeeded")
	}
	if contentOf(t, filepath.Join(root, "a")) != "new" {
		t.Error("the test does not get as far as it should")
	}
	err = errors.Join(rollBack(list, err), w.tidy(list))
	if strings.Contains(err.Error(), "taken back") {
		t.Errorf("rolled back with %v", err)
	}
	for _, left := range temps(t, root) { // the temporary file that the test hid
		os.Remove(left)
	}
	if digest(t, root) != before {
		t.Error("the workspace changed")
	}
}

func TestRollBackSaysWhatIsLeft(t *testing.T) {
	w, root := open(t, Options{})
	put(t, filepath.Join(root, "a"), "old")
	p := resolve(t, w, "a")
	list := []*pending{{Change: Change{Path: p, Expect: stamp(t, w, p)}, name: "a"}}
	if err := w.stageAll(list); err != nil {
		t.Fatal(err)
	}
	if err := w.commitAll(list); err != nil {
		t.Fatal(err)
	}
	err := rollBack(list, errors.New("late failure"))
	if want := `late failure; these changes were made and could not be taken back: "a"`; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if err := w.tidy(list); err != nil {
		t.Error(err)
	}
}

func TestChangedUnderneath(t *testing.T) {
	w, root := open(t, Options{})
	outside := t.TempDir()
	put(t, filepath.Join(outside, "f"), "outside")
	for name, swap := range map[string]func(t *testing.T, dir string) error{
		"content": func(t *testing.T, dir string) error {
			return os.WriteFile(filepath.Join(dir, "f"), []byte("olD"), 0o644)
		},
		"identity": func(t *testing.T, dir string) error {
			put(t, filepath.Join(dir, "g"), "old")
			return os.Rename(filepath.Join(dir, "g"), filepath.Join(dir, "f"))
		},
		"mode": func(t *testing.T, dir string) error { return os.Chmod(filepath.Join(dir, "f"), 0o444) },
		"gone": func(t *testing.T, dir string) error { return os.Remove(filepath.Join(dir, "f")) },
		"hard link": func(t *testing.T, dir string) error {
			return os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g"))
		},
		"link": func(t *testing.T, dir string) error {
			os.Remove(filepath.Join(dir, "f"))
			return os.Symlink(filepath.Join(outside, "f"), filepath.Join(dir, "f"))
		},
		"FIFO": func(t *testing.T, dir string) error {
			os.Remove(filepath.Join(dir, "f"))
			return syscall.Mkfifo(filepath.Join(dir, "f"), 0o644)
		},
		"parent link": func(t *testing.T, dir string) error {
			if err := os.Rename(dir, dir+".moved"); err != nil {
				return err
			}
			return os.Symlink(outside, dir)
		},
		"parent link inside": func(t *testing.T, dir string) error {
			if err := os.Rename(dir, dir+".moved"); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(dir)+".moved", dir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(root, strings.ReplaceAll(name, " ", ""))
			put(t, filepath.Join(dir, "f"), "old")
			p := resolve(t, w, filepath.Base(dir)+"/f")
			fresh := resolve(t, w, filepath.Base(dir)+"/new/file")
			s := stamp(t, w, p)
			if err := swap(t, dir); err != nil {
				t.Fatal(err)
			}
			before := digest(t, outside)
			if err := w.Apply(Change{Path: p, Content: []byte("new"), Expect: s}); err == nil {
				t.Error("the changed file was replaced")
			}
			b, _, err := w.Read(p, 100)
			if err == nil && string(b) == "outside" {
				t.Error("the outside file was read")
			}
			if (name == "identity" || name == "hard link") && !errors.Is(err, ErrChanged) {
				t.Errorf("another file is read: %q, %v", b, err)
			}
			if err := w.Apply(Change{Path: fresh, Content: []byte("new")}); err == nil && strings.HasPrefix(name, "parent") {
				t.Error("a file was made through a link")
			}
			if digest(t, outside) != before {
				t.Error("the outside changed")
			}
		})
	}
}

// TestSwaps replaces a directory and a file by links to the outside and to .git, and
// back, over and over, while the workspace reads and writes there.
func TestSwaps(t *testing.T) {
	root, outside := fastDir(t), fastDir(t)
	w, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put(t, filepath.Join(outside, "f"), "outside")
	put(t, filepath.Join(outside, "sub/g"), "outside")
	put(t, filepath.Join(root, "real/f"), "inside")
	put(t, filepath.Join(root, "real/sub/g"), "inside")
	git := filepath.Join(root, ".git")
	put(t, filepath.Join(git, "f"), "git")
	put(t, filepath.Join(git, "sub/g"), "git")
	before := digest(t, outside) + digest(t, git)
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		dir, file := filepath.Join(root, "real"), filepath.Join(root, "real/f")
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Rename(dir, dir+"2")
			os.Symlink(outside, dir)
			os.Remove(dir)
			os.Symlink(".git", dir)
			os.Remove(dir)
			os.Rename(dir+"2", dir)
			os.Rename(file, file+"2")
			os.Symlink(filepath.Join(outside, "f"), file)
			os.Remove(file)
			os.Rename(file+"2", file)
		}
	})
	rounds, landed, seen := 300, 0, 0
	if testing.Short() {
		rounds = 100
	}
	for i := range rounds {
		for _, name := range []string{"real/f", "real/sub/g", "real/new/h"} {
			p, err := w.Resolve(name)
			if err != nil {
				continue
			}
			content, _, err := w.Read(p, 1000)
			if bytes.Contains(content, []byte("outside")) {
				t.Fatalf("round %d read %s outside", i, name)
			}
			if err == nil {
				seen++
			}
			if s, err := w.StampOf(p); err == nil && w.Apply(Change{Path: p, Content: []byte("inside"), Expect: s}) == nil {
				landed++
			}
		}
	}
	close(stop)
	swapper.Wait()
	t.Logf("of %d attempts each, %d reads and %d writes landed", 3*rounds, seen, landed)
	if digest(t, outside)+digest(t, git) != before {
		t.Error("the outside, or .git, changed")
	}
	if landed == 0 || seen == 0 {
		t.Error("nothing landed: the test proves nothing")
	}
}

func TestParts(t *testing.T) {
	w, root := open(t, Options{})
	put(t, filepath.Join(root, "f"), "abc")
	p := resolve(t, w, "f")
	err := w.Apply(Change{Path: p, Parts: [][]byte{[]byte("a"), nil, []byte("XY")}, Expect: stamp(t, w, p)})
	if got := contentOf(t, filepath.Join(root, "f")); err != nil || got != "aXY" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestConcurrentWriters lets many goroutines count in one file; each success must
// have seen the one before.
func TestConcurrentWriters(t *testing.T) {
	root := fastDir(t)
	w, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put(t, filepath.Join(root, "n"), "")
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for range 8 {
		wg.Go(func() {
			for range 10 {
				p, err := w.Resolve("n")
				if err != nil {
					continue
				}
				content, s, err := w.Read(p, 1000)
				if err != nil {
					continue
				}
				if w.Apply(Change{Path: p, Content: append(content, 'x'), Expect: s}) == nil {
					mu.Lock()
					done++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if got := len(contentOf(t, filepath.Join(root, "n"))); got != done || done == 0 {
		t.Errorf("%d writes landed, the file counts %d", done, got)
	}
}

func TestReadDirHidesTemps(t *testing.T) {
	w, root := open(t, Options{})
	for _, name := range []string{"b", "a", ".zcoder-tmp-0123456789abcdef", "c/d"} {
		put(t, filepath.Join(root, name), "x")
	}
	entries, err := w.ReadDir(resolve(t, w, "."))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "a b c" {
		t.Errorf("got %q", got)
	}
	if _, err := w.ReadDir(resolve(t, w, "a")); err == nil {
		t.Error("a file lists")
	}
}

const ownerRoot = "ZCODER_TEST_OWNER_ROOT"

// TestOwnerProcess replaces a file of another user as an ordinary one.
func TestOwnerProcess(t *testing.T) {
	root := os.Getenv(ownerRoot)
	if root == "" {
		t.Skip("only runs as a child of TestOwner")
	}
	w, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	reasons, err := resolve(t, w, "of-root").WriteReasons()
	if got := strings.Join(reasons, "; "); err != nil || !strings.Contains(got, "owner (user 0, group 0) is not kept") {
		t.Errorf("reasons %q, %v", got, err)
	}
	if reasons, err := resolve(t, w, "mine").WriteReasons(); err != nil || len(reasons) > 0 {
		t.Errorf("reasons %q, %v", reasons, err)
	}
	for _, name := range []string{"of-root", "mine"} {
		if err := write(t, w, name, "new"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	const nobody = 65534
	root := fastDir(t)
	for _, name := range []string{"of-root", "mine"} {
		put(t, filepath.Join(root, name), "old")
	}
	program := filepath.Join(root, "program")
	binary, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skipf("cannot copy the test program: %v", err)
	}
	err = errors.Join(os.Chown(filepath.Join(root, "mine"), nobody, nobody), os.Chmod(root, 0o777), os.WriteFile(program, binary, 0o755))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^TestOwnerProcess$", "-test.v")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), ownerRoot+"="+root)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("SKIP")) {
		t.Errorf("%v\n%s", err, out)
	}
}
