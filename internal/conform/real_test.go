package conform

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
)

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// eachReal runs a test for every client over a real Ollama, /api and /v1, or skips. It
// must have the models micro-tools, micro-think, micro-plain and micro-notools.
func eachReal(t *testing.T, f func(t *testing.T, a api, c client)) {
	t.Helper()
	host := os.Getenv("ZCODER_TEST_OLLAMA")
	if host == "" {
		t.Skip("ZCODER_TEST_OLLAMA is not set: no real Ollama server to test against")
	}
	each(t, func(t *testing.T, a api) {
		f(t, a, a.client(t, host, modelserver.Options{IdleTimeout: time.Minute, Retries: 1}))
	})
}

func askReal(model, text string) chat.Request {
	r := ask(text)
	r.Model, r.NumCtx, r.KeepAlive, r.Messages = model, 4096, "2m", r.Messages[1:]
	return r
}

func TestRealModels(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		models, err := c.Models(t.Context())
		names := ""
		for _, m := range models {
			names += m.Name + " "
		}
		if err != nil || !strings.Contains(names, "micro-tools:latest") {
			t.Errorf("%s, %v", names, err)
		}
		if f, err := c.Show(t.Context(), "micro-tools"); err != nil || !f.Tools {
			t.Errorf("%+v, %v", f, err)
		}
		_, err = c.Show(t.Context(), "nope:7b")
		failure(t, err, chat.MissingModel, "not found")
	})
}

// A turn of two rounds: a call, its result, an answer.
func TestRealTurnWithATool(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		r := askReal("micro-tools", "read docs/guide.md")
		reply, err := c.Chat(t.Context(), r, nil)
		if err != nil || !reply.Done || reply.DoneReason != "stop" || len(reply.Message.Calls) != 1 {
			t.Fatalf("%+v, %v", reply, err)
		}
		call := reply.Message.Calls[0]
		if call.Name != "read_file" || string(call.Args) != `{"path":"docs/guide.md"}` || call.ID == "" {
			t.Errorf("call %+v %s", call, call.Args)
		}
		r.Messages = append(r.Messages, reply.Message, chat.Message{Role: chat.ToolRole, ToolName: call.Name, CallID: call.ID, Content: "Welcome to the guide\nsecond"})
		var streamed string
		reply, err = c.Chat(t.Context(), r, func(d chat.Delta) { streamed += d.Content })
		if err != nil || reply.Message.Content != "First line: Welcome to the guide" || streamed != reply.Message.Content {
			t.Errorf("%+v, %v, streamed %q", reply, err, streamed)
		}
		if u := reply.Usage; u.PromptTokens == 0 || u.OutputTokens == 0 {
			t.Errorf("usage %+v", u)
		}
		r.Messages[1].Calls[0].Args = json.RawMessage(`"{\"path\": \"a"`)
		if _, err := c.Chat(t.Context(), r, nil); err != nil {
			t.Errorf("history with broken arguments: %v", err)
		}
	})
}

func TestRealTwoCalls(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		reply, err := c.Chat(t.Context(), askReal("micro-tools", "read both a.txt and b.txt"), nil)
		if err != nil || len(reply.Message.Calls) != 2 || reply.Message.Calls[0].ID == reply.Message.Calls[1].ID ||
			string(reply.Message.Calls[0].Args) != `{"path":"a.txt"}` || string(reply.Message.Calls[1].Args) != `{"path":"b.txt"}` {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

func TestRealCutCall(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		r := askReal("micro-tools", "run: go test ./...")
		r.NumPredict = 4
		reply, err := c.Chat(t.Context(), r, nil)
		if err != nil || reply.DoneReason != "length" || len(reply.Message.Calls) != 0 {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

func TestRealThinking(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		r := askReal("micro-think", "read docs/guide.md")
		r.Think = "on"
		reply, err := c.Chat(t.Context(), r, nil)
		if err != nil || reply.Message.Thinking == "" || len(reply.Message.Calls) != 1 {
			t.Errorf("on: %+v, %v", reply, err)
		}
		r.Think = "off"
		if reply, err = c.Chat(t.Context(), r, nil); err != nil || reply.Message.Thinking != "" || len(reply.Message.Calls) != 1 {
			t.Errorf("off: %+v, %v", reply, err)
		}
		r = askReal("micro-tools", "hello")
		r.Think = "high"
		_, err = c.Chat(t.Context(), r, nil)
		failure(t, err, chat.NoThinking, "think")
	})
}

func TestRealErrors(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		_, err := c.Chat(t.Context(), askReal("nope:7b", "x"), nil)
		failure(t, err, chat.MissingModel, "not found")
		_, err = c.Chat(t.Context(), askReal("micro-notools", "x"), nil)
		failure(t, err, chat.NoTools, `model "micro-notools" does not support tools`)
	})
}

// The server stops a model that repeats itself: no last record, no error.
func TestRealRepeatAbort(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		r := askReal("micro-tools", "hello")
		r.Tools, r.Format = nil, json.RawMessage(`{"type":"string","pattern":"^a{80}$"}`)
		reply, err := c.Chat(t.Context(), r, nil)
		if err != nil || reply.Done || !strings.Contains(reply.Message.Content, "aaaa") {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

func TestRealCancel(t *testing.T) {
	eachReal(t, func(t *testing.T, a api, c client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var cancelled time.Time
		reply, err := c.Chat(ctx, askReal("micro-tools", "tell me a story"), func(d chat.Delta) {
			if cancelled.IsZero() && d.Content != "" {
				cancelled = time.Now()
				cancel()
			}
		})
		if err != context.Canceled || reply.Done || time.Since(cancelled) > time.Second {
			t.Errorf("%+v, %v after %s", reply, err, time.Since(cancelled))
		}
		if reply, err := c.Chat(t.Context(), askReal("micro-tools", "hello"), nil); err != nil || !reply.Done {
			t.Errorf("the server is not free again: %+v, %v", reply, err)
		}
	})
}
