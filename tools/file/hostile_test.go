package file

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zcoder/internal/workspace"
	"zcoder/tools"
)

const canary = "OUTSIDE-CONTENT"

// digest sums up names, modes, times of change, links and contents below dirs.
func digest(t testing.TB, dirs ...string) string {
	t.Helper()
	h := sha256.New()
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%q %v %v\n", path, info.Mode(), info.ModTime())
			if info.Mode().IsRegular() {
				b, err := os.ReadFile(path)
				fmt.Fprintf(h, "%x %v\n", sha256.Sum256(b), err)
			}
			if info.Mode()&fs.ModeSymlink != 0 {
				target, err := os.Readlink(path)
				fmt.Fprintf(h, "%q %v\n", target, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hostileDesk has a workspace full of traps beside a directory that nothing may
// touch. guarded are the directories to compare.
func hostileDesk(t *testing.T) (d *desk, outside string, guarded []string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(base, "ws")
	outside = filepath.Join(base, "ws-evil")
	home := filepath.Join(base, "home")
	for _, path := range []string{
		filepath.Join(outside, "file"), filepath.Join(outside, "dir/file"), filepath.Join(base, "plain"), filepath.Join(home, ".bashrc"),
		filepath.Join(root, ".git/config"), filepath.Join(root, ".git/hooks/pre-commit"), filepath.Join(root, "sub/.git/config"),
		filepath.Join(root, "conf/policy.toml"), filepath.Join(root, "readonly"),
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(canary+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"l-dir": outside, "l-file": filepath.Join(outside, "file"), "l-rel": "../ws-evil", "l-relfile": "../ws-evil/file", "l-new": filepath.Join(outside, "new"),
		"l-newrel": "../ws-evil/new2", "l-root": "/", "l-proc": "/proc/self/root", "l-cwd": "/proc/self/cwd", "l-null": "/dev/null", "l-home": home,
		"l-up": "..", "l-chain": "l-chain2", "l-chain2": "l-dir", "l-loop": "l-loop", "l-git": ".git", "l-gitfile": ".git/config", "l-conf": "conf",
		"sub/l-out": "../../ws-evil", "l-dangling": "nothing/here", "l-self": ".", "l-ro": "readonly", "l-long": "sub/../sub/../../ws-evil",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		syscall.Mkfifo(filepath.Join(root, "fifo"), 0o666),
		os.Chmod(filepath.Join(root, "readonly"), 0o444),
		os.Link(filepath.Join(outside, "dir/file"), filepath.Join(root, "hardlink")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d = deskAt(t, root, workspace.Options{SettingsDir: filepath.Join(root, "conf"), UserHome: home}, Options{})
	guarded = []string{outside, home, filepath.Join(root, ".git"), filepath.Join(root, "sub/.git"), filepath.Join(root, "conf")}
	return d, outside, guarded
}

// TestHostileCalls sends calls that try to leave the workspace, or to write what is
// never written, past a gate that allows everything.
func TestHostileCalls(t *testing.T) {
	d, outside, guarded := hostileDesk(t)
	base := filepath.Dir(d.root)
	paths := []string{
		"", " ", ".", "..", "/", "//", "\x00", "a\x00b", "~", "~/.bashrc", "~root/x", "file://" + outside + "/file", "file:" + outside + "/file",
		"FILE://localhost" + outside + "/file", "../ws-evil/file", "../ws-evil/new", "../plain", "./../ws-evil/file", "sub/../../ws-evil/file",
		"sub/../../ws/../ws-evil/new", outside + "/file", outside + "/new", d.root + "-evil/file", d.root + "/../ws-evil/file",
		d.root + "/../ws-evil/new", "/" + outside + "/file", base + "/./ws-evil/new", base + "/plain", "l-dir", "l-dir/file", "l-dir/new", "l-dir/new/deep",
		"l-dir/../plain", "l-dir/../ws-evil/file", "l-file", "l-rel/file", "l-rel/new", "l-relfile", "l-new", "l-newrel", "l-root/etc/passwd",
		"l-root" + outside + "/file", "l-root/tmp/x-zcoder-hostile", "l-proc/etc/passwd", "l-cwd/x", "l-null", "l-home/.bashrc", "l-up/plain", "l-up/ws-evil/file",
		"l-chain/file", "l-chain/new", "l-loop", "l-loop/x", "sub/l-out/file", "sub/l-out/new", "l-dangling", "l-dangling/x", "l-self/l-dir/file",
		"l-long/file", "l-long/new", "/proc/self/cwd/../ws-evil/file", "/proc/self/root" + outside + "/file", "/proc/self/environ", "/proc/1/environ",
		"/dev/fd/0", "/dev/stdin", "/dev/null", "/dev/zero", "/dev/tty", "/sys/kernel/tracing/trace_pipe", "/etc/passwd", "fifo", "fifo/x",
		".git", ".git/config", ".git/new", ".git/hooks/pre-commit", ".GIT/config", ".Git/new", ".git/", ".git./config", ".git /new", "./.git/../.git/new",
		"sub/.git/config", "sub/.GIT/new", "new/.git/config", ".git\u200c/config", ".g\u200bit/new", ".git\ufeff/new", "．git/new", "git~1/config", "GIT~2/x",
		".git::$INDEX_ALLOCATION/new", `.git\config`, "l-git/config", "l-git/new", "l-gitfile", "sub/../.git/new", d.root + "/.git/new",
		"conf/policy.toml", "conf/new", "CONF/new", "l-conf/policy.toml", "l-conf/new", "conf/../conf/new", "conf\u200b/new",
		"readonly", "l-ro", ".zcoder-tmp-0123456789abcdef", strings.Repeat("x", 256), strings.Repeat("x/", 3000), strings.Repeat("../", 100) + "etc/passwd",
	}
	var calls []call
	for _, path := range paths {
		calls = append(calls,
			call{"read_file", args{"path": path}},
			call{"read_file_range", args{"path": path, "start_line": 1, "end_line": 5}},
			call{"write_file", args{"path": path, "content": "evil\n"}},
			call{"replace_text", args{"path": path, "old_text": canary, "new_text": "evil"}})
	}
	if len(calls) < 150 {
		t.Fatalf("only %d calls", len(calls))
	}
	before := digest(t, guarded...)
	for _, c := range calls {
		c.run(t, d)
	}
	if digest(t, guarded...) != before {
		t.Error("something outside changed")
	}
	for _, path := range []string{filepath.Join(base, "plain"), filepath.Join(d.root, "readonly")} {
		if b, err := os.ReadFile(path); string(b) != canary+"\n" {
			t.Errorf("%s holds %q, %v", path, b, err)
		}
	}
	if _, err := os.Lstat("/tmp/x-zcoder-hostile"); err == nil {
		t.Error("a file was made in /tmp")
	}
	t.Logf("%d calls", len(calls))
}

type call struct {
	tool string
	args args
}

// run plans and does a call. Content that nobody may see, or only a person may
// show, must not be in what the model gets without a question.
func (c call) run(t *testing.T, d *desk) {
	t.Helper()
	action, err := d.plan(c.tool, c.args)
	if err != nil {
		if strings.Contains(err.Error(), canary) {
			t.Errorf("%s %.60q shows %q", c.tool, c.args["path"], err)
		}
		return
	}
	result := d.do(action)
	free := map[string]bool{"readonly": true} // what the workspace itself holds
	for _, p := range action.Request().Paths {
		inGit := workspace.Protected(p.Rel) || strings.HasPrefix(p.Rel, ".git")
		if strings.Contains(result.Text, canary) && len(action.Request().MustAsk) == 0 && !free[p.Rel] && !inGit {
			t.Errorf("%s %.60q shows %q of %s", c.tool, c.args["path"], result.Text, p.Rel)
		}
		if p.Write && result.Status == tools.OK && workspace.Protected(p.Rel) {
			t.Errorf("%s %.60q wrote %s", c.tool, c.args["path"], p.Rel)
		}
	}
}

// TestHardLink writes to a file that has another name outside: a person is asked,
// and the other name keeps the old content.
func TestHardLink(t *testing.T) {
	d, outside, _ := hostileDesk(t)
	for tool, a := range map[string]args{
		"read_file":       {"path": "hardlink"},
		"read_file_range": {"path": "hardlink", "start_line": 1, "end_line": 1},
		"write_file":      {"path": "hardlink", "content": "evil"},
		"replace_text":    {"path": "hardlink", "old_text": canary, "new_text": "evil"},
	} {
		action, err := d.plan(tool, a)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(action.Request().MustAsk, ";"), "hard links") {
			t.Errorf("%s does not ask: %q", tool, action.Request().MustAsk)
		}
	}
	wants(t, d.call("write_file", args{"path": "hardlink", "content": "mine\n"}), tools.OK)
	if b, err := os.ReadFile(filepath.Join(outside, "dir/file")); err != nil || string(b) != canary+"\n" {
		t.Errorf("the outside name holds %q, %v", b, err)
	}
}

// TestSwappedAfterPlan replaces what was planned by a way out before it is done.
func TestSwappedAfterPlan(t *testing.T) {
	for name, swap := range map[string]func(dir, outside string) error{
		"parent by a link": func(dir, outside string) error {
			os.RemoveAll(dir)
			return os.Symlink(outside, dir)
		},
		"parent by a link to git": func(dir, _ string) error {
			os.RemoveAll(dir)
			return os.Symlink(".git", dir)
		},
		"file by a link": func(dir, outside string) error {
			os.Remove(dir + "/file")
			return os.Symlink(outside+"/file", dir+"/file")
		},
		"file by a dangling link": func(dir, outside string) error {
			os.Remove(dir + "/file")
			return os.Symlink(outside+"/created", dir+"/file")
		},
		"file by a hard link": func(dir, outside string) error {
			os.Remove(dir + "/file")
			return os.Link(outside+"/file", dir+"/file")
		},
		"file by a FIFO": func(dir, _ string) error {
			os.Remove(dir + "/file")
			return syscall.Mkfifo(dir+"/file", 0o666)
		},
		"file by a directory": func(dir, _ string) error {
			os.Remove(dir + "/file")
			return os.Mkdir(dir+"/file", 0o755)
		},
		"new file by a link": func(dir, outside string) error { return os.Symlink(outside+"/file", dir+"/fresh") },
		"new file by a dangling link": func(dir, outside string) error {
			return os.Symlink(outside+"/created", dir+"/fresh")
		},
		"new parent by a link": func(dir, outside string) error { return os.Symlink(outside, dir+"/made") },
	} {
		for _, c := range []call{
			{"read_file", args{"path": "work/file"}},
			{"read_file_range", args{"path": "work/file", "start_line": 1, "end_line": 2}},
			{"write_file", args{"path": "work/file", "content": "evil"}},
			{"write_file", args{"path": "work/fresh", "content": "evil"}},
			{"write_file", args{"path": "work/made/fresh", "content": "evil"}},
			{"replace_text", args{"path": "work/file", "old_text": "inside", "new_text": "evil"}},
		} {
			d, outside, guarded := hostileDesk(t)
			d.put("work/file", "inside")
			action, err := d.plan(c.tool, c.args)
			if err != nil {
				t.Fatal(err)
			}
			if err := swap(filepath.Join(d.root, "work"), outside); err != nil {
				t.Fatal(err)
			}
			before := digest(t, guarded...)
			result := d.do(action)
			if strings.Contains(result.Text, canary) {
				t.Errorf("%s: %s %s shows %q", name, c.tool, c.args["path"], result.Text)
			}
			if digest(t, guarded...) != before {
				t.Errorf("%s: %s %s changed the outside", name, c.tool, c.args["path"])
			}
		}
	}
}
