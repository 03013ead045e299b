package agent

import (
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// outward is a tool that writes outside.
type outward struct{ echoTool }

func (outward) WritesOutside() bool { return true }

// staged is a bench with staged exposure and a tool that writes outside.
func staged(t *testing.T, replies ...reply) *bench {
	b := newBench(t, replies...)
	reg, err := tools.NewRegistry(echoTool{name: "echo", ran: &b.ran}, outward{echoTool{name: "send", ran: &b.ran}}, Finish())
	if err != nil {
		t.Fatal(err)
	}
	b.cfg.Tools, b.cfg.Staged = reg, true
	return b
}

func toolNames(r chat.Request) string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return strings.Join(names, " ")
}

func TestStagedExposure(t *testing.T) {
	for name, c := range map[string]struct {
		routing string
		rest    []reply
		tools   string // of the second request
		text    string
	}{
		"respond":   {`{"mode":"respond","response":"It is four.","reason":"sum"}`, nil, "", "It is four."},
		"workspace": {`{"mode":"workspace","response":"","reason":"reads"}`, []reply{say("done")}, "echo finish", "done"},
		"external":  {`{"mode":"external","response":"","reason":"mail"}`, []reply{say("sent")}, "echo send finish", "sent"},
		"unknown":   {`{"mode":"everything"}`, []reply{say("done")}, "echo finish", "done"},
		"no JSON":   {`I will send a mail`, []reply{say("done")}, "echo finish", "done"},
		"empty":     {`{"mode":"respond","response":" ","reason":""}`, []reply{say("done")}, "echo finish", "done"},
	} {
		t.Run(name, func(t *testing.T) {
			b := staged(t, append([]reply{say(c.routing)}, c.rest...)...)
			end := b.run(t.Context())
			equal(t, "reason", end.Reason, event.Complete)
			first := b.model.requests[0]
			if len(first.Tools) != 0 || string(first.Format) != routeSchema || !strings.Contains(first.Messages[2].Content, "with send") {
				t.Errorf("routing request: %d tools, format %s, %q", len(first.Tools), first.Format, first.Messages[2].Content)
			}
			equal(t, "requests", len(b.model.requests), 1+len(c.rest))
			if len(c.rest) > 0 {
				second := b.model.requests[1]
				equal(t, "tools", toolNames(second), c.tools)
				equal(t, "messages", len(second.Messages), 2)
			}
			var text string
			for _, e := range b.events {
				if e.Kind == event.Reply {
					text = e.Reply.Message.Content
				}
			}
			equal(t, "answer", text, c.text)
		})
	}
}

func TestStagedExposureWithholdsTheDispatchToo(t *testing.T) {
	b := staged(t, say(`{"mode":"workspace","response":"","reason":""}`), calls(`send {"text":"x"}`), say("done"))
	b.run(t.Context())
	equal(t, "ran", len(b.ran), 0)
	if r := b.results(); !strings.Contains(r[0], `there is no tool "send"`) {
		t.Errorf("result = %s", r[0])
	}
}

func TestStagedExposureInAGoalDoesNotAnswer(t *testing.T) {
	b := staged(t, say(`{"mode":"respond","response":"done","reason":""}`), calls(`finish {"status":"complete","response":"really done"}`))
	b.cfg.RequireFinish = true
	equal(t, "text", b.run(t.Context()).Text, "really done")
}

func TestAChangedPrefixIsSaidAndForgetsTheCount(t *testing.T) {
	specs := newBench(t).cfg.Tools.Specs()
	for name, c := range map[string]struct{ before, want string }{
		"tools": {prefixOf("", "sys", specs[1:]), "prompt re-read: the list of tools changed since the last request"},
		"both":  {prefixOf("", "old", specs[1:]), "prompt re-read: the system prompt and the list of tools changed since the last request"},
		"model": {prefixOf("other", "sys", specs), ""},
	} {
		t.Run(name, func(t *testing.T) {
			// The stand-in counts 10 tokens: were 5000 still expected, that would be a
			// prompt that was cut.
			b := newBench(t, say("hi"))
			end := Run(t.Context(), b.cfg, Turn{ID: "t", Origin: approval.OriginUser, System: "sys", Input: event.Input{Text: "go"}, Known: Known{Tokens: 5000, Prefix: c.before}})
			equal(t, "reason", end.Reason, event.Complete)
			said := ""
			for _, e := range b.events {
				if e.Kind == event.Info {
					said += e.Text
				}
			}
			equal(t, "said", said, c.want)
		})
	}
}
