// Package acpstub is an editor that drives a program over the Agent Client Protocol
// from a script and writes down what it was shown.
//
// It knows the protocol's messages by itself and shares no code with the agent or its
// SDK. Tests alone call it.
//
// A script has a command on each line:
//
//	initialize                 the first request
//	new DIR                    begin a session
//	load DIR                   open the last session again; resume and close likewise
//	list N                     list the sessions, and take the Nth as the last session
//	mode NAME                  set the mode
//	server JSON                an MCP server for the next new or load
//	prompt TEXT                send a prompt, and wait for its end
//	blocks JSON                send a prompt of these blocks
//	click OPTION               the answer to the next permission request that has none
//	                           yet; cancelled closes it, none leaves it open
//	at TEXT: cancel            when a message of the agent holds TEXT: cancel the prompt
//	at TEXT: input MODE TEXT   send input for the running turn
//	at TEXT: hangup            close the connection
//	at TEXT: touch FILE        make a file
//	raw TEXT                   send a line, and wait for an answer
//	run COMMAND                run another program meanwhile, to its end
//
// $DIR in JSON is the directory that the stub runs in.
package acpstub

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Main plays the script args[0] against the command that follows, and returns an exit
// status: 0 when the program ended by itself, with 0, after the connection was closed.
func Main(args []string) int {
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: acpstub SCRIPT COMMAND…")
		return 2
	}
	if err := run(args[0], args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "acpstub:", err)
		return 1
	}
	return 0
}

// patience is how long the program may take for anything.
const patience = 40 * time.Second

func run(script string, argv []string) error {
	text, err := os.ReadFile(script)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	e := &editor{dir: dir, in: in, lines: make(chan []byte, 100)}
	go e.read(out)
	err = e.play(string(text))
	in.Close()
	err = errors.Join(err, e.drain())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case werr := <-ended:
		return errors.Join(err, werr)
	case <-time.After(patience):
		return errors.Join(err, errors.New("the program goes on after the end of its input"), cmd.Process.Kill())
	}
}

// trigger is what to do at a message.
type trigger struct{ text, action string }

type editor struct {
	dir      string
	in       io.WriteCloser
	lines    chan []byte // of the program; closed at its end
	id       int
	session  string
	nth      string // which session of a list to take
	servers  []json.RawMessage
	clicks   []string
	triggers []trigger
	saying   string // what the last chunk was
}

// read takes the program's lines. They are all protocol, or the line says so.
func (e *editor) read(out io.Reader) {
	defer close(e.lines)
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			e.lines <- line
		}
		if err != nil {
			return
		}
	}
}

// play runs the commands of a script.
func (e *editor) play(script string) error {
	for line := range strings.Lines(script) {
		line = strings.TrimSuffix(line, "\n")
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "" || verb[0] == '#' {
			continue
		}
		if err := e.command(verb, rest); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (e *editor) command(verb, rest string) error {
	place := map[string]any{"cwd": filepath.Join(e.dir, rest), "mcpServers": e.servers, "sessionId": e.session}
	if e.servers == nil {
		place["mcpServers"] = []any{}
	}
	switch verb {
	case "initialize":
		return e.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"fs": map[string]any{"readTextFile": true, "writeTextFile": true}, "terminal": true}})
	case "new":
		delete(place, "sessionId")
		return e.call("session/new", place)
	case "load", "resume":
		return e.call("session/"+verb, place)
	case "close":
		return e.call("session/close", map[string]any{"sessionId": e.session})
	case "list":
		e.nth = strings.TrimSpace(rest)
		return e.call("session/list", map[string]any{})
	case "mode":
		return e.call("session/set_mode", map[string]any{"sessionId": e.session, "modeId": rest})
	case "server":
		e.servers = append(e.servers, json.RawMessage(e.expand(rest)))
		return nil
	case "prompt":
		return e.call("session/prompt", map[string]any{"sessionId": e.session, "prompt": []any{map[string]any{"type": "text", "text": rest}}})
	case "blocks":
		return e.call("session/prompt", map[string]any{"sessionId": e.session, "prompt": json.RawMessage(e.expand(rest))})
	case "click":
		e.clicks = append(e.clicks, rest)
		return nil
	case "at":
		text, action, ok := strings.Cut(rest, ": ")
		if !ok {
			return errors.New("say at TEXT: ACTION")
		}
		e.triggers = append(e.triggers, trigger{text, action})
		return nil
	case "run":
		words := strings.Fields(e.expand(rest))
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Stderr = os.Stderr
		return cmd.Run()
	case "raw":
		if err := e.write([]byte(e.expand(rest) + "\n")); err != nil {
			return err
		}
		return e.until(func(m map[string]any) bool { return m["method"] == nil })
	}
	return errors.New("no such command")
}

func (e *editor) expand(text string) string { return strings.ReplaceAll(text, "$DIR", e.dir) }

func (e *editor) write(line []byte) error {
	_, err := e.in.Write(line)
	return err
}

func (e *editor) send(m map[string]any) error {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return e.write(append(line, '\n'))
}

// call sends a request and waits for its answer.
func (e *editor) call(method string, params any) error {
	e.id++
	id := float64(e.id)
	if err := e.send(map[string]any{"id": id, "method": method, "params": params}); err != nil {
		return err
	}
	return e.until(func(m map[string]any) bool { return m["method"] == nil && m["id"] == id })
}

// until handles messages up to one.
func (e *editor) until(last func(map[string]any) bool) error {
	limit := time.After(patience)
	for {
		select {
		case line, open := <-e.lines:
			if !open {
				return errors.New("the program ended")
			}
			m, err := e.take(line)
			if err != nil || last(m) {
				return err
			}
		case <-limit:
			return errors.New("no answer")
		}
	}
}

// drain handles what comes until the program closes its output.
func (e *editor) drain() error {
	err := e.until(func(map[string]any) bool { return false })
	e.say("", "")
	if err != nil && err.Error() != "the program ended" {
		return err
	}
	return nil
}

// take writes down one message and answers it.
func (e *editor) take(line []byte) (map[string]any, error) {
	var m map[string]any
	if err := json.Unmarshal(line, &m); err != nil || m["jsonrpc"] != "2.0" {
		return nil, fmt.Errorf("no message of the protocol on stdout: %q", line)
	}
	params, _ := m["params"].(map[string]any)
	var err error
	switch m["method"] {
	case "session/update":
		e.update(params["update"].(map[string]any))
	case "session/request_permission":
		err = e.permit(m["id"], params)
	case nil:
		e.answered(m)
	default:
		e.say("asks for", fmt.Sprint(m["method"]))
	}
	if err == nil {
		err = e.pull(string(line))
	}
	return m, err
}

// pull does what is to be done at a message that holds a text.
func (e *editor) pull(line string) error {
	var kept []trigger
	var errs []error
	for _, t := range e.triggers {
		if !strings.Contains(line, t.text) {
			kept = append(kept, t)
			continue
		}
		e.say("does", t.action)
		errs = append(errs, e.act(t.action))
	}
	e.triggers = kept
	return errors.Join(errs...)
}

func (e *editor) act(action string) error {
	verb, rest, _ := strings.Cut(action, " ")
	switch verb {
	case "cancel":
		return e.send(map[string]any{"method": "session/cancel", "params": map[string]any{"sessionId": e.session}})
	case "input":
		mode, text, _ := strings.Cut(rest, " ")
		e.id++
		return e.send(map[string]any{"id": e.id, "method": "_zcoder/input", "params": map[string]any{"sessionId": e.session, "mode": mode, "text": text, "messageId": fmt.Sprint("m", e.id)}})
	case "hangup":
		return e.in.Close()
	case "touch":
		return os.WriteFile(filepath.Join(e.dir, rest), nil, 0o600)
	}
	return errors.New("no such action")
}

// permit answers a permission request with the next click.
func (e *editor) permit(id any, params map[string]any) error {
	call := params["toolCall"].(map[string]any)
	var options []string
	for _, o := range params["options"].([]any) {
		options = append(options, fmt.Sprint(o.(map[string]any)["optionId"]))
	}
	e.say("ask", fmt.Sprintf("%s [%s]", call["title"], strings.Join(options, " ")))
	e.content(call["content"])
	click := "cancelled"
	if len(e.clicks) > 0 {
		click, e.clicks = e.clicks[0], e.clicks[1:]
	}
	if click == "none" {
		e.say("click", "left open")
		return nil
	}
	e.say("click", click)
	outcome := map[string]any{"outcome": "selected", "optionId": click}
	if click == "cancelled" {
		outcome = map[string]any{"outcome": "cancelled"}
	}
	return e.send(map[string]any{"id": id, "result": map[string]any{"outcome": outcome}})
}

func (e *editor) answered(m map[string]any) {
	if failure, ok := m["error"].(map[string]any); ok {
		text := fmt.Sprint(failure["message"])
		if data, ok := failure["data"].(map[string]any); ok && data["hint"] != nil {
			text += fmt.Sprintf(" (%v)", data["hint"])
		}
		e.say("error", text)
		return
	}
	result, _ := m["result"].(map[string]any)
	if id, ok := result["sessionId"].(string); ok {
		e.session = id
	}
	switch {
	case result["stopReason"] != nil:
		e.say("end", fmt.Sprint(result["stopReason"]))
	case result["sessions"] != nil:
		for i, s := range result["sessions"].([]any) {
			s := s.(map[string]any)
			if fmt.Sprint(i+1) == e.nth {
				e.session = s["sessionId"].(string)
			}
			e.say("session", fmt.Sprintf("%v in %v", s["title"], s["cwd"]))
		}
	default:
		delete(result, "sessionId")
		text, _ := json.Marshal(result) // it was JSON
		e.say("result", string(text))
	}
}

func (e *editor) update(u map[string]any) {
	kind := fmt.Sprint(u["sessionUpdate"])
	text := func() string {
		block, _ := u["content"].(map[string]any)
		return fmt.Sprint(block["text"])
	}
	switch kind {
	case "agent_message_chunk":
		e.say("say", text())
	case "agent_thought_chunk":
		e.say("think", text())
	case "user_message_chunk":
		e.say("user", text())
	case "tool_call":
		e.say("call", fmt.Sprintf("%s · %s · %s%s", u["title"], u["kind"], u["status"], places(u)))
		e.content(u["content"])
	case "tool_call_update":
		status := "output"
		if u["status"] != nil {
			status = fmt.Sprint(u["status"])
		}
		e.say("update", status+places(u))
		e.content(u["content"])
	case "plan":
		var parts []string
		for _, p := range u["entries"].([]any) {
			p := p.(map[string]any)
			parts = append(parts, fmt.Sprintf("%s (%s)", p["content"], p["status"]))
		}
		e.say("plan", strings.Join(parts, "; "))
	case "available_commands_update":
		var names []string
		for _, c := range u["availableCommands"].([]any) {
			names = append(names, "/"+fmt.Sprint(c.(map[string]any)["name"]))
		}
		e.say("commands", strings.Join(names, " "))
	case "session_info_update":
		e.say("title", fmt.Sprint(u["title"]))
	default:
		e.say(kind, "")
	}
}

func places(u map[string]any) string {
	var b strings.Builder
	list, _ := u["locations"].([]any)
	for _, l := range list {
		l := l.(map[string]any)
		fmt.Fprintf(&b, " @%s", l["path"])
		if l["line"] != nil {
			fmt.Fprintf(&b, ":%v", l["line"])
		}
	}
	return b.String()
}

// content writes the content of a call below it.
func (e *editor) content(content any) {
	list, _ := content.([]any)
	for _, c := range list {
		c := c.(map[string]any)
		text := ""
		if c["type"] == "diff" {
			text = fmt.Sprintf("diff %s\nold: %v\nnew: %v", c["path"], c["oldText"], c["newText"])
		} else if block, ok := c["content"].(map[string]any); ok {
			text = fmt.Sprint(block["text"])
		}
		fmt.Println("  | " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  | "))
	}
}

// say writes a line of the record; chunks of one kind stand on one line.
func (e *editor) say(kind, text string) {
	chunk := kind == "say" || kind == "think" || kind == "user"
	text = strings.ReplaceAll(text, "\n", "⏎")
	if chunk && kind == e.saying {
		fmt.Print(text)
		return
	}
	if e.saying != "" {
		fmt.Println()
	}
	e.saying = ""
	switch {
	case chunk:
		fmt.Print(kind + ": " + text)
		e.saying = kind
	case kind != "":
		fmt.Println(kind + ": " + text)
	}
}
