// Package openai talks to a model server with the chat-completions API: llama.cpp,
// vLLM, LM Studio, Ollama's own /v1 and clusters behind them.
//
// It knows the requests, the chunks of the stream and what each kind of server tells
// about its models, and turns them into the words of package chat; the connection and
// its failures belong to package modelserver. It knows no tool, no session and no
// policy. App makes the client; the loop and the frontends use it through small
// interfaces of their own.
package openai

import (
	"path"
	"regexp"
	"sync/atomic"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
)

// Options configure a Client. Host may end in the version of the API, such as /v1,
// or not.
type Options = modelserver.Options

// Client is a model server. Its methods may be called concurrently. They block
// until the answer is complete; when their context ends they close the connection
// and return the context's error at once. Every other error is a *chat.Error.
type Client struct {
	server *modelserver.Server
	api    string // stands before the paths of the API
	root   string // stands before the paths beside it
	// kwargs says that the server passes arguments to its chat template, which is
	// how its models are told to think or not.
	kwargs atomic.Bool
}

var versioned = regexp.MustCompile(`^v[0-9]+$`)

// New makes a client. It opens no connection. The error quotes a host that no
// server can have.
func New(o Options) (*Client, error) {
	c := &Client{api: "v1/"}
	var err error
	if c.server, err = modelserver.New(o, c.hint); err != nil {
		return nil, err
	}
	if versioned.MatchString(path.Base(c.server.Path())) {
		c.api, c.root = "", "../"
	}
	return c, nil
}

// BaseURL returns the address that is dialled, such as "http://127.0.0.1:8080/v1".
func (c *Client) BaseURL() string { return c.server.URL() }

// Close closes idle connections. The client stays usable.
func (c *Client) Close() { c.server.Close() }

// hint says what to do next about a failure that is particular to these servers.
func (c *Client) hint(kind chat.Failure, _ string) string {
	switch kind {
	case chat.Unreachable:
		return "start the server, or name its address with --host, such as http://localhost:8080"
	case chat.MissingModel:
		return "choose one of the server's models with --model or /model"
	case chat.NoTools:
		return "let the server read tool calls (llama.cpp: --jinja; vLLM: --enable-auto-tool-choice and --tool-call-parser), or choose another model"
	case chat.Overflow:
		return "shorten the conversation with /compact, or start the server with a larger window"
	case chat.OutOfMemory:
		return "start the server with a smaller model or window; its log has the details"
	case chat.Unauthorised:
		return "set ZCODER_API_KEY or OPENAI_API_KEY to a key for this server"
	case chat.BadResponse:
		return "check --host: " + c.BaseURL() + " should be a server with the chat-completions API"
	}
	return ""
}
