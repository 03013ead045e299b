package mcp

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
)

// connectTimeout bounds the making of a connection to a server.
const connectTimeout = 10 * time.Second

// newHTTP returns the client for servers over HTTP: answers are bounded, and a server
// cannot send the request, with the person's headers, to another host.
func newHTTP(proxy func(*http.Request) (*url.URL, error)) *http.Client {
	if proxy == nil {
		proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	base := &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if ip := net.ParseIP(r.URL.Hostname()); r.URL.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
				return nil, nil
			}
			return proxy(r)
		},
		DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: 1 << 20,
		IdleConnTimeout:        time.Minute,
	}
	return &http.Client{Transport: bounded{base}, CheckRedirect: sameHost}
}

func sameHost(r *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > 5:
		return fmt.Errorf("the server redirects more than %d times", 5)
	case r.URL.Host != first.Host || r.URL.Scheme != first.Scheme:
		return fmt.Errorf("the server redirects to another host (%s); register that address instead", r.URL.Host)
	}
	return nil
}

// bounded bounds the bodies of answers.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil && resp.Body != nil {
		stream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxMessage, stream: stream, blank: true}
	}
	return resp, err
}

// boundedBody ends with an error when one message in it is too long. In a stream of
// events an empty line ends a message.
type boundedBody struct {
	io.ReadCloser
	left   int
	stream bool
	blank  bool // the line so far is empty
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for _, c := range p[:n] {
		switch {
		case c == '\n' && b.blank && b.stream:
			b.left = maxMessage
		case c == '\n':
			b.blank = true
		case c != '\r':
			b.blank = false
		}
		if b.left--; b.left < 0 {
			return 0, errTooLong
		}
	}
	return n, err
}

// http makes the transport of a server over HTTP. listen also opens the stream on
// which servers of the older protocol announce changes.
func (d *dialer) http(e Entry, log *ring, listen bool) (transport.Interface, error) {
	opts := []transport.StreamableHTTPCOption{
		transport.WithHTTPBasicClient(d.web), transport.WithHTTPHeaders(e.ready.Headers), transport.WithHTTPLogger(log.logger()),
	}
	if listen {
		//lint:ignore SA1019 servers of the older protocol announce changes on no other stream
		opts = append(opts, transport.WithContinuousListening())
	}
	if config, ok := d.oauth(e); ok {
		opts = append(opts, transport.WithHTTPOAuth(config))
	}
	return transport.NewStreamableHTTP(e.ready.URL, opts...)
}

// sse makes the transport of a server over the older HTTP with server-sent events.
func (d *dialer) sse(e Entry, log *ring) (transport.Interface, error) {
	opts := []transport.ClientOption{
		transport.WithHTTPClient(d.web), transport.WithHeaders(e.ready.Headers), transport.WithSSELogger(log.logger()),
		transport.WithEndpointTimeout(d.startTimeout(e)), transport.WithResponseTimeout(maxWait),
	}
	if config, ok := d.oauth(e); ok {
		opts = append(opts, transport.WithOAuth(config))
	}
	return transport.NewSSE(e.ready.URL, opts...)
}
