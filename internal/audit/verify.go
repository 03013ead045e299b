package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Report is what Verify found.
type Report struct {
	// Records is how many were checked; First and Last are their numbers.
	Records, First, Last int64
	// Breaks are the places where the chain is broken, in order, at most 100.
	Breaks []Break
	// Unfinished is the size of an unfinished last record in bytes, as a crash
	// leaves it. The next program that records something closes it.
	Unfinished int64
}

// Whole reports whether the chain is unbroken.
func (r Report) Whole() bool { return len(r.Breaks) == 0 }

// String returns the report as lines for people.
func (r Report) String() string {
	var b strings.Builder
	if r.Records == 0 {
		b.WriteString("no records\n")
	} else {
		fmt.Fprintf(&b, "%d records checked, %d to %d\n", r.Records, r.First, r.Last)
	}
	for _, k := range r.Breaks {
		fmt.Fprintf(&b, "chain broken at record %d: %s\n", k.Record, k.Reason)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "the last record is unfinished (%d bytes), as after a crash\n", r.Unfinished)
	}
	if r.Whole() {
		b.WriteString("the chain is whole\n")
	}
	return b.String()
}

// Verify checks the whole log of a directory, or its records since a time, and
// changes nothing. It takes the log as it is when it begins; others may go on
// writing. The error says why the log cannot be read.
func Verify(dir string, since time.Time) (Report, error) {
	r, err := verify(dir, since)
	if err != nil {
		return r, fmt.Errorf("verify audit %q: %w", dir, err)
	}
	return r, nil
}

func verify(dir string, since time.Time) (Report, error) {
	s, err := openSnapshot(dir)
	if err != nil {
		return Report{}, err
	}
	defer s.close()
	f := &follower{last: genesis()}
	begin := int64(0)
	if !since.IsZero() {
		if begin, f.last, err = s.find(since); err != nil {
			return Report{}, err
		}
	}
	if err := f.read(s, begin, s.size); err != nil {
		return Report{}, err
	}
	r := Report{Records: f.count, First: f.first}
	if f.count > 0 {
		r.Last = f.last.n
	}
	f.checkHead(s, s.size, s.head, s.headErr)
	r.Breaks = f.breaks
	if f.rest.crash {
		r.Unfinished = f.rest.size
	}
	return r, nil
}

// snapshot is a log as it was at one moment.
type snapshot struct {
	file    *os.File // nil when there is none
	size    int64
	head    head
	headErr error
}

func openSnapshot(dir string) (*snapshot, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, bare(err)
	}
	lock, err := openFile(filepath.Join(dir, lockName), os.O_RDONLY)
	if err == nil {
		defer lock.Close() // which unlocks it
		err = lockFile(lock, unix.LOCK_SH, lockWait)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := &snapshot{}
	h, err := openFile(filepath.Join(dir, headName), os.O_RDONLY)
	if err == nil {
		defer h.Close()
		s.head, s.headErr = readHead(h)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s.file, err = openFile(filepath.Join(dir, logName), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := s.file.Stat()
	if err != nil {
		return nil, errors.Join(bare(err), s.file.Close())
	}
	s.size = info.Size()
	return s, nil
}

func (s *snapshot) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// ReadAt reads the log; a log that is not there is empty.
func (s *snapshot) ReadAt(p []byte, off int64) (int, error) {
	if s.file == nil {
		return 0, io.EOF
	}
	return s.file.ReadAt(p, off)
}

// find returns where the first record since a time begins, and what it follows.
func (s *snapshot) find(since time.Time) (int64, link, error) {
	prev, at := genesis(), int64(0)
	want := sinceText(since)
	err := s.lines(0, func(line []byte) bool {
		if l, payload, ok := parseLine(line); ok {
			if timeOf(payload) >= want {
				return false
			}
			prev = l
		}
		at += int64(len(line)) + 1
		return true
	})
	return min(at, s.size), prev, err
}

// lines calls do with each complete line from an offset, without its end, until it
// returns false. A line that is too long for a record comes in pieces whose lengths
// add up.
func (s *snapshot) lines(from int64, do func([]byte) bool) error {
	in := bufio.NewReaderSize(io.NewSectionReader(s, from, s.size-from), maxLine)
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == nil, errors.Is(err, bufio.ErrBufferFull):
			if !do(line[:len(line)-1]) {
				return nil
			}
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("read log: %w", bare(err))
		}
	}
}
