package modelserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"syscall"
	"time"

	"zcoder/internal/chat"
)

const (
	dialTimeout  = 10 * time.Second       // a host that drops packets
	queryTimeout = 30 * time.Second       // for the short questions: lists and facts
	maxBody      = 64 << 20               // bytes read of the answer to one
	replayPause  = 200 * time.Millisecond // lets a server that restarts come up
	drainTime    = 50 * time.Millisecond  // to see the end of a complete reply, so that the connection is reused
	maxErrorBody = 64 << 10               // bytes read of an error page
)

// newTransport makes the connections: HTTP/1.1, where closing the connection is how
// a request is cancelled, and no limit on the time until headers come.
func newTransport(o Options) *http.Transport {
	proxy, dial := o.Proxy, o.Dial
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if isLoopback(r.URL.Hostname()) {
				return nil, nil
			}
			return proxy(r)
		},
		DialContext:            dial,
		TLSHandshakeTimeout:    dialTimeout,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
}

// watchdog ends a request when the server is silent for too long.
type watchdog struct {
	timer   *time.Timer
	expired atomic.Bool
}

func newWatchdog(cancel context.CancelFunc) *watchdog {
	w := &watchdog{}
	w.timer = time.AfterFunc(time.Hour, func() {
		w.expired.Store(true)
		cancel()
	})
	w.timer.Stop()
	return w
}

// arm starts to count a silence; 0 is no limit.
func (w *watchdog) arm(limit time.Duration) {
	if limit > 0 {
		w.timer.Reset(limit)
	}
}

func (w *watchdog) disarm() { w.timer.Stop() }

// Answer is a response whose body is read under the watchdog. Closing it frees the
// request; a body that was not read to its end closes the connection.
type Answer struct {
	*http.Response
	dog    *watchdog
	idle   time.Duration
	cancel context.CancelFunc
}

// Read reads the body; each call may wait for the idle time.
func (a *Answer) Read(p []byte) (int, error) {
	a.dog.arm(a.idle)
	n, err := a.Body.Read(p)
	a.dog.disarm()
	return n, err
}

// Hurry allows no longer silence than limit from here on.
func (a *Answer) Hurry(limit time.Duration) {
	if a.idle == 0 || a.idle > limit {
		a.idle = limit
	}
}

// Close frees the request.
func (a *Answer) Close() {
	a.dog.disarm()
	a.Body.Close()
	a.cancel()
}

// Finish waits a moment for the end of a body whose last record was read, so that
// the connection is used again, and closes it.
func (a *Answer) Finish() {
	a.dog.arm(drainTime)
	io.CopyN(io.Discard, a.Body, 4<<10)
	a.Close()
}

// Call is one request of an API.
type Call struct {
	Method, Path string
	Body         []byte
	Accept       string
	// FirstByte and Idle are the limits on silence; 0 is none.
	FirstByte, Idle time.Duration
	Model           string // for messages; may be empty
}

// Open sends a request once and returns an answer with status 200, which the caller
// closes.
func (s *Server) Open(ctx context.Context, q Call) (*Answer, error) {
	running, cancel := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(running, q.Method, s.At(q.Path), bytes.NewReader(q.Body))
	if err != nil {
		cancel()
		return nil, &chat.Error{Kind: chat.Unreachable, Text: "make request: " + err.Error(), Cause: err}
	}
	r.Header.Set("User-Agent", s.o.UserAgent)
	r.Header.Set("Accept", q.Accept)
	if q.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.o.APIKey != "" && s.private() {
		r.Header.Set("Authorization", "Bearer "+s.o.APIKey)
	}
	if s.Debugging() {
		s.Debug("request", q.Method+" "+r.URL.String()+" "+string(q.Body))
	}
	dog := newWatchdog(cancel)
	dog.arm(q.FirstByte)
	resp, err := s.http.Do(r)
	dog.disarm()
	if err != nil {
		cancel()
		return nil, s.sendFailure(ctx, dog, q, err)
	}
	s.reached.Store(true)
	a := &Answer{Response: resp, dog: dog, idle: q.Idle, cancel: cancel}
	s.Debug("status", resp.Status)
	if resp.StatusCode != http.StatusOK {
		defer a.Close()
		return nil, s.statusFailure(ctx, q, a)
	}
	return a, nil
}

// sendFailure explains why there is no answer.
func (s *Server) sendFailure(ctx context.Context, dog *watchdog, q Call, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case dog.expired.Load():
		return s.silence("no answer began", q.FirstByte)
	}
	return s.connectionFailure(err)
}

// transient reports whether a request may be sent again: the connection failed
// before the server said anything, and waiting was not the reason.
func (s *Server) transient(err error) bool {
	var e *chat.Error
	if !errors.As(err, &e) || e.Status != 0 {
		return false
	}
	switch e.Kind {
	case chat.BrokenStream:
		return true
	case chat.Unreachable:
		return s.reached.Load() && errors.Is(err, syscall.ECONNREFUSED)
	}
	return false
}

// Replay runs a request again after a transient failure, as often as the options
// allow. do reports whether a record of the answer was seen, after which nothing is
// repeated.
func (s *Server) Replay(ctx context.Context, do func() (seen bool, err error)) error {
	for left := s.o.Retries; ; left-- {
		seen, err := do()
		if err == nil || seen || left <= 0 || !s.transient(err) {
			return err
		}
		s.Debug("retry", err.Error())
		timer := time.NewTimer(replayPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// Query asks a short question and decodes the answer, which is JSON.
func (s *Server) Query(ctx context.Context, q Call, into any) error {
	if q.FirstByte == 0 {
		q.FirstByte, q.Idle = queryTimeout, queryTimeout
	}
	body, err := s.Fetch(ctx, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		e := s.BadResponse(http.StatusOK, s.At(q.Path)+" answered with something else than expected", body)
		e.Cause = err
		return e
	}
	return nil
}

// Fetch sends a request and returns the whole body of its answer.
func (s *Server) Fetch(ctx context.Context, q Call) ([]byte, error) {
	q.Accept = "application/json"
	var body []byte
	err := s.Replay(ctx, func() (bool, error) {
		a, err := s.Open(ctx, q)
		if err != nil {
			return false, err
		}
		defer a.Close()
		body, err = io.ReadAll(io.LimitReader(a, maxBody))
		if err != nil {
			return false, s.ReadFailure(ctx, a, err)
		}
		if s.Debugging() {
			s.Debug("record", string(body))
		}
		return true, nil
	})
	return body, err
}

// ReadFailure explains why a body ended early.
func (s *Server) ReadFailure(ctx context.Context, a *Answer, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.dog.expired.Load():
		return s.silence("nothing came", a.idle)
	}
	return &chat.Error{Kind: chat.BrokenStream, Text: s.redact("connection to " + s.URL() + " ended early: " + reason(err)),
		Hint: "try again; the server's log may say why it stopped", Cause: err}
}
