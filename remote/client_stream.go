package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"zcoder/internal/event"
)

const (
	maxMessage = 64 << 20 // bytes of one message on a stream: an event with a whole history or images
	maxSilence = 45 * time.Second
)

// keepUp follows the conversation until ctx ends or nothing more can come: whenever the
// stream ends it opens the next one after what was seen. The first try after a loss is
// silent; when it fails the person is told, and again when the connection is back.
//
// last has the last word on the error that ends the feed.
func (l *link) keepUp(ctx context.Context, f *feed, last func(error) error) {
	pause, failures, told := time.Duration(0), 0, false
	for {
		from, since := f.position(), time.Now()
		got, err := l.stream(ctx, f, func() {
			if told {
				f.say(event.Info, "connected again to "+l.host)
				told = false
			}
		})
		if err = l.final(ctx, err); err != nil {
			f.end(last(err))
			return
		}
		if failures++; got {
			failures = 0
		}
		if f.position() > from || got && time.Since(since) > longestPause {
			pause = 0
		}
		if failures > 1 && !told {
			f.say(event.Warning, fmt.Sprintf("the connection to %s is lost: trying again until it is back", l.host))
			told = true
		}
		if !l.pause(ctx, &pause) {
			f.end(ErrClosed)
			return
		}
	}
}

// final returns the error with which a conversation ends, or nil when the stream that
// ended with err can be opened again.
func (l *link) final(ctx context.Context, err error) error {
	switch {
	case l.life.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrLost):
		return hint(fmt.Errorf("%w: %s", ErrLost, l.host), "start zcoder again with the same --connect; what was said is kept there")
	case isBroken(err), hasStatus(err, http.StatusServiceUnavailable), hasStatus(err, http.StatusTooManyRequests):
		return nil
	}
	return err
}

// stream reads one stream to its end and hands on what it says; opened is called once
// it speaks. got reports whether it did.
func (l *link) stream(ctx context.Context, f *feed, opened func()) (got bool, err error) {
	ctx, done := l.whileOpen(ctx)
	defer done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(l.timeout(), func() { cancel(errors.New("the server is silent")) })
	defer silence.Stop()

	query := "?id=" + url.QueryEscape(f.session) + "&after=" + strconv.FormatInt(f.position(), 10)
	resp, err := l.send(ctx, http.MethodGet, "/v1/stream"+query, nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return false, l.streamRefusal(ctx, resp)
	}
	if err := wantType(resp, "text/event-stream"); err != nil {
		return false, err
	}
	f.begin()
	s := sse{in: bufio.NewReaderSize(resp.Body, 64<<10), heard: func() { silence.Reset(maxSilence) }}
	for {
		m, err := s.next()
		if err != nil {
			if !errors.Is(err, errTooLong) {
				err = l.broken(ctx, err)
			}
			return got, err
		}
		if err := f.message(m); err != nil {
			return got, err
		}
		if !got {
			got = true
			opened()
		}
	}
}

func (l *link) streamRefusal(ctx context.Context, resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return l.broken(ctx, err)
	}
	return l.refusal(resp.StatusCode, body)
}

// message handles one message of a stream. Unknown ones are for newer clients.
func (f *feed) message(m sseMessage) error {
	var err error
	switch m.name {
	case msgEvent:
		var e Envelope
		if err = json.Unmarshal(m.data, &e); err == nil {
			return f.take(e, len(m.data))
		}
	case msgState:
		var s State
		if err = json.Unmarshal(m.data, &s); err == nil {
			return f.state(s)
		}
	case msgForm:
		var q Form
		if err = json.Unmarshal(m.data, &q); err == nil {
			f.form(q)
		}
	case msgSwitched:
		var s State
		if err = json.Unmarshal(m.data, &s); err == nil {
			return &SwitchedError{Session: clip(s.Session, maxIDBytes)}
		}
	}
	if err != nil {
		return fmt.Errorf("the server's stream is not what a server sends: %w", err)
	}
	return nil
}

// sseMessage is one of a server-sent event stream.
type sseMessage struct {
	name string
	data []byte
}

// sse reads server-sent events.
type sse struct {
	in    *bufio.Reader
	heard func() // called whenever something came
}

var errTooLong = fmt.Errorf("the server sent a message of more than %d MiB", maxMessage>>20)

// next reads the next message that has data. A message that the stream's end cut
// short is none.
func (s *sse) next() (sseMessage, error) {
	var m sseMessage
	for {
		line, err := s.line(maxMessage - len(m.data))
		if err != nil {
			return sseMessage{}, err
		}
		if len(line) == 0 {
			if m.data != nil {
				return sseMessage{m.name, m.data[:len(m.data)-1]}, nil
			}
			m = sseMessage{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			m.name = string(value[:min(len(value), 64)])
		case "data":
			m.data = append(append(m.data, value...), '\n')
		}
	}
}

// line reads one line without its end, of at most so many bytes.
func (s *sse) line(most int) ([]byte, error) {
	var whole []byte
	for {
		part, err := s.in.ReadSlice('\n')
		s.heard()
		if len(whole)+len(part) > most {
			return nil, errTooLong
		}
		whole = append(whole, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		default:
			return bytes.TrimSuffix(bytes.TrimSuffix(whole, []byte("\n")), []byte("\r")), nil
		}
	}
}
