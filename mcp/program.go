package mcp

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zcoder/internal/termtext"
)

// Program is what a server's command resolves to.
type Program struct {
	// Path is the file that runs, absolute, links not followed.
	Path string `json:"path"`
	// Real is where its links lead.
	Real string `json:"real"`
	// Files are the digests of the files that the entry of a project's server leads to
	// and that the project, or the model, can change, by name.
	Files map[string]string `json:"files,omitempty"`
	// Loose says, for a person, what the server can run that is not among Files.
	Loose []string `json:"-"`
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
		switch p.Files[name] {
		case now.Files[name]:
		case "":
			return fmt.Sprintf("it would now run or read %s, which is new", termtext.Line(name))
		default:
			return fmt.Sprintf("%s changed since", termtext.Line(name))
		}
	}
	for _, name := range sortedKeys(p.Files) {
		if now.Files[name] == "" {
			return fmt.Sprintf("%s, which it ran or read, is gone", termtext.Line(name))
		}
	}
	return ""
}

// resolveProgram finds the program of an expanded stdio server, and of a project's
// server the files that it leads to. root is the workspace; env is the server's whole
// environment. One of the person's own servers is refused when a look-up, as opposed to
// a path that they wrote, would lead it into the workspace.
func resolveProgram(s Server, root string, env []string) (Program, error) {
	g := &gatherer{root: root, dir: s.dir(root), path: pathOf(env)}
	own := s.Scope == User
	path, err := findProgram(s.Command, g.dir, g.path, func(file string) bool { return own && g.holds(file) })
	if err != nil {
		return Program{}, err
	}
	p := Program{Path: path}
	if p.Real, err = filepath.EvalSymlinks(path); err != nil {
		return Program{}, err
	}
	if own {
		return p, g.refuseLookups(s)
	}
	p.Files, p.Loose, err = g.gather(s, p)
	return p, err
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

// findProgram looks a command up as a shell does. What a relative entry of the PATH
// holds is passed over, and so is what foreign reports true for.
func findProgram(command, dir, path string, foreign func(file string) bool) (string, error) {
	if strings.Contains(command, "/") {
		if !filepath.IsAbs(command) {
			command = filepath.Join(dir, command)
		}
		return command, executable(command)
	}
	refused := ""
	for _, d := range filepath.SplitList(path) {
		file := filepath.Join(d, command)
		if !filepath.IsAbs(d) || executable(file) != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err == nil && !foreign(file) && !foreign(real) {
			return file, nil
		}
		refused = file
	}
	if refused != "" {
		return "", fmt.Errorf("run %q: %s lies in the workspace, where a model can change it; write its whole path, or register the server with --scope project", command, refused)
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

// codeVariables are names of environment variables that make programs load code or
// start other programs; one that ends in an underscore stands for all that begin so.
var codeVariables = []string{
	"BASH_ENV", "BASH_FUNC_", "BUN_", "BUNDLE_", "CARGO_", "CLASSPATH", "CONFIG_", "DENO_", "DYLD_", "EDITOR", "ENV", "GCONV_PATH", "GEM_", "GIT_",
	"GOFLAGS", "HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LD_", "LUA_CPATH", "LUA_INIT", "LUA_PATH", "NODE_OPTIONS", "NODE_PATH",
	"NODE_REPL_EXTERNAL_MODULE", "NPM_CONFIG_", "OPENSSL_CONF", "OPENSSL_MODULES", "PAGER", "PATH", "PERL5DB", "PERL5LIB", "PERL5OPT", "PERLLIB",
	"PHPRC", "PHP_INI_SCAN_DIR", "PIP_", "PROMPT_COMMAND", "PS4", "PYTHONBREAKPOINT", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH", "PYTHONSTARTUP",
	"PYTHONUSERBASE", "PYTHONWARNINGS", "RUBYLIB", "RUBYOPT", "RUSTC_", "SHELL", "SHELLOPTS", "SSH_ASKPASS", "TSX_", "UV_", "VISUAL", "XDG_",
	"ZDOTDIR", "_JAVA_OPTIONS",
}

// loadsCode reports whether a variable of this name can make a program run other code.
func loadsCode(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc(codeVariables, func(v string) bool {
		return name == v || strings.HasSuffix(v, "_") && strings.HasPrefix(name, v)
	})
}
