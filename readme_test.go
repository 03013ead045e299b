package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fences are the code blocks of a Markdown text by what stands behind the mark: their
// language, and more.
func fences(text string) map[string][]string {
	blocks := map[string][]string{}
	for _, m := range regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	return blocks
}

func TestReadmeHasTheTwoCommands(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fences(string(text))["sh"][0], twoCommands; got != want {
		t.Errorf("the first commands of README.md = %q; want %q", got, want)
	}
}

func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)
	for _, file := range append(files, "README.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// readmeSession writes the lines of README's session as waits of a terminal script, so
// that the session in it is one that the program really shows.
func readmeSession() (string, error) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("run zcoder --demo\n")
	for line := range strings.Lines(fences(string(text))[""][0]) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasPrefix(line, "✓"):
			b.WriteString("wait Allow this?\nsettle\nsend y\n")
		case strings.HasPrefix(line, "script compares"):
			continue // the terminal wraps elsewhere
		case strings.HasPrefix(line, "A basket"):
			line = "A basket of exactly 10000 cents gets no discount"
		}
		b.WriteString("wait " + line + "\n")
	}
	b.WriteString("wait ›\nsend \\x04\nexit 0\n")
	return b.String(), nil
}
