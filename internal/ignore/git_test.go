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

// randomLine makes one line of an ignore file from pieces that meet often.
func randomLine(r *rand.Rand) string {
	pieces := []string{"a", "b", "ab", "foo", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b-z]", "[]a]", "[a-", "[[:alpha:]]", "[[:digit:]x]", "[[:nope:]]",
		`\a`, `\*`, `\ `, " ", ".b", "*.b", "é", "-", "***", "[a-c]", `[\]a]`, "[", `\`, "!", "#", "[[:a]", "a[-]", "\t"}
	var b strings.Builder
	if r.IntN(5) == 0 {
		b.WriteByte('!')
	}
	if r.IntN(4) == 0 {
		b.WriteByte('/')
	}
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	switch r.IntN(8) {
	case 0:
		b.WriteString("/")
	case 1:
		b.WriteString("  ")
	case 2:
		b.WriteString("/**")
	case 3:
		b.WriteString("\r")
	}
	return b.String()
}

func randomRules(r *rand.Rand) string {
	var lines []string
	for range 1 + r.IntN(4) {
		lines = append(lines, randomLine(r))
	}
	return strings.Join(lines, "\n") + strings.Repeat("\n", r.IntN(2))
}

// gitTree makes a tree of directories and files in which names repeat, with random
// ignore files, and returns all entries, directories with a slash at the end.
func gitTree(t testing.TB, r *rand.Rand, root string) (entries []string, rules map[string]string) {
	names := []string{"a", "b", "ab", "foo", "a.b", "x b", "b ", "é", "[", "-", "abc", "]", "1x", "foob", "*"}
	rules = map[string]string{}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		if r.IntN(2) == 0 {
			text := randomRules(r)
			rules[dir] = text
			must(t, os.WriteFile(filepath.Join(root, dir, ".gitignore"), []byte(text), 0o600))
		}
		for _, name := range names {
			full := path.Join(dir, name)
			switch {
			case r.IntN(6) == 0 && depth < 3:
				must(t, os.Mkdir(filepath.Join(root, full), 0o700))
				entries = append(entries, full+"/")
				fill(full, depth+1)
			case r.IntN(3) == 0:
				must(t, os.WriteFile(filepath.Join(root, full), nil, 0o600))
				entries = append(entries, full)
			}
		}
	}
	fill("", 0)
	return entries, rules
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ourIgnored answers with this package's rules what git check-ignore answers.
func ourIgnored(entries []string, rules map[string]string, exclude string) []string {
	hidden := map[string]bool{}
	var out []string
	chain := map[string]*Chain{"": (*Chain)(nil).With(Parse("", exclude)).With(Parse("", rules[""]))}
	for _, entry := range entries {
		full, isDir := strings.CutSuffix(entry, "/")
		dir := path.Dir("/" + full)[1:]
		if hidden[dir] || chain[dir].Ignored(path.Base(full), full, isDir) {
			hidden[full] = true
			out = append(out, full)
		}
		if isDir {
			chain[full] = chain[dir].With(Parse(full, rules[full]))
		}
	}
	return out
}

func gitIgnored(t *testing.T, root string, entries []string) []string {
	t.Helper()
	cmd := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "HOME="+root, "XDG_CONFIG_HOME="+root, "GIT_CONFIG_NOSYSTEM=1")
	var in bytes.Buffer
	for _, e := range entries {
		in.WriteString(strings.TrimSuffix(e, "/") + "\x00")
	}
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() == 1 {
		err = nil
	}
	if err != nil {
		t.Fatalf("git check-ignore: %v: %s", err, stderr.String())
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func setOf(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}

func TestLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so there is nothing to compare with")
	}
	seeds := 6
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 1))
			root := t.TempDir()
			must(t, exec.Command("git", "init", "-q", root).Run())
			exclude := randomRules(r)
			must(t, os.MkdirAll(filepath.Join(root, ".git/info"), 0o700))
			must(t, os.WriteFile(filepath.Join(root, ".git/info/exclude"), []byte(exclude), 0o600))
			entries, rules := gitTree(t, r, root)
			if len(entries) == 0 {
				return
			}
			want := setOf(gitIgnored(t, root, entries))
			got := setOf(ourIgnored(entries, rules, exclude))
			for _, e := range entries {
				e, _ := strings.CutSuffix(e, "/")
				if w, g := want[e], got[e]; w != g {
					for dir := path.Dir("/" + e); ; dir = path.Dir(dir) {
						t.Logf("rules of %q: %q", dir, rules[dir[1:]])
						if dir == "/" {
							break
						}
					}
					t.Fatalf("%q: git ignores it: %v, we: %v; exclude %q", e, w, g, exclude)
				}
			}
		})
	}
}
