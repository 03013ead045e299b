package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// object is a flat JSON object: texts, numbers, booleans and nulls.
type object map[string]any

// parseObject reads exactly one flat object. Duplicate keys, also those that differ
// only in letter case, nested values, invalid UTF-8 and anything after the object
// are errors: each field has one meaning or none.
func parseObject(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("it is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("it is no JSON object")
	}
	o, folded := object{}, map[string]bool{}
	for dec.More() {
		key, value, err := member(dec)
		if err != nil {
			return nil, err
		}
		if low := strings.ToLower(key); folded[low] {
			return nil, fmt.Errorf("key %q stands twice", key)
		} else {
			folded[low] = true
		}
		o[key] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("the object does not end")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the object")
	}
	return o, nil
}

func member(dec *json.Decoder) (string, any, error) {
	token, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	key, ok := token.(string)
	if !ok {
		return "", nil, errors.New("a key is no text")
	}
	value, err := dec.Token()
	if err != nil {
		return "", nil, err
	}
	if _, nested := value.(json.Delim); nested {
		return "", nil, fmt.Errorf("the value of %q is not flat", key)
	}
	return key, value, nil
}

// text returns a text of low to high characters.
func (o object) text(name string, low, high int) (string, error) {
	s, ok := o[name].(string)
	if !ok {
		return "", fmt.Errorf("field %q is missing or no text", name)
	}
	if n := utf8.RuneCountInString(s); n < low || n > high {
		return "", fmt.Errorf("field %q has %d characters, not %d to %d", name, n, low, high)
	}
	return s, nil
}

// whole returns a whole number of 0 or more.
func (o object) whole(name string) (int, error) {
	number, ok := o[name].(json.Number)
	if !ok {
		return 0, fmt.Errorf("field %q is missing or no number", name)
	}
	n, err := number.Int64()
	if err != nil || n < 0 || n > maxPID {
		return 0, fmt.Errorf("field %q is %q, not a whole number up to %d", name, number, maxPID)
	}
	return int(n), nil
}

// maxSeconds is a time far in the future, to keep arithmetic with times safe.
const maxSeconds = 1e12

// seconds returns a time since 1970, which may have a fraction.
func (o object) seconds(name string) (float64, error) {
	number, ok := o[name].(json.Number)
	if !ok {
		return 0, fmt.Errorf("field %q is missing or no number", name)
	}
	n, err := number.Float64()
	if err != nil || math.IsNaN(n) || n < 0 || n > maxSeconds {
		return 0, fmt.Errorf("field %q is %q, no time in seconds", name, number)
	}
	return n, nil
}

// encode writes a value as JSON without escapes that only web pages need.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
