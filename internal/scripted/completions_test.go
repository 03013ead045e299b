package scripted

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The same script through the chat-completions API.
func TestCompletions(t *testing.T) {
	chunk := func(choice string) string {
		return `data: {"choices":[` + choice + `],"created":0,"id":"chatcmpl-1","model":"test-model","object":"chat.completion.chunk"`
	}
	delta := func(d, finish string) string {
		return chunk(`{"delta":{`+d+`},"finish_reason":`+finish+`,"index":0}`) + "}"
	}
	for _, tt := range []struct {
		name, script string
		status       int
		lines        []string
	}{
		{"text", "> say a bc\n", 200, []string{delta(`"content":"a ","role":"assistant"`, "null"), delta(`"content":"bc","role":"assistant"`, "null"), delta(`"content":""`, `"stop"`), "data: [DONE]"}},
		{"thinking, cut", "> think hm\n> done length\n", 200, []string{delta(`"reasoning_content":"hm","role":"assistant"`, "null"), delta(`"content":""`, `"length"`), "data: [DONE]"}},
		{"call in pieces", "> call f {\"a\":1}\n", 200, []string{
			delta(`"tool_calls":[{"function":{"arguments":"","name":"f"},"id":"call_00000001","index":0,"type":"function"}]`, "null"),
			delta(`"tool_calls":[{"function":{"arguments":"{\"a"},"index":0}]`, "null"), delta(`"tool_calls":[{"function":{"arguments":"\":1}"},"index":0}]`, "null"),
			delta(`"content":""`, `"tool_calls"`), "data: [DONE]"}},
		{"error in mid-stream", "> error x\n", 200, []string{`data: {"error":{"code":null,"message":"x","param":null,"type":"api_error"}}`}},
		{"error before", "> status 404 {\"error\":\"model 'm' not found\"}\n", 404, []string{`{"error":{"code":null,"message":"model 'm' not found","param":null,"type":"api_error"}}`}},
		{"eof", "> eof\n", 200, []string{""}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, url := start(t, tt.script, Options{Now: func() time.Time { return time.Unix(0, 0) }})
			status, lines := post(t, url, "/v1/chat/completions", `{"model":"test-model","stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"go"}]}]}`)
			got := strings.Split(strings.ReplaceAll(strings.Join(lines, "\n"), "\n\n", "\n"), "\n")
			if status != tt.status || !reflect.DeepEqual(got, tt.lines) {
				t.Errorf("got %d\n%q\nwant\n%q", status, got, tt.lines)
			}
			if server.Unused() != 0 || len(server.Chats()) != 1 {
				t.Errorf("%d unused, %d asked", server.Unused(), len(server.Chats()))
			}
		})
	}
}

// Requests that a real server would refuse are refused, and use no reply.
func TestCompletionsAreStrict(t *testing.T) {
	const user = `{"role":"user","content":"go"}`
	for name, tt := range map[string]struct{ script, body, want string }{
		"no stream":            {"> say a\n", `{"model":"test-model","messages":[` + user + `]}`, "only streams"},
		"arguments an object":  {"> say a\n", `{"model":"test-model","stream":true,"messages":[` + user + `,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{}}}]}]}`, "cannot unmarshal object"},
		"arguments broken":     {"> say a\n", `{"model":"test-model","stream":true,"messages":[` + user + `,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]}]}`, "invalid tool call arguments"},
		"result without call":  {"> say a\n", `{"model":"test-model","stream":true,"messages":[` + user + `,{"role":"tool","tool_call_id":"c","content":"r"}]}`, "tool_call_id"},
		"unknown model":        {"> say a\n", `{"model":"nope","stream":true,"messages":[` + user + `]}`, "model 'nope' not found"},
		"too long for vLLM":    {"> server vllm\n\n> model test-model num_ctx=5\n\n> say a\n", `{"model":"test-model","stream":true,"messages":[` + user + `]}`, "exceeds the context length"},
		"broken":               {"> say a\n", `{`, "unexpected end"},
		"thinking is not had":  {"> say a\n", `{"model":"test-model","stream":true,"reasoning_effort":"low","messages":[` + user + `]}`, "does not support thinking"},
		"content of odd parts": {"> say a\n", `{"model":"test-model","stream":true,"messages":[{"role":"user","content":7}]}`, "invalid message content"},
	} {
		t.Run(name, func(t *testing.T) {
			server, url := start(t, tt.script, Options{})
			status, lines := post(t, url, "/v1/chat/completions", tt.body)
			if status < 400 || !strings.Contains(lines[0], tt.want) || !strings.HasPrefix(lines[0], `{"error":{"`) || server.Unused() != 1 {
				t.Errorf("got %d %q, %d unused", status, lines, server.Unused())
			}
		})
	}
}

func TestModelListOfEachKind(t *testing.T) {
	for kind, want := range map[string]string{
		"":                      `{"data":[{"created":1767323045,"id":"m:latest","object":"model","owned_by":"library"}],"object":"list"}`,
		"> server vllm\n\n":     `"max_model_len":8192,"object":"model","owned_by":"vllm"`,
		"> server llamacpp\n\n": `"meta":{"n_ctx_train":32768,"n_params":7000000000,"size":4000000000},"object":"model","owned_by":"llamacpp"`,
	} {
		_, url := start(t, kind+"> model m num_ctx=8192\n", Options{})
		for path, want := range map[string]string{"/v1/models": want, "/props": map[bool]string{true: `"default_generation_settings":{"n_ctx":8192}`, false: "not found"}[strings.Contains(kind, "llamacpp")]} {
			r, err := http.Get(url + path)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil || !strings.Contains(string(b), want) {
				t.Errorf("%q %s: %s, %v", kind, path, b, err)
			}
		}
	}
	if _, err := Parse("> server gemini\n"); err == nil {
		t.Error("an unknown kind was taken")
	}
}
