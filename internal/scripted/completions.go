package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const completionsPath = "/v1/chat/completions"

// completionRequest is what the server reads of a request of the chat-completions
// API.
type completionRequest struct {
	Model         string          `json:"model"`
	Messages      json.RawMessage `json:"messages"`
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens       int    `json:"max_tokens"`
	ReasoningEffort string `json:"reasoning_effort"`
}

type completionMessage struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"tool_call_id"`
	ToolCalls []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// completions answers a request of the chat-completions API with the same script.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // cannot fail: it is in memory
	w = &objectErrors{ResponseWriter: w}
	var in completionRequest
	q, refused := readCompletion(body, &in)
	if s.script.kind != "" {
		no := false
		q.Truncate = &no
	}
	out := stream{w: w, kind: "text/event-stream", before: "data: ", after: "\n\n"}
	s.reply(&player{form: chunks{usage: in.StreamOptions.IncludeUsage}, out: out, request: q}, r, body, refused)
}

// readCompletion decodes a request as strictly as the real servers do together.
func readCompletion(body []byte, in *completionRequest) (*chatRequest, *refusal) {
	q := &chatRequest{}
	refuse := func(format string, args ...any) (*chatRequest, *refusal) {
		return q, &refusal{http.StatusBadRequest, fmt.Sprintf(format, args...)}
	}
	var list []completionMessage
	if err := json.Unmarshal(body, in); err != nil {
		return refuse("%s", err)
	}
	if err := json.Unmarshal(in.Messages, &list); err != nil {
		return refuse("%s", err)
	}
	if !in.Stream {
		return refuse("the scripted server only streams")
	}
	q.Model, q.Messages, q.Tools = in.Model, in.Messages, in.Tools
	if in.ReasoningEffort != "" {
		q.Think = in.ReasoningEffort != "none"
	}
	open := map[string]bool{}
	for _, m := range list {
		text, err := contentText(m.Content)
		if err != nil {
			return refuse("invalid message content type: %s", err)
		}
		q.list = append(q.list, message{Role: m.Role, Content: text})
		for _, c := range m.ToolCalls {
			if c.ID == "" || c.Type != "function" || c.Function.Arguments == nil || !json.Valid([]byte(*c.Function.Arguments)) {
				return refuse("invalid tool call arguments")
			}
			open[c.ID] = true
		}
		if m.Role == "tool" && !open[m.CallID] {
			return refuse("a tool message needs the tool_call_id of a call before it, got %q", m.CallID)
		}
	}
	return q, nil
}

// contentText reads a content: a text, null, or a list of parts.
func contentText(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct{ Type, Text string }
	err := json.Unmarshal(raw, &parts)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String(), err
}

// objectErrors turns Ollama's error bodies into those of the chat-completions API.
type objectErrors struct {
	http.ResponseWriter
	failed bool
}

func (o *objectErrors) WriteHeader(status int) {
	o.failed = status >= 400
	o.ResponseWriter.WriteHeader(status)
}

func (o *objectErrors) Write(b []byte) (int, error) {
	var e struct{ Error *string }
	if o.failed && json.Unmarshal(b, &e) == nil && e.Error != nil {
		return len(b), json.NewEncoder(o.ResponseWriter).Encode(errorObject(*e.Error))
	}
	return o.ResponseWriter.Write(b)
}

func (o *objectErrors) Unwrap() http.ResponseWriter { return o.ResponseWriter }

func errorObject(text string) map[string]any {
	return map[string]any{"error": map[string]any{"message": text, "type": "api_error", "param": nil, "code": nil}}
}

// chunks is the form of the chat-completions API.
type chunks struct{ usage bool }

func (chunks) chunk(p *player, choices []any, more map[string]any) {
	c := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": p.server.o.Now().Unix(), "model": p.request.Model, "choices": choices}
	for k, v := range more {
		c[k] = v
	}
	p.out.value(c)
}

func (c chunks) delta(p *player, delta map[string]any, finish any) {
	c.chunk(p, []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}, nil)
}

func (c chunks) text(p *player, field, text string) {
	if field == "thinking" {
		field = "reasoning_content"
	}
	c.delta(p, map[string]any{"role": "assistant", field: text}, nil)
}

// call sends the arguments in two pieces, as servers do that stream them.
func (c chunks) call(p *player, id, name string, args []byte) {
	fragment := func(more map[string]any) {
		more["index"] = p.calls
		c.delta(p, map[string]any{"tool_calls": []any{more}}, nil)
	}
	half := len(args) / 2
	fragment(map[string]any{"id": id, "type": "function", "function": map[string]any{"name": name, "arguments": ""}})
	fragment(map[string]any{"function": map[string]any{"arguments": string(args[:half])}})
	fragment(map[string]any{"function": map[string]any{"arguments": string(args[half:])}})
}

func (chunks) failure(p *player, text string) { p.out.value(errorObject(text)) }

func (c chunks) final(p *player) {
	reason := p.reason
	if p.calls > 0 && reason == "stop" {
		reason = "tool_calls"
	}
	c.delta(p, map[string]any{"content": ""}, reason)
	if c.usage {
		in, out := p.counts()
		c.chunk(p, []any{}, map[string]any{"usage": map[string]any{"prompt_tokens": in, "completion_tokens": out, "total_tokens": in + out}})
	}
	p.out.line([]byte("[DONE]"))
}

// owners are what the kinds of server call themselves in the list of models.
var owners = map[string]string{"": "library", "llamacpp": "llamacpp", "vllm": "vllm"}

func (s *Server) modelList(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, m := range s.models {
		entry := map[string]any{"id": m.name, "object": "model", "created": 1767323045, "owned_by": owners[s.script.kind]}
		switch s.script.kind {
		case "llamacpp":
			entry["meta"] = map[string]any{"n_ctx_train": m.trained, "size": m.size, "n_params": 7_000_000_000}
		case "vllm":
			entry["max_model_len"] = m.window()
		}
		list = append(list, entry)
	}
	answer(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// props is what llama.cpp tells about its slots.
func (s *Server) props(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.script.kind != "llamacpp" || len(s.models) == 0 {
		http.NotFound(w, nil)
		return
	}
	answer(w, http.StatusOK, map[string]any{"total_slots": 1, "chat_template": s.models[0].template(),
		"default_generation_settings": map[string]any{"n_ctx": s.models[0].window()}})
}

// window is what a server that was started for this model has.
func (m model) window() int {
	if m.numCtx > 0 {
		return m.numCtx
	}
	return m.trained
}
