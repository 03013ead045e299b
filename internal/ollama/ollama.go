// Package ollama talks to a model server with Ollama's API: chat with streaming,
// the facts about models, loading, unloading and pulling.
//
// It knows the requests and the records of the stream, and turns them into the words
// of package chat; the connection and its failures belong to package modelserver. It
// knows no tool, no session and no policy: what a reply means is the loop's business.
// App makes the client; the loop and the frontends use it through small interfaces of
// their own.
package ollama

import (
	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
)

// Options configure a Client.
type Options = modelserver.Options

// Client is a model server. Its methods may be called concurrently. They block
// until the answer is complete; when their context ends they close the connection
// and return the context's error at once. Every other error is a *chat.Error.
type Client struct{ server *modelserver.Server }

// New makes a client. It opens no connection. The error quotes a host that no
// server can have.
func New(o Options) (*Client, error) {
	c := &Client{}
	var err error
	c.server, err = modelserver.New(o, c.hint)
	return c, err
}

// BaseURL returns the address that is dialled, such as "http://127.0.0.1:11434".
func (c *Client) BaseURL() string { return c.server.URL() }

// Close closes idle connections. The client stays usable.
func (c *Client) Close() { c.server.Close() }

// hint says what to do next about a failure that is particular to Ollama.
func (c *Client) hint(kind chat.Failure, model string) string {
	switch kind {
	case chat.Unreachable:
		return "start the server with `ollama serve`, name another with --host or OLLAMA_HOST, or try `zcoder --demo`"
	case chat.MissingModel:
		return "get it with `zcoder pull " + model + "` or `ollama pull " + model + "`, or choose another with --model or /model"
	case chat.Unauthorised:
		return "set ZCODER_API_KEY or OLLAMA_API_KEY to a key for this server"
	case chat.BadResponse:
		return "check --host or OLLAMA_HOST: " + c.BaseURL() + " should be an Ollama server"
	}
	return ""
}
