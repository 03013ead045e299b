package openai

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
)

func client(t *testing.T, url string, o Options) *Client {
	t.Helper()
	o.Host = url
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// serve starts a handler and a client of it.
func serve(t *testing.T, h http.HandlerFunc, o Options) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return client(t, s.URL, o)
}

// body answers with a type and a body.
func body(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, text)
	}
}

const sse = "text/event-stream"

func hello() chat.Request {
	return chat.Request{Model: "m", Messages: []chat.Message{{Role: chat.User, Content: "hello"}}}
}

// failure asserts that err is a model error of a kind.
func failure(t *testing.T, err error, kind chat.Failure, text string) *chat.Error {
	t.Helper()
	var e *chat.Error
	if !errors.As(err, &e) || e.Kind != kind || !strings.Contains(e.Text, text) {
		t.Fatalf("got %#v, want %s with %q", err, kind, text)
	}
	if strings.ContainsAny(e.Text, "\n\r") {
		t.Errorf("text of several lines: %q", e.Text)
	}
	return e
}

func call(id, name, args string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}
}

// The shapes are those that the servers write.
func TestStreams(t *testing.T) {
	const (
		text   = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"First "},"finish_reason":null}]}` + "\n\n"
		text2  = `data: {"choices":[{"index":0,"delta":{"content":"line"},"finish_reason":null}]}` + "\n\n"
		null   = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}` + "\n\n"
		think  = `data: {"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}` + "\n\n"
		think2 = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}` + "\n\n"
		both   = `data: {"choices":[{"index":0,"delta":{"reasoning":"hm","reasoning_content":"hm"}}]}` + "\n\n"
		stop   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		end    = "data: [DONE]\n\n"
	)
	finish := func(reason string) string { return strings.Replace(stop, `"stop"`, `"`+reason+`"`, 1) }
	piece := func(c string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + c + `]},"finish_reason":null}]}` + "\n\n"
	}
	whole := func(index, id, name, args string) string {
		return piece(`{` + index + `"id":"` + id + `","type":"function","function":{"name":"` + name + `","arguments":` + args + `}}`)
	}
	a, b := `"{\"path\":\"a\"}"`, `"{\"path\":\"b\"}"`
	tests := []struct {
		name, stream string
		message      chat.Message
		reason       string
		done         bool
	}{
		{"text", text + text2 + stop + end, chat.Message{Content: "First line"}, "stop", true},
		{"content null", null + text + stop + end, chat.Message{Content: "First "}, "stop", true},
		{"thinking of llama.cpp and DeepSeek", think + text + stop + end, chat.Message{Content: "First ", Thinking: "hm"}, "stop", true},
		{"thinking of Ollama and vLLM", think2 + text + stop + end, chat.Message{Content: "First ", Thinking: "hm"}, "stop", true},
		{"thinking under both names counts once", both + text + stop + end, chat.Message{Content: "First ", Thinking: "hm"}, "stop", true},
		{"thinking in the text", strings.Replace(text, "First ", "<think>hm</think>\\n\\nYes", 1) + stop + end, chat.Message{Content: "Yes", Thinking: "hm"}, "stop", true},
		{"cut", text + finish("length") + end, chat.Message{Content: "First "}, "length", true},
		{"a call whole", whole(`"index":0,`, "c1", "f", a) + finish("tool_calls") + end, chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`)}}, "stop", true},
		{"a call in pieces", piece(`{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}`) + piece(`{"index":0,"function":{"arguments":"{\"pa"}}`) +
			piece(`{"index":0,"function":{"arguments":"th\":\"a\"}"}}`) + finish("tool_calls") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`)}}, "stop", true},
		{"the name again in each piece", piece(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{"}}`) + piece(`{"index":0,"id":"c1","function":{"name":"f","arguments":"}"}}`) + finish("tool_calls") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{}`)}}, "stop", true},
		{"two calls, mixed pieces", piece(`{"index":0,"id":"c1","function":{"name":"f","arguments":"{\"a\":"}},{"index":1,"id":"c2","function":{"name":"g","arguments":"{\"b\":"}}`) +
			piece(`{"index":1,"function":{"arguments":"2}"}},{"index":0,"function":{"arguments":"1}"}}`) + finish("tool_calls") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"a":1}`), call("c2", "g", `{"b":2}`)}}, "stop", true},
		{"every call has index 0", whole(`"index":0,`, "c1", "f", a) + whole(`"index":0,`, "c2", "f", b) + finish("stop") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`), call("c2", "f", `{"path":"b"}`)}}, "stop", true},
		{"no index", whole("", "c1", "f", a) + whole("", "c2", "f", b) + finish("stop") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`), call("c2", "f", `{"path":"b"}`)}}, "stop", true},
		{"no index, in pieces", piece(`{"id":"c1","function":{"name":"f","arguments":"{"}}`) + piece(`{"function":{"arguments":"}"}}`) + finish("stop") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{}`)}}, "stop", true},
		{"same id twice, no id", whole(`"index":0,`, "c1", "f", a) + whole(`"index":1,`, "c1", "f", b) + whole(`"index":2,`, "", "f", b) + finish("stop") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`), call("zcall_1", "f", `{"path":"b"}`), call("zcall_2", "f", `{"path":"b"}`)}}, "stop", true},
		{"arguments as an object", whole(`"index":0,`, "c1", "f", `{"path":"a"}`) + finish("tool_calls") + end, chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`)}}, "stop", true},
		{"no arguments", piece(`{"index":0,"id":"c1","function":{"name":"f"}}`) + finish("tool_calls") + end, chat.Message{Calls: []chat.ToolCall{{ID: "c1", Name: "f"}}}, "stop", true},
		{"broken arguments become a text", whole(`"index":0,`, "c1", "f", `"{\"path\": \"a"`) + finish("tool_calls") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `"{\"path\": \"a"`)}}, "stop", true},
		{"a cut call is no call", whole(`"index":0,`, "c1", "f", a) + whole(`"index":1,`, "c2", "g", `"{\"text\": \"half"`) + finish("length") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"path":"a"}`)}}, "length", true},
		{"a call cut at its name", piece(`{"index":0,"id":"c1","function":{"name":"f","arguments":""}}`) + finish("length") + end, chat.Message{}, "length", true},
		{"no [DONE]", text + stop, chat.Message{Content: "First "}, "stop", true},
		{"no finish_reason", text + end, chat.Message{Content: "First "}, "", true},
		{"neither: the server stopped the model", text + text2, chat.Message{Content: "First line"}, "", false},
		{"neither, after a call", whole(`"index":0,`, "c1", "f", a), chat.Message{}, "", false},
		{"nothing at all", "", chat.Message{}, "", false},
		{"comments and other fields", ": ping\n\nevent: message\nid: 7\nretry: 5\n" + text + ":\n\n" + stop + end, chat.Message{Content: "First "}, "stop", true},
		{"windows lines, no blank after the colon", strings.ReplaceAll(strings.ReplaceAll(text+stop+end, "\n", "\r\n"), "data: ", "data:"), chat.Message{Content: "First "}, "stop", true},
		{"nothing counts after the end", text + stop + end + text2, chat.Message{Content: "First "}, "stop", true},
		{"no text counts after the finish", text + stop + text2 + end, chat.Message{Content: "First "}, "stop", true},
		{"long line", strings.Replace(text, "First", strings.Repeat("x", 300_000), 1) + stop + end, chat.Message{Content: strings.Repeat("x", 300_000) + " "}, "stop", true},
		{"duplicate keys are kept", whole(`"index":0,`, "c1", "f", `"{\"command\":\"ls\",\"Command\":\"rm\",\"n\":1.0,\"n\":2}"`) + finish("tool_calls") + end,
			chat.Message{Calls: []chat.ToolCall{call("c1", "f", `{"command":"ls","Command":"rm","n":1.0,"n":2}`)}}, "stop", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(sse, tt.stream), Options{})
			var shown chat.Message
			reply, err := c.Chat(t.Context(), hello(), func(d chat.Delta) {
				shown.Content += d.Content
				shown.Thinking += d.Thinking
			})
			if err != nil {
				t.Fatal(err)
			}
			tt.message.Role = chat.Assistant
			if !reflect.DeepEqual(reply.Message, tt.message) || reply.DoneReason != tt.reason || reply.Done != tt.done {
				t.Errorf("got %+v\nwant %+v", reply, tt.message)
			}
			if shown.Content != tt.message.Content || shown.Thinking != tt.message.Thinking {
				t.Errorf("shown %+v", shown)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	const tail = `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\n"
	for _, tt := range []struct {
		name, stream string
		want         chat.Usage
	}{
		{"in a chunk of its own", tail + `data: {"choices":[],"usage":{"prompt_tokens":21,"completion_tokens":14,"total_tokens":35}}` + "\n\ndata: [DONE]\n\n", chat.Usage{PromptTokens: 21, OutputTokens: 14}},
		{"in every chunk, null at first", strings.Replace(tail, `]}`+"\n", `],"usage":null}`+"\n", 1) + `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}` + "\n\n", chat.Usage{PromptTokens: 3, OutputTokens: 4}},
		{"llama.cpp's timings", tail + `data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4},"timings":{"prompt_n":3,"prompt_ms":12.5,"predicted_ms":100}}` + "\n\n",
			chat.Usage{PromptTokens: 3, OutputTokens: 4, PromptEval: 12500 * time.Microsecond, Eval: 100 * time.Millisecond}},
		{"none", tail + "data: [DONE]\n\n", chat.Usage{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(sse, tt.stream), Options{})
			reply, err := c.Chat(t.Context(), hello(), nil)
			if err != nil || reply.Usage != tt.want || reply.Message.Content != "a" {
				t.Errorf("%+v, %v", reply, err)
			}
		})
	}
}

// A server that does not stream gives the reply as one object, perhaps over lines.
func TestWholeReply(t *testing.T) {
	const answer = `{
  "id": "c", "object": "chat.completion",
  "choices": [{"index": 0, "message": {"role": "assistant", "content": "", "reasoning": "hm",
    "tool_calls": [{"id": "c1", "index": 0, "type": "function", "function": {"name": "run_command", "arguments": "{\"command\":\"go test\"}"}}]},
    "finish_reason": "tool_calls"}],
  "usage": {"prompt_tokens": 16, "completion_tokens": 12, "total_tokens": 28}
}`
	c := serve(t, body("application/json; charset=utf-8", answer), Options{})
	reply, err := c.Chat(t.Context(), hello(), nil)
	want := chat.Message{Role: chat.Assistant, Thinking: "hm", Calls: []chat.ToolCall{call("c1", "run_command", `{"command":"go test"}`)}}
	if err != nil || !reflect.DeepEqual(reply.Message, want) || !reply.Done || reply.Usage.PromptTokens != 16 {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestBadEnds(t *testing.T) {
	const text = `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	for _, tt := range []struct {
		name, kind, body string
		failure          chat.Failure
		want, partial    string
	}{
		{"cut in a record", sse, text + `data: {"choices":[{"ind`, chat.BrokenStream, "ended early", "a"},
		{"error of vLLM", sse, text + `data: {"error":{"message":"EngineCore encountered an issue","type":"InternalServerError","code":500}}` + "\n\n", chat.ServerFailure, "EngineCore", "a"},
		{"error of older vLLM", sse, text + `data: {"object":"error","message":"out of memory","code":400}` + "\n\n", chat.OutOfMemory, "out of memory", "a"},
		{"error of older llama.cpp", sse, text + `error: {"code":500,"message":"the request exceeds the available context size. try increasing it","type":"server_error"}` + "\n\n", chat.Overflow, "available context", "a"},
		{"filtered", sse, text + `data: {"choices":[{"delta":{},"finish_reason":"content_filter"}]}` + "\n\ndata: [DONE]\n\n", chat.ServerFailure, "content filter", "a"},
		{"empty body", "", "", chat.BadResponse, "nothing that is a reply", ""},
		{"web page", "text/html", "<html>502</html>\nsecond line", chat.BadResponse, "answered with a web page: <html>502</html>", ""},
		{"page without its type", "application/octet-stream", "<html>\n<b>x", chat.BadResponse, "sent a line that is no record: <html>", ""},
		{"other JSON", "application/json", `{"status":"ok"}`, chat.BadResponse, "nothing that is a reply", ""},
		{"an error with status 200", "application/json", `{"error":{"message":"model 'm' not found"}}`, chat.MissingModel, "not found", ""},
		{"wrong types", sse, `data: {"choices":[{"delta":{"content":[1]}}]}` + "\n\n", chat.BadResponse, "no record", ""},
		{"records of Ollama", "application/x-ndjson", `{"message":{"role":"assistant","content":"a"},"done":true}` + "\n", chat.BadResponse, "nothing that is a reply", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(tt.kind, tt.body), Options{Retries: 2})
			_, err := c.Chat(t.Context(), hello(), nil)
			e := failure(t, err, tt.failure, tt.want)
			if e.Partial.Message.Content != tt.partial || len(e.Partial.Message.Calls) > 0 || strings.Contains(e.Text, "second") {
				t.Errorf("%+v", e)
			}
		})
	}
}

// The texts of the servers.
func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   chat.Failure
		text   string // of the error
		hint   string // part of it
	}{
		{"llama.cpp, too long", 400, `{"error":{"code":400,"message":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}`,
			chat.Overflow, "exceeds the available context size", "larger window"},
		{"vLLM, too long", 400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 9000 tokens in the messages.","type":"BadRequestError","param":null,"code":400}`,
			chat.Overflow, "maximum context length is 4096", "/compact"},
		{"vLLM, prompt too long", 400, `{"error":{"message":"The decoder prompt (length 9000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`, chat.Overflow, "longer than the maximum", "/compact"},
		{"SGLang, too long", 400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (4096 tokens).","code":400}`, chat.Overflow, "context length", "/compact"},
		{"LM Studio, too long", 400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}`, chat.Overflow, "greater than", "/compact"},
		{"vLLM, no such model", 404, `{"object":"error","message":"The model ` + "`nope`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`, chat.MissingModel, "does not exist", "--model"},
		{"Ollama, no such model", 404, `{"error":{"message":"model 'nope' not found","type":"not_found_error","param":null,"code":null}}`, chat.MissingModel, "not found", "/model"},
		{"LM Studio, none loaded", 404, `{"error":{"message":"No models loaded. Please load a model in the developer page."}}`, chat.MissingModel, "No models loaded", "--model"},
		{"llama.cpp without jinja", 500, `{"error":{"code":500,"message":"tools param requires --jinja flag","type":"server_error"}}`, chat.NoTools, "--jinja", "--jinja"},
		{"vLLM without a parser", 400, `{"object":"error","message":"\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","code":400}`, chat.NoTools, "tool choice requires", "--tool-call-parser"},
		{"Ollama, no tools", 400, `{"error":{"message":"registry/library/m:latest does not support tools","type":"api_error"}}`, chat.NoTools, `model "m" does not support tools`, "another model"},
		{"llama.cpp, wrong key", 401, `{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}`, chat.Unauthorised, "Invalid API Key", "OPENAI_API_KEY"},
		{"vLLM, wrong key", 401, `{"error":"Unauthorized"}`, chat.Unauthorised, "Unauthorized", "ZCODER_API_KEY"},
		{"gateway, no text", 401, ``, chat.Unauthorised, "wants a key", "ZCODER_API_KEY"},
		{"busy", 429, `{"error":{"message":"Rate limit reached"}}`, chat.Busy, "Rate limit", "wait"},
		{"slots are taken", 503, `{"error":{"code":503,"message":"no slot available","type":"unavailable_error"}}`, chat.Busy, "no slot", "wait"},
		{"call that the server cannot read", 500, `{"error":{"code":500,"message":"Failed to parse tool call arguments as JSON","type":"server_error"}}`, chat.ToolParse, "Failed to parse", "another model"},
		{"memory", 500, `{"error":{"message":"CUDA out of memory. Tried to allocate 2 GiB"}}`, chat.OutOfMemory, "out of memory", "start the server"},
		{"template", 500, `{"error":{"code":500,"message":"Conversation roles must alternate user/assistant","type":"server_error"}}`, chat.ServerFailure, "must alternate", ""},
		{"other server", 404, `404 page not found`, chat.BadResponse, "answered 404: 404 page not found", "--host"},
		{"other framework", 404, `{"detail":"Not Found"}`, chat.BadResponse, "answered 404", "--host"},
		{"proxy's page", 502, "<html>\n<head><title>502 Bad Gateway</title></head>", chat.BadResponse, "answered 502 with a web page: <html>", "--host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}, Options{Retries: 2})
			_, err := c.Chat(t.Context(), hello(), nil)
			e := failure(t, err, tt.kind, tt.text)
			if e.Status != tt.status || !strings.Contains(e.Hint, tt.hint) || tt.hint == "" && e.Hint != "" {
				t.Errorf("%+v", e)
			}
			if asked.Load() != 1 {
				t.Errorf("asked %d times: an answer is not replayed", asked.Load())
			}
		})
	}
}

// Where the prompt fits but not together with the longest reply, the limit goes.
func TestReplyLimitThatDoesNotFit(t *testing.T) {
	var bodies []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
		if strings.Contains(string(b), "max_tokens") {
			w.WriteHeader(400)
			io.WriteString(w, `{"object":"error","message":"'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 500 input tokens","code":400}`)
			return
		}
		body(sse, `data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`+"\n\n")(w, r)
	}, Options{})
	r := hello()
	r.NumPredict = 8192
	if reply, err := c.Chat(t.Context(), r, nil); err != nil || reply.Message.Content != "ok" || len(bodies) != 2 {
		t.Errorf("%+v, %v, %q", reply, err, bodies)
	}
}

// pipe connects a client and a handler in memory, so that time can be simulated. It
// returns what closes both.
func pipe(t *testing.T, h http.Handler, o Options) (*Client, func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	o.Dial = l.dial
	c := client(t, "http://127.0.0.1:1", o)
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

// llama.cpp answers at once while it reads a model that may take minutes.
func TestWaitsWhileTheServerLoads(t *testing.T) {
	loading := func(w http.ResponseWriter) {
		w.WriteHeader(503)
		io.WriteString(w, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`)
	}
	for _, tt := range []struct {
		name  string
		limit time.Duration
		kind  chat.Failure
		took  time.Duration
	}{
		{"as long as it takes", 0, "", 5 * time.Minute},
		{"up to the limit for the first byte", time.Minute, chat.Busy, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ready := time.Now().Add(5 * time.Minute)
				c, stop := pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if time.Now().Before(ready) {
						loading(w)
						return
					}
					body(sse, `data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")(w, r)
				}), Options{FirstByteTimeout: tt.limit})
				start := time.Now()
				reply, err := c.Chat(t.Context(), hello(), nil)
				if tt.kind != "" {
					failure(t, err, tt.kind, "Loading model")
				} else if err != nil || reply.Message.Content != "ok" {
					t.Errorf("%+v, %v", reply, err)
				}
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %s", took)
				}
				stop()
			})
		})
	}
	t.Run("until the person stops it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { cancel(); loading(w) }, Options{})
		if _, err := c.Chat(ctx, hello(), nil); err != context.Canceled {
			t.Errorf("got %v", err)
		}
	})
}

// The counts may be slow to follow; the reply does not wait for them for long.
func TestTailIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", sse)
			io.WriteString(w, `data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}`+"\n\n")
			http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), Options{IdleTimeout: time.Hour})
		start := time.Now()
		reply, err := c.Chat(t.Context(), hello(), nil)
		if err != nil || !reply.Done || reply.Message.Content != "ok" || time.Since(start) > 3*time.Second {
			t.Errorf("%+v, %v after %s", reply, err, time.Since(start))
		}
		stop()
	})
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ host, chat, props string }{
		{"", "/v1/chat/completions", "/props"},
		{"/v1", "/v1/chat/completions", "/props"},
		{"/v1/", "/v1/chat/completions", "/props"},
		{"/llm", "/llm/v1/chat/completions", "/llm/props"},
		{"/llm/v1", "/llm/v1/chat/completions", "/llm/props"},
		{"/api/paas/v4", "/api/paas/v4/chat/completions", "/api/paas/props"},
	} {
		t.Run(tt.host, func(t *testing.T) {
			var asked []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				body("application/json", `{"data":[{"id":"m","owned_by":"llamacpp"}],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)(w, r)
			}))
			defer s.Close()
			c := client(t, s.URL+tt.host, Options{})
			if _, err := c.Chat(t.Context(), hello(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Show(t.Context(), "m"); err != nil {
				t.Fatal(err)
			}
			if want := []string{tt.chat, strings.Replace(tt.chat, "chat/completions", "models", 1), tt.props}; !reflect.DeepEqual(asked, want) {
				t.Errorf("got %q, want %q", asked, want)
			}
		})
	}
}
