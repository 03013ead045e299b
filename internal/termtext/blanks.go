package termtext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxBlanks = 8  // blanks in a row inside or at the end of a line
	maxIndent = 40 // blanks at the start of a line, which code has
	maxEmpty  = 3  // empty lines in a row
)

// MarkBlanks makes padding visible that could push text out of view: a run of more
// than 8 blanks of any kind inside or at the end of a line (more than 40 at its
// start, where code is indented) becomes ` ·×4000 `, and a run of more than 3 lines
// without anything visible becomes one line `⏎×200` with the count of line ends.
func MarkBlanks(s string) string {
	lines := strings.Split(s, "\n")
	out := make([]string, 0, len(lines))
	for i := 0; i < len(lines); {
		n := emptyRun(lines[i:])
		if n <= maxEmpty {
			n = max(n, 1)
			for _, line := range lines[i : i+n] {
				out = append(out, markLine(line))
			}
			i += n
			continue
		}
		ends := n // line ends of the run, with the one before it
		if i+n == len(lines) {
			ends--
		}
		if i > 0 {
			ends++
		}
		out = append(out, fmt.Sprintf("⏎×%d", ends))
		i += n
	}
	return strings.Join(out, "\n")
}

// emptyRun counts the leading lines that hold nothing but blanks.
func emptyRun(lines []string) int {
	for i, line := range lines {
		if strings.TrimFunc(line, isBlank) != "" {
			return i
		}
	}
	return len(lines)
}

func markLine(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		size, count := blankRun(line[i:])
		if count == 0 {
			_, n := utf8.DecodeRuneInString(line[i:])
			b.WriteString(line[i : i+n])
			i += n
			continue
		}
		end := i + size
		switch {
		case count <= maxBlanks, count <= maxIndent && end < len(line) && isIndent(line[:i]):
			b.WriteString(line[i:end])
		case end == len(line):
			fmt.Fprintf(&b, " ·×%d", count)
		default:
			fmt.Fprintf(&b, " ·×%d ", count)
		}
		i = end
	}
	return b.String()
}

// isIndent reports whether a run of blanks after before indents its line. The sign
// in front of a line of a diff does not count.
func isIndent(before string) bool { return before == "" || before == "+" || before == "-" }

// blankRun measures the leading run of blanks in bytes and runes.
func blankRun(s string) (size, count int) {
	for size < len(s) {
		r, n := utf8.DecodeRuneInString(s[size:])
		if !isBlank(r) {
			break
		}
		size += n
		count++
	}
	return size, count
}

func isBlank(r rune) bool { return r == ' ' || r == '\t' || unicode.Is(unicode.Zs, r) }
