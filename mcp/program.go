package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Program is what a server's command resolves to.
type Program struct {
	// Path is the file that runs, absolute, links not followed.
	Path string `json:"path"`
	// Real is where its links lead.
	Real string `json:"real"`
	// Files are the digests of the program, and of scripts in its arguments, that lie
	// in the workspace, by path: the project, and the model, can change them.
	Files map[string]string `json:"files,omitempty"`
}

// differs says how two resolutions differ, or "".
func (p Program) differs(now Program) string {
	switch {
	case p.Path != now.Path:
		return fmt.Sprintf("its command was %s and is now %s", p.Path, now.Path)
	case p.Real != now.Real:
		return fmt.Sprintf("%s led to %s and now leads to %s", p.Path, p.Real, now.Real)
	}
	for _, name := range sortedKeys(now.Files) {
		if p.Files[name] != now.Files[name] {
			return fmt.Sprintf("%s changed since", name)
		}
	}
	if len(p.Files) != len(now.Files) {
		return "a file that it ran is gone"
	}
	return ""
}

// resolveProgram finds the program of an expanded stdio server. root is the
// workspace; the PATH is that of the server's environment.
func resolveProgram(s Server, root string, env []string) (Program, error) {
	path, err := findProgram(s.Command, s.dir(root), pathOf(env))
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: path}
	if p.Real, err = filepath.EvalSymlinks(path); err != nil {
		return Program{}, err
	}
	for _, arg := range append([]string{p.Real}, s.Args...) {
		name, sum, err := workspaceFile(arg, s.dir(root), root)
		if err != nil {
			return Program{}, err
		}
		if name == "" {
			continue
		}
		if p.Files == nil {
			p.Files = map[string]string{}
		}
		p.Files[name] = sum
	}
	return p, nil
}

// dir is the directory that the server runs in.
func (s Server) dir(root string) string {
	if filepath.IsAbs(s.Cwd) {
		return filepath.Clean(s.Cwd)
	}
	return filepath.Join(root, s.Cwd)
}

func pathOf(env []string) string {
	for _, v := range env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			return list
		}
	}
	return ""
}

// findProgram looks a command up as a shell does; what a relative entry of the PATH
// holds is passed over.
func findProgram(command, dir, path string) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return command, executable(command)
	}
	for _, d := range filepath.SplitList(path) {
		if file := filepath.Join(d, command); filepath.IsAbs(d) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("run %q: no such program in PATH %q", command, path)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return fmt.Errorf("run %q: %w", file, errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("run %q: it is no regular file", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("run %q: %w", file, os.ErrPermission)
	}
	return nil
}

// maxDigest bounds what is read of a file in the workspace, in bytes.
const maxDigest = 64 << 20

// isScript reports whether a file is one that an interpreter runs, as opposed to data
// that a server may change all the time.
func isScript(name string, mode os.FileMode) bool {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".pyz", ".rb", ".sh", ".pl", ".php", ".lua", ".jar", ".wasm":
		return true
	}
	return mode&0o111 != 0
}

// workspaceFile returns the digest of the script that a word names if it lies in the
// workspace, and "" for every other word.
func workspaceFile(word, dir, root string) (name, sum string, err error) {
	if word == "" || len(word) > 4096 || strings.ContainsRune(word, 0) {
		return "", "", nil
	}
	file := word
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", "", nil // a word that names no file
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return "", "", nil
	}
	f, err := os.OpenFile(real, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !isScript(rel, info.Mode()) {
		return "", "", err
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(f, maxDigest+1)); err != nil || n > maxDigest {
		return "", "", errors.Join(err, fmt.Errorf("read %q: it is too large to be pinned", real))
	}
	return rel, hex.EncodeToString(h.Sum(nil)), nil
}
