package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

// chunk is one record of a stream, or a whole reply.
type chunk struct {
	Choices []struct {
		Delta        *delta  `json:"delta"`
		Message      *delta  `json:"message"` // of a whole reply
		FinishReason *string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	// Timings are llama.cpp's, in milliseconds.
	Timings *struct {
		PromptMS    float64 `json:"prompt_ms"`
		PredictedMS float64 `json:"predicted_ms"`
	} `json:"timings"`
}

type delta struct {
	Content          string     `json:"content"`
	Reasoning        string     `json:"reasoning"`
	ReasoningContent string     `json:"reasoning_content"`
	ToolCalls        []wireCall `json:"tool_calls"`
}

// thinking is what the model thought; servers have two names for it, and some send
// both.
func (d *delta) thinking() string {
	if d.ReasoningContent != "" {
		return d.ReasoningContent
	}
	return d.Reasoning
}

// decoder turns the records of one reply into the reply.
type decoder struct {
	split   *modeltext.Splitter
	calls   collector
	ids     modeltext.IDs
	emit    func(chat.Delta)
	records int // that were pieces of a reply
	shown   int // calls that a delta told of
	size    int // bytes of text and arguments
	limit   int // of size
	ended   bool
	reply   chat.Reply
}

func newDecoder(emit func(chat.Delta), ids modeltext.IDs) *decoder {
	if emit == nil {
		emit = func(chat.Delta) {}
	}
	return &decoder{split: modeltext.NewSplitter(), limit: modeltext.MaxReply, emit: emit, ids: ids}
}

// run reads records until the one that says that it was the last, or a clean end
// without it. done is called when the reply is whole and only its counts may follow.
// The error is a *modelserver.StreamError or the reader's.
func (d *decoder) run(r io.Reader, seen func([]byte), done func()) error {
	in := modeltext.NewLines(r)
	for !d.ended {
		line, cut, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case err == modeltext.ErrTooLong:
			return &modelserver.StreamError{Cause: err}
		case err != nil && d.reply.Done:
			return nil // the counts are lost, the reply is not
		case err != nil:
			return err
		}
		seen(line)
		was := d.reply.Done
		if err := d.line(line); err != nil {
			if cut && d.brokenOff(line) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if d.reply.Done && !was {
			done()
		}
	}
	return nil
}

// brokenOff reports whether the end of a last line is missing.
func (d *decoder) brokenOff(line []byte) bool {
	data, ours := bytes.CutPrefix(line, []byte("data:"))
	return (ours || d.records > 0 || line[0] == '{') && !json.Valid(bytes.TrimSpace(data))
}

// line takes one line of the stream.
func (d *decoder) line(line []byte) error {
	field, data, _ := bytes.Cut(line, []byte(":"))
	data = bytes.TrimSpace(data)
	switch {
	case line[0] == '{': // a whole reply, though a stream was asked for
		return d.record(line)
	case len(field) == 0, string(field) == "event", string(field) == "id", string(field) == "retry":
		return nil // a comment keeps the connection alive
	case string(field) == "data" && string(data) == "[DONE]":
		d.ended = true
		d.reply.Done = d.reply.Done || d.records > 0
		return nil
	case string(field) == "data" && len(data) == 0:
		return nil
	case string(field) == "data":
		return d.record(data)
	case string(field) == "error": // as older llama.cpp tells of one
		if text := modelserver.ErrorText(data); text != "" {
			return &modelserver.StreamError{Server: text}
		}
	}
	return &modelserver.StreamError{Line: bytes.Clone(line)}
}

// record takes one record.
func (d *decoder) record(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return &modelserver.StreamError{Line: bytes.Clone(data), Cause: err}
	}
	if len(c.Choices) == 0 {
		if text := modelserver.ErrorField(data); text != "" {
			return &modelserver.StreamError{Server: text}
		}
	}
	if c.Usage != nil {
		d.reply.Usage.PromptTokens, d.reply.Usage.OutputTokens = c.Usage.PromptTokens, c.Usage.CompletionTokens
	}
	if c.Timings != nil {
		d.reply.Usage.PromptEval, d.reply.Usage.Eval = milliseconds(c.Timings.PromptMS), milliseconds(c.Timings.PredictedMS)
	}
	if len(c.Choices) == 0 || d.reply.Done {
		return nil
	}
	first := &c.Choices[0]
	for _, part := range []*delta{first.Delta, first.Message} {
		if part == nil {
			continue
		}
		if err := d.take(part); err != nil {
			return err
		}
	}
	if first.FinishReason != nil && *first.FinishReason != "" {
		d.reply.Done, d.reply.DoneReason = true, doneReason(*first.FinishReason)
	}
	return nil
}

func milliseconds(n float64) time.Duration { return time.Duration(n * float64(time.Millisecond)) }

// doneReason translates a finish_reason. That there are calls is seen from the calls.
func doneReason(finish string) string {
	switch finish {
	case "tool_calls", "function_call", "eos", "end_turn":
		return "stop"
	case "max_tokens":
		return "length"
	}
	return finish
}

// take adds a piece of the reply.
func (d *decoder) take(part *delta) error {
	d.records++
	d.size += len(part.Content) + len(part.thinking())
	for i := range part.ToolCalls {
		d.size += part.ToolCalls[i].size()
		d.calls.add(part.ToolCalls[i])
	}
	if d.size > d.limit {
		return &modelserver.StreamError{Cause: modeltext.ErrTooLong}
	}
	d.split.Think(part.thinking())
	shown, inline := d.split.Feed(part.Content)
	d.show(shown, part.thinking()+inline)
	return nil
}

func (d *decoder) show(content, thinking string) {
	if content != "" || thinking != "" || len(d.calls.calls) > d.shown {
		d.shown = len(d.calls.calls)
		d.emit(chat.Delta{Content: content, Thinking: thinking, Calls: d.shown})
	}
}

// result returns the reply as far as it came. Calls count only in a reply that is
// done.
func (d *decoder) result() chat.Reply {
	if content, thinking := d.split.End(); content != "" || thinking != "" {
		d.show(content, thinking)
	}
	d.reply.Message.Role = chat.Assistant
	d.reply.Message.Content, d.reply.Message.Thinking = d.split.Texts()
	if d.reply.Done {
		d.reply.Message.Calls = d.calls.finish(d.ids, d.reply.DoneReason == "length")
	}
	return d.reply
}
