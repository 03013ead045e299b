package ollama

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
	{"does not support thinking", chat.NoThinking},
	{"think value", chat.NoThinking},
	{"input length exceeds", chat.Overflow},
	{"exceeds the context", chat.Overflow},
	{"exceeds the available context", chat.Overflow},
	{"context length exceeded", chat.Overflow},
	{"maximum context length", chat.Overflow},
	{"prompt is too long", chat.Overflow},
	{"prompt too long", chat.Overflow},
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
	case strings.Contains(low, "model") && strings.Contains(low, "not found"):
		return chat.MissingModel
	case status == http.StatusUnauthorized:
		return chat.Unauthorised
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return chat.Busy
	}
	return chat.ServerFailure
}

// hint says what to do next about a failure.
func (c *Client) hint(kind chat.Failure, model string) string {
	switch kind {
	case chat.Unreachable:
		return "start the server with `ollama serve`, name another with --host or OLLAMA_HOST, or try `zcoder --demo`"
	case chat.MissingModel:
		if model == "" {
			return "name a model with --model"
		}
		return "get it with `ollama pull " + model + "`, or choose another with --model or /model"
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
	case chat.Unauthorised:
		if c.o.APIKey != "" && c.base.Scheme != "https" && !isLoopback(c.base.Hostname()) {
			return "the key is only sent over https: name the host as https://…"
		}
		return "set OLLAMA_API_KEY to a key for this server"
	case chat.BadResponse:
		return "check --host or OLLAMA_HOST: " + c.BaseURL() + " should be an Ollama server"
	}
	return ""
}

// apiError makes the error for a message of the server.
func (c *Client) apiError(status int, text, model string) *chat.Error {
	text = oneLine(c.redact(text))
	kind := classify(status, text)
	if kind == chat.NoTools && model != "" {
		// The server's text begins with the address of a registry.
		text = fmt.Sprintf("model %q does not support tools", model)
	}
	if text == "" {
		text = fmt.Sprintf("the server answered %d %s", status, http.StatusText(status))
	}
	return &chat.Error{Kind: kind, Text: text, Hint: c.hint(kind, model), Status: status}
}

// badResponse makes the error for an answer that is not of this API.
func (c *Client) badResponse(status int, what string, body []byte) *chat.Error {
	text := what
	if first := firstLine(body); first != "" {
		text += ": " + first
	}
	return &chat.Error{Kind: chat.BadResponse, Text: c.redact(text), Hint: c.hint(chat.BadResponse, ""), Status: status}
}

// statusFailure explains an answer with another status than 200.
func (c *Client) statusFailure(ctx context.Context, q call, a *answer) error {
	body, err := io.ReadAll(io.LimitReader(a, maxErrorBody))
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	c.debug("error", string(body))
	status := a.StatusCode
	if status >= 300 && status < 400 {
		return c.redirected(a)
	}
	if text := errorField(body); text != "" {
		return c.apiError(status, text, q.model)
	}
	switch {
	case status == http.StatusUnauthorized:
		return c.apiError(status, fmt.Sprintf("the server at %s wants a key", c.BaseURL()), "")
	case status == http.StatusForbidden && len(body) == 0:
		e := c.badResponse(status, "the server refused the request (403)", nil)
		e.Hint = "Ollama refuses host names that it does not know: name it by its address, or set OLLAMA_ORIGINS on the server"
		return e
	case status == http.StatusTooManyRequests:
		return c.apiError(status, "the server has too many requests", "")
	case status == http.StatusServiceUnavailable && !isHTML(a.Header, body):
		return c.apiError(status, "server busy: "+firstLine(body), "")
	}
	what := fmt.Sprintf("%s answered %d", c.base.JoinPath(q.path), status)
	if isHTML(a.Header, body) {
		what += " with a web page"
	}
	return c.badResponse(status, what, body)
}

// redirected reports a redirect, which is never followed.
func (c *Client) redirected(a *answer) error {
	to := a.Header.Get("Location")
	if u, err := a.Request.URL.Parse(to); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		u.Path = strings.TrimSuffix(u.Path, strings.TrimPrefix(a.Request.URL.Path, c.base.Path))
		to = u.String()
	}
	to = oneLine(c.redact(to))
	return &chat.Error{Kind: chat.BadResponse, Status: a.StatusCode,
		Text: fmt.Sprintf("%s redirects to %s, which is not followed", c.BaseURL(), to),
		Hint: "name the right address with --host or OLLAMA_HOST"}
}

// silence makes the error of the watchdog.
func (c *Client) silence(what string, limit time.Duration) error {
	return &chat.Error{Kind: chat.IdleTimeout, Text: fmt.Sprintf("%s from %s for %s", what, c.BaseURL(), limit),
		Hint: "a slow machine may need more time: raise ZCODER_HTTP_READ_TIMEOUT; the server may still be busy with this request"}
}

// connectionFailure explains why no answer could be had.
func (c *Client) connectionFailure(err error) error {
	e := &chat.Error{Kind: chat.Unreachable, Cause: err}
	var (
		op   *net.OpError
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		e.Text = "the server at " + c.BaseURL() + " does not speak https"
		e.Hint = "name it as http://…"
		return e
	case errors.As(err, &cert):
		e.Kind, e.Text = chat.BadResponse, "the certificate of "+c.BaseURL()+" is not valid: "+reason(cert.Err)
		e.Hint = "check the address and this machine's certificates and clock"
		return e
	case errors.As(err, &dns):
		e.Text = fmt.Sprintf("no model server at %s: no such host %q", c.BaseURL(), dns.Name)
	case errors.As(err, &op) && op.Op == "proxyconnect":
		e.Text = "the proxy for " + c.BaseURL() + " cannot be reached: " + reason(op.Err)
		e.Hint = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
		return e
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, syscall.ECONNREFUSED):
		e.Text = "no model server at " + c.BaseURL() + ": " + reason(err)
	case strings.Contains(err.Error(), "malformed HTTP"):
		return c.badResponse(0, "what answers at "+c.BaseURL()+" is no HTTP server", nil)
	default:
		e.Kind, e.Text = chat.BrokenStream, "connection to "+c.BaseURL()+" ended before an answer: "+reason(err)
		e.Hint = "try again; the server's log may say why it stopped"
		e.Text = oneLine(c.redact(e.Text))
		return e
	}
	e.Text, e.Hint = oneLine(c.redact(e.Text)), c.hint(e.Kind, "")
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

// errorField returns the message of an error object, in Ollama's form or in the one
// of other servers: {"error":"…"}, {"error":{"message":"…"}}.
func errorField(body []byte) string {
	var o struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &o) != nil {
		return ""
	}
	return errorText(o.Error)
}

func errorText(raw json.RawMessage) string {
	var text string
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

func isHTML(h http.Header, body []byte) bool {
	return strings.Contains(h.Get("Content-Type"), "text/html") || strings.HasPrefix(strings.TrimSpace(string(body)), "<")
}

// firstLine returns the first line of a body that is not empty, bounded.
func firstLine(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body), "\uFFFD"))
	text, _, _ = strings.Cut(text, "\n")
	return oneLine(text)
}

// oneLine joins the lines of a message and bounds it.
func oneLine(text string) string {
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
func (c *Client) redact(text string) string {
	if c.o.APIKey == "" {
		return text
	}
	return strings.ReplaceAll(text, c.o.APIKey, "[key]")
}
