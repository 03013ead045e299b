package ollama

import (
	"bytes"
	"encoding/json"

	"zcoder/internal/chat"
	"zcoder/internal/modeltext"
)

// wireCall is a tool call as the server sends it. Its index is not read: servers
// disagree about it, and the order is enough.
type wireCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

// collector gathers the calls of a reply in their order.
type collector struct {
	calls []chat.ToolCall
	ids   modeltext.IDs
}

// add takes the calls of one record. The last record, and a record with an id that
// was seen, may repeat calls that came before; a repeated call is taken once.
func (c *collector) add(list []wireCall, last bool) {
	before := len(c.calls)
	var repeated []bool
	if len(list) > 0 {
		repeated = make([]bool, before)
	}
	for _, w := range list {
		if c.repeats(w, repeated, last) {
			continue
		}
		// The bytes belong to a line that is soon overwritten.
		args := json.RawMessage(bytes.Clone(w.Function.Arguments))
		c.calls = append(c.calls, chat.ToolCall{ID: w.ID, Name: w.Function.Name, Args: args})
	}
}

// repeats finds a call that w repeats and that nothing else of its record repeated.
func (c *collector) repeats(w wireCall, repeated []bool, last bool) bool {
	for i := range repeated {
		have := c.calls[i]
		if repeated[i] || have.Name != w.Function.Name || !last && (w.ID == "" || w.ID != have.ID) {
			continue
		}
		if sameJSON(have.Args, w.Function.Arguments) {
			repeated[i] = true
			return true
		}
	}
	return false
}

// sameJSON compares two values whatever the order of their keys.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, okA := canonical(a)
	y, okB := canonical(b)
	return okA && okB && bytes.Equal(x, y)
}

func canonical(raw json.RawMessage) ([]byte, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil, false
	}
	b, err := json.Marshal(v)
	return b, err == nil
}

// finish gives every call an id that is its own and returns the calls.
func (c *collector) finish() []chat.ToolCall {
	c.ids.Own(c.calls)
	return c.calls
}
