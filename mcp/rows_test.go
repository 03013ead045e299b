package mcp

import (
	"strings"
	"testing"
)

// TestAValueBeginsNoRow shows an entry whose values try to draw rows of their own.
func TestAValueBeginsNoRow(t *testing.T) {
	var b strings.Builder
	Entry{Server: Server{Name: "x", Command: "evil\nserver nice (stdio, ready)", Env: map[string]string{"A": "1\n  command  /bin/true"}}, Why: "y\nserver nice (stdio, ready)\n  command  /bin/true changed since"}.show(&b, true)
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "server nice") || strings.HasPrefix(line, "  command  /bin/true") {
			t.Errorf("a value drew the row %q", line)
		}
	}
}

// TestWhatLoadsCodeIsShown: neither a name nor a value that looks like that of a secret
// hides it.
func TestWhatLoadsCodeIsShown(t *testing.T) {
	var b strings.Builder
	Entry{Server: Server{Name: "x", Env: map[string]string{
		"GIT_CONFIG_KEY_0": "core.sshCommand", "NODE_OPTIONS": "-r ./password=evil.js", "GIT_TOKEN": "hunter2", "API_TOKEN": "hunter2",
	}}}.show(&b, true)
	text := b.String()
	if !strings.Contains(text, "GIT_CONFIG_KEY_0=core.sshCommand") || !strings.Contains(text, "NODE_OPTIONS=-r ./password=evil.js") || strings.Contains(text, "hunter2") {
		t.Errorf("shown:\n%s", text)
	}
}

// TestOnlyASecretChanged: nothing to be seen is said, and not left empty.
func TestOnlyASecretChanged(t *testing.T) {
	b := newBench(t)
	secret := "hunter2"
	b.options = func(o *Options) {
		o.Given = []byte(`{"mcpServers":{"ed":{"command":"/bin/true","env":{"API_KEY":"` + secret + `"}}}}`)
	}
	b.approveGiven(b.open())
	secret = "hunter3"
	rv, err := b.open().ReviewGiven()
	if err != nil || !strings.Contains(rv.Text, "only secret values, which are not shown") || strings.Contains(rv.Text, "hunter") {
		t.Errorf("shown: %v\n%s", err, rv.Text)
	}
}
