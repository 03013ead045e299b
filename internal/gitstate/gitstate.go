// Package gitstate reads what a user's git repository says of itself: its branch,
// what is under way, and whether the work tree differs from the last commit.
//
// It reads plain files and runs nothing: no hook, filter, monitor, alias or pager of
// any configuration has an effect, and no environment variable is looked at. Every
// file is opened without waiting and must be a regular one of bounded size. A pointer
// that leads out of the workspace is followed only to learn HEAD. The start line and
// checkpoints call it.
package gitstate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Dirt says whether a work tree differs from the last commit as git status shows it.
type Dirt uint8

// The answers.
const (
	Unknown Dirt = iota // it could not be learned in time or without running a filter
	Clean
	Dirty
)

// State is what is known of a repository. The texts are raw.
type State struct {
	// Repository is false when root lies in none; the rest is zero then.
	Repository bool
	// Branch is the short name of the branch, also of one without a commit, and during
	// a rebase of the one that is rebased. Empty: HEAD is detached.
	Branch   string
	Detached bool
	// Commit is the hexadecimal name of the commit at HEAD; empty when there is none or
	// it is not readable.
	Commit string
	Dirty  Dirt
	// Worktree is set for a linked work tree and for a submodule.
	Worktree bool
	// Outside is set when the repository is not inside root: in a directory above it or
	// where a pointer leads. Only HEAD is read then.
	Outside bool
	// Foreign is set when the repository belongs to another user. Only HEAD is read.
	Foreign bool
	// Operation is what is under way: "rebase", "am", "merge", "cherry-pick", "revert",
	// "bisect", or "".
	Operation string
}

// Options bound a reading.
type Options struct {
	// Deadline bounds the time for learning Dirty; 0 means that it is not looked for.
	Deadline time.Duration
	// UserHome is where the user's own ignore file is looked for. Empty: nowhere.
	UserHome string
}

// Read reads the state of the repository of root, a canonical directory. It returns
// what it learned when the deadline passes or ctx ends, with Dirty Unknown. The error
// is one of root itself.
func Read(ctx context.Context, root string, o Options) (State, error) {
	if _, err := os.Lstat(root); err != nil {
		return State{}, err
	}
	r, ok := discover(root)
	if !ok {
		return State{}, nil
	}
	s := State{Repository: true, Worktree: r.linked, Outside: r.outside, Foreign: r.foreign}
	head := r.head()
	s.Branch, s.Commit, s.Detached = head.branch, head.commit, head.detached
	s.Operation = r.operation()
	if s.Operation == "rebase" && s.Detached {
		s.Branch = r.rebased()
	}
	if o.Deadline <= 0 || r.outside || r.foreign || ctx.Err() != nil {
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Deadline)
	defer cancel()
	s.Dirty = r.dirty(ctx, head, o.UserHome)
	return s, nil
}

// maxRefs bounds how many branches Refs returns.
const maxRefs = 1000

// Refs returns where HEAD and the local branches of the repository of root point, by
// full name: "HEAD" to "ref: refs/heads/main" or a commit, "refs/heads/main" to a
// commit. Of a repository outside root it returns only HEAD and its branch. nil: no
// repository.
func Refs(ctx context.Context, root string) map[string]string {
	r, ok := discover(root)
	if !ok {
		return nil
	}
	refs := map[string]string{}
	head := r.head()
	refs["HEAD"] = head.raw
	if head.ref != "" && head.commit != "" {
		refs[head.ref] = head.commit
	}
	if r.outside || r.foreign {
		return refs
	}
	for name, commit := range r.packedRefs() {
		if strings.HasPrefix(name, "refs/heads/") && len(refs) < maxRefs {
			refs[name] = commit
		}
	}
	r.looseRefs(ctx, "refs/heads", refs, 0)
	return refs
}

// repository is a place where git keeps a repository.
type repository struct {
	tree    string // the work tree
	dir     string // of HEAD and the index
	common  string // of refs and objects
	linked  bool
	outside bool
	foreign bool
}

// discover finds the repository of root as git does: the nearest directory upward
// that has a ".git".
func discover(root string) (*repository, bool) {
	for dir := root; ; dir = filepath.Dir(dir) {
		if r, ok := repositoryAt(dir, root); ok {
			return r, true
		}
		if dir == filepath.Dir(dir) || !sameDevice(dir, filepath.Dir(dir)) {
			return nil, false
		}
	}
}

// repositoryAt looks at the ".git" of one directory.
func repositoryAt(dir, root string) (*repository, bool) {
	r := &repository{tree: dir, dir: filepath.Join(dir, ".git")}
	info, err := os.Lstat(r.dir)
	if err != nil {
		return nil, false
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := filepath.EvalSymlinks(r.dir)
		if err != nil {
			return nil, false
		}
		r.dir = target
	case info.Mode().IsRegular():
		text, err := readFile(r.dir, maxPointer)
		named, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return nil, false
		}
		r.dir, r.linked = absolute(dir, strings.TrimRight(named, "\r\n")), true
	case !info.IsDir():
		return nil, false
	}
	r.common = r.dir
	if text, err := readFile(filepath.Join(r.dir, "commondir"), maxPointer); err == nil {
		r.common = absolute(r.dir, strings.TrimRight(text, "\r\n"))
	}
	if _, err := readFile(filepath.Join(r.dir, "HEAD"), maxPointer); err != nil {
		return nil, false
	}
	r.outside = dir != root || !inside(r.dir, root) || !inside(r.common, root)
	r.foreign = !ours(dir) || !ours(r.dir) || !ours(r.common)
	return r, true
}

func absolute(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// inside reports whether a path, with all its links, lies in root.
func inside(path, root string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && (real == root || strings.HasPrefix(real, strings.TrimSuffix(root, "/")+"/"))
}

// head is where HEAD points.
type head struct {
	raw      string // what the file says
	ref      string // "refs/heads/main"; "" when detached
	branch   string
	commit   string
	detached bool
}

func (r *repository) head() head {
	text, err := readFile(filepath.Join(r.dir, "HEAD"), maxPointer)
	if err != nil {
		return head{}
	}
	text = strings.TrimRight(text, "\r\n ")
	if validCommit(text) {
		return head{raw: text, detached: true, commit: text}
	}
	ref, symbolic := strings.CutPrefix(text, "ref:")
	ref = strings.TrimSpace(ref)
	if !symbolic || !validRef(ref) || ref == "refs/heads/.invalid" { // the latter is how reftable begins
		return head{}
	}
	h := head{raw: "ref: " + ref, ref: ref, branch: strings.TrimPrefix(ref, "refs/heads/")}
	h.commit = r.resolve(ref)
	return h
}

// resolve returns the commit of a ref. A ref that is an alias of another one is
// followed once.
func (r *repository) resolve(ref string) string {
	for range 2 {
		text, err := readFile(filepath.Join(r.common, ref), maxPointer)
		if err != nil {
			return r.packedRefs()[ref]
		}
		text = strings.TrimRight(text, "\r\n ")
		next, symbolic := strings.CutPrefix(text, "ref:")
		if !symbolic {
			if validCommit(text) {
				return text
			}
			return ""
		}
		if ref = strings.TrimSpace(next); !validRef(ref) {
			return ""
		}
	}
	return ""
}

// validRef keeps the name of a ref from leading out of the directory of refs.
func validRef(ref string) bool {
	if !strings.HasPrefix(ref, "refs/") || strings.ContainsAny(ref, "\x00\n\\") {
		return false
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func validCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// packedRefs reads the file of packed refs.
func (r *repository) packedRefs() map[string]string {
	text, err := readFile(filepath.Join(r.common, "packed-refs"), maxPackedRefs)
	if err != nil {
		return nil
	}
	refs := map[string]string{}
	for line := range strings.Lines(text) {
		commit, name, ok := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if ok && validCommit(commit) && validRef(name) {
			refs[name] = commit
		}
	}
	return refs
}

// looseRefs adds the refs below a directory.
func (r *repository) looseRefs(ctx context.Context, dir string, refs map[string]string, depth int) {
	entries, err := readDir(filepath.Join(r.common, dir))
	if err != nil || depth > 20 {
		return
	}
	for _, e := range entries {
		if ctx.Err() != nil || len(refs) >= maxRefs {
			return
		}
		name := dir + "/" + e.Name()
		switch {
		case e.IsDir():
			r.looseRefs(ctx, name, refs, depth+1)
		case e.Type().IsRegular() && validRef(name):
			if commit := r.resolve(name); commit != "" {
				refs[name] = commit
			}
		}
	}
}

// operation says what is under way.
func (r *repository) operation() string {
	marks := []struct{ file, operation string }{
		{"rebase-merge", "rebase"}, {"rebase-apply/applying", "am"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"BISECT_LOG", "bisect"},
	}
	for _, m := range marks {
		if _, err := os.Lstat(filepath.Join(r.dir, m.file)); err == nil {
			return m.operation
		}
	}
	return ""
}

// rebased returns the branch that is being rebased.
func (r *repository) rebased() string {
	for _, file := range []string{"rebase-merge/head-name", "rebase-apply/head-name"} {
		text, err := readFile(filepath.Join(r.dir, file), maxPointer)
		ref := strings.TrimRight(text, "\r\n")
		if err == nil && validRef(ref) {
			return strings.TrimPrefix(ref, "refs/heads/")
		}
	}
	return ""
}

var errNotRegular = errors.New("it is no regular file of the expected size")
