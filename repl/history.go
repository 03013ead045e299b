package repl

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"zcoder/internal/ownfile"
)

const (
	maxHistory     = 1000     // entries that are kept
	maxHistoryLine = 64 << 10 // bytes of an entry that is stored
	maxHistoryFile = 4 << 20  // bytes above which the file is rewritten
)

// history keeps the lines that were entered, in memory as typed and in its file
// masked, one JSON string a line. Instances that share the file see each other's
// lines the next time they look back.
type history struct {
	path string
	mask func(string) string

	entries []string
	read    int64          // how far the file was read
	own     map[string]int // lines that this instance added since
	at      int            // the entry that is shown; len(entries) is the draft
	draft   change         // while another entry is shown
}

func newHistory(path string, mask func(string) string) *history {
	if mask == nil {
		mask = func(line string) string { return line }
	}
	return &history{path: path, mask: mask, own: map[string]int{}}
}

// add appends a line. The error is the file's; the line is kept in memory anyway.
func (h *history) add(line string) error {
	h.sync()
	if n := len(h.entries); n == 0 || h.entries[n-1] != line {
		h.remember(line)
		if err := h.store(h.mask(line)); err != nil {
			h.reset()
			return err
		}
	}
	h.reset()
	return nil
}

// remember keeps a line in memory only.
func (h *history) remember(line string) {
	h.entries = append(h.entries, line)
	if over := len(h.entries) - maxHistory; over > 0 {
		h.entries = h.entries[over:]
	}
	h.reset()
}

func (h *history) reset() {
	h.at = len(h.entries)
	h.draft = change{}
}

func (h *history) store(line string) error {
	if h.path == "" || len(line) > maxHistoryLine {
		return nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("store the history: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return fmt.Errorf("store the history: %w", err)
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("store the history: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		_ = f.Chmod(0o600)
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("store the history: %w", err)
	}
	h.own[line]++
	return nil
}

// sync reads what was added to the file since the last time, by others too. A file
// that cannot be read has nothing to say.
func (h *history) sync() {
	if h.path == "" {
		return
	}
	f, err := os.Open(h.path)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	size := info.Size()
	first := h.read == 0
	if size < h.read { // it was rewritten
		h.read = size
	}
	if skip := size - maxHistoryFile; first && skip > 0 {
		h.read = skip
	}
	h.readFrom(io.NewSectionReader(f, h.read, size-h.read))
	if first && size > maxHistoryFile {
		h.rewrite()
	}
}

func (h *history) readFrom(r io.Reader) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // an unfinished line is read the next time
		}
		h.read += int64(len(line))
		var text string
		if json.Unmarshal(bytes.TrimSpace(line), &text) != nil || text == "" {
			continue
		}
		if h.own[text] > 0 {
			h.own[text]--
			continue
		}
		if n := len(h.entries); n == 0 || h.entries[n-1] != text {
			h.remember(text)
		}
	}
}

// rewrite shortens the file to what is kept.
func (h *history) rewrite() {
	var b bytes.Buffer
	for _, entry := range h.entries {
		if data, err := json.Marshal(h.mask(entry)); err == nil && len(data) <= maxHistoryLine {
			b.Write(append(data, '\n'))
		}
	}
	if ownfile.Replace(h.path, b.Bytes(), 0o600) == nil {
		h.read = int64(b.Len())
	}
}

// step moves by one entry, keeping the draft for the way back.
func (h *history) step(down bool, draft change) (text string, back *change, ok bool) {
	if h.at == len(h.entries) {
		if down {
			return "", nil, false
		}
		h.sync()
		h.at = len(h.entries)
		h.draft = change{append([]rune(nil), draft.line...), draft.pos}
	}
	switch {
	case down && h.at == len(h.entries)-1:
		h.at++
		d := h.draft
		return "", &d, true
	case down:
		h.at++
	case h.at == 0:
		return "", nil, false
	default:
		h.at--
	}
	return h.entries[h.at], nil, true
}

// find returns the newest entry before the given index that holds text.
func (h *history) find(text string, before int) (int, bool) {
	for i := min(before, len(h.entries)) - 1; i >= 0; i-- {
		if strings.Contains(h.entries[i], text) {
			return i, true
		}
	}
	return 0, false
}
