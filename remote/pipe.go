package remote

import (
	"context"
	"io"
	"net/http"
)

// PipeServer is what PipeServe needs. All of it is required.
type PipeServer struct {
	// Conn is the pipe, such as standard input and output. It is closed at the end.
	Conn io.ReadWriteCloser
	// Version is the program's own, for the other side's messages.
	Version string
	// Open is called once, with the client's first request; the handler that it returns
	// serves everything after that. Its error is shown to the person at the client. ctx
	// ends with the pipe.
	Open func(ctx context.Context, r Opening) (http.Handler, error)
}

// Opening is the first request on a pipe. It comes from the far side: whoever may write
// to the pipe.
type Opening struct {
	Workspace string `json:"workspace"` // a directory of the server's, absolute or from ~
	Profile   string `json:"profile"`   // empty: the server's own
	Keep      bool   `json:"keep"`      // a turn goes on to its end when the pipe breaks
}

// PipeServe serves one client over a pipe and blocks until the pipe or ctx ends. It
// returns nil when the client left.
func PipeServe(ctx context.Context, s PipeServer) error { return ErrLost }

// PipeClient is what PipeDial needs. Conn is required.
type PipeClient struct {
	// Conn is the pipe to a program that calls PipeServe. It is closed at the end, also
	// when PipeDial returns an error.
	Conn    io.ReadWriteCloser
	Opening // what the server opens
	// Version is the program's own, for messages.
	Version string
	// Noise gets what the far side printed before it was ready, once, if it did. It is not
	// safe for a terminal. Nil: nobody wants it.
	Noise func(skipped []byte)
	// Said returns what came on another way meanwhile, such as ssh's standard error, to
	// explain an early end. Nil: nothing.
	Said func() string
}

// Pipe is a connection that is ready for Dial.
type Pipe struct {
	// Version is that of the program on the far side.
	Version string
}

// PipeDial waits until the server at the far end of a pipe is ready, has it open
// the workspace, and returns the connection for Dial. It blocks until then; ctx bounds
// it.
func PipeDial(ctx context.Context, p PipeClient) (*Pipe, error) { return nil, ErrLost }

// Close ends the connection.
func (p *Pipe) Close() error { return nil }
