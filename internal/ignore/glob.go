package ignore

import "strings"

// A glob is a compiled wildcard pattern with git's meaning of *, ?, [...], \ and **.
// It compares bytes, as git does.
type glob struct {
	tokens []token
	never  bool // malformed: git takes such a pattern for one that matches nothing
}

type tokenKind uint8

const (
	tokenByte tokenKind = iota
	tokenAny            // one byte, in a path none of "/"
	tokenSet            // one byte of a set
	tokenStar           // any bytes, in a path none of "/"
	tokenDeep           // any bytes at all
	tokenDirs           // nothing, or any bytes up to and with a "/"
)

type token struct {
	kind tokenKind
	char byte
	set  *byteSet
}

// compileGlob reads a pattern. With path set, "*" and "?" stop at slashes and "**"
// between slashes crosses them; without it, the text has no slashes.
func compileGlob(pattern string, path bool) glob {
	var g glob
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; c {
		case '\\':
			if i+1 == len(pattern) {
				return glob{never: true}
			}
			g.tokens = append(g.tokens, token{kind: tokenByte, char: pattern[i+1]})
			i += 2
		case '?':
			g.tokens = append(g.tokens, token{kind: tokenAny})
			i++
		case '[':
			set, next := readSet(pattern, i+1)
			if set == nil {
				return glob{never: true}
			}
			g.tokens = append(g.tokens, token{kind: tokenSet, set: set})
			i = next
		case '*':
			kind, next := readStars(pattern, i, path)
			g.tokens = append(g.tokens, token{kind: kind})
			i = next
		default:
			g.tokens = append(g.tokens, token{kind: tokenByte, char: c})
			i++
		}
	}
	return g
}

// readStars reads a run of stars at i and returns its meaning and where the pattern
// goes on. "**" has its own meaning only as a whole path component.
func readStars(pattern string, i int, path bool) (tokenKind, int) {
	end := i
	for end < len(pattern) && pattern[end] == '*' {
		end++
	}
	rest := pattern[end:]
	if !path || end-i < 2 || (i > 0 && pattern[i-1] != '/') {
		return tokenStar, end
	}
	switch {
	case rest == "", strings.HasPrefix(rest, `\/`):
		return tokenDeep, end
	case rest[0] == '/':
		return tokenDirs, end + 1
	}
	return tokenStar, end
}

// match reports whether the whole of text matches. It goes back to the last star
// and, when that is used up, to the last token that crosses slashes, so that its
// time is bounded by the product of the lengths.
func (g *glob) match(text string, path bool) bool {
	if g.never {
		return false
	}
	type retry struct{ token, text int }
	star, deep := retry{-1, 0}, retry{-1, 0}
	t, i := 0, 0
	for {
		if t == len(g.tokens) {
			if i == len(text) {
				return true
			}
		} else {
			switch tok := &g.tokens[t]; tok.kind {
			case tokenStar:
				t++
				star = retry{t, i}
				continue
			case tokenDeep, tokenDirs:
				t++
				deep, star = retry{t, i}, retry{-1, 0}
				continue
			default:
				if i < len(text) && tok.one(text[i], path) {
					t, i = t+1, i+1
					continue
				}
			}
		}
		if star.token >= 0 && star.text < len(text) && !(path && text[star.text] == '/') {
			star.text++
			t, i = star.token, star.text
			continue
		}
		if deep.token < 0 {
			return false
		}
		deep.text = g.deeper(deep.token, text, deep.text)
		if deep.text < 0 {
			return false
		}
		t, i, star = deep.token, deep.text, retry{-1, 0}
	}
}

// deeper returns the next place from which the tokens after a crossing token may
// match, or -1.
func (g *glob) deeper(token int, text string, from int) int {
	if g.tokens[token-1].kind == tokenDeep {
		if from < len(text) {
			return from + 1
		}
		return -1
	}
	slash := strings.IndexByte(text[from:], '/')
	if slash < 0 {
		return -1
	}
	return from + slash + 1
}

func (t *token) one(c byte, path bool) bool {
	switch t.kind {
	case tokenByte:
		return c == t.char
	case tokenAny:
		return !path || c != '/'
	}
	return t.set.has(c) && !(path && c == '/')
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *byteSet) addRange(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s.add(byte(c))
	}
}

func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// readSet reads a bracket expression whose content starts at i and returns where
// the pattern goes on. It returns nil when the expression is malformed.
func readSet(pattern string, i int) (*byteSet, int) {
	set := &byteSet{}
	negated := i < len(pattern) && (pattern[i] == '!' || pattern[i] == '^')
	if negated {
		i++
	}
	low, haveLow := byte(0), false // the byte that a following "-" makes a range from
	for first := true; ; first = false {
		if i >= len(pattern) {
			return nil, 0
		}
		c := pattern[i]
		switch {
		case c == ']' && !first:
			if negated {
				set.invert()
			}
			return set, i + 1
		case c == '-' && haveLow && i+1 < len(pattern) && pattern[i+1] != ']':
			high, next, ok := readSetByte(pattern, i+1)
			if !ok {
				return nil, 0
			}
			set.addRange(low, high)
			i, haveLow = next, false
		case c == '[' && i+1 < len(pattern) && pattern[i+1] == ':':
			next, ok := set.addClass(pattern, i)
			if !ok {
				return nil, 0
			}
			i, low, haveLow = next, '[', next == i+1
		default:
			var ok bool
			if low, i, ok = readSetByte(pattern, i); !ok {
				return nil, 0
			}
			set.add(low)
			haveLow = true
		}
	}
}

func readSetByte(pattern string, i int) (c byte, next int, ok bool) {
	if pattern[i] == '\\' {
		i++
	}
	if i >= len(pattern) {
		return 0, 0, false
	}
	return pattern[i], i + 1, true
}

// addClass adds a class such as [:alpha:] that starts at i. Without an end mark the
// bracket is an ordinary character of the set; an unknown class is malformed.
func (s *byteSet) addClass(pattern string, i int) (next int, ok bool) {
	start := i + 2
	end := strings.IndexByte(pattern[start:], ']')
	if end < 0 {
		return 0, false
	}
	end += start
	if end == start || pattern[end-1] != ':' {
		s.add('[')
		return i + 1, true
	}
	in, known := classes()[pattern[start:end-1]]
	if !known {
		return 0, false
	}
	for _, r := range in {
		s.addRange(r[0], r[1])
	}
	return end + 1, true
}

func classes() map[string][][2]byte {
	return map[string][][2]byte{
		"alnum":  {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
		"alpha":  {{'A', 'Z'}, {'a', 'z'}},
		"blank":  {{' ', ' '}, {'\t', '\t'}},
		"cntrl":  {{0, 31}, {127, 127}},
		"digit":  {{'0', '9'}},
		"graph":  {{'!', '~'}},
		"lower":  {{'a', 'z'}},
		"print":  {{' ', '~'}},
		"punct":  {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}},
		"space":  {{'\t', '\r'}, {' ', ' '}},
		"upper":  {{'A', 'Z'}},
		"xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
	}
}
