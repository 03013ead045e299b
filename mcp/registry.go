package mcp

import (
	"fmt"
	"path/filepath"
	"slices"
)

// Standing says whether a server may run.
type Standing string

// The standings of a server.
const (
	Ready     Standing = "ready"
	Off       Standing = "off"         // switched off in its file
	Untrusted Standing = "not trusted" // of a project, never approved
	Changed   Standing = "changed"     // of a project, not what was approved
	Shadowed  Standing = "overridden"  // a trusted server of the project has its name
	Broken    Standing = "broken"      // its entry cannot be used
)

// Entry is a registered server and its standing.
type Entry struct {
	Server
	Standing Standing
	Why      string // for all but Ready and Off
	// Program is what a stdio server's command resolves to, as far as it does.
	Program Program
	// Variables are those of the person's environment that the entry uses.
	Variables []Variable
	// Overrides says that a server of the same name in the person's own file is not
	// used because of this one.
	Overrides bool

	ready Server // with variables expanded
	env   []string
}

// registry is what the two files and the pins say together.
type registry struct {
	user, project *file
	given         *file // of the editor
	pins          *pins
	entries       []Entry // the person's first, in the order of the files
	problems      []string
}

// places are where the registry is read from.
type places struct {
	home, root string
	given      []byte // see Options.Given
	lookup     func(name string) (string, bool)
}

func (p places) userFile() string    { return filepath.Join(p.home, UserFile) }
func (p places) projectFile() string { return filepath.Join(p.root, ProjectFile) }
func (p places) store() store        { return store{p.home} }

func (p places) fileOf(s Scope) string {
	if s == Project {
		return p.projectFile()
	}
	return p.userFile()
}

// read reads both files and the pins. It starts nothing and opens nothing else but
// what trusted or own entries name.
func (p places) read() *registry {
	r := &registry{user: readFile(p.userFile(), User), project: readFile(p.projectFile(), Project), given: readGiven(p.given), pins: &pins{}}
	for _, f := range []*file{r.user, r.project, r.given} {
		if f.problem != "" {
			r.problems = append(r.problems, f.problem)
		}
	}
	if len(r.user.entries)+len(r.project.entries)+len(r.given.entries) == 0 {
		return r
	}
	var unreadable error
	if r.pins, unreadable = p.store().load(); unreadable != nil {
		r.problems = append(r.problems, unreadable.Error())
	}
	for _, e := range r.user.entries {
		r.entries = append(r.entries, p.examineOwn(e))
	}
	for _, e := range r.project.entries {
		r.entries = append(r.entries, p.examineProject(e, r))
	}
	for _, e := range r.given.entries {
		r.entries = append(r.entries, p.examineGiven(e, r))
	}
	r.override()
	return r
}

// examine finds out whether an entry can be used at all. It looks at no file.
func (p places) examine(e fileEntry) Entry {
	out := Entry{Server: e.Server, Standing: Ready}
	if e.problem != "" {
		out.Standing, out.Why = Broken, e.problem
		return out
	}
	var err error
	if out.ready, out.Variables, err = e.expand(p.lookup); err != nil {
		out.Standing, out.Why = Broken, err.Error()
	}
	if !e.Enabled {
		out.Standing, out.Why = Off, ""
	}
	return out
}

// examineOwn also finds the program of one of the person's servers.
func (p places) examineOwn(e fileEntry) Entry {
	out := p.examine(e)
	if out.Standing == Ready {
		p.resolve(&out)
	}
	return out
}

// resolve finds the program of an entry.
func (p places) resolve(e *Entry) {
	if e.Kind != Stdio {
		return
	}
	e.env = e.ready.environment(p.lookup)
	var err error
	if e.Program, err = resolveProgram(e.ready, p.root, e.env); err != nil {
		e.Standing, e.Why = Broken, err.Error()
	}
}

// examineProject takes an entry of the project for what a person approved of it.
// Before that nothing that it names is touched.
func (p places) examineProject(e fileEntry, r *registry) Entry {
	out := p.examine(e)
	if e.problem != "" || out.Standing == Off {
		return out
	}
	pin, standing, why := p.approved(e.Name, r)
	if standing != Ready {
		out.Standing, out.Why = standing, why
		return out
	}
	if out.Standing != Ready {
		return out
	}
	if p.resolve(&out); out.Standing == Ready {
		if diff := pin.differs(out.Program); diff != "" {
			out.Standing, out.Why = Changed, diff
		}
	}
	return out
}

// approved says whether a person approved this server in the project's file as it is
// now.
func (p places) approved(name string, r *registry) (Program, Standing, string) {
	pin := r.pins.project(p.root)
	if pin == nil {
		return Program{}, Untrusted, "nobody approved this project's " + ProjectFile
	}
	if pin.Digest != contentDigest(r.project.data) {
		return Program{}, Changed, ProjectFile + " is not what was approved"
	}
	program, ok := pin.Servers[name]
	if !ok {
		return Program{}, Untrusted, "this server was not approved"
	}
	return program, Ready, ""
}

// override lets a project's server stand for the person's own of the same name, once
// it is trusted.
func (r *registry) override() {
	for i := range r.entries {
		e := &r.entries[i]
		if e.Scope != Project || e.Standing != Ready {
			continue
		}
		if own := r.find(e.Name, User); own != nil {
			own.Standing, own.Why = Shadowed, "the project's server of this name is used"
			e.Overrides = true
		}
	}
}

// find returns an entry by name and scope, or nil.
func (r *registry) find(name string, scope Scope) *Entry {
	i := slices.IndexFunc(r.entries, func(e Entry) bool { return e.Name == name && e.Scope == scope })
	if i < 0 {
		return nil
	}
	return &r.entries[i]
}

// current returns the entry that a name stands for: the one in use, else the
// project's, else the person's, else the editor's.
func (r *registry) current(name string) *Entry {
	own, project := r.find(name, User), r.find(name, Project)
	switch {
	case own == nil && project == nil:
		return r.find(name, Editor)
	case project == nil || own != nil && own.Standing != Shadowed:
		return own
	}
	return project
}

// entryFor is current with an error that lists the names there are.
func (r *registry) entryFor(name string) (*Entry, error) {
	if e := r.current(name); e != nil {
		return e, nil
	}
	var names []string
	for _, e := range r.entries {
		if !slices.Contains(names, e.Name) {
			names = append(names, e.Name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no MCP server %q; none is registered", name)
	}
	return nil, fmt.Errorf("there is no MCP server %q; there are: %v", name, names)
}
