// Package ollama talks to a model server with Ollama's API: chat with streaming,
// the facts about models, loading, unloading and pulling.
//
// It knows HTTP, the records of the stream and the server's error texts, and turns
// them into the words of package chat. It knows no tool, no session and no policy:
// what a reply means is the loop's business. App makes the client; the loop and the
// frontends use it through small interfaces of their own.
package ollama

import (
	"cmp"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

// Options configure a Client. The zero value talks to the default server with
// unlimited patience and without replays.
type Options struct {
	// Host is an address in any form that OLLAMA_HOST may have; empty is
	// 127.0.0.1:11434.
	Host string
	// APIKey goes out as a bearer token, over https or to this machine only. It
	// appears in no error and no debug text.
	APIKey string
	// FirstByteTimeout bounds the wait for the answer of a chat, load or pull to
	// begin: queueing, loading, reading the prompt and generating a whole tool
	// call pass in silence. 0 waits for ever.
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
	// NewID makes ids for tool calls that came without a usable one; nil counts.
	NewID func() string
	// Debug, when not nil, gets what goes over the wire: kind is "request",
	// "status", "record", "retry" or "error". It is called from the goroutine of
	// the request; requests may run concurrently.
	Debug func(kind, text string)
}

// Client is a model server. Its methods may be called concurrently. They block
// until the answer is complete; when their context ends they close the connection
// and return the context's error at once. Every other error is a *chat.Error.
type Client struct {
	base    *url.URL
	o       Options
	http    *http.Client
	reached atomic.Bool  // the server answered once
	ids     atomic.Int64 // tool calls that got an id here
}

// New makes a client. It opens no connection. The error quotes a host that no
// server can have.
func New(o Options) (*Client, error) {
	base, err := parseHost(o.Host)
	if err != nil {
		return nil, err
	}
	o.UserAgent = cmp.Or(o.UserAgent, "zcoder")
	c := &Client{base: base, o: o}
	c.http = &http.Client{
		Transport: newTransport(o.Proxy),
		// A redirect could carry the key and the conversation elsewhere; it is
		// reported instead.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// BaseURL returns the address that is dialled, such as "http://127.0.0.1:11434".
func (c *Client) BaseURL() string { return c.base.String() }

// Close closes idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) debug(kind, text string) {
	if c.o.Debug != nil {
		c.o.Debug(kind, c.redact(text))
	}
}
