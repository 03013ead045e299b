package workspace

import (
	"strings"
	"testing"
)

func TestProtected(t *testing.T) {
	for _, name := range []string{
		".git", ".git/config", "a/.git/hooks/x", ".GIT/config", ".Git", ".git.", ".git ", ".git. .", ".git\u200c/config", ".g\u200di\ufefft",
		".gi\u00adt", "\u2060.git", ".git\ufe0f", ".git\u3164", ".git\U000e0041", ".git\u2800", "．ｇｉｔ", ".ｇit", "git~1", "GIT~1/x", "git~12",
		".git:stream", ".git::$INDEX_ALLOCATION", `.git\hooks\x`, `a\.git\x`, ".git\xff", ".git\x01", "\x7f.git", "a/.g\x7fit/x", ".git\t", ".git\u00a0", "x/\u200b.GIT/y", ".giT\u0000",
	} {
		if !Protected(name) {
			t.Errorf("%q is not protected", name)
		}
	}
	for _, name := range []string{
		"", ".", "git", ".github/workflows/x.yml", ".gitignore", "x.git", "a/git/b", ".gitx", "git~", "git~x", "agit~1", "..git", ".gi", "gi\u0300t", `back\slash`, "a:b",
	} {
		if Protected(name) {
			t.Errorf("%q is protected", name)
		}
	}
}

func TestSecret(t *testing.T) {
	for _, name := range []string{
		".env", "a/.env", ".env.local", ".env.production", ".ENV", "prod.env", ".envrc", "server.pem", "x.key", "ID_RSA", "id_ed25519", "id_rsa.bak",
		"credentials", "home/.aws/credentials", ".docker/config.json", ".kube/config", "x.p12", "x.PFX", "a.jks", "my.keystore", "db.kdbx",
		"service-account.json", "service-account-prod.json", "secrets.yml", "config/secrets.yaml", "secrets.json", "secrets.toml", ".htpasswd",
		".git-credentials", "terraform.tfstate", "x.tfstate.backup", ".netrc", ".npmrc", ".pypirc", ".gnupg/private-keys-v1.d/a", "etc/shadow",
		".\u200benv", ".bash_history", "ｓecrets.yml", "prod.tfvars", ".env.example.local",
	} {
		if Secret(name) == "" {
			t.Errorf("%q is not secret", name)
		}
	}
	for _, name := range []string{
		".", "main.go", ".env.example", ".env.sample", "a/.env.template", "id_rsa.pub", "server.pem.pub", "env", "environment", "config.json", "kube/config",
		"keyboard.go", "credentials.go", "secrets.go", "secrets_test.py", "docker/config.json", "history.txt", "tfstate.go", ".github/workflows/x.yml", "monkey",
	} {
		if why := Secret(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
}

func TestRunsLater(t *testing.T) {
	for _, name := range []string{
		".mcp.json", ".Mcp.json", "a/.mcp.json", ".envrc", ".gitmodules", ".gitattributes", "sub/.gitattributes", ".husky/pre-commit", ".husky/_/x",
		".vscode/tasks.json", "a/.vscode/launch.json", ".vscode/settings.json", ".idea/runConfigurations/x.xml", ".devcontainer/devcontainer.json",
		".devcontainer.json", "lefthook.yml", "lefthook-local.yml", ".pre-commit-config.yaml", ".githooks/x", ".zcoder/policy.toml", ".npmrc", ".bazelrc",
		"hooks/pre-commit", "tools/commit-msg", ".bashrc", ".zshenv", ".ssh/authorized_keys", ".config/git/config", ".gitconfig", ".cargo/config.toml",
		"x.code-workspace", ".dir-locals.el", ".cursor/mcp.json", ".claude/settings.local.json", "sitecustomize.py", ".\u200bmcp.json", ".HUSKY/x",
		".vscode\u200b/tasks.json", ".envrc.", ".yarnrc.yml", ".huſky/pre-push",
	} {
		if RunsLater(name) == "" {
			t.Errorf("%q is not held to run later", name)
		}
	}
	for _, name := range []string{
		".", "main.go", ".github/workflows/ci.yml", "Makefile", "package.json", ".gitignore", "vscode/tasks.json", ".vscode/notes.md", "pre-commit.md",
		"idea/x", ".huskyrc.md", "mcp.go", "src/profile", "docs/lefthook.md", ".claude/notes.md", ".idea", ".husky",
	} {
		if why := RunsLater(name); why != "" {
			t.Errorf("%q: %s", name, why)
		}
	}
}

// FuzzNames checks that decorations which some file system ignores change no verdict.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{".git", ".env", ".mcp.json", "a/b", "É", "git~1", ".huſky/x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		if strings.Contains(rel, ":") || strings.Contains(rel, "/") || strings.Contains(rel, `\`) {
			return
		}
		for _, other := range []string{strings.ToUpper(rel), "\u200b" + rel, rel + "\u200d", rel + ".", rel + " "} {
			if fold(strings.ToUpper(rel)) != fold(rel) {
				return // letters whose cases do not pair
			}
			if Protected(rel) != Protected(other) {
				t.Errorf("Protected(%q) is not Protected(%q)", rel, other)
			}
			if Secret(rel) != Secret(other) || RunsLater(rel) != RunsLater(other) {
				t.Errorf("%q and %q are judged differently", rel, other)
			}
		}
	})
}

func BenchmarkNames(b *testing.B) {
	for b.Loop() {
		_, _, _ = Protected("src/internal/main_test.go"), Secret("src/internal/main_test.go"), RunsLater("src/internal/main_test.go")
	}
}
