package shellread

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Limits of what Lines names in one line.
const (
	maxNames   = 12
	maxOpaques = 6
	maxNotes   = 12
)

// Lines returns the reading in plain words, one finding a line, for a person who is
// asked to approve the command. The text is not made safe for a terminal.
func (r Reading) Lines() []string {
	var out []string
	add := func(label string, names []string) {
		if len(names) > 0 {
			out = append(out, label+": "+list(names, maxNames))
		}
	}
	add("runs", r.runs())
	add("runs elsewhere", r.runsElsewhere())
	w := r.written()
	add("writes outside the workspace", w.outside)
	add("removes outside the workspace", w.gone)
	add("writes, cannot tell where", w.unknown)
	add("removes, cannot tell what", w.lost)
	add("writes", w.inside)
	add("removes", w.removed)
	add("network", r.contacts())
	add("starts in the background", distinct(r.Background))
	add("keeps running afterwards", distinct(r.Detached))
	for i, o := range r.Opaque {
		if i == maxOpaques {
			out = append(out, "cannot tell: "+strconv.Itoa(len(r.Opaque)-i)+" more parts")
			break
		}
		out = append(out, "cannot tell: "+brief(o.Text)+" ("+brief(o.Why)+")")
	}
	out = append(out, r.Notes[:min(len(r.Notes), maxNotes)]...)
	return out
}

func list(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
}

func distinct(names []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			out = append(out, brief(name))
		}
	}
	return out
}

// name is what a person calls the program: with the wrappers that matter before it.
func (c Command) name() string {
	name := c.Program
	if strings.HasPrefix(name, "/") {
		name = path.Base(name)
	}
	if name == "" {
		name = "?"
	}
	for i := len(c.Via) - 1; i >= 0; i-- {
		switch c.Via[i] {
		case "sudo", "doas", "su", "pkexec", "runuser":
			return c.Via[i] + " " + name
		}
	}
	return name
}

func (r Reading) runs() []string {
	var names []string
	for _, c := range r.Commands {
		if c.Elsewhere != "" || c.Shadowed && c.Wrapper {
			continue
		}
		switch c.Program {
		case "[[", "((", ":", "let", "[", "test", "true", "false", "cd", "chdir", "pushd", "popd", "read", "export", "declare", "typeset", "local", "readonly", "set", "unset", "shift", "alias", "wait", "exit", "return", "break", "continue", "repeat", "disown", "setopt", "shopt":
			continue
		}
		if c.Wrapper && isTransparent(path.Base(c.Program)) {
			continue
		}
		names = append(names, c.name())
	}
	return distinct(names)
}

// isTransparent lists wrappers that are only worth naming by what they run.
func isTransparent(base string) bool {
	switch base {
	case "sudo", "doas", "su", "pkexec", "runuser", "env", "nice", "ionice", "time", "timeout", "stdbuf", "command", "builtin", "exec", "eval", "noglob", "nocorrect", "nohup", "setsid", "busybox", "trap":
		return true
	}
	return false
}

func (r Reading) runsElsewhere() []string {
	var names []string
	for _, c := range r.Commands {
		if c.Elsewhere != "" && !c.Wrapper {
			names = append(names, c.name()+" on "+strings.TrimPrefix(c.Elsewhere, "host "))
		}
	}
	return distinct(names)
}

// touched are names of files by what happens to them.
type touched struct {
	inside, removed []string // in the workspace
	outside, gone   []string
	unknown, lost   []string // names that cannot be known
}

// written sorts what is written or removed on this machine.
func (r Reading) written() touched {
	var t touched
	for _, w := range r.Writes {
		if w.Elsewhere != "" {
			continue
		}
		name, inside := r.show(w)
		written, removed := &t.outside, &t.gone
		switch {
		case w.Path == "":
			written, removed = &t.unknown, &t.lost
		case inside:
			written, removed = &t.inside, &t.removed
		}
		if w.Op == Remove {
			written = removed
		}
		*written = append(*written, name)
	}
	for _, names := range []*[]string{&t.inside, &t.removed, &t.outside, &t.gone, &t.unknown, &t.lost} {
		*names = distinct(*names)
	}
	return t
}

// show shortens a path, and reports whether it is inside the workspace.
func (r Reading) show(w Write) (name string, inside bool) {
	if w.Path == "" {
		return w.Text, false
	}
	if rel, ok := within(r.root, w.Path); ok {
		return rel, true
	}
	if rel, ok := within(r.home, w.Path); ok {
		return strings.TrimSuffix("~/"+rel, "/."), false
	}
	return w.Path, false
}

// within is name relative to root, when it is root or below it.
func within(root, name string) (string, bool) {
	if root == "" {
		return "", false
	}
	if name == root {
		return ".", true
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(root, "/")+"/")
	return rest, ok
}

func (r Reading) contacts() []string {
	var names []string
	for _, c := range r.Network {
		name := strings.TrimSpace(c.Program + " " + c.Host)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return distinct(names)
}
