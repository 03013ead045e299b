package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// termPatience bounds each wait of a terminal script. A wait ends as soon as its
// text is there.
const termPatience = 30 * time.Second

// cmdTerm runs a program in a terminal of 80x24 as a file says, one step a line:
//
//	as NAME             goes on in the terminal of that name, which may be new
//	run PROGRAM ARGS…   starts it (first step of a terminal); $NAME is a variable of the script
//	wait TEXT           waits until TEXT comes, after what was waited for before
//	send TEXT           types TEXT; Go escapes such as \r and \x1b count
//	settle              waits past the time in which a dialog ignores keys
//	size COLSxROWS      resizes the terminal
//	absent TEXT         fails if TEXT has come so far
//	rawabsent TEXT      the same for the bytes as they came, escapes counting as in send
//	do COMMAND          has a shell run it, with the script's variables
//	signal NAME         sends the program a signal (INT, TERM, HUP, STOP, CONT)
//	exit STATUS         waits for its end with that status (last step of a terminal)
//
// TEXT is compared with what the program wrote, without escape sequences.
func cmdTerm(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: term FILE")
	}
	t := &terminal{ts: ts}
	all := map[string]*terminal{"": t}
	defer func() {
		for _, t := range all {
			t.kill()
		}
	}()
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if name, ok := strings.CutPrefix(line, "as "); ok {
			if all[name] == nil {
				all[name] = &terminal{ts: ts}
			}
			t = all[name]
			continue
		}
		if err := t.step(line); err != nil {
			for name, other := range all {
				ts.Logf("the terminal %q so far:\n%s", name, other.seen())
			}
			ts.Fatalf("%s:%d: %s: %v", args[0], i+1, line, err)
		}
	}
}

// terminal is a program in a pseudo terminal.
type terminal struct {
	ts     *testscript.TestScript
	cmd    *exec.Cmd
	master *os.File
	ended  chan error
	far    *farServer // when the workspace is a server's

	mu   sync.Mutex
	raw  bytes.Buffer
	more chan struct{}
	at   int // what was waited for, in the text without escapes
}

func (t *terminal) step(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	if t.cmd == nil && verb != "run" {
		return errors.New("nothing runs")
	}
	switch verb {
	case "run":
		return t.run(strings.Fields(os.Expand(rest, t.ts.Getenv)))
	case "wait":
		return t.wait(rest)
	case "send":
		return t.send(rest)
	case "settle":
		time.Sleep(600 * time.Millisecond) // the program's own rule is about time
		return nil
	case "size":
		return t.size(rest)
	case "absent":
		if strings.Contains(t.seen(), rest) {
			return errors.New("it is there")
		}
		return nil
	case "rawabsent":
		return t.rawAbsent(rest)
	case "do":
		return t.do(rest)
	case "signal":
		return t.signal(rest)
	case "exit":
		return t.exit(rest)
	}
	return errors.New("unknown step")
}

func (t *terminal) run(argv []string) error {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "ZCODER_HOME", "ZCODER_MODEL", "ZCODER_WARMUP", "XDG_RUNTIME_DIR", "OLLAMA_HOST", "SHELL", "TMPDIR", "WORK", "EDITOR", "NO_COLOR", "ZCODER_RELAY", "ZCODER_RELAY_DIR"} {
		if v := t.ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	term := t.ts.Getenv("TERM")
	if t.ts.Getenv("ZCODER_TEST_DUMB") == "" {
		term = "xterm-256color"
	}
	env = append(env, "TERM="+term)
	var err error
	switch t.ts.Getenv("FAR") {
	case "tcp":
		argv, err = t.overTCP(argv, env)
	case "ssh":
		argv, env, err = t.overSSH(argv, env)
	}
	if err != nil {
		return err
	}
	t.cmd = exec.Command(find(t.ts.Getenv("PATH"), argv[0]), argv[1:]...)
	t.cmd.Env = env
	t.cmd.Dir = t.ts.MkAbs(".")
	master, err := pty.StartWithSize(t.cmd, &pty.Winsize{Cols: 80, Rows: 24})
	if err != nil {
		return err
	}
	t.master, t.more, t.ended = master, make(chan struct{}, 1), make(chan error, 1)
	go t.read()
	return nil
}

func find(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, name)
		}
	}
	return name
}

func (t *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := t.master.Read(buf)
		t.mu.Lock()
		t.raw.Write(buf[:n])
		t.mu.Unlock()
		select {
		case t.more <- struct{}{}:
		default:
		}
		if err != nil {
			t.ended <- t.cmd.Wait()
			return
		}
	}
}

var escapes = regexp.MustCompile(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_=>78()][0-9A-B]?)`)

// seen is all that came, without escape sequences and carriage returns.
func (t *terminal) seen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ReplaceAll(escapes.ReplaceAllString(t.raw.String(), ""), "\r", "")
}

func (t *terminal) wait(text string) error {
	limit := time.After(termPatience)
	for {
		all := t.seen()
		if i := strings.Index(all[min(t.at, len(all)):], text); i >= 0 {
			t.at = min(t.at, len(all)) + i + len(text)
			return nil
		}
		select {
		case <-t.more:
		case err := <-t.ended:
			t.ended <- err
			return fmt.Errorf("the program ended (%v)", err)
		case <-limit:
			return errors.New("it did not come")
		}
	}
}

func (t *terminal) send(text string) error {
	keys, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
	if err != nil {
		return err
	}
	_, err = t.master.WriteString(keys)
	return err
}

func (t *terminal) do(command string) error {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = t.ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + t.ts.Getenv("PATH"), "WORK=" + t.ts.Getenv("WORK")}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (t *terminal) rawAbsent(text string) error {
	want, err := strconv.Unquote(`"` + text + `"`)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := bytes.Index(t.raw.Bytes(), []byte(want)); i >= 0 {
		return fmt.Errorf("it is there, after %q", t.raw.Bytes()[max(0, i-40):i])
	}
	return nil
}

func (t *terminal) size(text string) error {
	var cols, rows uint16
	if _, err := fmt.Sscanf(text, "%dx%d", &cols, &rows); err != nil {
		return err
	}
	return pty.Setsize(t.master, &pty.Winsize{Cols: cols, Rows: rows})
}

func (t *terminal) exit(text string) error {
	want, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	select {
	case err := <-t.ended:
		t.ended <- err
	case <-time.After(termPatience):
		return errors.New("it goes on")
	}
	if got := t.cmd.ProcessState.ExitCode(); got != want {
		return fmt.Errorf("status %d", got)
	}
	return t.endFar()
}

// endFar ends the server, if there is one.
func (t *terminal) endFar() error {
	if t.far == nil {
		return nil
	}
	far := t.far
	t.far = nil
	return far.end()
}

// kill ends what a failed script left running.
func (t *terminal) kill() {
	_ = t.endFar() // the script has failed already
	if t.master == nil {
		return
	}
	t.master.Close()
	_ = t.cmd.Process.Kill() // it may have ended
	<-t.ended
}

var signals = map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT}

func (t *terminal) signal(name string) error {
	s, ok := signals[name]
	if !ok {
		return fmt.Errorf("unknown signal %q", name)
	}
	return t.cmd.Process.Signal(s)
}
