package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

const (
	maxPath  = 4096 // bytes of a path, PATH_MAX of Linux
	maxName  = 255  // bytes of one component, NAME_MAX of Linux
	maxLinks = 40   // links followed in one path, as Linux does
)

// Resolve turns a path text of the model into a Path: relative to the workspace, or
// absolute and inside it. It looks at each component and follows links itself, so
// the result has none. A path that does not exist resolves too, as long as the
// parents that exist are directories inside. The error tells the model how to
// correct the text. It only looks at metadata and never opens a file.
func (w *Workspace) Resolve(text string) (Path, error) {
	rel, err := w.relative(text)
	if err != nil {
		return Path{}, err
	}
	p, err := w.follow(text, rel)
	if err != nil {
		return Path{}, err
	}
	if strings.HasSuffix(text, "/") && !p.isDir() {
		return Path{}, fmt.Errorf("path %q ends with a slash but is no directory; leave the slash out", text)
	}
	return p, nil
}

// relative checks the form of text and returns it relative to the root, not cleaned.
func (w *Workspace) relative(text string) (string, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return "", errors.New(`the path is empty; give one relative to the workspace, such as "main.go" or "."`)
	case strings.IndexByte(text, 0) >= 0:
		return "", fmt.Errorf("path %q holds a NUL byte; leave it out", text)
	case len(text) > maxPath:
		return "", fmt.Errorf("the path has %d bytes, at most %d are possible; shorten it", len(text), maxPath)
	case text == "~" || strings.HasPrefix(text, "~") && (strings.Contains(text, "/") || !w.has(text)):
		return "", w.tildeError(text)
	case schemeOf(text) != "":
		return "", w.schemeError(text)
	}
	for part := range strings.SplitSeq(text, "/") {
		if len(part) > maxName {
			return "", fmt.Errorf("path component %.20q… has %d bytes, at most %d are possible; shorten it", part, len(part), maxName)
		}
	}
	if !strings.HasPrefix(text, "/") {
		return text, nil
	}
	rel, ok := w.inside(text)
	if !ok {
		return "", fmt.Errorf("path %q is outside the workspace %q; give a path relative to the workspace", text, w.root)
	}
	return rel, nil
}

// has reports whether the workspace itself holds an entry called name.
func (w *Workspace) has(name string) bool {
	_, err := w.dir.Lstat(name)
	return err == nil
}

// inside cuts the root, or the name under which it was opened, from an absolute
// path. It compares whole components and leaves ".." to the walk.
func (w *Workspace) inside(abs string) (string, bool) {
	for _, root := range []string{w.root, w.alias} {
		rest, ok := cutDir(abs, root)
		if ok {
			return rest, true
		}
	}
	return "", false
}

// cutDir cuts dir from the front of abs, counting "//" and "/./" as "/".
func cutDir(abs, dir string) (string, bool) {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "" {
			continue
		}
		rest, ok := strings.CutPrefix(skipSame(abs), part)
		if !ok || rest != "" && rest[0] != '/' {
			return "", false
		}
		abs = rest
	}
	return skipSame(abs), true
}

// skipSame removes leading slashes and "." components.
func skipSame(s string) string {
	for {
		switch {
		case strings.HasPrefix(s, "/"):
			s = s[1:]
		case strings.HasPrefix(s, "./"):
			s = s[2:]
		default:
			return s
		}
	}
}

func (w *Workspace) tildeError(text string) error {
	hint := fmt.Sprintf("for a name that begins with ~ write %q", "./"+text)
	if home := w.options.UserHome; home != "" && (text == "~" || strings.HasPrefix(text, "~/")) {
		if rel, ok := w.inside(path.Clean(home + text[1:])); ok {
			hint = fmt.Sprintf("write %q", path.Clean(rel))
		} else {
			hint = "the home directory is outside the workspace"
		}
	}
	return fmt.Errorf("~ is not expanded in path %q; %s", text, hint)
}

// schemeOf returns the scheme of a URL. A directory called "x:" is no URL.
func schemeOf(text string) string {
	scheme, rest, found := strings.Cut(text, ":/")
	scheme = strings.ToLower(scheme)
	letters := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz") == ""
	if !found || len(scheme) < 2 || !letters || !strings.HasPrefix(rest, "/") && scheme != "file" {
		return ""
	}
	return scheme
}

func (w *Workspace) schemeError(text string) error {
	if schemeOf(text) == "file" {
		_, rest, _ := strings.Cut(text, ":")
		if rel, ok := w.inside(rest); ok && rel != "" {
			return fmt.Errorf("path %q is a URL; write %q", text, path.Clean(rel))
		}
	}
	return fmt.Errorf("path %q is a URL; give a file path relative to the workspace", text)
}

// walk is the state of following one path.
type walk struct {
	w        *Workspace
	text     string   // as the model wrote it, for errors
	done     []string // components that are resolved
	todo     []string // components that are not, last one first
	fromLink int      // todo is longer than this: its last entry comes from a link; else -1
	links    int
	via      []string    // relative paths of links and, first, the path as written
	info     fs.FileInfo // of done; nil when it does not exist
	missing  bool
	settings bool
}

func (w *Workspace) follow(text, rel string) (Path, error) {
	k := &walk{w: w, text: text, fromLink: -1, info: w.info, settings: w.rootIsSettings()}
	k.push(rel)
	if named := path.Clean("/" + rel)[1:]; named != "" {
		k.via = []string{named}
	}
	for len(k.todo) > 0 {
		if err := k.step(); err != nil {
			return Path{}, err
		}
	}
	p := Path{w: w, rel: strings.Join(k.done, "/"), info: k.info, via: k.via, settings: k.settings}
	if p.rel == "" {
		p.rel = "."
	}
	if k.missing {
		p.info = nil
	}
	return p, nil
}

// push puts the components of a path in front of those that are left.
func (k *walk) push(rel string) {
	parts := strings.Split(rel, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] != "" && parts[i] != "." {
			k.todo = append(k.todo, parts[i])
		}
	}
}

// step resolves one component.
func (k *walk) step() error {
	if len(k.todo) <= k.fromLink {
		k.fromLink = -1
	}
	fromLink := k.fromLink >= 0
	name := k.todo[len(k.todo)-1]
	k.todo = k.todo[:len(k.todo)-1]
	if !k.missing && !k.info.IsDir() {
		return fmt.Errorf("path %q: %q is not a directory", k.text, strings.Join(k.done, "/"))
	}
	if name == ".." {
		return k.up()
	}
	k.done = append(k.done, name)
	k.settings = k.settings || k.isSettings(nil)
	if k.missing {
		return k.newName(name)
	}
	info, err := os.Lstat(k.abs())
	switch {
	case errors.Is(err, fs.ErrNotExist) && fromLink:
		return fmt.Errorf("path %q goes through a link to %q, which does not exist; write that file itself", k.text, strings.Join(k.done, "/"))
	case errors.Is(err, fs.ErrNotExist):
		k.missing = true
		return k.newName(name)
	case err != nil:
		return fmt.Errorf("path %q: %w", k.text, plainError(err))
	case info.Mode()&fs.ModeSymlink != 0:
		return k.link()
	}
	k.info = info
	k.settings = k.settings || k.isSettings(info)
	return nil
}

// newName refuses names that only a slip of the pen makes.
func (k *walk) newName(name string) error {
	if trimmed := strings.TrimSpace(name); trimmed != name {
		return fmt.Errorf("path %q: %q begins or ends with a blank and does not exist; write %q", k.text, name, trimmed)
	}
	return nil
}

func (k *walk) abs() string {
	return strings.TrimSuffix(k.w.root, "/") + "/" + strings.Join(k.done, "/")
}

// up goes to the parent directory; what was resolved has no links, so that is the
// last component less.
func (k *walk) up() error {
	if len(k.done) == 0 {
		return fmt.Errorf("path %q leads outside the workspace; give a path inside it", k.text)
	}
	k.done = k.done[:len(k.done)-1]
	info, err := os.Lstat(k.abs())
	k.missing = errors.Is(err, fs.ErrNotExist)
	if err != nil && !k.missing {
		return fmt.Errorf("path %q: %w", k.text, plainError(err))
	}
	k.info = info
	return nil
}

// link replaces the link that done ends with by its target.
func (k *walk) link() error {
	at := strings.Join(k.done, "/")
	k.via = append(k.via, at)
	if k.links++; k.links > maxLinks {
		return fmt.Errorf("path %q goes through more than %d links", k.text, maxLinks)
	}
	target, err := os.Readlink(k.abs())
	if err != nil {
		return fmt.Errorf("path %q: %w", k.text, plainError(err))
	}
	k.done = k.done[:len(k.done)-1]
	if k.fromLink < 0 {
		k.fromLink = len(k.todo)
	}
	if strings.HasPrefix(target, "/") {
		rel, ok := k.w.inside(target)
		if !ok {
			return fmt.Errorf("path %q: %q is a link to %q, outside the workspace", k.text, at, target)
		}
		k.done, target = k.done[:0], rel
	}
	k.push(target)
	if k.info, err = os.Lstat(k.abs()); err != nil {
		return fmt.Errorf("path %q: %w", k.text, plainError(err))
	}
	return nil
}

// isSettings reports whether the last component leads into the settings directory,
// by name or, when info is given, by identity.
func (k *walk) isSettings(info fs.FileInfo) bool {
	if info != nil {
		return k.w.settings != nil && os.SameFile(info, k.w.settings)
	}
	dir := k.w.options.SettingsDir
	rel, ok := cutDir(dir, k.w.root)
	if dir == "" || !ok || rel == "" {
		return false
	}
	parts := strings.Split(rel, "/")
	if len(parts) > len(k.done) {
		return false
	}
	for i, part := range parts {
		if fold(part) != fold(k.done[i]) {
			return false
		}
	}
	return true
}

// rootIsSettings reports whether the whole workspace lies in the settings directory.
func (w *Workspace) rootIsSettings() bool {
	if w.options.SettingsDir == "" {
		return false
	}
	_, ok := cutDir(w.root, w.options.SettingsDir)
	return ok
}

// plainError drops the absolute path that the os package puts into its errors.
func plainError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		err = le.Err
	}
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return errors.New("the name is too long; shorten it")
	}
	return err
}
