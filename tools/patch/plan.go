package patch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"zcoder/internal/workspace"
)

// plan is a patch on its way from sections to changes.
type plan struct {
	w       *workspace.Workspace
	maxFile int64
	held    int64 // bytes of all files that were read
	files   []*file
	changes []workspace.Change
	mustAsk []string
	notes   []string
}

// file is a section with the file that it means.
type file struct {
	section
	path   workspace.Path
	target workspace.Path // of a move or a copy
	stamp  workspace.Stamp
	old    []byte
	new    []byte
	mode   fs.FileMode // new permission bits; 0: kept
}

func (f *file) moves() bool { return f.to != "" && !f.keep }

// take resolves the names of a section. Further updates of one file join the first;
// all are matched against the file as it is.
func (p *plan) take(s section) error {
	at, err := p.resolve(&s)
	if err != nil {
		return err
	}
	f := &file{section: s, path: at}
	if s.to != "" {
		if f.target, err = p.w.Resolve(s.to); err != nil {
			return reject("%q (line %d): %v.", s.to, s.line, err)
		}
	}
	if s.op == update && !at.Exists() && len(s.hunks) == 1 && s.hunks[0].fromNothing() && s.to == "" {
		f.op = create
	}
	for _, have := range p.files {
		if have.path.Abs() != at.Abs() {
			continue
		}
		if have.op != update || f.op != update || have.to != "" || f.to != "" || have.exec != f.exec {
			return reject("%q is named twice, at lines %d and %d; give all that happens to a file in one section.", at.Rel(), have.line, s.line)
		}
		have.hunks = append(have.hunks, s.hunks...)
		return nil
	}
	p.files = append(p.files, f)
	return nil
}

// fromNothing reports that the header says "-0,0": there was no file.
func (h hunk) fromNothing() bool { return h.start == 0 && h.old == 0 && h.onlyAdds() }

// resolve finds the file of a section under one of the two readings of its name, and
// keeps that reading.
func (p *plan) resolve(s *section) (workspace.Path, error) {
	at, err := p.w.Resolve(s.name)
	if s.other != "" && (err != nil || !at.Exists()) {
		if second, err := p.w.Resolve(s.other); err == nil && second.Exists() {
			s.name = s.other
			return second, nil
		}
	}
	if err != nil {
		return at, reject("%q (line %d): %v.", s.name, s.line, err)
	}
	return at, nil
}

// work decides what becomes of a file.
func (p *plan) work(f *file) error {
	switch f.op {
	case create:
		return p.create(f)
	case remove:
		return p.remove(f)
	default:
		return p.update(f)
	}
}

func (p *plan) create(f *file) error {
	if err := p.vacant(f, f.path); err != nil {
		return err
	}
	f.new = createdText(f.hunks)
	if f.exec == execOn {
		f.mode = 0o777
	}
	p.note(f, f.path)
	return p.change(workspace.Change{Path: f.path, Content: f.new, Mode: f.mode})
}

// vacant refuses to create what is there.
func (p *plan) vacant(f *file, at workspace.Path) error {
	if at.Exists() {
		what := "exists already; to change it, send a patch with \"--- a/\" and \"+++ b/\" of its name"
		switch {
		case f.op != create && at.Abs() == f.path.Abs():
			what = "cannot be moved onto itself"
		case at.Info().IsDir():
			what = "is a directory"
		case f.op != create:
			what = "exists already; delete it in an earlier patch if it is to be replaced"
		}
		return reject("%q (line %d) %s.", at.Rel(), f.line, what)
	}
	return nil
}

// isLink reports whether the last component of a name is a link. at is where the
// name leads.
func (p *plan) isLink(name string, at workspace.Path) bool {
	name = path.Clean(name)
	dir, err := p.w.Resolve(path.Dir(name))
	return err != nil || path.Join(dir.Rel(), path.Base(name)) != at.Rel()
}

func (p *plan) remove(f *file) error {
	if err := p.present(f); err != nil {
		return err
	}
	if p.isLink(f.name, f.path) {
		return reject("%q (line %d) is a link to %q; name that file itself.", f.name, f.line, f.path.Rel())
	}
	if f.whole && f.path.Info().Size() > p.maxFile {
		var err error
		if f.stamp, err = p.w.StampOf(f.path); err != nil {
			return reject("%v.", err)
		}
		return p.change(workspace.Change{Path: f.path, Remove: true, Expect: f.stamp})
	}
	if err := p.read(f); err != nil {
		return err
	}
	if !f.whole {
		if err := p.edit(f); err != nil {
			return err
		}
		if rest := bytes.TrimPrefix(f.new, []byte(bom)); len(rest) > 0 {
			return reject("%q (line %d) is deleted, but the hunks leave %d bytes of it. List all its lines with \"-\", or write *** Delete File: %s", f.name, f.line, len(rest), f.name)
		}
		f.new = nil
	}
	return p.change(workspace.Change{Path: f.path, Remove: true, Expect: f.stamp})
}

// present refuses to change what is not there or never may be.
func (p *plan) present(f *file) error {
	if !f.path.Exists() {
		return reject("%q (line %d) does not exist; to create it, write \"--- /dev/null\" above \"+++ b/%s\".", f.path.Rel(), f.line, f.path.Rel())
	}
	if f.keep {
		return nil
	}
	if _, err := f.path.WriteReasons(); err != nil {
		return reject("line %d: %v.", f.line, err)
	}
	return nil
}

func (p *plan) update(f *file) error {
	if err := p.present(f); err != nil {
		return err
	}
	if f.to != "" {
		if err := p.vacant(f, f.target); err != nil {
			return err
		}
		if f.moves() && p.isLink(f.name, f.path) {
			return reject("%q (line %d) is a link to %q; name that file itself.", f.name, f.line, f.path.Rel())
		}
		if f.path.Info().Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			return reject("%q (line %d) has mode bits that a patch cannot carry over.", f.name, f.line)
		}
	}
	if err := p.read(f); err != nil {
		return err
	}
	f.new = f.old
	if len(f.hunks) > 0 {
		if err := p.edit(f); err != nil {
			return err
		}
	}
	f.setMode()
	if f.to == "" && f.mode == 0 && bytes.Equal(f.old, f.new) {
		return reject("%q (line %d) would not change: it already holds what the patch makes. Line ends (LF or CRLF) and a byte order mark stay as the file has them.", f.path.Rel(), f.line)
	}
	p.note(f, f.path)
	return p.updateChanges(f)
}

func (p *plan) updateChanges(f *file) error {
	if f.to == "" {
		return p.change(workspace.Change{Path: f.path, Content: f.new, Expect: f.stamp, Mode: f.mode})
	}
	for _, why := range f.path.ReadReasons() {
		p.mustAsk = append(p.mustAsk, f.path.Rel()+": "+why)
	}
	mode := f.mode
	if mode == 0 {
		mode = f.path.Info().Mode().Perm()
	}
	if err := p.change(workspace.Change{Path: f.target, Content: f.new, Mode: mode}); err != nil || f.keep {
		return err
	}
	return p.change(workspace.Change{Path: f.path, Remove: true, Expect: f.stamp})
}

// setMode works out the permission bits when the executable bit changes.
func (f *file) setMode() {
	have := f.path.Info().Mode().Perm()
	want := have
	switch f.exec {
	case execOn:
		want |= have & 0o444 >> 2
	case execOff:
		want &^= 0o111
	}
	if want != have {
		f.mode = want
	}
}

// maxHeld bounds what one patch reads, in largest files.
const maxHeld = 2

func (p *plan) read(f *file) error {
	var err error
	f.old, f.stamp, err = p.w.Read(f.path, p.maxFile)
	p.held += int64(len(f.old))
	switch {
	case p.held > maxHeld*p.maxFile:
		return reject("its files have more than %d bytes together; send several patches.", maxHeld*p.maxFile)
	case errors.Is(err, workspace.ErrTooLarge):
		return reject("%q (line %d) has %d bytes; at most %d can be patched.", f.path.Rel(), f.line, f.path.Info().Size(), p.maxFile)
	case err != nil:
		return reject("line %d: %v.", f.line, err)
	case len(f.hunks) > 0 && bytes.IndexByte(f.old, 0) >= 0:
		return reject("%q (line %d) is not text: it has NUL bytes among its %d bytes.", f.path.Rel(), f.line, len(f.old))
	}
	return nil
}

// edit applies the hunks.
func (p *plan) edit(f *file) error {
	var err error
	f.new, err = apply(f.old, f.hunks, len(f.path.ReadReasons()) > 0)
	var wrong *problem
	if errors.As(err, &wrong) {
		return reject("hunk %d of %q (line %d): %s", wrong.at+1, f.path.Rel(), f.hunks[wrong.at].line, wrong.text)
	}
	return err
}

// change adds a change and the reasons why it must be asked.
func (p *plan) change(c workspace.Change) error {
	reasons, err := c.Path.WriteReasons()
	if err != nil {
		return reject("%v.", err)
	}
	for _, why := range reasons {
		p.mustAsk = append(p.mustAsk, c.Path.Rel()+": "+why)
	}
	p.changes = append(p.changes, c)
	return nil
}

// checkNames refuses what the files do to each other: one name for two of them, or
// a file where another needs a directory.
func (p *plan) checkNames() error {
	for i, a := range p.changes {
		for j, b := range p.changes {
			switch {
			case i == j:
			case a.Path.Rel() == b.Path.Rel():
				return reject("%q is named twice; give all that happens to a file in one section.", a.Path.Rel())
			case strings.HasPrefix(b.Path.Rel(), a.Path.Rel()+"/"):
				return reject("%q is to be a file, but %q needs a directory of that name.", a.Path.Rel(), b.Path.Rel())
			}
		}
	}
	for _, f := range p.files {
		if f.keep && slices.ContainsFunc(p.changes, func(c workspace.Change) bool { return c.Path.Rel() == f.path.Rel() }) {
			return reject("%q is copied and changed; do one of them in a further patch.", f.path.Rel())
		}
	}
	return nil
}

// note tells people and the model what is easily missed.
func (p *plan) note(f *file, at workspace.Path) {
	if f.exec == execOn && f.mode != 0 {
		p.notes = append(p.notes, fmt.Sprintf("%s becomes executable", at.Rel()))
	}
	if named := path.Clean(f.name); named != at.Rel() && !path.IsAbs(named) {
		p.notes = append(p.notes, fmt.Sprintf("%s leads to %s", named, at.Rel()))
	}
	if f.addsEntities() {
		p.notes = append(p.notes, fmt.Sprintf("%s: the new lines hold HTML entities such as &lt; which are written as they stand", at.Rel()))
	}
}
