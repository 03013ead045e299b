package file

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// ranger is read_file_range.
type ranger struct {
	w   *workspace.Workspace
	max int // characters
}

const (
	// maxLine is the most characters of one line when several are asked for.
	maxLine = 4096
	// noteRoom is kept for the notes at the end of a result, in characters.
	noteRoom = 200
)

func (t ranger) Spec() tools.Spec {
	return tools.Spec{
		Name:        "read_file_range",
		Description: "Read lines of a text file, from 1, both ends included. Each is shown as `N: text`.",
		Params: []tools.Param{
			pathParam(),
			{Name: "start_line", Type: tools.Integer, Required: true, Aliases: []string{"start", "from", "from_line", "line_start", "first_line", "offset", "startline"}},
			{Name: "end_line", Type: tools.Integer, Required: true, Aliases: []string{"end", "to", "to_line", "line_end", "last_line", "endline"}},
		},
	}
}

// Plan looks at the path only; the content is read after the gate.
func (t ranger) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	first, last := call.Args.Int("start_line", 1), call.Args.Int("end_line", 0)
	switch {
	case first < 1:
		return tools.Action{}, fmt.Errorf("start_line is %d; the first line is 1", first)
	case last < first:
		return tools.Action{}, fmt.Errorf("end_line %d is before start_line %d", last, first)
	}
	p, err := existing(t.w, call.Args.Text("path"))
	if err != nil {
		return tools.Action{}, err
	}
	r := request(call, "read_file_range", p, approval.Read)
	r.Summary += fmt.Sprintf(":%d-%d", first, last)
	r.Text, r.MustAsk = r.Summary, p.ReadReasons()
	return tools.NewAction(r, func(ctx context.Context, _ tools.Progress) tools.Result {
		return t.read(ctx, p, first, last)
	}), nil
}

func (t ranger) read(ctx context.Context, p workspace.Path, first, last int) tools.Result {
	f, err := t.w.Open(p)
	if err != nil {
		return failed(ctx, p, err)
	}
	defer f.Close()
	size := p.Info().Size()
	if info, err := f.Stat(); err == nil {
		size = info.Size() // a log may have grown; what comes later is not chased
	}
	r := newLineReader(ctx, io.LimitReader(f, size))
	head, err := r.head()
	if err != nil {
		return failed(ctx, p, err)
	}
	if err := checkText(head, size); err != nil {
		return tools.Fail("%s %v", shown(p.Rel()), err)
	}
	r.data = withoutBOM(r.data)
	if err := r.skip(first - 1); err != nil {
		return failed(ctx, p, err)
	}
	result, err := t.collect(r, p, first, last)
	if err != nil {
		return failed(ctx, p, err)
	}
	return result
}

// collect renders the lines from first to last, as many as fit.
func (t ranger) collect(r *lineReader, p workspace.Path, first, last int) (tools.Result, error) {
	var out strings.Builder
	room := max(t.max-noteRoom, t.max/2)
	limit := room
	if last > first {
		limit = min(room, maxLine)
	}
	at := first
	for ; at <= last; at++ {
		line, size, ok, err := r.next(limit * utf8.UTFMax)
		if err != nil {
			return tools.Result{}, err
		}
		if !ok {
			break
		}
		text := fmt.Sprintf("%d: %s\n", at, cutLine(line, size, limit))
		if n := utf8.RuneCountInString(text); n <= room || at == first {
			room -= n
			out.WriteString(text)
			continue
		}
		fmt.Fprintf(&out, "[output limit; go on with start_line %d]\n", at)
		return rangeResult(&out, first, at-1), nil
	}
	if at == first {
		return t.pastEnd(r, p, first)
	}
	if at <= last {
		fmt.Fprintf(&out, "[the file ends at line %d]\n", at-1)
	}
	return rangeResult(&out, first, at-1), nil
}

func rangeResult(out *strings.Builder, first, last int) tools.Result {
	line := fmt.Sprintf("lines %d-%d", first, last)
	if first == last {
		line = fmt.Sprintf("line %d", first)
	}
	return tools.Result{Status: tools.OK, Text: out.String(), Line: line}
}

func (t ranger) pastEnd(r *lineReader, p workspace.Path, first int) (tools.Result, error) {
	lines, err := r.total()
	if err != nil {
		return tools.Result{}, err
	}
	if lines == 0 {
		return tools.Fail("%s is empty", shown(p.Rel())), nil
	}
	return tools.Fail("start_line %d is past the end: %s has %s", first, shown(p.Rel()), count(lines, "line")), nil
}

// cutLine bounds a line to limit characters and says how long it is.
func cutLine(line []byte, size, limit int) []byte {
	n := 0
	for i := 0; i < len(line); n++ {
		if n == limit {
			return fmt.Appendf(bytes.Clone(line[:i]), "… [line of %d bytes, cut]", size)
		}
		_, width := utf8.DecodeRune(line[i:])
		i += width
	}
	if len(line) < size {
		return fmt.Appendf(bytes.Clone(line), "… [line of %d bytes, cut]", size)
	}
	return line
}
