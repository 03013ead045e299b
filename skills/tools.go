package skills

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Names of the tools.
const (
	activateTool = "activate_skill"
	resourceTool = "read_skill_resource"
	discoverTool = "discover_skills"
)

// Tools returns what a model needs to use the skills: nothing when there are none, and
// discover_skills only when a catalogue of maxBytes does not hold them all. active
// returns the skills of the conversation in which a call is made; it may be called
// from several goroutines.
func (l *Library) Tools(maxBytes int, active func() []Active) []tools.Tool {
	if len(l.Set().Skills) == 0 {
		return nil
	}
	list := []tools.Tool{activator{l, active}, resources{l, active}}
	if _, truncated := l.Catalogue(maxBytes); truncated {
		list = append(list, discoverer{l})
	}
	return list
}

func nameParam() tools.Param {
	return tools.Param{Name: "name", Type: tools.String, Required: true, Aliases: []string{"skill", "skill_name"}}
}

func request(call tools.Call, tool, what string) approval.Request {
	summary := strings.TrimSpace(tool + " " + what)
	return approval.Request{CallID: call.ID, Tool: tool, Effect: approval.Read, Summary: summary, Text: summary, Args: string(call.Args.JSON())}
}

type activator struct {
	l      *Library
	active func() []Active
}

func (activator) Spec() tools.Spec {
	return tools.Spec{Name: activateTool, Description: "Load the guidance of a skill.", Params: []tools.Param{nameParam()}}
}

func (a activator) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	name := call.Args.Text("name")
	k, ok := a.l.Set().Find(strings.TrimPrefix(strings.TrimSpace(name), "$"))
	if !ok {
		return tools.Action{}, a.l.unknown(name)
	}
	return tools.NewAction(request(call, activateTool, k.Name), func(context.Context, tools.Progress) tools.Result {
		record, already, err := a.l.Activate(k.Name, a.active())
		switch {
		case err != nil:
			return tools.Fail("%v", err)
		case already:
			return tools.Result{Status: tools.OK, Text: fmt.Sprintf("The skill %q is active already; its text stands above.", k.Name), Line: "active already"}
		case len(record) > a.l.o.MaxOutput:
			return tools.Fail("the text of skill %q has %d bytes, a tool result at most %d; ask the user to say /skill %s", k.Name, len(record), a.l.o.MaxOutput, k.Name)
		}
		return tools.Result{Status: tools.OK, Text: record, Line: "active"}
	}), nil
}

type discoverer struct{ l *Library }

func (discoverer) Spec() tools.Spec {
	return tools.Spec{Name: discoverTool, Description: "Find skills that the list leaves out.", Params: []tools.Param{
		{Name: "query", Type: tools.String, Required: true, Aliases: []string{"keywords", "text"}, Description: "words of the task"},
	}}
}

func (d discoverer) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	query := call.Args.Text("query")
	return tools.NewAction(request(call, discoverTool, query), func(context.Context, tools.Progress) tools.Result {
		hits := d.l.Set().Search(query)
		if len(hits) == 0 {
			return tools.Result{Status: tools.OK, Text: fmt.Sprintf("No skill has a word of %q in its name or description. Try other words.", query), Line: "none"}
		}
		var b strings.Builder
		for _, k := range hits[:min(len(hits), maxHits)] {
			fmt.Fprintf(&b, "%s: %s\n", k.Name, k.Description)
		}
		if len(hits) > maxHits {
			fmt.Fprintf(&b, "(%d more; use more words)\n", len(hits)-maxHits)
		}
		return tools.Result{Status: tools.OK, Text: b.String(), Line: fmt.Sprintf("%d found", len(hits))}
	}), nil
}

type resources struct {
	l      *Library
	active func() []Active
}

func (resources) Spec() tools.Spec {
	return tools.Spec{Name: resourceTool, Description: "Read a file of an active skill.", Params: []tools.Param{
		nameParam(),
		{Name: "path", Type: tools.String, Required: true, Aliases: []string{"file", "file_path", "resource"}, Description: "relative to the skill's directory"},
	}}
}

func (r resources) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	name, rel := call.Args.Text("name"), call.Args.Text("path")
	k, err := r.usable(name)
	if err != nil {
		return tools.Action{}, err
	}
	abs, reasons, err := resolveResource(k, rel)
	if err != nil {
		return tools.Action{}, err
	}
	req := request(call, resourceTool, fmt.Sprintf("%s %q", k.Name, rel))
	req.Paths = []approval.PathUse{{Path: abs}}
	req.MustAsk = reasons
	return tools.NewAction(req, func(context.Context, tools.Progress) tools.Result {
		return r.read(k, rel, abs)
	}), nil
}

// usable returns a skill that is known and active.
func (r resources) usable(name string) (Skill, error) {
	k, ok := r.l.Set().Find(strings.TrimPrefix(strings.TrimSpace(name), "$"))
	if !ok {
		return k, r.l.unknown(name)
	}
	for _, a := range r.active() {
		if a.Name == k.Name {
			return k, nil
		}
	}
	return k, fmt.Errorf("the skill %q is not active; call activate_skill first", k.Name)
}

// resolveResource returns where a relative path of a skill leads, which must be inside
// the skill's own directory, and why reading it must ask.
func resolveResource(k Skill, rel string) (abs string, reasons []string, err error) {
	w, err := workspace.Open(k.root.Within, workspace.Options{})
	if err != nil {
		return "", nil, fmt.Errorf("read a file of skill %q: %w", k.Name, err)
	}
	defer w.Close()
	p, err := inSkill(w, k, rel)
	if err != nil {
		return "", nil, err
	}
	return p.Abs(), p.ReadReasons(), nil
}

func inSkill(w *workspace.Workspace, k Skill, rel string) (workspace.Path, error) {
	outside := fmt.Errorf("path %q is not inside the directory of skill %q; give a path relative to it, such as one of its list of files", rel, k.Name)
	if rel == "" || strings.HasPrefix(rel, "/") || strings.HasPrefix(rel, "~") {
		return workspace.Path{}, outside
	}
	dir, err := w.Resolve(k.Dir)
	if err != nil || !dir.Exists() || !dir.Info().IsDir() {
		return workspace.Path{}, fmt.Errorf("the directory of skill %q is gone", k.Name)
	}
	p, err := w.Resolve(dir.Abs() + "/" + rel)
	switch {
	case err != nil:
		return p, outside
	case !below(dir, p):
		return p, outside
	case !p.Exists():
		return p, fmt.Errorf("skill %q has no file %q", k.Name, rel)
	case p.Info().IsDir():
		return p, fmt.Errorf("%q of skill %q is a directory; give a file", rel, k.Name)
	case !p.Info().Mode().IsRegular():
		return p, fmt.Errorf("%q of skill %q is not a regular file; it cannot be read", rel, k.Name)
	}
	return p, nil
}

// maxResource is the largest file that is read, in bytes.
const maxResource = 1 << 20

// read reads what was planned, if it still leads to the same place.
func (r resources) read(k Skill, rel, planned string) tools.Result {
	w, err := workspace.Open(k.root.Within, workspace.Options{})
	if err != nil {
		return tools.Fail("read a file of skill %q: %v", k.Name, err)
	}
	defer w.Close()
	p, err := inSkill(w, k, rel)
	if err != nil {
		return tools.Fail("%v", err)
	}
	if p.Abs() != planned {
		return tools.Fail("%q of skill %q leads elsewhere than when this call was planned; call again", rel, k.Name)
	}
	content, _, err := w.Read(p, maxResource)
	switch {
	case errors.Is(err, workspace.ErrTooLarge):
		return tools.Fail("%q of skill %q has %d bytes, at most %d are read; use run_command for a part of it", rel, k.Name, p.Info().Size(), maxResource)
	case err != nil:
		return tools.Fail("%s", k.root.reason(err))
	case bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content):
		return tools.Fail("%q of skill %q is no text (%d bytes)", rel, k.Name, len(content))
	}
	return tools.Result{Status: tools.OK, Text: string(content), Line: fmt.Sprintf("%d bytes", len(content))}
}
