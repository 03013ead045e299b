package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zcoder/internal/chat"
)

// Bounds of a summary's parts.
const (
	maxParts    = 4   // strings in one list
	maxPart     = 240 // characters of one string
	minHandoff  = 32  // characters of a plain-text summary
	oldestShare = 4   // degrading stops when a quarter of the history is left
)

// summary is what the model writes when the history is replaced.
type summary struct {
	SchemaVersion int      `json:"schema_version"`
	Objective     string   `json:"objective"`
	Constraints   []string `json:"constraints"`
	Decisions     []string `json:"decisions"`
	Artifacts     []string `json:"artifacts"`
	Facts         []string `json:"facts"`
	Completed     []string `json:"completed"`
	Active        []string `json:"active"`
	Blocked       []string `json:"blocked"`
	Next          []string `json:"next"`
}

func (s *summary) lists() []struct {
	name  string
	items []string
} {
	return []struct {
		name  string
		items []string
	}{
		{"Constraints", s.Constraints}, {"Decisions", s.Decisions}, {"Files", s.Artifacts}, {"Facts", s.Facts},
		{"Done", s.Completed}, {"In progress", s.Active}, {"Blocked", s.Blocked}, {"Next", s.Next},
	}
}

// summarySchema constrains the reply; the lists share one form.
var summarySchema = json.RawMessage(func() string {
	list := fmt.Sprintf(`{"type":"array","maxItems":%d,"items":{"type":"string","maxLength":%d}}`, maxParts, maxPart)
	var b strings.Builder
	fmt.Fprintf(&b, `{"type":"object","properties":{"schema_version":{"type":"integer","enum":[1]},"objective":{"type":"string","maxLength":%d}`, maxPart)
	names := []string{"constraints", "decisions", "artifacts", "facts", "completed", "active", "blocked", "next"}
	for _, n := range names {
		fmt.Fprintf(&b, `,%q:%s`, n, list)
	}
	fmt.Fprintf(&b, `},"required":["schema_version","objective","%s"]}`, strings.Join(names, `","`))
	return b.String()
}())

const askSummary = `Write the checkpoint of this conversation as one JSON object, so that you can go on with nothing else: ` +
	`objective, constraints, decisions, artifacts (files and what changed in them), facts (names, numbers, error texts, results of commands), completed, active, blocked, next. ` +
	`Each list has at most 4 strings of at most 240 characters. State only what the conversation shows.`

const askHandoff = `Write in plain text, in at most ten lines, what was asked, what was done and found, which files changed, and what comes next. State only what the conversation shows.`

// summarise asks the model for a checkpoint of the old records. It degrades in
// steps, each once: a valid JSON summary with a bounded number of corrections; a
// plain text; with half of the history when the request did not fit; at last a
// list made without the model. It returns the text and how it came about.
func (r *run) summarise(ctx context.Context, p parts, limits CompactLimits) (text, how string) {
	history := r.fitting(p.old, limits)
	for len(history) > 0 {
		text, err := r.askSummary(ctx, history, limits)
		if err == nil {
			return text, "a checkpoint by the model"
		}
		if ctx.Err() != nil {
			return "", ""
		}
		var failure *chat.Error
		if !errors.As(err, &failure) || failure.Kind != chat.Overflow || len(history) <= len(p.old)/oldestShare {
			break
		}
		history = wholeGroups(history[len(history)/2:])
	}
	return mechanical(p), "a checkpoint without the model's help"
}

// fitting is as much of the newest old records as the request may hold.
func (r *run) fitting(old []chat.Message, limits CompactLimits) []chat.Message {
	budget := r.windowOrFallback()*r.cfg.Compact.Percent/100 - limits.MaxTokens - r.estimate(nil) - tokens(askSummary, &r.meter)
	list := old
	for len(list) > 0 && r.meter.of(list) > budget {
		list = wholeGroups(list[max(1, len(list)/8):])
	}
	return list
}

// wholeGroups drops results at the front whose call is not in the list.
func wholeGroups(list []chat.Message) []chat.Message {
	for len(list) > 0 && list[0].Role == chat.ToolRole {
		list = list[1:]
	}
	return list
}

func (r *run) askSummary(ctx context.Context, history []chat.Message, limits CompactLimits) (string, error) {
	req := r.requestOf(append(append([]chat.Message(nil), history...), chat.Message{Role: chat.User, Content: askSummary, Note: true}))
	zero := 0.0
	req.Tools, req.Think, req.Temperature = nil, r.setup.NoThink, &zero
	req.NumPredict, req.Format = limits.MaxTokens, summarySchema
	for range limits.Retries + 1 {
		reply, err := r.cfg.Model.Chat(ctx, req, func(chat.Delta) {})
		if err != nil {
			return "", err
		}
		r.sum.OutputTokens += reply.Usage.OutputTokens
		s, err := readSummary(reply)
		if err == nil {
			return s.text(), nil
		}
		req.Messages = append(req.Messages,
			chat.Message{Role: chat.Assistant, Content: headOf(reply.Message.Content, 800)},
			chat.Message{Role: chat.User, Content: "That is not the object that was asked for: " + err.Error() + ". Write it again, shorter.", Note: true})
	}
	return r.askHandoff(ctx, req)
}

func (r *run) askHandoff(ctx context.Context, req chat.Request) (string, error) {
	req.Format = nil
	req.Messages[len(req.Messages)-1].Content = askHandoff
	reply, err := r.cfg.Model.Chat(ctx, req, func(chat.Delta) {})
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(reply.Message.Content)
	if utf8.RuneCountInString(text) < minHandoff {
		return "", errors.New("the model wrote no summary")
	}
	return text, nil
}

func readSummary(reply chat.Reply) (*summary, error) {
	if !reply.Done || reply.DoneReason == "length" {
		return nil, errors.New("it was cut off")
	}
	var s summary
	if err := json.Unmarshal([]byte(strings.TrimSpace(reply.Message.Content)), &s); err != nil {
		return nil, fmt.Errorf("it is not valid JSON (%w)", err)
	}
	if s.SchemaVersion != 1 || strings.TrimSpace(s.Objective) == "" {
		return nil, errors.New("schema_version 1 and objective are required")
	}
	said := 0
	for _, l := range s.lists() {
		said += len(l.items)
		if len(l.items) > maxParts {
			return nil, fmt.Errorf("%s has more than %d strings", strings.ToLower(l.name), maxParts)
		}
		for _, item := range l.items {
			if utf8.RuneCountInString(item) > maxPart {
				return nil, fmt.Errorf("a string of %s is longer than %d characters", strings.ToLower(l.name), maxPart)
			}
		}
	}
	if said == 0 {
		return nil, errors.New("all lists are empty")
	}
	return &s, nil
}

func (s *summary) text() string {
	var b strings.Builder
	b.WriteString("Objective: " + s.Objective)
	for _, l := range s.lists() {
		if len(l.items) > 0 {
			b.WriteString("\n" + l.name + ": " + strings.Join(l.items, "; "))
		}
	}
	return b.String()
}

// mechanical lists what happened when the model cannot say it.
func mechanical(p parts) string {
	const most = 30
	var lines []string
	for _, m := range p.old {
		for _, c := range m.Calls {
			lines = append(lines, "- "+c.Name+" "+headOf(string(c.Args), 120))
		}
	}
	if len(lines) > most {
		lines = append([]string{fmt.Sprintf("- (%d earlier calls)", len(lines)-most)}, lines[len(lines)-most:]...)
	}
	return "These calls were made:\n" + strings.Join(lines, "\n")
}

func headOf(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
