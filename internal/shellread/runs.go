package shellread

import (
	"strings"
)

// runsByOption reads command lines that options of otherwise plain programs hold.
func (r *reader) runsByOption(s *scope, p place, c call, base string, args []field) {
	run := func(f field) {
		at := p.through(base)
		at.dialect = POSIX
		r.nested(r.process(s, nil, literal("sh")), at, f, c.text)
	}
	for _, f := range optionValues(args, runningOptions(base)...) {
		if strings.HasSuffix(base, "tar") {
			if text, ok := strings.CutPrefix(f.lit, "exec="); ok {
				f.lit = text
			} else if isCheckpoint(f.lit) {
				continue
			}
		}
		run(f)
	}
	switch base {
	case "less", "more", "most":
		for _, f := range args {
			if at := strings.IndexAny(f.lit, "!|"); strings.HasPrefix(f.lit, "+") && at > 0 {
				run(literal(f.lit[at+1:]))
			}
		}
	case "vim", "vi", "nvim", "view", "ex", "vimdiff", "ed":
		r.editorCommands(c, args, run)
	case "socat":
		for _, f := range args {
			kind, text, _ := strings.Cut(f.lit, ":")
			switch strings.ToUpper(kind) {
			case "EXEC", "SYSTEM", "SHELL":
				text, _, _ = strings.Cut(text, ",")
				run(literal(text))
			}
		}
	case "printf":
		for i, f := range args {
			if f.lit == "-v" && i+1 < len(args) {
				s.set(args[i+1].lit, unknown("what printf makes"), value{})
			}
		}
	case "psql", "mysql", "mariadb", "sqlite3":
		for _, f := range args {
			if strings.Contains(f.lit, `\!`) || strings.Contains(f.lit, ".shell") || strings.Contains(f.lit, ".system") {
				r.opaque(c.text, base+" runs a shell command")
			}
		}
	case "apt", "apt-get":
		for _, f := range args {
			if strings.Contains(f.lit, "Invoke") {
				r.opaque(c.text, base+" runs commands that an option names")
			}
		}
	case "emacs", "make", "gmake":
		for _, f := range args {
			if strings.HasPrefix(f.lit, "--eval") || strings.HasPrefix(f.lit, "SHELL=") {
				r.opaque(c.text, base+" runs code that an option holds")
			}
		}
	}
}

func isCheckpoint(text string) bool {
	return text == "dot" || text == "." || text == "bell" || text == "wait" || strings.HasPrefix(text, "echo") || strings.HasPrefix(text, "ttyout") || strings.HasPrefix(text, "sleep") || strings.HasPrefix(text, "totals")
}

// runningOptions lists options whose value is a command line.
func runningOptions(base string) []string {
	switch base {
	case "sort", "gsort":
		return []string{"--compress-program"}
	case "tar", "gtar", "bsdtar":
		return []string{"--checkpoint-action", "--to-command", "-I", "--use-compress-program", "--rsh-command", "-F", "--info-script", "--new-volume-script"}
	case "man":
		return []string{"-P", "--pager", "-H", "--html"}
	case "rg":
		return []string{"--pre", "--hostname-bin"}
	case "rsync":
		return []string{"-e", "--rsh"}
	case "zip":
		return []string{"-TT", "--unzip-command"}
	case "split", "gsplit":
		return []string{"--filter"}
	case "tcpdump":
		return []string{"-z", "--postrotate-command"}
	case "nc", "ncat", "netcat":
		return []string{"-e", "-c", "--exec", "--sh-exec"}
	case "scp", "sftp":
		return []string{"-S"}
	case "go":
		return []string{"-exec", "-toolexec", "-vettool"}
	case "wget":
		return []string{"--use-askpass"}
	case "ctags":
		return []string{"--sort-command"}
	case "inotifywait", "nodemon", "watchexec":
		return []string{"--exec", "-x", "-e"}
	case "pandoc":
		return []string{"--filter", "-F", "--lua-filter", "--pdf-engine"}
	}
	return nil
}

// optionValues finds the values of options, abbreviated long ones and clusters of
// short ones included.
func optionValues(args []field, names ...string) []field {
	var out []field
	for i, f := range args {
		for _, name := range names {
			rest, ok := optionMatch(f.lit, name)
			if !ok {
				continue
			}
			if rest == "" && i+1 < len(args) {
				out = append(out, args[i+1])
			} else if rest != "" {
				g := literal(rest)
				g.open = f.open
				out = append(out, g)
			}
			break
		}
	}
	return out
}

// optionMatch reports whether a word is the option, and the value in the same word.
func optionMatch(word, name string) (rest string, ok bool) {
	if strings.HasPrefix(name, "--") {
		given, value, _ := strings.Cut(word, "=")
		if len(given) > 4 && strings.HasPrefix(name, given) {
			return value, true
		}
		return "", false
	}
	if len(name) > 2 {
		given, value, _ := strings.Cut(word, "=")
		return value, given == name || given == "-"+name
	}
	if !strings.HasPrefix(word, "-") || strings.HasPrefix(word, "--") {
		return "", false
	}
	at := strings.IndexByte(word, name[1])
	if at < 1 {
		return "", false
	}
	return word[at+1:], true
}

// editorCommands reads the shell commands among an editor's start commands.
func (r *reader) editorCommands(c call, args []field, run func(field)) {
	for i, f := range args {
		text := ""
		switch {
		case strings.HasPrefix(f.lit, "+"):
			text = f.lit[1:]
		case (f.lit == "-c" || f.lit == "--cmd") && i+1 < len(args):
			text = args[i+1].lit
		}
		text = strings.TrimLeft(text, ": ")
		if rest, ok := strings.CutPrefix(text, "!"); ok {
			run(literal(rest))
		} else if strings.Contains(text, "!") || strings.Contains(text, "system(") {
			r.opaque(c.text, "the editor runs a shell command")
		}
	}
}

func isInterpreter(base string) bool {
	base = strings.TrimRight(base, "0123456789.")
	switch base {
	case "python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "awk", "gawk", "mawk", "nawk", "tclsh", "wish", "osascript", "Rscript", "R", "julia", "guile", "ghci", "runghc", "irb", "ipython", "groovy", "scala", "elixir", "erl", "racket", "sbcl", "ocaml", "swift", "bc", "jshell", "ts-node", "tsx":
		return base != "bc"
	}
	return false
}

// interpreter reads a program that runs code in a language of its own. What its code
// passes to a shell or removes is read where it is written out.
func (r *reader) interpreter(s *scope, p place, c call, base string, args []field) output {
	kind := strings.TrimRight(base, "0123456789.")
	awk := strings.HasSuffix(kind, "awk")
	o, rest := anywhere(args, "cefmvFWXMIQiEjrRl", "eval", "print", "require", "import", "execute", "assign", "field-separator", "file", "include")
	if kind == "perl" || kind == "ruby" {
		o, rest = r.perlOptions(args)
	}
	code, given := o.value("c", "e", "E", "r", "eval", "execute", "p", "print")
	if kind == "node" && o.has("r", "require") && !o.has("e", "eval", "p", "print") {
		given = false
	}
	if awk {
		code, given = field{}, false
		if len(rest) > 0 && !o.has("f", "file") {
			code, given = rest[0], true
		}
	}
	if kind == "php" {
		code, given = o.value("r")
	}
	if (kind == "deno" || kind == "bun") && len(rest) > 1 && rest[0].lit == "eval" {
		code, given = rest[1], true
	}
	if kind == "python" && o.has("m") {
		f, _ := o.value("m")
		r.note(base + " runs the module " + brief(f.lit))
		if strings.HasPrefix(f.lit, "pip") {
			r.talks("pip", rest)
		}
		return output{}
	}
	switch {
	case given:
		r.code(s, p, c, base, code, awk)
	case len(rest) > 0 && rest[0].lit != "-":
		if strings.Contains(rest[0].open, "downloads") {
			r.note("runs a downloaded script: " + brief(c.text))
		}
		if rest[0].open != "" {
			r.opaque(c.text, base+" runs "+rest[0].open)
		}
		r.note("an interpreter: " + base + " runs " + brief(rest[0].lit))
	case p.stdin.piped:
		r.note("text is piped into an interpreter: " + base)
		if p.stdin.network != "" {
			r.note("runs a downloaded script: " + p.stdin.network + " feeds " + base)
		}
		r.opaque(c.text, base+" runs what it is fed")
		if p.stdin.known {
			r.codeCalls(s, p, c, base, p.stdin.text)
		}
	}
	return output{}
}

// perlOptions reads -e wherever it ends a cluster, as in -ne.
func (r *reader) perlOptions(args []field) (options, []field) {
	o := options{vals: map[string]field{}}
	var rest []field
	for i := 0; i < len(args); i++ {
		text := args[i].lit
		if len(text) > 1 && text[0] == '-' && len(rest) == 0 {
			if at := strings.IndexAny(text, "eE"); at > 0 && at+1 == len(text) && i+1 < len(args) {
				i++
				code := args[i]
				if old, ok := o.vals["e"]; ok {
					code = joinFields([]field{old, code}, "\n")
				}
				o.vals["e"] = code
			}
			continue
		}
		rest = append(rest, args[i])
	}
	return o, rest
}

// code deals with program text of another language.
func (r *reader) code(s *scope, p place, c call, base string, code field, awk bool) {
	if awk {
		if !strings.Contains(code.lit, "system") && !strings.Contains(code.lit, "|") && !strings.Contains(code.lit, "getline") && !strings.Contains(code.lit, ">") && code.open == "" {
			return
		}
	}
	r.note("an interpreter: " + base + " runs code from the command line")
	r.opaque(c.text, base+" runs code in its own language")
	r.codeCalls(s, p, c, base, code.lit)
}

// codeCalls reads calls in foreign code that start a shell command or remove a tree,
// when their argument is written out.
func (r *reader) codeCalls(s *scope, p place, c call, base, code string) {
	if len(code) > maxValue {
		return
	}
	for _, found := range scanCode(code) {
		if !r.enter(p, code) {
			return
		}
		at := p.through(base)
		at.dialect = POSIX
		if found.removes {
			words := []field{literal("rm"), literal("-rf")}
			for _, text := range found.args {
				words = append(words, r.homeIn(s, p, text))
			}
			r.program(s.child(), at, call{words: words, text: c.text, plain: true}, "rm")
			continue
		}
		if len(found.args) == 1 {
			r.text(r.process(s, nil, literal("sh")), at, found.args[0])
			continue
		}
		var words []field
		for _, text := range found.args {
			words = append(words, literal(text))
		}
		r.run(s.child(), at, call{words: words, text: c.text, plain: true})
	}
}

// homeIn expands ~ as path functions of other languages do.
func (r *reader) homeIn(s *scope, p place, text string) field {
	if text == "~" || strings.HasPrefix(text, "~/") {
		if home, ok := r.lookup(s, p, "HOME").constant(); ok {
			text = home + text[1:]
		}
	}
	return literal(text)
}

// codeCall is a call in foreign code with its literal arguments.
type codeCall struct {
	args    []string
	removes bool
}

// scanCode finds calls of well-known functions outside string literals whose first
// arguments are string literals.
func scanCode(code string) []codeCall {
	var out []codeCall
	for i := 0; i < len(code); {
		switch c := code[i]; {
		case c == '\'' || c == '"':
			_, n := literalAt(code[i:])
			i += max(n, 1)
		case c == '`':
			if text, n := literalAt(code[i:]); n > 0 {
				out = append(out, codeCall{args: []string{text}})
				i += n
				continue
			}
			i++
		case isNameByte(c):
			j := i
			for j < len(code) && (isNameByte(code[j]) || code[j] == '.') {
				j++
			}
			name := code[i:j]
			name = name[strings.LastIndexByte(name, '.')+1:]
			runs, removes := codeFunction(name)
			if runs || removes {
				if args := literalArgs(code[j:]); len(args) > 0 {
					out = append(out, codeCall{args: args, removes: removes})
				}
			}
			i = j
		default:
			i++
		}
	}
	return out
}

func codeFunction(name string) (runs, removes bool) {
	switch name {
	case "system", "popen", "exec", "execSync", "spawn", "spawnSync", "execFileSync", "execFile", "run", "call", "check_call", "check_output", "Popen", "getoutput", "getstatusoutput", "shell_exec", "passthru", "execl", "execlp", "execv", "execvp", "qx", "Command", "execute", "open3", "capture2", "sh":
		return true, false
	case "rmtree", "remove_tree", "rm_rf", "rm_r", "remove_entry_secure", "rmSync", "rmdirSync", "rimraf", "removeSync", "RemoveAll", "rmdir_r", "delete_tree":
		return false, true
	}
	return false, false
}

func isNameByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// literalArgs reads the string literals that follow a function name, passing over
// brackets, commas and the names of path functions.
func literalArgs(code string) []string {
	var out []string
	for i := 0; i < len(code); {
		switch c := code[i]; {
		case c == ' ' || c == '(' || c == '[' || c == '{' || c == ',' || c == '\n':
			i++
		case c == '\'' || c == '"':
			text, n := literalAt(code[i:])
			if n == 0 {
				return out
			}
			out = append(out, text)
			i += n
		case isNameByte(c) && len(out) == 0:
			j := i
			for j < len(code) && (isNameByte(code[j]) || code[j] == '.') {
				j++
			}
			name := code[i:j]
			if !strings.HasSuffix(name, "expanduser") && !strings.HasSuffix(name, "Path") && !strings.HasSuffix(name, "expand_path") && !strings.HasSuffix(name, "realpath") && !strings.HasSuffix(name, "abspath") {
				return out
			}
			i = j
		default:
			return out
		}
	}
	return out
}

// literalAt decodes the string literal at the start of code and returns its length,
// 0 when it does not end.
func literalAt(code string) (string, int) {
	quote := code[0]
	var b strings.Builder
	for i := 1; i < len(code); i++ {
		switch code[i] {
		case quote:
			return b.String(), i + 1
		case '\\':
			if i+1 < len(code) {
				i++
				i += escape(&b, code[i:]) - 1
			}
		default:
			b.WriteByte(code[i])
		}
	}
	return "", 0
}
