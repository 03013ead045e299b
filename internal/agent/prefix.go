package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// sumLen is the length of one part of a prefix.
const sumLen = 8

// prefixOf identifies what stands before the history in a request, part by part:
// model, system prompt, tools.
func prefixOf(model, system string, list []chat.Tool) string {
	var b strings.Builder
	for _, t := range list {
		b.WriteString(t.Name + "\x00" + t.Description + "\x00" + string(t.Schema) + "\x00")
	}
	return sum(model) + sum(system) + sum(b.String())
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:sumLen/2])
}

// settlePrefix compares the prefix of the coming requests with that of the last one.
// When it differs, what the server counted holds no longer, and a person is told that
// the prompt is read anew.
func (r *run) settlePrefix() {
	r.prefix = prefixOf(r.cfg.ModelName, r.turn.System, r.cfg.Tools.Specs())
	known := r.meter.known
	if before := r.turn.Known.Prefix; before != "" && before != r.prefix {
		known = Known{}
		if what := reread(before, r.prefix); what != "" {
			r.emit(event.Event{Kind: event.Info, Text: "prompt re-read: " + what + " changed since the last request"})
		}
	}
	r.lastPrompt = known.Tokens
	r.meter = newMeter(r.turn.System, r.cfg.Tools.Specs(), known)
}

// reread names the parts that differ. A person who changed the model knows it.
func reread(before, now string) string {
	if len(before) != 3*sumLen || before[:sumLen] != now[:sumLen] {
		return ""
	}
	var parts []string
	if before[sumLen:2*sumLen] != now[sumLen:2*sumLen] {
		parts = append(parts, "the system prompt")
	}
	if before[2*sumLen:] != now[2*sumLen:] {
		parts = append(parts, "the list of tools")
	}
	return strings.Join(parts, " and ")
}
