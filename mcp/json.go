package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// member is one member of a JSON object: its name, its value as it stands, and where
// both stand in the text.
type member struct {
	name       string
	raw        json.RawMessage
	start, end int // of the value
	key        int // where the name begins
}

// membersOf reads the members of the object in text, in order. Two names that are
// equal, or differ in letter case alone, are an error: readers of the text would not
// agree on what it says.
func membersOf(text []byte) ([]member, error) { return readMembers(text, folded) }

// membersExact is membersOf for names that may differ in letter case alone, as those of
// variables do.
func membersExact(text []byte) ([]member, error) {
	return readMembers(text, func(name string) string { return name })
}

// readMembers reads the members of an object. Names that same makes equal are an error.
func readMembers(text []byte, same func(string) string) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	tok, err := dec.Token()
	if err != nil {
		return nil, jsonError(err)
	}
	if tok != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	var list []member
	seen := map[string]string{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, jsonError(err)
		}
		m := member{name: tok.(string)}
		if other, twice := seen[same(m.name)]; twice {
			return nil, fmt.Errorf("the name %q stands twice (as %q)", m.name, other)
		}
		seen[same(m.name)] = m.name
		m.key = lastQuote(text, int(dec.InputOffset()))
		if err := dec.Decode(&m.raw); err != nil {
			return nil, jsonError(err)
		}
		m.end = int(dec.InputOffset())
		m.start = m.end - len(m.raw)
		list = append(list, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, jsonError(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is text after the object")
	}
	return list, nil
}

// folded is the same for names that differ in letter case alone, as strings.EqualFold
// has it.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name)
}

// lastQuote returns where the JSON string begins that ends at end.
func lastQuote(text []byte, end int) int {
	for i := end - 2; i >= 0; i-- {
		if text[i] != '"' {
			continue
		}
		slashes := 0
		for j := i - 1; j >= 0 && text[j] == '\\'; j-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
	}
	return 0
}

func jsonError(err error) error {
	var at *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("it ends too early")
	case errors.As(err, &at):
		return fmt.Errorf("%s at byte %d", at, at.Offset)
	}
	return err
}

// eachElement gives take the elements of a JSON list, one after the other and at most
// max of them, and returns how many more there are. What take gets is valid until it
// returns.
func eachElement(list json.RawMessage, max int, take func(json.RawMessage)) (more int, err error) {
	if len(list) == 0 || string(list) == "null" {
		return 0, nil
	}
	dec := json.NewDecoder(bytes.NewReader(list))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return 0, errors.New("it is not a list")
	}
	var one json.RawMessage
	for n := 0; dec.More(); n++ {
		if err := dec.Decode(&one); err != nil {
			return more, jsonError(err)
		}
		if n >= max {
			more++
			continue
		}
		take(one)
	}
	return more, nil
}

func memberOf(list []member, name string) (member, bool) {
	for _, m := range list {
		if m.name == name {
			return m, true
		}
	}
	return member{}, false
}

// canonical returns JSON in one form: names sorted, no white space, numbers as they
// were written.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, jsonError(err)
	}
	return encode(v)
}

// encode is json.Marshal without the escapes for HTML.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
