package relay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// The directories of the spool, below the process's private one.
const (
	inboxDir      = "inbox"      // accepted, waits
	processingDir = "processing" // claimed
	doneDir       = "done"       // empty markers, so that nothing runs twice
)

// spool keeps accepted messages until they are finished. A message moves from inbox
// to processing by one rename and leaves an empty marker in done. What decides is
// the list in memory: a file that this process did not put there, or that changed,
// is never a message.
type spool struct {
	dir string
	max int // unfinished messages

	mu      sync.Mutex
	number  uint64
	waiting []item
	claimed map[string]item
	known   map[string]bool // every message that was accepted, by key

	depth atomic.Int64 // of waiting, for those who must not wait for the lock
}

// item is a message without its body, which is in the file.
type item struct {
	Envelope
	sum [sha256.Size]byte // of the file
}

// key is what makes a message unique. No instance id holds the underscore.
func (e Envelope) key() string { return e.Sender + "_" + e.ID }

func (e Envelope) fileName() string { return fmt.Sprintf("%012d-%s", e.Number, e.ID) }

func openSpool(dir string, max int) (*spool, error) {
	for _, sub := range []string{"", inboxDir, processingDir, doneDir} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make the relay's spool: %w", err)
		}
	}
	return &spool{dir: dir, max: max, claimed: map[string]item{}, known: map[string]bool{}}, nil
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
		err = s.store(e.fileName(), data)
	}
	if err != nil {
		return statusFull, 0 // nothing was stored; the sender may try again later
	}
	s.known[e.key()] = true
	sum := sha256.Sum256(data)
	e.Body = ""
	s.waiting = append(s.waiting, item{e, sum})
	s.depth.Store(int64(len(s.waiting)))
	return statusAccepted, len(s.waiting)
}

// position is a message's place among those that wait, 0 when it does not.
func (s *spool) position(key string) int {
	return slices.IndexFunc(s.waiting, func(i item) bool { return i.key() == key }) + 1
}

func (s *spool) store(name string, data []byte) error {
	draft := s.path("." + name)
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(draft, s.path(inboxDir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return nil
}

// claim takes the oldest message that waits. An error is about a message that is
// lost, since its file was removed or changed; the next call goes on behind it.
func (s *spool) claim() (Envelope, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return Envelope{}, false, nil
	}
	i := s.waiting[0]
	s.waiting = s.waiting[1:]
	s.depth.Store(int64(len(s.waiting)))
	at := s.path(processingDir, i.fileName())
	err := os.Rename(s.path(inboxDir, i.fileName()), at)
	if err == nil {
		s.claimed[i.key()] = i
		i.Envelope, err = readBack(at, i)
	}
	if err != nil {
		return Envelope{}, false, errors.Join(fmt.Errorf("message %s of %s is lost: %w", i.ID, i.Project, err), s.finish(i.Envelope, processingDir))
	}
	return i.Envelope, true, nil
}

// readBack reads a stored message and checks that it is what was stored.
func readBack(path string, i item) (Envelope, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return i.Envelope, err
	}
	if sha256.Sum256(data) != i.sum {
		return i.Envelope, errors.New("its file was changed")
	}
	o, err := parseObject(data)
	if err != nil {
		return i.Envelope, err
	}
	i.Body, _ = o["body"].(string)
	return i.Envelope, nil
}

// finish ends a message that was claimed.
func (s *spool) finish(e Envelope, dir string) error {
	delete(s.claimed, e.key())
	marker, err := os.OpenFile(s.path(doneDir, e.key()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = marker.Close()
	}
	if rerr := os.Remove(s.path(dir, e.fileName())); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if err != nil {
		return fmt.Errorf("finish message %s of %s: %w", e.ID, e.Project, err)
	}
	return nil
}

// done ends a claimed message; one that is not claimed is ErrNoItem.
func (s *spool) done(e Envelope) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.claimed[e.key()]; !ok {
		return ErrNoItem
	}
	return s.finish(e, processingDir)
}

// drop ends a message that waits, named by its number or its id.
func (s *spool) drop(match func(Envelope) bool) (Envelope, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.waiting, func(i item) bool { return match(i.Envelope) })
	if at < 0 {
		return Envelope{}, ErrNoItem
	}
	e := s.waiting[at].Envelope
	s.waiting = slices.Delete(s.waiting, at, at+1)
	s.depth.Store(int64(len(s.waiting)))
	return e, s.finish(e, inboxDir)
}

// list returns what waits, oldest first, with the bodies that can be read.
func (s *spool) list() []Envelope {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Envelope, 0, len(s.waiting))
	for _, i := range s.waiting {
		e, _ := readBack(s.path(inboxDir, i.fileName()), i)
		list = append(list, e)
	}
	return list
}
