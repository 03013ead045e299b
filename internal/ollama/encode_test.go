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

// Field cases O16 and O17: whatever a model sent as arguments goes back as an object.
func TestO17ArgumentsGoBackAsAnObject(t *testing.T) {
	tests := []struct{ name, args, want string }{
		{"object", `{"a":1}`, `{"a":1}`},
		{"object over lines", "{\n \"a\" : 1\n}", `{"a":1}`},
		{"no HTML escapes", `{"a":"<&>"}`, `{"a":"<&>"}`},
		{"both cases of a key", `{"command":"ls","Command":"rm"}`, `{"command":"ls","Command":"rm"}`},
		{"nothing", ``, `{}`},
		{"null", `null`, `{}`},
		{"empty text", `""`, `{}`},
		{"text with an object", `"{\"path\":\"a\"}"`, `{"path":"a"}`},
		{"text in a text", `"\"{\\\"path\\\":1}\""`, `{"path":1}`},
		{"cut text", `"{\"path\": \"a"`, `{"unparsed_arguments":"{\"path\": \"a"}`},
		{"list", `[1,2]`, `{"unparsed_arguments":"[1,2]"}`},
		{"number", `7`, `{"unparsed_arguments":"7"}`},
		{"broken", `{"path":`, `{"unparsed_arguments":"{\"path\":"}`},
		{"prose", `the file a.txt`, `{"unparsed_arguments":"the file a.txt"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(appendObject(nil, json.RawMessage(tt.args))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestAppendString(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "abc", `"abc"`},
		{"quotes", `a"b\c`, `"a\"b\\c"`},
		{"controls", "\n\r\t\x00\x1b", `"\n\r\t\u0000\u001b"`},
		{"HTML stays", "<a&b>", `"<a&b>"`},
		{"other scripts stay", "né 世界 🙂\u2028", "\"né 世界 🙂\u2028\""},
		{"no UTF-8", "a\xffb\xc3", "\"a\uFFFDb\uFFFD\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := appendString(nil, tt.in)
			if string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			var back string
			if err := json.Unmarshal(got, &back); err != nil || back != strings.ToValidUTF8(tt.in, "\uFFFD") {
				t.Errorf("reads back as %q, %v", back, err)
			}
		})
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

func FuzzAppendObject(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `"{}"`, `null`, "\xff", `[`, `"\"{}\""`} {
		f.Add([]byte(s))
	}
	// The result is always one valid object.
	f.Fuzz(func(t *testing.T, args []byte) {
		out := appendObject(nil, args)
		var o map[string]any
		if err := json.Unmarshal(out, &o); err != nil || o == nil {
			t.Fatalf("%q became %q: %v", args, out, err)
		}
	})
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
