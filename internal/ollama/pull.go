package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

const pullResumes = 5 // replays of a download that went on since the last one

// Pull makes the server download a model and returns when it is installed. progress,
// when not nil, is called from this goroutine. What the server has of a model it
// keeps: a pull that ended early goes on where it was, here after a broken
// connection or at the next call.
func (c *Client) Pull(ctx context.Context, name string, progress func(chat.PullProgress)) error {
	if progress == nil {
		progress = func(chat.PullProgress) {}
	}
	p := &puller{client: c, name: name, progress: progress}
	for resumed := 0; ; resumed++ {
		before := p.completed()
		err := c.server.Replay(ctx, func() (bool, error) { return p.run(ctx) })
		var e *chat.Error
		broken := errors.As(err, &e) && e.Kind == chat.BrokenStream
		if !broken || resumed == pullResumes || p.completed() <= before {
			return pullFailure(err)
		}
		c.server.Debug("retry", "resume pull: "+e.Text)
	}
}

// pullFailure gives an error the hint that fits a download.
func pullFailure(err error) error {
	var e *chat.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case chat.MissingModel:
		e.Hint = "check the name of the model"
	case chat.ServerFailure, chat.BrokenStream:
		e.Hint = "check the server's network and disk; another pull goes on where this one stopped"
	}
	return err
}

// puller keeps the parts of a download over its replays.
type puller struct {
	client   *Client
	name     string
	progress func(chat.PullProgress)
	parts    map[string]part
}

type part struct{ completed, total int64 }

func (p *puller) completed() (n int64) {
	for _, part := range p.parts {
		n += part.completed
	}
	return n
}

// run pulls over one connection. seen says that the server began to answer.
func (p *puller) run(ctx context.Context) (seen bool, err error) {
	c := p.client
	body := append(modeltext.AppendString([]byte(`{"model":`), p.name), `,"stream":true}`...)
	q := c.server.Patient("/api/pull", body, ndjson, p.name)
	a, err := c.server.Open(ctx, q)
	if err != nil {
		return false, err
	}
	defer a.Close()
	in := modeltext.NewLines(a)
	for {
		line, _, err := in.Next()
		if err == io.EOF {
			err = io.ErrUnexpectedEOF // it did not say success
		}
		if err != nil {
			return seen, c.server.ReadFailure(ctx, a, err)
		}
		seen = true
		done, err := p.line(q, line)
		if err != nil {
			return seen, err
		}
		if done {
			a.Finish()
			return true, nil
		}
	}
}

// line takes one record and reports whether it was the last.
func (p *puller) line(q modelserver.Call, line []byte) (done bool, err error) {
	c := p.client
	if c.server.Debugging() {
		c.server.Debug("record", string(line))
	}
	var r struct {
		Status    string          `json:"status"`
		Digest    string          `json:"digest"`
		Total     int64           `json:"total"`
		Completed int64           `json:"completed"`
		Error     json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return false, c.server.StreamFailure(q, &modelserver.StreamError{Line: line, Cause: err})
	}
	if text := modelserver.ErrorText(r.Error); text != "" {
		return false, c.server.APIError(0, text, p.name)
	}
	if r.Digest != "" {
		if p.parts == nil {
			p.parts = map[string]part{}
		}
		p.parts[r.Digest] = part{max(r.Completed, p.parts[r.Digest].completed), r.Total}
	}
	now := chat.PullProgress{Status: modelserver.OneLine(r.Status)}
	for _, part := range p.parts {
		now.Completed += part.completed
		now.Total += part.total
	}
	p.progress(now)
	return r.Status == "success", nil
}
