package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"zcoder/internal/event"
)

// ClientConfig is where a client connects and how. NewID is required.
type ClientConfig struct {
	// Address is a TCP or Unix one; Pipe, if there is one, is used instead.
	Address Address
	Pipe    *Pipe
	// Token goes with every request; a pipe needs none.
	Token string
	// Name is what approvals show as the host. Empty: the name that the server gives
	// itself, and where it is.
	Name string
	// Session is the conversation to go on with. When it is empty and Continue is set
	// it is the server's current one; else a new one, or the current one when that is
	// empty or works on a turn.
	Session  string
	Continue bool
	// NewID returns an id of 1 to 64 of [A-Za-z0-9_-] that never comes again: requests
	// that are repeated after a lost reply carry it.
	NewID func() string
	// Timeout is how long a reply may take; 0 is 30 seconds. Loading a model may take
	// longer.
	Timeout time.Duration
	// Now is the clock of events that the client makes itself; nil is the real one.
	Now func() time.Time
}

// Errors that callers may test for. What Sessions, Select and Dial say of an unknown
// conversation wraps store.ErrUnknown.
var (
	// ErrBusy means that a turn runs on the server already, of whatever client.
	ErrBusy = errors.New("a turn is already running on the server")
	// ErrSettled means that a question has its answer, or is not asked any more.
	ErrSettled = errors.New("the question is already settled")
	// ErrIdle means that no turn runs that queued input could go to.
	ErrIdle = errors.New("no turn is running")
	// ErrNoQueue means that the server takes no input during a turn.
	ErrNoQueue = errors.New("this server takes no input during a turn")
	// ErrNotSent means that a request was not begun, since the conversation that it was
	// for is not followed any more; the error says why.
	ErrNotSent = errors.New("the request was not sent")
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("the connection was closed")
	// ErrLost means that a pipe broke, which cannot be opened again.
	ErrLost = errors.New("connection lost")
	// ErrToken means that the server refused the token.
	ErrToken = errors.New("the server refuses the token")
)

// SwitchedError ends what follows a conversation that is not the server's current one
// any more. Client.With goes on with the new one.
type SwitchedError struct {
	Session string // the current one
	Anew    bool   // the server was started anew meanwhile: nobody need have chosen it
}

func (e *SwitchedError) Error() string {
	return fmt.Sprintf("the server went on with another conversation: %s", clip(e.Session, 64))
}

// ServerFacts are what a server says of itself. The text is the far side's: bounded,
// and not safe for a terminal.
type ServerFacts struct {
	Name          string
	Workspace     string
	Model         string
	Profile       string
	CommandPolicy string
	GitStatus     string
	Notices       string // lines for the person, as the server said them at its start
	Version       string // of the program; empty for other implementations
	// Readiness has an empty Status when the server does not manage the model.
	Readiness Model
	// Harnesses are the installed agent programs, if HarnessesKnown.
	Harnesses      []string
	HarnessesKnown bool
	Sessions       bool // it keeps conversations
	Goals          bool // it handles /goal
	InputQueue     bool // it takes input during a turn
	Commands       bool // it handles slash commands
	Stream         bool // it streams events, else it is polled
}

// Forms asks the person what a slash command on the server wants to know. The methods
// block until there is an answer. The UI that repl gives to commands is one.
type Forms interface {
	Choose(title string, items []string, current int) (index int, ok bool)
	AskLine(prompt string) (line string, ok bool)
}

// Listed is a conversation in the list of a server.
type Listed struct {
	ID      string
	Title   string
	Model   string
	Current bool
	Empty   bool // nothing was said in it yet
}

// Client is a conversation on a server: what frontends drive, and how they learn of
// other conversations there. Its methods may be called from several goroutines.
type Client struct {
	l    *link
	f    *feed
	stop context.CancelCauseFunc // ends what fills the feed

	mu        sync.Mutex
	runs      map[*run]bool
	switching int  // requests under way that may change the server's conversation
	polled    bool // a plain server had events of a turn
}

// Dial connects to a server, agrees on the protocol and on a conversation, and
// follows that from its first event on until Close. It blocks until it is known how
// far the conversation is. ctx bounds that alone.
func Dial(ctx context.Context, cfg ClientConfig) (*Client, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l, err := newLink(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c, err := l.dial(ctx)
	if err != nil {
		l.close()
		return nil, fmt.Errorf("connect to %s: %w", l.where(), err)
	}
	return c, nil
}

// Close ends the connection and all that follows it. What runs on the server goes on.
func (c *Client) Close() error {
	c.l.close()
	return nil
}

// Hello returns what the server said of itself when the client connected.
func (c *Client) Hello() ServerFacts { return c.l.facts }

// Host is the server's display name, as approvals show it.
func (c *Client) Host() string { return c.l.host }

// Info describes the conversation.
func (c *Client) Info() event.Session {
	return event.Session{ID: c.f.session, Workspace: c.l.facts.Workspace, Profile: c.l.facts.Profile, Model: c.l.facts.Model}
}

// LastSeq is the number of the newest stored event on the server, of those that are
// known to be there.
func (c *Client) LastSeq() int64 { return c.f.lastSeq() }

// Busy reports whether a turn runs on the server, of whatever client.
func (c *Client) Busy() bool {
	c.mu.Lock()
	own := len(c.runs) > 0
	c.mu.Unlock()
	return own || c.f.running() != ""
}

// Events yields the events after a sequence number, in order, and waits for more
// until ctx ends, another client changes the current conversation (*SwitchedError) or
// the connection is over; the last pair holds that error. A connection that breaks
// is opened again, which Warning and Info events tell. After Select, NewSession, With or
// a command that changed the conversation it waits for the end of ctx.
func (c *Client) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return c.f.follow(ctx, after)
}
