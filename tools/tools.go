// Package tools is the contract between the loop and everything that a model can
// call: Tool, Action, Result, Registry and the strict decoder for arguments.
//
// It holds no built-in tool. Adapters implement Tool; the loop plans, asks the gate
// and does.
package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"zcoder/internal/approval"
)

// Tool is something the model can call.
type Tool interface {
	// Spec is constant for the life of the tool.
	Spec() Spec
	// Plan validates the call and describes it, and changes nothing. Its error is
	// for the model: it says how to correct the call. It may block on reading and
	// returns early when ctx ends.
	Plan(ctx context.Context, call Call) (Action, error)
}

// Call is one call with decoded arguments.
type Call struct {
	ID   string
	Args Args
}

// Spec is what the model sees of a tool and what the decoder checks.
type Spec struct {
	Name        string
	Description string
	Params      []Param
	// Schema replaces the schema made from Params, for tools that come with their
	// own (MCP). The decoder then checks only the form of the object.
	Schema json.RawMessage
	// Blunt tools replace text wholesale: after a rejected patch they are withheld
	// until a correct patch lands or the turn ends.
	Blunt bool
}

// Type is the type of a parameter.
type Type string

// The types of parameters.
const (
	String  Type = "string"
	Integer Type = "integer"
	Boolean Type = "boolean"
)

// Param is one argument of a tool.
type Param struct {
	Name        string
	Type        Type
	Description string
	Required    bool
	Enum        []string
	// Min and Max bound an integer when Max > 0.
	Min, Max int
	// Aliases are near misses of real models that mean this parameter, e.g.
	// "file_path" for "path".
	Aliases []string
}

// Action is a validated call, ready to run. The zero value does nothing.
type Action struct {
	request approval.Request
	do      func(context.Context, approval.Request, Progress) Result
}

// Progress receives output of a running action as it comes: whole or partial
// lines, not sanitised. It may be called from other goroutines than Do's but never
// after Do returned.
type Progress func(text string)

// NewAction makes an action. do runs at most once, after the permit was spent; it
// checks again what Plan read and refuses if it changed.
func NewAction(r approval.Request, do func(context.Context, Progress) Result) Action {
	if do == nil {
		return Action{request: r}
	}
	return Action{request: r, do: func(ctx context.Context, _ approval.Request, p Progress) Result { return do(ctx, p) }}
}

// NewRequestAction makes an action whose do gets the request as it was permitted,
// with what the loop added to it.
func NewRequestAction(r approval.Request, do func(context.Context, approval.Request, Progress) Result) Action {
	return Action{request: r, do: do}
}

// Request returns the description that the gate judges.
func (a Action) Request() approval.Request { return a.request }

// ForTurn returns the action with the parts of the request that only the loop
// knows.
func (a Action) ForTurn(turn string, origin approval.Origin) Action {
	a.request.Turn, a.request.Origin = turn, origin
	return a
}

// Do runs the action once. It refuses with approval.ErrNoPermit unless the permit
// covers exactly this request. It blocks until the action ended or ctx did.
func (a Action) Do(ctx context.Context, p approval.Permit, progress Progress) (Result, error) {
	if err := p.Use(a.request); err != nil {
		return Result{}, err
	}
	if a.do == nil {
		return Result{}, fmt.Errorf("do %q: the action has no body", a.request.Tool)
	}
	if progress == nil {
		progress = func(string) {}
	}
	return a.do(ctx, a.request, progress), nil
}

// Status says how an action ended.
type Status string

// The ends of an action.
const (
	OK        Status = "ok"
	Failed    Status = "failed"    // it ran, or could not; Text says why
	Cancelled Status = "cancelled" // the turn was cancelled
	Denied    Status = "denied"    // a rule or a person refused
	Skipped   Status = "skipped"   // not run: the turn ended before
)

// Result is the one result of a call.
type Result struct {
	Status Status
	Text   string // for the model, exact
	// Diff is a unified diff of what changed, for people.
	Diff string
	// Changed are the workspace-relative files that were written or removed.
	Changed []string
	// ExitCode is set when a command ran to its end.
	ExitCode *int
	// Line is a short outcome for the progress line, e.g. "42 lines", "exit 1".
	Line string
	// Took is set by the loop.
	Took time.Duration
	// Finish is set by the finish tool.
	Finish *Finish
	// Images are for models with vision.
	Images [][]byte
}

// Finish is the end of a turn as the model states it.
type Finish struct {
	Status   string // "complete" or "blocked"
	Response string
}

// Fail is a failed result with a formatted text for the model.
func Fail(format string, args ...any) Result {
	return Result{Status: Failed, Text: fmt.Sprintf(format, args...)}
}
