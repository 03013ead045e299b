// Package conform holds the promises that every model client keeps, as one table of
// cases that runs against each of them: over the scripted server, and over a real
// Ollama when ZCODER_TEST_OLLAMA names one.
package conform

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/ollama"
	"zcoder/internal/openai"
	"zcoder/internal/scripted"
)

// client is what the program needs of every model client.
type client interface {
	Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)
	Models(ctx context.Context) ([]chat.ModelInfo, error)
	Show(ctx context.Context, name string) (chat.ModelFacts, error)
	BaseURL() string
	Close()
}

// api is one of the clients with the notation of its server.
type api struct {
	name string
	make func(modelserver.Options) (client, error)
	// records writes the beginning of a stream with one piece of text, and the end of
	// a whole one.
	kind, piece, last string
}

var apis = []api{
	{"ollama", func(o modelserver.Options) (client, error) { return ollama.New(o) }, "application/x-ndjson",
		`{"message":{"role":"assistant","content":"a"},"done":false}` + "\n", `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"},
	{"openai", func(o modelserver.Options) (client, error) { return openai.New(o) }, "text/event-stream",
		`data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n", `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"},
}

// each runs a test for every client.
func each(t *testing.T, f func(t *testing.T, a api)) {
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) { f(t, a) })
	}
}

func (a api) client(t *testing.T, host string, o modelserver.Options) client {
	t.Helper()
	o.Host = host
	c, err := a.make(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// play starts a scripted server and a client of it.
func (a api) play(t *testing.T, script string, o modelserver.Options) (client, *scripted.Server) {
	t.Helper()
	s, err := scripted.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	server := scripted.New(s, scripted.Options{})
	url, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return a.client(t, url, o), server
}

// serve starts a handler and a client of it.
func (a api) serve(t *testing.T, h http.HandlerFunc, o modelserver.Options) client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return a.client(t, s.URL, o)
}

// answer is a handler that streams a text.
func (a api) answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", a.kind)
		io.WriteString(w, text)
	}
}

var tools = []chat.Tool{
	{Name: "read_file", Description: "Read a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{Name: "run_command", Description: "Run a command.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
}

func ask(text string) chat.Request {
	return chat.Request{Model: "test-model", Tools: tools, Messages: []chat.Message{{Role: chat.System, Content: "You help."}, {Role: chat.User, Content: text}}}
}

// failure asserts that err is a model error of a kind, with one line and a hint.
func failure(t *testing.T, err error, kind chat.Failure, text string) *chat.Error {
	t.Helper()
	var e *chat.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Text, text) {
		t.Fatalf("got %#v, want %s with %q", err, kind, text)
	}
	if strings.ContainsAny(e.Text, "\n\r") || e.Hint == "" && kind != chat.ServerFailure {
		t.Errorf("text %q, hint %q", e.Text, e.Hint)
	}
	return e
}

func TestReplies(t *testing.T) {
	callOf := func(name, args string) chat.ToolCall { return chat.ToolCall{Name: name, Args: json.RawMessage(args)} }
	for _, tt := range []struct {
		name, script string
		message      chat.Message
		reason       string
		done         bool
	}{
		{"text", "> say First line\n", chat.Message{Content: "First line"}, "stop", true},
		{"text of several lines", "> say a\n|\n| b < c & \"d\"\n", chat.Message{Content: "a\n\nb < c & \"d\""}, "stop", true},
		{"thinking", "> think I look.\n> say Yes\n", chat.Message{Content: "Yes", Thinking: "I look."}, "stop", true},
		{"thinking as text", "> say <think>I look.</think>\n|\n| Yes\n", chat.Message{Content: "Yes", Thinking: "I look."}, "stop", true},
		{"a call", "> call read_file {\"path\":\"a b\"}\n", chat.Message{Calls: []chat.ToolCall{callOf("read_file", `{"path":"a b"}`)}}, "stop", true},
		{"text and two calls", "> say I read both.\n> call read_file {\"path\":\"a\"}\n> call read_file {\"path\":\"b\"}\n",
			chat.Message{Content: "I read both.", Calls: []chat.ToolCall{callOf("read_file", `{"path":"a"}`), callOf("read_file", `{"path":"b"}`)}}, "stop", true},
		{"the same call twice", "> call read_file {\"path\":\"a\"}\n> call read_file {\"path\":\"a\"}\n",
			chat.Message{Calls: []chat.ToolCall{callOf("read_file", `{"path":"a"}`), callOf("read_file", `{"path":"a"}`)}}, "stop", true},
		{"a call of a tool that is not there", "> call rm {\"Path\":\"a\",\"path\":\"b\"}\n", chat.Message{Calls: []chat.ToolCall{callOf("rm", `{"Path":"a","path":"b"}`)}}, "stop", true},
		{"cut at the limit", "> say half a\n> done length\n", chat.Message{Content: "half a"}, "length", true},
		{"thinking alone, cut", "> think long\n> done length\n", chat.Message{Thinking: "long"}, "length", true},
		{"nothing", "> usage 5 9\n", chat.Message{}, "stop", true},
		{"stopped because it repeats itself", "> say aaa aaa\n> eof\n", chat.Message{Content: "aaa aaa"}, "", false},
		{"stopped within a call", "> call read_file {}\n> eof\n", chat.Message{}, "", false},
		{"stopped before anything", "> eof\n", chat.Message{}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, a api) {
				c, _ := a.play(t, tt.script, modelserver.Options{})
				var shown chat.Message
				reply, err := c.Chat(t.Context(), ask("go"), func(d chat.Delta) {
					shown.Content += d.Content
					shown.Thinking += d.Thinking
				})
				if err != nil {
					t.Fatal(err)
				}
				ids := map[string]bool{}
				for i, call := range reply.Message.Calls {
					if call.ID == "" || ids[call.ID] {
						t.Errorf("call %d has the id %q", i, call.ID)
					}
					ids[call.ID] = true
					reply.Message.Calls[i].ID = ""
				}
				tt.message.Role = chat.Assistant
				if !reflect.DeepEqual(reply.Message, tt.message) || reply.Done != tt.done || reply.DoneReason != tt.reason {
					t.Errorf("got %+v\nwant %+v", reply, tt.message)
				}
				if shown.Content != tt.message.Content || shown.Thinking != tt.message.Thinking {
					t.Errorf("shown %+v", shown)
				}
			})
		})
	}
}

func TestProgressAndUsage(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, _ := a.play(t, "> think a b\n> call f\n> call g\n> usage 1200 34\n", modelserver.Options{})
		calls, order := 0, true
		reply, err := c.Chat(t.Context(), ask("go"), func(d chat.Delta) {
			order = order && d.Calls >= calls
			calls = d.Calls
		})
		if err != nil || reply.Usage.PromptTokens != 1200 || reply.Usage.OutputTokens != 34 || calls != 2 || !order {
			t.Errorf("%+v, %v, %d calls told of", reply.Usage, err, calls)
		}
	})
}

func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		kind         chat.Failure
		text         string
		partial      string
	}{
		{"missing model", "> model other\n", chat.MissingModel, "not found", ""},
		{"no tools", "> model test-model notools\n", chat.NoTools, `model "test-model" does not support tools`, ""},
		{"does not fit", "> status 400 {\"error\":\"the input length exceeds the context length\"}\n", chat.Overflow, "exceeds the context", ""},
		{"busy", "> status 503 {\"error\":\"server busy, please try again\"}\n", chat.Busy, "server busy", ""},
		{"memory", "> status 500 {\"error\":\"model requires more system memory (9 GiB) than is available\"}\n", chat.OutOfMemory, "more system memory", ""},
		{"key", "> status 401 {\"error\":\"unauthorized\"}\n", chat.Unauthorised, "unauthorized", ""},
		{"key, no text", "> status 401\n", chat.Unauthorised, "wants a key", ""},
		{"client's mistake", "> status 400 {\"error\":\"something\\nodd\"}\n", chat.ServerFailure, "something odd", ""},
		{"proxy's page", "> status 502 <html>bad gateway</html>\n", chat.BadResponse, "answered 502 with a web page", ""},
		{"other server", "> status 404 404 page not found\n", chat.BadResponse, "404", ""},
		{"error in mid-stream", "> say one two\n> call run_command {\"command\":\"id\"}\n> error an error was encountered while running the model\n", chat.OutOfMemory, "running the model", "one two"},
		{"cut after two records", "> say one two\n> close\n", chat.BrokenStream, "ended early", "one two"},
		{"cut before any", "> close\n", chat.BrokenStream, "the server closed it", ""},
		{"a line that is none", "> say one\n> raw <html>\n", chat.BadResponse, "no record", "one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, a api) {
				c, server := a.play(t, tt.script, modelserver.Options{})
				reply, err := c.Chat(t.Context(), ask("go"), nil)
				e := failure(t, err, tt.kind, tt.text)
				if e.Partial.Message.Content != tt.partial || len(e.Partial.Message.Calls) != 0 || e.Partial.Done || !reflect.DeepEqual(reply, e.Partial) {
					t.Errorf("partial %+v, reply %+v", e.Partial, reply)
				}
				if n := len(server.Requests()); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// A request that only appends is the same in every byte before what is new.
func TestPrefixIsStable(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, server := a.play(t, "> call read_file {\"path\":\"a\"}\n\n> say ok\n\n> say bye\n", modelserver.Options{})
		r := ask("read a")
		r.NumPredict, r.NumCtx, r.Think = 100, 8192, "off"
		for _, next := range []string{"text of <a>\n", "thanks", ""} {
			reply, err := c.Chat(t.Context(), r, nil)
			if err != nil {
				t.Fatal(err)
			}
			m := chat.Message{Role: chat.User, Content: next}
			if calls := reply.Message.Calls; len(calls) > 0 {
				m = chat.Message{Role: chat.ToolRole, ToolName: calls[0].Name, CallID: calls[0].ID, Content: next}
			}
			r.Messages = append(r.Messages, reply.Message, m)
		}
		asked := server.Chats()
		for i := 1; i < len(asked); i++ {
			if asked[i].CommonPrefix != asked[i-1].PromptBytes {
				t.Errorf("request %d has %d bytes of the %d before:\n%s\n%s", i, asked[i].CommonPrefix, asked[i-1].PromptBytes, asked[i-1].Body, asked[i].Body)
			}
		}
		if len(asked) != 3 || len(server.Failures()) > 0 {
			t.Errorf("%d requests, %q", len(asked), server.Failures())
		}
	})
}

// Whatever a model sent as arguments, the history with it stays one that the server
// takes.
func TestBrokenArgumentsDoNotPoisonTheHistory(t *testing.T) {
	for _, args := range []string{``, `null`, `{"path":"a"}`, `"{\"path\":\"a\"}"`, `"{\"path\": \"a"`, `[1]`, `7`} {
		each(t, func(t *testing.T, a api) {
			c, _ := a.play(t, "> say ok\n", modelserver.Options{})
			r := ask("go")
			r.Messages = append(r.Messages,
				chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{ID: "c1", Name: "read_file", Args: json.RawMessage(args)}}},
				chat.Message{Role: chat.ToolRole, ToolName: "read_file", CallID: "c1", Content: "error"})
			if reply, err := c.Chat(t.Context(), r, nil); err != nil || reply.Message.Content != "ok" {
				t.Errorf("%s: %+v, %v", args, reply, err)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		long := strings.Repeat("x", 5<<20)
		c := a.serve(t, a.answer(strings.Replace(a.piece, `"a"`, `"`+long+`"`, 1)+a.last), modelserver.Options{})
		if reply, err := c.Chat(t.Context(), ask("go"), nil); err != nil || reply.Message.Content != long {
			t.Errorf("%d bytes, %v", len(reply.Message.Content), err)
		}
	})
}

func TestModelsAndFacts(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, _ := a.play(t, "> model one:7b\n> model two\n", modelserver.Options{})
		models, err := c.Models(t.Context())
		if err != nil || len(models) != 2 || models[0].Name != "one:7b" || models[1].Name != "two:latest" {
			t.Errorf("%+v, %v", models, err)
		}
		if f, err := c.Show(t.Context(), "two"); err != nil || !f.Tools {
			t.Errorf("%+v, %v", f, err)
		}
		_, err = c.Show(t.Context(), "nope:7b")
		failure(t, err, chat.MissingModel, "nope:7b")
		none, _ := a.play(t, "> no-models\n", modelserver.Options{})
		if models, err := none.Models(t.Context()); err != nil || len(models) != 0 {
			t.Errorf("%+v, %v", models, err)
		}
	})
}

func TestCancelClosesTheConnection(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		c, server := a.play(t, "> say some words\n> hang\n", modelserver.Options{Retries: 3})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var text string
		reply, err := c.Chat(ctx, ask("go"), func(d chat.Delta) {
			if text += d.Content; text == "some words" {
				cancel()
			}
		})
		if err != context.Canceled || reply.Done || reply.Message.Content != text {
			t.Errorf("got %+v, %v", reply, err)
		}
		for !server.Requests()[0].Gone {
			time.Sleep(time.Millisecond) // the server sees it through the network
		}
		if n := len(server.Requests()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// Silence before the first record has no limit by default, silence between records
// has its own, and a time-out is not replayed.
func TestSilence(t *testing.T) {
	for _, tt := range []struct {
		name, script string
		o            modelserver.Options
		kind         chat.Failure // "" when the reply comes
		text         string
		after        time.Duration
	}{
		{"an hour before the first record", "> pause 1h\n> say a\n", modelserver.Options{IdleTimeout: time.Minute}, "", "a", time.Hour},
		{"several silences", "> say a\n> pause 50s\n> say b\n> pause 50s\n", modelserver.Options{IdleTimeout: time.Minute}, "", "ab", 100 * time.Second},
		{"no limits at all", "> say a\n> pause 100h\n", modelserver.Options{}, "", "a", 100 * time.Hour},
		{"too long between records", "> say a\n> pause 240s\n> say b\n", modelserver.Options{IdleTimeout: 100 * time.Second, Retries: 3}, chat.IdleTimeout, "a", 100 * time.Second},
		{"too long before the first record", "> pause 1h\n> say b\n", modelserver.Options{FirstByteTimeout: 10 * time.Minute, Retries: 3}, chat.IdleTimeout, "", 10 * time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, a api) {
				synctest.Test(t, func(t *testing.T) {
					s, err := scripted.Parse(tt.script)
					if err != nil {
						t.Fatal(err)
					}
					server := scripted.New(s, scripted.Options{})
					c, stop := a.pipe(t, server, tt.o)
					start := time.Now()
					reply, err := c.Chat(t.Context(), ask("go"), nil)
					if took := time.Since(start); took.Round(time.Second) != tt.after {
						t.Errorf("took %s", took)
					}
					if tt.kind != "" {
						failure(t, err, tt.kind, "http://127.0.0.1:1 for ")
					} else if err != nil || !reply.Done {
						t.Errorf("%+v, %v", reply, err)
					}
					if reply.Message.Content != tt.text {
						t.Errorf("content %q", reply.Message.Content)
					}
					stop()
					synctest.Wait()
					if n := len(server.Requests()); n != 1 {
						t.Errorf("%d requests", n)
					}
				})
			})
		})
	}
}

// pipe connects a client and a handler in memory, so that time can be simulated. It
// returns what closes both.
func (a api) pipe(t *testing.T, h http.Handler, o modelserver.Options) (client, func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	o.Dial = l.dial
	c := a.client(t, "http://127.0.0.1:1", o)
	return c, func() { c.Close(); server.Close() }
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours, nil
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

func TestReplays(t *testing.T) {
	for _, tt := range []struct {
		name            string
		failures, asked int32
		retries         int
		ok              bool
	}{
		{"none allowed", 1, 1, 0, false},
		{"one", 1, 2, 1, true},
		{"only one", 2, 2, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			each(t, func(t *testing.T, a api) {
				var asked atomic.Int32
				c := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if asked.Add(1) <= tt.failures {
						panic(http.ErrAbortHandler)
					}
					a.answer(a.piece+a.last)(w, r)
				}, modelserver.Options{Retries: tt.retries})
				reply, err := c.Chat(t.Context(), ask("go"), nil)
				if tt.ok && (err != nil || reply.Message.Content != "a") {
					t.Errorf("%+v, %v", reply, err)
				}
				if !tt.ok {
					failure(t, err, chat.BrokenStream, "ended before an answer")
				}
				if asked.Load() != tt.asked {
					t.Errorf("asked %d times", asked.Load())
				}
			})
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(other.Close)
	each(t, func(t *testing.T, a api) {
		for _, status := range []int{301, 302, 307, 308} {
			c := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://u:p@", 1)+r.URL.Path+"?t=1", status)
			}, modelserver.Options{APIKey: "k3y"})
			_, err := c.Chat(t.Context(), ask("go"), nil)
			failure(t, err, chat.BadResponse, "redirects to "+other.URL+", which is not followed")
		}
	})
}

// The key goes to this machine or over https, and into no text.
func TestKey(t *testing.T) {
	const key = "sk-very-secret"
	each(t, func(t *testing.T, a api) {
		var debug strings.Builder
		c := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, `{"error":{"message":"bad header `+r.Header.Get("Authorization")+`"}}`)
		}, modelserver.Options{APIKey: key, Debug: func(kind, text string) { debug.WriteString(kind + " " + text + "\n") }})
		_, err := c.Chat(t.Context(), ask("go"), nil)
		e := failure(t, err, chat.ServerFailure, "bad header Bearer [key]")
		if strings.Contains(e.Error()+e.Hint+debug.String(), key) || !strings.Contains(debug.String(), "request POST http://127.0.0.1") {
			t.Errorf("%+v\n%s", e, debug.String())
		}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("the key went over plain http")
			}
			w.WriteHeader(401)
		}))
		t.Cleanup(s.Close)
		remote := a.client(t, "http://models.example:1", modelserver.Options{APIKey: key,
			Proxy: noProxy, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
			}})
		_, err = remote.Chat(t.Context(), ask("go"), nil)
		if e := failure(t, err, chat.Unauthorised, "wants a key"); !strings.Contains(e.Hint, "https") {
			t.Errorf("hint %q", e.Hint)
		}
	})
}

func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		c := a.client(t, s.URL, modelserver.Options{Retries: 1})
		_, err := c.Chat(t.Context(), ask("go"), nil)
		failure(t, err, chat.Unreachable, "no model server at "+s.URL+": connection refused")
		_, err = c.Models(t.Context())
		failure(t, err, chat.Unreachable, "connection refused")
	})
}

func TestConnectionIsReused(t *testing.T) {
	each(t, func(t *testing.T, a api) {
		var conns atomic.Int32
		server := httptest.NewUnstartedServer(a.answer(a.piece + a.last))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		server.Start()
		t.Cleanup(server.Close)
		c := a.client(t, server.URL, modelserver.Options{})
		for range 5 {
			if _, err := c.Chat(t.Context(), ask("go"), nil); err != nil {
				t.Fatal(err)
			}
		}
		if n := conns.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}
