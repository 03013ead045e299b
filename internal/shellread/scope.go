package shellread

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is the state of one shell: variables, functions, directory. A subshell gets
// a child; what is set there is not seen by its parent.
type scope struct {
	parent  *scope
	vars    map[string]value
	funcs   map[string]*function
	aliases map[string]string

	exports  []Assignment // variables that started programs get from the text
	args     []field      // positional parameters
	moreArgs string       // why there may be others; "" when args is all
	arg0     field
	ways
	failed  *ways // where it is if the last part failed; nil: the same
	prevDir string
	stack   []string // of pushd; "" unknown
	calls   []frame  // functions being read, outermost first

	stops    bool // set -e: a part that fails ends the command
	strict   bool // set -u: an unset variable ends the command
	split    bool // unquoted values are split into words
	integers bool // variables exist whose values are evaluated
	globs    bool // unquoted values are patterns
	dirty    bool // text that could not be read may have set anything
	cond     int  // > 0: runs perhaps, or several times
}

// function is a function body with the text that its positions refer to.
type function struct {
	body *syntax.Stmt
	at   place
}

func (s *scope) child() *scope {
	c := *s
	c.parent, c.vars, c.funcs, c.aliases, c.failed = s, nil, nil, nil, nil
	return &c
}

func (s *scope) find(name string) (value, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return value{}, false
}

func (s *scope) function(name string) *function {
	for ; s != nil; s = s.parent {
		if f, ok := s.funcs[name]; ok {
			return f
		}
	}
	return nil
}

func (s *scope) alias(name string) (string, bool) {
	for ; s != nil; s = s.parent {
		if text, ok := s.aliases[name]; ok {
			return text, true
		}
	}
	return "", false
}

func (s *scope) define(name string, f *function) {
	if s.funcs == nil {
		s.funcs = map[string]*function{}
	}
	s.funcs[name] = f
}

func (s *scope) setAlias(name, text string) {
	if s.aliases == nil {
		s.aliases = map[string]string{}
	}
	s.aliases[name] = text
}

// set assigns a variable. What is assigned perhaps joins what it may have been. A
// variable that changes what programs do counts for those that follow.
func (s *scope) set(name string, v value, before value) {
	if s.cond > 0 {
		v = before.or(v)
	}
	if changesMeaning(name) != "" {
		s.export(name, v)
	}
	if s.vars == nil {
		s.vars = map[string]value{}
	}
	s.vars[name] = v
}

// export records that started programs see the variable.
func (s *scope) export(name string, v value) {
	text, known := v.constant()
	s.exports = append(s.exports[:len(s.exports):len(s.exports)], Assignment{Name: name, Value: text, Known: known})
}

func (s *scope) exported(name string) bool {
	for _, a := range s.exports {
		if a.Name == name {
			return true
		}
	}
	return false
}

// chdir moves to a directory; "" is an unknown one.
func (s *scope) chdir(dir string) {
	s.prevDir, s.ways = s.dir, ways{dir: dir}
}

// ways are the directories that a shell may be in: one, and others where it is if a
// change of directory failed.
type ways struct {
	dir   string // absolute; "" unknown
	other []string
}

// maxWays bounds the other directories that are followed.
const maxWays = 8

// or joins the directories of another outcome.
func (w ways) or(v ways) ways {
	out := ways{w.dir, slices.Clone(w.other)}
	for _, dir := range append([]string{v.dir}, v.other...) {
		if dir != "" && dir != w.dir && !slices.Contains(out.other, dir) && len(out.other) < maxWays {
			out.other = append(out.other, dir)
		}
	}
	return out
}

// to is where a change of directory leads when it does not fail.
func (w ways) to(dir string, f field) ways {
	out := ways{dir: dir}
	if f.open != "" || f.glob || strings.HasPrefix(f.lit, "/") {
		return out
	}
	for _, from := range w.other {
		out = out.or(ways{dir: resolve(from, f.lit)})
	}
	return out
}

// takeFailed returns where the shell is if the last part failed, and goes on as if it
// did not.
func (s *scope) takeFailed() ways {
	w := s.ways
	if s.failed != nil {
		w = *s.failed
	}
	s.failed = nil
	return w
}

// settle goes on whether the last part failed or not.
func (s *scope) settle() { s.ways = s.ways.or(s.takeFailed()) }

// resolve makes a name absolute; "" when the directory is not known.
func resolve(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return path.Clean(name)
	}
	if dir == "" || name == "" {
		return ""
	}
	return path.Join(dir, name)
}

// place says how and where a part runs, and the text it was read from.
type place struct {
	src       string
	dialect   Dialect
	via       []string
	hidden    []string // aliases being expanded
	elsewhere string
	mounts    []Mount
	stdin     output
	async     bool
	depth     int
}

// through is the place of a command that a wrapper runs.
func (p place) through(wrapper string) place {
	p.via = append(p.via[:len(p.via):len(p.via)], wrapper)
	p.depth++
	return p
}

func (p place) deeper() place {
	p.depth++
	return p
}

// text returns the source of a node.
func (p place) text(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to > len(p.src) || from > to {
		return ""
	}
	return p.src[from:to]
}

// output is what a part prints, as far as it is known.
type output struct {
	text    string
	known   bool    // text is all of it
	names   []field // file names that it prints, when text is not known
	network string  // it was fetched by this program
	piped   bool    // as input: something is connected
}

// then is the output of two parts, one after the other.
func (o output) then(next output) output {
	out := output{text: o.text + next.text, known: o.known && next.known, names: append(o.names[:len(o.names):len(o.names)], next.names...)}
	out.network = o.network
	if next.network != "" {
		out.network = next.network
	}
	if len(out.text) > maxValue {
		out.text, out.known = "", false
	}
	return out
}

func silent() output { return output{known: true} }
