package shellread

import (
	"slices"
	"strings"
)

// items are the words that a program is fed on its input.
func (r *reader) items(in output, what string) []field {
	if in.known && in.piped {
		return splitFields(strings.ReplaceAll(in.text, "\x00", "\n"), " \t\n")
	}
	return append(in.names[:len(in.names):len(in.names)], field{open: what})
}

// xargs reads the command that xargs builds.
func (r *reader) xargs(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "adEILnPsJRS", "arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var")
	n := 1 + o.n
	items := r.items(p.stdin, "what xargs is fed")
	if o.has("a", "arg-file") {
		items = []field{{open: "what xargs is fed"}}
	}
	mark := ""
	if f, ok := o.value("I", "J"); ok {
		mark = f.lit
	} else if f, ok := o.value("i", "replace"); ok {
		mark = f.lit
		if mark == "" {
			mark = "{}"
		}
	}
	if o.open || n >= len(c.words) {
		return r.inner(s, p, c, "xargs", n, o.open, false)
	}
	next := c.rest(n)
	next.plain, next.env = true, nil
	r.wraps(s, p, c)
	at := p.through("xargs")
	at.stdin = silent()
	if mark == "" && !o.has("n", "max-args", "L", "l", "max-lines") {
		return r.run(s.child(), at, next.with(fill(next.words, mark, items)))
	}
	if len(items) > maxRuns {
		r.opaque(c.text, "it runs for many words")
		items = items[:maxRuns]
	}
	for _, item := range items {
		r.run(s.child(), at, next.with(fill(next.words, mark, []field{item})))
	}
	return output{}
}

// fill puts items in place of a marker, or at the end when there is no marker.
func fill(words []field, mark string, items []field) []field {
	if mark == "" {
		return append(words[:len(words):len(words)], items...)
	}
	var out []field
	for _, w := range words {
		if !strings.Contains(w.lit, mark) || w.open != "" {
			out = append(out, w)
			continue
		}
		for _, item := range items {
			f := item
			if w.lit != mark {
				f = literal(strings.ReplaceAll(w.lit, mark, item.lit))
				f.open = item.open
				if item.glob {
					f.pat, f.glob = strings.ReplaceAll(w.lit, mark, item.pat), true
				}
			}
			f.kept = true
			out = append(out, f)
		}
	}
	return out
}

// parallel reads GNU parallel: its command is shell text, its arguments come after
// ::: or on its input.
func (r *reader) parallel(s *scope, p place, c call) output {
	r.wraps(s, p, c)
	o := parseOptions(c.words[1:], "ajInNLsPSCd", "jobs", "arg-file", "max-args", "colsep", "joblog", "results", "delay", "timeout", "retries", "sshlogin", "workdir", "tempdir", "delimiter")
	words := c.words[min(1+o.n, len(c.words)):]
	var command, items []field
	given := false
	for _, f := range words {
		if strings.HasPrefix(f.lit, ":::") && strings.Trim(f.lit, ":+") == "" {
			given = true
			if strings.HasPrefix(f.lit, "::::") {
				items = append(items, field{open: "what parallel is fed"})
			}
			continue
		}
		if given {
			items = append(items, f)
		} else {
			command = append(command, f)
		}
	}
	if !given {
		items = r.items(p.stdin, "what parallel is fed")
	}
	at := p.through("parallel")
	at.dialect, at.async, at.stdin = POSIX, true, silent()
	if o.has("S", "sshlogin") {
		at.elsewhere, at.mounts = "other hosts", nil
	}
	for _, item := range items {
		r.parallelItem(s, at, c, command, item)
	}
	return output{}
}

func (r *reader) parallelItem(s *scope, p place, c call, command []field, item field) {
	if len(command) == 0 {
		r.nested(r.process(s, nil, literal("sh")), p, item, c.text)
		return
	}
	mark := ""
	for _, f := range command {
		if strings.Contains(f.lit, "{}") {
			mark = "{}"
		}
	}
	if len(command) == 1 && strings.ContainsAny(command[0].lit, " ;|&$`") {
		text := command[0].lit
		quoted := quoteWords([]field{item})
		if mark != "" {
			text = strings.ReplaceAll(text, mark, quoted)
		} else {
			text += " " + quoted
		}
		if item.open != "" {
			r.opaque(c.text, "parallel runs it with "+item.open)
		}
		r.text(r.process(s, nil, literal("sh")), p, text)
		return
	}
	next := c.with(fill(command, mark, []field{item}))
	next.plain, next.env = true, nil
	r.run(s.child(), p, next)
}

// findWord reads find: what it runs, deletes and writes. {} stands for all below the
// starting points unless a test narrows it down.
func (r *reader) findWord(s *scope, p place, c call) output {
	starts, expr := findParts(c.words[1:])
	f := finder{all: r.owners(s, p, starts)}
	acts := f.actions(expr)
	r.emitCall(s, p, c, func(cmd *Command) { cmd.Wrapper = len(acts) > 0 })
	for _, a := range acts {
		items := []field{{open: "what find finds"}}
		if !a.narrow {
			items = below(starts)
		}
		at := p.through("find")
		switch a.kind {
		case "delete":
			words := append([]field{literal("rm"), literal("-r"), literal("-f")}, items...)
			r.program(s.child(), at, call{words: words, text: c.text, plain: true}, "rm")
		case "write":
			r.writeWord(s, p, a.words[0].word(a.words[0].lit), Overwrite, "find", true)
		default:
			inner := s.child()
			if strings.HasSuffix(a.kind, "dir") {
				inner.ways = ways{}
			}
			r.run(inner, at, call{words: fill(a.words, "{}", items), text: c.text, plain: true})
		}
	}
	if len(expr) > 0 && f.narrows(expr) {
		return output{names: []field{{open: "what find finds"}}}
	}
	return output{names: below(starts)}
}

// below is everything under some directories, as patterns.
func below(starts []field) []field {
	var out []field
	for _, f := range starts {
		f.pat = strings.TrimRight(f.pat, "/") + "/**"
		f.lit = strings.TrimRight(f.lit, "/") + "/**"
		f.glob = true
		out = append(out, f)
	}
	return out
}

// findParts splits the arguments into starting points and the expression.
func findParts(words []field) (starts, expr []field) {
	i := 0
	for i < len(words) {
		text := words[i].lit
		if text == "-D" {
			i += 2
			continue
		}
		if text == "-H" || text == "-L" || text == "-P" || strings.HasPrefix(text, "-O") {
			i++
			continue
		}
		break
	}
	i = min(i, len(words))
	for i < len(words) {
		text := words[i].lit
		if words[i].open == "" && (strings.HasPrefix(text, "-") && len(text) > 1 || text == "(" || text == "!" || text == ",") {
			break
		}
		starts = append(starts, words[i])
		i++
	}
	if len(starts) == 0 {
		starts = []field{literal(".")}
	}
	return starts, words[i:]
}

// findAction is one action of a find expression.
type findAction struct {
	kind   string // "exec", "execdir", "delete" or "write"
	words  []field
	narrow bool // a test before it selects files
}

// finder judges the tests of a find expression. All are the names of owners whose files
// are about everything where find begins.
type finder struct{ all []string }

// owners lists whose everything is where find begins: the user's in the workspace and
// the home, root's elsewhere.
func (r *reader) owners(s *scope, p place, starts []field) []string {
	var out []string
	for _, name := range []string{"USER", "LOGNAME"} {
		if user, ok := r.lookup(s, p, name).constant(); ok && user != "" && user != "root" {
			out = append(out, user)
		}
	}
	home, _ := r.lookup(s, p, "HOME").constant()
	for _, f := range starts {
		dir := resolve(s.dir, f.lit)
		own := dir == ""
		for _, place := range []string{r.o.Root, home} {
			own = own || place != "" && (dir == place || strings.HasPrefix(dir, place+"/"))
		}
		if !own {
			return append(out, "root", "wheel", "0", "+0")
		}
	}
	return out
}

// wide reports whether a test with an argument selects about everything.
func (f finder) wide(test, arg string) bool {
	least := strings.HasPrefix(arg, "+0") && strings.Trim(arg[2:], "bckwMG") == ""
	switch test {
	case "-user", "-group", "-uid", "-gid":
		return slices.Contains(f.all, arg)
	case "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-links", "-inum":
		return least
	case "-perm":
		mode := strings.TrimLeft(arg, "-/+")
		return mode != arg && (strings.Trim(mode, "0") == "" || arg[0] != '-' && (mode == "777" || mode == "0777" || mode == "7777"))
	case "-fstype":
		return true
	case "-newermt":
		return strings.HasPrefix(arg, "19")
	}
	return false
}

// actions lists the actions that change something. A test counts for the
// actions that stand in the same alternative of the expression.
func (f finder) actions(expr []field) []findAction {
	var out []findAction
	narrow := false
	for i := 0; i < len(expr); i++ {
		text := expr[i].lit
		switch text {
		case "-o", "-or", ",":
			narrow = false
		case "-delete":
			out = append(out, findAction{kind: "delete", narrow: narrow})
		case "-exec", "-execdir", "-ok", "-okdir":
			kind := strings.Replace(text[1:], "ok", "exec", 1)
			end := i + 1
			for end < len(expr) && expr[end].lit != ";" && (expr[end].lit != "+" || expr[end-1].lit != "{}") {
				end++
			}
			out = append(out, findAction{kind: kind, words: expr[i+1 : min(end, len(expr))], narrow: narrow})
			i = end
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(expr) {
				out = append(out, findAction{kind: "write", words: expr[i+1 : i+2], narrow: narrow})
				i++
			}
		default:
			n, selects := f.test(expr, i)
			if selects {
				narrow = true
			}
			i += n
		}
	}
	return out
}

// narrows reports whether every alternative of an expression holds a narrowing test.
func (f finder) narrows(expr []field) bool {
	any, each := false, true
	narrow := false
	for i := 0; i < len(expr); i++ {
		if text := expr[i].lit; text == "-o" || text == "-or" || text == "," {
			each = each && narrow
			narrow = false
			continue
		}
		n, selects := f.test(expr, i)
		narrow, any = narrow || selects, any || selects
		i += n
	}
	return any && each && narrow
}

// test says how many words follow a test as its arguments, and whether it
// selects a part of the files only. A negated test leaves nearly everything.
func (f finder) test(expr []field, i int) (args int, selects bool) {
	negated := i > 0 && (expr[i-1].lit == "!" || expr[i-1].lit == "-not")
	arg := ""
	if i+1 < len(expr) {
		arg = expr[i+1].lit
	}
	switch expr[i].lit {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-lname", "-ilname":
		return 1, !negated && strings.Trim(arg, "*/.?") != ""
	case "-regex", "-iregex":
		return 1, !negated && strings.Trim(arg, ".*/") != ""
	case "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-size", "-user", "-group", "-uid", "-gid", "-perm", "-newer", "-anewer", "-cnewer", "-inum", "-samefile", "-links", "-used", "-fstype", "-context":
		return 1, !negated && !f.wide(expr[i].lit, arg)
	case "-type", "-xtype":
		return 1, !negated && strings.Trim(arg, "fd,") != ""
	case "-empty", "-nouser", "-nogroup", "-executable":
		return 0, !negated
	case "-maxdepth":
		return 1, arg == "0"
	case "-mindepth", "-printf", "-regextype", "-files0-from":
		return 1, false
	}
	if strings.HasPrefix(expr[i].lit, "-newer") {
		return 1, !negated && !f.wide(expr[i].lit, arg)
	}
	return 0, false
}

// fdValues are the options of fd that take a value.
var fdValues = []string{"exclude", "extension", "type", "size", "owner", "color", "threads", "max-depth", "min-depth", "exact-depth", "max-results", "changed-within", "changed-before", "search-path", "base-directory", "ignore-file", "path-separator", "batch-size", "format", "and"}

// fdFinds is what fd finds: everything below where it begins, unless something narrows
// it.
func fdFinds(words []field) []field {
	some := []field{{open: "what fd finds"}}
	o, rest := anywhere(words, "EetSocjdg", fdValues...)
	if o.has("e", "extension", "E", "exclude", "S", "size", "o", "owner", "d", "max-depth", "min-depth", "exact-depth", "1", "max-results", "changed-within", "changed-before", "g", "glob", "and", "F", "fixed-strings") {
		return some
	}
	if kind, ok := o.value("t", "type"); ok && !slices.Contains([]string{"f", "file", "d", "dir", "directory"}, kind.lit) {
		return some
	}
	starts := []field{literal(".")}
	if len(rest) > 0 {
		if rest[0].open != "" || strings.Trim(rest[0].lit, ".*+^$") != "" {
			return some
		}
		if len(rest) > 1 {
			starts = rest[1:]
		}
	}
	if f, ok := o.value("search-path", "base-directory"); ok {
		starts = []field{f}
	}
	return below(starts)
}

// fd reads fd -x and -X.
func (r *reader) fd(s *scope, p place, c call) output {
	for i, f := range c.words {
		if i == 0 || f.lit != "-x" && f.lit != "-X" && f.lit != "--exec" && f.lit != "--exec-batch" {
			continue
		}
		words := c.words[i+1:]
		for j, w := range words {
			if w.lit == ";" {
				words = words[:j]
				break
			}
		}
		r.wraps(s, p, c)
		mark := ""
		for _, w := range words {
			if strings.Contains(w.lit, "{}") {
				mark = "{}"
			}
		}
		return r.run(s.child(), p.through("fd"), call{words: fill(words, mark, fdFinds(c.words[1:i])), text: c.text, plain: true})
	}
	r.emitCall(s, p, c, nil)
	return output{names: fdFinds(c.words[1:])}
}

func (r *reader) watch(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "nqs", "interval", "equexit", "shotsdir")
	rest := c.words[min(1+o.n, len(c.words)):]
	if len(rest) == 0 || o.has("x", "exec") {
		return r.inner(s, p, c, "watch", 1+o.n, o.open, false)
	}
	r.wraps(s, p, c)
	at := p.through("watch")
	at.dialect = POSIX
	return r.nested(r.process(s, nil, literal("sh")), at, joinFields(rest, " "), c.text)
}

// scriptWord reads programs that take whole command lines.
func (r *reader) scriptWord(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	if base == "entr" {
		o := parseOptions(c.words[1:], "")
		return r.inner(s, p, c, base, 1+o.n, o.open, false)
	}
	o, rest := anywhere(c.words[1:], "cEIlmoOTBspnwMrPIA", "command", "run", "prepare", "cleanup", "setup", "conclude", "warmup", "runs", "min-runs", "max-runs", "export-json", "export-markdown", "shell", "log-out", "log-in", "log-io", "log-timing", "output-limit", "echo")
	r.wraps(s, p, c)
	at := p.through(base)
	at.dialect = POSIX
	proc := r.process(s, nil, literal("sh"))
	for _, name := range []string{"c", "command", "run", "prepare", "cleanup", "setup", "conclude", "p", "s"} {
		if f, ok := o.value(name); ok && f.lit != "" && (base != "script" || name == "c" || name == "command") {
			r.nested(proc, at, f, c.text)
		}
	}
	switch base {
	case "hyperfine":
		for _, f := range rest {
			r.nested(proc, at, f, c.text)
		}
	case "script":
		if len(rest) > 0 {
			r.writeWord(s, p, rest[0].word(rest[0].lit), Overwrite, base, true)
			r.run(s.child(), at, call{words: rest[1:], text: c.text, plain: true})
		}
	}
	return output{}
}

func (r *reader) flock(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "wE", "timeout", "wait", "conflict-exit-code")
	n := 1 + o.n
	if n+1 >= len(c.words) {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	if text := c.words[n+1].lit; (text == "-c" || text == "--command") && n+2 < len(c.words) {
		r.wraps(s, p, c)
		at := p.through("flock")
		at.dialect = POSIX
		return r.nested(r.process(s, nil, literal("sh")), at, c.words[n+2], c.text)
	}
	return r.inner(s, p, c, "flock", n+1, o.open, false)
}

// later reads at and crontab, which keep commands for another time.
func (r *reader) later(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	o, _ := anywhere(c.words[1:], "fqtu", "file")
	if o.has("l", "r", "d", "b", "c", "e") {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	r.note(base + " keeps commands that run later")
	r.out.Detached = append(r.out.Detached, base)
	if base != "crontab" && p.stdin.known && !o.has("f") {
		r.wraps(s, p, c)
		at := p.through(base)
		at.dialect = POSIX
		return r.text(r.process(s, nil, literal("sh")), at, p.stdin.text)
	}
	r.emitCall(s, p, c, nil)
	r.opaque(c.text, "it runs commands later that are not in sight")
	return output{}
}

// multiplexer reads tmux and screen, whose programs outlive the command.
func (r *reader) multiplexer(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	o := parseOptions(c.words[1:], "cfLSeTpsth")
	rest := c.words[min(1+o.n, len(c.words)):]
	r.wraps(s, p, c)
	at := p.through(base)
	at.dialect = POSIX
	mark := len(r.out.Commands)
	if base == "tmux" && len(rest) > 0 {
		sub := rest[0].lit
		o := parseOptions(rest[1:], "censtxyFlpR")
		rest = rest[min(1+o.n, len(rest)):]
		switch sub {
		case "new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawn-window", "run-shell", "run", "if-shell", "send-keys", "send", "display-popup", "popup", "pipe-pane", "pipep":
		default:
			return output{}
		}
	}
	if len(rest) > 0 {
		r.nested(r.process(s, nil, literal("sh")), at, joinFields(rest, " "), c.text)
		r.detached(mark, c.text)
	}
	return output{}
}

func (r *reader) startStop(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "xaupnsrgckNPId", "exec", "startas", "pidfile", "name", "user", "chuid", "group", "chroot", "chdir", "nicelevel", "signal", "retry")
	f, ok := o.value("a", "startas")
	if !ok {
		f, ok = o.value("x", "exec")
	}
	if !ok || o.has("K", "stop", "T", "status") {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	r.wraps(s, p, c)
	mark := len(r.out.Commands)
	words := append([]field{f}, c.words[min(1+o.n, len(c.words)):]...)
	out := r.run(s.child(), p.through("start-stop-daemon"), call{words: words, text: c.text, plain: true})
	r.detached(mark, c.text)
	return out
}

func (r *reader) systemdRun(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "pEuHM", "unit", "property", "description", "slice", "service-type", "uid", "gid", "nice", "working-directory", "setenv", "machine", "host", "on-active", "on-boot", "on-calendar", "timer-property", "path-property")
	inner := s.child()
	if f, ok := o.value("working-directory"); ok {
		inner.chdir(r.directory(s, p, f))
	}
	if f, ok := o.value("H", "host", "M", "machine"); ok {
		p.elsewhere, p.mounts = "host "+f.lit, nil
		r.opaque(c.text, "it runs on "+f.lit)
	}
	waits := o.has("wait", "scope", "t", "pty", "P", "pipe")
	return r.inner(inner, p, c, "systemd-run", 1+o.n, o.open, !waits)
}
