// Package peer holds the tools with which a model sees other zcoder instances and
// writes to them, list_agents and send_agent_message, and the decision whether a
// person asked for the second.
//
// It knows what a call means and who may be written to in a turn; finding instances
// and delivering is package relay's business, and whether a message goes is a
// person's, each time. The application makes the tools, a new one of the second for
// each turn that has it.
package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/relay"
	"zcoder/tools"
)

// The names of the tools.
const (
	ListTool = "list_agents"
	SendTool = "send_agent_message"
)

// Post finds instances and delivers messages. *relay.Node is one.
type Post interface {
	Peers(ctx context.Context, keep func(relay.Peer) bool) ([]relay.Peer, error)
	Send(ctx context.Context, to relay.Peer, body string) (relay.Receipt, error)
}

// Leave is what one turn may send.
type Leave interface {
	// May returns nil, or for the model why the instance must not be written to.
	May(instance string) error
	// Spend takes the leave for one message, just before it goes; it refuses like May.
	Spend(instance string) error
}

// Options configure send_agent_message. Leave is required.
type Options struct {
	Leave Leave
	// Mask hides secrets in a message before it is shown. Nil hides nothing.
	Mask func(string) string
	// MaxChars is the longest message in characters.
	MaxChars int
}

// List is the tool list_agents.
func List(p Post) tools.Tool { return lister{p} }

type lister struct{ post Post }

func (lister) Spec() tools.Spec {
	return tools.Spec{Name: ListTool, Description: "List the other zcoder instances of this user that run now."}
}

func (l lister) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	req := approval.Request{CallID: call.ID, Tool: ListTool, Effect: approval.Read, Summary: ListTool, Args: string(call.Args.JSON())}
	return tools.NewAction(req, func(ctx context.Context, _ tools.Progress) tools.Result {
		peers, err := l.post.Peers(ctx, nil)
		if err != nil {
			return failed("%v", err)
		}
		return tools.Result{Status: tools.OK, Text: describe(peers), Line: count(len(peers))}
	}), nil
}

func count(n int) string {
	if n == 1 {
		return "1 instance"
	}
	return fmt.Sprintf("%d instances", n)
}

// describe lists instances for the model. What they say of themselves is quoted.
func describe(peers []relay.Peer) string {
	if len(peers) == 0 {
		return "no other instance runs"
	}
	var b strings.Builder
	for _, p := range peers {
		fmt.Fprintf(&b, "instance %s: project %q, pid %d, workspace %q, profile %q, model %q, %s\n", p.ID, p.Project, p.PID, p.Workspace, p.Profile, p.Model, p.State)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Send is the tool send_agent_message, for one turn.
func Send(p Post, o Options) tools.Tool { return sender{p, o} }

type sender struct {
	post Post
	o    Options
}

func (sender) Spec() tools.Spec {
	return tools.Spec{
		Name:        SendTool,
		Description: "Send a request to another zcoder instance. The user confirms each message. An answer, if any, comes later as a new request.",
		Params: []tools.Param{
			{Name: "target_instance_id", Type: tools.String, Required: true, Description: "instance id from " + ListTool + ", or its project name", Aliases: []string{"target", "instance_id", "to"}},
			{Name: "message", Type: tools.String, Required: true, Description: "complete in itself: the other instance sees nothing of this conversation", Aliases: []string{"text", "body", "content"}},
		},
	}
}

// Plan finds the recipient and shows it with the exact message.
func (s sender) Plan(ctx context.Context, call tools.Call) (tools.Action, error) {
	message, masked := s.mask(call.Args.Text("message"))
	if n := utf8.RuneCountInString(message); strings.TrimSpace(message) == "" || n > s.o.MaxChars {
		return tools.Action{}, fmt.Errorf("the message has %d characters: it needs a text of at most %d", n, s.o.MaxChars)
	}
	to, err := s.find(ctx, strings.TrimSpace(call.Args.Text("target_instance_id")))
	if err != nil {
		return tools.Action{}, err
	}
	if err := s.o.Leave.May(to.ID); err != nil {
		return tools.Action{}, err
	}
	req := approval.Request{
		CallID: call.ID, Tool: SendTool, Effect: approval.Peer, Args: string(call.Args.JSON()),
		Summary: fmt.Sprintf("%s to %s (pid %d)", SendTool, to.Project, to.PID),
		Text:    fmt.Sprintf("To instance %s, project %q, pid %d, workspace %q:\n\n%s", to.ID, to.Project, to.PID, to.Workspace, message),
	}
	if masked {
		req.Notes = []string{"secrets in the message were masked"}
	}
	return tools.NewAction(req, func(ctx context.Context, _ tools.Progress) tools.Result { return s.deliver(ctx, to, message) }), nil
}

func (s sender) mask(message string) (string, bool) {
	if s.o.Mask == nil {
		return message, false
	}
	masked := s.o.Mask(message)
	return masked, masked != message
}

// find returns the one live instance that a target names: by its id, or by a project
// that only one has.
func (s sender) find(ctx context.Context, target string) (relay.Peer, error) {
	if target == "" {
		return relay.Peer{}, fmt.Errorf("target_instance_id is empty: %s tells the ids", ListTool)
	}
	peers, err := s.post.Peers(ctx, nil)
	if err != nil {
		return relay.Peer{}, err
	}
	var byProject []relay.Peer
	for _, p := range peers {
		if p.ID == target {
			return p, nil
		}
		if strings.EqualFold(p.Project, target) {
			byProject = append(byProject, p)
		}
	}
	switch len(byProject) {
	case 1:
		return byProject[0], nil
	case 0:
		return relay.Peer{}, fmt.Errorf("no instance %q runs. Those that run:\n%s", target, describe(peers))
	}
	return relay.Peer{}, fmt.Errorf("several instances have the project %q: name one by its id.\n%s", target, describe(byProject))
}

// failed is a result that says the same to the model and to the person.
func failed(format string, args ...any) tools.Result {
	line := fmt.Sprintf(format, args...)
	return tools.Result{Status: tools.Failed, Text: "error: " + line, Line: line}
}

// deliver sends what was shown to whom was shown, if that still is who it was.
func (s sender) deliver(ctx context.Context, to relay.Peer, message string) tools.Result {
	now, err := s.post.Peers(ctx, func(p relay.Peer) bool { return p.ID == to.ID })
	switch {
	case err != nil:
		return failed("not sent: %v", err)
	case len(now) != 1:
		return failed("not sent: instance %s no longer runs", to.ID)
	case now[0].PID != to.PID || now[0].Project != to.Project || now[0].Workspace != to.Workspace:
		return failed("not sent: instance %s is no longer what was shown", to.ID)
	}
	if err := s.o.Leave.Spend(to.ID); err != nil {
		return failed("not sent: %v", err)
	}
	receipt, err := s.post.Send(ctx, to, message)
	if errors.Is(err, relay.ErrRefused) {
		return failed("not sent: %v. do not try again at once", err)
	}
	if err != nil {
		return failed("%v. It may not have arrived", err)
	}
	return tools.Result{
		Status: tools.OK,
		Text: fmt.Sprintf("stored by instance %s (project %q): place %d in its queue, it is %s. Whether and when it is worked on is not known; do not wait for it.",
			to.ID, to.Project, receipt.Position, receipt.State),
		Line: fmt.Sprintf("stored, place %d, %s", receipt.Position, receipt.State),
	}
}
