// Package ignore reads git's ignore files and says which names they ignore.
//
// It knows the language of ".gitignore" and how the files of nested directories
// combine. It knows nothing of directories, repositories or configuration: whoever
// walks a tree reads the files and hands their text in. Checkpoints, the state of a
// repository and the search tools call it.
package ignore

import (
	"slices"
	"strings"
)

// Verdict is what ignore rules say of an entry.
type Verdict uint8

// The verdicts.
const (
	Silent  Verdict = iota // no rule speaks of it
	Ignored                // the rule that decides ignores it
	Kept                   // the rule that decides begins with "!"
)

// rule is one line of an ignore file.
type rule struct {
	negated bool
	dirOnly bool
	anyDir  bool // has no slash: compared with the last component at any depth
	literal string
	glob    glob // what follows the literal; unused when wild is false
	wild    bool
}

// Rules are the rules of one file, ready for many questions. The last rule that
// matches decides. They do not change once they are read.
type Rules struct {
	base  string // directory that path rules are relative to, "" for the root
	rules []rule
	names map[string][]int // rules that are a plain name
	ends  map[string][]int // rules of the form "*.ext", by ".ext"
	rest  []int
}

// Parse reads the text of an ignore file that lies in the directory base, relative to
// the root of the tree and "" for the root. It returns nil when there is no rule in it.
func Parse(base, text string) *Rules {
	set := empty(base)
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	for line := range strings.SplitSeq(text, "\n") {
		if zero := strings.IndexByte(line, 0); zero >= 0 {
			line = line[:zero]
		}
		line = trimBlanks(strings.TrimSuffix(line, "\r"))
		if line != "" && line[0] != '#' {
			set.add(line)
		}
	}
	if len(set.rules) == 0 {
		return nil
	}
	return set
}

// FromPatterns makes rules of patterns, one each, that stand as in an ignore file in the
// directory base, but in which blanks and "#" have no meaning. It reports whether all
// patterns are well-formed; a malformed one matches nothing.
func FromPatterns(base string, patterns []string) (rules *Rules, ok bool) {
	set := empty(base)
	for _, p := range patterns {
		set.add(p)
	}
	return set, !slices.ContainsFunc(set.rules, func(r rule) bool { return r.glob.never })
}

func empty(base string) *Rules {
	return &Rules{base: base, names: map[string][]int{}, ends: map[string][]int{}}
}

// trimBlanks cuts spaces at the end, except those after a backslash.
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
		}
		end = min(i+1, len(line))
	}
	return line[:end]
}

const wildcards = `*?[\`

func (s *Rules) add(line string) {
	var r rule
	line, r.negated = strings.CutPrefix(line, "!")
	line, r.dirOnly = strings.CutSuffix(line, "/")
	if line == "" {
		return
	}
	r.anyDir = !strings.Contains(line, "/")
	if !r.anyDir {
		line = strings.TrimPrefix(line, "/")
	}
	at := len(s.rules)
	wild := strings.IndexAny(line, wildcards)
	switch {
	case r.anyDir && wild < 0:
		s.names[line] = append(s.names[line], at)
	case r.anyDir && isEnding(line):
		s.ends[line[1:]] = append(s.ends[line[1:]], at)
	case wild < 0:
		r.literal = line
		s.rest = append(s.rest, at)
	default:
		r.literal, r.wild = line[:wild], true
		r.glob = compileGlob(line[wild:], !r.anyDir)
		s.rest = append(s.rest, at)
	}
	s.rules = append(s.rules, r)
}

// isEnding reports whether a pattern is "*.ext" with nothing special in ext.
func isEnding(pattern string) bool {
	return len(pattern) > 2 && pattern[0] == '*' && pattern[1] == '.' && !strings.ContainsAny(pattern[2:], wildcards+".")
}

// judge says what the rules say of an entry: its last component and its path from
// the root.
func (s *Rules) judge(name, path string, isDir bool) Verdict {
	best := s.last(s.names[name], -1, isDir)
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		best = s.last(s.ends[name[dot:]], best, isDir)
	}
	for i := len(s.rest) - 1; i >= 0 && s.rest[i] > best; i-- {
		if r := &s.rules[s.rest[i]]; (isDir || !r.dirOnly) && r.matches(name, s.relative(path)) {
			best = s.rest[i]
		}
	}
	switch {
	case best < 0:
		return Silent
	case s.rules[best].negated:
		return Kept
	}
	return Ignored
}

// last returns the later one of best and the last applicable rule of list.
func (s *Rules) last(list []int, best int, isDir bool) int {
	for i := len(list) - 1; i >= 0 && list[i] > best; i-- {
		if isDir || !s.rules[list[i]].dirOnly {
			return list[i]
		}
	}
	return best
}

func (s *Rules) relative(path string) string {
	if s.base == "" {
		return path
	}
	return path[len(s.base)+1:]
}

// matches compares as git does: the literal beginning first, the rest as a pattern
// of its own, so that "**" right after a literal counts as a component.
func (r *rule) matches(name, path string) bool {
	if r.anyDir {
		path = name
	}
	if !r.wild {
		return path == r.literal
	}
	rest, ok := strings.CutPrefix(path, r.literal)
	return ok && r.glob.match(rest, !r.anyDir)
}

// Chain is the rules in force in a directory: those of its own file decide before
// those above it. nil has no rules. It does not change and may be used from several
// goroutines.
type Chain struct {
	above *Chain
	rules *Rules
}

// With returns the chain with rules, if there are any, put before those of c.
func (c *Chain) With(rules *Rules) *Chain {
	if rules == nil {
		return c
	}
	return &Chain{above: c, rules: rules}
}

// Ignored reports whether the entry with the last component name is ignored; path is
// its whole path from the root. It does not look at the directories that hold it:
// whoever walks does not enter ignored ones.
func (c *Chain) Ignored(name, path string, isDir bool) bool {
	return c.Judge(name, path, isDir) == Ignored
}

// Judge is like Ignored and tells an entry that a rule keeps from one that no rule
// speaks of.
func (c *Chain) Judge(name, path string, isDir bool) Verdict {
	for ; c != nil; c = c.above {
		if v := c.rules.judge(name, path, isDir); v != Silent {
			return v
		}
	}
	return Silent
}
