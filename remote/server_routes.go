package remote

import (
	"context"
	"net/http"
	"strings"
)

// route is what answers a method on a path.
type route struct {
	shape  shape
	stream bool // handled apart: its reply has no end
	do     func(s *Server, ctx context.Context, a asked) (reply, error)
}

// routeOf finds the route. The path is compared as it was sent: nothing in it is
// decoded or cleaned.
func routeOf(method, path string) (route, bool) {
	switch method + " " + path {
	case "GET /v1/hello":
		return route{do: (*Server).hello}, true
	case "GET /v1/model":
		return route{do: (*Server).model}, true
	case "POST /v1/model/ensure":
		return route{do: (*Server).ensure}, true
	case "POST /v1/turn":
		return route{do: (*Server).postTurn}, true
	case "GET /v1/events":
		return route{shape: takesAfter, do: (*Server).events}, true
	case "GET /v1/stream":
		return route{shape: takesSome, stream: true}, true
	case "POST /v1/approval":
		return route{do: (*Server).postApproval}, true
	case "POST /v1/form":
		return route{do: (*Server).postForm}, true
	case "POST /v1/cancel":
		return route{do: (*Server).cancel}, true
	case "GET /v1/sessions":
		return route{shape: takesAfter, do: (*Server).sessions}, true
	case "GET /v1/session":
		return route{shape: takesBoth, do: (*Server).session}, true
	case "POST /v1/session/select":
		return route{do: (*Server).selectSession}, true
	case "POST /v1/session/new":
		return route{do: (*Server).newSession}, true
	case "POST /v1/input":
		return route{do: (*Server).postInput}, true
	case "POST /v1/input/status":
		return route{do: (*Server).inputStatus}, true
	case "POST /v1/input/list":
		return route{do: (*Server).inputList}, true
	case "POST /v1/input/drop":
		return route{do: (*Server).inputDrop}, true
	}
	return route{}, false
}

func (s *Server) hello(ctx context.Context, _ asked) (reply, error) {
	f := s.cfg.Host.Facts(ctx)
	return reply{http.StatusOK, hello{
		Protocol: Protocol, ServerName: s.cfg.Name, Workspace: f.Workspace, Model: f.Model, Profile: f.Profile,
		CommandPolicy: f.CommandPolicy, ModelStatus: f.Readiness.Status, ModelError: f.Readiness.Error,
		Harnesses: strings.Join(f.Harnesses, ","), Sessions: true, Goals: true, InputQueue: true,
		Documents: true, DocumentContext: true, GitStatus: f.GitStatus, Notices: f.Notices,
		Commands: true, Stream: true, Version: f.Version,
	}}, nil
}
