package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestGitByIdentity stands for a file system that takes another name for ".git": a
// bind mount is the nearest that a test can make without one.
func TestGitByIdentity(t *testing.T) {
	w, root := open(t, Options{})
	for _, dir := range []string{".git", "other"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mount(filepath.Join(root, ".git"), filepath.Join(root, "other"), "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("no bind mount: %v", err)
	}
	defer syscall.Unmount(filepath.Join(root, "other"), 0)
	if _, err := resolve(t, w, "other/config").WriteReasons(); err == nil {
		t.Error(".git is writable under another name")
	}
}

func TestDiskFull(t *testing.T) {
	root := fastDir(t)
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small disk: %v", err)
	}
	defer syscall.Unmount(root, 0)
	w, err := Open(root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put(t, filepath.Join(root, "a"), "old")
	before := digest(t, root)
	if err := write(t, w, "a", strings.Repeat("x", 1<<20)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if err := write(t, w, "new/dir/b", strings.Repeat("x", 1<<20)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if digest(t, root) != before {
		t.Error("the workspace changed")
	}
}
