package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// loose reads what can be made out in text that the parser refuses: it cuts the text
// at separators and reserved words outside quotes and reads each piece that parses.
// The whole is opaque all the same; the pieces serve deny rules and the guard.
func (r *reader) loose(s *scope, p place, text string) {
	if strings.Contains(text, "<<") || !r.enter(p, text) {
		return
	}
	inner := s.child()
	inner.cond++
	p.depth++
	for _, piece := range pieces(text) {
		if r.spent {
			return
		}
		name, rest := loopHead(piece)
		if name != "" {
			r.looseLoop(inner, p, name, rest)
			continue
		}
		r.loosePiece(inner, p, piece)
	}
}

func (r *reader) loosePiece(s *scope, p place, piece string) {
	list, _, err := statements(p.dialect, piece)
	if err != nil || len(list) != 1 || r.bytes+len(piece) > r.o.MaxBytes*2 {
		return
	}
	r.bytes += len(piece)
	p.src = piece
	r.collect(list[0])
	r.stmt(s, p, list[0])
}

// looseLoop reads zsh's for name (words) command.
func (r *reader) looseLoop(s *scope, p place, name, rest string) {
	words, command, ok := strings.Cut(rest, ")")
	if !ok {
		return
	}
	list, _, err := statements(p.dialect, ": "+words)
	if err != nil || len(list) != 1 {
		return
	}
	c, ok := list[0].Cmd.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return
	}
	at := p
	at.src = ": " + words
	all := value{}
	for _, w := range c.Args[1:] {
		all = all.or(r.each(s, at, w))
	}
	r.assigned[name] = true
	s.set(name, all, value{})
	r.loosePiece(s, p, command)
}

// loopHead recognises "for name (" and "foreach name (" and returns what follows.
func loopHead(piece string) (name, rest string) {
	fields := strings.Fields(piece)
	if len(fields) < 3 || fields[0] != "for" && fields[0] != "foreach" {
		return "", ""
	}
	_, rest, ok := strings.Cut(piece, "(")
	if !ok || !syntax.ValidName(fields[1]) {
		return "", ""
	}
	return fields[1], rest
}

// pieces cuts a text at separators outside quotes and drops reserved words at the
// start of each piece.
func pieces(text string) []string {
	var out []string
	start, depth := 0, 0
	cut := func(end int) {
		if piece := dropReserved(text[start:end]); piece != "" {
			out = append(out, piece)
		}
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\'':
			if end := strings.IndexByte(text[i+1:], '\''); end >= 0 {
				i += end + 1
			}
		case '"':
			i = closing(text, i)
		case '(':
			depth++
		case ')':
			depth--
		case ';', '\n', '&', '|':
			if depth <= 0 {
				cut(i)
				start = i + 1
			}
		case '{', '}':
			alone := (i == 0 || strings.IndexByte(" \t;\n)", text[i-1]) >= 0) && (i+1 == len(text) || strings.IndexByte(" \t;\n", text[i+1]) >= 0)
			if depth <= 0 && alone {
				cut(i)
				start = i + 1
			}
		}
	}
	if start < len(text) {
		cut(len(text))
	}
	return out
}

// closing returns the index of the quote that closes the one at i, or i when none
// does.
func closing(text string, i int) int {
	for j := i + 1; j < len(text); j++ {
		switch text[j] {
		case '\\':
			j++
		case '"':
			return j
		}
	}
	return i
}

func dropReserved(piece string) string {
	for {
		piece = strings.TrimSpace(piece)
		word, rest, _ := strings.Cut(piece, " ")
		switch word {
		case "do", "then", "else", "elif", "if", "while", "until", "always", "{", "}", "!", "fi", "done", "end", "esac", "function", "in":
			piece = rest
			if rest == "" {
				return ""
			}
		case "repeat":
			_, piece, _ = strings.Cut(strings.TrimSpace(rest), " ")
		default:
			return piece
		}
	}
}
