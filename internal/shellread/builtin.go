package shellread

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

type handler func(*reader, *scope, place, call) output

// builtin returns how a shell builtin is followed, or nil when it is not one that
// matters.
func builtin(name string) handler {
	switch name {
	case "cd", "chdir":
		return (*reader).cd
	case "pushd", "popd":
		return (*reader).pushd
	case "eval":
		return (*reader).eval
	case ".", "source":
		return (*reader).source
	case "exec":
		return (*reader).exec
	case "command", "builtin":
		return (*reader).commandWord
	case "noglob", "nocorrect", "-", "coproc", "repeat", "foreach":
		return (*reader).precommand
	case "trap":
		return (*reader).trap
	case "alias":
		return (*reader).aliasWord
	case "unalias", "unhash", "unfunction", "hash", "rehash", "zmodload", "autoload", "enable", "disable", "emulate", "setopt", "unsetopt", "shopt", "set", "bindkey", "zle", "sched", "complete", "compdef", "add-zsh-hook":
		return (*reader).options
	case "unset":
		return (*reader).unsetWord
	case "export", "declare", "typeset", "local", "readonly", "integer", "float":
		return (*reader).declareWord
	case "read", "mapfile", "readarray", "getopts", "vared", "sysread", "zparseopts":
		return (*reader).readWord
	case "test", "[":
		return (*reader).testWord
	case "let":
		return (*reader).letWord
	case "disown":
		return (*reader).disown
	case "shift":
		return (*reader).shift
	}
	return nil
}

// operands returns the words after the options.
func operands(words []field) []field {
	var out []field
	options := true
	for _, f := range words {
		if options && f.open == "" && strings.HasPrefix(f.lit, "-") && len(f.lit) > 1 {
			options = f.lit != "--"
			continue
		}
		out = append(out, f)
	}
	return out
}

// cd follows a change of directory.
func (r *reader) cd(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	before := s.ways
	r.changeDir(s, p, c)
	s.failed = &before
	return silent()
}

func (r *reader) changeDir(s *scope, p place, c call) {
	args := operands(c.words[1:])
	for _, f := range c.words[1:] {
		if f.lit == "-" || len(f.lit) > 1 && (f.lit[0] == '-' || f.lit[0] == '+') && strings.Trim(f.lit[1:], "0123456789") == "" {
			if f.lit == "-" {
				s.chdir(s.prevDir)
			} else {
				s.chdir("")
			}
			return
		}
	}
	switch {
	case len(args) == 0:
		home, ok := r.lookup(s, p, "HOME").constant()
		if !ok {
			home = ""
		}
		s.chdir(home)
	case len(args) > 1:
		s.chdir("")
	default:
		before := s.ways
		s.chdir(r.directory(s, p, args[0]))
		s.ways = before.to(s.dir, args[0])
	}
}

// directory is where a word leads, or "" when that is not known.
func (r *reader) directory(s *scope, p place, f field) string {
	if f.open != "" || f.glob {
		return ""
	}
	if f.lit == "" {
		return s.dir
	}
	relative := !strings.HasPrefix(f.lit, "/") && !strings.HasPrefix(f.lit, ".")
	if relative {
		if path, ok := r.lookup(s, p, "CDPATH").constant(); !ok && r.assigned["CDPATH"] || path != "" {
			return ""
		}
	}
	return resolve(s.dir, f.lit)
}

func (r *reader) pushd(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	args := operands(c.words[1:])
	before := s.ways
	s.failed = &before
	if c.words[0].lit == "popd" {
		dir := ""
		if n := len(s.stack); n > 0 && len(args) == 0 {
			dir, s.stack = s.stack[n-1], s.stack[:n-1]
		}
		s.chdir(dir)
		return output{}
	}
	s.stack = append(s.stack[:len(s.stack):len(s.stack)], s.dir)
	if len(args) != 1 || strings.HasPrefix(args[0].lit, "+") {
		s.chdir("")
	} else {
		s.chdir(r.directory(s, p, args[0]))
	}
	return output{}
}

// eval reads its arguments as program text.
func (r *reader) eval(s *scope, p place, c call) output {
	r.emitCall(s, p, c, func(cmd *Command) { cmd.Wrapper = true })
	words := c.words[1:]
	if len(words) > 0 && words[0].lit == "--" {
		words = words[1:]
	}
	r.note("eval runs text as commands")
	return r.nested(s, p.through("eval"), joinFields(words, " "), c.text)
}

// nested reads a word as program text.
func (r *reader) nested(s *scope, p place, f field, text string) output {
	if f.open != "" {
		s.dirty = true
		if strings.Contains(f.open, "downloads") {
			r.note("runs a downloaded script: " + brief(text))
		}
		r.opaque(text, "it runs "+f.open)
		if strings.TrimSpace(f.lit) == "" {
			return output{}
		}
	}
	return r.text(s, p, f.lit)
}

// holds is the text of a file that this command itself has made, as far as that is
// known.
func (r *reader) holds(s *scope, p place, f field) (string, bool) {
	if f.file != nil {
		return *f.file, true
	}
	if f.open != "" || f.glob {
		return "", false
	}
	if f.lit == "/dev/stdin" || f.lit == "-" {
		return p.stdin.text, p.stdin.known && p.stdin.piped
	}
	text, ok := r.made[resolve(s.dir, f.lit)]
	return text, ok && p.elsewhere == ""
}

// makes remembers what is written to a file, so that running it can be followed.
func (r *reader) makes(s *scope, p place, files []Write, out output) {
	if !out.known || p.elsewhere != "" || len(r.made) > 64 {
		return
	}
	for _, w := range files {
		if w.Path == "" || w.Pattern != "" {
			continue
		}
		text := out.text
		if w.Op == Append {
			text = r.made[w.Path] + text
		}
		r.spend(len(text))
		r.made[w.Path] = text
	}
}

func (r *reader) source(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	args := operands(c.words[1:])
	s.dirty = true
	if len(args) == 0 {
		return output{}
	}
	why := "it runs what that file holds"
	if strings.Contains(args[0].open, "downloads") {
		r.note("runs a downloaded script: " + brief(c.text))
	}
	if text, ok := r.holds(s, p, args[0]); ok {
		return r.text(s, p.through("source"), text)
	}
	r.opaque(c.text, why)
	return output{}
}

// exec replaces the shell; without a command only its redirections count.
func (r *reader) exec(s *scope, p place, c call) output {
	n := parseOptions(c.words[1:], "a").n + 1
	if n >= len(c.words) {
		r.emitCall(s, p, c, nil)
		return silent()
	}
	inner := c.rest(n)
	inner.plain = true
	return r.run(s, p.through("exec"), inner)
}

// commandWord reads command and builtin, which skip functions and aliases.
func (r *reader) commandWord(s *scope, p place, c call) output {
	n := 1
	for ; n < len(c.words) && strings.HasPrefix(c.words[n].lit, "-"); n++ {
		if strings.ContainsAny(c.words[n].lit, "vV") {
			r.emitCall(s, p, c, nil)
			return located(c.words[n+1:])
		}
	}
	if n >= len(c.words) {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	inner := c.rest(n)
	inner.plain = true
	return r.run(s, p.through(c.words[0].lit), inner)
}

// precommand reads words that stand before a command in zsh.
func (r *reader) precommand(s *scope, p place, c call) output {
	name, n := c.words[0].lit, 1
	switch name {
	case "coproc":
		p.async = true
	case "repeat":
		n = 2
		if len(c.words) > 1 {
			r.evaluated(s, p, c.words[1].lit)
		}
		if n < len(c.words) && c.words[n].lit == "{" {
			n++
		}
	case "foreach":
		r.opaque(c.text, "a loop in a form that is not followed")
		n = 3
		if len(c.words) > 2 {
			s.set(c.words[1].lit, value{alts: [][]field{{c.words[2]}}, open: "a loop variable"}, value{})
		}
	}
	if n >= len(c.words) {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	mark := len(r.out.Commands)
	out := r.run(s, p.through(name), c.rest(n))
	if name == "coproc" {
		r.background(mark, c.text, false)
		return output{}
	}
	return out
}

// trap reads the commands that run on a signal or at the end.
func (r *reader) trap(s *scope, p place, c call) output {
	r.emitCall(s, p, c, func(cmd *Command) { cmd.Wrapper = true })
	args := operands(c.words[1:])
	if len(args) < 2 || args[0].lit == "" && args[0].open == "" {
		return silent()
	}
	inner := s.child()
	inner.cond++
	r.nested(inner, p.through("trap"), args[0], c.text)
	return silent()
}

func (r *reader) aliasWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	for _, f := range c.words[1:] {
		if strings.HasPrefix(f.lit, "-") || strings.HasPrefix(f.lit, "+") {
			if strings.ContainsAny(f.lit, "gs") {
				r.opaque(c.text, "it changes what later words mean")
			}
			continue
		}
		name, text, ok := strings.Cut(f.lit, "=")
		switch {
		case !ok:
		case f.open != "":
			r.opaque(c.text, "it changes what later words mean")
		default:
			s.setAlias(name, text)
		}
	}
	return output{}
}

// options reads builtins that change how later text is understood.
func (r *reader) options(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	name := c.words[0].lit
	all := strings.ToLower(joinFields(c.words[1:], " ").lit)
	squeezed := strings.NewReplacer("_", "", " ", "").Replace(all)
	switch name {
	case "set":
		r.setWord(s, c, all)
	case "setopt", "unsetopt", "emulate":
		r.note(name + " changes how the rest is understood")
		s.split = s.split || strings.Contains(squeezed, "shwordsplit") || name == "emulate"
		s.globs = s.globs || strings.Contains(squeezed, "globsubst") || name == "emulate"
		if strings.Contains(squeezed, "promptsubst") {
			r.opaque(c.text, "prompt escapes may run commands")
		}
	case "hash":
		if strings.Contains(all, "=") || strings.Contains(all, "-p") {
			r.opaque(c.text, "it changes which program a name starts")
		}
	case "zmodload", "autoload", "enable", "sched", "zle", "bindkey", "add-zsh-hook":
		if len(c.words) > 1 {
			r.opaque(c.text, "it loads or defines commands that cannot be read")
		}
	}
	return output{}
}

// setWord reads set: options and positional parameters.
func (r *reader) setWord(s *scope, c call, all string) {
	words := c.words[1:]
	for i, f := range words {
		if f.lit == "--" {
			r.setArgs(s, words[i+1:])
			return
		}
		if f.lit == "-A" {
			s.dirty = true
			return
		}
		switch {
		case len(f.lit) > 1 && f.lit[0] == '-':
			s.strict = s.strict || strings.Contains(f.lit, "u")
			s.stops = s.stops || strings.Contains(f.lit, "e")
			s.split = s.split || strings.Contains(f.lit, "y")
		case len(f.lit) > 1 && f.lit[0] == '+':
			s.strict = s.strict && !strings.Contains(f.lit, "u")
			s.stops = s.stops && !strings.Contains(f.lit, "e")
		case i > 0 && (words[i-1].lit == "-o" || strings.HasSuffix(words[i-1].lit, "o") && strings.HasPrefix(words[i-1].lit, "-")):
			s.strict = s.strict || strings.Contains(all, "nounset")
			s.stops = s.stops || strings.Contains(all, "errexit")
		default:
			r.setArgs(s, words[i:])
			return
		}
	}
}

func (r *reader) setArgs(s *scope, words []field) {
	if s.cond > 0 {
		s.moreArgs = "the arguments that set gives"
	}
	s.args = append([]field(nil), words...)
	for _, f := range words {
		if f.open != "" {
			s.moreArgs = "the arguments that set gives"
		}
	}
}

func (r *reader) shift(s *scope, p place, c call) output {
	n := 1
	if len(c.words) > 1 {
		var err error
		r.evaluated(s, p, c.words[1].lit)
		if n, err = strconv.Atoi(c.words[1].lit); err != nil || n < 0 {
			s.args, s.moreArgs = nil, "the arguments after shift"
			return silent()
		}
	}
	if s.cond > 0 {
		s.moreArgs = "the arguments after shift"
		return silent()
	}
	s.args = s.args[min(n, len(s.args)):]
	return silent()
}

func (r *reader) unsetWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	for _, f := range operands(c.words[1:]) {
		r.evaluated(s, p, f.lit)
		if syntax.ValidName(f.lit) {
			before := value{}
			if s.cond > 0 {
				before = r.lookup(s, p, f.lit)
			}
			s.set(f.lit, unset(), before)
		}
	}
	return silent()
}

// declareWord reads export and its kin where the name is not a plain word.
func (r *reader) declareWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	export := c.words[0].lit == "export"
	s.integers = s.integers || c.words[0].lit == "integer" || c.words[0].lit == "float"
	for i, f := range c.words[1:] {
		if strings.HasPrefix(f.lit, "-") {
			export = export || strings.Contains(f.lit, "x")
			s.integers = s.integers || strings.ContainsAny(f.lit, "iEF")
			continue
		}
		r.bindText(s, p, f.word(c.textOf(i+1)), export)
	}
	return silent()
}

func (c call) textOf(i int) string {
	if len(c.texts) == len(c.words) {
		return c.texts[i]
	}
	return c.words[i].lit
}

// readWord assigns what is read from the input.
func (r *reader) readWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	v := value{open: "what is read from the input"}
	for _, f := range p.stdin.names {
		v = v.or(value{alts: [][]field{{f}}})
	}
	if p.stdin.known && p.stdin.piped {
		text := strings.TrimRight(p.stdin.text, "\n")
		v = scalar(text)
		if strings.ContainsAny(text, " \t\n") {
			v = v.or(unknown("what is read from the input"))
		}
	}
	for _, f := range operands(c.words[1:]) {
		r.evaluated(s, p, f.lit)
		name, _, _ := strings.Cut(f.lit, "?")
		if syntax.ValidName(name) {
			r.assigned[name] = true
			s.set(name, v, value{})
		}
	}
	for i, f := range c.words {
		if f.lit == "-C" && i+1 < len(c.words) {
			r.nested(s, p.through(c.words[0].lit), c.words[i+1], c.text)
		}
	}
	s.set("REPLY", v, value{})
	return silent()
}

// testWord reads test and [: -v evaluates a subscript.
func (r *reader) testWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	for i, f := range c.words {
		if i > 0 && (c.words[i-1].lit == "-v" || c.words[i-1].lit == "-R") {
			r.evaluated(s, p, f.lit)
		}
		if len(f.lit) == 3 && f.lit[0] == '-' && strings.Contains("-eq-ne-lt-le-gt-ge", f.lit) && p.dialect == Zsh {
			for _, side := range []int{i - 1, i + 1} {
				if side > 0 && side < len(c.words) {
					r.evaluated(s, p, c.words[side].lit)
				}
			}
		}
	}
	return silent()
}

func (r *reader) letWord(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	for _, f := range c.words[1:] {
		r.evaluated(s, p, f.lit)
		if name, _, ok := strings.Cut(f.lit, "="); ok {
			name = strings.TrimRight(name, "+-*/%&|^ ")
			if syntax.ValidName(name) {
				r.assigned[name] = true
				s.set(name, number(), number())
			}
		}
	}
	return silent()
}

func (r *reader) disown(s *scope, p place, c call) output {
	r.emitCall(s, p, c, nil)
	r.out.Detached = append(r.out.Detached, r.out.Background...)
	return silent()
}
