package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what the decoder reads.
const (
	maxDepth    = 64 // of nested JSON values; a flat object has depth 1
	maxEncoding = 3  // times that arguments may be wrapped in a JSON string
)

// Decode reads the arguments of a call once, strictly: the value it returns is the
// only one that is planned, shown, recorded and run. Duplicate keys and keys that
// differ only in letter case are errors, not choices. Scalars of a safe other type
// are converted ("10" for 10), nothing else is. The error tells the model how to
// correct the call.
func Decode(spec Spec, raw json.RawMessage) (Args, error) {
	text, err := unwrap(raw)
	if err != nil {
		return Args{}, spec.wrong(err)
	}
	fields, err := readObject(text)
	if err != nil && !json.Valid(text) {
		if fixed := repair(text); json.Valid(fixed) {
			fields, err = readObject(fixed)
		}
	}
	if err != nil {
		return Args{}, spec.wrong(err)
	}
	if spec.Schema != nil {
		return newArgs(fields.asMap())
	}
	values, err := spec.match(fields)
	if err != nil {
		return Args{}, spec.wrong(err)
	}
	return newArgs(values)
}

func newArgs(values map[string]any) (Args, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(values); err != nil {
		return Args{}, fmt.Errorf("encode arguments: %w", err)
	}
	return Args{values: values, json: bytes.TrimRight(buf.Bytes(), "\n")}, nil
}

// wrong adds the form of a right call to an error.
func (s Spec) wrong(err error) error {
	if len(s.Params) == 0 {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	var form []string
	for _, p := range s.Params {
		mark := ""
		if !p.Required {
			mark = "?"
		}
		form = append(form, fmt.Sprintf("%s%s: %s", p.Name, mark, p.Type))
	}
	return fmt.Errorf("%s: %w. Arguments are one flat JSON object {%s}", s.Name, err, strings.Join(form, ", "))
}

// unwrap returns the JSON object text of the arguments, which some models send
// inside a JSON string, once or twice.
func unwrap(raw json.RawMessage) ([]byte, error) {
	text := bytes.TrimSpace(raw)
	for range maxEncoding {
		if len(text) == 0 || string(text) == "null" {
			return []byte("{}"), nil
		}
		if text[0] != '"' {
			return text, nil
		}
		var inner string
		if err := json.Unmarshal(text, &inner); err != nil {
			return nil, fmt.Errorf("the arguments are not valid JSON (%w)", err)
		}
		if err := checkText(text, inner); err != nil {
			return nil, err
		}
		text = bytes.TrimSpace([]byte(inner))
	}
	return nil, errors.New("the arguments are wrapped in too many JSON strings")
}

type field struct {
	name  string
	value any // string, json.Number, bool, nil, []any, object
}

type object []field

func (o object) asMap() map[string]any {
	m := make(map[string]any, len(o))
	for _, f := range o {
		m[f.name] = plain(f.value)
	}
	return m
}

func plain(v any) any {
	switch v := v.(type) {
	case object:
		return v.asMap()
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

func readObject(text []byte) (object, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the arguments are not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	v, err := readValue(dec, text, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is text after the arguments object")
	}
	o, ok := v.(object)
	if !ok {
		return nil, errors.New("the arguments are not an object")
	}
	return o, nil
}

func readValue(dec *json.Decoder, text []byte, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("the arguments are nested too deeply")
	}
	start := dec.InputOffset()
	tok, err := dec.Token()
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%s)", jsonError(err))
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			return readFields(dec, text, depth)
		}
		return readList(dec, text, depth)
	case string:
		if err := checkText(text[start:dec.InputOffset()], tok); err != nil {
			return nil, err
		}
	}
	return tok, nil
}

func jsonError(err error) string {
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return "they end too early"
	}
	return err.Error()
}

func readFields(dec *json.Decoder, text []byte, depth int) (any, error) {
	o := object{}
	for dec.More() {
		key, err := readValue(dec, text, depth+1)
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("the arguments are not valid JSON (a key is not a string)")
		}
		if err := o.clash(name); err != nil {
			return nil, err
		}
		value, err := readValue(dec, text, depth+1)
		if err != nil {
			return nil, err
		}
		o = append(o, field{name, value})
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%s)", jsonError(err))
	}
	return o, nil
}

func (o object) clash(name string) error {
	for _, f := range o {
		if strings.EqualFold(f.name, name) {
			return fmt.Errorf("ambiguous arguments: the key %q is given twice (as %q), so nothing was run", name, f.name)
		}
	}
	return nil
}

func readList(dec *json.Decoder, text []byte, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		v, err := readValue(dec, text, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%s)", jsonError(err))
	}
	return list, nil
}

// checkText refuses a string in which the decoder replaced half a surrogate pair:
// what would run is not what was sent.
func checkText(raw []byte, decoded string) error {
	if !strings.ContainsRune(decoded, utf8.RuneError) {
		return nil
	}
	sent := bytes.Count(raw, []byte("\uFFFD")) + bytes.Count(bytes.ToLower(raw), []byte(`\ufffd`))
	if strings.Count(decoded, "\uFFFD") > sent {
		return errors.New("a string holds half a surrogate pair")
	}
	return nil
}

// Lead returns the first parameter's text in the arguments of a call that was not
// planned, to show what it was about. It is empty when there is none.
func Lead(spec Spec, raw json.RawMessage) string {
	text, err := unwrap(raw)
	if err != nil || len(spec.Params) == 0 {
		return ""
	}
	fields, err := readObject(text)
	if err != nil {
		return ""
	}
	for _, f := range fields {
		if p, err := spec.param(f.name); err == nil && p.Name == spec.Params[0].Name {
			lead, _ := f.value.(string)
			return lead
		}
	}
	return ""
}

// match gives each field to its parameter and converts it.
func (s Spec) match(fields object) (map[string]any, error) {
	values, names := make(map[string]any, len(fields)), make(map[string]string, len(fields))
	for _, f := range fields {
		p, err := s.param(f.name)
		if err != nil {
			return nil, err
		}
		if f.value == nil {
			continue
		}
		if first, twice := names[p.Name]; twice {
			return nil, fmt.Errorf("ambiguous arguments: %q is given twice, as %q and as %q", p.Name, first, f.name)
		}
		v, err := p.convert(f.value)
		if err != nil {
			return nil, err
		}
		values[p.Name], names[p.Name] = v, f.name
	}
	for _, p := range s.Params {
		if _, ok := values[p.Name]; p.Required && !ok {
			return nil, fmt.Errorf("the argument %q is missing", p.Name)
		}
	}
	return values, nil
}

func (s Spec) param(key string) (Param, error) {
	name := strings.Trim(key, "\"' \n")
	for _, p := range s.Params {
		if strings.EqualFold(p.Name, name) || slices.Contains(p.Aliases, strings.ToLower(name)) {
			return p, nil
		}
	}
	var names []string
	for _, p := range s.Params {
		names = append(names, p.Name)
	}
	hint := ""
	if near := Nearest(name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return Param{}, fmt.Errorf("unknown argument %q%s", key, hint)
}

func (p Param) convert(v any) (any, error) {
	switch p.Type {
	case Integer:
		return p.integer(v)
	case Boolean:
		switch v := v.(type) {
		case bool:
			return v, nil
		case string:
			switch strings.ToLower(strings.TrimSpace(v)) {
			case "true":
				return true, nil
			case "false":
				return false, nil
			}
		}
		return nil, fmt.Errorf("the argument %q must be true or false", p.Name)
	}
	return p.text(v)
}

func (p Param) integer(v any) (any, error) {
	var text string
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimSpace(v)
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		f, ferr := strconv.ParseFloat(text, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return nil, fmt.Errorf("the argument %q must be a whole number", p.Name)
		}
		n = int(f)
	}
	if p.Max > 0 && (n < p.Min || n > p.Max) {
		return nil, fmt.Errorf("the argument %q must be from %d to %d, not %d", p.Name, p.Min, p.Max, n)
	}
	return n, nil
}

func (p Param) text(v any) (any, error) {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case json.Number:
		s = v.String()
	case bool:
		s = strconv.FormatBool(v)
	default:
		return nil, fmt.Errorf("the argument %q must be a string", p.Name)
	}
	if len(p.Enum) > 0 && !slices.Contains(p.Enum, s) {
		return nil, fmt.Errorf("the argument %q must be one of %s", p.Name, strings.Join(p.Enum, ", "))
	}
	return s, nil
}

// Nearest returns the candidate closest to name, or "" when none is close: at most
// a third of its letters differ.
func Nearest(name string, candidates []string) string {
	best, bestAt := "", 1+max(1, len(name)/3)
	for _, c := range candidates {
		if d := distance(strings.ToLower(name), strings.ToLower(c)); d < bestAt {
			best, bestAt = c, d
		}
	}
	return best
}

// distance is Levenshtein's, over bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
