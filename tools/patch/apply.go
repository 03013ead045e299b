package patch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const bom = "\ufeff"

// problem is why a hunk cannot be applied. at is the hunk's index.
type problem struct {
	at   int
	text string
}

func (p *problem) Error() string { return p.text }

func wrong(at int, format string, args ...any) error {
	return &problem{at, fmt.Sprintf(format, args...)}
}

// apply returns the content after the hunks. All of them are matched against the
// content as it is, in whatever order they come. Bytes outside the changed lines
// stay; new lines get the line end of the lines that they replace or follow. The
// error is a *problem; with hide its text shows nothing of the content.
func apply(content []byte, hunks []hunk, hide bool) ([]byte, error) {
	data := content
	var mark []byte
	if rest, ok := bytes.CutPrefix(content, []byte(bom)); ok && len(rest) > 0 {
		mark, data = content[:len(bom)], rest
		hunks = withoutBOM(hunks)
	}
	m := &matcher{data: data, left: maxCompares, hide: hide}
	places, err := m.placeAll(hunks)
	if err != nil {
		return nil, err
	}
	var edits []edit
	for i, h := range hunks {
		edits = append(edits, editsOf(data, h, places[i], i)...)
	}
	if err := checkOverlap(data, edits, places); err != nil {
		return nil, err
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	return splice(mark, data, edits), nil
}

// withoutBOM drops the mark that a file begins with from the lines of a patch.
func withoutBOM(hunks []hunk) []hunk {
	hunks = slices.Clone(hunks)
	for i := range hunks {
		hunks[i].lines = slices.Clone(hunks[i].lines)
		for j := range hunks[i].lines {
			l := &hunks[i].lines[j]
			l.text = strings.TrimPrefix(l.text, bom)
		}
	}
	return hunks
}

// placeAll decides where each hunk stands. A hunk whose lines are in the file once
// stands there. The line number of its header decides between several places, but
// only when no other hunk shows that the numbers are off.
func (m *matcher) placeAll(hunks []hunk) ([]place, error) {
	if places, ok := m.asNumbered(hunks); ok {
		return places, nil
	}
	places := make([]place, len(hunks))
	several := map[int][]place{}
	trusted := true
	for i, h := range hunks {
		found, err := m.placesOf(i, h)
		if err != nil {
			return nil, err
		}
		if len(found) > 1 {
			several[i] = found
			continue
		}
		places[i] = found[0]
		if h.start > 0 && m.numberOf(found[0].start) != h.start {
			trusted = false
		}
	}
	for i, h := range hunks {
		found := several[i]
		if found == nil {
			continue
		}
		p, ok := m.numbered(h, found)
		if !ok || !trusted {
			return nil, m.ambiguous(i, h, found, trusted)
		}
		places[i] = p
	}
	return places, nil
}

// placesOf returns at least one place, or says why there is none.
func (m *matcher) placesOf(i int, h hunk) ([]place, error) {
	if h.onlyAdds() {
		if len(m.data) == 0 || h.atEnd {
			return []place{{len(m.data), len(m.data)}}, nil
		}
		return nil, wrong(i, "it only adds lines, so nothing says where they go. Add at least one unchanged line of the file before or after them, with a space in front.")
	}
	found, err := m.candidates(h)
	var missing *headMissing
	switch {
	case errors.Is(err, errRepetitive) || m.left < 0:
		return nil, wrong(i, "finding its place takes too long: its lines are too much alike, or the patch has too many hunks for a file of this size. Add unchanged lines that occur once in the file, or send several patches.")
	case errors.As(err, &missing):
		return nil, wrong(i, "the line after @@, %s, is not in the file. Copy a line of the file there, or write only @@.", show(missing.head))
	case len(found) == 0:
		return nil, wrong(i, "%s", m.explain(h))
	}
	return found, nil
}

// asNumbered places all hunks where their headers say, if their lines are there
// exactly, one hunk below the other.
func (m *matcher) asNumbered(hunks []hunk) ([]place, bool) {
	places := make([]place, len(hunks))
	at, number := 0, 1
	for i, h := range hunks {
		if h.start < number || h.atEnd || len(h.heads) > 0 || h.onlyAdds() {
			return nil, false
		}
		for ; number < h.start; number++ {
			if at >= len(m.data) {
				return nil, false
			}
			_, at = lineAt(m.data, at)
		}
		lines := h.oldLines(0)
		end, ok := m.matchAt(at, lines, false)
		if !ok {
			return nil, false
		}
		places[i] = place{at, end}
		at, number = end, number+len(lines)
	}
	return places, true
}

// numbered returns the place that the header's line number names. found need not
// hold all places.
func (m *matcher) numbered(h hunk, found []place) (place, bool) {
	m.left -= h.start
	at, ok := offsetOf(m.data, h.start)
	if !ok || m.left < 0 {
		return place{}, false
	}
	for _, p := range found {
		if p.start == at {
			return p, true
		}
	}
	if len(h.heads) > 0 {
		return place{}, false
	}
	end, ok := m.matchAt(at, h.oldLines(0), false)
	return place{at, end}, ok
}

func (m *matcher) ambiguous(i int, h hunk, found []place, trusted bool) error {
	numbers := make([]string, len(found))
	for j, p := range found {
		numbers[j] = fmt.Sprint(lineNumber(m.data, p.start))
	}
	list := strings.Join(numbers[:len(numbers)-1], ", ") + " and " + numbers[len(numbers)-1]
	if len(found) == maxCandidates {
		list = strings.Join(numbers, ", ") + ", maybe further ones"
	}
	why := ""
	switch {
	case h.start > 0 && !trusted:
		why = fmt.Sprintf(" Its header says line %d, but the numbers of other hunks are wrong, so it does not count.", h.start)
	case h.start > 0:
		why = fmt.Sprintf(" Its header says line %d, which is none of these.", h.start)
	}
	return wrong(i, "its lines are in the file at lines %s, so it is not clear which place is meant.%s Add unchanged lines above or below until only one place fits, or write the right line number: \"@@ -%s +%s @@\".", list, why, numbers[0], numbers[0])
}

// edit replaces the bytes [start,end) by lines. hunk is the index of its hunk.
type edit struct {
	start, end int
	text       []byte
	hunk       int
}

// editsOf cuts the hunk into runs of changed lines and gives new lines their ends.
func editsOf(data []byte, h hunk, p place, index int) []edit {
	var out []edit
	at := p.start
	for i := 0; i < len(h.lines); {
		if h.lines[i].mark == ' ' {
			if at < p.end {
				_, at = lineAt(data, at)
			}
			i++
			continue
		}
		e := edit{start: at, hunk: index}
		var added []line
		var ends []string
		for ; i < len(h.lines) && h.lines[i].mark != ' '; i++ {
			if h.lines[i].mark == '+' {
				added = append(added, h.lines[i])
				continue
			}
			from := at
			_, at = lineAt(data, at)
			ends = append(ends, lineEnd(data[from:at]))
		}
		e.end = at
		e.text = newText(data, e, added, ends, h.bare(" -"))
		out = append(out, e)
	}
	return out
}

// lineEnd returns "\n", "\r\n" or, for a last line without newline, "".
func lineEnd(l []byte) string {
	switch {
	case bytes.HasSuffix(l, []byte("\r\n")):
		return "\r\n"
	case bytes.HasSuffix(l, []byte("\n")):
		return "\n"
	default:
		return ""
	}
}

// newText writes the added lines of an edit. The i-th gets the line end of the i-th
// removed line, further ones that of the last; without any, the line above and then
// the line below decide. At the end of the file, a missing newline stays missing
// unless the patch says otherwise.
func newText(data []byte, e edit, added []line, ends []string, oldBare bool) []byte {
	if len(added) == 0 {
		return nil
	}
	var b bytes.Buffer
	fallback := nearbyEnd(data, e)
	if e.start > 0 && data[e.start-1] != '\n' {
		b.WriteString(orElse(fallback, added[0]))
	}
	for i, l := range added {
		end := fallback
		if len(ends) > 0 && ends[min(i, len(ends)-1)] != "" {
			end = ends[min(i, len(ends)-1)]
		}
		b.WriteString(l.text)
		last := i == len(added)-1 && e.end == len(data)
		switch {
		case last && l.bare:
		case last && len(data) > 0 && data[len(data)-1] != '\n' && !oldBare:
		default:
			b.WriteString(orElse(end, l))
		}
	}
	return b.Bytes()
}

// orElse returns the line end, or that of the patch when the file has none.
func orElse(end string, l line) string {
	switch {
	case end != "":
		return end
	case l.cr:
		return "\r\n"
	default:
		return "\n"
	}
}

// nearbyEnd returns the line end of the line above the edit, else of the line below,
// else the first of the file.
func nearbyEnd(data []byte, e edit) string {
	if e.start > 0 && data[e.start-1] == '\n' {
		return lineEnd(data[max(0, e.start-2):e.start])
	}
	first := 0
	if e.start == 0 {
		first = e.end
	}
	_, next := lineAt(data, first)
	if end := lineEnd(data[first:next]); end != "" || first == 0 {
		return end
	}
	_, next = lineAt(data, 0)
	return lineEnd(data[:next])
}

// checkOverlap refuses edits that touch what another hunk needs unchanged, and two
// insertions at one place.
func checkOverlap(data []byte, edits []edit, places []place) error {
	type span struct {
		start, end, hunk int
		changes          bool
	}
	var spans []span
	for i, p := range places {
		spans = append(spans, span{p.start, p.end, i, false})
	}
	for _, e := range edits {
		spans = append(spans, span{e.start, e.end, e.hunk, true})
	}
	slices.SortFunc(spans, func(a, b span) int { return a.start - b.start })
	for i, a := range spans {
		for _, b := range spans[i+1:] {
			if b.start > a.end || b.start == a.end && b.start != a.start && b.start != len(data) {
				break
			}
			if a.hunk == b.hunk || !a.changes && !b.changes {
				continue
			}
			touches := max(a.start, b.start) < min(a.end, b.end)
			unordered := a.changes && b.changes && (a.start == b.start || b.start == len(data))
			if touches || unordered {
				first, second := min(a.hunk, b.hunk), max(a.hunk, b.hunk)
				return wrong(second, "it and hunk %d both cover line %d of the file. Join them into one hunk.", first+1, lineNumber(data, max(a.start, b.start)))
			}
		}
	}
	return nil
}

// splice returns the data with the sorted edits made.
func splice(mark, data []byte, edits []edit) []byte {
	size := len(mark) + len(data)
	for _, e := range edits {
		size += len(e.text) - (e.end - e.start)
	}
	out := make([]byte, 0, size)
	out = append(out, mark...)
	at := 0
	for _, e := range edits {
		out = append(out, data[at:e.start]...)
		out = append(out, e.text...)
		at = e.end
	}
	return append(out, data[at:]...)
}

// createdText is the content of a new file. Its line ends are those of the patch.
func createdText(hunks []hunk) []byte {
	var b bytes.Buffer
	for _, h := range hunks {
		for _, l := range h.lines {
			b.WriteString(l.text)
			if !l.bare {
				b.WriteString(orElse("", l))
			}
		}
	}
	return b.Bytes()
}
