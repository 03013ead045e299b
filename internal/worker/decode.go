package worker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// The decoders read one line of JSON each. What they do not know they pass over: the
// formats grow with every release.

// block is a part of a message of claude, qwen and pi.
type block struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// texts are the texts of a message together. Content may be a plain text too.
func texts(content json.RawMessage) string {
	var plain string
	if json.Unmarshal(content, &plain) == nil {
		return plain
	}
	var parts []string
	for _, b := range blocks(content) {
		if b.Type == "text" && b.Text != "" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func blocks(content json.RawMessage) []block {
	var list []block
	if json.Unmarshal(content, &list) != nil {
		return nil
	}
	return list
}

// about says in few words what a tool is asked to do: its most telling argument.
func about(input json.RawMessage) string {
	var args map[string]json.RawMessage
	if json.Unmarshal(input, &args) != nil {
		return ""
	}
	for _, name := range []string{"command", "file_path", "filePath", "path", "pattern", "query", "url", "description"} {
		var text string
		if json.Unmarshal(args[name], &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// asksPerson reports whether a tool of this name puts a question to a person.
func asksPerson(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", ""))
	return name == "askuserquestion" || name == "askuser" || name == "question"
}

// plainError is the text of an error that may be an object, or JSON inside a text.
func plainError(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		var inner json.RawMessage
		if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &inner) == nil {
			return cmp.Or(plainError(inner), text)
		}
		return text
	}
	var object struct {
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Data    json.RawMessage `json:"data"`
		Name    string          `json:"name"`
	}
	if json.Unmarshal(raw, &object) != nil {
		return ""
	}
	for _, part := range []json.RawMessage{object.Message, object.Error, object.Data} {
		if len(part) > 0 {
			if text := plainError(part); text != "" {
				return text
			}
		}
	}
	return object.Name
}

// decodeClaude reads the stream of claude and of qwen, which took it over.
func decodeClaude(r *reading, line []byte) {
	var e struct {
		Type    string `json:"type"`
		Subtype string `json:"subtype"`
		Model   string `json:"model"`
		Tool    string `json:"tool_name"`
		Parent  string `json:"parent_tool_use_id"`
		Message struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
		IsError bool            `json:"is_error"`
		Result  string          `json:"result"`
		Error   json.RawMessage `json:"error"`
		Usage   Usage           `json:"usage"`
		Denials []struct {
			Tool  string          `json:"tool_name"`
			Input json.RawMessage `json:"tool_input"`
		} `json:"permission_denials"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "system":
		switch e.Subtype {
		case "init":
			r.tell("model", e.Model)
		case "api_retry":
			r.tell("the request is tried again:", plainError(e.Error))
		case "permission_denied":
			r.tell("refused:", e.Tool)
		}
	case "assistant":
		for _, b := range blocks(e.Message.Content) {
			if b.Type == "tool_use" {
				r.tell(b.Name, about(b.Input))
			}
		}
		if e.Parent == "" { // not a message of its own helpers
			r.message(texts(e.Message.Content))
		}
	case "result":
		r.done, r.usage = true, e.Usage
		for _, d := range e.Denials {
			if asksPerson(d.Tool) {
				r.asked = cmp.Or(question(d.Input), "it wants an answer from a person")
				continue
			}
			r.deny(strings.TrimSpace(d.Tool + " " + about(d.Input)))
		}
		if e.IsError || strings.HasPrefix(e.Subtype, "error") {
			r.fail(cmp.Or(e.Result, plainError(e.Error), e.Subtype))
			return
		}
		r.message(e.Result)
	}
}

// question is the first question of a call that asks a person.
func question(input json.RawMessage) string {
	var args struct {
		Question  string `json:"question"`
		Questions []struct {
			Question string `json:"question"`
		} `json:"questions"`
	}
	if json.Unmarshal(input, &args) != nil {
		return ""
	}
	if args.Question == "" && len(args.Questions) > 0 {
		return args.Questions[0].Question
	}
	return args.Question
}

func decodeCodex(r *reading, line []byte) {
	var e struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
		Error   json.RawMessage `json:"error"`
		Usage   Usage           `json:"usage"`
		Item    struct {
			Type    string `json:"type"`
			Text    string `json:"text"`
			Command string `json:"command"`
			Message string `json:"message"`
			Changes []struct {
				Path string `json:"path"`
				Kind string `json:"kind"`
			} `json:"changes"`
		} `json:"item"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	item := e.Item
	switch e.Type + " " + item.Type {
	case "item.started command_execution":
		r.tell("$", item.Command)
	case "item.completed agent_message":
		r.message(item.Text)
	case "item.completed file_change":
		for _, c := range item.Changes {
			r.tell(c.Kind, c.Path)
		}
	case "item.completed error":
		r.tell("note:", item.Message)
	case "error ":
		r.tell("error:", plainError(e.Message)) // it may still try again
	case "turn.started ":
		r.done, r.failure = false, ""
	case "turn.failed ":
		r.done = true
		r.fail(plainError(e.Error))
	case "turn.completed ":
		r.done, r.usage = true, e.Usage
	}
}

func decodeOpencode(r *reading, line []byte) {
	var e struct {
		Type  string          `json:"type"`
		Error json.RawMessage `json:"error"`
		Part  struct {
			Tool   string  `json:"tool"`
			Text   string  `json:"text"`
			Reason string  `json:"reason"`
			Tokens counted `json:"tokens"`
			State  struct {
				Status string          `json:"status"`
				Input  json.RawMessage `json:"input"`
				Error  string          `json:"error"`
			} `json:"state"`
		} `json:"part"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "step_start":
		r.done, r.fresh = false, true
	case "tool_use":
		r.tell(e.Part.Tool, about(e.Part.State.Input))
		if e.Part.State.Status == "error" && strings.Contains(strings.ToLower(e.Part.State.Error), "reject") {
			r.asked = "it stopped for a permission: " + strings.TrimSpace(e.Part.Tool+" "+about(e.Part.State.Input))
		}
	case "text":
		if !r.fresh {
			r.piece("\n")
		}
		r.piece(e.Part.Text)
	case "step_finish":
		r.usage.Input += e.Part.Tokens.Input
		r.usage.Output += e.Part.Tokens.Output
		r.finish(e.Part.Reason, "tool-calls")
	case "error":
		r.fail(plainError(e.Error))
	}
}

// counted is how opencode and pi name what they count.
type counted struct {
	Input  int `json:"input"`
	Output int `json:"output"`
}

// finish takes the reason why a model's reply ended; more is the one after which the
// run goes on.
func (r *reading) finish(reason, more string) {
	switch reason {
	case more:
	case "stop":
		r.done, r.asked = true, ""
	default:
		r.fail("the model's last reply ended early: " + cmp.Or(reason, "no reason given"))
	}
}

func decodePi(r *reading, line []byte) {
	if bytes.HasPrefix(line, []byte(`{"type":"message_update"`)) {
		return // repeats the message with each piece
	}
	var e struct {
		Type    string          `json:"type"`
		Tool    string          `json:"toolName"`
		Args    json.RawMessage `json:"args"`
		Aborted bool            `json:"aborted"`
		Error   json.RawMessage `json:"errorMessage"`
		Message struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Stop    string          `json:"stopReason"`
			Error   string          `json:"errorMessage"`
			Usage   counted         `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "agent_start":
		r.done, r.failure = false, ""
	case "message_end":
		m := e.Message
		if m.Role != "assistant" {
			return
		}
		r.usage.Input += m.Usage.Input
		r.usage.Output += m.Usage.Output
		r.failure = ""
		if m.Stop == "error" || m.Stop == "aborted" {
			r.fail(cmp.Or(m.Error, "the model's reply was "+m.Stop))
			return
		}
		r.message(texts(m.Content))
	case "tool_execution_start":
		r.tell(e.Tool, about(e.Args))
	case "auto_retry_start":
		r.done = false
		r.tell("the request is tried again:", plainError(e.Error))
	case "agent_end":
		r.done = true
	case "agent_settled":
		r.done = true
		if e.Aborted {
			r.fail("it was aborted")
		}
	}
}

func decodeGemini(r *reading, line []byte) {
	var e struct {
		Type    string          `json:"type"`
		Model   string          `json:"model"`
		Role    string          `json:"role"`
		Content string          `json:"content"`
		Delta   bool            `json:"delta"`
		Tool    string          `json:"tool_name"`
		Params  json.RawMessage `json:"parameters"`
		Status  string          `json:"status"`
		Output  string          `json:"output"`
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Stats   Usage           `json:"stats"`
	}
	if json.Unmarshal(line, &e) != nil {
		return
	}
	switch e.Type {
	case "init":
		r.tell("model", e.Model)
	case "message":
		switch {
		case e.Role != "assistant" && e.Role != "model":
		case e.Delta:
			r.piece(e.Content)
		default:
			r.message(e.Content)
		}
	case "tool_use":
		r.fresh = true
		r.tell(e.Tool, about(e.Params))
	case "error":
		r.tell("error:", cmp.Or(e.Message, plainError(e.Error)))
	case "result":
		r.done, r.usage = true, e.Stats
		if e.Status != "success" {
			r.fail(cmp.Or(plainError(e.Error), e.Status))
		}
	}
}

// decodeAgy reads the one document that agy prints. Its form is not documented, so
// several names count.
func decodeAgy(r *reading, doc []byte) {
	var e struct {
		Response string          `json:"response"`
		Result   string          `json:"result"`
		Text     string          `json:"text"`
		IsError  bool            `json:"is_error"`
		Error    json.RawMessage `json:"error"`
		Usage    Usage           `json:"usage"`
	}
	if start := bytes.IndexByte(doc, '{'); start > 0 {
		doc = doc[start:]
	}
	if json.Unmarshal(doc, &e) != nil {
		return
	}
	r.done, r.usage = true, e.Usage
	r.message(cmp.Or(e.Response, e.Result, e.Text))
	if broken := plainError(e.Error); e.IsError || broken != "" {
		r.fail(cmp.Or(broken, e.Result))
	}
}
