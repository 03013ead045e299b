package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zcoder/internal/approval"
	"zcoder/tools"
)

// tool is one tool of a server, as it was pinned.
type tool struct {
	hub    *Hub
	link   *link
	server string
	pin    toolPin
	judged Judgement
	spec   tools.Spec
}

// newTool makes the tool that the model sees of a pin.
func newTool(h *Hub, l *link, pin toolPin) *tool {
	t := &tool{hub: h, link: l, server: l.entry.Name, pin: pin, judged: pin.judge()}
	t.spec = tools.Spec{
		Name:        exposedName(t.server, pin.Name),
		Description: pin.forModel(t.server),
		Schema:      h.normalised(pin.Schema),
	}
	return t
}

// normalised is normalise with a memory: the tools are listed anew for every turn.
// h.mu is held.
func (h *Hub) normalised(raw json.RawMessage) json.RawMessage {
	const most = 4 * maxTools
	if out, known := h.schemas[string(raw)]; known {
		return out
	}
	if len(h.schemas) >= most {
		clear(h.schemas)
	}
	out := normalise(raw)
	h.schemas[string(raw)] = out
	return out
}

// judge is the effect of a pinned tool; a person may have confirmed a milder one.
func (p toolPin) judge() Judgement {
	j := judge(p.Name, p.hints())
	if p.Accepted != "" && p.Accepted == j.Claim.String() {
		return Judgement{Effect: j.Claim, Why: "confirmed by you"}
	}
	return j
}

// Spec implements tools.Tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// WritesOutside reports whether the tool may change something outside this machine.
func (t *tool) WritesOutside() bool { return t.judged.Effect == approval.ExternalWrite }

// Plan implements tools.Tool.
func (t *tool) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	if why := t.link.withheld(t.pin.Name); why != "" {
		return tools.Action{}, fmt.Errorf("%s is withheld: %s, and a person has to look at it first", t.spec.Name, why)
	}
	args := call.Args.JSON()
	if err := t.complete(args); err != nil {
		return tools.Action{}, err
	}
	r := approval.Request{
		CallID: call.ID, Tool: t.spec.Name, Effect: t.judged.Effect,
		Summary: fmt.Sprintf("%s %s %s", t.server, t.pin.Name, brief(args)),
		Text:    fmt.Sprintf("MCP server %s, tool %s\n%s", t.server, t.pin.Name, indented(args, "")),
		Args:    string(args),
	}
	if t.WritesOutside() {
		r.Notes = []string{"asked for every call: " + t.judged.Why}
	}
	return tools.NewAction(r, func(ctx context.Context, progress tools.Progress) tools.Result {
		return t.do(ctx, args, progress)
	}), nil
}

// complete checks that the arguments have all that the schema requires.
func (t *tool) complete(args json.RawMessage) error {
	var schema struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(t.spec.Schema, &schema) != nil {
		return nil
	}
	given, err := membersLenient(args)
	if err != nil {
		return fmt.Errorf("%s: the arguments are not an object", t.spec.Name)
	}
	var missing []string
	for _, name := range schema.Required {
		if _, ok := memberOf(given, name); !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: missing %s; its arguments are %s", t.spec.Name, strings.Join(missing, ", "), t.spec.Schema)
	}
	return nil
}

// brief is the arguments in a few words, for the progress line.
func brief(args json.RawMessage) string {
	const most = 80
	text := []rune(string(args))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// do calls the tool, after a look whether it still is what was planned.
func (t *tool) do(ctx context.Context, args json.RawMessage, progress tools.Progress) tools.Result {
	c, err := t.link.await(ctx)
	if err == nil {
		err = t.link.current(ctx, c)
	}
	if err != nil {
		return t.failed(ctx, err)
	}
	if why := t.link.withheld(t.pin.Name); why != "" {
		return tools.Fail("error: %s was not called: %s, and a person has to look at it first", t.spec.Name, why)
	}
	raw, err := c.call(ctx, t.pin.Name, args, t.hub.dial.callTimeout(t.link.entry), progress)
	if err != nil {
		return t.failed(ctx, err)
	}
	return t.hub.result(raw)
}

// failed is the result of a call that brought none.
func (t *tool) failed(ctx context.Context, err error) tools.Result {
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "cancelled; the server may have done it or a part of it", Line: "cancelled"}
	}
	hint := ""
	if errors.Is(err, errLogin) {
		hint = ". A person has to log in: zcoder mcp login " + t.server
	}
	text := fmt.Sprintf("error: MCP server %s: %v%s", t.server, err, hint)
	return tools.Result{Status: tools.Failed, Text: text, Line: plain(err.Error(), 80)}
}

// offer lists the tools that the model gets, in a fixed order, and what is wrong
// with others. h.mu is held.
func (h *Hub) offer() (list []tools.Tool, problems []string) {
	byName := map[string][]*tool{}
	for key, l := range h.links {
		pin := h.reg.pins.server(key)
		if pin == nil {
			continue
		}
		for _, p := range pin.Tools {
			if !l.entry.Offers(p.Name) || l.withheld(p.Name) != "" {
				continue
			}
			t := newTool(h, l, p)
			byName[t.spec.Name] = append(byName[t.spec.Name], t)
		}
	}
	for _, name := range sortedKeys(byName) {
		same := byName[name]
		if len(same) == 1 {
			list = append(list, same[0])
			continue
		}
		var owners []string
		for _, t := range same {
			owners = append(owners, fmt.Sprintf("%s of %s", t.pin.Name, t.server))
		}
		slices.Sort(owners)
		problems = append(problems, fmt.Sprintf("tools %s would both be %s, so neither is offered", strings.Join(owners, " and "), name))
	}
	return list, problems
}
