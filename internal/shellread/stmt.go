package shellread

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (r *reader) stmts(s *scope, p place, list []*syntax.Stmt) output {
	out := silent()
	for i, st := range list {
		if i > 0 {
			r.next(s, list[i-1])
		}
		out = out.then(r.stmt(s, p, st))
		r.spend(len(out.text))
	}
	return out
}

// next goes on after a statement, which may have failed. Under set -e only a part of a
// longer list may.
func (r *reader) next(s *scope, last *syntax.Stmt) {
	if _, list := last.Cmd.(*syntax.BinaryCmd); s.stops && !list && !last.Negated {
		s.failed = nil
		return
	}
	s.settle()
}

// leaves reports whether what follows a statement does not run after it.
func (s *scope) leaves(p place, st *syntax.Stmt, depth int) bool {
	if depth > 8 || st.Background || len(st.Redirs) > 0 && st.Cmd == nil {
		return false
	}
	switch c := st.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return false
		}
		switch name := c.Args[0].Lit(); name {
		case "exit", "break", "continue", "logout", "bye":
			return true
		case "return":
			return len(s.calls) > 0 || p.dialect == Zsh
		default:
			f := s.function(name)
			return f != nil && s.exits(f.at, f.body, depth+1)
		}
	case *syntax.Block:
		return slices.ContainsFunc(c.Stmts, func(st *syntax.Stmt) bool { return s.leaves(p, st, depth+1) })
	case *syntax.BinaryCmd:
		return (c.Op == syntax.AndStmt || c.Op == syntax.OrStmt) && s.leaves(p, c.X, depth+1) || c.Op == syntax.AndStmt && s.leaves(p, c.Y, depth+1)
	}
	return false
}

// exits reports whether the body of a function ends the command, not the function only.
func (s *scope) exits(p place, body *syntax.Stmt, depth int) bool {
	block, ok := body.Cmd.(*syntax.Block)
	if !ok {
		return false
	}
	for _, st := range block.Stmts {
		call, ok := st.Cmd.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			continue
		}
		if name := call.Args[0].Lit(); name == "return" || name == "break" || name == "continue" {
			return false
		}
		if s.leaves(p, st, depth) {
			return true
		}
	}
	return false
}

// stmt reads one statement with its redirections.
func (r *reader) stmt(s *scope, p place, st *syntax.Stmt) output {
	if st == nil {
		return silent()
	}
	text := p.text(st)
	if !r.enter(p, text) {
		return output{}
	}
	aside := st.Background || st.Disown || st.Coprocess
	if aside {
		p.async = true
		s = s.child()
	}
	mark, files := len(r.out.Commands), len(r.out.Writes)
	p, to := r.redirects(s, p, st.Redirs)
	written := r.out.Writes[files:len(r.out.Writes):len(r.out.Writes)]
	out := r.command(s, p.deeper(), st)
	if to {
		r.makes(s, p, written, out)
	}
	if aside {
		r.background(mark, text, st.Disown)
		return output{}
	}
	if st.Negated {
		succeeded := s.ways
		s.ways, s.failed = s.takeFailed(), &succeeded
	}
	if to {
		return silent()
	}
	return out
}

func (r *reader) background(mark int, text string, disown bool) {
	names := r.programs(mark, text)
	r.out.Background = append(r.out.Background, names...)
	if disown {
		r.out.Detached = append(r.out.Detached, names...)
	}
}

// command reads the part of a statement without redirections.
func (r *reader) command(s *scope, p place, st *syntax.Stmt) output {
	switch c := st.Cmd.(type) {
	case nil:
		return r.nullCommand(s, p, st)
	case *syntax.CallExpr:
		return r.call(s, p, c)
	case *syntax.BinaryCmd:
		if c.Op == syntax.Pipe || c.Op == syntax.PipeAll {
			return r.pipeline(s, p, c)
		}
		return r.list(s, p, c)
	case *syntax.Block:
		return r.stmts(s, p, c.Stmts)
	case *syntax.Subshell:
		return r.stmts(s.child(), p, c.Stmts)
	case *syntax.FuncDecl:
		return r.declare(s, p, c)
	case *syntax.TimeClause:
		return r.stmt(s, p, c.Stmt)
	case *syntax.CoprocClause:
		p.async = true
		mark := len(r.out.Commands)
		r.stmt(s.child(), p, c.Stmt)
		r.background(mark, p.text(c), false)
	case *syntax.TestClause:
		r.test(s, p, c.X)
		r.emitWords(s, p, []field{literal("[[")}, nil, p.text(c))
	case *syntax.ArithmCmd:
		r.arithm(s, p, c.X)
		r.emitWords(s, p, []field{literal("((")}, nil, p.text(c))
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			r.arithm(s, p, x)
		}
		r.emitWords(s, p, []field{literal("let")}, nil, p.text(c))
	case *syntax.DeclClause:
		r.declClause(s, p, c)
	default:
		r.compound(s, p, st.Cmd)
	}
	return output{}
}

// compound reads the conditional and repeated commands.
func (r *reader) compound(s *scope, p place, cmd syntax.Command) {
	before := s.ways
	s.cond++
	switch c := cmd.(type) {
	case *syntax.IfClause:
		r.ifClause(s, p, c)
	case *syntax.WhileClause:
		r.stmts(s, p, c.Cond)
		s.takeFailed()
		r.stmts(s, p, c.Do)
		s.repeated(before)
	case *syntax.ForClause:
		r.forClause(s, p, c)
		s.repeated(before)
	case *syntax.CaseClause:
		r.caseClause(s, p, c)
	default:
		r.opaque(p.text(cmd), "a form of command that is not followed")
	}
	s.cond--
}

// repeated goes on after a loop that began in some directory.
func (s *scope) repeated(before ways) {
	s.settle()
	end := s.dir
	s.ways = s.ways.or(before)
	s.dir = sameDir(before.dir, end)
}

// sameDir is the directory after a part that may have run any number of times.
func sameDir(before, after string) string {
	if before == after {
		return before
	}
	return ""
}

func (r *reader) ifClause(s *scope, p place, c *syntax.IfClause) {
	before, ends := s.dir, []ways{}
	for ; c != nil; c = c.Else {
		r.stmts(s, p, c.Cond)
		otherwise := s.takeFailed()
		r.stmts(s, p, c.Then)
		s.settle()
		if !slices.ContainsFunc(c.Then, func(st *syntax.Stmt) bool { return s.leaves(p, st, 0) }) {
			ends = append(ends, s.ways)
		}
		if s.ways = otherwise; len(c.Cond) == 0 {
			s.ways = ways{} // there is nothing after else
		}
	}
	if len(ends) == 0 {
		return
	}
	end := ends[0]
	for _, w := range ends[1:] {
		dir := sameDir(end.dir, w.dir)
		end = end.or(w)
		end.dir = dir
	}
	if len(ends) == 1 && end.dir == "" {
		end.dir = before
	}
	s.ways = end.or(s.ways)
}

func (r *reader) forClause(s *scope, p place, c *syntax.ForClause) {
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		all := value{alts: [][]field{}}
		if !loop.InPos.IsValid() {
			all = r.params(s).each()
		}
		for _, w := range loop.Items {
			all = all.or(r.each(s, p, w))
		}
		if c.Select {
			all = all.or(unknown("what a person chooses"))
		}
		cond := s.cond
		s.cond = 0
		s.set(loop.Name.Value, all, value{})
		s.cond = cond
	case *syntax.CStyleLoop:
		r.arithm(s, p, loop.Init)
		r.arithm(s, p, loop.Cond)
		r.arithm(s, p, loop.Post)
	}
	r.stmts(s, p, c.Do)
}

// each is a value that takes each word of an expansion in turn.
func (r *reader) each(s *scope, p place, w *syntax.Word) value {
	out := value{}
	for _, list := range r.word(s, p, w) {
		out = out.or(value{alts: [][]field{list}}.each())
	}
	return out
}

func (v value) each() value {
	out := value{open: v.open}
	for _, list := range v.alts {
		for _, f := range list {
			if f.open != "" {
				out = out.or(unknown(f.open))
				continue
			}
			out = out.or(value{alts: [][]field{{f}}})
		}
	}
	return out
}

func (r *reader) caseClause(s *scope, p place, c *syntax.CaseClause) {
	r.word(s, p, c.Word)
	start, set := s.ways, false
	before, end := s.dir, s.dir
	all := start
	for _, item := range c.Items {
		for _, w := range item.Patterns {
			r.word(s, p, w)
		}
		s.ways = start
		r.stmts(s, p, item.Stmts)
		s.settle()
		all = all.or(ways{other: s.other})
		if s.dir != before {
			if set {
				end = sameDir(end, s.dir)
			} else {
				end, set = s.dir, true
			}
		}
	}
	s.ways = ways{dir: end}.or(ways{other: all.other})
}

// list reads a chain of && and ||.
func (r *reader) list(s *scope, p place, c *syntax.BinaryCmd) output {
	rest := []*syntax.BinaryCmd{c}
	first := c.X
	for {
		left, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || len(first.Redirs) > 0 || first.Negated || left.Op == syntax.Pipe || left.Op == syntax.PipeAll {
			break
		}
		rest, first = append(rest, left), left.X
	}
	out := r.stmt(s, p, first)
	failed := s.takeFailed()
	s.cond++
	for i := len(rest) - 1; i >= 0; i-- {
		and, next := rest[i].Op == syntax.AndStmt, rest[i].Y
		succeeded := s.ways
		if !and {
			s.ways = failed
		}
		out = out.then(r.stmt(s, p, next))
		last := s.takeFailed()
		switch leaves := s.leaves(p, next, 0); {
		case and && leaves:
			s.ways = failed
		case and:
			failed = failed.or(last)
		case leaves:
			s.ways, failed = succeeded, succeeded
		default:
			s.ways, failed = succeeded.or(s.ways), last
		}
	}
	s.cond--
	s.failed = &failed
	return out
}

// pipeline reads the stages of a pipe, each fed by the one before it.
func (r *reader) pipeline(s *scope, p place, c *syntax.BinaryCmd) output {
	stages := []*syntax.Stmt{c.Y}
	first := c.X
	for {
		left, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok || len(first.Redirs) > 0 || first.Negated || (left.Op != syntax.Pipe && left.Op != syntax.PipeAll) {
			break
		}
		stages, first = append(stages, left.Y), left.X
	}
	stages = append(stages, first)
	p.async = true
	var out output
	for i := len(stages) - 1; i >= 0; i-- {
		network := p.stdin.network
		out = r.stmt(s.child(), p, stages[i])
		if out.network == "" {
			out.network = network
		}
		out.piped = true
		p.stdin = out
	}
	out.piped = false
	return out
}

// nullCommand reads a statement that is redirections only.
func (r *reader) nullCommand(s *scope, p place, st *syntax.Stmt) output {
	if p.dialect == Zsh && len(st.Redirs) > 0 {
		r.emitWords(s, p, []field{literal("cat")}, nil, p.text(st))
		return p.stdin
	}
	if len(st.Redirs) > 0 {
		r.emitWords(s, p, []field{literal(":")}, nil, p.text(st))
	}
	return silent()
}

// declare reads a function declaration; one without a name runs at once.
func (r *reader) declare(s *scope, p place, c *syntax.FuncDecl) output {
	names := c.Names
	if c.Name != nil {
		names = []*syntax.Lit{c.Name}
	}
	if len(names) == 0 {
		args, more := s.args, s.moreArgs
		s.args, s.moreArgs = nil, "the arguments of a function without a name"
		out := r.stmt(s, p, c.Body)
		s.args, s.moreArgs = args, more
		return out
	}
	f := &function{body: c.Body, at: p}
	for _, name := range names {
		s.define(name.Value, f)
		r.defined = append(r.defined, definition{name: name.Value, f: f, scope: s})
		r.hook(s, p, name.Value, f)
	}
	return silent()
}

// hook reads the body of a function that the shell calls by itself.
func (r *reader) hook(s *scope, p place, name string, f *function) {
	switch name {
	case "chpwd", "precmd", "preexec", "periodic", "zshexit", "zshaddhistory", "command_not_found_handler", "command_not_found_handle":
	default:
		if !strings.HasPrefix(name, "TRAP") {
			return
		}
	}
	r.note("the shell calls the function " + name + " by itself")
	r.called[f] = true
	inner := s.child()
	inner.cond++
	r.stmt(inner, p.deeper(), f.body)
}

// frame is a function that is being read.
type frame struct {
	name string
	cond int // of the scope when it was called
}

// recursion counts how a function being read calls itself.
type recursion struct {
	calls int
	async bool
}

// invoke reads the body of a function that is called.
func (r *reader) invoke(s *scope, p place, name string, f *function, args []field, text string) output {
	r.called[f] = true
	for _, running := range s.calls {
		if running.name == name {
			r.again(s, p, running)
			return output{}
		}
	}
	delete(r.loops, name)
	savedArgs, savedMore, savedCalls := s.args, s.moreArgs, s.calls
	s.args, s.moreArgs = args, ""
	s.calls = append(s.calls[:len(s.calls):len(s.calls)], frame{name, s.cond})
	at := p.deeper()
	at.src, at.dialect = f.at.src, f.at.dialect
	out := r.stmt(s, at, f.body)
	s.args, s.moreArgs, s.calls = savedArgs, savedMore, savedCalls
	return out
}

// again notes that a function calls itself. One that always does so twice, not
// waiting for the copies, fills the machine.
func (r *reader) again(s *scope, p place, f frame) {
	if s.cond > f.cond {
		return
	}
	loop := r.loops[f.name]
	if loop == nil {
		loop = &recursion{}
		r.loops[f.name] = loop
	}
	loop.calls++
	loop.async = loop.async || p.async
	if loop.calls == 2 && loop.async {
		r.out.ForkBombs = append(r.out.ForkBombs, f.name)
	}
}
