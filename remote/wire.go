package remote

import "zcoder/internal/event"

// Protocol is the version that hello names.
const Protocol = 1

// DefaultPort is where servers listen and clients look.
const DefaultPort = 7337

// Names of the stream's messages (SSE `event:` fields). The stream is ours: existing
// peers poll /v1/events. It is GET /v1/stream?id=SESSION&after=N: the events of the
// conversation after number N and those that come, with a comment line at least every
// 15 seconds. When SESSION is not the current conversation it holds a state and a
// switched message alone.
const (
	// msgEvent carries an Envelope; the SSE id is its Seq.
	msgEvent = "event"
	// msgState says what the server is at. It comes first on every stream, and whenever
	// it changes: after the last event of a turn.
	msgState = "state"
	// msgForm carries a Form that waits, also again after a reconnect.
	msgForm = "form"
	// msgSwitched says which conversation is current now; the stream ends with it.
	msgSwitched = "switched"
)

// Envelope is one event of the conversation on the stream.
type Envelope struct {
	Event event.Event `json:"event"`
	// Approval is the one-use id that an answer to an Asked event names.
	Approval string `json:"approval,omitempty"`
}

// State is what the server is at.
type State struct {
	Session string `json:"session"`           // the current conversation
	Turn    string `json:"turn_id,omitempty"` // of the turn that runs; empty when none does
	Seq     int64  `json:"seq"`               // newest stored event of the conversation
	Run     string `json:"run,omitempty"`     // of the server: another one since it was started anew
	// Last is the turn that ended last, so that a client whose connection broke learns
	// how its own ended.
	Last *Outcome `json:"last,omitempty"`
}

// Outcome is the end of what one POST /v1/turn started.
type Outcome struct {
	Turn   string       `json:"turn_id"`
	Reason event.Reason `json:"reason,omitempty"`
	Error  string       `json:"error,omitempty"` // it could not be done
	Hint   string       `json:"hint,omitempty"`
	Submit string       `json:"submit,omitempty"` // text that the client enters now
	Draft  string       `json:"draft,omitempty"`  // text that the person may send, after reading it
}

// Form is a question of a slash command: a list to choose from, or a line to write.
type Form struct {
	ID      string   `json:"id"`
	Title   string   `json:"title"`
	Items   []string `json:"items,omitempty"` // empty: a line is asked for
	Current int      `json:"current,omitempty"`
}

// turnRequest is the body of POST /v1/turn. The last three are ours: the client shows
// Forms, one id starts one turn, however often it comes, and the turn is for one
// conversation, which else is 404: what was meant for it goes to no other.
type turnRequest struct {
	Prompt           string `json:"prompt"`
	StructuredEvents bool   `json:"structured_events,omitempty"`
	OpenDocuments    string `json:"open_documents,omitempty"`
	Interactive      bool   `json:"interactive,omitempty"`
	RequestID        string `json:"request_id,omitempty"`
	Session          string `json:"session_id,omitempty"`
}

// approvalRequest is the body of POST /v1/approval. The last two are ours: what was
// shown, and what the model is told of a refusal.
type approvalRequest struct {
	ID       string `json:"id"`
	Decision string `json:"decision"` // y, a or n
	Digest   string `json:"digest,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// formRequest is the body of POST /v1/form. An answer that is not OK is none; a Form that
// does not wait any more is 409.
type formRequest struct {
	ID    string `json:"id"`
	OK    bool   `json:"ok"`
	Index int    `json:"index"` // of Items
	Line  string `json:"line"`
}

// hello is the reply of GET /v1/hello.
type hello struct {
	Protocol        int    `json:"protocol"`
	ServerName      string `json:"server_name"`
	Workspace       string `json:"workspace"`
	Model           string `json:"model"`
	Profile         string `json:"profile"`
	CommandPolicy   string `json:"command_policy"`
	ModelStatus     string `json:"model_status"`
	ModelError      string `json:"model_error"`
	Harnesses       string `json:"harnesses"`
	Sessions        bool   `json:"sessions"`
	Goals           bool   `json:"goals"`
	InputQueue      bool   `json:"input_queue"`
	Documents       bool   `json:"documents"`
	DocumentContext bool   `json:"document_context"`
	GitStatus       string `json:"git_status"`
	// Ours.
	Commands bool   `json:"commands"` // slash commands travel as prompts
	Stream   bool   `json:"stream"`   // GET /v1/stream, POST /v1/form
	Notices  string `json:"notices,omitempty"`
	Version  string `json:"version"`
}
