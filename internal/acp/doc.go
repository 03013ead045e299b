// Package acp lets an editor drive conversations over the Agent Client Protocol:
// JSON-RPC, one message a line, on a pair of streams.
//
// It knows the protocol and events: what the editor asks becomes the input of a
// conversation, and what happens there becomes updates and permission requests. It
// knows no settings, no tools and no policy, and starts nothing: a Host opens
// conversations for it. Package app calls Serve.
//
// Of what an editor can do for an agent nothing is used but showing and asking: files
// and commands go through the tools, which work on disk behind the gate.
package acp

import (
	"context"
	"iter"
	"time"

	"zcoder/internal/event"
)

// Host opens the conversations of one editor. Its methods may be called from several
// goroutines. Errors are shown to the person; one with a Hint method also says what to
// do next, one that wraps ErrUnknown means that there is no such conversation.
type Host interface {
	// Open begins a conversation, or goes on with a stored one.
	Open(ctx context.Context, s Start) (Conversation, error)
	// List describes the stored conversations of a directory, or of all for an empty
	// one, newest activity first.
	List(ctx context.Context, dir string) ([]Listed, error)
	// Modes are the modes that a conversation can be in.
	Modes() []Mode
	// Images reports whether prompts may hold images. It may ask the model's server.
	Images(ctx context.Context) bool
}

// Start says how a conversation begins.
type Start struct {
	Dir     string   // absolute and clean; it may not exist
	Session string   // the id of the conversation to go on with; empty: a new one
	Servers []Server // MCP servers that the editor brings; nothing of them is trusted
}

// Server is an MCP server as the editor describes it, word for word.
type Server struct {
	Name    string
	Command string // of a program; else empty
	Args    []string
	Env     map[string]string
	URL     string // of one over HTTP; else empty
	Headers map[string]string
}

// Listed is a stored conversation.
type Listed struct {
	ID, Dir, Title string
	Changed        time.Time // zero: not known
}

// Mode is a set of rules that a conversation is held under.
type Mode struct{ ID, Name, About string }

// Command is a slash command that prompts may begin with.
type Command struct {
	Name  string
	About string
	Usage string // of its arguments; empty: it takes none
}

// Conversation is one that the editor has open. Its methods may be called from several
// goroutines.
type Conversation interface {
	// Info describes it. Info().Profile is the mode that it is in.
	Info() event.Session
	// Run handles a prompt, and blocks until its end. The reason is empty for a command
	// that started no turn. Cancelling ctx stops it.
	Run(ctx context.Context, in event.Input, ask Forms) (event.Reason, error)
	// LastSeq, Events, Answer and Enqueue are those of a session.
	LastSeq() int64
	Events(ctx context.Context, after int64) iter.Seq2[event.Event, error]
	Answer(callID string, a event.Answer) error
	Enqueue(item event.Item) (state string, err error)
	// SetMode begins the conversation anew in another mode, under the same id. It
	// refuses once something was said in it.
	SetMode(ctx context.Context, mode string) error
	Commands() []Command
	// Close ends it with all that it runs, and waits for that.
	Close() error
}

// Forms asks the person at the editor. The methods block until there is an answer, and
// give nothing when the prompt is cancelled or the editor cannot ask.
type Forms interface {
	Choose(title string, items []string, current int) (index int, ok bool)
	// AskLine knows questions that end with "[y/N] " alone.
	AskLine(prompt string) (line string, ok bool)
	// Confirm shows all of a text and asks for one decision about it.
	Confirm(title, text, yes, no string) bool
}
