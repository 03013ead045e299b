package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"
)

// Stamp is the identity and the content of a file at one moment. Stamps are
// compared with Same. The zero value means that there is no file.
type Stamp struct {
	Dev, Ino uint64
	Size     int64 // bytes
	ModTime  time.Time
	Mode     fs.FileMode
	Sum      [sha256.Size]byte
}

// Same reports whether s and o are the same file with the same mode and content.
// The time of the last change is not compared: it changes without the content.
func (s Stamp) Same(o Stamp) bool {
	s.ModTime, o.ModTime = time.Time{}, time.Time{}
	return s == o
}

func stampOf(info fs.FileInfo, size int64, sum [sha256.Size]byte) Stamp {
	s := Stamp{Size: size, ModTime: info.ModTime(), Mode: info.Mode(), Sum: sum}
	s.Dev, s.Ino = identity(info)
	return s
}

func identity(info fs.FileInfo) (dev, ino uint64) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev), uint64(st.Ino)
	}
	return 0, 0
}

// openDir opens the directory rel one component at a time and follows no link: a
// component that became one since it was resolved is ErrChanged.
func (w *Workspace) openDir(rel string) (*os.Root, error) {
	dir, err := w.dir.OpenRoot(".")
	if err != nil {
		return nil, fmt.Errorf("open the workspace: %w", plainError(err))
	}
	if rel == "." {
		return dir, nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := enter(dir, name)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// enter opens the directory called name in dir unless it is a link.
func enter(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, plainError(err))
	}
	if !before.IsDir() {
		return nil, fmt.Errorf("open directory %q: it is %s: %w", name, kindOf(before.Mode()), ErrChanged)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", name, plainError(err))
	}
	after, err := next.Stat(".")
	if err != nil || !os.SameFile(before, after) {
		next.Close()
		return nil, fmt.Errorf("open directory %q: %w", name, ErrChanged)
	}
	return next, nil
}

// Open opens a file for reading. It never blocks: what is not a regular file is an
// error, as is a file that is not the one that was resolved (ErrChanged), a file
// with more hard links than it had then, and a file of the kernel such as those in
// /proc. The caller closes it.
func (w *Workspace) Open(p Path) (*os.File, error) {
	f, _, err := w.open(p)
	return f, err
}

func (w *Workspace) open(p Path) (*os.File, fs.FileInfo, error) {
	if !p.Exists() {
		return nil, nil, fmt.Errorf("%q does not exist: %w", p.rel, fs.ErrNotExist)
	}
	if !p.info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%q is %s, not a regular file", p.rel, kindOf(p.info.Mode()))
	}
	f, err := w.dir.OpenFile(p.rel, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open %q: %w", p.rel, plainError(err))
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		err = fmt.Errorf("look at %q: %w", p.rel, plainError(err))
	case !info.Mode().IsRegular() || !os.SameFile(info, p.info) || hardLinks(info) > max(hardLinks(p.info), 1):
		err = fmt.Errorf("%q: %w", p.rel, ErrChanged)
	case kernelMade(f):
		err = fmt.Errorf("%q is a file of the kernel, not of the workspace", p.rel)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func kernelMade(f *os.File) (found bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	_ = conn.Control(func(fd uintptr) { found = OfKernel(int(fd)) })
	return found
}

// Read returns the whole content and its stamp, or ErrTooLarge when there are more
// than limit bytes.
func (w *Workspace) Read(p Path, limit int64) ([]byte, Stamp, error) {
	f, info, err := w.open(p)
	if err != nil {
		return nil, Stamp{}, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, Stamp{}, fmt.Errorf("%q %w: %d bytes, the limit is %d", p.rel, ErrTooLarge, info.Size(), limit)
	}
	content, err := readAll(f, info.Size(), limit)
	if err != nil {
		return nil, Stamp{}, fmt.Errorf("read %q: %w", p.rel, plainError(err))
	}
	return content, stampOf(info, int64(len(content)), sha256.Sum256(content)), nil
}

// readAll reads to the end with one allocation when size is right.
func readAll(f io.Reader, size, limit int64) ([]byte, error) {
	content := make([]byte, 0, size+1)
	for {
		n, err := f.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case int64(len(content)) > limit:
			return nil, fmt.Errorf("it %w: the limit is %d bytes", ErrTooLarge, limit)
		case errors.Is(err, io.EOF):
			return content, nil
		case err != nil:
			return nil, err
		case len(content) == cap(content):
			content = append(content, 0)[:len(content)]
		}
	}
}

// StampOf reads the file as it is now, in pieces. A path that does not exist has
// the zero stamp.
func (w *Workspace) StampOf(p Path) (Stamp, error) {
	if !p.Exists() {
		return w.absent(p)
	}
	f, info, err := w.open(p)
	if err != nil {
		return Stamp{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.CopyBuffer(struct{ hash.Hash }{h}, struct{ io.Reader }{f}, make([]byte, 1<<18))
	if err != nil {
		return Stamp{}, fmt.Errorf("read %q: %w", p.rel, plainError(err))
	}
	return stampOf(info, size, [sha256.Size]byte(h.Sum(nil))), nil
}

// absent confirms that nothing has come to be at p.
func (w *Workspace) absent(p Path) (Stamp, error) {
	dir, err := w.openDir(path.Dir(p.rel))
	if errors.Is(err, fs.ErrNotExist) {
		return Stamp{}, nil
	}
	if err != nil {
		return Stamp{}, err
	}
	defer dir.Close()
	_, err = dir.Lstat(path.Base(p.rel))
	if errors.Is(err, fs.ErrNotExist) {
		return Stamp{}, nil
	}
	if err != nil {
		return Stamp{}, fmt.Errorf("look at %q: %w", p.rel, plainError(err))
	}
	return Stamp{}, fmt.Errorf("%q: %w: it exists now", p.rel, ErrChanged)
}
