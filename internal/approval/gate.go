package approval

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Decision is what rules alone say of a request. The zero value is Ask.
type Decision uint8

// The decisions.
const (
	Ask Decision = iota
	Allow
	Deny
)

var decisionNames = [...]string{"ask", "allow", "deny"}

// String returns the decision's name as used in records.
func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}

// Verdict is a decision with its source.
type Verdict struct {
	Decision Decision
	Rule     string // which rule decided, e.g. "guard", "profile", `deny rule "rm"`
	Reason   string // for the person and the model, plain words
	// Firm means that no `a` grant covers the question: the profile, an ask rule
	// or the request itself demands a person's answer for every call.
	Firm bool
	// NoGrant means that the dialog offers no `a`.
	NoGrant bool
	// Notes are reading aids that the rules found, e.g. what a command runs.
	Notes []string
}

// Policy turns a request into a verdict by rules alone. It neither asks nor
// records, and may be called from several goroutines.
type Policy interface {
	Judge(Request) Verdict
}

// Answer is a person's answer to a question. The zero value denies.
type Answer struct {
	Choice Choice
	Reason string // typed after a denial; goes to the model
	By     string // which frontend answered, for the record
}

// Choice is one of the three answers. The zero value is No.
type Choice uint8

// The answers to a question.
const (
	No           Choice = iota // deny
	Once                       // this exact request
	Conversation               // commands for the rest of this conversation
)

var choiceNames = [...]string{"no", "once", "conversation"}

// String returns the choice's name as used in records and protocols.
func (c Choice) String() string {
	if int(c) < len(choiceNames) {
		return choiceNames[c]
	}
	return fmt.Sprintf("choice(%d)", uint8(c))
}

// ErrUnattended is what an Asker returns when nobody can be asked.
var ErrUnattended = errors.New("nobody is there to approve it")

// Asker puts a request before a person and waits for the answer. It returns
// ErrUnattended when there is nobody, and the context's error when the turn was
// cancelled meanwhile. A nil Asker counts as ErrUnattended.
type Asker interface {
	Ask(ctx context.Context, r Request, v Verdict) (Answer, error)
}

// Record is one line of the audit.
type Record struct {
	Kind    string // "verdict", "answer", "start", "end", "grant", …
	Request *Request
	Verdict *Verdict
	Answer  *Answer
	Outcome string // for "end": "ok", "failed", "cancelled", …
	Detail  string // short metadata, never content that may hold secrets
	Sync    bool   // must be on disk before Record returns
}

// Recorder writes the audit. It returns only after the record is handed to the
// kernel, or synced when the record asks for it.
type Recorder interface {
	Record(Record) error
}

// Permit proves that exactly one request was authorised, for one use. Only the
// gate makes one; the zero value covers nothing.
type Permit struct{ grant *permitState }

type permitState struct {
	digest Digest
	used   atomic.Bool
}

// ErrNoPermit is what an action returns when its permit does not cover it.
var ErrNoPermit = errors.New("the permit does not cover this request")

// Use spends the permit for r. It returns ErrNoPermit when the permit was made
// for another request, is the zero value or was used before.
func (p Permit) Use(r Request) error {
	if p.grant == nil || p.grant.digest != r.Digest() || !p.grant.used.CompareAndSwap(false, true) {
		return ErrNoPermit
	}
	return nil
}

var errNoRecorder = errors.New("no recorder is set")

// Denied is the error that Authorize returns when a request may not run.
type Denied struct {
	Verdict Verdict
	Answer  Answer
	Cause   error // ErrUnattended, a recorder's error, or nil
}

// Error says who denied the request and why.
func (d *Denied) Error() string {
	switch {
	case d.Cause != nil:
		return d.Cause.Error()
	case d.Verdict.Decision == Deny:
		return d.Verdict.Reason
	default:
		return "denied by the user"
	}
}

// Unwrap returns the cause, so that errors.Is finds ErrUnattended.
func (d *Denied) Unwrap() error { return d.Cause }

// Gate authorises requests of one conversation. Its zero value denies all that its
// missing policy would judge. Methods may be called from several goroutines.
type Gate struct {
	Policy   Policy
	Asker    Asker
	Recorder Recorder

	mu    sync.Mutex
	grant bool
	// approved are the digests of requests that a person approved one by one.
	approved map[Digest]bool
}

// Authorize judges r, asks where the rules say so, and records all of it before it
// returns a permit. It blocks while a person is asked. The error is a *Denied, or
// the context's error when the turn was cancelled.
func (g *Gate) Authorize(ctx context.Context, r Request) (Permit, error) {
	v := g.judge(r)
	if err := g.record(Record{Kind: "verdict", Request: &r, Verdict: &v, Sync: v.Decision != Allow && r.Effect != Read}); err != nil {
		return Permit{}, &Denied{Verdict: v, Cause: err}
	}
	switch v.Decision {
	case Allow:
		return g.permit(r)
	case Ask:
		return g.ask(ctx, r, v)
	default:
		return Permit{}, &Denied{Verdict: v}
	}
}

func (g *Gate) judge(r Request) Verdict {
	if g.Policy == nil {
		return Verdict{Decision: Deny, Rule: "gate", Reason: "no policy is loaded"}
	}
	v := g.Policy.Judge(r)
	if v.Decision == Ask && !v.Firm && g.covers(r) {
		return Verdict{Decision: Allow, Rule: "granted for this conversation", Notes: v.Notes}
	}
	return v
}

// covers reports whether the conversation's grant reaches r: shell commands of a
// turn that a person started.
func (g *Gate) covers(r Request) bool {
	if r.Effect != Exec || (r.Origin != OriginUser && r.Origin != OriginRemote) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grant
}

func (g *Gate) ask(ctx context.Context, r Request, v Verdict) (Permit, error) {
	if g.Asker == nil {
		return Permit{}, &Denied{Verdict: v, Cause: ErrUnattended}
	}
	v.NoGrant = v.NoGrant || v.Firm || r.Effect != Exec
	answer, err := g.Asker.Ask(ctx, r, v)
	if err != nil {
		if ctx.Err() != nil {
			return Permit{}, ctx.Err()
		}
		return Permit{}, &Denied{Verdict: v, Cause: err}
	}
	if answer.Choice == Conversation && (v.NoGrant || r.Origin == OriginPeer || r.Origin == OriginUnknown) {
		answer.Choice = Once
	}
	if err := g.record(Record{Kind: "answer", Request: &r, Answer: &answer, Sync: true}); err != nil {
		return Permit{}, &Denied{Verdict: v, Cause: err}
	}
	if answer.Choice == No {
		return Permit{}, &Denied{Verdict: v, Answer: answer}
	}
	if answer.Choice == Conversation {
		g.setGrant(true)
	}
	g.noteApproved(r)
	return g.permit(r)
}

func (g *Gate) noteApproved(r Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.approved == nil {
		g.approved = map[Digest]bool{}
	}
	g.approved[r.Digest()] = true
}

// ApprovedByPerson reports whether a person answered yes to exactly this request, as
// opposed to a grant or a rule.
func (g *Gate) ApprovedByPerson(r Request) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.approved[r.Digest()]
}

// permit writes the start of the action before it makes the permit: what cannot be
// recorded does not run.
func (g *Gate) permit(r Request) (Permit, error) {
	if err := g.record(Record{Kind: "start", Request: &r, Sync: r.Effect != Read}); err != nil {
		return Permit{}, &Denied{Cause: err}
	}
	return Permit{&permitState{digest: r.Digest()}}, nil
}

// Finished records the end of an action that Authorize permitted.
func (g *Gate) Finished(r Request, outcome string, took time.Duration) error {
	return g.record(Record{Kind: "end", Request: &r, Outcome: outcome, Detail: took.Round(time.Millisecond).String()})
}

// record lets reads go on when the audit cannot be written, and nothing else.
func (g *Gate) record(rec Record) error {
	err := errNoRecorder
	if g.Recorder != nil {
		err = g.Recorder.Record(rec)
	}
	if err != nil && rec.Request != nil && rec.Request.Effect == Read {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the audit cannot be written, so nothing but reading is allowed: %w", err)
	}
	return nil
}

// Granted reports whether an `a` answer is in force.
func (g *Gate) Granted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.grant
}

// ClearGrant forgets the `a` answer: a new conversation starts without one.
func (g *Gate) ClearGrant() { g.setGrant(false) }

func (g *Gate) setGrant(on bool) {
	g.mu.Lock()
	changed := g.grant != on
	g.grant = on
	g.mu.Unlock()
	if changed {
		detail := "cleared"
		if on {
			detail = "given"
		}
		// A grant that could not be recorded still ends with the conversation; the
		// next command's own record is refused if the audit stays unwritable.
		_ = g.record(Record{Kind: "grant", Detail: detail, Sync: true})
	}
}
