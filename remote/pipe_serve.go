package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// PipeServer is what PipeServe needs. All of it is required.
type PipeServer struct {
	// Conn is the pipe, such as standard input and output. It is closed at the end.
	Conn io.ReadWriteCloser
	// Version is the program's own, for the other side's messages.
	Version string
	// Open is called once, with the client's first request; the handler that it returns
	// serves everything after that. Its error, and what its method Hint says, is shown
	// to the person at the client. ctx ends with the pipe.
	Open func(ctx context.Context, r Opening) (http.Handler, error)
}

// Pings find out that the other side is gone when a pipe does not say so.
const (
	pingAfter   = 30 * time.Second // of silence
	pingTimeout = 30 * time.Second
)

// PipeServe serves one client over a pipe and blocks until the pipe or ctx ends, and
// the requests with it; then it returns nil. A read of Conn that Close does not end may
// outlive it.
func PipeServe(ctx context.Context, s PipeServer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn := newPipeConn(s.Conn, s.Conn)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, greeting(s.Version)); err != nil {
		return fmt.Errorf("greet the client: %w", err)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	server := http.Server{
		Handler:           &pipeHandler{ctx: ctx, open: s.Open},
		Protocols:         &protocols,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0),
		ReadHeaderTimeout: time.Minute,
		MaxHeaderBytes:    64 << 10,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	listener := &oneConn{conn: conn, taken: make(chan struct{})}
	if err := server.Serve(listener); !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve the pipe: %w", err)
	}
	cancel()
	wait, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	server.Shutdown(wait) // the requests end with the connection
	return nil
}

// oneConn is a listener of one connection that is closed when that is.
type oneConn struct {
	conn  *pipeConn
	taken chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	select {
	case <-l.taken:
		<-l.conn.closed
		return nil, net.ErrClosed
	default:
		close(l.taken)
		return l.conn, nil
	}
}

// Close leaves the connection to those who use it.
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return pipeAddr{} }

// pipeHandler opens what the first request names and then passes every request on.
type pipeHandler struct {
	ctx  context.Context // of the pipe
	open func(context.Context, Opening) (http.Handler, error)

	mu   sync.Mutex // held while it opens
	next http.Handler
	err  error
}

func (h *pipeHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && r.URL.Path == pathOpen {
		h.serveOpen(w, r)
		return
	}
	h.mu.Lock()
	next := h.next
	h.mu.Unlock()
	if next == nil {
		pipeReply(w, http.StatusConflict, map[string]string{"error": "nothing is open yet: POST " + pathOpen + " comes first"})
		return
	}
	next.ServeHTTP(w, r)
}

const pathOpen = "/v1/open"

// serveOpen opens at the first request. The same answer comes to any other: one pipe
// is one workspace.
func (h *pipeHandler) serveOpen(w http.ResponseWriter, r *http.Request) {
	var o Opening
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&o); err != nil {
		pipeReply(w, http.StatusBadRequest, map[string]string{"error": "this is no request to open a workspace"})
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.next != nil || h.err != nil:
		pipeReply(w, http.StatusConflict, map[string]string{"error": "a pipe is opened once"})
		return
	default:
		h.next, h.err = h.open(h.ctx, o)
	}
	if h.err != nil {
		reply := map[string]string{"error": h.err.Error()}
		var advice interface{ Hint() string }
		if errors.As(h.err, &advice) {
			reply["hint"] = advice.Hint()
		}
		pipeReply(w, http.StatusInternalServerError, reply)
		return
	}
	pipeReply(w, http.StatusOK, map[string]bool{"ok": true})
}

func pipeReply(w http.ResponseWriter, status int, reply any) {
	text, err := json.Marshal(reply)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text) // a client that is gone hears nothing
}
