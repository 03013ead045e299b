package ollama

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// quickText reads the record that nearly all lines of a stream are: a piece of text
// or thinking, nothing else. It understands only the form that Ollama itself writes
// and reports false for every other line, which is then decoded in full; what it
// accepts it reads as encoding/json does. It exists because that costs ten times as
// much for each word of a reply.
func quickText(line []byte) (content, thinking string, ok bool) {
	s := scanner{rest: line}
	var seenMessage, seenDone bool
	for first := true; ; first = false {
		key, more := s.member(first)
		if !more {
			break
		}
		switch string(key) {
		case "model", "created_at":
			s.plain()
		case "done":
			s.bad = s.bad || seenDone || !s.skip("false")
			seenDone = true
		case "message":
			s.bad = s.bad || seenMessage
			seenMessage = true
			content, thinking = s.message()
		default:
			return "", "", false
		}
		if s.bad {
			return "", "", false
		}
	}
	return content, thinking, !s.bad && len(s.rest) == 0 && seenMessage
}

// scanner reads compact JSON and gives up on everything unusual.
type scanner struct {
	rest []byte
	bad  bool
}

func (s *scanner) message() (content, thinking string) {
	var seenRole, seenContent, seenThinking bool
	for first := true; ; first = false {
		key, more := s.member(first)
		if !more {
			s.bad = s.bad || !seenRole
			return content, thinking
		}
		switch string(key) {
		case "role":
			s.bad = s.bad || seenRole
			seenRole = len(s.plain()) > 0
		case "content":
			s.bad = s.bad || seenContent
			seenContent, content = true, s.string()
		case "thinking":
			s.bad = s.bad || seenThinking
			seenThinking, thinking = true, s.string()
		default:
			s.bad = true
		}
		if s.bad {
			return "", ""
		}
	}
}

// member reads up to the value of the next member of an object; more is false at its
// end.
func (s *scanner) member(first bool) (key []byte, more bool) {
	if !first && s.skip("}") {
		return nil, false
	}
	before := ","
	if first {
		before = "{"
	}
	if !s.skip(before) {
		s.bad = true
		return nil, false
	}
	key = s.plain()
	s.bad = s.bad || !s.skip(":")
	return key, !s.bad
}

func (s *scanner) skip(text string) bool {
	if !bytes.HasPrefix(s.rest, []byte(text)) {
		return false
	}
	s.rest = s.rest[len(text):]
	return true
}

// text reads a string and returns what stands between its quotes.
func (s *scanner) text() []byte {
	if len(s.rest) == 0 || s.rest[0] != '"' {
		s.bad = true
		return nil
	}
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '"':
			text := s.rest[1:i]
			s.rest = s.rest[i+1:]
			return text
		case c == '\\':
			i++ // whether the escape is right is seen when it is read
		case c < ' ':
			s.bad = true
			return nil
		}
	}
	s.bad = true
	return nil
}

// plain reads a string without escapes.
func (s *scanner) plain() []byte {
	text := s.text()
	s.bad = s.bad || bytes.IndexByte(text, '\\') >= 0
	return text
}

// string reads a string value.
func (s *scanner) string() string {
	raw := s.rest
	text := s.text()
	if s.bad {
		return ""
	}
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text)
	}
	var decoded string
	if json.Unmarshal(raw[:len(text)+2], &decoded) != nil {
		s.bad = true
	}
	return decoded
}
