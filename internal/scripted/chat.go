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

// chatRequest is what the server reads of a chat request.
type chatRequest struct {
	Model    string          `json:"model"`
	Messages json.RawMessage `json:"messages"`
	Tools    json.RawMessage `json:"tools"`
	Think    any             `json:"think"`
	Truncate *bool           `json:"truncate"`
	// KeepAlive is a number or a text; zero unloads.
	KeepAlive json.RawMessage `json:"keep_alive"`
	Options   struct {
		NumCtx     int `json:"num_ctx"`
		NumPredict int `json:"num_predict"`
	} `json:"options"`

	list []message
}

type message struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	ToolCalls []struct {
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// refusal is an answer that uses no reply.
type refusal struct {
	status int
	text   string
}

// chat answers a request of Ollama's API.
func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // cannot fail: it is in memory
	q, refused := readChat(body)
	s.reply(&player{form: native{}, out: ndjson(w), request: q}, r, body, refused)
}

// reply answers a chat request that was read, or refuses it.
func (s *Server) reply(p *player, r *http.Request, body []byte, refused *refusal) {
	rec := Recorded{Method: r.Method, Path: r.URL.Path, Body: body, Header: r.Header.Clone()}
	w, q := p.out.w, p.request
	var m model
	if refused == nil {
		m, refused = s.accept(q)
	}
	if refused != nil {
		s.record(rec)
		answerError(w, refused.status, "%s", refused.text)
		return
	}
	window, cut := s.measure(&rec, q, m)
	if cut && q.Truncate != nil && !*q.Truncate {
		s.record(rec)
		answerError(w, http.StatusBadRequest, "the input length exceeds the context length")
		return
	}
	p.server, p.rec, p.gone = s, rec, r.Context().Done()
	if cut {
		p.rec.PromptTokens = window // the real server's sign of a prompt cut in the middle
	}
	if !q.asks() {
		p.warmUp(m)
		return
	}
	reply, err := s.pick(p)
	if err != "" {
		answerError(w, http.StatusInternalServerError, "%s", err)
		return
	}
	p.play(reply)
}

// readChat decodes a request as strictly as the real server does.
func readChat(body []byte) (*chatRequest, *refusal) {
	q := &chatRequest{}
	if len(body) == 0 {
		return nil, &refusal{http.StatusBadRequest, "missing request body"}
	}
	err := json.Unmarshal(body, q)
	if err == nil && len(q.Messages) > 0 {
		err = json.Unmarshal(q.Messages, &q.list)
	}
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, err.Error()}
	}
	for _, m := range q.list {
		for _, c := range m.ToolCalls {
			if a := bytes.TrimSpace(c.Function.Arguments); len(a) > 0 && a[0] != '{' {
				return nil, &refusal{http.StatusBadRequest, "Value looks like object, but can't find closing '}' symbol"}
			}
		}
	}
	return q, nil
}

// accept checks what the model can do.
func (s *Server) accept(q *chatRequest) (model, *refusal) {
	if q.Model == "" {
		return model{}, &refusal{http.StatusBadRequest, "model is required"}
	}
	m, ok := s.find(q.Model)
	if !ok {
		return m, &refusal{http.StatusNotFound, fmt.Sprintf("model '%s' not found", q.Model)}
	}
	if !m.tools && len(q.Tools) > len("[]") {
		return m, &refusal{http.StatusBadRequest, "registry/library/" + m.name + " does not support tools"}
	}
	switch think := q.Think.(type) {
	case bool:
		if think && !m.thinking {
			return m, &refusal{http.StatusBadRequest, fmt.Sprintf("%q does not support thinking", q.Model)}
		}
	case string:
		if !m.thinking {
			return m, &refusal{http.StatusBadRequest, fmt.Sprintf("%q does not support thinking", q.Model)}
		}
		if m.family != "gptoss" {
			return m, &refusal{http.StatusBadRequest, fmt.Sprintf("think value %q is not supported for this model", think)}
		}
	}
	return m, nil
}

// asks reports whether the request wants a reply; one without a user message only
// loads, unloads or warms the model.
func (q *chatRequest) asks() bool {
	for _, m := range q.list {
		if m.Role == "user" {
			return true
		}
	}
	return false
}

// prompt is what the cache is about: the tools, then the messages without the
// bracket that closes them.
func (q *chatRequest) prompt() []byte {
	p := append([]byte(nil), q.Tools...)
	return append(p, bytes.TrimSuffix(bytes.TrimSpace(q.Messages), []byte("]"))...)
}

// last returns the text of the last message.
func (q *chatRequest) last() string {
	if len(q.list) == 0 {
		return ""
	}
	return q.list[len(q.list)-1].Content
}

// contains looks in the bytes of the request and in its decoded messages.
func (q *chatRequest) contains(body []byte, text string) bool {
	if bytes.Contains(body, []byte(text)) {
		return true
	}
	for _, m := range q.list {
		if strings.Contains(m.Content, text) {
			return true
		}
	}
	return false
}

const defaultWindow = 4096 // what a server without much memory gives a request that names no window

// measure counts the prompt, simulates the one cache slot and keeps what /api/ps
// shows. It returns the window of the request and whether the prompt was cut to it.
func (s *Server) measure(rec *Recorded, q *chatRequest, m model) (window int, cut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	prompt := q.prompt()
	rec.PromptBytes, rec.CommonPrefix = len(prompt), commonPrefix(prompt, s.before)
	rec.NumCtx, rec.WarmUp = q.Options.NumCtx, !q.asks()
	s.before = prompt
	window = q.Options.NumCtx
	if window == 0 {
		window = m.numCtx
	}
	if window == 0 && s.script.kind != "" {
		window = m.window()
	}
	if window == 0 {
		window = defaultWindow
	}
	window = min(window, m.trained)
	rec.Reloaded = s.load(m.name, window)
	if rec.Reloaded {
		s.prompts[m.name] = nil
	}
	rec.PromptTokens = (len(prompt) + 3) / 4
	rec.EvaluatedTokens = rec.PromptTokens - commonPrefix(prompt, s.prompts[m.name])/4
	if len(q.list) > 0 {
		s.prompts[m.name] = prompt
	}
	if string(bytes.Trim(q.KeepAlive, `"`)) == "0" {
		s.unload(m.name)
	}
	return window, rec.PromptTokens > window
}

// load notes that a model is loaded with a window and reports whether it was not.
func (s *Server) load(name string, window int) bool {
	for i, l := range s.loaded {
		if l.name == name {
			s.loaded[i].ctx = window
			return l.ctx != window
		}
	}
	s.loaded = append(s.loaded, loadedModel{name, window})
	return true
}

func (s *Server) unload(name string) {
	var rest []loadedModel
	for _, l := range s.loaded {
		if l.name != name {
			rest = append(rest, l)
		}
	}
	s.loaded = rest
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// pick records the request and chooses its reply. A text instead of a reply is the
// failure that the client is told.
func (s *Server) pick(p *player) (reply, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.index = s.recordLocked(p.rec)
	if s.o.Respond != nil {
		if text := s.o.Respond(p.rec); text != "" {
			return s.oneReply(text)
		}
	}
	for s.next < len(s.script.replies) {
		r := s.script.replies[s.next]
		s.next++
		if !r.applies(p.request) {
			continue
		}
		if unmet := r.unmet(p.request, p.rec.Body); unmet != "" {
			s.failLocked("reply at script line %d: %s", r.line, unmet)
			return r, fmt.Sprintf("scripted reply at line %d: %s", r.line, unmet)
		}
		return r, ""
	}
	if s.o.Ending != "" {
		return reply{steps: []step{{verb: "say", text: s.o.Ending}}}, ""
	}
	s.failLocked("request %d came after the last reply", p.index+1)
	return reply{}, fmt.Sprintf("the script has no reply left: all %d were used", len(s.script.replies))
}

// oneReply parses what Options.Respond returned.
func (s *Server) oneReply(text string) (reply, string) {
	script, err := Parse(text)
	if err == nil && len(script.replies) != 1 {
		err = fmt.Errorf("expected one reply, got %d", len(script.replies))
	}
	if err != nil {
		s.failLocked("responder: %s", err)
		return reply{}, "scripted responder: " + err.Error()
	}
	return script.replies[0], ""
}

func (r reply) applies(q *chatRequest) bool {
	for _, s := range r.steps {
		if s.verb == "if" && !strings.Contains(q.last(), s.text) || s.verb == "unless" && strings.Contains(q.last(), s.text) {
			return false
		}
	}
	return true
}

// unmet returns the first expectation that the request does not meet.
func (r reply) unmet(q *chatRequest, body []byte) string {
	for _, s := range r.steps {
		switch {
		case s.verb == "expect" && !q.contains(body, s.text):
			return fmt.Sprintf("expected the request to contain %q", s.text)
		case s.verb == "expect-not" && q.contains(body, s.text):
			return fmt.Sprintf("expected the request not to contain %q", s.text)
		case s.verb == "expect-last" && !strings.Contains(q.last(), s.text):
			return fmt.Sprintf("expected the last message to contain %q, got %q", s.text, q.last())
		}
	}
	return ""
}

// wait passes the time unless the client leaves first, and reports which.
func wait(d time.Duration, gone <-chan struct{}) bool {
	if d <= 0 {
		select {
		case <-gone:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
		return false
	}
}
