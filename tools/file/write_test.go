package file

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zcoder/tools"
)

func TestWriteFile(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	const none = "\x00none"
	for name, c := range map[string]struct{ before, content, want, text, line string }{
		"create":              {none, "a\nb\n", "a\nb\n", "Created d/f: 2 lines.", "+2 -0"},
		"create empty":        {none, "", "", "Created d/f: 0 lines.", "+0 -0"},
		"create crlf":         {none, "a\r\n", "a\r\n", "Created d/f: 1 line.", "+1 -0"},
		"replace":             {"old\n", "new\n", "new\n", "Wrote d/f: 1 line.", "+1 -1"},
		"empty it":            {"old\n", "", "", "Wrote d/f: 0 lines.", "+0 -1"},
		"same":                {"old\n", "old\n", "old\n", "d/f has this content already; nothing was written.", "unchanged"},
		"same but line ends":  {"a\r\nb\r\n", "a\nb\n", "a\r\nb\r\n", "d/f has this content already; nothing was written.", "unchanged"},
		"mark kept":           {mark + "old\n", "new\n", mark + "new\n", "Wrote d/f: 1 line.", "+1 -1"},
		"mark not doubled":    {mark + "old\n", "\uFEFFnew\n", mark + "new\n", "Wrote d/f: 1 line.", "+1 -1"},
		"crlf kept":           {"a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n", "Wrote d/f: 2 lines, with its CRLF line ends.", "+1 -1"},
		"mark and crlf":       {mark + "a\r\n", "b\nc\n", mark + "b\r\nc\r\n", "Wrote d/f: 2 lines, with its CRLF line ends.", "+2 -1"},
		"mixed is not forced": {"a\r\nb\n", "a\nc\n", "a\nc\n", "Wrote d/f: 2 lines.", "+2 -2"},
		"crlf content as is":  {"a\n", "a\r\nb\r\n", "a\r\nb\r\n", "Wrote d/f: 2 lines.", "+2 -1"},
		"bytes kept":          {"x\n", "a  \n\t“b”\u2028\n", "a  \n\t“b”\u2028\n", "Wrote d/f: 2 lines.", "+2 -1"},
		"latin1 replaced":     {"caf\xe9\n", "café\n", "café\n", "Wrote d/f: 1 line.", "+1 -1"},
		"binary replaced":     {"a\x00b", "text\n", "text\n", "Wrote d/f: 1 line.", "+0 -0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, Options{})
			if c.before != none {
				d.put("d/f", c.before)
			}
			r := d.call("write_file", args{"path": "d/f", "content": c.content})
			if r.Status != tools.OK || r.Text != c.text || r.Line != c.line {
				t.Errorf("got %s %q (%q), want %q (%q)", r.Status, r.Text, r.Line, c.text, c.line)
			}
			if got := d.content("d/f"); got != c.want {
				t.Errorf("the file holds %q, want %q", got, c.want)
			}
			if changed := len(r.Changed) == 1 && r.Diff != ""; changed == (c.line == "unchanged") {
				t.Errorf("changed %q, diff %q", r.Changed, r.Diff)
			}
		})
	}
}

func TestWriteFileRefuses(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("dir/x", "x")
	d.put("utf16", "\xff\xfea\x00")
	d.put("ro", "x")
	if err := os.Chmod(filepath.Join(d.root, "ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"dir":           "is a directory",
		"dir/":          "is a directory",
		"new/":          "leave the slash out",
		"dir/x/y":       "not a directory",
		"utf16":         "UTF-16",
		"ro":            "read-only",
		".git/config":   "git's own",
		"../x":          "outside",
		".zcoder-tmp-1": "temporary",
		"":              "empty",
	} {
		if _, err := d.plan("write_file", args{"path": path, "content": "x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
}

func TestWriteKeepsMode(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("run.sh", "old\n")
	if err := os.Chmod(filepath.Join(d.root, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	wants(t, d.call("write_file", args{"path": "run.sh", "content": "new\n"}), tools.OK)
	wants(t, d.call("replace_text", args{"path": "run.sh", "old_text": "new", "new_text": "newer"}), tools.OK)
	info, err := os.Stat(filepath.Join(d.root, "run.sh"))
	if err != nil || info.Mode() != fs.FileMode(0o755) {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestHugeDiff bounds what a person is shown.
func TestHugeDiff(t *testing.T) {
	d := newDesk(t, Options{})
	d.put("line", strings.Repeat("x", 5<<20)+"\n")
	d.put("huge", strings.Repeat("0123456789abcde\n", 2<<20))
	for _, name := range []string{"line", "huge"} {
		action, err := d.plan("write_file", args{"path": name, "content": strings.Repeat("y\n", 3<<20)})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(action.Request().Text); n > maxDiffBytes+1000 {
			t.Errorf("%s: the diff has %d bytes", name, n)
		}
		wants(t, d.do(action), tools.OK, "Wrote "+name)
	}
}
