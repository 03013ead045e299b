package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A journal is a file of one process that lists the temporary files it is about to
// make, one JSON object a line. The process holds a lock on it; a journal without a
// lock is of a dead process.
type journal struct {
	file *os.File
	path string
}

const journalPattern = "temp-*.jsonl"

// note is one line of a journal.
type note struct {
	Dir  string `json:"dir"` // absolute
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Name string `json:"name"`
}

// note writes down a temporary file before it is made.
func (w *Workspace) note(dir *os.Root, at, name string) error {
	if w.options.Journal == "" {
		return nil
	}
	if w.journal == nil {
		j, err := newJournal(w.options.Journal)
		if err != nil {
			return err
		}
		w.journal = j
	}
	info, err := dir.Stat(".")
	if err != nil {
		return fmt.Errorf("note a temporary file: %w", plainError(err))
	}
	n := note{Dir: at, Name: name}
	n.Dev, n.Ino = identity(info)
	line, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("note a temporary file: %w", err)
	}
	// The leading line end keeps a line that a full disk cut short apart.
	if _, err := fmt.Fprintf(w.journal.file, "\n%s\n", line); err != nil {
		return fmt.Errorf("note a temporary file: %w", err)
	}
	return nil
}

// newJournal makes and locks a journal. A cleaner may remove it between the two;
// then another one is made.
func newJournal(dir string) (*journal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the journal directory: %w", err)
	}
	for {
		f, err := os.CreateTemp(dir, journalPattern)
		if err != nil {
			return nil, fmt.Errorf("make a journal: %w", err)
		}
		j := &journal{file: f, path: f.Name()}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		info, statErr := os.Lstat(j.path)
		if err == nil && statErr == nil {
			if mine, err := f.Stat(); err == nil && os.SameFile(info, mine) {
				return j, nil
			}
		}
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("lock journal %q: %w", j.path, err)
		}
	}
}

// forget empties the journal when all that it lists is gone.
func (w *Workspace) forget() error {
	if w.journal == nil {
		return nil
	}
	if err := w.journal.file.Truncate(0); err != nil {
		return fmt.Errorf("empty journal %q: %w", w.journal.path, err)
	}
	if _, err := w.journal.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("empty journal %q: %w", w.journal.path, err)
	}
	return nil
}

// closeJournal removes the journal when it is empty and leaves it to the next start
// when it is not.
func (w *Workspace) closeJournal() error {
	if w.journal == nil {
		return nil
	}
	j := w.journal
	w.journal = nil
	var err error
	if info, statErr := j.file.Stat(); statErr == nil && info.Size() == 0 {
		err = os.Remove(j.path)
	}
	return errors.Join(err, j.file.Close())
}

// CleanTemps removes the temporary files that dead processes noted in the journal
// directory, and their journals. It removes only regular files whose name has the
// exact form, from the directory that was noted, if that is still the same one. The
// error names what could not be removed; its journal stays for the next time.
func CleanTemps(journalDir string) error {
	paths, err := filepath.Glob(filepath.Join(escapeGlob(journalDir), journalPattern))
	if err != nil {
		return fmt.Errorf("list journals in %q: %w", journalDir, err)
	}
	var errs []error
	for _, path := range paths {
		if err := cleanJournal(path); err != nil {
			errs = append(errs, fmt.Errorf("clean up after journal %q: %w", path, err))
		}
	}
	return errors.Join(errs...)
}

func escapeGlob(dir string) string {
	var b bytes.Buffer
	for _, c := range []byte(dir) {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

func cleanJournal(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // its process lives
	}
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(f, 1<<24))
	if err != nil {
		return err
	}
	var errs []error
	for line := range bytes.Lines(content) {
		var n note
		if json.Unmarshal(line, &n) != nil {
			continue // cut short: the file was never made
		}
		errs = append(errs, n.remove())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return os.Remove(path)
}

// remove removes the file that n names, if it is ours and still there.
func (n note) remove() error {
	if !isOurTemp(n.Name) {
		return nil
	}
	dir, err := os.OpenRoot(n.Dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if dev, ino := identity(info); dev != n.Dev || ino != n.Ino {
		return nil
	}
	info, err = dir.Lstat(n.Name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	return dir.Remove(n.Name)
}
