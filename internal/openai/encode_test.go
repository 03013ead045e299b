package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

func TestEncodeChat(t *testing.T) {
	half := 0.5
	const head = `{"model":"m","stream":true,"stream_options":{"include_usage":true}`
	for _, tt := range []struct {
		name string
		r    chat.Request
		want string
	}{
		{"least", chat.Request{Model: "m"}, head + `,"messages":[]}`},
		{"settings; the window and keep-alive are the server's", chat.Request{Model: "m", NumCtx: 8192, KeepAlive: "10m", NumPredict: 100, Temperature: &half, Format: json.RawMessage(`{"type":"object"}`)},
			head + `,"max_tokens":100,"temperature":0.5,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object"}}},"messages":[]}`},
		{"tools", chat.Request{Model: "m", Tools: []chat.Tool{{Name: "a", Description: "A <b>.", Schema: json.RawMessage(`{"type":"object"}`)}}},
			head + `,"tools":[{"type":"function","function":{"name":"a","description":"A <b>.","parameters":{"type":"object"}}}],"messages":[]}`},
		{"a call and its result", chat.Request{Model: "m", Messages: []chat.Message{
			{Role: chat.System, Content: "s"}, {Role: chat.User, Content: "u", Note: true, Pinned: []string{"x"}},
			{Role: chat.Assistant, Thinking: "t", Calls: []chat.ToolCall{{ID: "c1", Name: "f", Args: json.RawMessage(`{"path": "a<b>", "n": 3}`)}, {ID: "c2", Name: "g"}}},
			{Role: chat.ToolRole, ToolName: "f", CallID: "c1", Content: "r\n"}}},
			head + `,"messages":[{"role":"system","content":"s"},{"role":"user","content":"u"},` +
				`{"role":"assistant","content":"","reasoning_content":"t","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"path\":\"a<b>\",\"n\":3}"}},{"id":"c2","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"r\n"}]}`},
		{"broken arguments", chat.Request{Model: "m", Messages: []chat.Message{{Role: chat.Assistant, Calls: []chat.ToolCall{{ID: "c", Name: "f", Args: json.RawMessage(`"{\"path\": \"a"`)}}}}},
			head + `,"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"unparsed_arguments\":\"{\\\"path\\\": \\\"a\"}"}}]}]}`},
		{"images", chat.Request{Model: "m", Messages: []chat.Message{{Role: chat.User, Content: "look", Images: [][]byte{[]byte("\x89PNG\x0D\x0A\x1A\x0A"), []byte("\xFF\xD8\xFF")}}}},
			head + `,"messages":[{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,/9j/"}}]}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := encodeChat(tt.r, false)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want || !json.Valid(got) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if _, err := encodeChat(chat.Request{Format: json.RawMessage(`{`)}, false); err == nil {
		t.Error("a broken format was sent")
	}
	if _, err := encodeChat(chat.Request{Tools: []chat.Tool{{Schema: json.RawMessage(`{`)}}}, false); err == nil {
		t.Error("a broken schema was sent")
	}
}

// A request that only appends extends the bytes of the one before.
func TestPrefixStays(t *testing.T) {
	r := chat.Request{Model: "m", NumPredict: 9, Tools: []chat.Tool{{Name: "f"}}, Messages: []chat.Message{{Role: chat.System, Content: "s"}, {Role: chat.User, Content: "<u>"}}}
	before, err := encodeChat(r, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		r.Messages = append(r.Messages,
			chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{ID: "c", Name: "f", Args: json.RawMessage(`{"b":1,"a":"` + strings.Repeat("x", i) + `"}`)}}},
			chat.Message{Role: chat.ToolRole, CallID: "c", Content: "r\n"})
		now, err := encodeChat(r, true)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(now, bytes.TrimSuffix(before, []byte("]}"))) {
			t.Fatalf("round %d does not extend the request before", i)
		}
		before = now
	}
}

// pieces reads text in pieces of a size.
type pieces struct {
	text string
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(p.size, len(b))], p.text)
	p.text = p.text[n:]
	return n, nil
}

func decode(text string, size int) (chat.Reply, error) {
	n := 0
	d := newDecoder(nil, modeltext.NewIDs(nil, func() string { n++; return fmt.Sprint("id", n) }))
	err := d.run(&pieces{text, size}, func([]byte) {}, func() {})
	return d.result(), err
}

func TestEndlessReplyIsAnError(t *testing.T) {
	for name, part := range map[string]string{
		"text":      `"content":"` + strings.Repeat("x", 1<<10) + `"`,
		"arguments": `"tool_calls":[{"index":0,"function":{"arguments":"` + strings.Repeat("x", 1<<10) + `"}}]`,
	} {
		d := newDecoder(nil, modeltext.IDs{})
		if d.limit != 64<<20 {
			t.Errorf("limit %d", d.limit)
		}
		d.limit = 10 << 10
		line := `data: {"choices":[{"delta":{` + part + `}}]}` + "\n\n"
		err := d.run(strings.NewReader(strings.Repeat(line, 11)), func([]byte) {}, func() {})
		if bad, ok := err.(*modelserver.StreamError); !ok || bad.Cause != modeltext.ErrTooLong {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{
		`data: {"choices":[{"delta":{"content":"a"}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
		`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\""}},{"index":1,"id":"c"}]}}]}` + "\n" + `data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"length"}]}`,
		`data:{"choices":[{"message":{"content":"<think>a","reasoning":"x"}}]}` + "\r\n\r\n" + `error: {"message":"x"}`,
		": ping\nevent: x\ndata:\ndata: null\n", `{"error":{"message":"m"}}`, `data: {"usage":{"prompt_tokens":1}}`, "<html>\n", "\xff\n", `data: {"choi`,
	} {
		f.Add(s, 7)
	}
	// No panic; the pieces in which the bytes come do not matter; done only if
	// something said so; calls only when done, each with its own id, and their
	// arguments are JSON; the history that holds them can be sent.
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(1, min(size, 1<<16))
		whole, err1 := decode(text, 1<<16)
		parts, err2 := decode(text, size)
		if !reflect.DeepEqual(whole, parts) || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatalf("whole %+v, %v\npieces of %d: %+v, %v", whole, err1, size, parts, err2)
		}
		low := strings.ToLower(text)
		if whole.Done && !strings.Contains(low, "[done]") && !strings.Contains(low, "reason") && !strings.Contains(text, `\u`) {
			t.Fatalf("done, but nothing said so: %q", text)
		}
		if !whole.Done && len(whole.Message.Calls) > 0 {
			t.Fatalf("calls of a reply that is not done: %q", text)
		}
		ids := map[string]bool{}
		for _, c := range whole.Message.Calls {
			if ids[c.ID] || !modeltext.UsableID(c.ID) {
				t.Fatalf("id %q of %q", c.ID, text)
			}
			ids[c.ID] = true
			if len(c.Args) > 0 && !json.Valid(c.Args) {
				t.Fatalf("arguments %q", c.Args)
			}
		}
		if b, err := encodeChat(chat.Request{Messages: []chat.Message{whole.Message}}, false); err != nil || !json.Valid(b) {
			t.Fatalf("%q, %v", b, err)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	stream := strings.Repeat(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767323045,"model":"qwen3-coder:30b","choices":[{"index":0,"delta":{"role":"assistant","content":"wor "},"finish_reason":null}]}`+"\n\n", 4000) + "data: [DONE]\n\n"
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		d := newDecoder(nil, modeltext.IDs{})
		if err := d.run(strings.NewReader(stream), func([]byte) {}, func() {}); err != nil || !d.result().Done {
			b.Fatal(err)
		}
	}
}
