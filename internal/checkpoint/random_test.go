package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// image is a plain copy of a tree: what the tests hold undo against.
type image map[string]string

// imageOf reads a tree without this package. What is never restored is left out.
func imageOf(t testing.TB, root string) image {
	t.Helper()
	m := image{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if e.Name() == ".git" {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case rel == ".":
			return nil
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(content)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + target
		}
		m[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// differ lists what is not the same in two images.
func (m image) differ(o image) []string {
	var list []string
	for path, text := range m {
		if other, ok := o[path]; !ok {
			list = append(list, fmt.Sprintf("%q is missing, was %.60q", path, text))
		} else if other != text {
			list = append(list, fmt.Sprintf("%q is %.60q, was %.60q", path, other, text))
		}
	}
	for path, text := range o {
		if _, ok := m[path]; !ok {
			list = append(list, fmt.Sprintf("%q is there: %.60q", path, text))
		}
	}
	slices.Sort(list)
	return list
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openKeeper opens checkpoints of root and closes them at the end.
func openKeeper(t testing.TB, o Options) *Keeper {
	t.Helper()
	if o.Session == "" {
		o.Session = "s"
	}
	k, err := Open(context.Background(), o)
	must(t, err)
	t.Cleanup(func() { must(t, k.Close()) })
	return k
}

// tempRoot returns a canonical directory.
func tempRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	return root
}

// quickDir returns a directory in memory where there is one: what the tests do
// would else wait for the disk most of the time.
func quickDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "zcoder-test-")
	if err != nil {
		return tempRoot(t)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// act does one turn with a change in the middle.
func act(t testing.TB, k *Keeper, label string, change func()) Changes {
	t.Helper()
	ctx := context.Background()
	_, err := k.Turn(ctx, label)
	must(t, err)
	must(t, k.Ready(ctx))
	change()
	c, err := k.After(ctx)
	must(t, err)
	return c
}

// vandal changes a tree at random.
type vandal struct {
	*rand.Rand
	t    testing.TB
	root string
}

var oddNames = []string{
	"a", "b", "c.txt", "sp ace", "new\nline", "\xff\xfe", "-rf", "é", "e\u0301", ".hidden", "a.b", "a-b", "a0", "*", "'q'", "\"", "\\", "CON", "x\x1b[31m", strings.Repeat("n", 255),
}

// dirs and entries list the tree as it is.
func (v *vandal) list() (dirs, entries []string) {
	dirs = []string{"."}
	must(v.t, filepath.WalkDir(v.root, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(v.root, path)
		if err != nil || rel == "." {
			return err
		}
		entries = append(entries, rel)
		if e.IsDir() {
			dirs = append(dirs, rel)
		}
		return nil
	}))
	return dirs, entries
}

func (v *vandal) pick(list []string) string { return list[v.IntN(len(list))] }

func (v *vandal) content() []byte {
	switch v.IntN(5) {
	case 0:
		return nil
	case 1: // binary
		b := make([]byte, v.IntN(3000))
		for i := range b {
			b[i] = byte(v.Uint32())
		}
		return b
	case 2: // the same now and then
		return []byte("same\n")
	}
	return bytes.Repeat([]byte(fmt.Sprintf("line %d\n", v.IntN(1000))), 1+v.IntN(50))
}

// turn makes some random changes.
func (v *vandal) turn() {
	for range 1 + v.IntN(6) {
		dirs, entries := v.list()
		fresh := filepath.Join(v.root, v.pick(dirs), v.pick(oddNames))
		if len(entries) == 0 || len(entries) < 60 && v.IntN(3) == 0 {
			v.create(fresh)
			continue
		}
		v.change(filepath.Join(v.root, v.pick(entries)), fresh)
	}
}

func (v *vandal) create(path string) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	switch v.IntN(8) {
	case 0:
		must(v.t, os.Mkdir(path, 0o755))
	case 1: // deep
		deep := filepath.Join(path, "d", "e", "f")
		must(v.t, os.MkdirAll(deep, 0o750))
		must(v.t, os.WriteFile(filepath.Join(deep, "g"), v.content(), 0o600))
	case 2:
		must(v.t, os.Symlink(v.pick([]string{"a", "nowhere", "/etc", ".", "..", "sp ace"}), path))
	default:
		must(v.t, os.WriteFile(path, v.content(), 0o644))
		must(v.t, os.Chmod(path, fs.FileMode(v.IntN(0o1000))))
	}
}

func (v *vandal) change(path, fresh string) {
	info, err := os.Lstat(path)
	must(v.t, err)
	isLink := info.Mode()&fs.ModeSymlink != 0
	switch op := v.IntN(7); {
	case op == 0:
		must(v.t, os.RemoveAll(path))
	case op == 1:
		if _, err := os.Lstat(fresh); err != nil && !strings.HasPrefix(fresh, path) {
			must(v.t, os.Rename(path, fresh))
		}
	case op == 2 && !isLink:
		must(v.t, os.Chmod(path, []fs.FileMode{0o600, 0o644, 0o755, 0o777, 0o700, 0o444, 0o4755, 0o000}[v.IntN(8)]))
	case op == 3: // something of another kind takes its place
		must(v.t, os.RemoveAll(path))
		v.create(path)
	case op == 4 && info.Mode().IsRegular(): // as editors do
		must(v.t, os.Remove(path))
		must(v.t, os.WriteFile(path, v.content(), info.Mode().Perm()))
	case info.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND*v.IntN(2), 0)
		must(v.t, err)
		_, err = f.Write(v.content())
		must(v.t, err)
		must(v.t, f.Close())
	}
}

// TestRandomTurns changes a tree at random and holds each undo and redo against plain
// copies.
func TestRandomTurns(t *testing.T) {
	turns := 500
	if testing.Short() {
		turns = 60
	}
	root, ctx := quickDir(t), context.Background()
	v := &vandal{rand.New(rand.NewPCG(11, 7)), t, root}
	k := openKeeper(t, Options{Store: quickDir(t), Root: root})
	k.Begin(ctx)
	var before []image // at the beginning of each turn that can be undone
	for i := range turns {
		label := fmt.Sprint("turn ", i)
		state := imageOf(t, root)
		c := act(t, k, label, v.turn)
		if len(c.Files) == 0 {
			if d := state.differ(imageOf(t, root)); len(d) > 0 {
				t.Fatalf("%s: no change was seen, but %q", label, d)
			}
		} else {
			before = append(before, state)
		}
		if v.IntN(3) != 0 || len(before) == 0 {
			continue
		}
		n := 1 + v.IntN(min(3, len(before)))
		now := imageOf(t, root)
		r, err := k.Undo(ctx, n, false)
		if err != nil || len(r.Left) > 0 {
			t.Fatalf("%s: undo %d: %v, left %q, others %q", label, n, err, r.Left, r.Others)
		}
		want := before[len(before)-n]
		if d := want.differ(imageOf(t, root)); len(d) > 0 {
			t.Fatalf("%s: after undo %d: %s", label, n, strings.Join(d, "\n"))
		}
		if v.IntN(2) == 0 {
			before = before[:len(before)-n]
			continue
		}
		if r, err = k.Redo(ctx, false); err != nil || len(r.Left) > 0 {
			t.Fatalf("%s: redo: %v, left %q", label, err, r.Left)
		}
		if d := now.differ(imageOf(t, root)); len(d) > 0 {
			t.Fatalf("%s: after redo: %s", label, strings.Join(d, "\n"))
		}
	}
}
