package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// routeTokens bounds the routing reply: it may hold a whole answer.
const routeTokens = 2048

// The modes of a turn under staged exposure.
const (
	modeRespond   = "respond"
	modeWorkspace = "workspace"
	modeExternal  = "external"
)

const routeSchema = `{"type":"object","properties":{"mode":{"type":"string","enum":["respond","workspace","external"]},"response":{"type":"string"},"reason":{"type":"string"}},"required":["mode","response","reason"]}`

const askRoute = `Before any tool is used, say as JSON how the last message is to be handled. mode respond: no tool is needed, and response holds your whole answer. ` +
	`mode workspace: it needs files or commands of this machine, or looking something up. mode external: it asks for a change outside this machine%s. ` +
	`response is empty unless the mode is respond; reason is a few words.`

// routing is the reply to it.
type routing struct {
	Mode     string `json:"mode"`
	Response string `json:"response"`
	Reason   string `json:"reason"`
}

// writesOutside reports whether a tool may change something outside this machine.
func writesOutside(t tools.Tool) bool {
	w, ok := t.(interface{ WritesOutside() bool })
	return ok && w.WritesOutside()
}

// route has the model choose the phase of the turn: an answer ends it, and unless it
// asks for an external phase the tools that write outside are withheld. A reply that
// cannot be read is taken for the workspace, which is the safe choice.
func (r *run) route(ctx context.Context) (event.End, bool) {
	if !r.cfg.Staged {
		return event.End{}, false
	}
	r.makeRoom(ctx)
	choice, usage, err := r.askRoute(ctx)
	if err != nil {
		return r.failed(ctx, err), true
	}
	if choice.Mode == modeRespond && strings.TrimSpace(choice.Response) != "" && !r.cfg.RequireFinish {
		r.sum.Rounds++
		r.emit(event.Event{Kind: event.Content, Text: choice.Response})
		r.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{
			Message: chat.Message{Role: chat.Assistant, Content: choice.Response}, Usage: chat.Usage{OutputTokens: usage.OutputTokens}, Window: r.setup.Window,
		}})
		if !r.steer() {
			return event.End{Reason: event.Complete}, true
		}
		choice = routing{}
	}
	if choice.Mode != modeExternal {
		choice.Mode = modeWorkspace
		r.cfg.Tools = r.cfg.Tools.Without(writesOutside)
	}
	r.emit(event.Event{Kind: event.Info, Text: strings.TrimSuffix(fmt.Sprintf("phase: %s · %s", choice.Mode, firstLine(choice.Reason)), " · ")})
	return event.End{}, false
}

// askRoute makes the routing request. Only the server's failure is an error.
func (r *run) askRoute(ctx context.Context) (routing, chat.Usage, error) {
	var outside []string
	for _, name := range r.cfg.Tools.Names() {
		if t, err := r.cfg.Tools.Lookup(name); err == nil && writesOutside(t) {
			outside = append(outside, name)
		}
	}
	list := ""
	if len(outside) > 0 {
		list = ", with " + strings.Join(outside, ", ")
	}
	note := chat.Message{Role: chat.User, Content: fmt.Sprintf(askRoute, list), Note: true}
	req := r.requestOf(append(append([]chat.Message(nil), r.history...), note))
	zero := 0.0
	req.Tools, req.Think, req.Temperature = nil, r.setup.NoThink, &zero
	req.NumPredict, req.Format = routeTokens, json.RawMessage(routeSchema)
	if r.cfg.MaxOutput > 0 {
		req.NumPredict = min(routeTokens, r.cfg.MaxOutput)
	}
	r.state(event.Reading, "choosing the phase")
	reply, err := r.cfg.Model.Chat(ctx, req, func(chat.Delta) {})
	if err != nil {
		return routing{}, chat.Usage{}, err
	}
	r.sum.OutputTokens += reply.Usage.OutputTokens
	r.sum.FreshTokens += reply.Usage.OutputTokens
	var choice routing
	if json.Unmarshal([]byte(reply.Message.Content), &choice) != nil || reply.DoneReason == "length" {
		return routing{}, reply.Usage, nil
	}
	return choice, reply.Usage, nil
}
