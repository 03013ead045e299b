package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/diff"
	"zcoder/internal/secret"
	"zcoder/internal/termtext"
)

// Review is what a person has to see before servers of a project may run.
type Review struct {
	// Text shows the whole content, and a diff when it is not what was approved
	// before. It is foreign text.
	Text string
	// Names are the servers that approving lets run. None: nothing needs approval.
	Names []string

	data     []byte
	programs map[string]Program
	scope    Scope  // Editor: of an editor
	content  string // what is kept of those, without secrets
}

// Review shows a server of the project's file, or all of them for an empty name. It
// starts nothing.
func (h *Hub) Review(name string) (Review, error) {
	reg := h.at.read()
	if reg.project.problem != "" {
		return Review{}, errors.New(reg.project.problem)
	}
	if len(reg.problems) > 0 {
		return Review{}, errors.New(strings.Join(reg.problems, "; "))
	}
	rv := Review{data: reg.project.data, programs: map[string]Program{}}
	var b strings.Builder
	for _, e := range reg.entries {
		if e.Scope != Project {
			continue
		}
		asked := e.Standing == Untrusted || e.Standing == Changed
		if asked && (name == "" || name == e.Name) {
			rv.Names = append(rv.Names, e.Name)
			h.at.resolve(&e)
			rv.programs[e.Name] = e.Program
		}
		e.show(&b, slices.Contains(rv.Names, e.Name))
	}
	pin := reg.pins.project(h.o.Root)
	if pin != nil && pin.Digest != contentDigest(rv.data) {
		mask := secret.New(nil)
		b.WriteString(changeOf("approved/"+ProjectFile, "now/"+ProjectFile, mask.Mask(pin.Content), mask.Mask(string(rv.data))))
	}
	rv.Text = b.String()
	return rv, nil
}

// changeOf shows what changed in a text that was approved, secrets taken out of both.
func changeOf(oldName, newName, old, now string) string {
	shown := diff.Unified(oldName, newName, []byte(old), []byte(now), diff.Options{})
	if shown == "" {
		shown = "only secret values, which are not shown\n"
	}
	return "\nWhat changed since it was approved:\n" + shown
}

// show writes an entry for a person, in full. Values that look like secrets are not
// repeated.
func (e Entry) show(b *strings.Builder, asked bool) {
	mark := ""
	if asked {
		mark = "  ← to be approved"
	}
	fmt.Fprintf(b, "server %s (%s, %s)%s\n", e.Name, e.Kind, e.Standing, mark)
	// A value never begins a row of its own, whatever line ends it holds.
	row := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "  %-8s %s\n", name, termtext.Line(text))
		}
	}
	row("note", e.Why)
	row("command", e.Command)
	for _, a := range e.Args {
		row("arg", quoted(a))
	}
	if p := e.Program; p.Path != "" {
		row("runs", p.Path)
		if p.Real != p.Path {
			row("", "which is "+p.Real)
		}
		for _, f := range sortedKeys(p.Files) {
			row("pins", f+" (its content)")
		}
		for _, what := range p.Loose {
			row("! note", what)
		}
	}
	row("cwd", e.Cwd)
	row("url", e.URL)
	for _, k := range sortedKeys(e.Env) {
		row("env", k+"="+discreet(k, e.Env[k]))
		if loadsCode(k) {
			row("! note", k+" MAKES PROGRAMS LOAD OTHER CODE OR SETTINGS; read its value above")
		}
	}
	for _, k := range sortedKeys(e.Headers) {
		row("header", k+": "+discreet(k, e.Headers[k]))
	}
	for _, v := range e.Variables {
		row("uses", fmt.Sprintf("your variable %s (in its %s)", v.Name, v.Where))
		if e.Scope == Project && e.Kind != Stdio {
			row("! note", "SENDS THE VALUE OF YOUR VARIABLE "+v.Name+" to the address above")
		}
	}
	row("off", strings.Join(e.Disabled, ", "))
	row("ignored", strings.Join(e.Unknown, ", "))
}

// discreet hides a literal secret, but nothing that makes a program load code: the key
// of a setting of git is no secret.
func discreet(name, value string) string {
	if loadsCode(name) && (!secret.Named(name) || strings.HasPrefix(strings.ToUpper(name), "GIT_CONFIG_")) {
		return value
	}
	if !strings.Contains(value, "${") && value != "" && (secret.Named(name) || strings.EqualFold(name, "authorization")) {
		return fmt.Sprintf("(a literal value of %d characters)", len(value))
	}
	return secret.New(nil).Mask(value)
}

// Approve lets the servers of a review run. It refuses when the file is not what was
// shown.
func (h *Hub) Approve(rv Review) error {
	key, content := editorKey(h.o.Root), rv.content
	if rv.scope != Editor {
		key, content = h.o.Root, string(rv.data)
		now := readFile(h.at.projectFile(), Project)
		if now.problem != "" || !bytes.Equal(now.data, rv.data) {
			return fmt.Errorf("%s changed while it was shown; look at it again", ProjectFile)
		}
	}
	digest := contentDigest(rv.data)
	err := h.at.store().change(func(p *pins) {
		pin := p.project(key)
		if pin == nil || pin.Digest != digest {
			pin = &projectPin{Digest: digest, Content: content, Servers: map[string]Program{}}
		}
		for _, name := range rv.Names {
			pin.Servers[name] = rv.programs[name]
		}
		p.setProject(key, pin)
	})
	if err == nil {
		h.Reload()
	}
	return err
}

// ToolReview is what a person has to see before a server's tools are offered.
type ToolReview struct {
	Server string
	// Text lists the tools with their effects, and what changed. It is foreign text.
	Text string
	// Claims are tools that claim to be milder than their names say. They count as
	// external unless a person confirms the claim.
	Claims []string
	// Same says that the tools are the pinned ones, First that none were pinned before.
	Same, First bool

	key  string
	seen listing
}

// ReviewTools starts a server, if it does not run, and lists its tools for a person
// who is asked about them. It waits for the start. Nothing is pinned before Confirm.
func (h *Hub) ReviewTools(ctx context.Context, name string) (ToolReview, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return ToolReview{}, err
	}
	l.mayPin(false)
	rv, err := h.listed(ctx, l)
	if err != nil {
		l.mayPin(true)
	}
	return rv, err
}

// Try starts a server, if it does not run, and lists its tools. It waits for the start.
// Of one of the person's own servers that never ran the tools are pinned.
func (h *Hub) Try(ctx context.Context, name string) (ToolReview, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return ToolReview{}, err
	}
	return h.listed(ctx, l)
}

func (h *Hub) listed(ctx context.Context, l *link) (ToolReview, error) {
	name := l.entry.Name
	c, err := l.await(ctx)
	if err == nil {
		err = l.current(ctx, c)
	}
	if err != nil {
		return ToolReview{}, fmt.Errorf("MCP server %s: %w", name, err)
	}
	p, err := h.at.store().load()
	if err != nil {
		return ToolReview{}, err
	}
	pin := p.server(l.key)
	l.mu.Lock()
	defer l.mu.Unlock()
	rv := ToolReview{Server: name, key: l.key, seen: l.seen, First: pin == nil, Same: pin != nil && driftOf(pin, l.seen.tools).empty()}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d tools", name, len(l.seen.tools))
	if c.info != "" {
		fmt.Fprintf(&b, " of %s", c.info)
	}
	b.WriteByte('\n')
	for _, d := range l.seen.tools {
		old, known := pin.tool(d.Name)
		rv.show(&b, d, old, known)
	}
	for _, gone := range driftOf(pin, l.seen.tools).removed {
		fmt.Fprintf(&b, "  gone: %s\n", gone)
	}
	rv.Text = b.String()
	return rv, nil
}

// show writes one tool, as a diff when it is not what was pinned.
func (rv *ToolReview) show(b *strings.Builder, d Definition, old toolPin, known bool) {
	j := judge(d.Name, d.hints())
	if known && sameDefinition(old.Definition, d) {
		j = old.judge()
	}
	claim := ""
	if !known && !rv.First {
		claim = " (new)"
	}
	if j.Claim != approval.Unknown {
		rv.Claims = append(rv.Claims, d.Name)
		claim += fmt.Sprintf(" (claims %s, its name says otherwise)", EffectName(j.Claim))
	}
	fmt.Fprintf(b, "  %-9s %s%s\n", EffectName(j.Effect), d.Name, claim)
	if known && !sameDefinition(old.Definition, d) {
		b.WriteString(diff.Unified("pinned/"+d.Name, "now/"+d.Name, []byte(old.text()), []byte(d.text()), diff.Options{}))
		return
	}
	if text := plain(d.Description, maxDescription); text != "" {
		fmt.Fprintf(b, "            %s\n", strings.ReplaceAll(text, "\n", "\n            "))
	}
	for _, hidden := range termtext.HiddenIn(d.Description) {
		fmt.Fprintf(b, "            hidden in it: %s ×%d\n", hidden.Name, hidden.Count)
	}
}

// Confirm pins the tools that were shown. With claims the person also confirms what
// tools claim against their names.
func (h *Hub) Confirm(rv ToolReview, claims bool) error {
	err := h.at.store().change(func(p *pins) {
		old := p.server(rv.key)
		pin := &serverPin{Tools: pinsOf(rv.seen.tools, func(d Definition) string { return accepted(old, d, claims) })}
		if old != nil {
			pin.NoProbe, pin.Prompts = old.NoProbe, old.Prompts
		}
		pin.remember(rv.seen)
		p.setServer(rv.key, pin)
	})
	if err == nil {
		h.Reload()
	}
	return err
}

// accepted is the claim that holds for a tool: one that is confirmed now, or was for
// this very definition.
func accepted(old *serverPin, d Definition, claims bool) string {
	if was, ok := old.tool(d.Name); ok && was.Accepted != "" && sameDefinition(was.Definition, d) {
		return was.Accepted
	}
	if j := judge(d.Name, d.hints()); claims && j.Claim != approval.Unknown {
		return j.Claim.String()
	}
	return ""
}

// Untrust takes back what was trusted of a server, or with an empty name of the whole
// project, and of editors in it: its approval and the pins of its tools.
func (h *Hub) Untrust(name string) error {
	found := false
	err := h.at.store().change(func(p *pins) {
		drop := func(scope Scope, server string) {
			key := pinKey(scope, h.o.Root, server)
			found = found || p.server(key) != nil
			p.setServer(key, nil)
		}
		for scope, key := range map[Scope]string{Project: h.o.Root, Editor: editorKey(h.o.Root)} {
			pin := p.project(key)
			if pin == nil {
				continue
			}
			for _, server := range sortedKeys(pin.Servers) {
				if name == "" || name == server {
					found = true
					delete(pin.Servers, server)
					drop(scope, server)
				}
			}
			if len(pin.Servers) == 0 {
				p.setProject(key, nil)
			}
		}
		if name != "" {
			drop(User, name)
		}
	})
	if err == nil && !found {
		return errors.New("nothing of it was trusted")
	}
	if err == nil {
		h.Reload()
	}
	return err
}
