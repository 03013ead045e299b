package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// maxMessage bounds a message of the editor, in bytes. The SDK ends the connection at
// 10 MiB; a message that is refused here ends nothing.
const maxMessage = 10<<20 - 4096

// message is what a line can hold. It has the members that the SDK decodes, so that
// both agree on what a line is.
type message struct {
	JSONRPC string            `json:"jsonrpc"`
	ID      *json.RawMessage  `json:"id,omitempty"`
	Method  string            `json:"method,omitempty"`
	Params  json.RawMessage   `json:"params,omitempty"`
	Result  json.RawMessage   `json:"result,omitempty"`
	Error   *sdk.RequestError `json:"error,omitempty"`
}

// cancelRequest is the one notification that the SDK handles by itself.
const cancelRequest = "$/cancel_request"

// handled reports whether the SDK will call the handler for the message.
func (m message) handled() bool {
	return m.Method != "" && (m.ID != nil || m.Method != cancelRequest)
}

// intake reads the editor's messages for the SDK: one at a time, each only after the
// handler took the one before it, so that a prompt and what cancels it keep their
// order. Lines that are no message are answered here and go no further.
type intake struct {
	in      *bufio.Reader
	out     *output
	open    <-chan struct{} // closed when reading may begin
	ended   <-chan struct{} // closed when nothing is handled any more
	taken   chan struct{}   // the handler took a message
	pending bool            // it has not taken the last one yet
	line    []byte          // what the SDK has not read of the last one
}

func newIntake(in io.Reader, out *output, open, ended <-chan struct{}) *intake {
	return &intake{in: bufio.NewReaderSize(in, 64<<10), out: out, open: open, ended: ended, taken: make(chan struct{}, 1)}
}

// took says that the handler took the last message. It is called once for each.
func (i *intake) took() { i.taken <- struct{}{} }

// Read implements io.Reader.
func (i *intake) Read(p []byte) (int, error) {
	if len(i.line) == 0 {
		if err := i.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, i.line)
	i.line = i.line[n:]
	return n, nil
}

// next waits until the last message was taken and reads the next one.
func (i *intake) next() error {
	<-i.open
	if i.pending {
		select {
		case <-i.taken:
		case <-i.ended:
			return io.EOF
		}
	}
	for {
		line, err := readLine(i.in, maxMessage)
		switch {
		case errors.Is(err, errTooLong):
			i.out.refuse(sdk.NewInvalidRequest(nil), fmt.Sprintf("the message is longer than %d bytes", maxMessage))
			continue
		case err != nil && len(line) == 0:
			return err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			i.out.refuse(sdk.NewParseError(nil), "the line is no JSON-RPC message: "+err.Error())
			continue
		}
		if m.Method == "" && m.ID == nil {
			i.out.refuse(sdk.NewInvalidRequest(nil), "the message has neither an id nor a method")
			continue
		}
		i.pending = m.handled()
		i.line = append(line, '\n')
		return nil
	}
}

var errTooLong = errors.New("the line is too long")

// readLine reads a line without its end. A longer one is read to its end and given up.
func readLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > most {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && err == nil {
			return nil, errTooLong
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// output writes messages to the editor, each whole.
type output struct {
	mu     sync.Mutex
	w      io.Writer
	failed func(error) // the editor does not read any more
	news   map[string]chan struct{}
}

// Write implements io.Writer: the SDK writes each message at once.
func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(line)
	if err != nil {
		o.failed(err)
	}
	for id, told := range o.news {
		if bytes.Contains(line, []byte(id)) {
			close(told)
			delete(o.news, id)
		}
	}
	return n, err
}

// announced returns a channel that is closed once the editor was told the id of a new
// conversation. Nothing else about it is sent before.
func (o *output) announced(id string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	told := make(chan struct{})
	o.news[id] = told
	return told
}

// refuse answers a line that is no message.
func (o *output) refuse(e *sdk.RequestError, why string) {
	e.Message = why
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": e})
	if err == nil {
		_, _ = o.Write(append(line, '\n')) // failed hears of it
	}
}
