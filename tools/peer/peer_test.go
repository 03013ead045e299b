package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/relay"
	"zcoder/tools"
)

// post is a Post in memory.
type post struct {
	peers []relay.Peer
	err   error
	sent  []string
	asked int
}

func (p *post) Peers(_ context.Context, keep func(relay.Peer) bool) ([]relay.Peer, error) {
	p.asked++
	var list []relay.Peer
	for _, one := range p.peers {
		if keep == nil || keep(one) {
			list = append(list, one)
		}
	}
	return list, nil
}

func (p *post) Send(_ context.Context, to relay.Peer, body string) (relay.Receipt, error) {
	p.sent = append(p.sent, to.ID+": "+body)
	return relay.Receipt{Position: 2, State: relay.Busy}, p.err
}

// leave lets one instance be written to, a number of times.
type leave struct {
	only string
	left int
}

func (l *leave) May(instance string) error {
	if instance != l.only || l.left == 0 {
		return fmt.Errorf("no leave for %s", instance)
	}
	return nil
}

func (l *leave) Spend(instance string) error {
	err := l.May(instance)
	l.left--
	return err
}

func instance(id string, pid int, project string) relay.Peer {
	return relay.Peer{ID: id, PID: pid, Self: relay.Self{Project: project, Workspace: "/w/" + project, Profile: "coding", Model: "m"}, State: relay.Ready}
}

type always struct{}

func (always) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}

type nowhere struct{}

func (nowhere) Record(approval.Record) error { return nil }

// do has a gate that allows everything authorise the action, and does it.
func do(t *testing.T, a tools.Action) tools.Result {
	t.Helper()
	permit, err := (&approval.Gate{Policy: always{}, Recorder: nowhere{}}).Authorize(t.Context(), a.Request())
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Do(t.Context(), permit, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func plan(t *testing.T, tool tools.Tool, args string) (tools.Action, error) {
	t.Helper()
	decoded, err := tools.Decode(tool.Spec(), []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Plan(t.Context(), tools.Call{ID: "c1", Args: decoded})
}

func TestList(t *testing.T) {
	p := &post{}
	a, err := plan(t, List(p), `{}`)
	if err != nil || a.Request().Effect != approval.Read || p.asked != 0 {
		t.Fatalf("planned %+v, %v, asked %d", a.Request(), err, p.asked)
	}
	if res := do(t, a); res.Text != "no other instance runs" || res.Line != "0 instances" {
		t.Errorf("result %+v", res)
	}
	p.peers = []relay.Peer{instance("1-2", 1, "a\npi"), instance("3-4", 3, "web")}
	a, _ = plan(t, List(p), `{}`)
	want := "instance 1-2: project \"a\\npi\", pid 1, workspace \"/w/a\\npi\", profile \"coding\", model \"m\", ready\n" +
		"instance 3-4: project \"web\", pid 3, workspace \"/w/web\", profile \"coding\", model \"m\", ready"
	if res := do(t, a); res.Text != want || res.Line != "2 instances" {
		t.Errorf("result %+v", res)
	}
}

func TestSend(t *testing.T) {
	p := &post{peers: []relay.Peer{instance("1-2", 1, "api"), instance("3-4", 3, "web"), instance("5-6", 5, "web")}}
	l := &leave{only: "1-2", left: 1}
	tool := Send(p, Options{Leave: l, MaxChars: 20, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "[masked]") }})
	a, err := plan(t, tool, `{"target_instance_id":"1-2","message":"use hunter2\nnow"}`)
	if err != nil {
		t.Fatal(err)
	}
	req := a.Request()
	if req.Effect != approval.Peer || req.Text != "To instance 1-2, project \"api\", pid 1, workspace \"/w/api\":\n\nuse [masked]\nnow" || len(req.Notes) != 1 {
		t.Errorf("request %+v", req)
	}
	if len(p.sent) != 0 || l.left != 1 {
		t.Error("planning sent something")
	}
	res := do(t, a)
	if res.Status != tools.OK || fmt.Sprint(p.sent) != "[1-2: use [masked]\nnow]" || !strings.Contains(res.Text, "place 2 in its queue, it is busy") {
		t.Errorf("result %+v, sent %v", res, p.sent)
	}
	if _, err := plan(t, tool, `{"target_instance_id":"1-2","message":"again"}`); err == nil {
		t.Error("planned without leave")
	}
}

func TestSendFindsTheRecipient(t *testing.T) {
	p := &post{peers: []relay.Peer{instance("1-2", 1, "api"), instance("3-4", 3, "web"), instance("5-6", 5, "web")}}
	tool := Send(p, Options{Leave: &leave{only: "1-2", left: 9}, MaxChars: 20})
	for _, tt := range []struct{ name, args, want string }{
		{"project", `{"target_instance_id":"API","message":"x"}`, ""},
		{"blanks", `{"target_instance_id":" 1-2 ","message":"x"}`, ""},
		{"alias", `{"target":"1-2","text":"x"}`, ""},
		{"two of one project", `{"target_instance_id":"web","message":"x"}`, "several instances"},
		{"nobody", `{"target_instance_id":"7-8","message":"x"}`, `no instance "7-8" runs`},
		{"nothing", `{"target_instance_id":" ","message":"x"}`, "list_agents tells the ids"},
		{"not this one", `{"target_instance_id":"3-4","message":"x"}`, "no leave for 3-4"},
		{"empty message", `{"target_instance_id":"1-2","message":" \n"}`, "needs a text"},
		{"long message", `{"target_instance_id":"1-2","message":"123456789012345678901"}`, "has 21 characters"},
	} {
		if _, err := plan(t, tool, tt.args); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// What was shown is what gets the message: an instance that is gone, or is another
// by now, gets none.
func TestSendLooksAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(p *post, l *leave)
		want   string
	}{
		{"gone", func(p *post, _ *leave) { p.peers = nil }, "no longer runs"},
		{"another project", func(p *post, _ *leave) { p.peers[0].Project = "bank" }, "no longer what was shown"},
		{"the turn ended", func(_ *post, l *leave) { l.left = 0 }, "no leave"},
	} {
		p := &post{peers: []relay.Peer{instance("1-2", 1, "api")}}
		l := &leave{only: "1-2", left: 1}
		a, err := plan(t, Send(p, Options{Leave: l, MaxChars: 20}), `{"target_instance_id":"1-2","message":"x"}`)
		if err != nil {
			t.Fatal(err)
		}
		tt.change(p, l)
		if res := do(t, a); res.Status != tools.Failed || !strings.Contains(res.Text, tt.want) || len(p.sent) != 0 {
			t.Errorf("%s: %+v, sent %v", tt.name, res, p.sent)
		}
	}
}

func TestSendTellsOfFailures(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("%w: its queue is full", relay.ErrRefused), "not sent: the other instance refused the message: its queue is full"},
		{relay.ErrGone, "may not have arrived"},
		{errors.New("other"), "may not have arrived"},
	} {
		p := &post{peers: []relay.Peer{instance("1-2", 1, "api")}, err: tt.err}
		a, err := plan(t, Send(p, Options{Leave: &leave{"1-2", 1}, MaxChars: 20}), `{"target_instance_id":"1-2","message":"x"}`)
		if err != nil {
			t.Fatal(err)
		}
		if res := do(t, a); res.Status != tools.Failed || !strings.Contains(res.Text, tt.want) {
			t.Errorf("%v: %+v", tt.err, res)
		}
	}
}

func TestAsksToTell(t *testing.T) {
	for text, want := range map[string]bool{
		"tell the other instance to run the tests":                    true,
		"Ask agent 3 for the schema.":                                 true,
		"Please send this to the peer":                                true,
		"message the other zcoder":                                    true,
		"let the other instance know that the port changed":           true,
		"fix it, then notify the agents":                              true,
		"The other agent should be told that":                         true,
		"reply to the instance in ../api: done":                       true,
		"ASK ZCODER'S PEER":                                           true,
		"hand the rest to the other agent":                            true,
		"fix the bug":                                                 false,
		"":                                                            false,
		"write an agent that plans":                                   false,
		"write to the other instance that it is done":                 true,
		"say to my other agent: stop":                                 true,
		"give the other agent the task":                               true,
		"report the numbers in the table below to the peer":           true,
		"send the numbers, all of them, for every single agent":       false,
		"Look at this and write a guide: guidance for coding agents":  false,
		"the agent's error message is wrong":                          false,
		"what is an agent?":                                           false,
		"set the user agent header and send it":                       false,
		"ask me before you change AGENTS.md":                          false,
		"tell me what internal/agent does":                            false,
		"let the agent loop run":                                      false,
		"tell me why. The agent is slow.":                             false,
		"explain zcoder":                                              false,
		"ask whether peer-review is needed":                           false,
		"Guidance for coding agents in 40 lines. State what it does.": false,
	} {
		if got := AsksToTell(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestNames(t *testing.T) {
	p := instance("4711-99", 4711, "Shop")
	for text, want := range map[string]bool{
		"ask shop to stop":                  true,
		"SHOP, stop":                        true,
		"(shop)":                            true,
		"the shop's tests":                  true,
		"Is it in shop? Look.":              true,
		"in the shop.":                      true,
		"instance 4711-99 knows":            true,
		"4711-99":                           true,
		"the shopping list, then the shop!": true,
		"shopping":                          false,
		"my-shop":                           false,
		"shop_floor":                        false,
		"shop.go":                           false,
		"my.shop":                           false,
		"src/shop":                          false,
		"shop/main.go":                      false,
		"14711-99":                          false,
		"4711-991":                          false,
		"4711":                              false,
		"":                                  false,
	} {
		if got := Names(text, p); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if Names("fix a bug", instance("1-2", 1, "a")) {
		t.Error("a project of one letter is named by every text")
	}
	if !Names("übernimm das für Größe jetzt", instance("1-2", 1, "größe")) {
		t.Error("letters beyond ASCII are not read")
	}
	if !Names("ask my project now", instance("1-2", 1, "my project")) {
		t.Error("a name with a blank is not found")
	}
}

// FuzzAsked holds for every text: nothing panics, and a text that names nothing
// asks for nothing.
func FuzzAsked(f *testing.F) {
	for _, seed := range []string{"tell the agent", "a.b", "ask shop", "\xff shop", "let . know agent", "İ shop", "shop\x00shop"} {
		f.Add(seed, "shop")
	}
	f.Fuzz(func(t *testing.T, text, project string) {
		low := strings.ToLower(text)
		if Names(text, instance("1-2", 1, project)) && !strings.Contains(low, "1-2") && !strings.Contains(low, strings.ToLower(project)) {
			t.Errorf("%q names %q", text, project)
		}
		word := false
		for _, noun := range []string{"instance", "agent", "peer", "zcoder"} {
			word = word || strings.Contains(low, noun)
		}
		if AsksToTell(text) && !word {
			t.Errorf("%q asks", text)
		}
	})
}
