package search

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// quoteName returns a path as one line: as it is, or in Go's quoted form when it
// holds something that could be misread, such as control characters, invisible
// ones, invalid UTF-8, or blanks at the edge of a component.
func quoteName(path string) string {
	if needsQuotes(path) {
		return strconv.Quote(path)
	}
	return path
}

func needsQuotes(path string) bool {
	if path == "" || path[0] == '"' || !utf8.ValidString(path) {
		return true
	}
	plain := true
	for i := range len(path) {
		if path[i] <= ' ' || path[i] >= utf8.RuneSelf || path[i] == 0x7F {
			plain = false
			break
		}
	}
	if plain {
		return false
	}
	for _, r := range path {
		if !strconv.IsPrint(r) {
			return true
		}
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.Trim(part, " ") != part {
			return true
		}
	}
	return false
}
