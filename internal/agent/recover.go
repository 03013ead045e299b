package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"zcoder/internal/chat"
	"zcoder/tools"
)

// recoverCalls reads tool calls that a model wrote as text. They count only when the
// reply is nothing else than the calls, inside their tags or one fence, and each
// name is a tool's: an example inside prose is never run.
func recoverCalls(content string, reg *tools.Registry) []chat.ToolCall {
	text := strings.TrimSpace(content)
	for _, read := range []func(string) []chat.ToolCall{readTagged, readXML, readPlanner, readFenced, readBare} {
		if calls := read(text); known(calls, reg) {
			return calls
		}
	}
	return nil
}

func known(calls []chat.ToolCall, reg *tools.Registry) bool {
	for _, c := range calls {
		if _, err := reg.Lookup(c.Name); err != nil {
			return false
		}
	}
	return len(calls) > 0
}

// mentionsCall reports whether a reply holds something that looks like a call of a
// known tool among other text.
func mentionsCall(content string, reg *tools.Registry) bool {
	if !strings.Contains(content, "<tool_call>") && !strings.Contains(content, "<function=") && !strings.Contains(content, `"arguments"`) {
		return false
	}
	for _, name := range reg.Names() {
		if strings.Contains(content, `"`+name+`"`) || strings.Contains(content, "<function="+name+">") {
			return true
		}
	}
	return false
}

var (
	oneTag = regexp.MustCompile(`(?s)<(?:tool_call|function_call|tool|tools)>(.*?)(?:</(?:tool_call|function_call|tool|tools)>|$)`)
	fenced = regexp.MustCompile("^(?s)```[a-zA-Z_-]*[ \t]*\n(.*?)\n?```$")
)

func readTagged(text string) []chat.ToolCall {
	if strings.TrimSpace(oneTag.ReplaceAllString(text, "")) != "" {
		return nil
	}
	var calls []chat.ToolCall
	for _, m := range oneTag.FindAllStringSubmatch(text, -1) {
		inner := strings.TrimSpace(m[1])
		got := readBare(inner)
		if got == nil {
			got = readXML(inner)
		}
		if got == nil {
			return nil
		}
		calls = append(calls, got...)
	}
	return calls
}

func readFenced(text string) []chat.ToolCall {
	m := fenced.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	inner := strings.TrimSpace(m[1])
	if calls := readTagged(inner); calls != nil {
		return calls
	}
	return readBare(inner)
}

// bareMarks stand before a JSON call in some templates.
var bareMarks = [...]string{"[TOOL_CALLS]", "<|python_tag|>", "<|tool_call|>"}

// readBare reads one JSON call, a list of them, or several one after the other.
func readBare(text string) []chat.ToolCall {
	for _, mark := range bareMarks {
		text = strings.TrimSpace(strings.TrimPrefix(text, mark))
	}
	if text == "" || (text[0] != '{' && text[0] != '[') {
		return nil
	}
	var calls []chat.ToolCall
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			break
		}
		got := readCallValue(value)
		if got == nil {
			return nil
		}
		calls = append(calls, got...)
	}
	if len(strings.TrimSpace(text[dec.InputOffset():])) > 0 {
		return readRepaired(text)
	}
	return calls
}

// readRepaired reads one call in text that is nearly JSON.
func readRepaired(text string) []chat.ToolCall {
	args, err := tools.Decode(tools.Spec{Name: "call", Schema: json.RawMessage("{}")}, json.RawMessage(text))
	if err != nil {
		return nil
	}
	return readCallValue(args.JSON())
}

func readCallValue(value json.RawMessage) []chat.ToolCall {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var calls []chat.ToolCall
		for _, v := range list {
			c := readCallObject(v)
			if c == nil {
				return nil
			}
			calls = append(calls, *c)
		}
		return calls
	}
	if c := readCallObject(value); c != nil {
		return []chat.ToolCall{*c}
	}
	return nil
}

// Names that models use for the parts of a call.
var (
	nameKeys  = []string{"name", "tool", "tool_name", "function_name"}
	argsKeys  = []string{"arguments", "parameters", "args", "input", "tool_input"}
	extraKeys = []string{"id", "type", "index"}
)

// readCallObject reads {"name": …, "arguments": …} in its usual spellings. An object
// with any other key is not a call.
func readCallObject(value json.RawMessage) *chat.ToolCall {
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil {
		return nil
	}
	if inner, ok := fields["function"]; ok && bytes.HasPrefix(bytes.TrimSpace(inner), []byte("{")) && only(fields, append(extraKeys, "function")) {
		return readCallObject(inner)
	}
	name, args := pick(fields, nameKeys), pick(fields, argsKeys)
	if name == nil {
		name = pick(fields, []string{"function"})
	}
	var c chat.ToolCall
	if name == nil || args == nil || json.Unmarshal(name, &c.Name) != nil || len(fields) > 2+countOf(fields, extraKeys) {
		return nil
	}
	c.Args = args
	return &c
}

func pick(fields map[string]json.RawMessage, keys []string) json.RawMessage {
	for _, k := range keys {
		if v, ok := fields[k]; ok {
			return v
		}
	}
	return nil
}

func countOf(fields map[string]json.RawMessage, keys []string) int {
	n := 0
	for _, k := range keys {
		if _, ok := fields[k]; ok {
			n++
		}
	}
	return n
}

func only(fields map[string]json.RawMessage, keys []string) bool {
	return countOf(fields, keys) == len(fields)
}

var (
	xmlCalls = regexp.MustCompile(`^(?s)(?:\s*<function=[^<>\n]+>\s*(?:<parameter=[^<>\n]+>.*?</parameter>\s*)*</function>)+\s*$`)
	xmlCall  = regexp.MustCompile(`(?s)<function=([^<>\n]+)>(.*?)</function>`)
	xmlParam = regexp.MustCompile(`(?s)<parameter=([^<>\n]+)>\n?(.*?)\n?</parameter>`)
)

// readXML reads the form of the Qwen coder family.
func readXML(text string) []chat.ToolCall {
	if !xmlCalls.MatchString(text) {
		return nil
	}
	var calls []chat.ToolCall
	for _, m := range xmlCall.FindAllStringSubmatch(text, -1) {
		var args bytes.Buffer
		args.WriteByte('{')
		for i, p := range xmlParam.FindAllStringSubmatch(m[2], -1) {
			if i > 0 {
				args.WriteByte(',')
			}
			// Both are strings, which always encode.
			key, _ := json.Marshal(p[1])
			value, _ := json.Marshal(p[2])
			args.Write(key)
			args.WriteByte(':')
			args.Write(value)
		}
		args.WriteByte('}')
		calls = append(calls, chat.ToolCall{Name: m[1], Args: args.Bytes()})
	}
	return calls
}

var (
	planner     = regexp.MustCompile(`^(?s)<\|tool_call_start\|>\s*\[(.*)\]\s*(?:<\|tool_call_end\|>)?$`)
	plannerCall = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_.]*)\(`)
	plannerArg  = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*`)
)

// readPlanner reads the LFM family's envelope: a list of calls in Python's notation
// between its tags, or JSON there.
func readPlanner(text string) []chat.ToolCall {
	m := planner.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	if calls := readBare("[" + m[1] + "]"); calls != nil {
		return calls
	}
	var calls []chat.ToolCall
	rest := m[1]
	for strings.TrimSpace(rest) != "" {
		call, after, ok := pythonCall(strings.TrimLeft(rest, " \n,"))
		if !ok {
			return nil
		}
		calls, rest = append(calls, call), after
	}
	return calls
}

// pythonCall reads name(key=value, …) with literal values.
func pythonCall(text string) (call chat.ToolCall, rest string, ok bool) {
	m := plannerCall.FindStringSubmatch(text)
	if m == nil {
		return call, "", false
	}
	call.Name, rest = m[1], text[len(m[0]):]
	args := "{"
	for {
		rest = strings.TrimLeft(rest, " \n,")
		if after, closed := strings.CutPrefix(rest, ")"); closed {
			call.Args = json.RawMessage(args + "}")
			return call, after, true
		}
		key := plannerArg.FindStringSubmatch(rest)
		if key == nil {
			return call, "", false
		}
		rest = rest[len(key[0]):]
		end := literalEnd(rest)
		if end == 0 {
			return call, "", false
		}
		if args != "{" {
			args += ","
		}
		args += `"` + key[1] + `":` + rest[:end]
		rest = rest[end:]
	}
}

// literalEnd is the length of the literal at the start of text: a quoted string, or
// a word up to a comma or a closing bracket.
func literalEnd(text string) int {
	if text == "" {
		return 0
	}
	if q := text[0]; q == '"' || q == '\'' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case q:
				return i + 1
			}
		}
		return 0
	}
	return max(0, strings.IndexAny(text, ",)"))
}
