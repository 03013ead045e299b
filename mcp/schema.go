package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

const (
	maxSchemaDepth = 5       // levels of objects and lists below the arguments
	maxSchemaSize  = 8192    // bytes of a tool's schema for the model
	maxRefs        = 256     // references followed in one schema
	maxEnum        = 64      // values of an enumeration
	maxSource      = 1 << 18 // bytes of a schema that is read at all
	maxProps       = 1000    // properties of an object; with more it is too large in any case
	// maxWork is how many times its length may be read of a schema, with workFloor bytes
	// at least: references can lead to the same part again and again.
	maxWork   = 10
	workFloor = 1 << 15
)

// emptySchema takes any object.
const emptySchema = `{"type":"object","properties":{}}`

// normalise returns a schema that every server of models takes: an object with
// properties that have type, description, enum, items, properties, required and
// anyOf, and nothing else. References are put in place, what says "or null" is left
// out, what lies too deep loses its parts. The order of properties stays.
func normalise(raw json.RawMessage) json.RawMessage {
	if len(raw) > maxSource {
		return json.RawMessage(emptySchema)
	}
	n := newNormaliser(raw, maxSchemaDepth, maxPhrase)
	out := n.top()
	if len(out) > maxSchemaSize {
		n = newNormaliser(raw, 2, 0)
		out = n.top()
	}
	if len(out) > maxSchemaSize {
		return json.RawMessage(emptySchema)
	}
	return out
}

type normaliser struct {
	root   json.RawMessage
	depth  int
	phrase int // longest description; 0 leaves them out
	refs   int
	left   int                                   // bytes that may still be read
	places map[string]map[string]json.RawMessage // objects that references lead through
}

func newNormaliser(raw json.RawMessage, depth, phrase int) *normaliser {
	return &normaliser{root: raw, depth: depth, phrase: phrase, left: maxWork*len(raw) + workFloor, places: map[string]map[string]json.RawMessage{}}
}

// spend counts what is about to be read, and reports whether it may be.
func (n *normaliser) spend(raw json.RawMessage) bool {
	n.left -= len(raw)
	return n.left >= 0
}

// node is a schema that is being put together.
type node struct {
	typ         string
	description string
	enum        []json.RawMessage
	items       *node
	props       []prop
	required    []string
	anyOf       []*node
}

type prop struct {
	name string
	node *node
}

func (n *normaliser) top() json.RawMessage {
	s := n.read(n.root, 0, nil)
	for _, alternative := range s.anyOf {
		s.absorb(alternative)
	}
	if len(s.props) == 0 {
		return json.RawMessage(emptySchema)
	}
	s.typ, s.description, s.enum, s.items, s.anyOf = "object", "", nil, nil, nil
	var b bytes.Buffer
	s.write(&b)
	return b.Bytes()
}

// absorb takes over the properties of an alternative, none of which is required
// unless it is already.
func (s *node) absorb(o *node) {
	for _, p := range o.props {
		if len(s.props) < maxProps && !slices.ContainsFunc(s.props, func(q prop) bool { return q.name == p.name }) {
			s.props = append(s.props, p)
		}
	}
}

// read makes a node of a schema. trail are the references that led here.
func (n *normaliser) read(raw json.RawMessage, depth int, trail []string) *node {
	if !n.spend(raw) {
		return &node{}
	}
	list, err := membersOf(raw)
	if err != nil {
		return &node{} // true, false, or broken: anything
	}
	s := &node{}
	for _, m := range list {
		switch m.name {
		case "type":
			s.typ = typeOf(m.raw)
		case "description":
			s.description = n.words(m.raw)
		case "enum":
			s.enum = enumOf(m.raw)
		case "const":
			s.enum = []json.RawMessage{m.raw}
		case "required":
			_ = json.Unmarshal(m.raw, &s.required) // a broken list requires nothing
			s.required = s.required[:min(len(s.required), maxProps)]
		}
	}
	if ref, ok := memberOf(list, "$ref"); ok {
		s.merge(n.follow(ref.raw, depth, trail))
	}
	if depth <= n.depth {
		n.parts(s, list, depth, trail)
	}
	s.settle()
	return s
}

// parts reads what a schema is made of.
func (n *normaliser) parts(s *node, list []member, depth int, trail []string) {
	for _, m := range list {
		switch m.name {
		case "properties":
			props, _ := membersLenient(m.raw)
			for _, p := range props[:min(len(props), maxProps)] {
				s.props = append(s.props, prop{p.name, n.read(p.raw, depth+1, trail)})
			}
		case "items":
			s.items = n.read(m.raw, depth+1, trail)
		case "prefixItems":
			if parts := n.readAll(m.raw, depth+1, trail); s.items == nil && len(parts) > 0 {
				s.items = parts[0]
			}
		case "allOf":
			for _, part := range n.readAll(m.raw, depth+1, trail) {
				s.merge(part)
			}
		case "anyOf", "oneOf":
			s.choose(n.readAll(m.raw, depth+1, trail))
		}
	}
}

func (n *normaliser) readAll(raw json.RawMessage, depth int, trail []string) []*node {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []*node
	for _, r := range list[:min(len(list), maxEnum)] {
		out = append(out, n.read(r, depth, trail))
	}
	return out
}

// follow reads what a reference within the schema names. One that leads back to
// itself, elsewhere or nowhere takes anything.
func (n *normaliser) follow(raw json.RawMessage, depth int, trail []string) *node {
	var ref string
	n.refs++
	if json.Unmarshal(raw, &ref) != nil || slices.Contains(trail, ref) || n.refs > maxRefs {
		return &node{}
	}
	target := n.pointer(ref)
	if target == nil {
		return &node{}
	}
	return n.read(target, depth, append(slices.Clone(trail), ref))
}

// pointer resolves a reference such as #/$defs/Item. Nil is one that leads outside the
// schema or nowhere.
func (n *normaliser) pointer(ref string) json.RawMessage {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at, place := n.root, ""
	for part := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		if part == "" {
			continue
		}
		at = n.at(place, at)[strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")]
		place += "/" + part
	}
	return at
}

// at returns the members of the object raw that stands at a place in the schema. Each
// is read once.
func (n *normaliser) at(place string, raw json.RawMessage) map[string]json.RawMessage {
	if m, known := n.places[place]; known {
		return m
	}
	m := map[string]json.RawMessage{}
	if n.spend(raw) {
		list, _ := membersLenient(raw) // what is no object has none
		for _, member := range list {
			m[member.name] = member.raw
		}
	}
	n.places[place] = m
	return m
}

// membersLenient is membersOf for names that may differ in letter case alone, as
// those of properties do.
func membersLenient(raw json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errors.New("it is not an object")
	}
	var list []member
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: tok.(string)}
		if err := dec.Decode(&m.raw); err != nil {
			return nil, err
		}
		if !seen[m.name] {
			seen[m.name] = true
			list = append(list, m)
		}
	}
	return list, nil
}

// merge adds what another schema demands as well.
func (s *node) merge(o *node) {
	if s.typ == "" {
		s.typ = o.typ
	}
	if s.description == "" {
		s.description = o.description
	}
	if s.enum == nil {
		s.enum = o.enum
	}
	if s.items == nil {
		s.items = o.items
	}
	if s.anyOf == nil {
		s.anyOf = o.anyOf
	}
	s.absorb(o)
	for _, r := range o.required {
		if !slices.Contains(s.required, r) {
			s.required = append(s.required, r)
		}
	}
}

// choose takes alternatives: one that is left after null is the schema itself.
func (s *node) choose(list []*node) {
	list = slices.DeleteFunc(list, func(o *node) bool { return o.typ == "null" })
	var constants []json.RawMessage
	for _, o := range list {
		if len(o.enum) == 0 || len(o.props) > 0 {
			constants = nil
			break
		}
		constants = append(constants, o.enum...)
	}
	switch {
	case len(list) == 1:
		s.merge(list[0])
	case constants != nil:
		s.merge(&node{typ: list[0].typ, enum: constants})
	default:
		s.anyOf = append(s.anyOf, list...)
	}
}

// settle makes the parts of a node agree.
func (s *node) settle() {
	switch {
	case len(s.props) > 0:
		s.typ = "object"
	case s.items != nil && s.typ == "":
		s.typ = "array"
	}
	if s.typ != "array" {
		s.items = nil
	}
	s.required = slices.DeleteFunc(s.required, func(r string) bool {
		return !slices.ContainsFunc(s.props, func(p prop) bool { return p.name == r })
	})
}

// typeOf reads a type; of several the first that is not null.
func typeOf(raw json.RawMessage) string {
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	only := slices.DeleteFunc(slices.Clone(list), func(t string) bool { return t == "null" })
	if len(only) == 0 && len(list) > 0 {
		return "null"
	}
	for _, t := range only {
		switch t {
		case "string", "number", "integer", "boolean", "array", "object":
			return t
		}
	}
	return ""
}

func enumOf(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	list = slices.DeleteFunc(list, func(v json.RawMessage) bool { return string(v) == "null" || len(v) > 256 })
	if len(list) > maxEnum {
		return nil
	}
	return list
}

func (n *normaliser) words(raw json.RawMessage) string {
	var text string
	if n.phrase == 0 || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return plain(text, n.phrase)
}

// write puts the node down in one fixed form.
func (s *node) write(b *bytes.Buffer) {
	b.WriteByte('{')
	first := true
	key := func(name string) {
		if !first {
			b.WriteByte(',')
		}
		first = false
		b.WriteString(quoted(name) + ":")
	}
	if s.typ != "" {
		key("type")
		b.WriteString(quoted(s.typ))
	}
	if s.description != "" {
		key("description")
		b.WriteString(quoted(s.description))
	}
	if len(s.enum) > 0 {
		key("enum")
		writeList(b, len(s.enum), func(i int) { b.Write(sorted(s.enum[i])) })
	}
	if s.items != nil {
		key("items")
		s.items.write(b)
	}
	if len(s.props) > 0 {
		key("properties")
		b.WriteByte('{')
		for i, p := range s.props {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(quoted(p.name) + ":")
			p.node.write(b)
		}
		b.WriteByte('}')
	}
	if len(s.required) > 0 {
		key("required")
		writeList(b, len(s.required), func(i int) { b.WriteString(quoted(s.required[i])) })
	}
	if len(s.anyOf) > 0 {
		key("anyOf")
		writeList(b, len(s.anyOf), func(i int) { s.anyOf[i].write(b) })
	}
	b.WriteByte('}')
}

func writeList(b *bytes.Buffer, n int, one func(int)) {
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		one(i)
	}
	b.WriteByte(']')
}
