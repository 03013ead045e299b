package acp

import (
	sdk "github.com/coder/acp-go-sdk"
)

// readServers reads the MCP servers that an editor brings. Of kinds that we did not
// say we can reach there must be none.
func readServers(list []sdk.McpServer) ([]Server, error) {
	if len(list) > maxServed {
		return nil, invalid("%d MCP servers are too many, %d are possible", len(list), maxServed)
	}
	var out []Server
	for _, m := range list {
		switch {
		case m.Stdio != nil:
			s := Server{Name: m.Stdio.Name, Command: m.Stdio.Command, Args: m.Stdio.Args, Env: map[string]string{}}
			if s.Command == "" {
				return nil, invalid("the MCP server %q has no command", s.Name)
			}
			for _, v := range m.Stdio.Env {
				s.Env[v.Name] = v.Value
			}
			out = append(out, s)
		case m.Http != nil:
			s := Server{Name: m.Http.Name, URL: m.Http.Url, Headers: map[string]string{}}
			if s.URL == "" {
				return nil, invalid("the MCP server %q has no url", s.Name)
			}
			for _, h := range m.Http.Headers {
				s.Headers[h.Name] = h.Value
			}
			out = append(out, s)
		default:
			return nil, invalid("an MCP server is of a kind that is not supported; stdio and http are")
		}
	}
	return out, nil
}
