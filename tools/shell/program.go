package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zcoder/internal/shellread"
)

// Program is the shell that runs commands. The zero value is /bin/sh.
type Program struct {
	name  string
	path  string
	flags []string // the last one takes the command
}

// shells in the order of preference. Their flags keep start-up files out, so that
// what was shown is what runs.
func shells() []Program {
	return []Program{
		{name: "zsh", flags: []string{"-f", "-c"}},
		{name: "bash", flags: []string{"--noprofile", "--norc", "-c"}},
		{name: "sh", flags: []string{"-c"}},
	}
}

// Find returns the first of zsh, bash and sh in a PATH. Entries of the PATH that are
// not absolute are passed over. With none in it, it is /bin/sh.
func Find(path string) Program {
	for _, p := range shells() {
		for _, dir := range filepath.SplitList(path) {
			p.path = filepath.Join(dir, p.name)
			if filepath.IsAbs(dir) && isProgram(p.path) {
				return p
			}
		}
	}
	return Program{}
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Argv returns the program and flags that a command is appended to.
func (p Program) Argv() []string {
	if p.path == "" {
		return []string{"/bin/sh", "-c"}
	}
	return append([]string{p.path}, p.flags...)
}

// Name returns the shell's name: zsh, bash or sh.
func (p Program) Name() string {
	if p.name == "" {
		return "sh"
	}
	return p.name
}

// Dialect returns the language in which a command for this shell is read.
func (p Program) Dialect() shellread.Dialect {
	switch p.Name() {
	case "zsh":
		return shellread.Zsh
	case "bash":
		return shellread.Bash
	default:
		return shellread.POSIX
	}
}

// Note names the shell with its flags and what is peculiar about it, for a prompt.
func (p Program) Note() string {
	note := strings.Join(append([]string{p.Name()}, p.Argv()[1:]...), " ")
	if p.Name() == "zsh" {
		note += " (a glob that matches nothing is an error; quote it)"
	}
	return note
}

// dropped are variables that make a shell run something first or a program ask in
// another window.
var dropped = [...]string{
	"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "OLDPWD",
	"SUDO_ASKPASS", "SSH_ASKPASS", "GIT_ASKPASS",
	"FORCE_COLOR", "CLICOLOR_FORCE",
}

// added make programs that want a person fail at once instead of waiting.
var added = [...]string{
	"ZCODER_COMMAND=1", // tells a zcoder that an agent started it
	"TERM=dumb",
	"PAGER=cat", "MANPAGER=cat", "GIT_PAGER=cat", "SYSTEMD_PAGER=",
	"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false",
	"GIT_TERMINAL_PROMPT=0", "SSH_ASKPASS_REQUIRE=never", "DEBIAN_FRONTEND=noninteractive",
	// Vim without a terminal waits for keys from standard error. An edit that its
	// arguments describe in full ends before this event.
	"VIMINIT=autocmd VimEnter * cquit",
}

// CommandEnv returns the environment of the commands that the model issues, made
// from the user's: without what runs code at the start of a shell, and so that
// programs that want a terminal fail at once. It does not change env.
func CommandEnv(env []string) []string {
	out := make([]string, 0, len(env)+len(added))
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "BASH_FUNC_") || slices.Contains(dropped[:], name) || isAdded(name) {
			continue
		}
		out = append(out, v)
	}
	return append(out, added[:]...)
}

func isAdded(name string) bool {
	return slices.ContainsFunc(added[:], func(v string) bool { return strings.HasPrefix(v, name+"=") })
}
