package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// polled is an event of a plain server, or a message of its history.
type polled struct {
	Seq        int64  `json:"seq"`
	Event      string `json:"event"`
	Role       string `json:"role"`
	Content    string `json:"content"`
	Thinking   string `json:"thinking"`
	Status     string `json:"status"`
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Command    string `json:"command"`
	Phase      string `json:"phase"`
	ToolCallID string `json:"tool_call_id"`
	Name       string `json:"name"`
	Args       string `json:"args"`
	Result     string `json:"result"`
	Succeeded  flag   `json:"succeeded"`
	Diff       string `json:"diff"`
	ExitCode   int    `json:"exit_code"`
}

// flag is a truth value, which peers write as a boolean or as 0 and 1.
type flag bool

func (f *flag) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true", "1":
		*f = true
	case "false", "0", "null":
		*f = false
	default:
		return fmt.Errorf("%s is no truth value", clip(string(text), 20))
	}
	return nil
}

// projector makes of a plain server's events those that frontends know. They have
// numbers of this side.
type projector struct {
	f         *feed
	turn      string
	since     time.Time
	structure bool           // the server tells of calls, so that messages of tools repeat them
	open      map[string]int // calls that were begun, by the server's id
	count     int            // of calls
	asked     string         // the approval that waits, by its call id here
	problem   string         // the last error that was told
}

func (p *projector) emit(e event.Event) {
	e.Turn = p.turn
	p.f.emit(e)
}

func (p *projector) begin(turn string) {
	p.turn, p.since, p.open = turn, p.f.now(), map[string]int{}
	p.emit(event.Event{Kind: event.TurnStart})
}

// resume goes on after events that the history tells already: the last one may wait
// for an answer.
func (p *projector) resume(last polled) {
	if last.Event == "approval_required" {
		p.approval(last)
	}
}

func (p *projector) take(e polled) {
	if e.Event != "status" && e.Event != "approval_required" {
		p.elsewhere(e)
	}
	switch e.Event {
	case "message":
		p.message(e, fmt.Sprintf("message-%d", e.Seq))
	case "status":
		p.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Phase(oneLine(e.Status, 200))}})
	case "approval_required":
		p.approval(e)
	case "tool":
		p.tool(e)
	}
}

// message shows a message; id is for one of a tool, which is a result without a call.
func (p *projector) message(e polled, id string) {
	switch e.Role {
	case "assistant":
		m := chat.Message{Role: chat.Assistant, Content: e.Content, Thinking: e.Thinking}
		p.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: m}})
	case "user":
		p.emit(event.Event{Kind: event.User, Text: e.Content})
	case "error":
		p.problem = oneLine(e.Content, maxError)
		p.emit(event.Event{Kind: event.Warning, Text: e.Content})
	case "tool":
		if !p.structure {
			p.emit(event.Event{Kind: event.CallEnd, Result: &event.Result{
				CallID: id, Name: "tool", Status: "ok", Text: e.Content, Line: firstLine(e.Content),
			}})
		}
	default:
		p.emit(event.Event{Kind: event.Info, Text: e.Content})
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return clip(line, 200)
}

// tool shows a call and its result. An id that is used again is another call.
func (p *projector) tool(e polled) {
	p.structure = true
	number, open := p.open[e.ToolCallID]
	if !open {
		p.count++
		number = p.count
		p.open[clip(e.ToolCallID, maxIDBytes)] = number
		call := callOf(e)
		call.ID = fmt.Sprintf("call-%d", number)
		p.emit(event.Event{Kind: event.CallStart, Call: &call})
	}
	switch e.Phase {
	case "running":
		p.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Running, Detail: callOf(e).Summary}})
	case "complete":
		delete(p.open, clip(e.ToolCallID, maxIDBytes))
		r := event.Result{CallID: fmt.Sprintf("call-%d", number), Name: clip(e.Name, 200), Status: "failed", Text: e.Result, Diff: e.Diff}
		if e.Succeeded {
			r.Status = "ok"
		} else {
			r.Line = firstLine(e.Result)
		}
		p.emit(event.Event{Kind: event.CallEnd, Result: &r})
	}
}

// callOf is what is shown of a call: what it is about, if the arguments say so.
func callOf(e polled) event.Call {
	call := event.Call{Name: clip(e.Name, 200), Args: e.Args}
	var args map[string]any
	if json.Unmarshal([]byte(e.Args), &args) != nil {
		args = nil
	}
	call.Summary = call.Name
	for _, key := range []string{"command", "path", "file", "pattern", "query", "url", "name"} {
		if text, ok := args[key].(string); ok && text != "" {
			call.Summary += " " + oneLine(text, 200)
			if key == "command" {
				call.Text = text
			}
			break
		}
	}
	return call
}

// notHere is why a question is settled that got no answer from here.
const notHere = "it was not answered in time, or elsewhere"

// approval asks. What was asked is all there is: the exact text.
func (p *projector) approval(e polled) {
	p.settle("no", notHere)
	id := clip(e.ID, maxIDBytes)
	q := event.Question{
		CallID: "approval-" + id, Tool: "run_command", Effect: "exec", Origin: "remote", Summary: "run_command " + oneLine(e.Command, 200),
		Text: e.Command, Host: p.f.host, Grantable: p.f.grantable,
		Notes: []string{"the server sends the exact text and nothing more: not where it runs, nor why it asks"},
	}
	if e.Kind != "command" {
		q.Tool, q.Effect, q.Grantable = "external change", "external-write", false
		q.Summary = oneLine(e.Command, 200)
	}
	p.asked = q.CallID
	p.f.mu.Lock()
	p.f.asked(ask{callID: q.CallID, approval: e.ID})
	p.f.mu.Unlock()
	p.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Waiting, Detail: q.Summary}})
	p.emit(event.Event{Kind: event.Asked, Question: &q})
}

// elsewhere closes a question when the turn went on without an answer from here. That a
// call was done shows that somebody allowed it.
func (p *projector) elsewhere(e polled) {
	if e.Event == "tool" && e.Phase != "begin" && bool(e.Succeeded) {
		p.settle("once", "")
		return
	}
	p.settle("no", notHere)
}

func (p *projector) settle(choice, reason string) {
	if p.asked == "" {
		return
	}
	if q, _ := p.f.asking(p.asked); !q.settled && !q.sent {
		p.emit(event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: p.asked, Choice: choice, Reason: reason, By: "another client"}})
	}
	p.asked = ""
}

func (p *projector) end(reason event.Reason, text string) {
	p.settle("no", "the turn ended")
	p.emit(event.Event{Kind: event.TurnEnd, End: &event.End{Reason: reason, Text: text, Took: p.f.now().Sub(p.since)}})
}
