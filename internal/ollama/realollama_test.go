package ollama

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"zcoder/internal/chat"
)

// real returns a client of a real server, or skips. The server must have the models
// micro-tools, micro-think, micro-plain and micro-notools.
func real(t *testing.T) *Client {
	t.Helper()
	host := os.Getenv("ZCODER_TEST_OLLAMA")
	if host == "" {
		t.Skip("ZCODER_TEST_OLLAMA is not set: no real Ollama server to test against")
	}
	return client(t, host, Options{IdleTimeout: time.Minute, Retries: 1})
}

func say(model, text string) chat.Request {
	return chat.Request{Model: model, NumCtx: 4096, KeepAlive: "2m", Messages: []chat.Message{{Role: chat.User, Content: text}},
		Tools: []chat.Tool{
			{Name: "read_file", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
			{Name: "run_command", Description: "Run a command.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
		}}
}

func TestRealFacts(t *testing.T) {
	c := real(t)
	if v, err := c.Version(t.Context()); err != nil || v == "" {
		t.Errorf("version %q, %v", v, err)
	}
	models, err := c.Models(t.Context())
	names := ""
	for _, m := range models {
		names += m.Name + " "
		if m.Size == 0 || m.Family == "" || m.Modified.IsZero() {
			t.Errorf("%+v", m)
		}
	}
	if err != nil || !strings.Contains(names, "micro-tools:latest") {
		t.Errorf("models %s, %v", names, err)
	}
	for name, want := range map[string]chat.ModelFacts{
		"micro-tools":   {Tools: true, TrainedContext: 32768},
		"micro-think":   {Tools: true, Thinking: true, ShowsThinking: true, TrainedContext: 32768},
		"micro-plain":   {Tools: true, TrainedContext: 65536},
		"micro-notools": {TrainedContext: 65536},
	} {
		f, err := c.Show(t.Context(), name)
		got := chat.ModelFacts{Tools: f.Tools, Thinking: f.Thinking, ShowsThinking: f.ShowsThinking, TrainedContext: f.TrainedContext}
		if err != nil || !f.Known || got != want || f.CacheBytesPerToken == 0 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	_, err = c.Show(t.Context(), "nope:7b")
	failure(t, err, chat.MissingModel, "not found")
}

// A turn of two rounds: a call, its result, an answer.
func TestRealTurnWithATool(t *testing.T) {
	c := real(t)
	r := say("micro-tools", "read docs/guide.md")
	reply, err := c.Chat(t.Context(), r, nil)
	if err != nil || !reply.Done || len(reply.Message.Calls) != 1 {
		t.Fatalf("%+v, %v", reply, err)
	}
	call := reply.Message.Calls[0]
	if call.Name != "read_file" || string(call.Args) != `{"path":"docs/guide.md"}` || !strings.HasPrefix(call.ID, "call_") {
		t.Errorf("call %+v %s", call, call.Args)
	}
	r.Messages = append(r.Messages, reply.Message, chat.Message{Role: chat.ToolRole, ToolName: call.Name, CallID: call.ID, Content: "Welcome to the guide\nsecond"})
	var streamed string
	reply, err = c.Chat(t.Context(), r, func(d chat.Delta) { streamed += d.Content })
	if err != nil || reply.Message.Content != "First line: Welcome to the guide" || streamed != reply.Message.Content {
		t.Errorf("%+v, %v, streamed %q", reply, err, streamed)
	}
	if u := reply.Usage; u.PromptTokens == 0 || u.OutputTokens == 0 || u.Total == 0 {
		t.Errorf("usage %+v", u)
	}
	// Broken arguments in the history do not poison it.
	r.Messages[1].Calls[0].Args = json.RawMessage(`"{\"path\": \"a"`)
	if _, err := c.Chat(t.Context(), r, nil); err != nil {
		t.Errorf("history with broken arguments: %v", err)
	}
}

func TestRealSwallowedCalls(t *testing.T) {
	c := real(t)
	r := say("micro-tools", "read docs/guide.md")
	r.Tools = r.Tools[1:]
	reply, err := c.Chat(t.Context(), r, nil)
	if err != nil || !reply.Done || reply.Message.Content != "" || len(reply.Message.Calls) != 0 || reply.Usage.OutputTokens < 2 {
		t.Errorf("unknown tool: %+v, %v", reply, err)
	}
	r = say("micro-tools", "run: go test ./...")
	r.NumPredict = 4
	reply, err = c.Chat(t.Context(), r, nil)
	if err != nil || reply.DoneReason != "length" || len(reply.Message.Calls) != 0 {
		t.Errorf("cut call: %+v, %v", reply, err)
	}
}

func TestRealThinking(t *testing.T) {
	c := real(t)
	r := say("micro-think", "read docs/guide.md")
	r.Think = "on"
	reply, err := c.Chat(t.Context(), r, nil)
	if err != nil || reply.Message.Thinking == "" || len(reply.Message.Calls) != 1 {
		t.Errorf("on: %+v, %v", reply, err)
	}
	r.Think = "off"
	if reply, err = c.Chat(t.Context(), r, nil); err != nil || reply.Message.Thinking != "" {
		t.Errorf("off: %+v, %v", reply, err)
	}
	r.Think = "high"
	_, err = c.Chat(t.Context(), r, nil)
	failure(t, err, chat.NoThinking, "high")
	r = say("micro-tools", "hello")
	r.Think = "on"
	_, err = c.Chat(t.Context(), r, nil)
	failure(t, err, chat.NoThinking, "does not support thinking")
}

func TestRealErrors(t *testing.T) {
	c := real(t)
	_, err := c.Chat(t.Context(), say("nope:7b", "x"), nil)
	failure(t, err, chat.MissingModel, "not found")
	_, err = c.Chat(t.Context(), say("micro-notools", "x"), nil)
	failure(t, err, chat.NoTools, `model "micro-notools" does not support tools`)
	r := say("micro-plain", strings.Repeat("The quick brown fox jumps. ", 400))
	r.NumCtx = 512
	_, err = c.Chat(t.Context(), r, nil)
	failure(t, err, chat.Overflow, "exceeds the context length")
}

// The server stops a model that repeats itself: no done, no error.
func TestRealRepeatAbort(t *testing.T) {
	c := real(t)
	r := say("micro-tools", "hello")
	r.Tools, r.Format = nil, json.RawMessage(`{"type":"string","pattern":"^a{80}$"}`)
	reply, err := c.Chat(t.Context(), r, nil)
	if err != nil || reply.Done || !strings.Contains(reply.Message.Content, "aaaa") {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestRealCancel(t *testing.T) {
	c := real(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var cancelled time.Time
	reply, err := c.Chat(ctx, say("micro-tools", "tell me a story"), func(d chat.Delta) {
		if cancelled.IsZero() {
			cancelled = time.Now()
			cancel()
		}
	})
	if err != context.Canceled || reply.Done || time.Since(cancelled) > time.Second {
		t.Errorf("%+v, %v after %s", reply, err, time.Since(cancelled))
	}
	// The server is free again.
	if reply, err := c.Chat(t.Context(), say("micro-tools", "hello"), nil); err != nil || !reply.Done {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestRealLoadAndCache(t *testing.T) {
	c := real(t)
	if err := c.Load(t.Context(), "micro-plain", "2m", 8192); err != nil {
		t.Fatal(err)
	}
	window := 0
	list, err := c.Loaded(t.Context())
	for _, m := range list {
		if m.Name == "micro-plain:latest" || m.Name == "micro-notools:latest" { // they share a blob
			window = m.Context
		}
	}
	if err != nil || window != 8192 {
		t.Errorf("%+v, %v", list, err)
	}
	r := say("micro-plain", strings.Repeat("The quick brown fox jumps. ", 60))
	r.NumCtx, r.NumPredict = 8192, 4
	first, err := c.Chat(t.Context(), r, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant, Content: first.Message.Content}, chat.Message{Role: chat.User, Content: "go on"})
	second, err := c.Chat(t.Context(), r, nil)
	if err != nil || second.Usage.PromptEval > first.Usage.PromptEval/2 || second.Usage.PromptTokens <= first.Usage.PromptTokens {
		t.Errorf("appended prompt: read %d tokens in %s, then %d in %s: the cache was not used; %v", first.Usage.PromptTokens, first.Usage.PromptEval,
			second.Usage.PromptTokens, second.Usage.PromptEval, err)
	}
	if err := c.Unload(t.Context(), "micro-plain"); err != nil {
		t.Fatal(err)
	}
}

func TestRealPullOfAMissingModel(t *testing.T) {
	c := real(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Whatever the network is like, a name that cannot be is refused.
	err := c.Pull(ctx, "not a name", nil)
	failure(t, err, chat.MissingModel, "invalid model name")
}
