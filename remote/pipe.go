package remote

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// What the server writes first on a pipe: the mark, the version of what follows and
// that of the program, on one line. What follows is unencrypted HTTP/2.
const (
	pipeMark     = "zcoder-pipe/"
	pipeProtocol = "1"
	maxPipeNoise = 64 << 10 // bytes before it: what a far login shell prints
	maxPipeLine  = 256      // bytes of the line, with its end
)

// readGreeting reads the line that begins with the mark.
func readGreeting(line string) (protocol, program string, ok bool) {
	text, ended := strings.CutSuffix(strings.TrimPrefix(line, pipeMark), "\n")
	protocol, program, _ = strings.Cut(text, " ")
	return protocol, program, ended && madeOf(protocol, 1, 9, "") && madeOf(program, 1, 64, "._+-")
}

// greeting is the line of a program. It stands on a line of its own whatever was
// printed before.
func greeting(version string) string {
	version = strings.Map(func(r rune) rune {
		if r < 0x80 && madeOf(string(r), 1, 1, "._+-") {
			return r
		}
		return '-'
	}, version[:min(len(version), 60)])
	return fmt.Sprintf("\n%s%s %s\n", pipeMark, pipeProtocol, withDefault(version, "unknown"))
}

// Opening is the first request on a pipe. It comes from the far side: whoever may write
// to the pipe.
type Opening struct {
	Workspace string `json:"workspace"` // a directory of the server's, absolute or from ~
	Profile   string `json:"profile"`   // empty: the server's own
	Keep      bool   `json:"keep"`      // a turn goes on to its end when the pipe breaks
}

// pipeConn is a pipe as a connection. It has no deadlines: whoever reads too long is
// ended by Close.
type pipeConn struct {
	in     io.Reader // what is left of rw
	rw     io.ReadWriteCloser
	once   sync.Once
	closed chan struct{}
	err    error
}

func newPipeConn(in io.Reader, rw io.ReadWriteCloser) *pipeConn {
	return &pipeConn{in: in, rw: rw, closed: make(chan struct{})}
}

func (c *pipeConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *pipeConn) Write(p []byte) (int, error) { return c.rw.Write(p) }

func (c *pipeConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.err = c.rw.Close()
	})
	return c.err
}

func (c *pipeConn) LocalAddr() net.Addr              { return pipeAddr{} }
func (c *pipeConn) RemoteAddr() net.Addr             { return pipeAddr{} }
func (c *pipeConn) SetDeadline(time.Time) error      { return nil }
func (c *pipeConn) SetReadDeadline(time.Time) error  { return nil }
func (c *pipeConn) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
