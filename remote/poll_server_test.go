package remote

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// object is a JSON object with scalar values.
type object map[string]any

// plainServer behaves as the servers do that were there before ours: one request for
// each connection, strictly framed, polled events. It is written from the contract.
type plainServer struct {
	t        *testing.T
	addr     string
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	hello    object
	model    []string // what ensure and the looks after it say, the last one for ever
	sessions []object // newest activity first
	history  map[string][]object
	events   []object
	running  bool
	pending  string // id of the approval that waits
	turns    int
	requests []string // method and target, in order
	bodies   map[string]object

	// script returns the events of a turn: those before the approval, which is the last
	// one then, and those after it by decision.
	script func(prompt string) (events []object, after func(decision string) []object)
	after  func(string) []object
	// cut decides whether the reply to the n-th request (from 0) is lost.
	cut func(n int, target string) bool
}

const testToken = "0123456789abcdef0123456789abcdef"

func newPlainServer(t *testing.T) *plainServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &plainServer{
		t: t, addr: l.Addr().String(), listener: l, history: map[string][]object{}, bodies: map[string]object{},
		hello: object{
			"protocol": 1, "server_name": "box", "workspace": "/srv/app", "model": "m", "profile": "coding", "command_policy": "ask",
			"model_status": "ready", "model_error": "", "harnesses": "claude,codex", "sessions": true, "input_queue": true,
		},
	}
	s.work.Go(s.serve)
	t.Cleanup(func() { l.Close(); s.work.Wait() })
	return s
}

func (s *plainServer) serve() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() { defer c.Close(); s.connection(c) })
	}
}

// connection reads one request by hand and answers it.
func (s *plainServer) connection(c net.Conn) {
	in := bufio.NewReader(c)
	header := map[string]string{}
	first, err := in.ReadString('\n')
	if err != nil {
		return
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line = strings.TrimSpace(line); line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		header[strings.ToLower(name)] = strings.TrimSpace(value)
	}
	length, err := strconv.Atoi(header["content-length"])
	if err != nil || header["connection"] != "close" || header["transfer-encoding"] != "" {
		s.t.Errorf("%s: such a server takes Content-Length and Connection: close, and got %v", strings.TrimSpace(first), header)
		return
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(in, body); err != nil {
		return
	}
	words := strings.Fields(first)
	status, reply := 401, object{"error": "unauthorized"}
	if header["authorization"] == "Bearer "+testToken {
		status, reply = s.answer(words[0], words[1], body)
	}
	if status == 0 {
		return // the reply is lost
	}
	text, err := json.Marshal(reply)
	if err != nil {
		s.t.Error(err)
	}
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text)
}

func (s *plainServer) answer(method, target string, body []byte) (int, object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.requests)
	s.requests = append(s.requests, method+" "+target)
	in := object{}
	if method == "POST" {
		if err := json.Unmarshal(body, &in); err != nil {
			return 400, object{"error": "bad JSON"}
		}
		s.bodies[target] = in
	}
	status, reply := s.route(method+" "+target, in)
	if s.cut != nil && s.cut(n, target) {
		return 0, nil
	}
	return status, reply
}

func (s *plainServer) route(request string, in object) (int, object) {
	var n int
	var id string
	switch {
	case request == "GET /v1/hello":
		return 200, s.hello
	case request == "GET /v1/model", request == "POST /v1/model/ensure":
		status := "ready"
		if len(s.model) > 0 {
			if status = s.model[0]; len(s.model) > 1 {
				s.model = s.model[1:]
			}
		}
		return 200, object{"model_status": status, "model_error": map[bool]string{true: "no such model"}[status == "error"]}
	case request == "POST /v1/turn":
		return s.turn(in)
	case scan(request, "GET /v1/events?after=%d", &n):
		return 200, item(s.events, n)
	case scan(request, "GET /v1/sessions?after=%d", &n):
		return 200, item(s.sessions, n)
	case request == "POST /v1/session/new":
		return s.fresh()
	case request == "POST /v1/session/select":
		return s.choose(in["id"].(string))
	case request == "POST /v1/approval":
		return s.approve(in)
	case request == "POST /v1/cancel":
		return s.cancel(in)
	case request == "POST /v1/input":
		return 200, object{"message_id": in["message_id"], "state": "accepted"}
	case strings.HasPrefix(request, "GET /v1/session?id="):
		id, after, _ := strings.Cut(strings.TrimPrefix(request, "GET /v1/session?id="), "&after=")
		n, err := strconv.Atoi(after)
		if _, known := s.history[id]; err == nil && known {
			return 200, item(s.history[id], n)
		}
	}
	return 404, object{"error": "not found: " + request + id}
}

func scan(text, format string, n *int) bool {
	_, err := fmt.Sscanf(text, format, n)
	return err == nil && text == fmt.Sprintf(format, *n)
}

// item is entry n+1 of a list.
func item(list []object, n int) object {
	if n >= len(list) {
		return object{"event": "none"}
	}
	return list[n]
}

func (s *plainServer) turn(in object) (int, object) {
	if s.running {
		return 409, object{"error": "a remote turn is already running"}
	}
	s.turns++
	s.events, s.running = nil, true
	events, after := s.script(in["prompt"].(string))
	s.after = after
	s.add(events)
	return 202, object{"turn_id": fmt.Sprintf("1700000000_%d", s.turns)}
}

// add numbers events. An approval waits for its answer.
func (s *plainServer) add(events []object) {
	for _, e := range events {
		e["seq"] = len(s.events) + 1
		s.events = append(s.events, e)
		switch e["event"] {
		case "complete":
			s.running = false
		case "approval_required":
			s.pending = e["id"].(string)
		}
	}
}

func (s *plainServer) approve(in object) (int, object) {
	if s.pending == "" || in["id"] != s.pending {
		return 409, object{"error": "no such approval"}
	}
	s.pending = ""
	s.add(s.after(in["decision"].(string)))
	return 200, object{"ok": true}
}

func (s *plainServer) cancel(in object) (int, object) {
	if turn, named := in["turn_id"]; !s.running || named && turn != fmt.Sprintf("1700000000_%d", s.turns) {
		return 409, object{"error": "nothing is running"}
	}
	s.pending = ""
	s.add([]object{{"event": "complete", "exit_code": 130}})
	return 200, object{"ok": true}
}

func (s *plainServer) fresh() (int, object) {
	if s.running {
		return 409, object{"error": "busy"}
	}
	id := fmt.Sprintf("1700000001_%d", len(s.sessions)+1)
	for _, old := range s.sessions {
		old["current"] = 0
	}
	s.sessions = append([]object{{"event": "session", "seq": 1, "id": id, "title": "", "model": "m", "current": 1, "empty": 1}}, s.sessions...)
	s.history[id] = nil
	return 200, object{"id": id}
}

func (s *plainServer) choose(id string) (int, object) {
	if _, known := s.history[id]; !known {
		return 404, object{"error": "not found"}
	}
	for _, one := range s.sessions {
		one["current"] = 0
		if one["id"] == id {
			one["current"] = 1
		}
	}
	return 200, object{"ok": true}
}

// asked returns the requests whose target begins with text.
func (s *plainServer) asked(text string) (found []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if _, target, _ := strings.Cut(r, " "); strings.HasPrefix(target, text) {
			found = append(found, r)
		}
	}
	return found
}

func (s *plainServer) body(target string) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies[target]
}
