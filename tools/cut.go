package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut bounds a result to about max bytes: 60 % of its head and 40 % of its tail
// around a line that names what was left out. Cuts fall between runes.
func Cut(text string, max int) string {
	if max <= 0 || len(text) <= max {
		return text
	}
	head, tail := max*6/10, max*4/10
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	start := len(text) - tail
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	left := text[head:start]
	return fmt.Sprintf("%s\n[… %d bytes (%d lines) left out …]\n%s", text[:head], len(left), strings.Count(left, "\n"), text[start:])
}
