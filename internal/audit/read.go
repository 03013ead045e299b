package audit

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"time"
)

// Tail returns the last n records, oldest first. Lines that are no records are left
// out: Verify tells of them.
func Tail(dir string, n int) ([]Entry, error) {
	s, err := openSnapshot(dir)
	if err != nil {
		return nil, fmt.Errorf("read audit %q: %w", dir, err)
	}
	defer s.close()
	from, err := s.lastLines(n)
	if err != nil {
		return nil, fmt.Errorf("read audit %q: %w", dir, err)
	}
	var list []Entry
	err = s.lines(from, func(line []byte) bool {
		if e, err := parseEntry(line); err == nil {
			list = append(list, e)
		}
		return true
	})
	if err != nil {
		return nil, fmt.Errorf("read audit %q: %w", dir, err)
	}
	return list[max(0, len(list)-n):], nil
}

// lastLines returns where the last n complete lines begin.
func (s *snapshot) lastLines(n int) (int64, error) {
	buf := make([]byte, maxLine)
	missing := n + 1 // the end of the line before the first of them
	for end := s.size; end > 0; {
		begin := max(0, end-int64(len(buf)))
		piece := buf[:end-begin]
		if _, err := s.ReadAt(piece, begin); err != nil && err != io.EOF {
			return 0, fmt.Errorf("read log: %w", bare(err))
		}
		for i := bytes.LastIndexByte(piece, '\n'); i >= 0; i = bytes.LastIndexByte(piece[:i], '\n') {
			if missing--; missing <= 0 {
				return begin + int64(i) + 1, nil
			}
		}
		end = begin
	}
	return 0, nil
}

// Grep yields the records since a time whose stored JSON matches, oldest first. An
// error ends the sequence.
func Grep(dir string, match func(record []byte) bool, since time.Time) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, err := openSnapshot(dir)
		if err != nil {
			yield(Entry{}, fmt.Errorf("read audit %q: %w", dir, err))
			return
		}
		defer s.close()
		want := sinceText(since)
		err = s.lines(0, func(line []byte) bool {
			_, payload, ok := parseLine(line)
			if !ok || timeOf(payload) < want || !match(payload) {
				return true
			}
			e, err := parseEntry(line)
			return err != nil || yield(e, nil)
		})
		if err != nil {
			yield(Entry{}, fmt.Errorf("read audit %q: %w", dir, err))
		}
	}
}
