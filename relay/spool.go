package relay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
)

// The directories of the spool, below the process's private one.
const (
	inboxDir      = "inbox"      // accepted, waits
	processingDir = "processing" // claimed
	doneDir       = "done"       // empty markers, so that nothing runs twice
)

// spool keeps accepted messages until they are finished. A message moves from inbox
// to processing by one rename and leaves an empty marker in done. What decides and
// what runs is the list in memory: a file that this process did not put there, or
// that somebody changed, is never a message.
//
// Making a file costs much more than renaming or linking one on some file systems,
// so files of finished messages are written again, and all markers are one file.
type spool struct {
	dir string
	max int // unfinished messages

	mu      sync.Mutex
	number  uint64
	waiting []Envelope
	claimed map[string]bool
	known   map[string]bool // every message that was accepted, by key
	spare   []string        // files of finished messages
	marker  string          // the file that markers are links to, or ""
	made    int             // files of ours so far, for their names
	begun   bool            // the spool's directory was made
	ready   bool            // and those in it

	depth atomic.Int64 // of waiting, for those who must not wait for the lock
}

// key is what makes a message unique. No instance id holds the underscore.
func (e Envelope) key() string { return e.Sender + "_" + e.ID }

func (e Envelope) fileName() string { return fmt.Sprintf("%012d-%s", e.Number, e.ID) }

func newSpool(dir string, max int) *spool {
	return &spool{dir: dir, max: max, claimed: map[string]bool{}, known: map[string]bool{}}
}

// prepare makes the directories for the first message: most processes get none.
func (s *spool) prepare() error {
	if s.ready {
		return nil
	}
	for _, sub := range []string{"", inboxDir, processingDir, doneDir} {
		if err := os.Mkdir(s.path(sub), 0o700); err != nil && !(s.begun && errors.Is(err, fs.ErrExist)) {
			return fmt.Errorf("make the relay's spool: %w", err)
		}
		s.begun = true // what is there from now on is ours
	}
	s.ready = true
	return nil
}

func (s *spool) path(parts ...string) string {
	return filepath.Join(append([]string{s.dir}, parts...)...)
}

// add stores a message whole, unless it is known, the queue is full or, with paused,
// nothing is taken. It returns its place in the queue.
func (s *spool) add(e Envelope, paused bool) (status, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.known[e.key()]:
		return statusDuplicate, s.position(e.key())
	case paused:
		return statusPaused, 0
	case len(s.waiting)+len(s.claimed) >= s.max:
		return statusFull, 0
	}
	s.number++
	e.Number = s.number
	data, err := encode(e)
	if err == nil {
		err = s.prepare()
	}
	if err == nil {
		err = s.store(e.fileName(), data)
	}
	if err != nil {
		return statusFull, 0 // nothing was stored; the sender may try again later
	}
	s.known[e.key()] = true
	s.waiting = append(s.waiting, e)
	s.depth.Store(int64(len(s.waiting)))
	return statusAccepted, len(s.waiting)
}

// position is a message's place among those that wait, 0 when it does not.
func (s *spool) position(key string) int {
	return slices.IndexFunc(s.waiting, func(e Envelope) bool { return e.key() == key }) + 1
}

// newName is a name in the spool that was not used before.
func (s *spool) newName(what string) string {
	s.made++
	return s.path(fmt.Sprintf("%s-%d", what, s.made))
}

// draft opens a file for a message that is being written.
func (s *spool) draft() (*os.File, string, error) {
	if n := len(s.spare); n > 0 {
		name := s.spare[n-1]
		s.spare = s.spare[:n-1]
		if f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0); err == nil {
			return f, name, nil
		}
	}
	name := s.newName("draft")
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	return f, name, err
}

func (s *spool) store(name string, data []byte) error {
	f, draft, err := s.draft()
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Truncate(int64(len(data))))
	if err = errors.Join(err, f.Close()); err == nil {
		err = syscall.Rename(draft, s.path(inboxDir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return nil
}

// claim takes the oldest message that waits. An error is about its file; the message
// is whole.
func (s *spool) claim() (Envelope, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return Envelope{}, false, nil
	}
	e := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.depth.Store(int64(len(s.waiting)))
	s.claimed[e.key()] = true
	if err := syscall.Rename(s.path(inboxDir, e.fileName()), s.path(processingDir, e.fileName())); err != nil {
		return e, true, fmt.Errorf("claim message %s of %s: %w", e.ID, e.Project, err)
	}
	return e, true, nil
}

// finish ends a message that was claimed.
func (s *spool) finish(e Envelope, dir string) error {
	delete(s.claimed, e.key())
	err := s.mark(s.path(doneDir, e.key()))
	spare := s.newName("draft")
	switch rerr := syscall.Rename(s.path(dir, e.fileName()), spare); {
	case rerr == nil:
		s.spare = append(s.spare, spare)
	case !errors.Is(rerr, fs.ErrNotExist):
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("finish message %s of %s: %w", e.ID, e.Project, err)
	}
	return nil
}

// mark makes an empty file: a link to the last one, or a new one when that has as many
// as the file system allows.
func (s *spool) mark(name string) error {
	if s.marker != "" && os.Link(s.marker, name) == nil {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	s.marker = name
	return f.Close()
}

// done ends a claimed message; one that is not claimed is ErrNoItem.
func (s *spool) done(e Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.claimed[e.key()] {
		return ErrNoItem
	}
	return s.finish(e, processingDir)
}

// drop ends a message that waits, named by its number or its id.
func (s *spool) drop(match func(Envelope) bool) (Envelope, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.waiting, match)
	if at < 0 {
		return Envelope{}, ErrNoItem
	}
	e := s.waiting[at]
	s.waiting = slices.Delete(s.waiting, at, at+1)
	s.depth.Store(int64(len(s.waiting)))
	return e, s.finish(e, inboxDir)
}

// list returns what waits, oldest first.
func (s *spool) list() []Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.waiting)
}
