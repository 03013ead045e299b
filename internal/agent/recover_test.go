package agent

import (
	"strings"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

func TestRecoverCalls(t *testing.T) {
	var ran []string
	reg, err := tools.NewRegistry(echoTool{name: "run_command", ran: &ran}, echoTool{name: "read_file", ran: &ran})
	if err != nil {
		t.Fatal(err)
	}
	const ls = `run_command {"command":"ls"}`
	for _, tt := range []struct {
		name, content string
		want          []string
	}{
		{"bare JSON", `{"name":"run_command","arguments":{"command":"ls"}}`, []string{ls}},
		{"parameters", `{"name": "run_command", "parameters": {"command":"ls"}}`, []string{`run_command {"command":"ls"}`}},
		{"function object", `{"type":"function","function":{"name":"run_command","arguments":{"command":"ls"}}}`, []string{ls}},
		{"list", `[{"name":"run_command","arguments":{"command":"ls"}},{"name":"read_file","arguments":{"path":"a"}}]`, []string{ls, `read_file {"path":"a"}`}},
		{"two lines", `{"name":"run_command","arguments":{"command":"ls"}}` + "\n" + `{"name":"read_file","arguments":{"path":"a"}}`, []string{ls, `read_file {"path":"a"}`}},
		{"tag", "<tool_call>\n{\"name\":\"run_command\",\"arguments\":{\"command\":\"ls\"}}\n</tool_call>", []string{ls}},
		{"two tags", `<tool_call>{"name":"run_command","arguments":{"command":"ls"}}</tool_call> <tool_call>{"name":"read_file","arguments":{"path":"a"}}</tool_call>`, []string{ls, `read_file {"path":"a"}`}},
		{"unclosed tag", `<tool_call>{"name":"run_command","arguments":{"command":"ls"}}`, []string{ls}},
		{"fence", "```json\n{\"name\":\"run_command\",\"arguments\":{\"command\":\"ls\"}}\n```", []string{ls}},
		{"trailing comma", `{"name":"run_command","arguments":{"command":"ls",},}`, []string{ls}},
		{"single quotes", `{'name':'run_command','arguments':{'command':'ls'}}`, []string{ls}},
		{"Qwen XML", "<tool_call>\n<function=run_command>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>", []string{ls}},
		{"Qwen XML without tag", "<function=read_file><parameter=path>a</parameter></function>", []string{`read_file {"path":"a"}`}},
		{"LFM planner", `<|tool_call_start|>[run_command(command="ls"), read_file(path='a')]<|tool_call_end|>`, []string{ls, `read_file {"path":'a'}`}},
		{"Mistral mark", `[TOOL_CALLS][{"name":"run_command","arguments":{"command":"ls"}}]`, []string{ls}},

		{"in prose", `I would call {"name":"run_command","arguments":{"command":"ls"}} now.`, nil},
		{"prose before a fence", "For example:\n```json\n{\"name\":\"run_command\",\"arguments\":{\"command\":\"ls\"}}\n```", nil},
		{"prose after a tag", `<tool_call>{"name":"run_command","arguments":{"command":"ls"}}</tool_call> is how you call it`, nil},
		{"two fences", "```json\n{\"name\":\"run_command\",\"arguments\":{}}\n```\ntext\n```\nx\n```", nil},
		{"unknown name", `{"name":"Bash","arguments":{"command":"ls"}}`, nil},
		{"one unknown of two", `[{"name":"run_command","arguments":{}},{"name":"x","arguments":{}}]`, nil},
		{"data with other keys", `{"name":"run_command","arguments":{},"version":"1.0"}`, nil},
		{"no arguments", `{"name":"run_command"}`, nil},
		{"plain text", `run_command ls`, nil},
		{"empty", ``, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, c := range recoverCalls(tt.content, reg) {
				got = append(got, c.Name+" "+string(c.Args))
			}
			if strings.Join(got, "|") != strings.Join(tt.want, "|") {
				t.Errorf("recoverCalls(%q) = %q; want %q", tt.content, got, tt.want)
			}
		})
	}
}

func TestATextCallIsRunAndKeptAsACall(t *testing.T) {
	b := newBench(t, say(`{"name":"echo","arguments":{"text":"a"}}`), say("done"))
	end := b.run(t.Context())
	equal(t, "reason", end.Reason, event.Complete)
	equal(t, "ran", b.ran, []string{"echo a"})
	m := b.model.requests[1].Messages[2]
	equal(t, "message in the history", []string{m.Content, m.Calls[0].Name}, []string{"", "echo"})
}

func TestACallInProseIsNudgedOnceAndNeverRun(t *testing.T) {
	prose := say(`Let me see: <tool_call>{"name":"echo","arguments":{"text":"a"}}</tool_call> should do.`)
	b := newBench(t, prose, prose)
	end := b.run(t.Context())
	equal(t, "reason", end.Reason, event.Complete)
	equal(t, "ran", b.ran, []string(nil))
	equal(t, "requests", len(b.model.requests), 2)
	var notes []chat.Message
	for _, m := range b.model.requests[1].Messages {
		if m.Note {
			notes = append(notes, m)
		}
	}
	equal(t, "notes", len(notes), 1)
}

func FuzzRecoverCalls(f *testing.F) {
	for _, s := range []string{`{"name":"echo","arguments":{}}`, "<tool_call>x</tool_call>", "<|tool_call_start|>[echo(a=1)]<|tool_call_end|>", "```\n{}\n```", "<function=echo><parameter=a>b</parameter></function>"} {
		f.Add(s)
	}
	var ran []string
	reg, err := tools.NewRegistry(echoTool{name: "echo", ran: &ran})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content string) {
		for _, c := range recoverCalls(content, reg) {
			if !strings.Contains(content, "echo") || c.Name == "" {
				t.Fatalf("recovered %+v from %q", c, content)
			}
		}
	})
}
