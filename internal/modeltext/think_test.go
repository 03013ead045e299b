package modeltext

import (
	"strings"
	"testing"
)

// Field case O15: thinking in the visible text is separated, except in code fences.
func TestO15InlineThinking(t *testing.T) {
	tests := []struct{ name, in, content, thinking string }{
		{"none", "Hello there.\n", "Hello there.\n", ""},
		{"block", "<think>hm\n</think>\n\nAnswer", "Answer", "hm"},
		{"long tag", "<thinking>hm</thinking>Answer", "Answer", "hm"},
		{"blanks before", "\n <think>hm</think>Answer", "Answer", "hm"},
		{"blanks without a block stay", "\n  Answer", "\n  Answer", ""},
		{"never closed", `<think>{"name":"run_command","arguments":{"command":"id"}}`, "", `{"name":"run_command","arguments":{"command":"id"}}`},
		{"nothing but thinking", "<think>hm</think>", "", "hm"},
		{"empty block", "<think>\n\n</think>\n\nAnswer", "Answer", ""},
		{"two blocks", "<think>a</think>\nB\n<think>c</think>\nD", "B\nD", "a\nc"},
		{"code fence", "The tags:\n```\n<think>\n```\nend", "The tags:\n```\n<think>\n```\nend", ""},
		{"tilde fence", "~~~\n<think>\n```\n<think>\n~~~\nend", "~~~\n<think>\n```\n<think>\n~~~\nend", ""},
		{"longer fence", "````\n```\n<think>\n````\n", "````\n```\n<think>\n````\n", ""},
		{"after a fence", "```\nx\n```\n<think>a</think>b", "```\nx\n```\nb", "a"},
		{"no fence in one line", "```x```\n<think>a</think>b", "```x```\nb", "a"},
		{"in a sentence", "Use the <think> tag and </think> here.", "Use the <think> tag and </think> here.", ""},
		{"in code words", "`<think>` opens, `</think>`\ncloses", "`<think>` opens, `</think>`\ncloses", ""},
		{"other tags", "<thing>x</thing> <thin", "<thing>x</thing> <thin", ""},
		{"less than", "a <\nb < c", "a <\nb < c", ""},
		{"only the end of a tag", "</thinx>", "</thinx>", ""},
		{"opened by the template", "I look at it.\n</think>\n\nAnswer", "Answer", "I look at it."},
		{"opened by the template, closed in the line", "I look.</think>\nAnswer", "Answer", "I look."},
		{"closing tag in prose", "Write </think> at the end.", "Write </think> at the end.", ""},
		{"closing tag in a fence", "```\n</think>\n```\nx", "```\n</think>\n```\nx", ""},
		{"closing tag after a block", "<think>a</think>b\n</think>\nc", "b\n</think>\nc", "a"},
		{"held to the end", "x\n<thi", "x\n<thi", ""},
		{"windows lines", "hm</think>\r\nAnswer", "Answer", "hm"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.in)+1; size++ {
				content, thinking, _, _ := splitInPieces(tt.in, size)
				if content != tt.content || thinking != tt.thinking {
					t.Fatalf("in pieces of %d: got %q and %q, want %q and %q", size, content, thinking, tt.content, tt.thinking)
				}
			}
		})
	}
}

func TestServerSideThinkingLeavesTagsAlone(t *testing.T) {
	s := NewSplitter()
	s.Think("hm")
	s.Feed("<think> is a tag\n</think>\n")
	s.End()
	if c, th := s.Texts(); c != "<think> is a tag\n</think>\n" || th != "hm" {
		t.Errorf("got %q, %q", c, th)
	}
}

// splitInPieces feeds text in pieces and returns the result and what was shown.
func splitInPieces(text string, size int) (content, thinking, shownContent, shownThinking string) {
	s := NewSplitter()
	for text != "" {
		n := min(size, len(text))
		c, th := s.Feed(text[:n])
		shownContent, shownThinking = shownContent+c, shownThinking+th
		text = text[n:]
	}
	c, th := s.End()
	content, thinking = s.Texts()
	return content, thinking, shownContent + c, shownThinking + th
}

func FuzzSplitter(f *testing.F) {
	for _, s := range []string{"<think>a</think>b", "x\n</think>\ny", "```\n<think>\n```", "<thi", " \n<thinking>", "a</think>\r\nb", "<think>a</think>\n<think>b"} {
		f.Add(s, 1)
	}
	// Pieces do not matter; nothing is made up; what is shown is what the result
	// has, except that visible text may turn out to be thinking.
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			size = 1
		}
		c1, t1, _, _ := splitInPieces(text, len(text)+1)
		c2, t2, shown, _ := splitInPieces(text, size)
		if c1 != c2 || t1 != t2 {
			t.Fatalf("%q: whole %q, %q; pieces of %d %q, %q", text, c1, t1, size, c2, t2)
		}
		if len(c1)+len(t1) > len(text) {
			t.Fatalf("%q grew to %q, %q", text, c1, t1)
		}
		if !strings.HasSuffix(shown, c1) {
			t.Fatalf("%q: shown %q, content %q", text, shown, c1)
		}
		if !strings.Contains(text, "think") && (c1 != text || t1 != "") {
			t.Fatalf("%q changed to %q, %q", text, c1, t1)
		}
	})
}
