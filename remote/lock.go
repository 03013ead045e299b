package remote

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"zcoder/internal/ownfile"
)

// maxName bounds the name of a server in bytes.
const maxName = 100

// NameLock is held by the one live server of a name.
type NameLock struct {
	dir  string
	file *os.File
}

// LockName takes the name for this process, as the directory of that name below dir
// (0700, made if it is missing). Characters of the name other than A-Z a-z 0-9 _ . -
// count as _. When another live server has the name the error says which: what it gave
// as who. The lock ends with the process, however that ends.
func LockName(dir, name, who string) (*NameLock, error) {
	folder, err := nameFolder(name)
	if err != nil {
		return nil, err
	}
	l := &NameLock{dir: filepath.Join(dir, folder)}
	if err := makeOwnDir(l.dir); err != nil {
		return nil, fmt.Errorf("lock the server name %q: %w", name, err)
	}
	if err := l.take(name, who); err != nil {
		return nil, err
	}
	return l, nil
}

// Dir is where the state of a server of this name belongs.
func (l *NameLock) Dir() string { return l.dir }

// Close lets the name go. The directory stays.
func (l *NameLock) Close() error { return errors.Join(l.file.Truncate(0), l.file.Close()) }

func nameFolder(name string) (string, error) {
	folder := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '.', r == '-':
			return r
		}
		return '_'
	}, name)
	if strings.Trim(folder, ".") == "" || len(folder) > maxName {
		return "", hint(fmt.Errorf("server name %q: it is no name for a directory", name), fmt.Sprintf("use 1 to %d of A-Z a-z 0-9 _ . -, not only dots", maxName))
	}
	return folder, nil
}

// makeOwnDir makes a private directory and those above it. One that is there already
// must be real, ours and closed to others.
func makeOwnDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err == nil && !(info.IsDir() && ours(info) && info.Mode().Perm()&0o077 == 0) {
		err = hint(fmt.Errorf("the directory %q is not private (%v)", dir, info.Mode()), "use a directory of your own with mode 0700")
	}
	return err
}

// take locks the file. One that was removed or replaced between opening and locking
// locks nothing, so it is looked at again.
func (l *NameLock) take(name, who string) error {
	f, err := lockFile(filepath.Join(l.dir, "lock"))
	switch {
	case errors.Is(err, errHeld):
		return hint(fmt.Errorf("lock the server name %q: a live server has it%s", name, holder(filepath.Join(l.dir, "lock"))), "choose another name, or end that server")
	case err != nil:
		return fmt.Errorf("lock the server name %q: %w", name, err)
	}
	l.file = f
	if _, err := f.WriteAt([]byte(who+"\n"), 0); err != nil {
		return errors.Join(fmt.Errorf("lock the server name %q: %w", name, err), l.Close())
	}
	return nil
}

// errHeld means that another process holds a lock.
var errHeld = errors.New("another process holds the lock")

// lockFile opens and locks a file, which it makes when it is missing, and empties it.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := ownfile.Open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errHeld
		}
		var now, named fs.FileInfo
		if err == nil {
			now, err = f.Stat()
		}
		if err == nil {
			named, err = os.Lstat(path)
		}
		switch {
		case err == nil && os.SameFile(now, named):
			return f, f.Truncate(0)
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, f.Close())
		}
		f.Close()
	}
}

// holder is what the holder of the lock says of itself.
func holder(path string) string {
	f, err := ownfile.Open(path, os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 500))
	if err != nil || len(text) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
