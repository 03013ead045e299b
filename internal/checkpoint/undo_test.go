package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"zcoder/internal/diff"
)

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// startTree opens checkpoints of a small tree.
func startTree(t testing.TB, o Options) (*Keeper, string) {
	t.Helper()
	root := quickDir(t)
	write(t, root+"/a.txt", "one\ntwo\n")
	write(t, root+"/dir/b.txt", "b\n")
	write(t, root+"/dir/deep/c.bin", "\x00\x01\xff")
	must(t, os.Symlink("a.txt", root+"/link"))
	must(t, os.Mkdir(root+"/empty", 0o700))
	o.Root = root
	if o.Store == "" {
		o.Store = quickDir(t)
	}
	k := openKeeper(t, o)
	k.Begin(context.Background())
	return k, root
}

// say lists changes in a form that is easy to read.
func say(list []Change) []string {
	var out []string
	for _, c := range list {
		s := string(c.What) + " " + c.Path
		if c.From != "" {
			s += " from " + c.From
		}
		if c.Unkept != "" {
			s += " (" + c.Unkept + ")"
		}
		out = append(out, s)
	}
	return out
}

func undo(t testing.TB, k *Keeper, n int, force bool) Report {
	t.Helper()
	r, err := k.Undo(context.Background(), n, force)
	must(t, err)
	if len(r.Left) > 0 {
		t.Fatalf("left: %q", r.Left)
	}
	return r
}

func TestChangesAndUndo(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, root string)
		want []string
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"content", func(t *testing.T, root string) { write(t, root+"/a.txt", "1\n") }, []string{"modified a.txt"}},
		{"same size in the same moment", func(t *testing.T, root string) {
			for i := range 100 {
				write(t, root+"/a.txt", fmt.Sprintf("%7d\n", i))
			}
		}, []string{"modified a.txt"}},
		{"mode", func(t *testing.T, root string) { must(t, os.Chmod(root+"/a.txt", 0o4711)) }, []string{"mode a.txt"}},
		{"mode of a directory", func(t *testing.T, root string) { must(t, os.Chmod(root+"/dir", 0o500)) }, []string{"mode dir"}},
		{"deleted", func(t *testing.T, root string) { must(t, os.RemoveAll(root+"/dir")) },
			[]string{"deleted dir", "deleted dir/b.txt", "deleted dir/deep", "deleted dir/deep/c.bin"}},
		{"renamed", func(t *testing.T, root string) { must(t, os.Rename(root+"/a.txt", root+"/dir/z.txt")) },
			[]string{"renamed dir/z.txt from a.txt"}},
		{"renamed directory", func(t *testing.T, root string) { must(t, os.Rename(root+"/dir", root+"/dir2")) },
			[]string{"deleted dir", "deleted dir/deep", "created dir2", "renamed dir2/b.txt from dir/b.txt", "created dir2/deep", "renamed dir2/deep/c.bin from dir/deep/c.bin"}},
		{"empty directories", func(t *testing.T, root string) {
			must(t, os.Remove(root+"/empty"))
			must(t, os.MkdirAll(root+"/new/deep", 0o755))
		}, []string{"deleted empty", "created new", "created new/deep"}},
		{"link", func(t *testing.T, root string) {
			must(t, os.Remove(root+"/link"))
			must(t, os.Symlink("/etc", root+"/link"))
		}, []string{"modified link"}},
		{"file becomes a directory and a directory a file", func(t *testing.T, root string) {
			must(t, os.Remove(root+"/a.txt"))
			write(t, root+"/a.txt/inside", "x")
			must(t, os.RemoveAll(root+"/dir"))
			write(t, root+"/dir", "x")
		}, []string{"modified a.txt", "created a.txt/inside", "modified dir", "deleted dir/b.txt", "deleted dir/deep", "deleted dir/deep/c.bin"}},
		{"directory becomes a link to one outside", func(t *testing.T, root string) {
			must(t, os.RemoveAll(root+"/dir"))
			must(t, os.Symlink("/etc", root+"/dir"))
		}, []string{"modified dir", "deleted dir/b.txt", "deleted dir/deep", "deleted dir/deep/c.bin"}},
		{"large", func(t *testing.T, root string) { write(t, root+"/big", strings.Repeat("0123456789abcdef", 1<<18)) },
			[]string{"created big"}},
		{"names that git folds", func(t *testing.T, root string) { write(t, root+"/.GIT/config", "x"); write(t, root+"/.gitignore", "*") },
			[]string{"created .gitignore"}},
		{"temporary files", func(t *testing.T, root string) { write(t, root+"/.zcoder-tmp-0123456789abcdef", "x") }, nil},
		{"FIFO", func(t *testing.T, root string) { must(t, syscall.Mkfifo(root+"/fifo", 0o644)) },
			[]string{"created fifo (a FIFO, socket or device)"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k, root := startTree(t, Options{})
			before := imageOf(t, root)
			c := act(t, k, tt.name, func() { tt.do(t, root) })
			if got := say(c.Files); !slices.Equal(got, tt.want) {
				t.Errorf("changes %q, want %q", got, tt.want)
			}
			after := imageOf(t, root)
			r, err := k.Undo(context.Background(), 1, false)
			if len(tt.want) == 0 {
				if !errors.Is(err, ErrNothing) {
					t.Errorf("undo of nothing: %v", err)
				}
				return
			}
			must(t, err)
			for _, c := range c.Files {
				if c.Unkept != "" {
					if len(r.Left) != 1 || r.Left[0].Path != c.Path {
						t.Errorf("left %q", r.Left)
					}
					return
				}
			}
			delete(before, ".GIT") // never touched, so it is still there
			now := imageOf(t, root)
			delete(now, ".GIT")
			delete(now, ".GIT/config")
			if d := before.differ(now); len(d) > 0 || len(r.Left) > 0 {
				t.Fatalf("after undo: %q, left %q", d, r.Left)
			}
			_, err = k.Redo(context.Background(), false)
			must(t, err)
			if d := after.differ(imageOf(t, root)); len(d) > 0 {
				t.Errorf("after redo: %q", d)
			}
		})
	}
}

// TestOthers: what somebody else did is not undone by the way.
func TestOthers(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{})
	act(t, k, "one", func() { write(t, root+"/a.txt", "agent\n"); write(t, root+"/new.txt", "agent\n") })
	write(t, root+"/dir/b.txt", "user\n") // not a file of the turn
	write(t, root+"/other", "user\n")
	r, err := k.PlanUndo(ctx, 1)
	must(t, err)
	if got := say(r.Files); !slices.Equal(got, []string{"modified a.txt", "deleted new.txt"}) || len(r.Others) > 0 || read(t, root+"/a.txt") != "agent\n" {
		t.Fatalf("plan: %q, others %q", got, r.Others)
	}
	write(t, root+"/a.txt", "agent and user\n")
	r, err = k.Undo(ctx, 1, false)
	if !errors.Is(err, ErrOthers) || len(r.Others) != 1 || r.Others[0].Path != "a.txt" || read(t, root+"/a.txt") != "agent and user\n" || !exists(root+"/new.txt") {
		t.Fatalf("without force: %v, %+v", err, r)
	}
	undo(t, k, 1, true)
	if read(t, root+"/a.txt") != "one\ntwo\n" || exists(root+"/new.txt") || read(t, root+"/dir/b.txt") != "user\n" || read(t, root+"/other") != "user\n" {
		t.Error("the wrong files were restored")
	}
	_, err = k.Redo(ctx, false)
	must(t, err)
	if read(t, root+"/a.txt") != "agent and user\n" || read(t, root+"/new.txt") != "agent\n" {
		t.Error("redo did not bring back what the undo replaced")
	}
}

// TestBetweenTurns: a change by the user between two turns survives when only the
// second touched the file, and needs a yes when both did.
func TestBetweenTurns(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{})
	act(t, k, "one", func() { write(t, root+"/a.txt", "1\n"); write(t, root+"/x", "1\n") })
	write(t, root+"/dir/b.txt", "user\n")
	act(t, k, "two", func() { write(t, root+"/dir/b.txt", "2\n"); write(t, root+"/x", "2\n") })
	undo(t, k, 2, false)
	if read(t, root+"/dir/b.txt") != "user\n" || exists(root+"/x") || read(t, root+"/a.txt") != "one\ntwo\n" {
		t.Error("not the state that was wanted")
	}
	_, err := k.Redo(ctx, false)
	must(t, err)
	write(t, root+"/x", "user\n")
	act(t, k, "three", func() { write(t, root+"/x", "3\n") })
	undo(t, k, 1, false)
	if read(t, root+"/x") != "user\n" {
		t.Error("the user's content between the turns is lost")
	}
	_, err = k.Redo(ctx, false)
	must(t, err)
	r, err := k.Undo(ctx, 3, false)
	if !errors.Is(err, ErrOthers) || len(r.Others) != 1 || r.Others[0].Path != "x" {
		t.Errorf("%v, %+v", err, r.Others)
	}
}

// TestTurnsThatChangeNothing are undone with others and do not end the chance of a
// redo.
func TestTurnsThatChangeNothing(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{})
	act(t, k, "change", func() { write(t, root+"/a.txt", "1\n") })
	act(t, k, "look", func() {})
	_, err := k.Turn(ctx, "talk")
	must(t, err)
	if c, err := k.After(ctx); err != nil || len(c.Files) > 0 {
		t.Errorf("%v, %v", c, err)
	}
	r := undo(t, k, 1, false)
	if len(r.Turns) != 3 || r.Turns[0].Label != "change" || read(t, root+"/a.txt") != "one\ntwo\n" {
		t.Errorf("undone: %+v", r.Turns)
	}
	act(t, k, "look again", func() {})
	_, err = k.Redo(ctx, false)
	must(t, err)
	if read(t, root+"/a.txt") != "1\n" {
		t.Error("redo after a turn that changed nothing did nothing")
	}
	undo(t, k, 1, false)
	act(t, k, "another change", func() { write(t, root+"/new", "") })
	if _, err := k.Redo(ctx, false); !errors.Is(err, ErrNothing) {
		t.Errorf("redo after another change: %v", err)
	}
	list := k.List()
	if len(list) != 5 || !list[0].Undone || list[0].Changes != 1 || list[4].Changes != 1 || list[4].Undone {
		t.Errorf("list: %+v", list)
	}
}

// TestResume: a later process with the same session undoes what an earlier one did,
// and a turn that was cut short asks.
func TestResume(t *testing.T) {
	ctx := context.Background()
	root, store := quickDir(t), quickDir(t)
	write(t, root+"/a", "0\n")
	write(t, root+"/b", "0\n")
	o := Options{Root: root, Store: store, Session: "2026-x_1"}
	k, err := Open(ctx, o)
	must(t, err)
	k.Begin(ctx)
	if _, err := Open(ctx, o); !errors.Is(err, ErrBusy) {
		t.Errorf("the session was opened twice: %v", err)
	}
	act(t, k, "one", func() { write(t, root+"/a", "1\n") })
	_, err = k.Turn(ctx, "two")
	must(t, err)
	must(t, k.Ready(ctx))
	write(t, root+"/b", "2\n")
	must(t, k.Close()) // as a kill: After was not called
	k = openKeeper(t, o)
	k.Begin(ctx)
	r, err := k.Undo(ctx, 1, false)
	if !errors.Is(err, ErrOthers) || len(r.Turns) != 1 || r.Turns[0].Label != "two" {
		t.Fatalf("%v, %+v", err, r)
	}
	undo(t, k, 1, true)
	undo(t, k, 1, false)
	if read(t, root+"/a") != "0\n" || read(t, root+"/b") != "0\n" {
		t.Error("not restored")
	}
	if id, err := k.Turn(ctx, strings.Repeat("é", 300)); err != nil || id != 3 || len(k.List()[2].Label) > maxLabel {
		t.Errorf("turn %d, %v", id, err)
	}
}

func TestDiff(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{})
	act(t, k, "one", func() {
		write(t, root+"/a.txt", "one\n2\n")
		must(t, os.Rename(root+"/dir/b.txt", root+"/dir/z.txt"))
		must(t, os.Chmod(root+"/dir/z.txt", 0o755))
		write(t, root+"/dir/deep/c.bin", "\x00")
		must(t, os.Mkdir(root+"/new", 0o755))
		write(t, root+"/new/empty", "")
	})
	act(t, k, "two", func() { write(t, root+"/a.txt", "one\n3\n") })
	text := func(from, to ID) string {
		c, err := k.Diff(ctx, from, to)
		must(t, err)
		var b strings.Builder
		for _, f := range c.Files {
			s, err := k.Unified(f, diff.Options{})
			must(t, err)
			b.WriteString(s)
		}
		return b.String()
	}
	const first = `--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,2 @@
 one
-two
+2
--- a/dir/deep/c.bin
+++ b/dir/deep/c.bin
binary files differ: 3 bytes, then 1 bytes
renamed dir/b.txt to dir/z.txt (mode -rw-r--r--, then -rwxr-xr-x)
created directory new
created new/empty
`
	if got := text(1, 2); got != first {
		t.Errorf("got\n%s\nwant\n%s", got, first)
	}
	if got := text(2, Now); got != "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-2\n+3\n" {
		t.Errorf("got\n%s", got)
	}
	if _, err := k.Diff(ctx, 9, Now); err == nil {
		t.Error("there is no turn 9")
	}
}

// TestHardLinks: another name of a file, in the workspace or outside, is not written
// through.
func TestHardLinks(t *testing.T) {
	k, root := startTree(t, Options{})
	outside := filepath.Join(filepath.Dir(root), filepath.Base(root)+"-outside")
	t.Cleanup(func() { os.Remove(outside) })
	must(t, os.WriteFile(outside, []byte("secret\n"), 0o600))
	must(t, os.Link(outside, root+"/hard"))
	must(t, os.Link(root+"/a.txt", root+"/a2.txt"))
	before := imageOf(t, root)
	act(t, k, "one", func() {
		f, err := os.OpenFile(root+"/hard", os.O_WRONLY|os.O_TRUNC, 0)
		must(t, err)
		_, err = f.WriteString("changed by the agent\n")
		must(t, errors.Join(err, f.Close()))
		f, err = os.OpenFile(root+"/a.txt", os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = f.WriteString("three\n")
		must(t, errors.Join(err, f.Close()))
	})
	undo(t, k, 1, false)
	if d := before.differ(imageOf(t, root)); len(d) > 0 {
		t.Errorf("%q", d)
	}
	if read(t, outside) != "changed by the agent\n" {
		t.Error("a file outside was written")
	}
}

// TestSwappedForLink: a directory that became a link to a place outside does not lead
// an undo there.
func TestSwappedForLink(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{})
	outside := quickDir(t)
	write(t, outside+"/b.txt", "outside\n")
	act(t, k, "one", func() { write(t, root+"/dir/b.txt", "agent\n") })
	must(t, os.Rename(root+"/dir", root+"/dir.away"))
	must(t, os.Symlink(outside, root+"/dir"))
	r, err := k.Undo(ctx, 1, false)
	if !errors.Is(err, ErrOthers) {
		t.Fatalf("%v, %+v", err, r)
	}
	r, err = k.Undo(ctx, 1, true)
	must(t, err)
	if len(r.Left) != 1 || read(t, outside+"/b.txt") != "outside\n" {
		t.Errorf("left %q, outside %q", r.Left, read(t, outside+"/b.txt"))
	}
	must(t, os.Remove(root+"/dir"))
	must(t, os.Rename(root+"/dir.away", root+"/dir"))
	must(t, os.Remove(outside+"/b.txt"))
	act(t, k, "two", func() { must(t, os.Remove(root+"/dir/b.txt")) })
	must(t, os.Rename(root+"/dir", root+"/dir.away"))
	must(t, os.Symlink(outside, root+"/dir"))
	r, err = k.Undo(ctx, 1, true)
	must(t, err)
	if len(r.Left) != 1 || exists(outside+"/b.txt") {
		t.Errorf("left %q, or a file was made outside", r.Left)
	}
}

// TestChangedAtTheLastMoment: what is not as it was looked at stays.
func TestChangedAtTheLastMoment(t *testing.T) {
	k, root := startTree(t, Options{})
	act(t, k, "one", func() { write(t, root+"/a.txt", "agent\n"); write(t, root+"/new", "agent\n") })
	var st unix.Stat_t
	must(t, unix.Lstat(root+"/a.txt", &st))
	now := entry{name: "a.txt", kind: file, stamp: stampOf(&st)}
	write(t, root+"/a.txt", "somebody was quicker\n")
	r := &restorer{store: k.store, root: k.root, temp: tempPrefix + "0123456789abcdef"}
	must(t, r.run(context.Background(), []*item{
		{path: "a.txt", now: now, target: entry{kind: file, hash: hashOf("blob", []byte("one\ntwo\n")), mode: 0o644}},
		{path: "new", now: entry{kind: absent}, target: entry{kind: file, hash: hashOf("blob", []byte("one\ntwo\n")), mode: 0o644}},
	}))
	if len(r.left) != 2 || read(t, root+"/a.txt") != "somebody was quicker\n" || read(t, root+"/new") != "agent\n" {
		t.Errorf("left %q", r.left)
	}
	if exists(root + "/" + r.temp) {
		t.Error("a temporary file is left")
	}
}

// TestKeptBesideContent: owner, extended attributes and special bits come back too.
func TestKeptBesideContent(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root restores owners")
	}
	root := tempRoot(t)
	write(t, root+"/mine/a", "a\n")
	write(t, root+"/b", "b\n")
	must(t, os.Chown(root+"/mine/a", 1234, 4321))
	must(t, os.Chown(root+"/mine", 1234, 4321))
	must(t, os.Chmod(root+"/mine/a", 0o750|fs.ModeSetuid))
	must(t, os.Chmod(root+"/mine", 0o770|fs.ModeSetgid))
	xattr := unix.Setxattr(root+"/b", "user.note", []byte("kept"), 0)
	k := openKeeper(t, Options{Root: root, Store: t.TempDir()})
	owner := func(path string) string {
		var st unix.Stat_t
		must(t, unix.Lstat(path, &st))
		return fmt.Sprintf("%d %d %o", st.Uid, st.Gid, st.Mode)
	}
	file, dir := owner(root+"/mine/a"), owner(root+"/mine")
	act(t, k, "one", func() {
		must(t, os.RemoveAll(root+"/mine"))
		write(t, root+"/b", "agent\n")
	})
	undo(t, k, 1, false)
	if owner(root+"/mine/a") != file || owner(root+"/mine") != dir {
		t.Errorf("%s and %s, want %s and %s", owner(root+"/mine/a"), owner(root+"/mine"), file, dir)
	}
	if value := make([]byte, 10); xattr == nil {
		if n, err := unix.Getxattr(root+"/b", "user.note", value); err != nil || string(value[:n]) != "kept" {
			t.Errorf("attribute: %q, %v", value[:max(n, 0)], err)
		}
	}
	act(t, k, "two", func() { must(t, os.Chown(root+"/b", 7, 8)) })
	undo(t, k, 1, false)
	if got := owner(root + "/b"); !strings.HasPrefix(got, "0 0 ") {
		t.Errorf("owner after undo: %s", got)
	}
}
