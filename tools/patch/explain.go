package patch

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"strings"
)

const (
	maxVotes   = 1 << 16 // places that are compared to find the nearest
	maxSought  = 64      // lines of a hunk that are looked for one by one
	maxExcerpt = 10      // lines of the file that an error shows
	maxLooked  = 1 << 17 // lines of a file that are compared letter by letter
)

// explain says why the lines of a hunk are not found and how to correct them.
func (m *matcher) explain(h hunk) string {
	const missing = "its unchanged and removed lines are not in the file"
	switch {
	case len(m.data) == 0:
		return missing + ": the file is empty. Send only lines that begin with \"+\"."
	case m.hide:
		return missing + " as they stand in the hunk. What the file holds is not shown here, since reading it needs approval."
	}
	m.left = maxCompares
	if why := m.misread(h); why != "" {
		return missing + ". " + why
	}
	if added := h.newLines(); h.count('+') > 0 {
		if found, err := m.find(0, added, true, 1); err == nil && len(found) == 1 {
			return fmt.Sprintf("%s, but the lines that it makes are, at line %d: it seems to be applied already. Leave the hunk out.", missing, lineNumber(m.data, found[0].start))
		}
	}
	if h.atEnd {
		h.atEnd = false
		if found, err := m.candidates(h); err == nil && len(found) > 0 {
			return fmt.Sprintf("its lines are at line %d, but the file does not end there. Leave out \"*** End of File\" and \"\\ No newline at end of file\".", lineNumber(m.data, found[0].start))
		}
	}
	if len(h.heads) > 0 {
		plain := h
		plain.heads = nil
		if found, err := m.candidates(plain); err == nil && len(found) > 0 {
			return fmt.Sprintf("its lines are at line %d, but not below the line after @@, %s. Correct that line.", lineNumber(m.data, found[0].start), show(h.heads[len(h.heads)-1]))
		}
	}
	return missing + ". " + m.nearest(h.oldLines(h.soft), h.start) + "\nRead that part of the file again and copy the lines exactly."
}

// misreading is a way in which models spoil lines, and how to undo it.
type misreading struct {
	undo func(h hunk) []string
	text string
}

var gutter = regexp.MustCompile(`^\s*\d+(?:: ?|\t|\s?[|→] ?)`)

// escapes undoes one level of escapes as in a JSON string.
var escapes = strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\t`, "\t", `\n`, "\n", `\/`, "/")

func misreadings() []misreading {
	each := func(undo func(string) string) func(hunk) []string {
		return func(h hunk) []string {
			return strings.Split(undo(strings.Join(h.oldLines(h.soft), "\n")), "\n")
		}
	}
	return []misreading{
		{each(html.UnescapeString), `It has HTML entities such as &lt; where the file has the characters themselves: send < > & ".`},
		{each(escapes.Replace), `It has backslash escapes such as \" or \n where the file has the characters themselves: send them without the backslash, with real line breaks.`},
		{func(h hunk) []string {
			lines := h.oldLines(h.soft)
			for i, l := range lines {
				lines[i] = gutter.ReplaceAllString(l, "")
			}
			return lines
		}, "It has line numbers in front of the lines: leave them out."},
		{func(h hunk) []string {
			var lines []string
			for _, l := range h.lines[:len(h.lines)-h.soft] {
				switch l.mark {
				case ' ':
					lines = append(lines, " "+l.text)
				case '-':
					lines = append(lines, l.text)
				}
			}
			return lines
		}, "Its unchanged lines lack the one space in front: put a space before each, and then the line as it is in the file."},
	}
}

// misread finds a misreading that explains the hunk.
func (m *matcher) misread(h hunk) string {
	have := strings.Join(h.oldLines(h.soft), "\n")
	for _, r := range misreadings() {
		lines := r.undo(h)
		if strings.Join(lines, "\n") == have {
			continue
		}
		if found, err := m.find(0, lines, true, 1); err == nil && len(found) > 0 {
			return r.text
		}
	}
	return ""
}

// nearest describes the place that has most of the lines.
func (m *matcher) nearest(lines []string, hint int) string {
	start, votes := m.bestPlace(lines, hint)
	if votes == 0 {
		return m.nearestLine(lines)
	}
	at, ok := offsetOf(m.data, start)
	if !ok {
		return m.nearestLine(lines)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The nearest place is line %d.", start)
	first := at
	for i, want := range lines {
		if at >= len(m.data) {
			fmt.Fprintf(&b, " The file ends after line %d, where the hunk goes on with\n  %s", start+i-1, show(want))
			break
		}
		var have []byte
		have, at = lineAt(m.data, at)
		if string(bytes.TrimRight(have, blanks)) != strings.TrimRight(want, blanks) {
			fmt.Fprintf(&b, " There line %d is\n  %s\nwhere the hunk has\n  %s%s", start+i, show(string(have)), show(want), blankNote(string(have), want))
			break
		}
	}
	b.WriteString("\nThe file there:")
	for i, at := 0, first; i < min(len(lines)+1, maxExcerpt) && at < len(m.data); i++ {
		var have []byte
		have, at = lineAt(m.data, at)
		fmt.Fprintf(&b, "\n%d: %s", start+i, clip(string(have)))
	}
	return b.String()
}

// bestPlace returns the line at which most of the lines would stand as they are in
// the file, not counting blanks around them.
func (m *matcher) bestPlace(lines []string, hint int) (start, votes int) {
	sought := map[string][]int{}
	for i, l := range lines[:min(len(lines), maxSought)] {
		if l = strings.TrimSpace(l); l != "" {
			sought[l] = append(sought[l], i)
		}
	}
	counts := map[int]int{}
	for at, n := 0, 1; at < len(m.data) && len(counts) < maxVotes; n++ {
		var have []byte
		have, at = lineAt(m.data, at)
		for _, i := range sought[string(bytes.TrimSpace(have))] {
			if n > i {
				counts[n-i]++
			}
		}
	}
	for line, count := range counts {
		switch {
		case count < votes:
		case count > votes, hint > 0 && distance(line, hint) < distance(start, hint), hint == 0 && line < start:
			start, votes = line, count
		}
	}
	return start, votes
}

func distance(a, b int) int { return max(a-b, b-a) }

// nearestLine shows the line of the file that looks most like one of the hunk.
func (m *matcher) nearestLine(lines []string) string {
	want := ""
	for _, l := range lines {
		if len(strings.TrimSpace(l)) > len(strings.TrimSpace(want)) {
			want = l
		}
	}
	best, number, text := 0, 0, ""
	for at, n := 0, 1; at < len(m.data) && n <= maxLooked; n++ {
		var have []byte
		have, at = lineAt(m.data, at)
		if score := likeness(bytes.TrimSpace(have[:min(len(have), 4*maxShown)]), strings.TrimSpace(want)); score > best {
			best, number, text = score, n, string(have)
		}
	}
	if best < 50 {
		return fmt.Sprintf("No line of the file is like %s.", show(want))
	}
	return fmt.Sprintf("The hunk has\n  %s\nThe nearest line of the file is %d:\n  %s%s", show(want), number, show(text), blankNote(text, want))
}

// likeness is the share of equal letters at both ends, in percent.
func likeness(a []byte, b string) int {
	longest := max(len(a), len(b))
	if longest == 0 || len(a) == 0 {
		return 0
	}
	front := 0
	for front < min(len(a), len(b)) && a[front] == b[front] {
		front++
	}
	back := 0
	for back < min(len(a), len(b))-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	return 100 * (front + back) / longest
}

// blankNote says how two lines differ that have the same letters.
func blankNote(file, hunk string) string {
	if strings.Join(strings.Fields(file), "") != strings.Join(strings.Fields(hunk), "") {
		return ""
	}
	a, b := indent(file), indent(hunk)
	if a == b {
		return "\nThey differ only in blanks within the line."
	}
	return fmt.Sprintf("\nThey differ only in blanks: the file's line begins with %s, the hunk's with %s.", a, b)
}

// indent describes the blanks at the start of a line.
func indent(l string) string {
	l = l[:len(l)-len(strings.TrimLeft(l, " \t"))]
	tabs, spaces := strings.Count(l, "\t"), strings.Count(l, " ")
	switch {
	case l == "":
		return "no blank"
	case tabs == 0:
		return amount(spaces, "space")
	case spaces == 0:
		return amount(tabs, "tab")
	default:
		return amount(tabs, "tab") + " and " + amount(spaces, "space")
	}
}

func amount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
