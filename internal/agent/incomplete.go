package agent

import (
	"fmt"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// trouble says what is wrong with a reply without calls, in words for the model, or
// "" when it is an answer.
func (r *run) trouble(reply chat.Reply) string {
	empty := strings.TrimSpace(reply.Message.Content) == ""
	switch {
	case !reply.Done:
		return "Your last reply was stopped by the server because it repeated itself. Go on differently: call one tool, or answer shortly."
	case empty && reply.DoneReason == "length":
		return "Your last reply reached the output limit before it was complete, so nothing of it was used. Think less and write smaller pieces: a large file in several steps."
	case reply.DoneReason == "length":
		return "Your last reply was cut at the output limit. Go on where it stopped, or call a tool."
	case empty && reply.Usage.OutputTokens > 1 && reply.Message.Thinking == "":
		return "Your last reply held a tool call that could not be read, so nothing ran. Call one of these tools with one flat JSON object of arguments: " + strings.Join(r.cfg.Tools.Names(), ", ") + "."
	case empty && reply.Message.Thinking != "":
		return "You thought, but gave neither an answer nor a tool call. Answer now, or call a tool."
	case empty:
		return "Your last reply was empty. Answer now, or call a tool."
	case !r.nudged && mentionsCall(reply.Message.Content, r.cfg.Tools):
		r.nudged = true
		return "Your reply held a tool call as text among other words, so nothing was run. If you want to call the tool, send only the call. If it was an example, answer again without it."
	case r.cfg.RequireFinish:
		return "The turn goes on until you call finish. Call a tool, or finish with your answer as the response."
	}
	return ""
}

// correct sends the model what was wrong, a bounded number of times in a row.
func (r *run) correct(trouble string, reply chat.Reply) (event.End, bool) {
	r.retries++
	if r.retries > r.cfg.IncompleteRetries {
		return r.givenUp(reply), true
	}
	r.emit(event.Event{Kind: event.Warning, Text: r.diagnosis(reply) + fmt.Sprintf(" (correction %d of %d)", r.retries, r.cfg.IncompleteRetries)})
	r.note(trouble)
	return event.End{}, false
}

func (r *run) givenUp(reply chat.Reply) event.End {
	return event.End{
		Reason: event.Errored,
		Text:   fmt.Sprintf("the model gave no usable reply %d times: %s", r.retries, r.diagnosis(reply)),
		Hint:   "try /retry, a clearer request, or a model that is better at calling tools",
	}
}

// diagnosis says for people what was wrong with a reply.
func (r *run) diagnosis(reply chat.Reply) string {
	empty := strings.TrimSpace(reply.Message.Content) == ""
	switch {
	case !reply.Done:
		return "the server stopped the model because it repeated itself"
	case empty && reply.DoneReason == "length" && reply.Message.Thinking != "":
		return fmt.Sprintf("the whole output budget was spent on thinking (%d words)", len(strings.Fields(reply.Message.Thinking)))
	case reply.DoneReason == "length":
		return "the reply was cut at the output limit"
	case empty && reply.Message.Thinking != "":
		return "the model only thought and gave no answer"
	case empty && reply.Usage.OutputTokens > 1:
		return "the model tried to call a tool in a form that the server could not read"
	case empty:
		return "the model's reply was empty"
	case r.nudged:
		return "the model wrote a tool call as text among other words, so it was not run"
	}
	return "the model answered without calling finish"
}
