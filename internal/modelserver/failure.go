package modelserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"zcoder/internal/chat"
)

const maxErrorText = 400 // bytes of a server's message that are worth showing

// known maps what a server's message contains, in lower case, to what it means. The
// first match wins.
var known = []struct {
	text string
	kind chat.Failure
}{
	{"does not support tools", chat.NoTools},
	{"tool choice requires", chat.NoTools},
	{"tools param requires", chat.NoTools},
	{"does not support thinking", chat.NoThinking},
	{"think value", chat.NoThinking},
	{"input length exceeds", chat.Overflow},
	{"exceeds the context", chat.Overflow},
	{"exceeds the available context", chat.Overflow},
	{"context length exceeded", chat.Overflow},
	{"maximum context length", chat.Overflow},
	{"prompt is too long", chat.Overflow},
	{"prompt too long", chat.Overflow},
	{"longer than the maximum model length", chat.Overflow},
	{"longer than the model's context length", chat.Overflow},
	{"greater than the context length", chat.Overflow},
	{"context_length_exceeded", chat.Overflow},
	{"trying to keep the first", chat.Overflow},
	{"max_tokens must be at least 1", chat.Overflow}, // nothing is left for the reply
	// What is left when a server dropped the user's turn to make room.
	{"no user query found in messages", chat.Overflow},
	{"error parsing tool call", chat.ToolParse},
	{"failed to parse tool", chat.ToolParse},
	{"tool call parsing", chat.ToolParse},
	{"invalid tool call", chat.ToolParse},
	{"xml syntax error", chat.ToolParse},
	{"server busy", chat.Busy},
	{"maximum pending requests", chat.Busy},
	{"too many requests", chat.Busy},
	{"more system memory", chat.OutOfMemory},
	{"more gpu memory", chat.OutOfMemory},
	{"out of memory", chat.OutOfMemory},
	{"failed to allocate", chat.OutOfMemory},
	{"unable to allocate", chat.OutOfMemory},
	{"cannot be allocated", chat.OutOfMemory},
	{"failed to commit memory", chat.OutOfMemory},
	{"cudamalloc failed", chat.OutOfMemory},
	{"unable to load full model", chat.OutOfMemory},
	{"model failed to load", chat.OutOfMemory},
	{"runner process has terminated", chat.OutOfMemory},
	{"runner process no longer running", chat.OutOfMemory},
	{"runner has unexpectedly stopped", chat.OutOfMemory},
	{"error was encountered while running the model", chat.OutOfMemory},
	{"signal: killed", chat.OutOfMemory},
	{"model is required", chat.MissingModel},
	{"invalid model name", chat.MissingModel},
	{"try pulling it first", chat.MissingModel},
	{"pull model manifest: file does not exist", chat.MissingModel},
	{"unauthorized", chat.Unauthorised},
	{"invalid api key", chat.Unauthorised},
	{"incorrect api key", chat.Unauthorised},
	{"no models loaded", chat.MissingModel},
}

// classify tells the kind of a message that a server gave in an API error. Status
// is 0 for an error in mid-stream.
func classify(status int, text string) chat.Failure {
	low := strings.ToLower(text)
	for _, k := range known {
		if strings.Contains(low, k.text) {
			return k.kind
		}
	}
	switch {
	case strings.Contains(low, "model") && (strings.Contains(low, "not found") || strings.Contains(low, "does not exist")):
		return chat.MissingModel
	case status == http.StatusUnauthorized:
		return chat.Unauthorised
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return chat.Busy
	}
	return chat.ServerFailure
}

// hint says what to do next about a failure: what fits the API first.
func (s *Server) hint(kind chat.Failure, model string) string {
	switch {
	case kind == chat.MissingModel && model == "":
		return "name a model with --model"
	case kind == chat.Unauthorised && s.o.APIKey != "" && !s.private():
		return "the key is only sent over https: name the host as https://…"
	}
	if s.hints != nil {
		if hint := s.hints(kind, model); hint != "" {
			return hint
		}
	}
	switch kind {
	case chat.NoTools:
		return "choose a model that can call tools with --model or /model"
	case chat.NoThinking:
		return "switch thinking off with --no-think, or choose another level"
	case chat.Overflow:
		return "shorten the conversation with /compact, or raise --context-window"
	case chat.Busy:
		return "wait until the server's other requests are done and try again"
	case chat.OutOfMemory:
		return "choose a smaller model or a smaller --context-window, or unload other models; the server's log has the details"
	case chat.ToolParse:
		return "try again; if it goes on, choose another model"
	}
	return ""
}

// private reports whether what is sent can be read by the server alone.
func (s *Server) private() bool { return s.base.Scheme == "https" || isLoopback(s.base.Hostname()) }

// APIError makes the error for a message of the server. Status is 0 for one in
// mid-stream; model may be empty.
func (s *Server) APIError(status int, text, model string) *chat.Error {
	text = OneLine(s.redact(text))
	kind := classify(status, text)
	if model != "" && strings.Contains(text, "does not support tools") {
		// The text of Ollama begins with the address of a registry.
		text = fmt.Sprintf("model %q does not support tools", model)
	}
	if text == "" {
		text = fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	}
	return &chat.Error{Kind: kind, Text: text, Hint: s.hint(kind, model), Status: status}
}

// BadResponse makes the error for an answer that is not of this API: what was wrong,
// and the beginning of the body.
func (s *Server) BadResponse(status int, what string, body []byte) *chat.Error {
	text := what
	if first := firstLine(body); first != "" {
		text += ": " + first
	}
	return &chat.Error{Kind: chat.BadResponse, Text: s.redact(text), Hint: s.hint(chat.BadResponse, ""), Status: status}
}

// StreamError is why a stream gave no whole reply, other than its connection.
type StreamError struct {
	Server string // the server's error text, or ""
	Line   []byte // a line that is no record, or nil
	Cause  error
}

func (e *StreamError) Error() string { return "bad stream" }

// StreamFailure explains a stream that says what it should not.
func (s *Server) StreamFailure(q Call, bad *StreamError) error {
	switch {
	case bad.Server != "":
		return s.APIError(0, bad.Server, q.Model)
	case bad.Line != nil:
		e := s.BadResponse(http.StatusOK, fmt.Sprintf("%s sent a line that is no record", s.At(q.Path)), bad.Line)
		e.Cause = bad.Cause
		return e
	}
	return &chat.Error{Kind: chat.BadResponse, Status: http.StatusOK, Cause: bad.Cause,
		Text: "the reply is " + bad.Cause.Error(), Hint: "bound the length of replies, or choose another model"}
}

// statusFailure explains an answer with another status than 200.
func (s *Server) statusFailure(ctx context.Context, q Call, a *Answer) error {
	body, err := io.ReadAll(io.LimitReader(a, maxErrorBody))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	s.Debug("error", string(body))
	status := a.StatusCode
	if status >= 300 && status < 400 {
		return s.redirected(a)
	}
	if text := ErrorField(body); text != "" {
		return s.APIError(status, text, q.Model)
	}
	switch {
	case status == http.StatusUnauthorized:
		return s.APIError(status, fmt.Sprintf("the server at %s wants a key", s.URL()), "")
	case status == http.StatusForbidden && len(body) == 0:
		e := s.BadResponse(status, "the server refused the request (403)", nil)
		e.Hint = "Ollama refuses host names that it does not know: name it by its address, or set OLLAMA_ORIGINS on the server"
		return e
	case status == http.StatusTooManyRequests:
		return s.APIError(status, "the server has too many requests", "")
	case status == http.StatusServiceUnavailable && !IsHTML(a.Header, body):
		return s.APIError(status, "server busy: "+firstLine(body), "")
	}
	what := fmt.Sprintf("%s answered %d", s.base.JoinPath(q.Path), status)
	if IsHTML(a.Header, body) {
		what += " with a web page"
	}
	return s.BadResponse(status, what, body)
}

// redirected reports a redirect, which is never followed.
func (s *Server) redirected(a *Answer) error {
	to := a.Header.Get("Location")
	if u, err := a.Request.URL.Parse(to); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		u.Path = strings.TrimSuffix(u.Path, strings.TrimPrefix(a.Request.URL.Path, s.base.Path))
		to = u.String()
	}
	to = OneLine(s.redact(to))
	return &chat.Error{Kind: chat.BadResponse, Status: a.StatusCode,
		Text: fmt.Sprintf("%s redirects to %s, which is not followed", s.URL(), to),
		Hint: "name the right address with --host or OLLAMA_HOST"}
}

// silence makes the error of the watchdog.
func (s *Server) silence(what string, limit time.Duration) error {
	return &chat.Error{Kind: chat.IdleTimeout, Text: fmt.Sprintf("%s from %s for %s", what, s.URL(), limit),
		Hint: "a slow machine may need more time: raise ZCODER_HTTP_READ_TIMEOUT; the server may still be busy with this request"}
}

// connectionFailure explains why no answer could be had.
func (s *Server) connectionFailure(err error) error {
	e := &chat.Error{Kind: chat.Unreachable, Cause: err}
	var (
		op   *net.OpError
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Text = "the server at " + s.URL() + " does not speak https"
		e.Hint = "name it as http://…"
		return e
	case errors.As(err, &cert):
		e.Kind, e.Text = chat.BadResponse, "the certificate of "+s.URL()+" is not valid: "+reason(cert.Err)
		e.Hint = "check the address and this machine's certificates and clock"
		return e
	case errors.As(err, &dns):
		e.Text = fmt.Sprintf("no model server at %s: no such host %q", s.URL(), dns.Name)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		e.Text = "the proxy for " + s.URL() + " cannot be reached: " + reason(op.Err)
		e.Hint = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
		return e
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		e.Text = "no model server at " + s.URL() + ": " + reason(err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return s.BadResponse(0, "what answers at "+s.URL()+" is no HTTP server", nil)
	default:
		e.Kind, e.Text = chat.BrokenStream, "connection to "+s.URL()+" ended before an answer: "+reason(err)
		e.Hint = "try again; the server's log may say why it stopped"
		e.Text = OneLine(s.redact(e.Text))
		return e
	}
	e.Text, e.Hint = OneLine(s.redact(e.Text)), s.hint(e.Kind, "")
	return e
}

// reason is the innermost useful text of a connection's error.
func reason(err error) string {
	var timeout interface{ Timeout() bool }
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &unknown):
		return "signed by an unknown authority"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the server closed it"
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %s", dialTimeout)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return err.Error()
}

// ErrorField returns the message of an error object in the forms of all servers:
// {"error":"…"}, {"error":{"message":"…"}}, {"object":"error","message":"…"}; or "".
func ErrorField(body []byte) string {
	var o struct {
		Error   json.RawMessage `json:"error"`
		Object  string          `json:"object"`
		Message string          `json:"message"`
	}
	switch {
	case json.Unmarshal(body, &o) != nil:
		return ""
	case o.Object == "error" && o.Message != "":
		return o.Message
	}
	return ErrorText(o.Error)
}

// ErrorText returns the message in the value of an error member, or "".
func ErrorText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var o struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &o) == nil && o.Message != "" {
		return o.Message
	}
	return string(raw)
}

// IsHTML reports whether an answer is a web page.
func IsHTML(h http.Header, body []byte) bool {
	return strings.Contains(h.Get("Content-Type"), "text/html") || strings.HasPrefix(strings.TrimSpace(string(body)), "<")
}

// firstLine returns the first line of a body that is not empty, bounded.
func firstLine(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	text, _, _ = strings.Cut(text, "\n")
	return OneLine(text)
}

// OneLine joins the lines of a message and bounds it.
func OneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxErrorText {
		return text
	}
	n := maxErrorText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// redact takes the key out of a text.
func (s *Server) redact(text string) string {
	if s.o.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, s.o.APIKey, "[key]")
}
