package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

type listTool struct {
	w *workspace.Workspace
	o Options
}

// Spec implements tools.Tool.
func (*listTool) Spec() tools.Spec {
	return tools.Spec{
		Name:        "list_files",
		Description: "List files and directories below path, nearest first. Honours ignore files; dot names are hidden unless named in path.",
		Params: []tools.Param{
			{Name: "path", Type: tools.String, Aliases: pathAliases},
			{Name: "max_entries", Type: tools.Integer, Min: 1, Max: 5000, Aliases: []string{"limit", "max", "max_results"}},
		},
	}
}

const defaultEntries = 100

// Plan implements tools.Tool.
func (t *listTool) Plan(_ context.Context, call tools.Call) (tools.Action, error) {
	p, err := resolve(t.w, call.Args)
	if err != nil {
		return tools.Action{}, err
	}
	l := &listing{walker: newWalker(t.w), start: p, room: call.Args.Int("max_entries", defaultEntries), chars: t.o.MaxOutput - reserved}
	do := func(ctx context.Context, _ tools.Progress) tools.Result { return l.run(ctx) }
	return tools.NewAction(request(call, "list_files", "list_files "+quoteName(p.Rel()), p), do), nil
}

// listing is one list of a tree, nearest entries first: a level is listed when all
// above it is. When a level does not fit its directories share the room.
type listing struct {
	*walker
	start workspace.Path
	room  int // entries that still fit
	chars int // bytes that still fit
	total int // entries listed
	stop  atomic.Bool
	left  left
}

// folder is a directory of a listing.
type folder struct {
	label   string // path relative to the workspace with a slash at the end, "" for its root
	rules   ignores
	entries []listed
	shown   int
	opened  bool
	fault   string // why it could not be read
}

// listed is an entry of a folder: one with below set is a directory.
type listed struct {
	name  string
	note  string // after the name: the target of a link, the kind of a special file
	below *folder
}

func (l *listing) run(ctx context.Context) tools.Result {
	defer context.AfterFunc(ctx, func() { l.stop.Store(true) })()
	if !l.start.Info().IsDir() {
		text := fmt.Sprintf("%s (a file, %d bytes)\n", quoteName(l.start.Rel()), l.start.Info().Size())
		return tools.Result{Status: tools.OK, Text: text, Line: count(1, "entry")}
	}
	top, relaxed, err := l.tree()
	if ctx.Err() != nil {
		return tools.Result{Status: tools.Cancelled, Text: "The listing was cancelled.", Line: "cancelled"}
	}
	if err != nil {
		return tools.Fail("list %s: %v", quoteName(l.start.Rel()), err)
	}
	return tools.Result{Status: tools.OK, Text: l.text(top, relaxed), Line: count(l.total, "entry")}
}

// tree lists the start. When the rules ignore all it holds, they do not count: it
// was named.
func (l *listing) tree() (top *folder, relaxed bool, err error) {
	holder, name, err := l.enter(l.start.Rel())
	if err != nil {
		return nil, false, err
	}
	defer holder.release()
	top, err = l.top(holder, name, false)
	if err == nil && len(top.entries) == 0 && l.left.ignored > 0 {
		l.left, relaxed = left{}, true
		top, err = l.top(holder, name, true)
	}
	if err == nil {
		l.levels(top)
	}
	return top, relaxed, err
}

// top reads the start itself.
func (l *listing) top(holder *directory, name string, lax bool) (*folder, error) {
	d, err := holder.named(name, l.start.Info(), lax)
	if err != nil {
		return nil, err
	}
	defer d.release()
	f := &folder{}
	if d.rel != "" {
		f.label = d.rel + "/"
	}
	return f, l.fill(f, d)
}

// fill reads the entries of a folder.
func (l *listing) fill(f *folder, d *directory) error {
	v, err := l.look(d, &l.left)
	if err != nil {
		return err
	}
	f.opened, f.rules = true, d.rules
	for _, name := range v.files {
		f.entries = append(f.entries, listed{name: name})
	}
	for _, name := range v.dirs {
		f.entries = append(f.entries, listed{name: name, below: &folder{label: f.label + name + "/"}})
	}
	for _, name := range v.links {
		f.entries = append(f.entries, listed{name: name, note: " -> " + linkTarget(d, name)})
	}
	for _, o := range v.odd {
		f.entries = append(f.entries, listed{name: o.name, note: " (" + o.kind + ")"})
	}
	slices.SortFunc(f.entries, func(a, b listed) int { return strings.Compare(a.sortKey(), b.sortKey()) })
	return nil
}

func (e *listed) sortKey() string {
	if e.below != nil {
		return e.name + "/"
	}
	return e.name
}

func linkTarget(d *directory, name string) string {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(d.fd, name, buf)
	if err != nil {
		return "?"
	}
	return quoteName(string(buf[:n]))
}

// levels lists level after level until the room is used up.
func (l *listing) levels(top *folder) {
	level := []*folder{top}
	for len(level) > 0 && l.share(level) && !l.stop.Load() {
		var next []*folder
		for _, f := range level {
			for i := range f.entries {
				if below := f.entries[i].below; below != nil {
					l.open(f, below)
					next = append(next, below)
				}
			}
			if l.stop.Load() {
				return
			}
		}
		level = next
	}
}

// open reads a folder below one that has been read.
func (l *listing) open(above, f *folder) {
	root, err := openRoot(l.root)
	if err != nil {
		f.fault = err.Error()
		return
	}
	defer root.release()
	d, err := root.descend(strings.TrimSuffix(f.label, "/"))
	if err != nil {
		f.fault = err.Error()
		return
	}
	defer d.release()
	if d.id == l.settings {
		f.fault = "the settings directory, not listed"
		return
	}
	d.rules = above.rules
	if err := l.fill(f, d); err != nil {
		f.fault = err.Error()
	}
}

// share gives the folders of a level room for an entry each, in turn. It reports
// whether all entries fit and there is room for more.
func (l *listing) share(level []*folder) bool {
	for more := true; more; {
		more = false
		for _, f := range level {
			if f.shown == len(f.entries) {
				continue
			}
			e := &f.entries[f.shown]
			cost := len(quoteName(f.label+e.sortKey())) + len(e.note) + 12
			if l.room == 0 || cost > l.chars {
				return false
			}
			l.room--
			l.chars -= cost
			l.total++
			f.shown++
			more = true
		}
	}
	return l.room > 0
}

// text prints the listing.
func (l *listing) text(top *folder, relaxed bool) string {
	var b strings.Builder
	partial := top.write(&b)
	if top.shown < len(top.entries) {
		fmt.Fprintf(&b, "(+%d)\n", len(top.entries)-top.shown)
	}
	switch {
	case len(top.entries) == 0 && l.left.hidden+l.left.ignored+len(l.left.dropped) > 0:
		b.WriteString("Nothing is shown of this directory.\n")
	case len(top.entries) == 0:
		b.WriteString("The directory is empty.\n")
	case partial:
		b.WriteString("Partial: (+N) marks N entries left out, (+) a directory that was not opened. List it by path, or raise max_entries.\n")
	}
	if relaxed {
		b.WriteString("All of this is ignored by an ignore file; it is listed because it was named.\n")
	}
	return b.String() + l.left.notes("listed")
}

// write prints what is shown of a folder and reports whether something is not.
func (f *folder) write(b *strings.Builder) (partial bool) {
	for i := range f.shown {
		e := &f.entries[i]
		b.WriteString(quoteName(f.label+e.sortKey()) + e.note)
		if e.below != nil {
			mark, missing := e.below.mark()
			b.WriteString(mark)
			partial = partial || missing
		}
		b.WriteByte('\n')
		if e.below != nil {
			partial = e.below.write(b) || partial
		}
	}
	return partial || f.shown < len(f.entries)
}

// mark says behind the name of a directory what is not shown of it.
func (f *folder) mark() (text string, missing bool) {
	switch {
	case f.fault != "":
		return " (" + f.fault + ")", false
	case !f.opened:
		return " (+)", true
	case f.shown < len(f.entries):
		return fmt.Sprintf(" (+%d)", len(f.entries)-f.shown), true
	}
	return "", false
}
