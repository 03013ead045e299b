package remote

import (
	"context"
	"fmt"
	"net/http"

	"zcoder/internal/event"
)

// inputRequest is the body of POST /v1/input and of its status, list and drop.
type inputRequest struct {
	Session string     `json:"session_id"`
	Turn    string     `json:"turn_id,omitempty"`
	Message string     `json:"message_id,omitempty"`
	Text    string     `json:"text,omitempty"`
	Mode    event.Mode `json:"mode,omitempty"`
}

// inputReply is a reply to one.
type inputReply struct {
	State   string `json:"state"`
	Turn    string `json:"turn_id"`
	Pending string `json:"pending"`
}

// Enqueue sends input to the running turn (Steer) or for after it (FollowUp), and
// returns its state: accepted, consumed or discarded. The same item again is no second
// one, so a caller may repeat it after an error. ErrIdle when no turn runs; ErrNoQueue
// when the server, or its protocol, takes no such input.
func (c *Client) Enqueue(item event.Item) (state string, err error) {
	if item.Mode != event.Steer && item.Mode != event.FollowUp {
		return "", fmt.Errorf("queue a %s: %w", item.Mode, ErrNoQueue)
	}
	ctx, done := context.WithTimeout(c.l.life, answerPatience)
	defer done()
	turn := c.theTurn(ctx)
	switch turn {
	case "":
		return "", ErrIdle
	case unnamedTurn:
		return "", fmt.Errorf("this turn was started elsewhere: %w", ErrNoQueue)
	}
	r, err := c.input(ctx, "", inputRequest{Turn: turn, Message: item.ID, Text: item.Text, Mode: item.Mode})
	return clip(r.State, maxIDBytes), err
}

// Receipt asks for the state of an item.
func (c *Client) Receipt(ctx context.Context, id string) (state string, err error) {
	r, err := c.input(ctx, "/status", inputRequest{Message: id})
	return clip(r.State, maxIDBytes), err
}

// Drop discards an item that waits.
func (c *Client) Drop(ctx context.Context, id string) error {
	_, err := c.input(ctx, "/drop", inputRequest{Message: id})
	return err
}

// Pending is the server's text on what waits, empty for nothing.
func (c *Client) Pending(ctx context.Context) (string, error) {
	r, err := c.input(ctx, "/list", inputRequest{})
	return r.Pending, err
}

func (c *Client) input(ctx context.Context, what string, in inputRequest) (inputReply, error) {
	if !c.l.facts.InputQueue {
		return inputReply{}, ErrNoQueue
	}
	in.Session = c.f.session
	ctx, done := context.WithTimeout(ctx, answerPatience)
	defer done()
	var r inputReply
	err := c.l.persist(ctx, func(ctx context.Context) error { return c.l.post(ctx, "/v1/input"+what, in, &r) })
	if err != nil {
		return inputReply{}, fmt.Errorf("queue: %w", err)
	}
	return r, nil
}

// EnsureModel has the server load the model and blocks until it is ready, has failed
// or ctx ends. A server that does not manage the model gives the zero Model.
func (c *Client) EnsureModel(ctx context.Context) (Model, error) {
	if c.l.facts.Readiness.Status == "" {
		return Model{}, nil
	}
	var reply struct {
		Status string `json:"model_status"`
		Error  string `json:"model_error"`
	}
	err := c.l.persist(ctx, func(ctx context.Context) error {
		return c.l.call(ctx, loadTimeout, http.MethodPost, "/v1/model/ensure", nil, &reply)
	})
	for pause := 5 * shortestPause; err == nil && reply.Status == Warming; {
		if !c.l.pause(ctx, &pause) {
			err = context.Cause(ctx)
			break
		}
		pause = min(pause, longestPause/5)
		err = c.l.persist(ctx, func(ctx context.Context) error { return c.l.get(ctx, "/v1/model", &reply) })
	}
	if err != nil {
		return Model{}, fmt.Errorf("prepare the model: %w", err)
	}
	return modelOf(reply.Status, reply.Error), nil
}
