package ownfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// odd is a directory with a file that is open to others, and things that are no files.
func odd(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o644))
	must(t, os.Chmod(filepath.Join(dir, "file"), 0o644))
	must(t, os.Symlink("file", filepath.Join(dir, "link")))
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	return dir
}

func mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Mode()
}

func TestOpen(t *testing.T) {
	const create = os.O_RDWR | os.O_CREATE
	tests := []struct {
		name, file string
		flag       int
		fails      error
		mode       fs.FileMode
	}{
		{"reading leaves the mode", "file", os.O_RDONLY, nil, 0o644},
		{"appending takes it from others", "file", os.O_WRONLY | os.O_APPEND, nil, 0o600},
		{"a new file is private", "new", create, nil, 0o600},
		{"no link", "link", os.O_RDWR, syscall.ELOOP, 0},
		{"no link is made a file", "link", create, syscall.ELOOP, 0},
		{"no directory", "dir", os.O_RDONLY, ErrIrregular, 0},
		{"a FIFO to read", "fifo", os.O_RDONLY, ErrIrregular, 0},
		{"a FIFO to write", "fifo", os.O_WRONLY, syscall.ENXIO, 0},
		{"nothing", "none", os.O_RDONLY, fs.ErrNotExist, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(odd(t), tt.file)
			f, err := Open(path, tt.flag)
			if !errors.Is(err, tt.fails) {
				t.Fatalf("got %v, want %v", err, tt.fails)
			}
			if err != nil {
				return
			}
			must(t, f.Close())
			if got := mode(t, path); got != tt.mode {
				t.Errorf("mode %v, want %v", got, tt.mode)
			}
		})
	}
}

func TestRead(t *testing.T) {
	dir := odd(t)
	if data, err := Read(filepath.Join(dir, "file"), 4); err != nil || string(data) != "text" {
		t.Errorf("got %q, %v", data, err)
	}
	for name, limit := range map[string]int64{"file": 3, "link": 4, "fifo": 4} {
		if data, err := Read(filepath.Join(dir, name), limit); err == nil {
			t.Errorf("%s: got %q", name, data)
		}
	}
}

func TestSweep(t *testing.T) {
	dir := odd(t)
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"tmp-old", "tmp-young", "other"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		if name != "tmp-young" {
			must(t, os.Chtimes(filepath.Join(dir, name), old, old))
		}
	}
	must(t, os.Mkdir(filepath.Join(dir, "tmp-dir"), 0o700))
	must(t, os.Chtimes(filepath.Join(dir, "tmp-dir"), old, old))
	Sweep(dir)
	Sweep(filepath.Join(dir, "missing"))
	for name, stays := range map[string]bool{"tmp-old": false, "tmp-young": true, "other": true, "tmp-dir": true} {
		if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != stays {
			t.Errorf("%s: stays should be %v, %v", name, stays, err)
		}
	}
}

func TestReplace(t *testing.T) {
	dir := odd(t)
	for _, name := range []string{"file", "link", "new"} {
		path := filepath.Join(dir, name)
		must(t, Replace(path, []byte(name), 0o600))
		if data, err := os.ReadFile(path); string(data) != name || mode(t, path) != 0o600 {
			t.Errorf("%s: got %q, %v, %v", name, data, err, mode(t, path))
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dir, "file")); string(data) != "file" {
		t.Errorf("the link was followed: %q", data)
	}
	if err := Replace(filepath.Join(dir, "dir"), nil, 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "tmp-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
