package patch

import "strings"

// maxShown bounds a line of a file or of the patch in an error text, in bytes.
const maxShown = 160

// show quotes a line for an error text without escapes, so that a model that
// copies it copies what is in the file.
func show(text string) string {
	return "`" + clip(text) + "`"
}

func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + "…"
}
