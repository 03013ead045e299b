package ollama

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"zcoder/internal/chat"
)

// unparsedKey holds the text of arguments that were no object, so that the history
// stays valid for the server and the model still sees what it wrote.
const unparsedKey = "unparsed_arguments"

// encodeChat serialises a request: first everything that stays the same through a
// session, then the tools, the messages last. So the bytes of a request, less the
// two that close it, are the beginning of the next one's when that only appends.
func encodeChat(r chat.Request) ([]byte, error) {
	b := make([]byte, 0, sizeHint(r))
	b = append(b, `{"model":`...)
	b = appendString(b, r.Model)
	// truncate and shift: the server must refuse what does not fit, not cut it.
	b = append(b, `,"stream":true,"truncate":false,"shift":false`...)
	b = appendThink(b, r.Think)
	b = appendKeepAlive(b, r.KeepAlive)
	b = appendOptions(b, r)
	if len(r.Format) > 0 {
		if !json.Valid(r.Format) {
			return nil, fmt.Errorf("encode request: the format is not valid JSON")
		}
		b = append(append(b, `,"format":`...), r.Format...)
	}
	for i, t := range r.Tools {
		b = append(b, separator(i, `,"tools":[`)...)
		var err error
		if b, err = appendTool(b, t); err != nil {
			return nil, err
		}
	}
	if len(r.Tools) > 0 {
		b = append(b, ']')
	}
	b = append(b, `,"messages":[`...)
	for i, m := range r.Messages {
		b = append(b, separator(i, "")...)
		b = appendMessage(b, m)
	}
	return append(b, `]}`...), nil
}

// separator is what stands before item i of a list.
func separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

// sizeHint is about the length of the request, so that the buffer seldom grows.
func sizeHint(r chat.Request) int {
	n := 512 + len(r.Format)
	for _, t := range r.Tools {
		n += len(t.Schema) + len(t.Description) + 128
	}
	for _, m := range r.Messages {
		n += len(m.Content) + len(m.Content)/8 + len(m.Thinking) + 64
		for _, c := range m.Calls {
			n += len(c.Args) + 128
		}
	}
	return n
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
	return appendString(append(b, `,"think":`...), think)
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
	return appendString(b, keep)
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

func appendTool(b []byte, t chat.Tool) ([]byte, error) {
	b = append(b, `{"type":"function","function":{"name":`...)
	b = appendString(b, t.Name)
	b = append(b, `,"description":`...)
	b = appendString(b, t.Description)
	b = append(b, `,"parameters":`...)
	switch {
	case len(t.Schema) == 0:
		b = append(b, `{"type":"object","properties":{}}`...)
	case json.Valid(t.Schema):
		b = append(b, t.Schema...)
	default:
		return nil, fmt.Errorf("encode request: the schema of tool %q is not valid JSON", t.Name)
	}
	return append(b, `}}`...), nil
}

func appendMessage(b []byte, m chat.Message) []byte {
	b = append(b, `{"role":`...)
	b = appendString(b, string(m.Role))
	b = append(b, `,"content":`...)
	b = appendString(b, m.Content)
	if m.Thinking != "" {
		b = appendString(append(b, `,"thinking":`...), m.Thinking)
	}
	for i, image := range m.Images {
		b = append(b, separator(i, `,"images":[`)...)
		b = append(b, '"')
		b = base64.StdEncoding.AppendEncode(b, image)
		b = append(b, '"')
	}
	if len(m.Images) > 0 {
		b = append(b, ']')
	}
	for i, c := range m.Calls {
		b = append(b, separator(i, `,"tool_calls":[`)...)
		b = appendCall(b, i, c)
	}
	if len(m.Calls) > 0 {
		b = append(b, ']')
	}
	if m.ToolName != "" {
		b = appendString(append(b, `,"tool_name":`...), m.ToolName)
	}
	if m.CallID != "" {
		b = appendString(append(b, `,"tool_call_id":`...), m.CallID)
	}
	return append(b, '}')
}

func appendCall(b []byte, index int, c chat.ToolCall) []byte {
	b = append(b, '{')
	if c.ID != "" {
		b = append(appendString(append(b, `"id":`...), c.ID), ',')
	}
	b = append(b, `"function":{"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = appendString(append(b, `,"name":`...), c.Name)
	b = append(b, `,"arguments":`...)
	b = appendObject(b, c.Args)
	return append(b, `}}`...)
}

// appendObject writes arguments as an object, whatever they are: the server refuses
// the whole history otherwise. A text that holds an object is unwrapped; what is no
// object at all is kept as text under unparsedKey.
func appendObject(b []byte, args json.RawMessage) []byte {
	text := bytes.TrimSpace(args)
	for range 3 { // texts in texts, as some models send them
		if len(text) == 0 || string(text) == "null" {
			return append(b, "{}"...)
		}
		if text[0] == '{' {
			out := bytes.NewBuffer(b)
			if json.Compact(out, text) == nil {
				return out.Bytes()
			}
			break
		}
		var inner string
		if json.Unmarshal(text, &inner) != nil {
			break
		}
		within := bytes.TrimSpace([]byte(inner))
		if len(within) > 0 && within[0] != '{' && within[0] != '"' {
			break
		}
		text = within
	}
	b = appendString(append(b, `{"`+unparsedKey+`":`...), string(text))
	return append(b, '}')
}

const hex = "0123456789abcdef"

// appendString writes a JSON string and escapes only what JSON demands: no HTML
// escapes, so that the model's tokens stay as they were. Bytes that are no UTF-8
// become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		b = append(b, s[start:i]...)
		b = appendEscape(b, c)
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
