package agent

import (
	"context"
	"encoding/json"
	"fmt"

	"zcoder/internal/approval"
	"zcoder/internal/event"
	"zcoder/tools"
)

// VerifyTool is the name of the tool with which the verifier gives its verdict.
const VerifyTool = "verify_goal"

// verifierSteps bounds the rounds of a verification.
const verifierSteps = 8

// Verdict is what the verifier says of a goal.
type Verdict struct {
	Accepted        bool
	Reason          string
	NextAction      string
	MissingEvidence string
}

const verifierSystem = `You verify the work of another agent. Judge only whether the objective is reached, by evidence: ` +
	`results in the conversation, and files that you read now. A claim without evidence is no evidence. ` +
	`Call one tool for each reply. When you know, call verify_goal: accept only if everything in the objective is done and shown.`

// Verify has an independent run, with a prompt and read-only tools of its own, judge
// whether the objective is reached. readers are the tools it may use besides
// verify_goal. Its calls are shown as notices and leave no trace in the history. An
// error means that there is no verdict; the end then says why.
func Verify(ctx context.Context, cfg Config, t Turn, objective string, readers []tools.Tool) (Verdict, event.End, error) {
	reg, err := tools.NewRegistry(append(append([]tools.Tool(nil), readers...), verifyTool{})...)
	if err != nil {
		return Verdict{}, event.End{}, err
	}
	show := cfg.Emit
	cfg.Staged = false
	cfg.Tools, cfg.RequireFinish, cfg.MaxRounds, cfg.OneCall, cfg.Steer, cfg.Notes = reg, true, verifierSteps, true, nil, nil
	cfg.Emit = func(e event.Event) {
		switch e.Kind {
		case event.Progress, event.Output, event.Warning:
			show(e)
		case event.CallStart:
			show(event.Event{Kind: event.Info, Turn: t.ID, Text: "verifier: " + e.Call.Summary})
		}
	}
	if prepare := cfg.Prepare; prepare != nil {
		cfg.Prepare = func(ctx context.Context) (Setup, error) {
			setup, err := prepare(ctx)
			setup.Tools, setup.System = nil, "" // the verifier has its own
			return setup, err
		}
	}
	t.System, t.Known = verifierSystem, Known{}
	t.Input = event.Input{Text: "Verify this objective now: " + objective}
	end := Run(ctx, cfg, t)
	var v Verdict
	if end.Reason != event.Complete || json.Unmarshal([]byte(end.Text), &v) != nil {
		return Verdict{}, end, fmt.Errorf("the verifier gave no verdict (%s)", end.Reason)
	}
	return v, end, nil
}

type verifyTool struct{}

func (verifyTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        VerifyTool,
		Description: "Give the verdict. reject: say why, what to do next, which evidence is missing.",
		Params: []tools.Param{
			{Name: "verdict", Type: tools.String, Required: true, Enum: []string{"accept", "reject"}},
			{Name: "reason", Type: tools.String, Required: true},
			{Name: "next_action", Type: tools.String},
			{Name: "missing_evidence", Type: tools.String},
		},
	}
}

func (verifyTool) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	v := Verdict{
		Accepted: call.Args.Text("verdict") == "accept", Reason: call.Args.Text("reason"),
		NextAction: call.Args.Text("next_action"), MissingEvidence: call.Args.Text("missing_evidence"),
	}
	text, err := json.Marshal(v)
	if err != nil {
		return tools.Action{}, fmt.Errorf("encode the verdict: %w", err)
	}
	req := approval.Request{
		CallID: call.ID, Tool: VerifyTool, Effect: approval.Read,
		Summary: VerifyTool + " " + call.Args.Text("verdict"), Text: v.Reason, Args: string(call.Args.JSON()),
	}
	return tools.NewAction(req, func(context.Context, tools.Progress) tools.Result {
		return tools.Result{Status: tools.OK, Text: "noted", Finish: &tools.Finish{Status: "complete", Response: string(text)}}
	}), nil
}
