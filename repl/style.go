package repl

import "strings"

// style writes emphasis. Each piece is complete in itself: text that is cut between
// two calls never leaves a style open.
type style struct {
	plain bool // no control bytes at all
	color bool
}

func (s style) dim(text string) string    { return s.sgr("2", text) }
func (s style) bold(text string) string   { return s.sgr("1", text) }
func (s style) invert(text string) string { return s.sgr("7", text) }
func (s style) red(text string) string    { return s.hue("31", text) }
func (s style) green(text string) string  { return s.hue("32", text) }
func (s style) yellow(text string) string { return s.hue("33", text) }
func (s style) cyan(text string) string   { return s.hue("36", text) }

func (s style) hue(code, text string) string {
	if !s.color {
		return text
	}
	return s.sgr(code, text)
}

// sgr styles each line of text by itself.
func (s style) sgr(code, text string) string {
	if s.plain || text == "" {
		return text
	}
	if strings.Contains(text, "\n") {
		lines := strings.Split(text, "\n")
		for i, line := range lines {
			lines[i] = s.sgr(code, line)
		}
		return strings.Join(lines, "\n")
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// unstyled returns text without what sgr added. Safe text has no other ESC.
func unstyled(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	var b strings.Builder
	for text != "" {
		before, rest, found := strings.Cut(text, "\x1b")
		b.WriteString(before)
		if !found {
			break
		}
		_, text, _ = strings.Cut(rest, "m")
	}
	return b.String()
}
