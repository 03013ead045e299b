// Package mcpstub is an MCP server for tests, over standard streams, that can behave
// badly. It speaks the protocol by hand, so that it shares nothing with the client
// that it tests. The test binaries run it as a program of its own; nothing else does.
package mcpstub

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Main runs the server with its arguments until its input ends, and returns the exit
// status.
func Main(args []string) int {
	s := &server{out: os.Stdout, cancels: map[string]chan struct{}{}}
	set := flag.NewFlagSet("mcpstub", flag.ContinueOnError)
	set.StringVar(&s.tools, "tools", "", "file with the tools, read for each list; empty is a set of its own")
	set.StringVar(&s.prompts, "prompts", "", "file with the prompts, read for each list; empty is a set of its own")
	set.BoolVar(&s.modern, "modern", false, "speak 2026-07-28")
	set.StringVar(&s.unknown, "unknown", "error", "what an unknown method gets: error, silence or death")
	set.StringVar(&s.noise, "noise", "", "write this before everything else; Go escapes count")
	set.IntVar(&s.pages, "page", 0, "tools on one page; 0 is all")
	deaf := set.Bool("deaf", false, "answer nothing")
	set.BoolVar(&s.chatter, "chatter", false, "write lines that are no messages between messages")
	started := set.String("started", "", "append a line to this file at the start")
	goodbye := set.String("goodbye", "", "append a line to this file when the input ends")
	lines := set.Int("lines", 0, "write so many lines that are no messages, then wait")
	child := set.String("child", "", "start a process that outlives us and write its pid to this file")
	set.StringVar(&s.say, "stderr", "", "write this to standard error")
	if err := set.Parse(args); err != nil {
		return 2
	}
	s.deaf.Store(*deaf)
	if *started != "" {
		appendLine(*started, "started")
	}
	if *child != "" {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			return 2
		}
		appendLine(*child, fmt.Sprint(cmd.Process.Pid))
	}
	if s.say != "" {
		fmt.Fprintln(os.Stderr, s.say)
	}
	s.raw(unescape(s.noise))
	for i := range *lines {
		s.raw(fmt.Sprintf("line %d\n", i))
	}
	status := s.serve(os.Stdin)
	if *goodbye != "" {
		appendLine(*goodbye, "goodbye")
	}
	return status
}

func appendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

func unescape(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\r`, "\r", `\e`, "\x1b", `\ufeff`, "\ufeff").Replace(s)
}

type server struct {
	tools, prompts, unknown, noise, say string
	modern, chatter                     bool
	deaf                                atomic.Bool
	pages                               int

	mu      sync.Mutex
	out     io.Writer
	cancels map[string]chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

func (s *server) raw(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.WriteString(s.out, text)
}

func (s *server) send(v map[string]any) {
	v["jsonrpc"] = "2.0"
	line, err := json.Marshal(v)
	if err != nil {
		return
	}
	if s.chatter {
		s.raw("npm WARN something\n")
	}
	s.raw(string(line) + "\n")
}

func (s *server) result(id json.RawMessage, v any) { s.send(map[string]any{"id": id, "result": v}) }

func (s *server) fail(id json.RawMessage, code int, text string) {
	s.send(map[string]any{"id": id, "error": map[string]any{"code": code, "message": text}})
}

func (s *server) serve(in io.Reader) int {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0
		}
		var m message
		if json.Unmarshal(line, &m) != nil || s.deaf.Load() {
			continue
		}
		if m.Method == "tools/call" {
			go s.call(m)
			continue
		}
		if !s.handle(m) {
			return 7
		}
	}
}

// handle answers all but calls. It reports false when the server is to end.
func (s *server) handle(m message) bool {
	caps := map[string]any{"tools": map[string]any{"listChanged": true}, "resources": map[string]any{}, "prompts": map[string]any{"listChanged": true}}
	info := map[string]any{"name": "stub", "version": "1"}
	switch m.Method {
	case "initialize":
		s.result(m.ID, map[string]any{"protocolVersion": "2025-11-25", "capabilities": caps, "serverInfo": info})
	case "server/discover":
		if s.modern {
			s.result(m.ID, map[string]any{
				"supportedVersions": []string{"2026-07-28"}, "capabilities": caps,
				"_meta": map[string]any{"io.modelcontextprotocol/serverInfo": info}, "resultType": "complete",
			})
			return true
		}
		return s.unknownMethod(m)
	case "subscriptions/listen":
		s.send(map[string]any{"method": "notifications/subscriptions/acknowledged", "params": map[string]any{"notifications": map[string]any{"toolsListChanged": true}}})
	case "notifications/initialized":
	case "notifications/cancelled":
		s.cancelled(m)
	case "tools/list":
		s.list(m)
	case "resources/list":
		s.result(m.ID, map[string]any{"resources": []any{map[string]any{"uri": "note://one", "name": "one"}}})
	case "resources/read":
		s.result(m.ID, map[string]any{"contents": []any{map[string]any{"uri": "note://one", "mimeType": "text/plain", "text": "the note says hello"}}})
	case "prompts/list":
		s.result(m.ID, map[string]any{"prompts": elements(s.prompts, defaultPrompts)})
	case "prompts/get":
		var p struct{ Arguments map[string]string }
		_ = json.Unmarshal(m.Params, &p)
		s.result(m.ID, map[string]any{"messages": []any{map[string]any{
			"role": "user", "content": map[string]any{"type": "text", "text": "Please review " + p.Arguments["file"]},
		}}})
	default:
		return s.unknownMethod(m)
	}
	return true
}

func (s *server) unknownMethod(m message) bool {
	switch {
	case s.unknown == "death":
		return false
	case s.unknown == "error" && m.ID != nil:
		s.fail(m.ID, -32601, "method not found")
	}
	return true
}

func (s *server) cancelled(m message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.cancels[string(p.RequestID)]; ch != nil {
		close(ch)
		delete(s.cancels, string(p.RequestID))
	}
}

// DefaultTools is the set that the server has without -tools.
const DefaultTools = `[
{"name":"echo","description":"Echoes a text.","inputSchema":{"type":"object","properties":{"text":{"type":"string","description":"What to echo"}},"required":["text"]},"annotations":{"readOnlyHint":true}},
{"name":"send_mail","description":"Sends a mail.","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"body":{"type":"string"}},"required":["to"]}},
{"name":"note","description":"Writes a note into the workspace.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":false,"openWorldHint":false}},
{"name":"delete_all","description":"Deletes everything.","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}
]`

const defaultPrompts = `[{"name":"review","description":"Reviews a file","arguments":[{"name":"file","required":true}]}]`

// elements are those of the list in a file, or of the list in other without one.
func elements(file, other string) []json.RawMessage {
	text := []byte(other)
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil
		}
	}
	var list []json.RawMessage
	_ = json.Unmarshal(text, &list)
	return list
}

func (s *server) list(m message) {
	var p struct{ Cursor string }
	_ = json.Unmarshal(m.Params, &p)
	all, at := elements(s.tools, DefaultTools), 0
	_, _ = fmt.Sscan(p.Cursor, &at)
	result := map[string]any{"tools": all}
	if s.pages > 0 {
		end := min(at+s.pages, len(all))
		result["tools"] = all[at:end]
		if end < len(all) {
			result["nextCursor"] = fmt.Sprint(end)
		}
	}
	s.result(m.ID, result)
}

func text(s string) map[string]any {
	return map[string]any{"content": []any{map[string]any{"type": "text", "text": s}}}
}

// call answers a call by what its arguments ask for.
func (s *server) call(m message) {
	var p struct {
		Name      string
		Arguments struct {
			Text string
			Do   string
			N    int
		}
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	a := p.Arguments
	switch a.Do {
	case "crash":
		fmt.Fprintln(os.Stderr, "about to crash")
		os.Exit(9)
	case "hang":
		s.hang(m.ID)
	case "wrong-id":
		s.result(json.RawMessage("99999"), text("for nobody"))
		s.result(m.ID, text("right"))
	case "twice":
		s.result(m.ID, text("first"))
		s.result(m.ID, text("second"))
	case "big":
		s.result(m.ID, text(strings.Repeat("x", a.N)))
	case "parts":
		s.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[` + strings.Repeat(`{"type":"text","text":"x"},`, a.N) + `{"type":"text","text":"last"}]}}` + "\n")
	case "structured":
		s.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[],"structuredContent":[` + strings.Repeat(`1,`, a.N) + `1]}}` + "\n")
	case "bad-error":
		s.raw(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":1,"message":"no","data":[` + strings.Repeat(`1,`, a.N) + `1]}}` + "\n")
	case "notice":
		s.raw(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":[` + strings.Repeat(`1,`, a.N) + `1]}}` + "\n")
		s.result(m.ID, text("noticed"))
	case "endless":
		s.endless()
	case "progress":
		for i := range a.N {
			s.send(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": p.Meta.Token, "progress": i + 1, "total": a.N, "message": "step"}})
			time.Sleep(150 * time.Millisecond) // longer than the pause between two lines that are shown
		}
		s.result(m.ID, text("done"))
	case "env":
		env := os.Environ()
		slices.Sort(env)
		s.result(m.ID, text(strings.Join(env, "\n")))
	case "changed":
		s.send(map[string]any{"method": "notifications/tools/list_changed"})
		s.result(m.ID, text("told"))
	case "storm":
		for range a.N {
			s.send(map[string]any{"method": "notifications/tools/list_changed"})
		}
		s.result(m.ID, text("stormed"))
	case "flood":
		for i := range a.N {
			s.send(map[string]any{"method": "notifications/progress", "params": map[string]any{"progressToken": p.Meta.Token, "progress": float64(i) * 1e300, "message": a.Text}})
		}
		s.result(m.ID, text("flooded"))
	case "deaf":
		s.deaf.Store(true)
		s.send(map[string]any{"method": "notifications/tools/list_changed"})
		s.result(m.ID, text("deaf now"))
	case "prompts-changed":
		s.send(map[string]any{"method": "notifications/prompts/list_changed"})
		s.result(m.ID, text("told"))
	case "error":
		s.result(m.ID, map[string]any{"isError": true, "content": []any{
			map[string]any{"type": "text", "text": "it failed"}, map[string]any{"type": "text", "text": "and this is why"},
		}})
	case "image":
		s.result(m.ID, map[string]any{"content": []any{
			map[string]any{"type": "text", "text": "a picture"},
			map[string]any{"type": "image", "mimeType": "image/png", "data": base64.StdEncoding.EncodeToString([]byte("png"))},
			map[string]any{"type": "hologram", "data": "AAAA"},
		}})
	case "ask":
		s.send(map[string]any{"id": "q1", "method": "ping"})
		s.result(m.ID, text("asked"))
	default:
		s.result(m.ID, text(p.Name+": "+a.Text))
	}
}

// hang waits for the cancelling of a call, and answers after it.
func (s *server) hang(id json.RawMessage) {
	ch := make(chan struct{})
	s.mu.Lock()
	s.cancels[string(id)] = ch
	s.mu.Unlock()
	<-ch
	fmt.Fprintln(os.Stderr, "cancelled "+string(id))
	s.result(id, text("too late"))
}

// endless writes one line without an end, for as long as it seems.
func (s *server) endless() {
	block := strings.Repeat("y", 1<<20)
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 24 {
		_, _ = io.WriteString(s.out, block)
	}
	_, _ = io.WriteString(s.out, "\n")
}
