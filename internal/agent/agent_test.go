package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// fakeModel plays replies in order and keeps the requests.
type fakeModel struct {
	replies  []func(ctx context.Context, emit func(chat.Delta)) (chat.Reply, error)
	requests []chat.Request
}

func (m *fakeModel) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	m.requests = append(m.requests, r)
	if len(m.requests) > len(m.replies) {
		return chat.Reply{}, &chat.Error{Kind: chat.ServerFailure, Text: "the script is over"}
	}
	return m.replies[len(m.requests)-1](ctx, emit)
}

type reply = func(ctx context.Context, emit func(chat.Delta)) (chat.Reply, error)

func say(text string) reply {
	return func(_ context.Context, emit func(chat.Delta)) (chat.Reply, error) {
		emit(chat.Delta{Content: text})
		return chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: text}, Done: true, DoneReason: "stop", Usage: chat.Usage{PromptTokens: 10, OutputTokens: 5}}, nil
	}
}

func calls(list ...string) reply {
	return func(context.Context, func(chat.Delta)) (chat.Reply, error) {
		m := chat.Message{Role: chat.Assistant}
		for _, c := range list {
			name, args, _ := strings.Cut(c, " ")
			m.Calls = append(m.Calls, chat.ToolCall{ID: "same", Name: name, Args: json.RawMessage(args)})
		}
		return chat.Reply{Message: m, Done: true, DoneReason: "stop", Usage: chat.Usage{OutputTokens: 9}}, nil
	}
}

func whole(r chat.Reply) reply {
	return func(context.Context, func(chat.Delta)) (chat.Reply, error) { return r, nil }
}

// echoTool returns its text; "fail" fails and "withhold" is a rejected patch.
type echoTool struct {
	name  string
	blunt bool
	ran   *[]string
}

func (e echoTool) Spec() tools.Spec {
	return tools.Spec{Name: e.name, Blunt: e.blunt, Params: []tools.Param{{Name: "text", Type: tools.String, Required: true}}}
}

type withholding struct{}

func (withholding) Error() string        { return "the patch does not fit" }
func (withholding) WithholdsEdits() bool { return true }

func (e echoTool) Plan(_ context.Context, c tools.Call) (tools.Action, error) {
	text := c.Args.Text("text")
	if text == "withhold" {
		return tools.Action{}, withholding{}
	}
	req := approval.Request{CallID: c.ID, Tool: e.name, Effect: approval.Exec, Summary: e.name + " " + text, Text: text}
	return tools.NewAction(req, func(ctx context.Context, out tools.Progress) tools.Result {
		*e.ran = append(*e.ran, e.name+" "+text)
		out(text)
		res := tools.Result{Status: tools.OK, Text: text}
		switch text {
		case "fail":
			res.Status = tools.Failed
		case "patched":
			res.Changed = []string{"a.go"}
		case "wait":
			<-ctx.Done()
			res.Status = tools.Cancelled
		}
		return res
	}), nil
}

type policyFunc func(approval.Request) approval.Verdict

func (f policyFunc) Judge(r approval.Request) approval.Verdict { return f(r) }

type recorder struct{ records []string }

func (r *recorder) Record(rec approval.Record) error {
	r.records = append(r.records, rec.Kind)
	return nil
}

// bench is a loop with a fake model and one tool.
type bench struct {
	cfg    Config
	model  *fakeModel
	ran    []string
	events []event.Event
}

func newBench(t testing.TB, replies ...reply) *bench {
	t.Helper()
	b := &bench{model: &fakeModel{replies: replies}}
	reg, err := tools.NewRegistry(echoTool{name: "echo", ran: &b.ran}, echoTool{name: "write_file", blunt: true, ran: &b.ran}, echoTool{name: "apply_patch", ran: &b.ran}, Finish())
	if err != nil {
		t.Fatal(err)
	}
	ids := 0
	b.cfg = Config{
		Model: b.model,
		Gate: &approval.Gate{
			Policy: policyFunc(func(r approval.Request) approval.Verdict {
				if r.Text == "forbidden" {
					return approval.Verdict{Decision: approval.Deny, Rule: "test", Reason: "not here"}
				}
				if r.Text == "ask" {
					return approval.Verdict{}
				}
				return approval.Verdict{Decision: approval.Allow}
			}),
			Recorder: &recorder{},
		},
		Tools: reg, Emit: func(e event.Event) { b.events = append(b.events, e) }, Now: time.Now,
		NewID:             func() string { ids++; return fmt.Sprintf("c%d", ids) },
		MaxResult:         1000,
		IncompleteRetries: 3,
		Loops:             LoopLimits{Repeat: 3, Cycle: 4},
	}
	return b
}

func (b *bench) run(ctx context.Context) event.End {
	return Run(ctx, b.cfg, Turn{ID: "t1", Origin: approval.OriginUser, System: "sys", Input: event.Input{Text: "go"}})
}

// results returns status and text of each call's result.
func (b *bench) results() []string {
	var out []string
	for _, e := range b.events {
		if e.Kind == event.CallEnd {
			out = append(out, e.Result.Status+": "+e.Result.Text)
		}
	}
	return out
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s = %q; want %q", what, got, want)
	}
}

func TestTurnRunsCallsInOrderAndEndsOnce(t *testing.T) {
	b := newBench(t, calls(`echo {"text":"one"}`, `echo {"text":"fail"}`), say("done"))
	end := b.run(t.Context())
	equal(t, "reason", end.Reason, event.Complete)
	equal(t, "ran", b.ran, []string{"echo one", "echo fail"})
	equal(t, "results", b.results(), []string{"ok: one", "failed: fail"})
	equal(t, "rounds", end.Rounds, 2)
	equal(t, "failed", end.Failed, 1)
	ends := 0
	for _, e := range b.events {
		if e.Kind == event.TurnEnd {
			ends++
		}
	}
	equal(t, "number of turn ends", ends, 1)
	equal(t, "last event", b.events[len(b.events)-1].Kind, event.TurnEnd)
}

func TestCallsGetIDsOfTheirOwn(t *testing.T) {
	b := newBench(t, calls(`echo {"text":"a"}`, `echo {"text":"b"}`), say("done"))
	b.run(t.Context())
	last := b.model.requests[1].Messages
	equal(t, "ids", []string{last[2].Calls[0].ID, last[2].Calls[1].ID, last[3].CallID, last[4].CallID}, []string{"c1", "c2", "c1", "c2"})
	equal(t, "tool name", last[3].ToolName, "echo")
}

func TestEachRequestExtendsTheOneBefore(t *testing.T) {
	b := newBench(t, calls(`echo {"text":"a"}`), calls(`echo {"text":"b"}`), say("done"))
	b.run(t.Context())
	for i := 1; i < len(b.model.requests); i++ {
		before, after := b.model.requests[i-1].Messages, b.model.requests[i].Messages
		equal(t, "prefix", after[:len(before)], before)
	}
}

func TestBrokenCallsComeBackAsResults(t *testing.T) {
	for _, tt := range []struct{ name, call, want string }{
		{"unknown tool", `Bash {"command":"ls"}`, "there is no tool"},
		{"duplicate keys", `echo {"text":"ls","Text":"rm"}`, "ambiguous arguments"},
		{"cut arguments", `echo {"text": "a`, "not valid JSON"},
		{"missing argument", `echo {}`, `"text" is missing`},
		{"denied by rule", `echo {"text":"forbidden"}`, "denied: not here"},
		{"nobody to ask", `echo {"text":"ask"}`, "nobody is there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, calls(tt.call), say("I see"))
			end := b.run(t.Context())
			if got := strings.Join(b.results(), "|"); !strings.Contains(got, tt.want) {
				t.Errorf("results = %q; want %q in them", got, tt.want)
			}
			equal(t, "reason", end.Reason, event.Complete)
			equal(t, "ran", b.ran, []string(nil))
		})
	}
}

func TestFinish(t *testing.T) {
	t.Run("ends the turn", func(t *testing.T) {
		b := newBench(t, calls(`finish {"status":"blocked","response":"no key"}`))
		end := b.run(t.Context())
		equal(t, "end", []string{string(end.Reason), end.Text}, []string{"blocked", "no key"})
	})
	t.Run("beside others fails and they run", func(t *testing.T) {
		b := newBench(t, calls(`finish {"status":"complete","response":"x"}`, `echo {"text":"a"}`), say("done"))
		b.run(t.Context())
		equal(t, "ran", b.ran, []string{"echo a"})
		if got := b.results()[0]; !strings.Contains(got, "only call of a reply") {
			t.Errorf("finish = %q", got)
		}
	})
}

func TestRejectedPatchWithholdsBluntEdits(t *testing.T) {
	b := newBench(t,
		calls(`apply_patch {"text":"withhold"}`), calls(`write_file {"text":"a"}`),
		calls(`apply_patch {"text":"patched"}`), calls(`write_file {"text":"b"}`), say("done"))
	b.run(t.Context())
	equal(t, "ran", b.ran, []string{"apply_patch patched", "write_file b"})
}

func TestTroubleIsCorrectedAndBounded(t *testing.T) {
	empty := chat.Reply{Message: chat.Message{Role: chat.Assistant}, Done: true, DoneReason: "stop"}
	swallowed := empty
	swallowed.Usage.OutputTokens = 30
	thinking := empty
	thinking.Message.Thinking = "hm"
	degenerate := chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: "aaaa"}}
	cut := empty
	cut.DoneReason = "length"
	for _, tt := range []struct {
		name string
		r    chat.Reply
		want string
	}{
		{"empty", empty, "was empty"},
		{"swallowed call", swallowed, "could not be read"},
		{"only thinking", thinking, "You thought"},
		{"repetition", degenerate, "repeated itself"},
		{"cut", cut, "output limit"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, whole(tt.r), say("better"))
			end := b.run(t.Context())
			equal(t, "reason", end.Reason, event.Complete)
			last := b.model.requests[1].Messages
			note := last[len(last)-1]
			if !strings.Contains(note.Content, tt.want) || !note.Note {
				t.Errorf("correction = %+v; want %q", note, tt.want)
			}
			equal(t, "messages", len(last), 3)
		})
	}
	t.Run("bounded", func(t *testing.T) {
		b := newBench(t, whole(empty), whole(empty), whole(empty), whole(empty), say("too late"))
		end := b.run(t.Context())
		equal(t, "reason", end.Reason, event.Errored)
		equal(t, "requests", len(b.model.requests), 4)
	})
}

func TestModelErrorKeepsPartialTextAndRunsNothing(t *testing.T) {
	broken := func(_ context.Context, emit func(chat.Delta)) (chat.Reply, error) {
		emit(chat.Delta{Content: "half"})
		partial := chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: "half", Calls: []chat.ToolCall{{Name: "echo", Args: json.RawMessage(`{"text":"x"}`)}}}}
		return chat.Reply{}, &chat.Error{Kind: chat.BrokenStream, Text: "cut", Hint: "try again", Partial: partial}
	}
	b := newBench(t, broken)
	end := b.run(t.Context())
	equal(t, "end", []string{string(end.Reason), end.Text, end.Hint}, []string{"error", "cut", "try again"})
	equal(t, "ran", b.ran, []string(nil))
	var history []chat.Message
	for _, e := range b.events {
		history = event.Append(history, e)
	}
	equal(t, "history", history[1].Content, "half")
	equal(t, "calls kept", len(history[1].Calls), 0)
}

func TestCancelGivesEveryCallAResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := newBench(t, calls(`echo {"text":"wait"}`, `echo {"text":"b"}`))
	b.cfg.Emit = func(e event.Event) {
		b.events = append(b.events, e)
		if e.Kind == event.Output {
			cancel()
		}
	}
	end := b.run(ctx)
	equal(t, "reason", end.Reason, event.Cancelled)
	equal(t, "results", b.results(), []string{"cancelled: wait", "skipped: not executed: the turn was stopped"})
}

func TestLimits(t *testing.T) {
	t.Run("rounds", func(t *testing.T) {
		b := newBench(t, calls(`echo {"text":"1"}`), calls(`echo {"text":"2"}`), calls(`echo {"text":"3"}`))
		b.cfg.MaxRounds = 2
		end := b.run(t.Context())
		equal(t, "end", []string{string(end.Reason), fmt.Sprint(end.Rounds)}, []string{"limit", "2"})
	})
	t.Run("time", func(t *testing.T) {
		b := newBench(t, calls(`echo {"text":"wait"}`))
		b.cfg.MaxTime = 10 * time.Millisecond
		equal(t, "reason", b.run(t.Context()).Reason, event.Limited)
	})
}

func TestLoops(t *testing.T) {
	same := calls(`echo {"text":"a"}`)
	other := calls(`echo {"text":"b"}`)
	t.Run("identical rounds", func(t *testing.T) {
		b := newBench(t, same, same, same, same)
		end := b.run(t.Context())
		equal(t, "reason", end.Reason, event.Looped)
		equal(t, "ran", b.ran, []string{"echo a", "echo a", "echo a"})
	})
	t.Run("alternating", func(t *testing.T) {
		b := newBench(t, same, other, same, other, same, other, same)
		equal(t, "reason", b.run(t.Context()).Reason, event.Looped)
		equal(t, "ran", len(b.ran), 6)
	})
	t.Run("a changed round after the warning goes on", func(t *testing.T) {
		b := newBench(t, same, same, same, other, say("done"))
		equal(t, "reason", b.run(t.Context()).Reason, event.Complete)
	})
	t.Run("key order does not hide it", func(t *testing.T) {
		x := calls(`zzz {"a":1,"b":2}`)
		y := calls(`zzz {"b":2,"a":1}`)
		b := newBench(t, x, y, x, y)
		equal(t, "reason", b.run(t.Context()).Reason, event.Looped)
	})
}

func TestDeltasAreShownWholeAndInOrder(t *testing.T) {
	b := newBench(t, func(_ context.Context, emit func(chat.Delta)) (chat.Reply, error) {
		emit(chat.Delta{Thinking: "a"})
		for range 3000 {
			emit(chat.Delta{Content: "word "})
		}
		return chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: strings.Repeat("word ", 3000), Thinking: "a"}, Done: true}, nil
	})
	b.run(t.Context())
	var text strings.Builder
	events := 0
	for _, e := range b.events {
		if e.Kind == event.Content {
			text.WriteString(e.Text)
			events++
		}
	}
	equal(t, "text", text.String() == strings.Repeat("word ", 3000), true)
	if events > 100 {
		t.Errorf("%d events for 15 kB of text", events)
	}
}

func TestPermitCoversOneRequestOnce(t *testing.T) {
	var ran []string
	tool := echoTool{name: "echo", ran: &ran}
	action, err := tool.Plan(t.Context(), tools.Call{ID: "c1", Args: tools.NewArgs(map[string]any{"text": "x"})})
	if err != nil {
		t.Fatal(err)
	}
	gate := &approval.Gate{Policy: policyFunc(func(approval.Request) approval.Verdict { return approval.Verdict{Decision: approval.Allow} }), Recorder: &recorder{}}
	permit, err := gate.Authorize(t.Context(), action.Request())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := action.ForTurn("t2", approval.OriginPeer).Do(t.Context(), permit, nil); !errors.Is(err, approval.ErrNoPermit) {
		t.Errorf("Do of another request = %v; want ErrNoPermit", err)
	}
	if _, err := action.Do(t.Context(), approval.Permit{}, nil); !errors.Is(err, approval.ErrNoPermit) {
		t.Errorf("Do with the zero permit = %v; want ErrNoPermit", err)
	}
	if _, err := action.Do(t.Context(), permit, nil); err != nil {
		t.Errorf("Do = %v", err)
	}
	if _, err := action.Do(t.Context(), permit, nil); !errors.Is(err, approval.ErrNoPermit) {
		t.Errorf("second Do = %v; want ErrNoPermit", err)
	}
	equal(t, "ran", ran, []string{"echo x"})
}
