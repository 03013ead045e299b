// Package store keeps sessions on disk: one append-only log of JSON lines each,
// below a private directory. It knows how to append, to lock a live session, to
// load one whose tail was cut or whose lines are damaged, and to list them.
//
// It also renames, deletes and searches them. It knows nothing of the loop;
// internal/session writes, and app lists.
package store

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/ownfile"
)

// Store is a directory of session logs. It is safe for concurrent use, also by
// several processes.
type Store struct {
	dir string
}

// Open makes the directory (0700) if it is missing and refuses one that is a link.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open sessions %q: it is not a directory", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, fmt.Errorf("open sessions: %w", err)
		}
	}
	return &Store{dir: dir}, nil
}

// validID is the form of a session id: seconds, an underscore and a random decimal.
var validID = regexp.MustCompile(`^[1-9][0-9]{0,18}_[1-9][0-9]{0,18}$`)

// NewID makes a session id from the time and a random number.
func NewID(now time.Time, random uint32) string {
	return fmt.Sprintf("%d_%d", now.Unix(), uint64(random)+1)
}

// ErrUnknown means that there is no session of that id.
var ErrUnknown = errors.New("there is no such session")

func (s *Store) path(id string) (string, error) {
	if !validID.MatchString(id) {
		return "", fmt.Errorf("session %q: %w", id, ErrUnknown)
	}
	return filepath.Join(s.dir, id+".jsonl"), nil
}

// Info is what a list shows of a session.
type Info struct {
	ID        string    `json:"id"`
	Workspace string    `json:"workspace"`
	Profile   string    `json:"profile"`
	Model     string    `json:"model,omitempty"`
	Title     string    `json:"title"` // first line of the first request, or the title it was given
	Turns     int       `json:"turns"`
	Changed   time.Time `json:"changed"`
}

// List returns the sessions of one workspace and profile, or of all when both are
// empty, newest activity first. It looks at the beginning of each line of each log.
// Sessions without a request are left out.
func (s *Store) List(workspace, profile string) ([]Info, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	var list []Info
	in := bufio.NewReaderSize(nil, scanBuffer)
	for _, e := range entries {
		info, ok := s.peek(e, in)
		if ok && (workspace == "" || info.Workspace == workspace) && (profile == "" || info.Profile == profile) {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b Info) int {
		return cmp.Or(b.Changed.Compare(a.Changed), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}

func (s *Store) peek(e fs.DirEntry, in *bufio.Reader) (Info, bool) {
	id, isLog := cutSuffix(e.Name(), ".jsonl")
	if !isLog || !validID.MatchString(id) || !e.Type().IsRegular() {
		return Info{}, false
	}
	f, err := ownfile.Open(filepath.Join(s.dir, e.Name()), os.O_RDONLY)
	if err != nil {
		return Info{}, false
	}
	defer f.Close()
	stat, err := f.Stat()
	if err != nil {
		return Info{}, false
	}
	info := Info{ID: id, Changed: stat.ModTime()}
	return info, scan(&info, in, f, stat.Size())
}

// Loaded is what was read of a log.
type Loaded struct {
	Events []event.Event
	// Bad is the number of lines that could not be read and were set aside.
	Bad int
}

// Session returns the header of the log, or the zero value.
func (l Loaded) Session() event.Session {
	for _, e := range l.Events {
		if e.Kind == event.Opened && e.Session != nil {
			return *e.Session
		}
	}
	return event.Session{}
}

// Load reads a session without locking it.
func (s *Store) Load(id string) (Loaded, error) {
	path, err := s.path(id)
	if err != nil {
		return Loaded{}, err
	}
	f, err := ownfile.Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Loaded{}, fmt.Errorf("session %q: %w", id, ErrUnknown)
	}
	if err != nil {
		return Loaded{}, fmt.Errorf("load session: %w", err)
	}
	defer f.Close()
	return read(f)
}
