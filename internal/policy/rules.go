package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"zcoder/internal/approval"
)

// Scope says whose rules a file holds.
type Scope uint8

// The scopes of a policy file.
const (
	// UserRules may allow, ask and deny.
	UserRules Scope = iota
	// WorkspaceRules come with a project, so they may only ask and deny.
	WorkspaceRules
)

// Rules are parsed policy files. The zero value and nil hold no rule. A value is not
// changed after it was made.
type Rules struct {
	list []rule
}

// rule is one [[allow]], [[ask]] or [[deny]] entry. Of each kind of pattern that it
// gives, at least one has to match.
type rule struct {
	decision approval.Decision
	tools    []string
	commands []commandPattern
	paths    []string
	reason   string
	source   string // file:line
}

// commandPattern is a program with the words that follow it.
type commandPattern []string

// ParseRules parses a policy file. The name is used in messages. Its schema, of which
// every part is optional:
//
//	[[deny]]                          # or [[ask]] or [[allow]], any number of each
//	commands = ["git push --force"]   # a program, or a program and words after it
//	tools = ["mcp__github__*"]        # tool names, * matches any part
//	paths = [".env", "docs/**"]       # relative to the workspace, or / or ~/
//	reason = "ask in the channel"     # shown with the verdict
//
// A rule needs at least one of commands, tools and paths, and each that it gives must
// match. A path without a slash is a name at any depth; a path that matches a
// directory covers all in it. A deny or ask rule covers a command with options before
// or between its words; an allow rule wants exactly these words first. Workspace
// rules hold no [[allow]]. The error names the line.
func ParseRules(data []byte, name string, scope Scope) (*Rules, error) {
	var any map[string]any
	if err := toml.Unmarshal(data, &any); err != nil {
		return nil, tomlError(name, err)
	}
	f := &rulesReader{name: name, scope: scope}
	f.p.Reset(data)
	for f.p.NextExpression() {
		if err := f.expression(f.p.Expression()); err != nil {
			return nil, err
		}
	}
	if err := f.p.Error(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := f.finish(); err != nil {
		return nil, err
	}
	return &Rules{list: f.rules}, nil
}

func tomlError(name string, err error) error {
	var at *toml.DecodeError
	if errors.As(err, &at) {
		line, _ := at.Position()
		return fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Merge joins rules. Nil values are left out.
func Merge(sets ...*Rules) *Rules {
	out := &Rules{}
	for _, set := range sets {
		if set != nil {
			out.list = append(out.list, set.list...)
		}
	}
	return out
}

// Len is the number of rules.
func (r *Rules) Len() int {
	if r == nil {
		return 0
	}
	return len(r.list)
}

type rulesReader struct {
	p     unstable.Parser
	name  string
	scope Scope
	rules []rule
	open  bool // the last rule is being read
}

func (f *rulesReader) errorf(n *unstable.Node, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", f.name, f.line(n), fmt.Sprintf(format, args...))
}

func (f *rulesReader) line(n *unstable.Node) int {
	for n != nil && n.Valid() {
		if n.Raw.Length > 0 {
			return f.p.Shape(n.Raw).Start.Line
		}
		it := n.Children()
		if !it.Next() {
			break
		}
		n = it.Node()
	}
	return 0
}

func keyOf(n *unstable.Node) (*unstable.Node, string) {
	var first *unstable.Node
	var parts []string
	for it := n.Key(); it.Next(); {
		if first == nil {
			first = it.Node()
		}
		parts = append(parts, string(it.Node().Data))
	}
	return first, strings.Join(parts, ".")
}

func (f *rulesReader) expression(n *unstable.Node) error {
	key, name := keyOf(n)
	switch n.Kind {
	case unstable.ArrayTable:
		return f.begin(key, name)
	case unstable.KeyValue:
		if !f.open {
			return f.errorf(key, "unknown key %q: rules stand under [[deny]], [[ask]] or [[allow]]", name)
		}
		return f.set(&f.rules[len(f.rules)-1], key, name, n.Value())
	case unstable.Table:
		return f.errorf(key, "[%s] is not a table here: write [[deny]], [[ask]] or [[allow]]", name)
	}
	return nil
}

func (f *rulesReader) begin(key *unstable.Node, name string) error {
	if err := f.finish(); err != nil {
		return err
	}
	r := rule{source: fmt.Sprintf("%s:%d", f.name, f.line(key))}
	switch name {
	case "deny":
		r.decision = approval.Deny
	case "ask":
		r.decision = approval.Ask
	case "allow":
		if f.scope == WorkspaceRules {
			return f.errorf(key, "the rules of a workspace may deny and ask, not allow")
		}
		r.decision = approval.Allow
	default:
		return f.errorf(key, "unknown table [[%s]]: it is one of [[deny]], [[ask]], [[allow]]", name)
	}
	f.rules, f.open = append(f.rules, r), true
	return nil
}

// finish checks the rule that was read last.
func (f *rulesReader) finish() error {
	if !f.open {
		return nil
	}
	r := f.rules[len(f.rules)-1]
	if len(r.tools)+len(r.commands)+len(r.paths) == 0 {
		return fmt.Errorf("%s: the rule matches nothing: give it commands, tools or paths", r.source)
	}
	f.open = false
	return nil
}

func (f *rulesReader) set(r *rule, key *unstable.Node, name string, v *unstable.Node) error {
	if name == "reason" {
		if v.Kind != unstable.String {
			return f.errorf(key, "reason is a text in quotes")
		}
		r.reason = string(v.Data)
		return nil
	}
	if name != "commands" && name != "tools" && name != "paths" {
		return f.errorf(key, "unknown key %q: a rule has commands, tools, paths and reason", name)
	}
	texts, err := f.texts(key, name, v)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := f.add(r, key, name, text); err != nil {
			return err
		}
	}
	return nil
}

func (f *rulesReader) texts(key *unstable.Node, name string, v *unstable.Node) ([]string, error) {
	if v.Kind == unstable.String {
		return []string{string(v.Data)}, nil
	}
	if v.Kind != unstable.Array {
		return nil, f.errorf(key, "%s is a list of texts in quotes", name)
	}
	var out []string
	for it := v.Children(); it.Next(); {
		switch it.Node().Kind {
		case unstable.String:
			out = append(out, string(it.Node().Data))
		case unstable.Comment:
		default:
			return nil, f.errorf(key, "%s is a list of texts in quotes", name)
		}
	}
	if len(out) == 0 {
		return nil, f.errorf(key, "%s is empty", name)
	}
	return out, nil
}

func (f *rulesReader) add(r *rule, key *unstable.Node, name, text string) error {
	if strings.TrimSpace(text) == "" {
		return f.errorf(key, "%s holds an empty text", name)
	}
	switch name {
	case "commands":
		words := strings.Fields(text)
		if strings.ContainsAny(text, "|&;<>()$`\"'\\\n") {
			return f.errorf(key, "command %q: write a program and words, without quotes or shell signs", text)
		}
		r.commands = append(r.commands, words)
	case "tools":
		r.tools = append(r.tools, text)
	case "paths":
		for _, part := range strings.Split(text, "/") {
			if _, err := path.Match(part, ""); err != nil {
				return f.errorf(key, "path %q: %v", text, err)
			}
			if part == ".." {
				return f.errorf(key, "path %q: write it without ..", text)
			}
		}
		if strings.Count(text, "**") > 3 {
			return f.errorf(key, "path %q: at most three ** in a path", text)
		}
		r.paths = append(r.paths, text)
	}
	return nil
}
