package remote

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

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

// Pipe is a connection that is ready for Dial, once.
type Pipe struct {
	// Version is that of the program on the far side.
	Version string

	conn      *pipeConn
	transport *http.Transport
}

// PipeDial waits until the server at the far end of a pipe is ready, has it open
// the workspace, and returns the connection for Dial. It blocks until then; ctx bounds
// it.
func PipeDial(ctx context.Context, p PipeClient) (*Pipe, error) {
	in := bufio.NewReaderSize(p.Conn, 4<<10)
	pipe := &Pipe{conn: newPipeConn(in, p.Conn)}
	defer context.AfterFunc(ctx, func() { pipe.Close() })()
	err := p.greeted(in, pipe)
	if err == nil {
		pipe.transport = pipeTransport(pipe.conn)
		err = p.opened(ctx, pipe)
	}
	if err != nil {
		pipe.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	return pipe, nil
}

// Close ends the connection.
func (p *Pipe) Close() error {
	err := p.conn.Close()
	if p.transport != nil {
		p.transport.CloseIdleConnections()
	}
	return err
}

// greeted skips to the server's line.
func (p PipeClient) greeted(in *bufio.Reader, pipe *Pipe) error {
	noise, line, err := skipNoise(in)
	if noise = bytes.TrimRight(noise, "\n"); len(noise) > 0 && p.Noise != nil && err == nil {
		p.Noise(noise)
	}
	if err != nil {
		return p.early(noise, err)
	}
	protocol, program, ok := readGreeting(line)
	switch {
	case !ok:
		return hint(fmt.Errorf("the far side greets with %q", line), "install the same version of zcoder on both sides")
	case protocol != pipeProtocol:
		err := fmt.Errorf("zcoder %s on the far side speaks version %s of the pipe, zcoder %s here version %s", program, protocol, withDefault(p.Version, "(unknown)"), pipeProtocol)
		return hint(err, "install the same version of zcoder on both sides")
	}
	pipe.Version = program
	return nil
}

var errPipeNoise = fmt.Errorf("it printed more than %d KiB and no greeting", maxPipeNoise>>10)

// skipNoise reads up to and with the line that begins with the mark, wherever in a
// line that is: what a shell prints need not end one.
func skipNoise(in *bufio.Reader) (noise []byte, line string, err error) {
	for len(noise) < maxPipeNoise+len(pipeMark) {
		b, err := in.ReadByte()
		if err != nil {
			return noise, "", err
		}
		noise = append(noise, b)
		if bytes.HasSuffix(noise, []byte(pipeMark)) {
			line, err := restOfLine(in)
			return noise[:len(noise)-len(pipeMark)], pipeMark + line, err
		}
	}
	return noise, "", errPipeNoise
}

func restOfLine(in *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxPipeLine {
		b, err := in.ReadByte()
		if err != nil {
			return string(line), err
		}
		if line = append(line, b); b == '\n' {
			break
		}
	}
	return string(line), nil
}

// early explains that the far side did not come to greet.
func (p PipeClient) early(noise []byte, err error) error {
	const most = 2 << 10 // bytes of what is repeated: the end says why
	if !errors.Is(err, errPipeNoise) {
		err = errors.New("the connection ended before zcoder answered on the far side")
	}
	text := string(noise[max(0, len(noise)-most):])
	if p.Said != nil {
		text = strings.TrimSpace(text + "\n" + p.Said())
	}
	if text = strings.ToValidUTF8(strings.TrimSpace(text), "\uFFFD"); text != "" {
		err = fmt.Errorf("%w; it said: %s", err, clip(text, 2*most))
	}
	return hint(err, "check that ssh gets there without a question and that zcoder is installed there (ZCODER_REMOTE_PROGRAM names it)")
}

// opened has the server open the workspace.
func (p PipeClient) opened(ctx context.Context, pipe *Pipe) error {
	l, err := newLink(ctx, ClientConfig{Pipe: pipe})
	if err != nil {
		return err
	}
	defer l.stop()
	err = l.call(ctx, loadTimeout, http.MethodPost, pathOpen, p.Opening, nil)
	var broken brokenError
	switch {
	case errors.As(err, &broken):
		return p.early(nil, err)
	case err != nil:
		return fmt.Errorf("open %q on the far side: %w", clip(p.Workspace, maxFact), err)
	}
	return nil
}

// pipeTransport speaks HTTP/2 over a connection that is there already. A second one
// cannot be made.
func pipeTransport(conn *pipeConn) *http.Transport {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	var used atomic.Bool
	return &http.Transport{
		Protocols: &protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, ErrLost
			}
			return conn, nil
		},
		DisableCompression: true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}
