package dirfd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpensWithoutLinks(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	must(t, os.Symlink("dir", filepath.Join(dir, "dirlink")))
	must(t, os.Symlink("file", filepath.Join(dir, "filelink")))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	at, err := Dir(unix.AT_FDCWD, dir)
	must(t, err)
	defer unix.Close(at)
	tests := []struct {
		name     string
		as       func(int, string) (int, error)
		dir      error
		file     error
		dirlink  error
		filelink error
		fifo     error
	}{
		{"a directory", Dir, nil, unix.ENOTDIR, unix.ENOTDIR, unix.ENOTDIR, unix.ENOTDIR},
		{"a file", File, nil, nil, unix.ELOOP, unix.ELOOP, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for name, want := range map[string]error{"dir": tt.dir, "file": tt.file, "dirlink": tt.dirlink, "filelink": tt.filelink, "fifo": tt.fifo} {
				fd, err := tt.as(at, name)
				if !errors.Is(err, want) {
					t.Errorf("%s: got %v, want %v", name, err, want)
				}
				if err == nil {
					unix.Close(fd)
				}
			}
		})
	}
}

func TestListAppendsAllNames(t *testing.T) {
	dir := t.TempDir()
	want := []string{"before"}
	for i := range 300 {
		name := fmt.Sprintf("%03d-a-name-that-fills-the-buffer", i)
		want = append(want, name)
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	fd, err := Dir(unix.AT_FDCWD, dir)
	must(t, err)
	defer unix.Close(fd)
	got, err := List(fd, make([]byte, 4096), []string{"before"})
	must(t, err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got %d names: %q", len(got), got)
	}
}

func TestRetryRepeatsInterruptedCalls(t *testing.T) {
	calls := 0
	err := Retry(func() error {
		if calls++; calls < 3 {
			return unix.EINTR
		}
		return unix.EIO
	})
	if err != unix.EIO || calls != 3 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
