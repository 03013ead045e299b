package repl

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// patience is how long a test waits for something to appear. A busy machine needs
// much of it, a failing test all.
const patience = 20 * time.Second

// terminalRun is a program on a pseudo-terminal whose screen can be looked at.
type terminalRun struct {
	t    *testing.T
	cmd  *exec.Cmd
	f    *os.File // ours
	tty  *os.File // the program's, for its modes
	done chan struct{}

	mu      sync.Mutex
	vt      *vt
	raw     bytes.Buffer
	changed chan struct{} // has a value after output came
	err     error         // how the program ended, after done
}

// startChild runs the test binary's REPL on a terminal.
func startChild(t *testing.T, cols, rows int, env ...string) *terminalRun {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, cols, rows, exec.Command(self), append(env, "REPL_TEST_CHILD=1"))
}

func startOn(t *testing.T, cols, rows int, cmd *exec.Cmd, env []string) *terminalRun {
	t.Helper()
	f, tty, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminal: ", err)
	}
	r := &terminalRun{t: t, cmd: cmd, f: f, tty: tty, vt: newVT(cols, rows), changed: make(chan struct{}, 1), done: make(chan struct{})}
	if err := pty.Setsize(f, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append([]string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go r.read()
	go func() { r.err = cmd.Wait(); close(r.done); r.poke() }()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-r.done
		_ = tty.Close()
		_ = f.Close()
		if t.Failed() {
			t.Logf("screen:\n%s", r.screen())
		}
	})
	return r
}

func (r *terminalRun) read() {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.f.Read(buf)
		r.mu.Lock()
		r.raw.Write(buf[:n])
		r.vt.write(string(buf[:n]))
		r.mu.Unlock()
		r.poke()
		if err != nil {
			return
		}
	}
}

func (r *terminalRun) poke() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *terminalRun) look(f func(v *vt)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.vt)
}

func (r *terminalRun) screen() (s string) { r.look(func(v *vt) { s = v.screenText() }); return s }
func (r *terminalRun) all() (s string)    { r.look(func(v *vt) { s = v.all() }); return s }

// until waits for a state of the screen.
func (r *terminalRun) until(what string, ok func(v *vt) bool) {
	r.t.Helper()
	over := time.After(patience)
	for {
		good := false
		r.look(func(v *vt) { good = ok(v) })
		if good {
			return
		}
		select {
		case <-r.changed:
		case <-over:
			r.t.Fatalf("waited in vain for %s; the screen:\n%s", what, r.screen())
		}
	}
}

// see waits for text on the screen.
func (r *terminalRun) see(text string) {
	r.t.Helper()
	r.until(fmt.Sprintf("%q", text), func(v *vt) bool { return strings.Contains(v.screenText(), text) })
}

// prompt waits for the draft in the row of the cursor.
func (r *terminalRun) prompt(draft string) {
	r.t.Helper()
	r.until("the draft "+draft, func(v *vt) bool {
		return v.main == nil && v.cursorRow() == strings.TrimRight("> "+draft, " ")
	})
}

func (r *terminalRun) send(s string) {
	r.t.Helper()
	if _, err := r.f.WriteString(s); err != nil {
		r.t.Fatal(err)
	}
}

// enter sends text and, when it is shown, Return.
func (r *terminalRun) enter(text string) {
	r.t.Helper()
	r.send(text)
	r.prompt(text)
	r.send("\r")
}

func (r *terminalRun) resize(cols, rows int) {
	r.t.Helper()
	r.look(func(v *vt) { v.resize(cols, rows) })
	if err := pty.Setsize(r.f, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		r.t.Fatal(err)
	}
}

// ended waits for the end of the program and returns its exit status.
func (r *terminalRun) ended() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(patience):
		r.t.Fatalf("it does not end; the screen:\n%s", r.screen())
	}
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

func (r *terminalRun) modes() string {
	r.t.Helper()
	out, err := exec.Command("stty", "-a", "-F", r.tty.Name()).CombinedOutput()
	if err != nil {
		r.t.Skip("stty: ", err)
	}
	return string(out)
}

func TestTerminalTurn(t *testing.T) {
	t.Parallel()
	from := time.Now()
	r := startChild(t, 80, 24)
	r.prompt("")
	t.Logf("start to prompt: %v", time.Since(from))
	r.enter("hello")
	r.see(`you said "hello"`)
	r.see("done · 12 tokens · 31 % of 16k")
	r.prompt("")
	r.send("\x04")
	if code := r.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
	r.see(`left; prompts ["hello"]`)
	r.look(func(v *vt) {
		if len(v.unknown) > 0 || v.modes["?2004"] || !v.modes["?25"] {
			t.Errorf("unknown output %q, modes %v", v.unknown, v.modes)
		}
	})
}

func TestTerminalPaste(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, keys, draft, sent string }{
		{"bracketed", "\x1b[200~a\nb\n\x1b[201~", "> a\n  b", `["a\nb\n"]`},
		{"bracketed, CRLF and tabs", "\x1b[200~a\r\n\tb\x1b[201~", "> a\n      b", `["a\n\tb"]`},
		{"burst", "a\rb\r", "> a\n  b", `["a\nb\n"]`},
		{"long", "see \x1b[200~" + strings.Repeat("x\n", 500) + "\x1b[201~", "> see [pasted 500 lines]", `["see ` + strings.Repeat(`x\n`, 500)},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := startChild(t, 80, 24)
			r.prompt("")
			r.send(test.keys)
			r.see(test.draft)
			r.until("nothing sent", func(v *vt) bool { return !strings.Contains(v.screenText(), "you said") })
			time.Sleep(2 * pasteTail) // Return by a person comes later
			r.send("\r")
			r.see("done")
			r.prompt("")
			r.send("\x04")
			r.ended()
			r.until("the end", func(v *vt) bool { return strings.HasSuffix(v.screenText(), "]") })
			if got := strings.ReplaceAll(r.all(), "\n", ""); !strings.Contains(got, "left; prompts "+test.sent) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestTerminalHugePaste(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	const lines = 2 << 20 / 32
	r.send("\x1b[200~" + strings.Repeat(strings.Repeat("y", 31)+"\n", lines) + "\x1b[201~")
	r.prompt(fmt.Sprintf("[pasted %d lines]", lines))
	time.Sleep(2 * pasteTail)
	r.send("\x03\x04")
	r.ended()
}

func TestTerminalPastedCommands(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"/quit", "!id", "/panic now"} {
		for _, keys := range []string{
			"\x1b[200~" + text + "\n\x1b[201~",
			"\x1b[200~" + text + "\x1b[201~\r",
			"\x1b[200~hello\x1b[201~\x15" + text + "\r",
			text + "\r" + text + "\r",
		} {
			t.Run(fmt.Sprintf("%q", keys), func(t *testing.T) {
				t.Parallel()
				r := startChild(t, 80, 24)
				r.prompt("")
				r.send(keys)
				r.see(text)
				time.Sleep(2 * pasteTail)
				r.send("x")
				r.see("x")
				select {
				case <-r.done:
					t.Error("it ran")
				default:
				}
				if s := r.screen(); strings.Contains(s, "program") || strings.Contains(s, "panic:") {
					t.Errorf("it ran:\n%s", s)
				}
			})
		}
	}
}

func TestTerminalWideLetters(t *testing.T) {
	t.Parallel()
	r := startChild(t, 40, 24)
	r.prompt("")
	r.send("漢字。👨‍👩‍👧é🇩🇪ｙ")
	r.prompt("漢字。👨‍👩‍👧é🇩🇪ｙ")
	at := func(x int) {
		t.Helper()
		r.until(fmt.Sprint("the cursor in column ", x), func(v *vt) bool { return v.x == x })
	}
	at(2 + 2 + 2 + 2 + 2 + 1 + 2 + 2)
	r.send("\x1b[D\x1b[D")
	at(2 + 2 + 2 + 2 + 2 + 1)
	r.send("\x7f\x7f")
	r.prompt("漢字。🇩🇪ｙ")
	at(2 + 2 + 2 + 2)
	r.send("\x01x")
	r.prompt("x漢字。🇩🇪ｙ")
	r.send("\x05" + strings.Repeat("漢", 30))
	r.until("three rows", func(v *vt) bool {
		return strings.Contains(v.screenText(), "> x漢字。🇩🇪ｙ"+strings.Repeat("漢", 13)+"\n"+strings.Repeat("漢", 17))
	})
	r.send("\x15done")
	r.prompt("done")
	if s := r.screen(); strings.Contains(s, "漢") {
		t.Errorf("something is left:\n%s", s)
	}
}

func TestTerminalGarbage(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	for _, s := range []string{
		"\x1b[105;1:3u", "\x1b[27;2;13~", "\x1b[25~", "\x1b[12;40R", "\x1b]11;rgb:1111/2222/3333\x1b\\", "\x1bP1$r0m\x1b\\",
		"\x1b[?62;4c", "\x1b[[A", "\x1b[M !!", "\x1b[I", "\x1b[O",
	} {
		r.send(s)
	}
	r.send("\x1b[")
	time.Sleep(200 * time.Millisecond)
	r.send("A")
	r.send("\x1b")
	time.Sleep(2 * escTime)
	r.send("ok")
	r.prompt("ok")
	r.send("\x1b")
	time.Sleep(2 * escTime)
	r.send("!")
	r.prompt("ok!")
}

func TestTerminalResizeStorm(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	text := "typed while the window is dragged"
	for i := range 500 {
		if err := pty.Setsize(r.f, &pty.Winsize{Cols: uint16(60 + i%40), Rows: uint16(20 + i%10)}); err != nil {
			t.Fatal(err)
		}
		if i%15 == 0 && i/15 < len(text) {
			r.send(text[i/15 : i/15+1])
		}
	}
	r.resize(80, 24)
	r.prompt(text)
	r.send("!")
	r.prompt(text + "!")
	r.send("\r")
	if n := strings.Count(r.all(), "> typed"); n < 1 {
		t.Errorf("the draft is gone")
	}
	r.see(`you said "` + text + `!"`)
}

// TestTerminalLeavesWhenTheTurnIsOver: whoever sees the end of a turn may leave, also
// before it is certain that no other follows.
func TestTerminalLeavesWhenTheTurnIsOver(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("linger")
	r.see("done · 12 tokens")
	r.send("\x04")
	if code := r.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// TestTerminalShowsWhatWaited: a command that waited for the end of a turn has the status
// row to itself when it runs.
func TestTerminalShowsWhatWaited(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("linger")
	r.see("done · 12 tokens")
	r.send("/slow\r")
	r.see("waits until what runs is done")
	r.until("its own row", func(v *vt) bool {
		text := v.screenText()
		return strings.Contains(text, "/slow 0s") && !strings.Contains(text, "waits until")
	})
	r.send("\x03")
	r.see("was stopped")
}

func TestTerminalInterruptKeepsDraft(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("wait")
	r.see("reading prompt 0s · Esc/Ctrl-C stops")
	r.send("my next idea")
	r.prompt("my next idea")
	r.send("\x03")
	r.see("stopped ·")
	r.prompt("my next idea")
	r.send("\x03")
	r.prompt("")
	r.send("\x03")
	r.see("Ctrl-D leaves")
	r.send("\x10") // Up
	r.prompt("my next idea")
	r.send("\x15wait\r")
	r.see("reading prompt")
	r.send("\x1b")
	r.until("the second stop", func(v *vt) bool { return strings.Count(v.screenText(), "stopped ·") == 2 })
	r.send("wait\r")
	r.until("the third turn", func(v *vt) bool { return strings.Contains(v.screenText(), "reading prompt") })
	r.send("soon\r")
	r.see("the draft is sent at the end of the turn")
	r.send("\x1b")
	r.see(`you said "soon"`)
}

func TestTerminalTypingWhileStreaming(t *testing.T) {
	t.Parallel()
	r := startChild(t, 60, 12)
	r.prompt("")
	r.enter("lines 150")
	r.until("line 5", func(v *vt) bool { return strings.Contains(v.all(), "line 5 of") })
	for i, letter := range "some draft" {
		r.send(string(letter))
		r.prompt("some draft"[:i+1])
	}
	r.send("\x15")
	r.until("line 100", func(v *vt) bool { return strings.Contains(v.all(), "line 100 of") })
	r.send("x")
	r.see("done ·")
	r.prompt("x")
	var want strings.Builder
	for i := range 150 {
		fmt.Fprintf(&want, "line %d of the\n", i)
	}
	if got := r.all(); !strings.Contains(got, want.String()) {
		t.Errorf("the scrollback does not hold all lines once:\n%s", got)
	}
}

func TestTerminalKeyLatency(t *testing.T) { // alone, since it measures
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("flood")
	r.see("some words of a long answer")
	var worst, sum time.Duration
	best := time.Hour
	const n = 40
	for i := range n {
		before := time.Now()
		r.send(string(rune('a' + i%26)))
		r.until("the key", func(v *vt) bool {
			return len(v.grid) > 0 && strings.Contains(v.cursorRow(), strings.Repeat("x", 0)+alphabet(i+1))
		})
		took := time.Since(before)
		sum += took
		worst, best = max(worst, took), min(best, took)
	}
	t.Logf("key to screen while streaming: mean %v, worst %v", sum/n, worst)
	if best > 5*time.Millisecond { // the others say how busy the machine is
		t.Errorf("key to screen took %v at best", best)
	}
	r.send("\x03")
	r.see("stopped ·")
}

func alphabet(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteByte(byte('a' + i%26))
	}
	return b.String()
}

func TestTerminalApproval(t *testing.T) {
	t.Parallel()
	settle := func() { time.Sleep(settleTime + 50*time.Millisecond) }
	open := func(t *testing.T, cols, rows int, lines string) *terminalRun {
		t.Helper()
		r := startChild(t, cols, rows)
		r.prompt("")
		r.enter("ask " + lines)
		r.see("Allow this?")
		return r
	}
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		r := open(t, 80, 24, "1")
		r.see("1│go test ./...")
		settle()
		r.send("y")
		r.see("the answer was once")
		r.see("✓ run_command: approved once\n  zsh -f -c · in /work/x\n  │ go test ./...\n● run_command go test ./... · exit 0 · 1.2s")
	})
	t.Run("at 40x10", func(t *testing.T) {
		t.Parallel()
		r := open(t, 40, 10, "30")
		settle()
		r.see("line 1–7 of 34")
		r.send("y")
		r.see("30│END")
		time.Sleep(2 * resettle)
		r.send("a")
		r.until("the answer", func(v *vt) bool { return strings.Contains(v.all(), "the answer was conversation") })
		if s := r.all(); !strings.Contains(s, "│ text 17\n") || !strings.Contains(s, "  │ END\n") {
			t.Errorf("the transcript does not show the request:\n%s", s)
		}
	})
	t.Run("after a resize", func(t *testing.T) {
		t.Parallel()
		r := open(t, 80, 24, "30")
		r.resize(40, 10)
		r.see("line 1–7 of 34")
		r.resize(100, 40)
		r.see("30│END")
		settle()
		r.send("y")
		r.see("the answer was once")
	})
	t.Run("type-ahead", func(t *testing.T) {
		t.Parallel()
		r := startChild(t, 80, 24)
		r.prompt("")
		r.enter("later 1")
		r.see("reading prompt")
		r.send("yes please")
		r.prompt("yes please")
		r.send("y")
		r.see("Allow this?")
		r.send("y")
		r.send("\r")
		r.send("\x1b[12;3R")
		settle()
		r.send("\x1b[12;3R")
		r.send("\x1b]11;rgb:aaaa/yyyy/aaaa\x07")
		r.send("\x1b[200~y\x1b[201~")
		r.send("1")
		r.see("press y, a or n")
		r.send("ｙ")
		r.see("full-width")
		r.send("n")
		r.see("why not")
		r.send("too risky\r")
		r.see(`the answer was no, "too risky"`)
		r.see("reason: too risky")
		r.prompt("yes pleasey")
	})
	t.Run("Esc", func(t *testing.T) {
		t.Parallel()
		r := open(t, 80, 24, "1")
		settle()
		r.send("\x1b")
		r.see(`the answer was no, ""`)
	})
	t.Run("keeps the draft", func(t *testing.T) {
		t.Parallel()
		r := startChild(t, 80, 24)
		r.prompt("")
		r.send("\x1b[200~ask 1\x1b[201~\r")
		r.see("Allow this?")
		settle()
		r.send("n")
		r.see("why not")
		r.send("\r")
		r.see(`the answer was no, ""`)
		r.prompt("")
	})
	t.Run("Ctrl-C stops the turn", func(t *testing.T) {
		t.Parallel()
		r := open(t, 80, 24, "1")
		settle()
		r.send("\x03")
		r.see("stopped ·")
		r.prompt("")
	})
	t.Run("the turn ends", func(t *testing.T) {
		t.Parallel()
		r := startChild(t, 80, 24)
		r.prompt("")
		r.enter("timeout")
		r.see("Allow this?")
		r.see("done ·")
		r.prompt("")
	})
	t.Run("too small", func(t *testing.T) {
		t.Parallel()
		r := startChild(t, 120, 6)
		r.prompt("")
		r.enter("ask 1")
		r.until("the denial", func(v *vt) bool {
			all := strings.ReplaceAll(v.all(), "\n", "")
			return strings.Contains(all, "warning: denied without asking: the terminal of 120×6 is too small") && strings.Contains(all, "the answer was no")
		})
	})
}

func TestTerminalModesAreRestored(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(r *terminalRun)
		code int
	}{
		{"Ctrl-D", func(r *terminalRun) { r.send("\x04") }, 0},
		{"/quit", func(r *terminalRun) { r.enter("/quit") }, 0},
		{"SIGTERM", func(r *terminalRun) { _ = r.cmd.Process.Signal(syscall.SIGTERM) }, 0},
		{"SIGHUP", func(r *terminalRun) { _ = r.cmd.Process.Signal(syscall.SIGHUP) }, 0},
		{"SIGTERM in a turn", func(r *terminalRun) {
			r.enter("wait")
			r.see("reading prompt")
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
		}, 0},
		{"SIGTERM at an approval", func(r *terminalRun) {
			r.enter("ask 1")
			r.see("Allow this?")
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
		}, 0},
		{"SIGTERM in a command of the person", func(r *terminalRun) {
			r.enter("! vi")
			r.see("type q")
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
		}, 0},
		{"SIGINT twice at an approval", func(r *terminalRun) {
			r.enter("ask 1")
			r.see("Allow this?")
			_ = r.cmd.Process.Signal(syscall.SIGINT)
			_ = r.cmd.Process.Signal(syscall.SIGINT)
		}, 0},
		{"panic in the loop", func(r *terminalRun) { r.enter("panic in the loop") }, 2},
		{"panic in a turn", func(r *terminalRun) { r.enter("panic") }, 2},
		{"panic in a command", func(r *terminalRun) { r.enter("/panic") }, 2},
		{"panic in a command of the person", func(r *terminalRun) { r.enter("! panic") }, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			self, _ := os.Executable()
			f, tty, err := pty.Open()
			if err != nil {
				t.Skip("no pseudo-terminal: ", err)
			}
			before, err := exec.Command("stty", "-a", "-F", tty.Name()).CombinedOutput()
			if err != nil {
				t.Skip("stty: ", err)
			}
			_ = f.Close()
			_ = tty.Close()
			r := startOn(t, 80, 24, exec.Command(self), []string{"REPL_TEST_CHILD=1"})
			r.prompt("")
			test.do(r)
			if code := r.ended(); code != test.code {
				t.Errorf("exit %d, want %d", code, test.code)
			}
			want := strings.Replace(string(before), "rows 0; columns 0", "rows 24; columns 80", 1)
			if after := r.modes(); after != want {
				t.Errorf("modes\n%swere\n%s", after, want)
			}
			r.until("the modes", func(v *vt) bool { return v.main == nil && !v.modes["?2004"] && v.modes["?25"] })
		})
	}
}

func TestTerminalSuspend(t *testing.T) {
	t.Parallel()
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("zsh is not there")
	}
	self, _ := os.Executable()
	r := startOn(t, 80, 24, exec.Command(zsh, "-f", "-i"), []string{"PS1=shell%% ", "SELF=" + self, "PROMPT_EOL_MARK="})
	r.see("shell%")
	before := r.modes()
	r.send("REPL_TEST_CHILD=1 $SELF\r")
	r.prompt("")
	r.send("my draft")
	r.prompt("my draft")
	for range 2 {
		r.send("\x1a")
		r.see("suspended")
		r.until("the shell", func(v *vt) bool { return strings.HasPrefix(v.cursorRow(), "shell%") })
		if after := r.modes(); strings.Contains(before, " icanon") != strings.Contains(after, " icanon") {
			t.Errorf("modes\n%s", after)
		}
		r.send("fg\r")
		r.prompt("my draft")
		r.send("\x0c") // the shell's lines would be seen again
		r.until("a clear screen", func(v *vt) bool { return v.screenText() == "> my draft" })
	}
	r.send("!")
	r.prompt("my draft!")
	r.send("\x15ask 1\r")
	r.see("Allow this?")
	r.send("\x1a")
	r.see("suspended")
	r.send("fg\r")
	r.until("the dialog", func(v *vt) bool { return v.main != nil && strings.Contains(v.screenText(), "Allow this?") })
	time.Sleep(settleTime + 50*time.Millisecond)
	r.send("y")
	r.see("the answer was once")
	r.send("\x04")
	r.until("the shell", func(v *vt) bool { return strings.HasPrefix(v.cursorRow(), "shell%") })
}

func TestTerminalUserCommand(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("! vi file")
	r.see("type q")
	r.look(func(v *vt) {
		if v.modes["?2004"] {
			t.Error("bracketed paste is on for the program")
		}
	})
	r.send("\x1b[A\x03q")
	r.see("program vi file 80x24")
	r.see(`got "\x1b[A\x03q"`)
	r.prompt("")
	r.look(func(v *vt) {
		if !v.modes["?2004"] || v.modes["?1000"] {
			t.Errorf("modes %v", v.modes)
		}
	})
	r.enter("hello")
	r.see(`you said "hello"`)
	if s := r.all(); strings.Contains(s, "the record") {
		t.Errorf("the record is shown:\n%s", s)
	}
}

func TestTerminalSteering(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "REPL_TEST_QUEUE=1")
	r.prompt("")
	r.enter("wait")
	r.see("reading prompt")
	r.send("be quick\r")
	r.see("steer be quick")
	r.send("then rest\x07")
	r.see("later then rest")
	r.send("no\r")
	r.see("error: the queue is full")
	r.prompt("no")
	r.send("\x15//x\r")
	r.see("steer /x")
	r.send("\x03")
	r.see("stopped ·")
}

func TestTerminalCommands(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 40)
	r.prompt("")
	r.enter("/hlep")
	r.see(`error: there is no command "/hlep"`)
	r.see("did you mean /help?")
	r.prompt("")
	r.enter("/help")
	r.see("/model [NAME]")
	r.see("/quit, /exit, /q")
	r.prompt("")
	r.enter("/model")
	r.see("> qwen-coder")
	r.send("lla")
	r.see("> llama")
	r.send("\r")
	r.see("picked 2")
	r.prompt("")
	r.enter("/ask")
	r.see("name:")
	r.send("Bob\r")
	r.see(`asked "Bob" true`)
	r.prompt("")
	r.send("/mo\t")
	r.prompt("/model ")
	r.send("q\t")
	r.prompt("/model qwen")
	r.send("\t")
	r.see("qwen        qwen-coder")
	r.prompt("/model qwen")
	r.send("-\t\r")
	r.see("model qwen-coder")
	r.send("see @ma\t")
	r.prompt("see @main")
	r.send("\t")
	r.see("main.go       main_test.go")
	r.prompt("see @main")
	r.send("\x15//not a command\r")
	r.see(`you said "/not a command"`)
	r.prompt("")
	r.enter("/copy")
	r.until("the clipboard", func(v *vt) bool {
		return v.clipboard == base64.StdEncoding.EncodeToString([]byte(`you said "/not a command"`))
	})
	r.enter("/edit draft")
	r.until("the edited draft", func(v *vt) bool { return strings.HasSuffix(v.screenText(), "> draft edited\n  in two lines") })
	r.send("\r")
	r.see(`you said "draft edited\nin two lines"`)
	r.prompt("")
	r.enter("/slow")
	r.see("/slow 0s · Ctrl-C stops")
	r.send("\x03")
	r.see("/slow was stopped")
	r.enter("/new")
	r.see("a new conversation")
	r.prompt("")
	r.enter("hi")
	r.see(`you said "hi"`)
}

func TestTerminalDuringTurn(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.enter("wait")
	r.see("reading prompt")
	r.send("/context\r")
	r.see("the context")
	r.send("/model\r")
	r.see("/model waits until what runs is done")
	r.send("\x15\x04")
	r.see("Ctrl-C stops what runs")
	r.send("\x03")
	r.see("stopped ·")
	r.prompt("")
}

func TestTerminalContinuedLine(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24)
	r.prompt("")
	r.send("one\\")
	r.prompt("one\\")
	r.send("\r")
	r.until("a second row", func(v *vt) bool { return strings.HasSuffix(v.screenText(), "> one") && v.y > 0 && v.x == 2 })
	r.send("two\x1b\rthree")
	r.see("> one\n  two\n  three")
	r.send("\r")
	r.see(`you said "one\ntwo\nthree"`)
	r.prompt("")
	r.send("\x1b[A")
	r.see("> one\n  two\n  three")
}

func TestTerminalHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "history")
	env := "REPL_TEST_HISTORY=" + path
	r := startChild(t, 80, 24, env)
	other := startChild(t, 80, 24, env)
	r.prompt("")
	other.prompt("")
	r.send("one ghp_secret")
	r.send("\x1b\r")
	r.send("two\x1b\rthree\r")
	r.see("done")
	r.prompt("")
	r.send("\x1b[A")
	r.see("> one ghp_secret\n  two\n  three")
	other.send("\x1b[A")
	other.see("> one •••\n  two\n  three")
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
	data, _ := os.ReadFile(path)
	if string(data) != `"one •••\ntwo\nthree"`+"\n" {
		t.Errorf("stored %s", data)
	}
	other.send("\x15\x15\x15\x15\x15\x03")
	other.prompt("")
	other.send("\x12tw")
	other.see("search tw: one •••")
	other.send("\x1b")
	other.prompt("")
}

func TestTerminalDumb(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "TERM=dumb")
	r.see("a test\n\n>")
	r.send("hello\n")
	r.see(`you said "hello"`)
	r.see("done ·")
	r.send("ask 3\n")
	r.see("1│cat <<END\n2│text 0\n3│END\ny once, a this conversation, n deny:")
	r.send("y\n")
	r.see("that came before the question could be read")
	time.Sleep(settleTime + 50*time.Millisecond)
	r.send("maybe\n")
	r.see("type y, a or n")
	r.send("n\n")
	r.see("why not")
	r.send("no\n")
	r.see(`the answer was no, "no"`)
	r.send("/model\n")
	r.see("  2  qwen-coder\n  3  llama\nnumber")
	r.send("3\n")
	r.see("picked 2")
	r.send("wait\n")
	r.until("the echo", func(v *vt) bool { return strings.HasSuffix(v.screenText(), "wait") })
	time.Sleep(100 * time.Millisecond)
	r.send("\x03")
	r.see("stopped ·")
	r.send("one\\\n")
	r.until("the next line", func(v *vt) bool { return strings.HasSuffix(v.screenText(), "one\\\n>") })
	r.send("two\n")
	r.see(`you said "one\ntwo"`)
	r.send("\x04")
	if code := r.ended(); code != 0 {
		t.Errorf("exit %d", code)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := bytes.IndexFunc(r.raw.Bytes(), func(c rune) bool { return c < 0x20 && c != '\n' && c != '\r' && c != '\t' }); i >= 0 {
		t.Errorf("control byte in %q", r.raw.Bytes()[max(0, i-20):i+5])
	}
}

func TestTerminalNoColor(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "NO_COLOR=1")
	r.prompt("")
	r.enter("ask 1")
	r.see("Allow this?")
	time.Sleep(settleTime + 50*time.Millisecond)
	r.send("y")
	r.see("done ·")
	r.mu.Lock()
	defer r.mu.Unlock()
	if regexp.MustCompile(`\x1b\[3\dm`).Match(r.raw.Bytes()) {
		t.Error("colours in spite of NO_COLOR")
	}
}

func TestTerminalIdle(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "REPL_TEST_FIRST=hello")
	r.see("done ·")
	r.prompt("")
	cpu := func() string {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.cmd.Process.Pid))
		if err != nil {
			t.Skip("no /proc: ", err)
		}
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		return fields[11] + "+" + fields[12]
	}
	time.Sleep(200 * time.Millisecond)
	before := cpu()
	size := func() (n int) { r.look(func(*vt) { n = r.raw.Len() }); return n }
	wrote := size()
	time.Sleep(1500 * time.Millisecond)
	if after := cpu(); after != before {
		t.Errorf("CPU ticks %s before, %s after", before, after)
	}
	if size() != wrote {
		t.Error("it wrote something while idle")
	}
}

// TestTerminalReflow resizes a terminal that wraps its rows anew, and looks for
// leftovers of the draft.
func TestTerminalReflow(t *testing.T) {
	t.Parallel()
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("tmux is not there")
	}
	self, _ := os.Executable()
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-f", "/dev/null", "-S", filepath.Join(dir, "socket")}, args...)...)
		cmd.Env = []string{"TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LC_ALL=C.UTF-8", "REPL_TEST_CHILD=1"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %q: %v\n%s", args, err, out)
		}
		return string(out)
	}
	until := func(what string, ok func(screen string) bool) {
		t.Helper()
		var screen string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if screen = run("capture-pane", "-p", "-S", "-100"); ok(screen) {
				return
			}
		}
		t.Fatalf("waited in vain for %s:\n%s", what, screen)
	}
	run("new-session", "-d", "-x", "80", "-y", "24", self)
	defer run("kill-server")
	until("the prompt", func(s string) bool { return strings.Contains(s, "\n>") })
	run("send-keys", "lines 30", "Enter") // tmux keeps rows of an empty screen where nobody can erase them
	until("the end of a turn", func(s string) bool {
		return strings.Contains(s, "done ·") && strings.HasSuffix(strings.TrimSpace(s), "\n>")
	})
	const draft = "a draft that is long enough to need several rows on a narrow screen 漢字"
	run("send-keys", draft)
	until("the draft", func(s string) bool { return strings.Contains(s, "漢字") })
	c := newCells()
	line := c.fromText(draft)
	for _, width := range []int{70, 60, 45, 30, 20, 33, 50, 64, 80} {
		run("resize-window", "-x", fmt.Sprint(width), "-y", "24")
		rows := layoutDraft(style{plain: true}, "> ", c, line, len(line), width, 12).rows
		for i := range rows {
			rows[i] = strings.TrimRight(rows[i], " ")
		}
		want := strings.Join(rows, "\n")
		until(fmt.Sprintf("a draft on %d:\n%s\nnot", width, want), func(s string) bool {
			return strings.HasSuffix(strings.TrimRight(s, "\n"), "\n\n"+want) && strings.Count(s, "> a") == 1 && strings.Contains(s, "line 29 of the\n\ndone")
		})
	}
}
