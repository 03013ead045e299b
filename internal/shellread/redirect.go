package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirects reads the redirections of a statement. It returns the place with the
// input they give, and whether standard output goes to a file.
func (r *reader) redirects(s *scope, p place, list []*syntax.Redirect) (place, bool) {
	away := false
	for _, rd := range list {
		switch rd.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			p.stdin = r.heredoc(s, p, rd)
		case syntax.WordHdoc:
			p.stdin = r.herestring(s, p, rd)
		case syntax.RdrIn:
			p.stdin = r.readFrom(s, p, rd.Word)
		case syntax.DplIn:
			r.words(s, p, rd.Word)
		case syntax.DplOut:
			if !isDescriptor(rd.Word.Lit()) {
				away = true
				r.writeTo(s, p, rd)
			}
		default:
			away = away || rd.N == nil || rd.N.Value == "1"
			r.writeTo(s, p, rd)
		}
	}
	return p, away
}

// isDescriptor reports whether >&word names an open file instead of a new one.
func isDescriptor(word string) bool {
	if word == "-" || word == "p" {
		return true
	}
	return word != "" && strings.Trim(strings.TrimSuffix(word, "-"), "0123456789") == ""
}

func (r *reader) heredoc(s *scope, p place, rd *syntax.Redirect) output {
	if rd.Hdoc == nil {
		return output{known: true, piped: true}
	}
	if isQuoted(rd.Word) {
		return output{text: quotedBody(p, rd), known: true, piped: true}
	}
	b := newBuilder()
	for _, part := range rd.Hdoc.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			text := unescapeIn(lit.Value, "$`\\")
			b.text(text, escapePattern(text), false, true)
			continue
		}
		if _, ok := part.(*syntax.CmdSubst); ok {
			r.note("a here-document runs what its $(…) holds")
		}
		r.part(s, p, b, part, true)
	}
	out := textOf(b.finish())
	out.piped = true
	return out
}

// quotedBody is the text of a here-document whose delimiter is quoted: plain data,
// which the parser knows only when all of the delimiter is quoted.
func quotedBody(p place, rd *syntax.Redirect) string {
	if text := rd.Hdoc.Lit(); text != "" {
		return text
	}
	text := p.text(rd.Hdoc)
	return text[:strings.LastIndexByte(text, '\n')+1]
}

func isQuoted(w *syntax.Word) bool {
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// textOf is the output that an expansion stands for.
func textOf(alts [][]field) output {
	if len(alts) != 1 {
		return output{}
	}
	f := joinFields(alts[0], " ")
	if f.open != "" {
		return output{}
	}
	return output{text: f.lit, known: true}
}

func (r *reader) herestring(s *scope, p place, rd *syntax.Redirect) output {
	v := r.assignValue(s, p, rd.Word)
	out := output{piped: true}
	if text, ok := v.constant(); ok {
		out.text, out.known = text+"\n", true
	}
	for _, list := range v.alts {
		out.names = append(out.names, list...)
	}
	return out
}

// readFrom is the input that a file gives: not known, unless it is a device that
// never gives any, or a process substitution.
func (r *reader) readFrom(s *scope, p place, w *syntax.Word) output {
	if len(w.Parts) == 1 {
		if sub, ok := w.Parts[0].(*syntax.ProcSubst); ok {
			out := r.stmts(s.child(), p.deeper(), sub.Stmts)
			out.piped = true
			return out
		}
	}
	for _, word := range r.words(s, p, w) {
		if word.Known && word.Value == "/dev/null" {
			return silent()
		}
		if !r.socket(word) && word.Known && p.elsewhere == "" && len(r.out.Reads) < maxItems {
			if name := resolve(s.dir, word.Value); name != "" {
				r.out.Reads = append(r.out.Reads, name)
				for _, dir := range s.other {
					r.out.Reads = append(r.out.Reads, resolve(dir, word.Value))
				}
			}
		}
	}
	return output{piped: true}
}

func (r *reader) writeTo(s *scope, p place, rd *syntax.Redirect) {
	op := Overwrite
	switch rd.Op {
	case syntax.AppOut, syntax.AppClob, syntax.AppAll, syntax.AppAllClob:
		op = Append
	case syntax.RdrInOut:
		op = Change
	}
	for _, word := range r.words(s, p, rd.Word) {
		if !r.socket(word) {
			r.writeWord(s, p, word, op, "redirection", false)
		}
	}
}

// socket reports whether a redirection opens a connection.
func (r *reader) socket(w Word) bool {
	for _, prefix := range []string{"/dev/tcp/", "/dev/udp/"} {
		if rest, ok := strings.CutPrefix(w.Value, prefix); ok {
			host, _, _ := strings.Cut(rest, "/")
			r.contact(strings.TrimSuffix(prefix, "/"), host)
			return true
		}
	}
	return false
}

// writeWord records that the file a word names is written.
func (r *reader) writeWord(s *scope, p place, w Word, op Op, by string, aside bool) {
	if w.Text == "" {
		w.Text = w.Why
	}
	out := Write{Text: w.Text, Pattern: w.Pattern, Op: op, By: by, Aside: aside, Elsewhere: p.elsewhere, Mounts: p.mounts}
	if w.Known {
		out.Path = resolve(s.dir, w.Value)
		if w.Pattern != "" && !strings.HasPrefix(w.Pattern, "/") {
			out.Pattern = resolve(escapePattern(s.dir), w.Pattern)
		}
	}
	if w.Value == "" && w.Known {
		return
	}
	r.write(out)
	if !w.Known || strings.HasPrefix(w.Value, "/") {
		return
	}
	for _, dir := range s.other {
		out.Path = resolve(dir, w.Value)
		if w.Pattern != "" {
			out.Pattern = resolve(escapePattern(dir), w.Pattern)
		}
		r.write(out)
	}
}
