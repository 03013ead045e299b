package openai

import (
	"io"
	"net/http"
	"testing"
	"time"

	"zcoder/internal/chat"
)

// tell is a server that answers paths with JSON.
func tell(t *testing.T, answers map[string]string) *Client {
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}, Options{})
}

func TestShow(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers map[string]string
		want    chat.ModelFacts
	}{
		{"llama.cpp", map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"llamacpp","meta":{"vocab_type":1,"n_vocab":5,"n_ctx_train":131072,"n_embd":4096,"n_params":8030261312,"size":4912898304}}]}`,
			"/props":     `{"default_generation_settings":{"id":0,"n_ctx":16384},"total_slots":1,"chat_template":"{{ tools }}","modalities":{"vision":true,"audio":false}}`},
			chat.ModelFacts{Tools: true, Untold: true, Vision: true, TrainedContext: 131072, FixedContext: 16384, Template: "{{ tools }}"}},
		{"llama.cpp that hides its properties", map[string]string{
			"/v1/models": `{"data":[{"id":"m","owned_by":"llamacpp","meta":{"n_ctx_train":32768,"n_ctx":8192}}]}`},
			chat.ModelFacts{Tools: true, Untold: true, TrainedContext: 32768, FixedContext: 8192}},
		{"vLLM", map[string]string{
			"/v1/models": `{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"vllm","root":"m","parent":null,"max_model_len":40960,"permission":[]}]}`},
			chat.ModelFacts{Tools: true, Untold: true, FixedContext: 40960}},
		{"LM Studio", map[string]string{
			"/v1/models":     `{"object":"list","data":[{"id":"other","owned_by":"organization_owner"},{"id":"m","object":"model","owned_by":"organization_owner"}]}`,
			"/api/v0/models": `{"object":"list","data":[{"id":"m","type":"llm","arch":"qwen3","quantization":"Q4_K_M","state":"loaded","max_context_length":262144,"loaded_context_length":8192}]}`},
			chat.ModelFacts{Tools: true, Untold: true, TrainedContext: 262144, FixedContext: 8192, Family: "qwen3", Quantisation: "Q4_K_M"}},
		{"a gateway", map[string]string{"/v1/models": `{"data":[{"id":"m","context_length":200000}]}`}, chat.ModelFacts{Tools: true, Untold: true, FixedContext: 200000}},
		{"Ollama", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"m:latest","object":"model","created":1,"owned_by":"library"}]}`}, chat.ModelFacts{Tools: true, Untold: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := tell(t, tt.answers).Show(t.Context(), "m"); err != nil || got != tt.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestModels(t *testing.T) {
	c := tell(t, map[string]string{"/v1/models": `{"data":[{"id":"a","created":1767323045,"meta":{"size":5}},{"id":"b"}]}`})
	models, err := c.Models(t.Context())
	want := chat.ModelInfo{Name: "a", Size: 5, Modified: time.Unix(1767323045, 0)}
	if err != nil || len(models) != 2 || models[0] != want || models[1] != (chat.ModelInfo{Name: "b"}) {
		t.Errorf("%+v, %v", models, err)
	}
	_, err = c.Show(t.Context(), "nope")
	failure(t, err, chat.MissingModel, "model 'nope' not found")
	if f, err := tell(t, nil).Show(t.Context(), "any"); err != nil || !f.Tools || !f.Untold {
		t.Errorf("a server without a list: %+v, %v", f, err)
	}
	c = tell(t, map[string]string{"/v1/models": `{"models":[]}`})
	_, err = c.Models(t.Context())
	failure(t, err, chat.BadResponse, "does not list models")
	c = tell(t, map[string]string{"/v1/models": `{"data":[]}`})
	if models, err = c.Models(t.Context()); err != nil || len(models) != 0 {
		t.Errorf("%+v, %v", models, err)
	}
}

// How a server is told to think depends on what it is.
func TestThinkingWords(t *testing.T) {
	for _, tt := range []struct{ owner, think, want string }{
		{"llamacpp", "", ``}, {"llamacpp", "on", `,"chat_template_kwargs":{"enable_thinking":true}`},
		{"vllm", "off", `,"chat_template_kwargs":{"enable_thinking":false}`},
		{"vllm", "high", `,"reasoning_effort":"high","chat_template_kwargs":{"reasoning_effort":"high"}`},
		{"library", "on", ``}, {"library", "off", `,"reasoning_effort":"none"`}, {"library", "low", `,"reasoning_effort":"low"`},
	} {
		t.Run(tt.owner+" "+tt.think, func(t *testing.T) {
			var sent string
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				sent = string(b)
				body("application/json", `{"data":[{"id":"m","owned_by":"`+tt.owner+`"}],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)(w, r)
			}, Options{})
			if _, err := c.Show(t.Context(), "m"); err != nil {
				t.Fatal(err)
			}
			r := hello()
			r.Think = tt.think
			if _, err := c.Chat(t.Context(), r, nil); err != nil {
				t.Fatal(err)
			}
			if want := `{"model":"m","stream":true,"stream_options":{"include_usage":true}` + tt.want + `,"messages":[{"role":"user","content":"hello"}]}`; sent != want {
				t.Errorf("got %s\nwant %s", sent, want)
			}
		})
	}
}
