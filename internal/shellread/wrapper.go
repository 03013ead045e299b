package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper describes a program that runs another one given as its last words.
type wrapper struct {
	takes  string   // short options with a value
	long   []string // long options with a value in the next word
	skip   int      // words between the options and the command
	detach bool     // what it runs outlives the command
	user   bool     // what it runs belongs to another user
	follow handler  // follows it in a way of its own, instead of all the above
}

// wrapperFor returns how a program that runs others is followed.
func wrapperFor(base string) (wrapper, bool) {
	switch base {
	case "sudo", "doas":
		return wrapper{follow: (*reader).sudo}, true
	case "sudoedit":
		return wrapper{follow: (*reader).sudoedit}, true
	case "pkexec":
		return wrapper{long: []string{"user"}, user: true}, true
	case "su", "runuser", "sg":
		return wrapper{follow: (*reader).su}, true
	case "gosu", "su-exec", "setuidgid", "envuidgid":
		return wrapper{skip: 1, user: true}, true
	case "setpriv":
		return wrapper{long: []string{"reuid", "regid", "groups", "inh-caps", "ambient-caps", "bounding-set", "securebits", "selinux-label", "apparmor-profile"}, user: true}, true
	case "env", "genv":
		return wrapper{follow: (*reader).env}, true
	case "nice", "gnice":
		return wrapper{takes: "n", long: []string{"adjustment"}}, true
	case "ionice":
		return wrapper{takes: "cnpPu", long: []string{"class", "classdata", "pid", "pgid", "uid"}}, true
	case "timeout", "gtimeout":
		return wrapper{takes: "ks", long: []string{"kill-after", "signal"}, skip: 1}, true
	case "stdbuf", "gstdbuf":
		return wrapper{takes: "ioe", long: []string{"input", "output", "error"}}, true
	case "nohup":
		return wrapper{detach: true}, true
	case "setsid", "daemonize", "daemon":
		return wrapper{takes: "acelopuE", detach: true}, true
	case "time", "gtime":
		return wrapper{takes: "fo", long: []string{"format", "output"}}, true
	case "chrt", "taskset", "setarch", "envdir", "setlock":
		return wrapper{takes: "TPD", skip: 1}, true
	case "chpst", "softlimit":
		return wrapper{takes: "uUbe/CnlLmdopfcrtas"}, true
	case "cpulimit":
		return wrapper{takes: "lpe", long: []string{"limit", "pid", "exe"}}, true
	case "linux32", "linux64", "i386", "x86_64", "fakeroot", "unbuffer", "catchsegv", "torsocks", "dumb-init", "tini", "eatmydata", "dbus-run-session", "dbus-launch", "prlimit", "choom", "runcon", "uname26", "newpid", "winpty":
		return wrapper{takes: "ulitrn"}, true
	case "strace", "ltrace", "valgrind", "heaptrack":
		return wrapper{takes: "aeoOpPsSuEbIXnxlFA"}, true
	case "rlwrap", "proxychains", "proxychains4", "xvfb-run", "caffeinate", "firejail", "tsocks", "retry", "chronic", "ts", "ifne", "sem":
		return wrapper{takes: "fstwpeanHCbjS"}, true
	case "busybox", "toybox":
		return wrapper{}, true
	}
	if strings.HasPrefix(base, "ld-linux") || strings.HasPrefix(base, "ld-musl") || base == "ld.so" {
		return wrapper{long: []string{"library-path", "preload", "argv0", "audit"}}, true
	}
	follow := specialWrapper(base)
	return wrapper{follow: follow}, follow != nil
}

// specialWrapper lists those that need more than options and a command.
func specialWrapper(base string) handler {
	switch base {
	case "sh", "bash", "zsh", "dash", "ash", "ksh", "ksh93", "mksh", "lksh", "oksh", "yash", "rbash", "rzsh", "fish", "csh", "tcsh", "pwsh":
		return (*reader).shell
	case "xargs", "gxargs":
		return (*reader).xargs
	case "find", "gfind":
		return (*reader).findWord
	case "fd", "fdfind":
		return (*reader).fd
	case "parallel":
		return (*reader).parallel
	case "watch":
		return (*reader).watch
	case "script", "hyperfine", "nix-shell", "entr":
		return (*reader).scriptWord
	case "flock":
		return (*reader).flock
	case "ssh", "mosh", "autossh", "sshpass", "rsh":
		return (*reader).ssh
	case "chroot":
		return (*reader).chroot
	case "unshare", "nsenter", "bwrap", "proot", "systemd-nspawn":
		return (*reader).namespace
	case "docker", "podman", "nerdctl", "kubectl", "oc", "lxc", "incus", "docker-compose", "podman-compose", "crictl", "multipass", "vagrant", "machinectl", "wsl", "buildah", "toolbox", "distrobox":
		return (*reader).container
	case "systemd-run":
		return (*reader).systemdRun
	case "at", "batch", "crontab":
		return (*reader).later
	case "tmux", "screen":
		return (*reader).multiplexer
	case "start-stop-daemon":
		return (*reader).startStop
	case "git":
		return (*reader).git
	case "npx", "npm", "pnpm", "yarn", "bunx", "poetry", "pipenv", "uv", "uvx", "pdm", "hatch", "rye", "bundle", "conda", "mamba", "micromamba", "mise", "asdf", "direnv", "dotenv", "perf", "gdb", "capsh", "expect", "doppler", "op", "aws-vault", "chamber":
		return (*reader).runner
	}
	return nil
}

// unwrap reads the command that a wrapper runs.
func (r *reader) unwrap(s *scope, p place, c call, base string, w wrapper) output {
	if w.follow != nil {
		return w.follow(r, s, p, c)
	}
	o := parseOptions(c.words[1:], w.takes, w.long...)
	n := 1 + o.n
	if w.user {
		r.note(base + " runs as another user")
	}
	if f, ok := o.value("o", "output"); ok && (base == "time" || base == "gtime" || base == "strace" || base == "ltrace") {
		r.writeWord(s, p, f.word(f.lit), Overwrite, base, true)
	}
	return r.inner(s, p, c, base, n+w.skip, o.open, w.detach)
}

// inner runs the words of a call from n on as the command of a wrapper.
func (r *reader) inner(s *scope, p place, c call, base string, n int, open, detach bool) output {
	if open {
		r.opaque(c.text, "where the command of "+base+" begins cannot be told")
		n = min(n+1, len(c.words))
	}
	r.emitCall(s, p, c, func(cmd *Command) { cmd.Wrapper = n < len(c.words) })
	if n >= len(c.words) {
		return output{}
	}
	next := c.rest(n)
	next.plain, next.env = true, nil
	mark := len(r.out.Commands)
	out := r.run(s.child(), p.through(base), next)
	if detach {
		r.detached(mark, c.text)
	}
	return out
}

func (r *reader) detached(mark int, text string) {
	r.out.Detached = append(r.out.Detached, r.programs(mark, text)...)
}

// wraps lists a call as a wrapper.
func (r *reader) wraps(s *scope, p place, c call) {
	r.emitCall(s, p, c, func(cmd *Command) { cmd.Wrapper = true })
}

// assignments counts NAME=VALUE words and exports them in a scope.
func (r *reader) assignments(s *scope, p place, words []field) int {
	n := 0
	for ; n < len(words); n++ {
		name, text, ok := strings.Cut(words[n].lit, "=")
		if !ok || !syntax.ValidName(name) {
			return n
		}
		a := Assignment{Name: name, Value: text, Known: words[n].open == ""}
		s.exports = append(s.exports[:len(s.exports):len(s.exports)], a)
		v := scalar(text)
		if !a.Known {
			v = unknown(words[n].open)
		}
		if s.vars == nil {
			s.vars = map[string]value{}
		}
		s.vars[name] = v
		if !IsNeutral(name) {
			r.note("it runs with " + brief(words[n].lit) + ", which may change what it does")
		}
		r.envPrograms(s, p, a)
	}
	return n
}

func (r *reader) sudo(s *scope, p place, c call) output {
	takes, long := "CDghpRrTtUu", []string{"chdir", "close-from", "group", "host", "other-user", "prompt", "chroot", "role", "type", "command-timeout", "user"}
	base := "sudo"
	if strings.HasSuffix(c.words[0].lit, "doas") {
		takes, long, base = "Cu", nil, "doas"
	}
	o := parseOptions(c.words[1:], takes, long...)
	inner := s.child()
	n := 1 + o.n
	n += r.assignments(inner, p, c.words[min(n, len(c.words)):])
	user := "root"
	if f, ok := o.value("u", "user"); ok {
		user = f.lit
	}
	r.note(base + " runs as " + user)
	if f, ok := o.value("D", "chdir"); ok && base == "sudo" {
		inner.chdir(r.directory(inner, p, f))
	}
	if f, ok := o.value("R", "chroot"); ok && base == "sudo" {
		p = r.otherRoot(s, p, f)
	}
	switch {
	case base == "sudo" && o.has("e", "edit"):
		return r.edited(s, p, c, n)
	case o.has("l", "list", "v", "validate", "V", "version", "K", "help") && base == "sudo":
		r.emitCall(s, p, c, nil)
		return output{}
	case n >= len(c.words) && o.has("i", "login", "s", "shell"):
		r.note(base + " starts an interactive shell")
	}
	if o.has("b", "background") && base == "sudo" {
		p.async = true
		r.out.Background = append(r.out.Background, base)
	}
	return r.inner(inner, p, c, base, n, o.open, false)
}

func (r *reader) sudoedit(s *scope, p place, c call) output {
	return r.edited(s, p, c, 1+parseOptions(c.words[1:], "CDghpRrTtUu").n)
}

func (r *reader) edited(s *scope, p place, c call, n int) output {
	r.emitCall(s, p, c, nil)
	for _, f := range c.words[min(n, len(c.words)):] {
		r.writeWord(s, p, f.word(f.lit), Change, "sudoedit", false)
	}
	return output{}
}

func (r *reader) su(s *scope, p place, c call) output {
	base := c.words[0].lit
	o, rest := anywhere(c.words[1:], "cgGsTuw", "command", "group", "supp-group", "shell", "session-command", "user", "whitelist-environment")
	r.note(base + " runs as another user")
	f, ok := o.value("c", "command", "session-command")
	if !ok {
		if base == "runuser" && o.has("u", "user") && len(rest) > 0 {
			r.wraps(s, p, c)
			next := c.with(rest)
			next.plain = true
			return r.run(s.child(), p.through(base), next)
		}
		if base == "sg" && len(rest) > 1 {
			f, ok = joinFields(rest[1:], " "), true
		}
	}
	if !ok {
		r.emitCall(s, p, c, nil)
		r.note(base + " starts an interactive shell")
		return output{}
	}
	r.wraps(s, p, c)
	at := p.through(base)
	at.dialect = POSIX
	return r.nested(r.process(s, nil, literal("sh")), at, f, c.text)
}

// env reads env: options, assignments, then the command.
func (r *reader) env(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "uCSP", "unset", "chdir", "split-string")
	inner := s.child()
	n := 1 + o.n
	if f, ok := o.value("S", "split-string"); ok {
		return r.envSplit(inner, p, c, f, n)
	}
	for n < len(c.words) && c.words[n].lit == "-" {
		n++
	}
	n += r.assignments(inner, p, c.words[min(n, len(c.words)):])
	if f, ok := o.value("C", "chdir"); ok {
		inner.chdir(r.directory(inner, p, f))
	}
	if f, ok := o.value("u", "unset"); ok {
		inner.set(f.lit, unset(), value{})
	}
	return r.inner(inner, p, c, "env", n, o.open, false)
}

// envSplit reads env -S: one word that env itself splits.
func (r *reader) envSplit(s *scope, p place, c call, f field, n int) output {
	if f.open != "" {
		r.opaque(c.text, "env splits "+f.open)
	}
	words := []field{literal("env")}
	if list, _, err := statements(POSIX, f.lit); err == nil && len(list) == 1 {
		if simple, ok := list[0].Cmd.(*syntax.CallExpr); ok {
			at := p.deeper()
			at.src = f.lit
			for _, a := range simple.Assigns {
				words = append(words, literal(at.text(a)))
			}
			words = append(words, r.tail(s, at, simple.Args)...)
		}
	} else {
		words = append(words, splitFields(f.lit, " \t\n")...)
	}
	next := c.with(append(words, c.words[min(n, len(c.words)):]...))
	if !r.enter(p, c.text) {
		return output{}
	}
	return r.env(s, p.deeper(), next)
}

// process is the scope of a new shell process: it has the environment, but neither
// functions nor variables that are not exported.
func (r *reader) process(s *scope, args []field, arg0 field) *scope {
	c := &scope{ways: s.ways, prevDir: s.prevDir, args: args, arg0: arg0, exports: s.exports, dirty: s.dirty, cond: s.cond, calls: s.calls}
	c.vars = map[string]value{}
	for _, a := range s.exports {
		if v, ok := s.find(a.Name); ok {
			c.vars[a.Name] = v
		} else if a.Known {
			c.vars[a.Name] = scalar(a.Value)
		} else {
			c.vars[a.Name] = unknown("the variable " + a.Name)
		}
	}
	for _, f := range args {
		if f.open != "" {
			c.moreArgs = f.open
		}
	}
	return c
}

// shell reads a shell that is given text, a file or its input.
func (r *reader) shell(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	o := parseOptions(plusOptions(c.words[1:]), "oO", "rcfile", "init-file", "emulate", "init-command", "command")
	rest := c.words[min(1+o.n, len(c.words)):]
	dialect := dialectOf(base)
	if f, ok := o.value("rcfile", "init-file"); ok {
		r.opaque(f.lit, "the shell reads that file first")
	}
	if o.has("c", "command") && len(rest) == 0 {
		if f, ok := o.value("command"); ok {
			rest = []field{f}
		}
	}
	at := p.through(base)
	at.dialect = dialect
	switch {
	case o.has("c", "command") && len(rest) > 0:
		return r.shellText(s, p, at, c, base, rest)
	case len(rest) > 0 && !o.has("s") && rest[0].lit != "-" && rest[0].lit != "/dev/stdin":
		if text, ok := r.holds(s, p, rest[0]); ok && dialect <= POSIX {
			r.note(base + " runs a script that the command itself writes")
			r.wraps(s, p, c)
			return r.text(r.process(s, rest[1:], rest[0]), at, text)
		}
		r.emitCall(s, p, c, nil)
		if strings.Contains(rest[0].open, "downloads") {
			r.note("runs a downloaded script: " + brief(c.text))
		}
		if rest[0].open != "" {
			r.opaque(c.text, base+" runs "+rest[0].open)
		} else {
			r.note(base + " runs the script " + brief(rest[0].lit))
		}
		return output{}
	}
	return r.shellInput(s, p, at, c, base, rest)
}

// plusOptions lets +o name count as an option.
func plusOptions(words []field) []field {
	out := append([]field(nil), words...)
	for i := range out {
		if len(out[i].lit) > 1 && out[i].lit[0] == '+' {
			out[i].lit = "-" + out[i].lit[1:]
			continue
		}
		if !strings.HasPrefix(out[i].lit, "-") {
			break
		}
	}
	return out
}

func (r *reader) shellText(s *scope, p, at place, c call, base string, rest []field) output {
	r.wraps(s, p, c)
	r.note("a nested shell: " + base + " -c")
	if at.dialect > POSIX {
		r.opaque(c.text, base+" has a language that is not read")
		return output{}
	}
	arg0 := literal(base)
	var args []field
	if len(rest) > 1 {
		arg0, args = rest[1], rest[2:]
	}
	return r.nested(r.process(s, args, arg0), at, rest[0], c.text)
}

// shellInput reads a shell that takes commands from its input.
func (r *reader) shellInput(s *scope, p, at place, c call, base string, rest []field) output {
	if !p.stdin.piped && !p.stdin.known {
		r.emitCall(s, p, c, nil)
		r.note(base + " starts an interactive shell")
		return output{}
	}
	if p.stdin.piped {
		r.note("text is piped into a shell: " + base)
	}
	if p.stdin.network != "" {
		r.note("runs a downloaded script: " + p.stdin.network + " feeds " + base)
	}
	if !p.stdin.known || at.dialect > POSIX {
		r.emitCall(s, p, c, nil)
		r.opaque(c.text, base+" runs what it is fed")
		return output{}
	}
	r.wraps(s, p, c)
	var args []field
	if len(rest) > 1 {
		args = rest[1:]
	}
	text := p.stdin.text
	at.stdin = silent()
	return r.text(r.process(s, args, literal(base)), at, text)
}

func baseName(name string) string {
	return name[strings.LastIndexByte(name, '/')+1:]
}

// DialectOf is the dialect in which to read commands for a shell, given its program.
func DialectOf(shell string) Dialect {
	return min(dialectOf(baseName(shell)), POSIX)
}

// dialectOf is the language of a shell; one that is not read is beyond POSIX.
func dialectOf(base string) Dialect {
	switch base {
	case "zsh", "rzsh":
		return Zsh
	case "bash", "rbash", "ksh", "ksh93", "mksh", "lksh", "oksh":
		return Bash
	case "fish", "csh", "tcsh", "pwsh":
		return POSIX + 1
	}
	return POSIX
}
