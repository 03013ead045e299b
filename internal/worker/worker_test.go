package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/proc"
)

// The ends of a good run of each worker, as its release prints them.
var good = map[string]string{
	"claude": `{"type":"system","subtype":"init","model":"m1"}
{"type":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"Read","input":{"file_path":"a.go"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","content":"x"}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"the answer"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","usage":{"input_tokens":20,"output_tokens":3},"permission_denials":[]}`,
	"codex": `{"type":"thread.started","thread_id":"t"}
{"type":"item.completed","item":{"type":"error","message":"no metadata for m1"}}
{"type":"turn.started"}
{"type":"item.started","item":{"type":"command_execution","command":"cat a.go"}}
{"type":"item.completed","item":{"type":"agent_message","text":"I look."}}
{"type":"item.completed","item":{"type":"agent_message","text":"the answer"}}
{"type":"turn.completed","usage":{"input_tokens":20,"output_tokens":3}}`,
	"agy": `{
  "response": "the answer",
  "usage": {"input_tokens": 20, "output_tokens": 3}
}`,
	"opencode": `{"type":"step_start","part":{}}
{"type":"text","part":{"text":"I look."}}
{"type":"tool_use","part":{"tool":"read","state":{"status":"completed","input":{"filePath":"a.go"}}}}
{"type":"step_finish","part":{"reason":"tool-calls","tokens":{"input":12,"output":1}}}
{"type":"step_start","part":{}}
{"type":"text","part":{"text":"the answer"}}
{"type":"step_finish","part":{"reason":"stop","tokens":{"input":8,"output":2}}}`,
	"pi": `{"type":"session","id":"s"}
{"type":"agent_start"}
{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":"I"}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"I look."}],"stopReason":"toolUse","usage":{"input":12,"output":1}}}
{"type":"tool_execution_start","toolName":"read","args":{"path":"a.go"}}
{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"the answer"}],"stopReason":"stop","usage":{"input":8,"output":2}}}
{"type":"agent_end","messages":[]}
{"type":"agent_settled","aborted":false}`,
	"gemini": `{"type":"init","model":"m1"}
{"type":"message","role":"user","content":"x"}
{"type":"message","role":"assistant","content":"I look.","delta":true}
{"type":"tool_use","tool_name":"read_file","parameters":{"path":"a.go"}}
{"type":"tool_result","status":"success","output":"x"}
{"type":"message","role":"assistant","content":"the ","delta":true}
{"type":"message","role":"assistant","content":"answer","delta":true}
{"type":"result","status":"success","stats":{"input_tokens":20,"output_tokens":3}}`,
	"qwen": `{"type":"system","subtype":"init","model":"m1"}
{"type":"stream_event","event":{"type":"goal_state"}}
{"type":"assistant","message":{"content":[{"type":"tool_use","name":"read_file","input":{"path":"a.go"}}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"the answer"}]}}
{"type":"result","subtype":"success","is_error":false,"result":"the answer","usage":{"input_tokens":20,"output_tokens":3}}`,
}

// fake writes a shell script that plays a worker and returns the spec of its run. The
// script finds what it shall print in the file $OUT.
func fake(t *testing.T, name, output, script string) Spec {
	t.Helper()
	dir := t.TempDir()
	h, ok := ByName(name)
	if !ok {
		t.Fatalf("no worker %q", name)
	}
	path := filepath.Join(dir, name)
	for file, text := range map[string]string{path: "#!/bin/sh\n" + script + "\n", filepath.Join(dir, "out"): output} {
		if err := os.WriteFile(file, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "OUT=" + filepath.Join(dir, "out"), "HERE=" + dir}
	return Spec{
		Harness: h, Path: path, Dir: dir, Prompt: "the prompt", Timeout: 20 * time.Second,
		Env: h.Environment(env, Consult, "", 1, nil),
	}
}

func TestGoodRuns(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s := fake(t, name, good[name], `cat >/dev/null; cat "$OUT"`)
			var mu sync.Mutex
			var lines []string
			s.Progress = func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}
			r := Run(t.Context(), s)
			if r.Status != Done || r.Reply != "the answer" || r.Detail != "" {
				t.Errorf("report %+v", r)
			}
			if want := (Usage{Input: 20, Output: 3}); r.Usage != want {
				t.Errorf("usage %+v, not %+v", r.Usage, want)
			}
			mu.Lock()
			defer mu.Unlock()
			if name != "agy" && !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "a.go") }) {
				t.Errorf("no progress about a.go in %q", lines)
			}
		})
	}
}

// withoutEnd is a good run that broke off before its last line.
func withoutEnd(name string) string {
	i := strings.LastIndexByte(good[name], '\n')
	text := good[name][:i+1]
	if name == "pi" { // agent_end closes a run of older releases
		text = text[:strings.Index(text, `{"type":"agent_end"`)]
	}
	return text
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name, worker, output, script string
		status                       Status
		detail, reply                string
	}{
		{"claude error with status success", "claude", `{"type":"result","subtype":"success","is_error":true,"result":"API Error: 500 overloaded"}`, `cat "$OUT"`, Failed, "API Error: 500 overloaded", ""},
		{"claude not signed in", "claude", `{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key · Please run /login"}`, `cat "$OUT"; exit 1`, SignIn, "Please run /login", ""},
		{"claude interrupted ends with status 0", "claude", `{"type":"result","subtype":"error_during_execution","is_error":true}`, `cat "$OUT"`, Failed, "error_during_execution", ""},
		{"claude asks", "claude", `{"type":"result","subtype":"success","result":"I need to know more.","permission_denials":[{"tool_name":"AskUserQuestion","tool_input":{"questions":[{"question":"Which port?"}]}}]}`, `cat "$OUT"`, Asks, "Which port?", "I need to know more."},
		{"ends with a question", "qwen", `{"type":"result","subtype":"success","result":"Shall I go on?"}`, `cat "$OUT"`, Asks, "question", "Shall I go on?"},
		{"codex turn failed", "codex", `{"type":"turn.started"}` + "\n" + `{"type":"turn.failed","error":{"message":"{\"type\":\"error\",\"error\":{\"code\":400,\"message\":\"scripted\"}}"}}`, `cat "$OUT"; exit 1`, Failed, "scripted", ""},
		{"codex not signed in", "codex", `{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}`, `cat "$OUT"; exit 1`, SignIn, "401", ""},
		{"codex breaks off with status 0", "codex", withoutEnd("codex"), `cat "$OUT"`, Failed, "without the event", "the answer"},
		{"opencode stops at a permission with status 0", "opencode", `{"type":"step_start","part":{}}` + "\n" + `{"type":"tool_use","part":{"tool":"bash","state":{"status":"error","input":{"command":"make"},"error":"The user rejected permission to use this specific tool call."}}}`, `cat "$OUT"; echo '! permission requested' >&2`, Permission, "bash make", ""},
		{"opencode says nothing", "opencode", "", `echo "permission requested: external_directory; auto-rejecting" >&2`, Permission, "auto-rejecting", ""},
		{"opencode api error", "opencode", `{"type":"error","error":{"name":"APIError","data":{"message":"scripted error","statusCode":400}}}`, `cat "$OUT"; exit 1`, Failed, "scripted error", ""},
		{"opencode unexpected error", "opencode", `{"type":"error","error":{"name":"UnknownError"}}`, `cat "$OUT"; exit 1`, Failed, "UnknownError", ""},
		{"opencode reply cut", "opencode", `{"type":"text","part":{"text":"half"}}` + "\n" + `{"type":"step_finish","part":{"reason":"length"}}`, `cat "$OUT"`, Failed, "length", "half"},
		{"pi model error with status 0", "pi", `{"type":"message_end","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"400 bad request"}}` + "\n" + `{"type":"agent_end"}` + "\n" + `{"type":"agent_settled"}`, `cat "$OUT"`, Failed, "400 bad request", ""},
		{"pi recovers", "pi", `{"type":"message_end","message":{"role":"assistant","stopReason":"error","errorMessage":"503"}}` + "\n" + `{"type":"agent_end"}` + "\n" + `{"type":"auto_retry_start"}` + "\n" + withoutEnd("pi") + `{"type":"agent_end"}`, `cat "$OUT"`, Done, "", "the answer"},
		{"gemini without auth", "gemini", "", `echo "Please set an Auth method in your settings" >&2; exit 41`, SignIn, "Auth method", ""},
		{"gemini error", "gemini", `{"type":"result","status":"error","error":{"type":"ApiError","message":"quota"}}`, `cat "$OUT"; exit 144`, Failed, "quota", ""},
		{"gemini ends early with status 0", "gemini", withoutEnd("gemini"), `cat "$OUT"`, Failed, "without the event", "the answer"},
		{"qwen error", "qwen", `{"type":"result","subtype":"error_during_execution","is_error":true,"error":{"message":"no route"}}`, `cat "$OUT"; exit 1`, Failed, "no route", ""},
		{"agy error", "agy", `{"error":{"message":"quota used up"}}`, `cat "$OUT"`, Failed, "quota used up", ""},
		{"agy prints no document", "agy", "half a {", `cat "$OUT"`, Failed, "without the event", ""},
		{"unknown flag", "codex", "", `echo "error: unexpected argument" >&2; exit 2`, Failed, "status 2: error: unexpected argument", ""},
		{"no key", "qwen", "", `echo "Missing API key for openai auth" >&2; exit 1`, SignIn, "Missing API key", ""},
		{"empty", "claude", `{"type":"result","subtype":"success","result":""}`, `cat "$OUT"`, Empty, "said nothing", ""},
		{"no output at all", "claude", "", `true`, Empty, "without any output", ""},
		{"refused and silent", "claude", `{"type":"result","subtype":"success","result":"","permission_denials":[{"tool_name":"Bash","tool_input":{"command":"make test"}}]}`, `cat "$OUT"`, Permission, "Bash make test", ""},
		{"killed by somebody", "claude", withoutEnd("claude"), `cat "$OUT"; kill -KILL $$`, Killed, "SIGKILL", "the answer"},
		{"killed after the end", "claude", good["claude"], `cat "$OUT"; kill -SEGV $$`, Killed, "after its last message", "the answer"},
		{"fails after the end", "claude", good["claude"], `cat "$OUT"; echo boom >&2; exit 3`, Failed, "status 3 after its last message: boom", "the answer"},
		{"a line without an end", "claude", "", `exec 2>/dev/null; head -c 9000000 /dev/zero | tr '\0' x; sleep 3117`, TooLong, "8388608 bytes", ""},
		{"noise around the events", "claude", "warning: old\n\n{broken\n[]\n" + good["claude"] + "\nbye", `cat "$OUT"`, Done, "", "the answer"},
		{"no end of the last line", "qwen", good["qwen"], `printf %s "$(cat "$OUT")"`, Done, "", "the answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Run(t.Context(), fake(t, tt.worker, tt.output, tt.script))
			if r.Status != tt.status || !strings.Contains(r.Detail, tt.detail) || (tt.detail == "") != (r.Detail == "") {
				t.Errorf("%s: %q, not %s: …%q…", r.Status, r.Detail, tt.status, tt.detail)
			}
			if r.Reply != tt.reply {
				t.Errorf("reply %q, not %q", r.Reply, tt.reply)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	s := fake(t, "codex", "", "true")
	s.Path += "-not-there"
	if r := Run(t.Context(), s); r.Status != Missing {
		t.Errorf("report %+v", r)
	}
}

// TestInputEnds is Z01: a worker that reads its input to the end goes on, with the
// prompt on it or not.
func TestInputEnds(t *testing.T) {
	for _, name := range Names() {
		s := fake(t, name, good[name], `cat >"$HERE/in"; for a; do printf '%s\n' "$a"; done >"$HERE/argv"; cat "$OUT"`)
		s.Prompt = "--dangerous `id` $(id)\n-x"
		if r := Run(t.Context(), s); r.Status != Done {
			t.Fatalf("%s: %+v", name, r)
		}
		in, err := os.ReadFile(filepath.Join(s.Dir, "in"))
		if err != nil {
			t.Fatal(err)
		}
		argv, err := os.ReadFile(filepath.Join(s.Dir, "argv"))
		if err != nil {
			t.Fatal(err)
		}
		if name == "agy" {
			if len(in) > 0 || !strings.HasSuffix(string(argv), "--\n"+s.Prompt+"\n") {
				t.Errorf("agy: input %q, arguments %q", in, argv)
			}
			continue
		}
		if string(in) != s.Prompt || strings.Contains(string(argv), "dangerous") {
			t.Errorf("%s: input %q, arguments %q", name, in, argv)
		}
	}
}

func TestVectors(t *testing.T) {
	forbidden := []string{"--yolo", "yolo", "--auto", "--dangerously", "--dangerously-skip-permissions", "--dangerously-bypass-approvals-and-sandbox", "danger-full-access", "bypassPermissions", "--full-auto", "-y"}
	consult := map[string]string{
		"claude":   "-p --output-format stream-json --verbose --strict-mcp-config --tools Read,Grep,Glob --model M --permission-mode dontAsk",
		"codex":    "exec --json --skip-git-repo-check -s read-only -C /w --ephemeral -m M -",
		"agy":      "-p --model M --output-format json --mode plan --sandbox -- P",
		"opencode": "run --format json --title zcoder --dir /w --model M --variant V",
		"pi":       "--mode json -p --no-session --tools read,grep,find,ls --model M",
		"gemini":   "--skip-trust --approval-mode plan -o stream-json -m M",
		"qwen":     "--approval-mode plan -o stream-json -m M",
	}
	edit := map[string]string{
		"claude":   "-p --output-format stream-json --verbose --strict-mcp-config --permission-mode acceptEdits",
		"codex":    "exec --json --skip-git-repo-check -s workspace-write -C /w -",
		"agy":      "-p --output-format json --mode accept-edits --sandbox -- P",
		"opencode": "run --format json --title zcoder --dir /w --agent build",
		"pi":       "--mode json -p --tools read,edit,write",
		"gemini":   "--skip-trust --approval-mode auto_edit -o stream-json",
		"qwen":     "--approval-mode auto-edit -o stream-json",
	}
	for _, h := range Table() {
		asked := h.args(Spec{Harness: h, Mode: Consult, Model: "M", Variant: "V", Dir: "/w", Prompt: "P"})
		if got := strings.Join(asked, " "); got != consult[h.Name] {
			t.Errorf("%s consults with\n%s, not\n%s", h.Name, got, consult[h.Name])
		}
		edits := h.args(Spec{Harness: h, Mode: Edit, Dir: "/w", Prompt: "P"})
		if got := strings.Join(edits, " "); got != edit[h.Name] {
			t.Errorf("%s edits with\n%s, not\n%s", h.Name, got, edit[h.Name])
		}
		for _, a := range append(asked, edits...) {
			if slices.Contains(forbidden, a) {
				t.Errorf("%s gets %s", h.Name, a)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	env := []string{"PATH=/bin", "HOME=/h", "ANTHROPIC_API_KEY=sk-ant-0123456789", "OPENAI_API_KEY=sk-0123456789abcdef", "GEMINI_API_KEY=AIza-xyz-0123456",
		"GITHUB_TOKEN=ghp_0123456789", "ZCODER_API_KEY=zk", "ZCODER_MODEL=m", "ZCODER_WORKER_DEPTH=0", "OLLAMA_API_KEY=ok", "OPENCODE_PERMISSION={}", "ODD=has-hidden-inside"}
	mask := func(s string) string { return strings.ReplaceAll(s, "hidden", "[masked]") }
	tests := []struct {
		worker, model string
		mode          Mode
		want          []string
	}{
		{"claude", "", Edit, []string{"PATH=/bin", "HOME=/h", "OPENCODE_PERMISSION={}", "ANTHROPIC_API_KEY=sk-ant-0123456789", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "ZCODER_WORKER_DEPTH=1"}},
		{"codex", "", Edit, []string{"PATH=/bin", "HOME=/h", "OPENCODE_PERMISSION={}", "OPENAI_API_KEY=sk-0123456789abcdef", "ZCODER_WORKER_DEPTH=1"}},
		{"opencode", "", Consult, []string{"PATH=/bin", "HOME=/h", denyAll, "ZCODER_WORKER_DEPTH=1"}},
		{"opencode", "google/gemini-3", Edit, []string{"PATH=/bin", "HOME=/h", "GEMINI_API_KEY=AIza-xyz-0123456", "ZCODER_WORKER_DEPTH=1"}},
	}
	for _, tt := range tests {
		h, _ := ByName(tt.worker)
		if got := h.Environment(env, tt.mode, tt.model, 1, mask); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s gets\n%q, not\n%q", tt.worker, tt.mode, got, tt.want)
		}
	}
}

// TestCancelEndsAll: a worker with a tool in a session of its own, without our
// variables, and one that ignores an interrupt.
func TestCancelEndsAll(t *testing.T) {
	for _, script := range []string{
		`setsid env -i /bin/sh -c 'echo $$ >"$0"; exec sleep 3117' "$HERE/pid" </dev/null >/dev/null 2>&1 & wait`,
		`trap '' INT TERM; (setsid sh -c 'echo $$ >"$HERE/pid"; exec sleep 3117' &); echo; while :; do sleep 3117; done`,
	} {
		s := fake(t, "claude", "", script)
		fifo := filepath.Join(s.Dir, "pid")
		if out, err := proc.Run(t.Context(), proc.Spec{Argv: []string{"mkfifo", fifo}, Env: s.Env}); err != nil || out.ExitCode != 0 {
			t.Skipf("mkfifo: %v %s", err, out.Output)
		}
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan Report, 1)
		var id proc.Ident
		s.OnStart = func(i proc.Ident) { id = i }
		go func() { got <- Run(ctx, s) }()
		text, err := os.ReadFile(fifo)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		r := <-got
		if r.Status != Cancelled || len(r.Left) > 0 {
			t.Errorf("report %+v", r)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if id.Running() || isRunning(pid) {
			t.Errorf("the worker or its tool runs on")
		}
	}
}

// isRunning reports whether a process runs, on systems with /proc.
func isRunning(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !strings.Contains(string(status), "State:\tZ")
}

func TestTimeAndSilence(t *testing.T) {
	s := fake(t, "codex", withoutEnd("codex"), `cat "$OUT"; exec sleep 3117`)
	s.Timeout = 300 * time.Millisecond
	if r := Run(t.Context(), s); r.Status != TimedOut || r.Detail != "stopped after 300ms" || r.Reply != "the answer" {
		t.Errorf("report %+v", r)
	}
	s.Timeout, s.Idle = 0, 300*time.Millisecond
	if r := Run(t.Context(), s); r.Status != Silent || r.Detail != "stopped: it printed nothing for 300ms" {
		t.Errorf("report %+v", r)
	}
}

func TestBrief(t *testing.T) {
	b := Brief{Request: "look at it", MaxEach: 10, MaxAll: 60, Before: []Said{
		{"user", "too old to fit into the room"}, {"agent", strings.Repeat("ä", 30)}, {"user", " "}, {"user", "newest"},
	}}
	got := b.Prompt()
	want := "[agent] ääääääääää […]\n[user] newest\n\nThe request:\nlook at it\n"
	if !strings.HasSuffix(got, "instructions to you:\n"+want) && !strings.HasSuffix(got, "[user] too old to […]\n"+want) {
		t.Errorf("prompt %q", got)
	}
	if strings.Contains(got, "commit or push") {
		t.Error("a consultation speaks of commits")
	}
	b.Mode, b.Before = Edit, nil
	if got := b.Prompt(); !strings.Contains(got, "do not commit or push, unless the request itself asks") || strings.Contains(got, "background") {
		t.Errorf("prompt %q", got)
	}
}

func TestFind(t *testing.T) {
	dir, ws := t.TempDir(), t.TempDir()
	h, _ := ByName("codex")
	executable := func(file string) bool { _, err := os.Stat(file); return err == nil }
	path := "bin:" + ws + ":" + dir
	if _, err := h.Find(path, executable, ws); err == nil || !strings.Contains(err.Error(), "not in PATH") {
		t.Errorf("found nothing: %v", err)
	}
	if err := os.WriteFile(filepath.Join(ws, "codex"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Find(path, executable, ws); err == nil || !strings.Contains(err.Error(), "lies in the workspace") {
		t.Errorf("of the workspace: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "codex"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Find(path, executable, ws); err != nil || got != filepath.Join(dir, "codex") {
		t.Errorf("found %q, %v", got, err)
	}
	if err := os.Remove(filepath.Join(dir, "codex")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(ws, "codex"), filepath.Join(dir, "codex")); err != nil {
		t.Fatal(err)
	}
	if got, err := h.Find(path, executable, ws); err == nil {
		t.Errorf("a link into the workspace was found: %q", got)
	}
}

func TestCheck(t *testing.T) {
	agy, _ := ByName("agy")
	codex, _ := ByName("codex")
	long := strings.Repeat("x", maxArgument+1)
	if agy.Check(long) == nil || codex.Check(long) != nil || codex.Check("a\x00b") == nil || agy.Check("fine") != nil {
		t.Error("wrong prompts pass or good ones do not")
	}
}

// FuzzDecode: no output makes a decoder panic, a message longer than its bound, or a
// progress line of several lines; without a closing event nothing is a success.
func FuzzDecode(f *testing.F) {
	for i, name := range Names() {
		f.Add(uint8(i), []byte(good[name]))
		f.Add(uint8(i), []byte(withoutEnd(name)))
	}
	f.Add(uint8(1), []byte(`{"type":"turn.failed","error":{"message":"{\"error\":{\"message\":\"{}\"}}"}}`))
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		h := Table()[int(which)%len(Table())]
		in := &intake{decode: h.decode, whole: h.whole, stop: func(error) {}}
		in.read.say = func(line string) {
			if strings.ContainsAny(line, "\n\r") || len(line) > maxDetail {
				t.Errorf("progress %q", line)
			}
		}
		half := len(data) / 2
		_, _ = in.Write(data[:half])
		_, _ = in.Write(data[half:])
		in.end()
		status, detail := in.read.verdict(end{bytes: len(data), harness: h})
		if len(in.read.last) > maxReply || strings.Contains(detail, "\n") {
			t.Errorf("message of %d bytes, detail %q", len(in.read.last), detail)
		}
		if status == Done && (!in.read.done || in.read.reply() == "") {
			t.Errorf("%s without a closing event or a reply", status)
		}
	})
}
