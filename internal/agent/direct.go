package agent

import (
	"context"

	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// Direct is a turn without a model: one call that a person asked for in writing, as
// `! command` from a script or from another machine. It passes the gate like a call
// of the model. record turns its result into what the next request can see.
func Direct(ctx context.Context, cfg Config, t Turn, c chat.ToolCall, record func(tools.Result) string) event.End {
	r := newRun(cfg, t)
	ctx, stop := r.deadline(ctx)
	defer stop()
	c.ID = cfg.NewID()
	r.emit(event.Event{Kind: event.TurnStart})
	var end event.End
	action, err := r.plan(ctx, c, true)
	if err != nil {
		end = event.End{Reason: event.Errored, Text: err.Error()}
	} else {
		req := action.Request()
		r.emit(event.Event{Kind: event.CallStart, Call: describe(c, req)})
		res := r.emitResult(c, r.authorised(ctx, action), true)
		r.emit(event.Event{Kind: event.Shell, Text: record(res)})
		end = directEnd(res)
	}
	end = r.facts(end)
	r.emit(event.Event{Kind: event.TurnEnd, End: &end})
	return end
}

func directEnd(res tools.Result) event.End {
	switch res.Status {
	case tools.OK:
		return event.End{Reason: event.Complete}
	case tools.Cancelled:
		return event.End{Reason: event.Cancelled, Text: "stopped"}
	case tools.Denied:
		return event.End{Reason: event.Blocked, Text: res.Text}
	}
	return event.End{Reason: event.Errored, Text: res.Line}
}
