package manual

import (
	"strings"

	"zcoder/internal/termtext"
)

const (
	indent    = 2  // of what stands below a heading, in columns
	maxTerm   = 26 // widest first column of a table of two, in columns
	columnGap = 2
)

// Text renders a document as plain text, filled to width columns. Code and what has no
// gap in it can be wider.
func Text(markdown string, width int) string {
	var b strings.Builder
	blocks := parse(markdown)
	for i, block := range blocks {
		if i > 0 && !(block.kind == item && blocks[i-1].kind == item) {
			b.WriteByte('\n')
		}
		for _, line := range block.plain(width - indent) {
			if block.kind != heading && line != "" {
				line = strings.Repeat(" ", indent) + line
			}
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// plain returns the lines of a block.
func (b block) plain(width int) []string {
	switch b.kind {
	case heading:
		title := flat(b.text)
		if b.level == 1 {
			return []string{title, strings.Repeat("=", termtext.Width(title))}
		}
		return []string{title}
	case code:
		lines := make([]string, len(b.lines))
		for i, line := range b.lines {
			lines[i] = "    " + line
		}
		return lines
	case item:
		lead := strings.Repeat("  ", b.level) + b.mark + " "
		return hanging(lead, flat(b.text), len(lead), width)
	case table:
		return b.plainTable(width)
	}
	return wrap(flat(b.text), width)
}

// flat is a line of Markdown without its marks, except those of code, which would be
// missed in running text.
func flat(text string) string {
	var b strings.Builder
	for _, s := range spans(text) {
		if s.kind == literal {
			s.text = "`" + s.text + "`"
		}
		b.WriteString(s.text)
	}
	return b.String()
}

// flatCell is flat for a cell; one that is code as a whole needs no marks.
func flatCell(text string) string {
	if s := spans(text); len(s) == 1 {
		return s[0].text
	}
	return flat(text)
}

// plainTable sets a table in columns, and where they have no room each row as its first
// cell with the others below it.
func (b block) plainTable(width int) []string {
	rows := make([][]string, len(b.rows))
	var widths []int
	for i, row := range b.rows {
		for j, cell := range row {
			cell = flatCell(cell)
			rows[i] = append(rows[i], cell)
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], termtext.Width(cell))
		}
	}
	all := columnGap * (len(widths) - 1)
	for _, w := range widths {
		all += w
	}
	var lines []string
	for i, row := range rows {
		if i == 0 && (strings.Join(row, "") == "" || all > width && len(widths) > 2) {
			continue // no titles, or those that listed repeats
		}
		switch {
		case all <= width:
			lines = append(lines, inColumns(row, widths))
		case len(widths) == 2:
			lines = append(lines, pair(row, min(widths[0], maxTerm), width)...)
		default:
			lines = append(lines, listed(rows[0], row, width)...)
		}
	}
	return lines
}

func inColumns(row []string, widths []int) string {
	var b strings.Builder
	for j, cell := range row {
		b.WriteString(cell)
		if j < len(row)-1 {
			b.WriteString(strings.Repeat(" ", widths[j]-termtext.Width(cell)+columnGap))
		}
	}
	return b.String()
}

// pair sets a row of two: the second cell filled beside the first, or below a long one.
func pair(row []string, first, width int) []string {
	column := first + columnGap
	if len(row) < 2 {
		return row
	}
	if termtext.Width(row[0]) <= first {
		return hanging(row[0]+strings.Repeat(" ", column-termtext.Width(row[0])), row[1], column, width)
	}
	lead := strings.Repeat(" ", column)
	return append(wrap(row[0], width), hanging(lead, row[1], column, width)...)
}

// listed sets a row of many: the first cell that says something, then the others with
// their titles.
func listed(titles, row []string, width int) []string {
	var lines []string
	for j := 0; j < len(row) && j < len(titles); j++ {
		switch {
		case row[j] == "":
		case lines == nil:
			lines = wrap(row[j], width)
		default:
			lines = append(lines, hanging("    "+titles[j]+": ", row[j], 6, width)...)
		}
	}
	return lines
}

// hanging fills text behind a lead; further lines stand in the given column.
func hanging(lead, text string, column, width int) []string {
	var lines []string
	line, words := lead, 0
	for _, word := range strings.Fields(text) {
		if words > 0 && termtext.Width(line)+1+termtext.Width(word) > width {
			lines, line, words = append(lines, line), strings.Repeat(" ", column), 0
		}
		if words > 0 {
			line += " "
		}
		line += word
		words++
	}
	return append(lines, line)
}

func wrap(text string, width int) []string { return hanging("", text, 0, width) }
