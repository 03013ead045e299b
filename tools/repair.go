package tools

import (
	"bytes"
	"strings"
)

// repair rewrites text that is nearly JSON, as small models write it, into JSON:
// single-quoted strings, Python's True, False and None, trailing commas, and line
// breaks inside strings. It guesses nothing else: text that is still not JSON stays
// an error, and the strict reader judges the result as if it had been sent.
func repair(text []byte) []byte {
	r := repairer{in: text}
	for r.at < len(r.in) {
		r.step()
	}
	return r.out.Bytes()
}

type repairer struct {
	in  []byte
	at  int
	out bytes.Buffer
}

func (r *repairer) step() {
	switch c := r.in[r.at]; {
	case c == '"' || c == '\'':
		r.quoted(c)
	case c == ',' && r.closes(r.at+1):
		r.at++
	case isWordByte(c):
		r.word()
	default:
		r.out.WriteByte(c)
		r.at++
	}
}

// closes reports whether the next thing after white space is a closing bracket.
func (r *repairer) closes(at int) bool {
	rest := bytes.TrimLeft(r.in[at:], " \t\r\n")
	return len(rest) > 0 && (rest[0] == '}' || rest[0] == ']')
}

// quoted copies a string with double quotes around it.
func (r *repairer) quoted(quote byte) {
	r.out.WriteByte('"')
	for r.at++; r.at < len(r.in); r.at++ {
		switch c := r.in[r.at]; {
		case c == quote:
			r.out.WriteByte('"')
			r.at++
			return
		case c == '\\' && r.at+1 < len(r.in):
			r.at++
			if r.in[r.at] != '\'' { // JSON has no escape for a single quote
				r.out.WriteByte('\\')
			}
			r.out.WriteByte(r.in[r.at])
		case c == '"':
			r.out.WriteString(`\"`)
		case c == '\n':
			r.out.WriteString(`\n`)
		case c == '\r':
			r.out.WriteString(`\r`)
		case c == '\t':
			r.out.WriteString(`\t`)
		default:
			r.out.WriteByte(c)
		}
	}
}

var pythonWords = strings.NewReplacer("True", "true", "False", "false", "None", "null")

func (r *repairer) word() {
	start := r.at
	for r.at < len(r.in) && isWordByte(r.in[r.at]) {
		r.at++
	}
	word := string(r.in[start:r.at])
	if word == "True" || word == "False" || word == "None" {
		word = pythonWords.Replace(word)
	}
	r.out.WriteString(word)
}

func isWordByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
