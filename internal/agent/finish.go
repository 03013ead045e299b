package agent

import (
	"context"

	"zcoder/internal/approval"
	"zcoder/tools"
)

// FinishTool is the name of the tool with which a model ends its turn.
const FinishTool = "finish"

// Finish returns the finish tool. It changes nothing; the loop reads its result.
func Finish() tools.Tool { return finishTool{} }

type finishTool struct{}

func (finishTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        FinishTool,
		Description: "End the turn. Only call of the reply. blocked: you cannot go on.",
		Params: []tools.Param{
			{Name: "status", Type: tools.String, Required: true, Enum: []string{"complete", "blocked"}},
			{Name: "response", Type: tools.String, Required: true, Aliases: []string{"message", "summary", "text", "answer", "result"}, Description: "What the user reads."},
		},
	}
}

func (finishTool) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	f := tools.Finish{Status: call.Args.Text("status"), Response: call.Args.Text("response")}
	req := approval.Request{
		CallID: call.ID, Tool: FinishTool, Effect: approval.Read,
		Summary: FinishTool + " " + f.Status, Text: f.Response, Args: string(call.Args.JSON()),
	}
	return tools.NewAction(req, func(context.Context, tools.Progress) tools.Result {
		return tools.Result{Status: tools.OK, Text: "The turn is finished.", Finish: &f}
	}), nil
}
