package mcp

import (
	"errors"
	"slices"
	"strings"
)

// Editor is the scope of servers that no file holds: an editor names them when it
// begins a session. They are trusted like those of a project, for one workspace.
const Editor Scope = "editor"

// editorKey names, among the approved projects, what editors named for a workspace.
func editorKey(root string) string { return "editor " + root }

// readGiven reads the text that holds the servers of an editor.
func readGiven(data []byte) *file {
	f := &file{scope: Editor, data: data}
	if len(data) == 0 {
		return f
	}
	var err error
	if f.entries, err = parseFile(data, Editor); err != nil {
		f.problem = "read the servers of the editor: " + err.Error()
	}
	return f
}

// examineGiven is examineProject for a server of the editor. Its values mean what they
// say: no variables are put in.
func (p places) examineGiven(e fileEntry, r *registry) Entry {
	out := Entry{Server: e.Server, Standing: Ready, ready: e.Server}
	if e.problem == "" && e.Kind != Stdio {
		if err := checkURL(e.URL); err != nil {
			e.problem = err.Error()
		}
	}
	if e.problem != "" {
		out.Standing, out.Why = Broken, e.problem
		return out
	}
	if r.find(e.Name, User) != nil || r.find(e.Name, Project) != nil {
		out.Standing, out.Why = Shadowed, "a server of this name is registered here"
		return out
	}
	pin := r.pins.project(editorKey(p.root))
	switch {
	case pin == nil:
		out.Standing, out.Why = Untrusted, "nobody approved the servers of the editor"
		return out
	case pin.Digest != contentDigest(r.given.data):
		out.Standing, out.Why = Changed, "what the editor names is not what was approved"
		return out
	}
	program, ok := pin.Servers[e.Name]
	if !ok {
		out.Standing, out.Why = Untrusted, "this server was not approved"
		return out
	}
	if p.resolve(&out); out.Standing == Ready {
		if why := program.differs(out.Program); why != "" {
			out.Standing, out.Why = Changed, why
		}
	}
	return out
}

// ReviewGiven shows the servers of the editor. It starts nothing.
func (h *Hub) ReviewGiven() (Review, error) {
	reg := h.at.read()
	if reg.given.problem != "" {
		return Review{}, errors.New(reg.given.problem)
	}
	rv := Review{data: reg.given.data, programs: map[string]Program{}, scope: Editor}
	var text, content strings.Builder
	for _, e := range reg.entries {
		if e.Scope != Editor {
			continue
		}
		if e.Standing == Untrusted || e.Standing == Changed {
			rv.Names = append(rv.Names, e.Name)
			h.at.resolve(&e)
			rv.programs[e.Name] = e.Program
		}
		e.show(&text, slices.Contains(rv.Names, e.Name))
		plainly := Entry{Server: e.Server, Standing: Ready}
		plainly.show(&content, false)
	}
	rv.content = content.String()
	if pin := reg.pins.project(editorKey(h.o.Root)); pin != nil && pin.Digest != contentDigest(rv.data) {
		text.WriteString(changeOf("approved", "now", pin.Content, rv.content))
	}
	rv.Text = text.String()
	return rv, nil
}
