package ollama

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"zcoder/internal/chat"
)

func ptr(f float64) *float64 { return &f }

func TestEncodeChat(t *testing.T) {
	tests := []struct {
		name string
		r    chat.Request
		want string
	}{
		{"least", chat.Request{Model: "m"}, `{"model":"m","stream":true,"truncate":false,"shift":false,"messages":[]}`},
		{"all settings", chat.Request{Model: "m", Think: "on", KeepAlive: "10m", NumCtx: 8192, NumPredict: 100, Temperature: ptr(0),
			Format: json.RawMessage(`{"type":"object"}`)},
			`{"model":"m","stream":true,"truncate":false,"shift":false,"think":true,"keep_alive":"10m","options":{"num_ctx":8192,"num_predict":100,"temperature":0},"format":{"type":"object"},"messages":[]}`},
		{"thinking off, kept for ever", chat.Request{Model: "m", Think: "off", KeepAlive: "-1", Temperature: ptr(0.7)},
			`{"model":"m","stream":true,"truncate":false,"shift":false,"think":false,"keep_alive":-1,"options":{"temperature":0.7},"messages":[]}`},
		{"level", chat.Request{Model: "m", Think: "high"}, `{"model":"m","stream":true,"truncate":false,"shift":false,"think":"high","messages":[]}`},
		{"tools", chat.Request{Model: "m", Tools: []chat.Tool{{Name: "a", Description: "A <b>.", Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)}, {Name: "c"}}},
			`{"model":"m","stream":true,"truncate":false,"shift":false,"tools":[{"type":"function","function":{"name":"a","description":"A <b>.","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}},{"type":"function","function":{"name":"c","description":"","parameters":{"type":"object","properties":{}}}}],"messages":[]}`},
		{"a call and its result", chat.Request{Model: "m", Messages: []chat.Message{
			{Role: chat.System, Content: "s"}, {Role: chat.User, Content: "u", Note: true},
			{Role: chat.Assistant, Thinking: "t", Calls: []chat.ToolCall{{ID: "c1", Name: "f", Args: json.RawMessage(`{"path": "a<b>", "n": 3}`)}, {Name: "g"}}},
			{Role: chat.ToolRole, ToolName: "f", CallID: "c1", Content: "r"}}},
			`{"model":"m","stream":true,"truncate":false,"shift":false,"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},` +
				`{"role":"assistant","content":"","thinking":"t","tool_calls":[{"id":"c1","function":{"index":0,"name":"f","arguments":{"path":"a<b>","n":3}}},{"function":{"index":1,"name":"g","arguments":{}}}]},` +
				`{"role":"tool","content":"r","tool_name":"f","tool_call_id":"c1"}]}`},
		{"images", chat.Request{Model: "m", Messages: []chat.Message{{Role: chat.User, Content: "look", Images: [][]byte{{1, 2, 3}, {255}}}}},
			`{"model":"m","stream":true,"truncate":false,"shift":false,"messages":[{"role":"user","content":"look","images":["AQID","/w=="]}]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := encodeChat(tt.r)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if !json.Valid(got) {
				t.Error("not valid JSON")
			}
		})
	}
}

func TestEncodeRefusesBrokenSchemas(t *testing.T) {
	for _, r := range []chat.Request{
		{Tools: []chat.Tool{{Name: "x", Schema: json.RawMessage(`{"a"`)}}},
		{Format: json.RawMessage(`{"a"`)},
	} {
		if _, err := encodeChat(r); err == nil || !strings.Contains(err.Error(), "not valid JSON") {
			t.Errorf("got %v", err)
		}
	}
}

// A request that only appends extends the bytes of the one before.
func TestPrefixStays(t *testing.T) {
	r := chat.Request{Model: "m", NumCtx: 8192, KeepAlive: "5m", Think: "off", Tools: []chat.Tool{{Name: "f", Schema: json.RawMessage(`{}`)}},
		Messages: []chat.Message{{Role: chat.System, Content: "s"}, {Role: chat.User, Content: "<u>"}}}
	before, err := encodeChat(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		r.Messages = append(r.Messages,
			chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{ID: "c", Name: "f", Args: json.RawMessage(`{"b":1,"a":"` + strings.Repeat("x", i) + `"}`)}}},
			chat.Message{Role: chat.ToolRole, ToolName: "f", Content: "r\n"})
		now, err := encodeChat(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(now, bytes.TrimSuffix(before, []byte("]}"))) {
			t.Fatalf("round %d does not extend the request before", i)
		}
		before = now
	}
}

func BenchmarkEncode(b *testing.B) {
	r := chat.Request{Model: "m", NumCtx: 8192}
	line := strings.Repeat("func main() {\n\tfmt.Println(\"x\")\n}\n", 30)
	for range 1000 {
		r.Messages = append(r.Messages, chat.Message{Role: chat.ToolRole, ToolName: "read_file", Content: line})
	}
	body, _ := encodeChat(r)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeChat(r); err != nil {
			b.Fatal(err)
		}
	}
}
