package agent

import (
	"context"
	"encoding/json"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// TestBrokenArgumentsCanBeStored: an event with them must be JSON, or it would be
// missing from the log, and the model must still learn what is wrong with them.
func TestBrokenArgumentsCanBeStored(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply reply
		want  []string
	}{
		{"cut short", calls(`echo {"text":"a`), []string{"failed: error: echo: the arguments are not valid JSON (they end too early). Arguments are one flat JSON object {text: string}"}},
		{"in single quotes", say("<|tool_call_start|>[echo(text='a')]<|tool_call_end|>"), []string{"ok: a"}},
		{"of a reply that broke off", func(_ context.Context, emit func(chat.Delta)) (chat.Reply, error) {
			emit(chat.Delta{Content: "half"})
			partial := chat.Message{Role: chat.Assistant, Content: "half", Calls: []chat.ToolCall{{Name: "echo", Args: json.RawMessage(`{"te`)}}}
			return chat.Reply{}, &chat.Error{Kind: chat.ServerFailure, Text: "gone", Partial: chat.Reply{Message: partial}}
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.reply, say("done"))
			b.run(t.Context())
			for _, e := range b.events {
				if _, err := json.Marshal(e); err != nil {
					t.Errorf("%s: %v", e.Kind, err)
				}
			}
			if b.events[len(b.events)-1].Kind != event.TurnEnd {
				t.Error("the turn has no end")
			}
			equal(t, "results", b.results(), tt.want)
		})
	}
}
