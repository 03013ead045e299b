package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// turn is what one POST /v1/turn started. The server's lock guards what changes in it.
type turn struct {
	id          string
	from        *follower // of the conversation that was current at the start
	after       int64     // its newest event then
	began       time.Time // events of another conversation count from then on
	input       event.Input
	interactive bool
	told        chan struct{} // closed when it is known whether the model must be loaded

	projection
	warming bool               // it waits for the model
	stopped bool               // a client cancelled it
	cancel  context.CancelFunc // of the turn; nil until it is set up
	skip    context.CancelFunc // of what runs of it now
	sealed  bool               // it takes no more input
	over    bool
	submit  string // text that the client enters after it
	draft   string // text that it puts before the person
}

// owns reports whether an event belongs to the turn. A slash command may make another
// conversation the current one.
func (t *turn) owns(f *follower, e event.Event) bool {
	if f.id == t.from.id {
		return e.Seq > t.after || e.Seq == t.after && e.Kind.Live()
	}
	return !e.Time.Before(t.began)
}

// turnNews is the beginning or the end of a turn as the streams tell it: before the
// first or after the last of its events.
type turnNews struct {
	number int64
	state  State
	last   map[string]int64 // of each conversation that it was in: its newest event then
}

// keptNews is how much is kept for streams that are behind.
const keptNews = 128

// tell has the streams tell of a turn. The lock is held.
func (s *Server) tell(st State, last map[string]int64) {
	s.turns = append(s.turns, turnNews{s.newsCount.Add(1), st, last})
	if len(s.turns) > keptNews {
		s.turns = s.turns[1:]
	}
	s.announce()
}

// active is the turn that runs or waits. The lock is held.
func (s *Server) active() *turn {
	if s.turn == nil || s.turn.over {
		return nil
	}
	return s.turn
}

// busy reports why nothing new may start now. The lock is held.
func (s *Server) busy() error {
	switch {
	case s.active() != nil:
		return errTurnRuns
	case s.held != "":
		return refuse(http.StatusConflict, "%s; try again", s.held)
	case s.following.conv.Busy():
		return errTurnRuns
	}
	return nil
}

// turnReply is what POST /v1/turn says.
type turnReply struct {
	ID     string `json:"turn_id"`
	Status string `json:"model_status,omitempty"`
}

func (s *Server) postTurn(ctx context.Context, a asked) (reply, error) {
	in, err := readTurn(a.fields)
	if err != nil {
		return reply{}, err
	}
	return s.once(ctx, "turn", in.RequestID, in, func() (reply, error) { return s.start(ctx, in) })
}

func readTurn(f fields) (in turnRequest, err error) {
	if err = f.texts(map[string]*string{"prompt": &in.Prompt, "open_documents": &in.OpenDocuments, "request_id": &in.RequestID, "session_id": &in.Session}); err != nil {
		return in, err
	}
	if in.StructuredEvents, err = f.flag("structured_events"); err != nil {
		return in, err
	}
	if in.Interactive, err = f.flag("interactive"); err == nil && in.Prompt == "" {
		err = refuse(http.StatusBadRequest, "the field \"prompt\" is missing or empty")
	}
	return in, err
}

// start begins a turn, or does a slash command beside the one that runs.
func (s *Server) start(ctx context.Context, in turnRequest) (reply, error) {
	t, err := s.reserve(in)
	if errors.Is(err, errTurnRuns) && strings.HasPrefix(in.Prompt, "/") {
		return s.runNow(ctx, in.Prompt)
	}
	if err != nil {
		return reply{}, err
	}
	if !s.spawn(func(ctx context.Context) { s.work(ctx, t) }) {
		s.end(t, "", errClosing)
		return reply{}, errClosing
	}
	late, stop := s.soon(s.limits.patience)
	defer stop()
	status := Warming
	select {
	case <-t.told:
		if s.mu.Lock(); !t.warming {
			status = ""
		}
		s.mu.Unlock()
	case <-late:
	case <-ctx.Done():
	}
	return reply{http.StatusAccepted, turnReply{t.id, status}}, nil
}

// reserve makes the turn that nothing else may run beside.
func (s *Server) reserve(in turnRequest) (*turn, error) {
	f := s.follow()
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Session != "" && in.Session != f.id {
		return nil, errNotCurrent
	}
	if err := s.busy(); err != nil {
		return nil, err
	}
	t := &turn{
		id: store.NewID(s.cfg.Now(), uint32(s.cfg.Random())), from: f, after: f.conv.LastSeq(), began: s.cfg.Now(),
		input: event.Input{Text: in.Prompt}, interactive: in.Interactive, told: make(chan struct{}),
	}
	t.structured = in.StructuredEvents
	if in.OpenDocuments != "" {
		t.input.Before = []event.Event{{Kind: event.Note, Text: "The documents that are open in the person's editor:\n" + in.OpenDocuments}}
	}
	s.turn = t
	s.tell(State{Session: f.id, Turn: t.id, Seq: t.after, Last: s.last}, map[string]int64{f.id: t.after})
	return t, nil
}

// runNow does a slash command that may run beside a turn. What it prints, and its
// error, become events of the conversation.
func (s *Server) runNow(ctx context.Context, text string) (reply, error) {
	ok, err := s.cfg.Host.RunNow(ctx, text, turnUI{server: s, gone: ctx.Done()})
	if !ok {
		return reply{}, errTurnRuns
	}
	f := s.follow()
	if err != nil {
		f.conv.Emit(event.Event{Kind: event.Warning, Text: withHint(err)})
	}
	return reply{http.StatusAccepted, turnReply{}}, nil
}

// withHint is the text of an error and what to do about it.
func withHint(err error) string {
	if h := hintText(err); h != "" {
		return err.Error() + "\n" + h
	}
	return err.Error()
}

func hintText(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// work runs the turn to its end.
func (s *Server) work(ctx context.Context, t *turn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	t.cancel = cancel
	if t.stopped {
		cancel()
	}
	s.mu.Unlock()
	if err := s.prepare(ctx, t); err != nil {
		s.end(t, "", err)
		return
	}
	reason, err := s.run(ctx, t, t.input)
	for stuck := ""; ; {
		next := s.next(ctx, t)
		if next == "" || next == stuck {
			break
		}
		stuck = next
		if again, rerr := s.run(ctx, t, event.Input{Text: "/queue resume"}); rerr == nil {
			reason = again
		}
	}
	s.end(t, reason, err)
}

// next is the id of input that the turn took at its very end and that nobody else would
// start. When there is none the turn takes no more.
func (s *Server) next(ctx context.Context, t *turn) string {
	conv := s.cfg.Host.Current()
	s.mu.Lock()
	defer s.mu.Unlock()
	items, paused := conv.Pending()
	if t.sealed = len(items) == 0 || paused || ctx.Err() != nil; t.sealed {
		return ""
	}
	return items[0].ID
}

func (s *Server) run(ctx context.Context, t *turn, in event.Input) (event.Reason, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	t.skip = cancel
	s.mu.Unlock()
	return s.cfg.Host.Run(ctx, in, turnUI{s, t, ctx.Done()})
}

// prepare waits for the model, if the turn needs one. Commands load it themselves.
func (s *Server) prepare(ctx context.Context, t *turn) error {
	tell := func(warming bool) {
		s.mu.Lock()
		t.warming = warming
		s.mu.Unlock()
		close(t.told)
	}
	if strings.HasPrefix(t.input.Text, "/") || strings.HasPrefix(t.input.Text, "!") || s.readiness(ctx).Status == Ready {
		tell(false)
		return nil
	}
	l := s.load()
	tell(true)
	select {
	case <-l.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	if l.model.Status != Ready {
		return errors.New("the model could not be loaded: " + l.model.Error)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.warming = false
	return nil
}

// end makes the turn's end known, after all of its events: to those who poll as the one
// complete event, and to streams.
func (s *Server) end(t *turn, reason event.Reason, err error) {
	s.mu.Lock()
	t.sealed = true
	s.mu.Unlock()
	f := s.follow()
	last := f.conv.LastSeq()
	s.await(f, last)
	if errors.Is(err, context.Canceled) {
		reason, err = event.Cancelled, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.over = true
	t.complete(reason, err)
	s.last = &Outcome{Turn: t.id, Reason: reason, Submit: t.submit, Draft: t.draft}
	if err != nil {
		s.last.Error, s.last.Hint = err.Error(), hintText(err)
	}
	s.tell(State{Session: f.id, Seq: last, Last: s.last}, map[string]int64{t.from.id: t.from.seen, f.id: last})
}

func (s *Server) events(_ context.Context, a asked) (reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == nil || a.after >= int64(len(s.turn.events)) {
		return nothing(), nil
	}
	return reply{http.StatusOK, s.turn.events[a.after]}, nil
}

func (s *Server) cancel(_ context.Context, a asked) (reply, error) {
	session, turn, goOn, err := readCancel(a.fields)
	if err != nil {
		return reply{}, err
	}
	conv := s.cfg.Host.Current()
	s.mu.Lock()
	t := s.active()
	fits := t != nil && (turn == "" || turn == t.id && (session == t.from.id || session == conv.Info().ID))
	s.mu.Unlock()
	switch {
	case t == nil && turn == "" && conv.Busy(): // what no client started
		conv.Cancel()
		return reply{http.StatusOK, okay{OK: true}}, nil
	case t == nil:
		return reply{}, refuse(http.StatusConflict, "nothing is running")
	case !fits:
		return reply{}, refuse(http.StatusConflict, "other work is running")
	}
	if items, _ := conv.Pending(); goOn && len(items) > 0 {
		s.skipTo(t, conv)
		return reply{http.StatusOK, okay{OK: true, Continued: true}}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.stopped = true
	if t.cancel != nil {
		t.cancel()
	}
	return reply{http.StatusOK, okay{OK: true}}, nil
}

// skipTo stops what runs of a turn and has it go on with the queue.
func (s *Server) skipTo(t *turn, conv Conversation) {
	if conv.Busy() {
		conv.Skip()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.skip != nil {
		t.skip()
	}
}

func readCancel(f fields) (session, turn string, goOn bool, err error) {
	if err = f.texts(map[string]*string{"session_id": &session, "turn_id": &turn}); err != nil {
		return
	}
	if goOn, err = f.flag("continue_queued"); err != nil {
		return
	}
	if (session == "") != (turn == "") || goOn && turn == "" {
		err = refuse(http.StatusBadRequest, "\"session_id\" and \"turn_id\" belong together")
	}
	return
}
