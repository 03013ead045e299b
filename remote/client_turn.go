package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"zcoder/internal/event"
)

const (
	cancelPatience = 30 * time.Second // for the end of a turn that was cancelled
	answerPatience = time.Minute      // for an answer to arrive
	settlePatience = 10 * time.Second // for the news of what settled a question
)

// run is a turn or a command that this client started.
type run struct {
	command bool               // a slash command, which may change the conversation
	turn    string             // empty until the server took it
	cancel  context.CancelFunc // asks for its end
}

// Prompt runs a turn and blocks until its end, also when the connection breaks in
// between. It returns ErrBusy when one is running. Cancelling ctx is Cancel.
func (c *Client) Prompt(ctx context.Context, in event.Input) (event.Reason, error) {
	switch {
	case len(in.Images) > 0:
		return "", errors.New("images cannot be sent to a server yet: name their files, which the model there can read")
	case in.Peer != nil:
		return "", errors.New("a message of another instance is for the one that got it, and goes to no server")
	}
	o, err := c.run(ctx, turnRequest{Prompt: in.Text}, nil)
	if err != nil {
		return "", err
	}
	return o.Reason, o.failure()
}

// Command has the server handle a slash command and asks the person through forms. It
// blocks until its end. Cancelling ctx stops the command. When the command made another
// conversation the current one the error is a *SwitchedError: go on with With.
func (c *Client) Command(ctx context.Context, text string, forms Forms) (Outcome, error) {
	if !c.l.facts.Commands {
		return Outcome{}, errors.New("this server handles no slash commands")
	}
	return c.run(ctx, turnRequest{Prompt: text, Interactive: true}, forms)
}

// failure is what an Outcome says of something that could not be done.
func (o Outcome) failure() error {
	switch {
	case o.Error == "":
		return nil
	case o.Hint == "":
		return errors.New(o.Error)
	}
	return hint(errors.New(o.Error), o.Hint)
}

// run posts a turn and waits for its end.
func (c *Client) run(ctx context.Context, req turnRequest, forms Forms) (Outcome, error) {
	if err := c.f.reason(); err != nil {
		return Outcome{}, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &run{command: strings.HasPrefix(req.Prompt, "/"), cancel: cancel}
	c.mu.Lock()
	c.runs[r] = true
	c.mu.Unlock()
	defer c.forget(r)
	if !c.l.facts.Stream {
		return c.pollTurn(ctx, r, req)
	}
	return c.streamTurn(ctx, r, req, forms)
}

func (c *Client) forget(r *run) {
	c.mu.Lock()
	delete(c.runs, r)
	c.mu.Unlock()
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.touch()
}

func (c *Client) streamTurn(ctx context.Context, r *run, req turnRequest, forms Forms) (Outcome, error) {
	req.RequestID, req.Session = c.l.cfg.NewID(), c.f.session
	from := c.f.position()
	// One try is not cut short by ctx: then it would not be known what to cancel.
	err := c.l.persist(ctx, func(context.Context) error { return c.post(r, req) })
	switch {
	case hasStatus(err, http.StatusConflict):
		return Outcome{}, ErrBusy
	case hasStatus(err, http.StatusNotFound):
		return Outcome{}, fmt.Errorf("%w: %w", ErrNotSent, c.elsewhere(ctx))
	case err != nil && ctx.Err() != nil:
		return Outcome{}, fmt.Errorf("stop the request: %w; whether the server works on it is not known", err)
	case err != nil:
		return Outcome{}, fmt.Errorf("send the request: %w", err)
	case r.turn == "":
		return Outcome{}, nil
	}
	c.f.mu.Lock()
	opened := c.f.opened
	c.f.mu.Unlock()
	w := waiter{c: c, turn: r.turn, from: from, opened: opened, forms: forms, shown: map[string]bool{}}
	return w.wait(ctx)
}

// elsewhere says why a conversation is not the server's current one any more, as soon as
// the stream does.
func (c *Client) elsewhere(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, settlePatience)
	defer done()
	err := c.f.await(ctx, func() bool { return false })
	if ctx.Err() != nil {
		err = errors.New("the server went on with another conversation")
	}
	return err
}

// post sends the turn and notes what the server calls it.
func (c *Client) post(r *run, req turnRequest) error {
	var reply struct {
		Turn string `json:"turn_id"`
	}
	if err := c.l.post(c.l.life, "/v1/turn", req, &reply); err != nil {
		return err
	}
	// A command that runs beside a turn is done by then, and has no turn of its own.
	if reply.Turn == "" && !r.command || len(reply.Turn) > maxIDBytes {
		return notServer(errors.New("it took the request and gave the turn no name"))
	}
	c.name(r, reply.Turn)
	return nil
}

// name notes what the server calls a turn.
func (c *Client) name(r *run, turn string) {
	c.mu.Lock()
	r.turn = turn
	c.mu.Unlock()
	c.f.mu.Lock()
	defer c.f.mu.Unlock()
	c.f.touch()
}

// waiter waits for the end of what the client started, and shows its forms meanwhile.
type waiter struct {
	c      *Client
	turn   string
	from   int64 // number of the newest event before it
	opened int   // streams when the server took it
	forms  Forms
	shown  map[string]bool

	outcome Outcome
	missed  bool // it is over and nobody told how
	form    *Form
}

func (w *waiter) wait(ctx context.Context) (Outcome, error) {
	life := context.WithoutCancel(ctx)
	for {
		err := w.c.f.await(ctx, w.ready)
		if err != nil && ctx.Err() != nil {
			return w.stop(life)
		}
		switch {
		case err != nil:
			return Outcome{}, err
		case w.form == nil:
			return w.end()
		}
		w.show(*w.form)
	}
}

// stop cancels the turn and waits for its end.
func (w *waiter) stop(ctx context.Context) (Outcome, error) {
	ctx, done := context.WithTimeout(ctx, cancelPatience)
	defer done()
	w.forms = nil
	if err := w.c.sendCancel(ctx, w.turn, false); err != nil {
		return Outcome{}, fmt.Errorf("stop the turn: %w", err)
	}
	if err := w.c.f.await(ctx, w.ready); err != nil {
		return Outcome{}, fmt.Errorf("the server was told to stop the turn, and nothing is heard of its end: %w", err)
	}
	return w.end()
}

// ready looks for the end, or a form to show. The feed's lock is held.
func (w *waiter) ready() bool {
	var over bool
	if w.outcome, over = w.c.f.ended(w.turn); over {
		w.form = nil
		return true
	}
	f := w.c.f
	w.missed = f.missed(w.turn, w.opened)
	w.form = nil
	if w.forms != nil && !w.missed {
		i := slices.IndexFunc(f.forms, func(q Form) bool { return !w.shown[q.ID] })
		if i >= 0 {
			q := f.forms[i]
			w.form = &q
			f.forms = slices.Delete(f.forms, i, i+1)
		}
	}
	return w.missed || w.form != nil
}

func (w *waiter) end() (Outcome, error) {
	if !w.missed {
		return w.outcome, nil
	}
	if reason, ok := w.c.f.endAfter(w.from); ok {
		return Outcome{Turn: w.turn, Reason: reason}, nil
	}
	return Outcome{}, errors.New("the turn ended while the connection was lost, and the server does not say how")
}

// show asks the person in a goroutine of its own: the answer may come after the command
// is over, when nobody needs it any more.
func (w *waiter) show(q Form) {
	w.shown[q.ID] = true
	forms, c := w.forms, w.c
	go func() {
		a := formRequest{ID: q.ID}
		if len(q.Items) > 0 {
			a.Index, a.OK = forms.Choose(q.Title, q.Items, max(0, min(q.Current, len(q.Items)-1)))
		} else {
			a.Line, a.OK = forms.AskLine(q.Title)
		}
		c.l.spawn(func() {
			ctx, done := context.WithTimeout(c.l.life, answerPatience)
			defer done()
			err := c.l.persist(ctx, func(ctx context.Context) error { return c.l.post(ctx, "/v1/form", a, nil) })
			if err != nil && !hasStatus(err, http.StatusConflict) && ctx.Err() == nil {
				c.f.say(event.Warning, "the answer was not taken: "+err.Error())
			}
		})
	}()
}

// endAfter is how the first turn after an event ended.
func (f *feed) endAfter(seq int64) (event.Reason, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.events {
		if k.Seq > seq && k.Kind == event.TurnEnd {
			return k.End.Reason, true
		}
	}
	return "", false
}

// Cancel stops the running turn; it does not wait for that.
func (c *Client) Cancel() {
	c.mu.Lock()
	own := len(c.runs) > 0
	for r := range c.runs {
		r.cancel()
	}
	c.mu.Unlock()
	if !own {
		c.stopRunning(false)
	}
}

// Skip stops the running turn and has the server go on with what is queued.
func (c *Client) Skip() { c.stopRunning(true) }

func (c *Client) stopRunning(goOn bool) {
	c.l.spawn(func() {
		ctx, done := context.WithTimeout(c.l.life, cancelPatience)
		defer done()
		turn := c.theTurn(ctx)
		if turn == "" {
			return
		}
		if err := c.sendCancel(ctx, turn, goOn); err != nil && ctx.Err() == nil {
			c.f.say(event.Warning, "the turn could not be stopped: "+err.Error())
		}
	})
}

// theTurn is the turn that runs, as far as is known. It waits for the name of one that
// was only just sent; empty when there is none.
func (c *Client) theTurn(ctx context.Context) (turn string) {
	err := c.f.await(ctx, func() bool {
		var sent bool
		if turn = c.f.turn; turn == "" {
			turn, sent = c.ownTurn()
		}
		return turn != "" || !sent
	})
	if err != nil {
		return ""
	}
	return turn
}

// ownTurn is the turn that this client started, and whether there is one.
func (c *Client) ownTurn() (turn string, sent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.runs {
		if r.turn != "" {
			return r.turn, true
		}
	}
	return "", len(c.runs) > 0
}

// sendCancel stops one turn and no other. That it is over already is no error.
func (c *Client) sendCancel(ctx context.Context, turn string, goOn bool) error {
	request := map[string]any{}
	if c.f.session != "" && turn != unnamedTurn {
		request["session_id"], request["turn_id"] = c.f.session, turn
	}
	if goOn {
		request["continue_queued"] = true
	}
	err := c.l.persist(ctx, func(ctx context.Context) error { return c.l.post(ctx, "/v1/cancel", request, nil) })
	if hasStatus(err, http.StatusConflict) {
		return nil
	}
	return err
}

// Answer settles a question. It blocks until the server has the answer, a minute at
// most. ErrSettled means that another answer came first, or none in time.
func (c *Client) Answer(callID string, a event.Answer) error {
	decision, known := map[string]string{"no": "n", "once": "y", "conversation": "a"}[a.Choice]
	if !known {
		return fmt.Errorf("answer %q: it is none of no, once, conversation", a.Choice)
	}
	q, found := c.f.asking(callID)
	switch {
	case !found || q.settled || q.approval == "":
		return ErrSettled
	case a.Digest != "" && a.Digest != q.digest:
		return fmt.Errorf("answer question %q: it is about another text than the one that was asked", callID)
	}
	ctx, done := context.WithTimeout(c.l.life, answerPatience)
	defer done()
	if !c.l.facts.Stream {
		return c.answerPlain(ctx, q, decision, a)
	}
	request := approvalRequest{ID: q.approval, Decision: decision, Digest: q.digest, Reason: a.Reason}
	err := c.l.persist(ctx, func(ctx context.Context) error { return c.l.post(ctx, "/v1/approval", request, nil) })
	switch {
	case hasStatus(err, http.StatusConflict):
		return c.settledAs(ctx, callID, a.Choice)
	case err != nil:
		return fmt.Errorf("answer the question: %w", err)
	}
	return nil
}

// settledAs decides what it means that the server does not wait for an answer: when the
// events show the same one, it was this that arrived earlier and whose reply was lost.
func (c *Client) settledAs(ctx context.Context, callID, choice string) error {
	ctx, done := context.WithTimeout(ctx, settlePatience)
	defer done()
	var q ask
	err := c.f.await(ctx, func() bool {
		q, _ = c.f.askingLocked(callID)
		return q.settled
	})
	if err == nil && q.choice == choice {
		return nil
	}
	return ErrSettled
}
