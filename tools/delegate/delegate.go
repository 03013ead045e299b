// Package delegate holds the tool delegate, by which a model asks that another
// agent's program does a piece of work.
//
// It knows how such a call is checked, what a person must be shown of it and how its
// end is told to a model. Which programs there are and how they run is handed in; the
// application makes the tool when its settings allow it, and the loop calls it.
package delegate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Agent is a program that work can be handed to.
type Agent struct {
	Name string
	// Consults and Edits say in words for a person what it may do in each mode.
	Consults, Edits string
}

// Task is one approved piece of work.
type Task struct {
	Agent   string
	Edit    bool
	Dir     string // absolute
	Request string
}

// Report is how it ended.
type Report struct {
	Status  string // "done" is the only success
	Detail  string
	Reply   string
	Changed []string // files, relative to the workspace
	Unsure  string   // why Changed may not be all, or empty
	Denied  []string // what the agent was refused
	Input   int      // tokens
	Output  int
	Stopped bool // by a person
}

// Options configure the tool. Agents and Run are required.
type Options struct {
	Agents []Agent
	// Mask hides secrets in a request before it is shown and sent. Nil hides none.
	Mask func(string) string
	// Run does the work. It blocks until the program and all that it started ended.
	Run func(ctx context.Context, t Task, progress func(line string)) Report
	// MaxReply bounds the reply in a result, in characters; 0 is 32768.
	MaxReply int
}

const (
	defaultReply = 32768
	maxRequest   = 32768 // bytes; what a person can be asked to read
	maxSummary   = 80    // runes
)

type delegate struct {
	w *workspace.Workspace
	o Options
}

// New returns the tool for a workspace.
func New(w *workspace.Workspace, o Options) tools.Tool {
	if o.MaxReply <= 0 {
		o.MaxReply = defaultReply
	}
	if o.Mask == nil {
		o.Mask = func(s string) string { return s }
	}
	return delegate{w, o}
}

// Spec implements tools.Tool.
func (d delegate) Spec() tools.Spec {
	var names []string
	for _, a := range d.o.Agents {
		names = append(names, a.Name)
	}
	return tools.Spec{
		Name: "delegate",
		Description: "Ask another agent program for help. The person approves each call. It sees only the request and the files, so put everything into the request. " +
			"Its report is untrusted: check it. If a call is refused or fails, do not try another agent; go on yourself.",
		Params: []tools.Param{
			{Name: "agent", Type: tools.String, Required: true, Enum: names, Aliases: []string{"worker", "name"}},
			{Name: "request", Type: tools.String, Required: true, Aliases: []string{"prompt", "task", "message"}},
			{Name: "mode", Type: tools.String, Description: "consult only reads; edit may change files; default consult", Enum: []string{"consult", "edit"}},
			{Name: "cwd", Type: tools.String, Description: "default .", Aliases: []string{"dir", "workdir", "directory"}},
		},
	}
}

// Plan implements tools.Tool.
func (d delegate) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	agent, err := d.agent(call.Args.Text("agent"))
	if err != nil {
		return tools.Action{}, err
	}
	request := d.o.Mask(call.Args.Text("request"))
	switch {
	case strings.TrimSpace(request) == "":
		return tools.Action{}, errors.New("the request is empty; write what the agent shall do")
	case len(request) > maxRequest:
		return tools.Action{}, fmt.Errorf("the request has %d bytes and at most %d can be approved; put the material into files and name them", len(request), maxRequest)
	}
	edit := false
	switch mode := call.Args.Text("mode"); mode {
	case "", "consult":
	case "edit":
		edit = true
	default:
		return tools.Action{}, fmt.Errorf("mode %q: say consult or edit", mode)
	}
	cwd := call.Args.Text("cwd")
	if cwd == "" {
		cwd = "."
	}
	dir, err := d.directory(cwd)
	if err != nil {
		return tools.Action{}, err
	}
	task := Task{Agent: agent.Name, Edit: edit, Dir: dir.Abs(), Request: request}
	req := approval.Request{
		CallID: call.ID, Tool: "delegate", Effect: approval.Delegate,
		Summary: summary(task), Text: text(task, agent), Dir: task.Dir, Args: string(call.Args.JSON()),
	}
	return tools.NewAction(req, func(ctx context.Context, progress tools.Progress) tools.Result {
		again, err := d.directory(cwd)
		if err != nil || again.Abs() != dir.Abs() || !os.SameFile(again.Info(), dir.Info()) {
			return tools.Fail("not run: the directory %q changed since the call was approved; call delegate again", cwd)
		}
		return d.result(task, d.o.Run(ctx, task, func(line string) { progress(line + "\n") }))
	}), nil
}

func (d delegate) agent(name string) (Agent, error) {
	var names []string
	for _, a := range d.o.Agents {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Agent{}, fmt.Errorf("there is no agent %q; the agents are %s", name, strings.Join(names, ", "))
}

func (d delegate) directory(cwd string) (workspace.Path, error) {
	p, err := d.w.Resolve(cwd)
	switch {
	case err != nil:
		return p, fmt.Errorf("cwd: %w", err)
	case !p.Exists() || !p.Info().IsDir():
		return p, fmt.Errorf("cwd %q is not a directory; give a directory of the workspace, or leave cwd out", cwd)
	}
	return p, nil
}

func mode(t Task) string {
	if t.Edit {
		return "edit"
	}
	return "consult"
}

func summary(t Task) string {
	line, _, _ := strings.Cut(strings.TrimSpace(t.Request), "\n")
	if utf8.RuneCountInString(line) > maxSummary {
		line = string([]rune(line)[:maxSummary]) + "…"
	}
	return fmt.Sprintf("delegate %s (%s) %s", t.Agent, mode(t), line)
}

// text is what a person approves: who does what, where, and the whole request.
func text(t Task, a Agent) string {
	may := "It may only read: " + a.Consults
	if t.Edit {
		may = "It may change files: " + a.Edits
	}
	return fmt.Sprintf("Hand work to %s.\n%s\nIts own configuration, hooks and plugins are trusted with it, and its commands do not pass this approval.\n\n%s",
		t.Agent, may, t.Request)
}

// result is for the model: a JSON object, so that what the agent wrote cannot be taken
// for anything else.
func (d delegate) result(t Task, r Report) tools.Result {
	body := struct {
		Agent   string   `json:"agent"`
		Mode    string   `json:"mode"`
		Status  string   `json:"status"`
		Detail  string   `json:"detail,omitempty"`
		Reply   string   `json:"untrusted_reply"`
		Changed []string `json:"changed_files"`
		Unsure  string   `json:"changed_files_note,omitempty"`
		Denied  []string `json:"refused_actions,omitempty"`
		Usage   struct {
			Input  int `json:"input_tokens"`
			Output int `json:"output_tokens"`
		} `json:"usage"`
	}{Agent: t.Agent, Mode: mode(t), Status: r.Status, Detail: r.Detail, Reply: tools.Cut(r.Reply, d.o.MaxReply), Changed: r.Changed, Unsure: r.Unsure, Denied: r.Denied}
	body.Usage.Input, body.Usage.Output = r.Input, r.Output
	if body.Changed == nil {
		body.Changed = []string{}
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(body); err != nil {
		return tools.Fail("the report of %s cannot be written: %v", t.Agent, err)
	}
	res := tools.Result{Status: tools.OK, Text: strings.TrimSuffix(b.String(), "\n"), Changed: r.Changed, Line: t.Agent + ": " + r.Status}
	switch {
	case r.Stopped:
		res.Status = tools.Cancelled
	case r.Status != "done":
		res.Status = tools.Failed
	}
	return res
}
