package openai

import (
	"encoding/base64"
	"net/http"
	"strconv"

	"zcoder/internal/chat"
	"zcoder/internal/modeltext"
)

// encodeChat serialises a request: first everything that stays the same through a
// session, then the tools, the messages last. So the bytes of a request, less the
// two that close it, are the beginning of the next one's when that only appends.
// The window and the time that the model stays loaded are the server's own matter.
func encodeChat(r chat.Request, kwargs bool) (b []byte, err error) {
	b = make([]byte, 0, modeltext.SizeHint(r))
	b = modeltext.AppendString(append(b, `{"model":`...), r.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	if r.NumPredict > 0 {
		b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(r.NumPredict), 10)
	}
	if r.Temperature != nil {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *r.Temperature, 'f', -1, 64)
	}
	b = appendThink(b, r.Think, kwargs)
	if len(r.Format) > 0 {
		b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":`...)
		if b, err = modeltext.AppendFormat(b, r.Format); err != nil {
			return nil, err
		}
		b = append(b, "}}"...)
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

// appendThink says whether to think, in the words of the kind of server. Thinking is
// on unless it is switched off, so there is a word for it only where a template may
// have it off.
func appendThink(b []byte, think string, kwargs bool) []byte {
	switch {
	case think == "":
		return b
	case think == "on" && kwargs:
		return append(b, `,"chat_template_kwargs":{"enable_thinking":true}`...)
	case think == "off" && kwargs:
		return append(b, `,"chat_template_kwargs":{"enable_thinking":false}`...)
	case think == "on":
		return b
	case think == "off":
		return append(b, `,"reasoning_effort":"none"`...)
	}
	b = modeltext.AppendString(append(b, `,"reasoning_effort":`...), think)
	if kwargs {
		b = modeltext.AppendString(append(b, `,"chat_template_kwargs":{"reasoning_effort":`...), think)
		b = append(b, '}')
	}
	return b
}

func appendMessage(b []byte, m chat.Message) []byte {
	b = modeltext.AppendString(append(b, `{"role":`...), string(m.Role))
	if m.CallID != "" {
		b = modeltext.AppendString(append(b, `,"tool_call_id":`...), m.CallID)
	}
	b = append(b, `,"content":`...)
	if len(m.Images) > 0 {
		b = appendParts(b, m)
	} else {
		b = modeltext.AppendString(b, m.Content)
	}
	if m.Thinking != "" {
		b = modeltext.AppendString(append(b, `,"reasoning_content":`...), m.Thinking)
	}
	for i, c := range m.Calls {
		b = append(b, modeltext.Separator(i, `,"tool_calls":[`)...)
		b = modeltext.AppendString(append(b, `{"id":`...), c.ID)
		b = modeltext.AppendString(append(b, `,"type":"function","function":{"name":`...), c.Name)
		b = append(b, `,"arguments":`...)
		b = modeltext.AppendString(b, string(modeltext.AppendObject(nil, c.Args)))
		b = append(b, `}}`...)
	}
	if len(m.Calls) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendParts writes a text with images as the list of parts that the API wants.
func appendParts(b []byte, m chat.Message) []byte {
	b = modeltext.AppendString(append(b, `[{"type":"text","text":`...), m.Content)
	for _, image := range m.Images {
		b = append(b, `},{"type":"image_url","image_url":{"url":"data:`...)
		b = append(b, http.DetectContentType(image)...)
		b = append(b, `;base64,`...)
		b = base64.StdEncoding.AppendEncode(b, image)
		b = append(b, `"}`...)
	}
	return append(b, `}]`...)
}
