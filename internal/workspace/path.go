package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// Path is a place in a workspace with all links resolved, as it was when Resolve
// looked. Whether it still is, Open, StampOf and Apply check. The zero value is no
// path. A Path is a value and may be used from several goroutines.
type Path struct {
	w        *Workspace
	rel      string      // "." or components joined by "/", none of them a link
	info     fs.FileInfo // nil when it does not exist
	via      []string    // the path as written and the links passed, relative
	settings bool        // it is or lies in the settings directory
}

// Abs returns the resolved absolute path.
func (p Path) Abs() string { return filepath.Join(p.w.root, p.rel) }

// Rel returns the resolved path relative to the workspace, with slashes, "." for
// the workspace itself.
func (p Path) Rel() string { return p.rel }

// Exists reports whether something was there.
func (p Path) Exists() bool { return p.info != nil }

// Info returns what Resolve saw, or nil when the path did not exist.
func (p Path) Info() fs.FileInfo { return p.info }

func (p Path) isDir() bool { return p.info != nil && p.info.IsDir() }

// names returns the resolved path and every name that led to it.
func (p Path) names() []string { return append([]string{p.rel}, p.via...) }

// ReadReasons returns why reading p must ask a person, or nothing.
func (p Path) ReadReasons() []string {
	var reasons []string
	if p.settings {
		reasons = append(reasons, "it is in the settings directory of zcoder")
	}
	reasons = append(reasons, p.nameReasons(Secret)...)
	if n := hardLinks(p.info); n > 1 {
		reasons = append(reasons, fmt.Sprintf("it has %d hard links, so it may be a file from outside the workspace", n))
	}
	return reasons
}

func (p Path) nameReasons(of func(string) string) []string {
	var reasons []string
	for _, name := range p.names() {
		if why := of(name); why != "" && !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	return reasons
}

// WriteReasons returns why writing or removing p must ask a person. The error, for
// the model, means that p can never be written. It looks at the files around p.
func (p Path) WriteReasons() ([]string, error) {
	if err := p.neverWritable(); err != nil {
		return nil, err
	}
	reasons := p.nameReasons(RunsLater)
	if n := hardLinks(p.info); n > 1 {
		reasons = append(reasons, fmt.Sprintf("it has %d hard links; the other names keep the old content", n))
	}
	if !p.Exists() && strings.ContainsFunc(p.rel, isHidden) {
		reasons = append(reasons, "the new name holds characters that cannot be seen")
	}
	if dir := p.bareRepository(); dir != "" {
		reasons = append(reasons, fmt.Sprintf("git takes %q for a repository", dir))
	}
	return append(reasons, p.notKept()...), nil
}

func isHidden(r rune) bool {
	return r != ' ' && (!unicode.IsPrint(r) || dropIgnorable(r) < 0)
}

func (p Path) neverWritable() error {
	switch {
	case slices.ContainsFunc(p.names(), Protected):
		return fmt.Errorf("%q is git's own; the file tools never write there", p.rel)
	case p.settings:
		return fmt.Errorf("%q is in the settings directory of zcoder; the file tools never write there", p.rel)
	case IsTemp(path.Base(p.rel)):
		return fmt.Errorf("%q is a name that zcoder keeps for its temporary files; choose another", p.rel)
	case p.isDir():
		return fmt.Errorf("%q is a directory; give a file path", p.rel)
	case p.Exists() && !p.info.Mode().IsRegular():
		return fmt.Errorf("%q is %s, not a regular file", p.rel, kindOf(p.info.Mode()))
	case p.Exists() && p.info.Mode().Perm()&0o222 == 0:
		return fmt.Errorf("%q is read-only (mode %04o); ask the user to make it writable", p.rel, p.info.Mode().Perm())
	}
	if err := p.gitByIdentity(); err != nil {
		return err
	}
	return p.parentWritable()
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	case m&fs.ModeSymlink != 0:
		return "a link"
	default:
		return "a special file"
	}
}

// parents returns the directories above p, the nearest first, "." last.
func (p Path) parents() []string {
	var dirs []string
	for dir := path.Dir(p.rel); ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == "." {
			return dirs
		}
	}
}

// parentWritable refuses names in a directory without any write bit.
func (p Path) parentWritable() error {
	for _, dir := range p.parents() {
		info, err := p.w.dir.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look at directory %q: %w", dir, plainError(err))
		}
		if info.Mode().Perm()&0o222 == 0 {
			return fmt.Errorf("directory %q is read-only (mode %04o); ask the user to make it writable", dir, info.Mode().Perm())
		}
		return nil
	}
	return nil
}

func hardLinks(info fs.FileInfo) uint64 {
	if info == nil || !info.Mode().IsRegular() {
		return 0
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 0
}
