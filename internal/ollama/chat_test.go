package ollama

import (
	"context"
	"errors"
	"io"
	"log"
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
	"zcoder/internal/scripted"
)

// play starts a scripted server and a client of it.
func play(t *testing.T, script string, o Options) (*Client, *scripted.Server) {
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
	return client(t, url, o), server
}

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

func hello() chat.Request {
	return chat.Request{Model: "test-model", Messages: []chat.Message{{Role: chat.User, Content: "hello"}}}
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

func call1(id, name, args string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: name, Args: []byte(args)}
}

func TestChat(t *testing.T) {
	// The shapes are those of a real server.
	const (
		text  = `{"model":"m","created_at":"2026-11-30T12:30:34.95Z","message":{"role":"assistant","content":"First "},"done":false}` + "\n"
		text2 = `{"model":"m","message":{"role":"assistant","content":"line"},"done":false}` + "\n"
		think = `{"model":"m","message":{"role":"assistant","content":"","thinking":"I will"},"done":false}` + "\n"
		call  = `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_mxside1l","function":{"index":0,"name":"replace_text","arguments":{"new_text":"bar","old_text":"<foo>"}}}]},"done":false}` + "\n"
		call2 = `{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_d67bnpb2","function":{"index":1,"name":"read_file","arguments":{"path":"b"}}}]},"done":false}` + "\n"
		done  = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":72591451,"load_duration":4798932,"prompt_eval_count":21,"prompt_eval_duration":32398606,"eval_count":14,"eval_duration":32599720}` + "\n"
		cut   = `{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"length","eval_count":8}` + "\n"
	)
	args1 := `{"new_text":"bar","old_text":"<foo>"}`
	tests := []struct {
		name, stream string
		message      chat.Message
		reason       string
		done         bool
	}{
		{"text", text + text2 + done, chat.Message{Content: "First line"}, "stop", true},
		{"thinking, then text", think + text + done, chat.Message{Content: "First ", Thinking: "I will"}, "stop", true},
		{"thinking, then a call", think + call + done, chat.Message{Thinking: "I will", Calls: []chat.ToolCall{call1("call_mxside1l", "replace_text", args1)}}, "stop", true},
		{"two calls in two records", call + call2 + done, chat.Message{Calls: []chat.ToolCall{call1("call_mxside1l", "replace_text", args1), call1("call_d67bnpb2", "read_file", `{"path":"b"}`)}}, "stop", true},
		{"one object without streaming", strings.Replace(done, `"content":""`, `"content":"all","tool_calls":[{"function":{"name":"f","arguments":{}}}]`, 1),
			chat.Message{Content: "all", Calls: []chat.ToolCall{call1("zcall_1", "f", `{}`)}}, "stop", true},
		{"swallowed call", cut, chat.Message{}, "length", true},
		{"no line end at the end", text + strings.TrimSpace(done), chat.Message{Content: "First "}, "stop", true},
		{"windows lines and empty lines", "\r\n" + strings.ReplaceAll(text+"\n"+done, "\n", "\r\n"), chat.Message{Content: "First "}, "stop", true},
		{"nothing counts after done", text + done + text2 + call, chat.Message{Content: "First "}, "stop", true},
		{"ends without done: repeat abort", strings.Repeat(text2, 32), chat.Message{Content: strings.Repeat("line", 32)}, "", false},
		{"ends without done after a call: it does not count", call, chat.Message{}, "", false},
		{"ends without a record: repeat abort within a call", "", chat.Message{}, "", false},
		{"long line", strings.Replace(text, "First", strings.Repeat("x", 300_000), 1) + done, chat.Message{Content: strings.Repeat("x", 300_000) + " "}, "stop", true},
		{"arguments are kept as they came", strings.Replace(call, args1, `{"command":"ls","Command":"rm -rf x","n":1.0,"n":2}`, 1) + done,
			chat.Message{Calls: []chat.ToolCall{call1("call_mxside1l", "replace_text", `{"command":"ls","Command":"rm -rf x","n":1.0,"n":2}`)}}, "stop", true},
		{"arguments as text", strings.Replace(call, args1, `"{\"path\": \"a"`, 1) + done,
			chat.Message{Calls: []chat.ToolCall{call1("call_mxside1l", "replace_text", `"{\"path\": \"a"`)}}, "stop", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(ndjson, tt.stream), Options{})
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

func TestUsageAndProgress(t *testing.T) {
	c, _ := play(t, "> think a b\n> call f\n> call g\n> usage 1200 34\n> done length\n", Options{})
	var calls []int
	reply, err := c.Chat(t.Context(), hello(), func(d chat.Delta) { calls = append(calls, d.Calls) })
	if err != nil {
		t.Fatal(err)
	}
	if reply.Usage.PromptTokens != 1200 || reply.Usage.OutputTokens != 34 || reply.Usage.Eval != 34*20*time.Millisecond || reply.Usage.Load != 300*time.Millisecond {
		t.Errorf("usage %+v", reply.Usage)
	}
	if !reflect.DeepEqual(calls, []int{0, 0, 1, 2}) {
		t.Errorf("calls in deltas %v", calls)
	}
}

func TestRequestOnTheWire(t *testing.T) {
	c, server := play(t, "> say x\n", Options{UserAgent: "zcoder/1"})
	r := hello()
	r.NumCtx = 8192
	if _, err := c.Chat(t.Context(), r, nil); err != nil {
		t.Fatal(err)
	}
	got := server.Requests()[0]
	want := `{"model":"test-model","stream":true,"truncate":false,"shift":false,"options":{"num_ctx":8192},"messages":[{"role":"user","content":"hello"}]}`
	if string(got.Body) != want || got.Header.Get("User-Agent") != "zcoder/1" || got.Header.Get("Content-Type") != "application/json" {
		t.Errorf("got %s\n%v", got.Body, got.Header)
	}
	if got.Header.Get("Accept-Encoding") != "" || got.Header.Get("Authorization") != "" {
		t.Errorf("headers %v", got.Header)
	}
}

// Field case O03: the server could not read its own model's call.
func TestO03ServerCannotParseItsModelsCall(t *testing.T) {
	c, _ := play(t, `> status 500 {"error":"error parsing tool call: raw='{\"path\":\"a\"}]', err=invalid character ']' after top-level value"}`+"\n\n"+
		"> say I will write it.\n> error XML syntax error on line 7: element <function> closed by </parameter>\n", Options{})
	_, err := c.Chat(t.Context(), hello(), nil)
	if e := failure(t, err, chat.ToolParse, "error parsing tool call"); e.Status != 500 || e.Hint == "" {
		t.Errorf("%+v", e)
	}
	_, err = c.Chat(t.Context(), hello(), nil)
	failure(t, err, chat.ToolParse, "XML syntax error on line 7")
}

// Field case O04: an error object in mid-stream ends the reply; no call of it counts.
func TestO04ErrorInMidStream(t *testing.T) {
	c, server := play(t, "> say one two three\n> call run_command {\"command\":\"id\"}\n> error an error was encountered while running the model: unexpected EOF\n", Options{Retries: 3})
	reply, err := c.Chat(t.Context(), hello(), nil)
	e := failure(t, err, chat.OutOfMemory, "while running the model")
	if e.Partial.Message.Content != "one two three" || len(e.Partial.Message.Calls) != 0 || e.Partial.Done || !reflect.DeepEqual(reply, e.Partial) {
		t.Errorf("partial %+v", e.Partial)
	}
	if n := len(server.Requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// Field case O05: streams that end badly.
func TestO05BadEnds(t *testing.T) {
	t.Run("cut after two records", func(t *testing.T) {
		c, server := play(t, "> say one two\n> close\n", Options{Retries: 3})
		reply, err := c.Chat(t.Context(), hello(), nil)
		failure(t, err, chat.BrokenStream, "ended early: the server closed it")
		if reply.Message.Content != "one two" || reply.Done || len(server.Requests()) != 1 {
			t.Errorf("%+v after %d requests", reply, len(server.Requests()))
		}
	})
	t.Run("cut in a record", func(t *testing.T) {
		c := serve(t, body(ndjson, `{"message":{"role":"assistant","content":"a"}}`+"\n"+`{"message":{"role":"assi`), Options{})
		_, err := c.Chat(t.Context(), hello(), nil)
		failure(t, err, chat.BrokenStream, "ended early")
	})
	t.Run("reset after the headers", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", ndjson)
			http.NewResponseController(w).Flush()
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		}, Options{})
		_, err := c.Chat(t.Context(), hello(), nil)
		failure(t, err, chat.BrokenStream, "connection")
	})
	for _, tt := range []struct{ name, kind, body, want string }{
		{"empty body", "", "", "answered with nothing that is a reply"},
		{"web page", "text/html", "<html>502</html>\nsecond line", "answered with a web page: <html>502</html>"},
		{"page without its type", "application/octet-stream", "<html>\n<b>x", "sent a line that is no record: <html>"},
		{"no model server", "text/plain", "Ollama is running", "no record: Ollama is running"},
		{"other JSON", "application/json", `{"status":"ok"}`, "nothing that is a reply"},
		{"wrong types", ndjson, `{"message":{"role":"assistant","content":[1]}}`, `no record: {"message"`},
		{"endless line of a page", "text/plain", strings.Repeat("x", 5000), "no record: xxx"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(tt.kind, tt.body), Options{})
			_, err := c.Chat(t.Context(), hello(), nil)
			if e := failure(t, err, chat.BadResponse, tt.want); len(e.Text) > 600 || strings.Contains(e.Text, "second") || e.Hint == "" {
				t.Errorf("%+v", e)
			}
		})
	}
}

// Field cases O08, O12, O25 and the texts of a real server.
func TestErrorTexts(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
		kind   chat.Failure
		text   string // of the error
		hint   string // part of it
	}{
		{"O08 user turn cut away", 500, `{"error":"no user query found in messages"}`, chat.Overflow, "no user query found in messages", "/compact"},
		{"O08 refused to cut", 400, `{"error":"the input length exceeds the context length"}`, chat.Overflow, "the input length exceeds the context length", "--context-window"},
		{"O12 no thinking", 400, `{"error":"\"micro-tools\" does not support thinking"}`, chat.NoThinking, `"micro-tools" does not support thinking`, "--no-think"},
		{"O12 no level", 400, `{"error":"think value \"high\" is not supported for this model"}`, chat.NoThinking, "think value", "level"},
		{"O12 bad level", 400, `{"error":"invalid think value: \"banana\" (must be \"high\", \"medium\", \"low\", true, or false)"}`, chat.NoThinking, "banana", "level"},
		{"O25 runner died", 500, `{"error":"llama runner process has terminated: signal: killed"}`, chat.OutOfMemory, "runner process has terminated", "smaller"},
		{"O25 runner stopped", 500, `{"error":"model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details"}`, chat.OutOfMemory, "unexpectedly stopped", "log"},
		{"O25 memory", 500, `{"error":"model requires more system memory (10.4 GiB) than is available (5.2 GiB)"}`, chat.OutOfMemory, "10.4 GiB", "smaller"},
		{"O25 graphics memory", 500, `{"error":"cudaMalloc failed: out of memory"}`, chat.OutOfMemory, "cudaMalloc", "unload"},
		{"O25 missing model", 404, `{"error":"model 'test-model' not found"}`, chat.MissingModel, "model 'test-model' not found", "ollama pull test-model"},
		{"older text", 404, `{"error":"model \"x\" not found, try pulling it first"}`, chat.MissingModel, "try pulling", "ollama pull"},
		{"O25 queue full", 503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, chat.Busy, "server busy, please try again. maximum", "wait"},
		{"no tools", 400, `{"error":"registry/library/test-model:latest does not support tools"}`, chat.NoTools, `model "test-model" does not support tools`, "--model"},
		{"no model", 400, `{"error":"model is required"}`, chat.MissingModel, "model is required", "--model"},
		{"client's mistake", 400, `{"error":"Value looks like object, but can't find closing '}' symbol"}`, chat.ServerFailure, "Value looks like", ""},
		{"bad option", 500, `{"error":"option \"num_ctx\" must be of type integer"}`, chat.ServerFailure, "num_ctx", ""},
		{"error of several lines", 500, `{"error":"one\n  two"}`, chat.ServerFailure, "one two", ""},
		{"error of another kind of server", 400, `{"error":{"message":"max context: maximum context length is 5","code":1}}`, chat.Overflow, "maximum context length", ""},
		{"key wanted", 401, `{"error":"unauthorized","signin_url":"x"}`, chat.Unauthorised, "unauthorized", "OLLAMA_API_KEY"},
		{"key wanted, no text", 401, ``, chat.Unauthorised, "wants a key", "OLLAMA_API_KEY"},
		{"host name refused", 403, ``, chat.BadResponse, "refused the request (403)", "OLLAMA_ORIGINS"},
		{"rate limit", 429, `slow down`, chat.Busy, "too many requests", "wait"},
		{"other server", 404, `404 page not found`, chat.BadResponse, "answered 404: 404 page not found", "--host"},
		{"wrong method", 405, `405 method not allowed`, chat.BadResponse, "answered 405", "--host"},
		{"proxy's page", 502, "<html>\n<head><title>502 Bad Gateway</title></head>", chat.BadResponse, "answered 502 with a web page: <html>", "--host"},
		{"proxy's busy page", 503, "<html>\n<head>", chat.BadResponse, "answered 503 with a web page", "--host"},
		{"empty error", 500, ``, chat.BadResponse, "answered 500", "--host"},
	}
	for _, tt := range tests {
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
			if e.Status != tt.status || !strings.Contains(e.Hint, tt.hint) || tt.hint == "" && e.Hint != "" && tt.kind == chat.ServerFailure {
				t.Errorf("%+v", e)
			}
			if asked.Load() != 1 {
				t.Errorf("asked %d times: an answer is not replayed", asked.Load())
			}
		})
	}
}

// Field cases O18 and O20: ids and repeated calls.
func TestO18O20CallsAreCollectedOnce(t *testing.T) {
	record := func(done bool, calls string) string {
		if done {
			return `{"message":{"role":"assistant","content":"","tool_calls":[` + calls + `]},"done":true,"done_reason":"stop"}` + "\n"
		}
		return `{"message":{"role":"assistant","content":"","tool_calls":[` + calls + `]},"done":false}` + "\n"
	}
	one := func(id, name, args string) string {
		if id != "" {
			id = `"id":"` + id + `",`
		}
		return `{` + id + `"function":{"index":0,"name":"` + name + `","arguments":` + args + `}}`
	}
	const ok = `{"message":{"role":"assistant","content":"ok"},"done":false}` + "\n"
	a, b := `{"path":"a"}`, `{"path":"b"}`
	tests := []struct {
		name, stream string
		want         []chat.ToolCall
	}{
		{"O20 again in the last record, same id", record(false, one("c1", "f", a)) + ok + record(true, one("c1", "f", a)), []chat.ToolCall{call1("c1", "f", a)}},
		{"O20 again without ids", record(false, one("", "f", a)) + ok + record(true, one("", "f", a)), []chat.ToolCall{call1("zcall_1", "f", a)}},
		{"O20 again with keys in another order", record(false, one("c1", "f", `{"a":1,"b":2}`)) + record(true, one("c1", "f", `{"b":2,"a":1}`)), []chat.ToolCall{call1("c1", "f", `{"a":1,"b":2}`)}},
		{"both again in the last record", record(false, one("", "f", a)) + record(false, one("", "f", b)) + record(true, one("", "f", a)+","+one("", "f", b)), []chat.ToolCall{call1("zcall_1", "f", a), call1("zcall_2", "f", b)}},
		{"a second one like it in the last record", record(false, one("", "f", a)) + record(true, one("", "f", a)+","+one("", "f", a)), []chat.ToolCall{call1("zcall_1", "f", a), call1("zcall_2", "f", a)}},
		{"another call in the last record", record(false, one("c1", "f", a)) + record(true, one("c2", "f", b)), []chat.ToolCall{call1("c1", "f", a), call1("c2", "f", b)}},
		{"same call again in mid-stream with its id", record(false, one("c1", "f", a)) + record(false, one("c1", "f", a)) + record(true, ""), []chat.ToolCall{call1("c1", "f", a)}},
		{"O18 two calls without ids", record(false, one("", "f", a)+","+one("", "f", b)) + record(true, ""), []chat.ToolCall{call1("zcall_1", "f", a), call1("zcall_2", "f", b)}},
		{"O18 same id twice", record(false, one("c1", "f", a)) + record(false, one("c1", "g", b)) + record(true, ""), []chat.ToolCall{call1("c1", "f", a), call1("zcall_1", "g", b)}},
		{"the same call twice in one record", record(false, one("c1", "f", a)+","+one("c2", "f", a)) + record(true, ""), []chat.ToolCall{call1("c1", "f", a), call1("c2", "f", a)}},
		{"id of the history", record(false, one("old", "f", a)) + record(true, ""), []chat.ToolCall{call1("zcall_1", "f", a)}},
		{"unusable id", record(false, one("a b", "f", a)+","+one(strings.Repeat("x", 65), "f", b)) + record(true, ""), []chat.ToolCall{call1("zcall_1", "f", a), call1("zcall_2", "f", b)}},
		{"no arguments", record(true, `{"function":{"name":"f"}}`), []chat.ToolCall{{ID: "zcall_1", Name: "f"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body(ndjson, tt.stream), Options{})
			r := hello()
			r.Messages = append(r.Messages, chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{ID: "old", Name: "f"}}})
			reply, err := c.Chat(t.Context(), r, nil)
			if err != nil || !reflect.DeepEqual(reply.Message.Calls, tt.want) {
				t.Errorf("got %s, %v", reply.Message.Calls, err)
			}
		})
	}
}

func TestIDsAreInjected(t *testing.T) {
	c := serve(t, body(ndjson, `{"message":{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},"done":true}`), Options{NewID: func() string { return "mine" }})
	reply, err := c.Chat(t.Context(), hello(), nil)
	if err != nil || reply.Message.Calls[0].ID != "mine" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// Field case O13: thinking alone is a whole reply; what to do is the loop's business.
func TestO13ThinkingOnly(t *testing.T) {
	c, _ := play(t, "> think a long thought\n> done length\n", Options{})
	reply, err := c.Chat(t.Context(), hello(), nil)
	if err != nil || !reply.Done || reply.DoneReason != "length" || reply.Message.Content != "" || reply.Message.Thinking != "a long thought" {
		t.Errorf("%+v, %v", reply, err)
	}
}

func TestO15InlineThinkingOverTheWire(t *testing.T) {
	c, _ := play(t, `> raw {"message":{"role":"assistant","content":"<thi"},"done":false}`+"\n"+
		`> raw {"message":{"role":"assistant","content":"nk>hm</think>\n\nAnswer"},"done":false}`+"\n", Options{})
	var deltas []chat.Delta
	reply, err := c.Chat(t.Context(), hello(), func(d chat.Delta) { deltas = append(deltas, d) })
	if err != nil || reply.Message.Content != "Answer" || reply.Message.Thinking != "hm" {
		t.Errorf("%+v, %v", reply, err)
	}
	if !reflect.DeepEqual(deltas, []chat.Delta{{Content: "Answer", Thinking: "hm"}}) {
		t.Errorf("deltas %+v", deltas)
	}
}

func TestCancelClosesTheConnection(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"while text streams", "> say some words\n> hang\n"},
		{"before the first record", "> hang\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, server := play(t, tt.script, Options{Retries: 3})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { // the server has the request before it is cancelled
				for len(server.Requests()) == 0 {
					time.Sleep(time.Millisecond)
				}
				if !strings.Contains(tt.script, "say") {
					cancel()
				}
			}()
			var text string
			reply, err := c.Chat(ctx, hello(), func(d chat.Delta) {
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

// Field case O24: silence before the first record has no limit by default, silence
// between records has its own.
func TestO24Silence(t *testing.T) {
	tests := []struct {
		name, script string
		o            Options
		kind         chat.Failure // "" when the reply comes
		text         string
		after        time.Duration
	}{
		{"an hour before the first record", "> pause 1h\n> say a\n", Options{IdleTimeout: time.Minute}, "", "a", time.Hour},
		{"long silence within the limit", "> say a\n> pause 240s\n> say b\n", Options{IdleTimeout: 15 * time.Minute}, "", "ab", 4 * time.Minute},
		{"several silences", "> say a\n> pause 50s\n> say b\n> pause 50s\n", Options{IdleTimeout: time.Minute}, "", "ab", 100 * time.Second},
		{"no limits at all", "> say a\n> pause 100h\n", Options{}, "", "a", 100 * time.Hour},
		{"too long between records", "> say a\n> pause 240s\n> say b\n", Options{IdleTimeout: 100 * time.Second, Retries: 3}, chat.IdleTimeout, "a", 100 * time.Second},
		{"too long before the first record", "> pause 1h\n> say b\n", Options{FirstByteTimeout: 10 * time.Minute, Retries: 3}, chat.IdleTimeout, "", 10 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := scripted.Parse(tt.script)
				if err != nil {
					t.Fatal(err)
				}
				server := scripted.New(s, scripted.Options{})
				c, stop := pipe(t, server, tt.o)
				start := time.Now()
				reply, err := c.Chat(t.Context(), hello(), nil)
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
					t.Errorf("%d requests: a time-out is not replayed", n)
				}
			})
		})
	}
}

// The reading side may be slow: that is no silence of the server.
func TestSlowReaderIsNoTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := scripted.Parse("> say a b c\n")
		c, stop := pipe(t, scripted.New(s, scripted.Options{}), Options{IdleTimeout: time.Second})
		reply, err := c.Chat(t.Context(), hello(), func(chat.Delta) { time.Sleep(time.Minute) })
		if err != nil || reply.Message.Content != "a b c" {
			t.Errorf("%+v, %v", reply, err)
		}
		stop()
	})
}

func TestReplays(t *testing.T) {
	// flaky fails the first requests before any record.
	flaky := func(failures int32, asked *atomic.Int32) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if asked.Add(1) <= failures {
				panic(http.ErrAbortHandler)
			}
			body(ndjson, `{"message":{"role":"assistant","content":"ok"},"done":true}`)(w, r)
		}
	}
	for _, tt := range []struct {
		name     string
		failures int32
		retries  int
		asked    int32
		ok       bool
	}{
		{"none allowed", 1, 0, 1, false},
		{"one", 1, 1, 2, true},
		{"only one", 2, 1, 2, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c := serve(t, flaky(tt.failures, &asked), Options{Retries: tt.retries})
			reply, err := c.Chat(t.Context(), hello(), nil)
			if tt.ok && (err != nil || reply.Message.Content != "ok") {
				t.Errorf("%+v, %v", reply, err)
			}
			if !tt.ok {
				failure(t, err, chat.BrokenStream, "ended before an answer: the server closed it")
			}
			if asked.Load() != tt.asked {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	s := httptest.NewServer(body(ndjson, `{"message":{"role":"assistant","content":"ok"},"done":true}`))
	var retries int
	c := client(t, s.URL, Options{Retries: 1, Debug: func(kind, _ string) {
		if kind == "retry" {
			retries++
		}
	}})
	if _, err := c.Chat(t.Context(), hello(), nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	_, err := c.Chat(t.Context(), hello(), nil)
	e := failure(t, err, chat.Unreachable, "no model server at "+s.URL+": connection refused")
	if !strings.Contains(e.Hint, "ollama serve") || !strings.Contains(e.Hint, "--demo") || retries != 1 {
		t.Errorf("%+v, %d retries: a server that was there may come back", e, retries)
	}
	fresh := client(t, s.URL, Options{Retries: 1, Debug: func(kind, _ string) {
		if kind == "retry" {
			t.Error("a server that never answered is not tried again")
		}
	}})
	_, err = fresh.Chat(t.Context(), hello(), nil)
	failure(t, err, chat.Unreachable, "connection refused")
}

func TestConnectionFailures(t *testing.T) {
	raw := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				io.ReadAtLeast(conn, make([]byte, 1024), 1)
				io.WriteString(conn, answer)
				conn.Close()
			}
		}()
		return l.Addr().String()
	}
	plain := httptest.NewServer(body(ndjson, ""))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(body(ndjson, ""))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	tests := []struct {
		name, host string
		kind       chat.Failure
		text       string
	}{
		{"https to a plain server", "https" + strings.TrimPrefix(plain.URL, "http"), chat.Unreachable, "does not speak https"},
		{"plain to an https server", "http" + strings.TrimPrefix(secure.URL, "https"), chat.BadResponse, "HTTPS server"},
		{"unknown certificate", secure.URL, chat.BadResponse, "signed by an unknown authority"},
		{"not HTTP", raw("SSH-2.0-OpenSSH_9.2\r\n"), chat.BadResponse, "no HTTP server"},
		{"closes at once", raw(""), chat.BrokenStream, "the server closed it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, tt.host, Options{})
			_, err := c.Chat(t.Context(), hello(), nil)
			failure(t, err, tt.kind, tt.text)
		})
	}
}

func TestKey(t *testing.T) {
	const key = "sk-very-secret"
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			io.WriteString(w, `{"error":"bad header `+r.Header.Get("Authorization")+`"}`)
		}
	}
	var debug strings.Builder
	c := serve(t, echo(500), Options{APIKey: key, Debug: func(kind, text string) { debug.WriteString(kind + " " + text + "\n") }})
	_, err := c.Chat(t.Context(), hello(), nil)
	e := failure(t, err, chat.ServerFailure, "bad header Bearer [key]")
	if strings.Contains(e.Error()+e.Hint+debug.String(), key) || !strings.Contains(debug.String(), "request POST http://127.0.0.1") {
		t.Errorf("%+v\n%s", e, debug.String())
	}
	// Over plain http to another machine the key stays here.
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the key went over plain http")
		}
		w.WriteHeader(401)
	}))
	t.Cleanup(s.Close)
	remote := client(t, "http://models.example:1", Options{APIKey: key, Proxy: func(*http.Request) (*httpURL, error) { return nil, nil },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
		}})
	_, err = remote.Chat(t.Context(), hello(), nil)
	if e := failure(t, err, chat.Unauthorised, "wants a key"); !strings.Contains(e.Hint, "https") {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, strings.Replace(other.URL, "http://", "http://u:p@", 1)+r.URL.Path+"?t=1", status)
		}, Options{APIKey: "k3y"})
		_, err := c.Chat(t.Context(), hello(), nil)
		failure(t, err, chat.BadResponse, "redirects to "+other.URL+", which is not followed")
	}
}

func TestProxy(t *testing.T) {
	used := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		used++
		body(ndjson, `{"message":{"role":"assistant","content":"through"},"done":true}`)(w, r)
	}))
	t.Cleanup(proxy.Close)
	via := func(*http.Request) (*httpURL, error) { return parseURL(proxy.URL) }
	c := client(t, "http://models.example", Options{Proxy: via})
	if reply, err := c.Chat(t.Context(), hello(), nil); err != nil || reply.Message.Content != "through" {
		t.Errorf("%+v, %v", reply, err)
	}
	local := serve(t, body(ndjson, `{"message":{"role":"assistant","content":"direct"},"done":true}`), Options{Proxy: via})
	if reply, err := local.Chat(t.Context(), hello(), nil); err != nil || reply.Message.Content != "direct" || used != 1 {
		t.Errorf("%+v, %v, proxy used %d times", reply, err, used)
	}
}

func TestConnectionIsReused(t *testing.T) {
	s, err := scripted.Parse(strings.Repeat("> say ok\n\n", 5))
	if err != nil {
		t.Fatal(err)
	}
	var conns atomic.Int32
	server := httptest.NewUnstartedServer(scripted.New(s, scripted.Options{}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	c := client(t, server.URL, Options{})
	for range 5 {
		if _, err := c.Chat(t.Context(), hello(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
