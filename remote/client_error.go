package remote

import "unicode/utf8"

// hinted is an error with what to do about it.
type hinted struct {
	error
	hint string
}

func (h hinted) Unwrap() error { return h.error }

// Hint says what to do next.
func (h hinted) Hint() string { return h.hint }

func hint(err error, text string) error { return hinted{err, text} }

// clip cuts text of the far side to a number of bytes, at a character.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
