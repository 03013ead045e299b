package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Config is what a server needs. Host, Name, Now, Random and AfterFunc are required.
type Config struct {
	Host Host
	Name string
	// Token goes with every request. It is empty only for a private pipe, which needs
	// none: Serve refuses to listen without.
	Token string
	// AllowHosts are names by which clients may call the server, besides localhost and
	// every IP address: the one it listens on, this machine's own, and those of
	// --allow-host.
	AllowHosts []string
	// OwnOrigin allows requests from a web page that came from this very server.
	OwnOrigin bool
	// MaxBody bounds the body of a request in bytes; 0 is 1 MiB.
	MaxBody int64
	// ApprovalTimeout is how long an approval waits before it is denied; 0 is 300 s.
	ApprovalTimeout time.Duration
	Now             func() time.Time
	// Random makes ids that nobody can guess.
	Random func() uint64
	// AfterFunc is time.AfterFunc: it calls f in its own goroutine, unless stop comes
	// first.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Warn gets a line about a connection that went wrong, not safe for a terminal. Nil:
	// nobody wants it.
	Warn func(line string)
}

// Server serves one Host by remote protocol 1. It is an http.Handler for every way that
// carries HTTP.
type Server struct {
	cfg Config
}

// New makes a server. Its turns run until ctx ends or Close is called.
func New(ctx context.Context, cfg Config) *Server { return &Server{cfg: cfg} }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }

// Serve answers the connections of a listener, within bounds, until ctx ends, and
// closes it. It returns nil when ctx ended. The turn that runs goes on until Close.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return errors.ErrUnsupported
}

// Idle blocks until no turn runs or waits, or ctx ends, whose error it returns.
func (s *Server) Idle(ctx context.Context) error { return ctx.Err() }

// Close ends the streams, cancels the turn that runs and waits for its end.
func (s *Server) Close() error { return nil }
