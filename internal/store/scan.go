package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"zcoder/internal/event"
)

const (
	maxScan    = 64 << 20 // bytes of a log that a list looks at
	scanBuffer = 64 << 10
	tailSize   = 16 << 10 // bytes at the end of a longer log, for a later title
	kindWithin = 200      // bytes of a line within which its kind stands
)

// scan fills in what a list shows of a log. It looks at the kind of each line and
// decodes only those that count. It reports whether there was a request. The reader is
// one for many logs.
func scan(info *Info, in *bufio.Reader, f io.ReaderAt, size int64) bool {
	s := scanner{in: in}
	s.lines(io.NewSectionReader(f, 0, min(size, maxScan)))
	if size > maxScan {
		s.lines(io.NewSectionReader(f, size-tailSize, tailSize))
	}
	info.Workspace, info.Profile, info.Model = s.session.Workspace, s.session.Profile, s.session.Model
	info.Turns = s.turns
	info.Title = shorten(s.given)
	if info.Title == "" {
		info.Title = shorten(s.first)
	}
	return s.session.ID == info.ID && (info.Title != "" || s.turns > 0)
}

// scanner gathers facts from the lines of a log.
type scanner struct {
	in           *bufio.Reader
	session      event.Session
	first, given string // request, title
	turns        int
}

func (s *scanner) lines(r io.Reader) {
	in := s.in
	in.Reset(r)
	for {
		head, err := in.Peek(kindWithin)
		wanted := s.wants(kindOf(head))
		if len(head) == 0 && err != nil {
			return
		}
		if !wanted {
			if skipLine(in) != nil {
				return
			}
			continue
		}
		line, err := readLine(in, nil)
		s.take(line)
		if err != nil {
			return
		}
	}
}

// kindOf is the kind of the event that a line begins with, which the writer puts
// before anything long.
func kindOf(head []byte) event.Kind {
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		head = head[:i]
	}
	_, rest, ok := bytes.Cut(head, []byte(`"event":"`))
	if !ok {
		return ""
	}
	kind, _, _ := bytes.Cut(rest, []byte(`"`))
	return event.Kind(kind)
}

// wants counts turns and reports whether the line must be decoded.
func (s *scanner) wants(kind event.Kind) bool {
	switch kind {
	case event.TurnStart:
		s.turns++
	case event.Opened:
		return s.session.ID == ""
	case event.User, event.Shell:
		return s.first == ""
	case event.Titled:
		return true
	}
	return false
}

func (s *scanner) take(line []byte) {
	var e event.Event
	if json.Unmarshal(line, &e) != nil || !complete(e) {
		return
	}
	switch e.Kind {
	case event.Opened:
		s.session = *e.Session
	case event.Titled:
		s.given = e.Text
	case event.User:
		s.first = e.Text
	case event.Shell:
		if _, command, ok := strings.Cut(e.Text, "\n$ "); ok {
			s.first = "! " + command
		}
	}
}

func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if err != bufio.ErrBufferFull {
			return err
		}
	}
}
