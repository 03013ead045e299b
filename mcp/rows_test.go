package mcp

import (
	"strings"
	"testing"
)

// TestAValueBeginsNoRow shows an entry whose values try to draw rows of their own.
func TestAValueBeginsNoRow(t *testing.T) {
	var b strings.Builder
	Entry{Server: Server{Name: "x", Command: "evil\nserver nice (stdio, ready)", Env: map[string]string{"A": "1\n  command  /bin/true"}}}.show(&b, true)
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "server nice") || strings.HasPrefix(line, "  command  /bin/true") {
			t.Errorf("a value drew the row %q", line)
		}
	}
}
