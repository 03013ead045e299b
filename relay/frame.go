package relay

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// magic begins every frame.
const magic = "ZCODER-AGENT/1 "

// maxDigits is how long the count in a header may be.
const maxDigits = 10

// errFrame is a frame that cannot be read, whoever sent it.
var errFrame = errors.New("read frame")

func badFrame(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errFrame}, args...)...)
}

// readFrame reads one frame with a body of 1 to max bytes. It reads the header byte
// by byte and gives up at the first wrong one; memory grows with what arrives, not
// with what the header promises.
func readFrame(r io.Reader, max int) ([]byte, error) {
	in := bufio.NewReaderSize(r, 1024)
	size, err := readHeader(in)
	if err != nil {
		return nil, err
	}
	if size < 1 || size > max {
		return nil, badFrame("its body of %d bytes is not 1 to %d", size, max)
	}
	body, err := io.ReadAll(io.LimitReader(in, int64(size)))
	if err != nil {
		return nil, badFrame("%w", err)
	}
	if len(body) < size {
		return nil, badFrame("it ends after %d of %d bytes", len(body), size)
	}
	return body, nil
}

func readHeader(in *bufio.Reader) (int, error) {
	for i := range len(magic) {
		b, err := in.ReadByte()
		if err != nil {
			return 0, badFrame("%w", err)
		}
		if b != magic[i] {
			return 0, badFrame("it does not begin with %q", magic)
		}
	}
	var digits []byte
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, badFrame("%w", err)
		case b == '\n' && len(digits) > 0:
			return strconv.Atoi(string(digits))
		case b < '0' || b > '9' || len(digits) == maxDigits || len(digits) == 1 && digits[0] == '0':
			return 0, badFrame("its byte count is not decimal")
		}
		digits = append(digits, b)
	}
}

// appendFrame makes a frame of a body.
func appendFrame(body []byte) []byte {
	frame := make([]byte, 0, len(magic)+maxDigits+1+len(body))
	frame = strconv.AppendInt(append(frame, magic...), int64(len(body)), 10)
	return append(append(frame, '\n'), body...)
}
