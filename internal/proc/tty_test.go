package proc

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// screen collects output and tells when a text has appeared.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) wait(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !strings.Contains(s.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("no %q on the screen, only %q", text, s.String())
			return
		}
	}
}

// typist runs a script under a terminal while another function types.
func typist(t *testing.T, script string, tty TTY, act func(keys chan<- []byte, out *screen)) (Outcome, string) {
	t.Helper()
	keys := make(chan []byte)
	out := new(screen)
	tty.Keys, tty.Out = keys, out
	done := make(chan struct{})
	go func() {
		defer close(done)
		if act != nil {
			act(keys, out)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o, err := RunTTY(ctx, sh(script), tty)
	if err != nil {
		t.Fatal(err)
	}
	<-done
	return o, out.String()
}

func TestTTY(t *testing.T) {
	tests := []struct {
		name, script   string
		act            func(*testing.T, chan<- []byte, *screen)
		code           int
		record, screen string
	}{
		{"is a terminal", "test -t 0 && test -t 1 && test -t 2 && echo yes </dev/tty", nil, 0, "yes\r\n", "yes\r\n"},
		{"status", "echo bye; exit 4", nil, 4, "bye\r\n", "bye\r\n"},
		{"typed line is shown, not recorded", `echo ready; read x; echo "len ${#x}"`,
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				k <- []byte("hunter2\r")
			}, 0, "ready\r\n\r\nlen 7\r\n", "ready\r\nhunter2\r\nlen 7\r\n"},
		{"typed key by key", `echo ready; read x; echo "len ${#x}"`,
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				for _, c := range "häh" {
					k <- []byte(string(c))
				}
				k <- []byte("\r")
			}, 0, "ready\r\n\r\nlen 4\r\n", "ready\r\nhäh\r\nlen 4\r\n"},
		{"without echo", `stty -echo; echo ready; read x; stty echo; echo "got $x"`,
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				k <- []byte("abc\r")
			}, 0, "ready\r\ngot abc\r\n", "ready\r\ngot abc\r\n"},
		{"output that repeats the input stays", "echo ready; head -n1",
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				k <- []byte("abc\r")
			}, 0, "ready\r\n\r\nabc\r\n", "ready\r\nabc\r\nabc\r\n"},
		{"interrupt key", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.01; done",
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				k <- []byte{3}
			}, 9, "ready\r\n^Ccaught\r\n", ""},
		{"suspend key stops nothing for good", "echo ready; read x; echo end",
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				k <- []byte{26}
				k <- []byte("\r")
			}, 0, "ready\r\n^Z\r\nend\r\n", ""},
		{"end of the input", "echo ready; cat; echo end",
			func(t *testing.T, k chan<- []byte, s *screen) {
				s.wait(t, "ready")
				close(k)
			}, 0, "ready\r\nend\r\n", ""},
		{"size", "stty size", nil, 0, "30 100\r\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var act func(chan<- []byte, *screen)
			if tt.act != nil {
				act = func(k chan<- []byte, s *screen) { tt.act(t, k, s) }
			}
			o, shown := typist(t, tt.script, TTY{Size: Size{Rows: 30, Cols: 100}}, act)
			if o.ExitCode != tt.code || o.Output != tt.record {
				t.Errorf("got code %d, record %q; want %d, %q", o.ExitCode, o.Output, tt.code, tt.record)
			}
			if tt.screen != "" && shown != tt.screen {
				t.Errorf("screen %q, want %q", shown, tt.screen)
			}
		})
	}
}

func TestTTYResize(t *testing.T) {
	sizes := make(chan Size)
	o, _ := typist(t, "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done", TTY{Resize: sizes},
		func(_ chan<- []byte, s *screen) {
			s.wait(t, "ready")
			sizes <- Size{Rows: 7, Cols: 33}
		})
	if o.Output != "ready\r\n7 33\r\n" {
		t.Errorf("got %q", o.Output)
	}
}

func TestTTYCancel(t *testing.T) {
	for _, script := range []string{"echo ready; sleep 300", "trap '' HUP INT TERM; echo ready; sleep 300; sleep 300", "set -m; sleep 300 & echo ready; wait"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := new(screen)
			go func() { out.wait(t, "ready"); cancel() }()
			s := sh(script)
			s.Grace = 100 * time.Millisecond
			o, err := RunTTY(ctx, s, TTY{Out: out})
			if err != nil || !o.Cancelled || len(o.Survivors) > 0 || o.Took > 5*time.Second {
				t.Errorf("got %+v, %v", o, err)
			}
		})
	}
}

func TestTTYBackground(t *testing.T) {
	var tr Tracker
	s := sh("trap '' HUP; sleep 300 & echo ok")
	s.Tracker = &tr
	o, err := RunTTY(t.Context(), s, TTY{Out: io.Discard})
	if err != nil || o.ExitCode != 0 || len(o.Survivors) == 0 || !strings.Contains(o.Output, "ok") {
		t.Fatalf("got %+v, %v", o, err)
	}
	tr.EndTurn()
	for _, p := range o.Survivors {
		if alive(p.PID) {
			t.Errorf("%+v is alive", p)
		}
	}
}

func TestTTYBoundsOutput(t *testing.T) {
	s := sh("head -c 3000000 /dev/zero | tr '\\0' x")
	s.MaxOutput = 1000
	out := new(screen)
	o, err := RunTTY(t.Context(), s, TTY{Out: out})
	if err != nil || len(o.Output) > 1000 || len(out.String()) != 3000000 {
		t.Errorf("kept %d, shown %d, %v", len(o.Output), len(out.String()), err)
	}
}

// TestTTYIn gives the child a terminal to read, and checks that what is typed after
// its end stays there.
func TestTTYIn(t *testing.T) {
	person, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer person.Close()
	defer terminal.Close()
	mode, err := unix.IoctlGetTermios(int(terminal.Fd()), getMode)
	if err != nil {
		t.Fatal(err)
	}
	mode.Lflag &^= unix.ICANON | unix.ECHO // as the caller does
	if err := unix.IoctlSetTermios(int(terminal.Fd()), setMode, mode); err != nil {
		t.Fatal(err)
	}
	out := new(screen)
	go func() {
		out.wait(t, "ready")
		_, _ = person.WriteString("one\n")
		out.wait(t, "got one")
	}()
	s := sh(`echo ready; read x; echo "got $x"`)
	o, err := RunTTY(t.Context(), s, TTY{In: terminal, Out: out})
	if err != nil || o.ExitCode != 0 || !strings.Contains(o.Output, "got one\r\n") {
		t.Fatalf("got %+v, %v", o, err)
	}
	_, _ = person.WriteString("later")
	buf := make([]byte, 16)
	if n, err := terminal.Read(buf); string(buf[:n]) != "later" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
}

func TestTTYLeaksNothing(t *testing.T) {
	once := func() {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		if _, err := RunTTY(t.Context(), sh("echo hi"), TTY{In: r, Out: io.Discard}); err != nil {
			t.Fatal(err)
		}
	}
	once()
	files := openFiles()
	for range 3 {
		once()
	}
	if now := openFiles(); now > files {
		t.Errorf("%d files are open, %d before", now, files)
	}
}
