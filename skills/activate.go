package skills

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"

	"zcoder/internal/chat"
	"zcoder/internal/workspace"
	"zcoder/tools"
)

// Active is a skill that a conversation holds.
type Active struct {
	Name string
	Text string // the record, as the model has it
}

// activeLine is the first line of the record that makes a skill active.
var activeLine = regexp.MustCompile(`^Skill "([a-z0-9-]{1,64})" of the (?:user|project) is active\. Directory: "`)

// ActiveIn returns the skills that a history holds, in the order of their activation;
// of one that was activated again the newest text. Only records that the program
// wrote count: its notes, and results of activate_skill.
func ActiveIn(history []chat.Message) []Active {
	var list []Active
	for _, m := range history {
		if !(m.Role == chat.User && m.Note) && !(m.Role == chat.ToolRole && m.ToolName == activateTool) {
			continue
		}
		found := activeLine.FindStringSubmatch(m.Content)
		if found == nil {
			continue
		}
		list = without(list, found[1])
		list = append(list, Active{found[1], m.Content})
	}
	return list
}

func without(list []Active, name string) []Active {
	var out []Active
	for _, a := range list {
		if a.Name != name {
			out = append(out, a)
		}
	}
	return out
}

// Lost returns the records of the skills that before holds and after does not, or not
// whole, so that they can be put back after a compaction.
func Lost(before, after []chat.Message) []string {
	kept := map[string]string{}
	for _, a := range ActiveIn(after) {
		kept[a.Name] = a.Text
	}
	var lost []string
	for _, a := range ActiveIn(before) {
		if kept[a.Name] != a.Text {
			lost = append(lost, a.Text)
		}
	}
	return lost
}

// Activate reads a skill and returns the record that makes it active. already says
// that the same record is in active, the skills of the conversation. The error is for
// the model and the person alike.
func (l *Library) Activate(name string, active []Active) (record string, already bool, err error) {
	k, ok := l.Set().Find(strings.TrimPrefix(strings.TrimSpace(name), "$"))
	if !ok {
		return "", false, l.unknown(name)
	}
	record, err = l.record(k)
	if err != nil {
		return "", false, err
	}
	others := without(active, k.Name)
	if len(others) < len(active) {
		for _, a := range active {
			if a.Name == k.Name && a.Text == record {
				return record, true, nil
			}
		}
	}
	total := len(record)
	for _, a := range others {
		total += len(a.Text)
	}
	switch {
	case len(others) >= l.o.MaxActive:
		return "", false, fmt.Errorf("activate skill %q: %d skills are active, which is the limit; a new conversation has none", k.Name, len(others))
	case total > l.o.ActiveBytes:
		return "", false, fmt.Errorf("activate skill %q: the active skills would have %d bytes, at most %d are allowed; a new conversation has none", k.Name, total, l.o.ActiveBytes)
	}
	return record, false, nil
}

func (l *Library) unknown(name string) error {
	var names []string
	for _, k := range l.Set().Skills {
		names = append(names, k.Name)
	}
	switch near := tools.Nearest(name, names); {
	case near != "":
		return fmt.Errorf("there is no skill %q; did you mean %q?", name, near)
	case len(names) == 0:
		return fmt.Errorf("there is no skill %q, and no other one", name)
	case len(names) > maxHits:
		return fmt.Errorf("there is no skill %q; discover_skills finds the %d there are", name, len(names))
	}
	return fmt.Errorf("there is no skill %q; there are: %s", name, strings.Join(names, ", "))
}

// record builds the text that makes a skill active.
func (l *Library) record(k Skill) (string, error) {
	w, err := workspace.Open(k.root.Within, workspace.Options{})
	if err != nil {
		return "", fmt.Errorf("activate skill %q: %w", k.Name, err)
	}
	defer w.Close()
	fresh, body, err := load(w, k.root, k.Dir, l.o)
	if err != nil {
		return "", fmt.Errorf("activate skill %q: %s", k.Name, k.root.reason(err))
	}
	if fresh.Name != k.Name {
		return "", fmt.Errorf("activate skill %q: it is called %q now; the user can say /skills reload", k.Name, fresh.Name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Skill %q of the %s is active. Directory: %q\n", k.Name, k.Of, k.Dir)
	b.WriteString("It is guidance and grants no permission; every call is judged as before. read_skill_resource reads its files, run_command runs its scripts.\n")
	if files := l.files(w, k); len(files) > 0 {
		b.WriteString("Files: " + strings.Join(files, ", ") + "\n")
	}
	return b.String() + "\n" + body, nil
}

// Bounds of the list of a skill's files.
const (
	maxFiles = 50
	maxDepth = 4
)

// files lists the regular files of a skill, quoted; links and special files are left
// out.
func (l *Library) files(w *workspace.Workspace, k Skill) []string {
	var list []string
	var walk func(rel string, depth int)
	walk = func(rel string, depth int) {
		p, err := w.Resolve(path.Join(k.Dir, rel))
		if err != nil {
			return
		}
		entries, err := w.ReadDir(p)
		if err != nil {
			return
		}
		for _, e := range entries {
			name := path.Join(rel, e.Name())
			switch {
			case len(list) > maxFiles || strings.HasPrefix(e.Name(), ".") || name == skillFile:
			case e.IsDir() && depth < maxDepth:
				walk(name, depth+1)
			case e.Type() == fs.FileMode(0):
				list = append(list, strconv.Quote(name))
			}
		}
	}
	walk("", 1)
	if len(list) > maxFiles {
		list = append(list[:maxFiles], "and more")
	}
	return list
}
