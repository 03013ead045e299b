package patch

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// TestFiles covers what happens to whole files.
func TestFiles(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		patch string
		want  map[string]string
		line  string
	}{
		{"created", nil, "--- /dev/null\n+++ b/d/e/n\n@@ -0,0 +1,2 @@\n+a\n+b\n", map[string]string{"d/e/n": "a\nb\n"}, "+2 -0 in 1 file"},
		{"created without newline", nil, "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..1234567\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n", map[string]string{"n": "a"}, "+1 -0 in 1 file"},
		{"created with CRLF", nil, "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\r\n+b\r\n", map[string]string{"n": "a\r\nb\r\n"}, "+2 -0 in 1 file"},
		{"created by a patch sent with CRLF", nil, "--- /dev/null\r\n+++ b/n\r\n@@ -0,0 +1,2 @@\r\n+a\r\n+b\r\n", map[string]string{"n": "a\nb\n"}, "+2 -0 in 1 file"},
		{"created without /dev/null", nil, "--- a/n\n+++ b/n\n@@ -0,0 +1 @@\n+a\n", map[string]string{"n": "a\n"}, "+1 -0 in 1 file"},
		{"created empty", nil, "diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", map[string]string{"n": ""}, "+0 -0 in 1 file"},
		{"added", nil, "*** Begin Patch\n*** Add File: n\n+a\n\n+b\n\n*** End Patch\n", map[string]string{"n": "a\n\nb\n"}, "+3 -0 in 1 file"},
		{"added with a hunk header", nil, "*** Begin Patch\n*** Add File: n\n@@ -0,0 +1 @@\n+a\n*** End Patch\n", map[string]string{"n": "a\n"}, "+1 -0 in 1 file"},
		{"added empty", nil, "*** Begin Patch\n*** Add File: n\n*** End Patch\n", map[string]string{"n": ""}, "+0 -0 in 1 file"},
		{"name with blanks and quotes", nil, "--- /dev/null\n+++ \"b/my \\\"n\\\" \\303\\244\"\n@@ -0,0 +1 @@\n+a\n", map[string]string{`my "n" ä`: "a\n"}, "+1 -0 in 1 file"},
		{"deleted", map[string]string{"f": "a\nb"}, "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n\\ No newline at end of file\n", map[string]string{}, "+0 -2 in 1 file"},
		{"deleted, empty", map[string]string{"f": ""}, "diff --git a/f b/f\ndeleted file mode 100644\nindex e69de29..0000000\n", map[string]string{}, "+0 -0 in 1 file"},
		{"deleted by name, binary", map[string]string{"f": "a\x00b", "g": "g"}, "*** Begin Patch\n*** Delete File: f\n*** End Patch", map[string]string{"g": "g"}, "+0 -1 in 1 file"},
		{"renamed", map[string]string{"f": "a\nb\n"}, "diff --git a/f b/d/g\nsimilarity index 100%\nrename from f\nrename to d/g\n", map[string]string{"d/g": "a\nb\n"}, "+0 -0 in 1 file"},
		{"renamed and changed", map[string]string{"f": "a\nb\n"}, "diff --git a/f b/g\nsimilarity index 50%\nrename from f\nrename to g\nindex 1234567..89abcde 100644\n--- a/f\n+++ b/g\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n", map[string]string{"g": "a\nB\n"}, "+1 -1 in 1 file"},
		{"moved and changed", map[string]string{"f": "a\nb\n"}, "*** Begin Patch\n*** Update File: f\n*** Move to: d/g\n@@\n a\n-b\n+B\n*** End Patch", map[string]string{"d/g": "a\nB\n"}, "+1 -1 in 1 file"},
		{"copied", map[string]string{"f": "a\n"}, "diff --git a/f b/g\nsimilarity index 50%\ncopy from f\ncopy to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", map[string]string{"f": "a\n", "g": "b\n"}, "+1 -1 in 1 file"},
		{"several", map[string]string{"f": "a\n", "g": "b\n", "h": "c\n"}, onF("@@ -1 +1 @@\n-a\n+A\n") + "\ndiff --git a/g b/g\n--- a/g\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n*** Begin Patch\n*** Add File: i\n+i\n*** End Patch\n", map[string]string{"f": "A\n", "h": "c\n", "i": "i\n"}, "+2 -2 in 3 files"},
		{"a directory called a", map[string]string{"a/f": "x\n"}, "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"a/f": "y\n"}, "+1 -1 in 1 file"},
		{"the prefix a/ on both sides", map[string]string{"f": "x\n"}, "--- a/f\n+++ a/f\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"f": "y\n"}, "+1 -1 in 1 file"},
		{"mnemonic prefixes", map[string]string{"f": "x\n"}, "--- i/f\n+++ w/f\n@@ -1 +1 @@\n-x\n+y\n", map[string]string{"f": "y\n"}, "+1 -1 in 1 file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.files)
			res := b.apply(tt.patch)
			b.same(tt.want)
			if res.Line != tt.line {
				t.Errorf("line %q, want %q", res.Line, tt.line)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	b := newBench(t, map[string]string{"f": "a\nb\n", "old": "12345", "Makefile": "x\n"})
	patch := onF("@@ -1 +1,2 @@\n-a\n+A &lt;\n") + "*** Begin Patch\n*** Delete File: old\n*** Add File: .envrc\n+x\n*** End Patch\n"
	action, err := b.plan(patch)
	if err != nil {
		t.Fatal(err)
	}
	r := action.Request()
	if r.Effect != approval.WorkspaceWrite || r.Tool != "apply_patch" || r.CallID != "c1" {
		t.Errorf("got %v %q %q", r.Effect, r.Tool, r.CallID)
	}
	want := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A &lt;\n b\n--- a/old\n+++ /dev/null\nfile deleted: 5 bytes\n--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+x\n"
	if r.Text != want {
		t.Errorf("text\n%s\nwant\n%s", r.Text, want)
	}
	if r.Summary != "apply_patch f, old, .envrc" {
		t.Errorf("summary %q", r.Summary)
	}
	if !strings.Contains(r.Args, "Begin Patch") {
		t.Errorf("args %q", r.Args)
	}
	if len(r.MustAsk) != 1 || !strings.HasPrefix(r.MustAsk[0], ".envrc: ") {
		t.Errorf("must ask %q", r.MustAsk)
	}
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "f: the new lines hold HTML entities") {
		t.Errorf("notes %q", r.Notes)
	}
	wantPaths := []approval.PathUse{
		{Path: filepath.Join(b.w.Root(), "f"), Rel: "f", Write: true}, {Path: filepath.Join(b.w.Root(), "old"), Rel: "old", Write: true},
		{Path: filepath.Join(b.w.Root(), ".envrc"), Rel: ".envrc", Write: true},
	}
	if !slices.Equal(r.Paths, wantPaths) {
		t.Errorf("paths %v", r.Paths)
	}
	res := b.do(action)
	if res.Diff != want || res.Line != "+2 -2 in 3 files" || !slices.Equal(res.Changed, []string{"f", "old", ".envrc"}) {
		t.Errorf("result %+v", res)
	}
	if !strings.Contains(res.Text, "f (+1 -1)") || !strings.Contains(res.Text, "old (deleted, +0 -1)") || !strings.Contains(res.Text, "note: ") {
		t.Errorf("text %q", res.Text)
	}
}

func TestExecutableBit(t *testing.T) {
	tests := []struct {
		name         string
		before, want os.FileMode
		patch, shown string
	}{
		{"X11 set", 0o640, 0o750, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", "old mode 100640\nnew mode 100750\n"},
		{"X11 cleared", 0o755, 0o644, "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n", "new mode 100644\n"},
		{"X11 set with a change", 0o644, 0o755, "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n" + onF("@@ -1 +1 @@\n-a\n+b\n"), "new mode 100755\n--- a/f"},
		{"kept by a change", 0o751, 0o751, onF("@@ -1 +1 @@\n-a\n+b\n"), "--- a/f"},
		{"kept by a change that names a mode", 0o751, 0o751, "diff --git a/f b/f\nindex 1234567..89abcde 100644\n" + onF("@@ -1 +1 @@\n-a\n+b\n"), "--- a/f"},
		{"X11 new file", 0o644, 0o755, "diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n", "new file mode 100755\n--- /dev/null"},
		{"kept by a rename", 0o755, 0o755, "diff --git a/f b/n\nrename from f\nrename to n\n", "rename from f\nrename to n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"f": "a\n"})
			if err := os.Chmod(filepath.Join(b.root, "f"), tt.before); err != nil {
				t.Fatal(err)
			}
			action, err := b.plan(tt.patch)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(action.Request().Text, tt.shown) {
				t.Errorf("%q is not shown in\n%s", tt.shown, action.Request().Text)
			}
			if tt.before != tt.want && !strings.Contains(strings.Join(action.Request().Notes, ""), "executable") && tt.want&0o111 != 0 {
				t.Errorf("notes %q", action.Request().Notes)
			}
			res := b.do(action)
			info, err := os.Stat(filepath.Join(b.root, res.Changed[0]))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != tt.want {
				t.Errorf("mode %v, want %v", info.Mode(), tt.want)
			}
		})
	}
}

// TestLinks covers X12: headerless hunks do not go through links that leave.
func TestLinks(t *testing.T) {
	b := newBench(t, map[string]string{"real/f": "a\n"})
	outside := filepath.Join(filepath.Dir(b.root), "outside")
	if err := os.WriteFile(outside, []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"in": "real/f", "abs": filepath.Join(b.root, "real/f"), "dir": "real", "out": outside, "rel-out": "../outside", "dangling": "real/none", "up": "..",
	} {
		if err := os.Symlink(target, filepath.Join(b.root, name)); err != nil {
			t.Fatal(err)
		}
	}
	change := func(name string) string {
		return "--- " + name + "\n+++ " + name + "\n@@ -1 +1 @@\n-a\n+b\n"
	}
	b.refuse(change("out"), "out")
	b.refuse(change("rel-out"), "rel-out")
	b.refuse(change("up/outside"), "up/outside")
	b.refuse("*** Begin Patch\n*** Add File: dangling\n+x\n*** End Patch", "link to \"real/none\"")
	b.refuse("*** Begin Patch\n*** Add File: up/new\n+x\n*** End Patch", "up/new")
	b.refuse("*** Begin Patch\n*** Delete File: in\n*** End Patch", "link to \"real/f\"")
	b.refuse("diff --git a/in b/n\nrename from in\nrename to n\n", "link to \"real/f\"")
	b.refuse("diff --git a/real/f b/dangling\nrename from real/f\nrename to dangling\n", "link to \"real/none\"")
	for _, name := range []string{"in", "abs", "dir/f"} {
		b.write("real/f", "a\n")
		action, err := b.plan(change(name))
		if err != nil {
			t.Fatal(err)
		}
		if notes := action.Request().Notes; len(notes) != 1 || notes[0] != name+" leads to real/f" {
			t.Errorf("notes %q", notes)
		}
		if res := b.do(action); !slices.Equal(res.Changed, []string{"real/f"}) {
			t.Errorf("changed %q", res.Changed)
		}
		b.want("real/f", "b\n")
	}
	if target, err := os.Readlink(filepath.Join(b.root, "in")); err != nil || target != "real/f" {
		t.Errorf("the link is now %q %v", target, err)
	}
	b.refuse(change("in")+change("real/f"), "hunk 1")
	b.apply("*** Begin Patch\n*** Delete File: dir/f\n*** End Patch")
	b.gone("real/f")
	if content, _ := os.ReadFile(outside); string(content) != "a\n" {
		t.Errorf("outside holds %q", content)
	}
}

// TestReadOnly covers the first part of X14 and R10.
func TestReadOnly(t *testing.T) {
	b := newBench(t, map[string]string{"f": "a\n", "ro": "a\n"})
	if err := os.Chmod(filepath.Join(b.root, "ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.refuse(onF("@@\n-a\n+b\n")+"--- a/ro\n+++ b/ro\n@@\n-a\n+b\n", "read-only")
	b.refuse("*** Begin Patch\n*** Delete File: ro\n*** End Patch", "read-only")
}

func TestSpecialFiles(t *testing.T) {
	b := newBench(t, nil)
	if err := syscall.Mkfifo(filepath.Join(b.root, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, patch := range []string{
		"--- a/pipe\n+++ b/pipe\n@@\n-a\n+b\n", "*** Delete File: pipe\n", "*** Add File: pipe\n+a\n",
		"diff --git a/pipe b/n\nrename from pipe\nrename to n\n", "diff --git a/pipe b/n\ncopy from pipe\ncopy to n\n",
	} {
		if _, err := b.plan(patch); err == nil {
			t.Errorf("accepted\n%s", patch)
		}
	}
}

func TestHardLinksAsk(t *testing.T) {
	b := newBench(t, map[string]string{"f": "secret\n"})
	if err := os.Link(filepath.Join(b.root, "f"), filepath.Join(b.root, "g")); err != nil {
		t.Fatal(err)
	}
	action, err := b.plan(onF("@@\n-secret\n+b\n"))
	if err != nil {
		t.Fatal(err)
	}
	if ask := action.Request().MustAsk; len(ask) != 1 || !strings.Contains(ask[0], "2 hard links") {
		t.Errorf("must ask %q", ask)
	}
}

// TestSecretsStayHidden: an error reaches the model without a question, so it shows
// nothing of a file whose reading asks.
func TestSecretsStayHidden(t *testing.T) {
	b := newBench(t, map[string]string{".env": "KEY=hunter2\nOTHER=x\n"})
	text := b.refuse("--- a/.env\n+++ b/.env\n@@ -1,2 +1,2 @@\n-KEY=\n+KEY=1\n OTHER=x\n", "not shown here")
	if strings.Contains(text, "hunter2") {
		t.Errorf("the error shows the secret:\n%s", text)
	}
	action, err := b.plan("diff --git a/.env b/plain\ncopy from .env\ncopy to plain\n")
	if err != nil {
		t.Fatal(err)
	}
	if ask := action.Request().MustAsk; len(ask) != 1 || !strings.HasPrefix(ask[0], ".env: ") {
		t.Errorf("a copy of a secret must ask: %q", ask)
	}
	if paths := action.Request().Paths; len(paths) != 2 || paths[1].Rel != ".env" || paths[1].Write {
		t.Errorf("paths %v", paths)
	}
}

// TestChangedMeanwhile covers X17: the file changes after Plan.
func TestChangedMeanwhile(t *testing.T) {
	b := newBench(t, map[string]string{"f": "a\nb\n", "g": "g\n"})
	action, err := b.plan("--- a/g\n+++ b/g\n@@\n-g\n+G\n" + onF("@@\n-a\n+A\n") + "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
	if err != nil {
		t.Fatal(err)
	}
	b.write("f", "a\nb\nadded\n")
	res := b.do(action)
	if res.Status != tools.Failed || !strings.Contains(res.Text, `"f"`) || !strings.Contains(res.Text, "Read the file again") || len(res.Changed) != 0 {
		t.Errorf("result %+v", res)
	}
	b.same(map[string]string{"f": "a\nb\nadded\n", "g": "g\n"})

	action, err = b.plan("--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
	if err != nil {
		t.Fatal(err)
	}
	b.write("new", "mine\n")
	if res := b.do(action); res.Status != tools.Failed {
		t.Errorf("result %+v", res)
	}
	b.want("new", "mine\n")

	action, err = b.plan("diff --git a/f b/copy\ncopy from f\ncopy to copy\n")
	if err != nil {
		t.Fatal(err)
	}
	b.write("f", "other\n")
	if res := b.do(action); res.Status != tools.Failed || !strings.Contains(res.Text, `"f"`) {
		t.Errorf("result %+v", res)
	}
	b.gone("copy")
}

// TestPartReported covers the rest of X14: what an error left behind is reported as
// it is on disk.
func TestPartReported(t *testing.T) {
	b := newBench(t, map[string]string{"f": "a\n"})
	sections, err := parse(onF("@@\n-a\n+A\n") + "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n")
	if err != nil {
		t.Fatal(err)
	}
	p := &plan{w: b.w, maxFile: defaultMaxFile}
	for _, s := range sections {
		if err := p.take(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range p.files {
		if err := p.work(f); err != nil {
			t.Fatal(err)
		}
	}
	cause := errors.New("disk full")
	if res := p.failed(cause, shown{}); res.Status != tools.Failed || !strings.Contains(res.Text, "Nothing was changed") {
		t.Errorf("none: %+v", res)
	}
	b.write("f", "A\n")
	if res := p.failed(cause, shown{}); res.Status != tools.Failed || !slices.Equal(res.Changed, []string{"f"}) || !strings.Contains(res.Text, "in part") {
		t.Errorf("one of two: %+v", res)
	}
	b.write("new", "x\n")
	if res := p.failed(cause, shown{text: "done"}); res.Status != tools.OK || !strings.Contains(res.Text, "warning: disk full") {
		t.Errorf("both: %+v", res)
	}
}

func TestTooLarge(t *testing.T) {
	b := newBench(t, map[string]string{"f": strings.Repeat("a\n", 100)})
	b.tool = New(b.w, Options{MaxFile: 100})
	b.refuse(onF("@@\n-b\n+A\n"), "200 bytes", "at most 100")
	b.apply("*** Begin Patch\n*** Delete File: f\n*** End Patch")
	b.gone("f")
}

func TestSettingsDirectory(t *testing.T) {
	b := newBench(t, map[string]string{"settings/config": "a\n"})
	w, err := workspace.Open(b.root, workspace.Options{SettingsDir: filepath.Join(b.root, "settings")})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b.w, b.tool = w, New(w, Options{})
	b.refuse("--- a/settings/config\n+++ b/settings/config\n@@\n-a\n+b\n", "settings directory")
	b.refuse("*** Begin Patch\n*** Add File: settings/new\n+x\n*** End Patch", "settings directory")
}

func TestSpecIsShort(t *testing.T) {
	spec := New(nil, Options{}).Spec()
	if n := len(spec.Description); n > 240 {
		t.Errorf("the description has %d characters, at most 240 are meant", n)
	}
}
