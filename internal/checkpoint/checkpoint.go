// Package checkpoint keeps what a workspace was at the beginning of each turn, so
// that what the agent did to its files can be seen and undone.
//
// It knows states of a directory tree, a private store of packs for them, and how
// files are put back. It runs no program, writes nothing into the workspace except
// when it undoes, and never touches or reads through a user's repository: whatever
// git could take for ".git" is in no state. It knows nothing of tools, questions or
// conversations. The app calls it around turns and for /diff, /undo and /redo.
//
// A state is a git tree. Content goes into one packfile for each state, written in
// full before a line of the manifest of the session names it, so a kill loses
// nothing that was named. A stamp of each file (device, inode, size, times, mode)
// decides whether it is read again.
package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
	"zcoder/internal/dirfd"
)

// Limits bound what is kept. A zero value takes the default.
type Limits struct {
	// Files and Bytes bound the files that git does not ignore; a workspace with more
	// is kept in the mode EditsOnly. Bytes bounds single files too. 50 000 and 1 GiB.
	Files int
	Bytes int64
	// IgnoredFile bounds one file that git ignores, IgnoredFiles and IgnoredBytes all
	// of them; more are not kept. 1 MiB, 10 000 and 50 MiB.
	IgnoredFile, IgnoredBytes int64
	IgnoredFiles              int
	// Store bounds the stores of all workspaces together, in bytes; the oldest sessions
	// go first. 2 GiB.
	Store int64
}

func (l Limits) withDefaults() Limits {
	def := Limits{Files: 50_000, Bytes: 1 << 30, IgnoredFile: 1 << 20, IgnoredBytes: 50 << 20, IgnoredFiles: 10_000, Store: 2 << 30}
	l.Files = orDefault(l.Files, def.Files)
	l.Bytes = orDefault(l.Bytes, def.Bytes)
	l.IgnoredFile = orDefault(l.IgnoredFile, def.IgnoredFile)
	l.IgnoredBytes = orDefault(l.IgnoredBytes, def.IgnoredBytes)
	l.IgnoredFiles = orDefault(l.IgnoredFiles, def.IgnoredFiles)
	l.Store = orDefault(l.Store, def.Store)
	return l
}

func orDefault[T int | int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

// Options are the surroundings of a Keeper.
type Options struct {
	// Store is a private directory for the stores of all workspaces. It is made when it
	// is missing.
	Store string
	// Root is the canonical path of the workspace.
	Root string
	// UserHome is the home folder: a workspace that is it or holds it is kept in the
	// mode EditsOnly. Empty: not known.
	UserHome string
	// Session names the conversation: letters, digits, ".", "_" and "-". The same name
	// finds its turns again.
	Session string
	// Exclude are directories that are never entered, such as the settings directory.
	// Store is always one of them.
	Exclude []string
	Limits  Limits
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Mode says what is kept.
type Mode uint8

const (
	// Full keeps the whole workspace.
	Full Mode = iota
	// EditsOnly keeps only the files that tools edit.
	EditsOnly
)

// Keeper keeps the checkpoints of one session in one workspace. Its methods may be
// called from several goroutines; what scans or restores runs one at a time.
type Keeper struct {
	o        Options
	limits   Limits
	store    *store
	manifest *manifest
	root     int // an open directory
	exclude  []stamp
	owners   bool

	op      chan struct{} // held by what scans or restores
	keep    sync.Mutex    // held by what adds to the states of the current turn
	quit    chan struct{}
	running sync.WaitGroup
	once    sync.Once // for tidy
	looked  atomic.Int64
	read    atomic.Int64

	mu      sync.Mutex // guards what follows
	history *history
	now     *dir  // what the last scan saw; nil before the first
	turn    *open // nil before the first turn
	work    *work // the last one that was started
	known   bool  // only names in now are looked at
	reason  string
	stale   bool // the stat cache on disk is older than now
	closed  bool
}

// open is the current turn.
type open struct {
	*turn
	state *dir // the complete state at its beginning; nil until it is there
	kept  *dir // the files that KeepFile kept
}

// work is a scan in the background.
type work struct {
	done chan struct{}
	err  error // set before done is closed
}

// Open opens the checkpoints of a session. It looks at the workspace itself only to
// open its directory. ErrBusy means that another process has the session open.
func Open(ctx context.Context, o Options) (*Keeper, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	root, err := openRootDir(o.Root)
	if err != nil {
		return nil, err
	}
	s, err := openStore(o.Store, o.Root)
	if err != nil {
		unix.Close(root)
		return nil, err
	}
	k := &Keeper{
		o: o, limits: o.Limits.withDefaults(), store: s, root: root, owners: os.Geteuid() == 0,
		op: make(chan struct{}, 1), quit: make(chan struct{}),
	}
	if k.manifest, k.history, err = openManifest(s.sessionDir(), o.Session); err != nil {
		unix.Close(root)
		return nil, errors.Join(err, s.close())
	}
	for _, dir := range append([]string{o.Store}, o.Exclude...) {
		var st unix.Stat_t
		if dir != "" && unix.Stat(dir, &st) == nil {
			k.exclude = append(k.exclude, stampOf(&st))
		}
	}
	if why := tooWide(o.Root, o.UserHome); why != "" {
		k.restrict(why)
	}
	return k, nil
}

func openRootDir(path string) (int, error) {
	if !filepath.IsAbs(path) {
		return -1, fmt.Errorf("open checkpoints: workspace %q is no absolute path", path)
	}
	var fd int
	err := dirfd.Retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, fmt.Errorf("open checkpoints: workspace %q: %w", path, err)
	}
	return fd, nil
}

// tooWide says why a workspace is never kept as a whole.
func tooWide(root, home string) string {
	if real, err := filepath.EvalSymlinks(home); home != "" && err == nil {
		home = real
	}
	switch {
	case root == "/":
		return "the workspace is the whole file system"
	case home != "" && root == filepath.Clean(home):
		return "the workspace is the home folder"
	case home != "" && strings.HasPrefix(filepath.Clean(home), root+"/"):
		return "the workspace holds the home folder"
	}
	return ""
}

// restrict goes on with only what is known. With nothing known yet that is the mode
// EditsOnly from the start.
func (k *Keeper) restrict(reason string) {
	k.known, k.reason = true, reason
	if k.now == nil {
		k.now = emptyState()
	}
}

func emptyState() *dir { return &dir{partial: true} }

// Mode returns what is kept and, for EditsOnly, the reason. It can change while the
// first snapshot is taken and when a workspace grows.
func (k *Keeper) Mode() (Mode, string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known {
		return EditsOnly, k.reason
	}
	return Full, ""
}

// Progress counts the files looked at and the bytes read since Open. It grows while a
// snapshot is taken.
func (k *Keeper) Progress() (files, bytes int64) { return k.looked.Load(), k.read.Load() }

// Close stops what runs in the background, waits for it and lets go of the session.
// States that are not complete by then are lost.
func (k *Keeper) Close() error {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return nil
	}
	k.closed = true
	k.mu.Unlock()
	close(k.quit)
	k.running.Wait()
	err := k.saveCache()
	if k.history.idle() { // nobody will miss it
		err = errors.Join(err, os.Remove(k.manifest.f.Name()))
	}
	return errors.Join(err, k.manifest.f.Close(), k.store.close(), unix.Close(k.root))
}

// enter waits for its turn to scan or restore; leave ends it.
func (k *Keeper) enter(ctx context.Context) error {
	select {
	case k.op <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		<-k.op
		return errors.New("the checkpoints are closed")
	}
	return nil
}

func (k *Keeper) leave() { <-k.op }
