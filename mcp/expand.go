package mcp

import (
	"fmt"
	"slices"
	"strings"

	"zcoder/internal/secret"
)

// Variable is a reference to the person's environment in an entry.
type Variable struct {
	Name  string
	Where string // e.g. "env", "headers"
}

// expander replaces `${NAME}` and `${NAME:-default}`.
type expander struct {
	lookup func(name string) (string, bool)
	// guarded refuses variables that hold credentials: in a project's file they
	// would send the person's secrets where the project says.
	guarded bool
	used    []Variable
}

func (x *expander) expand(text, where string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("%s: %q has no closing brace", where, "${"+rest)
		}
		value, err := x.value(ref, where)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = after
	}
}

func (x *expander) value(ref, where string) (string, error) {
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	if !isVariable(name) {
		return "", fmt.Errorf("%s: ${%s} names no variable", where, ref)
	}
	if v := (Variable{name, where}); !slices.Contains(x.used, v) {
		x.used = append(x.used, v)
	}
	value, ok := x.lookup(name)
	if x.guarded && where != "env" && isCredential(name, value) {
		return "", fmt.Errorf("%s: a project's file may not use ${%s}, which looks like a credential", where, name)
	}
	if ok && (value != "" || !hasFallback) {
		return value, nil
	}
	if !hasFallback {
		return "", fmt.Errorf("%s: the variable %s is not set", where, name)
	}
	return fallback, nil
}

func isVariable(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}

// isCredential goes by the variable's name and by the shape of its value.
func isCredential(name, value string) bool {
	return secret.Named(name) || secret.New(nil).Mask(value) != value
}

// expand returns the server with all variables replaced, and those that it uses.
func (s Server) expand(lookup func(string) (string, bool)) (Server, []Variable, error) {
	x := &expander{lookup: lookup, guarded: s.Scope == Project}
	var failed error
	one := func(text, where string) string {
		out, err := x.expand(text, where)
		if err != nil && failed == nil {
			failed = err
		}
		return out
	}
	s.Command, s.Cwd, s.URL = one(s.Command, "command"), one(s.Cwd, "cwd"), one(s.URL, "url")
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		args[i] = one(a, "args")
	}
	s.Args = args
	s.Env = expandMap(s.Env, func(v string) string { return one(v, "env") })
	s.Headers = expandMap(s.Headers, func(v string) string { return one(v, "headers") })
	s.OAuth.ClientID, s.OAuth.ClientSecret = one(s.OAuth.ClientID, "oauth"), one(s.OAuth.ClientSecret, "oauth")
	if failed == nil && s.Kind != Stdio {
		failed = checkURL(s.URL)
	}
	return s, x.used, failed
}

func expandMap(m map[string]string, one func(string) string) map[string]string {
	out := make(map[string]string, len(m))
	for _, k := range sortedKeys(m) {
		out[k] = one(m[k])
	}
	return out
}

// inherited are the variables that a server's program gets from the person's
// environment; all others are declared in its entry.
var inherited = [...]string{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}

// environment is the whole environment of a server's program.
func (s Server) environment(lookup func(string) (string, bool)) []string {
	var env []string
	for _, name := range inherited {
		_, declared := s.Env[name]
		if value, ok := lookup(name); ok && !declared {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range sortedKeys(s.Env) {
		env = append(env, name+"="+s.Env[name])
	}
	if _, declared := s.Env[safePath]; s.Scope == User && !declared && s.runsModule() {
		env = append(env, safePath+"=1")
	}
	return env
}

// safePath is the variable by which Python, from 3.11 on, takes no module from the
// directory that it runs in.
const safePath = "PYTHONSAFEPATH"

// runsModule reports whether Python runs a module or a text: then it would prefer files
// where it runs to its own modules of the same name.
func (s Server) runsModule() bool {
	words := strings.FieldsFunc(strings.Join(append([]string{s.Command}, s.Args...), " "), parts)
	python := false
	for _, word := range words {
		switch name := program(word); {
		case name == "python" || name == "pypy":
			python = true
		case python && (moduleOption.MatchString(word) || strings.HasPrefix(word, "-c")):
			return true
		case !strings.HasPrefix(word, "-"):
			python = false
		}
	}
	return false
}
