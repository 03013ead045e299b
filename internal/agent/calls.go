package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

// batch runs the calls of one reply in the model's order. Every call gets one
// result, also when the turn is cancelled among them.
func (r *run) batch(ctx context.Context, calls []chat.ToolCall) (event.End, bool) {
	if stop := r.loops.before(calls); stop != "" {
		r.skip(calls, "not executed: "+stop)
		return event.End{Reason: event.Looped, Text: stop, Hint: "say what to do differently, or try another model"}, true
	}
	var finish *tools.Finish
	results := make([]tools.Result, 0, len(calls))
	for i, c := range calls {
		if ctx.Err() != nil {
			r.skip(calls[i:], "not executed: the turn was stopped")
			return r.stopped(ctx), true
		}
		if i > 0 && r.cfg.OneCall {
			r.skip(calls[i:], "not executed: call one tool for each reply")
			break
		}
		res := r.call(ctx, c, len(calls) == 1 || r.cfg.OneCall)
		results = append(results, res)
		if res.Finish != nil {
			finish = res.Finish
		}
	}
	if finish != nil {
		return finished(*finish), true
	}
	if ctx.Err() != nil {
		return r.stopped(ctx), true
	}
	r.tell()
	r.steer()
	if warning := r.loops.after(calls, results); warning != "" {
		r.emit(event.Event{Kind: event.Warning, Text: warning})
		r.note(warning + " Do something different, or call finish and say what blocks you.")
	}
	return event.End{}, false
}

func finished(f tools.Finish) event.End {
	if f.Status == "blocked" {
		return event.End{Reason: event.Blocked, Text: f.Response}
	}
	return event.End{Reason: event.Complete, Text: f.Response}
}

// skip gives the calls that were not run their results.
func (r *run) skip(calls []chat.ToolCall, why string) {
	for _, c := range calls {
		r.emit(event.Event{Kind: event.CallStart, Call: r.brokenCall(c)})
		r.result(c, tools.Result{Status: tools.Skipped, Text: why, Line: "not executed"})
	}
}

// call plans, authorises and does one call.
func (r *run) call(ctx context.Context, c chat.ToolCall, alone bool) tools.Result {
	action, err := r.plan(ctx, c, alone)
	if err != nil {
		r.emit(event.Event{Kind: event.CallStart, Call: r.brokenCall(c)})
		return r.result(c, planFailure(ctx, err))
	}
	req := action.Request()
	r.emit(event.Event{Kind: event.CallStart, Call: describe(c, req)})
	return r.result(c, r.authorised(ctx, action))
}

// describe is what frontends show of a planned call.
func describe(c chat.ToolCall, req approval.Request) *event.Call {
	call := &event.Call{ID: c.ID, Name: c.Name, Summary: req.Summary, Args: req.Args, Effect: req.Effect.String()}
	if req.Effect == approval.Exec {
		call.Text = req.Text
	}
	return call
}

// brokenCall is what frontends show of a call that was not planned: its first argument,
// such as a path or a command, or else the raw text.
func (r *run) brokenCall(c chat.ToolCall) *event.Call {
	what := string(c.Args)
	if tool, err := r.cfg.Tools.Lookup(c.Name); err == nil {
		if lead := tools.Lead(tool.Spec(), c.Args); lead != "" {
			what = lead
		}
	}
	return &event.Call{ID: c.ID, Name: c.Name, Summary: strings.TrimSpace(c.Name + " " + headOf(what, 80)), Args: string(c.Args)}
}

// plan finds the tool, decodes the arguments once and plans the action.
func (r *run) plan(ctx context.Context, c chat.ToolCall, alone bool) (tools.Action, error) {
	tool, err := r.cfg.Tools.Lookup(c.Name)
	if err != nil {
		return tools.Action{}, err
	}
	spec := tool.Spec()
	if spec.Name == FinishTool && !alone {
		return tools.Action{}, errors.New("finish must be the only call of a reply; the other calls were run, so look at their results and call finish again")
	}
	if r.withheld && spec.Blunt {
		return tools.Action{}, fmt.Errorf("%s is withheld since a patch was rejected: correct the patch and call apply_patch again", spec.Name)
	}
	args, err := tools.Decode(spec, c.Args)
	if err != nil {
		return tools.Action{}, err
	}
	action, err := tool.Plan(ctx, tools.Call{ID: c.ID, Args: args})
	if err != nil {
		return tools.Action{}, r.rejected(err)
	}
	return action.ForTurn(r.turn.ID, r.turn.Origin), nil
}

// rejected notes a rejected patch, after which blunt edits are withheld.
func (r *run) rejected(err error) error {
	var withholds interface{ WithholdsEdits() bool }
	if errors.As(err, &withholds) && withholds.WithholdsEdits() {
		r.withheld = true
		return fmt.Errorf("%w\nUntil a correct patch lands, write_file and replace_text are withheld", err)
	}
	return err
}

func planFailure(ctx context.Context, err error) tools.Result {
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "not executed: the turn was stopped", Line: "stopped"}
	}
	return tools.Result{Status: tools.Failed, Text: "error: " + err.Error(), Line: firstLine(err.Error())}
}

// authorised asks the gate and does the action. The end is recorded whatever it is.
func (r *run) authorised(ctx context.Context, action tools.Action) tools.Result {
	req := action.Request()
	permit, err := r.cfg.Gate.Authorize(ctx, req)
	if err != nil {
		return r.refusal(ctx, req.Effect, err)
	}
	r.enter(req)
	r.keep(ctx, req)
	r.state(event.Running, req.Summary)
	start := r.cfg.Now()
	output := func(text string) { r.cfg.Emit(event.Event{Kind: event.Output, Turn: r.turn.ID, Text: text}) }
	res, err := action.Do(ctx, permit, output)
	if err != nil {
		res = tools.Fail("error: %v", err)
	}
	res.Took = r.cfg.Now().Sub(start)
	if err := r.cfg.Gate.Finished(req, string(res.Status), res.Took); err != nil {
		r.emit(event.Event{Kind: event.Warning, Text: err.Error()})
	}
	r.tally(req, res)
	return res
}

// keep waits until what the action may change is kept.
func (r *run) keep(ctx context.Context, req approval.Request) {
	if r.cfg.Before == nil || req.Effect == approval.Read {
		return
	}
	r.state(event.Keeping, req.Summary)
	if warning := r.cfg.Before(ctx, req); warning != "" {
		r.emit(event.Event{Kind: event.Warning, Text: warning})
	}
}

// tally gathers the facts of the closing line.
func (r *run) tally(req approval.Request, res tools.Result) {
	if req.Tool == "apply_patch" && res.Status != tools.Cancelled {
		r.withheld = res.Status != tools.OK
	}
	for _, path := range res.Changed {
		if !contains(r.sum.Changed, path) {
			r.sum.Changed = append(r.sum.Changed, path)
		}
	}
	if req.Effect == approval.Exec {
		r.sum.Commands = append(r.sum.Commands, event.Ran{Summary: firstLine(req.Text), Exit: res.ExitCode})
	}
}

func contains(list []string, s string) bool {
	for _, have := range list {
		if have == s {
			return true
		}
	}
	return false
}

// refusal is the result of a call that was not permitted.
func (r *run) refusal(ctx context.Context, effect approval.Effect, err error) tools.Result {
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "not executed: the turn was stopped", Line: "stopped"}
	}
	r.sum.Refused++
	var denied *approval.Denied
	if !errors.As(err, &denied) {
		return tools.Result{Status: tools.Denied, Text: "denied: " + err.Error(), Line: "denied"}
	}
	text, line := "denied: "+denied.Error(), "denied"
	switch {
	case errors.Is(err, approval.ErrUnattended):
		r.sum.Unattended++
		if effect != approval.Exec || denied.Verdict.Firm {
			r.sum.OnlyPerson++
		}
		text = "denied: this needs a person's approval and nobody is there. Go on without it if you can, else call finish with status blocked."
		line = "nobody was there to ask"
	case denied.Cause != nil:
		line = denied.Cause.Error()
	case denied.Verdict.Decision == approval.Deny:
		line = ruleSaid(denied.Verdict)
	default:
		text, line = personSaid(denied.Answer.Reason)
	}
	return tools.Result{Status: tools.Denied, Text: text, Line: line}
}

// ruleSaid is the short form of a refusal, with its reason where a rule says what the
// call would have done.
func ruleSaid(v approval.Verdict) string {
	line := "by the " + v.Rule
	if why, ok := strings.CutPrefix(v.Reason, "refused "+line+": "); ok {
		why, _, _ = strings.Cut(why, ". ")
		line += ": " + why
	}
	return line
}

func personSaid(reason string) (text, line string) {
	if reason == "" {
		return "denied by the user. Do not try the same again; ask or find another way.", "by you"
	}
	return "denied by the user, who says: " + reason, "by you, with a reason"
}

// result emits the one result of a call, cut to what the model may get.
func (r *run) result(c chat.ToolCall, res tools.Result) tools.Result {
	return r.emitResult(c, res, false)
}

func (r *run) emitResult(c chat.ToolCall, res tools.Result, direct bool) tools.Result {
	if res.Status == tools.Failed && res.ExitCode == nil {
		r.sum.Failed++
	}
	res.Text = tools.Cut(res.Text, r.cfg.MaxResult)
	r.emit(event.Event{Kind: event.CallEnd, Images: res.Images, Result: &event.Result{
		CallID: c.ID, Name: c.Name, Status: string(res.Status), Text: res.Text, Line: res.Line,
		Diff: res.Diff, Changed: res.Changed, ExitCode: res.ExitCode, Took: res.Took, Direct: direct,
	}})
	return res
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
