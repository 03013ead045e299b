package patch

import (
	"regexp"
	"strings"
)

const devNull = "/dev/null"

var timestamp = regexp.MustCompile(`\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*$`)

// headerName reads the file name after "--- " or "+++ ": up to a tab or a time,
// or in quotes.
func headerName(text string) string {
	if name, ok := unquote(text); ok {
		return name
	}
	name, _, _ := strings.Cut(text, "\t")
	return strings.TrimRight(timestamp.ReplaceAllString(name, ""), " ")
}

// unquote reads a name in git's C style quotes.
func unquote(text string) (string, bool) {
	if !strings.HasPrefix(text, `"`) {
		return "", false
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			return b.String(), true
		case '\\':
			value, size := escape(text[i+1:])
			if size == 0 {
				return "", false
			}
			b.WriteByte(value)
			i += size
		default:
			b.WriteByte(c)
		}
	}
	return "", false
}

// escape reads what follows a backslash. size 0 means that it is none.
func escape(text string) (value byte, size int) {
	if text == "" {
		return 0, 0
	}
	const names, values = `abtnvfr"\`, "\a\b\t\n\v\f\r\"\\"
	if i := strings.IndexByte(names, text[0]); i >= 0 {
		return values[i], 1
	}
	if len(text) < 3 || text[0] > '3' {
		return 0, 0
	}
	for i := range 3 {
		if text[i] < '0' || text[i] > '7' {
			return 0, 0
		}
		value = value<<3 | (text[i] - '0')
	}
	return value, 3
}

// gitNames reads the two names of a "diff --git" line. They are known only when
// they are quoted or the same.
func gitNames(text string) (string, string, bool) {
	if old, ok := unquote(text); ok {
		end := strings.LastIndex(text, ` "`)
		if end < 0 {
			return "", "", false
		}
		name, ok := unquote(text[end+1:])
		return old, name, ok
	}
	half := len(text) / 2
	if len(text)%2 == 0 || text[half] != ' ' {
		return "", "", false
	}
	old, name := text[:half], text[half+1:]
	_, okOld := cutPrefix(old)
	_, okNew := cutPrefix(name)
	same := old == name || (okOld && okNew && old[2:] == name[2:])
	return old, name, same
}

// cutPrefix cuts a prefix such as "a/" as diff programs put it before names.
func cutPrefix(name string) (string, bool) {
	if len(name) > 2 && name[1] == '/' && strings.IndexByte("abciow", name[0]) >= 0 {
		return name[2:], true
	}
	return name, false
}

// pairName returns the one file that an old and a new name stand for, and the
// second reading. ok is false when they stand for two files.
func pairName(old, name string) (string, string, bool) {
	shortOld, okOld := cutPrefix(old)
	shortNew, okNew := cutPrefix(name)
	switch {
	case old == devNull && okNew && name[0] == 'b':
		return shortNew, "", true
	case name == devNull && okOld && old[0] == 'a':
		return shortOld, old, true
	case old == devNull:
		return name, "", true
	case name == devNull:
		return old, "", true
	case old == name && okOld:
		return old, shortOld, true
	case old == name:
		return old, "", true
	case okOld && okNew && shortOld == shortNew:
		return shortOld, "", true
	case okNew && shortNew == old:
		return old, "", true
	case okOld && shortOld == name:
		return name, "", true
	default:
		return "", "", false
	}
}
