package workspace

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

const tempPrefix = ".zcoder-tmp-"

// tempRandom is the number of random bytes in the name of a temporary file.
const tempRandom = 8

// IsTemp reports whether name, a single component, is one that this program gives
// its temporary files: lists, searches and checkpoints leave it out.
func IsTemp(name string) bool {
	return len(name) >= len(tempPrefix) && strings.EqualFold(name[:len(tempPrefix)], tempPrefix)
}

// isOurTemp is the exact form, for removing.
func isOurTemp(name string) bool {
	id, ok := strings.CutPrefix(name, tempPrefix)
	return ok && len(id) == 2*tempRandom && strings.Trim(id, "0123456789abcdef") == ""
}

// newTemp notes the name of a temporary file in dir and returns it.
func (w *Workspace) newTemp(dir *os.Root, at string) (string, error) {
	var id [tempRandom]byte
	rand.Read(id[:])
	name := tempPrefix + hex.EncodeToString(id[:])
	return name, w.note(dir, at, name)
}

// stage writes the new content beside the target and syncs it.
func (w *Workspace) stage(p *pending) error {
	parts := p.Parts
	if parts == nil {
		parts = [][]byte{p.Content}
	}
	name, err := w.newTemp(p.dir, p.parentAbs())
	if err != nil {
		return err
	}
	p.temp = name
	f, err := p.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, p.firstMode())
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err == nil && p.before != nil {
		err = p.keep(f, p.Mode)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// firstMode is the mode that a temporary file is made with: a new file gets its
// own less umask, another's content is nobody's business until it has its mode.
func (p *pending) firstMode() fs.FileMode {
	switch {
	case p.before != nil:
		return 0o600
	case p.Mode != 0:
		return p.Mode.Perm()
	default:
		return 0o666
	}
}

// keep gives f the owner, extended attributes and mode of the file that it
// replaces, the mode last, since a change of owner clears bits. Set-id bits are not
// kept, as with any write.
func (p *pending) keep(f *os.File, mode fs.FileMode) error {
	if err := keepOwner(f, p.before); err != nil {
		return err
	}
	old, err := p.openOld()
	if err != nil {
		return err
	}
	defer old.Close()
	if err := keepAttributes(f, old); err != nil {
		return err
	}
	if mode == 0 {
		mode = p.before.Mode().Perm() | p.before.Mode()&fs.ModeSticky
	}
	return f.Chmod(mode)
}

// openOld opens the file that is replaced, which must still be the expected one.
func (p *pending) openOld() (*os.File, error) {
	old, err := p.dir.OpenFile(p.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := old.Stat()
	if err == nil {
		err = p.isExpected(info)
	}
	if err != nil {
		return nil, errors.Join(err, old.Close())
	}
	return old, nil
}

func keepOwner(f *os.File, before fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	want, wantOK := before.Sys().(*syscall.Stat_t)
	have, haveOK := info.Sys().(*syscall.Stat_t)
	if !wantOK || !haveOK || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	err = f.Chown(int(want.Uid), int(want.Gid))
	if errors.Is(err, syscall.EPERM) {
		return nil // WriteReasons said so, and a person agreed
	}
	return err
}

// backUp gives the old content a second name, or copies it where there are no hard
// links.
func (w *Workspace) backUp(p *pending) error {
	name, err := w.newTemp(p.dir, p.parentAbs())
	if err != nil {
		return err
	}
	p.backup = name
	if err := p.dir.Link(p.name, name); err == nil {
		return nil
	}
	old, err := p.openOld()
	if err != nil {
		return err
	}
	defer old.Close()
	f, err := p.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, old); err == nil {
		err = p.keep(f, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (p *pending) parentAbs() string {
	return strings.TrimSuffix(p.Path.Abs(), "/"+p.name)
}
