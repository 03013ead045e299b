package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	spec "github.com/mark3labs/mcp-go/mcp"

	"zcoder/internal/proc"
)

const (
	maxMessage = 8 << 20 // bytes of one line from a server
	maxNoise   = 200     // lines that are no messages before the first message
	maxAside   = 1 << 18 // bytes of a line that is no result
	maxInbound = 8       // requests of the server that wait for their answer
	outbox     = 64      // messages that wait to be written
	// closeWait is how long a program has to end after its input was closed, and
	// closeGrace after it was interrupted.
	closeWait  = 500 * time.Millisecond
	closeGrace = time.Second
)

// errTooLong is why calls end when a server writes a line that is too long.
var errTooLong = fmt.Errorf("the server wrote a message of more than %d MiB", maxMessage>>20)

// stdio speaks with a program over its standard streams. It implements
// transport.Interface over internal/proc: one message is one line, lines are bounded,
// and the program ends with its whole process group.
type stdio struct {
	run proc.Spec
	log *ring
	max int // bytes of a line

	mu      sync.Mutex
	pending map[string]chan *transport.JSONRPCResponse
	notify  func(spec.JSONRPCNotification)
	handle  transport.RequestHandler
	spoke   bool // a message came
	noise   int
	first   string // the first line that was none
	cause   error  // why the connection was given up

	line   []byte
	skip   bool // the rest of a line that was too long
	out    chan []byte
	input  *io.PipeWriter
	asked  chan transport.JSONRPCRequest
	cancel context.CancelFunc
	wg     sync.WaitGroup
	done   chan struct{} // closed when the program has ended
	end    error         // valid then
}

func newStdio(run proc.Spec, log *ring) *stdio {
	return &stdio{
		run: run, log: log, max: maxMessage, pending: map[string]chan *transport.JSONRPCResponse{},
		out: make(chan []byte, outbox), asked: make(chan transport.JSONRPCRequest, maxInbound), done: make(chan struct{}),
	}
}

// Start starts the program, which runs until Close, its own end or the end of ctx.
func (s *stdio) Start(ctx context.Context) error {
	ctx, s.cancel = context.WithCancel(ctx)
	from, to := io.Pipe()
	s.input = to
	run := s.run
	run.Stdin, run.Stdout, run.OnOutput, run.Grace = from, writerFunc(s.read), s.log.write, closeGrace
	go func() {
		defer close(s.done)
		defer s.cancel()
		out, err := proc.Run(ctx, run)
		s.end = ending(out, err)
	}()
	s.wg.Add(2)
	go s.write()
	go s.serve(ctx)
	return nil
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// ending says in words how the program ended.
func ending(out proc.Outcome, err error) error {
	switch {
	case err != nil:
		return err
	case out.Cancelled:
		return errors.New("the server was stopped")
	case out.Signal != "":
		return fmt.Errorf("the server was ended by %s", out.Signal)
	}
	return fmt.Errorf("the server ended with exit status %d", out.ExitCode)
}

// write passes messages to the program until it has ended.
func (s *stdio) write() {
	defer s.wg.Done()
	for {
		select {
		case m := <-s.out:
			if _, err := s.input.Write(append(m, '\n')); err != nil {
				return
			}
		case <-s.done:
			return
		}
	}
}

// read takes standard output in pieces.
func (s *stdio) read(b []byte) {
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part, rest := b, []byte(nil)
		if i >= 0 {
			part, rest = b[:i], b[i+1:]
		}
		if !s.skip && len(s.line)+len(part) > s.max {
			s.skip, s.line = true, nil
			s.fail(errTooLong)
		}
		if !s.skip {
			s.line = append(s.line, part...)
		}
		if i >= 0 {
			s.message(bytes.TrimSpace(bytes.TrimPrefix(s.line, []byte("\ufeff"))))
			if s.skip = false; cap(s.line) > 1<<20 {
				s.line = nil
			}
			s.line = s.line[:0]
		}
		b = rest
	}
}

// fail ends all calls that wait; the connection stays.
func (s *stdio) fail(err error) {
	s.log.add("client: " + err.Error())
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ch := range s.pending {
		delete(s.pending, id)
		ch <- &transport.JSONRPCResponse{Error: &spec.JSONRPCErrorDetails{Code: spec.INTERNAL_ERROR, Message: err.Error()}}
	}
}

// message takes one line.
func (s *stdio) message(line []byte) {
	if len(line) == 0 {
		return
	}
	var m struct {
		ID     spec.RequestId  `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if line[0] != '{' || json.Unmarshal(line, &m) != nil || m.Method == "" && m.Result == nil && m.Error == nil {
		s.noted(line)
		return
	}
	s.mu.Lock()
	s.spoke = true
	s.mu.Unlock()
	switch {
	case m.Method == "":
		s.answer(&transport.JSONRPCResponse{JSONRPC: spec.JSONRPC_VERSION, ID: m.ID, Result: m.Result, Error: errorOf(m.Error)})
	case len(line) > maxAside:
		s.log.add(fmt.Sprintf("client: a message of %d bytes was dropped: %s", len(line), m.Method))
	case m.ID.IsNil():
		s.notification(line)
	default:
		s.request(line)
	}
}

// errorOf reads an error; of a large one the details are left out.
func errorOf(raw json.RawMessage) *spec.JSONRPCErrorDetails {
	if raw == nil || string(raw) == "null" {
		return nil
	}
	if len(raw) <= maxAside {
		var e spec.JSONRPCErrorDetails
		if json.Unmarshal(raw, &e) == nil {
			return &e
		}
	}
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil {
		e.Message = "the server sent an error that cannot be read"
	}
	return &spec.JSONRPCErrorDetails{Code: e.Code, Message: e.Message}
}

// noted counts a line that is no message. A program that says nothing else is given
// up.
func (s *stdio) noted(line []byte) {
	text := string(line[:min(len(line), maxLogLine)])
	s.log.add("stdout: " + text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noise++; s.noise == 1 {
		s.first = text
	}
	if s.noise >= maxNoise && !s.spoke && s.cause == nil {
		s.cause = fmt.Errorf("the program wrote %d lines that are no messages; the first is %q", s.noise, plain(s.first, 200))
		s.cancel()
	}
}

// noisy describes lines that were no messages, or is "".
func (s *stdio) noisy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noise == 0 {
		return ""
	}
	return fmt.Sprintf("%d lines on its standard output are no messages; the first is %q", s.noise, plain(s.first, 200))
}

// answer gives a response to the call that waits for it. One that nobody waits for is
// dropped: it came twice, or after the call was given up.
func (s *stdio) answer(r *transport.JSONRPCResponse) {
	s.mu.Lock()
	ch, ok := s.pending[r.ID.String()]
	delete(s.pending, r.ID.String())
	s.mu.Unlock()
	if !ok {
		s.log.add("client: an answer that nothing waits for was dropped (id " + r.ID.String() + ")")
		return
	}
	ch <- r
}

func (s *stdio) notification(line []byte) {
	var n spec.JSONRPCNotification
	if err := json.Unmarshal(line, &n); err != nil {
		s.noted(line)
		return
	}
	s.mu.Lock()
	notify := s.notify
	s.mu.Unlock()
	if notify != nil {
		notify(n)
	}
}

// request queues what the server asks; what it asks too fast is dropped.
func (s *stdio) request(line []byte) {
	var r transport.JSONRPCRequest
	if err := json.Unmarshal(line, &r); err != nil {
		s.noted(line)
		return
	}
	select {
	case s.asked <- r:
	default:
		s.log.add("client: a request of the server was dropped, too many are open: " + r.Method)
	}
}

// serve answers what the server asks, one request after the other.
func (s *stdio) serve(ctx context.Context) {
	defer s.wg.Done()
	for {
		select {
		case r := <-s.asked:
			s.reply(ctx, r)
		case <-s.done:
			return
		}
	}
}

func (s *stdio) reply(ctx context.Context, r transport.JSONRPCRequest) {
	s.mu.Lock()
	handle := s.handle
	s.mu.Unlock()
	answer, err := (*transport.JSONRPCResponse)(nil), errors.New("nothing handles requests")
	if handle != nil {
		answer, err = handle(ctx, r)
	}
	if err != nil {
		answer = transport.NewJSONRPCErrorResponse(r.ID, spec.METHOD_NOT_FOUND, err.Error(), nil)
	}
	if text, err := encode(answer); err == nil {
		_ = s.send(ctx, text) // an answer to a server that is gone helps nobody
	}
}

// SendRequest sends a request and waits for its answer, the end of ctx or of the
// program.
func (s *stdio) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	text, err := encode(r)
	if err != nil {
		return nil, err
	}
	ch, key := make(chan *transport.JSONRPCResponse, 1), r.ID.String()
	s.mu.Lock()
	s.pending[key] = ch
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pending, key)
		s.mu.Unlock()
	}()
	if err := s.send(ctx, text); err != nil {
		return nil, err
	}
	select {
	case answer := <-ch:
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.done:
		select {
		case answer := <-ch:
			return answer, nil
		default:
			return nil, s.why()
		}
	}
}

func (s *stdio) send(ctx context.Context, text []byte) error {
	select {
	case <-s.done:
		return s.why()
	default:
	}
	select {
	case s.out <- text:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.done:
		return s.why()
	}
}

// why says why the connection is over; it is called after done.
func (s *stdio) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return s.cause
	}
	return s.end
}

// SendNotification sends a message that has no answer.
func (s *stdio) SendNotification(ctx context.Context, n spec.JSONRPCNotification) error {
	text, err := encode(n)
	if err != nil {
		return err
	}
	return s.send(ctx, text)
}

// SetNotificationHandler sets who takes notifications. It must not block.
func (s *stdio) SetNotificationHandler(f func(spec.JSONRPCNotification)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = f
}

// SetRequestHandler sets who answers requests of the server.
func (s *stdio) SetRequestHandler(f transport.RequestHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = f
}

// GetSessionId returns "": a program has no sessions.
func (s *stdio) GetSessionId() string { return "" }

// Close ends the program: it closes its input, interrupts its group when that is not
// enough, and kills what is left. It blocks until all of it has ended.
func (s *stdio) Close() error {
	if s.cancel == nil {
		return nil
	}
	_ = s.input.Close() // what the program has not read is lost
	wait := time.NewTimer(closeWait)
	defer wait.Stop()
	select {
	case <-s.done:
	case <-wait.C:
	}
	s.cancel()
	<-s.done
	s.wg.Wait()
	return nil
}
