package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"zcoder/internal/event"
)

// streamServer answers as a server of ours does, as far as a test says.
type streamServer struct {
	hello  object
	stream func(w http.ResponseWriter, r *http.Request)
	other  http.HandlerFunc
}

func newStreamServer() *streamServer {
	return &streamServer{hello: object{
		"protocol": 1, "server_name": "box", "workspace": "/srv/app", "model": "m", "profile": "coding", "model_status": "ready",
		"sessions": true, "stream": true, "commands": true, "input_queue": true, "version": "1.0",
	}}
}

func (s *streamServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/v1/hello":
		writeJSON(w, 200, s.hello)
	case r.URL.Path == "/v1/sessions":
		writeJSON(w, 200, object{"event": "session", "seq": 1, "id": "1_1", "title": "", "model": "m", "current": 1, "empty": 1})
	case r.URL.Path == "/v1/stream" && s.stream != nil:
		w.Header().Set("Content-Type", "text/event-stream")
		s.stream(w, r)
	case s.other != nil:
		s.other(w, r)
	default:
		writeJSON(w, 404, object{"error": "not found"})
	}
}

func writeJSON(w http.ResponseWriter, status int, reply any) {
	text, err := json.Marshal(reply)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text)
}

// say writes one message of a stream.
func say(w http.ResponseWriter, name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, text)
	w.(http.Flusher).Flush()
}

// idleStream says that nothing runs, and holds.
func idleStream(w http.ResponseWriter, r *http.Request) {
	say(w, msgState, State{Session: "1_1"})
	<-r.Context().Done()
}

// twoPipes are both ends of a pair of system pipes.
type twoPipes struct {
	io.Reader
	io.Writer
	close func() error
}

func (p twoPipes) Close() error { return p.close() }

func systemPipe(t *testing.T) (a, b io.ReadWriteCloser) {
	t.Helper()
	r1, w1, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r2, w2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	end := func(r, w *os.File) io.ReadWriteCloser {
		return twoPipes{r, w, func() error { return errors.Join(r.Close(), w.Close()) }}
	}
	return end(r1, w2), end(r2, w1)
}

func memoryPipe(*testing.T) (a, b io.ReadWriteCloser) { return net.Pipe() }

// servePipe serves a handler on one end and returns what Open got and how it ended.
func servePipe(t *testing.T, conn io.ReadWriteCloser, h http.Handler) (opened chan Opening, ended chan error) {
	opened, ended = make(chan Opening, 1), make(chan error, 1)
	ctx := testContext(t)
	go func() {
		ended <- PipeServe(ctx, PipeServer{Conn: conn, Version: "1.2 beta", Open: func(_ context.Context, o Opening) (http.Handler, error) {
			opened <- o
			return h, nil
		}})
	}()
	return opened, ended
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-testContext(t).Done():
		t.Fatalf("%s did not come", what)
	}
	panic("unreachable")
}

func TestPipe(t *testing.T) {
	kinds := map[string]func(*testing.T) (a, b io.ReadWriteCloser){"system": systemPipe, "memory": memoryPipe}
	noises := map[string]string{"nothing": "", "a line": "Welcome!\n", "no end of line": "\x1b[1mhi", "64 KiB": strings.Repeat("x", maxPipeNoise-1)}
	for kind, pipe := range kinds {
		for name, noise := range noises {
			t.Run(kind+"/"+name, func(t *testing.T) {
				near, far := pipe(t)
				s := newStreamServer()
				s.stream = idleStream
				var opened chan Opening
				var ended chan error
				begun := make(chan bool)
				go func() {
					io.WriteString(far, noise)
					opened, ended = servePipe(t, far, s)
					close(begun)
				}()
				var skipped []byte
				p, err := PipeDial(testContext(t), PipeClient{Conn: near, Opening: Opening{Workspace: "~/w", Profile: "sysadmin", Keep: true}, Noise: func(b []byte) { skipped = b }})
				if err != nil {
					t.Fatal(err)
				}
				<-begun
				if p.Version != "1.2-beta" || string(skipped) != strings.TrimSpace(noise) {
					t.Errorf("version %q, %d bytes skipped", p.Version, len(skipped))
				}
				if o := wait(t, "the opening", opened); o != (Opening{"~/w", "sysadmin", true}) {
					t.Errorf("opened %+v", o)
				}
				c := dialTest(t, ClientConfig{Pipe: p, Name: "me@far", NewID: counter("r")})
				if c.Host() != "me@far" || c.Info().Workspace != "/srv/app" {
					t.Errorf("connected to %q, %+v", c.Host(), c.Info())
				}
				c.Close()
				if err := wait(t, "the server's end", ended); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestPipeNeverReady(t *testing.T) {
	tests := []struct {
		name, output, said string
		want               []string
	}{
		{"no program", "", "bash: zcoder: command not found\n", []string{"ended before zcoder answered", "command not found"}},
		{"it printed why", "zcoder: unknown flag --stdio\n", "", []string{"unknown flag"}},
		{"too much noise", strings.Repeat("n", 100_000), "", []string{"more than 64 KiB"}},
		{"a newer pipe", "\nzcoder-pipe/2 9.9\n", "", []string{"zcoder 9.9 on the far side", "version 2", "version 1"}},
		{"no version", "\nzcoder-pipe/1\n", "", []string{"greets with"}},
		{"a cut greeting", "\nzcoder-pipe/1 1.", "", []string{"ended before"}},
		{"an endless greeting", "\nzcoder-pipe/" + strings.Repeat("1", 5000), "", []string{"greets with"}},
		{"it ends after the greeting", "\nzcoder-pipe/1 1.0\n", "no such directory", []string{"ended before", "no such directory"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			near, far := systemPipe(t)
			go func() {
				io.WriteString(far, tt.output)
				far.Close()
			}()
			_, err := PipeDial(testContext(t), PipeClient{Conn: near, Said: func() string { return tt.said }})
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if _, err := near.Write([]byte("x")); err == nil {
				t.Error("the pipe is still open")
			}
		})
	}
}

func TestPipeDialIsCancelled(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := PipeDial(ctx, PipeClient{Conn: near})
		done <- err
	}()
	cancel()
	if err := wait(t, "the end", done); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPipeRefusesToOpen(t *testing.T) {
	near, far := systemPipe(t)
	ctx := testContext(t)
	go PipeServe(ctx, PipeServer{Conn: far, Version: "1", Open: func(context.Context, Opening) (http.Handler, error) {
		return nil, hint(errors.New("there is no directory /w"), "make it first")
	}})
	_, err := PipeDial(ctx, PipeClient{Conn: near, Opening: Opening{Workspace: "/w"}})
	var h interface{ Hint() string }
	if err == nil || !strings.Contains(err.Error(), "no directory /w") || !errors.As(err, &h) || h.Hint() != "make it first" {
		t.Errorf("got %v", err)
	}
}

func TestPipeOpensOnceAndFirst(t *testing.T) {
	near, far := systemPipe(t)
	opens := 0
	ctx := testContext(t)
	go PipeServe(ctx, PipeServer{Conn: far, Version: "1", Open: func(context.Context, Opening) (http.Handler, error) {
		opens++
		return newStreamServer(), nil
	}})
	p, err := PipeDial(ctx, PipeClient{Conn: near})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	l, err := newLink(ctx, ClientConfig{Pipe: p})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if err := l.post(ctx, pathOpen, Opening{Workspace: "/other"}, nil); !hasStatus(err, http.StatusConflict) || opens != 1 {
		t.Errorf("a second opening: %v, opened %d times", err, opens)
	}
	h := &pipeHandler{}
	w := &replyRecorder{header: http.Header{}}
	r, _ := http.NewRequest("GET", "http://localhost/v1/hello", nil)
	if h.ServeHTTP(w, r); w.status != http.StatusConflict {
		t.Errorf("a request before the opening: %d %s", w.status, w.body.String())
	}
}

type replyRecorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *replyRecorder) Header() http.Header         { return r.header }
func (r *replyRecorder) WriteHeader(status int)      { r.status = status }
func (r *replyRecorder) Write(b []byte) (int, error) { return r.body.Write(b) }

// TestPipeIsCut: when a pipe breaks in the middle of a turn, it is over at both ends: a
// pipe cannot be opened again.
func TestPipeIsCut(t *testing.T) {
	near, far := systemPipe(t)
	s := newStreamServer()
	s.stream = idleStream
	var once sync.Once
	s.other = func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, 202, object{"turn_id": "1_9"})
		once.Do(func() { go far.Close() })
	}
	_, ended := servePipe(t, far, s)
	p, err := PipeDial(testContext(t), PipeClient{Conn: near})
	if err != nil {
		t.Fatal(err)
	}
	c := dialTest(t, ClientConfig{Pipe: p, Name: "far", NewID: counter("r")})
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, nil)
	if _, err := c.Prompt(ctx, event.Input{Text: "x"}); !errors.Is(err, ErrLost) {
		t.Errorf("the prompt: %v", err)
	}
	wait(t, "the end of the events", w.ended)
	if !errors.Is(w.err, ErrLost) || !strings.Contains(w.err.Error(), "far") {
		t.Errorf("the events: %v", w.err)
	}
	wait(t, "the server's end", ended)
}

// stubborn is a pipe whose reads Close does not end, as those of a terminal or a standard
// input.
type stubborn struct {
	io.ReadWriteCloser
	closed chan struct{}
}

func (s stubborn) Close() error { close(s.closed); return nil }

// TestPipeServeEnds: the requests end with the context, also when a read does not.
func TestPipeServeEnds(t *testing.T) {
	near, far := systemPipe(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	s := newStreamServer()
	over := make(chan struct{})
	s.stream = func(w http.ResponseWriter, r *http.Request) {
		say(w, msgState, State{Session: "1_1"})
		<-r.Context().Done()
		close(over)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- PipeServe(ctx, PipeServer{Conn: stubborn{far, make(chan struct{})}, Version: "1", Open: func(context.Context, Opening) (http.Handler, error) { return s, nil }})
	}()
	p, err := PipeDial(testContext(t), PipeClient{Conn: near})
	if err != nil {
		t.Fatal(err)
	}
	dialTest(t, ClientConfig{Pipe: p, Name: "far", NewID: counter("r")})
	cancel()
	wait(t, "the end of the request", over)
	if err := wait(t, "the end", ended); err != nil {
		t.Error(err)
	}
	far.Close()
}
