package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// open makes a workspace in a fresh directory and returns it with its root.
func open(t testing.TB, o Options) (*Workspace, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := Open(root, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, root
}

// fastDir returns a fresh directory in memory where there is such a place: tests
// that write often would wait for the disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "zcoder-test-")
	if err != nil {
		if dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func resolve(t testing.TB, w *Workspace, text string) Path {
	t.Helper()
	p, err := w.Resolve(text)
	if err != nil {
		t.Fatalf("resolve %q: %v", text, err)
	}
	return p
}

func contentOf(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadAndReplace(t *testing.T) {
	w, root := open(t, Options{Journal: filepath.Join(t.TempDir(), "journal")})
	put(t, filepath.Join(root, "a.txt"), "old")
	p := resolve(t, w, "a.txt")
	content, stamp, err := w.Read(p, 10)
	if err != nil || string(content) != "old" {
		t.Fatalf("read: %q, %v", content, err)
	}
	fresh := resolve(t, w, "new/dir/b.txt")
	err = w.Apply(
		Change{Path: p, Content: []byte("new"), Expect: stamp},
		Change{Path: fresh, Content: []byte("b")},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := contentOf(t, filepath.Join(root, "a.txt")); got != "new" {
		t.Errorf("a.txt holds %q", got)
	}
	if got := contentOf(t, filepath.Join(root, "new/dir/b.txt")); got != "b" {
		t.Errorf("b.txt holds %q", got)
	}
	if err := w.Apply(Change{Path: p, Content: []byte("x"), Expect: stamp}); !errors.Is(err, ErrChanged) {
		t.Errorf("a stale stamp gives %v", err)
	}
	if _, _, err := w.Read(resolve(t, w, "a.txt"), 2); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large file gives %v", err)
	}
}
