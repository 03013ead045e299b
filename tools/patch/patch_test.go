package patch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// bench is a workspace on disk with the tool over it.
type bench struct {
	t    testing.TB
	root string
	w    *workspace.Workspace
	tool tools.Tool
}

func newBench(t testing.TB, files map[string]string) *bench {
	t.Helper()
	root := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	b := &bench{t: t, root: root, w: w, tool: New(w, Options{})}
	for name, content := range files {
		b.write(name, content)
	}
	return b
}

func (b *bench) write(name, content string) {
	b.t.Helper()
	full := filepath.Join(b.root, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.root, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// tree returns every file with its content, links with their targets.
func (b *bench) tree() map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(b.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(b.root, name)
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			out[rel] = "-> " + target
			return err
		}
		content, err := os.ReadFile(name)
		out[rel] = string(content)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) plan(patch string) (tools.Action, error) {
	return b.tool.Plan(context.Background(), tools.Call{ID: "c1", Args: tools.NewArgs(map[string]any{"patch": patch})})
}

type allowAll struct{}

func (allowAll) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}
func (allowAll) Record(approval.Record) error { return nil }

func (b *bench) do(a tools.Action) tools.Result {
	b.t.Helper()
	gate := &approval.Gate{Policy: allowAll{}, Recorder: allowAll{}}
	permit, err := gate.Authorize(context.Background(), a.Request())
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := a.Do(context.Background(), permit, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// apply plans and does a patch that must land.
func (b *bench) apply(patch string) tools.Result {
	b.t.Helper()
	a, err := b.plan(patch)
	if err != nil {
		b.t.Fatalf("plan: %v\nof\n%s", err, patch)
	}
	res := b.do(a)
	if res.Status != tools.OK {
		b.t.Fatalf("do: %s", res.Text)
	}
	return res
}

// refuse plans a patch that must be rejected with all of the words, and holds the
// workspace to what it was.
func (b *bench) refuse(patch string, words ...string) string {
	b.t.Helper()
	before := b.tree()
	_, err := b.plan(patch)
	if err == nil {
		b.t.Fatalf("accepted\n%s", patch)
	}
	var withholds interface{ WithholdsEdits() bool }
	if !errors.As(err, &withholds) || !withholds.WithholdsEdits() {
		b.t.Errorf("%v does not withhold edits", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			b.t.Errorf("the error lacks %q:\n%v", word, err)
		}
	}
	if !strings.Contains(err.Error(), contract) {
		b.t.Errorf("the error lacks the contract:\n%v", err)
	}
	b.same(before)
	return err.Error()
}

func (b *bench) same(before map[string]string) {
	b.t.Helper()
	after := b.tree()
	for name := range before {
		if before[name] != after[name] {
			b.t.Errorf("%s changed from %q to %q", name, before[name], after[name])
		}
	}
	if len(before) != len(after) {
		b.t.Errorf("%d files, want %d", len(after), len(before))
	}
}

func (b *bench) want(name, content string) {
	b.t.Helper()
	if got := b.read(name); got != content {
		b.t.Errorf("%s holds %q, want %q", name, got, content)
	}
}

func (b *bench) gone(name string) {
	b.t.Helper()
	if _, err := os.Lstat(filepath.Join(b.root, name)); !errors.Is(err, fs.ErrNotExist) {
		b.t.Errorf("%s is still there", name)
	}
}

// onF wraps hunks in the header of file f.
func onF(hunks string) string { return "--- a/f\n+++ b/f\n" + hunks }

// TestOneFile applies patches to one file f.
func TestOneFile(t *testing.T) {
	tests := []struct{ name, file, patch, want string }{
		{"plain", "a\nb\nc\n", onF("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"},
		{"git header", "a\nb\n", "diff --git a/f b/f\nindex 1234567..89abcde 100644\n" + onF("@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), "a\nB\n"},
		{"names without prefix", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "b\n"},
		{"names with times", "a\n", "--- a/f\t2024-01-01 10:00:00.000 +0000\n+++ b/f 2024-01-01 10:00:00\n@@ -1 +1 @@\n-a\n+b\n", "b\n"},
		{"V7 count smaller than the body", "a\nb\n", onF("@@ -1,1 +1,1 @@\n a\n-b\n+B\n+C\n+D\n"), "a\nB\nC\nD\n"},
		{"V7 count larger than the body", "a\nb\n", onF("@@ -1,9 +1,9 @@\n a\n-b\n+B\n"), "a\nB\n"},
		{"no counts", "a\nb\n", onF("@@\n a\n-b\n+B\n"), "a\nB\n"},
		{"no newline after the last line of the patch", "a\nb\n", onF("@@ -1,2 +1,2 @@\n a\n-b\n+B"), "a\nB\n"},
		{"several hunks", "a\nb\nc\nd\ne\nf\n", onF("@@ -1 +1 @@\n-a\n+A\n@@ -6 +6 @@\n-f\n+F\n"), "A\nb\nc\nd\ne\nF\n"},
		{"removed line that looks like a header", "a\n-- x\nb\n", onF("@@ -1,3 +1,3 @@\n a\n--- x\n+++ y\n b\n"), "a\n++ y\nb\n"},
		{"the same before a hunk, by the counts", "-- x\nb\nc\nd\ne\nf\n", onF("@@ -1,1 +1,1 @@\n--- x\n+++ y\n@@ -6,1 +6,1 @@\n-f\n+F\n"), "++ y\nb\nc\nd\ne\nF\n"},

		{"X01 LF patch on a CRLF file", "a\r\nb\r\nc\r\n", onF("@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n"), "a\r\nB\r\nB2\r\nc\r\n"},
		{"X01 insertion into a CRLF file", "a\r\nb\r\n", onF("@@ -1,2 +1,3 @@\n a\n+x\n b\n"), "a\r\nx\r\nb\r\n"},
		{"X01 mixed file, only the changed line", "a\r\nb\nc\r\nd\n", onF("@@ -1,4 +1,4 @@\n a\n b\n-c\n+C\n d\n"), "a\r\nb\nC\r\nd\n"},
		{"V9 CRLF patch on an LF file", "a\nb\n", "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,3 @@\r\n a\r\n-b\r\n+B\r\n+C\r\n", "a\nB\nC\n"},
		{"V9 carriage returns in the body only", "a\nb\n", onF("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"), "a\nB\n"},
		{"CRLF patch on a CRLF file", "a\r\nb\r\n", "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+B\r\n", "a\r\nB\r\n"},
		{"carriage returns shown by diff", "a\r\nb\r\n", onF("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"), "a\r\nB\r\n"},
		{"X02 CRLF envelope", "a\nb\n", "*** Begin Patch\r\n*** Update File: f\r\n@@\r\n a\r\n-b\r\n+B\r\n*** End Patch\r", "a\nB\n"},
		{"a lone CR is content", "a\rb\nc\n", onF("@@ -1,2 +1,2 @@\n a\rb\n-c\n+C\n"), "a\rb\nC\n"},

		{"X03 state kept without the marker", "a\nb", onF("@@ -1,2 +1,2 @@\n a\n-b\n+B\n"), "a\nB"},
		{"X03 state kept with the marker", "a\nb", onF("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n"), "a\nB"},
		{"X03 newline added", "a\nb", onF("@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"), "a\nb\n"},
		{"X03 newline removed", "a\nb\n", onF("@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"), "a\nb"},
		{"X03 appended, state kept", "a\nb", onF("@@ -2 +2,2 @@\n b\n+c\n"), "a\nb\nc"},
		{"X03 appended as diff shows it", "a\nb", onF("@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n"), "a\nb\nc\n"},
		{"X03 appended to a file with newline", "a\nb\n", onF("@@ -2 +2,2 @@\n b\n+c\n"), "a\nb\nc\n"},
		{"X03 change above a last line without newline", "a\nb", onF("@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"), "A\nb"},
		{"X03 last line removed", "a\nb", onF("@@ -1,2 +1 @@\n a\n-b\n\\ No newline at end of file\n"), "a\n"},
		{"X03 CRLF file without newline", "a\r\nb", onF("@@ -2 +2,2 @@\n b\n+c\n"), "a\r\nb\r\nc"},

		{"X06 the line number decides", "x\ny\nz\n1\nx\ny\nz\n", onF("@@ -5,3 +5,3 @@\n x\n-y\n+Y\n z\n"), "x\ny\nz\n1\nx\nY\nz\n"},
		{"a wrong number does not matter when the context is unique", "a\nb\nc\n", onF("@@ -40,3 +41,3 @@\n a\n-b\n+B\n c\n"), "a\nB\nc\n"},
		{"X06 the @@ line decides", "class A\n  x = 1\nclass B\n  x = 1\n", onF("@@ class B\n-  x = 1\n+  x = 2\n"), "class A\n  x = 1\nclass B\n  x = 2\n"},
		{"nested @@ lines", "class A\n def f\n  x\n def g\n  x\nclass B\n def f\n  x\n", onF("@@ class B\n@@ def f\n-  x\n+  y\n"), "class A\n def f\n  x\n def g\n  x\nclass B\n def f\n  y\n"},
		{"@@ line that begins a line", "def f(a, b):\n  x\ndef g():\n  x\n", onF("@@ def g @@\n-  x\n+  y\n"), "def f(a, b):\n  x\ndef g():\n  y\n"},
		{"heading after the numbers is not context", "a\nb\n", onF("@@ -1,2 +1,2 @@ func nowhere() {\n a\n-b\n+B\n"), "a\nB\n"},
		{"X07 into an empty file", "", onF("@@ -0,0 +1,2 @@\n+a\n+b\n"), "a\nb\n"},
		{"X07 explicit end of file", "a\n", "*** Begin Patch\n*** Update File: f\n@@\n+b\n*** End of File\n*** End Patch\n", "a\nb\n"},
		{"end of file decides", "x\ny\nx\n", "*** Begin Patch\n*** Update File: f\n@@\n-x\n+z\n*** End of File\n*** End Patch\n", "x\ny\nz\n"},

		{"X08 blank context without space", "a\n\nb\n", onF("@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n"), "a\n\nB\n"},
		{"X08 trailing blanks trimmed", "a  \n\t\nb\t\nc \n", onF("@@ -1,4 +1,4 @@\n a\n\n-b\n+B\n c\n"), "a  \n\t\nB\nc \n"},
		{"X08 trailing blanks added", "a\nb\n", onF("@@ -1,2 +1,2 @@\n a  \n-b \n+B\n"), "a\nB\n"},
		{"X08 exact lines come first", "a \nb\na\nb\n", onF("@@\n a\n-b\n+B\n"), "a \nb\na\nB\n"},
		{"empty lines after the patch", "a\nb\n", onF("@@ -1,2 +1,2 @@\n a\n-b\n+B\n\n\n"), "a\nB\n"},
		{"new text keeps its trailing blanks", "a\n", onF("@@ -1 +1 @@\n-a\n+a  \n"), "a  \n"},

		{"X09 fence", "a\n", "```diff\n" + onF("@@ -1 +1 @@\n-a\n+b\n") + "```\n", "b\n"},
		{"X09 fence with prose around", "a\n", "Here is the fix:\n- better\n\n```diff\n" + onF("@@ -1 +1 @@\n-a\n+b\n") + "```\nThis changes a.\n", "b\n"},
		{"X09 heredoc", "a\n", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\nEOF\n", "b\n"},
		{"X09 heredoc of a shell", "a\n", "bash -lc \"git apply <<PATCH\n" + onF("@@ -1 +1 @@\n-a\n+b\n") + "PATCH\"\n", "b\n"},
		{"X09 backslashes and entities that are meant", "a\\n&lt;\n", onF("@@ -1 +1 @@\n-a\\n&lt;\n+b\\n&gt;\n"), "b\\n&gt;\n"},
		{"mail from git", "a\n", "From 0123 Mon Sep 17\nSubject: [PATCH] x\n\n---\n f | 2 +-\n\ndiff --git a/f b/f\n" + onF("@@ -1 +1 @@\n-a\n+b\n-- \n2.40.1\n\n"), "b\n"},

		{"X16 hunks out of order", "a\nb\nc\nd\ne\nf\n", onF("@@ -5 +5 @@\n-e\n+E\n@@ -1 +1 @@\n-a\n+A\n"), "A\nb\nc\nd\nE\nf\n"},
		{"X16 hunks that share context", "a\nb\nc\nd\n", onF("@@\n a\n-b\n+B\n c\n@@\n c\n-d\n+D\n"), "a\nB\nc\nD\n"},
		{"X16 appended below context of another hunk", "a\nb\nc\n", "*** Begin Patch\n*** Update File: f\n@@\n a\n-b\n+B\n c\n@@\n+d\n*** End of File\n*** End Patch", "a\nB\nc\nd\n"},
		{"X16 the same file twice", "a\nb\nc\n", onF("@@ -1 +1 @@\n-a\n+A\n") + onF("@@ -3 +3 @@\n-c\n+C\n"), "A\nb\nC\n"},
		{"X16 two envelope sections of one file", "a\nb\nc\n", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n*** Update File: f\n@@\n-c\n+C\n*** End Patch\n", "A\nb\nC\n"},

		{"R06 BOM", "\ufeffa\nb\n", onF("@@ -1,2 +1,2 @@\n-a\n+A\n b\n"), "\ufeffA\nb\n"},
		{"R06 BOM in the patch too", "\ufeffa\nb\n", onF("@@ -1,2 +1,2 @@\n-\ufeffa\n+\ufeffA\n b\n"), "\ufeffA\nb\n"},
		{"R07 other bytes stay", "a\nb\ncaf\xe9\n\xff\xfe\n", onF("@@ -1,2 +1,2 @@\n-a\n+A\n b\n"), "A\nb\ncaf\xe9\n\xff\xfe\n"},
		{"R03 no meta characters", "a.*b$1\n", onF("@@ -1 +1 @@\n-a.*b$1\n+$& \\1 %s\n"), "$& \\1 %s\n"},

		{"envelope without @@", "a\nb\n", "*** Begin Patch\n*** Update File: f\n a\n-b\n+B\n*** End Patch\n", "a\nB\n"},
		{"envelope without begin and end", "a\nb\n", "*** Update File: f\n@@\n a\n-b\n+B\n", "a\nB\n"},
		{"envelope with the headers of a diff", "a\nb\n", "*** Begin Patch\n*** Update File: f\n--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n*** End Patch\n", "a\nB\n"},
		{"a diff in an envelope", "a\nb\n", "*** Begin Patch\n" + onF("@@ -1,2 +1,2 @@\n a\n-b\n+B\n") + "*** End Patch\n", "a\nB\n"},
		{"no context at all but removed lines", "a\nb\n", onF("@@ -2 +2 @@\n-b\n+B\n"), "a\nB\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"f": tt.file})
			res := b.apply(tt.patch)
			b.want("f", tt.want)
			if len(res.Changed) != 1 || res.Changed[0] != "f" {
				t.Errorf("changed %q", res.Changed)
			}
		})
	}
}

// TestRefused holds each refusal to its words; nothing is written.
func TestRefused(t *testing.T) {
	files := map[string]string{
		"f": "a\nb\nc\n", "twice": "x\ny\nz\n1\nx\ny\nz\n", "code.py": "def f():\n\tx = 1\n\treturn \"<x>\"\n", "dir/x": "x\n",
		"binary": "a\x00b\n", "empty": "", "indent.py": "def f():\n    x = 1\n    y = 2\n", "other": "o\n",
	}
	on := func(name, hunks string) string { return "--- a/" + name + "\n+++ b/" + name + "\n" + hunks }
	tests := []struct {
		name, patch string
		words       []string
	}{
		{"empty", " \n", []string{"empty"}},
		{"prose only", "I changed the file.\n", []string{"no file header"}},
		{"zero hunks", on("f", ""), []string{`"f"`, "no hunk"}},
		{"envelope with zero hunks", "*** Begin Patch\n*** Update File: f\n*** End Patch", []string{"no hunk"}},
		{"empty envelope", "*** Begin Patch\n*** End Patch", []string{"no hunk"}},
		{"hunk without lines", on("f", "@@ -1,3 +1,3 @@\n"), []string{"no lines"}},
		{"hunk without change", on("f", "@@ -1,3 +1,3 @@\n a\n b\n c\n"), []string{"hunk 1", "changes nothing"}},
		{"hunk that changes nothing in effect", on("f", "@@ -1,3 +1,3 @@\n a\n-b\n+b\n c\n"), []string{"would not change"}},
		{"line ends are not changed", on("f", "@@ -1,3 +1,3 @@\n a\n-b\n+b\r\n c\n"), []string{"would not change", "Line ends"}},
		{"hunk without file", "@@ -1 +1 @@\n-a\n+b\n", []string{"line 1", "no file is named"}},
		{"V7 leftover in a hunk", on("f", "@@ -1,2 +1,2 @@\n a\n-b\n+B\nc\n"), []string{"line 7", "`c`", "belongs to nothing"}},
		{"V7 leftover after a hunk", on("f", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n\nThat is all.\n"), []string{"`That is all.`", "belongs to nothing"}},
		{"leftover after an envelope", "*** Begin Patch\n*** Delete File: f\n*** End Patch\n+x\n", []string{"`+x`", "belongs to no file"}},
		{"tab in place of the space", on("code.py", "@@\n\tx = 1\n-\treturn \"<x>\"\n+\treturn 2\n"), []string{"no lines"}},
		{"context diff", "*** a/f\n--- b/f\n***************\n*** 1,2 ****\n! a\n", []string{"no file header"}},
		{"combined diff", on("f", "@@@ -1 -1 +1 @@@\n- a\n++b\n"), []string{"combined"}},
		{"two names", "--- a/f\n+++ b/other\n@@ -1 +1 @@\n-a\n+b\n", []string{"two files", "rename from"}},
		{"two names of git and below", "diff --git a/f b/f\n" + on("other", "@@ -1 +1 @@\n-o\n+p\n"), []string{"diff --git"}},
		{"created and deleted", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", []string{"two files"}},

		{"context not found", on("f", "@@ -1,3 +1,3 @@\n a\n-q\n+B\n c\n"), []string{"hunk 1 of \"f\" (line 3)", "nearest place is line 1", "line 2 is\n  `b`", "has\n  `q`", "2: b"}},
		{"context beyond the end", on("f", "@@ -2,3 +2,3 @@\n b\n c\n-d\n+D\n"), []string{"ends after line 3", "`d`"}},
		{"R05 spaces for a tab", on("code.py", "@@\n def f():\n-    x = 1\n+    x = 2\n"), []string{"begins with 1 tab, the hunk's with 4 spaces"}},
		{"nothing alike", on("f", "@@\n-completely different\n+x\n"), []string{"No line of the file is like `completely different`"}},
		{"nearest line", on("code.py", "@@\n-\treturn \"<y>\"\n+x\n"), []string{"nearest line of the file is 3:\n  `\treturn \"<x>\"`"}},
		{"against an empty file", on("empty", "@@\n-a\n+b\n"), []string{"file is empty"}},
		{"applied already", on("f", "@@\n-was\n+a\n b\n"), []string{"applied already"}},
		{"X06 ambiguous without a number", on("twice", "@@\n x\n-y\n+Y\n z\n"), []string{"lines 1 and 5", "not clear"}},
		{"X06 ambiguous with a number off by 40", on("twice", "@@ -45,3 +45,3 @@\n x\n-y\n+Y\n z\n"), []string{"lines 1 and 5", "line 45, which is none"}},
		{"X06 a number does not count when others are off", on("twice", "@@ -3,1 +3,1 @@\n-1\n+2\n@@ -5,3 +5,3 @@\n x\n-y\n+Y\n z\n"), []string{"hunk 2", "does not count"}},
		{"X06 overlapping places", on("g", "@@\n-a\n-a\n+b\n"), []string{"lines 1 and 2"}},
		{"@@ line not in the file", on("f", "@@ class Missing\n-b\n+B\n"), []string{"`class Missing`", "not in the file"}},
		{"lines not below the @@ line", on("f", "@@ c\n-b\n+B\n"), []string{"at line 2", "not below", "`c`"}},
		{"not at the end", "*** Begin Patch\n*** Update File: f\n@@\n-b\n+B\n*** End of File\n*** End Patch", []string{"does not end there"}},
		{"X07 pure insertion", on("f", "@@\n+import x\n"), []string{"only adds lines", "unchanged line"}},
		{"X07 pure insertion with a number", on("f", "@@ -2,0 +3 @@\n+import x\n"), []string{"only adds lines"}},
		{"X07 pure insertion at zero", on("f", "@@ -0,0 +1 @@\n+import x\n"), []string{"only adds lines"}},

		{"X09 literal line breaks", `--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n`, []string{`two characters \n`}},
		{"X09 literal line breaks in a header", "--- a/f\n+++ b/f\\n@@ -1 +1 @@\\n-a\\n+b\n", []string{`two characters \n`}},
		{"X09 literal line breaks in a hunk", on("f", `@@ -1,2 +1,2 @@\n a\n-b\n+B`), []string{`two characters \n`}},
		{"X09 literal line breaks in an envelope", `*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch`, []string{`two characters \n`}},
		{"X09 JSON escapes", on("code.py", "@@\n-\treturn \\\"<x>\\\"\n+\treturn 2\n"), []string{"backslash escapes"}},
		{"X09 HTML entities", on("code.py", "@@\n-\treturn &quot;&lt;x&gt;&quot;\n+\treturn 2\n"), []string{"HTML entities"}},
		{"line numbers copied", on("f", "@@\n 1: a\n-2: b\n+2: B\n"), []string{"line numbers"}},
		{"space in front lost", on("indent.py", "@@\n    x = 1\n-    y = 2\n+    y = 3\n"), []string{"lack the one space"}},

		{"X11 symbolic link", "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n", []string{"symbolic link"}},
		{"X11 changed link", "diff --git a/l b/l\nindex 1234567..89abcde 120000\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-f\n+/etc\n", []string{"symbolic link"}},
		{"X11 gitlink", "diff --git a/s b/s\nnew file mode 160000\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit 1234\n", []string{"submodule"}},
		{"X11 setuid", "diff --git a/s b/s\nnew file mode 104755\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+x\n", []string{"104755"}},
		{"X11 other mode", "diff --git a/f b/f\nold mode 100644\nnew mode 100777\n", []string{"100777"}},
		{"X11 mode without diff line", "new file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", []string{"symbolic link"}},
		{"mode as it is", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n", []string{"would not change"}},

		{"X13 add over a file", "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch", []string{`"f"`, "exists already"}},
		{"X13 create over a file", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", []string{"exists already"}},
		{"X13 add over a directory", "*** Begin Patch\n*** Add File: dir\n+x\n*** End Patch", []string{`"dir"`, "directory"}},
		{"X13 move over a file", "*** Begin Patch\n*** Update File: f\n*** Move to: other\n@@\n-b\n+B\n*** End Patch", []string{`"other"`, "exists already"}},
		{"X13 move onto itself", "*** Begin Patch\n*** Update File: f\n*** Move to: ./f\n@@\n-b\n+B\n*** End Patch", []string{"onto itself"}},
		{"X13 swap", "diff --git a/f b/other\nrename from f\nrename to other\ndiff --git a/other b/f\nrename from other\nrename to f\n", []string{"exists already"}},
		{"X13 rename over a file", "diff --git a/f b/other\nsimilarity index 100%\nrename from f\nrename to other\n", []string{"exists already"}},
		{"two files moved to one name", "diff --git a/f b/n\nrename from f\nrename to n\ndiff --git a/other b/n\nrename from other\nrename to n\n", []string{`"n" is named twice`}},
		{"copied and deleted", "diff --git a/f b/n\ncopy from f\ncopy to n\n*** Delete File: f\n", []string{"named twice"}},
		{"rename without target", "diff --git a/f b/n\nrename from f\n", []string{"rename to NEW"}},
		{"move in the wrong place", "*** Begin Patch\n*** Move to: x\n*** End Patch", []string{"directly below"}},
		{"file and directory of one name", "*** Begin Patch\n*** Add File: n\n+x\n*** Add File: n/m\n+x\n*** End Patch", []string{`"n/m" needs a directory`}},
		{"added twice", "*** Begin Patch\n*** Add File: n\n+x\n*** Add File: n\n+y\n*** End Patch", []string{"named twice"}},
		{"updated and deleted", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+A\n*** Delete File: f\n*** End Patch", []string{"named twice"}},
		{"line of a new file without plus", "*** Begin Patch\n*** Add File: n\n+x\n y\n*** End Patch", []string{"begins with \"+\""}},
		{"raw line of a new file", "*** Begin Patch\n*** Add File: n\n+x\ny\n*** End Patch", []string{"line 4", "begins with \"+\""}},

		{"X14 second file does not match", on("f", "@@\n-b\n+B\n") + on("other", "@@\n-q\n+B\n"), []string{`"other"`}},
		{"X14 second file is missing", on("f", "@@\n-b\n+B\n") + on("missing", "@@\n-q\n+B\n"), []string{`"missing"`, "does not exist", "/dev/null"}},
		{"X15 binary patch", "diff --git a/binary b/binary\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 3\nKcmZQz\n", []string{"binary patch"}},
		{"X15 binary files differ", "diff --git a/binary b/binary\nindex 1234567..89abcde 100644\nBinary files a/binary and b/binary differ\n", []string{"binary patch"}},
		{"X15 NUL in the target", on("binary", "@@\n-a\n+b\n"), []string{"not text", "4 bytes"}},
		{"X15 NUL in the patch", on("f", "@@\n-b\n+B\x00\n"), []string{"NUL"}},
		{"X16 overlapping hunks", on("f", "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n"), []string{"hunk 2", "hunk 1 both cover line 2"}},
		{"X16 one line changed twice", on("f", "@@\n-b\n+B\n@@\n-b\n+C\n"), []string{"both cover line 2"}},
		{"X16 two insertions at one place", on("f", "@@\n a\n+x\n b\n@@\n a\n+y\n b\n"), []string{"both cover"}},
		{"X16 two changes at the end", "*** Begin Patch\n*** Update File: f\n@@\n-c\n@@\n+x\n*** End of File\n*** End Patch", []string{"both cover line 4"}},
		{"X18 delete a directory", "*** Begin Patch\n*** Delete File: dir\n*** End Patch", []string{`"dir"`, "directory"}},
		{"X18 delete what does not exist", "*** Begin Patch\n*** Delete File: nope\n*** End Patch", []string{"does not exist"}},
		{"X18 deletion that leaves lines", "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", []string{"leave 2 bytes"}},
		{"X18 deletion of other content", "--- a/f\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-q\n-c\n", []string{"hunk 1", "`q`"}},
		{"X18 deletion without lines", "diff --git a/f b/f\ndeleted file mode 100644\n", []string{"leave 6 bytes"}},
		{"update of a directory", on("dir", "@@\n-a\n+b\n"), []string{"directory"}},

		{"outside by dots", on("../out", "@@\n-a\n+b\n"), []string{"../out"}},
		{"outside, absolute", "--- /etc/passwd\n+++ /etc/passwd\n@@\n-a\n+b\n", []string{"/etc/passwd"}},
		{"V8 .git", "--- /dev/null\n+++ b/.git/hooks/x\n@@ -0,0 +1 @@\n+x\n", []string{".git"}},
		{"V8 .GIT", "*** Begin Patch\n*** Add File: sub/.GIT/config\n+x\n*** End Patch", []string{".GIT"}},
		{"V8 git~1", "*** Begin Patch\n*** Add File: git~1/config\n+x\n*** End Patch", []string{"git~1"}},
		{"move into .git", "*** Begin Patch\n*** Update File: f\n*** Move to: .git/x\n@@\n-b\n+B\n*** End Patch", []string{".git"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, files)
			b.write("g", "a\na\na\n")
			b.refuse(tt.patch, tt.words...)
		})
	}
}
