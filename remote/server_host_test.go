package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/internal/session"
	"zcoder/internal/store"
	"zcoder/tools"
)

const stationToken = "0123456789abcdef0123456789abcdef"

// keptLog keeps a session's events.
type keptLog struct {
	mu     sync.Mutex
	events []event.Event
}

func (l *keptLog) Append(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	return nil
}
func (l *keptLog) Sync() error  { return nil }
func (l *keptLog) Behind() bool { return false }
func (l *keptLog) Close() error { return nil }

// modelFunc is a model that says what its function returns.
type modelFunc func(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)

func (f modelFunc) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	return f(ctx, r, emit)
}

type askAll struct{}

func (askAll) Judge(approval.Request) approval.Verdict { return approval.Verdict{} }

type noRecorder struct{}

func (noRecorder) Record(approval.Record) error { return nil }

// runTool is a command tool that says what it ran.
type runTool struct{ ran func(string) }

func (runTool) Spec() tools.Spec {
	return tools.Spec{Name: "run", Params: []tools.Param{{Name: "command", Type: tools.String, Required: true}}}
}

func (t runTool) Plan(_ context.Context, c tools.Call) (tools.Action, error) {
	text := c.Args.Text("command")
	req := approval.Request{CallID: c.ID, Tool: "run", Effect: approval.Exec, Summary: "run " + strings.SplitN(text, "\n", 2)[0], Text: text, Dir: "/work", Timeout: "2m0s", Args: string(c.Args.JSON())}
	return tools.NewAction(req, func(context.Context, tools.Progress) tools.Result {
		t.ran(text)
		return tools.Result{Status: tools.OK, Text: "ran " + text, Diff: "-a\n+b\n"}
	}), nil
}

// testHost is a workspace whose model obeys: "say X" answers X, "run X" calls the tool
// and answers "done", "wait" blocks until release or the turn's end.
type testHost struct {
	t       testing.TB
	release chan struct{}
	calling chan struct{} // gets one for each blocked model call
	making  chan bool     // not nil: New sends on it when it begins, and waits for it

	mu       sync.Mutex
	conv     *session.Session
	logs     map[string]*keptLog
	order    []string // ids, newest last
	model    Model
	ensured  int
	loaded   chan Model // nil: ensure returns model at once
	prompts  []event.Input
	commands []string // that ran
	answers  []string // what forms got
}

func newTestHost(t testing.TB) *testHost {
	h := &testHost{t: t, release: make(chan struct{}), calling: make(chan struct{}, 100), logs: map[string]*keptLog{}, model: Model{Status: Ready}}
	h.begin("1_1", nil)
	return h
}

func (h *testHost) begin(id string, past []event.Event) {
	log := h.logs[id]
	if log == nil {
		log = &keptLog{}
		h.logs[id] = log
		h.order = append(h.order, id)
	}
	reg, err := tools.NewRegistry(runTool{func(s string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.commands = append(h.commands, s)
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	var mu sync.Mutex
	n := 0
	next := func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("c", id, "_", len(past)+n)
	}
	old := h.conv
	h.conv = session.New(session.Config{
		Info: event.Session{ID: id, Workspace: "/work", Profile: "coding", Model: "m"}, Log: log, Origin: approval.OriginRemote,
		Now: time.Now, NewTurnID: next, Gate: &approval.Gate{Policy: askAll{}, Recorder: noRecorder{}},
		Turn: func() (string, agent.Config) {
			return "sys", agent.Config{Model: modelFunc(h.chat), Tools: reg, Now: time.Now, NewID: next, MaxResult: 1 << 20}
		},
	}, past)
	if old != nil {
		old.Close()
	}
}

func (h *testHost) chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	verb, rest, _ := strings.Cut(last.Content, " ")
	m := chat.Message{Role: chat.Assistant, Content: "done"}
	switch {
	case last.Role == chat.ToolRole:
	case verb == "say":
		m.Content, m.Thinking = rest, "thought"
	case verb == "run":
		args, _ := json.Marshal(map[string]string{"command": rest})
		m = chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{Name: "run", Args: args}}}
	case verb == "many":
		n, _ := strconv.Atoi(rest)
		for i := range n {
			emit(chat.Delta{Content: fmt.Sprintf("piece %d\n", i)})
		}
	case verb == "fail":
		return chat.Reply{}, &chat.Error{Kind: chat.Unreachable, Text: "no server", Hint: "start it"}
	case verb == "wait":
		h.calling <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			return chat.Reply{}, ctx.Err()
		}
	}
	emit(chat.Delta{Content: m.Content})
	return chat.Reply{Message: m, Done: true, DoneReason: "stop"}, nil
}

func (h *testHost) Facts(context.Context) Facts {
	return Facts{Workspace: "/work", Model: "m", Profile: "coding", CommandPolicy: "ask", Harnesses: []string{"claude", "codex"}, GitStatus: "main", Readiness: h.status(), Version: "9"}
}

func (h *testHost) status() Model {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.model
}

func (h *testHost) Model(ctx context.Context, ensure bool) Model {
	if ensure {
		h.mu.Lock()
		h.ensured++
		loaded := h.loaded
		h.mu.Unlock()
		if loaded != nil {
			select {
			case m := <-loaded:
				h.mu.Lock()
				h.model = m
				h.mu.Unlock()
			case <-ctx.Done():
				return Model{Status: Failed, Error: ctx.Err().Error()}
			}
		}
	}
	return h.status()
}

func (h *testHost) current() *session.Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.conv
}

func (h *testHost) Current() Conversation { return h.current() }

func (h *testHost) Sessions() ([]store.Info, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []store.Info
	for i := len(h.order) - 1; i >= 0; i-- {
		turns := 0
		for _, e := range h.logs[h.order[i]].events {
			if e.Kind == event.TurnEnd {
				turns++
			}
		}
		list = append(list, store.Info{ID: h.order[i], Title: "title " + h.order[i], Model: "m", Turns: turns})
	}
	return list, nil
}

func (h *testHost) Past(id string) ([]event.Event, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	log := h.logs[id]
	if log == nil {
		return nil, fmt.Errorf("session %q: %w", id, store.ErrUnknown)
	}
	return append([]event.Event(nil), log.events...), nil
}

func (h *testHost) Select(_ context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	log := h.logs[id]
	if log == nil {
		return fmt.Errorf("session %q: %w", id, store.ErrUnknown)
	}
	h.begin(id, append([]event.Event(nil), log.events...))
	return nil
}

func (h *testHost) New(context.Context) (string, error) {
	if h.making != nil {
		h.making <- true
		<-h.making
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := fmt.Sprintf("1_%d", len(h.order)+1)
	h.begin(id, nil)
	return id, nil
}

type hostError struct{ error }

func (hostError) Hint() string { return "do better" }

func (h *testHost) Run(ctx context.Context, in event.Input, ui UI) (event.Reason, error) {
	h.mu.Lock()
	h.prompts = append(h.prompts, in)
	h.mu.Unlock()
	conv := h.current()
	verb, rest, _ := strings.Cut(in.Text, " ")
	switch verb {
	case "/print":
		conv.Emit(event.Event{Kind: event.Printed, Text: rest})
	case "/fail":
		return "", hostError{errors.New(rest)}
	case "/choose":
		i, ok := ui.Choose("Which?", strings.Split(rest, ","), 0)
		h.note(fmt.Sprint(i, ok))
	case "/line":
		line, ok := ui.AskLine(rest)
		h.note(fmt.Sprint(line, ok))
	case "/submit":
		h.note(fmt.Sprint(ui.Submit(rest)))
	case "/new":
		_, err := h.New(ctx)
		h.current().Emit(event.Event{Kind: event.Printed, Text: "new conversation"})
		return "", err
	case "/wait":
		h.calling <- struct{}{}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-h.release:
		}
	case "/queue":
		next, ok := conv.Next()
		if !ok {
			return "", errors.New("nothing waits")
		}
		return conv.Prompt(ctx, next)
	default:
		return conv.Prompt(ctx, in)
	}
	return "", nil
}

func (h *testHost) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, text)
}

func (h *testHost) RunNow(_ context.Context, text string, _ UI) (bool, error) {
	switch {
	case strings.HasPrefix(text, "/print "):
		h.current().Emit(event.Event{Kind: event.Printed, Text: text[7:]})
		return true, nil
	case strings.HasPrefix(text, "/fail "):
		return true, hostError{errors.New(text[6:])}
	}
	return false, nil
}

func (h *testHost) ran() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.commands...)
}

// manual holds the functions that a server wants to be called later.
type manual struct {
	mu   sync.Mutex
	left map[int]func()
	of   map[int]time.Duration
	n    int
}

func (m *manual) after(d time.Duration, f func()) func() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left == nil {
		m.left, m.of = map[int]func(){}, map[int]time.Duration{}
	}
	m.n++
	n := m.n
	m.left[n], m.of[n] = f, d
	return func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, ok := m.left[n]
		delete(m.left, n)
		return ok
	}
}

// fire calls what waits for just this long.
func (m *manual) fire(d time.Duration) {
	m.mu.Lock()
	var due []func()
	for n, f := range m.left {
		if m.of[n] == d {
			due = append(due, f)
			delete(m.left, n)
		}
	}
	m.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// station is a server over a test host, at a loopback address.
type station struct {
	t      testing.TB
	host   *testHost
	server *Server
	url    string
	http   *http.Client
	small  bool         // connections take little that their client does not read
	closed atomic.Int64 // such connections that ended
}

// smallListener gives connections a small buffer, and counts those that end.
type smallListener struct {
	net.Listener
	closed *atomic.Int64
}

func (l smallListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_ = conn.(*net.TCPConn).SetWriteBuffer(4096)
	return &smallConn{Conn: conn, closed: l.closed}, nil
}

type smallConn struct {
	net.Conn
	once   sync.Once
	closed *atomic.Int64
}

func (c *smallConn) Close() error {
	c.once.Do(func() { c.closed.Add(1) })
	return c.Conn.Close()
}

func newStation(t testing.TB, change ...func(*Config)) *station {
	t.Helper()
	h := newTestHost(t)
	var mu sync.Mutex
	var n uint64
	cfg := Config{
		Host: h, Name: "test", Token: stationToken, Now: time.Now,
		Random:    func() uint64 { mu.Lock(); defer mu.Unlock(); n += 4; return n << 8 },
		AfterFunc: func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop },
	}
	for _, f := range change {
		f(&cfg)
	}
	s := &station{t: t, host: h, server: New(t.Context(), cfg)}
	t.Cleanup(func() { s.server.Close() })
	return s
}

// listen serves with the real listener code.
func (s *station) listen() *station {
	s.t.Helper()
	l, err := Listen(s.t.Context(), "127.0.0.1", 0)
	if err != nil {
		s.t.Fatal(err)
	}
	addr := l.Addr().String()
	if s.small {
		l = smallListener{l, &s.closed}
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l) }()
	s.t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	s.url = "http://" + addr
	s.http = &http.Client{Transport: &http.Transport{}, Timeout: 30 * time.Second}
	s.t.Cleanup(s.http.CloseIdleConnections)
	return s
}

// ask sends one request and returns status and body.
func (s *station) ask(method, path, body string) (int, string) {
	s.t.Helper()
	r := httptest.NewRequest(method, path, nil)
	if body != "" {
		r = httptest.NewRequest(method, path, strings.NewReader(body))
	}
	r.Host = "localhost"
	r.Header.Set("Authorization", "Bearer "+stationToken)
	if s.url == "" {
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	q, err := http.NewRequest(method, s.url+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	q.Header = r.Header
	resp, err := s.http.Do(q)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// must sends a request that succeeds and returns the members of its reply.
func (s *station) must(method, path, body string) map[string]any {
	s.t.Helper()
	status, text := s.ask(method, path, body)
	if status/100 != 2 {
		s.t.Fatalf("%s %s = %d %s", method, path, status, text)
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		s.t.Fatalf("%s %s: %q: %v", method, path, text, err)
	}
	return out
}

func (s *station) turn(prompt string) string {
	s.t.Helper()
	return s.must("POST", "/v1/turn", jsonOf("prompt", prompt))["turn_id"].(string)
}

// jsonOf makes JSON of pairs.
func jsonOf(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(m)
	return strings.TrimSpace(b.String())
}

// limit is how long tests wait for what must come.
const limit = 30 * time.Second

// until polls the events of the turn up to the first of a kind.
func (s *station) until(kind string) []map[string]any {
	s.t.Helper()
	var list []map[string]any
	for start := time.Now(); time.Since(start) < limit; {
		e := s.must("GET", fmt.Sprintf("/v1/events?after=%d", len(list)), "")
		if e["event"] == "none" {
			time.Sleep(time.Millisecond)
			continue
		}
		if int(e["seq"].(float64)) != len(list)+1 {
			s.t.Fatalf("event %v comes after %d others", e, len(list))
		}
		list = append(list, e)
		if e["event"] == kind {
			return list
		}
		if e["event"] == "complete" {
			break
		}
	}
	s.t.Fatalf("no %s event came: %v", kind, list)
	return nil
}

// short is one line for each event but status ones.
func short(events []map[string]any) string {
	var lines []string
	for _, e := range events {
		switch e["event"] {
		case "message":
			lines = append(lines, fmt.Sprintf("%s: %s", e["role"], e["content"]))
		case "tool":
			lines = append(lines, fmt.Sprintf("tool %s %s %s", e["phase"], e["name"], e["args"]))
		case "approval_required":
			lines = append(lines, fmt.Sprintf("%s? %s", e["kind"], e["command"]))
		case "complete":
			lines = append(lines, fmt.Sprint("exit ", e["exit_code"]))
		}
	}
	return strings.Join(lines, "\n")
}

func (s *station) blocked() {
	s.t.Helper()
	select {
	case <-s.host.calling:
	case <-time.After(limit):
		s.t.Fatal("the model was not asked")
	}
}

func (s *station) idle() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.server.Idle(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// raw sends bytes over one connection and returns all that comes back.
func (s *station) raw(text string) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Error(err)
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(limit))
	_, _ = io.WriteString(conn, text) // it may be refused before all was sent
	data, _ := io.ReadAll(conn)
	return string(data)
}
