package shellread

import (
	"strings"
)

// git reads git: what its options and subcommands run, contact and discard.
func (r *reader) git(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "Cc", "git-dir", "work-tree", "namespace", "super-prefix", "config-env", "attr-source")
	inner := s.child()
	if f, ok := o.value("C"); ok {
		inner.chdir(r.directory(s, p, f))
		inner.ways = s.ways.to(inner.dir, f)
	}
	runs := gitRuns(c.words[1:], o)
	rest := c.words[min(1+o.n, len(c.words)):]
	sub := ""
	if len(rest) > 0 {
		sub = rest[0].lit
		runs = append(runs, gitSubRuns(sub, rest[1:])...)
	}
	r.emitCall(inner, p, c, func(cmd *Command) { cmd.Wrapper = len(runs) > 0 })
	if o.has("exec-path", "git-dir", "work-tree", "config-env") {
		r.opaque(c.text, "git takes its settings from another place, and they can run programs")
	}
	for _, text := range runs {
		at := p.through("git")
		at.dialect = POSIX
		r.nested(r.process(inner, nil, literal("sh")), at, text, c.text)
	}
	r.gitEffects(inner, p, c, sub, rest)
	if sub == "rev-parse" && len(rest) > 1 && rest[1].lit == "--show-toplevel" && r.o.Root != "" {
		return output{names: []field{literal(r.o.Root)}}
	}
	return output{}
}

// gitRuns lists command texts in git's own -c settings.
func gitRuns(words []field, o options) []field {
	var out []field
	for i := 0; i < o.n; i++ {
		if words[i].lit != "-c" || i+1 >= len(words) {
			continue
		}
		name, value, _ := strings.Cut(words[i+1].lit, "=")
		name = strings.ToLower(name)
		f := literal(value)
		f.open = words[i+1].open
		switch {
		case strings.HasPrefix(name, "alias."):
			if text, ok := strings.CutPrefix(value, "!"); ok {
				f.lit = text
				out = append(out, f)
			}
		case name == "core.pager", name == "core.editor", name == "core.sshcommand", name == "core.fsmonitor", name == "core.askpass", name == "core.gitproxy",
			name == "sequence.editor", name == "diff.external", name == "gpg.program", name == "uploadpack.packobjectshook",
			strings.HasPrefix(name, "credential."), strings.HasPrefix(name, "filter."), strings.HasPrefix(name, "pager."), strings.HasSuffix(name, ".textconv"), strings.HasSuffix(name, ".cmd"), strings.HasSuffix(name, ".driver"), strings.HasSuffix(name, ".command"):
			f.lit = strings.TrimPrefix(value, "!")
			if value != "true" && value != "false" && value != "" {
				out = append(out, f)
			}
		}
	}
	return out
}

// gitSubRuns lists command texts among the arguments of a subcommand.
func gitSubRuns(sub string, args []field) []field {
	var out []field
	after := func(names ...string) {
		for i, f := range args {
			for _, name := range names {
				if f.lit == name && i+1 < len(args) {
					out = append(out, args[i+1])
				} else if text, ok := strings.CutPrefix(f.lit, name+"="); ok && strings.HasPrefix(name, "--") {
					g := literal(text)
					g.open = f.open
					out = append(out, g)
				}
			}
		}
	}
	switch sub {
	case "bisect":
		if len(args) > 1 && args[0].lit == "run" {
			out = append(out, joinFields(args[1:], " "))
		}
	case "submodule":
		for i, f := range args {
			if f.lit == "foreach" {
				rest := args[i+1:]
				rest = rest[parseOptions(rest, "").n:]
				if len(rest) > 0 {
					out = append(out, joinFields(rest, " "))
				}
				break
			}
		}
	case "rebase":
		after("-x", "--exec")
	case "filter-branch":
		after("--setup", "--env-filter", "--tree-filter", "--index-filter", "--parent-filter", "--msg-filter", "--commit-filter", "--tag-name-filter")
	case "difftool", "mergetool":
		after("-x", "--extcmd")
	case "clone", "ls-remote":
		after("-u", "--upload-pack", "--exec")
		out = append(out, gitHelpers(args)...)
	case "fetch", "pull", "push", "fetch-pack", "send-pack":
		after("--upload-pack", "--receive-pack", "--exec")
		out = append(out, gitHelpers(args)...)
	case "grep":
		after("--open-files-in-pager")
	}
	return out
}

// gitHelpers lists addresses that are commands.
func gitHelpers(args []field) []field {
	var out []field
	for _, f := range args {
		if text, ok := strings.CutPrefix(f.lit, "ext::"); ok {
			out = append(out, literal(text))
		}
	}
	return out
}

func (r *reader) gitEffects(s *scope, p place, c call, sub string, rest []field) {
	args := rest[min(1, len(rest)):]
	text := " " + strings.ToLower(joinFields(args, " ").lit) + " "
	switch sub {
	case "clone", "fetch", "pull", "push", "ls-remote", "lfs", "svn", "send-email", "request-pull":
		r.contact("git "+sub, hostIn(args))
	case "remote", "submodule":
		if strings.Contains(text, " update ") || strings.Contains(text, " add ") || strings.Contains(text, " prune ") || strings.Contains(text, " show ") {
			r.contact("git "+sub, hostIn(args))
		}
	case "clean":
		r.note("git clean removes files that git does not track")
	case "reset", "checkout", "restore", "switch", "stash":
		if strings.Contains(text, " --hard ") || strings.Contains(text, " -f ") || strings.Contains(text, " --force ") || strings.Contains(text, " . ") || strings.Contains(text, " drop ") || strings.Contains(text, " clear ") || strings.Contains(text, " --discard-changes ") {
			r.note("git " + sub + " may discard work that is not committed")
		}
	case "config":
		r.note("git config can name programs that git runs later")
	}
	if sub == "push" && (strings.Contains(text, " --force") || strings.Contains(text, " -f ") || strings.Contains(text, " +")) {
		r.note("git push --force replaces what others may have")
	}
	for i, f := range args {
		name, value, given := strings.Cut(f.lit, "=")
		if name != "--output" && !(name == "-o" && (sub == "archive" || sub == "format-patch")) {
			continue
		}
		if !given && i+1 < len(args) {
			value = args[i+1].lit
		}
		r.writeWord(s, p, literal(value).word(value), Overwrite, "git", true)
	}
}

// hostIn finds the host of the first URL or host:path among words.
func hostIn(words []field) string {
	for _, f := range words {
		if h := hostOf(f.lit); h != "" {
			return h
		}
	}
	return ""
}

// hostOf is the host that a URL or host:path names, or "".
func hostOf(text string) string {
	if _, rest, ok := strings.Cut(text, "://"); ok {
		host := rest
		if i := strings.IndexAny(host, "/?#"); i >= 0 {
			host = host[:i]
		}
		return host[strings.LastIndexByte(host, '@')+1:]
	}
	host, _, ok := strings.Cut(text, ":")
	if ok && host != "" && !strings.ContainsAny(host, "/ =") && !strings.HasPrefix(host, "-") && !strings.HasPrefix(text, "::") {
		return host[strings.LastIndexByte(host, '@')+1:]
	}
	return ""
}

// runner reads programs with a subcommand that runs another program.
func (r *reader) runner(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	switch base {
	case "npx", "bunx", "uvx":
		return r.npx(s, p, c, base, 1)
	case "npm", "pnpm", "yarn":
		if len(c.words) > 1 {
			switch c.words[1].lit {
			case "exec", "x", "dlx":
				return r.npx(s, p, c, base, 2)
			}
		}
		return r.program(s, p, c, base)
	case "gdb", "expect":
		return r.debugger(s, p, c, base)
	}
	at := -1
	for i, f := range c.words[1:] {
		switch f.lit {
		case "run", "exec", "stat", "record", "--", "trace":
			at = i + 2
		}
		if at > 0 || f.lit == "install" {
			break
		}
	}
	if base == "dotenv" && at < 0 {
		at = 1
	}
	if at < 0 || at >= len(c.words) {
		return r.program(s, p, c, base)
	}
	n := at + parseOptions(c.words[at:], "nfpeoCcFgi", "name", "prefix", "with", "python", "env-file", "event", "output", "project", "directory", "extra", "group").n
	if base == "direnv" || base == "aws-vault" || base == "chamber" {
		n++
		if n < len(c.words) && c.words[n].lit == "--" {
			n++
		}
	}
	if base == "capsh" {
		words := append([]field{literal("bash")}, c.words[at:]...)
		return r.shell(s, p, c.with(words))
	}
	return r.inner(s, p, c, base, n, false, false)
}

// npx reads runners that may download what they run.
func (r *reader) npx(s *scope, p place, c call, base string, n int) output {
	o := parseOptions(c.words[min(n, len(c.words)):], "pcw", "package", "call", "workspace", "from", "with")
	r.contact(base, "")
	r.note(base + " may download the program that it runs")
	if f, ok := o.value("c", "call"); ok {
		r.wraps(s, p, c)
		at := p.through(base)
		at.dialect = POSIX
		return r.nested(r.process(s, nil, literal("sh")), at, f, c.text)
	}
	return r.inner(s, p, c, base, n+o.n, o.open, false)
}

func (r *reader) debugger(s *scope, p place, c call, base string) output {
	for i, f := range c.words {
		if base == "gdb" && f.lit == "--args" {
			return r.inner(s, p, c, base, i+1, false, false)
		}
		if f.lit == "-ex" || f.lit == "-c" || f.lit == "--eval-command" {
			r.opaque(c.text, base+" runs commands of its own language")
		}
	}
	r.emitCall(s, p, c, nil)
	return output{}
}
