package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zcoder/internal/ignore"
)

// Bounds of a glob, from the tool's contract.
const (
	maxGlob     = 1024 // bytes
	maxExpanded = 128  // patterns that braces make
)

// filter selects files by name. The zero value wants all.
type filter struct {
	except  bool            // the globs name what is not wanted
	globs   []*ignore.Chain // one match is enough; relative to the root and to the start
	endings []string        // of a file type
	names   []string        // whole names of a file type
	typed   bool
}

func (f *filter) wants(name, path string) bool {
	if f.typed && !f.ofType(name) {
		return false
	}
	if f.globs == nil {
		return true
	}
	for _, glob := range f.globs {
		if glob.Ignored(name, path, false) {
			return !f.except
		}
	}
	return f.except
}

func (f *filter) ofType(name string) bool {
	for _, ending := range f.endings {
		if len(name) > len(ending) && strings.HasSuffix(name, ending) {
			return true
		}
	}
	return slices.Contains(f.names, name)
}

// newFilter compiles the arguments. start is the directory that is searched,
// relative to the workspace. Its error is for the model.
func newFilter(glob, fileType, root, start string) (filter, error) {
	var f filter
	if glob != "" {
		if err := f.addGlob(glob, root, start); err != nil {
			return f, err
		}
	}
	if fileType != "" {
		return f, f.addType(fileType)
	}
	return f, nil
}

func (f *filter) addGlob(glob, root, start string) error {
	if len(glob) > maxGlob {
		return fmt.Errorf("glob is %d bytes long; at most %d are taken", len(glob), maxGlob)
	}
	glob, f.except = strings.CutPrefix(strings.TrimSpace(glob), "!")
	expanded, err := expandBraces("{" + glob + "}")
	if err != nil {
		return err
	}
	var patterns []string
	for _, p := range expanded {
		p = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(p), root+"/"), "./")
		patterns = append(patterns, selecting(p)...)
	}
	bases := []string{""}
	if start != "." {
		bases = append(bases, start)
	}
	for _, base := range bases {
		rules, ok := ignore.FromPatterns(base, patterns)
		if !ok {
			return fmt.Errorf("glob %q is malformed: close each [ with ], and put \\ before a bracket or backslash of a name", glob)
		}
		f.globs = append(f.globs, (*ignore.Chain)(nil).With(rules))
	}
	return nil
}

// selecting returns the patterns that select what p names and, when it can be a
// directory, all below it. A "!" in front has no meaning.
func selecting(p string) []string {
	p = strings.TrimSuffix(p, "/")
	if p == "" {
		return nil
	}
	if p[0] == '!' {
		p = `\` + p
	}
	switch {
	case strings.Contains(p, "/"):
		return []string{p, p + "/**"}
	case !strings.ContainsAny(p, `*?[\`):
		return []string{p, "**/" + p + "/**"}
	}
	return []string{p}
}

// expandBraces turns "a{b,c}" into "ab" and "ac". Unbalanced braces stand for
// themselves.
func expandBraces(pattern string) ([]string, error) {
	open, parts, rest, ok := firstBraces(pattern)
	if !ok {
		return []string{pattern}, nil
	}
	var out []string
	for _, part := range parts {
		more, err := expandBraces(pattern[:open] + part + rest)
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > maxExpanded {
			return nil, fmt.Errorf("glob makes more than %d patterns; use fewer braces", maxExpanded)
		}
	}
	return out, nil
}

// firstBraces finds the first balanced pair of braces, its comma-separated parts,
// and what follows.
func firstBraces(pattern string) (open int, parts []string, rest string, ok bool) {
	for open = 0; open < len(pattern); open++ {
		switch pattern[open] {
		case '\\':
			open++
		case '{':
			if parts, end := splitBraces(pattern, open+1); end > 0 {
				return open, parts, pattern[end:], true
			}
		}
	}
	return 0, nil, "", false
}

// splitBraces reads from behind an opening brace to behind its closing one. The end
// is 0 when there is none.
func splitBraces(pattern string, i int) (parts []string, end int) {
	depth, from := 0, i
	for ; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\':
			i++
		case c == '{':
			depth++
		case c == '}' && depth > 0:
			depth--
		case c == '}':
			return append(parts, pattern[from:i]), i + 1
		case c == ',' && depth == 0:
			parts = append(parts, pattern[from:i])
			from = i + 1
		}
	}
	return nil, 0
}

func (f *filter) addType(name string) error {
	name = strings.ToLower(strings.TrimLeft(strings.TrimSpace(name), "*."))
	f.typed = true
	if list, ok := fileTypes()[name]; ok {
		for _, pattern := range strings.Fields(list) {
			if strings.HasPrefix(pattern, ".") {
				f.endings = append(f.endings, pattern)
			} else {
				f.names = append(f.names, pattern)
			}
		}
		return nil
	}
	if name == "" || strings.ContainsAny(name, "/*?[]{}, \t\n") {
		return fmt.Errorf("file_type %q is unknown; give an ending such as \"go\" or one of %s, or use glob", name, strings.Join(slices.Sorted(maps.Keys(fileTypes())), " "))
	}
	f.endings = []string{"." + name}
	return nil
}

// fileTypes are the types whose files do not all end in the type's own name.
func fileTypes() map[string]string {
	return map[string]string{
		"asm": ".s .S .asm", "bazel": ".bzl .bazel BUILD WORKSPACE", "c": ".c .h", "clojure": ".clj .cljs .cljc .edn", "cmake": ".cmake CMakeLists.txt",
		"config": ".cfg .conf .config .ini .toml .properties", "cpp": ".cpp .cc .cxx .c++ .hpp .hh .hxx .h++ .h .inl", "c++": ".cpp .cc .cxx .c++ .hpp .hh .hxx .h++ .h .inl",
		"csharp": ".cs", "css": ".css .scss .sass .less", "cython": ".pyx .pxd .pxi", "docker": ".dockerfile Dockerfile Containerfile", "elixir": ".ex .exs .eex .heex",
		"erlang": ".erl .hrl", "fortran": ".f .f90 .f95 .f03 .for", "fsharp": ".fs .fsx .fsi", "go": ".go", "golang": ".go", "gomod": "go.mod go.sum go.work",
		"graphql": ".graphql .gql", "groovy": ".groovy .gradle", "haskell": ".hs .lhs", "html": ".html .htm .xhtml", "java": ".java", "javascript": ".js .jsx .mjs .cjs",
		"js": ".js .jsx .mjs .cjs .vue", "json": ".json .jsonl .json5 .jsonc", "julia": ".jl", "kotlin": ".kt .kts", "lisp": ".lisp .lsp .el .cl .scm", "make": ".mk .mak Makefile makefile GNUmakefile",
		"markdown": ".md .markdown .mdx .mdown", "md": ".md .markdown .mdx .mdown", "matlab": ".m", "objc": ".m .h .mm", "ocaml": ".ml .mli", "perl": ".pl .pm .t",
		"php": ".php .phtml", "powershell": ".ps1 .psm1 .psd1", "proto": ".proto", "protobuf": ".proto", "py": ".py .pyi", "python": ".py .pyi", "r": ".R .r .Rmd",
		"rb": ".rb .rake .gemspec Gemfile Rakefile", "ruby": ".rb .rake .gemspec Gemfile Rakefile", "rs": ".rs", "rust": ".rs", "scala": ".scala .sbt",
		"sh": ".sh .bash .zsh .ksh", "shell": ".sh .bash .zsh .ksh", "sql": ".sql .psql", "svelte": ".svelte", "swift": ".swift", "terraform": ".tf .tfvars .hcl", "tex": ".tex .sty .cls .bib",
		"toml": ".toml", "ts": ".ts .tsx .cts .mts", "typescript": ".ts .tsx .cts .mts", "text": ".txt .text", "txt": ".txt .text", "vim": ".vim", "vue": ".vue",
		"xml": ".xml .xsd .xsl .xslt .svg", "yaml": ".yaml .yml", "yml": ".yaml .yml", "zig": ".zig",
	}
}
