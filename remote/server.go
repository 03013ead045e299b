package remote

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
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
	// Page is served to browsers, and lets those in who log in there. Nil: no request of
	// a web page is let in.
	Page Page
	// MaxBody bounds the body of a request in bytes; 0 is 1 MiB.
	MaxBody int64
	// ApprovalTimeout is how long an approval waits before it is denied; 0 is 300 s.
	ApprovalTimeout time.Duration
	// Now is the clock of the conversations' events.
	Now func() time.Time
	// Random makes ids that nobody can guess.
	Random func() uint64
	// AfterFunc is time.AfterFunc: it calls f in its own goroutine, unless stop comes
	// first.
	AfterFunc func(d time.Duration, f func()) (stop func() bool)
	// Warn gets a line about a connection that went wrong, not safe for a terminal. Nil:
	// nobody wants it.
	Warn func(line string)
}

// limits of time and number. All but the first few come from the contract.
type limits struct {
	read, write time.Duration // of a request, of a reply
	beat        time.Duration // between comments on a stream
	patience    time.Duration // until a reply says that the model is still being loaded
	settle      time.Duration // until a turn ends although its events are not all seen
	linger      time.Duration // of an idle connection
	requests    int           // in progress; streams and those still being read do not count
	connections int
}

func contractLimits() limits {
	return limits{
		read: 10 * time.Second, write: 10 * time.Second, beat: 15 * time.Second,
		patience: 3 * time.Second, settle: 10 * time.Second, linger: 2 * time.Minute,
		requests: 16, connections: 256,
	}
}

const (
	defaultMaxBody         = 1 << 20 // bytes
	defaultApprovalTimeout = 300 * time.Second
	maxHeader              = 65536 // bytes
)

// Server serves one Host by remote protocol 1. It is an http.Handler for every way that
// carries HTTP.
type Server struct {
	cfg    Config
	limits limits
	guard  guard
	slots  chan struct{}
	runID  string // of this server; another one has another
	// spawn runs a function in a goroutine that Close waits for, with a context that ends
	// with the server; false when the server ends already.
	spawn func(func(ctx context.Context)) bool
	stop  func()          // ends what spawn started, and waits for it
	over  <-chan struct{} // closed when the server ends

	followMu sync.Mutex // held while another conversation begins to be followed
	reading  reading
	results  results

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when there is news for streams
	following *follower
	turn      *turn        // the one that runs or waits, else the last one, else nil
	held      string       // why no turn may start though none runs
	last      *Outcome     // of the turn that ended last
	turns     []turnNews   // what streams tell of turns, oldest first
	newsCount atomic.Int64 // of them all; changed with the lock held
	approvals map[string]*pending
	forms     map[string]*form
	formCount int64
	loading   *loading
}

// New makes a server. Its turns run until ctx ends or Close is called.
func New(ctx context.Context, cfg Config) *Server {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = defaultMaxBody
	}
	if cfg.ApprovalTimeout == 0 {
		cfg.ApprovalTimeout = defaultApprovalTimeout
	}
	s := &Server{
		cfg: cfg, limits: contractLimits(), guard: newGuard(cfg), changed: make(chan struct{}),
		approvals: map[string]*pending{}, forms: map[string]*form{},
	}
	s.runID = s.newID()
	s.slots = make(chan struct{}, s.limits.requests)
	s.crew(ctx)
	s.follow()
	return s
}

// crew sets how the server runs goroutines and ends them.
func (s *Server) crew(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var (
		mu     sync.Mutex
		closed bool
		wg     sync.WaitGroup
	)
	s.over = ctx.Done()
	s.spawn = func(f func(context.Context)) bool {
		mu.Lock()
		defer mu.Unlock()
		if closed || ctx.Err() != nil {
			return false
		}
		wg.Go(func() { f(ctx) })
		return true
	}
	s.stop = func() {
		mu.Lock()
		closed = true
		mu.Unlock()
		cancel()
		wg.Wait()
	}
}

// Close ends the streams, cancels the turn that runs and waits for its end. It may be
// called more than once.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.approvals {
		s.forget(id)
	}
	return nil
}

// Idle blocks until no turn runs or waits, or ctx ends, whose error it returns.
func (s *Server) Idle(ctx context.Context) error {
	for {
		s.mu.Lock()
		active, changed := s.active(), s.changed
		s.mu.Unlock()
		if active == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// announce tells streams and waiters to look again. The lock is held.
func (s *Server) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// soon returns a channel that is closed after a time.
func (s *Server) soon(d time.Duration) (<-chan struct{}, func() bool) {
	done := make(chan struct{})
	return done, s.cfg.AfterFunc(d, func() { close(done) })
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.forPage(r) {
		s.servePage(w, r)
		return
	}
	route, q, who, err := s.admit(r)
	switch {
	case err != nil:
		s.reject(w, r, err)
	case route.stream:
		s.stream(w, r, q, who)
	default:
		s.exchange(w, r, route, q)
	}
}

// admit finds out, from the header alone, who is let in and what the request asks for.
func (s *Server) admit(r *http.Request) (route, query, visitor, error) {
	who, err := s.guard.admit(r)
	if err != nil {
		return route{}, query{}, who, err
	}
	if c := connOf(r); c != nil {
		c.admitted()
	}
	found, q, err := purpose(r)
	return found, q, who, err
}

// purpose finds what an admitted request asks for.
func purpose(r *http.Request) (route, query, error) {
	found, ok := routeOf(r.Method, r.URL.EscapedPath())
	switch {
	case !ok:
		return route{}, query{}, errUnknownRoute
	case r.Header.Get("Upgrade") != "" || r.Header.Get("Content-Encoding") != "" || r.URL.IsAbs():
		return route{}, query{}, refuse(http.StatusBadRequest, "requests are plain: no upgrade, no encoding, no proxy")
	case r.URL.ForceQuery:
		return route{}, query{}, errBadQuery
	case r.Method == http.MethodGet && r.ContentLength != 0:
		return route{}, query{}, refuse(http.StatusBadRequest, "a GET has no body")
	}
	q, err := parseQuery(r.URL.RawQuery, found.shape)
	return found, q, err
}
