package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"zcoder/internal/chat"
)

// Registry is a fixed, ordered set of tools. It is safe for concurrent use.
type Registry struct {
	tools []Tool
	names map[string]Tool
	specs []chat.Tool
}

// NewRegistry keeps the order it is given, since the model's cache depends on it.
// It refuses two tools of one name.
func NewRegistry(list ...Tool) (*Registry, error) {
	r := &Registry{names: make(map[string]Tool, len(list))}
	for _, t := range list {
		spec := t.Spec()
		if _, twice := r.names[spec.Name]; twice {
			return nil, fmt.Errorf("register tool %q: the name is taken", spec.Name)
		}
		r.names[spec.Name] = t
		r.tools = append(r.tools, t)
		r.specs = append(r.specs, chat.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.JSONSchema()})
	}
	return r, nil
}

// Specs returns what the model is told, in the registry's order. The caller must
// not change it.
func (r *Registry) Specs() []chat.Tool { return r.specs }

// Names returns the names in the registry's order.
func (r *Registry) Names() []string {
	names := make([]string, len(r.tools))
	for i, t := range r.tools {
		names[i] = t.Spec().Name
	}
	return names
}

// Without returns a registry without the tools that drop reports, in the same order.
func (r *Registry) Without(drop func(Tool) bool) *Registry {
	out := &Registry{names: map[string]Tool{}}
	for i, t := range r.tools {
		if !drop(t) {
			out.tools, out.specs = append(out.tools, t), append(out.specs, r.specs[i])
			out.names[r.specs[i].Name] = t
		}
	}
	return out
}

// prefixes are namespaces that models put before a name they were given.
var prefixes = [...]string{"functions.", "tools.", "default_api."}

// Lookup finds a tool by the name that a model sent: the exact name, with white
// space around it or a namespace in front forgiven. The error lists the real names.
func (r *Registry) Lookup(name string) (Tool, error) {
	clean := strings.TrimSpace(name)
	for _, p := range prefixes {
		clean = strings.TrimPrefix(clean, p)
	}
	if t, ok := r.names[clean]; ok {
		return t, nil
	}
	hint := ""
	if near := Nearest(clean, r.Names()); near != "" {
		hint = fmt.Sprintf(" Did you mean %s?", near)
	}
	return nil, fmt.Errorf("there is no tool %q.%s The tools are: %s", name, hint, strings.Join(r.Names(), ", "))
}

// JSONSchema returns the schema of the arguments in one fixed byte form.
func (s Spec) JSONSchema() json.RawMessage {
	if s.Schema != nil {
		return s.Schema
	}
	var b bytes.Buffer
	b.WriteString(`{"type":"object","properties":{`)
	var required []string
	for i, p := range s.Params {
		if i > 0 {
			b.WriteByte(',')
		}
		p.writeSchema(&b)
		if p.Required {
			required = append(required, quote(p.Name))
		}
	}
	b.WriteString(`}`)
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + `]`)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (p Param) writeSchema(b *bytes.Buffer) {
	fmt.Fprintf(b, `%s:{"type":%s`, quote(p.Name), quote(string(p.Type)))
	if p.Description != "" {
		fmt.Fprintf(b, `,"description":%s`, quote(p.Description))
	}
	if len(p.Enum) > 0 {
		var list []string
		for _, e := range p.Enum {
			list = append(list, quote(e))
		}
		fmt.Fprintf(b, `,"enum":[%s]`, strings.Join(list, ","))
	}
	b.WriteByte('}')
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	// A string always encodes.
	_ = enc.Encode(s)
	return strings.TrimRight(b.String(), "\n")
}
