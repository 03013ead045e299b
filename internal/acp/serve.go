package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// Options are what Serve needs besides the host. NewID is required.
type Options struct {
	Version string
	// NewID returns an id for input that came without one.
	NewID func() string
	// Log takes diagnostics, one foreign line each; nil drops them.
	Log func(line string)
}

// Bounds of one connection.
const (
	maxOpen   = 32 // conversations
	maxServed = 50 // MCP servers that a conversation begins with
	pageSize  = 100
	// endPatience is how long an editor that reads nothing may hold up the end.
	endPatience = 2 * time.Second
)

// ErrUnknown is wrapped by errors of a Host about a conversation that there is not.
var ErrUnknown = errors.New("there is no such session")

// Serve speaks the protocol until the editor closes in, or ctx ends. Then it stops
// what runs, closes every conversation and waits for that. The error says why the
// editor could not be written to; an editor that went away is no error.
func Serve(ctx context.Context, in io.Reader, out io.Writer, h Host, o Options) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	a := &agent{host: h, o: o, base: ctx, sessions: map[string]*session{}}
	a.out = &output{w: out, news: map[string]chan struct{}{}, failed: func(err error) {
		cancel(fmt.Errorf("write to the editor: %w", err))
	}}
	open := make(chan struct{})
	a.in = newIntake(in, a.out, open, ctx.Done())
	a.conn = sdk.NewConnection(a.handle, a.out, a.in)
	a.conn.SetLogger(slog.New(slog.NewTextHandler(logLines(o.Log), &slog.HandlerOptions{Level: slog.LevelWarn})))
	close(open)
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	err := context.Cause(ctx)
	cancel(nil)
	a.end()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

type logLines func(string)

func (f logLines) Write(p []byte) (int, error) {
	f(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// agent is our side of the connection.
type agent struct {
	host Host
	o    Options
	base context.Context // of the connection: what conversations are opened under
	conn *sdk.Connection
	in   *intake
	out  *output

	mu       sync.Mutex
	greeted  bool
	ended    bool
	opening  int
	sessions map[string]*session
}

// end closes all conversations.
func (a *agent) end() {
	a.mu.Lock()
	a.ended = true
	list := a.sessions
	a.sessions = map[string]*session{}
	a.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range list {
		closing.Add(1)
		go func() {
			defer closing.Done()
			if err := s.close(); err != nil {
				a.o.Log("close a session: " + err.Error())
			}
		}()
	}
	closing.Wait()
}

// handle implements sdk.MethodHandler. It takes each message once, see intake.
func (a *agent) handle(ctx context.Context, method string, params json.RawMessage) (any, *sdk.RequestError) {
	took := sync.OnceFunc(a.in.took)
	defer took()
	if !a.greet(method) {
		return nil, refused("initialize comes first, and once")
	}
	switch method {
	case sdk.AgentMethodInitialize:
		return answer(ctx, params, took, a.initialize)
	case sdk.AgentMethodSessionNew:
		return answer(ctx, params, took, a.newSession)
	case sdk.AgentMethodSessionLoad:
		return answer(ctx, params, took, a.loadSession)
	case sdk.AgentMethodSessionResume:
		return answer(ctx, params, took, a.resumeSession)
	case sdk.AgentMethodSessionList:
		return answer(ctx, params, took, a.listSessions)
	case sdk.AgentMethodSessionPrompt:
		return answer(ctx, params, nil, func(ctx context.Context, p sdk.PromptRequest) (any, error) { return a.prompt(ctx, p, took) })
	case sdk.AgentMethodSessionCancel:
		return answer(ctx, params, nil, a.cancel)
	case sdk.AgentMethodSessionSetMode:
		return answer(ctx, params, nil, func(ctx context.Context, p sdk.SetSessionModeRequest) (any, error) { return a.setMode(ctx, p, took) })
	case sdk.AgentMethodSessionClose:
		return answer(ctx, params, nil, a.closeSession)
	case InputMethod:
		return answer(ctx, params, nil, a.input)
	}
	return nil, sdk.NewMethodNotFound(method)
}

// greet reports whether a method may be called now: initialize first, and only then.
func (a *agent) greet(method string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := method == sdk.AgentMethodInitialize
	if first == a.greeted {
		return false
	}
	a.greeted = true
	return true
}

// answer decodes the parameters and calls f. With took set, the next message may be
// handled while f runs.
func answer[P, R any](ctx context.Context, params json.RawMessage, took func(), f func(context.Context, P) (R, error)) (any, *sdk.RequestError) {
	var p P
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	if took != nil {
		took()
	}
	r, err := f(ctx, p)
	if err != nil {
		return nil, requestError(err)
	}
	return r, nil
}

// decode reads parameters and checks them as the SDK does.
func decode(params json.RawMessage, into any) *sdk.RequestError {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	err := json.Unmarshal(params, into)
	if v, ok := into.(interface{ Validate() error }); ok && err == nil {
		err = v.Validate()
	}
	if err != nil {
		return invalid("the parameters cannot be used: %v", err)
	}
	return nil
}

// codeUnknown is the protocol's code for what is not there.
const codeUnknown = -32002

func invalid(format string, args ...any) *sdk.RequestError {
	e := sdk.NewInvalidParams(nil)
	e.Message = fmt.Sprintf(format, args...)
	return e
}

func refused(format string, args ...any) *sdk.RequestError {
	e := sdk.NewInvalidRequest(nil)
	e.Message = fmt.Sprintf(format, args...)
	return e
}

// requestError is what the editor shows of an error: the text itself, and the hint.
func requestError(err error) *sdk.RequestError {
	var e *sdk.RequestError
	if errors.As(err, &e) {
		return e
	}
	e = sdk.NewInternalError(nil)
	e.Message = err.Error()
	if errors.Is(err, ErrUnknown) {
		e.Code = codeUnknown
	}
	if hint := hintOf(err); hint != "" {
		e.Data = map[string]any{"hint": hint}
	}
	return e
}

func hintOf(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

// initialize agrees on the protocol and says what is possible. There is one version.
func (a *agent) initialize(ctx context.Context, _ sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	title := "zcoder"
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "zcoder", Title: &title, Version: a.o.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			McpCapabilities:    sdk.McpCapabilities{Http: true},
			PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true, Image: a.host.Images(ctx)},
			SessionCapabilities: sdk.SessionCapabilities{
				Close: &sdk.SessionCloseCapabilities{}, List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{},
			},
			Meta: map[string]any{"zcoder": map[string]any{"input": InputMethod}},
		},
	}, nil
}

// directory checks the directory of a conversation. Whether it exists the host finds
// out.
func directory(cwd string, more []string) (string, error) {
	switch {
	case len(more) > 0:
		return "", invalid("a session has one directory; additionalDirectories are not supported")
	case !filepath.IsAbs(cwd) || strings.ContainsRune(cwd, 0):
		return "", invalid("cwd %q is not an absolute path", cwd)
	}
	return filepath.Clean(cwd), nil
}

func (a *agent) newSession(_ context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	s, err := a.open("", p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	s.follow(0, a.out.announced(s.id))
	return sdk.NewSessionResponse{SessionId: sdk.SessionId(s.id), Modes: a.modes(s)}, nil
}

// loadSession sends all that was said before it answers.
func (a *agent) loadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s, err := a.reopen(p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	last := s.conv.LastSeq()
	s.follow(0, nil)
	s.sent(ctx, last)
	return sdk.LoadSessionResponse{Modes: a.modes(s)}, nil
}

func (a *agent) resumeSession(_ context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	s, err := a.reopen(p.SessionId, p.Cwd, p.AdditionalDirectories, p.McpServers)
	if err != nil {
		return sdk.ResumeSessionResponse{}, err
	}
	s.follow(s.conv.LastSeq(), nil)
	return sdk.ResumeSessionResponse{Modes: a.modes(s)}, nil
}

// reopen goes on with a stored conversation. One that is open here is closed first,
// unless it works.
func (a *agent) reopen(id sdk.SessionId, cwd string, more []string, servers []sdk.McpServer) (*session, error) {
	if id == "" {
		return nil, invalid("sessionId is required")
	}
	if _, err := startOf(string(id), cwd, more, servers); err != nil {
		return nil, err
	}
	a.mu.Lock()
	s := a.sessions[string(id)]
	a.mu.Unlock()
	if s != nil {
		if err := s.claim(reopening); err != nil {
			return nil, err
		}
		a.forget(s)
		if err := s.close(); err != nil {
			return nil, err
		}
	}
	return a.open(string(id), cwd, more, servers)
}

// startOf reads how a conversation is to begin.
func startOf(id, cwd string, more []string, servers []sdk.McpServer) (start Start, err error) {
	start.Session = id
	if start.Dir, err = directory(cwd, more); err == nil {
		start.Servers, err = readServers(servers)
	}
	return start, err
}

// open has the host open a conversation, a new one for an empty id.
func (a *agent) open(id, cwd string, more []string, servers []sdk.McpServer) (*session, error) {
	start, err := startOf(id, cwd, more, servers)
	if err != nil {
		return nil, err
	}
	if err := a.reserve(); err != nil {
		return nil, err
	}
	conv, err := a.host.Open(a.base, start)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opening--
	switch {
	case err != nil:
		return nil, err
	case a.ended:
		return nil, errors.Join(refused("the connection has ended"), conv.Close())
	}
	s := newSession(a, conv, start.Dir)
	if a.sessions[s.id] != nil {
		return nil, errors.Join(refused("session %s is open already", s.id), conv.Close())
	}
	a.sessions[s.id] = s
	return s, nil
}

// reserve makes sure that there is room for one more conversation.
func (a *agent) reserve() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions)+a.opening >= maxOpen {
		return refused("%d sessions are open already; close one", maxOpen)
	}
	a.opening++
	return nil
}

func (a *agent) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.sessions, s.id)
}

// find returns an open conversation.
func (a *agent) find(id sdk.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[string(id)]; s != nil {
		return s, nil
	}
	return nil, &sdk.RequestError{Code: codeUnknown, Message: fmt.Sprintf("session %q is not open here: session/new begins one, session/load opens one", id)}
}

func (a *agent) modes(s *session) *sdk.SessionModeState {
	state := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(s.conv.Info().Profile)}
	for _, m := range a.host.Modes() {
		state.AvailableModes = append(state.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(m.ID), Name: m.Name, Description: &m.About})
	}
	return state
}

// listSessions lists a page of the stored conversations. The cursor is the last id of
// the page before.
func (a *agent) listSessions(ctx context.Context, p sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	out := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	dir := ""
	if p.Cwd != nil {
		var err error
		if dir, err = directory(*p.Cwd, nil); err != nil {
			return out, err
		}
	}
	list, err := a.host.List(ctx, dir)
	if err != nil {
		return out, err
	}
	after := ""
	if p.Cursor != nil {
		after = *p.Cursor
	}
	for _, l := range list {
		if after != "" {
			if l.ID == after {
				after = ""
			}
			continue
		}
		if len(out.Sessions) == pageSize {
			last := string(out.Sessions[pageSize-1].SessionId)
			out.NextCursor = &last
			break
		}
		info := sdk.SessionInfo{SessionId: sdk.SessionId(l.ID), Cwd: l.Dir, Title: &l.Title}
		if !l.Changed.IsZero() {
			changed := l.Changed.UTC().Format(time.RFC3339)
			info.UpdatedAt = &changed
		}
		out.Sessions = append(out.Sessions, info)
	}
	return out, nil
}

func (a *agent) cancel(_ context.Context, p sdk.CancelNotification) (any, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return nil, err
	}
	s.stop()
	return nil, nil
}

func (a *agent) closeSession(_ context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := a.find(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	a.forget(s)
	return sdk.CloseSessionResponse{}, s.close()
}

// setMode changes the mode of a conversation in which nothing was said yet.
func (a *agent) setMode(ctx context.Context, p sdk.SetSessionModeRequest, took func()) (sdk.SetSessionModeResponse, error) {
	var none sdk.SetSessionModeResponse
	s, err := a.find(p.SessionId)
	if err != nil {
		return none, err
	}
	if err := s.claim("changes its mode"); err != nil {
		return none, err
	}
	defer s.release()
	took()
	if s.conv.Info().Profile == string(p.ModeId) {
		return none, nil
	}
	s.unfollow()
	err = s.conv.SetMode(ctx, string(p.ModeId))
	if err != nil {
		s.follow(s.shown(), nil)
		return none, err
	}
	s.follow(0, nil)
	return none, nil
}

// InputMethod is our extension: input for a conversation that works.
const InputMethod = "_zcoder/input"
