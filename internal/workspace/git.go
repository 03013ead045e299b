package workspace

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// gitByIdentity refuses what no spelling of ".git" shows: a directory above p that
// is the same as the ".git" beside it, and the directory that a ".git" file names.
func (p Path) gitByIdentity() error {
	name := p.rel
	for _, dir := range p.parents() {
		git, err := p.w.dir.Lstat(path.Join(dir, ".git"))
		if err == nil {
			self, selfErr := p.w.dir.Lstat(name)
			if selfErr == nil && os.SameFile(git, self) {
				return fmt.Errorf("%q is the .git of %q under another name; the file tools never write there", name, dir)
			}
			if store := p.w.gitFile(dir, git); store != "" && (p.rel == store || strings.HasPrefix(p.rel, store+"/")) {
				return fmt.Errorf("%q is in the repository that %q names; the file tools never write there", p.rel, path.Join(dir, ".git"))
			}
		}
		name = dir
	}
	return nil
}

// gitFile returns the directory inside the workspace that the ".git" of dir points
// to, as a link or as a file of the form "gitdir: PATH", or "".
func (w *Workspace) gitFile(dir string, info fs.FileInfo) string {
	at := path.Join(dir, ".git")
	var target string
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target = at
	case info.Mode().IsRegular():
		content, _, err := w.Read(Path{w: w, rel: at, info: info}, maxPath)
		if err != nil {
			return ""
		}
		named, ok := strings.CutPrefix(string(content), "gitdir:")
		if !ok {
			return ""
		}
		if target = strings.TrimSpace(named); !strings.HasPrefix(target, "/") {
			target = dir + "/" + target
		}
	default:
		return ""
	}
	p, err := w.Resolve(target)
	if err != nil || p.rel == "." {
		return ""
	}
	return p.rel
}

// bareRepository returns a directory above p that git would use as a repository: it
// holds two of HEAD, objects and refs, so that its config and hooks run programs.
func (p Path) bareRepository() string {
	for _, dir := range p.parents() {
		found := 0
		for _, name := range []string{"HEAD", "objects", "refs"} {
			if _, err := p.w.dir.Lstat(path.Join(dir, name)); err == nil {
				found++
			}
		}
		if found >= 2 {
			return dir
		}
	}
	return ""
}
