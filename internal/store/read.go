package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"zcoder/internal/event"
)

const (
	maxLine  = 64 << 20 // bytes of one record; a longer line is set aside
	titleLen = 42       // characters of a title
)

func cutSuffix(name, suffix string) (string, bool) {
	return strings.CutSuffix(name, suffix)
}

// read takes every line that is a record and counts the rest: one bad line never
// costs the others.
func read(r io.Reader) (Loaded, error) {
	var out Loaded
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	for {
		var err error
		line, err = readLine(in, line)
		if len(line) > 0 {
			out.add(line)
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("read session: %w", err)
		}
	}
}

// readLine returns the next line without its end, in the room that the last one had;
// of a line that is too long it returns a piece, which is no record.
func readLine(in *bufio.Reader, line []byte) ([]byte, error) {
	line = line[:0]
	for {
		part, err := in.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if err != bufio.ErrBufferFull {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}

func (l *Loaded) add(line []byte) {
	var e event.Event
	if err := json.Unmarshal(line, &e); err != nil || e.Kind == "" || !complete(e) {
		l.Bad++
		return
	}
	l.Events = append(l.Events, e)
}

// complete reports whether the event has the part that its kind names, so that
// whoever reads the log need not check.
func complete(e event.Event) bool {
	switch e.Kind {
	case event.Opened:
		return e.Session != nil
	case event.Reply:
		return e.Reply != nil
	case event.CallStart:
		return e.Call != nil
	case event.CallEnd:
		return e.Result != nil
	case event.Asked:
		return e.Question != nil
	case event.Answered:
		return e.Answer != nil
	case event.TurnEnd:
		return e.End != nil
	case event.GoalState:
		return e.Goal != nil
	case event.Queued, event.Unqueued:
		return e.Item != nil
	}
	return true
}

func shorten(s string) string {
	s = strings.TrimSpace(s)
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > titleLen {
		return string(r[:titleLen-1]) + "…"
	}
	return s
}
