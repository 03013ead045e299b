package file

import (
	"bytes"
	"context"
	"fmt"

	"zcoder/internal/approval"
	"zcoder/internal/diff"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// writer is write_file.
type writer struct{ w *workspace.Workspace }

func (t writer) Spec() tools.Spec {
	return tools.Spec{
		Name:        "write_file",
		Description: "Create a file, or replace its whole content. Parent directories are made. To change a part of a file use replace_text.",
		Params: []tools.Param{
			pathParam(),
			{Name: "content", Type: tools.String, Required: true, Aliases: []string{"contents", "text", "data", "body", "file_text", "file_content", "new_content"}},
			sumParam(),
		},
	}
}

// written is a planned write_file.
type written struct {
	path    workspace.Path
	stamp   workspace.Stamp
	content []byte
	same    bool // the file has this content
	diff    string
	line    string // "+3 -1"
	kept    string // what the new content took over from the old
}

// Plan reads the old content and makes the diff.
func (t writer) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	p, err := t.w.Resolve(call.Args.Text("path"))
	if err != nil {
		return tools.Action{}, err
	}
	reasons, err := p.WriteReasons()
	if err != nil {
		return tools.Action{}, err
	}
	r := request(call, "write_file", p, approval.WorkspaceWrite)
	r.MustAsk = reasons
	d := written{path: p, content: []byte(call.Args.Text("content"))}
	if err := t.compare(&d, call.Args.Text("expected_sha256")); err != nil {
		if secret := p.ReadReasons(); len(secret) > 0 {
			r.MustAsk = union(r.MustAsk, secret)
			return refused(r, err), nil
		}
		return tools.Action{}, err
	}
	r.Text = d.diff
	if d.same {
		r.Text = r.Summary + ": the file has this content already"
	}
	r.Summary += " (" + d.line + ")"
	return tools.NewAction(r, func(ctx context.Context, _ tools.Progress) tools.Result {
		return t.write(ctx, d)
	}), nil
}

// compare fills in what d needs from the old content.
func (t writer) compare(d *written, sum string) error {
	rel := d.path.Rel()
	if !d.path.Exists() {
		if err := checkSum(sum, false, d.stamp.Sum); err != nil {
			return fmt.Errorf("%s: %w", shown(rel), err)
		}
		d.describe(nil)
		return nil
	}
	if d.path.Info().Size() > maxShown {
		stamp, err := t.w.StampOf(d.path)
		if err != nil {
			return err
		}
		d.stamp = stamp
		d.diff = fmt.Sprintf("--- %s\n+++ %s\n[all %d bytes of the old content are replaced by %d bytes]\n", diff.Name("a/"+rel), diff.Name("b/"+rel), stamp.Size, len(d.content))
		d.line = fmt.Sprintf("%d bytes", len(d.content))
	} else {
		old, stamp, err := t.w.Read(d.path, maxShown)
		if err != nil {
			return err
		}
		d.stamp = stamp
		if isUTF16(old) {
			return fmt.Errorf("%s %w", shown(rel), errUTF16)
		}
		d.takeOver(old)
		d.describe(old)
	}
	if err := checkSum(sum, true, d.stamp.Sum); err != nil {
		return fmt.Errorf("%s: %w", shown(rel), err)
	}
	return nil
}

// takeOver gives the new content the byte order mark and the line ends of the old
// one, neither of which a model ever sees.
func (d *written) takeOver(old []byte) {
	if onlyCRLF(old) && bytes.IndexByte(d.content, '\r') < 0 && bytes.IndexByte(d.content, '\n') >= 0 {
		d.content = bytes.ReplaceAll(d.content, []byte{'\n'}, []byte("\r\n"))
		d.kept = ", with its CRLF line ends"
	}
	if bytes.HasPrefix(old, bom) && !bytes.HasPrefix(d.content, bom) {
		d.content = append(bytes.Clone(bom), d.content...)
	}
}

func (d *written) describe(old []byte) {
	d.same = d.path.Exists() && bytes.Equal(old, d.content)
	from, to := "a/"+d.path.Rel(), "b/"+d.path.Rel()
	if !d.path.Exists() {
		from = ""
	}
	d.diff, d.line = differ(from, to, old, d.content, 0)
	if d.diff == "" && !d.path.Exists() {
		d.diff = fmt.Sprintf("--- %s\n+++ %s\n[a new empty file]\n", diff.DevNull, diff.Name(to))
	}
}

// differ shows a change, with the line ends left out where all are CRLF: they draw
// nothing and would hide the change in marks.
func differ(from, to string, a, b []byte, skipped int) (text, line string) {
	a, b = withoutBOM(a), withoutBOM(b)
	if (len(a) == 0 || onlyCRLF(a)) && (len(b) == 0 || onlyCRLF(b)) {
		a, b = toLF(a), toLF(b)
	}
	added, removed := diff.Stat(a, b)
	text = diff.Unified(from, to, a, b, diff.Options{MaxLines: maxDiffLines, MaxBytes: maxDiffBytes, Skipped: skipped})
	return text, fmt.Sprintf("+%d -%d", added, removed)
}

func (t writer) write(ctx context.Context, d written) tools.Result {
	rel := d.path.Rel()
	if ctx.Err() != nil {
		return failed(ctx, d.path, ctx.Err())
	}
	if d.same {
		return tools.Result{Status: tools.OK, Text: fmt.Sprintf("%s has this content already; nothing was written.", shown(rel)), Line: "unchanged"}
	}
	if err := t.w.Apply(workspace.Change{Path: d.path, Content: d.content, Expect: d.stamp}); err != nil {
		return failed(ctx, d.path, err)
	}
	verb := "Created"
	if d.path.Exists() {
		verb = "Wrote"
	}
	text := fmt.Sprintf("%s %s: %s%s.", verb, shown(rel), count(countLines(d.content), "line"), d.kept)
	return tools.Result{Status: tools.OK, Text: text, Diff: d.diff, Changed: []string{rel}, Line: d.line}
}
