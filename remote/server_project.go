package remote

import (
	"fmt"
	"strings"

	"zcoder/internal/event"
)

// The events of a turn as those who poll get them. Each kind has its own fields.
type (
	eventHead struct {
		Seq   int64  `json:"seq"`
		Event string `json:"event"`
	}
	messageEvent struct {
		eventHead
		message
	}
	statusEvent struct {
		eventHead
		Status string `json:"status"`
	}
	approvalEvent struct {
		eventHead
		ID      string `json:"id"`
		Kind    string `json:"kind"`    // command or external
		Command string `json:"command"` // exact
		// Ours: what else a person must see, as one text each.
		Digest    string `json:"digest"`
		Tool      string `json:"tool"`
		Effect    string `json:"effect"`
		Summary   string `json:"summary"`
		Dir       string `json:"dir"`
		Timeout   string `json:"timeout"`
		Reasons   string `json:"reasons"`
		Notes     string `json:"notes"`
		Grantable bool   `json:"grantable"`
	}
	toolEvent struct {
		eventHead
		Phase     string `json:"phase"` // begin, running or complete
		CallID    string `json:"tool_call_id"`
		Name      string `json:"name"`
		Args      string `json:"args"` // JSON text
		Result    string `json:"result"`
		Succeeded bool   `json:"succeeded"`
		Diff      string `json:"diff"`
	}
	completeEvent struct {
		eventHead
		ExitCode int `json:"exit_code"`
	}
)

// message is what somebody said in a conversation.
type message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking"`
}

// said returns what an event adds to the text of a conversation.
func said(e event.Event) (message, bool) {
	m := message{Content: e.Text}
	switch e.Kind {
	case event.User:
		m.Role = "user"
	case event.Relayed:
		m = message{Role: "system", Content: fmt.Sprintf("message from the instance in %s:\n%s", e.Peer.Workspace, e.Peer.Message)}
	case event.Reply:
		m = message{"assistant", e.Reply.Message.Content, e.Reply.Message.Thinking}
	case event.CallEnd:
		m = message{Role: "tool", Content: e.Result.Text}
	case event.Printed, event.Info, event.Warning:
		m.Role = "system"
	case event.TurnEnd:
		m = ending(*e.End)
	}
	return m, m.Role != "" && m.Content+m.Thinking != ""
}

// ending is what the end of a turn adds: an error, a limit, or the answer that came
// with it.
func ending(end event.End) message {
	text := end.Text
	if end.Hint != "" {
		text += "\n" + end.Hint
	}
	switch end.Reason {
	case event.Complete:
		return message{Role: "assistant", Content: end.Text}
	case event.Cancelled:
		return message{}
	case event.Errored:
		return message{Role: "error", Content: text}
	}
	return message{Role: "system", Content: string(end.Reason) + ": " + text}
}

// projection makes the events of a turn for those who poll from what happens in the
// conversation.
type projection struct {
	structured bool
	events     []any // the one with number N is events[N-1]
	status     string
	call       event.Call // that was begun last
	running    bool       // and is being done
	unattended int        // calls refused in the last turn for want of a person
	goal       string     // state of the goal, if it changed
}

func (p *projection) head(kind string) eventHead {
	return eventHead{Seq: int64(len(p.events)) + 1, Event: kind}
}

func (p *projection) add(e any) { p.events = append(p.events, e) }

func (p *projection) say(m message) { p.add(messageEvent{p.head("message"), m}) }

// show says what the turn is at, when that is something new.
func (p *projection) show(status string) {
	if status != "" && status != p.status {
		p.status = status
		p.add(statusEvent{p.head("status"), status})
	}
}

// project adds what an event means. approval is set for a question that waits.
func (p *projection) project(e event.Event, approval *pending) {
	switch e.Kind {
	case event.User:
		if e.Item == nil {
			return // the turn's own prompt
		}
	case event.Progress:
		p.progress(*e.State)
	case event.CallStart:
		p.begin(*e.Call)
	case event.Asked:
		p.ask(approval)
	case event.Answered:
		p.answered(*e.Answer)
	case event.GoalState:
		p.goal = e.Goal.State
		p.show(strings.TrimSpace("goal " + e.Goal.State + " " + e.Goal.Reason))
	case event.TurnEnd:
		p.unattended = e.End.Unattended
	case event.CallEnd:
		if p.structured {
			p.done(*e.Result)
			return
		}
	}
	if m, ok := said(e); ok {
		p.say(m)
	}
}

func (p *projection) progress(s event.State) {
	p.show(strings.TrimSpace(string(s.Phase) + " " + s.Detail))
	if s.Phase == event.Running {
		p.run()
	}
}

// tool adds an event about the call that was begun last.
func (p *projection) tool(e toolEvent) {
	if p.structured {
		e.eventHead, e.CallID, e.Name, e.Args = p.head("tool"), p.call.ID, p.call.Name, p.call.Args
		p.add(e)
	}
}

func (p *projection) begin(c event.Call) {
	p.call, p.running = c, false
	p.show(c.Summary)
	p.tool(toolEvent{Phase: "begin"})
}

func (p *projection) run() {
	if p.call.ID != "" && !p.running {
		p.running = true
		p.tool(toolEvent{Phase: "running"})
	}
}

func (p *projection) done(r event.Result) {
	if p.call.ID != r.CallID { // it was never begun, such as one that could not be read
		p.call = event.Call{ID: r.CallID, Name: r.Name, Args: "{}"}
		p.tool(toolEvent{Phase: "begin"})
	}
	p.tool(toolEvent{Phase: "complete", Result: r.Text, Succeeded: r.Status == "ok", Diff: r.Diff})
	p.call = event.Call{}
}

// ask shows everything about a question as a status first, for clients that show of the
// question itself the command alone.
func (p *projection) ask(a *pending) {
	if a == nil {
		return
	}
	q := a.question
	p.show(strings.Join(circumstances(q), " · "))
	kind := "external"
	if q.Effect == "exec" {
		kind = "command"
	}
	p.add(approvalEvent{
		eventHead: p.head("approval_required"), ID: a.id, Kind: kind, Command: q.Text,
		Digest: q.Digest, Tool: q.Tool, Effect: q.Effect, Summary: q.Summary, Dir: q.Dir, Timeout: q.Timeout,
		Reasons: strings.Join(q.Reasons, "\n"), Notes: strings.Join(q.Notes, "\n"), Grantable: q.Grantable,
	})
}

func circumstances(q event.Question) []string {
	parts := []string{"asks: " + q.Summary}
	if q.Dir != "" {
		parts = append(parts, "in "+q.Dir)
	}
	if q.Timeout != "" {
		parts = append(parts, "for at most "+q.Timeout)
	}
	return append(append(parts, q.Reasons...), q.Notes...)
}

func (p *projection) answered(a event.Answer) {
	if a.Choice == "no" {
		p.show(strings.TrimSuffix("refused: "+a.Reason, ": "))
		return
	}
	p.show("approved")
}

// complete adds the last event. A turn that could not be done says why first.
func (p *projection) complete(reason event.Reason, err error) {
	if err != nil {
		p.say(message{Role: "error", Content: withHint(err)})
	}
	p.add(completeEvent{p.head("complete"), p.exitCode(reason, err)})
}

// Exit codes of a turn: those of a run of the program.
const (
	exitDone      = 0
	exitFailed    = 1
	exitRefused   = 3
	exitCancelled = 130
)

func (p *projection) exitCode(reason event.Reason, err error) int {
	switch {
	case err != nil:
		return exitFailed
	case reason == event.Cancelled:
		return exitCancelled
	case p.goal == "blocked":
		return exitRefused
	case p.goal == "budget_limited" || p.goal == "paused":
		return exitFailed
	case reason == event.Blocked:
		return exitRefused
	case (reason == event.Complete || reason == "") && p.unattended > 0:
		return exitRefused
	case reason == event.Complete || reason == "":
		return exitDone
	}
	return exitFailed
}
