package ollama

import (
	"encoding/base64"
	"strconv"

	"zcoder/internal/chat"
	"zcoder/internal/modeltext"
)

// encodeChat serialises a request: first everything that stays the same through a
// session, then the tools, the messages last. So the bytes of a request, less the
// two that close it, are the beginning of the next one's when that only appends.
func encodeChat(r chat.Request) (b []byte, err error) {
	b = make([]byte, 0, modeltext.SizeHint(r))
	b = append(b, `{"model":`...)
	b = modeltext.AppendString(b, r.Model)
	// truncate and shift: the server must refuse what does not fit, not cut it.
	b = append(b, `,"stream":true,"truncate":false,"shift":false`...)
	b = appendThink(b, r.Think)
	b = appendKeepAlive(b, r.KeepAlive)
	b = appendOptions(b, r)
	if len(r.Format) > 0 {
		if b, err = modeltext.AppendFormat(append(b, `,"format":`...), r.Format); err != nil {
			return nil, err
		}
	}
	if b, err = modeltext.AppendTools(b, r.Tools); err != nil {
		return nil, err
	}
	b = append(b, `,"messages":[`...)
	for i, m := range r.Messages {
		b = append(b, modeltext.Separator(i, "")...)
		b = appendMessage(b, m)
	}
	return append(b, `]}`...), nil
}

func appendThink(b []byte, think string) []byte {
	switch think {
	case "":
		return b
	case "on":
		return append(b, `,"think":true`...)
	case "off":
		return append(b, `,"think":false`...)
	}
	return modeltext.AppendString(append(b, `,"think":`...), think)
}

// appendKeepAlive writes a number of seconds as a number, since the server reads a
// text as a duration with a unit.
func appendKeepAlive(b []byte, keep string) []byte {
	if keep == "" {
		return b
	}
	b = append(b, `,"keep_alive":`...)
	if n, err := strconv.ParseInt(keep, 10, 64); err == nil {
		return strconv.AppendInt(b, n, 10)
	}
	return modeltext.AppendString(b, keep)
}

func appendOptions(b []byte, r chat.Request) []byte {
	start := len(b)
	option := func(name string) {
		first := `,"options":{"`
		if len(b) > start {
			first = `,"`
		}
		b = append(append(append(b, first...), name...), `":`...)
	}
	if r.NumCtx > 0 {
		option("num_ctx")
		b = strconv.AppendInt(b, int64(r.NumCtx), 10)
	}
	if r.NumPredict > 0 {
		option("num_predict")
		b = strconv.AppendInt(b, int64(r.NumPredict), 10)
	}
	if r.Temperature != nil {
		option("temperature")
		b = strconv.AppendFloat(b, *r.Temperature, 'f', -1, 64)
	}
	if len(b) > start {
		b = append(b, '}')
	}
	return b
}

func appendMessage(b []byte, m chat.Message) []byte {
	b = append(b, `{"role":`...)
	b = modeltext.AppendString(b, string(m.Role))
	b = append(b, `,"content":`...)
	b = modeltext.AppendString(b, m.Content)
	if m.Thinking != "" {
		b = modeltext.AppendString(append(b, `,"thinking":`...), m.Thinking)
	}
	for i, image := range m.Images {
		b = append(b, modeltext.Separator(i, `,"images":[`)...)
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, image)
		b = append(b, '"')
	}
	if len(m.Images) > 0 {
		b = append(b, ']')
	}
	for i, c := range m.Calls {
		b = append(b, modeltext.Separator(i, `,"tool_calls":[`)...)
		b = appendCall(b, i, c)
	}
	if len(m.Calls) > 0 {
		b = append(b, ']')
	}
	if m.ToolName != "" {
		b = modeltext.AppendString(append(b, `,"tool_name":`...), m.ToolName)
	}
	if m.CallID != "" {
		b = modeltext.AppendString(append(b, `,"tool_call_id":`...), m.CallID)
	}
	return append(b, '}')
}

func appendCall(b []byte, index int, c chat.ToolCall) []byte {
	b = append(b, '{')
	if c.ID != "" {
		b = append(modeltext.AppendString(append(b, `"id":`...), c.ID), ',')
	}
	b = append(b, `"function":{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = modeltext.AppendString(append(b, `,"name":`...), c.Name)
	b = append(b, `,"arguments":`...)
	b = modeltext.AppendObject(b, c.Args)
	return append(b, `}}`...)
}
