// Package chat holds the words that the conversation, the loop and the model
// adapters share: messages, tool calls, requests, replies and the kinds of failure.
//
// It knows no provider, no tool and no session; it imports nothing of ours.
package chat

import (
	"encoding/json"
	"time"
)

// Role says who a message is from.
type Role string

// The roles, as the model servers name them.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// ToolCall is one call that the model asked for.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the arguments as the model sent them: an object, or a JSON string
	// that holds one, or broken text. Use tools.Decode to read it. What goes back
	// to a server is always an object.
	Args json.RawMessage `json:"args,omitempty"`
}

// Message is one record of the history.
type Message struct {
	Role     Role       `json:"role"`
	Content  string     `json:"content"`
	Thinking string     `json:"thinking,omitempty"`
	Calls    []ToolCall `json:"calls,omitempty"`
	// ToolName and CallID pair a tool result with its call.
	ToolName string `json:"tool_name,omitempty"`
	CallID   string `json:"call_id,omitempty"`
	// Images are for models with vision.
	Images [][]byte `json:"images,omitempty"`
	// Note marks a user-role record that the program wrote, not a person.
	Note bool `json:"note,omitempty"`
	// Pinned holds exact earlier requests that a checkpoint carries, oldest first.
	// Content repeats them for the model; the field itself is not sent.
	Pinned []string `json:"pinned,omitempty"`
}

// Tool is what the model sees of a tool.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments, already in its final byte form.
	Schema json.RawMessage
}

// Request is one request to a model. Everything in it is sent as it stands, in the
// same bytes each time, so that the server's cache of the prefix is reused.
type Request struct {
	Model    string
	Messages []Message
	Tools    []Tool
	// Think is "", "off", "on", "low", "medium" or "high"; empty leaves it out.
	Think string
	// NumCtx is the context window in tokens; 0 leaves it to the server.
	NumCtx int
	// NumPredict bounds the reply in tokens; 0 leaves it to the server.
	NumPredict int
	// Format is a JSON schema that constrains the reply; nil for free text.
	Format json.RawMessage
	// Temperature is sent when not nil.
	Temperature *float64
	// KeepAlive is how long the server keeps the model loaded, in the server's
	// notation; empty leaves it out.
	KeepAlive string
}

// Delta is a piece of a reply while it streams.
type Delta struct {
	Content  string
	Thinking string
	// Calls is the number of calls seen so far, for progress only.
	Calls int
}

// Usage is what the server counted.
type Usage struct {
	PromptTokens int           `json:"prompt_tokens"`
	OutputTokens int           `json:"output_tokens"`
	Load         time.Duration `json:"load,omitempty"`
	PromptEval   time.Duration `json:"prompt_eval,omitempty"`
	Eval         time.Duration `json:"eval,omitempty"`
	Total        time.Duration `json:"total,omitempty"`
}

// Reply is a whole reply.
type Reply struct {
	Message Message
	// Done is false when the stream ended cleanly without its last record: a
	// degenerate answer (the server stops a model that repeats itself), not a
	// broken connection.
	Done       bool
	DoneReason string // "stop", "length", …
	Usage      Usage
}

// Failure is the kind of a model error, so that the loop can decide and the
// frontends can hint without reading texts.
type Failure string

// The kinds of failure.
const (
	Unreachable   Failure = "unreachable"    // no server at the address
	MissingModel  Failure = "missing-model"  // the server does not have the model
	NoTools       Failure = "no-tools"       // the model cannot call tools
	NoThinking    Failure = "no-thinking"    // the model cannot think, or not at this level
	Overflow      Failure = "overflow"       // the request does not fit the window
	Busy          Failure = "busy"           // the server's queue is full
	OutOfMemory   Failure = "out-of-memory"  // the model does not fit the machine, or its runner died
	ToolParse     Failure = "tool-parse"     // the server could not read its model's call
	BrokenStream  Failure = "broken-stream"  // the connection ended before the reply was complete
	IdleTimeout   Failure = "idle-timeout"   // nothing came for longer than the limit
	Unauthorised  Failure = "unauthorised"   // the server wants a key
	BadResponse   Failure = "bad-response"   // not the server we expect, e.g. a proxy's page
	ServerFailure Failure = "server-failure" // any other error with the server's own text
)

// Error is a failed request. Partial holds what had arrived.
type Error struct {
	Kind    Failure
	Text    string // the server's own message, or ours; one line, not sanitised
	Hint    string // what to do next; may be empty
	Status  int    // HTTP status, 0 when there was none
	Partial Reply
	Cause   error
}

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
