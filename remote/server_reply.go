package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
)

// reply is what a route says when it could do what was asked.
type reply struct {
	status int
	body   any
}

// asked is an admitted request.
type asked struct {
	query
	fields
}

// okay is the plainest reply.
type okay struct {
	OK        bool `json:"ok"`
	Continued bool `json:"continued,omitempty"`
}

// none is the reply when there is nothing more.
type none struct {
	Event string `json:"event"`
}

func nothing() reply { return reply{http.StatusOK, none{"none"}} }

// exchange reads the body, has the route answer and writes the reply. Who is slow to
// send or to take holds up nobody: only the answering between has its number bounded.
func (s *Server) exchange(w http.ResponseWriter, r *http.Request, route route, q query) {
	a := asked{query: q}
	if r.Method == http.MethodPost {
		var err error
		if a.fields, err = s.body(w, r); err != nil {
			s.reject(w, r, err)
			return
		}
	}
	rep, err := s.answer(r.Context(), route, a)
	if err != nil {
		s.reject(w, r, err)
		return
	}
	s.write(w, rep.status, rep.body)
}

func (s *Server) body(w http.ResponseWriter, r *http.Request) (fields, error) {
	tooLarge := refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", s.cfg.MaxBody)
	if r.ContentLength > s.cfg.MaxBody {
		return nil, tooLarge
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody))
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return nil, tooLarge
	case err != nil:
		return nil, refuse(http.StatusBadRequest, "the body did not come whole")
	}
	return parseFields(data)
}

// answer has the route answer when there is room for one more request.
func (s *Server) answer(ctx context.Context, route route, a asked) (reply, error) {
	late, stop := s.soon(s.limits.write)
	defer stop()
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-late:
		return reply{}, refuse(http.StatusServiceUnavailable, "too many requests at once; try again")
	case <-ctx.Done():
		return reply{}, errClosing
	}
	return route.do(s, ctx, a)
}

// reject writes an error. A body that was not read is not waited for; over HTTP/2, where
// it stands in nobody's way, the header would end the connection of all requests.
func (s *Server) reject(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusInternalServerError, err.Error()
	var known *refusal
	if errors.As(err, &known) {
		status = known.status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	s.write(w, status, struct {
		Error string `json:"error"`
	}{text})
}

func (s *Server) write(w http.ResponseWriter, status int, body any) {
	data, err := encodeJSON(body)
	if err != nil { // every body is made of texts and numbers
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.limits.write))
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that does not hear it asks again
}

// encodeJSON writes a value on one line, without the escapes that only web pages need.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
