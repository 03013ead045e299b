// Package jsonschema stands in for the JSON Schema validator that mcp-go links.
//
// The client of mcp-go imports its server, and that imports a validator whose
// package variables take about 7 ms to initialise in every start of the program,
// used or not. Only a server that was told to validate calls it, and this program
// runs no server. go.mod puts this module in its place. It has what mcp-go needs to
// compile, and says so if it is ever called.
package jsonschema

import (
	"encoding/json"
	"errors"
	"io"
)

// ErrAbsent is what everything here returns.
var ErrAbsent = errors.New("no JSON Schema validator is linked into this program")

// Compiler compiles nothing.
type Compiler struct{}

// NewCompiler returns a compiler that compiles nothing.
func NewCompiler() *Compiler { return &Compiler{} }

// AddResource returns ErrAbsent.
func (*Compiler) AddResource(string, any) error { return ErrAbsent }

// Compile returns ErrAbsent.
func (*Compiler) Compile(string) (*Schema, error) { return nil, ErrAbsent }

// Schema is never made.
type Schema struct{}

// Validate returns ErrAbsent.
func (*Schema) Validate(any) error { return ErrAbsent }

// ValidationError is never made.
type ValidationError struct {
	Causes           []*ValidationError
	InstanceLocation []string
	ErrorKind        any
}

// Error returns the text of ErrAbsent.
func (*ValidationError) Error() string { return ErrAbsent.Error() }

// UnmarshalJSON decodes one JSON value, numbers as json.Number.
func UnmarshalJSON(r io.Reader) (any, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	return v, err
}
