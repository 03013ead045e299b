package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zcoder/tools"
)

// result turns what was found into a result.
func (j *job) result(sum total) tools.Result {
	if sum.named && sum.left.binary > 0 {
		return tools.Fail("%s is binary (%d bytes), so it was not searched.", quoteName(j.start.Rel()), j.start.Info().Size())
	}
	r := tools.Result{Status: tools.OK, Line: j.line()}
	if j.found.total == 0 {
		r.Text = j.nothing(sum)
		return r
	}
	j.found.trim()
	var body strings.Builder
	var complete bool
	if j.filesOnly {
		complete = j.renderFiles(&body)
	} else {
		complete = j.renderHits(&body)
	}
	r.Text = body.String()
	if !complete {
		r.Text += "To see the rest narrow the search by path, glob, file_type or a longer query, or raise max_results or max_chars.\n"
	}
	r.Text += sum.notes()
	return r
}

// line is the short outcome.
func (j *job) line() string {
	switch {
	case j.found.total == 0:
		return "no matches"
	case j.filesOnly:
		return count(j.found.total, "file")
	}
	return fmt.Sprintf("%s in %s", count(j.found.matches, "match"), count(j.found.total, "file"))
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "ch"):
		return fmt.Sprintf("%d %ses", n, what)
	case strings.HasSuffix(what, "y"):
		return fmt.Sprintf("%d %sies", n, what[:len(what)-1])
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (j *job) nothing(sum total) string {
	where := ""
	if j.start.Rel() != "." {
		where = " in " + quoteName(j.start.Rel())
	}
	text := fmt.Sprintf("No matches for %q%s (%s searched).\n", cutText(j.text, 200), where, count(sum.files, "file"))
	if sum.files == 0 && sum.skipped > 0 {
		text = fmt.Sprintf("No file%s fits glob and file_type: all of %s were left out.\n", where, count(sum.skipped, "file"))
	}
	return text + sum.notes()
}

func (j *job) renderFiles(b *strings.Builder) (complete bool) {
	var names strings.Builder
	shown := 0
	for _, f := range j.found.files {
		name := quoteName(f.path) + "\n"
		if names.Len()+len(name) > j.chars {
			break
		}
		names.WriteString(name)
		shown++
	}
	if shown == j.found.total {
		fmt.Fprintf(b, "%s:\n", j.line())
	} else {
		fmt.Fprintf(b, "%d of %s:\n", shown, j.line())
	}
	b.WriteString(names.String())
	return shown == j.found.total
}

func (j *job) renderHits(b *strings.Builder) (complete bool) {
	context := j.context
	pages, shown := j.choose(context)
	for j.shrink && context > 0 && shown < min(j.found.matches, j.found.most) {
		context--
		pages, shown = j.choose(context)
	}
	complete = shown == j.found.matches
	if complete {
		fmt.Fprintf(b, "%s:\n", j.line())
	} else {
		fmt.Fprintf(b, "%d of %s:\n", shown, j.line())
	}
	for _, p := range pages {
		p.write(b)
	}
	if context < j.context {
		fmt.Fprintf(b, "Context lines: %d, to show more matches.\n", context)
	}
	return complete
}

// page is what is shown of a file: its lines by number.
type page struct {
	name  string
	lines map[int]shownLine
	hits  int // shown
	total int
	full  bool // no further hit of this file is shown
}

type shownLine struct {
	text string
	hit  bool
}

// choose takes hits from the files in turn until the bounds are reached.
func (j *job) choose(context int) (pages []*page, shown int) {
	chars, slots := j.chars, j.found.most
	for round, more := 0, true; more && slots > 0; round++ {
		more = false
		for i, f := range j.found.files {
			if slots == 0 {
				break
			}
			if round == 0 {
				pages = append(pages, &page{name: quoteName(f.path), lines: map[int]shownLine{}, total: f.count})
			}
			p := pages[i]
			if round >= len(f.hits) || p.full {
				continue
			}
			slots--
			cost := p.add(&f.hits[round], context, chars)
			if cost == 0 {
				p.full = true
				continue
			}
			chars -= cost
			shown++
			more = true
		}
	}
	if shown == 0 {
		h := hit{number: j.found.files[0].hits[0].number}
		h.text = cutText(j.found.files[0].hits[0].text, 60)
		pages[0].add(&h, 0, j.chars+len(h.text))
		shown = 1
	}
	return slices.DeleteFunc(pages, func(p *page) bool { return p.hits == 0 }), shown
}

// add shows a hit with context if it costs at most limit characters. It returns the
// cost, 0 when the hit is too long.
func (p *page) add(h *hit, context, limit int) (cost int) {
	lines := map[int]shownLine{}
	for i := range min(context, len(h.before)) {
		lines[h.number-1-i] = shownLine{text: h.before[len(h.before)-1-i]}
	}
	for i := range min(context, len(h.after)) {
		lines[h.number+1+i] = shownLine{text: h.after[i]}
	}
	if p.hits == 0 {
		cost = len(p.name) + 30
	}
	for number, l := range lines {
		if _, there := p.lines[number]; there {
			delete(lines, number)
			continue
		}
		cost += len(l.text) + 8
	}
	if !p.lines[h.number].hit {
		cost += len(h.text) + 8
	}
	if cost > limit {
		return 0
	}
	maps.Copy(p.lines, lines)
	p.lines[h.number] = shownLine{h.text, true}
	p.hits++
	return max(cost, 1)
}

// write prints the lines in order, "N: " before hits, "N- " before context, "--"
// between parts that do not touch.
func (p *page) write(b *strings.Builder) {
	b.WriteString(p.name)
	if p.hits < p.total {
		fmt.Fprintf(b, " (%d of %d)", p.hits, p.total)
	}
	b.WriteByte('\n')
	last, apart := 0, len(p.lines) > p.hits
	for _, number := range slices.Sorted(maps.Keys(p.lines)) {
		l := p.lines[number]
		if apart && last > 0 && number > last+1 {
			b.WriteString("--\n")
		}
		mark := '-'
		if l.hit {
			mark = ':'
		}
		fmt.Fprintf(b, "%d%c %s\n", number, mark, l.text)
		last = number
	}
	b.WriteByte('\n')
}

// notes says what was not searched and why all was.
func (t *total) notes() string {
	text := t.left.notes("searched")
	if t.relaxed {
		text = "All of this is ignored by an ignore file; it was searched because it was named.\n" + text
	}
	return text
}

// notes says what was left out, in one or two lines, or "".
func (l *left) notes(verb string) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(l.hidden, "hidden")
	add(l.ignored, "ignored")
	for _, name := range l.droppedNames() {
		part := name + "/"
		if n := l.dropped[name]; n > 1 {
			part = fmt.Sprintf("%d %s/", n, name)
		}
		parts = append(parts, part)
	}
	add(l.links, "links")
	add(l.odd, "special files")
	add(l.hardLinks, "with several hard links")
	add(l.secret, "secret-like")
	add(l.binary, "binary with the text")
	if l.settings {
		parts = append(parts, "the settings directory")
	}
	text := ""
	if len(parts) > 0 {
		text = fmt.Sprintf("Not %s unless named as path: %s.\n", verb, strings.Join(parts, ", "))
	}
	if l.unreadable > 0 {
		text += fmt.Sprintf("Could not read %d, first %s: %v.\n", l.unreadable, cutText(quoteName(l.firstPath), 200), l.firstCause)
	}
	return text
}
