package shellread

import (
	"path"
	"strings"
)

// otherRoot is the place of a command whose root directory is another one of this
// machine.
func (r *reader) otherRoot(s *scope, p place, root field) place {
	host := ""
	if root.open == "" && !root.glob {
		host = hostPath(p, resolve(s.dir, root.lit))
	}
	p.elsewhere, p.mounts = "another root directory", nil
	if host != "" {
		p.mounts = []Mount{{Host: host, Inside: "/"}}
	}
	return p
}

// hostPath translates a path where a command runs to one of this machine; "" when it
// is none.
func hostPath(p place, name string) string {
	if p.elsewhere == "" || name == "" {
		return name
	}
	best := ""
	size := -1
	for _, m := range p.mounts {
		inside := strings.TrimSuffix(m.Inside, "/")
		if (name == inside || strings.HasPrefix(name, inside+"/")) && len(inside) > size {
			best, size = path.Join(m.Host, name[len(inside):]), len(inside)
		}
	}
	return best
}

// elsewhere reads the words of a command that runs under another root.
func (r *reader) elsewhere(s *scope, p, at place, c call, base string, words []field, dir string) output {
	r.opaque(c.text, "it runs in "+at.elsewhere)
	r.wraps(s, p, c)
	if len(words) == 0 {
		return output{}
	}
	inner := r.process(s, nil, literal("sh"))
	inner.ways = ways{dir: dir}
	next := c.with(words)
	next.plain, next.env = true, nil
	return r.run(inner, at.through(base), next)
}

func (r *reader) chroot(s *scope, p place, c call) output {
	o := parseOptions(c.words[1:], "ugG", "userspec", "groups")
	n := 1 + o.n
	if n >= len(c.words) {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	return r.elsewhere(s, p, r.otherRoot(s, p, c.words[n]), c, "chroot", c.words[n+1:], "/")
}

// ssh reads a command for another host.
func (r *reader) ssh(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	if base == "sshpass" {
		o := parseOptions(c.words[1:], "pfdP")
		return r.inner(s, p, c, base, 1+o.n, o.open, false)
	}
	o := parseOptions(c.words[1:], "BbcDEeFIiJLlMmOopQRSWw", "ssh", "port", "predict", "server")
	rest := c.words[min(1+o.n, len(c.words)):]
	r.sshOptions(s, p, c)
	if len(rest) == 0 {
		r.emitCall(s, p, c, nil)
		return output{}
	}
	host := rest[0].lit
	if rest[0].open != "" {
		host = rest[0].open
	}
	r.contact(base, host)
	after := parseOptions(rest[1:], "BbcDEeFIiJLlMmOopQRSWw")
	command := rest[1+after.n:]
	if len(command) == 0 {
		r.emitCall(s, p, c, nil)
		return output{network: base}
	}
	at := p.through(base)
	at.dialect = POSIX
	inner := r.process(s, nil, literal("sh"))
	name := host[strings.LastIndexByte(host, '@')+1:]
	if (name == "localhost" || strings.HasPrefix(name, "127.") || name == "::1") && !o.has("p", "J") {
		home, _ := r.lookup(s, p, "HOME").constant()
		inner.ways = ways{dir: home}
	} else {
		at.elsewhere, at.mounts, inner.ways = "host "+host, nil, ways{}
		r.opaque(c.text, "it runs on host "+host)
	}
	r.wraps(s, p, c)
	out := r.nested(inner, at, joinFields(command, " "), c.text)
	return output{network: base, names: out.names}
}

// sshOptions reads the -o settings that run programs here.
func (r *reader) sshOptions(s *scope, p place, c call) {
	for i, f := range c.words {
		text, ok := strings.CutPrefix(f.lit, "-o")
		if !ok {
			continue
		}
		if text == "" && i+1 < len(c.words) {
			text = c.words[i+1].lit
		}
		name, value, _ := strings.Cut(strings.TrimSpace(text), "=")
		if !strings.Contains(text, "=") {
			name, value, _ = strings.Cut(strings.TrimSpace(text), " ")
		}
		switch strings.ToLower(name) {
		case "proxycommand", "localcommand", "knownhostscommand":
			at := p.through("ssh")
			at.dialect = POSIX
			r.text(r.process(s, nil, literal("sh")), at, value)
		}
	}
}

// namespace reads programs that change what a command sees of this machine.
func (r *reader) namespace(s *scope, p place, c call) output {
	switch base := baseName(c.words[0].lit); base {
	case "unshare":
		o := parseOptions(c.words[1:], "SGRw", "root", "wd", "setuid", "setgid", "propagation")
		if f, ok := o.value("R", "root"); ok {
			return r.elsewhere(s, p, r.otherRoot(s, p, f), c, base, c.words[min(1+o.n, len(c.words)):], "/")
		}
		return r.inner(s, p, c, base, 1+o.n, o.open, false)
	case "nsenter":
		o := parseOptions(c.words[1:], "tSG", "target", "setuid", "setgid")
		if f, ok := o.value("t", "target"); ok && f.lit != "1" {
			at := p
			at.elsewhere, at.mounts = "the namespaces of another process", nil
			return r.elsewhere(s, p, at, c, base, c.words[min(1+o.n, len(c.words)):], "")
		}
		return r.inner(s, p, c, base, 1+o.n, o.open, false)
	case "bwrap":
		mounts, n := r.bwrapMounts(s, p, c.words)
		at := p
		at.elsewhere, at.mounts = "a sandbox", mounts
		return r.elsewhere(s, p, at, c, base, c.words[n:], "/")
	default:
		o := parseOptions(c.words[1:], "rbwDSMuRm", "rootfs", "bind", "cwd", "directory", "machine", "user", "image")
		root, ok := o.value("r", "D", "R", "S", "rootfs", "directory")
		if !ok {
			root = literal("/")
		}
		at := r.otherRoot(s, p, root)
		if f, given := o.value("b", "bind"); given {
			at.mounts = append(at.mounts, r.mount(s, f)...)
		}
		return r.elsewhere(s, p, at, c, base, c.words[min(1+o.n, len(c.words)):], "/")
	}
}

func (r *reader) bwrapMounts(s *scope, p place, words []field) ([]Mount, int) {
	var mounts []Mount
	n := 1
	for n < len(words) && strings.HasPrefix(words[n].lit, "--") {
		name := strings.TrimSuffix(words[n].lit[2:], "-try")
		args := 1
		switch {
		case name == "":
			return mounts, n + 1
		case name == "bind", name == "dev-bind":
			if n+2 < len(words) {
				mounts = append(mounts, Mount{Host: hostPath(p, resolve(s.dir, words[n+1].lit)), Inside: path.Clean("/" + words[n+2].lit)})
			}
			args = 2
		case name == "ro-bind", name == "symlink", name == "setenv", name == "file", name == "bind-data", name == "ro-bind-data", name == "chmod":
			args = 2
		case strings.HasPrefix(name, "unshare-"), name == "share-net", name == "die-with-parent", name == "new-session", name == "clearenv", name == "as-pid-1":
			args = 0
		}
		n += 1 + args
	}
	return mounts, min(n, len(words))
}

// mount reads HOST:INSIDE[:options].
func (r *reader) mount(s *scope, f field) []Mount {
	parts := strings.Split(f.lit, ":")
	if f.open != "" || parts[0] == "" {
		return nil
	}
	inside := parts[0]
	if len(parts) > 1 {
		inside = parts[1]
	}
	if len(parts) > 2 && strings.Contains(","+parts[2]+",", ",ro,") {
		return nil
	}
	if !strings.ContainsAny(parts[0][:1], "/.~") {
		return nil // a named volume
	}
	host := resolve(s.dir, parts[0])
	if host == "" || !strings.HasPrefix(inside, "/") {
		return nil
	}
	return []Mount{{Host: host, Inside: path.Clean(inside)}}
}

// containerFlags are the long options of run and exec that take no value.
const containerFlags = " detach rm init interactive tty privileged read-only publish-all no-healthcheck oom-kill-disable sig-proxy quiet help no-deps service-ports use-aliases build remove-orphans quiet-pull no-TTY stdin replace "

// container reads the command that runs in a container or virtual machine.
func (r *reader) container(s *scope, p place, c call) output {
	base := baseName(c.words[0].lit)
	sub, n := -1, len(c.words)
	for i, f := range c.words[1:] {
		switch f.lit {
		case "exec", "run", "shell", "ssh", "create", "debug":
			sub, n = i+1, i+2
		}
		if sub > 0 || f.lit == "--" {
			break
		}
	}
	if sub < 0 {
		r.containerOther(s, p, c, base)
		return output{}
	}
	at := p
	b := box{dir: "/"}
	n = b.options(r, s, c.words, n)
	at.elsewhere, at.mounts = "a container", b.mounts
	rest := c.words[min(n, len(c.words)):]
	if len(rest) > 0 && rest[0].lit != "--" {
		rest = rest[1:] // the image, container, pod or service
		skip := box{}
		m := 0
		if base == "kubectl" || base == "oc" || base == "lxc" || base == "incus" || base == "multipass" || base == "vagrant" {
			m = skip.options(r, s, rest, 0)
		}
		b.command = firstOf(b.command, skip.command)
		rest = rest[min(m, len(rest)):]
	}
	if len(rest) > 0 && rest[0].lit == "--" {
		rest = rest[1:]
	}
	if b.entry != nil {
		rest = append([]field{*b.entry}, rest...)
	}
	if b.command != nil && base == "vagrant" {
		r.opaque(c.text, "it runs in "+at.elsewhere)
		r.wraps(s, p, c)
		at = at.through(base)
		at.dialect = POSIX
		inner := r.process(s, nil, literal("sh"))
		inner.ways = ways{}
		return r.nested(inner, at, *b.command, c.text)
	}
	return r.elsewhere(s, p, at, c, base, rest, b.dir)
}

func firstOf(a, b *field) *field {
	if a != nil {
		return a
	}
	return b
}

// box is what the options of a container say.
type box struct {
	mounts  []Mount
	dir     string
	entry   *field
	command *field // given as text, as in vagrant ssh -c
}

// options reads the options from word n on and returns where they end.
func (b *box) options(r *reader, s *scope, words []field, n int) int {
	for n < len(words) {
		text := words[n].lit
		if len(text) < 2 || text[0] != '-' || text == "--" {
			return n
		}
		n++
		name, value, given := strings.Cut(strings.TrimLeft(text, "-"), "=")
		f := literal(value)
		f.open = words[n-1].open
		if strings.HasPrefix(text, "--") {
			if !given && !strings.Contains(containerFlags, " "+name+" ") && n < len(words) {
				f = words[n]
				n++
			}
			b.set(r, s, name, f)
			continue
		}
		n = b.short(r, s, words, n, text[1:])
	}
	return n
}

func (b *box) short(r *reader, s *scope, words []field, n int, letters string) int {
	for i := 0; i < len(letters); i++ {
		if !strings.ContainsRune("acehlmpuvwn", rune(letters[i])) {
			continue
		}
		f := literal(strings.TrimPrefix(letters[i+1:], "="))
		if f.lit == "" && n < len(words) {
			f = words[n]
			n++
		}
		b.set(r, s, letters[i:i+1], f)
		break
	}
	return n
}

func (b *box) set(r *reader, s *scope, name string, f field) {
	switch name {
	case "v", "volume":
		b.mounts = append(b.mounts, r.mount(s, f)...)
	case "mount":
		b.mounts = append(b.mounts, r.mountFields(s, f)...)
	case "w", "workdir", "cwd":
		b.dir = path.Clean("/" + f.lit)
	case "privileged", "device":
		b.mounts = append(b.mounts, Mount{Host: "/dev", Inside: "/dev"})
	case "entrypoint":
		b.entry = &f
	case "c", "command":
		b.command = &f
	}
}

// mountFields reads type=bind,source=…,target=….
func (r *reader) mountFields(s *scope, f field) []Mount {
	host, inside := "", ""
	for _, part := range strings.Split(f.lit, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "source", "src":
			host = value
		case "target", "destination", "dst":
			inside = value
		case "readonly", "ro":
			return nil
		case "type":
			if value != "bind" {
				return nil
			}
		}
	}
	if f.open != "" || host == "" || inside == "" {
		return nil
	}
	return []Mount{{Host: resolve(s.dir, host), Inside: path.Clean("/" + inside)}}
}

// containerOther lists the subcommands that run nothing given here.
func (r *reader) containerOther(s *scope, p place, c call, base string) {
	r.emitCall(s, p, c, nil)
	for _, f := range c.words[1:] {
		switch f.lit {
		case "pull", "push", "login", "build", "search", "up":
			r.contact(base, "")
			return
		}
	}
	if base == "kubectl" || base == "oc" {
		r.contact(base, "")
	}
}
