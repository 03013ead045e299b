package scripted

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"version": s.script.version})
}

func (m model) details() map[string]any {
	return map[string]any{"parent_model": "", "format": "gguf", "family": m.family, "families": []string{m.family},
		"parameter_size": m.params, "quantization_level": m.quant}
}

func (s *Server) tags(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, m := range s.models {
		list = append(list, map[string]any{"name": m.name, "model": m.name, "size": m.size, "digest": digest(m.name),
			"modified_at": "2026-01-02T03:04:05.678901234Z", "details": m.details()})
	}
	answer(w, http.StatusOK, map[string]any{"models": list})
}

func (s *Server) ps(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []any{}
	for _, l := range s.loaded {
		entry := map[string]any{"name": l.name, "model": l.name, "context_length": l.ctx, "digest": digest(l.name),
			"expires_at": s.o.Now().Add(5 * time.Minute).Format(time.RFC3339Nano), "size_vram": 0, "size": 0}
		for _, m := range s.models {
			if m.name == l.name {
				entry["size"], entry["details"] = m.size, m.details()
			}
		}
		list = append(list, entry)
	}
	answer(w, http.StatusOK, map[string]any{"models": list})
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	var q struct{ Model, Name string }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		answerError(w, http.StatusBadRequest, "%s", err)
		return
	}
	if q.Model == "" {
		q.Model = q.Name
	}
	m, ok := s.find(q.Model)
	if !ok {
		answerError(w, http.StatusNotFound, "model '%s' not found", q.Model)
		return
	}
	facts := map[string]any{"template": m.template(), "details": m.details(), "capabilities": m.capabilities(),
		"modified_at": "2026-01-02T03:04:05.678901234Z",
		"model_info": map[string]any{"general.architecture": m.family, m.family + ".context_length": m.trained,
			m.family + ".block_count": 32, m.family + ".embedding_length": 4096,
			m.family + ".attention.head_count": 32, m.family + ".attention.head_count_kv": 8}}
	if m.numCtx > 0 {
		facts["parameters"] = fmt.Sprintf("num_ctx                        %d\nstop                           \"<|end|>\"", m.numCtx)
	}
	if m.renderer != "" {
		facts["renderer"] = m.renderer
	}
	if m.parser != "" {
		facts["parser"] = m.parser
	}
	answer(w, http.StatusOK, facts)
}

func (m model) capabilities() []string {
	list := []string{"completion"}
	for _, c := range []struct {
		has  bool
		name string
	}{{m.vision, "vision"}, {m.tools, "tools"}, {m.thinking, "thinking"}} {
		if c.has {
			list = append(list, c.name)
		}
	}
	return list
}

// template is a plausible one: clients look for the fields that it mentions.
func (m model) template() string {
	t := "{{ .System }}"
	if m.tools {
		t += "{{ range .Tools }}{{ . }}{{ end }}"
	}
	t += "{{ range .Messages }}"
	if m.thinking {
		t += "<think>{{ .Thinking }}</think>"
	}
	if m.tools {
		t += "{{ range .ToolCalls }}<tool_call>{{ . }}</tool_call>{{ end }}"
	}
	return t + "{{ .Role }}: {{ .Content }}{{ end }}"
}

func digest(name string) string {
	return fmt.Sprintf("%064x", len(name))
}

// pull streams the progress of a download that takes four steps, then adds the
// model. What was downloaded stays when the client leaves.
func (s *Server) pull(w http.ResponseWriter, r *http.Request) {
	var q struct{ Model, Name string }
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		answerError(w, http.StatusBadRequest, "%s", err)
		return
	}
	name := withTag(q.Model + q.Name)
	m, known := s.find(name)
	for _, p := range s.script.pullable {
		if p.name == name {
			m, known = p, true
		}
	}
	if !known {
		answerError(w, http.StatusInternalServerError, "pull model manifest: file does not exist")
		return
	}
	out := ndjson(w)
	out.value(map[string]any{"status": "pulling manifest"})
	layer := "sha256:" + digest(name)
	for i := s.pulled(name, 0); i <= 4; i = s.pulled(name, i+1) {
		if i > 0 && !wait(m.pause, r.Context().Done()) {
			return
		}
		out.value(map[string]any{"status": "pulling " + layer[7:19], "digest": layer, "total": m.size, "completed": m.size * i / 4})
	}
	for _, status := range []string{"verifying sha256 digest", "writing manifest", "success"} {
		out.value(map[string]any{"status": status})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, have := range s.models {
		if strings.EqualFold(have.name, m.name) {
			return
		}
	}
	s.models = append(s.models, m)
}

// pulled notes how many steps of a download are done and returns that.
func (s *Server) pulled(name string, steps int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.downloads[name] = max(s.downloads[name], steps)
	return s.downloads[name]
}
