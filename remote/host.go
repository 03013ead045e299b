package remote

import (
	"context"
	"iter"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// Host is what a server serves: one workspace with its conversations, of which one is
// current. Its methods may be called from several goroutines; the server sees to it
// that New, Select and Run are not called while a turn runs.
type Host interface {
	// Facts describe the server. It may block on the model server for a few seconds.
	Facts(ctx context.Context) Facts
	// Model is the readiness of the model; with ensure it loads it first if it is not
	// there, and blocks until that is over.
	Model(ctx context.Context, ensure bool) Model
	// Current is the conversation that turns go to. It changes by New, Select and Run.
	Current() Conversation
	// Sessions lists the conversations of this workspace and profile, the newest
	// activity first, the current one included even when it is still empty.
	Sessions() ([]store.Info, error)
	// Past returns the events of a conversation from its log, oldest first. The error
	// wraps store.ErrUnknown when there is none of that id here.
	Past(id string) ([]event.Event, error)
	// Select makes another conversation the current one; New begins one. The error of
	// Select wraps store.ErrUnknown when there is none of that id here.
	Select(ctx context.Context, id string) error
	New(ctx context.Context) (id string, err error)
	// Run handles the input of a turn: a prompt, `/goal …`, `! command` or a slash
	// command whose state is the server's. It blocks until the end, whose reason it
	// returns, and asks the person through ui. Cancelling ctx is Current().Cancel.
	Run(ctx context.Context, in event.Input, ui UI) (event.Reason, error)
	// RunNow handles a slash command that may run beside a turn; ok is false for any
	// other text, and then nothing was done.
	RunNow(ctx context.Context, text string, ui UI) (ok bool, err error)
}

// Conversation is a session as the server drives it. *session.Session is one.
type Conversation interface {
	Info() event.Session
	LastSeq() int64
	Busy() bool
	Cancel()
	Skip()
	Answer(callID string, a event.Answer) error
	Events(ctx context.Context, after int64) iter.Seq2[event.Event, error]
	Enqueue(item event.Item) (state string, err error)
	Receipt(id string) (event.Item, bool)
	Drop(id string) error
	Pending() (items []event.Item, paused bool)
	Emit(e event.Event)
}

// UI is what a slash command on the server may ask the person at the client. What it
// prints are Printed events of the conversation.
type UI interface {
	// Choose and AskLine block until the client answers, and give nothing when it
	// cannot, or when the command's context ends.
	Choose(title string, items []string, current int) (index int, ok bool)
	AskLine(prompt string) (line string, ok bool)
	// Submit has the client enter text after the command, as if typed there. It
	// reports whether the client will; if not, the host runs the text itself.
	Submit(text string) bool
	// Draft puts text before the person, who may send it. It reports whether the client
	// will.
	Draft(text string) bool
}

// Facts describe a server. All text is exact.
type Facts struct {
	Workspace     string
	Model         string
	Profile       string
	CommandPolicy string
	Harnesses     []string // installed agent programs
	GitStatus     string
	Notices       string // lines that a person should see at the start
	Readiness     Model
	Version       string
}

// Model is the readiness of the model.
type Model struct {
	Status string // ready, warming or error
	Error  string // why it is not ready, else empty
}

// The values of Model.Status.
const (
	Ready   = "ready"
	Warming = "warming"
	Failed  = "error"
)
