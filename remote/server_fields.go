package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// refusal is an error with the status that the client gets.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// Errors of requests.
var (
	errBadQuery     = &refusal{http.StatusBadRequest, "the query is not one of this route"}
	errUnknownRoute = &refusal{http.StatusNotFound, "there is no such route"}
	errTurnRuns     = &refusal{http.StatusConflict, "a remote turn is already running"}
	errNotCurrent   = &refusal{http.StatusNotFound, "this session is not the current one"}
	errClosing      = &refusal{http.StatusServiceUnavailable, "the server ends"}
)

// fields are the members of the one object that a request holds.
type fields map[string]any

// parseFields reads exactly one object whose values are texts, numbers, booleans or
// null. A key that stands twice, also in other letter case, is an error: each field has
// one meaning or none.
func parseFields(data []byte) (fields, error) {
	if !utf8.Valid(data) {
		return nil, refuse(http.StatusBadRequest, "the body is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, refuse(http.StatusBadRequest, "the body is no JSON object")
	}
	f, seen := fields{}, map[string]bool{}
	for dec.More() {
		key, value, err := readMember(dec)
		if err != nil {
			return nil, refuse(http.StatusBadRequest, "the body is no object of plain values: %v", err)
		}
		if low := foldKey(key); seen[low] {
			return nil, refuse(http.StatusBadRequest, "the field %q stands twice", clip(key, 64))
		} else {
			seen[low] = true
		}
		f[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, refuse(http.StatusBadRequest, "the object does not end")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(http.StatusBadRequest, "something follows the object")
	}
	return f, nil
}

func readMember(dec *json.Decoder) (key string, value any, err error) {
	token, err := dec.Token()
	if err != nil {
		return "", nil, errors.New("it is cut short or broken")
	}
	key, ok := token.(string)
	if !ok {
		return "", nil, errors.New("a key is no text")
	}
	value, err = dec.Token()
	if err != nil {
		return "", nil, errors.New("it is cut short or broken")
	}
	if _, nested := value.(json.Delim); nested {
		return "", nil, fmt.Errorf("the value of %q has values of its own", clip(key, 64))
	}
	return key, value, nil
}

// foldKey is equal for keys that differ in letter case alone.
func foldKey(key string) string {
	return strings.Map(func(r rune) rune {
		low := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			low = min(low, f)
		}
		return low
	}, key)
}

// get returns the value of a name; ok is false when it is absent. The name in other
// letter case is an error: it would be taken for an unknown field.
func (f fields) get(name string) (value any, ok bool, err error) {
	if value, ok = f[name]; ok {
		return value, true, nil
	}
	for key := range f {
		if foldKey(key) == foldKey(name) {
			return nil, false, refuse(http.StatusBadRequest, "the field %q is written %q", clip(key, 64), name)
		}
	}
	return nil, false, nil
}

// text returns a text, empty when it is absent.
func (f fields) text(name string) (string, error) {
	value, there, err := f.get(name)
	text, ok := value.(string)
	if err == nil && there && !ok {
		err = refuse(http.StatusBadRequest, "the field %q is no text", name)
	}
	return text, err
}

// texts sets each target to the text of its name.
func (f fields) texts(targets map[string]*string) error {
	for name, target := range targets {
		var err error
		if *target, err = f.text(name); err != nil {
			return err
		}
	}
	return nil
}

// flag returns a boolean, false when it is absent.
func (f fields) flag(name string) (bool, error) {
	value, there, err := f.get(name)
	on, ok := value.(bool)
	if err == nil && there && !ok {
		err = refuse(http.StatusBadRequest, "the field %q is not true or false", name)
	}
	return on, err
}

// whole returns a whole number of 0 or more, 0 when it is absent.
func (f fields) whole(name string) (int, error) {
	value, there, err := f.get(name)
	if err != nil || !there {
		return 0, err
	}
	number, ok := value.(json.Number)
	n, perr := strconv.ParseUint(number.String(), 10, 31)
	if !ok || perr != nil {
		return 0, refuse(http.StatusBadRequest, "the field %q is no whole number of 0 or more", name)
	}
	return int(n), nil
}

// query is what may stand behind a route: ?id=ID&after=N, in this order.
type query struct {
	id    string
	after int64
}

// shape says what a route takes behind it.
type shape uint8

const (
	takesNothing shape = iota
	takesAfter         // ?after=N
	takesBoth          // ?id=ID&after=N
	takesSome          // each of both, or none
)

// parseQuery reads a query as it is written: nothing in it is decoded, and its parts
// stand in one order.
func parseQuery(raw string, s shape) (query, error) {
	var q query
	rest, more := raw, raw != ""
	if s == takesBoth || s == takesSome {
		if value, ok := strings.CutPrefix(rest, "id="); ok {
			q.id, rest, more = strings.Cut(value, "&")
			if !isID(q.id) {
				return query{}, refuse(http.StatusNotFound, "there is no session of this id")
			}
		} else if s == takesBoth {
			return query{}, errBadQuery
		}
	}
	value, ok := strings.CutPrefix(rest, "after=")
	switch {
	case ok && more && s != takesNothing:
		n, err := parseCursor(value)
		q.after = n
		return q, err
	case more || s == takesAfter || s == takesBoth:
		return query{}, errBadQuery
	}
	return q, nil
}

// maxDigits is how many digits a number of the protocol has at most.
const maxDigits = 18

func parseCursor(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || len(text) > maxDigits || !isDigits(text) {
		return 0, refuse(http.StatusBadRequest, "the cursor is no decimal number of 0 or more")
	}
	return n, nil
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// isID reports whether text has the form of a session's or a turn's id: two positive
// decimals joined by _.
func isID(text string) bool {
	one, two, ok := strings.Cut(text, "_")
	return ok && isPositive(one) && isPositive(two)
}

func isPositive(text string) bool {
	return isDigits(text) && text[0] != '0' && len(text) <= maxDigits+1
}
