package file

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// sniffed is how much of a file tells whether it is text, in bytes; git looks at as
// much.
const sniffed = 8000

var bom = []byte{0xEF, 0xBB, 0xBF}

// checkText refuses content that is no text in an encoding that extends ASCII.
// head is the beginning of a file of size bytes.
func checkText(head []byte, size int64) error {
	if len(head) > sniffed {
		head = head[:sniffed]
	}
	switch {
	case isUTF16(head):
		return fmt.Errorf("(%d bytes) %w", size, errUTF16)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("is binary (%d bytes), not text", size)
	}
	return nil
}

var errUTF16 = errors.New("is UTF-16 text, which the file tools do not read or change; convert it with a command such as iconv")

func isUTF16(head []byte) bool {
	return bytes.HasPrefix(head, []byte{0xFF, 0xFE}) || bytes.HasPrefix(head, []byte{0xFE, 0xFF})
}

// withoutBOM cuts the byte order mark, which the model never sees.
func withoutBOM(content []byte) []byte { return bytes.TrimPrefix(content, bom) }

// oldMac reports whether the lines of content end in a lone carriage return.
func oldMac(content []byte) bool {
	return bytes.IndexByte(content, '\n') < 0 && bytes.IndexByte(content, '\r') >= 0
}

// onlyCRLF reports whether content has line ends and all are CRLF.
func onlyCRLF(content []byte) bool {
	n := bytes.Count(content, []byte{'\n'})
	return n > 0 && n == bytes.Count(content, []byte("\r\n"))
}

// toLF gives text the line ends that the model uses.
func toLF(text []byte) []byte {
	if bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.ReplaceAll(text, []byte("\r\n"), []byte{'\n'})
}

func countLines(text []byte) int {
	n := bytes.Count(text, []byte{'\n'})
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

// badBytes counts the bytes that are not UTF-8.
func badBytes(text []byte) int {
	if utf8.Valid(text) {
		return 0
	}
	n := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		text = text[size:]
	}
	return n
}

// checkSum compares the hash that a call expects with the one that a file has.
func checkSum(want string, exists bool, sum [32]byte) error {
	switch {
	case want == "":
		return nil
	case !exists:
		return errors.New("expected_sha256 is given, but the file does not exist; leave it out to create the file")
	case len(want) != 64 || !isHex(want):
		return errors.New("expected_sha256 must have 64 hexadecimal digits")
	case !bytes.EqualFold([]byte(want), fmt.Appendf(nil, "%x", sum)):
		return fmt.Errorf("the file changed: its SHA-256 is %x, not the expected one; read it again", sum)
	}
	return nil
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}
