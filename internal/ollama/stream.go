package ollama

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

// record is one line of a chat stream.
type record struct {
	Message struct {
		Role      string     `json:"role"`
		Content   string     `json:"content"`
		Thinking  string     `json:"thinking"`
		ToolCalls []wireCall `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Error      json.RawMessage `json:"error"`

	TotalDuration      time.Duration `json:"total_duration"` // the server counts nanoseconds, as Duration does
	LoadDuration       time.Duration `json:"load_duration"`
	PromptEvalCount    int           `json:"prompt_eval_count"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration"`
	EvalCount          int           `json:"eval_count"`
	EvalDuration       time.Duration `json:"eval_duration"`
}

func (r *record) usage() chat.Usage {
	return chat.Usage{PromptTokens: r.PromptEvalCount, OutputTokens: r.EvalCount, Load: r.LoadDuration,
		PromptEval: r.PromptEvalDuration, Eval: r.EvalDuration, Total: r.TotalDuration}
}

// decoder turns the records of one reply into the reply.
type decoder struct {
	split   *modeltext.Splitter
	calls   collector
	emit    func(chat.Delta)
	records int // that were chat records
	shown   int // calls that a delta told of
	size    int // bytes of text and arguments
	limit   int // of size
	reply   chat.Reply
}

func newDecoder(emit func(chat.Delta), ids modeltext.IDs) *decoder {
	if emit == nil {
		emit = func(chat.Delta) {}
	}
	return &decoder{split: modeltext.NewSplitter(), limit: modeltext.MaxReply, emit: emit, calls: collector{ids: ids}}
}

// run reads records until the one that says done, or a clean end without it. The
// error is a *modelserver.StreamError or the reader's. seen gets each line.
func (d *decoder) run(r io.Reader, seen func([]byte)) error {
	in := modeltext.NewLines(r)
	for !d.reply.Done {
		line, cut, err := in.Next()
		switch {
		case err == io.EOF:
			return nil
		case err == modeltext.ErrTooLong:
			return &modelserver.StreamError{Cause: err}
		case err != nil:
			return err
		}
		seen(line)
		if err := d.line(line); err != nil {
			if cut && !json.Valid(line) && (d.records > 0 || line[0] == '{') {
				return io.ErrUnexpectedEOF // the end of this line is missing
			}
			return err
		}
	}
	return nil
}

// line takes one record.
func (d *decoder) line(line []byte) error {
	if content, thinking, ok := quickText(line); ok {
		return d.text(content, thinking)
	}
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return &modelserver.StreamError{Line: bytes.Clone(line), Cause: err}
	}
	if text := modelserver.ErrorText(r.Error); text != "" {
		return &modelserver.StreamError{Server: text}
	}
	for _, c := range r.Message.ToolCalls {
		d.size += len(c.Function.Name) + len(c.Function.Arguments)
	}
	d.calls.add(r.Message.ToolCalls, r.Done)
	if r.Done {
		d.reply.Done, d.reply.DoneReason, d.reply.Usage = true, r.DoneReason, r.usage()
	}
	if r.Message.Role == "" && r.Message.Content == "" && !r.Done {
		return nil // valid JSON, but nothing of a chat
	}
	return d.text(r.Message.Content, r.Message.Thinking)
}

// text takes the text of a record.
func (d *decoder) text(content, thinking string) error {
	d.records++
	if d.size += len(content) + len(thinking); d.size > d.limit {
		d.reply.Done = false
		return &modelserver.StreamError{Cause: modeltext.ErrTooLong}
	}
	d.split.Think(thinking)
	shown, inline := d.split.Feed(content)
	d.show(shown, thinking+inline)
	return nil
}

func (d *decoder) show(content, thinking string) {
	if content != "" || thinking != "" || len(d.calls.calls) > d.shown {
		d.shown = len(d.calls.calls)
		d.emit(chat.Delta{Content: content, Thinking: thinking, Calls: len(d.calls.calls)})
	}
}

// result returns the reply as far as it came. Calls count only in a reply that is
// done.
func (d *decoder) result() chat.Reply {
	if content, thinking := d.split.End(); content != "" || thinking != "" {
		d.emit(chat.Delta{Content: content, Thinking: thinking, Calls: len(d.calls.calls)})
	}
	d.reply.Message.Role = chat.Assistant
	d.reply.Message.Content, d.reply.Message.Thinking = d.split.Texts()
	if d.reply.Done {
		d.reply.Message.Calls = d.calls.finish()
	}
	return d.reply
}
