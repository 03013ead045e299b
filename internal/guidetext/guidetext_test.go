package guidetext

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClean(t *testing.T) {
	tags := "\U000E0049\U000E0067\U000E006E"
	for _, c := range []struct {
		name, text, want string
		found            []string
	}{
		{"plain", "# A\n\nUse tabs.\n", "# A\n\nUse tabs.\n", nil},
		{"empty", "", "", nil},
		{"bom and line ends", "\uFEFFa\r\nb\r\n", "a\nb\n", nil},
		{"tag characters", "Be kind." + tags + "\n", "Be kind.<U+E0049><U+E0067><U+E006E>\n", []string{"invisible tag characters (3), shown as a marker"}},
		{"bidi", "a\u202Eb", "a<U+202E>b", []string{"<U+202E> reorders text (1), shown as a marker"}},
		{"zero width", "ig\u200Bnore", "ig<U+200B>nore", []string{"<U+200B> invisible (1), shown as a marker"}},
		{"escape", "a\x1b]52;c;x\x07", `a\x1b]52;c;x\x07`, []string{`\x1b terminal escape (1), shown as a marker`, `\x07 control character (1), shown as a marker`}},
		{"comment on lines of its own", "a\n<!-- run\nrm -->\nb\n", "a\nb\n", []string{"1 HTML comment left out"}},
		{"comment inside a line", "a <!-- x -->b <!--y-->c\n", "a b c\n", []string{"2 HTML comments left out"}},
		{"comment without an end", "a\n<!-- x\nb", "a\n<!-- x\nb", []string{"an HTML comment that does not end"}},
		{"comment in a code block", "```html\n<!-- x -->\n```\n<!-- y -->\nz", "```html\n<!-- x -->\n```\nz", []string{"1 HTML comment left out"}},
		{"comment in a span of code", "write `<!-- x -->` here\n", "write `<!-- x -->` here\n", nil},
		{"a lone backtick is no span", "a ` <!-- x --> b\n", "a `  b\n", []string{"1 HTML comment left out"}},
		{"no fence: its words hold a backtick", "```a`b\n<!-- x -->\n", "```a`b\n", []string{"1 HTML comment left out"}},
		{"no fence: behind a comment", "<!-- a -->```\n<!-- b -->\nc", "```\nc", []string{"2 HTML comments left out"}},
		{"lines behind a long comment", "a <!-- b\n\n--> c <!-- d\n-->\n\ne", "a  c \n\ne", []string{"2 HTML comments left out"}},
		{"a longer fence closes", "~~~\n<!-- a -->\n~~\n~~~~\n<!-- b -->\nc", "~~~\n<!-- a -->\n~~\n~~~~\nc", []string{"1 HTML comment left out"}},
		{"comment made of markers", "<\u200B!-- x -->", "<<U+200B>!-- x -->", []string{"<U+200B> invisible (1), shown as a marker"}},
		{"far to the right", "a" + strings.Repeat(" ", 300) + "b", "a" + strings.Repeat(" ", 300) + "b", []string{"text behind 300 blanks or empty lines"}},
		{"far below", "a" + strings.Repeat("\n", 201) + "b", "a" + strings.Repeat("\n", 201) + "b", []string{"text behind 200 blanks or empty lines"}},
		{"nothing far below", "a" + strings.Repeat("\n", 300), "a" + strings.Repeat("\n", 300), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, found := Clean(c.text)
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !slices.Equal(found, c.found) {
				t.Errorf("found %q, want %q", found, c.found)
			}
		})
	}
}

// FuzzClean checks that cleaning again changes nothing more of what cannot be seen,
// and that text with nothing hidden stays as it is.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\n<!-- x -->\nb", "```\n<!-- x -->\n```", "\uFEFFx\r\n\U000E0041", "<!-- a\n--> ```\n<!-- b -->", "~~~ `\n<!--", "    ```\n<!-- -->"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		clean, found := Clean(text)
		if len(found) == 0 && clean != strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n") {
			t.Errorf("changed without a word: %q became %q", text, clean)
		}
		if strings.ContainsAny(clean, "\x00\x1b\r\u202e\u200b") {
			t.Errorf("hidden characters are left: %q", clean)
		}
		if len(clean) > 12*len(text) {
			t.Errorf("%d bytes became %d", len(text), len(clean))
		}
	})
}

func TestCleanIsQuick(t *testing.T) {
	for name, text := range map[string]string{
		"comments in a row":       strings.Repeat("<!---->", 150_000),
		"openings in a span":      "`" + strings.Repeat("<!--", 250_000) + "`",
		"openings behind a tick":  "`" + strings.Repeat("<!--", 250_000),
		"ticks and openings":      strings.Repeat("`<!--`", 150_000),
		"openings without an end": strings.Repeat("<!--\n", 200_000),
		"long comments":           strings.Repeat("<!--\n-->\n", 100_000),
	} {
		start := time.Now()
		Clean(text)
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("%s: %d bytes took %v", name, len(text), took)
		}
	}
}
