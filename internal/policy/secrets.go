package policy

import (
	"path"
	"slices"
	"strings"

	"zcoder/internal/shellread"
)

// secretSamples are names that a pattern may expand to. A pattern that matches one of
// them may read a secret.
var secretSamples = [...]string{
	".env", ".env.local", ".env.production", ".envrc", "prod.env", "id_rsa", "id_ecdsa", "id_ed25519", "server.pem", "server.key", "cert.p12", "cert.pfx",
	"credentials", "credentials.json", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".pgpass", "secrets.yml", "secrets.json", "terraform.tfstate",
	"prod.tfvars", ".bash_history", ".zsh_history", "shadow", "kubeconfig",
}

// private says which secret file or file of zcoder's own a program may read by its
// arguments, or "". What a rule names as a path of its own does not count.
func (c *considered) private(r *rule, cmd shellread.Command) string {
	deep := hasOption(cmd.Words, "-r") || hasOption(cmd.Words, "-R") || hasOption(cmd.Words, "--recursive")
	for _, w := range cmd.Words[min(1, len(cmd.Words)):] {
		for _, name := range c.placed(cmd, operandNames(w.Value)) {
			if len(r.paths) > 0 && c.facts.matchesPath(r.paths, path.Clean(name), false) {
				continue
			}
			if c.facts.private(name, deep) || w.Pattern != "" && c.facts.mayBePrivate(name) {
				return name
			}
		}
	}
	return ""
}

// placed makes names absolute in each directory that a program may run in.
func (c *considered) placed(cmd shellread.Command, names []string) []string {
	var out []string
	for _, name := range names {
		if path.IsAbs(name) || cmd.Dir == "" {
			out = append(out, name)
		}
		for _, dir := range append([]string{cmd.Dir}, cmd.OtherDirs...) {
			if dir != "" && !path.IsAbs(name) {
				out = append(out, path.Join(dir, name))
			}
		}
	}
	return out
}

// operandNames lists the file names that one argument may hold: itself, the value of an
// option in the same word, and a path in a revision.
func operandNames(text string) []string {
	out := []string{strings.TrimPrefix(text, "@")}
	if strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && len(text) > 2 {
		out = append(out, text[2:])
	}
	for _, sep := range []string{"=", ":"} {
		if _, value, ok := strings.Cut(text, sep); ok {
			out = append(out, strings.TrimPrefix(value, "@"))
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// private reports whether a name is of a secret file or of zcoder's own; deep, also
// when it is of a directory that holds zcoder's own.
func (f Facts) private(name string, deep bool) bool {
	name = path.Clean(name)
	if dir := strings.ToLower(f.SettingsDir); dir != "" {
		if low := strings.ToLower(name); inside(dir, low) || deep && inside(low, dir) {
			return true
		}
	}
	return f.Secret != nil && f.Secret(name) != ""
}

// mayBePrivate reports whether a pattern, whose directories are literal or not, may
// expand to a private name.
func (f Facts) mayBePrivate(pattern string) bool {
	last := path.Base(pattern)
	for _, sample := range secretSamples {
		if ok, err := path.Match(last, sample); err == nil && !ok {
			continue
		}
		if strings.HasPrefix(sample, ".") && !strings.HasPrefix(last, ".") {
			continue
		}
		if f.private(path.Join(path.Dir(pattern), sample), false) {
			return true
		}
	}
	return f.SettingsDir != "" && reaches(strings.ToLower(pattern), components(strings.ToLower(f.SettingsDir)))
}

// reaches reports whether a pattern matches a directory or something in it.
func reaches(pattern string, dir []string) bool {
	parts := components(pattern)
	for i, part := range parts[:min(len(parts), len(dir))] {
		if part == "**" {
			return true
		}
		if ok, err := path.Match(part, dir[i]); err == nil && !ok {
			return false
		}
	}
	return len(parts) >= len(dir)
}

// starts says which option of a program behind a rule's own words makes it run what
// settings name, or "".
func starts(cmd shellread.Command, words int) string {
	if path.Base(cmd.Program) != "git" {
		return ""
	}
	for _, w := range cmd.Words[min(words, len(cmd.Words)):] {
		given, _, _ := strings.Cut(w.Value, "=")
		if given == "--" {
			return ""
		}
		if strings.HasPrefix(given, "-O") && cmd.Words[1].Value == "grep" {
			return w.Value
		}
		for _, option := range [...]string{"--ext-diff", "--textconv", "--filters", "--show-signature", "--open-files-in-pager", "--exec", "--upload-pack", "--receive-pack", "--extcmd", "--tool", "--gpg-sign", "--edit"} {
			if len(given) > 4 && strings.HasPrefix(option, given) {
				return w.Value
			}
		}
	}
	return ""
}
