package acp

import (
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// maxTail bounds the output of a running call that is sent along, in bytes. The result
// holds what the model gets of it.
const maxTail = 4096

// finishTool is the tool with which a model ends its turn: its text is shown, not the
// call.
const finishTool = "finish"

// stream turns the events of a conversation into updates.
type stream struct {
	root  string // the workspace
	calls map[string]event.Call
	at    string // the call that runs, by id
	tail  string // the end of its output

	said, thought bool // pieces of the reply under way were sent
	direct        bool // the last call was a command of the person
	spoke         bool // the turn has sent a message
}

func newStream(root string) stream { return stream{root: root, calls: map[string]event.Call{}} }

// updates are what the editor is sent of one event. past marks events from before the
// conversation was opened.
func (t *stream) updates(e event.Event, past bool) []sdk.SessionUpdate {
	switch e.Kind {
	case event.TurnStart:
		t.said, t.thought, t.spoke = false, false, false
	case event.User:
		return []sdk.SessionUpdate{sdk.UpdateUserMessageText(userText(e))}
	case event.Shell:
		return t.shell(e)
	case event.Thinking:
		t.thought = true
		return think(e.Text)
	case event.Content:
		t.said = true
		return t.say(e.Text)
	case event.Reply:
		return t.reply(e.Reply, past)
	case event.CallStart:
		return t.called(*e.Call)
	case event.Progress:
		return t.progress(e.State)
	case event.Output:
		return t.output(e.Text)
	case event.CallEnd:
		return t.result(e.Result)
	case event.Info:
		return think(e.Text + "\n\n")
	case event.Compacted:
		return think(compactedText(e) + "\n\n")
	case event.Printed:
		return t.say("\n" + fenced(e.Text) + "\n")
	case event.Warning:
		return t.say(quote("warning", e.Text))
	case event.Titled:
		return []sdk.SessionUpdate{{SessionInfoUpdate: &sdk.SessionSessionInfoUpdate{Title: &e.Text}}}
	case event.GoalState:
		return t.goal(*e.Goal)
	case event.TurnEnd:
		return t.end(*e.End, past)
	}
	return nil
}

func (t *stream) say(text string) []sdk.SessionUpdate {
	if text == "" {
		return nil
	}
	t.spoke = true
	return []sdk.SessionUpdate{sdk.UpdateAgentMessageText(text)}
}

func think(text string) []sdk.SessionUpdate {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []sdk.SessionUpdate{sdk.UpdateAgentThoughtText(text)}
}

func userText(e event.Event) string {
	if n := len(e.Images); n > 0 {
		return fmt.Sprintf("%s\n[with %d images]", e.Text, n)
	}
	return e.Text
}

// shell shows what a person ran on the terminal; a command that came as a prompt was
// shown as a call.
func (t *stream) shell(e event.Event) []sdk.SessionUpdate {
	if t.direct {
		t.direct = false
		return nil
	}
	return []sdk.SessionUpdate{sdk.UpdateUserMessageText(fenced(e.Text))}
}

func compactedText(e event.Event) string {
	if e.Text == event.Rewound {
		return "the conversation forgets the turns that were undone"
	}
	return "the conversation so far was replaced by a summary; the model goes on from it"
}

// reply sends what no pieces brought, and how full the window is.
func (t *stream) reply(r *event.ModelReply, past bool) []sdk.SessionUpdate {
	var list []sdk.SessionUpdate
	if !t.thought {
		list = append(list, think(r.Message.Thinking)...)
	}
	if !t.said {
		list = append(list, t.say(r.Message.Content)...)
	}
	t.said, t.thought = false, false
	if u := r.Usage; !past && r.Window > 0 && u.PromptTokens > 0 {
		list = append(list, sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{Size: r.Window, Used: u.PromptTokens + u.OutputTokens}})
	}
	return list
}

func (t *stream) called(c event.Call) []sdk.SessionUpdate {
	if c.Name == finishTool {
		return nil
	}
	t.calls[c.ID], t.at, t.tail = c, c.ID, ""
	return []sdk.SessionUpdate{sdk.StartToolCall(sdk.ToolCallId(c.ID), title(c.Summary, c.Name),
		sdk.WithStartKind(kindOf(c)), sdk.WithStartStatus(sdk.ToolCallStatusPending),
		sdk.WithStartRawInput(rawArgs(c.Args)), withLocations(locations(t.root, c)))}
}

// withLocations sets the places and leaves the raw input alone, unlike the SDK's own.
func withLocations(list []sdk.ToolCallLocation) sdk.ToolCallStartOpt {
	return func(c *sdk.SessionUpdateToolCall) { c.Locations = list }
}

func title(summary, name string) string {
	if text := strings.TrimSpace(termtext.Line(summary)); text != "" {
		return text
	}
	return termtext.Line(name)
}

// rawArgs are the arguments as the model wrote them.
func rawArgs(args string) any {
	if json.Valid([]byte(args)) {
		return json.RawMessage(args)
	}
	return args
}

func (t *stream) progress(s *event.State) []sdk.SessionUpdate {
	if s.Phase != event.Running || t.at == "" {
		return nil
	}
	return []sdk.SessionUpdate{sdk.UpdateToolCall(sdk.ToolCallId(t.at), sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress))}
}

// output sends the end of what the running call wrote so far.
func (t *stream) output(text string) []sdk.SessionUpdate {
	if t.at == "" {
		return nil
	}
	t.tail += text
	if cut := len(t.tail) - maxTail; cut > 0 {
		t.tail = strings.ToValidUTF8(t.tail[cut:], "")
		if _, rest, ok := strings.Cut(t.tail, "\n"); ok {
			t.tail = rest
		}
	}
	return []sdk.SessionUpdate{sdk.UpdateToolCall(sdk.ToolCallId(t.at), sdk.WithUpdateContent(textContent(fenced(t.tail))))}
}

// result ends a call. The places are those of the changed files.
func (t *stream) result(r *event.Result) []sdk.SessionUpdate {
	t.direct = r.Direct
	c, known := t.calls[r.CallID]
	if !known {
		return nil
	}
	delete(t.calls, r.CallID)
	t.at = ""
	status := sdk.ToolCallStatusFailed
	if r.Status == "ok" {
		status = sdk.ToolCallStatusCompleted
	}
	diffs, places, whole := diffContent(t.root, r.Diff)
	content := diffs
	if len(diffs) == 0 || !whole || r.Status != "ok" {
		content = append(content, textContent(fenced(r.Text))...)
	}
	if places == nil {
		places = locations(t.root, c)
	}
	raw := map[string]any{"status": r.Status}
	if r.Line != "" {
		raw["line"] = r.Line
	}
	if r.ExitCode != nil {
		raw["exitCode"] = *r.ExitCode
	}
	return []sdk.SessionUpdate{sdk.UpdateToolCall(sdk.ToolCallId(r.CallID), sdk.WithUpdateStatus(status),
		sdk.WithUpdateContent(content), sdk.WithUpdateLocations(places), sdk.WithUpdateRawOutput(raw))}
}

// goal shows an objective as a plan of two: the work, and the verifier's word on it.
func (t *stream) goal(g event.Goal) []sdk.SessionUpdate {
	if g.State == "none" || g.State == "" {
		return []sdk.SessionUpdate{{Plan: &sdk.SessionUpdatePlan{Entries: []sdk.PlanEntry{}}}}
	}
	work, check := sdk.PlanEntryStatusInProgress, sdk.PlanEntryStatusPending
	switch g.State {
	case "verifying":
		work, check = sdk.PlanEntryStatusCompleted, sdk.PlanEntryStatusInProgress
	case "complete":
		work, check = sdk.PlanEntryStatusCompleted, sdk.PlanEntryStatusCompleted
	case "active":
	default: // paused, blocked, budget_limited
		work = sdk.PlanEntryStatusPending
	}
	list := []sdk.SessionUpdate{sdk.UpdatePlan(
		sdk.PlanEntry{Content: g.Objective, Priority: sdk.PlanEntryPriorityHigh, Status: work},
		sdk.PlanEntry{Content: "an independent verifier accepts the work", Priority: sdk.PlanEntryPriorityMedium, Status: check},
	)}
	if g.State != "active" && g.State != "verifying" {
		text := "goal " + g.State
		if g.Reason != "" {
			text += ": " + g.Reason
		}
		list = append(list, t.say(quote("goal", text))...)
	}
	return list
}

// end says why a turn ended, unless the answer to the prompt does.
func (t *stream) end(end event.End, past bool) []sdk.SessionUpdate {
	t.at = ""
	text := end.Text
	if end.Hint != "" {
		text += "; " + end.Hint
	}
	switch end.Reason {
	case event.Complete, event.Blocked:
		if t.spoke && end.Text != "" {
			return t.say("\n\n" + end.Text)
		}
		return t.say(end.Text)
	case event.Cancelled:
		return nil
	case event.Errored:
		if !past {
			return nil
		}
	}
	if text == "" {
		return nil
	}
	return t.say(quote(string(end.Reason), text))
}

// quote is a word of the program's own among those of the model.
func quote(what, text string) string {
	return fmt.Sprintf("\n> **%s**: %s\n\n", what, plainMarkdown(termtext.Line(text)))
}

// plainMarkdown keeps a line of text from being read as Markdown.
func plainMarkdown(line string) string {
	var b strings.Builder
	for _, r := range line {
		if strings.ContainsRune("\\`*_[]<>!#|~$&", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fenced is a text that is shown as it stands. The fence is longer than any in it.
func fenced(text string) string {
	longest, run := 2, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimSuffix(text, "\n") + "\n" + fence
}

func textContent(text string) []sdk.ToolCallContent {
	return []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(text))}
}

// commandsUpdate tells the editor the slash commands.
func commandsUpdate(list []Command) sdk.SessionUpdate {
	update := &sdk.SessionAvailableCommandsUpdate{AvailableCommands: []sdk.AvailableCommand{}}
	for _, c := range list {
		command := sdk.AvailableCommand{Name: c.Name, Description: c.About}
		if c.Usage != "" {
			command.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: c.Usage}}
		}
		update.AvailableCommands = append(update.AvailableCommands, command)
	}
	return sdk.SessionUpdate{AvailableCommandsUpdate: update}
}
