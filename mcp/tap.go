package mcp

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
)

// captureKey is where a context carries the place for a raw result.
type captureKey struct{}

// capture has the result of the next request under ctx put into raw as the server
// sent it: mcp-go's own types keep less of it, and refuse what they do not know.
func capture(ctx context.Context, raw *json.RawMessage) context.Context {
	return context.WithValue(ctx, captureKey{}, raw)
}

// tap is a transport that lets raw results be captured.
type tap struct{ transport.Interface }

func (t tap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	resp, err := t.Interface.SendRequest(ctx, r)
	if raw, ok := ctx.Value(captureKey{}).(*json.RawMessage); ok && err == nil && resp.Error == nil {
		*raw = resp.Result
	}
	return resp, err
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
