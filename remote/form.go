package remote

import "strings"

// madeOf reports whether a text has least to most bytes of letters, digits and marks, the
// regular expression of which would cost every start of the program a millisecond.
func madeOf(text string, least, most int, marks string) bool {
	if len(text) < least || len(text) > most {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9') && strings.IndexByte(marks, c) < 0 {
			return false
		}
	}
	return true
}
