package shellread

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// putParam appends the value of a parameter expansion.
func (r *reader) putParam(s *scope, p place, b *builder, pe *syntax.ParamExp, quoted bool) {
	v := r.param(s, p, pe)
	if quoted {
		if !keepsElements(pe) {
			v = v.joined(" ")
		}
		b.value(v, true, fromVariable)
		return
	}
	split := p.dialect != Zsh || s.split || pe.Split == syntax.OptOn
	globs := p.dialect != Zsh || s.globs || pe.GlobSubst == syntax.OptOn
	b.value(r.unquotedValue(s, p, v, split, globs), false, fromVariable)
}

// keepsElements reports whether "…" around the expansion keeps its elements apart.
func keepsElements(pe *syntax.ParamExp) bool {
	if pe.Param != nil && pe.Param.Value == "@" {
		return true
	}
	if w, ok := pe.Index.(*syntax.Word); ok && w.Lit() == "@" {
		return true
	}
	return pe.Flags != nil && strings.Contains(pe.Flags.Value, "@")
}

// unquotedValue splits values and makes patterns of them as the shell would.
func (r *reader) unquotedValue(s *scope, p place, v value, split, globs bool) value {
	out := value{open: v.open, num: v.num}
	separators := r.separators(s, p)
	for _, list := range v.alts {
		var next []field
		for _, f := range list {
			switch {
			case f.lit == "" && f.open == "":
			case f.open != "" || f.glob:
				next = append(next, f)
			case globs && p.dialect == Zsh && strings.Contains(f.lit, "("):
				r.opaque(f.lit, "zsh may run code in a pattern that a variable holds")
				next = append(next, field{lit: f.lit, open: "a pattern that a variable holds"})
			case split && globs:
				next = append(next, splitFields(f.lit, separators)...)
			case split:
				for _, part := range splitFields(f.lit, separators) {
					next = append(next, literal(part.lit))
				}
			case globs:
				next = append(next, patternField(f.lit))
			default:
				next = append(next, f)
			}
		}
		out.alts = append(out.alts, next)
	}
	return out
}

// param evaluates a parameter expansion.
func (r *reader) param(s *scope, p place, pe *syntax.ParamExp) value {
	v := r.paramBase(s, p, pe)
	if pe.Flags != nil {
		v = r.flags(s, p, pe, v)
	}
	switch {
	case pe.Length, pe.IsSet, pe.Width:
		return number()
	case pe.Names != 0:
		return unknown("the names of variables")
	case pe.Excl:
		if name, ok := v.constant(); ok && syntax.ValidName(name) {
			return r.lookup(s, p, name)
		} else if ok {
			r.evaluated(s, p, name)
		}
		return unknown("a variable named by another")
	case len(pe.Modifiers) > 0:
		for _, m := range pe.Modifiers {
			r.document(s, p, m.Value)
		}
		return unknown("a value that modifiers change")
	case pe.Slice != nil:
		return r.slice(s, p, pe.Slice, v)
	case pe.Repl != nil:
		return r.replace(s, p, pe.Repl, v)
	case pe.Exp != nil:
		return r.expansion(s, p, pe, v)
	}
	return v
}

// paramBase is the value before operators.
func (r *reader) paramBase(s *scope, p place, pe *syntax.ParamExp) value {
	if pe.NestedParam != nil {
		b := newBuilder()
		r.part(s, p.deeper(), b, pe.NestedParam, false)
		return value{alts: b.finish()}
	}
	if pe.Param == nil {
		return unset()
	}
	name := pe.Param.Value
	v := r.lookup(s, p, name)
	if pe.Index != nil {
		return r.element(s, p, pe.Index, v)
	}
	if v.array && p.dialect != Zsh && name != "@" && name != "*" {
		return v.pick(0)
	}
	return v
}

// pick is one element of an array; the last ones count as unset.
func (v value) pick(i int) value {
	out := value{open: v.open}
	for _, list := range v.alts {
		if i >= 0 && i < len(list) {
			out.alts = append(out.alts, []field{list[i]})
		} else {
			out.alts = append(out.alts, nil)
		}
	}
	return out
}

func (r *reader) element(s *scope, p place, index syntax.ArithmExpr, v value) value {
	r.arithm(s, p, index)
	w, ok := index.(*syntax.Word)
	if !ok {
		return unknown("a part of a variable")
	}
	text := w.Lit()
	if text == "@" || text == "*" {
		return v
	}
	i, err := strconv.Atoi(text)
	if err != nil || !v.array {
		if !v.array && p.dialect != Zsh && err == nil && i == 0 {
			return v
		}
		return v.each().or(unknown("a part of a variable"))
	}
	if p.dialect == Zsh {
		i--
	}
	return v.pick(i)
}

// flags applies zsh's ${(flags)name}.
func (r *reader) flags(s *scope, p place, pe *syntax.ParamExp, v value) value {
	flags := pe.Flags.Value
	if strings.Contains(flags, "e") {
		r.opaque(p.text(pe), "the (e) flag expands the value once more")
		if pe.Exp != nil && pe.Exp.Word != nil {
			v = v.or(r.assignValue(s, p, pe.Exp.Word))
		}
		for _, list := range v.alts {
			for _, f := range list {
				r.document(s, p, f.lit)
			}
		}
		return unknown("a value that is expanded once more")
	}
	switch {
	case strings.Contains(flags, "P"):
		if name, ok := v.constant(); ok && syntax.ValidName(name) {
			return r.lookup(s, p, name)
		} else if ok {
			r.evaluated(s, p, name)
		}
		return unknown("a variable named by another")
	case strings.Trim(flags, "@") == "":
		return v
	case flags == "U":
		return v.mapped(strings.ToUpper)
	case flags == "L":
		return v.mapped(strings.ToLower)
	}
	if strings.Contains(flags, "%") {
		r.note("${(%)…} expands prompt escapes in a value")
	}
	return unknown("a value that flags change")
}

// mapped applies f to each known element.
func (v value) mapped(f func(string) string) value {
	out := value{open: v.open, num: v.num, array: v.array}
	for _, list := range v.alts {
		var next []field
		for _, e := range list {
			if e.open == "" {
				from := e.from
				e = literal(f(e.lit))
				e.from = from
			}
			next = append(next, e)
		}
		out.alts = append(out.alts, next)
	}
	return out
}

func (r *reader) slice(s *scope, p place, sl *syntax.Slice, v value) value {
	r.arithm(s, p, sl.Offset)
	r.arithm(s, p, sl.Length)
	from, ok := constantNumber(sl.Offset)
	length, bounded := -1, false
	if sl.Length != nil {
		length, bounded = constantNumber(sl.Length)
		ok = ok && bounded
	}
	if !ok || v.array {
		return unknown("a part of a variable")
	}
	return v.mapped(func(text string) string {
		start, end := from, len(text)
		if start < 0 {
			start = max(len(text)+start, 0)
		}
		start = min(start, len(text))
		if bounded {
			if length < 0 {
				end = max(len(text)+length, start)
			} else {
				end = min(start+length, len(text))
			}
		}
		return text[start:end]
	})
}

func constantNumber(x syntax.ArithmExpr) (int, bool) {
	switch x := x.(type) {
	case *syntax.Word:
		n, err := strconv.Atoi(x.Lit())
		return n, err == nil
	case *syntax.UnaryArithm:
		if n, ok := constantNumber(x.X); ok && x.Op == syntax.Minus {
			return -n, true
		}
	case *syntax.ParenArithm:
		return constantNumber(x.X)
	}
	return 0, false
}

func (r *reader) replace(s *scope, p place, rep *syntax.Replace, v value) value {
	from := r.assignValue(s, p, rep.Orig)
	with := r.assignValue(s, p, rep.With)
	old, ok := from.constant()
	text, known := with.constant()
	if !ok || !known || old == "" || strings.ContainsAny(old, "*?[\\#%") {
		return unknown("a value that is changed by replacing")
	}
	times := 1
	if rep.All {
		times = -1
	}
	return v.mapped(func(s string) string { return strings.Replace(s, old, text, times) })
}

// expansion applies the operators that follow a name.
func (r *reader) expansion(s *scope, p place, pe *syntax.ParamExp, v value) value {
	var word value
	if pe.Exp.Word != nil {
		word = r.assignValue(s, p, pe.Exp.Word)
	} else {
		word = scalar("")
	}
	switch pe.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		return v.withDefault(word)
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		v = v.withDefault(word)
		if pe.Param != nil {
			s.set(pe.Param.Value, v, value{})
		}
		return v
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull:
		return v.alternate(word)
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return v.required()
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		return v.trimmed(pe.Exp.Op, word)
	case syntax.UpperAll:
		return v.mapped(strings.ToUpper)
	case syntax.LowerAll:
		return v.mapped(strings.ToLower)
	}
	if pe.Exp.Op == syntax.OtherParamOps {
		if text, _ := word.constant(); text == "P" {
			r.note("${name@P} expands prompt escapes in a value")
			for _, list := range v.alts {
				for _, f := range list {
					r.document(s, p, f.lit)
				}
			}
		}
	}
	return unknown("a value that an operator changes")
}

// withDefault is ${name:-word}.
func (v value) withDefault(word value) value {
	out := value{open: v.open, num: v.num, array: v.array}
	missing := v.open != ""
	for _, list := range v.alts {
		if emptyFields(list) {
			missing = true
			continue
		}
		out.alts = append(out.alts, list)
	}
	if missing {
		return out.or(word)
	}
	return out
}

// alternate is ${name:+word}.
func (v value) alternate(word value) value {
	some, none := v.open != "", v.open != ""
	for _, list := range v.alts {
		if emptyFields(list) {
			none = true
		} else {
			some = true
		}
	}
	switch {
	case some && none:
		return word.or(unset())
	case some:
		return word
	}
	return unset()
}

// required is ${name:?word}: it ends the command instead of being empty.
func (v value) required() value {
	out := value{open: v.open, num: v.num, array: v.array}
	for _, list := range v.alts {
		if !emptyFields(list) {
			out.alts = append(out.alts, list)
		}
	}
	if len(out.alts) == 0 && out.open == "" {
		out.open = "nothing: an unset variable ends the command"
	}
	return out
}

// trimmed removes a prefix or suffix that matches a pattern.
func (v value) trimmed(op syntax.ParExpOperator, word value) value {
	pattern, ok := word.constant()
	if !ok || len(pattern) > 64 || strings.Count(pattern, "*") > 2 {
		return unknown("a value that is cut")
	}
	for _, list := range v.alts {
		for _, f := range list {
			if len(f.lit) > 1024 {
				return unknown("a value that is cut")
			}
		}
	}
	return v.mapped(func(text string) string {
		best := -1
		for i := 0; i <= len(text); i++ {
			cut, size := text[:i], i
			if op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix {
				cut, size = text[i:], len(text)-i
			}
			if !matches(pattern, cut) {
				continue
			}
			large := op == syntax.RemLargePrefix || op == syntax.RemLargeSuffix
			if best < 0 || large && size > best || !large && size < best {
				best = size
			}
		}
		switch {
		case best < 0:
			return text
		case op == syntax.RemSmallSuffix || op == syntax.RemLargeSuffix:
			return text[:len(text)-best]
		}
		return text[best:]
	})
}

// params is the value of $@.
func (r *reader) params(s *scope) value {
	return value{alts: [][]field{s.args}, open: s.moreArgs, array: true}
}

// lookup is the value of a variable.
func (r *reader) lookup(s *scope, p place, name string) value {
	if n, err := strconv.Atoi(name); err == nil {
		if n == 0 {
			return value{alts: [][]field{{s.arg0}}}
		}
		return r.strictly(s, r.params(s).pick(n-1))
	}
	switch name {
	case "@", "*", "argv":
		return r.params(s)
	case "?", "$", "!", "#", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "GID", "EGID", "PPID", "ARGC", "status", "OPTIND", "SHLVL", "BASHPID", "COLUMNS", "LINES", "EPOCHSECONDS":
		return number()
	}
	if v, ok := s.find(name); ok {
		return r.strictly(s, v)
	}
	switch name {
	case "PWD":
		if s.dir != "" {
			return scalar(s.dir)
		}
		return unknown("the current directory")
	case "OLDPWD":
		if s.prevDir != "" {
			return scalar(s.prevDir)
		}
	case "IFS":
		return scalar(" \t\n")
	}
	return r.strictly(s, r.environment(s, p, name))
}

// environment is the value of a variable that nothing read so far has set.
func (r *reader) environment(s *scope, p place, name string) value {
	if r.o.Env == nil || p.elsewhere != "" && name != "HOME" {
		return unknown("the variable " + name)
	}
	text, set := r.o.Env(name)
	v := unset()
	if set {
		f := literal(text)
		if name != "HOME" {
			f.from = fromEnvironment
		}
		v = value{alts: [][]field{{f}}}
	} else if shellSets(name) {
		return unknown("the variable " + name)
	}
	if s.dirty || r.assigned[name] {
		if !set {
			return unknown("the variable " + name)
		}
		return v.or(unknown("the variable " + name))
	}
	return v
}

// strictly makes an unset variable end the command under set -u.
func (r *reader) strictly(s *scope, v value) value {
	if s.strict && v.open == "" && len(v.alts) == 1 && len(v.alts[0]) == 0 && !v.array {
		return unknown("nothing: an unset variable ends the command")
	}
	return v
}

// shellSets reports whether a shell gives the variable a value by itself.
func shellSets(name string) bool {
	switch name {
	case "_", "-", "HOST", "HOSTNAME", "USER", "USERNAME", "LOGNAME", "OSTYPE", "MACHTYPE", "HOSTTYPE", "VENDOR", "CPUTYPE",
		"PATH", "path", "fpath", "FPATH", "cdpath", "module_path", "manpath", "SHELL", "SHELLOPTS", "TERM", "REPLY", "reply", "MATCH", "match",
		"pipestatus", "PIPESTATUS", "FUNCNAME", "DIRSTACK", "GROUPS", "TMPPREFIX", "TTY", "NULLCMD", "READNULLCMD", "WORDCHARS",
		"PS1", "PS2", "PS3", "PS4", "PROMPT", "PROMPT2", "PROMPT3", "PROMPT4", "prompt", "OPTARG", "HISTCHARS", "histchars", "KEYBOARD_HACK",
		"functions", "aliases", "galiases", "saliases", "commands", "builtins", "options", "parameters", "history", "jobstates", "dirstack", "funcstack", "nameddirs", "userdirs", "signals", "EPOCHREALTIME", "COPROC", "MAPFILE", "mapfile":
		return true
	}
	return strings.HasPrefix(name, "ZSH_") || strings.HasPrefix(name, "BASH")
}
