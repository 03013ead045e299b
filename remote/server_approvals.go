package remote

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"zcoder/internal/event"
)

// pending is a question that waits for an answer under an id of one use. The answer is
// bound to the text that was shown: it carries the question's digest.
type pending struct {
	id       string
	from     *follower
	question event.Question
	stop     func() bool // the denial that comes when nobody answers
}

// ask gives a question its id. The lock is held.
func (s *Server) ask(f *follower, q event.Question) *pending {
	p := &pending{id: s.newID(), from: f, question: q}
	s.approvals[p.id] = p
	p.stop = s.cfg.AfterFunc(s.cfg.ApprovalTimeout, func() { s.deny(p) })
	return p
}

// newID makes an id of two positive decimals that nobody can guess.
func (s *Server) newID() string {
	one := func() string { return strconv.FormatUint(s.cfg.Random()>>2+1, 10) }
	return one() + "_" + one()
}

// forget ends an id. The lock is held.
func (s *Server) forget(id string) {
	if p := s.approvals[id]; p != nil {
		p.stop()
		delete(s.approvals, id)
	}
}

// settled ends the id of a question that has its answer. The lock is held.
func (s *Server) settled(f *follower, call string) {
	if p := s.waiting(f, call); p != nil {
		s.forget(p.id)
	}
}

// waiting is the question of a call, nil when it does not wait. The lock is held.
func (s *Server) waiting(f *follower, call string) *pending {
	for _, p := range s.approvals {
		if p.from == f && p.question.CallID == call {
			return p
		}
	}
	return nil
}

// forgetAll ends the ids of a conversation. The lock is held.
func (s *Server) forgetAll(f *follower) {
	for id, p := range s.approvals {
		if p.from == f {
			s.forget(id)
		}
	}
}

// deny answers for a person who did not.
func (s *Server) deny(p *pending) {
	s.mu.Lock()
	waits := s.approvals[p.id] == p
	s.forget(p.id)
	s.mu.Unlock()
	if waits {
		_ = p.from.conv.Answer(p.question.CallID, event.Answer{ // an error means that somebody was faster
			Choice: "no", By: "remote", Digest: p.question.Digest,
			Reason: fmt.Sprintf("nobody answered within %s", s.cfg.ApprovalTimeout),
		})
	}
}

// choice is what a decision means for a question, empty for no decision. A grant is
// given only where it was offered.
func choice(decision string, q event.Question) string {
	switch {
	case decision == "n":
		return "no"
	case decision == "a" && q.Grantable:
		return "conversation"
	case decision == "y" || decision == "a":
		return "once"
	}
	return ""
}

func (s *Server) postApproval(_ context.Context, a asked) (reply, error) {
	var in approvalRequest
	err := a.texts(map[string]*string{"id": &in.ID, "decision": &in.Decision, "digest": &in.Digest, "reason": &in.Reason})
	if err != nil {
		return reply{}, err
	}
	if in.ID == "" || choice(in.Decision, event.Question{}) == "" {
		return reply{}, refuse(http.StatusBadRequest, "an approval needs an id and a decision, one of y, a, n")
	}
	p, err := s.spend(in)
	if err != nil {
		return reply{}, err
	}
	err = p.from.conv.Answer(p.question.CallID, event.Answer{
		Choice: choice(in.Decision, p.question), Reason: in.Reason, By: "remote", Digest: p.question.Digest,
	})
	if err != nil {
		return reply{}, refuse(http.StatusConflict, "%v", err)
	}
	return reply{http.StatusOK, okay{OK: true}}, nil
}

// spend uses up the id of an answer.
func (s *Server) spend(in approvalRequest) (*pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.approvals[in.ID]
	if p == nil {
		return nil, refuse(http.StatusConflict, "no approval of this id waits: it was answered, or its time is over")
	}
	if in.Digest != "" && in.Digest != p.question.Digest {
		return nil, refuse(http.StatusConflict, "the answer is about another text than the one that is asked")
	}
	s.forget(p.id)
	return p, nil
}
