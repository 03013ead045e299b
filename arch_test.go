package main

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	{"internal/agent", []string{"zcoder/repl", "zcoder/mcp", "zcoder/skills", "zcoder/relay", "zcoder/internal/ollama", "zcoder/internal/openai", "zcoder/internal/policy", "net", "net/http", "os/exec", "os"}, "the loop reaches the world through its tools and its model alone"},
	{"internal/checkpoint", []string{"zcoder/internal/agent", "zcoder/internal/session", "zcoder/internal/policy", "zcoder/internal/proc", "zcoder/repl", "zcoder/tools", "net", "os/exec"}, "keeps files, whoever changes them; no git runs"},
	{"internal/gitstate", []string{"zcoder/internal/proc", "zcoder/tools", "os/exec", "net"}, "what a repository says is read; its programs never run"},
	{"internal/eval", []string{"net", "net/http", "zcoder/internal/agent", "zcoder/internal/session", "zcoder/tools"}, "how a model is asked comes in as a function"},
	{"internal/doctor", []string{"net/http", "zcoder/tools", "zcoder/internal/agent", "zcoder/internal/session", "zcoder/internal/app"}, "what it looks at comes in"},
	{"mcp", []string{"zcoder/internal/agent", "zcoder/internal/session", "zcoder/internal/policy", "zcoder/internal/app", "zcoder/repl", "zcoder/skills", "os/exec"}, "hands tools to the loop and decides nothing; programs start through proc"},
	{"tools", []string{"zcoder/internal/agent", "zcoder/internal/session", "zcoder/repl", "zcoder/internal/policy", "os/exec", "net", "net/http"}, "tools are planned and done, they decide nothing"},
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
	{"remote", []string{"zcoder/repl", "zcoder/tools/", "zcoder/mcp", "zcoder/internal/app", "zcoder/internal/policy", "zcoder/internal/agent", "os/exec"}, "a wire between a conversation and a frontend"},
	{"internal/acp", []string{"zcoder/repl", "zcoder/tools", "zcoder/mcp", "zcoder/internal/app", "zcoder/internal/policy", "zcoder/internal/agent", "zcoder/internal/session", "zcoder/remote", "net", "net/http", "os", "os/exec"}, "a protocol over conversations that a host opens"},
	{"remote/web", []string{"zcoder/repl", "zcoder/tools", "zcoder/internal/session", "zcoder/internal/store", "net", "os", "os/exec"}, "shows and lets in; what it does goes by the routes of remote"},
	{"repl", []string{"net/http", "os/exec", "zcoder/tools", "zcoder/mcp", "zcoder/internal/ollama", "zcoder/internal/openai", "zcoder/internal/session", "zcoder/internal/agent"}, "a frontend over four methods"},
}

// only says which packages of ours a package may import itself, and why no more.
var only = []struct {
	dir    string
	ours   []string
	reason string
}{
	{"", []string{"internal/app"}, "main starts the application"},
	{"internal/audit", []string{"internal/approval", "internal/ownfile"}, "the record is judged by reading it alone"},
	{"internal/event", []string{"internal/chat"}, "a word list that frontends share"},
	{"internal/ignore", nil, "a language and its matcher"},
	{"internal/ownfile", nil, "our files are opened below everything"},
	{"internal/dirfd", nil, "opens names, whatever is in them"},
	{"internal/guidetext", []string{"internal/termtext"}, "text in, text out"},
	{"internal/worker", []string{"internal/proc", "internal/secret"}, "command lines and output formats"},
	{"internal/demo", []string{"internal/scripted"}, "a sample and its script"},
	{"internal/manual", []string{"internal/termtext"}, "text in, text out"},
	{"docs", nil, "documents and nothing else"},
	{"internal/dist", nil, "makes a release of the program and is no part of it"},
	{"internal/acpstub", nil, "the stand-in editor must not share code with the agent that it tests"},
	{"internal/mcpstub", nil, "the stand-in server must not share code with the client that it tests"},
	{"internal/conform", nil, "tests alone"},
	{"remote/conform", nil, "sees a server from outside"},
	{"internal/perf", nil, "tests alone"},
}

func TestImportsOfOurs(t *testing.T) {
	graph := imports(t)
	for _, o := range only {
		pkg := strings.TrimSuffix("zcoder/"+o.dir, "/")
		list, ok := graph[pkg]
		if !ok {
			t.Errorf("%s holds no package", o.dir)
		}
		for _, imp := range list {
			if ours, ok := strings.CutPrefix(imp, "zcoder/"); ok && !slices.Contains(o.ours, ours) {
				t.Errorf("%s imports %s: %s", pkg, imp, o.reason)
			}
		}
	}
}

// callers are the only packages that may import one, and why.
var callers = []struct{ dir, by, reason string }{
	{"internal/app", "zcoder", "nothing depends on the wiring"},
	{"internal/demo", "zcoder/internal/app", "only the flag starts the demo"},
	{"internal/scripted", "zcoder/internal/demo", "a scripted model stands in for a real one in tests and in the demo alone"},
	{"internal/mcpstub", "", "for tests alone"},
	{"internal/acpstub", "", "for tests alone"},
	{"remote/conform", "", "for tests alone"},
	{"internal/doctor", "zcoder/internal/app", "a subcommand"},
	{"internal/eval", "zcoder/internal/app", "a subcommand"},
}

func TestCallers(t *testing.T) {
	graph := imports(t)
	for _, c := range callers {
		for pkg, list := range graph {
			if pkg != c.by && slices.Contains(list, "zcoder/"+c.dir) {
				t.Errorf("%s imports %s: %s", pkg, c.dir, c.reason)
			}
		}
	}
}

func TestEveryPackageHasARule(t *testing.T) {
	ruled := map[string]bool{}
	for _, r := range rules {
		ruled[r.dir] = true
	}
	for _, o := range only {
		ruled[o.dir] = true
	}
	for _, c := range callers {
		ruled[c.dir] = true
	}
	for pkg := range imports(t) {
		if dir := strings.TrimPrefix(strings.TrimPrefix(pkg, "zcoder"), "/"); !ruled[dir] {
			t.Errorf("no rule says what %q must not import", dir)
		}
	}
}

// TestWhoNamesTheGate: actions pass the gate in the loop; what plans them never holds
// one.
func TestWhoNamesTheGate(t *testing.T) {
	for pkg := range imports(t) {
		switch pkg {
		case "zcoder/internal/app", "zcoder/internal/session", "zcoder/internal/agent":
			continue
		}
		files, err := filepath.Glob(filepath.Join(strings.TrimPrefix(strings.TrimPrefix(pkg, "zcoder"), "/"), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") && strings.Contains(string(text), "approval.Gate") {
				t.Errorf("%s names the gate", name)
			}
		}
	}
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

func TestEachRuleCanFail(t *testing.T) {
	for _, r := range rules {
		for _, bad := range r.never {
			imp := bad
			if strings.HasSuffix(bad, "/") {
				imp += "internal/other"
			}
			pkg := "zcoder/" + r.dir
			graph := map[string][]string{pkg: {imp}}
			if !directOnly[bad] {
				graph = map[string][]string{pkg: {"zcoder/between"}, "zcoder/between": {imp}}
			}
			if reaches(graph, pkg, bad, r.dir) == "" {
				t.Errorf("the rule that %s does not import %s sees nothing", r.dir, bad)
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
		if _, err := os.Stat(filepath.Join(path, "go.mod")); path != "." && err == nil {
			return filepath.SkipDir // a module of its own
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

// TestDependenciesAreExplained compares docs/dependencies.md with go.mod, and what it
// says of users with the imports.
func TestDependenciesAreExplained(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		direct[m[1]] = true
	}
	graph := imports(t)
	for _, row := range regexp.MustCompile(`(?m)^\| (\S+\.\S+) \| (.+?) \| .+ \|$`).FindAllStringSubmatch(string(page), -1) {
		module := row[1]
		if !direct[module] {
			t.Errorf("docs/dependencies.md explains %s, which go.mod does not require directly", module)
		}
		delete(direct, module)
		for user := range strings.SplitSeq(row[2], ", ") {
			uses := func(imp string) bool { return imp == module || strings.HasPrefix(imp, module+"/") }
			if user != "tests" && !slices.ContainsFunc(graph["zcoder/"+user], uses) {
				t.Errorf("docs/dependencies.md says that %s uses %s", user, module)
			}
		}
	}
	for module := range direct {
		t.Errorf("docs/dependencies.md does not explain %s", module)
	}
}

func TestTopLevelIsFixed(t *testing.T) {
	allowed := map[string]bool{
		"main.go": true, "arch_test.go": true, "script_test.go": true, "term_test.go": true, "remote_test.go": true, "readme_test.go": true, "documents_test.go": true, "web_test.go": true, "browser_test.go": true, "go.mod": true, "go.sum": true,
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
