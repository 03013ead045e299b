package session

import (
	"context"
	"fmt"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/event"
)

// question is the approval that waits.
type question struct {
	shown  event.Question
	answer chan approval.Answer // takes one
}

// Ask implements approval.Asker: it shows the request as an event and blocks until
// the first answer, or until the turn is cancelled.
func (s *Session) Ask(ctx context.Context, r approval.Request, v approval.Verdict) (approval.Answer, error) {
	q := &question{shown: show(r, v), answer: make(chan approval.Answer, 1)}
	s.mu.Lock()
	s.question = q
	s.mu.Unlock()
	s.emit(event.Event{Kind: event.Progress, Turn: r.Turn, State: &event.State{Phase: event.Waiting, Detail: r.Summary}})
	s.emit(event.Event{Kind: event.Asked, Turn: r.Turn, Question: &q.shown})
	select {
	case a := <-q.answer:
		return a, nil
	case <-ctx.Done():
		s.withdraw(q, r.Turn)
		return approval.Answer{}, ctx.Err()
	}
}

// withdraw settles a question that nobody answered, so that frontends close it.
func (s *Session) withdraw(q *question, turn string) {
	s.mu.Lock()
	open := s.question == q
	s.question = nil
	s.mu.Unlock()
	if open {
		s.emit(event.Event{Kind: event.Answered, Turn: turn, Answer: &event.Answer{
			CallID: q.shown.CallID, Choice: approval.No.String(), Reason: "the turn was stopped",
		}})
	}
}

func show(r approval.Request, v approval.Verdict) event.Question {
	reasons := append([]string(nil), r.MustAsk...)
	if v.Reason != "" && v.Reason != strings.Join(r.MustAsk, "; ") { // the policy may only repeat them
		reasons = append(reasons, v.Reason)
	}
	return event.Question{
		CallID: r.CallID, Tool: r.Tool, Effect: r.Effect.String(), Origin: r.Origin.String(),
		Summary: r.Summary, Text: r.Text, Shell: r.Shell, Dir: r.Dir, Timeout: r.Timeout,
		Reasons: reasons, Notes: append(append([]string(nil), r.Notes...), v.Notes...),
		Grantable: !v.NoGrant, Digest: r.Digest().String(),
	}
}

// Answer settles the open question. The first answer wins; a later one, or one for
// another call, gets ErrSettled. When the answer carries a digest it must be the
// question's: what was shown is what runs.
func (s *Session) Answer(callID string, a event.Answer) error {
	choice, err := parseChoice(a.Choice)
	if err != nil {
		return err
	}
	s.mu.Lock()
	q := s.question
	if q == nil || q.shown.CallID != callID {
		s.mu.Unlock()
		return ErrSettled
	}
	if a.Digest != "" && a.Digest != q.shown.Digest {
		s.mu.Unlock()
		return fmt.Errorf("answer question %q: it is about another text than the one that was asked", callID)
	}
	s.question = nil
	s.mu.Unlock()
	a.CallID = callID
	s.emit(event.Event{Kind: event.Answered, Answer: &a})
	q.answer <- approval.Answer{Choice: choice, Reason: a.Reason, By: a.By}
	return nil
}

func parseChoice(text string) (approval.Choice, error) {
	for _, c := range []approval.Choice{approval.No, approval.Once, approval.Conversation} {
		if text == c.String() {
			return c, nil
		}
	}
	return approval.No, fmt.Errorf("answer %q: it is none of no, once, conversation", text)
}
