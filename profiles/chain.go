package profiles

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"zcoder/internal/guidetext"
)

// Names of the files that guide agents; the first one of a directory counts.
const (
	overrideFile = "AGENTS.override.md"
	guideFile    = "AGENTS.md"
)

// Reader returns the content of the regular file at an absolute path, and must not
// block. fs.ErrNotExist says that there is none; any other error says why the file
// must not be used, in words for a person.
type Reader func(path string) ([]byte, error)

// Sources say where the instruction chain is read.
type Sources struct {
	Global    string   // directory of the user's own file; empty: none
	Root      string   // root of the project, absolute
	Workspace string   // absolute: Root or a directory below it
	Fallbacks []string // names that count where no AGENTS.md stands
	MaxBytes  int      // all texts together, as the model gets them; 0 reads none

	ReadGlobal, ReadProject Reader
}

// Guide is one file of the chain.
type Guide struct {
	Path   string   // absolute, as it was looked for
	Text   string   // what the model gets
	Size   int      // bytes of the file
	Cut    bool     // Text is not all of it
	Sum    string   // SHA-256 of the file, in hexadecimal
	Hidden []string // what a person who reads the file would not see
}

// Ignored is a file that is there and not used.
type Ignored struct {
	Path   string
	Reason string
}

// Chain is what the files of a user and a project say, the most general first.
type Chain struct {
	Guides  []Guide
	Ignored []Ignored
}

// ReadChain reads the global file and then one file of each directory from the root of
// the project down to the workspace. When they are longer than MaxBytes together,
// short ones stay whole and long ones share what is left.
func ReadChain(s Sources) Chain {
	var c Chain
	if s.MaxBytes <= 0 {
		return c
	}
	if s.Global != "" {
		c.add(s.find(s.Global, s.ReadGlobal))
	}
	for _, dir := range s.dirs() {
		c.add(s.find(dir, s.ReadProject))
	}
	c.share(s.MaxBytes)
	return c
}

// nestedShare is the part of MaxBytes that the file of one directory below the
// workspace may have.
const nestedShare = 4

// Nested reads the file of a directory below the workspace. ok is false when it has
// none.
func (s Sources) Nested(dir string) (g Guide, ignored []Ignored, ok bool) {
	if s.MaxBytes <= 0 {
		return g, nil, false
	}
	found, ignored := s.find(dir, s.ReadProject)
	if found == nil {
		return g, ignored, false
	}
	found.cutTo(s.MaxBytes / nestedShare)
	return *found, ignored, found.Text != ""
}

// dirs are the directories from the root down to the workspace.
func (s Sources) dirs() []string {
	var dirs []string
	for dir := s.Workspace; ; dir = path.Dir(dir) {
		dirs = append(dirs, dir)
		if dir == s.Root || dir == path.Dir(dir) {
			break
		}
	}
	if dirs[len(dirs)-1] != s.Root {
		return []string{s.Workspace}
	}
	slices.Reverse(dirs)
	return dirs
}

// find reads the file that counts in a directory: the first of its names that has
// something to say. Those that must not be used are passed over and listed.
func (s Sources) find(dir string, read Reader) (*Guide, []Ignored) {
	var ignored []Ignored
	for _, name := range append([]string{overrideFile, guideFile}, s.Fallbacks...) {
		full := path.Join(dir, name)
		if !strings.HasPrefix(full, strings.TrimSuffix(dir, "/")+"/") {
			continue
		}
		content, err := read(full)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			ignored = append(ignored, Ignored{full, err.Error()})
		default:
			g := newGuide(full, content)
			if strings.TrimSpace(g.Text) != "" {
				return g, ignored
			}
		}
	}
	return nil, ignored
}

func newGuide(full string, content []byte) *Guide {
	sum := sha256.Sum256(content)
	g := &Guide{Path: full, Size: len(content), Sum: hex.EncodeToString(sum[:])}
	g.Text, g.Hidden = guidetext.Clean(string(content))
	g.Text = strings.TrimSpace(g.Text)
	return g
}

// add appends what was found. The same text twice, as in a work tree inside its own
// project, counts once.
func (c *Chain) add(g *Guide, ignored []Ignored) {
	c.Ignored = append(c.Ignored, ignored...)
	if g == nil {
		return
	}
	for _, have := range c.Guides {
		if have.Sum == g.Sum {
			c.Ignored = append(c.Ignored, Ignored{g.Path, "it says the same as " + have.Path})
			return
		}
	}
	c.Guides = append(c.Guides, *g)
}

// share cuts the texts to what fits together.
func (c *Chain) share(budget int) {
	sizes := make([]int, len(c.Guides))
	for i, g := range c.Guides {
		sizes[i] = len(g.Text)
	}
	for i, n := range Shares(sizes, budget) {
		c.Guides[i].cutTo(n)
	}
}

// Shares divides a budget by need: who needs less than an equal part gets all of it,
// the others share the rest.
func Shares(sizes []int, budget int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	out := make([]int, len(sizes))
	for at, i := range order {
		out[i] = min(sizes[i], budget/(len(order)-at))
		budget -= out[i]
	}
	return out
}

// cutTo bounds the text to n bytes, with a last line that says so.
func (g *Guide) cutTo(n int) {
	if len(g.Text) <= n {
		return
	}
	g.Cut = true
	note := func(kept int) string { return fmt.Sprintf("\n[cut here: %d of %d bytes]", kept, len(g.Text)) }
	keep := n - len(note(len(g.Text)))
	if keep <= 0 {
		g.Text = ""
		return
	}
	for keep > 0 && !utf8.RuneStart(g.Text[keep]) {
		keep--
	}
	if line := strings.LastIndexByte(g.Text[:keep], '\n'); line > keep/2 {
		keep = line
	}
	g.Text = g.Text[:keep] + note(keep)
}

// Text is the chain as the prompt holds it: each text under its quoted path.
func (c Chain) Text() string {
	var b strings.Builder
	for _, g := range c.Guides {
		if g.Text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString("From " + strconv.Quote(g.Path) + ":\n\n" + g.Text)
	}
	return b.String()
}

// Root returns the nearest directory at or above the workspace that isRoot says is the
// root of a project, else the workspace itself.
func Root(workspace string, isRoot func(dir string) bool) string {
	for dir := workspace; ; dir = path.Dir(dir) {
		if isRoot(dir) {
			return dir
		}
		if dir == path.Dir(dir) {
			return workspace
		}
	}
}
