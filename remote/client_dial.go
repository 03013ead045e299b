package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"zcoder/internal/store"
)

// where is the server as a person wrote it.
func (l *link) where() string {
	if l.cfg.Pipe != nil {
		return withDefault(l.cfg.Name, "the far side of the pipe")
	}
	return l.cfg.Address.String()
}

func (l *link) dial(ctx context.Context) (*Client, error) {
	if l.cfg.NewID == nil {
		return nil, errors.New("requests need ids")
	}
	if err := l.greet(ctx); err != nil {
		return nil, explain(err)
	}
	session, err := l.agree(ctx)
	if err != nil {
		return nil, err
	}
	return l.open(ctx, session)
}

// explain says what a person can do about a server that does not answer.
func explain(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return hint(fmt.Errorf("no server answers there: %w", err), "start one with zcoder --server NAME --token-file FILE, and check the address")
	case errors.As(err, &dns):
		return hint(err, "check the name of the host")
	case isBroken(err):
		return hint(err, "check that a zcoder server listens there")
	}
	return err
}

// greet asks the server who it is.
func (l *link) greet(ctx context.Context) error {
	var raw json.RawMessage
	if err := l.get(ctx, "/v1/hello", &raw); err != nil {
		if hasStatus(err, http.StatusNotFound) {
			return notServer(err)
		}
		return err
	}
	var h hello
	var present struct {
		Protocol    *int    `json:"protocol"`
		ModelStatus *string `json:"model_status"`
		Harnesses   *string `json:"harnesses"`
	}
	if err := errors.Join(json.Unmarshal(raw, &h), json.Unmarshal(raw, &present)); err != nil || present.Protocol == nil {
		return notServer(errors.New("its greeting names no protocol"))
	}
	if h.Protocol != Protocol {
		return hint(fmt.Errorf("the server speaks protocol %d, this program protocol %d", h.Protocol, Protocol), "install the same version of zcoder on both sides")
	}
	l.facts = factsOf(h, present.ModelStatus != nil, present.Harnesses != nil)
	l.plain = !h.Stream
	l.host = clip(l.cfg.Name, maxFact)
	if l.host == "" {
		l.host = strings.TrimSpace(oneLine(h.ServerName, 100) + " at " + l.where())
	}
	return nil
}

func factsOf(h hello, managed, told bool) ServerFacts {
	facts := ServerFacts{
		Name: clip(h.ServerName, maxFact), Workspace: clip(h.Workspace, maxFact), Model: clip(h.Model, maxFact), Profile: clip(h.Profile, maxFact),
		CommandPolicy: clip(h.CommandPolicy, maxFact), GitStatus: clip(h.GitStatus, maxFact), Notices: clip(h.Notices, maxNotices), Version: clip(h.Version, maxFact),
		HarnessesKnown: told, Sessions: h.Sessions, Goals: h.Goals, InputQueue: h.InputQueue, Commands: h.Commands, Stream: h.Stream,
	}
	if managed {
		facts.Readiness = modelOf(h.ModelStatus, h.ModelError)
	}
	for name := range strings.SplitSeq(clip(h.Harnesses, maxFact), ",") {
		if name = strings.TrimSpace(name); name != "" {
			facts.Harnesses = append(facts.Harnesses, name)
		}
	}
	return facts
}

func modelOf(status, problem string) Model {
	return Model{Status: clip(status, 40), Error: clip(problem, maxFact)}
}

// agree chooses the conversation to go on with, as ClientConfig says.
func (l *link) agree(ctx context.Context) (string, error) {
	if !l.facts.Sessions {
		if l.cfg.Session != "" {
			return "", fmt.Errorf("go on with conversation %q: this server keeps none", l.cfg.Session)
		}
		return "", nil
	}
	current, found, err := l.currentSession(ctx)
	switch {
	case err != nil:
		return "", err
	case l.cfg.Session != "" && (!found || l.cfg.Session != current.ID):
		return l.cfg.Session, l.selectSession(ctx, l.cfg.Session)
	case found && (l.cfg.Continue || l.cfg.Session != "" || current.Empty):
		return current.ID, nil
	}
	id, err := l.newSession(ctx)
	if errors.Is(err, ErrBusy) && found {
		return current.ID, nil
	}
	return id, err
}

func (l *link) currentSession(ctx context.Context) (current Listed, found bool, err error) {
	err = l.sessions(ctx, func(s Listed) bool {
		if s.Current {
			current, found = s, true
		}
		return !s.Current
	})
	return current, found, err
}

// maxListed bounds a list of a server.
const maxListed = 10_000

// sessions hands out the conversations until more returns false.
func (l *link) sessions(ctx context.Context, more func(Listed) bool) error {
	for n := range maxListed {
		var item struct {
			Event   string `json:"event"`
			ID      string `json:"id"`
			Title   string `json:"title"`
			Model   string `json:"model"`
			Current flag   `json:"current"`
			Empty   flag   `json:"empty"`
		}
		err := l.get(ctx, fmt.Sprintf("/v1/sessions?after=%d", n), &item)
		if err != nil {
			return fmt.Errorf("list the conversations: %w", err)
		}
		if item.Event != "session" {
			return nil
		}
		if !validSession(item.ID) {
			return fmt.Errorf("list the conversations: the server names one %q", clip(item.ID, maxIDBytes))
		}
		if !more(Listed{ID: item.ID, Title: clip(item.Title, maxFact), Model: clip(item.Model, maxFact), Current: bool(item.Current), Empty: bool(item.Empty)}) {
			return nil
		}
	}
	return nil
}

// validSession reports whether an id of the server's can stand in a query as it is.
func validSession(id string) bool {
	return id != "" && len(id) <= maxIDBytes && strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == ""
}

func (l *link) selectSession(ctx context.Context, id string) error {
	if !validSession(id) {
		return fmt.Errorf("go on with conversation %q: %w", clip(id, maxIDBytes), store.ErrUnknown)
	}
	err := l.persist(ctx, func(ctx context.Context) error {
		return l.post(ctx, "/v1/session/select", map[string]string{"id": id}, nil)
	})
	switch {
	case hasStatus(err, http.StatusNotFound):
		err = store.ErrUnknown
	case hasStatus(err, http.StatusConflict):
		err = ErrBusy
	}
	if err != nil {
		return fmt.Errorf("go on with conversation %q: %w", id, err)
	}
	return nil
}

func (l *link) newSession(ctx context.Context) (string, error) {
	var reply struct {
		ID string `json:"id"`
	}
	request := map[string]string{}
	try := func(ctx context.Context) error { return l.post(ctx, "/v1/session/new", request, &reply) }
	var err error
	if l.plain {
		err = try(ctx) // a second one would be another conversation
	} else {
		request["request_id"] = l.cfg.NewID()
		err = l.persist(ctx, try)
	}
	switch {
	case hasStatus(err, http.StatusConflict):
		err = ErrBusy
	case err == nil && !validSession(reply.ID):
		err = fmt.Errorf("the server calls it %q", clip(reply.ID, maxIDBytes))
	}
	if err != nil {
		return "", fmt.Errorf("begin a conversation: %w", err)
	}
	return reply.ID, nil
}

// open follows a conversation in place of the one before.
func (l *link) open(ctx context.Context, session string) (*Client, error) {
	life, stop := context.WithCancelCause(l.life)
	c := &Client{l: l, f: newFeed(l.host, session, l.cfg.Now), stop: stop, runs: map[*run]bool{}}
	c.f.grantable = l.facts.Profile == "coding"
	var err error
	if l.facts.Stream {
		l.spawn(func() { l.keepUp(life, c.f, c.mayHaveSwitched) })
		err = c.f.await(ctx, func() bool { return c.f.stateOf > 0 })
	} else {
		err = c.catchUp(ctx, life)
	}
	if err != nil {
		stop(ErrClosed)
		return nil, fmt.Errorf("follow the conversation: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current != nil {
		l.current.leave(session)
	}
	l.current = c
	return c, nil
}

// spawn runs f in a goroutine that close waits for; after close it does nothing.
func (l *link) spawn(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() == nil {
		l.work.Go(f)
	}
}

// leave ends the following of a conversation that this side leaves.
func (c *Client) leave(next string) {
	c.f.end(&leftError{SwitchedError{Session: next}})
	c.stop(ErrClosed)
}

// leftError ends a conversation that this side itself left: its subscribers are told
// by whoever did that.
type leftError struct{ SwitchedError }

// Unwrap makes it a *SwitchedError for errors.As.
func (e *leftError) Unwrap() error { return &e.SwitchedError }

// changing marks a request that may change the server's conversation.
func (c *Client) changing() (done func()) {
	c.mu.Lock()
	c.switching++
	c.mu.Unlock()
	return func() {
		c.mu.Lock()
		c.switching--
		c.mu.Unlock()
	}
}

// mayHaveSwitched turns the news that another conversation is current into the right
// error: whether this side or another client did it.
func (c *Client) mayHaveSwitched(err error) error {
	var s *SwitchedError
	if !errors.As(err, &s) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.switching > 0
	for r := range c.runs {
		own = own || r.command
	}
	if own {
		return &leftError{*s}
	}
	return err
}

// Sessions lists the conversations, the newest activity first; at most 10000.
func (c *Client) Sessions(ctx context.Context) ([]Listed, error) {
	var list []Listed
	if !c.l.facts.Sessions {
		return nil, nil
	}
	err := c.l.sessions(ctx, func(s Listed) bool {
		list = append(list, s)
		return true
	})
	return list, err
}

// Current is the conversation that the server goes on with now, if it has one.
func (c *Client) Current(ctx context.Context) (current Listed, found bool, err error) {
	if !c.l.facts.Sessions {
		return Listed{}, false, nil
	}
	return c.l.currentSession(ctx)
}

// Select makes another conversation the server's current one and returns a client of
// it over the same connection; this one ends. ErrBusy during a turn.
func (c *Client) Select(ctx context.Context, id string) (*Client, error) {
	defer c.changing()()
	if err := c.l.selectSession(ctx, id); err != nil {
		return nil, err
	}
	return c.l.open(ctx, id)
}

// NewSession begins a conversation and returns a client of it over the same
// connection; this one ends. ErrBusy during a turn.
func (c *Client) NewSession(ctx context.Context) (*Client, error) {
	defer c.changing()()
	id, err := c.l.newSession(ctx)
	if err != nil {
		return nil, err
	}
	return c.l.open(ctx, id)
}

// With returns a client of a conversation that is the server's current one already,
// over the same connection; this one ends. It blocks like Dial.
func (c *Client) With(ctx context.Context, session string) (*Client, error) {
	defer c.changing()()
	if !validSession(session) {
		return nil, fmt.Errorf("go on with conversation %q: %w", clip(session, maxIDBytes), store.ErrUnknown)
	}
	return c.l.open(ctx, session)
}
