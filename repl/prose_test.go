package repl

import (
	"strings"
	"testing"
	"zcoder/internal/termtext"
)

// dimmed shows what st dims as {…}.
func dimmed(text string) string {
	return strings.NewReplacer("\x1b[2m", "{", "\x1b[0m", "}").Replace(text)
}

func TestProse(t *testing.T) {
	for _, test := range []struct{ name, in, want string }{
		{"plain", "Hello, world.\n", "Hello, world.\n"},
		{"heading", "## Title\n#include\n####### seven\n", "{##} Title\n#include\n####### seven\n"},
		{"lists", "- a\n  * b\n1. c\n12) d\n1.5 e\n-f\n", "{-} a\n  {*} b\n{1.} c\n{12)} d\n1.5 e\n-f\n"},
		{"rule", "---\n***\n--x\n--\n", "{---}\n{***}\n--x\n--\n"},
		{"quote", "> said\n", "{>} said\n"},
		{"bold and code", "**a** b * c `x**y` ~~z~~ ~\n", "{**}a{**} b * c {`}x**y{`} {~~}z{~~} ~\n"},
		{"bold at the start", "**a** b\n", "{**}a{**} b\n"},
		{"double backquotes", "``a`b``\n", "{``}a`b{``}\n"},
		{"an open span ends with its line", "`a\n**b**\n", "{`}a\n{**}b{**}\n"},
		{"code block", "```go\n\tx := `a` ** b  \n# no heading\n   \n```\n**b**\n", "{```go}\n\tx := `a` ** b  \n# no heading\n   \n{```}\n{**}b{**}\n"},
		{"longer fence", "````\n```\n````  \nx\n", "{````}\n```\n{````  }\nx\n"},
		{"fence of another kind", "~~~\n```\n~~~\n", "{~~~}\n```\n{~~~}\n"},
		{"code on one line is no fence", "```x``` y\n", "{```}x{```} y\n"},
		{"fence at the very end", "```\nx\n```", "{```}\nx\n{```}"},
		{"unfinished", "a **", "a {**}"},
		{"control bytes", "a\x1b[2Jb\u202ec\r\n`\x07`\n", "a\\x1b[2Jb<U+202E>c\n{`}\\x07{`}\n"},
		{"indent", "        return\n", "        return\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			whole := prose{}
			got := whole.write(test.in)
			got += whole.end()
			if d := dimmed(got); d != test.want {
				t.Errorf("got  %q\nwant %q", d, test.want)
			}
			byByte := prose{}
			pieces := ""
			for i := range len(test.in) {
				pieces += byByte.write(test.in[i : i+1])
			}
			pieces += byByte.end()
			if strings.ReplaceAll(dimmed(pieces), "}{", "") != strings.ReplaceAll(test.want, "}{", "") {
				t.Errorf("byte by byte %q", dimmed(pieces))
			}
		})
	}
}

func TestProseLongLine(t *testing.T) {
	var p prose
	shown := 0
	for range 800 {
		shown += len(p.write(strings.Repeat("é", maxLine/2)))
	}
	end := p.write("\nnext\n") + p.end()
	if shown > maxLine || shown < maxLine-4 {
		t.Errorf("%d bytes of the line shown", shown)
	}
	if want := "{ … 52363264 more bytes of this line are not shown}\nnext\n"; dimmed(end) != want {
		t.Errorf("got %q, want %q", dimmed(end), want)
	}
}

// FuzzProse checks that only styles are added: without them the text is what
// termtext makes of it, however it is divided.
func FuzzProse(f *testing.F) {
	f.Add("# a\n```go\nx\n```\n**b** `c`\n", 3)
	f.Add("1. \x1b]52;c;x\x07 \u202e\n> ---\n~~~\n", 1)
	f.Fuzz(func(t *testing.T, text string, step int) {
		if step < 1 || len(text) > maxLine {
			return
		}
		whole, parts := prose{}, prose{}
		want := whole.write(text) + whole.end()
		got := ""
		for rest := text; rest != ""; {
			n := min(step, len(rest))
			got += parts.write(rest[:n])
			rest = rest[n:]
		}
		got += parts.end()
		if unstyled(got) != unstyled(want) || strings.Contains(unstyled(got), "\x1b") {
			t.Fatalf("divided %q\nwhole %q", got, want)
		}
		if safe := safeText(text); unstyled(want) != safe {
			t.Fatalf("got %q\nwant %q", unstyled(want), safe)
		}
	})
}

func TestCodeBlocks(t *testing.T) {
	reply := "Run\n```sh\nls -l  \n\n\tx\r\n```\nand\n~~~\n```\n~~~\n```x``` is none\n```\nopen"
	got := codeBlocks(reply)
	want := []string{"ls -l  \n\n\tx\r\n", "```\n", "open"}
	if len(got) != len(want) {
		t.Fatalf("got %q", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("block %d: %q, want %q", i, got[i], want[i])
		}
	}
}

func BenchmarkProse(b *testing.B) {
	text := strings.Repeat("Some words of a reply with `code` and **bold** text, as models write it.\n- a list entry\n\n```go\n\tif err != nil {\n\t\treturn err\n\t}\n```\n", 50)
	b.SetBytes(int64(len(text)))
	var p prose
	for b.Loop() {
		for i := 0; i < len(text); i += 64 {
			p.write(text[i:min(i+64, len(text))])
		}
		p.end()
	}
}

func safeText(text string) string { return termtext.Safe(text) }
