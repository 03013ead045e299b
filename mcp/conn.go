package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	spec "github.com/mark3labs/mcp-go/mcp"
)

const (
	maxTools  = 1000    // of one server
	maxList   = 4 << 20 // bytes of all its definitions
	maxPages  = 100     // of one list
	maxWait   = time.Hour
	maxStalls = 10 // times its time-out that a call may last while progress comes
	// progressPause is the least time between two lines of progress that are shown.
	progressPause = 100 * time.Millisecond
)

// conn is a live connection to a server. Its methods may be called from several
// goroutines.
type conn struct {
	client  *client.Client
	program bool // its end is noticed by itself
	log     *ring
	cancel  context.CancelFunc
	caps    spec.ServerCapabilities
	info    string        // name and version, as the server gives them
	stop    func()        // ends the stream of notifications; may be nil
	stale   atomic.Bool   // its tools or prompts may have changed
	heard   chan struct{} // has a value once the server tells of changes

	once sync.Once
	over chan struct{} // closed when it can no longer be used
	why  error         // valid then

	mu     sync.Mutex
	tokens int64
	calls  map[string]*watch // by progress token
}

// watch is a call that wants to hear of its progress.
type watch struct {
	mu   sync.Mutex
	over bool
	f    func(done, total float64, text string)
}

func (w *watch) tell(done, total float64, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.f(done, total, text)
	}
}

func newConn(c *client.Client, log *ring) *conn {
	return &conn{client: c, log: log, calls: map[string]*watch{}, over: make(chan struct{}), heard: make(chan struct{}, 1)}
}

// lose says that the connection can no longer be used.
func (c *conn) lose(why error) {
	c.once.Do(func() {
		c.why = why
		close(c.over)
	})
}

// begin starts the transport and shakes hands. The transport outlives life, so that
// close can end it in order.
func (c *conn) begin(life, ctx context.Context, version string) error {
	life, c.cancel = context.WithCancel(context.WithoutCancel(life))
	stopped := context.AfterFunc(ctx, c.cancel)
	defer stopped()
	c.client.OnNotification(c.notified)
	c.client.OnConnectionLost(func(err error) { c.lose(fmt.Errorf("the connection was lost: %w", err)) })
	if err := c.client.Start(life); err != nil {
		return err
	}
	result, err := c.client.Initialize(ctx, spec.InitializeRequest{
		Params: spec.InitializeParams{ClientInfo: spec.Implementation{Name: "zcoder", Version: version}},
	})
	if err != nil {
		return err
	}
	c.caps = result.Capabilities
	c.info = plain(result.ServerInfo.Name+" "+result.ServerInfo.Version, 100)
	if c.modern() && c.announces() {
		return c.listen(life, ctx)
	}
	return nil
}

// ackWait is how long a server may take to say that it tells of changes, before its
// tools are listed all the same.
const ackWait = time.Second

// listen asks a server of the newer protocol to tell when its tools change, and waits
// until it does, so that no change falls between this and the first list.
func (c *conn) listen(life, ctx context.Context) error {
	var err error
	c.stop, err = c.client.ListenAsync(life, spec.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: c.caps.Prompts != nil && c.caps.Prompts.ListChanged}, func(err error) {
		c.log.add("client: the server no longer tells of changes: " + err.Error())
	})
	if err != nil {
		return err
	}
	late := time.NewTimer(ackWait)
	defer late.Stop()
	select {
	case <-c.heard:
	case <-late.C:
		c.log.add("client: the server did not say whether it tells of changes")
	case <-ctx.Done():
	}
	return nil
}

func (c *conn) modern() bool { return spec.IsModernProtocol(c.client.ProtocolVersion()) }

// announces reports whether the server says that it tells when its tools change.
func (c *conn) announces() bool { return c.caps.Tools != nil && c.caps.Tools.ListChanged }

// close ends the connection and waits for what belongs to it.
func (c *conn) close() {
	if c.stop != nil {
		c.stop()
	}
	_ = c.client.Close() // there is nobody left to tell
	c.cancel()
}

// notified takes a notification. It does not block.
func (c *conn) notified(n spec.JSONRPCNotification) {
	fields := n.Params.AdditionalFields
	switch n.Method {
	case spec.MethodNotificationToolsListChanged, spec.MethodNotificationPromptsListChanged:
		c.stale.Store(true)
	case spec.MethodNotificationSubscriptionsAcknowledged:
		select {
		case c.heard <- struct{}{}:
		default:
		}
	case string(spec.MethodNotificationProgress):
		c.progressed(fields)
	case string(spec.MethodNotificationMessage):
		if text, err := encode(fields["data"]); err == nil {
			c.log.add("server: " + string(text))
		}
	}
}

func (c *conn) progressed(fields map[string]any) {
	token, _ := fields["progressToken"].(string)
	c.mu.Lock()
	w := c.calls[token]
	c.mu.Unlock()
	if w == nil {
		return
	}
	done, _ := fields["progress"].(float64)
	total, _ := fields["total"].(float64)
	text, _ := fields["message"].(string)
	w.tell(done, total, text)
}

// tools lists all tools of the server, page by page.
func (c *conn) tools(ctx context.Context) ([]Definition, error) {
	if c.caps.Tools == nil {
		return nil, nil
	}
	c.stale.Store(false)
	var list []Definition
	var bad []error
	size := 0
	request := spec.ListToolsRequest{}
	for range maxPages {
		var raw json.RawMessage
		parsed, err := c.client.ListToolsByPage(captureChecked(ctx, &raw, checkPage), request)
		if errors.Is(err, errTooMany) {
			return nil, errTooMany
		}
		if raw == nil {
			return nil, c.failure(ctx, err)
		}
		page, errs, err := readPage(raw, parsed)
		if err != nil {
			return nil, err
		}
		list, bad = append(list, page.tools...), append(bad, errs...)
		if size += len(raw); len(list) > maxTools || size > maxList {
			return nil, errTooMany
		}
		if page.next == "" {
			for _, err := range bad {
				c.log.add("client: " + err.Error())
			}
			return unique(list)
		}
		request.Params.Cursor = spec.Cursor(page.next)
	}
	return nil, fmt.Errorf("the server's list of tools has more than %d pages", maxPages)
}

var errTooMany = fmt.Errorf("the server has more than %d tools, or %d MiB of them", maxTools, maxList>>20)

// checkPage refuses a page of tools that is too large to be read.
func checkPage(raw json.RawMessage) error {
	if len(raw) > maxList {
		return errTooMany
	}
	var page struct {
		Tools json.RawMessage `json:"tools"`
	}
	if json.Unmarshal(raw, &page) != nil {
		return nil // readPage says what is wrong
	}
	if more, _ := eachElement(page.Tools, maxTools, func(json.RawMessage) {}); more > 0 {
		return errTooMany
	}
	return nil
}

type toolPage struct {
	tools []Definition
	next  string
}

// readPage reads one page of tools word for word. A tool that mcp-go leaves out is
// left out; one that cannot be read is an error beside the others.
func readPage(raw json.RawMessage, parsed *spec.ListToolsResult) (toolPage, []error, error) {
	var result struct {
		Tools json.RawMessage `json:"tools"`
		Next  string          `json:"nextCursor"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return toolPage{}, nil, fmt.Errorf("read the list of tools: %w", jsonError(err))
	}
	page := toolPage{next: result.Next}
	var bad []error
	known := map[string]bool{}
	if parsed != nil {
		for _, t := range parsed.Tools {
			known[t.Name] = true
		}
	}
	_, err := eachElement(result.Tools, maxTools, func(r json.RawMessage) {
		d, err := parseDefinition(r)
		switch {
		case err != nil:
			bad = append(bad, err)
		case parsed == nil || known[d.Name]:
			page.tools = append(page.tools, d)
		}
	})
	if err != nil {
		return toolPage{}, nil, fmt.Errorf("read the list of tools: %w", err)
	}
	return page, bad, nil
}

// unique refuses a list in which a name stands for two tools, and sorts it.
func unique(list []Definition) ([]Definition, error) {
	slices.SortStableFunc(list, func(a, b Definition) int { return compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			return nil, fmt.Errorf("the server lists the tool %q twice", plain(list[i].Name, 100))
		}
	}
	return list, nil
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// errTimeout ends a call that takes too long.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string {
	return fmt.Sprintf("the server did not answer within %s", e.after)
}

// call calls a tool and returns the result as the server sent it. Each sign of
// progress gives it the whole time again, within reason.
func (c *conn) call(ctx context.Context, tool string, args json.RawMessage, limit time.Duration, progress func(string)) (json.RawMessage, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := func() { cancel(errTimeout{limit}) }
	idle := time.AfterFunc(limit, late)
	defer idle.Stop()
	whole := time.AfterFunc(limit*maxStalls, late)
	defer whole.Stop()

	var shown time.Time
	token, forget := c.watch(func(done, total float64, text string) {
		idle.Reset(limit)
		if time.Since(shown) > progressPause {
			shown = time.Now()
			progress(progressLine(done, total, text))
		}
	})
	defer forget()
	var raw json.RawMessage
	request := spec.CallToolRequest{Params: spec.CallToolParams{Name: tool, Arguments: args, Meta: &spec.Meta{ProgressToken: token}}}
	_, err := c.client.CallTool(capture(ctx, &raw), request)
	if raw != nil && ctx.Err() == nil {
		return raw, nil
	}
	if errors.As(context.Cause(ctx), &errTimeout{}) && !c.program {
		// A stream that broke silently is not waited for again.
		c.lose(context.Cause(ctx))
	}
	return nil, c.failure(ctx, err)
}

// watch gives progress with a token of its own to f until forget.
func (c *conn) watch(f func(done, total float64, text string)) (token string, forget func()) {
	w := &watch{f: f}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	token = strconv.FormatInt(c.tokens, 10)
	c.calls[token] = w
	return token, func() {
		c.mu.Lock()
		delete(c.calls, token)
		c.mu.Unlock()
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
	}
}

func progressLine(done, total float64, text string) string {
	line := strconv.FormatFloat(done, 'g', 12, 64)
	if total > 0 {
		line += "/" + strconv.FormatFloat(total, 'g', 12, 64)
	}
	if text != "" {
		line += " " + plain(text, 200)
	}
	return line + "\n"
}

// failure is the reason for which a request under ctx failed. One from below the
// protocol means that the connection is not used again.
func (c *conn) failure(ctx context.Context, err error) (failed error) {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var below *transport.Error
	switch {
	case err == nil:
		return errors.New("the server sent no result")
	case client.IsAuthorizationRequiredError(err), client.IsOAuthAuthorizationRequiredError(err):
		return errLogin
	case errors.As(err, &below):
		err = below.Err
		defer func() { c.lose(failed) }()
	}
	return errors.New(plain(err.Error(), 500))
}
