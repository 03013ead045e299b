package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

func embedded(uri, text string) sdk.ContentBlock {
	return sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: uri, Text: text}})
}

func TestReadPrompt(t *testing.T) {
	text, link := sdk.TextBlock, sdk.ResourceLinkBlock
	for _, test := range []struct {
		name   string
		blocks []sdk.ContentBlock
		want   string // the text, or part of the error
		more   string // what is attached
	}{
		{"text", []sdk.ContentBlock{text("fix it")}, "fix it", ""},
		{"two texts", []sdk.ContentBlock{text("a"), text("b")}, "a\n\nb", ""},
		{"a link among words", []sdk.ContentBlock{text("look at"), link("m.go", "file:///ws/sub/m.go"), text(", please")}, `look at @"sub/m.go", please`, ""},
		{"a link before a word", []sdk.ContentBlock{link("m.go", "file:///ws/m.go"), text("is wrong")}, `@"m.go" is wrong`, ""},
		{"lines", []sdk.ContentBlock{link("m.go", "file:///ws/m.go#L3:9")}, `@"m.go:3-9"`, ""},
		{"one line", []sdk.ContentBlock{link("m.go", "file:///ws/m.go#L3")}, `@"m.go:3"`, ""},
		{"blanks in a name", []sdk.ContentBlock{link("a b", "file:///ws/a%20b.go")}, `@"a b.go"`, ""},
		{"the alias of the workspace", []sdk.ContentBlock{link("m", "file:///alias/m.go")}, `@"m.go"`, ""},
		{"a quote in a name", []sdk.ContentBlock{link("m", `file:///ws/a%22b`)}, `[m (file:///ws/a%22b)]`, ""},
		{"outside", []sdk.ContentBlock{link("passwd", "file:///etc/passwd")}, `[passwd (file:///etc/passwd)]`, ""},
		{"outside by dots", []sdk.ContentBlock{link("x", "file:///ws/../etc/passwd")}, `[x (file:///ws/../etc/passwd)]`, ""},
		{"another host", []sdk.ContentBlock{link("x", "file://host/ws/m.go")}, `[x (file://host/ws/m.go)]`, ""},
		{"the web", []sdk.ContentBlock{link("page", "https://h/p")}, `[page (https://h/p)]`, ""},
		{"line ends in a name", []sdk.ContentBlock{link("a\n/undo", "zed:x")}, `[a /undo (zed:x)]`, ""},
		{"an embedded text", []sdk.ContentBlock{text("why "), embedded("file:///ws/m.go", "x := 1\n"), text("?")}, `why [m.go]?`, "m.go=x := 1\n;"},
		{"an embedded text first is no command", []sdk.ContentBlock{embedded("/undo", "x")}, `[/undo]`, "/undo=x;"},
		{"an image", []sdk.ContentBlock{sdk.ImageBlock("iVBORw==", "image/png"), text("what")}, "[image 1] what", "image 4"},
		{"no base64", []sdk.ContentBlock{sdk.ImageBlock("!", "image/png")}, "not base64", ""},
		{"too many images", []sdk.ContentBlock{sdk.ImageBlock("", ""), sdk.ImageBlock("", ""), sdk.ImageBlock("", ""), sdk.ImageBlock("", ""), sdk.ImageBlock("", "")}, "more than 4 images", ""},
		{"too long", []sdk.ContentBlock{text(strings.Repeat("a", maxText+1))}, "bytes of text", ""},
		{"too much is embedded", []sdk.ContentBlock{text("a"), embedded("x", strings.Repeat("a", maxText))}, "bytes of text", ""},
		{"nothing", []sdk.ContentBlock{text(" \n")}, "empty", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			in, err := readPrompt(test.blocks, "/alias", "/ws")
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, not %q", err, test.want)
				}
				return
			}
			if in.Text != test.want {
				t.Errorf("text %q, not %q", in.Text, test.want)
			}
			more := ""
			for _, a := range in.Attached {
				more += a.Name + "=" + a.Text + ";"
			}
			for _, i := range in.Images {
				more += fmt.Sprintf("image %d", len(i))
			}
			if more != test.more {
				t.Errorf("attached %q, not %q", more, test.more)
			}
		})
	}
}

// FuzzReadPrompt: whatever a link says, it is one word of the prompt, never a command,
// and a mention only of what lies below the workspace.
func FuzzReadPrompt(f *testing.F) {
	f.Add("file:///ws/a.go#L1:2", "a.go")
	f.Add("file:///ws/../etc/passwd", "x")
	f.Add("file:///ws/%22%0a/undo", "/undo\n! ls")
	f.Fuzz(func(t *testing.T, uri, name string) {
		in, err := readPrompt([]sdk.ContentBlock{sdk.ResourceLinkBlock(name, uri)}, "/ws")
		if err != nil {
			return
		}
		if isCommand(in.Text) || strings.ContainsAny(in.Text, "\n\r") {
			t.Errorf("the link became %q", in.Text)
		}
		if path, ok := strings.CutPrefix(in.Text, `@"`); ok {
			path, _, _ = strings.Cut(path, `"`)
			if at := filepath.Join("/ws", path); at != "/ws" && !strings.HasPrefix(at, "/ws/") {
				t.Errorf("a mention of %q", at)
			}
		}
	})
}

func TestDiffContent(t *testing.T) {
	for _, test := range []struct {
		name, diff, want string
		whole            bool
	}{
		{"a new file", "--- /dev/null\n+++ b/n.go\n@@ -0,0 +1,2 @@\n+a\n+b\n", `new /ws/n.go "a\nb\n"  [/ws/n.go:1]`, true},
		{"a file that goes", "--- a/g.go\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", `diff /ws/g.go "a\n"→""  [/ws/g.go]`, true},
		{"two hunks of two files", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n-old\n+new\n@@ -9 +9 @@\n-p\n+q\n--- a/y\n+++ b/y\n@@ -5 +5 @@\n-1\n+2\n",
			`diff /ws/x "c\nold\n"→"c\nnew\n" diff /ws/x "p\n"→"q\n" diff /ws/y "1\n"→"2\n"  [/ws/x:1 /ws/y:5]`, true},
		{"lines that look like names", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- a/secret\n+++ b/secret\n same\n", `diff /ws/x "-- a/secret\nsame\n"→"++ b/secret\nsame\n"  [/ws/x:1]`, true},
		{"no line end", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", `diff /ws/x "a\n"→"b\n"  [/ws/x:1]`, true},
		{"a quoted name", "--- \"a/\\303\\274\"\n+++ \"b/\\303\\274\"\n@@ -1 +1 @@\n-a\n+b\n", `diff /ws/ü "a\n"→"b\n"  [/ws/ü:1]`, true},
		{"cut", "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n+b\n[40 more lines]\n", `diff /ws/x "a\n"→"b\n"  [/ws/x:1]`, false},
		{"binary", "--- a/x\n+++ b/x\nbinary files differ: 1 bytes, then 2 bytes\n", ` []`, false},
		{"none", "", ` []`, true},
		{"huge counts", "--- a/x\n+++ b/x\n@@ -1,99999999999999999999 +1 @@\n-a\n", `diff /ws/x "a\n"→""  [/ws/x:1]`, false},
	} {
		list, places, whole := diffContent("/ws", test.diff)
		if got := contents(list) + " " + fmt.Sprint(paths(places)); got != test.want || whole != test.whole {
			t.Errorf("%s: %s %v, not %s %v", test.name, got, whole, test.want, test.whole)
		}
	}
}

func FuzzDiffContent(f *testing.F) {
	f.Add("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n c\n-old\n+new\n")
	f.Add("--- \"a/\\303\\274\"\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\\ No newline\n@@ -")
	f.Fuzz(func(t *testing.T, diff string) {
		list, places, _ := diffContent("/ws", diff)
		total := 0
		for _, c := range list {
			total += len(c.Diff.NewText)
			if !strings.HasPrefix(c.Diff.Path, "/") {
				t.Errorf("a path that is not absolute: %q", c.Diff.Path)
			}
		}
		if total > len(diff)+1 || len(places) > len(list) {
			t.Errorf("%d bytes from %d, %d places of %d hunks", total, len(diff), len(places), len(list))
		}
	})
}

func TestFenced(t *testing.T) {
	for text, want := range map[string]string{
		"a": "```\na\n```", "a\n": "```\na\n```", "x ``` y": "````\nx ``` y\n````", "`````": "``````\n`````\n``````", "": "```\n\n```",
	} {
		if got := fenced(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestKindsAndPlaces(t *testing.T) {
	for _, test := range []struct {
		call event.Call
		kind sdk.ToolKind
		want string
	}{
		{event.Call{Name: "read_file", Args: `{"path":"a/b.go"}`}, "read", "[/ws/a/b.go]"},
		{event.Call{Name: "read_file_range", Args: `{"path":"/etc/hosts","start_line":7}`}, "read", "[/etc/hosts:7]"},
		{event.Call{Name: "search", Args: `{"query":"x"}`}, "search", "[]"},
		{event.Call{Name: "replace_text", Args: `{"path":"a"}`}, "edit", "[/ws/a]"},
		{event.Call{Name: "run_command", Args: `{"command":"x","path":"a"}`, Effect: "exec"}, "execute", "[]"},
		{event.Call{Name: "srv__get", Args: `{"path":"a"}`, Effect: "network"}, "fetch", "[]"},
		{event.Call{Name: "srv__put", Args: `{"path":"a"}`, Effect: "external"}, "other", "[]"},
		{event.Call{Name: "read_file", Args: `broken`}, "read", "[]"},
	} {
		if got := fmt.Sprint(paths(locations("/ws", test.call))); kindOf(test.call) != test.kind || got != test.want {
			t.Errorf("%s: %s %s", test.call.Name, kindOf(test.call), got)
		}
	}
}

// TestTail: of much output the end is sent, from the start of a line.
func TestTail(t *testing.T) {
	s := newStream("/ws")
	s.updates(event.Event{Kind: event.CallStart, Call: command()}, false)
	var last string
	for i := range 2000 {
		for _, u := range s.updates(event.Event{Kind: event.Output, Text: fmt.Sprintf("line %d\n", i)}, false) {
			last = u.ToolCallUpdate.Content[0].Content.Content.Text.Text
		}
	}
	if len(last) > maxTail+8 || !strings.HasPrefix(last, "```\nline ") || !strings.HasSuffix(last, "line 1999\n```") {
		t.Errorf("%d bytes: %.40q…", len(last), last)
	}
}

// TestShell: what a person ran on the terminal is shown; what came as a prompt was
// shown as a call.
func TestShell(t *testing.T) {
	s := newStream("/ws")
	show := func(list ...event.Event) string {
		var got []string
		for _, e := range list {
			for _, u := range s.updates(e, true) {
				got = append(got, describe(u))
			}
		}
		return strings.Join(got, "|")
	}
	if got := show(event.Event{Kind: event.Shell, Text: "ls"}); got != "user ```\nls\n```" {
		t.Errorf("of the terminal: %q", got)
	}
	got := show(event.Event{Kind: event.CallStart, Call: command()},
		event.Event{Kind: event.CallEnd, Result: &event.Result{CallID: "c1", Status: "ok", Text: "x", Direct: true}}, event.Event{Kind: event.Shell, Text: "ls"})
	if got != "call c1 execute pending run_command make … []|update c1 completed \"```\\nx\\n```\" []" {
		t.Errorf("as a prompt: %q", got)
	}
}

func TestGoalIsAPlan(t *testing.T) {
	for state, want := range map[string]string{
		"active":   "plan win=in_progress an independent verifier accepts the work=pending",
		"complete": "plan win=completed an independent verifier accepts the work=completed|say \n> **goal**: goal complete: fine\n\n",
		"paused":   "plan win=pending an independent verifier accepts the work=pending|say \n> **goal**: goal paused: fine\n\n",
		"none":     "plan",
	} {
		s := newStream("/ws")
		var got []string
		for _, u := range s.updates(event.Event{Kind: event.GoalState, Goal: &event.Goal{Objective: "win", State: state, Reason: "fine"}}, false) {
			got = append(got, describe(u))
		}
		if text := strings.Join(got, "|"); text != want {
			t.Errorf("%s: %q, not %q", state, text, want)
		}
	}
}

// FuzzIntake: whatever the editor sends, what the SDK gets are whole lines that it can
// decode, and every other line that is not blank gets an answer.
func FuzzIntake(f *testing.F) {
	f.Add([]byte(hello))
	f.Add([]byte("garbage\n\n{\"id\":null,\"method\":\"x\"}\r\n[1]\n{}"))
	f.Add([]byte(`{"jsonrpc":2}` + "\n" + `{"error":{"code":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var answers bytes.Buffer
		open := make(chan struct{})
		close(open)
		in := newIntake(bytes.NewReader(data), &output{w: &answers, failed: func(error) {}}, open, nil)
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, 11<<20)
		passed := 0
		for lines.Scan() {
			passed++
			var m message
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				t.Errorf("the SDK gets %q: %v", lines.Text(), err)
			}
			if m.handled() {
				in.took()
			}
		}
		sent := 0
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if len(bytes.TrimSpace(line)) > 0 {
				sent++
			}
		}
		if refusals := bytes.Count(answers.Bytes(), []byte("\n")); passed+refusals != sent {
			t.Errorf("%d lines: %d passed, %d refused", sent, passed, refusals)
		}
	})
}

func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("ab\r\n"+strings.Repeat("x", 100)+"\ncd\n\nlast"), 16)
	for _, want := range []string{"ab", "!", "cd", "", "last"} {
		line, err := readLine(in, 20)
		if errors.Is(err, errTooLong) {
			line, err = []byte("!"), nil
		}
		if string(line) != want || err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%q %v, not %q", line, err, want)
		}
	}
}
