package main

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rule says what the packages below a directory must not import, directly or
// through others of ours, and why.
type rule struct {
	dir    string
	never  []string
	reason string
}

var rules = []rule{
	{"internal/approval", []string{"zcoder/"}, "the gate is judged by reading it alone"},
	{"internal/chat", []string{"zcoder/"}, "a word list that everything shares"},
	{"internal/termtext", []string{"zcoder/"}, "the sanitiser trusts nobody"},
	{"internal/proc", []string{"zcoder/"}, "running a process is no matter of policy"},
	{"internal/config", []string{"zcoder/"}, "settings are values, not behaviour"},
	{"internal/secret", []string{"zcoder/"}, "masking is used below everything"},
	{"internal/runtimedir", []string{"zcoder/"}, "a directory and nothing else"},
	{"internal/workspace", []string{"zcoder/"}, "the boundary is judged by reading it alone"},
	{"internal/diff", []string{"zcoder/"}, "compares bytes"},
	{"internal/sizing", []string{"zcoder/", "net"}, "rules over numbers"},
	{"internal/shellread", []string{"zcoder/", "os/exec", "net"}, "reads text, runs nothing"},
	{"internal/scripted", []string{"zcoder/"}, "the stand-in server must not share code with the client that it tests"},
	{"internal/policy", []string{"zcoder/tools", "zcoder/repl", "zcoder/internal/agent", "net", "os/exec"}, "verdicts come from rules and facts alone"},
	{"internal/session", []string{"zcoder/repl", "zcoder/tools/", "zcoder/internal/ollama", "zcoder/internal/policy", "net", "os/exec"}, "one conversation for every frontend"},
	{"internal/store", []string{"zcoder/internal/agent", "zcoder/internal/session", "zcoder/repl", "zcoder/tools"}, "the log outlives the loop"},
	{"internal/ollama", []string{"zcoder/tools", "zcoder/internal/session", "zcoder/internal/agent", "zcoder/repl"}, "an adapter under the loop"},
	{"internal/openai", []string{"zcoder/tools", "zcoder/internal/session", "zcoder/internal/agent", "zcoder/repl"}, "an adapter under the loop"},
	{"internal/modelserver", []string{"zcoder/tools", "zcoder/internal/agent", "zcoder/internal/ollama", "zcoder/internal/openai"}, "a connection, whatever API goes over it"},
	{"internal/modeltext", []string{"zcoder/tools", "zcoder/internal/agent", "zcoder/internal/modelserver", "net"}, "text alone"},
	{"tools", []string{"zcoder/internal/agent", "zcoder/internal/session", "zcoder/repl", "zcoder/internal/policy"}, "tools are planned and done, they decide nothing"},
	{"tools/file", []string{"zcoder/tools/patch", "zcoder/tools/search", "zcoder/tools/shell", "zcoder/internal/proc", "os/exec", "net"}, "one resource each"},
	{"tools/patch", []string{"zcoder/tools/file", "zcoder/tools/search", "zcoder/tools/shell", "zcoder/internal/proc", "os/exec", "net"}, "one resource each; no git runs"},
	{"tools/search", []string{"zcoder/tools/file", "zcoder/tools/patch", "zcoder/tools/shell", "zcoder/internal/proc", "os/exec", "net"}, "one resource each; no program runs"},
	{"tools/shell", []string{"zcoder/tools/file", "zcoder/tools/patch", "zcoder/tools/search", "net/http"}, "one resource each"},
	{"tools/peer", []string{"zcoder/tools/file", "zcoder/tools/patch", "zcoder/tools/search", "zcoder/tools/shell", "os/exec", "net"}, "one resource each; the relay delivers"},
	{"relay", []string{"zcoder/", "net/http", "os/exec"}, "stores what comes and reaches nothing else"},
	{"profiles", []string{"zcoder/tools", "zcoder/mcp", "net", "os/exec", "os"}, "plain data; its caller reads the files"},
	{"internal/guidetext", []string{"zcoder/tools", "zcoder/profiles", "zcoder/skills", "os", "net", "os/exec"}, "text in, text out"},
	{"skills", []string{"zcoder/internal/policy", "zcoder/internal/agent", "zcoder/internal/session", "zcoder/internal/audit", "zcoder/internal/proc", "zcoder/repl", "zcoder/mcp", "net", "net/http", "os/exec"}, "text only: grants nothing, starts nothing"},
	{"internal/worker", []string{"zcoder/tools", "zcoder/repl", "zcoder/internal/agent", "zcoder/internal/session", "zcoder/internal/policy", "net", "os/exec"}, "runs other agents, decides nothing"},
	{"tools/delegate", []string{"zcoder/internal/proc", "zcoder/internal/worker", "os/exec", "net"}, "describes a call; the application runs it"},
	{"repl", []string{"net/http", "os/exec", "zcoder/tools", "zcoder/mcp", "zcoder/internal/ollama", "zcoder/internal/openai", "zcoder/internal/session", "zcoder/internal/agent"}, "a frontend over four methods"},
}

// directOnly are standard packages that count only where the package itself imports
// them; a rule about packages of ours also reaches what those import.
var directOnly = map[string]bool{"net": true, "net/http": true, "os/exec": true, "os": true}

func TestImportDirections(t *testing.T) {
	graph := imports(t)
	for _, r := range rules {
		for pkg := range graph {
			if pkg != "zcoder/"+r.dir && !strings.HasPrefix(pkg, "zcoder/"+r.dir+"/") {
				continue
			}
			for _, bad := range r.never {
				if via := reaches(graph, pkg, bad, r.dir); via != "" {
					t.Errorf("%s imports %s (%s): %s", pkg, bad, via, r.reason)
				}
			}
		}
	}
}

func TestEveryRuleIsAboutAPackage(t *testing.T) {
	for _, r := range rules {
		if _, err := os.Stat(r.dir); err != nil {
			t.Errorf("rule for %s: %v", r.dir, err)
		}
	}
}

// reaches returns the chain from pkg to something that matches bad, or "".
func reaches(graph map[string][]string, pkg, bad, own string) string {
	seen := map[string]bool{}
	var walk func(p, chain string) string
	walk = func(p, chain string) string {
		if seen[p] {
			return ""
		}
		seen[p] = true
		for _, imp := range graph[p] {
			if matches(imp, bad) && !matches(imp, "zcoder/"+own) {
				return chain + imp
			}
			if strings.HasPrefix(imp, "zcoder/") && !directOnly[bad] {
				if found := walk(imp, chain+imp+" → "); found != "" {
					return found
				}
			}
		}
		return ""
	}
	return walk(pkg, "")
}

func matches(imp, bad string) bool {
	return imp == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(imp, bad) ||
		!strings.HasSuffix(bad, "/") && strings.HasPrefix(imp, bad+"/") && strings.HasPrefix(bad, "zcoder/")
}

// imports maps each of our packages to what it imports outside tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	graph := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if name := e.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "sample") {
			return filepath.SkipDir
		}
		pkg, err := build.ImportDir(path, 0)
		if err != nil {
			return nil // a directory without Go files
		}
		graph[strings.TrimSuffix("zcoder/"+filepath.ToSlash(path), "/.")] = pkg.Imports
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return graph
}

func TestTopLevelIsFixed(t *testing.T) {
	allowed := map[string]bool{
		"main.go": true, "arch_test.go": true, "script_test.go": true, "term_test.go": true, "readme_test.go": true, "go.mod": true, "go.sum": true,
		"repl": true, "tools": true, "profiles": true, "mcp": true, "relay": true, "skills": true, "remote": true, "testdata": true,
		"internal": true, "docs": true, "README.md": true, "CHANGELOG.md": true, "CONTRIBUTING.md": true, "LICENSE": true, "Makefile": true,
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !allowed[e.Name()] && e.Name() != "zcoder" && e.Name() != "dist" {
			t.Errorf("%s does not belong at the top level", e.Name())
		}
	}
}
