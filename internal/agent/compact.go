package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// CompactLimits say when and how the history is replaced by a checkpoint. Zero
// Percent switches it off.
type CompactLimits struct {
	Percent    int // of the window at which it starts
	MaxTokens  int // of the summary
	KeepUser   int // tokens of exact earlier requests
	KeepRecent int // tokens of the newest records that stay as they are
	MinYield   int // tokens it must save, or nothing is changed
	Retries    int // corrective requests for a valid summary
}

// scaled bounds the limits by the window, so that they fit 8k as well as 128k.
func (l CompactLimits) scaled(window int) CompactLimits {
	l.MaxTokens = min(l.MaxTokens, window/10)
	l.KeepUser = min(l.KeepUser, window/8)
	l.KeepRecent = min(l.KeepRecent, window/6)
	l.MinYield = min(l.MinYield, window/8)
	return l
}

// trigger is the size in tokens at which compaction starts: below the window by a
// share, and by room for a reply where that leaves at least half.
func (r *run) trigger() int {
	window := r.setup.Window
	at := window * r.cfg.Compact.Percent / 100
	if room := window - r.cfg.MaxOutput - 1024; room >= window/2 {
		at = min(at, room)
	}
	if r.rearm > at {
		at = min(r.rearm, window*95/100)
	}
	return at
}

// makeRoom compacts before a request that would come near the window's end.
func (r *run) makeRoom(ctx context.Context) {
	if r.setup.Window <= 0 || r.cfg.Compact.Percent <= 0 || r.meter.size(r.history) < r.trigger() {
		return
	}
	if err := r.compact(ctx, false); err != nil && ctx.Err() == nil {
		r.rearm = r.meter.size(r.history) * 110 / 100
		r.emit(event.Event{Kind: event.Warning, Text: "the history could not be shortened: " + err.Error()})
	}
}

// errNoYield means that compaction would save too little.
var errNoYield = errors.New("too little would be saved")

// compact replaces the history: old tool output is cut first, and when that is not
// enough, a checkpoint stands for all but the newest records. It changes nothing
// when it fails. force skips the cheap first step's test of being enough.
func (r *run) compact(ctx context.Context, force bool) error {
	before := r.meter.size(r.history)
	limits := r.cfg.Compact.scaled(r.windowOrFallback())
	r.state(event.Compacting, "")
	parts := split(r.history, limits.KeepRecent, &r.meter)
	trimmed := r.joined(trimOutputs(parts.old), parts.recent)
	enough := r.windowOrFallback() / 2
	if size := r.estimate(trimmed); !force && size < enough && before-size >= limits.MinYield {
		r.replace(trimmed, before, "old tool output was cut")
		return nil
	}
	summary, how := r.summarise(ctx, parts, limits)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	messages := r.joined(checkpoint(summary, parts, limits, &r.meter), append(parts.recent, goOn()))
	if before-r.estimate(messages) < limits.MinYield {
		return errNoYield
	}
	r.replace(messages, before, how)
	return nil
}

// joined puts what must outlive the shortening between the old and the recent part.
func (r *run) joined(old, recent []chat.Message) []chat.Message {
	plain := append(append([]chat.Message(nil), old...), recent...)
	var carried []chat.Message
	if carried, r.dropped = r.carried(plain); len(carried) == 0 {
		return plain
	}
	return append(append(append([]chat.Message(nil), old...), carried...), recent...)
}

func (r *run) windowOrFallback() int {
	if r.setup.Window > 0 {
		return r.setup.Window
	}
	return 16384
}

// estimate is the size of a request with another history.
func (r *run) estimate(history []chat.Message) int {
	m := r.meter
	m.forget()
	return m.size(history)
}

func (r *run) replace(messages []chat.Message, before int, how string) {
	r.meter.forget()
	r.emit(event.Event{Kind: event.Compacted, Messages: messages, Text: how})
	after := r.meter.size(r.history)
	r.rearm = after * 110 / 100
	r.emit(event.Event{Kind: event.Info, Text: fmt.Sprintf("history shortened from about %d to %d tokens (%s); the prompt is re-read once", before, after, how)})
	if r.dropped > 0 {
		r.emit(event.Event{Kind: event.Warning, Text: fmt.Sprintf("%d notes to the model, such as the texts of skills, no longer fit the window and are gone", r.dropped)})
	}
}

// parts is a history cut in two between whole groups: a call never loses its result.
type parts struct {
	old, recent []chat.Message
	pinned      []string // exact requests of old, oldest first
}

// split keeps the newest groups that fit into the budget, at least one. A group is
// a user record, or a reply with the results of its calls.
func split(history []chat.Message, budget int, m *meter) parts {
	cut := len(history)
	for cut > 0 {
		start := groupStart(history, cut)
		if cut < len(history) && m.of(history[start:]) > budget {
			break
		}
		cut = start
	}
	p := parts{old: history[:cut], recent: shrink(history[cut:], budget, m)}
	for _, msg := range p.old {
		p.pinned = append(p.pinned, msg.Pinned...)
		if msg.Role == chat.User && !msg.Note {
			p.pinned = append(p.pinned, msg.Content)
		}
	}
	return p
}

func groupStart(history []chat.Message, end int) int {
	start := end - 1
	for start > 0 && history[start].Role == chat.ToolRole {
		start--
	}
	return start
}

// shrink cuts the outputs of a newest group that is over the budget by itself.
func shrink(list []chat.Message, budget int, m *meter) []chat.Message {
	if m.of(list) <= budget {
		return list
	}
	share := max(400, int(float64(budget)/m.perChar)/max(1, len(list)))
	out := append([]chat.Message(nil), list...)
	for i := range out {
		if out[i].Role == chat.ToolRole {
			out[i].Content = tools.Cut(out[i].Content, share)
		}
	}
	return out
}

// oldOutput is how many bytes of an old tool result stay.
const oldOutput = 160

func trimOutputs(list []chat.Message) []chat.Message {
	out := append([]chat.Message(nil), list...)
	for i := range out {
		if out[i].Role == chat.ToolRole {
			out[i].Content = tools.Cut(out[i].Content, oldOutput)
		}
	}
	return out
}

// goOn says how to go on after the newest records.
func goOn() chat.Message {
	return chat.Message{Role: chat.User, Note: true,
		Content: "Go on with the user's newest request from here. Files may have changed since they were read: read again what you need."}
}

// checkpoint builds the one record that stands for the old ones.
func checkpoint(summary string, p parts, limits CompactLimits, m *meter) []chat.Message {
	pinned := pin(p.pinned, limits.KeepUser, m)
	var b strings.Builder
	b.WriteString("Checkpoint: the conversation before this point was shortened. What it came to:\n")
	b.WriteString(summary)
	if len(pinned) > 0 {
		b.WriteString("\n\nWhat the user asked so far, word for word, oldest first:")
		for i, text := range pinned {
			fmt.Fprintf(&b, "\n%d. %s", i+1, text)
		}
	}
	return []chat.Message{{Role: chat.User, Content: b.String(), Note: true, Pinned: pinned}}
}

// pin keeps the first and the newest request always, and of the others the newest
// that fit.
func pin(requests []string, budget int, m *meter) []string {
	if len(requests) <= 2 {
		return requests
	}
	first, newest := requests[0], requests[len(requests)-1]
	kept := []string{newest}
	left := budget - tokens(first, m) - tokens(newest, m)
	for i := len(requests) - 2; i > 0; i-- {
		if left -= tokens(requests[i], m); left < 0 {
			break
		}
		kept = append([]string{requests[i]}, kept...)
	}
	return append([]string{first}, kept...)
}

func tokens(text string, m *meter) int { return int(float64(len(text))*m.perChar) + 1 }
