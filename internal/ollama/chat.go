package ollama

import (
	"context"
	"errors"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

// Chat sends a request and reads the reply as it streams. emit, when not nil, gets
// its pieces in order, from this goroutine; it should return soon.
//
// The reply is whole only when Done is set. A stream that ended cleanly without its
// last record gives what came, with Done unset and no error. With an error the reply
// holds what came before it, as does the error's Partial; a reply that is not done
// has no calls.
func (c *Client) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	body, err := encodeChat(r)
	if err != nil {
		return chat.Reply{}, &chat.Error{Kind: chat.ServerFailure, Text: err.Error(), Cause: err}
	}
	q := c.server.Patient("/api/chat", body, ndjson, r.Model)
	var reply chat.Reply
	err = c.server.Replay(ctx, func() (bool, error) {
		d := newDecoder(emit, modeltext.NewIDs(r.Messages, c.server.NewID))
		err := c.exchange(ctx, q, d)
		reply = d.result()
		return d.records > 0, err
	})
	var e *chat.Error
	if errors.As(err, &e) {
		e.Partial = reply
	}
	return reply, err
}

// ndjson is the type of the streams of this API.
const ndjson = "application/x-ndjson"

// exchange sends a request once and feeds the records of the answer to d.
func (c *Client) exchange(ctx context.Context, q modelserver.Call, d *decoder) error {
	a, err := c.server.Open(ctx, q)
	if err != nil {
		return err
	}
	defer a.Close()
	if kind := a.Header.Get("Content-Type"); strings.Contains(kind, "text/html") {
		page := make([]byte, 4<<10)
		n, _ := a.Read(page)
		return c.server.BadResponse(a.StatusCode, c.BaseURL()+" answered with a web page", page[:n])
	}
	err = d.run(a, func(line []byte) {
		if c.server.Debugging() {
			c.server.Debug("record", string(line))
		}
	})
	var bad *modelserver.StreamError
	switch {
	case errors.As(err, &bad):
		return c.server.StreamFailure(q, bad)
	case err != nil:
		return c.server.ReadFailure(ctx, a, err)
	case d.reply.Done:
		a.Finish()
	case d.records == 0 && !strings.Contains(a.Header.Get("Content-Type"), "ndjson"):
		// Ollama announces the type of a stream even when it then says nothing.
		return c.server.BadResponse(a.StatusCode, c.BaseURL()+" answered with nothing that is a reply", nil)
	}
	return nil
}
