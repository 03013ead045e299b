package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	spec "github.com/mark3labs/mcp-go/mcp"

	"zcoder/internal/proc"
)

// dialer makes connections to servers.
type dialer struct {
	home, root  string
	version     string
	start, call time.Duration // where an entry says nothing
	web         *http.Client
	// other replaces the transports, for tests. Nil is the real ones.
	other func(Entry) (transport.Interface, error)
}

func (d *dialer) startTimeout(e Entry) time.Duration {
	if e.StartTimeout > 0 {
		return e.StartTimeout
	}
	return d.start
}

func (d *dialer) callTimeout(e Entry) time.Duration {
	if e.CallTimeout > 0 {
		return e.CallTimeout
	}
	return d.call
}

// dialled is a connection, with what was learnt on the way.
type dialled struct {
	*conn
	// noProbe says that the server did not bear the question which protocol it
	// speaks, so that the older handshake was used at once.
	noProbe bool
}

// dial starts a server and shakes hands. life bounds the connection; ctx bounds the
// start.
func (d *dialer) dial(life, ctx context.Context, e Entry, noProbe bool, log *ring) (dialled, error) {
	c, err := d.open(life, ctx, e, attempt{legacy: noProbe}, log)
	if err == nil {
		return dialled{c, noProbe}, nil
	}
	switch {
	case errors.Is(err, transport.ErrLegacySSEServer) && e.Kind == HTTP:
		e.Kind = SSE
		log.add("client: the server speaks the older HTTP with server-sent events")
		c, err = d.open(life, ctx, e, attempt{}, log)
	case e.Kind == Stdio && !noProbe && errors.Is(err, errEnded) && ctx.Err() == nil:
		log.add("client: the server ended at once; it is started again with the older handshake")
		c, err = d.open(life, ctx, e, attempt{legacy: true}, log)
		noProbe = true
	}
	return dialled{c, noProbe}, err
}

// errEnded marks that a program ended while it was started.
var errEnded = errors.New("the program ended")

// attempt is how a connection is tried.
type attempt struct {
	legacy bool // without server/discover
	listen bool // with the stream for notifications of older HTTP servers
}

// open makes one connection.
func (d *dialer) open(life, ctx context.Context, e Entry, a attempt, log *ring) (*conn, error) {
	t, err := d.transport(e, a, log)
	if err != nil {
		return nil, err
	}
	opts := []client.ClientOption{client.WithDiscoverTimeout(d.startTimeout(e) / 2)}
	if a.legacy {
		opts = append(opts, client.WithProtocolVersion(spec.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	c := newConn(client.NewClient(tapped(t), opts...), log)
	_, c.program = t.(*stdio)
	if err := c.begin(life, ctx, d.version); err != nil {
		c.close()
		return nil, d.explain(ctx, e, t, err)
	}
	if s, ok := t.(*stdio); ok {
		go func() { <-s.done; c.lose(s.why()) }()
	}
	if e.Kind == HTTP && !a.listen && !c.modern() && c.announces() {
		c.close()
		return d.open(life, ctx, e, attempt{listen: true}, log)
	}
	return c, nil
}

// explain says why a start failed in words that help.
func (d *dialer) explain(ctx context.Context, e Entry, t transport.Interface, err error) error {
	noise := ""
	if s, ok := t.(*stdio); ok {
		if n := s.noisy(); n != "" {
			noise = "; " + n
		}
		select {
		case <-s.done:
			err = errors.Join(errEnded, s.why())
		default:
		}
	}
	switch {
	case errors.Is(err, transport.ErrLegacySSEServer):
		return err
	case ctx.Err() != nil:
		return fmt.Errorf("the server did not answer within %s%s", d.startTimeout(e), noise)
	case client.IsAuthorizationRequiredError(err), client.IsOAuthAuthorizationRequiredError(err):
		return errLogin
	}
	return fmt.Errorf("%w%s", err, noise)
}

// errLogin is why a server cannot be used before a person logged in to it.
var errLogin = errors.New("the server wants a login")

// transport makes the transport that the entry asks for.
func (d *dialer) transport(e Entry, a attempt, log *ring) (transport.Interface, error) {
	if d.other != nil {
		return d.other(e)
	}
	switch e.Kind {
	case HTTP:
		return d.http(e, log, a.listen)
	case SSE:
		return d.sse(e, log)
	}
	argv := append([]string{e.Program.Path}, e.ready.Args...)
	return newStdio(proc.Spec{Argv: argv, Dir: e.ready.dir(d.root), Env: e.env}, log), nil
}
