package event

import (
	"zcoder/internal/chat"
)

// Append folds one event into the history that the model is sent. The loop and a
// resumed session use the same fold, so a resumed history is the same in every
// byte.
func Append(history []chat.Message, e Event) []chat.Message {
	switch e.Kind {
	case User:
		return append(history, chat.Message{Role: chat.User, Content: e.Text, Images: e.Images})
	case Note, Shell:
		return append(history, chat.Message{Role: chat.User, Content: e.Text, Note: true})
	case Reply:
		return appendReply(history, *e.Reply)
	case CallEnd:
		r := e.Result
		if r.Direct {
			return history
		}
		return append(history, chat.Message{Role: chat.ToolRole, Content: r.Text, ToolName: r.Name, CallID: r.CallID, Images: e.Images})
	case Compacted:
		return append([]chat.Message(nil), e.Messages...)
	}
	return history
}

// appendReply leaves out degenerate and empty replies, and the calls of a reply that was
// cut short: nothing runs from a partial reply.
func appendReply(history []chat.Message, r ModelReply) []chat.Message {
	m := r.Message
	if r.Partial {
		m.Calls = nil
	}
	if r.Degenerate || m.Content == "" && len(m.Calls) == 0 {
		return history
	}
	return append(history, m)
}

// OpenCalls returns the calls at the end of the history that have no result yet, as
// after a crash between a call and its result.
func OpenCalls(history []chat.Message) []chat.ToolCall {
	done := map[string]bool{}
	for i := len(history) - 1; i >= 0; i-- {
		switch m := history[i]; {
		case m.Role == chat.ToolRole:
			done[m.CallID] = true
		case m.Role == chat.Assistant:
			var open []chat.ToolCall
			for _, c := range m.Calls {
				if !done[c.ID] {
					open = append(open, c)
				}
			}
			return open
		default:
			return nil
		}
	}
	return nil
}
