package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word expands a word to the alternatives it may stand for, each a list of fields.
func (r *reader) word(s *scope, p place, w *syntax.Word) [][]field {
	if w == nil {
		return nil
	}
	if f, ok := plainWord(p.dialect, w); ok {
		return [][]field{{f}}
	}
	expanded, ok := r.braces(p, w)
	if !ok {
		return [][]field{{{open: "its braces expand to too many words", from: fromBraces}}}
	}
	out := [][]field{nil}
	for _, parts := range expanded {
		out = cross(out, r.parts(s, p, parts))
	}
	if len(expanded) > 1 {
		for _, list := range out {
			for i := range list {
				list[i].from |= fromBraces
			}
		}
	}
	return out
}

// cross appends each alternative of b to each of a.
func cross(a, b [][]field) [][]field {
	if len(b) == 1 {
		for i := range a {
			a[i] = append(a[i][:len(a[i]):len(a[i])], b[0]...)
		}
		return a
	}
	var out [][]field
	for _, x := range a {
		for _, y := range b {
			if len(out) == maxAlternatives {
				return append(out, []field{{open: "it has many possible values"}})
			}
			out = append(out, append(x[:len(x):len(x)], y...))
		}
	}
	return out
}

// plainWord is the common case: one literal without anything to expand.
func plainWord(d Dialect, w *syntax.Word) (field, bool) {
	if len(w.Parts) != 1 {
		return field{}, false
	}
	lit, ok := w.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\*?[]{}~()<>^#|") || strings.HasPrefix(lit.Value, "=") {
		return field{}, false
	}
	return field{lit: lit.Value, pat: lit.Value, kept: true}, true
}

// words expands a word to every word it may give, with the text it came from.
func (r *reader) words(s *scope, p place, w *syntax.Word) []Word {
	var out []Word
	for _, list := range r.word(s, p, w) {
		for _, f := range list {
			out = append(out, f.word(p.text(w)))
		}
	}
	return out
}

// word is the exported form of a field.
func (f field) word(text string) Word {
	w := Word{Text: text, Value: f.lit, Known: f.open == "", Why: f.open}
	if f.glob {
		w.Pattern = f.pat
	}
	return w
}

// field is the internal form of a word.
func (w Word) field() field {
	f := field{lit: w.Value, pat: escapePattern(w.Value), open: w.Why, kept: true}
	if w.Pattern != "" {
		f.pat, f.glob = w.Pattern, true
	}
	if !w.Known && f.open == "" {
		f.open = "it is not known"
	}
	return f
}

// parts expands the parts of a word without brace expansions.
func (r *reader) parts(s *scope, p place, parts []syntax.WordPart) [][]field {
	b := newBuilder()
	if rest, ok := r.tilde(s, p, b, parts); ok {
		parts = rest
	}
	r.sequence(s, p, b, parts, false)
	out := b.finish()
	for _, list := range out {
		for _, f := range list {
			r.spend(len(f.lit))
			if len(f.lit) > maxValue {
				return [][]field{{{open: "its value is too long"}}}
			}
		}
	}
	return out
}

func (r *reader) sequence(s *scope, p place, b *builder, parts []syntax.WordPart, quoted bool) {
	for i, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok && i > 0 && p.dialect == Zsh && isModifier(parts[i-1], lit.Value) {
			b.open("zsh changes the value by "+lit.Value, fromVariable)
			continue
		}
		last := i == len(parts)-1
		if lit, ok := part.(*syntax.Lit); ok && p.dialect == Zsh && !quoted && strings.HasPrefix(lit.Value, "(") {
			r.group(s, p, b, lit.Value, last && i > 0)
			continue
		}
		r.part(s, p, b, part, quoted)
	}
}

// isModifier reports whether zsh takes the text after a variable as a modifier, as
// in $file:h.
func isModifier(before syntax.WordPart, text string) bool {
	pe, ok := before.(*syntax.ParamExp)
	if !ok || !pe.Short || len(text) < 2 || text[0] != ':' {
		return false
	}
	c := text[1]
	return c == '&' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// part expands one part of a word.
func (r *reader) part(s *scope, p place, b *builder, part syntax.WordPart, quoted bool) {
	if r.spent {
		b.open("there is too much to follow", 0)
		return
	}
	switch x := part.(type) {
	case *syntax.Lit:
		if quoted {
			text := unescapeIn(x.Value, "$`\"\\")
			b.text(text, escapePattern(text), false, true)
			return
		}
		lit, pat, glob := unquoted(x.Value)
		b.text(lit, pat, glob, false)
	case *syntax.SglQuoted:
		text := x.Value
		if x.Dollar {
			text = ansiC(text)
		}
		b.text(text, escapePattern(text), false, true)
	case *syntax.DblQuoted:
		if pe, ok := onlyElements(x.Parts); ok {
			r.putParam(s, p, b, pe, true)
			return
		}
		b.text("", "", false, true)
		r.sequence(s, p, b, x.Parts, true)
	case *syntax.ParamExp:
		r.putParam(s, p, b, x, quoted)
	case *syntax.CmdSubst:
		r.putOutput(s, p, b, x, quoted)
	case *syntax.ArithmExp:
		b.value(r.arithm(s, p, x.X), quoted, fromVariable)
	case *syntax.ProcSubst:
		r.procSubst(s, p, b, x)
	case *syntax.ExtGlob:
		alts := value{}
		for _, one := range strings.Split(x.Pattern.Value, "|") {
			alts.alts = append(alts.alts, []field{{lit: one, pat: one, glob: true}})
		}
		if x.Op == syntax.GlobExcept || x.Op == syntax.GlobZeroOrMore {
			alts = value{alts: [][]field{{{lit: "*", pat: "*", glob: true}}}}
		}
		b.value(alts, quoted, 0)
	default:
		b.open("a form that is not followed", fromVariable)
	}
}

// onlyElements reports whether "$@" or its like is all that stands in quotes: when
// it has no elements, no word is left.
func onlyElements(parts []syntax.WordPart) (*syntax.ParamExp, bool) {
	if len(parts) != 1 {
		return nil, false
	}
	pe, ok := parts[0].(*syntax.ParamExp)
	return pe, ok && keepsElements(pe)
}

// unquoted removes the backslashes of an unquoted literal.
func unquoted(text string) (lit, pat string, glob bool) {
	if !strings.ContainsAny(text, patternSpecial) {
		return text, text, false
	}
	var l, q strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '\\' && i+1 < len(text) {
			i++
			if text[i] == '\n' {
				continue
			}
			l.WriteByte(text[i])
			q.WriteString(escapePattern(text[i : i+1]))
			continue
		}
		l.WriteByte(c)
		if hasPattern(text[i:i+1]) || c == ']' {
			q.WriteByte(c)
			glob = glob || c != ']' && (c != '[' || strings.Contains(text[i:], "]"))
			continue
		}
		q.WriteString(escapePattern(text[i : i+1]))
	}
	return l.String(), q.String(), glob
}

// unescapeIn removes backslashes before the given characters and line ends.
func unescapeIn(text, special string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			if text[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(special, text[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// tilde expands a ~ at the start of a word.
func (r *reader) tilde(s *scope, p place, b *builder, parts []syntax.WordPart) ([]syntax.WordPart, bool) {
	if len(parts) == 0 {
		return nil, false
	}
	lit, ok := parts[0].(*syntax.Lit)
	if !ok || lit.Value == "" {
		return nil, false
	}
	if p.dialect == Zsh && len(lit.Value) > 1 && lit.Value[0] == '=' && lit.Value[1] != '=' && lit.Value[1] != '(' {
		r.opaque(lit.Value, "=name stands for the path of a program")
		b.open("=name stands for the path of a program", fromVariable)
		b.text(lit.Value[1:], escapePattern(lit.Value[1:]), false, false)
		return parts[1:], true
	}
	if lit.Value[0] != '~' {
		return nil, false
	}
	name, rest, slash := strings.Cut(lit.Value[1:], "/")
	if !slash && len(parts) > 1 || strings.ContainsAny(name, `\*?[`) {
		return nil, false
	}
	b.value(r.home(s, p, name), true, 0)
	if slash {
		l, pat, glob := unquoted("/" + rest)
		b.text(l, pat, glob, false)
	}
	return parts[1:], true
}

// home is what ~name stands for.
func (r *reader) home(s *scope, p place, name string) value {
	switch name {
	case "":
		return r.lookup(s, p, "HOME")
	case "+":
		return r.lookup(s, p, "PWD")
	case "-":
		return r.lookup(s, p, "OLDPWD")
	}
	if r.o.UserHome != nil {
		if dir, ok := r.o.UserHome(name); ok {
			return scalar(dir)
		}
	}
	return unknown("the home directory of " + name)
}

// putOutput appends what a command substitution prints.
func (r *reader) putOutput(s *scope, p place, b *builder, x *syntax.CmdSubst, quoted bool) {
	if len(x.Stmts) == 1 && x.Stmts[0].Cmd == nil && len(x.Stmts[0].Redirs) == 1 && x.Stmts[0].Redirs[0].Op == syntax.RdrIn {
		r.readFrom(s, p, x.Stmts[0].Redirs[0].Word)
		b.open("what the file holds", fromSubstitution)
		return
	}
	inner := p.deeper()
	inner.stdin = output{}
	out := r.stmts(s.child(), inner, x.Stmts)
	v := unknown("what " + brief(p.text(x)) + " prints")
	switch {
	case out.known:
		text := strings.TrimRight(out.text, "\n")
		v = scalar(text)
		if !quoted {
			v = value{alts: [][]field{splitFields(text, r.separators(s, p))}}
		}
	case len(out.names) > 0:
		v.alts = [][]field{out.names}
	}
	if quoted && x.Backquotes {
		r.note("backquotes inside quotes run a command: " + brief(p.text(x)))
	}
	if out.network != "" {
		v.open = "what " + out.network + " downloads"
	}
	b.value(v, quoted, fromSubstitution)
}

func (r *reader) procSubst(s *scope, p place, b *builder, x *syntax.ProcSubst) {
	inner := p.deeper()
	inner.stdin, inner.async = output{}, true
	if x.Op == syntax.CmdOut {
		inner.stdin = output{piped: true}
	}
	out := r.stmts(s.child(), inner, x.Stmts)
	why := "a file made of what " + brief(p.text(x)) + " prints"
	if out.network != "" {
		why = "a file made of what " + out.network + " downloads"
	}
	f := field{open: why}
	if out.known && x.Op != syntax.CmdOut {
		f.file = &out.text
	}
	b.value(value{alts: [][]field{{f}}}, false, fromSubstitution)
}

// splitFields splits a value into words, which are patterns where they look so.
func splitFields(text, separators string) []field {
	var out []field
	for _, part := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(separators, c) }) {
		out = append(out, patternField(part))
	}
	return out
}

func patternField(text string) field {
	f := literal(text)
	if hasPattern(text) {
		f.pat, f.glob = text, true
	}
	return f
}

func (r *reader) separators(s *scope, p place) string {
	if v, ok := s.find("IFS"); ok {
		if text, known := v.constant(); known {
			return text
		}
	}
	return " \t\n"
}

// document reads the substitutions in text that the shell expands once more.
func (r *reader) document(s *scope, p place, text string) {
	if !strings.ContainsAny(text, "$`") || !r.enter(p, text) {
		return
	}
	r.bytes += len(text)
	if r.bytes > r.o.MaxBytes || nesting(text) > maxNesting {
		r.opaque(text, "it is too long to read")
		return
	}
	w, err := documentWord(p.dialect, text)
	if err != nil || w == nil {
		r.opaque(text, "text that the shell expands once more")
		return
	}
	p.src = text
	for _, part := range w.Parts {
		r.part(s, p.deeper(), newBuilder(), part, true)
	}
}

func documentWord(d Dialect, text string) (w *syntax.Word, err error) {
	defer parserFailed(&err)
	return parser(d).Document(strings.NewReader(text))
}

// brief shortens a text for a sentence.
func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if cut := []rune(text); len(cut) > 60 {
		return string(cut[:60]) + "…"
	}
	return text
}
