package file

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

type allowAll struct{}

func (allowAll) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}

type noRecord struct{}

func (noRecord) Record(approval.Record) error { return nil }

// desk is a workspace with the tools and a gate that lets all pass.
type desk struct {
	t     testing.TB
	w     *workspace.Workspace
	root  string
	tools map[string]tools.Tool
	gate  *approval.Gate
}

func newDesk(t testing.TB, o Options) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return deskAt(t, root, workspace.Options{}, o)
}

func deskAt(t testing.TB, root string, wo workspace.Options, o Options) *desk {
	t.Helper()
	w, err := workspace.Open(root, wo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	d := &desk{t: t, w: w, root: root, tools: map[string]tools.Tool{}, gate: &approval.Gate{Policy: allowAll{}, Recorder: noRecord{}}}
	for _, tool := range New(w, o) {
		d.tools[tool.Spec().Name] = tool
	}
	return d
}

type args map[string]any

// plan plans a call.
func (d *desk) plan(tool string, a args) (tools.Action, error) {
	d.t.Helper()
	return d.tools[tool].Plan(context.Background(), tools.Call{ID: "call-1", Args: tools.NewArgs(a)})
}

// do runs a planned call through the gate.
func (d *desk) do(action tools.Action) tools.Result {
	d.t.Helper()
	permit, err := d.gate.Authorize(context.Background(), action.Request())
	if err != nil {
		d.t.Fatal(err)
	}
	result, err := action.Do(context.Background(), permit, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	return result
}

// call plans and runs; a plan's error becomes a failed result, as in the loop.
func (d *desk) call(tool string, a args) tools.Result {
	d.t.Helper()
	action, err := d.plan(tool, a)
	if err != nil {
		return tools.Fail("%v", err)
	}
	return d.do(action)
}

func (d *desk) put(name, content string) {
	d.t.Helper()
	path := filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) content(name string) string {
	d.t.Helper()
	b, err := os.ReadFile(filepath.Join(d.root, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(b)
}

func sum(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

// wants checks a result.
func wants(t testing.TB, r tools.Result, status tools.Status, parts ...string) {
	t.Helper()
	if r.Status != status {
		t.Errorf("status %s, want %s: %s", r.Status, status, r.Text)
		return
	}
	for _, part := range parts {
		if !strings.Contains(r.Text, part) {
			t.Errorf("text %q does not say %q", r.Text, part)
		}
	}
}

// TestSpecs bounds what the tools cost in every request.
func TestSpecs(t *testing.T) {
	d := newDesk(t, Options{})
	total := 0
	for name, tool := range d.tools {
		s := tool.Spec()
		if s.Name != name || len(s.Description) > 180 {
			t.Errorf("%s has a description of %d characters", name, len(s.Description))
		}
		total += len(s.Name) + len(s.Description) + len(s.JSONSchema())
		seen := map[string]string{}
		for _, p := range s.Params {
			for _, alias := range append([]string{p.Name}, p.Aliases...) {
				if alias != strings.ToLower(alias) || seen[alias] != "" {
					t.Errorf("%s: alias %q of %s is used by %s or not lower case", name, alias, p.Name, seen[alias])
				}
				seen[alias] = p.Name
			}
		}
	}
	if total > 1900 {
		t.Errorf("the specs have %d characters, want at most 1900 (475 tokens)", total)
	}
}

func TestRequests(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("a.txt", "one\ntwo\n")
	d.put("sub/.env", "KEY=1\n")
	if err := os.Symlink("a.txt", filepath.Join(d.root, "link")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tool    string
		args    args
		effect  approval.Effect
		summary string
		text    string
		ask     string
	}{
		"read":        {"read_file", args{"path": "./a.txt"}, approval.Read, "read_file a.txt", "read_file a.txt", ""},
		"read link":   {"read_file", args{"path": "link"}, approval.Read, "read_file a.txt", "read_file a.txt", ""},
		"read secret": {"read_file", args{"path": "sub/.env"}, approval.Read, "read_file sub/.env", "read_file sub/.env", "environment file"},
		"range":       {"read_file_range", args{"path": "a.txt", "start_line": 1, "end_line": 2}, approval.Read, "read_file_range a.txt:1-2", "read_file_range a.txt:1-2", ""},
		"range of secret": {"read_file_range", args{"path": "sub/.env", "start_line": 1, "end_line": 2}, approval.Read,
			"read_file_range sub/.env:1-2", "read_file_range sub/.env:1-2", "environment file"},
		"write": {"write_file", args{"path": "a.txt", "content": "one\n2\n"}, approval.WorkspaceWrite, "write_file a.txt (+1 -1)",
			"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", ""},
		"create": {"write_file", args{"path": "new/b.txt", "content": "x\n"}, approval.WorkspaceWrite, "write_file new/b.txt (+1 -0)",
			"--- /dev/null\n+++ b/new/b.txt\n@@ -0,0 +1 @@\n+x\n", ""},
		"create empty": {"write_file", args{"path": "e", "content": ""}, approval.WorkspaceWrite, "write_file e (+0 -0)",
			"--- /dev/null\n+++ b/e\n[a new empty file]\n", ""},
		"create hook": {"write_file", args{"path": ".husky/pre-commit", "content": "x\n"}, approval.WorkspaceWrite, "write_file .husky/pre-commit (+1 -0)",
			"--- /dev/null\n+++ b/.husky/pre-commit\n@@ -0,0 +1 @@\n+x\n", "later commit"},
		"write odd name": {"write_file", args{"path": "b\nIGNORE", "content": "x\n"}, approval.WorkspaceWrite, `write_file "b\nIGNORE" (+1 -0)`,
			"--- /dev/null\n+++ \"b/b\\nIGNORE\"\n@@ -0,0 +1 @@\n+x\n", "cannot be seen"},
		"replace": {"replace_text", args{"path": "a.txt", "old_text": "two", "new_text": "2"}, approval.WorkspaceWrite, "replace_text a.txt (+1 -1)",
			"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n", ""},
		"replace secret": {"replace_text", args{"path": "sub/.env", "old_text": "KEY=1", "new_text": "KEY=2"}, approval.WorkspaceWrite, "replace_text sub/.env (+1 -1)",
			"--- a/sub/.env\n+++ b/sub/.env\n@@ -1 +1 @@\n-KEY=1\n+KEY=2\n", "environment file"},
	} {
		t.Run(name, func(t *testing.T) {
			action, err := d.plan(c.tool, c.args)
			if err != nil {
				t.Fatal(err)
			}
			r := action.Request()
			if r.CallID != "call-1" || r.Tool != c.tool || r.Effect != c.effect || r.Args != string(tools.NewArgs(c.args).JSON()) {
				t.Errorf("the request is %+v", r)
			}
			if r.Summary != c.summary || r.Text != c.text {
				t.Errorf("summary %q, want %q; text %q, want %q", r.Summary, c.summary, r.Text, c.text)
			}
			if got := strings.Join(r.MustAsk, "; "); (got == "") != (c.ask == "") || !strings.Contains(got, c.ask) {
				t.Errorf("must ask %q, want %q", got, c.ask)
			}
			if p := r.Paths; len(p) != 1 || p[0].Path != filepath.Join(d.root, p[0].Rel) || p[0].Write != (c.effect != approval.Read) {
				t.Errorf("paths %+v", p)
			}
		})
	}
	if d.content("a.txt") != "one\ntwo\n" {
		t.Error("planning wrote")
	}
}

// TestSecretsAnswerAfterTheQuestion checks that a model cannot learn what a secret
// file holds from plans that fail.
func TestSecretsAnswerAfterTheQuestion(t *testing.T) {
	d := newDesk(t, Options{})
	d.put(".env", "TOKEN=abcdef\n")
	for name, c := range map[string]struct {
		tool string
		args args
		want string
	}{
		"not found": {"replace_text", args{"path": ".env", "old_text": "TOKEN=abcdeg", "new_text": "x"}, "TOKEN=abcdef"},
		"twice":     {"replace_text", args{"path": ".env", "old_text": "E", "new_text": "e", "expected_sha256": strings.Repeat("0", 64)}, sum("TOKEN=abcdef\n")},
		"stale":     {"write_file", args{"path": ".env", "content": "x", "expected_sha256": strings.Repeat("0", 64)}, sum("TOKEN=abcdef\n")},
	} {
		t.Run(name, func(t *testing.T) {
			action, err := d.plan(c.tool, c.args)
			if err != nil {
				t.Fatalf("the plan tells the model: %v", err)
			}
			if len(action.Request().MustAsk) == 0 {
				t.Error("nobody is asked")
			}
			wants(t, d.do(action), tools.Failed, c.want)
		})
	}
	if d.content(".env") != "TOKEN=abcdef\n" {
		t.Error("the file changed")
	}
}

func TestCancelled(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("a.txt", strings.Repeat("line\n", 100000))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for name, a := range map[string]args{
		"read_file":       {"path": "a.txt"},
		"read_file_range": {"path": "a.txt", "start_line": 1, "end_line": 2},
		"write_file":      {"path": "a.txt", "content": "x"},
		"replace_text":    {"path": "a.txt", "old_text": strings.Repeat("line\n", 100000), "new_text": "x"},
	} {
		action, err := d.plan(name, a)
		if err != nil {
			t.Fatal(err)
		}
		permit, err := d.gate.Authorize(context.Background(), action.Request())
		if err != nil {
			t.Fatal(err)
		}
		result, err := action.Do(ctx, permit, nil)
		if err != nil || result.Status != tools.Cancelled {
			t.Errorf("%s: %v, %v", name, result, err)
		}
	}
	if !strings.HasPrefix(d.content("a.txt"), "line\n") {
		t.Error("the file changed")
	}
}

// TestChangedBetween changes the file between plan and do.
func TestChangedBetween(t *testing.T) {
	for name, a := range map[string]args{
		"write_file":   {"path": "a.txt", "content": "x"},
		"replace_text": {"path": "a.txt", "old_text": "old", "new_text": "new"},
	} {
		d := newDesk(t, Options{})
		d.put("a.txt", "old\n")
		action, err := d.plan(name, a)
		if err != nil {
			t.Fatal(err)
		}
		d.put("a.txt", "old, edited\n")
		wants(t, d.do(action), tools.Failed, "a.txt changed", "Read it again")
		if d.content("a.txt") != "old, edited\n" {
			t.Errorf("%s: the edit of the user is lost", name)
		}
	}
	d := newDesk(t, Options{})
	action, err := d.plan("write_file", args{"path": "new.txt", "content": "x"})
	if err != nil {
		t.Fatal(err)
	}
	d.put("new.txt", "theirs")
	wants(t, d.do(action), tools.Failed, "new.txt changed")
	if d.content("new.txt") != "theirs" {
		t.Error("a file that came to be was replaced")
	}
}
