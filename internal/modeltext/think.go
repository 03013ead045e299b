package modeltext

import "strings"

// thinkTags mark thinking that a model writes into its visible text.
var thinkTags = [...]struct{ open, close string }{
	{"<think>", "</think>"},
	{"<thinking>", "</thinking>"},
}

// Splitter separates thinking that stands in the visible text: a block that opens
// at the beginning of a line, outside code fences, up to its closing tag or the end.
// A closing tag alone, on its own or at the end of a line, means that the server's
// template opened the block: what came before it was thinking.
//
// The text may come in any pieces; the result is the same. It is for one goroutine.
type Splitter struct {
	content, thinking       strings.Builder
	newContent, newThinking string // what was added and not shown yet

	plain    bool   // the server separates thinking itself
	held     string // what may be the beginning of a tag
	closing  string // the tag that ends the open block; empty in visible text
	opened   bool   // a block was opened once
	skip     bool   // white space after a tag is dropped
	fence    byte   // the character of the open code fence, 0 when none
	fenceLen int
	line     linePrefix
}

// linePrefix is what the splitter knows of the current line, to see code fences.
type linePrefix struct {
	indent, run int  // blanks at its beginning, then fence characters
	char        byte // the first character that is not blank
	rest        bool // something stands after the run
	ticks       bool // a backtick stands after the run
}

// NewSplitter starts with the beginning of a reply.
func NewSplitter() *Splitter { return &Splitter{skip: true} }

// Think adds text that the server itself called thinking.
func (s *Splitter) Think(text string) {
	if text != "" {
		s.plain = true
		s.thinking.WriteString(text)
	}
}

// Feed adds visible text and returns what can be shown of it.
func (s *Splitter) Feed(text string) (content, thinking string) {
	if s.plain && s.closing == "" && s.held == "" {
		s.visible(text)
		return s.news()
	}
	text, s.held = s.held+text, ""
	for text != "" {
		if s.closing != "" {
			text = s.inBlock(text)
		} else {
			text = s.inText(text)
		}
	}
	return s.news()
}

// End releases what was held back and returns what can be shown of it.
func (s *Splitter) End() (content, thinking string) {
	held := s.held
	s.held = ""
	switch {
	case s.closing != "":
		s.thought(held)
		return s.news()
	case s.skip && s.opened:
		held = strings.TrimLeft(held, blanks)
	}
	s.visible(held)
	return s.news()
}

func (s *Splitter) visible(text string) {
	s.content.WriteString(text)
	s.newContent += text
}

func (s *Splitter) thought(text string) {
	s.thinking.WriteString(text)
	s.newThinking += text
}

// news returns what was added since the last call.
func (s *Splitter) news() (content, thinking string) {
	content, thinking = s.newContent, s.newThinking
	s.newContent, s.newThinking = "", ""
	return content, thinking
}

// Texts returns the two parts of everything that was fed.
func (s *Splitter) Texts() (content, thinking string) {
	if s.opened {
		return s.content.String(), strings.TrimSpace(s.thinking.String())
	}
	return s.content.String(), s.thinking.String()
}

const blanks = " \t\r\n"

// inBlock consumes text of a thinking block and returns the rest.
func (s *Splitter) inBlock(text string) string {
	if s.skip {
		text = strings.TrimLeft(text, blanks)
		if text == "" {
			return ""
		}
		s.skip = false
	}
	if i := strings.Index(text, s.closing); i >= 0 {
		s.thought(text[:i])
		text = text[i+len(s.closing):]
		s.closing, s.skip, s.line = "", true, linePrefix{}
		return text
	}
	n := len(text) - partial(text, s.closing)
	s.thought(text[:n])
	s.held = text[n:]
	return ""
}

// partial is the length of the longest end of text that begins tag.
func partial(text, tag string) int {
	for n := min(len(tag)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, tag[:n]) {
			return n
		}
	}
	return 0
}

// inText consumes visible text up to the next tag and returns the rest.
func (s *Splitter) inText(text string) string {
	if s.skip {
		trimmed := strings.TrimLeft(text, blanks)
		if trimmed == "" || mayOpen(trimmed) {
			s.held = text // blanks that are dropped if a tag follows
			return ""
		}
		if open, _ := openTag(trimmed); s.opened || open != "" {
			text = trimmed
		}
		s.skip = false
	}
	for i := 0; i < len(text); i++ {
		if text[i] == '<' && s.fence == 0 {
			if rest, done := s.tag(text, i); done {
				return rest
			}
		}
		s.see(text[i])
	}
	s.visible(text)
	return ""
}

// tag looks at a "<" in visible text. done says that the text before it was
// consumed, and the tag as well unless it is held back.
func (s *Splitter) tag(text string, i int) (rest string, done bool) {
	at := text[i:]
	if s.line.blank() {
		if open, closing := openTag(at); open != "" {
			s.visible(text[:i])
			s.closing, s.opened, s.skip = closing, true, true
			if s.thinking.Len() > 0 {
				s.thought("\n")
			}
			return at[len(open):], true
		}
		if mayOpen(at) {
			s.visible(text[:i])
			s.held = at
			return "", true
		}
	}
	if s.opened || s.plain {
		return "", false
	}
	for _, t := range thinkTags {
		switch {
		case strings.HasPrefix(at, t.close):
			after := strings.TrimPrefix(at[len(t.close):], "\r")
			if after == "" && !s.line.blank() {
				break // the next byte decides
			}
			if !s.line.blank() && after[0] != '\n' {
				return "", false
			}
			s.visible(text[:i])
			s.takeBack()
			return at[len(t.close):], true
		case !strings.HasPrefix(t.close, at):
			continue
		}
		s.visible(text[:i])
		s.held = at
		return "", true
	}
	return "", false
}

// openTag returns the opening tag that text begins with and the one that closes it.
func openTag(text string) (open, closing string) {
	for _, t := range thinkTags {
		if strings.HasPrefix(text, t.open) {
			return t.open, t.close
		}
	}
	return "", ""
}

// mayOpen reports whether text is the beginning of an opening tag.
func mayOpen(text string) bool {
	for _, t := range thinkTags {
		if len(text) < len(t.open) && strings.HasPrefix(t.open, text) {
			return true
		}
	}
	return false
}

// takeBack makes the visible text so far thinking.
func (s *Splitter) takeBack() {
	text := strings.TrimSpace(s.content.String())
	s.content.Reset()
	s.thinking.WriteString(text)
	// What was shown before was shown as text; the rest is shown as thinking.
	s.newThinking, s.newContent = s.newThinking+s.newContent, ""
	s.opened, s.skip, s.line = true, true, linePrefix{}
}

func (l linePrefix) blank() bool { return l.char == 0 }

// see follows one byte of visible text to know code fences.
func (s *Splitter) see(c byte) {
	l := &s.line
	switch {
	case c == '\n':
		s.endLine()
		s.line = linePrefix{}
	case l.char == 0 && (c == ' ' || c == '\t'):
		l.indent++
	case l.char == 0:
		l.char, l.run = c, 1
	case c == l.char && !l.rest:
		l.run++
	case c != ' ' && c != '\r' && c != '\t':
		l.rest = true
		l.ticks = l.ticks || c == '`'
	}
}

// endLine opens or closes a code fence.
func (s *Splitter) endLine() {
	l := s.line
	switch {
	case l.char != '`' && l.char != '~' || l.run < 3 || l.indent > 3:
	case s.fence == 0 && !(l.char == '`' && l.ticks):
		s.fence, s.fenceLen = l.char, l.run
	case s.fence == l.char && l.run >= s.fenceLen && !l.rest:
		s.fence = 0
	}
}
