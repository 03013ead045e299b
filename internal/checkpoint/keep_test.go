package checkpoint

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// hold keeps the background from scanning until the returned function is called.
func hold(k *Keeper) func() {
	k.op <- struct{}{}
	return func() { <-k.op }
}

// TestEditBeforeTheSnapshot: a tool edits while the first snapshot is not there, and
// waits only for its own file; undo brings back what was before the edit.
func TestEditBeforeTheSnapshot(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/a.txt", "one\n")
	write(t, root+"/dir/b.txt", "b\n")
	before := imageOf(t, root)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	release := hold(k)
	k.Begin(ctx)
	_, err := k.Turn(ctx, "one")
	must(t, err)
	must(t, k.KeepFile(ctx, "a.txt", "new/deep/c.txt"))
	write(t, root+"/a.txt", "agent\n")
	write(t, root+"/new/deep/c.txt", "agent\n")
	must(t, k.KeepFile(ctx, "a.txt", "new/deep/c.txt", "new/deep/d.txt")) // the first time counts
	write(t, root+"/a.txt", "agent again\n")
	write(t, root+"/new/deep/d.txt", "agent\n")
	ready := make(chan error)
	go func() { ready <- k.Ready(ctx) }()
	select {
	case <-ready:
		t.Error("ready before the snapshot")
	default:
	}
	release()
	must(t, <-ready)
	write(t, root+"/dir/b.txt", "a command did this\n")
	c, err := k.After(ctx)
	must(t, err)
	want := []string{"modified a.txt", "modified dir/b.txt", "created new", "created new/deep", "created new/deep/c.txt", "created new/deep/d.txt"}
	if got := say(c.Files); !slices.Equal(got, want) {
		t.Errorf("changes %q", got)
	}
	undo(t, k, 1, false)
	if d := before.differ(imageOf(t, root)); len(d) > 0 {
		t.Errorf("%q", d)
	}
}

// TestKilledBeforeTheSnapshot: what a tool kept is there even when the process ends
// before the first snapshot.
func TestKilledBeforeTheSnapshot(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/a.txt", "one\n")
	o := Options{Root: root, Store: quickDir(t), Session: "s"}
	k, err := Open(ctx, o)
	must(t, err)
	release := hold(k)
	k.Begin(ctx)
	_, err = k.Turn(ctx, "one")
	must(t, err)
	must(t, k.KeepFile(ctx, "a.txt", "b.txt"))
	write(t, root+"/a.txt", "agent\n")
	write(t, root+"/b.txt", "agent\n")
	write(t, root+"/other.txt", "not known of\n")
	closed := make(chan error)
	go func() { closed <- k.Close() }()
	<-k.quit
	release()
	must(t, <-closed)
	k = openKeeper(t, o)
	undo(t, k, 1, true)
	if read(t, root+"/a.txt") != "one\n" || exists(root+"/b.txt") || !exists(root+"/other.txt") {
		t.Error("not restored, or too much")
	}
}

// TestStampsThatProveNothing: a file that changed as late as it was read is read again,
// also when its stamp is the same.
func TestStampsThatProveNothing(t *testing.T) {
	at := time.Unix(1_700_000_000, 500_000_000)
	tests := []struct {
		name         string
		mtime, ctime time.Time
		want         bool
	}{
		{"long settled", at.Add(-time.Hour), at.Add(-time.Hour), false},
		{"just before", at.Add(-30 * time.Millisecond), at.Add(-time.Hour), false},
		{"within a tick of the kernel", at.Add(-10 * time.Millisecond), at.Add(-time.Hour), true},
		{"its name or mode changed within a tick", at.Add(-time.Hour), at.Add(-10 * time.Millisecond), true},
		{"in the future", at.Add(time.Hour), at.Add(-time.Hour), true},
		{"whole seconds", at.Truncate(time.Second).Add(-time.Second), at.Truncate(time.Second).Add(-time.Second), true},
		{"whole seconds, settled", at.Truncate(time.Second).Add(-3 * time.Second), at.Truncate(time.Second).Add(-3 * time.Second), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &scanner{limits: Limits{}.withDefaults(), started: at.UnixNano()}
			e, err := s.leaf(place{rules: &rules{read: true}}, entry{name: "a", stamp: stamp{mtime: tt.mtime.UnixNano(), ctime: tt.ctime.UnixNano(), mode: unix.S_IFREG}}, nil)
			must(t, err)
			if e.racy != tt.want {
				t.Errorf("racy: %v", e.racy)
			}
		})
	}
	root := quickDir(t)
	write(t, root+"/a", "one\n")
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	c := act(t, k, "same stamp", func() {
		write(t, root+"/a", "two\n")
		var st unix.Stat_t
		must(t, unix.Lstat(root+"/a", &st))
		k.now.entries[0].stamp = stampOf(&st) // as if the clock had not moved on
	})
	if got := say(c.Files); !slices.Equal(got, []string{"modified a"}) {
		t.Errorf("changes %q", got)
	}
}

// TestEditsOnly: a home folder, the root, a tree that holds it and one that is too
// large keep only what tools edit.
func TestEditsOnly(t *testing.T) {
	ctx := context.Background()
	tests := []struct {
		name   string
		limits Limits
		home   func(root string) string
		why    string
	}{
		{"home", Limits{}, func(root string) string { return root }, "the workspace is the home folder"},
		{"above home", Limits{}, func(root string) string { return root + "/dir" }, "the workspace holds the home folder"},
		{"too many files", Limits{Files: 2}, func(string) string { return "" }, "the workspace has more than 2 files or 1024 MB"},
		{"too many bytes", Limits{Bytes: 17}, func(string) string { return "" }, "the workspace has more than 50000 files or 0 MB"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := quickDir(t)
			write(t, root+"/a.txt", "one\n")
			write(t, root+"/dir/b.txt", "b\n")
			write(t, root+"/dir/c.txt", "c, and more\n")
			k := openKeeper(t, Options{Root: root, Store: quickDir(t), UserHome: tt.home(root), Limits: tt.limits})
			k.Begin(ctx)
			_, err := k.Turn(ctx, "one")
			must(t, err)
			must(t, k.Ready(ctx))
			if mode, why := k.Mode(); mode != EditsOnly || why != tt.why {
				t.Fatalf("mode %v, %q", mode, why)
			}
			must(t, k.KeepFile(ctx, "dir/b.txt", "x/y.txt"))
			write(t, root+"/dir/b.txt", "edited\n")
			write(t, root+"/x/y.txt", "made by a tool\n")
			write(t, root+"/dir/c.txt", "by a command\n")
			write(t, root+"/x/z.txt", "by a command\n")
			c, err := k.After(ctx)
			must(t, err)
			if got := say(c.Files); !slices.Equal(got, []string{"modified dir/b.txt", "created x", "created x/y.txt"}) {
				t.Errorf("changes %q", got)
			}
			_, err = k.Turn(ctx, "two")
			must(t, err)
			must(t, k.KeepFile(ctx, "dir/b.txt", "a.txt"))
			write(t, root+"/dir/b.txt", "edited twice\n")
			must(t, os.Remove(root+"/a.txt"))
			_, err = k.After(ctx)
			must(t, err)
			undo(t, k, 1, false)
			if read(t, root+"/dir/b.txt") != "edited\n" || read(t, root+"/a.txt") != "one\n" {
				t.Error("second turn not undone")
			}
			r, err := k.Undo(ctx, 1, false)
			must(t, err)
			if read(t, root+"/dir/b.txt") != "b\n" || exists(root+"/x/y.txt") || read(t, root+"/dir/c.txt") != "by a command\n" || !exists(root+"/x/z.txt") {
				t.Error("first turn not undone, or too much")
			}
			if len(r.Left) != 1 || r.Left[0].Path != "x" {
				t.Errorf("left %q", r.Left)
			}
		})
	}
	k := openKeeper(t, Options{Root: "/", Store: quickDir(t)})
	if mode, why := k.Mode(); mode != EditsOnly || why != "the workspace is the whole file system" {
		t.Errorf("%v, %q", mode, why)
	}
}

// TestNewFileThatComesLater: a file that a tool wants to make is looked for until it
// is there, with the directories that it needs.
func TestNewFileThatComesLater(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/x", "a file in the place of the directory\n")
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), UserHome: root})
	turn := func(do func()) []string {
		_, err := k.Turn(ctx, "x")
		must(t, err)
		must(t, k.KeepFile(ctx, "a/b/c.txt", "a/d.txt"))
		must(t, k.Ready(ctx))
		do()
		c, err := k.After(ctx)
		must(t, err)
		return say(c.Files)
	}
	if got := turn(func() {}); len(got) > 0 {
		t.Errorf("changes %q", got)
	}
	if got := turn(func() { write(t, root+"/a/other", "x") }); !slices.Equal(got, []string{"created a"}) {
		t.Errorf("changes %q", got)
	}
	if got := turn(func() { write(t, root+"/a/b/c.txt", "x"); write(t, root+"/a/d.txt", "x") }); !slices.Equal(got, []string{"created a/b", "created a/b/c.txt", "created a/d.txt"}) {
		t.Errorf("changes %q", got)
	}
	if got := turn(func() { must(t, os.RemoveAll(root+"/a")) }); !slices.Equal(got, []string{"deleted a", "deleted a/b", "deleted a/b/c.txt", "deleted a/d.txt"}) {
		t.Errorf("changes %q", got)
	}
	undo(t, k, 1, false)
	if !exists(root+"/a/b/c.txt") || exists(root+"/a/other") {
		t.Error("not restored")
	}
}

// TestStoreInTheWorkspace: the program's own files are no part of a state.
func TestStoreInTheWorkspace(t *testing.T) {
	root := quickDir(t)
	write(t, root+"/a", "a\n")
	write(t, root+"/.zcoder/config.toml", "x")
	k := openKeeper(t, Options{Root: root, Store: root + "/.zcoder/checkpoints", Exclude: []string{root + "/.zcoder"}})
	c := act(t, k, "one", func() { write(t, root+"/a", "b\n"); write(t, root+"/.zcoder/config.toml", "y") })
	if got := say(c.Files); !slices.Equal(got, []string{"modified a"}) {
		t.Errorf("changes %q", got)
	}
	undo(t, k, 1, false)
	if read(t, root+"/.zcoder/config.toml") != "y" {
		t.Error("the settings were restored")
	}
}

// TestGrowing: when a workspace grows over the limit, what was kept stays kept, what
// is new is neither kept nor removed, and tool edits are kept.
func TestGrowing(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{Limits: Limits{Files: 10}})
	c := act(t, k, "unpack", func() {
		write(t, root+"/a.txt", "agent\n")
		for i := range 20 {
			write(t, fmt.Sprintf("%s/data/%d", root, i), "x")
		}
	})
	if mode, why := k.Mode(); mode != EditsOnly || !strings.Contains(why, "grew") {
		t.Fatalf("mode %v, %q", mode, why)
	}
	if got := say(c.Files); !slices.Contains(got, "modified a.txt") {
		t.Errorf("changes %q", got)
	}
	_, err := k.Turn(ctx, "edit")
	must(t, err)
	must(t, k.KeepFile(ctx, "data/3"))
	must(t, k.Ready(ctx))
	write(t, root+"/data/3", "edited")
	write(t, root+"/dir/b.txt", "by a command\n")
	c, err = k.After(ctx)
	must(t, err)
	if got := say(c.Files); !slices.Equal(got, []string{"modified data/3", "modified dir/b.txt"}) {
		t.Errorf("changes %q", got)
	}
	undo(t, k, 1, false)
	if read(t, root+"/data/3") != "x" || read(t, root+"/dir/b.txt") != "b\n" {
		t.Errorf("not restored: %q, %q", read(t, root+"/data/3"), read(t, root+"/dir/b.txt"))
	}
	_, err = k.Undo(ctx, 1, false)
	must(t, err)
	if read(t, root+"/a.txt") != "one\ntwo\n" || read(t, root+"/data/7") != "x" {
		t.Error("the first turn")
	}
}

// TestIgnored: small ignored files are kept, large ones and dependencies are said.
func TestIgnored(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/.gitignore", "*.log\nbuild/\nvendor/\n")
	write(t, root+"/src/.gitignore", "local.*\n")
	write(t, root+"/src/local.env", "SECRET=1\n")
	write(t, root+"/small.log", "small\n")
	write(t, root+"/big.log", strings.Repeat("x", 3000))
	write(t, root+"/build/out", "built\n")
	write(t, root+"/vendor/dep/x.go", "dep\n")
	write(t, root+"/node_modules/dep/x.js", "dep\n")
	write(t, root+"/sub/vendor.txt", "v\n")
	write(t, root+"/bare.git/HEAD", "ref: refs/heads/main\n")
	write(t, root+"/bare.git/objects/x", "")
	write(t, root+"/bare.git/refs/x", "")
	before := imageOf(t, root)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), Limits: Limits{IgnoredFile: 1000}})
	k.Begin(ctx)
	c := act(t, k, "clean", func() {
		for _, name := range []string{"src/local.env", "small.log", "big.log", "build", "vendor", "node_modules", "sub", "bare.git"} {
			must(t, os.RemoveAll(filepath.Join(root, name)))
		}
	})
	want := []string{
		"deleted bare.git (a git repository without a work tree)", "deleted big.log (a large file that git ignores)", "deleted build", "deleted build/out",
		"deleted node_modules (a folder of dependencies)", "deleted small.log", "deleted src/local.env", "deleted sub", "deleted sub/vendor.txt",
		"deleted vendor (a folder of dependencies)",
	}
	if got := say(c.Files); !slices.Equal(got, want) {
		t.Errorf("changes %q", got)
	}
	r, err := k.Undo(ctx, 1, false)
	must(t, err)
	var left []string
	for _, l := range r.Left {
		left = append(left, l.Path)
	}
	if !slices.Equal(left, []string{"bare.git", "big.log", "node_modules", "vendor"}) {
		t.Errorf("left %q", r.Left)
	}
	for _, d := range before.differ(imageOf(t, root)) {
		if !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(d, `"`+l) }) {
			t.Error(d)
		}
	}
}

// TestToolEditsWhatIsNotKept: a file in a dependency folder, or a large ignored one,
// is kept once a tool edits it.
func TestToolEditsWhatIsNotKept(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/.gitignore", "*.log\n")
	write(t, root+"/big.log", strings.Repeat("x", 3000))
	write(t, root+"/node_modules/dep/x.js", "dep\n")
	write(t, root+"/node_modules/dep/y.js", "dep\n")
	before := imageOf(t, root)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), Limits: Limits{IgnoredFile: 1000}})
	k.Begin(ctx)
	for i := range 3 {
		_, err := k.Turn(ctx, "edit")
		must(t, err)
		must(t, k.Ready(ctx))
		must(t, k.KeepFile(ctx, "big.log", "node_modules/dep/x.js", "node_modules/new/z.js"))
		write(t, root+"/big.log", strings.Repeat("y", 4000+i))
		write(t, root+"/node_modules/dep/x.js", fmt.Sprint("patched ", i))
		write(t, root+"/node_modules/new/z.js", fmt.Sprint("new ", i))
		c, err := k.After(ctx)
		must(t, err)
		want := []string{"modified big.log", "modified node_modules/dep/x.js", "created node_modules/new", "created node_modules/new/z.js"}
		if i > 0 {
			want = []string{"modified big.log", "modified node_modules/dep/x.js", "modified node_modules/new/z.js"}
		}
		if got := say(c.Files); !slices.Equal(got, want) {
			t.Errorf("turn %d: changes %q", i, got)
		}
	}
	undo(t, k, 1, false)
	if read(t, root+"/node_modules/new/z.js") != "new 1" || len(read(t, root+"/big.log")) != 4001 {
		t.Error("last turn not undone")
	}
	undo(t, k, 2, false)
	if d := before.differ(imageOf(t, root)); len(d) > 0 {
		t.Errorf("%q", d)
	}
	for _, rel := range []string{"../x", "/etc/passwd", "a//b", ".git/config", "x/.GIT/y", ".zcoder-tmp-1", ""} {
		if err := k.KeepFile(ctx, rel); err == nil {
			t.Errorf("%q was kept", rel)
		}
	}
}

// TestIgnoreRulesChange: what was kept stays known when a rule comes to ignore it, and
// what was there before is not taken for new when a rule goes.
func TestIgnoreRulesChange(t *testing.T) {
	root := quickDir(t)
	write(t, root+"/.gitignore", "data/\n")
	write(t, root+"/data/big", strings.Repeat("x", 3000))
	write(t, root+"/src/big", strings.Repeat("s", 3000))
	before := imageOf(t, root)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), Limits: Limits{IgnoredFile: 1000}})
	act(t, k, "swap the rules", func() {
		write(t, root+"/.gitignore", "src/\n")
		write(t, root+"/src/big", strings.Repeat("t", 3001))
	})
	r, err := k.Undo(context.Background(), 1, false)
	must(t, err)
	if d := before.differ(imageOf(t, root)); len(d) > 0 {
		t.Errorf("%q, left %q", d, r.Left)
	}
}

// TestHugeIgnoredFolder: a folder of more ignored files than are kept is not kept, and
// the rest is.
func TestHugeIgnoredFolder(t *testing.T) {
	root := quickDir(t)
	write(t, root+"/.gitignore", "cache/\n")
	for i := range 50 {
		write(t, fmt.Sprintf("%s/cache/%d", root, i), "x")
	}
	write(t, root+"/a", "a\n")
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), Limits: Limits{IgnoredFiles: 20, Files: 40}})
	c := act(t, k, "one", func() { write(t, root+"/a", "b\n"); write(t, root+"/cache/7", "y") })
	if mode, why := k.Mode(); mode != Full {
		t.Error(why)
	}
	if got := say(c.Files); !slices.Equal(got, []string{"modified a"}) {
		t.Errorf("changes %q", got)
	}
}

// TestFilesThatChangeWhileRead: a file that is written all the time is kept with one
// of its contents, or said not to be.
func TestFilesThatChangeWhileRead(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	write(t, root+"/busy", strings.Repeat("0", 1<<20+100))
	write(t, root+"/comes-and-goes", "x")
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	stop, done := make(chan struct{}), sync.WaitGroup{}
	done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(root+"/busy", []byte(strings.Repeat(fmt.Sprint(i%10), 1<<20+i%1000)), 0o644)
			_ = os.Remove(root + "/comes-and-goes")
			_ = os.WriteFile(root+"/comes-and-goes", []byte("y"), 0o644)
		}
	})
	for range 10 {
		_, err := k.Turn(ctx, "busy")
		must(t, err)
		must(t, k.Ready(ctx))
		_, err = k.After(ctx)
		must(t, err)
	}
	close(stop)
	done.Wait()
	act(t, k, "calm", func() { write(t, root+"/busy", "calm\n") })
	undo(t, k, 1, false)
	if n := len(read(t, root+"/busy")); n < 1<<20 {
		t.Errorf("%d bytes", n)
	}
}

// TestOddPlaces: special files, unreadable and very deep ones do not stop a snapshot.
func TestOddPlaces(t *testing.T) {
	root := quickDir(t)
	must(t, syscall.Mkfifo(root+"/fifo", 0o644))
	must(t, syscall.Mkfifo(root+"/.gitignore", 0o644))
	must(t, os.Symlink(root+"/loop", root+"/loop"))
	write(t, root+"/a", "a\n")
	deep := root
	for range 300 {
		deep += "/d"
	}
	must(t, os.MkdirAll(deep, 0o755))
	write(t, deep+"/file", "deep\n")
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	act(t, k, "one", func() { write(t, root+"/a", "b\n"); must(t, os.RemoveAll(root+"/d/d/d")) })
	r, err := k.Undo(context.Background(), 1, false)
	must(t, err)
	if read(t, root+"/a") != "a\n" || len(r.Left) != 1 || !strings.HasPrefix(r.Left[0].Path, "d/d/d") {
		t.Errorf("left %q", r.Left)
	}
}
