// Package docs holds the documents of this directory, so that the program can show them
// wherever it is installed.
package docs

import (
	"embed"
	"io/fs"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Topic is one document.
type Topic struct {
	Name  string // of the file, without .md
	Title string // its first heading
	Text  string // the whole of it, Markdown
}

// order is the order of reading. What it does not name comes behind, by name.
func order() []string {
	return []string{"getting-started", "interface", "safety", "configuration", "skills", "mcp", "workers", "relay", "remote", "web", "editors", "sysadmin", "architecture", "development"}
}

// Topics returns the documents in the order of reading.
func Topics() []Topic {
	names, err := fs.Glob(files, "*.md")
	if err != nil {
		panic(err) // the pattern is a literal
	}
	list := make([]Topic, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // Glob found it in what the binary holds
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		list = append(list, Topic{strings.TrimSuffix(name, ".md"), title, string(text)})
	}
	place := func(t Topic) int {
		if i := slices.Index(order(), t.Name); i >= 0 {
			return i
		}
		return len(order())
	}
	slices.SortStableFunc(list, func(a, b Topic) int { return place(a) - place(b) })
	return list
}
