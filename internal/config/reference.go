package config

import (
	"fmt"
	"strings"
)

// Reference returns the text of docs/configuration.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := ""
	for _, s := range Table() {
		if s.FlagOnly {
			continue
		}
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(&b, "\n## %s\n\n| key | flag | variable | default | allowed | meaning |\n|---|---|---|---|---|---|\n", section)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", code(s.Key), s.flagCells(), code(s.Env), code(s.shownDefault()), cell(s.Allowed()), cell(s.Meaning))
	}
	b.WriteString("\n## Flags for one run\n\n| flag | meaning |\n|---|---|\n")
	for _, s := range Table() {
		if s.FlagOnly {
			fmt.Fprintf(&b, "| %s | %s |\n", s.flagCells(), cell(s.Meaning))
		}
	}
	b.WriteString("\n## Exit statuses\n\n| status | meaning |\n|---|---|\n")
	for _, e := range ExitStatuses() {
		fmt.Fprintf(&b, "| %d | %s |\n", e.Code, e.Meaning)
	}
	return b.String()
}

const referenceHead = `# Configuration

This page is made from the settings table (` + "`internal/config`" + `); so are ` + "`zcoder --help`" + ` and
` + "`zcoder config show`" + `, which prints every value and the layer that set it.

A value comes from the highest layer that holds one: default, then the file
` + "`$ZCODER_HOME/config.toml`" + `, then the environment, then a flag. An empty variable counts as
unset. An unknown key in the file, a value of the wrong type and a value out of range are
errors that name the place; the program then ends with status 2.

Booleans are true/false, 1/0, on/off or yes/no; in the file true or false. Times are seconds
(` + "`900`" + `) or a number with a unit (` + "`15m`" + `). Lists are separated by commas; in the file they are
lists of texts. Paths may begin with ` + "`~/`" + `.

` + "```toml" + `
model = "qwen3-coder:latest"
context_window = 32768
http_read_timeout = "15m"
bell = false
` + "```" + `
`

func (s Setting) flagCells() string {
	var flags []string
	if s.Flag != "" {
		names := "--" + s.Flag
		if s.Short != "" {
			names = "-" + s.Short + ", " + names
		}
		flags = append(flags, code(strings.TrimSpace(names+" "+s.Arg)))
	}
	for _, sw := range s.Switches {
		flags = append(flags, code("--"+sw.Flag)+" = "+sw.Value)
	}
	return strings.Join(flags, ", ")
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}

// cell escapes what would end a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
