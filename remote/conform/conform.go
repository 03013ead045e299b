// Package conform holds a server of remote protocol 1 against the contract, from
// outside: it knows a base URL, a token and three prompts, and speaks as existing peers
// do, one request for each connection. Tests call it, for the server in this program and
// for the whole program; nothing else does.
package conform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Target is a server under test. All of it is required. No other client uses the
// server meanwhile.
type Target struct {
	Address string // HOST:PORT, or the path of a socket
	Token   string
	// Quick is a prompt whose turn ends by itself with exit code 0 after a message.
	Quick string
	// Asks is a prompt whose turn asks for an approval of Command, and ends with exit code
	// 0 when that is given.
	Asks, Command string
	// Long is a prompt whose turn goes on until it is cancelled. It may ask for
	// approvals, which are given.
	Long string
}

// patience is how long anything may take to come.
const patience = time.Minute

// Run tests everything that the contract says and that can be seen from outside. It
// begins a conversation and leaves it as the current one.
func Run(t *testing.T, target Target) {
	c := client{t, target, map[string]bool{}}
	for _, part := range []struct {
		name string
		test func(client)
	}{
		{"framing", client.framing},
		{"routes", client.routes},
		{"hello", client.hello},
		{"model", client.model},
		{"bodies", client.bodies},
		{"queries", client.queries},
		{"sessions", client.sessions},
		{"a turn", client.turn},
		{"approvals", client.approvals},
		{"structured events", client.structured},
		{"cancel", client.cancel},
		{"input", client.input},
		{"extensions", client.extensions},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(client{t, target, c.given}) })
	}
	c.idle()
}

// client speaks to the server as an existing peer.
type client struct {
	*testing.T
	to    Target
	given map[string]bool // approvals that have an answer
}

// answer is a reply with its object.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) text(name string) string { s, _ := a.body[name].(string); return s }

func (c client) dial() net.Conn {
	c.Helper()
	network := "tcp"
	if strings.HasPrefix(c.to.Address, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, c.to.Address, patience)
	if err != nil {
		c.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// send writes a request and reads the reply, which must be one of this protocol.
func (c client) send(request string) answer {
	c.Helper()
	conn := c.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		c.Logf("send: %v", err) // it may be refused before all was sent
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.Fatalf("%.80q: %v", request, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.Fatalf("%.80q: %v", request, err)
	}
	a := answer{resp.StatusCode, resp.Header, map[string]any{}}
	if err := json.Unmarshal(data, &a.body); err != nil {
		c.Fatalf("%.80q: the reply %.200q is no object: %v", request, data, err)
	}
	for name, value := range a.body {
		switch value.(type) {
		case string, bool, float64:
		default:
			c.Errorf("%.80q: the reply's %q is no plain value: %v", request, name, value)
		}
	}
	if a.status >= 400 && a.text("error") == "" {
		c.Errorf("%.80q: status %d without an error text: %s", request, a.status, data)
	}
	return a
}

func (c client) request(method, path, token, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\n%sConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, token, len(body), body)
}

func (c client) do(method, path, body string) answer {
	c.Helper()
	return c.send(c.request(method, path, "Authorization: Bearer "+c.to.Token+"\r\n", body))
}

func (c client) get(path string) answer { c.Helper(); return c.do("GET", path, "") }

func (c client) post(path string, pairs ...any) answer {
	c.Helper()
	return c.do("POST", path, object(pairs...))
}

// want is a request that has a certain status.
func (c client) want(status int, a answer, what string) answer {
	c.Helper()
	if a.status != status {
		c.Errorf("%s: status %d %v; want %d", what, a.status, a.body, status)
	}
	return a
}

func object(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// routes of the contract: method, path with a query that is right, and a body.
var routes = []struct{ method, path, body string }{
	{"GET", "/v1/hello", ""},
	{"GET", "/v1/model", ""},
	{"POST", "/v1/model/ensure", "{}"},
	{"POST", "/v1/turn", `{"prompt":"x"}`},
	{"GET", "/v1/events?after=0", ""},
	{"POST", "/v1/approval", `{"id":"1_1","decision":"y"}`},
	{"POST", "/v1/cancel", "{}"},
	{"GET", "/v1/sessions?after=0", ""},
	{"GET", "/v1/session?id=1_1&after=0", ""},
	{"POST", "/v1/session/select", `{"id":"1_1"}`},
	{"POST", "/v1/session/new", "{}"},
	{"POST", "/v1/input", `{"session_id":"1_1","turn_id":"1_1","message_id":"m","text":"x"}`},
	{"POST", "/v1/input/status", `{"session_id":"1_1","message_id":"m"}`},
	{"POST", "/v1/input/list", `{"session_id":"1_1"}`},
	{"POST", "/v1/input/drop", `{"session_id":"1_1","message_id":"m"}`},
}

func (c client) framing() {
	for _, path := range []string{"/v1/model", "/v1/nothing"} {
		a := c.get(path)
		if got := a.header.Get("Content-Type"); got != "application/json" {
			c.Errorf("%s: Content-Type %q", path, got)
		}
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			c.Errorf("%s: Cache-Control %q", path, got)
		}
		if a.header.Get("Content-Length") == "" {
			c.Errorf("%s: no Content-Length", path)
		}
	}
	for _, r := range routes {
		for name, token := range map[string]string{"none": "", "a wrong one": "Authorization: Bearer " + strings.Repeat("x", 32) + "\r\n", "no scheme": "Authorization: " + c.to.Token + "\r\n"} {
			c.want(http.StatusUnauthorized, c.send(c.request(r.method, r.path, token, r.body)), r.method+" "+r.path+" with the token "+name)
		}
	}
	// Decided before the body is read: it never comes.
	c.want(http.StatusUnauthorized, c.send("POST /v1/turn HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n"), "no token and no body")
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example:7337"} {
		c.want(http.StatusMisdirectedRequest, c.send(strings.Replace(c.request("GET", "/v1/model", "Authorization: Bearer "+c.to.Token+"\r\n", ""), "Host: localhost", "Host: "+host, 1)), host)
	}
	for _, host := range []string{"127.0.0.1", "[::1]:7337", "192.0.2.1:80", "LOCALHOST:1"} {
		c.want(http.StatusOK, c.send(strings.Replace(c.request("GET", "/v1/model", "Authorization: Bearer "+c.to.Token+"\r\n", ""), "Host: localhost", "Host: "+host, 1)), host)
	}
	if a := c.send(c.request("GET", "/v1/model", "Origin: http://evil.example\r\nAuthorization: Bearer "+c.to.Token+"\r\n", "")); a.status < 400 {
		c.Errorf("a request from another page has status %d", a.status)
	}
}

func (c client) routes() {
	for _, r := range routes {
		for _, method := range []string{"PUT", "DELETE", "PATCH", "OPTIONS", map[string]string{"GET": "POST", "POST": "GET"}[r.method]} {
			path, _, _ := strings.Cut(r.path, "?")
			c.want(http.StatusNotFound, c.do(method, path, ""), method+" "+path)
		}
	}
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/hello", "/v1/hello/", "//v1/hello", "/v1/HELLO", "/v1/session/..%2f..%2fetc", "/v1/../v1/hello", "/debug/pprof/"} {
		c.want(http.StatusNotFound, c.get(path), path)
	}
}

func (c client) hello() {
	a := c.want(http.StatusOK, c.get("/v1/hello"), "hello")
	if a.body["protocol"] != 1.0 || a.body["sessions"] != true {
		c.Errorf("hello = %v", a.body)
	}
	for _, name := range []string{"server_name", "workspace", "model", "profile", "command_policy", "model_status", "model_error", "harnesses"} {
		if _, ok := a.body[name].(string); !ok {
			c.Errorf("%s is %v", name, a.body[name])
		}
	}
	for _, one := range strings.FieldsFunc(a.text("harnesses"), func(r rune) bool { return r == ',' }) {
		if !strings.Contains(" claude codex agy opencode ", " "+one+" ") {
			c.Errorf("harness %q", one)
		}
	}
	c.modelStatus(a)
}

func (c client) modelStatus(a answer) {
	c.Helper()
	if got := a.text("model_status"); got != "ready" && got != "warming" && got != "error" {
		c.Errorf("model_status is %v", a.body["model_status"])
	}
	if _, ok := a.body["model_error"].(string); !ok {
		c.Errorf("model_error is %v", a.body["model_error"])
	}
}

func (c client) model() {
	c.modelStatus(c.want(http.StatusOK, c.get("/v1/model"), "model"))
	c.modelStatus(c.want(http.StatusOK, c.post("/v1/model/ensure"), "ensure"))
}

func (c client) bodies() {
	for _, body := range []string{"", "x", "[]", "5", `"x"`, "{", `{"a":1} {}`, `{"a":{}}`, `{"a":[]}`, `{"id":"1_1","id":"1_1"}`, `{"id":"1_1","ID":"1_1"}`, "{\"a\":\"\xff\"}"} {
		c.want(http.StatusBadRequest, c.do("POST", "/v1/session/select", body), body)
	}
	for path, list := range map[string][]string{
		"/v1/turn":           {`{}`, `{"prompt":""}`, `{"prompt":1}`, `{"prompt":null}`, `{"prompt":"x","structured_events":"yes"}`, `{"prompt":"x","open_documents":1}`},
		"/v1/approval":       {`{}`, `{"id":"1_1"}`, `{"id":"1_1","decision":"yes"}`, `{"decision":"y"}`},
		"/v1/cancel":         {`{"session_id":"1_1"}`, `{"turn_id":"1_1"}`},
		"/v1/session/select": {`{}`},
		"/v1/input":          {`{}`, `{"session_id":"1_1"}`},
	} {
		for _, body := range list {
			c.want(http.StatusBadRequest, c.do("POST", path, body), path+" "+body)
		}
	}
	c.want(http.StatusRequestEntityTooLarge, c.send("POST /v1/turn HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "+c.to.Token+"\r\nContent-Length: 2000000000\r\n\r\n"), "2 GB")
	c.want(http.StatusConflict, c.do("POST", "/v1/cancel", `{"unknown":1,"another":"x","third":null}`), "unknown fields")
}

func (c client) queries() {
	for _, path := range []string{"/v1/events", "/v1/sessions"} {
		for _, query := range []string{"", "?", "?after", "?after=", "?after=x", "?after=-1", "?after=+1", "?after=1.0", "?after=99999999999999999999", "?before=1", "?after=1&x=2", "?x=2&after=1", "?after=%31"} {
			c.want(http.StatusBadRequest, c.get(path+query), path+query)
		}
		c.want(http.StatusOK, c.get(path+"?after=999999"), path)
	}
	for _, query := range []string{"", "?id=1_1", "?after=0", "?after=0&id=1_1", "?id=1_1&after=x"} {
		c.want(http.StatusBadRequest, c.get("/v1/session"+query), "/v1/session"+query)
	}
	for _, id := range []string{"9_9", "x", "..%2f..%2fetc", strings.Repeat("9", 3000)} {
		c.want(http.StatusNotFound, c.get("/v1/session?id="+id+"&after=0"), id)
		c.want(http.StatusNotFound, c.post("/v1/session/select", "id", id), id)
	}
}

var idForm = regexp.MustCompile(`^[1-9][0-9]*_[1-9][0-9]*$`)

// items reads a list to its end.
func (c client) items(path, kind string) []map[string]any {
	c.Helper()
	var list []map[string]any
	for {
		a := c.want(http.StatusOK, c.get(fmt.Sprintf("%s%d", path, len(list))), path)
		if a.text("event") == "none" || a.status != http.StatusOK {
			return list
		}
		if a.text("event") != kind || a.body["seq"] != float64(len(list)+1) {
			c.Errorf("item %d of %s is %v", len(list)+1, path, a.body)
		}
		list = append(list, a.body)
	}
}

func (c client) sessions() {
	id := c.want(http.StatusOK, c.post("/v1/session/new"), "new").text("id")
	if !idForm.MatchString(id) {
		c.Errorf("session id %q", id)
	}
	current := 0
	for _, one := range c.items("/v1/sessions?after=", "session") {
		if !idForm.MatchString(fmt.Sprint(one["id"])) {
			c.Errorf("session %v", one)
		}
		if one["current"] == 1.0 {
			current++
			if one["id"] != id || one["empty"] != 1.0 {
				c.Errorf("the current session is %v; want %s, empty", one, id)
			}
		}
	}
	if current != 1 {
		c.Errorf("%d sessions are current", current)
	}
	c.items("/v1/session?id="+id+"&after=", "message")
	if c.want(http.StatusOK, c.post("/v1/session/select", "id", id), "select").body["ok"] != true {
		c.Error("select does not say ok")
	}
}

// current is the id of the current session.
func (c client) current() string {
	c.Helper()
	for _, one := range c.items("/v1/sessions?after=", "session") {
		if one["current"] == 1.0 {
			return fmt.Sprint(one["id"])
		}
	}
	c.Fatal("no session is current")
	return ""
}

// start posts a turn and returns its id.
func (c client) start(pairs ...any) string {
	c.Helper()
	a := c.want(http.StatusAccepted, c.post("/v1/turn", pairs...), "turn")
	if !idForm.MatchString(a.text("turn_id")) {
		c.Fatalf("turn_id %q", a.text("turn_id"))
	}
	return a.text("turn_id")
}

// until polls the events of the turn to the first of a kind, and checks their form. An
// approval on the way is given when grant is set.
func (c client) until(kind string, grant bool) []map[string]any {
	c.Helper()
	var list []map[string]any
	for start := time.Now(); time.Since(start) < patience; {
		a := c.want(http.StatusOK, c.get(fmt.Sprintf("/v1/events?after=%d", len(list))), "events")
		if a.text("event") == "none" {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if a.body["seq"] != float64(len(list)+1) {
			c.Fatalf("event %v comes after %d others", a.body, len(list))
		}
		list = append(list, a.body)
		c.event(a.body)
		switch {
		case a.text("event") == kind:
			return list
		case a.text("event") == "complete":
			c.Fatalf("the turn ended without %q: %v", kind, list)
		case a.text("event") == "approval_required" && grant:
			c.approve(a)
		}
	}
	c.Fatalf("no %s came: %v", kind, list)
	return nil
}

// approve says yes to an approval, once.
func (c client) approve(a answer) {
	c.Helper()
	if id := a.text("id"); !c.given[id] {
		c.given[id] = true
		c.want(http.StatusOK, c.post("/v1/approval", "id", id, "decision", "y"), "approval")
	}
}

// event checks the fields of one event.
func (c client) event(e map[string]any) {
	c.Helper()
	need := map[string][]string{
		"message": {"role", "content", "thinking"}, "status": {"status"}, "approval_required": {"id", "kind", "command"},
		"tool": {"phase", "tool_call_id", "name", "args", "result", "diff"}, "complete": nil,
	}
	kind := fmt.Sprint(e["event"])
	names, known := need[kind]
	if !known {
		c.Errorf("unknown event %v", e)
	}
	for _, name := range names {
		if _, ok := e[name].(string); !ok {
			c.Errorf("%s of %v", name, e)
		}
	}
	oneOf := func(name string, values string) {
		if !strings.Contains(" "+values+" ", fmt.Sprintf(" %v ", e[name])) {
			c.Errorf("%s of %v", name, e)
		}
	}
	switch kind {
	case "message":
		oneOf("role", "assistant tool system error user")
	case "approval_required":
		oneOf("kind", "command external")
		if strings.Trim(fmt.Sprint(e["id"]), "0123456789_") != "" {
			c.Errorf("id of %v", e)
		}
	case "tool":
		oneOf("phase", "begin running complete")
		if _, ok := e["succeeded"].(bool); !ok || !json.Valid([]byte(fmt.Sprint(e["args"]))) {
			c.Errorf("succeeded or args of %v", e)
		}
	case "complete":
		if code, ok := e["exit_code"].(float64); !ok || code != float64(int(code)) || code < 0 || code > 255 {
			c.Errorf("exit_code of %v", e)
		}
	}
}

// ends waits for the end of the turn, which must have an exit code and be the last event.
// Approvals are given on the way, unless the turn was cancelled.
func (c client) ends(code int) []map[string]any {
	c.Helper()
	list := c.until("complete", code == 0)
	if got := list[len(list)-1]["exit_code"]; got != float64(code) {
		c.Errorf("exit code %v; want %d: %v", got, code, list)
	}
	if a := c.get(fmt.Sprintf("/v1/events?after=%d", len(list))); a.text("event") != "none" {
		c.Errorf("after the end comes %v", a.body)
	}
	return list
}

// idle waits until a turn could start.
func (c client) idle() {
	c.Helper()
	for start := time.Now(); c.post("/v1/cancel").status != http.StatusConflict; time.Sleep(5 * time.Millisecond) {
		if time.Since(start) > patience {
			c.Fatal("the turn never ends")
		}
	}
}

func (c client) turn() {
	session := c.current()
	before := len(c.items("/v1/session?id="+session+"&after=", "message"))
	first := c.start("prompt", c.to.Quick)
	list := c.ends(0)
	for _, e := range list {
		if e["event"] == "tool" {
			c.Errorf("a tool event that was not asked for: %v", e)
		}
	}
	if again := c.get("/v1/events?after=0"); again.body["seq"] != 1.0 {
		c.Errorf("the events are not kept: %v", again.body)
	}
	c.idle()
	if second := c.start("prompt", c.to.Quick); second == first {
		c.Errorf("two turns have the id %s", first)
	}
	c.ends(0)
	c.idle()
	if after := len(c.items("/v1/session?id="+session+"&after=", "message")); after <= before {
		c.Errorf("the session has %d messages, and had %d", after, before)
	}
	c.start("prompt", c.to.Quick, "open_documents", "main.go", "unknown", 1)
	c.ends(0)
	c.idle()
}

func (c client) approvals() {
	session := c.current()
	for _, decision := range []string{"y", "n"} {
		c.start("prompt", c.to.Asks)
		list := c.until("approval_required", false)
		q := list[len(list)-1]
		c.given[fmt.Sprint(q["id"])] = true
		if q["command"] != c.to.Command {
			c.Errorf("asked for %q; want %q", q["command"], c.to.Command)
		}
		busy := map[string]answer{
			"turn": c.post("/v1/turn", "prompt", c.to.Asks), "select": c.post("/v1/session/select", "id", session),
			"new": c.post("/v1/session/new"), "another id": c.post("/v1/approval", "id", "1_1", "decision", "y"),
		}
		for name, a := range busy {
			c.want(http.StatusConflict, a, name+" while an approval waits")
		}
		c.want(http.StatusBadRequest, c.post("/v1/approval", "id", q["id"], "decision", "maybe"), "maybe")
		if c.want(http.StatusOK, c.post("/v1/approval", "id", q["id"], "decision", decision), "approval").body["ok"] != true {
			c.Error("an approval does not say ok")
		}
		c.want(http.StatusConflict, c.post("/v1/approval", "id", q["id"], "decision", "y"), "a second answer")
		if decision == "y" {
			c.ends(0)
		} else {
			c.until("complete", false)
		}
		c.idle()
	}
}

func (c client) structured() {
	c.start("prompt", c.to.Asks, "structured_events", true)
	phases := map[string]string{}
	for _, e := range c.ends(0) {
		if e["event"] == "tool" {
			phases[fmt.Sprint(e["tool_call_id"])] += fmt.Sprint(e["phase"], " ")
		}
	}
	if len(phases) == 0 {
		c.Error("no tool events")
	}
	for id, got := range phases {
		if !strings.HasPrefix(got, "begin ") || !strings.HasSuffix(got, "complete ") || strings.Count(got, "begin") != 1 || strings.Count(got, "complete") != 1 {
			c.Errorf("phases of %s: %s", id, got)
		}
	}
	c.idle()
}

func (c client) cancel() {
	session := c.current()
	c.want(http.StatusConflict, c.post("/v1/cancel"), "cancel of nothing")
	for _, scoped := range []bool{false, true} {
		turn := c.start("prompt", c.to.Long)
		c.settle()
		c.want(http.StatusBadRequest, c.post("/v1/cancel", "session_id", session), "half a scope")
		c.want(http.StatusBadRequest, c.post("/v1/cancel", "turn_id", turn), "half a scope")
		c.want(http.StatusConflict, c.post("/v1/cancel", "session_id", session, "turn_id", "1_1"), "another turn")
		c.want(http.StatusConflict, c.post("/v1/cancel", "session_id", "1_999999", "turn_id", turn), "another session")
		var scope []any
		if scoped {
			scope = []any{"session_id", session, "turn_id", turn}
		}
		if c.want(http.StatusOK, c.post("/v1/cancel", scope...), "cancel").body["ok"] != true {
			c.Error("cancel does not say ok")
		}
		c.ends(130)
		c.idle()
	}
}

// settle gives the approvals that a long turn asks for at its beginning.
func (c client) settle() {
	c.Helper()
	for n := 0; ; n++ {
		a := c.get(fmt.Sprintf("/v1/events?after=%d", n))
		if a.text("event") == "none" {
			return
		}
		if a.text("event") == "approval_required" {
			c.approve(a)
		}
	}
}

func (c client) input() {
	if c.get("/v1/hello").body["input_queue"] != true {
		c.Skip("the server has no input queue")
	}
	session := c.current()
	turn := c.start("prompt", c.to.Long)
	send := func(pairs ...any) answer {
		return c.post("/v1/input", append([]any{"session_id", session, "turn_id", turn}, pairs...)...)
	}
	for _, one := range []struct {
		name   string
		status int
		pairs  []any
	}{
		{"a message", 200, []any{"message_id", "A-z_09", "text", "later", "mode", "follow_up"}},
		{"the same", 200, []any{"message_id", "A-z_09", "text", "later", "mode", "follow_up"}},
		{"other text", 409, []any{"message_id", "A-z_09", "text", "other", "mode", "follow_up"}},
		{"an odd mode", 400, []any{"message_id", "m2", "text", "x", "mode", "now"}},
		{"no text", 400, []any{"message_id", "m2", "text", ""}},
		{"too much text", 400, []any{"message_id", "m2", "text", strings.Repeat("x", 65537)}},
		{"an odd id", 400, []any{"message_id", "m.2", "text", "x"}},
		{"a long id", 400, []any{"message_id", strings.Repeat("m", 65), "text", "x"}},
		{"another session", 404, []any{"message_id", "m2", "text", "x", "session_id", "1_999999"}},
	} {
		a := c.want(one.status, send(one.pairs...), one.name)
		if one.status == 200 && (a.text("message_id") != "A-z_09" || a.text("state") != "accepted") {
			c.Errorf("%s: %v", one.name, a.body)
		}
	}
	if got := c.post("/v1/input/status", "session_id", session, "message_id", "A-z_09").text("state"); got != "accepted" {
		c.Errorf("state %q", got)
	}
	if a := c.post("/v1/input/list", "session_id", session); a.text("turn_id") != turn || !strings.Contains(a.text("pending"), "later") {
		c.Errorf("list = %v", a.body)
	}
	if got := c.post("/v1/input/drop", "session_id", session, "message_id", "A-z_09").text("state"); got != "discarded" {
		c.Errorf("dropped: state %q", got)
	}
	c.want(http.StatusNotFound, c.post("/v1/input/status", "session_id", "1_999999", "message_id", "A-z_09"), "another session")
	c.settle()
	c.want(http.StatusOK, c.post("/v1/cancel"), "cancel")
	c.ends(130)
	c.idle()
}

// extensions are what this program does beyond protocol 1, where a server says so.
func (c client) extensions() {
	if c.get("/v1/hello").body["stream"] != true {
		c.Skip("a plain server")
	}
	request := fmt.Sprint("conform-", time.Now().UnixNano()) // the server may know that of an earlier run
	turn := c.start("prompt", c.to.Quick, "request_id", request)
	c.ends(0)
	c.idle()
	if again := c.start("prompt", c.to.Quick, "request_id", request); again != turn {
		c.Errorf("a request that came again started turn %s, and %s before", again, turn)
	}
	c.start("prompt", c.to.Asks)
	list := c.until("approval_required", false)
	q := list[len(list)-1]
	c.given[fmt.Sprint(q["id"])] = true
	c.want(http.StatusConflict, c.post("/v1/approval", "id", q["id"], "decision", "y", "digest", "0"), "another digest")
	c.want(http.StatusOK, c.post("/v1/approval", "id", q["id"], "decision", "y", "digest", q["digest"]), "the digest")
	c.ends(0)
	c.idle()
	conn := c.dial()
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/stream?id=%s&after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", c.current(), c.to.Token)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		c.Fatal(err)
	}
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || line != "event: state\n" || resp.Header.Get("Content-Type") != "text/event-stream" {
		c.Errorf("the stream begins with %q, %v, %v", line, err, resp.Header)
	}
}
