// Package diff compares two texts by lines and shows the difference as a unified
// diff.
//
// It knows bytes and lines, and nothing of files, patches that are applied or
// terminals: the text it returns is as raw as its input. The tools that edit files
// call it to show what they will change; checkpoints call it for their overview.
// Time and memory stay in proportion to the input, whatever the input is.
package diff

import (
	"bytes"
	"fmt"
	"strings"
)

// DevNull is the name that a diff gives to the missing side of a created or
// removed file.
const DevNull = "/dev/null"

// Options bound a diff. The zero value gives three lines of context and the whole
// diff.
type Options struct {
	// Context is the number of unchanged lines around a change; 0 means 3, a
	// negative number none.
	Context int
	// MaxLines and MaxBytes bound the body below the two name lines; 0 is no bound.
	// One more line of at most 100 bytes then says what was left out.
	MaxLines, MaxBytes int
	// Skipped is the number of lines that stand before both texts in their files, for
	// texts that are a part of them; it is added to the line numbers.
	Skipped int
}

// Unified returns the unified diff that turns a into b, or "" when they are equal.
// The names stand after "---" and "+++" as given ("a/x", "b/x"); an empty one
// becomes DevNull, one with control characters is quoted as git does it. Content
// with a NUL byte is not shown, only said to differ.
func Unified(oldName, newName string, a, b []byte, o Options) string {
	if bytes.Equal(a, b) {
		return ""
	}
	var head strings.Builder
	fmt.Fprintf(&head, "--- %s\n+++ %s\n", Name(oldName), Name(newName))
	if binary(a) || binary(b) {
		fmt.Fprintf(&head, "binary files differ: %d bytes, then %d bytes\n", len(a), len(b))
		return head.String()
	}
	context := o.Context
	switch {
	case context == 0:
		context = 3
	case context < 0:
		context = 0
	}
	w := windowOf(a, b, context)
	w.first += o.Skipped
	p := &printer{out: &head, maxLines: o.MaxLines, maxBytes: o.MaxBytes}
	p.hunks(w, w.spans(), context)
	p.finish()
	return head.String()
}

// Stat returns how many lines the diff from a to b adds and removes. Both are 0
// for content with a NUL byte.
func Stat(a, b []byte) (added, removed int) {
	if bytes.Equal(a, b) || binary(a) || binary(b) {
		return 0, 0
	}
	for _, s := range windowOf(a, b, 0).spans() {
		removed += s.aEnd - s.a
		added += s.bEnd - s.b
	}
	return added, removed
}

// Name returns a file name as it stands in a header: DevNull for "", quoted in C
// style when it holds control characters, quotes or backslashes, and with a tab
// after it when it holds spaces, so that readers know where it ends.
func Name(name string) string {
	if name == "" {
		return DevNull
	}
	special := func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }
	if strings.ContainsFunc(name, special) {
		return quote(name)
	}
	if strings.Contains(name, " ") {
		return name + "\t"
	}
	return name
}

func quote(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func binary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }

// window is the part of two texts that can differ, with some equal lines before
// and after it. first is the index of its first line in both texts.
type window struct {
	a, b         []byte
	first, after int
}

func windowOf(a, b []byte, context int) window {
	start := commonPrefix(a, b)
	end := commonSuffix(a[start:], b[start:])
	var w window
	for before := 0; before < context && start > 0; before++ {
		start = bytes.LastIndexByte(a[:start-1], '\n') + 1
	}
	for ; w.after < context && end > 0; w.after++ {
		_, rest := cutLine(a[len(a)-end:])
		end = len(rest)
	}
	w.a, w.b = a[start:len(a)-end], b[start:len(b)-end]
	w.first = bytes.Count(a[:start], []byte{'\n'})
	return w
}

// commonPrefix returns the length of the whole lines that begin both texts.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	const block = 1 << 12
	i := 0
	for i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return bytes.LastIndexByte(a[:i], '\n') + 1
}

// commonSuffix returns the length of the whole lines that end both texts.
func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	const block = 1 << 12
	i := 0
	for i+block <= n && bytes.Equal(a[len(a)-i-block:len(a)-i], b[len(b)-i-block:len(b)-i]) {
		i += block
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	if lineStart(a, len(a)-i) && lineStart(b, len(b)-i) {
		return i
	}
	_, rest := cutLine(a[len(a)-i:])
	return len(rest)
}

func lineStart(b []byte, i int) bool { return i == 0 || b[i-1] == '\n' }

// cutLine splits off the first line with its newline.
func cutLine(b []byte) (line, rest []byte) {
	i := bytes.IndexByte(b, '\n') + 1
	if i == 0 {
		i = len(b)
	}
	return b[:i], b[i:]
}

func countLines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}
