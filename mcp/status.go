package mcp

import (
	"errors"
	"slices"
)

// Status is a registered server as it is now.
type Status struct {
	Entry
	State    State
	Trouble  string // why it is down
	Info     string // name and version that the server gives
	Protocol string // in use
	Tools    []ToolStatus
	// First says that it never ran, so that its tools are not known.
	First bool
	// Tokens is about what its tools cost in every request.
	Tokens int
	// Has says what else the server offers while it is up.
	HasResources, HasPrompts bool
}

// ToolStatus is a tool of a server.
type ToolStatus struct {
	Name    string // the server's own
	Exposed string // what the model calls it
	Judgement
	Off      bool   // switched off in the entry
	Withheld string // why it is not offered, or ""
	Tokens   int
}

// Offered reports whether the model gets the tool.
func (t ToolStatus) Offered() bool { return !t.Off && t.Withheld == "" }

// charsPerToken is the usual length of a token in schemas and English.
const charsPerToken = 4

// Servers describes all registered servers, in the order of their names.
func (h *Hub) Servers() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Status
	for _, e := range h.reg.entries {
		list = append(list, h.status(e))
	}
	slices.SortStableFunc(list, func(a, b Status) int { return compare(a.Name, b.Name) })
	return list
}

// Problems are what is wrong with the registry as a whole.
func (h *Hub) Problems() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(slices.Clone(h.reg.problems), h.problem...)
}

// Server describes the server that a name stands for.
func (h *Hub) Server(name string) (Status, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.reg.entryFor(name)
	if err != nil {
		return Status{}, err
	}
	return h.status(*e), nil
}

// status describes one server. h.mu is held.
func (h *Hub) status(e Entry) Status {
	key := pinKey(e.Scope, h.o.Root, e.Name)
	s := Status{Entry: e, State: Idle}
	pin := h.reg.pins.server(key)
	l := h.links[key]
	if l != nil {
		l.describe(&s)
	}
	if pin == nil {
		s.First = len(s.Tools) == 0
		return s
	}
	for _, p := range pin.Tools {
		t := ToolStatus{Name: p.Name, Exposed: exposedName(e.Name, p.Name), Judgement: p.judge(), Off: !e.Offers(p.Name)}
		if l != nil {
			t.Withheld = l.withheld(p.Name)
		}
		spec := newTool(h, &link{entry: e}, p).spec
		t.Tokens = (len(spec.Name) + len(spec.Description) + len(spec.Schema)) / charsPerToken
		if t.Offered() {
			s.Tokens += t.Tokens
		}
		s.Tools = append(s.Tools, t)
	}
	return s
}

func (l *link) describe(s *Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.State = l.state
	if l.err != nil {
		s.Trouble = l.err.Error()
	}
	if l.conn == nil {
		return
	}
	s.Info, s.Protocol = l.conn.info, l.conn.client.ProtocolVersion()
	s.HasResources, s.HasPrompts = l.conn.caps.Resources != nil, l.conn.caps.Prompts != nil
	for _, name := range l.drift.added {
		i := slices.IndexFunc(l.seen.tools, func(d Definition) bool { return d.Name == name })
		s.Tools = append(s.Tools, ToolStatus{Name: name, Exposed: exposedName(s.Name, name), Judgement: judge(name, l.seen.tools[i].hints()), Withheld: "it is new"})
	}
}

// Logs returns the last lines that a server wrote beside its messages.
func (h *Hub) Logs(name string) ([]string, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return nil, err
	}
	return l.log.text(), nil
}

// Restart ends a server and starts it again. It does not wait for the start.
func (h *Hub) Restart(name string) error {
	l, err := h.linkOf(name)
	if err != nil {
		return err
	}
	if !h.running.Load() {
		return errors.New("servers are not run at the moment")
	}
	l.end()
	l.start()
	return nil
}

// Reload reads the files again at once and starts what may run.
func (h *Hub) Reload() {
	h.mu.Lock()
	gone := h.reload()
	h.startNew()
	h.mu.Unlock()
	endAll(gone)
}
