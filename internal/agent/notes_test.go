package agent

import (
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
)

func TestNotesFollowTheRoundThatEntered(t *testing.T) {
	b := newBench(t, calls(`echo {"text":"a"}`, `echo {"text":"forbidden"}`, `echo {"text":"b"}`), calls(`echo {"text":"forbidden"}`), say("done"))
	b.cfg.Notes = func(entered []approval.Request) []event.Event {
		var names []string
		for _, r := range entered {
			names = append(names, r.Text)
		}
		return []event.Event{{Kind: event.Info, Text: "info"}, {Kind: event.Note, Text: "entered " + strings.Join(names, " ")}}
	}
	b.run(t.Context())
	last := b.model.requests[1].Messages
	if m := last[len(last)-1]; m.Content != "entered a b" || !m.Note {
		t.Errorf("the second request ends with %+v", m)
	}
	notes := 0
	for _, e := range b.events {
		if e.Kind == event.Note {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d notes, want one: nothing was authorised in the second round", notes)
	}
}

func TestWhatStandsBeforeAnInput(t *testing.T) {
	b := newBench(t, say("done"))
	in := event.Input{Text: "go", Before: []event.Event{{Kind: event.Note, Text: "a file"}, {Kind: event.Warning, Text: "a warning"}}}
	Run(t.Context(), b.cfg, Turn{ID: "t1", System: "sys", Input: in})
	var got []string
	for _, m := range b.model.requests[0].Messages {
		got = append(got, m.Content)
	}
	equal(t, "messages", got, []string{"sys", "a file", "go"})
}

func TestCarriedNotesOutliveCompaction(t *testing.T) {
	const skill = "SKILL: always count twice"
	b, model := compactBench(t, 8192, func(r chat.Request, n int) chat.Message {
		if r.Format != nil {
			return chat.Message{Role: chat.Assistant, Content: goodSummary}
		}
		if n > 100 {
			return chat.Message{Role: chat.Assistant, Content: "Done."}
		}
		return callMessage(fmt.Sprintf("round %d %s", n, strings.Repeat("output ", 100)))
	})
	b.cfg.Carry = func(before, after []chat.Message) []string {
		for _, m := range after {
			if m.Content == skill {
				return nil
			}
		}
		return []string{strings.Repeat("too long for the window ", 1000), skill}
	}
	Run(t.Context(), b.cfg, Turn{ID: "t", System: "sys", Input: event.Input{Text: "go", Before: []event.Event{{Kind: event.Note, Text: skill}}}})
	compactions := 0
	for _, e := range b.events {
		if e.Kind == event.Compacted {
			compactions++
			if err := paired(e.Messages); err != nil {
				t.Error(err)
			}
		}
	}
	if compactions < 2 {
		t.Errorf("%d compactions; want at least 2", compactions)
	}
	for i, r := range model.requests {
		copies := 0
		for _, m := range r.Messages {
			if m.Content == skill {
				copies++
			}
		}
		if r.Format == nil && copies != 1 {
			t.Fatalf("request %d holds the skill %d times", i, copies)
		}
	}
	warned := false
	for _, e := range b.events {
		warned = warned || e.Kind == event.Warning && strings.HasPrefix(e.Text, "1 notes to the model, such as the texts of skills, no longer fit")
	}
	if !warned {
		t.Error("nobody was told of the note that had no room")
	}
}
