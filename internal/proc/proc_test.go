package proc

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TestMain lets the test program play a zcoder that is killed.
func TestMain(m *testing.M) {
	if script := os.Getenv("PROC_TEST_VICTIM"); script != "" {
		_, _ = Run(context.Background(), Spec{Argv: []string{"/bin/sh", "-c", script}, Env: os.Environ()})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func sh(script string) Spec {
	return Spec{Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

func mustRun(t *testing.T, s Spec) Outcome {
	t.Helper()
	o, err := Run(t.Context(), s)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return o
}

func alive(pid int) bool {
	p, ok := lookup(pid)
	return ok && !p.zombie
}

func pidFrom(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatalf("no pid in %q", text)
	}
	return pid
}

func TestRunOutcome(t *testing.T) {
	tests := []struct {
		name, script string
		code         int
		signal       string
		output       string
	}{
		{"nothing", "true", 0, "", ""},
		{"output", "echo hi", 0, "", "hi\n"},
		{"status", "echo out; exit 7", 7, "", "out\n"},
		{"status 255", "exit 255", 255, "", ""},
		{"signal", "kill -SEGV $$", 139, "SIGSEGV", ""},
		{"killed", "kill -KILL $$", 137, "SIGKILL", ""},
		{"order of both streams", "echo a; echo b >&2; echo c", 0, "", "a\nb\nc\n"},
		{"standard error alone", "echo bad >&2", 0, "", "bad\n"},
		{"empty input", "cat; echo end", 0, "", "end\n"},
		{"no controlling terminal", "(: </dev/tty) 2>/dev/null || echo none", 0, "", "none\n"},
		{"marked", `[ -n "$ZCODER_RUN" ] && echo yes`, 0, "", "yes\n"},
		{"no final line end", "printf x", 0, "", "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := mustRun(t, sh(tt.script))
			if o.ExitCode != tt.code || o.Signal != tt.signal || o.Output != tt.output {
				t.Errorf("got code %d signal %q output %q, want %d %q %q", o.ExitCode, o.Signal, o.Output, tt.code, tt.signal, tt.output)
			}
			if o.TimedOut || o.Cancelled || len(o.Survivors) > 0 || o.Truncated != 0 {
				t.Errorf("unexpected marks in %+v", o)
			}
		})
	}
}

func TestRunOwnSession(t *testing.T) {
	o := mustRun(t, sh("ps -o sid= -o pgid= -p $$ | tr -s ' '; echo $$"))
	var sid, pgid, pid int
	if _, err := fmt.Sscan(o.Output, &sid, &pgid, &pid); err != nil {
		t.Skipf("ps gave %q: %v", o.Output, err)
	}
	if sid != pid || pgid != pid {
		t.Errorf("session %d and group %d, want both %d", sid, pgid, pid)
	}
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec Spec
		want string
	}{
		{"nothing", Spec{}, "no program is named"},
		{"NUL in an argument", Spec{Argv: []string{"/bin/sh", "a\x00b"}}, "argument 1 holds a NUL byte"},
		{"NUL in the environment", Spec{Argv: []string{"/bin/sh"}, Env: []string{"A=b\x00"}}, `variable "A" holds a NUL byte`},
		{"missing directory", Spec{Argv: []string{"/bin/sh"}, Dir: dir + "/none"}, `none": no such file or directory`},
		{"directory is a file", Spec{Argv: []string{"/bin/sh"}, Dir: plain}, "not a directory"},
		{"missing program", Spec{Argv: []string{"/none/prog"}}, `run "/none/prog": no such file or directory`},
		{"not in PATH", Spec{Argv: []string{"nosuchprog"}, Env: []string{"PATH=/bin"}}, "no such program in PATH"},
		{"empty PATH", Spec{Argv: []string{"sh"}}, "no such program in PATH"},
		{"relative PATH", Spec{Argv: []string{"plain"}, Env: []string{"PATH=.:bin"}}, "no such program in PATH"},
		{"not executable", Spec{Argv: []string{plain}}, "permission denied"},
		{"a directory", Spec{Argv: []string{dir}}, "it is a directory"},
		{"no program at all", Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 200000)}}, "argument list too long"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Run(t.Context(), tt.spec)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestRunLooksUpProgram(t *testing.T) {
	s := Spec{Argv: []string{"sh", "-c", "echo $0"}, Env: []string{"PATH=/none:/bin:/usr/bin"}}
	if o := mustRun(t, s); o.Output != "sh\n" {
		t.Errorf("got %q", o.Output)
	}
}

func TestRunStdin(t *testing.T) {
	t.Run("reader", func(t *testing.T) {
		s := sh("cat")
		s.Stdin = strings.NewReader(strings.Repeat("line\n", 5000))
		if o := mustRun(t, s); o.Output != strings.Repeat("line\n", 5000) {
			t.Errorf("got %d bytes", len(o.Output))
		}
	})
	t.Run("file", func(t *testing.T) {
		f, err := os.Open("/etc/hostname")
		if err != nil {
			t.Skip(err)
		}
		defer f.Close()
		s := sh("cat >/dev/null && echo read")
		s.Stdin = f
		if o := mustRun(t, s); o.Output != "read\n" {
			t.Errorf("got %q", o.Output)
		}
	})
	t.Run("more than the child reads", func(t *testing.T) {
		s := sh("head -c 3")
		s.Stdin = strings.NewReader(strings.Repeat("x", 1<<22))
		if o := mustRun(t, s); o.Output != "xxx" {
			t.Errorf("got %q", o.Output)
		}
	})
	t.Run("pipe that nobody closes", func(t *testing.T) {
		r, w := io.Pipe()
		defer w.Close()
		s := sh("echo done")
		s.Stdin = r
		if o := mustRun(t, s); o.Output != "done\n" {
			t.Errorf("got %q", o.Output)
		}
	})
}

func TestRunSeparateStdout(t *testing.T) {
	var got bytes.Buffer
	s := sh("echo out; echo err >&2; head -c 200000 /dev/zero")
	s.Stdout = &got
	o := mustRun(t, s)
	if got.Len() != 200004 || o.Output != "err\n" {
		t.Errorf("got %d bytes of output and errors %q", got.Len(), o.Output)
	}
}

func TestRunTimeout(t *testing.T) {
	s := sh("echo begun; sleep 60; echo no")
	s.Timeout = 100 * time.Millisecond
	o := mustRun(t, s)
	if !o.TimedOut || o.Cancelled || o.Signal != "SIGINT" || o.Output != "begun\n" {
		t.Errorf("got %+v", o)
	}
	if o.Took > 5*time.Second {
		t.Errorf("took %v", o.Took)
	}
}

func TestRunCancelGrace(t *testing.T) {
	tests := []struct {
		name, script string
		code         int
		least, most  time.Duration
	}{
		{"ends in order", "trap 'exit 3' INT; sleep 60 & echo; wait", 3, 0, 5 * time.Second},
		{"ignores all", "trap '' INT TERM; echo; sleep 60; sleep 60", 137, 290 * time.Millisecond, 5 * time.Second},
		{"background", "sleep 60 & echo; wait", 130, 0, 5 * time.Second},
		{"stopped", "(kill -STOP $$; echo; sleep 60) & wait", 137, 290 * time.Millisecond, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := sh(tt.script)
			s.Grace = 300 * time.Millisecond
			var begun time.Time
			s.OnOutput = func([]byte) { begun = time.Now(); cancel() }
			o, err := Run(ctx, s)
			if err != nil || !o.Cancelled || o.ExitCode != tt.code || len(o.Survivors) > 0 {
				t.Fatalf("got %+v, %v; want cancelled with code %d", o, err, tt.code)
			}
			if took := time.Since(begun); took < tt.least || took > tt.most {
				t.Errorf("took %v after the cancel, want between %v and %v", took, tt.least, tt.most)
			}
		})
	}
}

func TestRunCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o, err := Run(ctx, sh("echo never"))
	if err != nil || !o.Cancelled || o.Output != "" {
		t.Errorf("got %+v, %v", o, err)
	}
}

// TestRunCancelFindsAll starts descendants that leave the group, the session, the
// chain of parents and the environment, in any one of which they stay.
func TestRunCancelFindsAll(t *testing.T) {
	if !markerSearch {
		t.Skip("no search by environment on this system")
	}
	needs(t, "setsid")
	tests := []struct{ name, script string }{
		{"plain background", "sleep 300 & echo $!; wait"},
		{"new session", "setsid sh -c 'echo $$; sleep 300' & sleep 300"},
		{"orphan of an own session", "setsid sh -c '(echo $(exec sh -c \"echo \\$PPID\"); sleep 300) & exit'; sleep 300"},
		{"silent and detached", "setsid sh -c 'echo $$; exec sleep 300 >/dev/null 2>&1' & sleep 300"},
		{"no environment", "env -i sh -c 'echo $$; exec sleep 300' & sleep 300"},
		{"no environment, new session", "env -i setsid sh -c 'echo $$; exec sleep 300' & sleep 300"},
		{"ignores signals", "setsid sh -c 'trap \"\" INT TERM HUP; echo $$; sleep 300; sleep 300' & sleep 300"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := sh(tt.script)
			s.Grace = 100 * time.Millisecond
			s.OnOutput = func([]byte) { cancel() }
			o, err := Run(ctx, s)
			if err != nil {
				t.Fatal(err)
			}
			if pid := pidFrom(t, o.Output); alive(pid) {
				_ = unix.Kill(pid, unix.SIGKILL)
				t.Errorf("process %d is alive after %+v", pid, o)
			}
		})
	}
}

func needs(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("no %s here", program)
	}
}

func TestRunBackgroundChild(t *testing.T) {
	needs(t, "setsid")
	tests := []struct{ name, script string }{
		{"holds the pipe", "sleep 300 & echo ok"},
		{"new session", "setsid sleep 300 & echo ok"},
		{"double fork", "(setsid sleep 300 &); echo ok"},
		{"silent", "(sleep 300 >/dev/null 2>&1 &); echo ok"},
		{"silent in a new session", "(setsid sleep 300 >/dev/null 2>&1 </dev/null &); echo ok"},
		{"known by the pipe alone", "(env -i setsid sleep 300 &); echo ok"},
		{"writes for ever", "(while :; do echo y; sleep 0.01; done >&2) & echo ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var tr Tracker
			s := sh(tt.script)
			s.Tracker = &tr
			begun := time.Now()
			o := mustRun(t, s)
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if o.ExitCode != 0 || !strings.Contains(o.Output, "ok\n") {
				t.Errorf("got %+v", o)
			}
			if len(o.Survivors) == 0 || !strings.Contains(o.Survivors[0].Command, "sleep") && !strings.Contains(o.Survivors[0].Command, "sh -c") {
				t.Fatalf("survivors %+v", o.Survivors)
			}
			pid := o.Survivors[0].PID
			if !alive(pid) {
				t.Errorf("the survivor was ended too early")
			}
			if jobs := tr.Jobs(); len(jobs) == 0 || jobs[0].Kept {
				t.Errorf("jobs %+v", jobs)
			}
			if ended := tr.EndTurn(); len(ended) == 0 || alive(pid) {
				t.Errorf("ended %+v, alive %v", ended, alive(pid))
			}
			if jobs := tr.Jobs(); len(jobs) != 0 {
				t.Errorf("jobs after the turn %+v", jobs)
			}
		})
	}
}

func TestRunTransientBackground(t *testing.T) {
	var tr Tracker
	s := sh("(sleep 0.05; echo late) & echo soon")
	s.Tracker = &tr
	if o := mustRun(t, s); o.Output != "soon\nlate\n" || len(o.Survivors) != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestRunWithoutTrackerEndsSurvivors(t *testing.T) {
	o := mustRun(t, sh("sleep 300 & echo ok"))
	if len(o.Survivors) != 1 || alive(o.Survivors[0].PID) || o.ExitCode != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestTrackerKeepsDetached(t *testing.T) {
	var tr Tracker
	s := sh("(while :; do echo tick; sleep 0.02; done) & echo ok")
	s.Tracker, s.KeepDetached = &tr, true
	o := mustRun(t, s)
	if len(o.Survivors) == 0 {
		t.Fatalf("no survivor in %+v", o)
	}
	pid := o.Survivors[0].PID
	defer unix.Kill(-pid, unix.SIGKILL)
	defer unix.Kill(pid, unix.SIGKILL)
	if ended := tr.EndTurn(); len(ended) != 0 || !alive(pid) {
		t.Errorf("the end of the turn ended %+v", ended)
	}
	waitFor(t, "output of the job", func() bool {
		jobs := tr.Jobs()
		return len(jobs) > 0 && jobs[0].Kept && strings.Contains(jobs[0].Output, "tick\n")
	})
	if ended := tr.Close(); len(ended) != 0 {
		t.Errorf("Close ended %+v", ended)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not within 5 s", what)
			return
		}
	}
}

func TestTrackerClosed(t *testing.T) {
	var tr Tracker
	tr.Close()
	s := sh("sleep 300 & echo ok")
	s.Tracker, s.KeepDetached = &tr, true
	if o := mustRun(t, s); len(o.Survivors) != 1 || alive(o.Survivors[0].PID) {
		t.Errorf("got %+v", o)
	}
}

func TestSignalSparesReusedPid(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	now, _ := lookup(cmd.Process.Pid)
	(ident{pid: now.pid, start: now.start - 1}).signal(unix.SIGKILL)
	time.Sleep(20 * time.Millisecond)
	if !alive(now.pid) {
		t.Fatal("a process with another start time was killed")
	}
	now.ident.signal(unix.SIGKILL)
	waitFor(t, "death", func() bool { return !alive(now.pid) })
}

// victim starts this program's double, which runs a script. All that comes of it
// carries the tag in its environment.
func victim(t *testing.T, script string) (cmd *exec.Cmd, tag string) {
	t.Helper()
	if !markerSearch {
		t.Skip("no search by environment on this system")
	}
	needs(t, "setsid")
	tag = "tag" + newMarker()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PROC_TEST_TAG="+tag, "PROC_TEST_VICTIM="+script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, tag
}

func tagged(tag string) (n int) {
	for _, p := range processes() {
		if !p.zombie && strings.Contains(environ(p.pid), tag) {
			n++
		}
	}
	return n
}

const manyChildren = "sleep 300 & setsid sleep 300 & (setsid sleep 300 >/dev/null 2>&1 &) ; sleep 300; echo"

// TestKilledProgramLeavesNothing kills a program with SIGKILL while it runs a command.
func TestKilledProgramLeavesNothing(t *testing.T) {
	t.Parallel()
	cmd, tag := victim(t, manyChildren)
	waitFor(t, "the program, its shell and four sleeping processes", func() bool { return tagged(tag) >= 6 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitFor(t, "the end of all of them", func() bool { return tagged(tag) == 0 })
}

// TestKilledAtAnyMoment does the same from the first moment on.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for i := range rounds {
		cmd, tag := victim(t, manyChildren)
		time.Sleep(time.Duration(i) * 500 * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		waitFor(t, "the end of all processes", func() bool { return tagged(tag) == 0 })
	}
}

func environ(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return string(b)
}

func TestRunLiveOutput(t *testing.T) {
	var mu sync.Mutex
	var shown strings.Builder
	calls := 0
	s := sh("printf 'a\\303'; sleep 0.1; printf '\\244b\\n'; sleep 0.1; echo end")
	s.OnOutput = func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if !utf8.Valid(b) {
			t.Errorf("a rune was cut: %q", b)
		}
		shown.Write(b)
	}
	mustRun(t, s)
	if shown.String() != "aäb\nend\n" || calls < 3 {
		t.Errorf("got %q in %d calls", shown.String(), calls)
	}
}

func TestRunSlowViewerDoesNotSlowTheChild(t *testing.T) {
	end := filepath.Join(t.TempDir(), "end")
	s := sh("head -c 20000000 /dev/zero; : >" + end)
	s.OnOutput = func([]byte) {
		waitFor(t, "the child's end before the viewer returned", func() bool { _, err := os.Stat(end); return err == nil })
	}
	if o := mustRun(t, s); o.Truncated < 20000000-DefaultMaxOutput {
		t.Errorf("left out %d", o.Truncated)
	}
}

func TestRunLeaksNothing(t *testing.T) {
	once := func() {
		var tr Tracker
		s := sh("sleep 300 & echo ok")
		s.Tracker = &tr
		s.Stdin = strings.NewReader("x")
		s.OnOutput = func([]byte) {}
		mustRun(t, s)
		tr.EndTurn()
		_, _ = Run(t.Context(), Spec{Argv: []string{"/bin/sh"}, Dir: "/none"})
		_, _ = Run(t.Context(), Spec{Argv: []string{"/bin/sh", strings.Repeat("x", 200000)}})
	}
	once()
	routines, files := runtime.NumGoroutine(), openFiles()
	for range 3 {
		once()
	}
	waitFor(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= routines })
	if now := openFiles(); now > files {
		t.Errorf("%d files are open, %d before", now, files)
	}
}

func openFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}
