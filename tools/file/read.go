package file

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// reader is read_file.
type reader struct {
	w   *workspace.Workspace
	max int // characters
}

func (t reader) Spec() tools.Spec {
	return tools.Spec{
		Name:        "read_file",
		Description: "Read a whole text file. A file over the output limit is refused: read parts of it with read_file_range.",
		Params:      []tools.Param{pathParam()},
	}
}

// Plan looks at the path only; the content is read after the gate.
func (t reader) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	p, err := existing(t.w, call.Args.Text("path"))
	if err != nil {
		return tools.Action{}, err
	}
	r := request(call, "read_file", p, approval.Read)
	r.MustAsk = p.ReadReasons()
	return tools.NewAction(r, func(ctx context.Context, _ tools.Progress) tools.Result {
		return t.read(ctx, p)
	}), nil
}

func (t reader) read(ctx context.Context, p workspace.Path) tools.Result {
	limit := int64(t.max)*utf8.UTFMax + int64(len(bom))
	if p.Info().Size() > limit {
		return t.tooLong(ctx, p)
	}
	content, _, err := t.w.Read(p, limit)
	if err != nil {
		return failed(ctx, p, err)
	}
	if err := checkText(content, int64(len(content))); err != nil {
		return tools.Fail("%s %v", shown(p.Rel()), err)
	}
	text := toLF(withoutBOM(content))
	if oldMac(text) {
		text = bytes.ReplaceAll(text, []byte{'\r'}, []byte{'\n'})
	}
	if utf8.RuneCount(text) > t.max {
		return t.refuse(p, int64(len(content)), countLines(text))
	}
	result := tools.Result{Status: tools.OK, Text: string(text), Line: count(countLines(text), "line")}
	if len(text) == 0 {
		result.Text = fmt.Sprintf("[%s is empty]", shown(p.Rel()))
	}
	if n := badBytes(text); n > 0 {
		result.Text = fmt.Sprintf("[not UTF-8: %s not valid; edits keep them]\n%s", count(n, "byte"), result.Text)
	}
	return result
}

// tooLong counts the lines of a file that cannot be shown.
func (t reader) tooLong(ctx context.Context, p workspace.Path) tools.Result {
	f, err := t.w.Open(p)
	if err != nil {
		return failed(ctx, p, err)
	}
	defer f.Close()
	r := newLineReader(ctx, f)
	head, err := r.head()
	if err != nil {
		return failed(ctx, p, err)
	}
	if err := checkText(head, p.Info().Size()); err != nil {
		return tools.Fail("%s %v", shown(p.Rel()), err)
	}
	lines, err := r.total()
	if err != nil {
		return failed(ctx, p, err)
	}
	return t.refuse(p, p.Info().Size(), lines)
}

// refuse names a range that fits.
func (t reader) refuse(p workspace.Path, size int64, lines int) tools.Result {
	fits := max(1, int(int64(t.max)*int64(lines)/(size+1)*3/4))
	return tools.Fail("%s has %s (%d bytes), over the limit of %d characters. Read a part with read_file_range, such as start_line 1, end_line %d, or use search.",
		shown(p.Rel()), count(lines, "line"), size, t.max, min(fits, lines))
}
