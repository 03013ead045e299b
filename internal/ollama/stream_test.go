package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

type httpURL = url.URL

func parseURL(s string) (*url.URL, error) { return url.Parse(s) }

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
	err := d.run(&pieces{text, size}, func([]byte) {})
	return d.result(), err
}

func TestEndlessReplyIsAnError(t *testing.T) {
	for name, line := range map[string]string{
		"text":      `{"message":{"role":"assistant","content":"` + strings.Repeat("x", 1<<10) + `"}}`,
		"arguments": `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"a":"` + strings.Repeat("x", 1<<10) + `"}}}]}}`,
	} {
		d := newDecoder(nil, modeltext.IDs{})
		if d.limit != 64<<20 {
			t.Errorf("limit %d", d.limit)
		}
		d.limit = 10 << 10
		var bad *modelserver.StreamError
		if err := d.run(strings.NewReader(strings.Repeat(line+"\n", 11)), func([]byte) {}); !errors.As(err, &bad) || bad.Cause != modeltext.ErrTooLong {
			t.Errorf("%s: got %v", name, err)
		}
		if d.records != 10 && d.records != 11 {
			t.Errorf("%s: stopped after %d records", name, d.records)
		}
	}
}

func TestReadErrorIsKept(t *testing.T) {
	broken := errors.New("broken")
	d := newDecoder(nil, modeltext.IDs{})
	r := io.MultiReader(strings.NewReader(`{"message":{"role":"assistant","content":"a"}}`+"\n"+`{"done":tr`), iotest.ErrReader(broken))
	if err := d.run(r, func([]byte) {}); err != broken {
		t.Errorf("got %v", err)
	}
	if reply := d.result(); reply.Done || reply.Message.Content != "a" {
		t.Errorf("%+v", reply)
	}
}

// saysDone reports whether a line says done, however the key is written.
func saysDone(line string) bool {
	var o map[string]any
	if json.Unmarshal([]byte(line), &o) != nil {
		return false
	}
	for k, v := range o {
		if strings.EqualFold(k, "done") && v == true {
			return true
		}
	}
	return strings.Count(strings.ToLower(line), "done") > 1 // a key that stands twice
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{
		`{"message":{"role":"assistant","content":"a"},"done":false}` + "\n" + `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":2}` + "\n",
		`{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]}}` + "\n" + `{"message":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]},"done":true}`,
		`{"message":{"role":"assistant","content":"<think>a"}}` + "\r\n\r\n" + `{"error":"x"}`,
		`{"message":{"role":"assistant","content":"<thi"}}` + "\n" + `{"message":{"role":"assistant","thinking":"x"}}`,
		"<html>\n", "null\n[]\n\"x\"\n", `{"done":true`, `{"DONE":true}`, "\xff\n", `{"error":{"message":"m"}}`,
	} {
		f.Add(s, 7)
	}
	// No panic; the pieces in which the bytes come do not matter; done only if a
	// line said so; calls only when done, each with its own id; arguments are the
	// bytes that were sent.
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(1, min(size, 1<<16))
		whole, err1 := decode(text, 1<<16)
		parts, err2 := decode(text, size)
		if !reflect.DeepEqual(whole, parts) || fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Fatalf("whole %+v, %v\npieces of %d: %+v, %v", whole, err1, size, parts, err2)
		}
		said := false
		for line := range strings.Lines(text) {
			said = said || saysDone(line)
		}
		if whole.Done && !said {
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
			if !strings.Contains(text, string(c.Args)) {
				t.Fatalf("arguments %q are not in %q", c.Args, text)
			}
			if b := modeltext.AppendObject(nil, c.Args); !json.Valid(b) {
				t.Fatalf("%q is not valid", b)
			}
		}
	})
}

// The quick reader and encoding/json agree on every line that the quick one takes.
func FuzzQuickText(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","created_at":"x","message":{"role":"assistant","content":"a"},"done":false}`,
		`{"model":"m","message":{"role":"assistant","content":"\u003c\n\ud83d\ude00","thinking":"t"}}`,
		`{"message":{"role":"a","content":"b"},"done":true}`, `{"message":{"role":"a","Content":"b"}}`,
		`{"message":{"role":"a","content":"b","content":"c"}}`, `{}`, `{"message":{}}`, "{\"message\":{\"role\":\"a\",\"content\":\"\xff\"}}",
		`{"message":{"role":"a","content":"b"},"error":"x"}`, `{"mode\u006c":"m","message":{"role":"a"}}`, `{"message":{"role":"a","content":"\x"}}`, `{"message":{"role":"\0"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		content, thinking, ok := quickText(line)
		if !ok {
			return
		}
		var r record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if r.Message.Content != content || r.Message.Thinking != thinking || r.Done || r.Error != nil || r.Message.ToolCalls != nil || r.Message.Role == "" {
			t.Fatalf("%q: got %q and %q, want %+v", line, content, thinking, r)
		}
	})
}

func TestQuickTextTakesWhatOllamaWrites(t *testing.T) {
	for line, want := range map[string]string{
		`{"model":"m","created_at":"2026-11-30T12:30:34.95Z","message":{"role":"assistant","content":"a \u003c"},"done":false}`:        "a <|",
		`{"model":"m","created_at":"2026-11-30T12:30:34.95Z","message":{"role":"assistant","content":"","thinking":"I"},"done":false}`: "|I",
	} {
		content, thinking, ok := quickText([]byte(line))
		if !ok || content+"|"+thinking != want {
			t.Errorf("%s: %q, %q, %t", line, content, thinking, ok)
		}
	}
	for _, line := range []string{
		`{"message":{"role":"a","content":"b"},"done":true}`, `{"error":"x"}`, `{"message":{"role":"a","tool_calls":[]}}`,
		`{"message":{"role":"a","content":"b"},"done":false} `, `{"message":{"role":"a","content":"b"}}{}`, ``,
	} {
		if _, _, ok := quickText([]byte(line)); ok {
			t.Errorf("%s was taken", line)
		}
	}
}

// streamOf makes a stream whose records carry n bytes of text each.
func streamOf(n, records int) []byte {
	var b bytes.Buffer
	word := strings.Repeat("wor ", n/4)
	for range records {
		fmt.Fprintf(&b, `{"model":"qwen3-coder:30b","created_at":"2026-11-30T12:30:34.956799253Z","message":{"role":"assistant","content":"%s"},"done":false}`+"\n", word)
	}
	b.WriteString(`{"model":"qwen3-coder:30b","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n")
	return b.Bytes()
}

func BenchmarkStream(b *testing.B) {
	for _, n := range []int{4, 32, 512} {
		stream := streamOf(n, 4000)
		b.Run(fmt.Sprintf("%d bytes a record", n), func(b *testing.B) {
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				d := newDecoder(nil, modeltext.IDs{})
				if err := d.run(bytes.NewReader(stream), func([]byte) {}); err != nil || !d.result().Done {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*4000)*float64(b.N)/b.Elapsed().Seconds()/1e6, "textMB/s")
		})
	}
}
