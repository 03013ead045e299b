package worker

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// standIn is a model server that speaks the four APIs of the real workers. Its model
// writes one file when it has a tool for that, and then answers.
type standIn struct {
	url  string
	file string // absolute

	mu   sync.Mutex
	seen []string // paths of the requests
}

func startStandIn(t *testing.T) *standIn {
	t.Helper()
	s := &standIn{}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *standIn) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

const standInAnswer = "the stand-in answers"

// call is a tool call, or none when its name is empty.
type call struct {
	name string
	args map[string]any
}

func (s *standIn) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.seen = append(s.seen, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	var c call
	if strings.Contains(string(body), "make the file") && !answered(string(body)) {
		c = s.choose(body)
	}
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/responses"):
		stream(w, responses(c))
	case strings.HasSuffix(path, "/messages"):
		stream(w, messages(c))
	case strings.HasSuffix(path, "/chat/completions"):
		stream(w, completions(c))
	case strings.HasSuffix(path, ":streamGenerateContent"):
		stream(w, generated(c))
	case strings.HasSuffix(path, ":generateContent"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.TrimPrefix(generated(call{})[0], "data: "))
	case strings.HasSuffix(path, "count_tokens"), strings.HasSuffix(path, ":countTokens"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"input_tokens":10,"totalTokens":10}`)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"stub","object":"model"}],"models":[]}`)
	}
}

// answered reports whether a request holds the result of a tool.
func answered(body string) bool {
	for _, sign := range []string{`"tool_result"`, `"role":"tool"`, `"function_call_output"`, `"custom_tool_call_output"`, `"functionResponse"`} {
		if strings.Contains(body, sign) {
			return true
		}
	}
	return false
}

// choose finds a tool that can write a file among those of the request.
func (s *standIn) choose(body []byte) call {
	var all any
	if json.Unmarshal(body, &all) != nil {
		return call{}
	}
	best := call{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if name, ok := v["name"].(string); ok && best.name == "" {
				if args := s.args(name, v); args != nil {
					best = call{name: name, args: args}
				}
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(all)
	return best
}

// args are those that make the file, by the names that the tool's schema has.
func (s *standIn) args(name string, tool map[string]any) map[string]any {
	if !slices.Contains([]string{"Write", "write", "write_file", "exec_command", "shell", "shell_command"}, name) {
		return nil
	}
	var properties map[string]any
	for _, key := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		if schema, ok := tool[key].(map[string]any); ok {
			properties, _ = schema["properties"].(map[string]any)
		}
	}
	shell := "echo made > " + s.file
	args := map[string]any{}
	for key, about := range properties {
		kind, _ := about.(map[string]any)["type"].(string)
		switch {
		case key == "file_path" || key == "filePath" || key == "path":
			args[key] = s.file
		case key == "content":
			args[key] = "made\n"
		case key == "cmd" || key == "command" && kind == "string":
			args[key] = shell
		case key == "command":
			args[key] = []string{"sh", "-c", shell}
		}
	}
	if len(args) == 0 {
		return nil
	}
	return args
}

func stream(w http.ResponseWriter, lines []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, l := range lines {
		fmt.Fprint(w, l+"\n\n")
	}
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func typedEvents(events []string) []string {
	var lines []string
	for _, e := range events {
		var head struct{ Type string }
		if json.Unmarshal([]byte(e), &head) != nil {
			panic(e)
		}
		lines = append(lines, "event: "+head.Type+"\ndata: "+e)
	}
	return lines
}

func responses(c call) []string {
	item := `{"type":"message","role":"assistant","id":"m1","content":[{"type":"output_text","text":"` + standInAnswer + `"}]}`
	if c.name != "" {
		item = `{"type":"function_call","id":"f1","call_id":"c1","name":"` + c.name + `","arguments":` + quoted(quoted(c.args)) + `}`
	}
	return typedEvents([]string{
		`{"type":"response.created","response":{"id":"r1"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":10,"input_tokens_details":null,"output_tokens":2,"output_tokens_details":null,"total_tokens":12}}}`,
	})
}

func messages(c call) []string {
	start, delta, reason := `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+standInAnswer+`"}`, "end_turn"
	if c.name != "" {
		start = `{"type":"tool_use","id":"toolu_1","name":"` + c.name + `","input":{}}`
		delta, reason = `{"type":"input_json_delta","partial_json":`+quoted(quoted(c.args))+`}`, "tool_use"
	}
	return typedEvents([]string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"stub","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + start + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`,
	})
}

func completions(c call) []string {
	delta, reason := `{"role":"assistant","content":"`+standInAnswer+`"}`, "stop"
	if c.name != "" {
		delta = `{"role":"assistant","tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"` + c.name + `","arguments":` + quoted(quoted(c.args)) + `}}]}`
		reason = "tool_calls"
	}
	chunk := func(delta, reason string) string {
		return `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"stub","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + reason + `}]}`
	}
	return []string{
		chunk(delta, "null"), chunk("{}", `"`+reason+`"`),
		`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"stub","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`,
		"data: [DONE]",
	}
}

func generated(c call) []string {
	part := `{"text":"` + standInAnswer + `"}`
	if c.name != "" {
		part = `{"functionCall":{"name":"` + c.name + `","args":` + quoted(c.args) + `}}`
	}
	return []string{`data: {"candidates":[{"content":{"role":"model","parts":[` + part + `]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2,"totalTokenCount":12}}`}
}
