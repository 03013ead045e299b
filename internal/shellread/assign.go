package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// collect remembers every name that a statement might assign, wherever in it.
func (r *reader) collect(st *syntax.Stmt) {
	syntax.Walk(st, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				r.assigned[n.Name.Value] = true
			}
		case *syntax.WordIter:
			r.assigned[n.Name.Value] = true
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				r.assigned[n.Param.Value] = true
			}
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && isAssignOp(n.Op) {
				r.assigned[w.Lit()] = true
			}
		case *syntax.Redirect:
			if n.N != nil {
				r.assigned[strings.Trim(n.N.Value, "{}")] = true
			}
		case *syntax.CallExpr:
			r.collectCall(n)
		}
		return true
	})
}

// collectCall covers the builtins that assign the variables they are given.
func (r *reader) collectCall(c *syntax.CallExpr) {
	if len(c.Args) == 0 {
		return
	}
	switch c.Args[0].Lit() {
	case "read", "mapfile", "readarray", "getopts", "printf", "print", "vared", "zparseopts", "typeset", "declare", "local", "export", "readonly", "integer", "float", "let", "zstat", "strftime", "sysread", "set", "builtin", "command", "env", "wait", "coproc":
	default:
		return
	}
	for _, w := range c.Args[1:] {
		name, _, _ := strings.Cut(w.Lit(), "=")
		if syntax.ValidName(name) {
			r.assigned[name] = true
		}
	}
}

// assignValue is the value of a word that is not split: the right side of an
// assignment.
func (r *reader) assignValue(s *scope, p place, w *syntax.Word) value {
	if w == nil {
		return scalar("")
	}
	out := value{}
	for _, list := range r.parts(s, p, w.Parts) {
		f := joinFields(list, " ")
		if len(list) == 0 {
			f = literal("")
		}
		if f.open != "" {
			out = out.or(value{open: f.open, num: f.open == "a number"})
			continue
		}
		out = out.or(value{alts: [][]field{{f}}})
	}
	return out
}

// assign evaluates an assignment without storing it.
func (r *reader) assign(s *scope, p place, a *syntax.Assign) value {
	if a.Index != nil {
		r.arithm(s, p, a.Index)
	}
	if a.Array != nil {
		list := []field{}
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				r.arithm(s, p, e.Index)
			}
			for _, w := range r.words(s, p, e.Value) {
				list = append(list, w.field())
			}
		}
		if a.Append {
			old := r.lookup(s, p, a.Name.Value)
			for _, more := range old.alts {
				list = append(append([]field(nil), more...), list...)
				break
			}
		}
		return value{alts: [][]field{list}, array: true}
	}
	v := r.assignValue(s, p, a.Value)
	if !a.Append || a.Name == nil {
		return v
	}
	old := r.lookup(s, p, a.Name.Value).joined(" ")
	return old.concat(v)
}

// concat is one value followed by another.
func (v value) concat(w value) value {
	out := value{}
	if v.open != "" || w.open != "" {
		out.open = "a value that is not known"
	}
	for _, x := range v.alts {
		for _, y := range w.alts {
			if len(out.alts) == maxAlternatives {
				out.open = "it has many possible values"
				return out
			}
			f := joinFields([]field{joinFields(x, " "), joinFields(y, " ")}, "")
			if len(f.lit) > maxValue {
				return unknown("its value is too long")
			}
			out.alts = append(out.alts, []field{f})
		}
	}
	return out
}

// bind stores an assignment that stands alone.
func (r *reader) bind(s *scope, p place, a *syntax.Assign, export bool) {
	if a.Name == nil {
		return
	}
	name := a.Name.Value
	if a.Naked {
		if a.Index != nil {
			r.arithm(s, p, a.Index)
		}
		if export {
			s.export(name, r.lookup(s, p, name))
		}
		return
	}
	v := r.assign(s, p, a)
	if a.Index != nil {
		r.bindElement(s, p, a, v)
		return
	}
	r.store(s, p, name, v)
	if export || s.exported(name) || r.inherited(name) {
		s.export(name, v)
		text, known := v.constant()
		r.envPrograms(s, p, Assignment{Name: name, Value: text, Known: known})
	}
}

// store sets a variable, with what the shell does because of it.
func (r *reader) store(s *scope, p place, name string, v value) {
	r.spendValue(v)
	for _, list := range v.alts {
		for _, f := range list {
			if s.integers {
				r.evaluated(s, p, f.lit)
			}
			if name == "PS4" {
				r.document(s, p, f.lit)
			}
		}
	}
	before := value{}
	if s.cond > 0 {
		before = r.lookup(s, p, name)
	}
	s.set(name, v, before)
	if meaning := changesMeaning(name); meaning != "" {
		r.note("it sets " + name + ", " + meaning)
	}
}

func (r *reader) spendValue(v value) {
	for _, list := range v.alts {
		for _, f := range list {
			r.spend(len(f.lit))
		}
	}
}

// inherited reports whether a variable is in the environment already, so that a
// plain assignment changes it for programs too.
func (r *reader) inherited(name string) bool {
	if r.o.Env == nil {
		return changesMeaning(name) != ""
	}
	_, ok := r.o.Env(name)
	return ok
}

// bindElement stores one element. zsh keeps functions and aliases in such variables.
func (r *reader) bindElement(s *scope, p place, a *syntax.Assign, v value) {
	key := ""
	if w, ok := a.Index.(*syntax.Word); ok {
		if list := r.words(s, p, w); len(list) == 1 && list[0].Known {
			key = list[0].Value
		}
	}
	text, known := v.constant()
	switch a.Name.Value {
	case "functions", "aliases", "galiases", "saliases", "dis_functions", "dis_aliases", "commands", "nameddirs", "options":
		if !known || key == "" || a.Name.Value != "functions" && a.Name.Value != "aliases" {
			r.opaque(p.text(a), "it changes what later words mean")
			return
		}
		s.setAlias(key, text)
		r.note("it gives " + key + " another meaning")
		return
	}
	old := r.lookup(s, p, a.Name.Value)
	next := old.or(v).each().or(unknown("an array that is changed"))
	next.array = true
	s.set(a.Name.Value, next, value{})
}

// declClause reads declare, export, local, readonly and typeset.
func (r *reader) declClause(s *scope, p place, c *syntax.DeclClause) {
	kind := c.Variant.Value
	export, reference := kind == "export", kind == "nameref"
	s.integers = s.integers || kind == "integer" || kind == "float"
	words := []field{literal(kind)}
	for _, a := range c.Args {
		if a.Name != nil {
			words = append(words, literal(p.text(a)))
			if reference {
				r.assign(s, p, a)
				s.set(a.Name.Value, unknown("a reference to another variable"), value{})
				continue
			}
			r.bind(s, p, a, export)
			continue
		}
		for _, w := range r.words(s, p, a.Value) {
			words = append(words, w.field())
			if strings.HasPrefix(w.Value, "-") {
				export = export || strings.Contains(w.Value, "x")
				reference = reference || strings.Contains(w.Value, "n") && p.dialect != Zsh
				s.integers = s.integers || strings.ContainsAny(w.Value, "iEF")
				continue
			}
			r.bindText(s, p, w, export)
		}
	}
	r.emitWords(s, p, words, nil, p.text(c))
}

// bindText stores an assignment that is a word, as in export "A=b".
func (r *reader) bindText(s *scope, p place, w Word, export bool) {
	r.evaluated(s, p, w.Value)
	name, text, assigned := strings.Cut(w.Value, "=")
	name = strings.TrimSuffix(name, "+")
	if !syntax.ValidName(name) {
		if !w.Known {
			s.dirty = true
		}
		return
	}
	v := scalar(text)
	if !w.Known {
		v = unknown(w.Why)
	}
	if assigned {
		r.assigned[name] = true
		r.store(s, p, name, v)
	}
	if export {
		s.export(name, r.lookup(s, p, name))
	}
}

// changesMeaning says what a variable of the environment changes for programs, or
// "" when the name is not known to change anything.
func changesMeaning(name string) string {
	switch name {
	case "PATH", "path", "CDPATH", "cdpath", "fpath", "FPATH":
		return "which decides where names are looked up"
	case "IFS":
		return "which decides how values are split into words"
	case "HOME", "ZDOTDIR", "XDG_CONFIG_HOME", "PWD":
		return "which decides where programs look for files"
	case "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS4", "SHELL", "SHELLOPTS", "BASHOPTS", "NULLCMD", "READNULLCMD":
		return "which the shell may run or be changed by"
	case "PAGER", "MANPAGER", "EDITOR", "VISUAL", "BROWSER", "LESSOPEN", "LESSCLOSE", "LESS", "SUDO_ASKPASS", "SSH_ASKPASS", "TAR_OPTIONS", "RSYNC_RSH", "CVS_RSH", "MAKEFLAGS", "MAKE", "CC", "CXX", "LD", "RUSTC", "RUSTC_WRAPPER", "GOFLAGS", "TOOLEXEC":
		return "which programs run or are changed by"
	case "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PERL5LIB", "PERL5OPT", "RUBYLIB", "RUBYOPT", "NODE_OPTIONS", "NODE_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "LUA_INIT":
		return "which loads code into interpreters"
	}
	for _, prefix := range []string{"GIT_", "LD_", "DYLD_", "npm_config_", "NPM_CONFIG_", "PIP_", "CARGO_", "DOCKER_", "KUBE", "SSH_"} {
		if strings.HasPrefix(name, prefix) {
			return "which changes what programs run or load"
		}
	}
	return ""
}

// IsNeutral reports whether setting the variable leaves the meaning of a command
// alone. The list is short on purpose: any other name may change it.
func IsNeutral(name string) bool {
	return name == "LANG" || name == "LANGUAGE" || name == "TZ" || name == "NO_COLOR" || strings.HasPrefix(name, "LC_")
}
