package patch

import (
	"regexp"
	"strings"
)

// Bounds of one patch: its text in bytes, and the files it names.
const (
	maxPatch    = 16 << 20
	maxSections = 1000
)

// parse reads a patch: sections of a unified diff, with or without git's extended
// headers, and "*** Begin Patch" envelopes. Prose, fences and shell wrappers around
// it are skipped; inside it every line must belong to something.
func parse(text string) ([]section, error) {
	if err := checkText(text); err != nil {
		return nil, err
	}
	text = strings.TrimPrefix(text, "\ufeff")
	text = mailSignature.ReplaceAllString(text, "\n")
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	r := &reader{lines: lines, outside: true}
	for r.at < len(r.lines) {
		if err := r.step(); err != nil {
			return nil, err
		}
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	switch {
	case len(r.sections) == 0:
		return nil, noStructure(text)
	case len(r.sections) > maxSections:
		return nil, reject("it names %d files, at most %d are taken; split it.", len(r.sections), maxSections)
	}
	return r.sections, nil
}

// mailSignature is what git writes below a patch made for mail.
var mailSignature = regexp.MustCompile(`\n-- \r?\n\d+\.\d+[\w.]*\s*$`)

func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return reject("the patch is empty.")
	case len(text) > maxPatch:
		return reject("the patch has %d bytes, at most %d are taken; split it.", len(text), maxPatch)
	case strings.IndexByte(text, 0) >= 0:
		return reject("the patch holds a NUL byte; only text can be patched.")
	}
	return nil
}

func noStructure(text string) error {
	if strings.Contains(text, `\n`) && strings.Count(text, "\n") < 4 {
		return literalBreaks()
	}
	return reject("it has no file header (\"--- a/FILE\" and \"+++ b/FILE\" on two lines) and no hunk.")
}

func literalBreaks() error {
	return reject(`it has the two characters \n where line breaks belong; send real line breaks.`)
}

var literalBreak = regexp.MustCompile(`\\n(\+|-|@@|\*\*\* | )`)

// kind is what a line of a patch is by its first characters.
type kind uint8

const (
	kindText kind = iota // nothing known, or a line of a hunk
	kindBlank
	kindFence
	kindGit      // diff --git a/x b/x
	kindDiff     // what other programs write before a file
	kindExtended // git's lines about modes and renames
	kindBinary
	kindPair // "--- x" with "+++ y" below it
	kindHunk
	kindMarker // "*** Begin Patch" and its like
)

var (
	extended = regexp.MustCompile(`^(?:(old mode|new mode|new file mode|deleted file mode) (\d+)|(rename from|rename to|copy from|copy to) (.+)|` +
		`(?:similarity|dissimilarity) index \d+%|index [0-9a-f]{4,}(?:,[0-9a-f]{4,})*\.\.[0-9a-f]{4,}(?: (\d{6}))?)$`)
	otherDiff = regexp.MustCompile(`^(?:diff (?:-\S+ )+|Index: |={60,}$)`)
	binaryRow = regexp.MustCompile(`^(?:GIT binary patch$|Binary files .* differ$|binary files differ)`)
	markerRow = regexp.MustCompile(`(?i)^\*\*\* ?(begin patch|end patch|add file:|update file:|delete file:|move to:|end of file)\s*(.*)$`)
)

// reader is the state of reading a patch.
type reader struct {
	lines    []string
	at       int
	outside  bool   // text here is prose around the patch
	begun    bool   // the first line of the patch itself was seen
	crlf     bool   // the patch was sent with CRLF line ends
	heredoc  string // word that ends a shell wrapper
	sections []section
	cur      *draft
}

// head returns a line as headers are read: without a carriage return.
func (r *reader) head(i int) string { return strings.TrimRight(r.lines[i], "\r") }

func (r *reader) kind(i int) kind {
	text := r.head(i)
	switch {
	case strings.TrimSpace(text) == "":
		return kindBlank
	case strings.HasPrefix(text, "```") || r.heredoc != "" && strings.Trim(text, " \t\"')") == r.heredoc:
		return kindFence
	case strings.HasPrefix(text, "diff --git "):
		return kindGit
	case r.pair(i):
		return kindPair
	case strings.HasPrefix(text, "@@"):
		return kindHunk
	case markerRow.MatchString(text):
		return kindMarker
	case extended.MatchString(text):
		return kindExtended
	case binaryRow.MatchString(text):
		return kindBinary
	case otherDiff.MatchString(text):
		return kindDiff
	default:
		return kindText
	}
}

func (r *reader) pair(i int) bool {
	return strings.HasPrefix(r.lines[i], "--- ") && i+1 < len(r.lines) && strings.HasPrefix(r.lines[i+1], "+++ ")
}

// step reads the next line, and with it the hunk that it begins.
func (r *reader) step() error {
	k := r.kind(r.at)
	if k >= kindGit {
		r.enter(k)
	}
	switch k {
	case kindBlank:
		r.at++
		return nil
	case kindFence:
		r.outside = true
		r.at++
		return r.close()
	case kindGit, kindDiff:
		return r.openSection(k)
	case kindExtended:
		return r.extended()
	case kindBinary:
		return reject("line %d is a binary patch; only text can be patched.", r.at+1)
	case kindPair:
		return r.names()
	case kindHunk:
		return r.hunk()
	case kindMarker:
		return r.marker()
	default:
		return r.text()
	}
}

// enter notes that the patch itself begins, and with which line ends it was sent.
func (r *reader) enter(k kind) {
	if k != kindDiff {
		r.outside = false
	}
	if !r.begun {
		r.begun = true
		r.crlf = strings.HasSuffix(r.lines[r.at], "\r")
	}
}

var heredocStart = regexp.MustCompile(`<<-?\s*['"]?(\w+)['"]?`)

// text takes a line that no header is: prose around the patch, or the first lines
// of an envelope's section, which need no "@@".
func (r *reader) text() error {
	text := r.head(r.at)
	if r.outside {
		if m := heredocStart.FindStringSubmatch(text); m != nil {
			r.heredoc = m[1]
		}
		r.at++
		return nil
	}
	if r.cur != nil && r.cur.envelope && len(r.cur.hunks) == 0 && strings.IndexByte(" +-", text[0]) >= 0 {
		return r.body(hunk{line: r.at + 1, old: -1, new: -1})
	}
	return r.leftover()
}

func (r *reader) leftover() error {
	text := r.head(r.at)
	switch {
	case strings.HasPrefix(text, "*** "):
		return reject("line %d, %s, is no header that is known here: *** Add File:, *** Update File:, *** Delete File:, *** Move to:, *** End of File and *** End Patch are.", r.at+1, show(text))
	case r.cur != nil && r.cur.op == create:
		return reject("line %d, %s, belongs to nothing: every line of a new file begins with \"+\".", r.at+1, show(text))
	case r.cur != nil:
		return reject("line %d, %s, belongs to nothing: every line of a hunk begins with a space (unchanged), \"-\" or \"+\".", r.at+1, show(text))
	default:
		return reject("line %d, %s, belongs to no file.", r.at+1, show(text))
	}
}

// openSection begins a section at a line that names no file for certain.
func (r *reader) openSection(k kind) error {
	if err := r.close(); err != nil {
		return err
	}
	if k == kindGit {
		text := strings.TrimPrefix(r.head(r.at), "diff --git ")
		if literalBreak.MatchString(text) {
			return literalBreaks()
		}
		r.cur = &draft{section: section{line: r.at + 1}}
		r.cur.gitOld, r.cur.gitNew, r.cur.git = gitNames(text)
	}
	r.at++
	return nil
}

func (r *reader) extended() error {
	if r.cur == nil || r.cur.named || r.cur.envelope || len(r.cur.hunks) > 0 {
		if err := r.close(); err != nil {
			return err
		}
		r.cur = &draft{section: section{line: r.at + 1}}
	}
	m := extended.FindStringSubmatch(r.head(r.at))
	r.at++
	switch {
	case m[1] != "":
		return r.cur.setMode(m[1], m[2])
	case m[3] != "":
		return r.cur.setMove(m[3], m[4])
	case m[5] != "":
		return r.cur.setMode("index", m[5])
	}
	return nil
}

// names reads "--- x" and "+++ y".
func (r *reader) names() error {
	oldText, newText := r.head(r.at)[4:], r.head(r.at + 1)[4:]
	if literalBreak.MatchString(oldText) || literalBreak.MatchString(newText) {
		return literalBreaks()
	}
	old, name := headerName(oldText), headerName(newText)
	r.at += 2
	if r.cur != nil && r.cur.envelope && len(r.cur.hunks) == 0 {
		if one, other, ok := pairName(old, name); ok && (one == r.cur.name || other == r.cur.name) {
			return nil
		}
	}
	if r.cur == nil || r.cur.named || r.cur.envelope || len(r.cur.hunks) > 0 {
		if err := r.close(); err != nil {
			return err
		}
		r.cur = &draft{section: section{line: r.at - 1}}
	}
	r.cur.old, r.cur.new, r.cur.named = old, name, true
	return nil
}

// marker reads a line of an envelope.
func (r *reader) marker() error {
	m := markerRow.FindStringSubmatch(r.head(r.at))
	word, arg := strings.ToLower(m[1]), strings.TrimSpace(m[2])
	if literalBreak.MatchString(m[2]) {
		return literalBreaks()
	}
	line := r.at + 1
	r.at++
	if name, ok := unquote(arg); ok {
		arg = name
	}
	switch word {
	case "move to:":
		if r.cur == nil || !r.cur.envelope || r.cur.op != update || len(r.cur.hunks) > 0 || r.cur.to != "" || arg == "" {
			return reject("line %d: \"*** Move to: NEW\" stands once, directly below \"*** Update File: OLD\".", line)
		}
		r.cur.to = arg
		return nil
	case "end of file":
		if r.cur == nil || len(r.cur.hunks) == 0 {
			return reject("line %d: \"*** End of File\" stands below the last line of a hunk.", line)
		}
		r.cur.hunks[len(r.cur.hunks)-1].atEnd = true
		return nil
	}
	if err := r.close(); err != nil {
		return err
	}
	if word == "begin patch" || word == "end patch" {
		return nil
	}
	if arg == "" {
		return reject("line %d, %s, names no file.", line, show(m[0]))
	}
	r.cur = &draft{section: section{name: arg, line: line}, envelope: true}
	switch word {
	case "add file:":
		r.cur.op = create
	case "delete file:":
		r.cur.op, r.cur.whole = remove, true
	}
	return nil
}

// close ends the section that is being read.
func (r *reader) close() error {
	if r.cur == nil {
		return nil
	}
	s, err := r.cur.finish()
	r.cur = nil
	r.sections = append(r.sections, s)
	return err
}
