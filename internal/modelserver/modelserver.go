// Package modelserver is the connection to a model server, whatever API it speaks:
// the address, the patience with slow machines, the key, what is replayed and what
// never, and one clear error and hint for each failure.
//
// It knows HTTP and the error texts of the servers. It knows no request and no
// reply: the model adapters build on it, and nothing else calls it.
package modelserver

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"zcoder/internal/chat"
)

// Options configure a Server. The zero value talks to the default address with
// unlimited patience and without replays.
type Options struct {
	// Host is an address in any form that OLLAMA_HOST may have; empty is
	// 127.0.0.1:11434.
	Host string
	// APIKey goes out as a bearer token, over https or to this machine only. It
	// appears in no error and no debug text.
	APIKey string
	// FirstByteTimeout bounds the wait for the answer of a long request to begin:
	// queueing, loading, reading the prompt and generating a whole tool call pass
	// in silence. 0 waits for ever.
	FirstByteTimeout time.Duration
	// IdleTimeout bounds each silence after that; 0 waits for ever.
	IdleTimeout time.Duration
	// Retries is how often a request is sent again after a failure of the
	// connection before any record came. A time-out is never replayed.
	Retries int
	// UserAgent names the program; empty is "zcoder".
	UserAgent string
	// Proxy chooses the proxy; nil is http.ProxyFromEnvironment. This machine is
	// never reached through a proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// Dial opens connections; nil is the network, with a limit of ten seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// NewID makes ids for tool calls that came without a usable one; nil counts.
	NewID func() string
	// Debug, when not nil, gets what goes over the wire: kind is "request",
	// "status", "record", "retry" or "error". It is called from the goroutine of
	// the request; requests may run concurrently.
	Debug func(kind, text string)
}

// Server is a model server. Its methods may be called concurrently. Those that wait
// return the context's error at once when it ends, having closed the connection;
// every other error is a *chat.Error.
type Server struct {
	base    *url.URL
	o       Options
	hints   func(kind chat.Failure, model string) string
	http    *http.Client
	reached atomic.Bool  // the server answered once
	ids     atomic.Int64 // tool calls that got an id here
}

// New makes a server. It opens no connection. The error quotes a host that no server
// can have. hints, when not nil, returns what to do next about a failure with this
// API, or "" for the general hint.
func New(o Options, hints func(kind chat.Failure, model string) string) (*Server, error) {
	base, err := parseHost(o.Host)
	if err != nil {
		return nil, err
	}
	o.UserAgent = cmp.Or(o.UserAgent, "zcoder")
	s := &Server{base: base, o: o, hints: hints}
	s.http = &http.Client{
		Transport: newTransport(o),
		// A redirect could carry the key and the conversation elsewhere; it is
		// reported instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// URL returns the address that is dialled, such as "http://127.0.0.1:11434".
func (s *Server) URL() string { return s.base.String() }

// Path returns the path of the address without a slash at its end; it may be empty.
func (s *Server) Path() string { return s.base.Path }

// At returns the whole address of a path.
func (s *Server) At(path string) string { return s.base.JoinPath(path).String() }

// Close closes idle connections. The server stays usable.
func (s *Server) Close() { s.http.CloseIdleConnections() }

// Patient returns a request that may take long, with the limits of the options.
func (s *Server) Patient(path string, body []byte, accept, model string) Call {
	return Call{Method: http.MethodPost, Path: path, Body: body, Accept: accept, Model: model,
		FirstByte: s.o.FirstByteTimeout, Idle: s.o.IdleTimeout}
}

// NewID makes an id for a call that has none.
func (s *Server) NewID() string {
	if s.o.NewID != nil {
		return s.o.NewID()
	}
	return "zcall_" + strconv.FormatInt(s.ids.Add(1), 10)
}

// Debugging reports whether Debug does anything.
func (s *Server) Debugging() bool { return s.o.Debug != nil }

// Debug notes what goes over the wire, without the key.
func (s *Server) Debug(kind, text string) {
	if s.o.Debug != nil {
		s.o.Debug(kind, s.redact(text))
	}
}
