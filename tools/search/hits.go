package search

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// hit is one matching line with what is shown around it, each text cut to maxShown.
type hit struct {
	number int // of the line, from 1
	text   string
	before []string
	after  []string
}

// fileHits are the hits of one file.
type fileHits struct {
	path   string
	count  int // matching lines
	hits   []hit
	number int // of the line where the scan stands
	room   int // hits that may still be kept; the others are only counted
}

const (
	maxShown  = 300 // bytes of a line
	beforeHit = 100 // bytes of a long line shown before what matched
	ellipsis  = "…"
)

// keep stores a matching line and the lines around it.
func (f *fileHits) keep(buf []byte, l line, context int, end bool) {
	h := hit{number: f.number, text: cutAround(buf[l.start:l.end], l.match-l.start)}
	for at := l.start; len(h.before) < context && at > 0; {
		prior := lineAt(buf, at-1)
		h.before = append(h.before, cutAround(buf[prior.start:prior.end], 0))
		at = prior.start
	}
	slices.Reverse(h.before)
	for at := l.next; len(h.after) < context && at < len(buf); {
		later := lineAt(buf, at)
		if later.next == len(buf) && buf[len(buf)-1] != '\n' && !end {
			break // its tail has not been read
		}
		h.after = append(h.after, cutAround(buf[later.start:later.end], 0))
		at = later.next
	}
	f.hits = append(f.hits, h)
	f.room--
}

// cutAround returns a line as valid text, cut around the byte at match when it is
// long.
func cutAround(text []byte, match int) string {
	if len(text) <= maxShown {
		return strings.ToValidUTF8(string(text), "\uFFFD")
	}
	start := min(max(0, match-beforeHit), len(text)-maxShown)
	end := start + maxShown
	for start > 0 && start < end && !utf8.RuneStart(text[start]) {
		start++
	}
	for end > start && end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	shown := strings.ToValidUTF8(string(text[start:end]), "\uFFFD")
	if start > 0 {
		shown = ellipsis + shown
	}
	if end < len(text) {
		shown += ellipsis
	}
	return shown
}

// found collects the hits of all workers. What it keeps can be shown in the end:
// the files that come first by path and of each the first hits, as many as a
// round-robin over the files reaches. So it stays small, and its content does not
// depend on the order in which files are found. Its methods may be called from
// several goroutines.
type found struct {
	most int // files, and hits

	mu      sync.Mutex
	files   []*fileHits // sorted by path
	held    int         // hits in files
	total   int         // files with matches
	matches int
}

// room returns how many hits of a file may be kept: none when it comes after all
// that can be shown.
func (c *found) room(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.files) == c.most && path > c.files[len(c.files)-1].path {
		return 0
	}
	return c.most
}

// add takes the hits of a file.
func (c *found) add(f *fileHits) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	c.matches += f.count
	at, _ := slices.BinarySearchFunc(c.files, f.path, func(f *fileHits, path string) int { return strings.Compare(f.path, path) })
	if at == c.most {
		return
	}
	if len(c.files) == c.most {
		c.held -= len(c.files[c.most-1].hits)
		c.files = c.files[:c.most-1]
	}
	c.files = slices.Insert(c.files, at, f)
	if c.held += len(f.hits); c.held > 2*c.most {
		c.trim()
	}
}

// trim drops the hits that a round-robin cannot reach.
func (c *found) trim() {
	reached, level := 0, 0
	for reached < c.most {
		before := reached
		for _, f := range c.files {
			if len(f.hits) > level {
				reached++
			}
		}
		if reached == before {
			return
		}
		level++
	}
	c.held = 0
	for _, f := range c.files {
		if len(f.hits) > level {
			f.hits = slices.Clone(f.hits[:level])
		}
		c.held += len(f.hits)
	}
}
