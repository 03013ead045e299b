package shell

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/proc"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

type yes struct{}

func (yes) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}
func (yes) Record(approval.Record) error { return nil }

func open(t *testing.T, o Options) (tools.Tool, string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(root, workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root}
	}
	return New(w, o), root
}

func plan(t *testing.T, tool tools.Tool, raw string) (tools.Action, error) {
	t.Helper()
	args, err := tools.Decode(tool.Spec(), json.RawMessage(raw))
	if err != nil {
		return tools.Action{}, err
	}
	return tool.Plan(t.Context(), tools.Call{ID: "c1", Args: args})
}

func do(t *testing.T, ctx context.Context, a tools.Action, progress tools.Progress) tools.Result {
	t.Helper()
	gate := approval.Gate{Policy: yes{}, Recorder: yes{}}
	permit, err := gate.Authorize(t.Context(), a.Request())
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Do(ctx, permit, progress)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func run(t *testing.T, tool tools.Tool, command string) tools.Result {
	t.Helper()
	raw, _ := json.Marshal(map[string]string{"command": command})
	a, err := plan(t, tool, string(raw))
	if err != nil {
		t.Fatal(err)
	}
	return do(t, t.Context(), a, nil)
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	put := func(sub, name string, mode os.FileMode) string {
		d := filepath.Join(dir, sub)
		_ = os.MkdirAll(d, 0o755)
		if err := os.WriteFile(filepath.Join(d, name), nil, mode); err != nil {
			t.Fatal(err)
		}
		return d
	}
	all := put("all", "zsh", 0o755)
	put("all", "bash", 0o755)
	put("all", "sh", 0o755)
	bash := put("bash", "bash", 0o755)
	put("bash", "sh", 0o755)
	plain := put("plain", "zsh", 0o644)
	put("plain", "sh", 0o755)
	tests := []struct {
		name, path, argv, shell, note string
	}{
		{"zsh first", all, all + "/zsh -f -c", "zsh", "zsh -f -c (a glob that matches nothing is an error; quote it)"},
		{"zsh later in PATH", bash + ":" + all, all + "/zsh -f -c", "zsh", "zsh -f -c (a glob that matches nothing is an error; quote it)"},
		{"bash", "/none:" + bash, bash + "/bash --noprofile --norc -c", "bash", "bash --noprofile --norc -c"},
		{"not executable", plain, plain + "/sh -c", "sh", "sh -c"},
		{"relative PATH", "bin:.", "/bin/sh -c", "sh", "sh -c"},
		{"empty PATH", "", "/bin/sh -c", "sh", "sh -c"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Find(tt.path)
			if got := strings.Join(p.Argv(), " "); got != tt.argv || p.Name() != tt.shell || p.Note() != tt.note {
				t.Errorf("got %q, %q, %q", got, p.Name(), p.Note())
			}
		})
	}
}

func TestCommandEnv(t *testing.T) {
	got := CommandEnv([]string{"PATH=/bin", "BASH_ENV=x", "ENV=x", "SUDO_ASKPASS=x", "SSH_ASKPASS=x", "BASH_FUNC_ls%%=() { rm; }",
		"PAGER=less", "TERM=xterm", "SHELLOPTS=xtrace", "ENVIRONMENT=prod", "EDITOR=vim"})
	want := "PATH=/bin ENVIRONMENT=prod ZCODER_COMMAND=1 TERM=dumb PAGER=cat MANPAGER=cat GIT_PAGER=cat SYSTEMD_PAGER= EDITOR=false VISUAL=false GIT_EDITOR=false GIT_SEQUENCE_EDITOR=false GIT_TERMINAL_PROMPT=0 SSH_ASKPASS_REQUIRE=never DEBIAN_FRONTEND=noninteractive VIMINIT=autocmd VimEnter * cquit"
	if strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}

func TestDescriptionIsShort(t *testing.T) {
	for _, path := range []string{os.Getenv("PATH"), ""} {
		tool, _ := open(t, Options{Shell: Find(path)})
		s := tool.Spec()
		if n := len(s.Description); n > 240 || !strings.Contains(s.Description, Find(path).Name()) {
			t.Errorf("%d characters: %q", n, s.Description)
		}
	}
}

func TestPlanRequest(t *testing.T) {
	tool, root := open(t, Options{})
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	a, err := plan(t, tool, `{"cmd":"  go test ./...\n# next\n","workdir":"sub","timeout":90}`)
	if err != nil {
		t.Fatal(err)
	}
	r := a.Request()
	if r.CallID != "c1" || r.Tool != "run_command" || r.Effect != approval.Exec || r.Text != "  go test ./...\n# next\n" ||
		strings.Join(r.Shell, " ") != "/bin/sh -c" || r.Dir != filepath.Join(root, "sub") || r.Timeout != "1m30s" ||
		r.Summary != "run_command go test ./... …" || r.Args != `{"command":"  go test ./...\n# next\n","cwd":"sub","timeout_seconds":90}` {
		t.Errorf("got %+v", r)
	}
	a, err = plan(t, tool, `{"command":"echo ok`+strings.Repeat(" ", 4000)+`; rm x"}`)
	if r := a.Request(); err != nil || r.Summary != "run_command echo ok ·×4000 ; rm x" {
		t.Errorf("got %q, %v", r.Summary, err)
	}
	a, err = plan(t, tool, `{"command":"ls"}`)
	if r := a.Request(); err != nil || r.Dir != root || r.Timeout != "2m0s" || r.Summary != "run_command ls" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestPlanRefuses(t *testing.T) {
	tool, root := open(t, Options{Ceiling: 600 * time.Second})
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(root, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	long, _ := json.Marshal(map[string]string{"command": strings.Repeat("x", 131072)})
	tests := []struct{ name, raw, want string }{
		{"missing", `{}`, `"command" is missing`},
		{"empty", `{"command":""}`, "the command is empty"},
		{"blank", `{"command":" \n\t "}`, "the command is empty"},
		{"NUL", `{"command":"ls \u0000 x"}`, "NUL byte"},
		{"too long", string(long), "at most 131071"},
		{"cwd of the system (P13)", `{"command":"ls","cwd":"/"}`, "cwd: "},
		{"cwd above", `{"command":"ls","cwd":".."}`, "cwd: "},
		{"cwd through a link", `{"command":"ls","cwd":"out"}`, "cwd: "},
		{"cwd missing", `{"command":"ls","cwd":"none"}`, `cwd "none" does not exist`},
		{"cwd is a file", `{"command":"ls","cwd":"file"}`, "is not a directory"},
		{"over the ceiling", `{"command":"ls","timeout_seconds":601}`, "from 1 to 600"},
		{"milliseconds", `{"command":"ls","timeout":120000}`, "from 1 to 600"},
		{"no time", `{"command":"ls","timeout_seconds":0}`, "from 1 to 600"},
		{"two spellings (A27)", `{"command":"ls","Command":"rm -rf x"}`, "ambiguous"},
		{"alias and name", `{"command":"ls","cmd":"rm"}`, "ambiguous"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := plan(t, tool, tt.raw)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestResults(t *testing.T) {
	tool, root := open(t, Options{})
	tests := []struct {
		name, command string
		status        tools.Status
		text, line    string
	}{
		{"output", "echo hi", tools.OK, "Exit code: 0\nhi", "exit 0"},
		{"nothing", "true", tools.OK, "Exit code: 0\n(no output)", "exit 0"},
		{"failure keeps the output", "echo out; echo err >&2; exit 3", tools.Failed, "Exit code: 3\nout\nerr", "exit 3"},
		{"exit 255", "exit 255", tools.Failed, "Exit code: 255\n(no output)", "exit 255"},
		{"signal", "kill -SEGV $$", tools.Failed, "Exit code: 139 (killed by SIGSEGV)\n(no output)", "killed by SIGSEGV"},
		{"signal of a child", "sh -c 'kill -SEGV $$' 2>/dev/null; exit $?", tools.Failed, "Exit code: 139 (a shell gives this for a program killed by SIGSEGV)\n(no output)", "exit 139"},
		{"only standard error", "echo bad >&2", tools.OK, "Exit code: 0\nbad", "exit 0"},
		{"directory", "pwd; echo $PWD", tools.OK, "Exit code: 0\n" + root + "\n" + root, "exit 0"},
		{"the shell is this one", "ps -o args= -p $$ >/dev/null; echo $0", tools.OK, "Exit code: 0\n/bin/sh", "exit 0"},
		{"reads nothing", "read x; echo \"<$x>\"", tools.OK, "Exit code: 0\n<>", "exit 0"},
		{"invalid UTF-8", `printf 'a\377b'`, tools.OK, "Exit code: 0\na\uFFFDb", "exit 0"},
		{"blank lines stay", `printf '\n\n x \n\n'`, tools.OK, "Exit code: 0\n\n\n x \n", "exit 0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, tool, tt.command)
			if res.Status != tt.status || res.Text != tt.text || res.Line != tt.line || res.ExitCode == nil {
				t.Errorf("got %+v", res)
			}
		})
	}
}

func TestTimeoutResult(t *testing.T) {
	tool, _ := open(t, Options{Default: time.Second})
	res := run(t, tool, "echo begun; sleep 300")
	if res.Status != tools.Failed || res.ExitCode != nil || res.Line != "timed out after 1s" ||
		res.Text != "Exit code: none (timed out after 1s, and ended with all it had started)\nbegun" {
		t.Errorf("got %+v", res)
	}
}

func TestCancelResult(t *testing.T) {
	tool, _ := open(t, Options{})
	a, err := plan(t, tool, `{"command":"echo begun; sleep 300"}`)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var shown string
	res := do(t, ctx, a, func(text string) {
		mu.Lock()
		defer mu.Unlock()
		shown += text
		cancel()
	})
	if res.Status != tools.Cancelled || res.ExitCode != nil || res.Line != "cancelled" || !strings.HasSuffix(res.Text, "\nbegun") || shown != "begun\n" {
		t.Errorf("got %+v, shown %q", res, shown)
	}
}

func TestSurvivorsResult(t *testing.T) {
	asked := ""
	tests := []struct {
		name string
		o    Options
		want string
	}{
		{"ended with the turn", Options{Tracker: new(proc.Tracker)}, " sleep 300; it is ended at the end of this turn]"},
		{"nobody takes it", Options{}, " sleep 300; it was ended]"},
		{"kept", Options{Tracker: new(proc.Tracker), KeepDetached: func(r approval.Request) bool { asked = r.Text; return true }}, " sleep 300; it is left running; the person sees it with /jobs]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool, _ := open(t, tt.o)
			res := run(t, tool, "sleep 300 & echo ok")
			if res.Status != tools.OK || !strings.HasPrefix(res.Text, "Exit code: 0\nok\n[Still running in the background: ") || !strings.HasSuffix(res.Text, tt.want) || res.Line != "exit 0 · 1 in the background" {
				t.Errorf("got %+v", res)
			}
			if tt.o.Tracker == nil {
				return
			}
			jobs := tt.o.Tracker.Jobs()
			if len(jobs) != 1 || jobs[0].Kept != (tt.name == "kept") {
				t.Fatalf("jobs %+v", jobs)
			}
			tt.o.Tracker.EndTurn()
			if tt.name == "kept" {
				p, _ := os.FindProcess(jobs[0].PID)
				_ = p.Kill()
				tt.o.Tracker.Close()
			}
		})
	}
	if asked != "sleep 300 & echo ok" {
		t.Errorf("asked about %q", asked)
	}
}

func TestOutputIsBounded(t *testing.T) {
	tool, _ := open(t, Options{MaxOutput: 4096})
	for _, command := range []string{"head -c 1000000 /dev/zero | tr '\\0' x", "head -c 100000 /dev/urandom", "seq 100000; echo Inappropriate ioctl for device; exit 1"} {
		res := run(t, tool, command)
		if len(res.Text) > 4096+100 || !utf8.ValidString(res.Text) || !strings.Contains(res.Text, "left out …]") {
			t.Errorf("%s: %d bytes", command, len(res.Text))
		}
	}
}

func TestDirectoryChangedSince(t *testing.T) {
	tool, root := open(t, Options{})
	sub := filepath.Join(root, "sub")
	changes := map[string]func() error{
		"removed": func() error { return os.Remove(sub) },
		"replaced": func() error {
			if err := os.Remove(sub); err != nil {
				return err
			}
			return os.Rename(filepath.Join(root, "other"), sub)
		},
		"link": func() error {
			if err := os.Remove(sub); err != nil {
				return err
			}
			return os.Symlink("/", sub)
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			_ = os.RemoveAll(sub)
			for _, d := range []string{sub, filepath.Join(root, "other")} {
				if err := os.MkdirAll(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			a, err := plan(t, tool, `{"command":"touch made","cwd":"sub"}`)
			if err != nil {
				t.Fatal(err)
			}
			if err := change(); err != nil {
				t.Fatal(err)
			}
			res := do(t, t.Context(), a, nil)
			if res.Status != tools.Failed || !strings.Contains(res.Text, "changed since the command was approved") {
				t.Errorf("got %+v", res)
			}
			if _, err := os.Stat(filepath.Join(sub, "made")); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// TestWantsTerminal runs real programs that want a terminal or a person (J04).
func TestWantsTerminal(t *testing.T) {
	tool, _ := open(t, Options{})
	tests := []struct{ needs, command string }{
		{"", "echo 'sudo: a terminal is required to read the password' >&2; exit 1"},
		{"", "echo 'the input device is not a TTY' >&2; exit 1"},
		{"", ": </dev/tty"},
		{"python3", "python3 -c 'input(\"name? \")'"},
		{"git", "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit --allow-empty"},
		{"ssh", "ssh -o ConnectTimeout=1 -o StrictHostKeyChecking=ask -o UserKnownHostsFile=/dev/null nobody@127.0.0.1 true; echo 'Host key verification failed.'; exit 255"},
		{"top", "top"},
		{"passwd", "passwd; exit 1"},
		{"vim", "vim x"},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.needs); tt.needs != "" && err != nil {
				t.Skipf("no %s here", tt.needs)
			}
			begun := time.Now()
			res := run(t, tool, tt.command)
			if res.Status != tools.Failed || !strings.Contains(res.Text, "ask the person to run it themselves with: ! command") {
				t.Errorf("got %+v", res)
			}
			if took := time.Since(begun); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	if res := run(t, tool, "echo 'not a tty'"); strings.Contains(res.Text, "! command") {
		t.Errorf("a success has the hint: %q", res.Text)
	}
}

// TestStartFilesAreNotRead checks that what was shown is what runs, in each shell.
func TestStartFilesAreNotRead(t *testing.T) {
	for _, name := range []string{"zsh", "bash", "sh"} {
		t.Run(name, func(t *testing.T) {
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("no %s here", name)
			}
			home := t.TempDir()
			for _, f := range []string{".zshenv", ".zshrc", ".bashrc", ".profile", ".bash_profile", "env"} {
				if err := os.WriteFile(filepath.Join(home, f), []byte("echo start file\nls() { echo function; }\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			shell := Program{}
			for _, p := range shells() {
				if p.name == name {
					shell = p
					shell.path = path
				}
			}
			tool, _ := open(t, Options{Shell: shell, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ZDOTDIR=" + home,
				"ENV=" + home + "/env", "BASH_ENV=" + home + "/env", "BASH_FUNC_ls%%=() { echo function; }"}})
			if res := run(t, tool, "ls; echo end"); res.Text != "Exit code: 0\nend" {
				t.Errorf("got %q", res.Text)
			}
		})
	}
}
