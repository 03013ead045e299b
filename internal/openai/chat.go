package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

const (
	// tailTime is how long the counts may take to follow a reply that is whole.
	tailTime = 2 * time.Second
	// loadingPause passes before a server that still loads its model is asked again.
	loadingPause = time.Second
)

// Chat sends a request and reads the reply as it streams. emit, when not nil, gets
// its pieces in order, from this goroutine; it should return soon.
//
// The reply is whole only when Done is set. A stream that ended cleanly without its
// last record gives what came, with Done unset and no error. With an error the reply
// holds what came before it, as does the error's Partial; a reply that is not done
// has no calls.
func (c *Client) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	reply, err := c.attempt(ctx, r, emit)
	if tooLongWithReply(err) && r.NumPredict > 0 {
		// Some servers refuse when the prompt and the longest reply do not fit
		// together. Without a limit they take what is left of the window.
		r.NumPredict = 0
		reply, err = c.attempt(ctx, r, emit)
	}
	return reply, err
}

func tooLongWithReply(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Kind == chat.Overflow && e.Status == http.StatusBadRequest
}

// attempt makes the request, and again while the server loads its model.
func (c *Client) attempt(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	body, err := encodeChat(r, c.kwargs.Load())
	if err != nil {
		return chat.Reply{}, &chat.Error{Kind: chat.ServerFailure, Text: err.Error(), Cause: err}
	}
	q := c.server.Patient(c.api+"chat/completions", body, "text/event-stream", r.Model)
	var reply chat.Reply
	send := func() (bool, error) {
		d := newDecoder(emit, modeltext.NewIDs(r.Messages, c.server.NewID))
		err := c.exchange(ctx, q, d)
		reply = d.result()
		return d.records > 0, err
	}
	for waited := time.Duration(0); ; waited += loadingPause {
		err = c.server.Replay(ctx, send)
		if !stillLoading(err) || q.FirstByte > 0 && waited >= q.FirstByte {
			break
		}
		if err := pause(ctx, loadingPause); err != nil {
			return reply, err
		}
	}
	if err == nil && reply.DoneReason == "content_filter" {
		reply.Message.Calls = nil
		err = &chat.Error{Kind: chat.ServerFailure, Text: "the server's content filter ended the reply", Hint: "ask in other words, or choose another model"}
	}
	var e *chat.Error
	if errors.As(err, &e) {
		e.Partial = reply
	}
	return reply, err
}

// stillLoading recognises the answer of llama.cpp while it reads its model.
func stillLoading(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && e.Status == http.StatusServiceUnavailable && strings.Contains(strings.ToLower(e.Text), "loading model")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange sends a request once and feeds the records of the answer to d.
func (c *Client) exchange(ctx context.Context, q modelserver.Call, d *decoder) error {
	a, err := c.server.Open(ctx, q)
	if err != nil {
		return err
	}
	defer a.Close()
	kind := a.Header.Get("Content-Type")
	if strings.Contains(kind, "text/html") {
		page := make([]byte, 4<<10)
		n, _ := a.Read(page)
		return c.server.BadResponse(a.StatusCode, c.BaseURL()+" answered with a web page", page[:n])
	}
	var in io.Reader = a
	if strings.Contains(kind, "application/json") { // no stream: the reply may have several lines
		if in, err = oneRecord(a); err != nil {
			return c.server.ReadFailure(ctx, a, err)
		}
	}
	err = d.run(in, func(line []byte) {
		if c.server.Debugging() {
			c.server.Debug("record", string(line))
		}
	}, func() { a.Hurry(tailTime) })
	var bad *modelserver.StreamError
	switch {
	case errors.As(err, &bad):
		return c.server.StreamFailure(q, bad)
	case err != nil:
		return c.server.ReadFailure(ctx, a, err)
	case d.reply.Done:
		a.Finish()
	case d.records == 0 && !strings.Contains(kind, "event-stream"):
		return c.server.BadResponse(a.StatusCode, c.BaseURL()+" answered with nothing that is a reply", nil)
	}
	return nil
}

// oneRecord reads a body of JSON and returns it as one line.
func oneRecord(r io.Reader) (io.Reader, error) {
	body, err := io.ReadAll(io.LimitReader(r, modeltext.MaxReply))
	if err != nil {
		return nil, err
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return bytes.NewReader(body), nil
	}
	line.WriteByte('\n')
	return &line, nil
}
