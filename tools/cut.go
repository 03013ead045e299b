package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Cut bounds a result to about max characters: 60 % of its head and 40 % of its tail
// around a line that names what was left out. max <= 0 is no bound.
func Cut(text string, max int) string {
	if max <= 0 || len(text) <= max || utf8.RuneCountInString(text) <= max {
		return text
	}
	head := forward(text, max*6/10)
	tail := backward(text, max*4/10)
	left := text[head:tail]
	return fmt.Sprintf("%s\n[… %d characters (%d lines) left out …]\n%s", text[:head], utf8.RuneCountInString(left), strings.Count(left, "\n"), text[tail:])
}

// forward is the offset behind the first n characters.
func forward(text string, n int) int {
	at := 0
	for ; n > 0; n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// backward is the offset of the last n characters.
func backward(text string, n int) int {
	at := len(text)
	for ; n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}
