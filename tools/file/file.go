// Package file holds the tools that read and change single files of the workspace:
// read_file, read_file_range, write_file and replace_text.
//
// It knows text: line ends, byte order marks, what is binary, how a piece of text is
// found and how a failed search is explained to a model. Where files are and how
// they are opened and replaced is the workspace's business, whether a call may run
// the gate's. The application makes the tools; the loop calls them.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Options bound the tools. The zero value has the default limits.
type Options struct {
	// MaxOutput is the most characters of one result; 0 means 32768.
	MaxOutput int
}

const (
	defaultMaxOutput = 32768 // characters
	// maxEdit is the largest file that replace_text holds in memory, in bytes.
	maxEdit = 128 << 20
	// maxShown is the largest old content that write_file shows in its diff, in bytes.
	maxShown = 16 << 20
	// maxDiffLines and maxDiffBytes bound a diff that a person can still read.
	maxDiffLines, maxDiffBytes = 20000, 1 << 20
	// maxSiblings bounds the names looked at for a suggestion.
	maxSiblings = 5000
)

// New returns the four file tools for a workspace, in the order of their schemas.
func New(w *workspace.Workspace, o Options) []tools.Tool {
	if o.MaxOutput <= 0 {
		o.MaxOutput = defaultMaxOutput
	}
	return []tools.Tool{reader{w, o.MaxOutput}, ranger{w, o.MaxOutput}, writer{w}, replacer{w}}
}

func pathParam() tools.Param {
	return tools.Param{Name: "path", Type: tools.String, Required: true, Aliases: []string{
		"file_path", "filepath", "file", "filename", "file_name", "target_file", "absolute_path", "relative_path",
	}}
}

func sumParam() tools.Param {
	return tools.Param{Name: "expected_sha256", Type: tools.String, Description: "refuse unless the file has this hash",
		Aliases: []string{"sha256", "expected_sha", "expected_hash"}}
}

// existing resolves the path of a regular file that must exist.
func existing(w *workspace.Workspace, text string) (workspace.Path, error) {
	p, err := w.Resolve(text)
	if err != nil {
		return p, err
	}
	if !p.Exists() {
		return p, fmt.Errorf("%q does not exist%s", text, suggest(w, p))
	}
	switch mode := p.Info().Mode(); {
	case mode.IsDir():
		return p, fmt.Errorf("%q is a directory; use list_files, or give a file path", text)
	case !mode.IsRegular():
		return p, fmt.Errorf("%q is not a regular file (%v); it cannot be read", text, mode.Type())
	}
	return p, nil
}

// suggest looks for a name like the missing one in its directory.
func suggest(w *workspace.Workspace, p workspace.Path) string {
	const elsewhere = "; find it with list_files or search"
	dir, err := w.Resolve(path.Dir(p.Rel()))
	if err != nil || !dir.Exists() || len(p.ReadReasons()) > 0 {
		return elsewhere
	}
	entries, err := w.ReadDir(dir)
	if err != nil || len(entries) > maxSiblings {
		return elsewhere
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	near := tools.Nearest(path.Base(p.Rel()), names)
	if near == "" {
		return elsewhere
	}
	return fmt.Sprintf("; did you mean %q?", path.Join(path.Dir(p.Rel()), near))
}

// request describes a call on one file.
func request(call tools.Call, tool string, p workspace.Path, effect approval.Effect) approval.Request {
	summary := tool + " " + shown(p.Rel())
	return approval.Request{
		CallID: call.ID, Tool: tool, Effect: effect, Summary: summary, Text: summary, Args: string(call.Args.JSON()),
		Paths: []approval.PathUse{{Path: p.Abs(), Rel: p.Rel(), Write: effect == approval.WorkspaceWrite}},
	}
}

// shown is a file name as it stands in one line of text: quoted when it holds
// something that would not be seen for what it is.
func shown(rel string) string {
	odd := func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Mn) || r == '"' || r == '\\'
	}
	if strings.ContainsFunc(rel, odd) || strings.TrimSpace(rel) != rel {
		return strconv.QuoteToASCII(rel)
	}
	return rel
}

// refused returns an action that fails with err. It stands for a plan that failed
// on the content of a file which only a person may show: what the model learns of
// the content, it learns after the question.
func refused(r approval.Request, err error) tools.Action {
	r.Notes = append(r.Notes, "nothing will be changed: "+err.Error())
	return tools.NewAction(r, func(context.Context, tools.Progress) tools.Result {
		return tools.Fail("%v", err)
	})
}

// failed turns an error of doing into a result.
func failed(ctx context.Context, p workspace.Path, err error) tools.Result {
	switch {
	case ctx.Err() != nil:
		return tools.Result{Status: tools.Cancelled, Text: "cancelled"}
	case errors.Is(err, workspace.ErrChanged), errors.Is(err, fs.ErrNotExist):
		return tools.Fail("%s changed after this call was planned; nothing was done. Read it again, then repeat the call.", shown(p.Rel()))
	default:
		return tools.Fail("%v", err)
	}
}

// union appends what is missing of more to list.
func union(list, more []string) []string {
	for _, s := range more {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
