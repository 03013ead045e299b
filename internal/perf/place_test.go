package perf

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"zcoder/internal/scripted"
)

// place is a home, a workspace and a model server for runs of one program.
type place struct {
	t        *testing.T
	program  string
	home, ws string
	env      []string
	server   *scripted.Server
}

// place makes one whose model answers what respond says. Its window never fills.
func (l *lab) place(o scripted.Options, env ...string) *place {
	l.t.Helper()
	o.DropBodies = true
	return newPlace(l.t, l.program, l.t.TempDir(), o, env...)
}

func newPlace(t *testing.T, program, dir string, o scripted.Options, env ...string) *place {
	t.Helper()
	script, err := scripted.Parse("> model test-model tools ctx=8000000\n> loaded test-model ctx=8000000\n")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, program: program, home: filepath.Join(dir, "home"), ws: filepath.Join(dir, "ws"), server: scripted.New(script, o)}
	for _, d := range []string{p.home, p.ws, filepath.Join(dir, "run"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "ZCODER_HOME=" + filepath.Join(p.home, "zcoder"), "ZCODER_MODEL=test-model",
		"ZCODER_WARMUP=off", "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "TMPDIR=" + filepath.Join(dir, "tmp"), "SHELL=/bin/sh", "TERM=xterm-256color",
		"OLLAMA_HOST=" + serve(t, p.server),
	}, env...)
	return p
}

// serve listens for the test's time.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends with ErrServerClosed
	}()
	t.Cleanup(func() { s.Close(); <-done })
	return "http://" + l.Addr().String()
}

func (p *place) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.program, args...)
	cmd.Env, cmd.Dir = p.env, p.ws
	return cmd
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.ws, name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// terminal is a program in a pseudo terminal.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	begun  time.Time
	master *os.File
	ended  chan struct{} // closed when nothing more comes

	mu     sync.Mutex
	text   []byte
	chunks []chunk
	more   chan struct{}
}

// chunk is when the text up to a place had come.
type chunk struct {
	end  int
	when time.Time
}

func (p *place) terminal(args ...string) *terminal {
	p.t.Helper()
	cmd := p.command(args...)
	x := &terminal{t: p.t, cmd: cmd, begun: time.Now(), ended: make(chan struct{}), more: make(chan struct{}, 1)}
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		p.t.Fatal(err)
	}
	x.master = master
	go x.read()
	return x
}

func (x *terminal) read() {
	defer close(x.ended)
	buf := make([]byte, 64<<10)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.text = append(x.text, buf[:n]...)
		x.chunks = append(x.chunks, chunk{len(x.text), time.Now()})
		x.mu.Unlock()
		select {
		case x.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// bell rings when a turn has ended.
const bell = "\a"

// wait waits for a text behind a place and returns when it had come, and its end.
func (x *terminal) wait(text string, from int) (when time.Time, end int) {
	x.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		if when, end, ok := x.find(text, from); ok {
			return when, end
		}
		select {
		case <-x.more:
		case <-x.ended:
			if when, end, ok := x.find(text, from); ok {
				return when, end
			}
			x.t.Fatalf("the program ended before %q came; the terminal ends with %q", text, x.tail())
		case <-limit:
			x.t.Fatalf("%q does not come; the terminal ends with %q", text, x.tail())
		}
	}
}

func (x *terminal) find(text string, from int) (when time.Time, end int, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := bytes.Index(x.text[from:], []byte(text))
	if i < 0 {
		return when, 0, false
	}
	end = from + i + len(text)
	for _, c := range x.chunks {
		if c.end >= end {
			return c.when, end, true
		}
	}
	return when, end, false
}

func (x *terminal) tail() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return string(x.text[max(0, len(x.text)-2000):])
}

// at is how much has come.
func (x *terminal) at() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.text)
}

func (x *terminal) send(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// end leaves the program and waits for its end.
func (x *terminal) end() {
	x.t.Helper()
	x.send("\x04")
	select {
	case <-x.ended:
	case <-time.After(time.Minute):
		x.t.Errorf("the program does not end; the terminal ends with %q", x.tail())
		x.cmd.Process.Kill()
		<-x.ended
	}
	_ = x.cmd.Wait() // its status is no matter here
	x.master.Close()
}

// status is a number of /proc/PID/status, in its unit; 0 where there is none.
func status(pid int, key string) float64 {
	fields := strings.Fields(firstOf(fmt.Sprintf("/proc/%d/status", pid), key))
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(fields[0], 64) // the kernel's own form
	return n
}

// megabytes are a memory value of /proc/PID/status.
func megabytes(pid int, key string) float64 { return status(pid, key) * 1024 / 1e6 }

// onCPU is the processor time of all threads so far, and how often they waited.
func onCPU(pid int) (cpu time.Duration, waits float64) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	for _, task := range tasks {
		if data, err := os.ReadFile(filepath.Join(task, "schedstat")); err == nil {
			ns, _, _ := strings.Cut(string(data), " ")
			n, _ := strconv.ParseInt(ns, 10, 64)
			cpu += time.Duration(n)
		}
		n, _ := strconv.ParseFloat(firstOf(filepath.Join(task, "status"), "voluntary_ctxt_switches"), 64)
		waits += n
	}
	return cpu, waits
}

func hasProc() bool {
	_, err := os.Stat("/proc/self/schedstat")
	return err == nil
}
