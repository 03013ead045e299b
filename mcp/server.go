package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Scope says whose a server is.
type Scope string

// The scopes of a server.
const (
	User    Scope = "user"    // in $ZCODER_HOME/mcp.json
	Project Scope = "project" // in .mcp.json of the workspace
)

// Kind is how a server is reached.
type Kind string

// The kinds of servers.
const (
	Stdio Kind = "stdio" // a program, over its standard streams
	HTTP  Kind = "http"  // streamable HTTP
	SSE   Kind = "sse"   // the older HTTP with server-sent events
)

// Server is one entry of a registry file, as written: variables are not expanded.
type Server struct {
	Name  string
	Scope Scope
	Kind  Kind

	Command string
	Args    []string
	Env     map[string]string
	Cwd     string // relative to the workspace

	URL     string
	Headers map[string]string
	OAuth   OAuth

	Enabled bool
	// Disabled are tools, by the server's own names, that are not offered.
	Disabled []string
	// StartTimeout and CallTimeout are 0 where the settings decide.
	StartTimeout, CallTimeout time.Duration

	// Raw is the entry's text.
	Raw json.RawMessage
	// Unknown are members that this program does not use.
	Unknown []string
}

// OAuth is what a server's entry says of its authorization. The zero value leaves
// all to what the server announces.
type OAuth struct {
	ClientID, ClientSecret string
	Scopes                 []string
}

var serverName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,80}$`)

// CheckName returns an error unless the name is one that a server can have.
func CheckName(name string) error {
	if !serverName.MatchString(name) {
		return fmt.Errorf("server name %q: it has 1 to 80 letters, digits, dots, dashes and underscores", name)
	}
	return nil
}

// parseServer reads an entry. The error says which member is wrong.
func parseServer(name string, scope Scope, raw json.RawMessage) (Server, error) {
	s := Server{Name: name, Scope: scope, Enabled: true, Raw: raw}
	if err := CheckName(name); err != nil {
		return s, err
	}
	list, err := membersOf(raw)
	if err != nil {
		return s, err
	}
	for _, m := range list {
		if err := s.set(m); err != nil {
			return s, fmt.Errorf("%q %w", m.name, err)
		}
	}
	return s, s.check()
}

// set takes one member of the entry.
func (s *Server) set(m member) error {
	switch m.name {
	case "type", "transport":
		return s.setKind(m.raw)
	case "command":
		return decode(m.raw, &s.Command, "must be a text")
	case "args":
		return decode(m.raw, &s.Args, "must be a list of texts")
	case "env":
		return decodeMap(m.raw, &s.Env, membersExact)
	case "cwd":
		return decode(m.raw, &s.Cwd, "must be a text")
	case "url":
		return decode(m.raw, &s.URL, "must be a text")
	case "headers":
		return decodeMap(m.raw, &s.Headers, membersOf)
	case "enabled":
		return decode(m.raw, &s.Enabled, "must be true or false")
	case "disabled":
		var off bool
		err := decode(m.raw, &off, "must be true or false")
		s.Enabled = s.Enabled && !off
		return err
	case "disabledTools":
		return decode(m.raw, &s.Disabled, "must be a list of texts")
	case "startupTimeout":
		return setSeconds(m.raw, &s.StartTimeout)
	case "requestTimeout":
		return setSeconds(m.raw, &s.CallTimeout)
	case "oauth":
		return s.setOAuth(m.raw)
	}
	s.Unknown = append(s.Unknown, m.name)
	return nil
}

func decode(raw json.RawMessage, into any, what string) error {
	if err := json.Unmarshal(raw, into); err != nil || string(raw) == "null" {
		return errors.New(what)
	}
	return nil
}

// decodeMap reads an object of texts. read refuses names that stand twice.
func decodeMap(raw json.RawMessage, into *map[string]string, read func([]byte) ([]member, error)) error {
	if _, err := read(raw); err != nil {
		return fmt.Errorf("must map names to texts: %w", err)
	}
	return decode(raw, into, "must map names to texts")
}

// maxSeconds bounds the time-outs of an entry: an hour.
const maxSeconds = 3600

func setSeconds(raw json.RawMessage, into *time.Duration) error {
	var n float64
	if err := decode(raw, &n, "must be a number of seconds"); err != nil {
		return err
	}
	if n <= 0 || n > maxSeconds {
		return fmt.Errorf("must be a number of seconds up to %d", maxSeconds)
	}
	*into = time.Duration(n * float64(time.Second))
	return nil
}

func (s *Server) setKind(raw json.RawMessage) error {
	var word string
	if err := decode(raw, &word, "must be a text"); err != nil {
		return err
	}
	switch strings.ToLower(word) {
	case "stdio":
		s.Kind = Stdio
	case "http", "streamable-http", "streamablehttp", "streamable_http":
		s.Kind = HTTP
	case "sse":
		s.Kind = SSE
	default:
		return fmt.Errorf("is %q; it must be stdio, http or sse", word)
	}
	return nil
}

func (s *Server) setOAuth(raw json.RawMessage) error {
	var o struct {
		ClientID     string   `json:"clientId"`
		ClientSecret string   `json:"clientSecret"`
		Scopes       []string `json:"scopes"`
	}
	if _, err := membersOf(raw); err != nil {
		return fmt.Errorf("must be an object with clientId, clientSecret and scopes: %w", err)
	}
	if err := decode(raw, &o, "must be an object with clientId, clientSecret and scopes"); err != nil {
		return err
	}
	s.OAuth = OAuth{ClientID: o.ClientID, ClientSecret: o.ClientSecret, Scopes: o.Scopes}
	return nil
}

// check fills in the kind and refuses entries that cannot be used.
func (s *Server) check() error {
	if s.Kind == "" {
		s.Kind = Stdio
		if s.Command == "" && s.URL != "" {
			s.Kind = HTTP
		}
	}
	switch {
	case s.Kind == Stdio && s.Command == "":
		return errors.New(`"command" is missing`)
	case s.Kind == Stdio && s.URL != "":
		return errors.New(`it has both "command" and "url"`)
	case s.Kind != Stdio && s.Command != "":
		return errors.New(`it has a "url" and a "command"`)
	case s.Kind != Stdio && s.URL == "":
		return errors.New(`"url" is missing`)
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env: %q is no name of a variable", name)
		}
	}
	return nil
}

// checkURL refuses what is no address of a web server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("the url must begin with http:// or https:// and name a host")
	}
	return nil
}

// Offers reports whether the entry leaves a tool, by the server's own name, on.
func (s Server) Offers(tool string) bool { return !slices.Contains(s.Disabled, tool) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
