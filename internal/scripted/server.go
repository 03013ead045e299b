package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options change how a script is played. The zero value is for tests: no delays, an
// error when the replies run out.
type Options struct {
	// WordDelay passes before each word of text, FirstDelay before the first
	// record of a reply, so that a demonstration looks live.
	WordDelay, FirstDelay time.Duration
	// Ending is the text of every further reply when the script has run out;
	// empty answers 500 instead.
	Ending string
	// AnyModel answers for every model name with the first model of the script.
	AnyModel bool
	// Respond, when not nil, is asked for each chat request before the script. It
	// returns one reply in the script's notation, or "" for the next one of the
	// script. Calls do not overlap.
	Respond func(Recorded) string
	// DropBodies keeps no request bodies but the newest, for long sessions.
	DropBodies bool
	// Now is the clock for timestamps; nil is time.Now.
	Now func() time.Time
}

// Recorded is one request that the server got.
type Recorded struct {
	Method, Path string
	Body         []byte // exactly as sent
	Header       http.Header

	// The rest is about chat requests.

	// PromptBytes is the length of the serialised tools and messages, without the
	// bracket that closes the list. CommonPrefix is how many of them are the same
	// as in the chat request before: a request that only appends has a
	// CommonPrefix equal to the PromptBytes of the one before.
	PromptBytes, CommonPrefix int
	// PromptTokens is what the server reports; EvaluatedTokens is what a server
	// with one cache slot would have had to read.
	PromptTokens, EvaluatedTokens int
	// NumCtx is the context window that the request named, 0 for none. Reloaded
	// says that the model was loaded for it, with the cache empty.
	NumCtx   int
	Reloaded bool
	// WarmUp says that the request only loaded, unloaded or warmed the model: it
	// had no user message and used no reply.
	WarmUp bool
	// Gone says that the client left before the reply was complete.
	Gone bool
}

// Server plays a script. It is an http.Handler that may be used concurrently;
// replies are handed out in the order in which requests come.
type Server struct {
	script *Script
	o      Options
	mux    *http.ServeMux

	mu       sync.Mutex
	models   []model
	next     int // index of the next reply
	calls    int // ids of tool calls
	requests []Recorded
	failures []string
	loaded   []loadedModel
	prompts  map[string][]byte // by model: what its cache slot holds
	// downloads are the steps that were pulled, by model.
	downloads map[string]int64
	before    []byte // prompt of the chat request before
}

// New makes a server for a script.
func New(script *Script, o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{script: script, o: o, mux: http.NewServeMux(), prompts: map[string][]byte{}, downloads: map[string]int64{}}
	s.models = append(s.models, script.models...)
	s.loaded = append(s.loaded, script.loaded...)
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Ollama is running") })
	s.mux.HandleFunc("GET /api/version", s.version)
	s.mux.HandleFunc("GET /api/tags", s.tags)
	s.mux.HandleFunc("GET /api/ps", s.ps)
	s.mux.HandleFunc("POST /api/show", s.show)
	s.mux.HandleFunc("POST /api/pull", s.pull)
	s.mux.HandleFunc("POST /api/chat", s.chat)
	s.mux.HandleFunc("POST "+completionsPath, s.completions)
	s.mux.HandleFunc("GET /v1/models", s.modelList)
	s.mux.HandleFunc("GET /props", s.props)
	return s
}

// Start serves on a free loopback port until stop is called, which waits until no
// request runs any more. The URL has no trailing slash.
func (s *Server) Start() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the scripted model: %w", err)
	}
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l) // ends with ErrServerClosed when stop is called
	}()
	return "http://" + l.Addr().String(), func() { h.Close(); <-done }, nil
}

// ServeHTTP answers one request of either API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left
	}
	if !isChat(r.URL.Path) {
		s.record(Recorded{Method: r.Method, Path: r.URL.Path, Body: body, Header: r.Header.Clone()})
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	s.mux.ServeHTTP(w, r)
}

func isChat(path string) bool { return path == "/api/chat" || path == completionsPath }

// Requests returns what the server was asked so far, in order.
func (s *Server) Requests() []Recorded {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Recorded(nil), s.requests...)
}

// Chats returns the chat requests that asked for a reply, in order.
func (s *Server) Chats() []Recorded {
	var chats []Recorded
	for _, r := range s.Requests() {
		if isChat(r.Path) && !r.WarmUp {
			chats = append(chats, r)
		}
	}
	return chats
}

// Unused returns how many replies of the script were not played.
func (s *Server) Unused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.script.replies) - s.next
}

// Failures returns what went against the script: expectations that were not met
// and requests after the last reply.
func (s *Server) Failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.failures...)
}

// Windows returns the different context windows that chat requests named, in the
// order in which they first came; 0 stands for none. A session that never reloads
// its model has one.
func (s *Server) Windows() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var seen []int
	for _, r := range s.requests {
		if isChat(r.Path) && !contains(seen, r.NumCtx) {
			seen = append(seen, r.NumCtx)
		}
	}
	return seen
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

// record stores a request and returns its index.
func (s *Server) record(r Recorded) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recordLocked(r)
}

func (s *Server) recordLocked(r Recorded) int {
	if s.o.DropBodies && len(s.requests) > 0 {
		s.requests[len(s.requests)-1].Body = nil
	}
	s.requests = append(s.requests, r)
	return len(s.requests) - 1
}

func (s *Server) failLocked(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("scripted: answer that JSON cannot hold: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b)
}

func answerError(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

// find returns the model of a name, as the server would complete it.
func (s *Server) find(name string) (model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.models {
		if s.o.AnyModel || m.name == withTag(name) {
			return m, true
		}
	}
	return model{}, false
}
