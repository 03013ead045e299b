package ollama

import (
	"bytes"
	"context"
	"crypto/tls"
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
	replayPause  = 200 * time.Millisecond // lets a server that restarts come up
	drainTime    = 50 * time.Millisecond  // to see the end of a complete reply, so that the connection is reused
	maxErrorBody = 64 << 10               // bytes read of an error page
)

// newTransport makes the connections: HTTP/1.1, where closing the connection is how
// a request is cancelled, and no limit on the time until headers come.
func newTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if isLoopback(r.URL.Hostname()) {
				return nil, nil
			}
			return proxy(r)
		},
		DialContext:            dialer.DialContext,
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

// answer is a response whose body is read under the watchdog. Closing it frees the
// request; a body that was not read to its end closes the connection.
type answer struct {
	*http.Response
	dog    *watchdog
	idle   time.Duration
	cancel context.CancelFunc
}

// Read reads the body; each call may wait for the idle time.
func (a *answer) Read(p []byte) (int, error) {
	a.dog.arm(a.idle)
	n, err := a.Body.Read(p)
	a.dog.disarm()
	return n, err
}

func (a *answer) close() {
	a.dog.disarm()
	a.Body.Close()
	a.cancel()
}

// finish waits a moment for the end of a body whose last record was read.
func (a *answer) finish() {
	a.dog.arm(drainTime)
	io.CopyN(io.Discard, a.Body, 4<<10)
	a.close()
}

// call is one request of the API.
type call struct {
	method, path string
	body         []byte
	accept       string
	// firstByte and idle are the limits on silence; 0 is none.
	firstByte, idle time.Duration
	model           string // for messages; may be empty
}

// open sends a request once and returns an answer with status 200. A failure of the
// connection comes back as it is, everything else as *chat.Error or the context's
// error.
func (c *Client) open(ctx context.Context, q call) (*answer, error) {
	running, cancel := context.WithCancel(ctx)
	r, err := http.NewRequestWithContext(running, q.method, c.base.JoinPath(q.path).String(), bytes.NewReader(q.body))
	if err != nil {
		cancel()
		return nil, &chat.Error{Kind: chat.Unreachable, Text: "make request: " + err.Error(), Cause: err}
	}
	r.Header.Set("User-Agent", c.o.UserAgent)
	r.Header.Set("Accept", q.accept)
	if q.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.o.APIKey != "" && (c.base.Scheme == "https" || isLoopback(c.base.Hostname())) {
		r.Header.Set("Authorization", "Bearer "+c.o.APIKey)
	}
	if c.o.Debug != nil {
		c.debug("request", q.method+" "+r.URL.String()+" "+string(q.body))
	}
	dog := newWatchdog(cancel)
	dog.arm(q.firstByte)
	resp, err := c.http.Do(r)
	dog.disarm()
	if err != nil {
		cancel()
		return nil, c.sendFailure(ctx, dog, q, err)
	}
	c.reached.Store(true)
	a := &answer{Response: resp, dog: dog, idle: q.idle, cancel: cancel}
	c.debug("status", resp.Status)
	if resp.StatusCode != http.StatusOK {
		defer a.close()
		return nil, c.statusFailure(ctx, q, a)
	}
	return a, nil
}

// sendFailure explains why there is no answer.
func (c *Client) sendFailure(ctx context.Context, dog *watchdog, q call, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case dog.expired.Load():
		return c.silence("no answer began", q.firstByte)
	}
	return c.connectionFailure(err)
}

// transient reports whether a request may be sent again: the connection failed
// before the server said anything, and waiting was not the reason.
func (c *Client) transient(err error) bool {
	var e *chat.Error
	if !errors.As(err, &e) || e.Status != 0 {
		return false
	}
	switch e.Kind {
	case chat.BrokenStream:
		return true
	case chat.Unreachable:
		return c.reached.Load() && errors.Is(err, syscall.ECONNREFUSED)
	}
	return false
}

// replay runs a request again after a transient failure, as often as the options
// allow. do reports whether a record of the answer was seen, after which nothing is
// repeated.
func (c *Client) replay(ctx context.Context, do func() (seen bool, err error)) error {
	for left := c.o.Retries; ; left-- {
		seen, err := do()
		if err == nil || seen || left <= 0 || !c.transient(err) {
			return err
		}
		c.debug("retry", err.Error())
		timer := time.NewTimer(replayPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// fetch asks a short question and returns the whole body.
func (c *Client) fetch(ctx context.Context, q call) ([]byte, error) {
	q.accept = "application/json"
	var body []byte
	err := c.replay(ctx, func() (bool, error) {
		a, err := c.open(ctx, q)
		if err != nil {
			return false, err
		}
		defer a.close()
		body, err = io.ReadAll(io.LimitReader(a, maxLine))
		if err != nil {
			return false, c.readFailure(ctx, a, err)
		}
		if c.o.Debug != nil {
			c.debug("record", string(body))
		}
		return true, nil
	})
	return body, err
}

// readFailure explains why a body ended early.
func (c *Client) readFailure(ctx context.Context, a *answer, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case a.dog.expired.Load():
		return c.silence("nothing came", a.idle)
	}
	return &chat.Error{Kind: chat.BrokenStream, Text: c.redact("connection to " + c.BaseURL() + " ended early: " + reason(err)),
		Hint: "try again; the server's log may say why it stopped", Cause: err}
}
