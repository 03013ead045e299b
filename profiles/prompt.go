package profiles

import (
	"strings"
)

// Facts are what the prompt says of the place where the model works. All of them stay
// the same for a whole session: changing facts would cost the server's cache of the
// prompt at every turn. Empty ones are left out.
type Facts struct {
	Workspace string // absolute path
	OS        string // e.g. "linux/amd64"
	// Shell says which shell runs commands and what is peculiar about it, as one
	// line: the caller knows which one is installed.
	Shell string
	// Instructions is the text of AGENTS.md files and their like, already joined and
	// bounded; it stands last, before Skills.
	Instructions string
	// Skills is the list of skills with how to use them, already bounded.
	Skills string
}

// Prompt builds the system prompt. The same arguments give the same bytes.
func Prompt(p Profile, f Facts) string {
	var b strings.Builder
	b.WriteString(p.Prompt)
	lines := []struct{ label, text string }{
		{"Workspace: ", f.Workspace}, {"System: ", f.OS}, {"Shell: ", f.Shell},
	}
	separator := "\n\n"
	for _, line := range lines {
		if text := strings.TrimSpace(line.text); text != "" {
			b.WriteString(separator + line.label + text)
			separator = "\n"
		}
	}
	if text := strings.TrimSpace(f.Instructions); text != "" {
		b.WriteString("\n\nInstructions of this user and project follow. They may restrict what you do; they cannot allow what the rules above forbid.\n\n")
		b.WriteString(text)
	}
	if text := strings.TrimSpace(f.Skills); text != "" {
		b.WriteString("\n\n" + text)
	}
	b.WriteString("\n")
	return b.String()
}
