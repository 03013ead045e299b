package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

const goodSummary = `{"schema_version":1,"objective":"fix it","constraints":[],"decisions":["keep the API"],"artifacts":["a.go"],"facts":[],"completed":["read a.go"],"active":[],"blocked":[],"next":["test"]}`

// counting answers with the token count of its request, four characters a token, and
// refuses what does not fit, like a server asked not to cut.
type counting struct {
	window   int
	next     func(r chat.Request, n int) chat.Message
	requests []chat.Request
}

func (c *counting) Chat(_ context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	c.requests = append(c.requests, r)
	size := 0
	for _, m := range r.Messages {
		size += len(m.Content)
		for _, call := range m.Calls {
			size += len(call.Name) + len(call.Args)
		}
	}
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	size /= 4
	if size > c.window {
		return chat.Reply{}, &chat.Error{Kind: chat.Overflow, Text: "the input length exceeds the context length"}
	}
	m := c.next(r, len(c.requests))
	emit(chat.Delta{Content: m.Content})
	return chat.Reply{Message: m, Done: true, DoneReason: "stop", Usage: chat.Usage{PromptTokens: size, OutputTokens: len(m.Content)/4 + 20}}, nil
}

func callMessage(text string) chat.Message {
	return chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{Name: "echo", Args: tools.NewArgs(map[string]any{"text": text}).JSON()}}}
}

func compactBench(t testing.TB, window int, next func(r chat.Request, n int) chat.Message) (*bench, *counting) {
	b := newBench(t)
	model := &counting{window: window, next: next}
	b.cfg.Model = model
	b.cfg.Prepare = func(context.Context) (Setup, error) { return Setup{Window: window, Loaded: true}, nil }
	b.cfg.MaxResult = 4000
	b.cfg.MaxOutput = window / 8
	b.cfg.Compact = CompactLimits{Percent: 85, MaxTokens: 2048, KeepUser: 4096, KeepRecent: 16384, MinYield: 2048, Retries: 2}
	return b, model
}

// paired reports a tool result without its call, or a call without its result.
func paired(history []chat.Message) error {
	open := map[string]bool{}
	for i, m := range history {
		switch m.Role {
		case chat.Assistant:
			if len(open) > 0 {
				return fmt.Errorf("message %d: calls without results %v", i, open)
			}
			for _, c := range m.Calls {
				open[c.ID] = true
			}
		case chat.ToolRole:
			if !open[m.CallID] {
				return fmt.Errorf("message %d: a result without its call", i)
			}
			delete(open, m.CallID)
		}
	}
	return nil
}

func TestA200RoundTurnAt8kKeepsTheRequest(t *testing.T) {
	const request = "Rename the function Frobnicate in every file, never touch vendor."
	b, model := compactBench(t, 8192, func(r chat.Request, n int) chat.Message {
		if r.Format != nil {
			return chat.Message{Role: chat.Assistant, Content: goodSummary}
		}
		if n > 200 {
			return chat.Message{Role: chat.Assistant, Content: "All renamed."}
		}
		return callMessage(fmt.Sprintf("round %d %s", n, strings.Repeat("output ", 100)))
	})
	end := Run(t.Context(), b.cfg, Turn{ID: "t", System: "sys", Input: event.Input{Text: request}})
	if end.Reason != event.Complete {
		t.Fatalf("end = %+v", end)
	}
	compactions := 0
	var history []chat.Message
	for _, e := range b.events {
		history = event.Append(history, e)
		if e.Kind == event.Compacted {
			compactions++
			if err := paired(e.Messages); err != nil {
				t.Error(err)
			}
		}
	}
	if compactions < 3 {
		t.Errorf("%d compactions; want at least 3", compactions)
	}
	for i, r := range model.requests {
		all := ""
		for _, m := range r.Messages {
			all += m.Content
		}
		if r.Format == nil && !strings.Contains(all, request) {
			t.Fatalf("request %d has lost the user's words", i)
		}
		if r.NumCtx != 8192 {
			t.Fatalf("request %d has num_ctx %d", i, r.NumCtx)
		}
	}
}

func TestCompactionSteps(t *testing.T) {
	long := strings.Repeat("word ", 1500)
	fill := func(n int) chat.Message {
		if n > 12 {
			return chat.Message{Role: chat.Assistant, Content: "done"}
		}
		m := callMessage("x" + fmt.Sprint(n))
		m.Content = long[:4000]
		return m
	}
	for _, tt := range []struct {
		name    string
		summary func(n int) chat.Message
		want    string
	}{
		{"valid summary", func(int) chat.Message { return chat.Message{Content: goodSummary} }, "Decisions: keep the API"},
		{"corrected", func(n int) chat.Message {
			if n == 1 {
				return chat.Message{Content: "not JSON"}
			}
			return chat.Message{Content: goodSummary}
		}, "Objective: fix it"},
		{"plain text at last", func(n int) chat.Message {
			return chat.Message{Content: "The user asked to fix the bug; a.go was read and changed."}
		}, "The user asked to fix the bug"},
		{"nothing usable", func(int) chat.Message { return chat.Message{Content: "no"} }, "These calls were made:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			summaries := 0
			rounds := 0
			b, model := compactBench(t, 8192, func(r chat.Request, _ int) chat.Message {
				last := r.Messages[len(r.Messages)-1].Content
				if r.Tools == nil || strings.Contains(last, "Write") {
					summaries++
					m := tt.summary(summaries)
					m.Role = chat.Assistant
					return m
				}
				rounds++
				return fill(rounds)
			})
			end := Run(t.Context(), b.cfg, Turn{ID: "t", System: "sys", Input: event.Input{Text: "fix the bug"}})
			equal(t, "reason", end.Reason, event.Complete)
			found := false
			for _, e := range b.events {
				if e.Kind == event.Compacted {
					found = found || strings.Contains(e.Messages[0].Content, tt.want)
				}
			}
			if !found {
				t.Errorf("no checkpoint with %q in %d requests", tt.want, len(model.requests))
			}
		})
	}
}

func TestOverflowIsCompactedAndRetriedOnce(t *testing.T) {
	refused := 0
	b := newBench(t)
	b.cfg.Model = modelFunc(func(_ context.Context, r chat.Request, _ func(chat.Delta)) (chat.Reply, error) {
		if r.Format != nil {
			return chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: goodSummary}, Done: true}, nil
		}
		if len(r.Messages) > 12 {
			refused++
			return chat.Reply{}, &chat.Error{Kind: chat.Overflow, Text: "the input length exceeds the context length"}
		}
		return chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: "fine"}, Done: true, DoneReason: "stop"}, nil
	})
	b.cfg.Compact = CompactLimits{Percent: 85, MaxTokens: 2048, KeepUser: 4096, KeepRecent: 16384, MinYield: 2048, Retries: 2}
	var history []chat.Message
	for i := range 10 {
		history = append(history, chat.Message{Role: chat.User, Content: fmt.Sprintf("request %d", i)}, chat.Message{Role: chat.Assistant, Content: strings.Repeat("long ", 1000)})
	}
	end := Run(t.Context(), b.cfg, Turn{ID: "t", System: "sys", History: history, Input: event.Input{Text: "newest"}})
	equal(t, "reason", end.Reason, event.Complete)
	equal(t, "refused", refused, 1)
}

func TestAServerThatCutsIsNoticed(t *testing.T) {
	n := 0
	b := newBench(t)
	b.cfg.Model = modelFunc(func(_ context.Context, r chat.Request, _ func(chat.Delta)) (chat.Reply, error) {
		n++
		u := chat.Usage{PromptTokens: 900, OutputTokens: 5}
		if n == 2 {
			u.PromptTokens = 300 // less than before, though the history grew
		}
		m := callMessage(fmt.Sprint(n))
		if n > 2 {
			m = chat.Message{Role: chat.Assistant, Content: "done"}
		}
		return chat.Reply{Message: m, Done: true, DoneReason: "stop", Usage: u}, nil
	})
	end := b.run(t.Context())
	equal(t, "reason", end.Reason, event.Complete)
	said := false
	for _, e := range b.events {
		said = said || e.Kind == event.Warning && strings.Contains(e.Text, "the server cut the prompt: it read only 300 tokens")
	}
	if !said {
		t.Error("the cut was not said")
	}
	equal(t, "ran", b.ran, []string{"echo 1"})
}

func TestCompactionThatSavesLittleChangesNothing(t *testing.T) {
	b := newBench(t)
	b.cfg.Compact = CompactLimits{Percent: 85, MaxTokens: 2048, KeepUser: 4096, KeepRecent: 16384, MinYield: 2048}
	b.cfg.Model = modelFunc(func(context.Context, chat.Request, func(chat.Delta)) (chat.Reply, error) {
		return chat.Reply{Message: chat.Message{Role: chat.Assistant, Content: goodSummary}, Done: true}, nil
	})
	r := newRun(b.cfg, Turn{History: []chat.Message{{Role: chat.User, Content: "hello"}}})
	if err := r.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.compact(t.Context(), true); !errors.Is(err, errNoYield) {
		t.Errorf("compact = %v; want errNoYield", err)
	}
	equal(t, "history", r.history, []chat.Message{{Role: chat.User, Content: "hello"}})
}

func TestPinKeepsFirstAndNewest(t *testing.T) {
	m := &meter{perChar: 1}
	got := pin([]string{"first", "second", "third", "newest"}, 20, m)
	equal(t, "pinned", got, []string{"first", "third", "newest"})
	got = pin([]string{strings.Repeat("f", 100), "b", strings.Repeat("n", 100)}, 20, m)
	equal(t, "number pinned", len(got), 2)
}

type modelFunc func(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)

func (f modelFunc) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	return f(ctx, r, emit)
}
