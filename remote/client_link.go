package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of what a client takes from a server, in bytes.
const (
	maxReply   = 16 << 20 // of a reply; tool output and diffs stand in them whole
	maxError   = 4 << 10  // of an error's text that is shown
	maxFact    = 4 << 10  // of a text in hello
	maxNotices = 16 << 10 // the lines that it said at its start
	maxIDBytes = 128      // of an id that the server made
)

const (
	defaultTimeout = 30 * time.Second
	loadTimeout    = 30 * time.Minute // of loading a model
	shortestPause  = 20 * time.Millisecond
	longestPause   = 5 * time.Second
)

// link is the connection to one server: it sends requests, and holds what all
// conversations over it share.
type link struct {
	cfg   ClientConfig
	host  string // display name
	base  string // URL
	http  *http.Client
	plain bool // a plain protocol-1 peer: one request for each connection
	facts ServerFacts
	life  context.Context // ends with Close
	stop  context.CancelFunc
	work  sync.WaitGroup // goroutines of the conversations

	mu      sync.Mutex
	current *Client // whose feed is followed
}

// statusError is a reply that is not the one that was asked for.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("the server answered with status %d", e.status)
	}
	return e.text
}

// brokenError is a request of which it is not known whether it arrived. It may be sent
// again when that does no harm.
type brokenError struct{ error }

func (e brokenError) Unwrap() error { return e.error }

func newLink(ctx context.Context, cfg ClientConfig) (*link, error) {
	l := &link{cfg: cfg, plain: true}
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch {
	case cfg.Pipe != nil:
		l.base, l.http.Transport, l.plain = "http://localhost", cfg.Pipe.transport, false
		return l, nil
	case !isToken(cfg.Token):
		return nil, hint(errors.New("the token is none: it has at least 32 of A-Z a-z 0-9 . _ ~ -"), "zcoder server token FILE makes one, for both sides")
	}
	network, target := "tcp", cfg.Address.String()
	l.base = "http://" + hostHeader(cfg.Address)
	switch cfg.Address.Kind {
	case Unix:
		network, target, l.base = "unix", cfg.Address.Path, "http://localhost"
	case TCP:
	default:
		return nil, fmt.Errorf("connect to %q: this needs a pipe", cfg.Address)
	}
	l.http.Transport = newTransport(network, target)
	return l, nil
}

// newTransport goes to one place, without a proxy: the token is for nobody else.
func newTransport(network, target string) *http.Transport {
	dialer := net.Dialer{Timeout: 10 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, target)
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        time.Minute,
	}
}

// hostHeader is the address as a URL has it: without the zone, which is of this
// machine alone.
func hostHeader(a Address) string {
	host := a.Host
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.WithZone("").String()
	}
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

// close ends every request and waits for what follows conversations.
func (l *link) close() {
	l.stop()
	l.work.Wait()
	l.http.CloseIdleConnections()
	if l.cfg.Pipe != nil {
		l.cfg.Pipe.Close()
	}
}

func (l *link) timeout() time.Duration {
	if l.cfg.Timeout > 0 {
		return l.cfg.Timeout
	}
	return defaultTimeout
}

// get asks for a JSON object.
func (l *link) get(ctx context.Context, path string, out any) error {
	return l.call(ctx, l.timeout(), http.MethodGet, path, nil, out)
}

// post sends one JSON object and gets another; in nil is an empty one.
func (l *link) post(ctx context.Context, path string, in, out any) error {
	return l.call(ctx, l.timeout(), http.MethodPost, path, in, out)
}

func (l *link) call(ctx context.Context, patience time.Duration, method, path string, in, out any) error {
	ctx, done := l.whileOpen(ctx)
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	resp, err := l.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := wantType(resp, "application/json"); err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return l.broken(ctx, err)
	case len(body) > maxReply:
		return fmt.Errorf("the reply to %s is larger than %d bytes", path, maxReply)
	}
	if resp.StatusCode/100 != 2 {
		return l.refusal(resp.StatusCode, body)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return notServer(fmt.Errorf("the reply to %s is not what a server sends: %w", path, err))
	}
	return nil
}

// send sends a request and returns the reply, whatever its status.
func (l *link) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if method == http.MethodPost {
		text := []byte("{}")
		if in != nil {
			var err error
			if text, err = json.Marshal(in); err != nil {
				return nil, fmt.Errorf("write the request to %s: %w", path, err)
			}
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, l.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("write the request to %s: %w", path, err)
	}
	if l.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+l.cfg.Token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", "zcoder")
	if req.Close = l.plain; l.plain && body == nil {
		// What such a server reads is always framed. The transport leaves out the
		// canonical spelling.
		req.Header["content-length"] = []string{"0"}
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, l.broken(ctx, err)
	}
	return resp, nil
}

// broken explains a request that got no whole reply.
func (l *link) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if l.life.Err() != nil {
			return ErrClosed
		}
		if errors.Is(cause, context.Canceled) {
			return cause
		}
		return brokenError{cause}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return brokenError{err}
}

// wantType checks the content type before anything of the body is believed. Errors of
// the transport below a server are often HTML.
func wantType(resp *http.Response, want string) error {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err == nil && kind == want {
		return nil
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return tokenError()
	}
	return notServer(fmt.Errorf("it answers with status %d and the content type %q", resp.StatusCode, clip(resp.Header.Get("Content-Type"), 100)))
}

func notServer(err error) error {
	return hint(fmt.Errorf("this is no zcoder server: %w", err), "check the address and the port")
}

func tokenError() error {
	return hint(ErrToken, "both sides need the same token file: copy the server's, and name it with --token-file")
}

// refusal explains a status that is not a success.
func (l *link) refusal(status int, body []byte) error {
	var reply struct {
		Error string `json:"error"`
		Hint  string `json:"hint"`
	}
	if json.Unmarshal(body, &reply) != nil {
		reply.Error, reply.Hint = "", ""
	}
	text := clip(strings.TrimSpace(reply.Error), maxError)
	switch status {
	case http.StatusUnauthorized:
		return tokenError()
	case http.StatusMisdirectedRequest:
		err := fmt.Errorf("the server does not take requests for the host %q", clip(strings.TrimPrefix(l.base, "http://"), 200))
		return hint(err, "connect by its IP, or start it with --allow-host NAME")
	case http.StatusRequestEntityTooLarge:
		return hint(&statusError{status, withDefault(text, "the request is too large for the server")}, "send less at once, or raise remote-max-request-bytes there")
	}
	if reply.Hint != "" {
		return hint(&statusError{status, text}, clip(reply.Hint, maxError))
	}
	return &statusError{status, text}
}

func withDefault(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// hasStatus reports whether an error is a reply of that status.
func hasStatus(err error, status int) bool {
	var s *statusError
	return errors.As(err, &s) && s.status == status
}

func isBroken(err error) bool {
	var b brokenError
	return errors.As(err, &b)
}

// persist repeats a request that does no harm when it arrives twice, until it gets an
// answer or ctx ends. It gives up when the connection cannot come back.
func (l *link) persist(ctx context.Context, try func(context.Context) error) error {
	var pause time.Duration
	for {
		err := try(ctx)
		if !isBroken(err) || errors.Is(err, ErrLost) {
			return err
		}
		if !l.pause(ctx, &pause) {
			return err
		}
	}
}

// pause waits, longer each time; from 0 the first time not at all. It reports false when
// ctx or the link ends.
func (l *link) pause(ctx context.Context, d *time.Duration) bool {
	timer := time.NewTimer(*d)
	defer timer.Stop()
	*d = min(max(2**d, shortestPause), longestPause)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-l.life.Done():
	}
	return false
}

// whileOpen returns a context that also ends with the link.
func (l *link) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel() }
}
