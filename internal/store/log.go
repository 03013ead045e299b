package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
	"zcoder/internal/event"
	"zcoder/internal/ownfile"
)

// ErrInUse means that another process has the session open.
var ErrInUse = errors.New("the session is open in another zcoder")

// Log appends to one session. It is used by one goroutine at a time.
type Log struct {
	path string
	file *os.File // nil until the first append
	// pending is what could not be written yet; it is tried again with every append.
	pending []byte
	buf     bytes.Buffer
	enc     *json.Encoder
}

// Create returns the log of a new session. The file appears with the first append,
// so that an unused session leaves nothing.
func (s *Store) Create(id string) (*Log, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, err
	}
	return newLog(path), nil
}

func newLog(path string) *Log {
	l := &Log{path: path}
	l.enc = json.NewEncoder(&l.buf)
	l.enc.SetEscapeHTML(false)
	return l
}

// Resume opens a session for appending and locks it, after it was read. It returns
// ErrInUse when it is open elsewhere. A cut last line is closed, so that the next
// record stands on its own line.
func (s *Store) Resume(id string) (*Log, Loaded, error) {
	path, err := s.path(id)
	if err != nil {
		return nil, Loaded{}, err
	}
	f, err := ownfile.Open(path, os.O_RDWR|os.O_APPEND)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Loaded{}, fmt.Errorf("session %q: %w", id, ErrUnknown)
	}
	if err != nil {
		return nil, Loaded{}, fmt.Errorf("resume session: %w", err)
	}
	loaded, err := lockAndRead(f)
	if err != nil {
		f.Close()
		return nil, Loaded{}, fmt.Errorf("resume session %q: %w", id, err)
	}
	l := newLog(path)
	l.file = f
	return l, loaded, nil
}

func lockAndRead(f *os.File) (Loaded, error) {
	if err := lock(f); err != nil {
		return Loaded{}, err
	}
	loaded, err := read(f)
	if err != nil {
		return Loaded{}, err
	}
	return loaded, closeTail(f)
}

func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// closeTail ends a last line that was cut short.
func closeTail(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); err != nil {
		return err
	}
	if last[0] == '\n' {
		return nil
	}
	_, err = f.Write([]byte{'\n'})
	return err
}

// Append writes one event as one line, handed to the kernel when it returns. On an
// error the event is kept and tried again with the next append; the session can go
// on, but nothing that must be recorded may run while Behind.
func (l *Log) Append(e event.Event) error {
	l.buf.Reset()
	if err := l.enc.Encode(e); err != nil {
		return fmt.Errorf("encode session record: %w", err)
	}
	if len(l.pending) > 0 {
		l.pending = append(l.pending, l.buf.Bytes()...)
		return l.flush(l.pending)
	}
	return l.flush(l.buf.Bytes())
}

// flush writes data and keeps what could not be written.
func (l *Log) flush(data []byte) error {
	if err := l.create(); err != nil {
		l.pending = bytes.Clone(data)
		return err
	}
	n, err := l.file.Write(data)
	if err != nil {
		l.pending = bytes.Clone(data[n:])
		return fmt.Errorf("write session: %w", err)
	}
	l.pending = nil
	return nil
}

func (l *Log) create() error {
	if l.file != nil {
		return nil
	}
	f, err := ownfile.Open(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	if err := lock(f); err != nil {
		f.Close()
		return fmt.Errorf("create session: %w", err)
	}
	l.file = f
	return nil
}

// Behind reports whether records wait to be written.
func (l *Log) Behind() bool { return len(l.pending) > 0 }

// Sync puts all that was appended on the disk.
func (l *Log) Sync() error {
	if l.file == nil {
		return nil
	}
	if len(l.pending) > 0 {
		if err := l.flush(l.pending); err != nil {
			return err
		}
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("sync session: %w", err)
	}
	return nil
}

// Close releases the session. It tries once more to write what waits.
func (l *Log) Close() error {
	if l.file == nil {
		return nil
	}
	err := l.Sync()
	return errors.Join(err, l.file.Close())
}
