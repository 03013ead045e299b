package patch

import (
	"fmt"
	"strings"
)

// section is all that a patch says of one file.
type section struct {
	op   op
	name string // as the model wrote it, without a prefix such as "a/"
	// other is a second reading of name, with or without its prefix, for when
	// nothing is called name. Empty when there is none.
	other string
	to    string // target of a move or a copy
	keep  bool   // the source of to stays: a copy
	exec  exec
	// whole deletes the file whatever it holds; otherwise the hunks list all lines.
	whole bool
	hunks []hunk
	line  int // where it begins in the patch, from 1
}

type op uint8

const (
	update op = iota
	create
	remove
)

// exec is what a patch says of the executable bit.
type exec uint8

const (
	execKept exec = iota
	execOn
	execOff
)

// hunk is one change within a file. The positions in its header are hints.
type hunk struct {
	line  int      // in the patch, from 1
	start int      // first old line as the header says it, from 1; 0: not said
	old   int      // old lines as the header counts them; -1: not said
	new   int      // new lines as the header counts them; -1: not said
	heads []string // lines of the file that stand before the hunk ("@@ func f")
	lines []line
	soft  int  // empty lines at the end of lines that may be noise of the patch
	atEnd bool // the old lines are the last ones of the file
}

// line is one line of a hunk, without its newline.
type line struct {
	mark byte // ' ', '-' or '+'
	text string
	cr   bool // a carriage return stood before the newline
	bare bool // the file ends here without a newline
}

// oldLines returns the lines that must be in the file, without the last drop
// lines of the hunk.
func (h hunk) oldLines(drop int) []string {
	var out []string
	for _, l := range h.lines[:len(h.lines)-drop] {
		if l.mark != '+' {
			out = append(out, l.text)
		}
	}
	return out
}

// newLines returns the lines that take their place.
func (h hunk) newLines() []string {
	var out []string
	for _, l := range h.lines {
		if l.mark != '-' {
			out = append(out, l.text)
		}
	}
	return out
}

func (h hunk) count(mark byte) int {
	n := 0
	for _, l := range h.lines {
		if l.mark == mark {
			n++
		}
	}
	return n
}

// bare reports whether the last line with one of the marks has no newline.
func (h hunk) bare(marks string) bool {
	for i := len(h.lines) - 1; i >= 0; i-- {
		if strings.IndexByte(marks, h.lines[i].mark) >= 0 {
			return h.lines[i].bare
		}
	}
	return false
}

// onlyAdds reports that nothing says where the lines go.
func (h hunk) onlyAdds() bool { return h.count('+') == len(h.lines) }

// contract is the one sentence that every rejection ends with.
const contract = `A patch is a unified diff: "--- a/FILE", "+++ b/FILE", then hunks that begin with "@@" and whose lines begin with a space (unchanged), "-" or "+"; ` +
	`the unchanged and removed lines are copied exactly from the file. Nothing was changed.`

// Rejected is the error of a patch that cannot be applied. Its text is for the
// model and says how to correct the patch.
type Rejected struct{ text string }

// Error returns the text for the model.
func (r *Rejected) Error() string { return r.text }

// WithholdsEdits tells the loop to withhold the blunt edit tools until a correct
// patch lands.
func (r *Rejected) WithholdsEdits() bool { return true }

func reject(format string, args ...any) error {
	return &Rejected{"patch rejected: " + fmt.Sprintf(format, args...) + "\n" + contract}
}
