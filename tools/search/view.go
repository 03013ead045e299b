package search

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// walker knows what both tools leave out. It does not change.
type walker struct {
	root     string   // absolute path of the workspace
	settings identity // the program's own directory, never entered; zero when it is unknown
}

// dropped are directories that are left out unless they are named.
func dropped(name string) bool {
	switch name {
	case ".git", "node_modules", "vendor", "dist", "build", "target", "coverage", ".next", ".venv", "venv", "__pycache__":
		return true
	}
	return false
}

const tempPrefix = ".zcoder-tmp-"

// view is what a directory shows of its entries, in no order.
type view struct {
	files []string // regular files
	dirs  []string
	links []string
	odd   []oddEntry
}

type oddEntry struct {
	name string
	kind string
}

// look reads a directory, adds its own ignore files to its rules, and leaves out
// what is hidden, ignored or dropped.
func (w *walker) look(d *directory, left *left) (view, error) {
	entries, err := d.list(w.root)
	if err != nil {
		return view{}, err
	}
	if !d.lax {
		d.ownRules(entries)
	}
	var v view
	for _, e := range entries {
		name, isDir := e.Name(), e.IsDir()
		switch {
		case name[0] == '.':
			if !strings.HasPrefix(name, tempPrefix) {
				left.hidden++
			}
			continue
		case isDir && dropped(name):
			left.drop(name)
			continue
		case d.rules != ignores{} && d.rules.ignored(name, d.path(name), isDir):
			left.ignored++
			continue
		}
		switch kind := e.Type(); {
		case kind.IsRegular():
			v.files = append(v.files, name)
		case isDir:
			v.dirs = append(v.dirs, name)
		case kind&fs.ModeSymlink != 0:
			v.links = append(v.links, name)
		default:
			v.odd = append(v.odd, oddEntry{name, kindName(kind)})
		}
	}
	return v, nil
}

func kindName(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "FIFO"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "special"
}

// ownRules adds the ignore files that are among the entries of d.
func (d *directory) ownRules(entries []fs.DirEntry) {
	for _, e := range entries {
		switch e.Name() {
		case ".ignore":
			d.rules.add(kindIgnore, d.readRules(".ignore"))
		case ".gitignore":
			d.rules.add(kindGit, d.readRules(".gitignore"))
		case ".git":
			d.rules.add(kindExclude, d.readRules(".git/info/exclude"))
		}
	}
}

// rulesAbove adds the ignore files of a directory whose entries are not read.
func (d *directory) rulesAbove() {
	d.rules.add(kindIgnore, d.readRules(".ignore"))
	d.rules.add(kindGit, d.readRules(".gitignore"))
	d.rules.add(kindExclude, d.readRules(".git/info/exclude"))
}

// enter opens the directory that holds rel, which the person or the model named, and
// returns it with the rules in force there and the last component of rel ("" for
// the root). Rules that ignore rel or a directory above it do not count below that:
// it was named. The caller releases the directory.
func (w *walker) enter(rel string) (holder *directory, name string, err error) {
	at, err := openRoot(w.root)
	if err != nil {
		return nil, "", err
	}
	if rel == "." {
		return at, "", nil
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		at.rulesAbove()
		if at.rules.ignored(part, at.path(part), true) {
			at.rules = ignores{}
		}
		if i == len(parts)-1 {
			break
		}
		next, err := at.child(part)
		at.release()
		if err != nil {
			return nil, "", err
		}
		at = next
	}
	return at, parts[len(parts)-1], nil
}

// left counts what was left out.
type left struct {
	hidden, ignored int
	links, odd      int
	hardLinks       int
	secret          int
	binary          int // those in which the text seems to be
	unreadable      int
	firstPath       string // of the unreadable ones, by name
	firstCause      error
	dropped         map[string]int
	settings        bool // the program's own directory
}

func (l *left) drop(name string) {
	if l.dropped == nil {
		l.dropped = map[string]int{}
	}
	l.dropped[name]++
}

// fail notes an entry that could not be read. One that is gone by now is none.
func (l *left) fail(path string, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if l.unreadable++; l.firstPath == "" || path < l.firstPath {
		l.firstPath, l.firstCause = path, err
	}
}

// add adds the counts of o.
func (l *left) add(o *left) {
	l.hidden += o.hidden
	l.ignored += o.ignored
	l.links += o.links
	l.odd += o.odd
	l.hardLinks += o.hardLinks
	l.secret += o.secret
	l.binary += o.binary
	l.unreadable += o.unreadable
	if o.firstPath != "" && (l.firstPath == "" || o.firstPath < l.firstPath) {
		l.firstPath, l.firstCause = o.firstPath, o.firstCause
	}
	for name, n := range o.dropped {
		for range n {
			l.drop(name)
		}
	}
	l.settings = l.settings || o.settings
}

// droppedNames returns the names of dropped directories, sorted.
func (l *left) droppedNames() []string {
	var names []string
	for name := range l.dropped {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
