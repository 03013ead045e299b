package app

import (
	"os"
	"path/filepath"
	"testing"
)

func TestResultsThatAreKeptAreBounded(t *testing.T) {
	dir := t.TempDir()
	s := &spills{dir: dir, left: 10}
	path, err := s.keep("12345678")
	if err != nil || path != filepath.Join(dir, "mcp-1.txt") {
		t.Fatalf("keep: %q, %v", path, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
	if _, err := s.keep("123"); err == nil {
		t.Error("more than fits was kept")
	}
	if path, err := s.keep("12"); err != nil || path != filepath.Join(dir, "mcp-2.txt") {
		t.Errorf("what fits: %q, %v", path, err)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 2 {
		t.Errorf("%d files are there, %v", len(list), err)
	}
	if _, err := (&spills{dir: filepath.Join(dir, "gone"), left: 10}).keep("1"); err == nil {
		t.Error("a directory that is gone took a file")
	}
}
