// Package modeltext reads and writes the pieces of text that the model APIs have in
// common, whatever they look like otherwise: JSON strings and tools that are the same
// in every byte each time, arguments made an object, thinking in the visible text,
// ids of calls, and the lines of a stream.
//
// It knows no API, no HTTP and no error of a server. The model adapters call it.
package modeltext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"zcoder/internal/chat"
)

// unparsedKey holds the text of arguments that were no object, so that the history
// stays valid for the server and the model still sees what it wrote.
const unparsedKey = "unparsed_arguments"

// SizeHint is about the length of an encoded request, so that a buffer seldom grows.
func SizeHint(r chat.Request) int {
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

// Separator is what stands before item i of a list: first before the first.
func Separator(i int, first string) string {
	if i == 0 {
		return first
	}
	return ","
}

// AppendFormat writes a JSON schema for the reply as it is.
func AppendFormat(b []byte, format json.RawMessage) ([]byte, error) {
	if !json.Valid(format) {
		return nil, fmt.Errorf("encode request: the format is not valid JSON")
	}
	return append(b, format...), nil
}

// AppendTools writes the list of tools in the form that all the APIs take, as the
// member "tools" of an object that has a member before; nothing when there are none.
func AppendTools(b []byte, tools []chat.Tool) ([]byte, error) {
	for i, t := range tools {
		b = append(b, Separator(i, `,"tools":[`)...)
		var err error
		if b, err = appendTool(b, t); err != nil {
			return nil, err
		}
	}
	if len(tools) > 0 {
		b = append(b, ']')
	}
	return b, nil
}

func appendTool(b []byte, t chat.Tool) ([]byte, error) {
	b = append(b, `{"type":"function","function":{"name":`...)
	b = AppendString(b, t.Name)
	b = append(b, `,"description":`...)
	b = AppendString(b, t.Description)
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

// AppendObject writes arguments as an object, whatever they are: servers refuse the
// whole history otherwise. A text that holds an object is unwrapped; what is no
// object at all is kept as text under a key that says so.
func AppendObject(b []byte, args json.RawMessage) []byte {
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
	b = AppendString(append(b, `{"`+unparsedKey+`":`...), string(text))
	return append(b, '}')
}

const hex = "0123456789abcdef"

// AppendString writes a JSON string and escapes only what JSON demands: no HTML
// escapes, so that the model's tokens stay as they were. Bytes that are no UTF-8
// become U+FFFD.
func AppendString(b []byte, s string) []byte {
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
