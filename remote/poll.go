package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"zcoder/internal/event"
)

const (
	longestPoll  = 500 * time.Millisecond // between two looks for an event
	unnamedTurn  = "?"                    // a turn that runs and whose name is not known
	maxPolled    = 1 << 20                // events of one turn
	maxHistory   = 100_000                // messages of a conversation
	forgotten    = "the server does not know the turn any more: it was started anew"
	uncertain    = "the connection was lost while the request was sent, and the server may have worked on it"
	uncertainTip = "look at the conversation before you send it again"
)

// catchUp reads what a plain server has of the conversation, and follows the turn
// that runs there, if one does.
func (c *Client) catchUp(ctx, life context.Context) error {
	p := poller{c: c, turn: unnamedTurn, project: projector{f: c.f}}
	running, err := p.skim(ctx)
	if err != nil {
		return err
	}
	if err := c.history(ctx); err != nil {
		return err
	}
	if running {
		c.f.setTurn(unnamedTurn)
		p.project.begin(unnamedTurn)
		p.project.resume(p.last)
		c.l.spawn(func() {
			defer c.f.setTurn("")
			if _, err := p.run(life, life); err != nil && life.Err() == nil {
				c.f.say(event.Warning, "nothing more is heard of the turn that runs: "+err.Error())
			}
		})
	}
	return nil
}

// history takes the messages that the conversation has.
func (c *Client) history(ctx context.Context) error {
	if c.f.session == "" {
		return nil
	}
	project := projector{f: c.f}
	for n := range maxHistory {
		var e polled
		if err := c.l.get(ctx, fmt.Sprintf("/v1/session?id=%s&after=%d", c.f.session, n), &e); err != nil {
			return fmt.Errorf("read the conversation: %w", err)
		}
		if e.Event != "message" {
			return nil
		}
		project.message(e, fmt.Sprintf("past-%d", n))
	}
	return nil
}

// setTurn says which turn runs; empty is none.
func (f *feed) setTurn(turn string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.turn = turn
	f.touch()
}

// poller asks a plain server for the events of one turn, one by one.
type poller struct {
	c       *Client
	turn    string
	cursor  int64
	last    polled // the newest event that skim passed over
	project projector
}

// pollTurn posts a turn to a plain server and follows it to its end.
func (c *Client) pollTurn(ctx context.Context, r *run, req turnRequest) (Outcome, error) {
	if err := c.prepareModel(ctx); err != nil {
		return Outcome{}, err
	}
	req.StructuredEvents = true
	p := poller{c: c, project: projector{f: c.f}}
	err := c.post(r, req)
	switch {
	case hasStatus(err, http.StatusConflict):
		return Outcome{}, ErrBusy
	case isBroken(err):
		if err := p.adopt(ctx, err); err != nil {
			return Outcome{}, err
		}
		c.name(r, unnamedTurn)
	case err != nil:
		return Outcome{}, fmt.Errorf("send the request: %w", err)
	}
	p.turn = r.turn
	c.f.setTurn(p.turn)
	defer c.f.setTurn("")
	p.project.begin(p.turn)
	c.f.emit(event.Event{Kind: event.User, Turn: p.turn, Text: req.Prompt})
	return p.run(ctx, c.l.life)
}

// prepareModel has the model loaded before a prompt, as clients of plain servers do.
func (c *Client) prepareModel(ctx context.Context) error {
	if c.l.facts.Readiness.Status == "" {
		return nil
	}
	c.f.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Loading}})
	m, err := c.EnsureModel(ctx)
	if err == nil && m.Status == Failed {
		err = hint(fmt.Errorf("the server's model is not ready: %s", withDefault(m.Error, "it does not say why")), "look at the model server there")
	}
	return err
}

// adopt finds out whether a turn whose acceptance was lost was begun. It is never
// sent twice: a server starts what it gets.
func (p *poller) adopt(ctx context.Context, lost error) error {
	var running bool
	err := p.c.l.persist(ctx, func(ctx context.Context) (err error) {
		p.cursor = 0
		running, err = p.skim(ctx)
		return err
	})
	if err == nil && (running || p.cursor == 0 && p.c.hadEvents()) {
		p.cursor = 0
		return nil
	}
	return hint(fmt.Errorf("%s: %w", uncertain, lost), uncertainTip)
}

// hadEvents reports whether the server had events of an earlier turn, which it keeps
// until another one starts.
func (c *Client) hadEvents() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.polled
}

func (c *Client) sawEvents() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polled = true
}

// skim passes over the events that there are and reports whether their turn runs.
func (p *poller) skim(ctx context.Context) (running bool, err error) {
	for range maxPolled {
		e, err := p.next(ctx)
		if err != nil || e.Event == "none" {
			return running, err
		}
		running = e.Event != "complete"
		p.last = e
	}
	return running, nil
}

// next asks for the event after the cursor; its Event is "none" when there is none yet.
func (p *poller) next(ctx context.Context) (polled, error) {
	var e polled
	if err := p.c.l.get(ctx, fmt.Sprintf("/v1/events?after=%d", p.cursor), &e); err != nil {
		return polled{}, err
	}
	if e.Event == "none" {
		return e, nil
	}
	if e.Seq <= p.cursor || e.Seq > maxSeq {
		return polled{}, fmt.Errorf("the server sent event %d after event %d", e.Seq, p.cursor)
	}
	p.cursor = e.Seq
	p.c.sawEvents()
	return e, nil
}

// run follows the turn to its end. When ctx ends it stops the turn and waits for that;
// when life ends it leaves the turn alone.
func (p *poller) run(ctx, life context.Context) (Outcome, error) {
	wait := pollPauses{l: p.c.l, f: p.c.f, ctx: ctx, done: func() {}}
	defer func() { wait.done() }()
	for {
		e, err := p.next(life)
		switch {
		case life.Err() != nil:
			return Outcome{}, ErrClosed
		case isBroken(err) && !errors.Is(err, ErrLost):
			wait.failed()
		case err != nil:
			return Outcome{}, fmt.Errorf("follow the turn: %w", err)
		case wait.answered() && p.lost(life):
			return p.over(event.Errored, forgotten), nil
		case e.Event == "complete":
			return p.complete(e), nil
		case e.Event != "none":
			if err := p.take(e); err != nil {
				return Outcome{}, err
			}
			if wait.next = 0; wait.ctx.Err() == nil {
				continue
			}
		}
		if err := wait.between(life, p); err != nil {
			return Outcome{}, err
		}
	}
}

func (p *poller) take(e polled) error {
	p.project.take(e)
	return p.c.f.room()
}

// lost reports whether a server that was away has forgotten the turn: it does not
// even have the events that were seen.
func (p *poller) lost(ctx context.Context) bool {
	if p.cursor == 0 {
		return false
	}
	again := poller{c: p.c, cursor: p.cursor - 1}
	e, err := again.next(ctx)
	return err == nil && e.Event == "none"
}

// complete ends the turn as the server says.
func (p *poller) complete(e polled) Outcome {
	switch e.ExitCode {
	case 0:
		return p.over(event.Complete, "")
	case 130:
		return p.over(event.Cancelled, "")
	}
	return p.over(event.Errored, withDefault(p.project.problem, fmt.Sprintf("the server ended the turn with status %d", e.ExitCode)))
}

func (p *poller) over(reason event.Reason, text string) Outcome {
	p.project.end(reason, text)
	return Outcome{Turn: p.turn, Reason: reason}
}

// pollPauses is how long a poller waits between two looks, and what it says meanwhile.
type pollPauses struct {
	l   *link
	f   *feed
	ctx context.Context // ends when the turn is to be stopped, and then when that took too long

	next    time.Duration // 0 at first
	broken  int
	told    bool
	stopped bool
	done    context.CancelFunc
}

// failed notes that the server did not answer.
func (w *pollPauses) failed() {
	if w.broken++; w.broken > 1 && !w.told {
		w.f.say(event.Warning, fmt.Sprintf("the connection to %s is lost: trying again until it is back", w.l.host))
		w.told = true
	}
}

// answered notes that it did, and reports whether it did not before.
func (w *pollPauses) answered() bool {
	back := w.broken > 0
	if w.told {
		w.f.say(event.Info, "connected again to "+w.l.host)
	}
	w.broken, w.told = 0, false
	return back
}

// between waits until the next look, longer each time. When the turn is to be stopped
// it has the server do that, once, and gives it time.
func (w *pollPauses) between(life context.Context, p *poller) error {
	longest := longestPoll
	if w.broken > 0 {
		longest = longestPause
	}
	d := min(max(w.next, shortestPause), longest)
	w.next = d * 3 / 2
	switch {
	case w.l.pause(w.ctx, &d) || life.Err() != nil:
		return nil
	case w.stopped:
		return errors.New("the server was told to stop the turn, and nothing is heard of its end")
	}
	w.ctx, w.done = context.WithTimeout(life, cancelPatience)
	w.stopped, w.next = true, 0
	if err := p.c.sendCancel(w.ctx, p.turn, false); err != nil {
		return fmt.Errorf("stop the turn: %w", err)
	}
	return nil
}

// answerPlain answers a question of a plain server, which tells nobody how it was
// settled: this side makes that event.
func (c *Client) answerPlain(ctx context.Context, q ask, decision string, a event.Answer) error {
	c.f.sending(q.callID, true)
	tries := 0
	err := c.l.persist(ctx, func(ctx context.Context) error {
		tries++
		return c.l.post(ctx, "/v1/approval", approvalRequest{ID: q.approval, Decision: decision}, nil)
	})
	switch {
	case err == nil, tries > 1 && hasStatus(err, http.StatusConflict): // it arrived before, and the reply was lost
		err = nil
		a.CallID = q.callID
	case hasStatus(err, http.StatusConflict):
		err = ErrSettled
		a = event.Answer{CallID: q.callID, Choice: "no", Reason: notHere}
	default: // it may be answered again
		c.f.sending(q.callID, false)
		return fmt.Errorf("answer the question: %w", err)
	}
	c.f.emit(event.Event{Kind: event.Answered, Turn: c.f.running(), Answer: &a})
	return err
}

func (f *feed) sending(callID string, on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.asks {
		if f.asks[i].callID == callID {
			f.asks[i].sent = on
		}
	}
}
