// Package workspace is the boundary: the one directory tree that the file tools may
// touch, the paths in it, and the only code that opens or replaces its files.
//
// It knows links, file types, identities, names that hold secrets or run code later,
// and how a file is replaced so that a kill leaves the old content or the new. It
// knows nothing of tools, questions, policy or text formats. The tools that read or
// change files call it.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The errors that callers test for with errors.Is.
var (
	// ErrChanged means that a file is not the one that was planned.
	ErrChanged = errors.New("changed since it was read")
	// ErrTooLarge means that a file holds more bytes than the caller takes.
	ErrTooLarge = errors.New("is too large")
)

// Options are the surroundings of a workspace. The zero value has no settings
// directory, gives no hints for "~" and notes no temporary files.
type Options struct {
	// SettingsDir is the program's own directory: tools never write there and
	// reading asks. It may lie inside the workspace or hold it, and need not exist.
	SettingsDir string
	// UserHome is used for hints about "~/x" only.
	UserHome string
	// Journal is a private directory where temporary files are noted before they
	// are made, for CleanTemps. It is made when it is missing. Empty: no notes.
	Journal string
}

// Workspace is an open directory tree. Its methods may be called from several
// goroutines; Apply runs one at a time.
type Workspace struct {
	root     string // canonical, absolute
	alias    string // the same directory as it was named to Open
	dir      *os.Root
	info     fs.FileInfo // of the root
	options  Options
	settings fs.FileInfo // of SettingsDir; nil when it did not exist

	mu      sync.Mutex // serialises Apply
	journal *journal   // nil until the first temporary file is noted
}

// Open opens the workspace at root, which must be a directory. The caller closes it.
func Open(root string, o Options) (*Workspace, error) {
	alias, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", root, err)
	}
	canonical, err := filepath.EvalSymlinks(alias)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", root, err)
	}
	dir, err := os.OpenRoot(canonical)
	if err != nil {
		return nil, fmt.Errorf("open workspace %q: %w", root, err)
	}
	info, err := dir.Stat(".")
	if err != nil {
		dir.Close()
		return nil, fmt.Errorf("open workspace %q: %w", root, err)
	}
	w := &Workspace{root: canonical, alias: alias, dir: dir, info: info, options: o}
	w.options.SettingsDir, w.settings = canonicalDir(o.SettingsDir)
	return w, nil
}

// canonicalDir resolves what exists of dir and keeps the rest as it is written.
func canonicalDir(dir string) (string, fs.FileInfo) {
	if dir == "" {
		return "", nil
	}
	dir = filepath.Clean(dir)
	for known, rest := dir, ""; ; known, rest = filepath.Dir(known), filepath.Join(filepath.Base(known), rest) {
		real, err := filepath.EvalSymlinks(known)
		if err != nil && known != filepath.Dir(known) {
			continue
		}
		if err != nil {
			return dir, nil
		}
		full := filepath.Join(real, rest)
		info, err := os.Stat(full)
		if err != nil {
			info = nil
		}
		return full, info
	}
}

// Root returns the canonical absolute path of the workspace.
func (w *Workspace) Root() string { return w.root }

// Close releases the workspace and its journal. Files that Open returned stay open.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.dir.Close(), w.closeJournal())
}

// ReadDir returns the entries of a directory, sorted by name, without this
// program's temporary files.
func (w *Workspace) ReadDir(p Path) ([]fs.DirEntry, error) {
	dir, err := w.openDir(p.rel)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p.rel, err)
	}
	defer dir.Close()
	f, err := dir.Open(".")
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p.rel, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", p.rel, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return IsTemp(e.Name()) })
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}
