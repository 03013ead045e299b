package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// stream writes lines, each flushed.
type stream struct {
	w       http.ResponseWriter
	kind    string // the content type
	before  string // stands before the text of a line
	after   string // stands after it, the line end included
	started bool
}

func (o *stream) value(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("scripted: record that JSON cannot hold: " + err.Error())
	}
	o.line(b)
}

func (o *stream) line(b []byte) {
	if !o.started {
		o.started = true
		o.w.Header().Set("Content-Type", o.kind)
	}
	io.WriteString(o.w, o.before+string(b)+o.after)
	// The recorder of httptest cannot fail here; a client that left is seen by wait.
	_ = http.NewResponseController(o.w).Flush()
}

// ndjson is the stream of Ollama's API, one object a line.
func ndjson(w http.ResponseWriter) stream {
	return stream{w: w, kind: "application/x-ndjson", after: "\n"}
}

// form writes the records of one API.
type form interface {
	text(p *player, field, text string) // field is content or thinking
	call(p *player, id, name string, args []byte)
	failure(p *player, text string) // in mid-stream
	final(p *player)
}

// player plays one reply.
type player struct {
	server  *Server
	form    form
	out     stream
	request *chatRequest
	rec     Recorded
	index   int // of the request among the recorded ones
	gone    <-chan struct{}
	tokens  int // of output so far
	calls   int // in this reply
	in, end int // usage that the script gave
	reason  string
}

// warmUp answers a request that asks nothing.
func (p *player) warmUp(m model) {
	p.server.record(p.rec)
	p.reason = "stop"
	if len(p.request.list) > 0 {
		p.form.final(p)
		return
	}
	reason := "load"
	if string(bytes.Trim(p.request.KeepAlive, `"`)) == "0" {
		reason = "unload"
	}
	answer(p.out.w, http.StatusOK, map[string]any{"model": p.request.Model, "created_at": p.now(), "done": true, "done_reason": reason,
		"message": map[string]string{"role": "assistant", "content": ""}})
}

func (p *player) now() string { return p.server.o.Now().UTC().Format(time.RFC3339Nano) }

// play writes the records of a reply.
func (p *player) play(r reply) {
	p.reason = "stop"
	if !wait(p.server.o.FirstDelay, p.gone) {
		p.left()
		return
	}
	for _, s := range r.steps {
		more, here := p.step(s)
		if !here {
			p.left()
		}
		if !more || !here {
			return
		}
	}
	p.form.final(p)
}

// left notes that the client did not stay for the end.
func (p *player) left() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.server.requests[p.index].Gone = true
}

// step plays one directive. more is false when it ends the reply, here when the
// client left.
func (p *player) step(s step) (more, here bool) {
	switch s.verb {
	case "say":
		return true, p.words("content", s.text)
	case "think":
		return true, p.words("thinking", s.text)
	case "call":
		p.call(s)
	case "raw":
		p.out.line([]byte(s.text))
	case "pause":
		return true, wait(s.pause, p.gone)
	case "done":
		p.reason = s.text
	case "usage":
		p.in, p.end = s.in, s.out
	case "error":
		p.form.failure(p, s.text)
		return false, true
	case "status":
		p.status(s)
		return false, true
	case "eof":
		p.out.w.Header().Set("Content-Type", p.out.kind)
		return false, true
	case "close":
		panic(http.ErrAbortHandler)
	case "hang":
		<-p.gone
		return false, false
	}
	return true, true
}

// words streams a text in pieces that end after white space.
func (p *player) words(field, text string) bool {
	for text != "" {
		n := strings.IndexAny(text, " \n")
		for n >= 0 && n < len(text) && (text[n] == ' ' || text[n] == '\n') {
			n++
		}
		if n < 0 {
			n = len(text)
		}
		if !wait(p.server.o.WordDelay, p.gone) {
			return false
		}
		p.tokens += (n + 3) / 4
		p.form.text(p, field, text[:n])
		text = text[n:]
	}
	return true
}

func (p *player) call(s step) {
	p.server.mu.Lock()
	p.server.calls++
	id := fmt.Sprintf("call_%08d", p.server.calls)
	p.server.mu.Unlock()
	var args bytes.Buffer
	if err := json.Compact(&args, []byte(s.text)); err != nil {
		panic("scripted: arguments that Parse accepted: " + err.Error())
	}
	p.tokens += (len(s.name) + args.Len() + 3) / 4
	p.form.call(p, id, s.name, args.Bytes())
	p.calls++
}

// status answers with an HTTP status and a body whose type is guessed.
func (p *player) status(s step) {
	kind := "text/plain; charset=utf-8"
	switch {
	case strings.HasPrefix(s.text, "{"):
		kind = "application/json; charset=utf-8"
	case strings.HasPrefix(s.text, "<"):
		kind = "text/html; charset=utf-8"
	}
	p.out.w.Header().Set("Content-Type", kind)
	p.out.w.WriteHeader(s.code)
	p.out.w.Write([]byte(s.text))
}

// counts are the numbers of tokens that the last record tells.
func (p *player) counts() (in, out int) {
	if p.in > 0 || p.end > 0 {
		return p.in, p.end
	}
	return p.rec.PromptTokens, p.tokens + 1 // the end token counts
}

// native is the form of Ollama's own API.
type native struct{}

func (native) message(p *player, m map[string]any) {
	p.out.value(map[string]any{"model": p.request.Model, "created_at": p.now(), "message": m, "done": false})
}

func (n native) text(p *player, field, text string) {
	m := map[string]any{"role": "assistant", "content": ""}
	m[field] = text
	n.message(p, m)
}

func (n native) call(p *player, id, name string, args []byte) {
	n.message(p, map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{"id": id,
		"function": map[string]any{"index": p.calls, "name": name, "arguments": json.RawMessage(args)}}}})
}

func (native) failure(p *player, text string) { p.out.value(map[string]string{"error": text}) }

// final writes the last record, with counts in the proportions of a real server.
func (native) final(p *player) {
	in, out := p.counts()
	read := int64(p.rec.EvaluatedTokens) * int64(time.Millisecond)
	wrote := int64(out) * int64(20*time.Millisecond)
	load := int64(5 * time.Millisecond)
	if p.rec.Reloaded {
		load = int64(300 * time.Millisecond)
	}
	p.out.value(map[string]any{"model": p.request.Model, "created_at": p.now(), "done": true, "done_reason": p.reason,
		"message":        map[string]string{"role": "assistant", "content": ""},
		"total_duration": load + read + wrote, "load_duration": load, "prompt_eval_count": in, "prompt_eval_duration": read,
		"eval_count": out, "eval_duration": wrote})
}
