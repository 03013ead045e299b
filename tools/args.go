package tools

import (
	"encoding/json"
	"fmt"
)

// Args are decoded arguments. The same value is planned, shown, recorded and run.
// The zero value is empty.
type Args struct {
	values map[string]any // string, int, bool; raw JSON values for tools with a schema
	json   json.RawMessage
}

// Text returns a string argument, or "" when it is absent.
func (a Args) Text(name string) string { s, _ := a.values[name].(string); return s }

// Int returns an integer argument, or def when it is absent.
func (a Args) Int(name string, def int) int {
	if n, ok := a.values[name].(int); ok {
		return n
	}
	return def
}

// Bool returns a boolean argument, or false when it is absent.
func (a Args) Bool(name string) bool { b, _ := a.values[name].(bool); return b }

// Has reports whether the argument was given.
func (a Args) Has(name string) bool { _, ok := a.values[name]; return ok }

// JSON returns the arguments as one object with sorted keys. It never returns nil.
func (a Args) JSON() json.RawMessage {
	if a.json == nil {
		return json.RawMessage("{}")
	}
	return a.json
}

// NewArgs makes arguments from values of type string, int and bool, for tests and
// for actions that the program itself starts.
func NewArgs(values map[string]any) Args {
	b, err := json.Marshal(values)
	if err != nil {
		panic(fmt.Sprintf("tools: arguments that JSON cannot hold: %v", err))
	}
	return Args{values: values, json: b}
}
