// Package runtimedir makes the one private directory that a process keeps its
// exchange files and sockets in, and removes what dead processes left.
//
// It knows where such a directory may stand, how it is verified and which ones are
// stale. It reads no environment: app hands the places in and closes the directory
// at the end. It follows no link below the place it chose.
package runtimedir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// prefix begins the name of every directory: zcoder-PID-RANDOM.
const prefix = "zcoder-"

// fallback is where the directory stands when nothing better is given.
const fallback = "/tmp"

// Places are the directories that the environment names. Both may be empty.
type Places struct {
	Runtime string // $XDG_RUNTIME_DIR: used when it is a real directory, ours, 0700
	Temp    string // $TMPDIR: used when others cannot replace what stands in it
}

// Dir is the private directory of this process.
type Dir struct {
	base string // real path of the place
	name string
	info fs.FileInfo
	lock *os.File // the record, locked as long as the process lives

	close sync.Once
	err   error
}

// Open removes the directories of dead processes of this user from the place it
// chooses and makes a new one there: below Runtime, else Temp, else /tmp. Every
// name in it is ours; it has mode 0700.
func Open(p Places) (*Dir, error) {
	base, err := choose(p)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", base, err)
	}
	defer root.Close()
	sweep(root)
	return create(root, base)
}

// Path is the absolute path of the directory, without links.
func (d *Dir) Path() string { return filepath.Join(d.base, d.name) }

// Close removes the directory and all in it. It may be called more than once and
// from several goroutines.
func (d *Dir) Close() error {
	d.close.Do(func() { d.err = d.remove() })
	return d.err
}

func (d *Dir) remove() error {
	defer d.lock.Close()
	root, err := os.OpenRoot(d.base)
	if err != nil {
		return fmt.Errorf("remove runtime directory %q: %w", d.Path(), err)
	}
	defer root.Close()
	info, err := root.Lstat(d.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !os.SameFile(info, d.info) {
		err = errors.New("another file has its name")
	}
	if err == nil {
		err = root.RemoveAll(d.name)
	}
	if err != nil {
		return fmt.Errorf("remove runtime directory %q: %w", d.Path(), err)
	}
	return nil
}

// create makes the directory below base and its record.
func create(root *os.Root, base string) (*Dir, error) {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	d := &Dir{base: base, name: fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), hex.EncodeToString(random[:]))}
	if err := root.Mkdir(d.name, 0o700); err != nil {
		return nil, fmt.Errorf("make runtime directory %q: %w", d.Path(), err)
	}
	err := d.verify(root)
	if err == nil {
		d.lock, err = writeRecord(root, d.name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make runtime directory %q: %w", d.Path(), err), root.Remove(d.name))
	}
	return d, nil
}

// verify looks at what now has the name: a real directory of ours, closed to
// others. A strict umask may have taken bits of the owner: they are set again.
func (d *Dir) verify(root *os.Root) error {
	info, err := root.Lstat(d.name)
	if err == nil && info.IsDir() && owned(info) && info.Mode().Perm() != 0o700 {
		if err = root.Chmod(d.name, 0o700); err == nil {
			info, err = root.Lstat(d.name)
		}
	}
	if err != nil {
		return err
	}
	d.info = info
	if !private(info) {
		return fmt.Errorf("it has mode %v and is not private", info.Mode())
	}
	return nil
}

// choose returns the real path of the first place that is safe.
func choose(p Places) (string, error) {
	if info, err := os.Lstat(p.Runtime); err == nil && filepath.IsAbs(p.Runtime) && private(info) {
		if real, err := filepath.EvalSymlinks(p.Runtime); err == nil {
			return real, nil
		}
	}
	if real, ok := shared(p.Temp); ok {
		return real, nil
	}
	if real, ok := shared(fallback); ok {
		return real, nil
	}
	return "", fmt.Errorf("choose a runtime directory: neither %q, %q nor %q is a directory in which others cannot replace our files", p.Runtime, p.Temp, fallback)
}

// shared reports whether path is a directory where nobody but root and us can
// remove or rename what is ours, and returns it without links.
func shared(path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", false
	}
	info, err := os.Lstat(real)
	if err != nil || !info.IsDir() {
		return "", false
	}
	if uid, ok := ownerOf(info); !ok || uid != 0 && uid != uint32(os.Geteuid()) {
		return "", false
	}
	return real, info.Mode().Perm()&0o022 == 0 || info.Mode()&fs.ModeSticky != 0
}

// private reports whether info is a real directory of ours with mode 0700.
func private(info fs.FileInfo) bool {
	return info.IsDir() && owned(info) && info.Mode().Perm() == 0o700
}

func owned(info fs.FileInfo) bool {
	uid, ok := ownerOf(info)
	return ok && uid == uint32(os.Geteuid())
}

func ownerOf(info fs.FileInfo) (uint32, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Uid, true
}
