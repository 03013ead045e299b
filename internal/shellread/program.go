package shellread

import (
	"slices"
	"strings"
)

// program lists a program that is not followed further, with its effects.
func (r *reader) program(s *scope, p place, c call, base string) output {
	if text, ok := r.holds(s, p, c.words[0]); ok && strings.Contains(c.words[0].lit, "/") {
		r.note(brief(c.words[0].lit) + " is a script that the command itself writes")
		r.wraps(s, p, c)
		at := p.through(c.words[0].lit)
		at.dialect = POSIX
		return r.text(r.process(s, c.words[1:], c.words[0]), at, text)
	}
	r.emitCall(s, p, c, nil)
	args := c.words[1:]
	switch base {
	case "exit", "return", "break", "continue", "printf", "wait", "ulimit":
		for _, f := range args {
			r.evaluated(s, p, f.lit)
		}
	}
	r.runsByOption(s, p, c, base, args)
	r.files(s, p, c, base, args)
	r.talks(base, args)
	if isInterpreter(base) {
		return r.interpreter(s, p, c, base, args)
	}
	r.remarks(p, c, base, args)
	r.suspect(c, base, args)
	return r.prints(s, p, base, args)
}

// writeAll records that every operand is written.
func (r *reader) writeAll(s *scope, p place, by string, op Op, operands []field) {
	for _, f := range operands {
		r.writeWord(s, p, f.word(f.lit), op, by, false)
	}
}

// files records the files that a program writes because of what it is.
func (r *reader) files(s *scope, p place, c call, base string, args []field) {
	switch base {
	case "tee", "gtee", "sponge":
		o, rest := anywhere(args, "")
		op := Overwrite
		if o.has("a", "append") {
			op = Append
		}
		files := len(r.out.Writes)
		r.writeAll(s, p, base, op, rest)
		if p.stdin.piped {
			r.makes(s, p, slices.Clone(r.out.Writes[files:]), p.stdin)
		}
	case "dd", "gdd", "dcfldd":
		for _, f := range args {
			if name, ok := strings.CutPrefix(f.lit, "of="); ok {
				g := f
				g.lit, g.pat = name, strings.TrimPrefix(f.pat, "of=")
				r.writeWord(s, p, g.word(f.lit), Overwrite, base, false)
			}
		}
	case "rm", "grm", "srm", "rmdir", "unlink", "shred", "gshred", "trash", "wipe":
		_, rest := anywhere(args, "ns")
		op := Remove
		if strings.HasSuffix(base, "shred") {
			op = Overwrite
		}
		r.writeAll(s, p, base, op, rest)
		r.listed(c, base, rest)
	case "cp", "gcp", "mv", "gmv", "install", "ginstall", "ln", "gln", "rsync", "scp", "ditto", "pv":
		r.copies(s, p, base, args)
	case "truncate", "touch", "mkdir", "mkfifo", "mknod":
		_, rest := anywhere(args, "srdtmc", "size", "reference", "date", "mode")
		r.writeAll(s, p, base, Change, rest)
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "chflags", "xattr":
		_, rest := anywhere(args, "mMxX", "reference", "modify")
		r.writeAll(s, p, base, Change, rest[min(1, len(rest)):])
	case "patch", "gpatch":
		r.writeAll(s, p, base, Change, []field{literal(".")})
	case "wipefs", "blkdiscard", "mkswap", "mke2fs", "sgdisk", "sfdisk", "fdisk", "parted", "cfdisk", "gdisk", "badblocks":
		_, rest := anywhere(args, "LUpvstbcdnNaoO")
		r.writeAll(s, p, base, Change, rest[:min(1, len(rest))])
	case "gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "zip", "7z":
		o, rest := anywhere(args, "S")
		if !o.has("c", "stdout", "t", "l") {
			r.writeAll(s, p, base, Change, rest)
		}
	default:
		r.archives(s, p, base, args)
		r.downloads(s, p, base, args)
		r.filesByOption(s, p, base, args)
	}
}

// listed remarks on a list of files to remove that a command prints.
func (r *reader) listed(c call, base string, operands []field) {
	for _, f := range operands {
		if f.from&fromSubstitution != 0 {
			r.note("the list of files that " + base + " gets comes from a command: run that command alone first to see it")
			return
		}
	}
}

// copies records what cp, mv and their kin write.
func (r *reader) copies(s *scope, p place, base string, args []field) {
	takes := "tSgmo"
	switch base {
	case "rsync":
		takes = "eBfTM"
	case "scp":
		takes = "cDFiJloPSX"
	case "pv":
		takes = "LBNsDiwHF"
	}
	o, rest := anywhere(args, takes, "target-directory", "suffix", "group", "mode", "owner", "rsh", "exclude", "include", "filter", "files-from", "exclude-from", "include-from", "backup-dir", "temp-dir", "compare-dest", "link-dest", "log-file", "password-file", "port", "bwlimit", "timeout", "max-size", "min-size", "rsync-path", "chmod", "chown")
	if base == "install" && o.has("d", "directory") {
		r.writeAll(s, p, base, Change, rest)
		return
	}
	sources := rest
	if dir, ok := o.value("t", "target-directory"); ok && base != "rsync" && base != "scp" {
		r.writeAll(s, p, base, Overwrite, []field{dir})
	} else if len(rest) > 1 {
		target := rest[len(rest)-1]
		sources = rest[:len(rest)-1]
		if (base == "rsync" || base == "scp") && hostOf(target.lit) != "" {
			target = field{}
		}
		if target.lit != "" || target.open != "" {
			r.writeAll(s, p, base, Overwrite, []field{target})
		}
	}
	if strings.HasSuffix(base, "mv") {
		r.writeAll(s, p, base, Remove, sources)
	}
	if f, ok := o.value("backup-dir", "log-file"); ok {
		r.writeWord(s, p, f.word(f.lit), Overwrite, base, true)
	}
}

// archives records what packers write.
func (r *reader) archives(s *scope, p place, base string, args []field) {
	switch base {
	case "tar", "gtar", "bsdtar":
		if len(args) > 0 && !strings.HasPrefix(args[0].lit, "-") {
			first := args[0]
			first.lit = "-" + first.lit
			args = append([]field{first}, args[1:]...)
		}
		o, _ := anywhere(args, "fCTXbIgKNVHFL", "file", "directory", "files-from", "exclude-from", "exclude", "use-compress-program", "checkpoint-action", "to-command")
		file, given := o.value("f", "file")
		if o.has("x", "extract", "get") {
			dir, ok := o.value("C", "directory")
			if !ok {
				dir = literal(".")
			}
			r.writeAll(s, p, base, Change, []field{dir})
		} else if given && o.has("c", "create", "r", "append", "u", "update", "A", "delete") && file.lit != "-" {
			r.writeAll(s, p, base, Overwrite, []field{file})
		}
	case "unzip", "cpio", "unrar":
		o, _ := anywhere(args, "dDFOIE")
		dir, ok := o.value("d", "D", "directory")
		if !ok {
			dir = literal(".")
		}
		if !o.has("l", "t", "p", "v") {
			r.writeAll(s, p, base, Change, []field{dir})
		}
	}
	if strings.HasPrefix(base, "mkfs") {
		_, rest := anywhere(args, "tLUbmOEiIJNCTGgdoMnFsScfRrhBAP", "type")
		r.writeAll(s, p, base, Change, rest[:min(1, len(rest))])
	}
}

// downloads records where curl and wget put what they fetch.
func (r *reader) downloads(s *scope, p place, base string, args []field) {
	switch base {
	case "curl":
		o, _ := anywhere(args, "oTdFHXuAebcCDEKmrtxyYzQUw", "output", "output-dir", "dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "data", "header", "request", "user", "config", "form", "url", "proxy", "max-time", "connect-timeout", "retry", "cookie", "user-agent", "referer", "upload-file", "cacert", "cert", "key", "write-out", "data-binary", "data-raw", "data-urlencode", "json", "range", "etag-save", "hsts", "alt-svc", "libcurl")
		r.aside(s, p, base, o, "dump-header", "D", "cookie-jar", "c", "trace", "trace-ascii", "stderr", "etag-save", "hsts", "alt-svc", "libcurl")
		for _, name := range []string{"o", "output", "output-dir"} {
			if f, ok := o.value(name); ok {
				r.writeAll(s, p, base, Overwrite, []field{f})
			}
		}
		if o.has("O", "remote-name", "remote-name-all") {
			r.writeAll(s, p, base, Overwrite, []field{literal(".")})
		}
	case "wget":
		o, _ := anywhere(args, "OPoaiUTtwQAR", "output-document", "directory-prefix", "output-file", "append-output", "post-data", "header", "user-agent", "input-file", "timeout", "tries")
		r.aside(s, p, base, o, "o", "a", "output-file", "append-output")
		target := literal(".")
		if f, ok := o.value("O", "output-document", "P", "directory-prefix"); ok {
			target = f
		}
		if target.lit != "-" {
			r.writeAll(s, p, base, Overwrite, []field{target})
		}
	}
}

// aside records the files that options of a program name.
func (r *reader) aside(s *scope, p place, base string, o options, names ...string) {
	for _, name := range names {
		if f, ok := o.value(name); ok && (f.lit != "" || f.open != "") && f.lit != "-" {
			r.writeWord(s, p, f.word(f.lit), Overwrite, base, true)
		}
	}
}

// filesByOption records files that an option makes a program write.
func (r *reader) filesByOption(s *scope, p place, base string, args []field) {
	switch base {
	case "sort", "gsort":
		o, _ := anywhere(args, "oktSTz", "output", "compress-program", "key", "temporary-directory", "files0-from", "batch-size", "buffer-size", "field-separator", "parallel", "random-source", "sort")
		r.aside(s, p, base, o, "o", "output")
	case "sed", "gsed":
		r.sed(s, p, args)
	case "perl", "ruby":
		for i, f := range args {
			if strings.HasPrefix(f.lit, "-") && !strings.HasPrefix(f.lit, "--") && strings.Contains(strings.SplitN(f.lit, "e", 2)[0], "i") {
				_, rest := anywhere(args[i+1:], "eE")
				r.writeAll(s, p, base, Change, rest)
				return
			}
		}
	case "tree", "iconv", "nm", "objdump":
		o, _ := anywhere(args, "oLPIftc", "output")
		r.aside(s, p, base, o, "o", "output")
	case "file":
		o, _ := anywhere(args, "mfFeP", "magic-file", "files-from")
		if o.has("C", "compile") {
			r.writeWord(s, p, literal("magic.mgc").word("-C"), Overwrite, base, true)
		}
	case "xxd", "uniq", "guniq":
		_, rest := anywhere(args, "cglosnfw", "cols", "skip-fields", "skip-chars", "check-chars")
		if len(rest) > 1 {
			r.writeWord(s, p, rest[1].word(rest[1].lit), Overwrite, base, true)
		}
	case "history", "fc":
		o, rest := anywhere(args, "d")
		if o.has("a", "w", "A", "W") && len(rest) > 0 {
			r.writeWord(s, p, rest[0].word(rest[0].lit), Append, base, true)
		}
	}
}

// sed records files that sed edits in place, and what its script writes or runs.
func (r *reader) sed(s *scope, p place, args []field) {
	o, rest := anywhere(args, "efl", "expression", "file", "line-length")
	script, given := o.value("e", "expression")
	if !given && !o.has("f", "file") && len(rest) > 0 {
		script, rest = rest[0], rest[1:]
	}
	inPlace := o.has("in-place")
	for key := range o.vals {
		inPlace = inPlace || key == "i"
	}
	for _, f := range args {
		inPlace = inPlace || strings.HasPrefix(f.lit, "-i")
	}
	if inPlace {
		r.writeAll(s, p, "sed", Change, rest)
	}
	if o.has("f", "file") {
		r.note("sed runs a script from a file")
	}
	r.sedScript(s, p, script)
}

// sedScript finds the commands w, W and e, and the flags w and e of s.
func (r *reader) sedScript(s *scope, p place, script field) {
	for _, line := range strings.FieldsFunc(script.lit, func(c rune) bool { return c == ';' || c == '\n' }) {
		line = strings.TrimLeft(strings.TrimSpace(line), "0123456789,$!{ ~+")
		if strings.HasPrefix(line, "/") {
			if end := strings.IndexByte(line[1:], '/'); end >= 0 {
				line = strings.TrimLeft(line[end+2:], "0123456789,$!{ I")
			}
		}
		if line == "" {
			continue
		}
		flags := ""
		switch line[0] {
		case 's':
			if parts := strings.Split(line, line[1:min(2, len(line))]); len(line) > 1 && len(parts) == 4 {
				flags = parts[3]
			} else if len(line) > 1 && len(parts) > 4 {
				flags = strings.Join(parts[3:], line[1:2])
			}
		case 'w', 'W', 'e':
			flags = line
		}
		if at := strings.IndexAny(flags, "wW"); at >= 0 && strings.Trim(flags[:at], "0123456789gpIiMme") == "" {
			name := strings.TrimSpace(flags[at+1:])
			r.writeWord(s, p, literal(name).word(name), Overwrite, "sed", true)
			continue
		}
		if at := strings.IndexByte(flags, 'e'); at >= 0 && strings.Trim(flags[:at], "0123456789gpIiMm") == "" {
			if text := strings.TrimSpace(flags[at+1:]); text != "" && line[0] == 'e' {
				at := p.through("sed")
				at.dialect = POSIX
				r.text(s.child(), at, text)
				continue
			}
			r.opaque(script.lit, "sed runs text as a command")
		}
	}
}

// talks records programs that use the network.
func (r *reader) talks(base string, args []field) {
	sub := ""
	for _, f := range args {
		if !strings.HasPrefix(f.lit, "-") && !strings.HasPrefix(f.lit, "+") {
			sub = f.lit
			break
		}
	}
	in := func(subs ...string) bool { return slices.Contains(subs, sub) }
	switch base {
	case "curl", "wget", "aria2c", "http", "https", "xh", "curlie", "axel", "lynx", "w3m", "links", "httpie":
		r.contact(base, urlHost(args))
	case "scp", "sftp":
		r.contact(base, hostIn(args))
	case "rsync":
		if host := hostIn(args); host != "" {
			r.contact(base, host)
		}
	case "nc", "ncat", "netcat", "telnet", "ftp", "lftp", "tftp", "socat", "ping", "ping6", "dig", "host", "nslookup", "drill", "traceroute", "tracepath", "mtr", "nmap", "whois", "ssh-copy-id", "ssh-keyscan", "ntpdate", "iperf", "iperf3", "websocat", "grpcurl", "ztcp", "zftp", "smbclient", "mount.nfs":
		r.contact(base, sub)
	case "pip", "pip2", "pip3", "pipx", "uv", "poetry", "pipenv", "pdm", "conda", "mamba", "easy_install", "gem", "bundle", "composer", "cpan", "cpanm", "luarocks", "opam", "stack", "cabal", "mix", "pub", "flutter", "dotnet", "nuget", "mvn", "gradle", "sbt", "lein", "nix", "nix-env", "guix", "brew", "port", "snap", "flatpak", "apt", "apt-get", "aptitude", "dnf", "yum", "zypper", "apk", "pacman", "yay", "emerge", "xbps-install", "rpm", "pkg", "rustup", "asdf", "mise", "sdk", "nvm", "pyenv", "rbenv", "volta", "helm", "terraform", "tofu", "ansible", "ansible-playbook":
		if base == "easy_install" || base == "cpanm" || base == "nix-env" || strings.HasPrefix(base, "ansible") ||
			in("install", "add", "update", "upgrade", "dist-upgrade", "full-upgrade", "download", "sync", "lock", "publish", "push", "pull", "fetch", "search", "remote", "get", "restore", "build", "init", "apply", "plan", "dependency:resolve", "create", "tool", "self", "tap", "-S", "-Sy", "-Syu", "deps.get", "require", "run", "refresh") || strings.HasPrefix(base, "pacman") {
			r.contact(base+" "+sub, "")
		}
	case "npm", "pnpm", "yarn", "bun", "deno":
		if sub == "" && base == "yarn" || in("install", "i", "add", "ci", "update", "up", "upgrade", "publish", "audit", "outdated", "create", "init", "dlx", "x", "login", "view", "info", "cache") {
			r.contact(strings.TrimSpace(base+" "+sub), "")
		}
	case "go":
		if in("get", "install", "mod", "run", "build", "test", "generate", "work") && (sub == "get" || sub == "install" || sub == "mod") {
			r.contact("go "+sub, "")
		}
	case "cargo":
		if in("install", "add", "update", "fetch", "publish", "search", "login", "owner", "yank") {
			r.contact("cargo "+sub, "")
		}
	case "gh", "glab", "hub", "hg", "svn", "aws", "gcloud", "gsutil", "az", "doctl", "flyctl", "fly", "heroku", "vercel", "netlify", "wrangler", "firebase", "s3cmd", "rclone", "mc", "restic", "borg", "ollama", "huggingface-cli", "hf", "kaggle", "twine", "gpg", "openssl":
		if base != "gpg" && base != "openssl" || strings.Contains(joinFields(args, " ").lit, "s_client") || strings.Contains(joinFields(args, " ").lit, "keyserver") {
			r.contact(strings.TrimSpace(base+" "+sub), "")
		}
	case "sendmail", "mail", "mailx", "mutt", "msmtp", "swaks":
		r.contact(base, "")
	}
}

// urlHost is the host that curl and its kin talk to: a URL may lack its scheme.
func urlHost(args []field) string {
	if h := hostIn(args); h != "" {
		return h
	}
	last := ""
	for _, f := range args {
		if f.lit == "" || strings.HasPrefix(f.lit, "-") {
			continue
		}
		host, _, _ := strings.Cut(f.lit, "/")
		if strings.Contains(host, ".") {
			return host
		}
		last = host
	}
	return last
}

// remarks notes programs that a person should look at twice.
func (r *reader) remarks(p place, c call, base string, args []field) {
	switch base {
	case "reboot", "shutdown", "halt", "poweroff", "telinit", "init":
		r.note(base + " stops or restarts the machine")
	case "date":
		for _, f := range args {
			if strings.HasPrefix(f.lit, "-s") || strings.HasPrefix(f.lit, "--s") {
				r.note("date sets the clock")
			}
		}
	case "make", "gmake", "ninja", "just", "task", "rake", "npm", "yarn", "pnpm", "tox", "nox", "bazel", "cmake", "meson":
		r.note(base + " runs what the project's own files say")
	}
	if strings.Contains(c.words[0].lit, "/") && !strings.HasPrefix(c.words[0].lit, "/") {
		r.note("runs the file " + brief(c.words[0].lit))
	}
}

// suspect reports a program that may be a wrapper: one of its arguments, but not the
// first, is a shell or a destructive program followed by options.
func (r *reader) suspect(c call, base string, args []field) {
	if talksAbout(base) {
		return
	}
	for i, f := range args {
		switch baseName(f.lit) {
		case "rm", "dd", "shred", "mkfs", "wipefs", "sh", "bash", "zsh", "dash", "sudo", "eval":
			if i+1 < len(args) && (strings.HasPrefix(args[i+1].lit, "-") || f.lit == "dd" || f.lit == "sudo" || f.lit == "eval") {
				r.opaque(c.text, base+" may run "+f.lit)
				return
			}
		}
	}
}

// talksAbout lists programs whose arguments may well be names of programs.
func talksAbout(base string) bool {
	switch base {
	case "echo", "printf", "print", "grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "man", "which", "whereis", "type", "apropos", "info", "tldr", "help", "apt", "apt-get", "brew", "dnf", "yum", "apk", "pacman", "dpkg", "rpm", "kill", "killall", "pkill", "pgrep", "ps", "pidof", "ls", "cat", "test", "[", "cp", "mv", "ln", "rm", "diff", "touch", "mkdir", "chmod", "chown", "file", "stat", "hg", "svn", "docker", "read", "set", "export", "alias", "whatis", "logger", "say", "notify-send", "sed", "awk", "expr", "basename", "dirname", "readlink", "realpath", "sort", "comm", "cut", "tr":
		return true
	}
	return false
}
