package app

import (
	"fmt"
	"strings"

	"zcoder/mcp"
)

// serverLines lists the registered servers, one a line, and what is wrong.
func serverLines(hub *mcp.Hub) []string {
	list := hub.Servers()
	var lines []string
	for _, s := range list {
		lines = append(lines, serverLine(s))
	}
	if len(list) == 0 {
		lines = append(lines, "no MCP server is registered; `zcoder mcp add NAME -- COMMAND` adds one")
	}
	for _, p := range hub.Problems() {
		lines = append(lines, "problem: "+p)
	}
	return lines
}

// serverLine is a server in one line: what it is, how it stands, what it costs.
func serverLine(s mcp.Status) string {
	state := string(s.Standing)
	if s.Standing == mcp.Ready && s.State != mcp.Idle {
		state = string(s.State)
	}
	parts := []string{state}
	if s.Protocol != "" {
		parts = append(parts, s.Protocol)
	}
	switch off, withheld := countTools(s); {
	case s.Standing == mcp.Ready && s.First:
		parts = append(parts, "its tools are known after its first start")
	case len(s.Tools) > 0:
		parts = append(parts, fmt.Sprintf("%s (~%d tokens)", plural(offeredTools(s), "tool", "tools"), s.Tokens))
		if off > 0 {
			parts = append(parts, fmt.Sprintf("%d off", off))
		}
		if withheld > 0 {
			parts = append(parts, fmt.Sprintf("%d withheld: mcp trust %s", withheld, s.Name))
		}
	}
	if why := s.Why + s.Trouble; why != "" {
		parts = append(parts, why)
	}
	if s.Standing == mcp.Untrusted || s.Standing == mcp.Changed {
		parts = append(parts, "mcp trust "+s.Name)
	}
	return fmt.Sprintf("%-16s %-8s %s", s.Name, s.Scope, strings.Join(parts, " · "))
}

func countTools(s mcp.Status) (off, withheld int) {
	for _, t := range s.Tools {
		switch {
		case t.Off:
			off++
		case t.Withheld != "":
			withheld++
		}
	}
	return off, withheld
}

// serverDetails shows one server with its tools.
func serverDetails(s mcp.Status) []string {
	lines := []string{serverLine(s)}
	if s.Info != "" {
		lines = append(lines, "  is        "+s.Info)
	}
	if s.Command != "" {
		lines = append(lines, "  command   "+strings.Join(append([]string{s.Command}, s.Args...), " "))
	}
	if s.Program.Path != "" {
		lines = append(lines, "  runs      "+s.Program.Real)
	}
	if s.URL != "" {
		lines = append(lines, "  url       "+s.URL)
	}
	for _, t := range s.Tools {
		note := ""
		switch {
		case t.Off:
			note = " · off"
		case t.Withheld != "":
			note = " · withheld: " + t.Withheld
		}
		lines = append(lines, fmt.Sprintf("  %-9s %s (%s, ~%d tokens)%s", mcp.EffectName(t.Effect), t.Name, t.Why, t.Tokens, note))
	}
	return lines
}
