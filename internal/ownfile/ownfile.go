// Package ownfile opens and replaces this program's own private files: logs, locks,
// settings and records in directories that the person, another process of the program
// or a hostile workspace may have changed meanwhile.
//
// It knows how such a file is opened without being led elsewhere or made to wait, and
// how it is replaced so that a kill leaves the old or the new. It knows nothing of what
// is in it, and is not for files of a workspace that a tool changes. The audit, the
// sessions, the checkpoints, the prompt's history and the application call it.
package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrIrregular means that a path names no regular file.
var ErrIrregular = errors.New("it is not a regular file")

// Open opens a regular file with the flags of os.OpenFile. It follows no link in the
// last component and waits for no FIFO. A file that it makes has mode 0600, and one that
// it opens for writing gets that mode when it was open to others.
func Open(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrIrregular}
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 && flag&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of a file that Open takes and that has at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it has more than %d bytes", limit)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// tempPrefix begins the name of the file that becomes the new one.
const tempPrefix = "tmp-"

// leftAlone is how long nobody wrote to such a file before it counts as left by a killed
// program. Replace takes no pauses.
const leftAlone = time.Hour

// Sweep removes what kills left of Replace in a directory, and other files whose names
// begin with "tmp-", once nobody wrote to them for an hour. What cannot be removed stays
// for the next time.
func Sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) && time.Since(info.ModTime()) > leftAlone {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// Replace makes data the content of path, with the mode, in one step: whoever reads
// finds the old content or all of the new, also after a kill or a loss of power. A link
// at path is replaced, not followed.
func Replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), tempPrefix+"*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil {
		err = errors.Join(temp.Chmod(mode), temp.Sync())
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}
