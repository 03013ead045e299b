// Package audit keeps the record of what was asked, decided and done: one file of
// JSON lines, each bound to the one before by a hash.
//
// A line is {"hash":"…","rec":{…}}. The hash is the SHA-256, in 64 hexadecimal
// digits, of the 64 digits of the line before and the bytes of rec as they are
// stored; the first line follows 64 zeros. Beside the log lies a head: the number,
// hash and end of a record that was synced. It is made before the first record, and
// rewritten after each synced append and at Close, so it may lag behind the log after a
// crash and never leads.
//
// The record holds metadata and digests. The only words of a request in it are its
// summary, bounded and masked, and only where a mask is given. It has no key: it
// shows a change or a loss to whoever did not rewrite all that follows it and the
// head as well, and proves nothing against one who did.
//
// The package knows the log's form and its faults. What is worth a record the gate
// and the application decide. Several programs may write one log.
package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"zcoder/internal/approval"
	"zcoder/internal/ownfile"
)

// Options configure a Log.
type Options struct {
	// Now gives the time of a record. It must be set.
	Now func() time.Time
	// Mask hides secrets in a text. Nil leaves summaries out.
	Mask func(string) string
	// Instance names this program in its records, e.g. by pid. It may be empty.
	Instance string
}

// The files of a log's directory.
const (
	logName  = "audit.jsonl"
	headName = "head"
	lockName = "lock"
)

// Log writes a record. It is an approval.Recorder and safe for concurrent use, also
// by several programs.
type Log struct {
	dir string
	o   Options

	mu     sync.Mutex
	lock   *os.File
	file   *os.File
	head   *os.File
	size   int64 // of the part of the file that is known
	last   link  // the record that this part ends with
	synced int64 // number of the last record of which this program wrote the head
	notice string
}

// Open opens the log of a directory, which it makes if it must: 0700, and its files
// 0600. It looks at the end of the log, closes an unfinished record and goes on
// after the last one; a fault that it finds is recorded and told by Notice. Opening
// reads a bounded part of the log; Verify reads all of it.
func Open(dir string, o Options) (*Log, error) {
	l := &Log{dir: dir, o: o}
	err := l.open()
	if err == nil {
		err = l.locked(func() error { return l.reload(true) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open audit %q: %w", dir, err), l.closeFiles())
	}
	return l, nil
}

func (l *Log) open() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return bare(err)
	}
	if err := os.Chmod(l.dir, 0o700); err != nil {
		return bare(err)
	}
	for _, f := range []struct {
		name string
		file **os.File
		flag int
	}{{lockName, &l.lock, os.O_RDWR}, {headName, &l.head, os.O_RDWR}, {logName, &l.file, os.O_RDWR | os.O_APPEND}} {
		if *f.file != nil {
			_ = (*f.file).Close()
		}
		var err error
		if *f.file, err = openFile(filepath.Join(l.dir, f.name), f.flag|os.O_CREATE); err != nil {
			return err
		}
	}
	return nil
}

// openFile opens a file of the log.
func openFile(path string, flag int) (*os.File, error) {
	f, err := ownfile.Open(path, flag)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", filepath.Base(path), bare(err))
	}
	return f, nil
}

func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// Notice tells what was wrong with the log when it was opened or since, in one line,
// or nothing.
func (l *Log) Notice() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.notice
}

// Close syncs what this program wrote, says so in the head and closes the files. A Log
// that is closed records nothing more. It waits for other writers, for up to lockWait.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.settle()
	if err != nil {
		err = fmt.Errorf("close audit %q: %w", l.dir, err)
	}
	return errors.Join(err, l.closeFiles())
}

// settle brings the head up to the last record, unless another program did.
func (l *Log) settle() error {
	if l.lock == nil || l.last.n <= l.synced {
		return nil
	}
	return l.locked(func() error {
		h, err := readHead(l.head)
		if err != nil || !h.exists() || h.Count >= l.last.n {
			return nil // a head that was harmed is told of by the next Open
		}
		return l.sync()
	})
}

func (l *Log) closeFiles() error {
	var errs []error
	for _, f := range []**os.File{&l.file, &l.head, &l.lock} {
		if *f != nil {
			errs = append(errs, (*f).Close())
			*f = nil
		}
	}
	return errors.Join(errs...)
}

// Record appends one line. When it returns nil the line is in the kernel's hands,
// and on the disk if the record asks for it. It waits for other writers, for up to
// lockWait.
func (l *Log) Record(r approval.Record) error {
	if r.Kind == kindBroken || r.Kind == kindRecovered {
		return fmt.Errorf("record %q: the kind is the log's own", r.Kind)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.locked(func() error {
		if err := l.catchUp(); err != nil {
			return err
		}
		return l.append(l.entry(r), "", r.Sync)
	})
	if err != nil {
		return fmt.Errorf("write audit %q: %w", l.dir, err)
	}
	return nil
}

// append writes an entry after the last record, with what must stand before it. The
// lock is held.
func (l *Log) append(e Entry, before string, sync bool) error {
	e.N = l.last.n + 1
	e.Time = l.o.Now().UTC().Format(timeForm)
	line, next, err := e.line(l.last)
	if err != nil {
		return err
	}
	line = append([]byte(before), line...)
	if n, err := l.file.Write(line); err != nil {
		if n > 0 {
			// What cannot be cut off is an unfinished record, which the next append
			// closes.
			_ = l.file.Truncate(l.size)
		}
		return bare(err)
	}
	l.size += int64(len(line))
	l.last = next
	if !sync {
		return nil
	}
	return l.sync()
}

// sync brings the records to the disk, and then the head up to the last of them.
func (l *Log) sync() error {
	if err := l.file.Sync(); err != nil {
		return bare(err)
	}
	if err := (head{Count: l.last.n, Hash: string(l.last.hash[:]), Size: l.size}).write(l.head); err != nil {
		return err
	}
	l.synced = l.last.n
	return nil
}

// begin makes the head of a log that holds nothing, and brings it to the disk: from
// then on there is always one.
func (l *Log) begin() error {
	none := genesis()
	if err := (head{Hash: string(none.hash[:])}).write(l.head); err != nil {
		return err
	}
	if err := l.head.Sync(); err != nil {
		return bare(err)
	}
	dir, err := os.Open(l.dir)
	if err != nil {
		return bare(err)
	}
	defer dir.Close()
	_ = dir.Sync() // not every file system can
	return nil
}

// catchUp reads what others have appended, and mends the end of the log if it must.
// The lock is held.
func (l *Log) catchUp() error {
	same, size, err := l.sameFile()
	if err != nil {
		return err
	}
	switch {
	case same && size == l.size:
		return nil
	case same && size > l.size && l.last.n > 0:
		f := &follower{last: l.last}
		if err := f.read(l.file, l.size, size); err != nil {
			return err
		}
		l.size = size
		return l.mend(f)
	}
	return l.reload(same)
}

// sameFile reports whether the open file is still the one of the directory, and its
// size.
func (l *Log) sameFile() (bool, int64, error) {
	if l.file == nil {
		return false, 0, os.ErrClosed
	}
	mine, err := l.file.Stat()
	if err != nil {
		return false, 0, bare(err)
	}
	now, err := os.Lstat(filepath.Join(l.dir, logName))
	return err == nil && os.SameFile(mine, now), mine.Size(), nil
}

// window is how much of the end of a log Open reads, in bytes.
const window = 1 << 16

// reload reads the end of a log of which nothing is known, or which is no longer
// what it was.
func (l *Log) reload(same bool) error {
	known := l.last
	if !same {
		err := l.open()
		if err == nil {
			err = lockFile(l.lock, unix.LOCK_EX, lockWait)
		}
		if err != nil {
			return err
		}
	}
	info, err := l.file.Stat()
	if err != nil {
		return bare(err)
	}
	l.size = info.Size()
	h, headErr := readHead(l.head)
	if headErr == nil && !h.exists() && l.size == 0 {
		if err := l.begin(); err != nil {
			return err
		}
	}
	f, err := readEnd(l.file, l.size, l.size-window)
	if err != nil {
		return err
	}
	f.checkHead(l.file, l.size, h, headErr)
	if known.n > f.last.n {
		f.lost(known, "the log was cut while it was open")
	}
	return l.mend(f)
}

// mend makes the follower's end the log's: an unfinished record is closed, and a
// break that no record tells of gets one.
func (l *Log) mend(f *follower) error {
	l.last = f.last
	if b := f.firstBreak(); b != nil {
		l.notice = fmt.Sprintf("the audit's chain is broken at record %d: %s", b.Record, b.Reason)
	}
	before := ""
	if f.rest.size > 0 {
		before = "\n"
	}
	switch {
	case f.untold != nil:
		return l.append(Entry{Kind: kindBroken, Detail: fmt.Sprintf("at record %d: %s", f.untold.Record, f.untold.Reason)}, before, true)
	case f.rest.size > 0:
		l.notice = fmt.Sprintf("the audit ended with an unfinished record of %d bytes, as after a crash; it was closed", f.rest.size)
		e := Entry{Kind: kindRecovered, Torn: f.rest.size, TornSum: f.rest.digest()}
		if f.rest.framed {
			e = Entry{Kind: kindRecovered, Detail: "the record before had no line end"}
		}
		return l.append(e, before, true)
	}
	return nil
}

const (
	// lockWait is how long a writer waits for others.
	lockWait = 10 * time.Second
	lockStep = 5 * time.Millisecond
)

// locked runs do while no other program writes.
func (l *Log) locked(do func() error) error {
	if l.lock == nil {
		return os.ErrClosed
	}
	if err := lockFile(l.lock, unix.LOCK_EX, lockWait); err != nil {
		return err
	}
	defer func() {
		if l.lock != nil {
			_ = unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
		}
	}()
	return do()
}

// lockFile waits for a lock, but not for ever: its holder may be stopped.
func lockFile(f *os.File, how int, wait time.Duration) error {
	end := time.Now().Add(wait)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, lockStep) {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("lock: %w", err)
		case time.Now().After(end):
			return fmt.Errorf("lock: another program has held it for %v", wait)
		}
		time.Sleep(pause)
	}
}
