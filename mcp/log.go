package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

const (
	maxLogLines = 200
	maxLogLine  = 1000 // bytes
)

// ring keeps the last lines that a server wrote beside its messages. It is safe for
// concurrent use.
type ring struct {
	mu    sync.Mutex
	lines []string
	part  string // of standard error, without its line end yet
	lost  int
}

func (r *ring) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push(line)
}

func (r *ring) push(line string) {
	if line = strings.TrimRight(line, "\r\n"); len(line) > maxLogLine {
		line = strings.ToValidUTF8(line[:maxLogLine], "") + " …"
	}
	if line == "" {
		return
	}
	if len(r.lines) == maxLogLines {
		copy(r.lines, r.lines[1:])
		r.lines = r.lines[:maxLogLines-1]
		r.lost++
	}
	r.lines = append(r.lines, line)
}

// write takes standard error in pieces.
func (r *ring) write(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := r.part + string(b)
	for {
		line, rest, found := strings.Cut(text, "\n")
		if !found {
			break
		}
		r.push(line)
		text = rest
	}
	if len(text) > maxLogLine {
		r.push(text)
		text = ""
	}
	r.part = text
}

// text returns what is kept, oldest first.
func (r *ring) text() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	if r.lost > 0 {
		out = append(out, fmt.Sprintf("[%d earlier lines left out]", r.lost))
	}
	out = append(out, r.lines...)
	if r.part != "" {
		out = append(out, r.part)
	}
	return out
}

// last returns the newest line, "" when there is none.
func (r *ring) last() string {
	if all := r.text(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// logger returns a logger of mcp-go that writes to the ring.
func (r *ring) logger() *slog.Logger { return slog.New(ringHandler{r}) }

type ringHandler struct{ ring *ring }

func (h ringHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h ringHandler) Handle(_ context.Context, rec slog.Record) error {
	var b strings.Builder
	b.WriteString("client: " + rec.Message)
	rec.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.ring.add(b.String())
	return nil
}

func (h ringHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h ringHandler) WithGroup(string) slog.Handler      { return h }
