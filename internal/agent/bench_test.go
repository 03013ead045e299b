package agent

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
)

// longHistory is n rounds with a call and its result of 2 KB each.
func longHistory(n int) []chat.Message {
	var h []chat.Message
	for i := range n {
		if i%10 == 0 {
			h = append(h, chat.Message{Role: chat.User, Content: fmt.Sprint("request ", i)})
		}
		c := callMessage("x")
		c.Calls[0].ID = fmt.Sprint("c", i)
		h = append(h, c, chat.Message{Role: chat.ToolRole, CallID: c.Calls[0].ID, ToolName: "echo", Content: strings.Repeat("a line of output\n", 120)})
	}
	return h
}

// BenchmarkCompact replaces a history of so many rounds by a checkpoint that the model
// writes at once.
func BenchmarkCompact(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, model := compactBench(b, n*600, func(chat.Request, int) chat.Message {
				return chat.Message{Role: chat.Assistant, Content: goodSummary}
			})
			c.cfg.Prepare = func(context.Context) (Setup, error) { return Setup{Window: model.window, Loaded: true}, nil }
			history := longHistory(n)
			for b.Loop() {
				c.events, model.requests = nil, nil
				if err := Compact(b.Context(), c.cfg, Turn{ID: "t", Origin: approval.OriginUser, System: "sys", History: history}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
