package patch

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"zcoder/internal/diff"
)

// shown is what people and the model see of a plan.
type shown struct {
	diff  string // for people: the whole change
	names string // of the files, for the summary
	text  string // for the model, after success
	line  string // outcome in a few words
}

// maxNames bounds the files that a summary lists.
const maxNames = 4

// describe shows the changes as they will be on disk. What a patch of size bytes
// shows is bounded in proportion to it.
func (p *plan) describe(size int) shown {
	var all, text strings.Builder
	var names []string
	text.WriteString("patch applied:")
	added, removed := 0, 0
	for _, f := range p.files {
		body := f.diff(1<<20 + 4*size)
		plus, minus := f.stat(body)
		added, removed = added+plus, removed+minus
		all.WriteString(body)
		names = append(names, f.outcomeName())
		fmt.Fprintf(&text, "\n%s (%s+%d -%d)", f.outcomeName(), f.outcomeVerb(), plus, minus)
	}
	for _, n := range p.notes {
		text.WriteString("\nnote: " + n)
	}
	s := shown{diff: all.String(), text: text.String(), line: fmt.Sprintf("+%d -%d in %d file", added, removed, len(p.files))}
	if len(p.files) != 1 {
		s.line += "s"
	}
	if len(names) > maxNames {
		names = append(names[:maxNames], fmt.Sprintf("and %d more", len(names)-maxNames))
	}
	s.names = strings.Join(names, ", ")
	return s
}

func (f *file) outcomeName() string {
	if f.to != "" {
		return f.path.Rel() + " -> " + f.target.Rel()
	}
	return f.path.Rel()
}

func (f *file) outcomeVerb() string {
	switch {
	case f.op == create:
		return "new, "
	case f.op == remove:
		return "deleted, "
	case f.moves():
		return "moved, "
	case f.keep:
		return "copied, "
	default:
		return ""
	}
}

// diff shows the change of one file.
func (f *file) diff(bound int) string {
	name := f.path.Rel()
	o := diff.Options{MaxBytes: bound}
	switch f.op {
	case create:
		head := ""
		if f.mode != 0 {
			head = "new file mode 100755\n"
		}
		if len(f.new) == 0 {
			return head + "--- " + diff.DevNull + "\n+++ " + diff.Name("b/"+name) + "\nnew empty file\n"
		}
		return head + diff.Unified("", "b/"+name, nil, f.new, o)
	case remove:
		return fmt.Sprintf("--- %s\n+++ %s\nfile deleted: %d bytes\n", diff.Name("a/"+name), diff.DevNull, f.stamp.Size)
	}
	head := f.modeLines()
	target := name
	if f.to != "" {
		target = f.target.Rel()
		verb := "rename"
		if f.keep {
			verb = "copy"
		}
		head += fmt.Sprintf("%s from %s\n%s to %s\n", verb, bareName(name), verb, bareName(target))
	}
	body := diff.Unified("a/"+name, "b/"+target, f.old, f.new, o)
	if body == "" && f.to == "" {
		body = "--- " + diff.Name("a/"+name) + "\n+++ " + diff.Name("b/"+name) + "\n"
	}
	return head + body
}

func bareName(name string) string { return strings.TrimSuffix(diff.Name(name), "\t") }

func (f *file) modeLines() string {
	if f.mode == 0 {
		return ""
	}
	return fmt.Sprintf("old mode %s\nnew mode %s\n", gitMode(f.path.Info().Mode()), gitMode(f.mode))
}

func gitMode(m fs.FileMode) string { return fmt.Sprintf("100%03o", m.Perm()) }

// stat counts the lines of the change, in the diff unless that was cut.
func (f *file) stat(body string) (added, removed int) {
	if f.op == remove {
		lines := bytes.Count(f.old, []byte{'\n'})
		if len(f.old) > 0 && f.old[len(f.old)-1] != '\n' {
			lines++
		}
		return 0, lines
	}
	if strings.HasSuffix(body, " not shown]\n") {
		return diff.Stat(f.old, f.new)
	}
	_, body, _ = strings.Cut(body, "\n@@")
	return strings.Count(body, "\n+"), strings.Count(body, "\n-")
}

var (
	entity = regexp.MustCompile(`&(?:lt|gt|amp|quot|#34|#39);`)
	markup = []string{".html", ".htm", ".xhtml", ".xml", ".svg", ".md", ".markdown", ".vue", ".jsx", ".tsx", ".svelte", ".php", ".erb", ".tmpl", ".ejs", ".rss"}
)

// addsEntities reports HTML entities in new lines of a file that had none and is no
// markup by its name: a sign that the patch was escaped on its way.
func (f *file) addsEntities() bool {
	if slices.Contains(markup, strings.ToLower(path.Ext(f.path.Rel()))) || entity.Match(f.old) {
		return false
	}
	for _, h := range f.hunks {
		for _, l := range h.lines {
			if l.mark == '+' && entity.MatchString(l.text) {
				return true
			}
		}
	}
	return false
}
