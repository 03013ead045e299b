package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// turn emits the events of a turn around those given.
func (c *fakeConv) turn(in event.Input, end event.End, inner ...event.Event) event.Reason {
	c.emit(event.Event{Kind: event.TurnStart})
	c.emit(event.Event{Kind: event.User, Text: in.Text})
	for _, e := range inner {
		c.emit(e)
	}
	c.emit(event.Event{Kind: event.TurnEnd, End: &end})
	return end.Reason
}

func command() *event.Call {
	return &event.Call{ID: "c1", Name: "run_command", Summary: "run_command make …", Args: `{"command":"make\ntest"}`, Effect: "exec", Text: "make\ntest"}
}

func question(grantable bool) *event.Question {
	return &event.Question{
		CallID: "c1", Tool: "run_command", Effect: "exec", Origin: "user", Summary: "run_command make …", Text: "make\ntest",
		Shell: []string{"/bin/sh", "-c"}, Dir: "/ws", Timeout: "2m0s", Reasons: []string{"commands ask"}, Notes: []string{"writes: out"},
		Grantable: grantable, Digest: "d1",
	}
}

// wait returns the answer to the open question, or what ended the prompt.
func (c *fakeConv) wait(ctx context.Context) (event.Answer, error) {
	select {
	case a := <-c.answers:
		return a, nil
	case <-ctx.Done():
		return event.Answer{}, ctx.Err()
	}
}

func TestMainJob(t *testing.T) {
	exit := 0
	h := &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		c.emit(event.Event{Kind: event.TurnStart})
		c.emit(event.Event{Kind: event.User, Text: in.Text})
		c.emit(event.Event{Kind: event.Thinking, Text: "hm"})
		c.emit(event.Event{Kind: event.Content, Text: "I run "})
		c.emit(event.Event{Kind: event.Content, Text: "it."})
		c.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Content: "I run it.", Thinking: "hm"}, Usage: chat.Usage{PromptTokens: 90, OutputTokens: 10}, Window: 1000}})
		c.emit(event.Event{Kind: event.CallStart, Call: command()})
		c.emit(event.Event{Kind: event.Asked, Question: question(true)})
		a, err := c.wait(ctx)
		if err != nil || a.Choice != "once" || a.Digest != "d1" || a.By != "editor" {
			t.Errorf("the answer is %+v, %v", a, err)
		}
		c.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Running}})
		c.emit(event.Event{Kind: event.Output, Text: "ok\n"})
		c.emit(event.Event{Kind: event.CallEnd, Result: &event.Result{CallID: "c1", Name: "run_command", Status: "ok", Text: "exit 0\nok", ExitCode: &exit}})
		c.emit(event.Event{Kind: event.Warning, Text: "mind *this*"})
		c.emit(event.Event{Kind: event.TurnEnd, End: &event.End{Reason: event.Complete, Text: "Done."}})
		return event.Complete, nil
	}}
	e := connect(t, h)
	id := e.begin()
	resp, err := e.prompt(id, "go")
	if err != nil || resp.StopReason != sdk.StopReasonEndTurn {
		t.Fatal(resp, err)
	}
	if u := resp.Usage; u == nil || u.InputTokens != 90 || u.OutputTokens != 10 || u.TotalTokens != 100 {
		t.Errorf("usage %+v", u)
	}
	want := []string{
		"think hm", "say I run ", "say it.", "usage 100 of 1000",
		"call c1 execute pending run_command make … []",
		"update c1 in_progress []",
		"update c1 - \"```\\nok\\n```\" []",
		"update c1 completed \"```\\nexit 0\\nok\\n```\" []",
		"say \n> **warning**: mind \\*this\\*\n\n",
		"say \n\nDone.",
	}
	if got := e.seen(); !slices.Equal(got, want) {
		t.Errorf("updates:\n%s\nnot:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := e.updates[0]; n.Update.AvailableCommandsUpdate == nil || n.SessionId != id || n.Update.AvailableCommandsUpdate.AvailableCommands[0].Input.Unstructured.Hint != "[NAME]" {
		t.Errorf("the first update does not tell the commands: %+v", n)
	}
}

// TestWhoIsAskedWhat: everything that a person must see is in the request, and the
// options are those that are possible.
func TestWhoIsAskedWhat(t *testing.T) {
	hidden := question(false)
	hidden.Text = "echo \u202eabc \x1b[2J"
	for _, test := range []struct {
		name    string
		q       *event.Question
		options string
		want    []string
	}{
		{"a grant is possible", question(true), "once/allow_once conversation/allow_always no/reject_once", []string{
			"tool     run_command (exec)\nshell    /bin/sh -c\ndir      /ws\nlimit    2m0s\nasked by user\nbecause  commands ask", "make\ntest", "! writes: out"}},
		{"no grant", hidden, "once/allow_once no/reject_once", []string{`echo <U+202E>abc \x1b[2J`, "hidden characters: <U+202E>"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := connect(t, &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
				c.emit(event.Event{Kind: event.CallStart, Call: command()})
				c.emit(event.Event{Kind: event.Asked, Question: test.q})
				_, err := c.wait(ctx)
				return event.Complete, err
			}})
			if _, err := e.prompt(e.begin(), "go"); err != nil {
				t.Fatal(err)
			}
			r := e.asked[0]
			var options []string
			for _, o := range r.Options {
				options = append(options, string(o.OptionId)+"/"+string(o.Kind))
			}
			if got := strings.Join(options, " "); got != test.options {
				t.Errorf("options %s, not %s", got, test.options)
			}
			var text strings.Builder
			for _, c := range r.ToolCall.Content {
				text.WriteString(c.Content.Content.Text.Text + "\n")
			}
			for _, want := range test.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("the request does not hold %q:\n%s", want, text.String())
				}
			}
			if meta := r.ToolCall.Meta["zcoder"].(map[string]any); meta["digest"] != "d1" || meta["text"] != test.q.Text {
				t.Errorf("meta %v", meta)
			}
			if raw := r.ToolCall.RawInput.(map[string]any); raw["command"] != "make\ntest" || r.ToolCall.ToolCallId != "c1" {
				t.Errorf("raw input %v of %s", raw, r.ToolCall.ToolCallId)
			}
		})
	}
}

// TestOnlyAClearYesAllows: whatever else the editor answers denies.
func TestOnlyAClearYesAllows(t *testing.T) {
	for _, test := range []struct {
		name  string
		click func(context.Context, sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error)
		want  string
	}{
		{"once", pick("once"), "once"},
		{"denied", pick("no"), "no"},
		{"not offered", pick("conversation"), "no"},
		{"nonsense", pick("yes"), "no"},
		{"closed", func(context.Context, sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
			r.Outcome.Cancelled = &sdk.RequestPermissionOutcomeCancelled{}
			return r, nil
		}, "no"},
		{"cannot ask", func(context.Context, sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
			return r, errors.New("no")
		}, "no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got event.Answer
			e := connect(t, &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
				c.emit(event.Event{Kind: event.CallStart, Call: command()})
				c.emit(event.Event{Kind: event.Asked, Question: question(false)})
				var err error
				got, err = c.wait(ctx)
				return event.Complete, err
			}})
			e.click = test.click
			if _, err := e.prompt(e.begin(), "go"); err != nil {
				t.Fatal(err)
			}
			if got.Choice != test.want || got.Digest != "d1" {
				t.Errorf("the answer is %+v, not %s", got, test.want)
			}
		})
	}
}

// TestCancelEndsTheQuestion: a prompt that is cancelled answers so, and the request
// that waits is taken back and answers nothing.
func TestCancelEndsTheQuestion(t *testing.T) {
	takenBack := make(chan struct{})
	h := &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		c.emit(event.Event{Kind: event.TurnStart})
		c.emit(event.Event{Kind: event.CallStart, Call: command()})
		c.emit(event.Event{Kind: event.Asked, Question: question(true)})
		<-ctx.Done()
		c.emit(event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: "c1", Choice: "no"}})
		c.emit(event.Event{Kind: event.TurnEnd, End: &event.End{Reason: event.Cancelled}})
		return event.Cancelled, nil
	}}
	e := connect(t, h)
	id := e.begin()
	e.click = func(ctx context.Context, p sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
		if err := e.conn.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		close(takenBack)
		r.Outcome.Cancelled = &sdk.RequestPermissionOutcomeCancelled{}
		return r, nil
	}
	resp, err := e.prompt(id, "go")
	if err != nil || resp.StopReason != sdk.StopReasonCancelled {
		t.Fatal(resp, err)
	}
	select {
	case <-takenBack:
	case <-time.After(patience):
		t.Fatal("the request was not taken back")
	}
	select {
	case a := <-h.convs[0].answers:
		t.Errorf("an answer after the end: %+v", a)
	default:
	}
}

// TestSettledElsewhere: another frontend was faster, so the request is taken back while
// the turn goes on, and what is clicked then answers nothing.
func TestSettledElsewhere(t *testing.T) {
	takenBack := make(chan struct{})
	h := &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		c.emit(event.Event{Kind: event.CallStart, Call: command()})
		c.emit(event.Event{Kind: event.Asked, Question: question(true)})
		c.emit(event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: "c1", Choice: "once", By: "terminal"}})
		select {
		case <-takenBack:
		case <-time.After(patience):
			t.Error("the request is not taken back")
		}
		return event.Complete, nil
	}}
	e := connect(t, h)
	e.click = func(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
		<-ctx.Done()
		close(takenBack)
		return pick(once)(ctx, p)
	}
	if resp, err := e.prompt(e.begin(), "go"); err != nil || resp.StopReason != sdk.StopReasonEndTurn {
		t.Fatal(resp, err)
	}
	select {
	case a := <-h.convs[0].answers:
		t.Errorf("a second answer: %+v", a)
	default:
	}
}

// raw talks to Serve in lines.
type raw struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *lineReader
	done chan error
}

type lineReader struct {
	dec *json.Decoder
}

func rawConnect(t *testing.T, h *fakeHost) *raw {
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	r := &raw{t: t, in: toAgent, out: &lineReader{json.NewDecoder(fromAgent)}, done: make(chan error, 1)}
	go func() {
		r.done <- Serve(context.Background(), in, out, h, Options{Version: "1", NewID: func() string { return "x" }})
		out.Close()
	}()
	t.Cleanup(func() { toAgent.Close(); fromAgent.Close() })
	return r
}

func (r *raw) send(text string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, text); err != nil {
		r.t.Error(err)
	}
}

// next returns the next message that is no notification.
func (r *raw) next() message {
	r.t.Helper()
	for {
		var m message
		if err := r.out.dec.Decode(&m); err != nil {
			r.t.Fatal(err)
		}
		if m.Method == "" {
			return m
		}
	}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n"

// TestPromptAndCancelKeepTheirOrder sends both at once: the cancel is for this prompt,
// never for none and never for the next.
func TestPromptAndCancelKeepTheirOrder(t *testing.T) {
	n := 0
	r := rawConnect(t, &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		if n++; in.Text == "stay" {
			return event.Complete, ctx.Err()
		}
		<-ctx.Done()
		return event.Cancelled, nil
	}})
	go func() {
		r.send(hello + `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/ws","mcpServers":[]}}` + "\n")
	}()
	r.next()
	r.next()
	for i := range 20 {
		prompt := func(text string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":%q}]}}`+"\n", i, text)
		}
		cancel := `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}` + "\n"
		go r.send(prompt("wait") + cancel)
		if m := r.next(); !strings.Contains(string(m.Result), `"cancelled"`) {
			t.Fatalf("round %d: %s %v", i, m.Result, m.Error)
		}
		go r.send(cancel + prompt("stay"))
		if m := r.next(); !strings.Contains(string(m.Result), `"end_turn"`) {
			t.Fatalf("round %d: %s %v", i, m.Result, m.Error)
		}
	}
}

// TestHostileLines: each bad line has its answer, and the connection goes on.
func TestHostileLines(t *testing.T) {
	begin := make(chan struct{}, 10)
	h := &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		begin <- struct{}{}
		<-ctx.Done()
		return event.Cancelled, nil
	}}
	r := rawConnect(t, h)
	prompt := func(id int, session, blocks string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":%s}}`, id, session, blocks)
	}
	for _, test := range []struct{ name, line, want string }{
		{"before initialize", `{"jsonrpc":"2.0","id":7,"method":"session/list","params":{}}`, `initialize comes first`},
		{"initialize", strings.TrimSpace(hello), `"protocolVersion":1`},
		{"initialize again", strings.TrimSpace(hello), `initialize comes first, and once`},
		{"no JSON", `garbage`, `no JSON-RPC message`},
		{"half a message", `{"jsonrpc":"2.0","id":3,"method":"session/new"`, `no JSON-RPC message`},
		{"a batch", `[{"jsonrpc":"2.0","id":3,"method":"session/list"}]`, `no JSON-RPC message`},
		{"wrong types", `{"jsonrpc":2,"id":3,"method":"session/list"}`, `no JSON-RPC message`},
		{"neither id nor method", `{"jsonrpc":"2.0"}`, `neither an id nor a method`},
		{"too long", `{"jsonrpc":"2.0","id":4,"method":"session/list","params":{"x":"` + strings.Repeat("a", maxMessage) + `"}}`, `longer than`},
		{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"session/fork","params":{}}`, `-32601`},
		{"unknown extension", `{"jsonrpc":"2.0","id":5,"method":"_zcoder/other","params":{}}`, `-32601`},
		{"no parameters", `{"jsonrpc":"2.0","id":6,"method":"session/new"}`, `cwd is required`},
		{"parameters of a wrong type", `{"jsonrpc":"2.0","id":6,"method":"session/new","params":[1]}`, `-32602`},
		{"relative cwd", `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"../ws","mcpServers":[]}}`, `not an absolute path`},
		{"NUL in cwd", `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/ws\u0000","mcpServers":[]}}`, `not an absolute path`},
		{"more directories", `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/ws","mcpServers":[],"additionalDirectories":["/"]}}`, `not supported`},
		{"a server of an unknown kind", `{"jsonrpc":"2.0","id":6,"method":"session/new","params":{"cwd":"/ws","mcpServers":[{"type":"sse","name":"x","url":"http://x","headers":[]}]}}`, `stdio and http are`},
		{"unknown session to load", `{"jsonrpc":"2.0","id":6,"method":"session/load","params":{"cwd":"/ws","mcpServers":[],"sessionId":"../../etc/passwd"}}`, `-32002`},
		{"unknown session to prompt", prompt(6, "s9", `[{"type":"text","text":"x"}]`), `-32002`},
		{"a cwd that is cleaned", `{"jsonrpc":"2.0","id":"a","method":"session/new","params":{"cwd":"/x/../ws/","mcpServers":[]}}`, `"sessionId":"s1"`},
		{"an empty prompt", prompt(6, "s1", `[]`), `the prompt is empty`},
		{"audio", prompt(6, "s1", `[{"type":"audio","data":"","mimeType":"audio/wav"}]`), `not supported`},
		{"input of an unknown mode", `{"jsonrpc":"2.0","id":6,"method":"_zcoder/input","params":{"sessionId":"s1","text":"x","mode":"command"}}`, `none of steer, follow_up`},
		{"input", `{"jsonrpc":"2.0","id":8,"method":"_zcoder/input","params":{"sessionId":"s1","text":"x","mode":"steer","messageId":"m1"}}`, `"state":"accepted"`},
	} {
		go r.send(test.line + "\n")
		m := r.next()
		text, err := json.Marshal(m)
		if err != nil || !strings.Contains(string(text), test.want) {
			t.Errorf("%s: %s does not hold %s", test.name, text, test.want)
		}
	}
	if dir := h.starts[len(h.starts)-1].Dir; dir != "/ws" {
		t.Errorf("the directory is %q", dir)
	}
	// One prompt at a time, also under an id that is in use.
	go r.send(prompt(9, "s1", `[{"type":"text","text":"x"}]`) + "\n" + prompt(9, "s1", `[{"type":"text","text":"y"}]`) + "\n")
	if m := r.next(); m.Error == nil || !strings.Contains(m.Error.Message, "runs a prompt already") {
		t.Errorf("a second prompt: %+v", m)
	}
	<-begin
	go r.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}` + "\n")
	if m := r.next(); !strings.Contains(string(m.Result), "cancelled") {
		t.Errorf("the first prompt: %+v", m)
	}
}

// TestEditorGoes: the end of stdin stops what runs and closes everything.
func TestEditorGoes(t *testing.T) {
	started, stopped := make(chan struct{}), make(chan struct{})
	h := &fakeHost{run: func(ctx context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		c.emit(event.Event{Kind: event.Asked, Question: question(true)})
		close(started)
		<-ctx.Done()
		close(stopped)
		return event.Cancelled, nil
	}}
	e := connect(t, h)
	e.click = func(ctx context.Context, _ sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
		<-ctx.Done()
		return r, ctx.Err()
	}
	id, other := e.begin(), e.begin()
	go func() { _, _ = e.prompt(id, "go") }()
	<-started
	e.hangUp()
	select {
	case err := <-e.served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("Serve goes on")
	}
	<-stopped
	for _, c := range h.convs {
		if !c.closed {
			t.Errorf("%s is open, of %s and %s", c.id, id, other)
		}
	}
}

// TestEditorReadsNothing: an editor that cannot be written to ends it too.
func TestEditorReadsNothing(t *testing.T) {
	in, toAgent := io.Pipe()
	defer toAgent.Close()
	done := make(chan error, 1)
	go func() {
		done <- Serve(context.Background(), in, failing{}, &fakeHost{}, Options{NewID: func() string { return "x" }})
	}()
	go func() { _, _ = io.WriteString(toAgent, hello) }()
	select {
	case err := <-done:
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(patience):
		t.Fatal("Serve goes on")
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestLoadReplays(t *testing.T) {
	past := []event.Event{
		{Kind: event.Opened}, {Kind: event.TurnStart}, {Kind: event.User, Text: "first"},
		{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Content: "hello", Thinking: "hm"}}},
		{Kind: event.CallStart, Call: &event.Call{ID: "c1", Name: "write_file", Summary: "write_file a.go", Args: `{"path":"a.go","content":"x"}`}},
		{Kind: event.Asked, Question: question(true)},
		{Kind: event.Answered, Answer: &event.Answer{CallID: "c1", Choice: "once"}},
		{Kind: event.CallEnd, Result: &event.Result{CallID: "c1", Name: "write_file", Status: "ok", Text: "wrote", Diff: "--- a/a.go\n+++ b/a.go\n@@ -2,2 +2,2 @@\n same\n-old\n+new\n", Changed: []string{"a.go"}}},
		{Kind: event.Titled, Text: "A title"},
		{Kind: event.GoalState, Goal: &event.Goal{Objective: "win", State: "verifying"}},
		{Kind: event.TurnEnd, End: &event.End{Reason: event.Errored, Text: "the server is gone", Hint: "start it"}},
		{Kind: event.Asked, Question: question(true)}, // a crash left it
	}
	for i := range past {
		past[i].Seq = int64(i + 1)
	}
	h := &fakeHost{stored: map[string][]event.Event{"old": past}, run: func(_ context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		return c.turn(in, event.End{Reason: event.Errored, Text: "down", Hint: "look"}), nil
	}}
	e := connect(t, h)
	load := sdk.LoadSessionRequest{SessionId: "old", Cwd: "/ws", McpServers: []sdk.McpServer{}}
	resp, err := e.conn.LoadSession(t.Context(), load)
	if err != nil || resp.Modes.CurrentModeId != "coding" || len(resp.Modes.AvailableModes) != 2 {
		t.Fatal(resp, err)
	}
	want := []string{
		"user first", "think hm", "say hello",
		"call c1 edit pending write_file a.go [/ws/a.go]",
		`update c1 completed diff /ws/a.go "same\nold\n"→"same\nnew\n" [/ws/a.go:2]`,
		"title A title", "plan win=completed an independent verifier accepts the work=in_progress",
		"say \n> **error**: the server is gone; start it\n\n",
	}
	if got := e.seen(); !slices.Equal(got, want) {
		t.Errorf("updates:\n%s\nnot:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// A failing turn is the error of its prompt.
	_, err = e.prompt("old", "again")
	var re *sdk.RequestError
	if !errors.As(err, &re) || re.Message != "down" || fmt.Sprint(re.Data) != "map[hint:look]" {
		t.Errorf("the prompt answers %v", err)
	}
	// Loading what is open opens it anew; resuming replays nothing.
	if _, err := e.conn.LoadSession(t.Context(), load); err != nil || !h.convs[0].closed {
		t.Errorf("loading again: %v", err)
	}
	// What cannot be opened closes nothing.
	if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "old", Cwd: "ws", McpServers: []sdk.McpServer{}}); err == nil || h.convs[1].closed {
		t.Errorf("with a relative directory: %v, closed %v", err, h.convs[1].closed)
	}
	n := len(e.seen())
	if _, err := e.conn.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: "old", Cwd: "/ws"}); err != nil {
		t.Fatal(err)
	}
	e.until("commands of the resumed session", func(sdk.SessionUpdate) bool {
		k := 0
		for _, u := range e.updates {
			if u.Update.AvailableCommandsUpdate != nil {
				k++
			}
		}
		return k == 3
	})
	if got := e.seen()[n:]; len(got) != 0 {
		t.Errorf("resuming replays %v", got)
	}
	if len(e.asked) != 0 {
		t.Error("an old question is asked again")
	}
}

func TestModes(t *testing.T) {
	e := connect(t, &fakeHost{run: func(_ context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		return c.turn(in, event.End{Reason: event.Complete}, event.Event{Kind: event.Content, Text: "hi " + c.mode}), nil
	}})
	id := e.begin()
	if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "sysadmin"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.prompt(id, "go"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "coding"}); err == nil || !strings.Contains(err.Error(), "something was said") {
		t.Errorf("the mode changes: %v", err)
	}
	if _, err := e.prompt(id, "more"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.seen(), ", "); got != "say hi sysadmin, say hi sysadmin" {
		t.Error(got)
	}
}

func TestListIsPaged(t *testing.T) {
	h := &fakeHost{}
	for i := range 250 {
		h.listed = append(h.listed, Listed{ID: fmt.Sprint("s", i), Dir: []string{"/ws", "/other"}[i%2], Title: "t", Changed: time.Unix(1e9, 0)})
	}
	e := connect(t, h)
	got := map[sdk.SessionId]bool{}
	var cursor *string
	for pages := 1; ; pages++ {
		resp, err := e.conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range resp.Sessions {
			got[s.SessionId] = true
		}
		if cursor = resp.NextCursor; cursor == nil {
			if len(got) != 250 || pages != 3 {
				t.Errorf("%d sessions on %d pages", len(got), pages)
			}
			break
		}
	}
	dir := "/ws/"
	resp, err := e.conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &dir})
	if err != nil || len(resp.Sessions) != 100 || resp.Sessions[1].SessionId != "s2" || *resp.Sessions[1].UpdatedAt != "2001-09-09T01:46:40Z" {
		t.Errorf("%+v %v", resp, err)
	}
}

func TestInputWhileAPromptRuns(t *testing.T) {
	started, enough := make(chan struct{}), make(chan struct{})
	h := &fakeHost{run: func(_ context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
		close(started)
		<-enough
		return c.turn(in, event.End{Reason: event.Complete}, event.Event{Kind: event.User, Text: "and this", Item: &event.Item{ID: "m1"}}), nil
	}}
	e := connect(t, h)
	id := e.begin()
	ended := make(chan error, 1)
	go func() { _, err := e.prompt(id, "go"); ended <- err }()
	<-started
	for _, text := range []string{"and this", "and this", "other"} {
		out, err := e.conn.CallExtension(t.Context(), InputMethod, map[string]any{"sessionId": id, "text": text, "mode": "steer", "messageId": "m1"})
		if text == "other" {
			if code(err) != -32602 {
				t.Errorf("the same id with another text: %s %v", out, err)
			}
			continue
		}
		if err != nil || string(out) != `{"messageId":"m1","state":"accepted"}` {
			t.Errorf("receipt %s, %v", out, err)
		}
	}
	close(enough)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := e.seen(); len(got) != 1 || got[0] != "user and this" {
		t.Errorf("updates %q", got)
	}
}

func TestCommandsAndForms(t *testing.T) {
	e := connect(t, &fakeHost{run: func(_ context.Context, c *fakeConv, in event.Input, ask Forms) (event.Reason, error) {
		if in.Text == "/nonsense" {
			return "", errors.New("there is no command /nonsense")
		}
		c.emit(event.Event{Kind: event.Printed, Text: "look:\n```"})
		i, ok := ask.Choose("Models", []string{"a", "b"}, 0)
		line, yes := ask.AskLine("Sure? [y/N] ")
		_, other := ask.AskLine("Name: ")
		sure := ask.Confirm("Trust?", "all \u200bof it", "Yes", "No")
		c.emit(event.Event{Kind: event.Printed, Text: fmt.Sprintf("%v %v %v %v %v %v", i, ok, line, yes, other, sure)})
		return "", nil
	}})
	answers := map[string]string{"Models": "1", "Sure?": "once", "Trust?": "no"}
	e.click = func(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
		return pick(answers[*p.ToolCall.Title])(ctx, p)
	}
	id := e.begin()
	if resp, err := e.prompt(id, "/model"); err != nil || resp.StopReason != sdk.StopReasonEndTurn {
		t.Fatal(resp, err)
	}
	if resp, err := e.prompt(id, "/nonsense"); err != nil || resp.StopReason != sdk.StopReasonEndTurn {
		t.Fatal(resp, err)
	}
	got := e.seen()
	if got[0] != "say \n````\nlook:\n```\n````\n" || !strings.HasPrefix(got[1], "call form-id1 other pending Models") {
		t.Errorf("what was printed does not come first: %q", got)
	}
	if all := strings.Join(got, "\n"); !strings.Contains(all, "1 true y true false false") || !strings.Contains(all, "> **error**: there is no command /nonsense") {
		t.Errorf("updates:\n%s", all)
	}
	if text := contents(e.asked[2].ToolCall.Content); !strings.Contains(text, "all <U+200B>of it") || !strings.Contains(text, "hidden characters") {
		t.Errorf("the form shows %s", text)
	}
}

func TestServersOfTheEditor(t *testing.T) {
	h := &fakeHost{}
	e := connect(t, h)
	_, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/ws", McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "My server", Command: "/bin/s", Args: []string{"-x"}, Env: []sdk.EnvVariable{{Name: "KEY", Value: "v"}}}},
		{Http: &sdk.McpServerHttpInline{Name: "web", Type: "http", Url: "http://h/", Headers: []sdk.HttpHeader{{Name: "A", Value: "b"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := "[{Name:My server Command:/bin/s Args:[-x] Env:map[KEY:v] URL: Headers:map[]} {Name:web Command: Args:[] Env:map[] URL:http://h/ Headers:map[A:b]}]"
	if got := fmt.Sprintf("%+v", h.starts[0].Servers); got != want {
		t.Errorf("servers %s", got)
	}
}

func TestRoomForSessions(t *testing.T) {
	e := connect(t, &fakeHost{})
	var last sdk.SessionId
	for range maxOpen {
		last = e.begin()
	}
	if _, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/ws", McpServers: []sdk.McpServer{}}); err == nil {
		t.Fatal("one session too many is opened")
	}
	if _, err := e.conn.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: last}); err != nil {
		t.Fatal(err)
	}
	e.begin()
	if _, err := e.prompt(last, "x"); code(err) != codeUnknown {
		t.Errorf("a closed session answers %v", err)
	}
}

func TestStopReasons(t *testing.T) {
	for reason, want := range map[event.Reason]sdk.StopReason{
		event.Complete: "end_turn", event.Blocked: "end_turn", "": "end_turn", event.Cancelled: "cancelled",
		event.Limited: "max_turn_requests", event.Looped: "max_turn_requests", event.Budget: "max_tokens",
	} {
		e := connect(t, &fakeHost{run: func(_ context.Context, c *fakeConv, in event.Input, _ Forms) (event.Reason, error) {
			return c.turn(in, event.End{Reason: reason, Text: "why"}), nil
		}})
		resp, err := e.prompt(e.begin(), "go")
		if err != nil || resp.StopReason != want {
			t.Errorf("%q: %v %v", reason, resp.StopReason, err)
		}
		if said := strings.Join(e.seen(), ""); strings.Contains(said, "why") == (reason == event.Cancelled) {
			t.Errorf("%q: said %q", reason, said)
		}
	}
}
