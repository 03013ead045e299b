package acp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// The options of a permission request. They are the choices of an answer.
const (
	once         = "once"
	conversation = "conversation"
	deny         = "no"
)

// decide asks the editor and settles the question with what it says. Whatever is no
// clear yes denies. When ctx ends the question has its answer already.
func (s *session) decide(ctx context.Context, q event.Question, call event.Call) {
	answer := event.Answer{CallID: q.CallID, Choice: deny, By: "editor", Digest: q.Digest}
	options := questionOptions(q)
	picked, err := s.ask(ctx, sdk.RequestPermissionRequest{SessionId: sessionID(s.id), ToolCall: questionCall(s.conv.Info().Workspace, q, call), Options: options})
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		answer.Reason = "the editor could not ask: " + err.Error()
	case picked == "":
		answer.Reason = "the editor closed the request"
	default:
		answer.Choice = picked
	}
	if err := s.conv.Answer(q.CallID, answer); err != nil && ctx.Err() == nil {
		s.a.o.Log(fmt.Sprintf("answer %s: %v", q.CallID, err))
	}
}

// ask returns the option that was picked, or "" for none of those offered.
func (s *session) ask(ctx context.Context, r sdk.RequestPermissionRequest) (string, error) {
	resp, err := sdk.SendRequest[sdk.RequestPermissionResponse](s.a.conn, ctx, sdk.ClientMethodSessionRequestPermission, r)
	if err != nil {
		return "", err
	}
	if resp.Outcome.Selected == nil {
		return "", nil
	}
	for _, o := range r.Options {
		if o.OptionId == resp.Outcome.Selected.OptionId {
			return string(o.OptionId), nil
		}
	}
	return "", errors.New("it answered with an option that was not offered")
}

// questionOptions offers the rest of the conversation only where a grant is possible:
// never for commands of the sysadmin profile and for writes outside.
func questionOptions(q event.Question) []sdk.PermissionOption {
	list := []sdk.PermissionOption{{OptionId: once, Name: "Allow once", Kind: sdk.PermissionOptionKindAllowOnce}}
	if q.Grantable {
		list = append(list, sdk.PermissionOption{OptionId: conversation, Name: "Allow commands for this conversation", Kind: sdk.PermissionOptionKindAllowAlways})
	}
	return append(list, sdk.PermissionOption{OptionId: deny, Name: "Deny", Kind: sdk.PermissionOptionKindRejectOnce})
}

// questionCall is all that a person must see of a question: the title is a summary,
// the content holds the whole text.
func questionCall(root string, q event.Question, call event.Call) sdk.ToolCallUpdate {
	if call.ID == "" {
		call = event.Call{ID: q.CallID, Name: q.Tool, Effect: q.Effect, Summary: q.Summary}
	}
	heading, kind, status := title(q.Summary, q.Tool), kindOf(call), sdk.ToolCallStatusPending
	if q.Host != "" {
		heading = "on " + termtext.Line(q.Host) + ": " + heading
	}
	var content []sdk.ToolCallContent
	for _, part := range questionParts(q) {
		content = append(content, textContent(fenced(part))...)
	}
	out := sdk.ToolCallUpdate{
		ToolCallId: sdk.ToolCallId(q.CallID), Title: &heading, Kind: &kind, Status: &status, Content: content,
		Locations: locations(root, call),
		Meta:      map[string]any{"zcoder": map[string]any{"digest": q.Digest, "text": q.Text}},
	}
	if call.Args != "" {
		out.RawInput = rawArgs(call.Args)
	}
	return out
}

// questionParts are the facts, the text itself, and what should be known of it. What
// could hide in the text is visible and named.
func questionParts(q event.Question) []string {
	var facts []string
	fact := func(name, value string) {
		if value != "" {
			facts = append(facts, fmt.Sprintf("%-9s%s", name, value))
		}
	}
	fact("host", termtext.Line(q.Host))
	tool := termtext.Line(q.Tool)
	if q.Effect != "" {
		tool += " (" + termtext.Line(q.Effect) + ")"
	}
	fact("tool", tool)
	if len(q.Shell) > 0 {
		fact("shell", termtext.Line(strings.Join(q.Shell, " ")))
	}
	fact("dir", termtext.Line(q.Dir))
	fact("limit", termtext.Line(q.Timeout))
	fact("asked by", termtext.Line(q.Origin))
	for _, reason := range q.Reasons {
		fact("because", termtext.Line(reason))
	}
	parts := []string{strings.Join(facts, "\n"), termtext.MarkBlanks(termtext.Safe(q.Text))}
	if notes := questionNotes(q); len(notes) > 0 {
		parts = append(parts, strings.Join(notes, "\n"))
	}
	return parts
}

func questionNotes(q event.Question) []string {
	var notes []string
	if strings.TrimSpace(q.Text) == "" {
		notes = append(notes, "! warning: the text is empty")
	}
	for _, n := range q.Notes {
		notes = append(notes, "! "+termtext.Line(n))
	}
	for _, h := range termtext.HiddenIn(q.Text) {
		notes = append(notes, fmt.Sprintf("! hidden characters: %s (%d times)", h.Name, h.Count))
	}
	return notes
}

// form asks the person something that is no call of the model.
type form struct {
	s   *session
	put func(title, text string, options []sdk.PermissionOption) (string, bool)
}

// forms asks while a prompt runs; ctx is the prompt's.
func (s *session) forms(ctx context.Context) Forms {
	return form{s: s, put: func(heading, text string, options []sdk.PermissionOption) (string, bool) {
		return s.putForm(ctx, heading, text, options)
	}}
}

// maxChoices bounds the options of one request.
const maxChoices = 100

// Choose implements Forms.
func (f form) Choose(heading string, items []string, current int) (int, bool) {
	var options []sdk.PermissionOption
	for i, item := range items[:min(len(items), maxChoices)] {
		options = append(options, sdk.PermissionOption{OptionId: sdk.PermissionOptionId(strconv.Itoa(i)), Name: termtext.Line(strings.TrimSpace(item)), Kind: sdk.PermissionOptionKindAllowOnce})
	}
	options = append(options, sdk.PermissionOption{OptionId: deny, Name: "None", Kind: sdk.PermissionOptionKindRejectOnce})
	picked, ok := f.put(heading, strings.Join(items, "\n"), options)
	i, err := strconv.Atoi(picked)
	return i, ok && err == nil
}

// AskLine implements Forms.
func (f form) AskLine(prompt string) (string, bool) {
	question, ok := strings.CutSuffix(strings.TrimSpace(prompt), "[y/N]")
	if !ok {
		return "", false
	}
	if f.Confirm(strings.TrimSpace(question), "", "Yes", "No") {
		return "y", true
	}
	return "n", true
}

// Confirm implements Forms.
func (f form) Confirm(heading, text, yes, no string) bool {
	picked, ok := f.put(heading, text, []sdk.PermissionOption{
		{OptionId: once, Name: yes, Kind: sdk.PermissionOptionKindAllowOnce},
		{OptionId: deny, Name: no, Kind: sdk.PermissionOptionKindRejectOnce},
	})
	return ok && picked == once
}

// putForm shows a text as a call of its own and asks about it, after all that was said
// before. ok is false when nothing was picked.
func (s *session) putForm(ctx context.Context, heading, text string, options []sdk.PermissionOption) (picked string, ok bool) {
	s.sent(ctx, s.conv.LastSeq())
	id, heading := sdk.ToolCallId("form-"+s.a.o.NewID()), termtext.Line(heading)
	var content []sdk.ToolCallContent
	if text != "" {
		content = textContent(fenced(termtext.MarkBlanks(termtext.Safe(text))))
		if hidden := questionNotes(event.Question{Text: text}); len(hidden) > 0 {
			content = append(content, textContent(fenced(strings.Join(hidden, "\n")))...)
		}
	}
	kind, status := sdk.ToolKindOther, sdk.ToolCallStatusPending
	if s.update(ctx, sdk.StartToolCall(id, heading, sdk.WithStartKind(kind), sdk.WithStartStatus(status), sdk.WithStartContent(content))) != nil {
		return "", false
	}
	picked, err := s.ask(ctx, sdk.RequestPermissionRequest{SessionId: sessionID(s.id), Options: options, ToolCall: sdk.ToolCallUpdate{
		ToolCallId: id, Title: &heading, Kind: &kind, Status: &status, Content: content,
	}})
	ok = err == nil && picked != ""
	status = sdk.ToolCallStatusFailed
	if ok && picked != deny {
		status = sdk.ToolCallStatusCompleted
	}
	_ = s.update(s.a.base, sdk.UpdateToolCall(id, sdk.WithUpdateStatus(status))) // an editor that went away needs none
	return picked, ok
}
