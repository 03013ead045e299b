package manual

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"zcoder/internal/termtext"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ name, markdown, want string }{
		{"title", "# The title\n", "The title\n=========\n"},
		{"heading and paragraph", "## Keys\n\nOne two three four\nfive six.\n", "Keys\n\n  One two three four five\n  six.\n"},
		{"marks", "**Bold `x`** and *thin*, `a * b`.", "  Bold `x` and thin, `a *\n  b`.\n"},
		{"stars as notes", "`a` *, `b` * and", "  `a` *, `b` * and\n"},
		{"a star alone", "2 * 3 and 4 * 5", "  2 * 3 and 4 * 5\n"},
		{"items", "- one two three four five\n  six\n- b\n  - c\n1. d\n", "  - one two three four\n    five six\n  - b\n    - c\n  1. d\n"},
		{"code", "```sh\na  b\n\n# c\n```\n", "      a  b\n\n      # c\n"},
		{"indented code", "See:\n\n    › tell\n\nx", "  See:\n\n      › tell\n\n  x\n"},
		{"a topic", "[mcp.md](mcp.md)", "  `zcoder help mcp`\n"},
		{"words that lead to a topic", "[Skills](interface.md#skills)", "  Skills (`zcoder help\n  interface`)\n"},
		{"a file of the tree", "[the rules](../CONTRIBUTING.md)", "  the rules\n"},
		{"an address", "[Ollama](https://o.example)", "  Ollama\n  (https://o.example)\n"},
		{"narrow table", "| k | does |\n|---|---|\n| `a` | b |\n", "  k  does\n  a  b\n"},
		{"table of two", "| key | does |\n|---|---|\n| Enter | sends the line to the model |\n", "  key    does\n  Enter  sends the line\n         to the model\n"},
		{"table of two without titles", "| | |\n|---|---|\n| `/x` | y |\n", "  /x  y\n"},
		{"table of many", "| key | flag | means |\n|---|---|---|\n| `model` | | a long explanation |\n| | `-x` | y |\n", "  model\n      means: a long\n        explanation\n  -x\n      means: y\n"},
		{"bars in a cell", "| a \\| b | `c\\|d` |\n|---|---|\n| e | f |\n", "  a | b  c|d\n  e      f\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Text(c.markdown, 25); got != c.want {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestSection(t *testing.T) {
	const doc = "# A\n\nx\n\n## B\n\nb\n\n### C\n\nc\n\n```sh\n## D\n```\n\n## D\n\nd\n"
	for _, c := range []struct{ title, want string }{
		{"B", "b\n\n### C\n\nc\n\n```sh\n## D\n```"},
		{"C", "c\n\n```sh\n## D\n```"},
		{"D", "d"},
		{"E", ""},
	} {
		if got := Section(doc, c.title); got != c.want {
			t.Errorf("Section(%q) = %q, want %q", c.title, got, c.want)
		}
	}
}

func TestRoff(t *testing.T) {
	p := Page{Name: "prog", Version: "1.2", Summary: "does it", Parts: []Part{
		{Title: "OPTIONS", Text: "It's `-x` **b** *i* 5\\6.\n\nMore.\n\n- one\n\n| a | b |\n|---|---|\n| `k` | does |\n", Entries: []Entry{{"-x, --long", "means"}}},
		{Title: "More of it", Sub: true, Text: "```\n.dot\n'quote\n```\n"},
	}}
	want := `.TH PROG 1 "" "prog 1.2" ""
.nh
.ad l
.SH NAME
prog \- does it
.SH "OPTIONS"
It\(aqs \fB\-x\fR \fBb\fR \fIi\fR 5\e6.
.PP
More.
.IP "\-" 3
one
.TP
\fBk\fR
does
.TP
\fB\-x, \-\-long\fR
means
.SS "More of it"
.PP
.RS 4
.nf
\&.dot
\(aqquote
.fi
.RE
`
	if got := p.Roff(); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestDocuments renders every document: nothing is lost, no mark is left over, and only
// code is wider than the page.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	word := regexp.MustCompile(`[\pL\pN]+`)
	for _, file := range files {
		markdown, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := Text(string(markdown), 80)
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			if termtext.Width(line) > 80 && !strings.HasPrefix(line, "      ") && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s: a line of %d columns: %s", file, termtext.Width(line), line)
			}
			if !strings.HasPrefix(line, "      ") && (strings.Contains(line, "**") || strings.Contains(line, "](") || strings.Contains(line, "|--")) {
				t.Errorf("%s: a mark is left: %s", file, line)
			}
		}
		links := regexp.MustCompile(`\]\([^)]*\)`)
		have := map[string]bool{}
		for _, w := range word.FindAllString(text, -1) {
			have[w] = true
		}
		for _, w := range word.FindAllString(links.ReplaceAllString(fenceLine.ReplaceAllString(string(markdown), ""), ""), -1) {
			if !have[w] && !strings.HasSuffix(w, "md") && !isTitle(string(markdown), w) {
				t.Errorf("%s: the word %q is lost", file, w)
			}
		}
	}
}

var fenceLine = regexp.MustCompile("(?m)^```.*$")

// isTitle reports whether a word stands in the titles of a table, which a table of many
// columns repeats only where a cell needs them, or is the name of a linked page.
func isTitle(markdown, word string) bool {
	for line := range strings.Lines(markdown) {
		if strings.HasPrefix(line, "|") && strings.Contains(line, word) {
			return true
		}
	}
	return strings.Contains(markdown, "["+word) || strings.Contains(markdown, word+".md")
}

// TestRoffOfDocuments has groff read every document as roff.
func TestRoffOfDocuments(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("groff is not there")
	}
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	page := Page{Name: "prog", Version: "1", Summary: "does it"}
	for _, file := range files {
		markdown, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		page.Parts = append(page.Parts, Part{Title: filepath.Base(file), Text: string(markdown)})
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page.Roff())
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "error") {
		t.Errorf("groff: %v\n%s", err, out)
	}
}
