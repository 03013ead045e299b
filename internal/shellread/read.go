package shellread

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Defaults of Options, and limits that no caller needs to choose.
const (
	defaultBytes = 65536
	defaultDepth = 64
	defaultSteps = 6000
	// maxNesting bounds open brackets: the parser takes quadratic time on them.
	maxNesting = 2500
	// maxCopied bounds the bytes that expansions may produce in all.
	maxCopied = 4 << 20
	// maxItems bounds each list of a Reading.
	maxItems = 4096
)

// Read reads a command. It does not block, never panics and keeps no reference to
// its arguments. For a command that is not blank the reading holds at least one
// command or opaque part.
func Read(command string, o Options) (out Reading) {
	r := newReader(o)
	// The text may be hostile: should the reading fail, what was read so far stands
	// and the command counts as unread.
	defer func() {
		if recover() != nil {
			r.opaque(command, "reading it failed")
			out = r.out
		}
	}()
	r.read(command)
	return r.out
}

func (r *reader) read(command string) {
	if strings.TrimSpace(command) == "" {
		return
	}
	s := &scope{ways: ways{dir: r.o.Dir}, prevDir: r.envOr("OLDPWD"), arg0: literal(shellName(r.o.Dialect))}
	if strings.ContainsRune(command, 0) {
		r.opaque(command, "a NUL byte: no program can be given one")
	} else {
		r.text(s, place{src: command, dialect: r.o.Dialect}, command)
		r.uncalled()
	}
	if len(r.out.Commands) == 0 && len(r.out.Opaque) == 0 {
		r.opaque(command, "it names no program")
	}
}

// reader holds what is common to all parts of one command.
type reader struct {
	o        Options
	out      Reading
	assigned map[string]bool // names that any text read so far assigns
	called   map[*function]bool
	defined  []definition
	loops    map[string]*recursion
	made     map[string]string // files that the command itself writes, with their text
	seen     map[string]bool   // notes and opaque parts already listed
	steps    int
	bytes    int
	copied   int
	spent    bool
}

type definition struct {
	name  string
	f     *function
	scope *scope
}

func newReader(o Options) *reader {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultBytes
	}
	if o.MaxDepth <= 0 {
		o.MaxDepth = defaultDepth
	}
	if o.MaxSteps <= 0 {
		o.MaxSteps = defaultSteps
	}
	r := &reader{o: o, assigned: map[string]bool{}, called: map[*function]bool{}, loops: map[string]*recursion{}, made: map[string]string{}, seen: map[string]bool{}}
	r.out.root, r.out.home = o.Root, r.envOr("HOME")
	return r
}

func shellName(d Dialect) string {
	return [...]string{"zsh", "bash", "sh"}[min(int(d), 2)]
}

func (r *reader) envOr(name string) string {
	if r.o.Env == nil {
		return ""
	}
	v, _ := r.o.Env(name)
	return v
}

// text reads program text in a scope: the command itself or one nested in it.
func (r *reader) text(s *scope, p place, text string) output {
	if strings.TrimSpace(text) == "" {
		return silent()
	}
	if !r.enter(p, text) {
		return output{}
	}
	if r.bytes += len(text); r.bytes > r.o.MaxBytes {
		r.opaque(text, "it is too long to read")
		return r.begin(s, p, text)
	}
	if nesting(text) > maxNesting {
		r.opaque(text, "it is nested too deeply to read")
		return output{}
	}
	if strings.ContainsRune(text, '\r') {
		r.opaque(text, "a carriage return, which shells take as part of a word")
	}
	return r.parse(s, p, text)
}

// begin reads the first lines of a text that is too long to be read as a whole, so
// that padding does not hide what stands before it.
func (r *reader) begin(s *scope, p place, text string) output {
	if r.bytes-len(text) > 0 {
		return output{}
	}
	head := text[:r.o.MaxBytes]
	if i := strings.LastIndexAny(head, "\n;"); i > 0 {
		head = head[:i]
	}
	if nesting(head) <= maxNesting {
		r.parse(s, p, head)
	}
	return output{}
}

// parse reads statement by statement, so that those before an error count.
func (r *reader) parse(s *scope, p place, text string) output {
	p.src = text
	list, good, err := statements(p.dialect, text)
	for _, st := range list {
		r.collect(st)
	}
	out := r.stmts(s, p, list)
	if err != nil {
		return r.refused(s, p, text[good:], err)
	}
	return out
}

// statements parses a text up to its end or its first error, and says where the
// last good statement ended.
func statements(d Dialect, text string) (list []*syntax.Stmt, good int, err error) {
	defer parserFailed(&err)
	for st, err := range parser(d).StmtsSeq(strings.NewReader(text)) {
		if err != nil {
			return list, min(good, len(text)), err
		}
		list, good = append(list, st), int(st.End().Offset())
	}
	return list, len(text), nil
}

// parserFailed turns a panic of the parser into an error: it is foreign, and some
// texts make it fail.
func parserFailed(err *error) {
	if failure := recover(); failure != nil {
		*err = fmt.Errorf("parse: the parser failed: %v", failure)
	}
}

func parser(d Dialect) *syntax.Parser {
	lang := [...]syntax.LangVariant{syntax.LangZsh, syntax.LangBash, syntax.LangPOSIX}[min(int(d), 2)]
	return syntax.NewParser(syntax.Variant(lang))
}

// refused deals with text that the parser does not accept: it is opaque, and what can
// be made out in it is read all the same.
func (r *reader) refused(s *scope, p place, rest string, err error) output {
	reason := err.Error()
	if _, after, ok := strings.Cut(reason, ": "); ok {
		reason = after
	}
	r.opaque(strings.TrimSpace(rest), "the parser does not follow it: "+reason)
	if p.dialect == POSIX && r.steps < r.o.MaxSteps && r.bytes+len(rest) <= r.o.MaxBytes {
		r.bytes += len(rest)
		p.dialect = Bash
		p.depth++
		return r.parse(s, p, rest)
	}
	r.loose(s, p, rest)
	return output{}
}

// nesting returns an upper bound of how deeply brackets are open in a text.
func nesting(text string) int {
	deepest, open := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '`':
			open++
			deepest = max(deepest, open)
		case ')', '}':
			open = max(open-1, 0)
		}
	}
	return deepest
}

// enter counts one step; it reports false when the budget is used up or the part is
// nested too deeply, after saying so.
func (r *reader) enter(p place, text string) bool {
	if r.spent {
		return false
	}
	if r.steps++; r.steps > r.o.MaxSteps {
		r.spent = true
		r.opaque(text, "there is too much to follow")
		return false
	}
	if p.depth > r.o.MaxDepth {
		r.opaque(text, "it is nested too deeply to follow")
		return false
	}
	return true
}

// spend counts bytes that expansions made.
func (r *reader) spend(n int) {
	if r.copied += n; r.copied > maxCopied && !r.spent {
		r.spent = true
		r.opaque("", "its expansions are too large to follow")
	}
}

func (r *reader) opaque(text, why string) {
	text = strings.TrimSpace(text)
	if text == "" {
		text = "the command"
	}
	key := "opaque\x00" + text + "\x00" + why
	if r.seen[key] || len(r.out.Opaque) >= maxItems {
		return
	}
	r.seen[key] = true
	r.out.Opaque = append(r.out.Opaque, Opaque{Text: text, Why: why})
}

func (r *reader) note(text string) {
	if r.seen["note\x00"+text] || len(r.out.Notes) >= maxItems {
		return
	}
	r.seen["note\x00"+text] = true
	r.out.Notes = append(r.out.Notes, text)
}

func (r *reader) emit(c Command) {
	if len(r.out.Commands) >= maxItems {
		r.opaque(c.Text, "there are too many commands to list")
		return
	}
	r.out.Commands = append(r.out.Commands, c)
}

func (r *reader) write(w Write) {
	if w.Path == "/dev/null" || w.Path == "/dev/stdout" || w.Path == "/dev/stderr" || w.Path == "/dev/tty" {
		return
	}
	if len(r.out.Writes) < maxItems {
		r.out.Writes = append(r.out.Writes, w)
	}
}

func (r *reader) contact(program, host string) {
	c := Contact{Program: program, Host: host}
	if !slices.Contains(r.out.Network, c) && len(r.out.Network) < maxItems {
		r.out.Network = append(r.out.Network, c)
	}
}

// programs names what was emitted since a mark.
func (r *reader) programs(mark int, text string) []string {
	var names []string
	for _, c := range r.out.Commands[min(mark, len(r.out.Commands)):] {
		if !c.Wrapper && c.Program != "" {
			names = append(names, path.Base(c.Program))
		}
	}
	if len(names) == 0 {
		names = append(names, strings.TrimSpace(text))
	}
	return names
}

// uncalled reads function bodies that nothing calls in plain sight, when a part that
// cannot be read might call them.
func (r *reader) uncalled() {
	if len(r.out.Opaque) == 0 {
		return
	}
	for i := 0; i < len(r.defined); i++ {
		d := r.defined[i]
		if r.called[d.f] {
			continue
		}
		r.called[d.f] = true
		s := d.scope.child()
		s.cond++
		s.args, s.moreArgs = nil, "the arguments of "+d.name
		r.stmt(s, d.f.at.deeper(), d.f.body)
	}
}
