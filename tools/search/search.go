// Package search finds files and text below a directory of the workspace: the tools
// list_files and search over one idea of what is shown.
//
// It knows ignore files, hidden and dropped names, how to find lines fast and how to
// say what was left out. It opens nothing but regular files, follows no link, and
// shows nothing of files whose names speak of secrets unless such a file is named
// and approved. It knows no terminal, policy or model. The registry of tools calls
// it.
package search

import (
	"context"
	"fmt"
	"os"
	"path"
	"runtime"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"zcoder/internal/approval"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Options bound the tools. The zero value takes the default bounds.
type Options struct {
	MaxOutput int // bytes of a result, at least 1024; 0 means 32768
}

const (
	defaultOutput = 32768
	leastOutput   = 1024
	reserved      = 700 // bytes of a result for what is said around the hits
)

// New returns the tools list_files and search for a workspace, which must stay open
// as long as they are used. They may be used from several goroutines.
func New(w *workspace.Workspace, o Options) []tools.Tool {
	if o.MaxOutput == 0 {
		o.MaxOutput = defaultOutput
	}
	o.MaxOutput = max(o.MaxOutput, leastOutput)
	return []tools.Tool{&listTool{w, o}, &searchTool{w, o}}
}

var pathAliases = []string{"dir", "directory", "folder", "file", "file_path"}

type searchTool struct {
	w *workspace.Workspace
	o Options
}

// Spec implements tools.Tool.
func (*searchTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "search",
		Description: "Search file contents (not names) line by line, by RE2 regex. Several lines in query are alternatives. path: directory or file.",
		Params: []tools.Param{
			{Name: "query", Type: tools.String, Required: true, Aliases: []string{"pattern", "regex", "regexp", "q", "text"}},
			{Name: "path", Type: tools.String, Aliases: pathAliases},
			{Name: "max_results", Type: tools.Integer, Min: 1, Max: 1000, Aliases: []string{"limit", "max", "max_matches"}},
			{Name: "literal", Type: tools.Boolean, Aliases: []string{"fixed_strings"}},
			{Name: "mode", Type: tools.String, Enum: []string{modeContent, modeFiles}, Aliases: []string{"output_mode"}},
			{Name: "glob", Type: tools.String, Aliases: []string{"include", "file_pattern"}},
			{Name: "file_type", Type: tools.String, Description: `e.g. "go"`, Aliases: []string{"type", "lang", "language"}},
			{Name: "context_lines", Type: tools.Integer, Min: 0, Max: 5, Aliases: []string{"context"}},
			{Name: "max_chars", Type: tools.Integer, Min: 256, Max: 32768},
		},
	}
}

const (
	modeContent = "content"
	modeFiles   = "files"

	defaultResults = 50
	defaultContext = 2
	defaultChars   = 8192
)

// job is one validated search.
type job struct {
	query     *query
	text      string // of the query
	filter    filter
	start     workspace.Path
	filesOnly bool
	context   int  // lines around a hit
	shrink    bool // context may be left out to show more hits
	chars     int
	found     found
}

// Plan implements tools.Tool.
func (t *searchTool) Plan(ctx context.Context, call tools.Call) (tools.Action, error) {
	p, err := resolve(t.w, call.Args)
	if err != nil {
		return tools.Action{}, err
	}
	text := call.Args.Text("query")
	q, err := parseQuery(text, call.Args.Bool("literal"))
	if err != nil {
		return tools.Action{}, err
	}
	f, err := newFilter(call.Args.Text("glob"), call.Args.Text("file_type"), t.w.Root(), p.Rel())
	if err != nil {
		return tools.Action{}, err
	}
	j := &job{query: q, text: text, filter: f, start: p,
		filesOnly: call.Args.Text("mode") == modeFiles,
		context:   call.Args.Int("context_lines", defaultContext),
		shrink:    !call.Args.Has("context_lines"),
		chars:     min(call.Args.Int("max_chars", defaultChars), t.o.MaxOutput-reserved),
	}
	j.found.most = call.Args.Int("max_results", defaultResults)
	summary := fmt.Sprintf("search %q", cutText(text, 60))
	if p.Rel() != "." {
		summary += " in " + quoteName(p.Rel())
	}
	do := func(ctx context.Context, _ tools.Progress) tools.Result { return t.run(ctx, j) }
	return tools.NewAction(request(call, "search", summary, p), do), nil
}

// resolve finds the directory or file that a call names.
func resolve(w *workspace.Workspace, args tools.Args) (workspace.Path, error) {
	text := args.Text("path")
	if text == "" {
		text = "."
	}
	p, err := w.Resolve(text)
	switch {
	case err != nil:
		return p, err
	case !p.Exists():
		return p, fmt.Errorf("path %q does not exist; list_files of %q shows what is there", text, path.Dir(p.Rel()))
	case !p.Info().IsDir() && !p.Info().Mode().IsRegular():
		return p, fmt.Errorf("path %q is neither a directory nor a regular file", text)
	}
	return p, nil
}

func request(call tools.Call, tool, summary string, p workspace.Path) approval.Request {
	return approval.Request{
		CallID:  call.ID,
		Tool:    tool,
		Effect:  approval.Read,
		Summary: summary,
		Paths:   []approval.PathUse{{Path: p.Abs(), Rel: p.Rel()}},
		Args:    string(call.Args.JSON()),
		MustAsk: p.ReadReasons(),
	}
}

// cutText cuts text to a number of runes and marks the cut.
func cutText(text string, runes int) string {
	if utf8.RuneCountInString(text) <= runes {
		return text
	}
	return string([]rune(text)[:runes-1]) + ellipsis
}

func (t *searchTool) run(ctx context.Context, j *job) tools.Result {
	var stop atomic.Bool
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	total, err := newWalker(t.w).search(j, &stop)
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "The search was cancelled.", Line: "cancelled"}
	}
	if err != nil {
		return tools.Fail("search %s: %v", quoteName(j.start.Rel()), err)
	}
	return j.result(total)
}

// total sums up a search.
type total struct {
	files   int // searched
	skipped int // not wanted by glob or type
	left    left
	named   bool // the search was of one named file
	relaxed bool // the ignore rules of the start and above did not count
}

func (w *walker) search(j *job, stop *atomic.Bool) (total, error) {
	holder, name, err := w.enter(j.start.Rel())
	if err != nil {
		return total{}, err
	}
	defer holder.release()
	if !j.start.Info().IsDir() {
		return w.searchFile(j, holder, name, stop)
	}
	sum, err := w.searchTree(j, holder, name, false, stop)
	if err == nil && sum.files+sum.skipped == 0 && sum.left.ignored > 0 {
		// All that was named is ignored: then the rules do not count.
		return w.searchTree(j, holder, name, true, stop)
	}
	return sum, err
}

func (w *walker) searchTree(j *job, holder *directory, name string, lax bool, stop *atomic.Bool) (total, error) {
	start, err := holder.named(name, j.start.Info(), lax)
	if err != nil {
		return total{}, err
	}
	var visitors []visitor
	var scanners []*scanner
	for range max(2, runtime.GOMAXPROCS(0)) {
		s := &scanner{job: j, finder: newFinder(j.query), stop: stop}
		scanners = append(scanners, s)
		visitors = append(visitors, s)
	}
	(&sweep{walker: w, stop: stop}).run(task{dir: start}, visitors)
	sum := total{relaxed: lax}
	for _, s := range scanners {
		sum.files += s.files
		sum.skipped += s.skipped
		sum.left.add(&s.left)
	}
	return sum, nil
}

// searchFile searches a file that was named, whatever rules say of it.
func (w *walker) searchFile(j *job, holder *directory, name string, stop *atomic.Bool) (total, error) {
	s := &scanner{job: j, finder: newFinder(j.query), stop: stop, named: true}
	s.open(holder, name, j.start.Rel())
	switch {
	case s.left.unreadable > 0:
		return total{}, s.left.firstCause
	case s.files == 0:
		return total{}, workspace.ErrChanged
	}
	return total{files: s.files, left: s.left, named: true}, nil
}

// planned reports whether an open file is the one that was planned, with no more
// hard links than it had.
func (j *job) planned(st *unix.Stat_t) bool {
	before, ok := j.start.Info().Sys().(*syscall.Stat_t)
	return ok && same(identityOf(st), j.start.Info()) && uint64(st.Nlink) <= max(1, uint64(before.Nlink))
}

func newWalker(w *workspace.Workspace) *walker {
	k := &walker{root: w.Root()}
	if info, err := os.Stat(w.SettingsDir()); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			k.settings = identity{uint64(st.Dev), st.Ino}
		}
	}
	return k
}
