package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// fileLayer reads the user's file, if there is one.
func (l *loader) fileLayer(path string) error {
	if l.src.ReadFile == nil {
		return nil
	}
	data, err := l.src.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &UsageError{Text: fmt.Sprintf("read settings file %q: %v", path, err)}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	// The parser below reads one expression after the other. The whole document is
	// checked first, double keys included.
	var whole map[string]any
	if err := toml.Unmarshal(data, &whole); err != nil {
		var at *toml.DecodeError
		if errors.As(err, &at) {
			row, _ := at.Position()
			return &UsageError{Text: fmt.Sprintf("%s:%d: %s", path, row, strings.TrimPrefix(at.Error(), "toml: "))}
		}
		return &UsageError{Text: fmt.Sprintf("%s: %v", path, err)}
	}
	f := file{loader: l, path: path, data: data}
	f.parser.Reset(data)
	for f.parser.NextExpression() {
		if err := f.expression(f.parser.Expression()); err != nil {
			return err
		}
	}
	if err := f.parser.Error(); err != nil {
		return &UsageError{Text: fmt.Sprintf("%s: %v", path, err)}
	}
	return nil
}

// file walks over one settings file.
type file struct {
	*loader
	path   string
	data   []byte
	parser unstable.Parser
}

// expression takes one line of the file: a setting, or a table, of which there is
// none.
func (f *file) expression(node *unstable.Node) error {
	if node.Kind == unstable.Comment {
		return nil
	}
	var parts []string
	line := 0
	for keys := node.Key(); keys.Next(); {
		key := keys.Node()
		if line == 0 {
			line = f.line(key.Raw)
		}
		parts = append(parts, string(key.Data))
	}
	key := strings.Join(parts, ".")
	place := fmt.Sprintf("%s:%d", f.path, line)
	if node.Kind != unstable.KeyValue {
		return &UsageError{Text: fmt.Sprintf("%s: unknown table [%s]: settings stand outside tables", place, key)}
	}
	i := slices.IndexFunc(f.table, func(s Setting) bool { return s.Key == key && key != "" })
	if i < 0 {
		return f.unknownKey(place, key)
	}
	s := f.table[i]
	value, err := fileValue(s, node.Value())
	if err != nil {
		return f.refuse(s, fmt.Sprintf("%s: %s: %v", place, key, err), place)
	}
	f.put(s, value, place)
	return nil
}

func (f *file) unknownKey(place, key string) error {
	var keys []string
	for _, s := range f.table {
		if s.Key != "" {
			keys = append(keys, s.Key)
		}
	}
	e := &UsageError{Text: fmt.Sprintf("%s: unknown setting %q", place, key)}
	if near := Nearest(strings.ReplaceAll(key, "-", "_"), keys); near != "" {
		e.Hints = []string{fmt.Sprintf("did you mean %q?", near)}
	}
	return e
}

// line returns the number of the line, from 1, that a part of the file stands in.
func (f *file) line(part unstable.Range) int {
	return bytes.Count(f.data[:min(int(part.Offset), len(f.data))], []byte("\n")) + 1
}

// fileValue reads a value of the kind that the setting has: a number is no text
// and a text no number.
func fileValue(s Setting, node *unstable.Node) (any, error) {
	if s.Kind == List && node.Kind == unstable.Array {
		return fileList(node)
	}
	text := strings.ReplaceAll(string(node.Data), "_", "")
	allowed := false
	switch node.Kind {
	case unstable.String:
		text = string(node.Data)
		allowed = s.Kind == Text || s.Kind == Path || s.Kind == Enum || s.Kind == Duration || s.Kind == AutoInt && text == "auto"
	case unstable.Integer:
		allowed = s.Kind == Int || s.Kind == AutoInt || s.Kind == Duration || s.Check != nil
	case unstable.Bool:
		_, isWord := s.parseEnum(text)
		allowed = s.Kind == Bool || s.Kind == Enum && isWord
	}
	if !allowed {
		return nil, fmt.Errorf("it is %s, but has to be %s", kindName(node.Kind), s.fileKind())
	}
	return s.parse(text)
}

func fileList(node *unstable.Node) (any, error) {
	list := []string{}
	for items := node.Children(); items.Next(); {
		item := items.Node()
		if item.Kind == unstable.Comment {
			continue
		}
		if item.Kind != unstable.String {
			return nil, fmt.Errorf("it holds %s, but has to be a list of texts", kindName(item.Kind))
		}
		list = append(list, string(item.Data))
	}
	return list, nil
}

// kindName names what stands in the file.
func kindName(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a text in quotes"
	case unstable.Integer:
		return "a whole number"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Bool:
		return "true or false"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	}
	return "a date or time"
}

// fileKind names what has to stand in the file.
func (s Setting) fileKind() string {
	switch s.Kind {
	case Bool, Enum:
		return s.Allowed()
	case Int:
		return "a whole number, " + s.Allowed()
	case AutoInt:
		return `"auto" or a whole number, ` + fmt.Sprintf("%d to %d %s", s.Min, s.Max, s.Unit)
	case Duration:
		return `a whole number of seconds or a text such as "15m"`
	case List:
		return "a list of texts"
	}
	return "a text in quotes"
}
