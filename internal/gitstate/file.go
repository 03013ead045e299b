package gitstate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

const (
	maxPointer    = 4096    // bytes of HEAD, of one ref and of a pointer
	maxPackedRefs = 1 << 24 // bytes
)

// openFile opens a regular file without waiting. It looks before it opens, since
// opening some devices acts.
func openFile(path string) (*os.File, fs.FileInfo, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, nil, errors.Join(err, errNotRegular)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNotRegular
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readFile returns the content of a regular file of at most limit bytes.
func readFile(path string, limit int64) (string, error) {
	f, info, err := openFile(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info.Size() > limit {
		return "", errNotRegular
	}
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = errNotRegular
	}
	return string(text), err
}

func readDir(path string) ([]fs.DirEntry, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.ReadDir(-1)
}

// ours reports whether a file belongs to this user, or to root, who may do all.
func ours(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(st.Uid) == os.Geteuid() || st.Uid == 0
}

func sameDevice(a, b string) bool {
	x, err := os.Lstat(a)
	y, err2 := os.Lstat(b)
	if err != nil || err2 != nil {
		return false
	}
	s, ok := x.Sys().(*syscall.Stat_t)
	t, ok2 := y.Sys().(*syscall.Stat_t)
	return ok && ok2 && s.Dev == t.Dev
}
