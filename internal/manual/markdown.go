// Package manual shows the program's documents: it reads the Markdown that they are
// written in and renders it as plain text for a terminal and as roff for man.
//
// It knows the parts of Markdown that docs/ uses, which a test holds together. It reads
// no files and does not know what the documents say; app is its only caller.
package manual

import (
	"regexp"
	"strings"
)

type kind uint8

const (
	heading kind = iota
	paragraph
	code
	item
	table
)

// block is a part of a document that begins on a line of its own.
type block struct {
	kind  kind
	level int        // of a heading, from 1; of an item, from 0
	mark  string     // of an item: "-" or "1."
	text  string     // of a heading, paragraph or item; one line
	lines []string   // of code
	rows  [][]string // of a table; the first holds the titles
}

var (
	headingLine = regexp.MustCompile(`^(#{1,6}) (.*)$`)
	itemLine    = regexp.MustCompile(`^( *)(-|\d+\.) +(.*)$`)
	cellBreak   = regexp.MustCompile(`(?:^|[^\\])\|`)
)

// parse divides a document into its blocks.
func parse(text string) []block {
	var blocks []block
	open := false // the last block takes more lines
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch {
		case strings.TrimSpace(line) == "":
			open = false
		case strings.HasPrefix(line, "```"):
			b := block{kind: code}
			for i++; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
				b.lines = append(b.lines, lines[i])
			}
			blocks, open = append(blocks, b), false
		case headingLine.MatchString(line):
			m := headingLine.FindStringSubmatch(line)
			blocks, open = append(blocks, block{kind: heading, level: len(m[1]), text: m[2]}), false
		case strings.HasPrefix(line, "|"):
			b := block{kind: table}
			for ; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
				if !strings.HasPrefix(lines[i], "|---") {
					b.rows = append(b.rows, cells(lines[i]))
				}
			}
			i--
			blocks, open = append(blocks, b), false
		case itemLine.MatchString(line):
			m := itemLine.FindStringSubmatch(line)
			blocks, open = append(blocks, block{kind: item, level: len(m[1]) / 2, mark: m[2], text: m[3]}), true
		case open:
			blocks[len(blocks)-1].text += " " + strings.TrimSpace(line)
		case strings.HasPrefix(line, "    "):
			b := block{kind: code}
			for ; i < len(lines) && strings.HasPrefix(lines[i], "    "); i++ {
				b.lines = append(b.lines, lines[i][4:])
			}
			i--
			blocks = append(blocks, b)
		default:
			blocks, open = append(blocks, block{kind: paragraph, text: strings.TrimSpace(line)}), true
		}
	}
	return blocks
}

// cells divides a line of a table.
func cells(line string) []string {
	var list []string
	line = strings.TrimSpace(line)[1:]
	for line != "" {
		end := len(line)
		next := end
		if at := cellBreak.FindStringIndex(line); at != nil {
			end, next = at[1]-1, at[1]
		}
		list = append(list, strings.ReplaceAll(strings.TrimSpace(line[:end]), `\|`, "|"))
		line = line[next:]
	}
	return list
}

// Section returns the part of a document under a heading, without it, up to the next of
// its level or above, or "" when there is none.
func Section(text, title string) string {
	level, from := 0, -1
	at, fenced := 0, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		m := headingLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m != nil && !fenced {
			switch {
			case from >= 0 && len(m[1]) <= level:
				return strings.TrimSpace(text[from:at])
			case from < 0 && m[2] == title:
				level, from = len(m[1]), at+len(line)
			}
		}
		at += len(line)
	}
	if from < 0 {
		return ""
	}
	return strings.TrimSpace(text[from:])
}

// spanKind is how a part of a line is set.
type spanKind uint8

const (
	plain spanKind = iota
	literal
	strong
	stressed
)

// span is a part of a line that is set in one way.
type span struct {
	kind spanKind
	text string
}

var inline = regexp.MustCompile("`([^`]+)`" + `|\*\*(.+?)\*\*|\*([^*\s](?:[^*]*[^*\s])?)\*|\[([^\]]+)\]\(([^)\s]+)\)`)

// spans divides the text of a block. Links become what a reader without a browser can
// follow.
func spans(text string) []span {
	var list []span
	add := func(k spanKind, text string) {
		if text != "" {
			list = append(list, span{k, text})
		}
	}
	for text != "" {
		m := inline.FindStringSubmatchIndex(text)
		if m == nil {
			add(plain, text)
			break
		}
		group := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		add(plain, text[:m[0]])
		switch {
		case m[2] >= 0:
			add(literal, group(1))
		case m[4] >= 0:
			for _, s := range spans(group(2)) {
				if s.kind == plain {
					s.kind = strong
				}
				add(s.kind, s.text)
			}
		case m[6] >= 0:
			add(stressed, group(3))
		default:
			list = append(list, link(group(4), group(5))...)
		}
		text = text[m[1]:]
	}
	return list
}

// link is a link as text: a topic of the help by its command, an address as it is.
func link(text, target string) []span {
	page, _, _ := strings.Cut(target, "#")
	topic, isPage := strings.CutSuffix(page, ".md")
	switch {
	case isPage && !strings.Contains(topic, "/") && strings.HasSuffix(text, ".md"):
		return []span{{literal, "zcoder help " + topic}}
	case isPage && !strings.Contains(topic, "/"):
		return []span{{plain, text + " ("}, {literal, "zcoder help " + topic}, {plain, ")"}}
	case strings.Contains(target, "://") && text != target:
		return []span{{plain, text + " (" + target + ")"}}
	}
	return []span{{plain, text}}
}
