package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/modeltext"
)

// wireCall is a tool call, or a piece of one.
type wireCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name string `json:"name"`
		// Arguments is a text or a piece of one; some servers send the object.
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

func (w *wireCall) size() int {
	return len(w.ID) + len(w.Function.Name) + len(w.Function.Arguments) + 1
}

// collector puts the pieces of calls together.
type collector struct {
	calls []*openCall
	at    map[int]*openCall // by the server's index
}

type openCall struct {
	id, name string
	args     strings.Builder
}

// add takes the next piece.
func (c *collector) add(w wireCall) {
	call := c.find(w)
	if call.id == "" {
		call.id = w.ID
	}
	if call.name == "" {
		call.name = w.Function.Name
	}
	var text string
	if json.Unmarshal(w.Function.Arguments, &text) != nil {
		text = string(w.Function.Arguments)
	}
	call.args.WriteString(text)
}

// find returns the call that a piece belongs to: the one of its index, or else the
// last one. An id of its own makes a call new, since some servers give every call the
// index 0 or none.
func (c *collector) find(w wireCall) *openCall {
	var call *openCall
	switch {
	case w.Index != nil:
		call = c.at[*w.Index]
	case len(c.calls) > 0:
		call = c.calls[len(c.calls)-1]
	}
	other := call != nil && w.ID != "" && w.Function.Name != "" && w.ID != call.id
	if call == nil || other {
		call = &openCall{}
		c.calls = append(c.calls, call)
	}
	if w.Index != nil {
		if c.at == nil {
			c.at = map[int]*openCall{}
		}
		c.at[*w.Index] = call
	}
	return call
}

// finish returns the calls, each with an id of its own. Of a reply that was cut, a
// last call whose arguments are not whole is left out: it is not what the model meant.
func (c *collector) finish(ids modeltext.IDs, cut bool) []chat.ToolCall {
	var list []chat.ToolCall
	for i, call := range c.calls {
		args := call.arguments()
		if cut && i == len(c.calls)-1 && (len(args) == 0 || args[0] != '{') {
			break
		}
		list = append(list, chat.ToolCall{ID: call.id, Name: call.name, Args: args})
	}
	ids.Own(list)
	return list
}

// arguments are the JSON that the text holds, or else the text as a JSON string.
func (c *openCall) arguments() json.RawMessage {
	text := bytes.TrimSpace([]byte(c.args.String()))
	switch {
	case len(text) == 0:
		return nil
	case json.Valid(text):
		return text
	}
	return modeltext.AppendString(nil, string(text))
}
