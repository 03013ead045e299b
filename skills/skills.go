// Package skills finds skills (directories with a SKILL.md, as agentskills.io
// describes them), lists them for the prompt, activates them and reads their files.
//
// A skill is text. It starts nothing and grants nothing: what it says a model may
// try, and the gate judges each call as before. The package knows the fixed roots that
// it is given, the files below them and which skills a history holds; it knows no
// policy, no network and no terminal. internal/app makes a Library and hands its tools
// to the loop.
package skills

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"zcoder/internal/guidetext"
	"zcoder/internal/workspace"
)

// Bounds that no setting changes.
const (
	maxName        = 64   // bytes of a name
	maxDescription = 1024 // characters of a description
	maxEntries     = 1000 // entries looked at in one root
)

// skillFile is the file that makes a directory a skill.
const skillFile = "SKILL.md"

// Root is a directory whose directories are skills.
type Root struct {
	Dir string // absolute; need not exist
	// Within is the directory that links below Dir may lead to, the project or the
	// user's home; what leads out of it is ignored.
	Within string
	Of     string // "user" or "project", as shown
}

// Options say where skills are found and bound them. Zero bounds allow nothing.
type Options struct {
	Roots       []Root // of two skills of one name that of the later root counts
	MaxSkills   int    // skills that count
	MaxActive   int    // skills active in one conversation
	MaxBytes    int    // of one SKILL.md
	ActiveBytes int    // of all that are active
	MaxOutput   int    // characters of one tool result
}

// Skill is one skill that counts.
type Skill struct {
	Name        string
	Description string // one line, with what cannot be seen made visible
	Of          string // whose it is: the root's Of
	Dir         string // absolute, as found below its root
	Size        int    // bytes of SKILL.md
	Sum         string // SHA-256 of SKILL.md, in hexadecimal
	// Notes are what a person should know: hidden text, a frontmatter that had to be
	// guessed, keys that have no effect.
	Notes []string

	root Root
}

// Ignored is a directory that does not count as a skill, and why.
type Ignored struct {
	Path   string
	Reason string
}

// Shadowed is a skill in whose stead another one of its name counts.
type Shadowed struct {
	Name, Dir, By string
}

// Set is what one look at the roots found. It does not change.
type Set struct {
	Skills   []Skill // by name
	Ignored  []Ignored
	Shadowed []Shadowed
}

// Library is the skills as they are known now. Its methods may be called from several
// goroutines.
type Library struct {
	o   Options
	set atomic.Pointer[Set]
}

// Open looks at the roots. What is wrong with them is in the set, not an error.
func Open(o Options) *Library {
	l := &Library{o: o}
	l.Reload()
	return l
}

// Reload looks at the roots again and returns what it found.
func (l *Library) Reload() *Set {
	s := &Set{}
	found := map[string]Skill{}
	for _, root := range l.o.Roots {
		s.scan(root, l.o, found)
	}
	for _, skill := range found {
		s.Skills = append(s.Skills, skill)
	}
	s.bound(l.o)
	l.set.Store(s)
	return s
}

// Set returns what was found last.
func (l *Library) Set() *Set { return l.set.Load() }

// Find returns the skill of a name.
func (s *Set) Find(name string) (Skill, bool) {
	i, ok := slices.BinarySearchFunc(s.Skills, name, func(k Skill, name string) int { return cmp.Compare(k.Name, name) })
	if !ok {
		return Skill{}, false
	}
	return s.Skills[i], true
}

// bound keeps as many skills as may count, those of later roots first, and sorts them.
func (s *Set) bound(o Options) {
	rank := func(k Skill) int { return slices.IndexFunc(o.Roots, func(r Root) bool { return r.Dir == k.root.Dir }) }
	slices.SortFunc(s.Skills, func(a, b Skill) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a.Name, b.Name))
	})
	for _, k := range s.Skills[min(len(s.Skills), o.MaxSkills):] {
		s.ignore(k.Dir, fmt.Sprintf("there are more than %d skills", o.MaxSkills))
	}
	s.Skills = s.Skills[:min(len(s.Skills), o.MaxSkills)]
	slices.SortFunc(s.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
}

func (s *Set) ignore(path, reason string) { s.Ignored = append(s.Ignored, Ignored{path, reason}) }

// scan adds the skills of one root to found.
func (s *Set) scan(root Root, o Options, found map[string]Skill) {
	w, err := workspace.Open(root.Within, workspace.Options{})
	if err != nil {
		return // nothing is there
	}
	defer w.Close()
	dir, err := w.Resolve(root.Dir)
	switch {
	case err != nil:
		s.ignore(root.Dir, root.reason(err))
		return
	case !dir.Exists():
		return
	case !dir.Info().IsDir():
		s.ignore(root.Dir, "it is not a directory")
		return
	}
	entries, err := w.ReadDir(dir)
	if err != nil {
		s.ignore(root.Dir, root.reason(err))
		return
	}
	for i, e := range entries {
		full := filepath.Join(root.Dir, e.Name())
		if i >= maxEntries {
			s.ignore(root.Dir, fmt.Sprintf("only the first %d of its %d entries are looked at", maxEntries, len(entries)))
			return
		}
		if strings.HasPrefix(e.Name(), ".") || e.Type().IsRegular() {
			continue
		}
		k, _, err := load(w, root, full, o)
		if err != nil {
			s.ignore(full, root.reason(err))
			continue
		}
		if before, twice := found[k.Name]; twice && before.Dir != k.Dir {
			s.Shadowed = append(s.Shadowed, Shadowed{k.Name, before.Dir, k.Dir})
		}
		found[k.Name] = k
	}
}

// reason turns an error about a path into words about the root.
func (r Root) reason(err error) string {
	return strings.ReplaceAll(err.Error(), "the workspace", "the "+r.boundary())
}

func (r Root) boundary() string {
	if r.Of == "project" {
		return "project"
	}
	return "user's directory"
}

var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func checkName(name string) error {
	if len(name) > maxName || !validName.MatchString(name) {
		return fmt.Errorf("the name %q is not allowed: give at most %d of a-z, 0-9 and single dashes between them", name, maxName)
	}
	return nil
}

// load reads the skill in a directory: its facts and the body of its SKILL.md as a
// model may get it.
func load(w *workspace.Workspace, root Root, dir string, o Options) (Skill, string, error) {
	content, err := readSkillFile(w, dir, o.MaxBytes)
	if err != nil {
		return Skill{}, "", err
	}
	f, err := readFront(string(content))
	if err != nil {
		return Skill{}, "", err
	}
	sum := sha256.Sum256(content)
	k := Skill{Name: f.name, Of: root.Of, Dir: dir, Size: len(content), Sum: hex.EncodeToString(sum[:]), root: root}
	for _, n := range f.notes {
		k.Notes = append(k.Notes, n.text)
	}
	base := filepath.Base(dir)
	if k.Name == "" {
		k.Name = base
		k.Notes = append(k.Notes, "it has no name; that of its directory is taken")
	}
	if err := checkName(k.Name); err != nil {
		return Skill{}, "", err
	}
	if k.Name != base {
		k.Notes = append(k.Notes, fmt.Sprintf("its name %q is not that of its directory", k.Name))
	}
	description, hidden := guidetext.Clean(f.description)
	k.Description = strings.Join(strings.Fields(description), " ")
	if k.Description == "" {
		return Skill{}, "", errors.New("it has no description")
	}
	if r := []rune(k.Description); len(r) > maxDescription {
		k.Description = string(r[:maxDescription])
		k.Notes = append(k.Notes, fmt.Sprintf("its description is cut to %d characters", maxDescription))
	}
	body, more := guidetext.Clean(f.body)
	k.Notes = append(k.Notes, append(hidden, more...)...)
	return k, strings.TrimSpace(body), nil
}

// readSkillFile reads the SKILL.md of a directory. It must be a regular file that
// resolves inside the directory.
func readSkillFile(w *workspace.Workspace, dir string, limit int) ([]byte, error) {
	d, err := w.Resolve(dir)
	if err != nil {
		return nil, err
	}
	if !d.Exists() || !d.Info().IsDir() {
		return nil, errors.New("it is not a directory")
	}
	p, err := w.Resolve(dir + "/" + skillFile)
	switch {
	case err != nil:
		return nil, err
	case !p.Exists():
		return nil, errors.New("it holds no " + skillFile)
	case !below(d, p):
		return nil, errors.New("its " + skillFile + " leads outside its directory")
	case len(p.ReadReasons()) > 0:
		return nil, errors.New("its " + skillFile + " is not read: " + strings.Join(p.ReadReasons(), "; "))
	}
	content, _, err := w.Read(p, int64(limit))
	if errors.Is(err, workspace.ErrTooLarge) {
		return nil, fmt.Errorf("its %s has %d bytes, at most %d are read", skillFile, p.Info().Size(), limit)
	}
	return content, err
}

// below reports whether p lies in the directory d, both resolved.
func below(d, p workspace.Path) bool { return strings.HasPrefix(p.Abs(), d.Abs()+"/") }
