package ignore

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestIgnored(t *testing.T) {
	tests := []struct {
		name, root, sub string // files in "" and in "sub"
		path            string
		isDir, want     bool
	}{
		{name: "plain name at any depth", root: "x", path: "sub/x", want: true},
		{name: "directory rule and a file", root: "x/", path: "x", want: false},
		{name: "directory rule and a directory", root: "x/", path: "x", isDir: true, want: true},
		{name: "later rule decides", root: "*.o\n!a.o", path: "a.o", want: false},
		{name: "deeper file decides", root: "*.o", sub: "!*.o", path: "sub/a.o", want: false},
		{name: "anchored", root: "/x", path: "sub/x", want: false},
		{name: "anchored in its own directory", sub: "/x", path: "sub/x", want: true},
		{name: "comment", root: "#x", path: "#x", want: false},
		{name: "escaped", root: `\#x`, path: "#x", want: true},
		{name: "two stars", root: "a/**/z", path: "a/b/c/z", want: true},
		{name: "malformed", root: "a[", path: "a[", want: false},
		{name: "carriage return", root: "x\r\n", path: "x", want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			chain := (*Chain)(nil).With(Parse("", tt.root))
			if path.Dir(tt.path) == "sub" {
				chain = chain.With(Parse("sub", tt.sub))
			}
			if got := chain.Ignored(path.Base(tt.path), tt.path, tt.isDir); got != tt.want {
				t.Errorf("ignored: %v, want %v", got, tt.want)
			}
		})
	}
}

// randomLine makes one line of an ignore file from pieces that meet often.
func randomLine(r *rand.Rand) string {
	pieces := []string{"a", "b", "ab", "foo", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[]a]", "[a-", "[[:alpha:]]", "[[:nope:]]",
		`\a`, `\*`, `\ `, " ", ".b", "*.b", "é", "-", "***", "[a-c]", `[\]a]`, "[", `\`, "!", "#", "\t"}
	var b strings.Builder
	b.WriteString([]string{"", "", "", "!", "/"}[r.IntN(5)])
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	b.WriteString([]string{"", "", "", "", "/", "  ", "/**", "\r"}[r.IntN(8)])
	return b.String()
}

func randomRules(r *rand.Rand) string {
	var lines []string
	for range 1 + r.IntN(4) {
		lines = append(lines, randomLine(r))
	}
	return strings.Join(lines, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLikeGit compares the rules with git over random files in random trees.
func TestLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so there is nothing to compare with")
	}
	for seed := range 5 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			root := t.TempDir()
			must(t, exec.Command("git", "init", "-q", root).Run())
			var entries []string
			ours := map[string]bool{}
			var fill func(dir string, chain *Chain, hidden bool)
			fill = func(dir string, chain *Chain, hidden bool) {
				text := randomRules(r)
				must(t, os.WriteFile(filepath.Join(root, dir, ".gitignore"), []byte(text), 0o600))
				chain = chain.With(Parse(dir, text))
				for _, name := range []string{"a", "b", "ab", "foo", "a.b", "x b", "b ", "é", "[", "-", "abc", "]", "foob", "*"} {
					full, isDir := path.Join(dir, name), r.IntN(5) == 0 && strings.Count(dir, "/") < 2
					if isDir {
						must(t, os.Mkdir(filepath.Join(root, full), 0o700))
					} else {
						must(t, os.WriteFile(filepath.Join(root, full), nil, 0o600))
					}
					entries = append(entries, full)
					ours[full] = hidden || chain.Ignored(name, full, isDir)
					if isDir {
						fill(full, chain, ours[full])
					}
				}
			}
			fill("", nil, false)
			theirs := gitIgnored(t, root, entries)
			for _, e := range entries {
				if ours[e] != theirs[e] {
					t.Errorf("%q: git ignores it: %v, we: %v", e, theirs[e], ours[e])
				}
			}
		})
	}
}

func gitIgnored(t *testing.T, root string, entries []string) map[string]bool {
	t.Helper()
	cmd := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HOME="+root, "XDG_CONFIG_HOME="+root, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stdin = strings.NewReader(strings.Join(entries, "\x00") + "\x00")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		t.Fatalf("git check-ignore: %v: %s", err, stderr.String())
	}
	set := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		set[name] = true
	}
	return set
}

// FuzzIgnored: any text is read and any question answered, in bounded time, and a
// chain of an empty file answers like no chain.
func FuzzIgnored(f *testing.F) {
	f.Add("*.o\n!a.o\n", "a/b.o", false)
	f.Add("a/**/b\n[[:alpha:]]/\n", "a/x/b", true)
	f.Add("\\\n[\n***/\n", "", false)
	f.Fuzz(func(t *testing.T, text, name string, isDir bool) {
		if len(text) > 200 || len(name) > 200 {
			return
		}
		chain := (*Chain)(nil).With(Parse("", text))
		got := chain.Ignored(path.Base(name), name, isDir)
		if again := chain.With(Parse("", "# nothing\n")).Ignored(path.Base(name), name, isDir); again != got {
			t.Errorf("%v, then %v", got, again)
		}
	})
}
