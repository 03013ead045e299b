package acp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

// TestMain silences the client side of the SDK, which tells of every end.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

// script is what a fake conversation does with a prompt.
type script func(ctx context.Context, c *fakeConv, in event.Input, ask Forms) (event.Reason, error)

// fakeHost is a host whose conversations play a script.
type fakeHost struct {
	run script

	mu     sync.Mutex
	n      int
	starts []Start
	convs  []*fakeConv
	stored map[string][]event.Event
	listed []Listed
}

func (h *fakeHost) Modes() []Mode {
	return []Mode{{"coding", "coding", "files"}, {"sysadmin", "sysadmin", "the machine"}}
}
func (h *fakeHost) Images(context.Context) bool { return true }

func (h *fakeHost) List(_ context.Context, dir string) ([]Listed, error) {
	var list []Listed
	for _, l := range h.listed {
		if dir == "" || l.Dir == dir {
			list = append(list, l)
		}
	}
	return list, nil
}

func (h *fakeHost) Open(_ context.Context, s Start) (Conversation, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.starts = append(h.starts, s)
	c := &fakeConv{host: h, mode: "coding", changed: make(chan struct{}), answers: make(chan event.Answer, 10)}
	if s.Session != "" {
		past, ok := h.stored[s.Session]
		if !ok {
			return nil, fmt.Errorf("session %q: %w", s.Session, ErrUnknown)
		}
		c.id, c.events = s.Session, past
	} else {
		h.n++
		c.id = fmt.Sprintf("s%d", h.n)
		c.emit(event.Event{Kind: event.Opened})
	}
	h.convs = append(h.convs, c)
	return c, nil
}

// fakeConv keeps events as a session does.
type fakeConv struct {
	host    *fakeHost
	id      string
	answers chan event.Answer

	mu      sync.Mutex
	mode    string
	events  []event.Event
	changed chan struct{}
	closed  bool
	items   []event.Item
}

func (c *fakeConv) emit(e event.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := int64(0)
	if len(c.events) > 0 {
		n = c.events[len(c.events)-1].Seq
	}
	if e.Seq = n; !e.Kind.Live() {
		e.Seq++
	}
	c.events = append(c.events, e)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeConv) Info() event.Session {
	for range 50 { // others go first, where they may
		runtime.Gosched()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return event.Session{ID: c.id, Workspace: "/ws", Profile: c.mode}
}

func (c *fakeConv) LastSeq() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.events) == 0 {
		return 0
	}
	return c.events[len(c.events)-1].Seq
}

func (c *fakeConv) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		at := 0
		for {
			c.mu.Lock()
			list, changed, closed := c.events[min(at, len(c.events)):], c.changed, c.closed
			at = len(c.events)
			c.mu.Unlock()
			for _, e := range list {
				if e.Seq > after && !yield(e, nil) {
					return
				}
			}
			if closed {
				yield(event.Event{}, errors.New("closed"))
				return
			}
			if len(list) > 0 {
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

func (c *fakeConv) Run(ctx context.Context, in event.Input, ask Forms) (event.Reason, error) {
	return c.host.run(ctx, c, in, ask)
}

func (c *fakeConv) Answer(callID string, a event.Answer) error {
	a.CallID = callID
	c.emit(event.Event{Kind: event.Answered, Answer: &a})
	c.answers <- a
	return nil
}

func (c *fakeConv) Enqueue(item event.Item) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, have := range c.items {
		if have.ID == item.ID && have != item {
			return "", errors.New("another message has this id")
		}
	}
	c.items = append(c.items, item)
	return "accepted", nil
}

func (c *fakeConv) SetMode(_ context.Context, mode string) error {
	if c.LastSeq() > 1 {
		return errors.New("something was said in it")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = mode
	return nil
}

func (c *fakeConv) Commands() []Command {
	return []Command{{Name: "model", About: "choose a model", Usage: "[NAME]"}, {Name: "undo", About: "undo"}}
}

func (c *fakeConv) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errors.New("closed twice")
	}
	c.closed = true
	close(c.changed)
	c.changed = make(chan struct{})
	return nil
}

// editor is the client side: the SDK's own, with what a person would click.
type editor struct {
	t       *testing.T
	conn    *sdk.ClientSideConnection
	hangUp  func()
	served  chan error
	click   func(context.Context, sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error)
	mu      sync.Mutex
	updates []sdk.SessionNotification
	asked   []sdk.RequestPermissionRequest
	more    chan struct{}
}

func (e *editor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	e.asked = append(e.asked, p)
	e.mu.Unlock()
	return e.click(ctx, p)
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.updates = append(e.updates, n)
	close(e.more)
	e.more = make(chan struct{})
	return nil
}

// until waits for an update.
func (e *editor) until(what string, ok func(sdk.SessionUpdate) bool) {
	e.t.Helper()
	limit := time.After(patience)
	for {
		e.mu.Lock()
		more := e.more
		for _, n := range e.updates {
			if ok(n.Update) {
				e.mu.Unlock()
				return
			}
		}
		e.mu.Unlock()
		select {
		case <-more:
		case <-limit:
			e.t.Fatalf("no update: %s; there are:\n%s", what, strings.Join(e.seen(), "\n"))
		}
	}
}

// seen is every update but the commands, in one line each.
func (e *editor) seen() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var list []string
	for _, n := range e.updates {
		if n.Update.AvailableCommandsUpdate == nil {
			list = append(list, describe(n.Update))
		}
	}
	return list
}

func describe(u sdk.SessionUpdate) string {
	switch {
	case u.UserMessageChunk != nil:
		return "user " + u.UserMessageChunk.Content.Text.Text
	case u.AgentMessageChunk != nil:
		return "say " + u.AgentMessageChunk.Content.Text.Text
	case u.AgentThoughtChunk != nil:
		return "think " + u.AgentThoughtChunk.Content.Text.Text
	case u.ToolCall != nil:
		return fmt.Sprintf("call %s %s %s %s %v", u.ToolCall.ToolCallId, u.ToolCall.Kind, u.ToolCall.Status, u.ToolCall.Title, paths(u.ToolCall.Locations))
	case u.ToolCallUpdate != nil:
		c := u.ToolCallUpdate
		status := "-"
		if c.Status != nil {
			status = string(*c.Status)
		}
		return fmt.Sprintf("update %s %s %s%v", c.ToolCallId, status, contents(c.Content), paths(c.Locations))
	case u.Plan != nil:
		text := "plan"
		for _, p := range u.Plan.Entries {
			text += fmt.Sprintf(" %s=%s", p.Content, p.Status)
		}
		return text
	case u.UsageUpdate != nil:
		return fmt.Sprintf("usage %d of %d", u.UsageUpdate.Used, u.UsageUpdate.Size)
	case u.SessionInfoUpdate != nil:
		return "title " + *u.SessionInfoUpdate.Title
	}
	return fmt.Sprintf("%+v", u)
}

func contents(list []sdk.ToolCallContent) string {
	var b strings.Builder
	for _, c := range list {
		switch {
		case c.Diff != nil && c.Diff.OldText == nil:
			fmt.Fprintf(&b, "new %s %q ", c.Diff.Path, c.Diff.NewText)
		case c.Diff != nil:
			fmt.Fprintf(&b, "diff %s %q→%q ", c.Diff.Path, *c.Diff.OldText, c.Diff.NewText)
		case c.Content != nil:
			fmt.Fprintf(&b, "%q ", c.Content.Content.Text.Text)
		}
	}
	return b.String()
}

func paths(list []sdk.ToolCallLocation) []string {
	var out []string
	for _, l := range list {
		p := l.Path
		if l.Line != nil {
			p += fmt.Sprintf(":%d", *l.Line)
		}
		out = append(out, p)
	}
	return out
}

var errUnused = errors.New("the agent does not use this")

func (e *editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	e.t.Error("the agent reads a file of the editor")
	return r, errUnused
}

func (e *editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	e.t.Error("the agent writes a file of the editor")
	return r, errUnused
}

func (e *editor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	e.t.Error("the agent opens a terminal of the editor")
	return r, errUnused
}

func (e *editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, errUnused
}

func (e *editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, errUnused
}

func (e *editor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, errUnused
}

func (e *editor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, errUnused
}

// pick clicks an option.
func pick(option string) func(context.Context, sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	return func(context.Context, sdk.RequestPermissionRequest) (r sdk.RequestPermissionResponse, err error) {
		r.Outcome.Selected = &sdk.RequestPermissionOutcomeSelected{OptionId: sdk.PermissionOptionId(option)}
		return r, nil
	}
}

// connect serves the host to an editor that clicks "once".
func connect(t *testing.T, h *fakeHost) *editor {
	t.Helper()
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	e := &editor{t: t, served: make(chan error, 1), more: make(chan struct{}), click: pick(once), hangUp: func() { toAgent.Close() }}
	ids := 0
	go func() {
		e.served <- Serve(context.Background(), in, out, h, Options{Version: "1", NewID: func() string { ids++; return fmt.Sprintf("id%d", ids) }})
		out.Close()
	}()
	e.conn = sdk.NewClientSideConnection(e, toAgent, fromAgent)
	t.Cleanup(func() {
		toAgent.Close()
		fromAgent.Close()
	})
	if _, err := e.conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: 1}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *editor) begin() sdk.SessionId {
	e.t.Helper()
	resp, err := e.conn.NewSession(e.t.Context(), sdk.NewSessionRequest{Cwd: "/ws", McpServers: []sdk.McpServer{}})
	if err != nil {
		e.t.Fatal(err)
	}
	return resp.SessionId
}

func (e *editor) prompt(id sdk.SessionId, text string) (sdk.PromptResponse, error) {
	return e.conn.Prompt(e.t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
}

func code(err error) int {
	var e *sdk.RequestError
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
