// Package event holds what a session tells its frontends: the events of a turn, in
// order, as plain data. The session log stores the same values that subscribers
// get, so a transcript can be replayed.
//
// It knows no terminal, no file and no protocol; of ours it imports only chat. All
// text in events is exact and not sanitised.
package event

import (
	"strings"
	"time"

	"zcoder/internal/chat"
)

// Kind says what an event is about.
type Kind string

// The kinds of event. Those marked (live) are not stored: what they show is part of
// a later stored event or of no lasting interest.
const (
	Opened    Kind = "session"    // first event of a session: Session is set
	User      Kind = "user"       // Text is what a person sent
	Note      Kind = "note"       // Text is a record that the program adds for the model
	Relayed   Kind = "relay"      // Peer is set: another instance's message started the turn; its Note follows
	Shell     Kind = "shell"      // a person's own `! command`: Text is what the model will see of it
	TurnStart Kind = "turn_start" // a turn began
	Progress  Kind = "state"      // (live) State is set: what the program waits for
	Content   Kind = "text"       // Text is a piece of the reply
	Thinking  Kind = "thinking"   // Text is a piece of the model's thinking
	Reply     Kind = "reply"      // Reply is set: the whole reply of a round
	CallStart Kind = "call"       // Call is set: a call was read and planned
	Output    Kind = "output"     // (live) Text is output of the running call
	CallEnd   Kind = "result"     // Result is set: the one result of a call
	Asked     Kind = "question"   // Question is set: an approval waits
	Answered  Kind = "answer"     // Answer is set: the question is settled
	Info      Kind = "info"       // Text is for the person only
	Printed   Kind = "printed"    // Text is what a slash command printed where the person is not at the keyboard
	Warning   Kind = "warning"    // Text is for the person only, and should be noticed
	Compacted Kind = "compacted"  // Messages replaces the history before it
	Titled    Kind = "title"      // Text is the session's new title
	Queued    Kind = "queued"     // Item is set: input waits for its time
	Unqueued  Kind = "unqueued"   // Item is set: waiting input was dropped, or a command claimed
	GoalState Kind = "goal"       // Goal is set: the goal as it is now
	TurnEnd   Kind = "turn_end"   // End is set: the one end of a turn
)

// Rewound is the text of a Compacted event whose messages are the beginning of the
// history as it was: a person undid turns.
const Rewound = "rewound"

// Live reports whether events of this kind are shown but not stored.
func (k Kind) Live() bool { return k == Progress || k == Output }

// Event is one event. Only the fields that its kind names are set.
type Event struct {
	Seq  int64     `json:"seq"` // 1 for the first event of a session, then one more each; live events have the number of the stored event before them
	Time time.Time `json:"time"`
	Kind Kind      `json:"event"`
	Turn string    `json:"turn,omitempty"`
	Text string    `json:"text,omitempty"`

	Session  *Session       `json:"session,omitempty"`
	State    *State         `json:"state,omitempty"`
	Reply    *ModelReply    `json:"reply,omitempty"`
	Call     *Call          `json:"call,omitempty"`
	Result   *Result        `json:"result,omitempty"`
	Question *Question      `json:"question,omitempty"`
	Answer   *Answer        `json:"answer,omitempty"`
	Messages []chat.Message `json:"messages,omitempty"`
	Images   [][]byte       `json:"images,omitempty"` // of a User or CallEnd event
	End      *End           `json:"end,omitempty"`
	// Item is the queued input that a Queued or Unqueued event is about, and on a
	// User event the one that it consumed.
	Item *Item `json:"item,omitempty"`
	Goal *Goal `json:"goal,omitempty"`
	Peer *Peer `json:"peer,omitempty"`
}

// Peer is another instance of the program with a message of its own.
type Peer struct {
	Instance  string `json:"instance"`
	PID       int    `json:"pid"`
	Project   string `json:"project"`
	Workspace string `json:"workspace"`
	Message   string `json:"message"` // exact, as it came
}

// Goal is an objective that the session works on over several turns.
type Goal struct {
	Objective  string `json:"objective"`
	State      string `json:"state"`           // active, verifying, paused, blocked, budget_limited, complete, none
	Limit      int    `json:"limit,omitempty"` // tokens; 0 is none
	Used       int    `json:"used,omitempty"`  // tokens of worker and verifier
	Rejections int    `json:"rejections,omitempty"`
	Reason     string `json:"reason,omitempty"` // why it is paused or blocked, or what the verifier said
}

// Mode says when queued input is taken.
type Mode string

// The modes of queued input.
const (
	Steer    Mode = "steer"     // after the current round's tools
	FollowUp Mode = "follow_up" // after the turn
	Command  Mode = "command"   // a person's `! command`: after the turn, before what was queued later
)

// Item is one queued input.
type Item struct {
	ID   string `json:"id"` // 1 to 64 of [A-Za-z0-9_-]
	Mode Mode   `json:"mode,omitempty"`
	Text string `json:"text,omitempty"`
	// State is "accepted", "consumed" or "discarded"; on an Unqueued event the last two.
	State string `json:"state,omitempty"`
}

// Session describes a session.
type Session struct {
	ID        string `json:"id"`
	Workspace string `json:"workspace"`
	Profile   string `json:"profile"`
	Model     string `json:"model,omitempty"`
}

// Phase is what the program waits for.
type Phase string

// The phases of a turn.
const (
	Loading    Phase = "loading model"
	Reading    Phase = "reading prompt"
	Generating Phase = "generating"
	Calling    Phase = "writing a call"
	Running    Phase = "running"
	Waiting    Phase = "waiting for you"
	Compacting Phase = "compacting"
	Keeping    Phase = "keeping the files for undo"
)

// State is a change of phase. Frontends count the seconds themselves.
type State struct {
	Phase  Phase  `json:"phase"`
	Detail string `json:"detail,omitempty"` // e.g. the call's summary
}

// ModelReply is a whole reply with what the server counted.
type ModelReply struct {
	Message    chat.Message `json:"message"`
	DoneReason string       `json:"done_reason,omitempty"`
	Usage      chat.Usage   `json:"usage"`
	// Partial marks a reply that was cut short: cancelled, or the stream broke.
	Partial bool `json:"partial,omitempty"`
	// Degenerate marks a reply that the server stopped because the model repeated
	// itself: it was shown, and is not part of the history.
	Degenerate bool `json:"degenerate,omitempty"`
	// Window is the context window in tokens that the request used; 0 unknown.
	Window int `json:"window,omitempty"`
	// Prefix identifies model, system prompt and tools of the request.
	Prefix string `json:"prefix,omitempty"`
}

// Call is a call that is about to be judged.
type Call struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Args    string `json:"args"` // canonical JSON, or the raw text of a broken call
	Effect  string `json:"effect,omitempty"`
	// Text is the exact text of a command, since Summary may be shorter; else empty.
	Text string `json:"text,omitempty"`
}

// Whole returns the lines of the command when the summary does not hold all of it.
func (c Call) Whole() []string {
	if c.Text == "" || strings.TrimSpace(c.Summary) == strings.TrimSpace(c.Name+" "+c.Text) {
		return nil
	}
	return strings.Split(strings.TrimRight(c.Text, "\n"), "\n")
}

// Result is the one result of a call.
type Result struct {
	CallID   string        `json:"call_id"`
	Name     string        `json:"name"`
	Status   string        `json:"status"` // ok, failed, denied, cancelled, skipped
	Text     string        `json:"text"`   // as the model gets it
	Line     string        `json:"line,omitempty"`
	Diff     string        `json:"diff,omitempty"`
	Changed  []string      `json:"changed,omitempty"`
	ExitCode *int          `json:"exit_code,omitempty"`
	Took     time.Duration `json:"took,omitempty"`
	// Direct marks the result of a command that a person asked for: the model learns
	// of it by a Shell event, not as the result of a call of its own.
	Direct bool `json:"direct,omitempty"`
}

// Question is an approval that waits for a person: everything that must be shown.
type Question struct {
	CallID  string   `json:"call_id"`
	Tool    string   `json:"tool"`
	Effect  string   `json:"effect"`
	Origin  string   `json:"origin,omitempty"`
	Summary string   `json:"summary"`
	Text    string   `json:"text"`            // exact, with its line breaks
	Shell   []string `json:"shell,omitempty"` // program and flags that Text is appended to
	Dir     string   `json:"dir,omitempty"`
	Timeout string   `json:"timeout,omitempty"`
	Host    string   `json:"host,omitempty"`    // set by remote clients
	Reasons []string `json:"reasons,omitempty"` // why it asks
	Notes   []string `json:"notes,omitempty"`   // reading aids
	// Grantable offers `a`, commands for the rest of this conversation.
	Grantable bool   `json:"grantable,omitempty"`
	Digest    string `json:"digest"` // of the request; an answer may carry it back
}

// Answer settles a question.
type Answer struct {
	CallID string `json:"call_id"`
	Choice string `json:"choice"` // no, once, conversation
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Digest string `json:"digest,omitempty"` // optional: must match the question's
}

// Reason says how a turn ended.
type Reason string

// The ends of a turn.
const (
	Complete  Reason = "complete"
	Blocked   Reason = "blocked"   // the model says that it cannot go on
	Cancelled Reason = "cancelled" // by a person
	Errored   Reason = "error"     // the model or its server failed
	Limited   Reason = "limit"     // --max-rounds or --max-time
	Looped    Reason = "loop"      // the loop detector stopped it
	Budget    Reason = "budget"    // the token budget of a goal is used
)

// End is the one end of a turn, with facts from what happened.
type End struct {
	Reason   Reason        `json:"reason"`
	Text     string        `json:"text,omitempty"` // the error, the limit, or the finish response
	Hint     string        `json:"hint,omitempty"`
	Rounds   int           `json:"rounds"`
	Took     time.Duration `json:"took"`
	Changed  []string      `json:"changed,omitempty"`  // files, in the order of their first change
	Commands []Ran         `json:"commands,omitempty"` // commands that ran
	Failed   int           `json:"failed,omitempty"`   // calls that failed
	Refused  int           `json:"refused,omitempty"`  // calls that a rule or a person refused
	// Unattended counts refusals for want of a person; OnlyPerson are those of them that
	// --yes would not have allowed either.
	Unattended   int `json:"unattended,omitempty"`
	OnlyPerson   int `json:"only_person,omitempty"`
	PromptTokens int `json:"prompt_tokens,omitempty"` // of the last request
	OutputTokens int `json:"output_tokens,omitempty"` // of the whole turn
	// FreshTokens are tokens written, and read for the first time, in the whole turn.
	FreshTokens int `json:"fresh_tokens,omitempty"`
	Window      int `json:"window,omitempty"` // 0 unknown
}

// Ran is a command that ran.
type Ran struct {
	Summary string `json:"summary"`
	Exit    *int   `json:"exit,omitempty"` // nil when it did not end by itself
}

// Input is what a person sends.
type Input struct {
	Text string `json:"text"`
	// Images are for models with vision.
	Images [][]byte `json:"images,omitempty"`
	// Item is the queued input that this came from, if any.
	Item *Item `json:"item,omitempty"`
	// Attached are texts that come with the input, e.g. from an editor's buffers. The
	// program cuts them to what the window has room for.
	Attached []Attachment `json:"-"`
	// Before are events that enter the history before the input: what it mentions
	// (Note), and what the person should know of that (Info, Warning). The program
	// sets them.
	Before []Event `json:"-"`
	// Peer is set when another instance sent this. Text is then what the model gets of
	// it, and no person's word. It never comes over a wire.
	Peer *Peer `json:"-"`
}

// Attachment is a text that comes with an input.
type Attachment struct {
	Name string // on one line
	Text string
}
