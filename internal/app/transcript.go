package app

import (
	"fmt"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// transcript is a stored session as it is exported.
type transcript struct {
	ID        string        `json:"id"`
	Title     string        `json:"title"`
	Workspace string        `json:"workspace"`
	Profile   string        `json:"profile"`
	Model     string        `json:"model,omitempty"`
	Turns     int           `json:"turns"`
	Damaged   int           `json:"damaged_lines,omitempty"`
	Events    []event.Event `json:"events"` // without pieces of replies that are there as a whole
}

func loadTranscript(st *store.Store, id string) (transcript, error) {
	loaded, err := st.Load(id)
	if err != nil {
		return transcript{}, err
	}
	info := loaded.Session()
	t := transcript{ID: id, Workspace: info.Workspace, Profile: info.Profile, Model: info.Model, Damaged: loaded.Bad, Events: wholeReplies(loaded.Events)}
	for _, e := range t.Events {
		switch {
		case e.Kind == event.TurnStart:
			t.Turns++
		case e.Kind == event.Titled:
			t.Title = e.Text
		case e.Kind == event.User && t.Title == "":
			t.Title, _, _ = strings.Cut(strings.TrimSpace(e.Text), "\n")
		}
	}
	return t, nil
}

// wholeReplies leaves out the pieces of a reply that follows as a whole.
func wholeReplies(events []event.Event) []event.Event {
	out := make([]event.Event, 0, len(events))
	whole := false // a whole reply comes later in the turn, nothing but pieces before it
	for i := len(events) - 1; i >= 0; i-- {
		switch e := events[i]; e.Kind {
		case event.Reply:
			whole = true
			out = append(out, e)
		case event.Content, event.Thinking:
			if !whole {
				out = append(out, e)
			}
		case event.TurnStart:
			whole = false
			out = append(out, e)
		default:
			out = append(out, e)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// brief is the session in short, not yet safe for a terminal.
func (t transcript) brief() []string {
	lines := []string{
		fmt.Sprintf("session %s · %s", t.ID, t.Title),
		fmt.Sprintf("%s · %s · %s · %s", t.Workspace, t.Profile, t.Model, plural(t.Turns, "turn", "turns")),
	}
	if t.Damaged > 0 {
		lines = append(lines, plural(t.Damaged, "damaged line", "damaged lines"))
	}
	n := 0
	for _, e := range t.Events {
		switch e.Kind {
		case event.User:
			n++
			lines = append(lines, "", fmt.Sprintf("%d  %s", n, strings.ReplaceAll(strings.TrimSpace(e.Text), "\n", "\n   ")))
		case event.Shell:
			lines = append(lines, "   "+strings.ReplaceAll(e.Text, "\n", "\n   "))
		case event.TurnEnd:
			for _, line := range endLines(*e.End) {
				lines = append(lines, "   "+line)
			}
		}
	}
	return lines
}

// markdown is the whole session as Markdown. What came from tools and commands stands
// in fences that it cannot close.
func (t transcript) markdown() string {
	m := &markdown{}
	m.line("# " + oneLine(t.Title))
	m.line("")
	m.line(fmt.Sprintf("Session %s · workspace %s · profile %s · model %s · %s", t.ID, span(t.Workspace), t.Profile, span(t.Model), plural(t.Turns, "turn", "turns")))
	for _, e := range t.Events {
		m.event(e)
	}
	m.flush()
	return m.b.String()
}

type markdown struct {
	b      strings.Builder
	pieces strings.Builder // of a reply that was cut short
}

func (m *markdown) line(text string) { m.b.WriteString(text + "\n") }

func (m *markdown) heading(text string, at time.Time) {
	m.line("")
	m.line("## " + text + " · " + at.UTC().Format("2006-01-02 15:04:05"))
	m.line("")
}

// flush writes the pieces of a reply that has no whole.
func (m *markdown) flush() {
	if m.pieces.Len() > 0 {
		m.line("")
		m.line(m.pieces.String())
		m.pieces.Reset()
	}
}

func (m *markdown) event(e event.Event) {
	if e.Kind != event.Content && e.Kind != event.Thinking {
		m.flush()
	}
	switch e.Kind {
	case event.User:
		m.heading("Request", e.Time)
		m.line(e.Text)
		if len(e.Images) > 0 {
			m.line("\n" + plural(len(e.Images), "image", "images"))
		}
	case event.Content:
		m.pieces.WriteString(e.Text)
	case event.Reply:
		if text := strings.TrimSpace(e.Reply.Message.Content); text != "" {
			m.heading("Answer", e.Time)
			m.line(text)
		}
	case event.CallStart:
		m.line("\n- call " + span(e.Call.Summary))
	case event.Asked:
		m.fenced("asked", e.Question.Text)
	case event.Answered:
		m.line("\nanswer: " + oneLine(strings.TrimSpace(e.Answer.Choice+" "+e.Answer.Reason)))
	case event.CallEnd:
		m.result(*e.Result)
	case event.Shell:
		m.fenced("command of the user", e.Text)
	case event.Printed:
		m.fenced("printed", e.Text)
	case event.Note:
		m.fenced("note to the model", e.Text)
	case event.Info, event.Warning:
		m.line("\n" + string(e.Kind) + ": " + oneLine(e.Text))
	case event.Compacted:
		m.line("\nThe history before was shortened for the model (" + oneLine(e.Text) + ").")
	case event.TurnEnd:
		m.line("")
		for _, line := range endLines(*e.End) {
			m.line("> " + line)
		}
	}
}

func (m *markdown) result(r event.Result) {
	what := r.Status
	if r.Line != "" {
		what += ", " + oneLine(r.Line)
	}
	m.fenced(what, r.Text)
	if r.Diff != "" {
		m.fenced("diff", r.Diff)
	}
}

// fenced writes text in a fence that is longer than every run of backticks in it.
func (m *markdown) fenced(label, text string) {
	fence := strings.Repeat("`", max(3, longestTicks(text)+1))
	m.line("\n" + oneLine(label) + ":\n")
	m.line(fence)
	m.line(strings.TrimSuffix(text, "\n"))
	m.line(fence)
}

// span is text as one span of code.
func span(text string) string {
	ticks := strings.Repeat("`", longestTicks(text)+1)
	return ticks + " " + oneLine(text) + " " + ticks
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func longestTicks(text string) int {
	longest, run := 0, 0
	for i := range len(text) {
		if text[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	return longest
}
