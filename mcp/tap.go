package mcp

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
)

// captureKey is where a context carries a captured.
type captureKey struct{}

// captured takes the result of a request as the server sent it.
type captured struct {
	raw *json.RawMessage
	// check decides whether mcp-go reads the result too. Nil is no: it gets an empty one.
	check func(json.RawMessage) error
}

// emptyResult stands for results that mcp-go is not to read: it would keep less of
// them, use many times their size in memory, and repeat calls by itself.
const emptyResult = `{"resultType":"complete","content":[],"contents":[],"messages":[],"resources":[],"prompts":[]}`

// capture has the result of the next request under ctx put into raw as the server
// sent it.
func capture(ctx context.Context, raw *json.RawMessage) context.Context {
	return context.WithValue(ctx, captureKey{}, captured{raw: raw})
}

// captureChecked is capture for results that mcp-go reads too, unless check refuses
// them.
func captureChecked(ctx context.Context, raw *json.RawMessage, check func(json.RawMessage) error) context.Context {
	return context.WithValue(ctx, captureKey{}, captured{raw, check})
}

// tap is a transport that lets raw results be captured.
type tap struct{ transport.Interface }

func (t tap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	resp, err := t.Interface.SendRequest(ctx, r)
	c, ok := ctx.Value(captureKey{}).(captured)
	if !ok || err != nil || resp.Error != nil {
		return resp, err
	}
	if c.check != nil {
		if err := c.check(resp.Result); err != nil {
			return nil, err
		}
		*c.raw = resp.Result
		return resp, nil
	}
	*c.raw = resp.Result
	short := *resp
	short.Result = json.RawMessage(emptyResult)
	return &short, nil
}

func (t tap) SetRequestHandler(h transport.RequestHandler) {
	if b, ok := t.Interface.(transport.BidirectionalInterface); ok {
		b.SetRequestHandler(h)
	}
}

// tapped wraps a transport and keeps what mcp-go asks it about itself.
func tapped(t transport.Interface) transport.Interface {
	if h, ok := t.(transport.HTTPConnection); ok {
		return httpTap{tap{t}, h}
	}
	return tap{t}
}

// httpTap is a tap on a transport over HTTP.
type httpTap struct {
	tap
	http transport.HTTPConnection
}

func (t httpTap) SetProtocolVersion(version string) { t.http.SetProtocolVersion(version) }

func (t httpTap) RequiresLegacyProtocol() bool {
	l, ok := t.Interface.(interface{ RequiresLegacyProtocol() bool })
	return ok && l.RequiresLegacyProtocol()
}

func (t httpTap) SetConnectionLostHandler(f func(error)) {
	if l, ok := t.Interface.(interface{ SetConnectionLostHandler(func(error)) }); ok {
		l.SetConnectionLostHandler(f)
	}
}

var (
	_ transport.BidirectionalInterface = tap{}
	_ transport.HTTPConnection         = httpTap{}
)
