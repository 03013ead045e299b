package agent

import (
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// enter remembers a request that was authorised in this round.
func (r *run) enter(req approval.Request) { r.entered = append(r.entered, req) }

// tell emits what the model and the person must be told after a round, e.g. the
// guidance of a directory that work entered.
func (r *run) tell() {
	entered := r.entered
	r.entered = nil
	if r.cfg.Notes == nil || len(entered) == 0 {
		return
	}
	for _, e := range r.cfg.Notes(entered) {
		r.emit(e)
	}
}

// before emits what comes before an input.
func (r *run) before(in event.Input) {
	for _, e := range in.Before {
		r.emit(e)
	}
}

// carryShare is the part of the window that carried records may fill.
const carryShare = 4

// carried returns the records that must outlive a compaction which turns the history
// into after, as notes. Of more than fit, the newest stay; dropped counts the others.
func (r *run) carried(after []chat.Message) (notes []chat.Message, dropped int) {
	if r.cfg.Carry == nil {
		return nil, 0
	}
	texts := r.cfg.Carry(r.history, after)
	room := r.windowOrFallback() / carryShare
	for i := len(texts) - 1; i >= 0; i-- {
		if room -= tokens(texts[i], &r.meter); room < 0 {
			return notes, i + 1
		}
		notes = append([]chat.Message{{Role: chat.User, Content: texts[i], Note: true}}, notes...)
	}
	return notes, 0
}
