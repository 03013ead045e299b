// Package patch is the apply_patch tool: it reads a patch as models write them,
// finds its places in the files of the workspace and changes all files or none.
//
// It knows unified diffs, "*** Begin Patch" envelopes and the mistakes that models
// make in both. It runs no program and reads no configuration of git. Paths and
// writes are the workspace's; the gate judges and the loop runs the action.
package patch

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Options bound the tool. The zero value takes files up to 64 MiB.
type Options struct {
	MaxFile int64 // bytes of a file that may be patched
}

const defaultMaxFile = 64 << 20

// New returns the apply_patch tool for w. Its Plan returns a *Rejected for every
// patch that cannot be applied.
func New(w *workspace.Workspace, o Options) tools.Tool {
	if o.MaxFile <= 0 {
		o.MaxFile = defaultMaxFile
	}
	return &tool{w: w, maxFile: o.MaxFile}
}

type tool struct {
	w       *workspace.Workspace
	maxFile int64
}

func (t *tool) Spec() tools.Spec {
	return tools.Spec{
		Name: "apply_patch",
		Description: "Change files by a unified diff: --- a/FILE, +++ b/FILE, @@, then lines that begin with space, - or +. " +
			"Copy 3 unchanged lines around each change exactly. /dev/null creates or deletes. All files or none.",
		Params: []tools.Param{{
			Name: "patch", Type: tools.String, Required: true,
			Description: "the whole patch", Aliases: []string{"diff", "input", "patch_text"},
		}},
	}
}

func (t *tool) Plan(ctx context.Context, call tools.Call) (tools.Action, error) {
	text := call.Args.Text("patch")
	sections, err := parse(text)
	if err != nil {
		return tools.Action{}, err
	}
	p := &plan{w: t.w, maxFile: t.maxFile}
	for _, s := range sections {
		if err := p.take(s); err != nil {
			return tools.Action{}, err
		}
	}
	for _, f := range p.files {
		if err := ctx.Err(); err != nil {
			return tools.Action{}, err
		}
		if err := p.work(f); err != nil {
			return tools.Action{}, err
		}
	}
	if err := p.checkNames(); err != nil {
		return tools.Action{}, err
	}
	shown := p.describe(len(text))
	request := p.request(call, shown)
	return tools.NewAction(request, func(ctx context.Context, _ tools.Progress) tools.Result {
		return p.do(ctx, shown)
	}), nil
}

func (p *plan) request(call tools.Call, s shown) approval.Request {
	r := approval.Request{
		CallID: call.ID, Tool: "apply_patch", Effect: approval.WorkspaceWrite,
		Summary: "apply_patch " + s.names, Text: s.diff, Args: string(call.Args.JSON()),
		MustAsk: p.mustAsk, Notes: p.notes,
	}
	for _, c := range p.changes {
		r.Paths = append(r.Paths, approval.PathUse{Path: c.Path.Abs(), Rel: c.Path.Rel(), Write: true})
	}
	for _, f := range p.files {
		if f.keep {
			r.Paths = append(r.Paths, approval.PathUse{Path: f.path.Abs(), Rel: f.path.Rel()})
		}
	}
	return r
}

// do makes the changes that were planned, unless a file is not as it was.
func (p *plan) do(ctx context.Context, s shown) tools.Result {
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "not executed: the turn was stopped", Line: "stopped"}
	}
	err := p.checkSources()
	if err == nil {
		err = p.w.Apply(p.changes...)
	}
	if err != nil {
		return p.failed(err, s)
	}
	return tools.Result{Status: tools.OK, Text: s.text, Diff: s.diff, Line: s.line, Changed: p.rels(p.changes)}
}

// checkSources holds the files that are only read to what they were.
func (p *plan) checkSources() error {
	for _, f := range p.files {
		if !f.keep {
			continue
		}
		now, err := p.w.StampOf(f.path)
		if err != nil {
			return err
		}
		if !now.Same(f.stamp) {
			return fmt.Errorf("%q %w", f.path.Rel(), workspace.ErrChanged)
		}
	}
	return nil
}

// failed looks at what an error has left behind and says exactly that.
func (p *plan) failed(err error, s shown) tools.Result {
	var landed []workspace.Change
	for _, c := range p.changes {
		if p.landed(c) {
			landed = append(landed, c)
		}
	}
	switch {
	case len(landed) == len(p.changes):
		return tools.Result{
			Status: tools.OK, Text: s.text + fmt.Sprintf("\nwarning: %v", err),
			Diff: s.diff, Line: s.line, Changed: p.rels(p.changes),
		}
	case len(landed) > 0:
		res := tools.Fail("patch applied in part: %v\nThese are changed: %s. Read them again before the next patch.", err, strings.Join(p.rels(landed), ", "))
		res.Line, res.Changed = "applied in part", p.rels(landed)
		return res
	case errors.Is(err, workspace.ErrChanged):
		res := tools.Fail("patch not applied: %v\nNothing was changed. Read the file again and make the patch from what it holds now.", err)
		res.Line = "file changed meanwhile"
		return res
	default:
		res := tools.Fail("patch not applied: %v\nNothing was changed.", err)
		res.Line = "not applied"
		return res
	}
}

// landed reports whether a change is on disk.
func (p *plan) landed(c workspace.Change) bool {
	now, err := p.w.Resolve(c.Path.Abs())
	if err != nil {
		return false
	}
	if c.Remove || !now.Exists() {
		return c.Remove && !now.Exists()
	}
	stamp, err := p.w.StampOf(now)
	modeOK := c.Mode == 0 || !c.Path.Exists() || stamp.Mode.Perm() == c.Mode
	return err == nil && stamp.Sum == sha256.Sum256(c.Content) && modeOK
}

func (p *plan) rels(changes []workspace.Change) []string {
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.Path.Rel()
	}
	return out
}
