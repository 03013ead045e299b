// Package termtext turns any text into text that a terminal shows as it is: what
// would act on the terminal, hide or reorder its neighbours appears as a visible
// escape (`\x1b`) or a named marker (`<U+202E>`). It also measures, wraps and cuts
// safe text by display cells.
//
// It knows Unicode and nothing else: no colours, no terminal, no files. Whatever
// prints foreign text to a terminal calls it (the REPL, one-shot progress, error
// lines, approvals); piped output does not. All functions may be called from
// several goroutines; a Stream belongs to one.
//
// The forms are for people. They are not reversible: text that holds the six
// characters `\x1b\x5b` by itself looks like an escaped control sequence.
package termtext

import "strings"

// Safe returns s with everything visible that could act or hide; '\n' and '\t'
// stay. CR before LF is dropped, other CRs appear as `\r`.
func Safe(s string) string {
	if plainRun(s, false) == len(s) {
		return s
	}
	var c cleaner
	out, _ := c.run(make([]byte, 0, len(s)+len(s)/8), s, true)
	return string(out)
}

// Line returns s as one safe line, for names, titles and errors: a line end
// appears as ⏎ and a tab as one blank.
func Line(s string) string {
	if plainRun(s, true) == len(s) {
		return s
	}
	c := cleaner{oneLine: true}
	out, _ := c.run(make([]byte, 0, len(s)+len(s)/8), s, true)
	return string(out)
}

// Stream makes text safe that arrives in pieces. Any division into chunks gives
// together what Safe gives for the whole. The zero value is ready.
type Stream struct {
	c    cleaner
	held string
}

// Write returns the safe form of chunk as far as it is decided: up to ten bytes
// wait for what follows them (a cut rune, a CR, a joiner between two emoji).
func (s *Stream) Write(chunk string) string { return s.write(chunk, false) }

// Close returns the safe form of what was held back. The stream is as new after
// it.
func (s *Stream) Close() string {
	out := s.write("", true)
	*s = Stream{}
	return out
}

func (s *Stream) write(chunk string, final bool) string {
	if s.held != "" {
		chunk = s.held + chunk
		s.held = ""
	}
	if n := plainRun(chunk, false); n == len(chunk) {
		s.c.plain(chunk)
		return chunk
	}
	out, rest := s.c.run(make([]byte, 0, len(chunk)+len(chunk)/8), chunk, final)
	s.held = strings.Clone(rest)
	return string(out)
}

// Hidden is one kind of character that Safe makes visible.
type Hidden struct {
	Name  string // e.g. "<U+202E> reorders text", "invalid UTF-8"
	Count int    // how often it stands in the text
}

// HiddenIn lists what Safe makes visible in s, in the order of first appearance.
// Kinds with many members (tags, private use, unassigned, marks) count as one.
func HiddenIn(s string) []Hidden {
	if plainRun(s, false) == len(s) {
		return nil
	}
	var list []Hidden
	index := map[string]int{}
	c := cleaner{found: func(name string) {
		i, ok := index[name]
		if !ok {
			i = len(list)
			index[name] = i
			list = append(list, Hidden{Name: name})
		}
		list[i].Count++
	}}
	c.run(nil, s, true)
	return list
}
