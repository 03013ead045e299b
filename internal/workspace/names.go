package workspace

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Protected reports whether tools may never write rel, whether or not it exists:
// one of its components is ".git" to some file system. Letter case, Unicode
// normalisation, characters that draw nothing, trailing dots and blanks, the short
// name "git~1" and stream suffixes do not hide it.
func Protected(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if maybeGit(part) && slices.ContainsFunc(strings.Split(part, `\`), isGit) {
			return true
		}
	}
	return false
}

// maybeGit is a cheap test that lets most names pass.
func maybeGit(part string) bool {
	return part != "" && (part[0] == '.' || part[0] == 'g' || part[0] == 'G' || part[0] >= 0x7f ||
		part[0] < ' ' || strings.IndexByte(part, '\\') >= 0)
}

func isGit(part string) bool {
	name, _, _ := strings.Cut(part, ":")
	name = fold(name)
	if name == ".git" {
		return true
	}
	number, found := strings.CutPrefix(name, "git~")
	return found && number != "" && strings.Trim(number, "0123456789") == ""
}

// fold makes names equal that some file system takes for the same: lower case, one
// normal form, without ignorable characters and trailing dots and blanks.
func fold(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return r >= 0x7f || r < ' ' }) < 0 {
		return strings.TrimRight(strings.ToLower(name), " .")
	}
	name = strings.Map(dropIgnorable, strings.ToValidUTF8(name, ""))
	name = norm.NFKC.String(cases.Fold().String(norm.NFKC.String(name)))
	return strings.TrimRightFunc(strings.Map(dropIgnorable, name), func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

func dropIgnorable(r rune) rune {
	if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == '\u2800' {
		return -1
	}
	return r
}

// named is a set of names with the reason that they share. A pattern without a
// slash is compared with the last component; one that ends in "/" with the
// directories above the file, and all below it is in the set; another one with the
// last components. One "*" in the last component of a pattern stands for any
// characters. Patterns are written folded.
type named struct {
	reason   string
	patterns []string
}

// rule is a pattern in the form that is compared.
type rule struct {
	before         string // the components before the last one, with a slash after each
	prefix, suffix string // of the last one, when it has a "*"
	reason         string
}

// index finds the rules for a path by its components.
type index struct {
	last  map[string][]rule // by the last component
	below map[string][]rule // by a component that is a directory
	globs []rule
}

func newIndex(sets []named) index {
	x := index{last: map[string][]rule{}, below: map[string][]rule{}}
	for _, set := range sets {
		for _, pattern := range set.patterns {
			x.add(pattern, set.reason)
		}
	}
	return x
}

func (x *index) add(pattern, reason string) {
	pattern, isDir := strings.CutSuffix(pattern, "/")
	cut := strings.LastIndexByte(pattern, '/') + 1
	r := rule{before: pattern[:cut], reason: reason}
	name, star := pattern[cut:], false
	r.prefix, r.suffix, star = strings.Cut(name, "*")
	switch {
	case star:
		x.globs = append(x.globs, r)
	case isDir:
		x.below[name] = append(x.below[name], r)
	default:
		x.last[name] = append(x.last[name], r)
	}
}

// match returns the reason of the first rule for rel, which is folded.
func (x *index) match(rel string) string {
	cut := strings.LastIndexByte(rel, '/') + 1
	dir, base := rel[:cut], rel[cut:]
	for _, r := range x.last[base] {
		if r.follows(dir) {
			return r.reason
		}
	}
	for _, r := range x.globs {
		if len(base) >= len(r.prefix)+len(r.suffix) && strings.HasPrefix(base, r.prefix) && strings.HasSuffix(base, r.suffix) && r.follows(dir) {
			return r.reason
		}
	}
	for start := 0; start < len(dir); {
		end := start + strings.IndexByte(dir[start:], '/')
		for _, r := range x.below[dir[start:end]] {
			if r.follows(dir[:start]) {
				return r.reason
			}
		}
		start = end + 1
	}
	return ""
}

// follows reports whether dir, which ends in a slash or is empty, ends with the
// components that r wants before its own.
func (r rule) follows(dir string) bool {
	before, ok := strings.CutSuffix(dir, r.before)
	return ok && (r.before == "" || before == "" || before[len(before)-1] == '/')
}

// Secret says why the content of rel is likely secret, judged by its name alone,
// or returns "". Letter case and Unicode form do not matter. Samples
// (".env.example") and public keys ("*.pub") are not secret.
func Secret(rel string) string {
	rel = foldPath(rel)
	base := rel[strings.LastIndexByte(rel, '/')+1:]
	if strings.HasSuffix(base, ".pub") || slices.Contains(envSamples, base) {
		return ""
	}
	return secretIndex.match(rel)
}

// RunsLater says why a file named rel runs code on this machine later without being
// named again (an editor, a shell, a hook or a package manager reads it), or
// returns "". It does not matter whether the file exists. Build files such as
// Makefile or package.json are not counted: people start those.
func RunsLater(rel string) string {
	return laterIndex.match(foldPath(rel))
}

func foldPath(rel string) string {
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
	}
	if strings.TrimLeftFunc(rel, func(c rune) bool { return plain(c) || c == '/' || c == '.' }) == "" && !strings.Contains(rel, "./") && !strings.HasSuffix(rel, ".") {
		return rel
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		parts[i] = fold(part)
	}
	return strings.Join(parts, "/")
}

var envSamples = []string{".env.example", ".env.sample", ".env.template"}

var secretNames = []named{
	{"an environment file that usually holds secrets", []string{
		".env", ".env.*", "*.env", ".envrc", ".renviron", ".flaskenv", ".dev.vars",
	}},
	{"a private key or key store", []string{
		"*.pem", "*.key", "*.ppk", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.kdb",
		"id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "secring.gpg", "private-keys-v1.d/",
	}},
	{"a credential file", []string{
		"credentials", "credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml", "credentials.ini",
		"credentials.csv", "credentials.db", "client_secret*.json", "service-account*.json", "service_account*.json",
		"application_default_credentials.json", ".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd",
		".pgpass", ".my.cnf", ".mylogin.cnf", ".dockercfg", ".docker/config.json", ".kube/config", "kubeconfig",
		".s3cfg", ".boto", "rclone.conf", ".vault-token", ".vault_pass*", ".config/gh/hosts.yml", ".config/gcloud/",
		".azure/", "etc/shadow", "etc/gshadow", ".terraform.d/credentials*",
	}},
	{"a file of secrets", []string{
		"secret.yml", "secret.yaml", "secret.json", "secret.toml", "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml",
		"secrets.env", ".secrets", "*.tfstate", "*.tfstate.backup", "*.tfvars", "*.tfvars.json",
	}},
	{"a shell or client history", []string{".*_history", ".histfile"}},
}

var laterNames = []named{
	{"an MCP or agent configuration that starts programs", []string{
		".mcp.json", "mcp.json", ".zcoder/", ".claude/settings*.json", ".claude/hooks/", ".cursor/hooks.json", ".codex/", ".gemini/",
		"opencode.json", "opencode.jsonc", ".opencode/",
	}},
	{"a file that a shell or an environment loader runs", []string{
		".envrc", ".direnvrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
		".zprofile", ".zlogin", ".zlogout", ".kshrc", ".cshrc", ".tcshrc", ".inputrc", ".pam_environment", ".config/fish/",
		".xinitrc", ".xprofile", ".xsession", ".xsessionrc", ".tmux.conf", ".screenrc", ".config/autostart/", ".config/systemd/",
		".ssh/", "crontab", "mise.toml", ".mise.toml", ".mise/", ".config/mise/", "devbox.json",
	}},
	{"a git configuration or attribute file", []string{
		".gitmodules", ".gitattributes", ".gitconfig", ".lfsconfig", ".config/git/", ".hg/", ".hgrc", ".jj/",
	}},
	{"a hook that runs on a later commit or checkout", append([]string{
		".husky/", ".githooks/", ".git-hooks/", ".git_hooks/", "githooks/", "lefthook*.yml", "lefthook*.yaml", "lefthook*.toml", "lefthook*.json",
		".lefthook*.yml", ".lefthook*.yaml", ".lefthook*.toml", ".lefthook*.json", ".lefthook/", ".lefthook-local/",
		".pre-commit-config.yaml", ".pre-commit-config.yml", ".overcommit.yml", ".simple-git-hooks.*", "simple-git-hooks.*",
	}, gitHooks...)},
	{"an editor file that runs tasks or code", []string{
		".vscode/tasks.json", ".vscode/launch.json", ".vscode/settings.json", ".vscode/mcp.json", ".vscode/extensions.json",
		".cursor/mcp.json", "*.code-workspace", ".idea/", ".run/*.run.xml", ".fleet/", ".zed/", ".vim/", ".vimrc", ".gvimrc", ".lvimrc",
		".exrc", ".nvimrc", ".nvim.lua", ".config/nvim/", ".dir-locals.el", ".emacs", ".emacs.d/", "*.sublime-project", ".helix/",
		".devcontainer/", ".devcontainer.json", ".gitpod.yml",
	}},
	{"a tool configuration that can start programs", []string{
		".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/", ".pnpmfile.cjs", ".bazelrc", "user.bazelrc", ".cargo/config", ".cargo/config.toml",
		".mvn/", "gradle-wrapper.properties", ".gradle/", ".gdbinit", ".lldbinit", ".pdbrc", ".irbrc", ".pryrc", ".rprofile",
		".psqlrc", ".sqliterc", ".curlrc", ".wgetrc", ".bundle/config", "sitecustomize.py", "usercustomize.py", "*.pth", "pip.conf",
		".gnupg/", ".docker/config.json", ".kube/config", ".terraformrc", ".aws/config",
	}},
}

// gitHooks are the names that git runs from whatever directory core.hooksPath
// names.
var gitHooks = []string{
	"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg",
	"post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "post-receive", "post-update",
	"reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman",
	"post-index-change",
}

// The indexes are made once and never change.
var secretIndex, laterIndex = newIndex(secretNames), newIndex(laterNames)
