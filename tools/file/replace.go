package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// replacer is replace_text.
type replacer struct{ w *workspace.Workspace }

func (t replacer) Spec() tools.Spec {
	return tools.Spec{
		Name:        "replace_text",
		Description: "Replace one exact piece of text in a file. old_text must be in the file once: copy it with its indentation and enough lines around it.",
		Params: []tools.Param{
			pathParam(),
			{Name: "old_text", Type: tools.String, Required: true, Aliases: []string{"old", "old_string", "old_str", "oldtext", "oldstring", "old_content", "old_code", "find", "search"}},
			{Name: "new_text", Type: tools.String, Required: true, Aliases: []string{"new", "new_string", "new_str", "newtext", "newstring", "new_content", "new_code", "replace", "replacement"}},
			sumParam(),
		},
	}
}

// replaced is a planned replace_text. It does not hold the content: a person may
// take long to answer.
type replaced struct {
	path       workspace.Path
	stamp      workspace.Stamp
	edit       edit
	diff, line string
}

// Plan finds the place and makes the diff. It reads the file, up to 128 MiB.
func (t replacer) Plan(ctx context.Context, call tools.Call) (tools.Action, error) {
	if err := checkOld(call.Args.Text("old_text"), call.Args.Text("new_text")); err != nil {
		return tools.Action{}, err
	}
	p, err := existing(t.w, call.Args.Text("path"))
	if err != nil {
		return tools.Action{}, err
	}
	reasons, err := p.WriteReasons()
	if err != nil {
		return tools.Action{}, err
	}
	secret := p.ReadReasons()
	r := request(call, "replace_text", p, approval.WorkspaceWrite)
	r.MustAsk = union(reasons, secret)
	d, err := t.find(ctx, p, call.Args)
	if err != nil && len(secret) > 0 && ctx.Err() == nil {
		return refused(r, err), nil
	}
	if err != nil {
		return tools.Action{}, err
	}
	r.Text = d.diff
	r.Summary += " (" + d.line + ")"
	return tools.NewAction(r, func(ctx context.Context, _ tools.Progress) tools.Result {
		return t.replace(ctx, d)
	}), nil
}

// checkOld refuses texts that would match nearly everywhere, or change nothing.
func checkOld(old, text string) error {
	blank := func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cf, unicode.Cc) }
	switch {
	case old == "":
		return errors.New("old_text is empty; give the text to replace, or use write_file for a new file")
	case strings.TrimFunc(old, blank) == "":
		return errors.New("old_text is only blanks; include the text around them")
	case old == text:
		return errors.New("old_text and new_text are the same; nothing would change")
	}
	return nil
}

// find locates the edit in the content.
func (t replacer) find(ctx context.Context, p workspace.Path, args tools.Args) (replaced, error) {
	content, stamp, err := t.w.Read(p, maxEdit)
	if errors.Is(err, workspace.ErrTooLarge) {
		return replaced{}, fmt.Errorf("%s has %d bytes, over the %d that replace_text edits; use a command", shown(p.Rel()), p.Info().Size(), maxEdit)
	}
	if err != nil {
		return replaced{}, err
	}
	if err := checkSum(args.Text("expected_sha256"), true, stamp.Sum); err != nil {
		return replaced{}, fmt.Errorf("%s: %w", shown(p.Rel()), err)
	}
	if err := checkText(content, stamp.Size); err != nil {
		return replaced{}, fmt.Errorf("%s %w", shown(p.Rel()), err)
	}
	text := withoutBOM(content)
	old, new := []byte(args.Text("old_text")), []byte(args.Text("new_text"))
	if bytes.HasPrefix(old, bom) {
		old, new = withoutBOM(old), withoutBOM(new)
	}
	src := newSource(text)
	e, err := findEdit(src, old, new)
	if errors.Is(err, errNotFound) {
		err = errors.New(explain(ctx, src, string(old), string(new)))
	}
	if err == nil && bytes.Equal(e.replacement, text[e.start:e.end]) {
		err = errors.New("the new text is what the file has there already")
	}
	if err != nil {
		return replaced{}, fmt.Errorf("%s: %w", shown(p.Rel()), err)
	}
	d := replaced{path: p, stamp: stamp, edit: e}
	d.diff, d.line = e.show(p.Rel(), text)
	shift := len(content) - len(text)
	d.edit.start += shift
	d.edit.end += shift
	return d, nil
}

// show makes the diff from the lines around the edit only.
func (e edit) show(rel string, content []byte) (text, line string) {
	const context = 3
	start := e.start
	for i := 0; i <= context && start > 0; i++ {
		start = bytes.LastIndexByte(content[:max(0, start-1)], '\n') + 1
	}
	end := e.end
	for i := 0; i <= context && end < len(content); i++ {
		n := bytes.IndexByte(content[end:], '\n')
		if n < 0 {
			n = len(content) - end - 1
		}
		end += n + 1
	}
	after := bytes.Join([][]byte{content[start:e.start], e.replacement, content[e.end:end]}, nil)
	return differ("a/"+rel, "b/"+rel, content[start:end], after, bytes.Count(content[:start], []byte{'\n'}))
}

// replace reads the file again and splices the new text into it.
func (t replacer) replace(ctx context.Context, d replaced) tools.Result {
	content, stamp, err := t.w.Read(d.path, maxEdit)
	if err == nil && !stamp.Same(d.stamp) {
		err = workspace.ErrChanged
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return failed(ctx, d.path, err)
	}
	parts := [][]byte{content[:d.edit.start], d.edit.replacement, content[d.edit.end:]}
	if err := t.w.Apply(workspace.Change{Path: d.path, Parts: parts, Expect: stamp}); err != nil {
		return failed(ctx, d.path, err)
	}
	rel := d.path.Rel()
	where := fmt.Sprintf("line %d", d.edit.line)
	if d.edit.lines > 1 {
		where = fmt.Sprintf("lines %d-%d", d.edit.line, d.edit.line+d.edit.lines-1)
	}
	return tools.Result{Status: tools.OK, Text: fmt.Sprintf("Replaced %s of %s (%s lines).", where, shown(rel), d.line), Diff: d.diff, Changed: []string{rel}, Line: d.line}
}
