package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// TestGitReadsTheStore: the store is a bare repository that git itself can read and
// finds whole, for the day on which this program is not there.
func TestGitReadsTheStore(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so nothing else can read the store")
	}
	root := quickDir(t)
	for i := range 300 {
		write(t, fmt.Sprintf("%s/d%d/f%d", root, i%7, i), strings.Repeat(fmt.Sprint(i), i))
	}
	write(t, root+"/d", "sorts before d/ and d0\n")
	write(t, root+"/big", strings.Repeat("large enough to be streamed\n", 60_000))
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	k.Begin(context.Background())
	act(t, k, "one", func() { write(t, root+"/d1/new", "new\n") })
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"--git-dir", k.store.dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	packs, err := filepath.Glob(k.store.packDir() + "/*.pack")
	must(t, err)
	if len(packs) != 2 {
		t.Errorf("%d packs for two states", len(packs))
	}
	for _, p := range packs {
		git("verify-pack", p)
	}
	tree := k.history.turns[0].end.String()
	if got := git("show", tree+":d1/new"); got != "new\n" {
		t.Errorf("git shows %q", got)
	}
	if n := strings.Count(git("ls-tree", "-r", tree), "\n"); n != 303 {
		t.Errorf("git lists %d files", n)
	}
	if loose, _ := filepath.Glob(k.store.dir + "/objects/??"); len(loose) > 0 {
		t.Errorf("loose objects: %q", loose)
	}
	must(t, filepath.WalkDir(k.o.Store, func(path string, e fs.DirEntry, err error) error {
		info, _ := e.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; err == nil && info.Mode().Perm()&^want != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	}))
}

// TestNewSessionReadsOnlyWhatChanged: the stat cache carries over, and is not trusted
// when the store lost something or it is damaged.
func TestNewSessionReadsOnlyWhatChanged(t *testing.T) {
	ctx := context.Background()
	root, store := quickDir(t), quickDir(t)
	for i := range 50 {
		write(t, fmt.Sprintf("%s/d%d/f%d", root, i%5, i), fmt.Sprint(i))
	}
	session := func(name string) (k *Keeper, bytes int64) {
		k = openKeeper(t, Options{Root: root, Store: store, Session: name})
		k.Begin(ctx)
		must(t, k.waitForWork(ctx))
		_, bytes = k.Progress()
		return k, bytes
	}
	old := time.Now().Add(time.Hour) // for the scanner all these files are long settled
	first := openKeeper(t, Options{Root: root, Store: store, Session: "first", Now: func() time.Time { return old }})
	first.Begin(ctx)
	must(t, first.waitForWork(ctx))
	must(t, first.Close())
	tests := []struct {
		name       string
		do         func(dir string)
		least, top int64 // bytes read
	}{
		{"nothing changed", func(string) {}, 0, 0},
		{"one file changed", func(string) { write(t, root+"/d1/f1", "changed") }, 7, 20}, // and the one that undo wrote
		{"cache damaged", func(dir string) {
			raw, err := os.ReadFile(dir + "/stats")
			must(t, err)
			raw[len(raw)/2] ^= 1
			must(t, os.WriteFile(dir+"/stats", raw, 0o600))
		}, 90, 150},
		{"objects lost", func(dir string) { must(t, os.RemoveAll(dir+"/objects")) }, 90, 150},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.do(first.store.dir)
			k, bytes := session(strings.ReplaceAll(tt.name, " ", "-"))
			if bytes < tt.least || bytes > tt.top {
				t.Errorf("%d bytes read, want %d to %d", bytes, tt.least, tt.top)
			}
			act(t, k, "x", func() { write(t, root+"/d2/f2", tt.name) })
			undo(t, k, 1, false)
			if got := read(t, root+"/d2/f2"); got != "2" {
				t.Errorf("restored %q", got)
			}
			must(t, os.Chtimes(root+"/d2/f2", old, old))
			must(t, k.Close())
		})
	}
}

// TestDamage: an object that is damaged is not restored, and said; a manifest that was
// cut short keeps its other lines.
func TestDamage(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{Session: "d"})
	act(t, k, "one", func() { write(t, root+"/a.txt", "1\n"); write(t, root+"/dir/b.txt", "1\n") })
	p, at := k.store.find(hashOf("blob", []byte("one\ntwo\n")))
	path := filepath.Join(k.store.packDir(), p.name+".pack")
	raw, err := os.ReadFile(path)
	must(t, err)
	raw[at+8] ^= 0x55
	must(t, os.WriteFile(path, raw, 0o600))
	r, err := k.Undo(ctx, 1, false)
	must(t, err)
	if len(r.Left) != 1 || r.Left[0].Path != "a.txt" || read(t, root+"/a.txt") != "1\n" || read(t, root+"/dir/b.txt") != "b\n" {
		t.Errorf("%+v", r)
	}
	o := k.o
	must(t, k.Close())
	manifest := filepath.Join(k.store.sessionDir(), "d.jsonl")
	f, err := os.OpenFile(manifest, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("\n{\"kind\":\"turn\",\"turn\":7,\"la")
	must(t, errors.Join(err, f.Close()))
	k = openKeeper(t, o)
	act(t, k, "two", func() { write(t, root+"/x", "") })
	if list := k.List(); len(list) != 2 || list[1].ID != 2 || list[1].Changes != 1 {
		t.Errorf("%+v", list)
	}
}

// TestTwoProcesses keep checkpoints of one workspace at once, and undo their own.
func TestTwoProcesses(t *testing.T) {
	ctx := context.Background()
	root, base := quickDir(t), quickDir(t)
	for i := range 100 {
		write(t, fmt.Sprintf("%s/d%d/f%d", root, i%7, i), fmt.Sprint(i))
	}
	var keepers [3]*Keeper
	for i := range keepers {
		keepers[i] = openKeeper(t, Options{Root: root, Store: base, Session: fmt.Sprint("s", i)})
		keepers[i].Begin(ctx)
	}
	var wg sync.WaitGroup
	for i, k := range keepers {
		wg.Go(func() {
			for n := range 10 {
				if _, err := k.Turn(ctx, "x"); err != nil {
					t.Error(err)
					return
				}
				mine := fmt.Sprintf("own%d", i)
				if err := k.KeepFile(ctx, mine); err != nil {
					t.Error(err)
				}
				_ = os.WriteFile(filepath.Join(root, mine), fmt.Append(nil, i, n), 0o644)
				if _, err := k.After(ctx); err != nil {
					t.Error(err)
				}
				if n%3 == 0 {
					_ = withStore(k.store.dir, func(s *store) error { return s.collect(ctx) })
				}
			}
		})
	}
	wg.Wait()
	for i, k := range keepers {
		if _, err := k.Undo(ctx, 10, true); err != nil {
			t.Error(err)
		}
		if mine := fmt.Sprintf("%s/own%d", root, i); exists(mine) {
			t.Errorf("%s is there", mine)
		}
	}
}

// TestPrune: the oldest sessions go first, what another session has open stays, and
// what is left is whole and in few packs.
// TestLeftoversOfKilledPrograms are removed at the next start, when they are old.
func TestLeftoversOfKilledPrograms(t *testing.T) {
	root, dir := quickDir(t), quickDir(t)
	first := openKeeper(t, Options{Root: root, Store: dir})
	s := first.store
	must(t, first.Close())
	old, young := []string{s.dir + "/tmp-1", s.packDir() + "/tmp-2"}, []string{s.dir + "/tmp-3", s.packDir() + "/tmp-4"}
	for _, name := range append(old, young...) {
		write(t, name, "half")
	}
	for _, name := range append(old, s.dir+"/config") {
		must(t, os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour)))
	}
	openKeeper(t, Options{Root: root, Store: dir})
	for _, name := range old {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for _, name := range append(young, s.dir+"/config") {
		if _, err := os.Lstat(name); err != nil {
			t.Errorf("another program may be writing %s: %v", name, err)
		}
	}
}

func TestPrune(t *testing.T) {
	ctx := context.Background()
	root, store := quickDir(t), quickDir(t)
	noise := func(i int) string { // does not compress
		var b bytes.Buffer
		for j := range 2000 {
			h := hashOf("x", fmt.Append(nil, i, j))
			b.Write(h[:])
		}
		return b.String()
	}
	open := func(name string) *Keeper { return openKeeper(t, Options{Root: root, Store: store, Session: name}) }
	var last *Keeper
	for i := range 4 {
		write(t, root+"/data", noise(i))
		k := open(fmt.Sprint("s", i))
		k.Begin(ctx)
		act(t, k, "one", func() { write(t, root+"/data", noise(100+i)) })
		must(t, k.manifest.f.Sync())
		when := time.Unix(int64(1000+i), 0)
		must(t, os.Chtimes(k.manifest.f.Name(), when, when))
		if last = k; i < 3 {
			must(t, k.Close())
		}
	}
	// An older session that is open, a store that nobody uses, and what kills left.
	must(t, os.Chtimes(last.manifest.f.Name(), time.Unix(1, 0), time.Unix(1, 0)))
	other := openKeeper(t, Options{Root: quickDir(t), Store: store, Session: "other"})
	write(t, other.o.Root+"/x", noise(7))
	act(t, other, "x", func() {})
	must(t, os.Chtimes(other.manifest.f.Name(), time.Unix(2, 0), time.Unix(2, 0)))
	must(t, other.Close())
	must(t, os.WriteFile(last.store.packDir()+"/tmp-dead", []byte(noise(8)), 0o600))
	size, err := storesSize(store)
	must(t, err)
	must(t, Prune(ctx, store, size-150_000))
	sessions := func() []string {
		list, err := allSessions(store)
		must(t, err)
		var names []string
		for _, s := range list {
			names = append(names, filepath.Base(s.path))
		}
		slices.Sort(names)
		return names
	}
	if got := sessions(); !slices.Equal(got, []string{"s2.jsonl", "s3.jsonl"}) && !slices.Equal(got, []string{"s1.jsonl", "s2.jsonl", "s3.jsonl"}) {
		t.Errorf("sessions left: %q", got)
	}
	if exists(last.store.packDir() + "/tmp-dead") {
		t.Error("what a kill left is there")
	}
	must(t, Prune(ctx, store, 1))
	if got := sessions(); !slices.Equal(got, []string{"s3.jsonl"}) {
		t.Errorf("sessions left: %q", got)
	}
	undo(t, last, 1, false)
	if read(t, root+"/data") != noise(3) {
		t.Error("the open session lost its content")
	}
	if now, err := storesSize(store); err != nil || now > 130_000 {
		t.Errorf("%d bytes left", now)
	}
}

// TestOneSessionTooLarge: a session that alone passes the bound forgets its oldest
// turns.
func TestOneSessionTooLarge(t *testing.T) {
	ctx := context.Background()
	root := quickDir(t)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t), Limits: Limits{Store: 20_000}})
	for i := range 20 {
		act(t, k, fmt.Sprint(i), func() {
			var b bytes.Buffer
			for j := range 100 {
				h := hashOf("x", fmt.Append(nil, i, j))
				b.Write(h[:])
			}
			write(t, root+"/data", b.String())
		})
	}
	must(t, k.waitForWork(ctx))
	must(t, k.prune(ctx))
	if n := len(k.List()); n == 20 || n == 0 {
		t.Errorf("%d turns left", n)
	}
	before := read(t, root+"/data")
	undo(t, k, 1, false)
	if read(t, root+"/data") == before {
		t.Error("nothing restored")
	}
	if c := act(t, k, "next", func() { write(t, root+"/x", "") }); c.Turn != 21 {
		t.Errorf("turn %d", c.Turn)
	}
}

// TestManyPacksBecomeOne while another session goes on.
func TestManyPacksBecomeOne(t *testing.T) {
	ctx := context.Background()
	root, store := quickDir(t), quickDir(t)
	write(t, root+"/a", "start")
	k := openKeeper(t, Options{Root: root, Store: store})
	for i := range maxPacks + 5 {
		act(t, k, "x", func() { write(t, root+"/a", fmt.Sprint(i)) })
	}
	must(t, k.waitForWork(ctx))
	k.running.Wait()
	// While checkpoints follow each other the store may be busy each time: now it is not.
	k.tidy(ctx)
	must(t, k.store.load())
	if n, _ := k.store.count(); n > 10 {
		t.Errorf("%d packs", n)
	}
	undo(t, k, maxPacks+5, false)
	if got := read(t, root+"/a"); got != "start" {
		t.Errorf("restored %q", got)
	}
}

func TestTreeRoundTrip(t *testing.T) {
	h := hashOf("blob", nil)
	d := &dir{partial: true, entries: []entry{
		{name: "a", kind: file, mode: 0o4755, hash: h, uid: 7, gid: 8},
		{name: "a\nb", kind: link, hash: h, uid: 1},
		{name: "a b", kind: folder, mode: 0o1777, hash: h},
		{name: "a-", kind: absent},
		{name: "b", kind: unkept, why: special, hash: h},
	}}
	build, meta := d.encode()
	got, err := decodeTree(build(h), func(plumbing.Hash) ([]byte, error) { return meta, nil })
	must(t, err)
	if !slices.Equal(got.entries, d.entries) || !got.partial {
		t.Errorf("got %+v", got)
	}
}

// FuzzDecodeTree: whatever the bytes, what is decoded has plain names in order and
// survives being encoded again.
func FuzzDecodeTree(f *testing.F) {
	d := &dir{entries: []entry{{name: "a", kind: file, mode: 0o644}, {name: "b", kind: folder, mode: 0o755}, {name: "c", kind: absent}}}
	build, meta := d.encode()
	f.Add(build(hashOf("blob", meta)), meta)
	f.Add([]byte("100644 ../x\x0001234567890123456789"), []byte("owner 1 2 a\x00unkept 3 00 b\x00partial"))
	f.Fuzz(func(t *testing.T, tree, meta []byte) {
		d, err := decodeTree(tree, func(plumbing.Hash) ([]byte, error) { return meta, nil })
		if err != nil {
			return
		}
		for i, e := range d.entries {
			if !plainName(e.name) || i > 0 && e.name < d.entries[i-1].name {
				t.Fatalf("name %q", e.name)
			}
		}
		build, again := d.encode()
		if _, err := decodeTree(build(hashOf("blob", again)), func(plumbing.Hash) ([]byte, error) { return again, nil }); err != nil {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

// FuzzReadCache: a damaged cache ends in an error, not in a panic or endless memory.
func FuzzReadCache(f *testing.F) {
	w := &cacheWriter{}
	w.dir(&dir{entries: []entry{{name: "a", kind: file, stamp: stamp{size: 3}}, {name: "b", kind: folder, dir: &dir{}}}})
	f.Add(w.b.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &cacheReader{rest: raw}
		if d := r.dir(0); r.err == nil && d == nil {
			t.Fatal("neither a state nor an error")
		}
	})
}

// FuzzReadHistory: any manifest is read; turns are in order and known once.
func FuzzReadHistory(f *testing.F) {
	f.Add(`{"kind":"turn","turn":1,"label":"x","tree":"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"}` + "\n\n{\"kind\":\"acts\",\"turn\":1}\n")
	f.Add(`{"kind":"undo","step":1,"turns":[1,2],"temp":"../x"}` + "\n" + `{"kind":"done","step":1}` + "\n" + `{"kind":"drop","turn":9}`)
	f.Fuzz(func(t *testing.T, text string) {
		h, err := readHistory(strings.NewReader(text))
		must(t, err)
		for i, turn := range h.turns {
			if i > 0 && turn.id <= h.turns[i-1].id || turn.id > h.max {
				t.Fatalf("turn %d", turn.id)
			}
		}
		h.redoable()
		h.trees()
	})
}

// TestLargeFileChangesWhileItIsWritten: what is not what was announced is taken back,
// and the pack stays whole.
func TestLargeFileChangesWhileItIsWritten(t *testing.T) {
	s, err := openStore(quickDir(t), "/ws")
	must(t, err)
	t.Cleanup(func() { must(t, s.close()) })
	p, q := newPackWriter(s), &squeezer{}
	first, err := p.add(q, plumbing.BlobObject, []byte("first\n"))
	must(t, err)
	wanted := strings.Repeat("wanted", 1000)
	name := hashOf("blob", []byte(wanted))
	for _, content := range []string{strings.Repeat("WANTED", 1000), wanted[1:], wanted + "x"} {
		if err := p.addStream(q, name, int64(len(wanted)), strings.NewReader(content)); !errors.Is(err, errSizeChanged) {
			t.Errorf("%d bytes: %v", len(content), err)
		}
	}
	must(t, p.addStream(q, name, int64(len(wanted)), strings.NewReader(wanted)))
	must(t, p.commit())
	for h, want := range map[plumbing.Hash]string{first: "first\n", name: wanted} {
		if got, err := s.read(h, 1<<20); err != nil || string(got) != want {
			t.Errorf("%s: %d bytes, %v", h, len(got), err)
		}
	}
}
