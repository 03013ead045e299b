package scripted

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func start(t *testing.T, script string, o Options) (*Server, string) {
	t.Helper()
	s, err := Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	server := New(s, o)
	url, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return server, url
}

// post returns the status and the lines of the answer.
func post(t *testing.T, url, path, body string) (int, []string) {
	t.Helper()
	r, err := http.Post(url+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.Split(strings.TrimSpace(string(b)), "\n")
}

func ask(messages string) string {
	return `{"model":"test-model","messages":[{"role":"user","content":"go"}` + messages + `]}`
}

func TestReplies(t *testing.T) {
	now := func() time.Time { return time.Unix(0, 0) }
	const head = `{"created_at":"1970-01-01T00:00:00Z","done":false,"message":{"content":`
	const tail = `,"role":"assistant"},"model":"test-model"}`
	tests := []struct {
		name, script string
		status       int
		lines        []string // without the last record
		reason       string   // of the last record; empty when there is none
	}{
		{"words", "> say a bc\n", 200, []string{head + `"a "` + tail, head + `"bc"` + tail}, "stop"},
		{"lines", "> say a\n|\n| b\n", 200, []string{head + `"a\n\n"` + tail, head + `"b"` + tail}, "stop"},
		{"thinking", "> think hm\n> done length\n", 200, []string{head + `""` + `,"role":"assistant","thinking":"hm"},"model":"test-model"}`}, "length"},
		{"call", "> call read_file {\"path\": \"a\"}\n", 200, []string{head + `"","role":"assistant","tool_calls":[{"function":` +
			`{"arguments":{"path":"a"},"index":0,"name":"read_file"},"id":"call_00000001"}]},"model":"test-model"}`}, "stop"},
		{"raw", "> raw {\"x\":1}\n", 200, []string{`{"x":1}`}, "stop"},
		{"error", "> say a\n> error the runner died\n", 200, []string{head + `"a"` + tail, `{"error":"the runner died"}`}, ""},
		{"status", "> status 500 {\"error\":\"x\"}\n", 500, []string{`{"error":"x"}`}, ""},
		{"eof", "> say a\n> eof\n", 200, []string{head + `"a"` + tail}, ""},
		{"empty stream", "> eof\n", 200, []string{""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server, url := start(t, tt.script, Options{Now: now})
			status, lines := post(t, url, "/api/chat", ask(""))
			if tt.reason != "" {
				var last struct {
					Done   bool   `json:"done"`
					Reason string `json:"done_reason"`
				}
				json.Unmarshal([]byte(lines[len(lines)-1]), &last)
				if !last.Done || last.Reason != tt.reason {
					t.Errorf("last record %s", lines[len(lines)-1])
				}
				lines = lines[:len(lines)-1]
			}
			if status != tt.status || !reflect.DeepEqual(lines, tt.lines) {
				t.Errorf("got %d\n%q\nwant %d\n%q", status, lines, tt.status, tt.lines)
			}
			if n := server.Unused(); n != 0 {
				t.Errorf("unused %d", n)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for name, tt := range map[string]struct{ script, want string }{
		"prose":            {"hello", `script line 1: expected a line beginning with`},
		"unknown":          {"\n> shout x", `script line 2: shout: unknown directive`},
		"bad arguments":    {"> call f {", `script line 1: call: expected NAME and JSON`},
		"mixed":            {"> version 1\n> say x", `settings and a reply in one block`},
		"after the end":    {"> eof\n> say x", `"say" after "eof"`},
		"late status":      {"> say x\n> status 500", `status after the stream began`},
		"no status":        {"> status 9", `9 is not an HTTP status`},
		"lonely tail":      {"| x", `continuation line without a directive`},
		"bad pause":        {"> pause long", `script line 1: pause`},
		"unknown property": {"> model m size=1 colour=red", `unknown attribute "colour=red"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tt.script)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReportsWhatGoesAgainstTheScript(t *testing.T) {
	server, url := start(t, "> expect needle\n> say a\n\n> expect-last zap\n> say b\n\n> expect-not go\n> say c\n\n> say d\n", Options{})
	for range 3 {
		if status, lines := post(t, url, "/api/chat", ask("")); status != 500 {
			t.Errorf("%d %q", status, lines)
		}
	}
	if n := server.Unused(); n != 1 {
		t.Errorf("unused %d, want 1", n)
	}
	post(t, url, "/api/chat", ask(""))
	_, lines := post(t, url, "/api/chat", ask(""))
	if lines[0] != `{"error":"the script has no reply left: all 4 were used"}` {
		t.Errorf("got %q", lines)
	}
	if f := server.Failures(); len(f) != 4 || !strings.Contains(f[0], `line 1: expected the request to contain "needle"`) {
		t.Errorf("failures %q", f)
	}
}

func TestConditionsAndEnding(t *testing.T) {
	_, url := start(t, "> if denied\n> say one\n\n> unless denied\n> say two\n", Options{Ending: "over"})
	var got []string
	for range 2 {
		_, lines := post(t, url, "/api/chat", ask(""))
		got = append(got, lines[0])
	}
	if !strings.Contains(got[0], `"two"`) || !strings.Contains(got[1], `"over"`) {
		t.Errorf("got %q", got)
	}
}

func TestPrefixCache(t *testing.T) {
	server, url := start(t, strings.Repeat("> say ok\n\n", 4), Options{})
	long := strings.Repeat("word ", 400)
	req := func(ctx, system, more string) string {
		return `{"model":"test-model","options":{"num_ctx":` + ctx + `},"tools":[{"x":1}],"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` + long + `"}` + more + `]}`
	}
	post(t, url, "/api/chat", req("8192", "s", ""))
	post(t, url, "/api/chat", req("8192", "s", `,{"role":"user","content":"more"}`))
	post(t, url, "/api/chat", req("8192", "S", ""))
	post(t, url, "/api/chat", req("4096", "S", ""))
	c := server.Chats()
	if c[1].CommonPrefix != c[0].PromptBytes {
		t.Errorf("appended: common prefix %d of %d", c[1].CommonPrefix, c[0].PromptBytes)
	}
	if c[0].EvaluatedTokens != c[0].PromptTokens || c[1].EvaluatedTokens > 20 || c[2].EvaluatedTokens < 500 {
		t.Errorf("evaluated %d, %d, %d", c[0].EvaluatedTokens, c[1].EvaluatedTokens, c[2].EvaluatedTokens)
	}
	if c[2].CommonPrefix >= 60 || !c[3].Reloaded || c[2].Reloaded || c[3].EvaluatedTokens != c[3].PromptTokens {
		t.Errorf("%+v", c[2:])
	}
	if w := server.Windows(); !reflect.DeepEqual(w, []int{8192, 4096}) {
		t.Errorf("windows %v", w)
	}
}

func TestRefusesAsTheRealServer(t *testing.T) {
	server, url := start(t, "> model plain notools\n> model test-model\n> model thinker thinking\n\n> say x\n", Options{})
	long := strings.Repeat("word ", 8000)
	for name, tt := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"missing":       {`{"model":"nope:7b","messages":[{"role":"user","content":"x"}]}`, 404, `model 'nope:7b' not found`},
		"no tools":      {`{"model":"plain","tools":[{}],"messages":[{"role":"user","content":"x"}]}`, 400, `does not support tools`},
		"no thinking":   {`{"model":"plain","think":true,"messages":[{"role":"user","content":"x"}]}`, 400, `\"plain\" does not support thinking`},
		"level":         {`{"model":"thinker","think":"high","messages":[{"role":"user","content":"x"}]}`, 400, `think value \"high\" is not supported`},
		"text as args":  {ask(`,{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}`), 400, `Value looks like object`},
		"overflow":      {`{"model":"test-model","truncate":false,"messages":[{"role":"user","content":"` + long + `"}]}`, 400, `the input length exceeds the context length`},
		"content parts": {`{"model":"test-model","messages":[{"role":"user","content":[]}]}`, 400, `cannot unmarshal`},
		"empty":         {``, 400, `missing request body`},
		"unknown path":  {`x`, 404, `404 page not found`},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/api/chat"
			if name == "unknown path" {
				path = "/api/nope"
			}
			status, lines := post(t, url, path, tt.body)
			if status != tt.status || !strings.Contains(lines[0], tt.want) {
				t.Errorf("got %d %q", status, lines)
			}
		})
	}
	if server.Unused() != 1 {
		t.Error("a refused request used a reply")
	}
	_, lines := post(t, url, "/api/chat", `{"model":"test-model","messages":[{"role":"user","content":"`+long+`"}]}`)
	if last := lines[len(lines)-1]; !strings.Contains(last, `"prompt_eval_count":4096`) {
		t.Errorf("a cut prompt counts as the window: %s", last)
	}
}

func TestFacts(t *testing.T) {
	server, url := start(t, "> model big:30b thinking vision ctx=262144 num_ctx=8192 family=qwen3\n> version 1.2.3\n\n> pullable new ctx=100\n", Options{})
	get := func(path string) string {
		r, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return string(b)
	}
	if got := get("/"); got != "Ollama is running" {
		t.Errorf("root %q", got)
	}
	if got := get("/api/version"); got != `{"version":"1.2.3"}` {
		t.Errorf("version %q", got)
	}
	if got := get("/api/ps"); got != `{"models":[]}` {
		t.Errorf("ps %q", got)
	}
	post(t, url, "/api/chat", `{"model":"big:30b","messages":[]}`)
	if got := get("/api/ps"); !strings.Contains(got, `"context_length":8192`) {
		t.Errorf("ps %q", got)
	}
	_, lines := post(t, url, "/api/chat", `{"model":"big:30b","messages":[],"keep_alive":0}`)
	if got := get("/api/ps"); got != `{"models":[]}` || !strings.Contains(lines[0], `"unload"`) {
		t.Errorf("ps %q after %q", got, lines)
	}
	_, lines = post(t, url, "/api/show", `{"model":"big:30b"}`)
	for _, want := range []string{`"capabilities":["completion","vision","tools","thinking"]`, `"qwen3.context_length":262144`, `num_ctx                        8192`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("show has no %s: %s", want, lines[0])
		}
	}
	_, lines = post(t, url, "/api/pull", `{"model":"new"}`)
	if last := lines[len(lines)-1]; last != `{"status":"success"}` || !strings.Contains(get("/api/tags"), `"new:latest"`) {
		t.Errorf("pull %q", lines)
	}
	if status, lines := post(t, url, "/api/pull", `{"model":"nowhere"}`); status != 500 {
		t.Errorf("pull %d %q", status, lines)
	}
	if len(server.Chats()) != 0 {
		t.Error("loading counted as a chat")
	}
}

func TestWarmUpUsesNoReply(t *testing.T) {
	server, url := start(t, "> say x\n", Options{})
	_, lines := post(t, url, "/api/chat", `{"model":"test-model","messages":[{"role":"system","content":"s"}]}`)
	if server.Unused() != 1 || len(lines) != 1 || !strings.Contains(lines[0], `"done":true`) {
		t.Errorf("unused %d, %q", server.Unused(), lines)
	}
}

func TestRespond(t *testing.T) {
	n := 0
	server, url := start(t, "> say from the script\n", Options{Respond: func(r Recorded) string {
		if n++; n == 2 {
			return ""
		}
		return "> say made up"
	}})
	var got []string
	for range 3 {
		_, lines := post(t, url, "/api/chat", ask(""))
		got = append(got, lines[0])
	}
	if !strings.Contains(got[0], "made") || !strings.Contains(got[1], "from") || !strings.Contains(got[2], "made") || server.Unused() != 0 {
		t.Errorf("%q", got)
	}
}

func TestStreamsAndSeesTheClientLeave(t *testing.T) {
	server, url := start(t, "> say first second\n> hang\n", Options{})
	r, err := http.Post(url+"/api/chat", "application/json", strings.NewReader(ask("")))
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(r.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, `"first "`) {
		t.Fatalf("%q, %v", line, err)
	}
	r.Body.Close()
	for !server.Requests()[0].Gone {
		time.Sleep(time.Millisecond) // the server notices through the network
	}
}

func TestCutConnection(t *testing.T) {
	_, url := start(t, "> say x\n> close\n", Options{})
	r, err := http.Post(url+"/api/chat", "application/json", strings.NewReader(ask("")))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadAll(r.Body); err == nil {
		t.Error("the stream ended cleanly")
	}
}

func TestUsage(t *testing.T) {
	_, url := start(t, "> say x\n> usage 1200 34\n", Options{})
	_, lines := post(t, url, "/api/chat", ask(""))
	if last := lines[len(lines)-1]; !strings.Contains(last, `"prompt_eval_count":1200`) || !strings.Contains(last, `"eval_count":34`) {
		t.Error(last)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("> say a\n| b\n---\n> call f {\"a\":1}\n> done length\n")
	f.Add("> model m tools ctx=5\n> loaded m ctx=5\n\n> if x\n> error y\n")
	f.Add("> usage 1 2\n> pause 0s\n> status 200 <html>\n")
	f.Fuzz(func(t *testing.T, text string) {
		script, err := Parse(text)
		if err != nil || strings.Contains(text, "pause") || strings.Contains(text, "hang") {
			return
		}
		// Whatever was accepted can be played.
		s := New(script, Options{})
		for range len(script.replies) {
			func() {
				defer func() {
					if p := recover(); p != nil && p != http.ErrAbortHandler {
						panic(p)
					}
				}()
				s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/api/chat", strings.NewReader(ask(""))))
			}()
		}
	})
}
