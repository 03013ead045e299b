package shellread

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call reads a simple command.
func (r *reader) call(s *scope, p place, c *syntax.CallExpr) output {
	if len(c.Args) == 0 {
		for _, a := range c.Assigns {
			r.bind(s, p, a, false)
		}
		return silent()
	}
	var env []Assignment
	for _, a := range c.Assigns {
		env = append(env, r.prefix(s, p, a))
	}
	choices := make([][][]field, len(c.Args))
	total := 1
	for i, w := range c.Args {
		choices[i] = r.word(s, p, w)
		total = min(total*max(len(choices[i]), 1), maxRuns+1)
	}
	for _, head := range choices[0] {
		r.checkHead(p, c.Args[0], head)
	}
	base := call{env: env, text: p.text(c), bare: isBare(c.Args[0])}
	texts := argTexts(p, c)
	if total > maxRuns {
		r.opaque(base.text, "it runs with many combinations of values")
		choices = flattened(choices)
	}
	var out output
	for i, words := range combined(choices) {
		next := base.with(words)
		if len(words) == len(texts) {
			next.texts = texts
		}
		if done := r.run(s, p, next); i == 0 {
			out = done
		} else {
			out = output{}
		}
	}
	return out
}

// maxRuns bounds how many combinations of values one command is read with.
const maxRuns = 32

// combined lists every combination of one choice for each word.
func combined(choices [][][]field) [][]field {
	out := [][]field{nil}
	for _, alternatives := range choices {
		if len(alternatives) == 0 {
			continue
		}
		if len(alternatives) == 1 {
			for i := range out {
				out[i] = append(out[i], alternatives[0]...)
			}
			continue
		}
		var next [][]field
		for _, before := range out {
			for _, list := range alternatives {
				next = append(next, append(before[:len(before):len(before)], list...))
			}
		}
		out = next
	}
	return out
}

// flattened makes all alternatives of an argument stand side by side; those of the
// program stay apart.
func flattened(choices [][][]field) [][][]field {
	out := [][][]field{choices[0][:min(len(choices[0]), maxRuns)]}
	for _, alternatives := range choices[1:] {
		var all []field
		for _, list := range alternatives {
			all = append(all, list...)
		}
		out = append(out, [][]field{all})
	}
	return out
}

// call is a simple command after expansion.
type call struct {
	words []field
	texts []string // of the words as written, when there are as many
	env   []Assignment
	text  string
	bare  bool // the name is unquoted, so it may be an alias
	plain bool // functions and aliases do not apply
}

// rest is the call that remains when the first n words are taken away.
func (c call) rest(n int) call {
	n = min(n, len(c.words))
	if len(c.texts) == len(c.words) {
		c.texts = c.texts[n:]
	}
	c.words = c.words[n:]
	return c
}

// with is the call with other words.
func (c call) with(words []field) call {
	c.words, c.texts = words, nil
	return c
}

func argTexts(p place, c *syntax.CallExpr) []string {
	out := make([]string, len(c.Args))
	for i, w := range c.Args {
		out[i] = p.text(w)
	}
	return out
}

func isBare(w *syntax.Word) bool {
	lit := w.Lit()
	return lit != "" && !strings.Contains(lit, `\`)
}

// prefix evaluates a variable set for one command.
func (r *reader) prefix(s *scope, p place, a *syntax.Assign) Assignment {
	v := r.assign(s, p, a)
	text, known := v.constant()
	out := Assignment{Name: a.Name.Value, Value: text, Known: known}
	if !IsNeutral(out.Name) {
		meaning := changesMeaning(out.Name)
		if meaning == "" {
			meaning = "which may change what it does"
		}
		r.note("it runs with " + brief(p.text(a)) + ", " + meaning)
	}
	r.envPrograms(s, p, out)
	return out
}

// envPrograms reads variables that hold a command line.
func (r *reader) envPrograms(s *scope, p place, a Assignment) {
	switch a.Name {
	case "PAGER", "MANPAGER", "GIT_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_SSH_COMMAND", "GIT_SSH", "GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "SSH_ASKPASS", "SUDO_ASKPASS", "LESSOPEN", "LESSCLOSE", "BROWSER", "RSYNC_RSH", "PROMPT_COMMAND":
		if a.Known && a.Value != "" {
			at := p.through(a.Name)
			at.dialect = POSIX
			r.text(s.child(), at, strings.TrimLeft(a.Value, "|-"))
		}
	case "BASH_ENV", "ENV", "ZDOTDIR", "PYTHONSTARTUP", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES":
		r.opaque(a.Name+"="+a.Value, "it makes programs run or load that file")
	}
}

// tail expands words that another program or an alias holds. Where one has several
// values all of them stand in the list, and the text counts as unread.
func (r *reader) tail(s *scope, p place, words []*syntax.Word) []field {
	var out []field
	for _, w := range words {
		alternatives := r.word(s, p, w)
		if len(alternatives) > 1 {
			r.opaque(p.text(w), "it has several possible values")
		}
		for _, list := range alternatives {
			out = append(out, list...)
		}
	}
	return out
}

// checkHead reports a program name that is not written out.
func (r *reader) checkHead(p place, w *syntax.Word, head []field) {
	text := p.text(w)
	if len(head) == 0 {
		r.opaque(text, "the program is what a variable holds that nothing sets")
		return
	}
	f := head[0]
	switch {
	case strings.HasPrefix(f.open, "=name"):
	case f.open != "":
		r.opaque(text, "the program is "+f.open)
	case f.glob:
		r.opaque(text, "the program is chosen by a file name pattern")
	case f.from&fromBraces != 0:
		r.opaque(text, "the program is chosen by a brace expansion")
	case f.from&fromSubstitution != 0:
		r.opaque(text, "the program is what a command prints")
	case f.from&fromEnvironment != 0:
		r.opaque(text, "the program is what the environment holds: "+brief(f.lit))
	case f.from&fromVariable != 0 && (len(head) > 1 || strings.ContainsAny(f.lit, " \t\n")):
		r.opaque(text, "the command is what a variable holds")
	case f.from&fromVariable != 0:
		r.note("a variable names the program: " + brief(text) + " is " + brief(f.lit))
	}
}

// run reads one command after expansion: it follows functions, builtins and wrappers
// down to the program that does the work.
func (r *reader) run(s *scope, p place, c call) output {
	if len(c.words) == 0 || !r.enter(p, c.text) {
		return output{}
	}
	p.depth++
	name := c.words[0]
	if name.glob {
		return r.guesses(s, p, c)
	}
	if name.open != "" && name.lit == "" {
		r.opaque(c.text, "the program is "+name.open)
		return output{}
	}
	if fields := strings.Fields(name.lit); len(fields) > 1 && name.from&fromVariable != 0 {
		return r.run(s, p, c.with(append(splitFields(name.lit, " \t\n"), c.words[1:]...)))
	}
	if !c.plain {
		if text, ok := s.alias(name.lit); ok && c.bare && !slices.Contains(p.hidden, name.lit) {
			r.expandAlias(s, p, c, name.lit, text)
		}
		if f := s.function(name.lit); f != nil {
			r.emitCall(s, p, c, func(cmd *Command) { cmd.Shadowed, cmd.Wrapper = true, true })
			return r.invoke(s, p, name.lit, f, c.words[1:], c.text)
		}
	}
	base := path.Base(name.lit)
	if h := builtin(name.lit); h != nil {
		return h(r, s, p, c)
	}
	if w, ok := wrapperFor(base); ok {
		return r.unwrap(s, p, c, base, w)
	}
	return r.program(s, p, c, base)
}

// expandAlias reads an alias with its arguments; its own name in it is not expanded
// again. Shells differ in when a new alias counts, so the name itself is read too.
func (r *reader) expandAlias(s *scope, p place, c call, name, text string) {
	r.note("it defines " + name + " in the text, so that name may mean something else")
	p.hidden = append(p.hidden[:len(p.hidden):len(p.hidden)], name)
	p.depth++
	list, _, err := statements(p.dialect, text)
	if err == nil && len(list) == 1 && len(list[0].Redirs) == 0 && r.enter(p, text) {
		if simple, ok := list[0].Cmd.(*syntax.CallExpr); ok && len(simple.Args) > 0 {
			p.src = text
			r.run(s, p, c.with(append(r.tail(s, p, simple.Args), c.words[1:]...)))
			return
		}
	}
	r.text(s, p, text+" "+quoteWords(c.words[1:]))
}

// quoteWords writes fields so that a shell reads them back, but for open ones.
func quoteWords(list []field) string {
	var b strings.Builder
	for i, f := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		if f.glob {
			b.WriteString(f.pat)
			continue
		}
		b.WriteString("'" + strings.ReplaceAll(f.lit, "'", `'\''`) + "'")
	}
	return b.String()
}

// guesses reads a command whose name is a pattern: once for each destructive
// program that the pattern covers.
func (r *reader) guesses(s *scope, p place, c call) output {
	pattern := path.Base(c.words[0].pat)
	found := false
	for _, name := range [...]string{"rm", "dd", "shred", "mkfs", "mkfs.ext4", "wipefs", "find", "chmod", "chown", "sh", "bash", "zsh", "sudo", "env", "busybox", "mv", "cp", "tee"} {
		if strings.Count(pattern, "*") <= 3 && matches(pattern, name) {
			found = true
			r.run(s, p, c.with(append([]field{literal(name)}, c.words[1:]...)))
		}
	}
	if !found {
		r.emitCall(s, p, c, nil)
	}
	return output{}
}

// emitCall lists a command.
func (r *reader) emitCall(s *scope, p place, c call, change func(*Command)) {
	cmd := Command{
		Program: c.words[0].lit, Text: c.text, Dir: s.dir, OtherDirs: s.other, Via: p.via, Async: p.async, Elsewhere: p.elsewhere, Mounts: p.mounts,
		Env: append(s.exports[:len(s.exports):len(s.exports)], c.env...),
	}
	cmd.Words = make([]Word, len(c.words))
	for i, f := range c.words {
		text := f.lit
		if len(c.texts) == len(c.words) {
			text = c.texts[i]
		}
		cmd.Words[i] = f.word(text)
	}
	if !c.plain && s.function(cmd.Program) != nil {
		cmd.Shadowed = true
	}
	if change != nil {
		change(&cmd)
	}
	r.emit(cmd)
}

func (r *reader) emitWords(s *scope, p place, words []field, env []Assignment, text string) {
	r.emitCall(s, p, call{words: words, env: env, text: text}, nil)
}
