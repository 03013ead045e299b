package shellread

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ansiC decodes the escapes of $'…'.
func ansiC(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		i += escape(&b, text[i:]) - 1
	}
	s := b.String()
	if cut := strings.IndexByte(s, 0); cut >= 0 {
		s = s[:cut]
	}
	return s
}

// escape decodes one escape, without its backslash, and returns how many bytes of
// text it took.
func escape(b *strings.Builder, text string) int {
	const simple = "a\ab\be\x1bE\x1bf\fn\nr\rt\tv\v"
	if i := strings.IndexByte(simple, text[0]); i >= 0 && i%2 == 0 {
		b.WriteByte(simple[i+1])
		return 1
	}
	switch c := text[0]; {
	case c == 'x':
		return coded(b, text[1:], 16, 2, false) + 1
	case c == 'u':
		return coded(b, text[1:], 16, 4, true) + 1
	case c == 'U':
		return coded(b, text[1:], 16, 8, true) + 1
	case c >= '0' && c <= '7':
		return coded(b, text, 8, 3, false)
	case strings.IndexByte(`\'"?`, c) >= 0:
		b.WriteByte(c)
		return 1
	default:
		b.WriteByte('\\')
		b.WriteByte(c)
		return 1
	}
}

// coded decodes up to most digits and returns how many there were.
func coded(b *strings.Builder, text string, base, most int, isRune bool) int {
	n := 0
	for n < len(text) && n < most {
		if _, err := strconv.ParseUint(text[n:n+1], base, 8); err != nil {
			break
		}
		n++
	}
	v, err := strconv.ParseUint(text[:n], base, 32)
	switch {
	case err != nil:
	case isRune && v <= utf8.MaxRune:
		b.WriteRune(rune(v))
	default:
		b.WriteByte(byte(v))
	}
	return n
}

// matches reports whether a pattern of *, ? and [ ] covers all of a text; unlike in
// file names, * also covers slashes.
func matches(pattern, text string) bool {
	for pattern != "" {
		switch pattern[0] {
		case '*':
			pattern = strings.TrimLeft(pattern, "*")
			if pattern == "" {
				return true
			}
			for i := 0; i <= len(text); i++ {
				if matches(pattern, text[i:]) {
					return true
				}
			}
			return false
		case '?':
			if text == "" {
				return false
			}
			pattern, text = pattern[1:], text[1:]
		case '[':
			ok, size := inClass(pattern, text)
			if !ok {
				return false
			}
			pattern, text = pattern[size:], text[1:]
		default:
			if pattern[0] == '\\' && len(pattern) > 1 {
				pattern = pattern[1:]
			}
			if text == "" || text[0] != pattern[0] {
				return false
			}
			pattern, text = pattern[1:], text[1:]
		}
	}
	return text == ""
}

// inClass matches the bracket at the start of a pattern against one byte, and
// returns the length of the bracket.
func inClass(pattern, text string) (bool, int) {
	end := strings.IndexByte(pattern[min(2, len(pattern)):], ']')
	if end < 0 {
		return text != "" && text[0] == '[', 1
	}
	end += 2
	if text == "" {
		return false, 0
	}
	set := pattern[1:end]
	not := set[0] == '!' || set[0] == '^'
	if not {
		set = set[1:]
	}
	in := false
	for i := 0; i < len(set); i++ {
		if i+2 < len(set) && set[i+1] == '-' {
			in = in || set[i] <= text[0] && text[0] <= set[i+2]
			i += 2
			continue
		}
		in = in || set[i] == text[0]
	}
	return in != not, end + 1
}
