package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDefinition bounds what a server says of one tool, in bytes: a person has to be able
// to read it.
const maxDefinition = 1 << 18

// Definition is a tool as its server describes it, word for word.
type Definition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"inputSchema,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// parseDefinition reads one element of a list of tools.
func parseDefinition(raw json.RawMessage) (Definition, error) {
	var d Definition
	if len(raw) > maxDefinition {
		return d, fmt.Errorf("read a tool: its definition has more than %d bytes", maxDefinition)
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, fmt.Errorf("read a tool: %w", jsonError(err))
	}
	if d.Name == "" || len(d.Name) > 256 || plain(d.Name, 256) != d.Name || strings.ContainsAny(d.Name, "\n\t") {
		return d, fmt.Errorf("read a tool: %q is no usable name", plain(d.Name, 60))
	}
	if string(d.Annotations) == "null" {
		d.Annotations = nil
	}
	return d, nil
}

// hints reads the annotations. All count as unsaid when one has a wrong type or a name
// stands twice.
func (d Definition) hints() Hints {
	list, err := membersOf(d.Annotations)
	if err != nil {
		return Hints{}
	}
	var h Hints
	for name, into := range map[string]**bool{"readOnlyHint": &h.ReadOnly, "destructiveHint": &h.Destructive, "openWorldHint": &h.OpenWorld} {
		if m, ok := memberOf(list, name); ok && json.Unmarshal(m.raw, into) != nil {
			return Hints{}
		}
	}
	return h
}

// digest identifies the definition whatever the order of its JSON names.
func (d Definition) digest() (string, error) {
	var errs [2]error
	d.Schema, errs[0] = canonical(d.Schema)
	d.Annotations, errs[1] = canonical(d.Annotations)
	if err := errors.Join(errs[:]...); err != nil {
		return "", fmt.Errorf("tool %q: %w", d.Name, err)
	}
	text, err := encode(d)
	if err != nil {
		return "", fmt.Errorf("tool %q: %w", d.Name, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// text shows the definition to a person, for reading and for diffs.
func (d Definition) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s\n", d.Name)
	if d.Title != "" {
		fmt.Fprintf(&b, "title: %s\n", d.Title)
	}
	fmt.Fprintf(&b, "%s\n", strings.TrimRight(d.Description, "\n"))
	for _, part := range []struct {
		name string
		raw  json.RawMessage
	}{{"annotations", d.Annotations}, {"schema", d.Schema}} {
		if len(part.raw) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", part.name, indented(sorted(part.raw), ""))
		}
	}
	return b.String()
}

// sorted is canonical JSON, or the text as it is when it is none.
func sorted(raw json.RawMessage) json.RawMessage {
	if c, err := canonical(raw); err == nil {
		return c
	}
	return raw
}

const (
	maxDescription = 1024 // characters of a tool's description for the model
	maxPhrase      = 300  // of a description inside a schema
)

// forModel is what the model is told of a tool. It names whose words they are.
func (d Definition) forModel(server string) string {
	text := plain(d.Description, maxDescription)
	if text == "" {
		text = plain(d.Title, maxDescription)
	}
	return plainName(server) + " says: " + text
}

// plain returns foreign text without what is not seen: control characters and escape
// sequences, characters without width or that reorder text. It is at most max
// characters long.
func plain(text string, max int) string {
	var b strings.Builder
	n := 0
	text = stripEscapes(text)
	for _, r := range strings.TrimSpace(text) {
		switch {
		case r == '\n' || r == '\t':
		case unicode.Is(unicode.Zs, r):
			r = ' '
		case !unicode.IsGraphic(r) || unseen(r):
			continue
		}
		if n++; n > max {
			return strings.TrimSpace(b.String()) + " …"
		}
		b.WriteRune(r)
	}
	return b.String()
}

// unseen are characters that count as graphic and yet draw nothing.
func unseen(r rune) bool {
	switch {
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF: // variation selectors
		return true
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x034F, r == 0x2800, r == utf8.RuneError:
		return true
	}
	return false
}

// stripEscapes removes terminal sequences whole, so that their letters do not stay.
func stripEscapes(text string) string {
	if !strings.ContainsAny(text, "\x1b\u009b") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		n := escapeLen(text[i:])
		if n == 0 {
			b.WriteByte(text[i])
			n = 1
		}
		i += n
	}
	return b.String()
}

// escapeLen is the length of the terminal sequence at the start of s, 0 without one.
func escapeLen(s string) int {
	body, csi := strings.CutPrefix(s, "\u009b")
	if !csi {
		if s[0] != 0x1b {
			return 0
		}
		if len(s) < 2 || s[1] != '[' && s[1] != ']' {
			return min(2, len(s))
		}
		body = s[2:]
		csi = s[1] == '['
	}
	head := len(s) - len(body)
	for i := range len(body) {
		c := body[i]
		if csi && c >= 0x40 && c <= 0x7e || !csi && (c == 0x07 || c == 0x1b) {
			return head + i + 1
		}
	}
	return len(s)
}
