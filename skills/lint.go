package skills

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"zcoder/internal/guidetext"
	"zcoder/internal/secret"
	"zcoder/internal/termtext"
	"zcoder/internal/workspace"
)

// Finding is a remark of Lint.
type Finding struct {
	File  string // relative to the linted directory
	Line  int    // 0 when it is about the whole file
	Error bool   // else a remark
	Text  string
}

// String is the finding as one line, its file quoted when its name is odd.
func (f Finding) String() string {
	word := "note"
	if f.Error {
		word = "error"
	}
	place := termtext.Line(f.File)
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", place, f.Line)
	}
	return fmt.Sprintf("%s: %s: %s", place, word, f.Text)
}

// Bounds of a check.
const (
	lintFiles   = 2000    // files looked at
	lintSize    = 1 << 20 // bytes of a file whose text is read
	longBody    = 500     // lines of a SKILL.md that fit a context well
	largeFolder = 10 << 20
)

// Lint checks a skill, or every skill of a directory that holds skills: frontmatter,
// size, links that leave, secrets, hidden text, and phrases that try to steer a model
// behind the person's back. maxBytes is the limit for SKILL.md. It reads regular files
// below dir only and starts nothing. The error says that dir cannot be read.
func Lint(dir string, maxBytes int) ([]Finding, error) {
	w, err := workspace.Open(dir, workspace.Options{})
	if err != nil {
		return nil, err
	}
	defer w.Close()
	l := &linter{w: w, maxBytes: maxBytes}
	if p, err := w.Resolve(skillFile); err == nil && p.Exists() {
		l.skill(".")
	} else if err := l.skills(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(l.found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return l.found, nil
}

type linter struct {
	w        *workspace.Workspace
	maxBytes int
	files    int
	bytes    int64
	found    []Finding
}

func (l *linter) add(file string, line int, bad bool, format string, args ...any) {
	l.found = append(l.found, Finding{file, line, bad, fmt.Sprintf(format, args...)})
}

// skills checks each directory of one that holds skills.
func (l *linter) skills() error {
	p, err := l.w.Resolve(".")
	if err != nil {
		return err
	}
	entries, err := l.w.ReadDir(p)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range entries {
		if q, err := l.w.Resolve(e.Name() + "/" + skillFile); e.IsDir() && err == nil && q.Exists() {
			l.skill(e.Name())
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("check skills in %q: neither it nor a directory in it holds a %s", l.w.Root(), skillFile)
	}
	return nil
}

// skill checks one skill.
func (l *linter) skill(dir string) {
	l.bytes = 0
	l.manifest(dir)
	l.walk(dir, 0)
	if l.bytes > largeFolder {
		l.add(dir, 0, false, "the skill has %d bytes together", l.bytes)
	}
}

// manifest checks SKILL.md.
func (l *linter) manifest(dir string) {
	name := path.Join(dir, skillFile)
	p, err := l.w.Resolve(name)
	if err != nil || !p.Exists() {
		l.add(name, 0, true, "it cannot be read: %v", err)
		return
	}
	content, _, err := l.w.Read(p, lintSize)
	if err != nil {
		l.add(name, 0, true, "%v", err)
		return
	}
	if len(content) > l.maxBytes {
		l.add(name, 0, true, "it has %d bytes, at most %d are read", len(content), l.maxBytes)
	}
	f, err := readFront(string(content))
	if err != nil {
		l.add(name, 1, true, "%v", err)
		return
	}
	for _, n := range f.notes {
		l.add(name, n.line, strings.Contains(n.text, "not valid YAML"), "%s", n.text)
	}
	base := path.Base(path.Join(l.w.Root(), dir))
	switch err := checkName(f.name); {
	case f.name == "":
		l.add(name, f.nameLine, true, "the frontmatter has no name")
	case err != nil:
		l.add(name, f.nameLine, true, "%v", err)
	case f.name != base:
		l.add(name, f.nameLine, true, "the name %q is not that of the directory, %q", f.name, base)
	}
	switch n := utf8.RuneCountInString(f.description); {
	case n == 0:
		l.add(name, f.descriptionLine, true, "the frontmatter has no description")
	case n > maxDescription:
		l.add(name, f.descriptionLine, true, "the description has %d characters, at most %d are shown", n, maxDescription)
	}
	if n := strings.Count(f.body, "\n"); n > longBody {
		l.add(name, f.bodyLine, false, "the text has %d lines; more than %d crowd a context, so move parts into files of their own", n, longBody)
	}
}

// walk checks the files of a directory.
func (l *linter) walk(dir string, depth int) {
	p, err := l.w.Resolve(dir)
	if err != nil {
		return
	}
	entries, err := l.w.ReadDir(p)
	if err != nil {
		l.add(dir, 0, true, "%v", err)
		return
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if l.files++; l.files > lintFiles {
			if l.files == lintFiles+1 {
				l.add(dir, 0, true, "only the first %d files were checked", lintFiles)
			}
			return
		}
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			l.link(name)
		case e.IsDir() && depth < 16:
			l.walk(name, depth+1)
		case e.Type().IsRegular():
			l.file(name)
		case !e.IsDir():
			l.add(name, 0, true, "it is not a regular file")
		}
	}
}

func (l *linter) link(name string) {
	if _, err := l.w.Resolve(name); err != nil {
		l.add(name, 0, true, "it is a link that does not lead inside the directory; it is not read")
		return
	}
	l.add(name, 0, false, "it is a link")
}

// file checks the text of a file.
func (l *linter) file(name string) {
	p, err := l.w.Resolve(name)
	if err != nil {
		l.add(name, 0, true, "%v", err)
		return
	}
	l.bytes += p.Info().Size()
	if why := workspace.Secret(name); why != "" {
		l.add(name, 0, true, "its name is that of %s", why)
	}
	content, _, err := l.w.Read(p, lintSize)
	switch {
	case errors.Is(err, workspace.ErrTooLarge):
		l.add(name, 0, false, "it has %d bytes and was not checked", p.Info().Size())
		return
	case err != nil:
		l.add(name, 0, true, "%v", err)
		return
	case bytes.IndexByte(content, 0) >= 0:
		l.add(name, 0, false, "it is binary and was not checked")
		return
	}
	lines := strings.Split(string(content), "\n")
	l.secrets(name, lines)
	l.hidden(name, string(content), lines)
	for _, h := range phrasesIn(lines) {
		l.add(name, h.line, !h.negated, "%s: %q", h.text, termtext.Line(cut(strings.TrimSpace(lines[h.line-1]), 100)))
	}
	l.commands(name, lines)
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

var keyBlock = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)

func (l *linter) secrets(name string, lines []string) {
	var none *secret.Masker // knows shapes only
	for i, line := range lines {
		switch masked := none.Mask(line); {
		case keyBlock.MatchString(line):
			l.add(name, i+1, true, "a private key")
		case masked != line:
			_, kind, _ := strings.Cut(masked, "[masked: ")
			kind, _, _ = strings.Cut(kind, "]")
			l.add(name, i+1, true, "what looks like a secret (%s)", kind)
		}
	}
}

// hidden reports what a reader does not see.
func (l *linter) hidden(name, content string, lines []string) {
	for i, line := range lines {
		for _, h := range termtext.HiddenIn(strings.TrimSuffix(line, "\r")) {
			if i == 0 && strings.HasPrefix(line, "\uFEFF") && h.Count == 1 && strings.HasPrefix(h.Name, "<U+FEFF>") {
				continue
			}
			l.add(name, i+1, true, "hidden characters: %s (%d)", h.Name, h.Count)
		}
	}
	if !strings.HasSuffix(name, ".md") {
		return
	}
	_, found := guidetext.Clean(content)
	for _, f := range found {
		if strings.Contains(f, "comment") || strings.Contains(f, "blanks") {
			l.add(name, commentLine(lines), false, "%s", f)
		}
	}
}

func commentLine(lines []string) int {
	return slices.IndexFunc(lines, func(s string) bool { return strings.Contains(s, "<!--") }) + 1
}

// risk is a kind of command that a skill should not ask for.
type risk struct {
	pattern *regexp.Regexp
	text    string
	bad     bool
}

// commandRisks compiles the patterns when somebody lints: every start would pay for them.
func commandRisks() []risk {
	return []risk{
		{regexp.MustCompile(`(?i)\b(curl|wget|fetch)\b[^|\n]*\|\s*(sudo\s+)?(env\s+)?((ba|z|da|fi|k)?sh|python[0-9.]*|perl|ruby|node)\b`), "it runs what it downloads", true},
		{regexp.MustCompile(`(?i)\b(sh|bash|zsh|eval|source|\.)\s+.*(<\(|\$\(|` + "`" + `)\s*(curl|wget)\b`), "it runs what it downloads", true},
		{regexp.MustCompile(`(?i)\bbase64\s+(-d|-D|--decode)\b[^\n]*\|\s*(sudo\s+)?(ba|z|da)?sh\b`), "it runs what it decodes", true},
		{regexp.MustCompile(`(?i)--(dangerously[a-z-]*|yolo|full-auto|bypass-(approvals|permissions)[a-z-]*)\b`), "it switches the approval of an agent off", true},
		{regexp.MustCompile(`(?i)\bnpx\s+[^\s]+@latest\b.*(--yes|-y)\b|\bnpx\s+(--yes|-y)\s+[^\s]+@latest\b`), "it runs the newest version of a package, whatever that is", true},
		{regexp.MustCompile("(^|\\s)!`[^`]+`"), "it asks for a command to be run while it is loaded; nothing runs here", false},
	}
}

func (l *linter) commands(name string, lines []string) {
	risks := commandRisks()
	for i, line := range lines {
		for _, r := range risks {
			if r.pattern.MatchString(line) {
				l.add(name, i+1, r.bad, "%s: %q", r.text, termtext.Line(cut(strings.TrimSpace(line), 100)))
			}
		}
	}
}
