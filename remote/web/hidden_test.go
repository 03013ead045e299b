package web

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode"

	"zcoder/internal/termtext"
)

var update = flag.Bool("update", false, "write static/hidden.js")

// TestHiddenIsWhatTermtextHides: the page names the characters that the terminal names.
// Two that emoji are made of pass there, unassigned ones are named by the browser's own
// knowledge of them, and marks that pile up are left to its clipping.
func TestHiddenIsWhatTermtextHides(t *testing.T) {
	const path = "static/hidden.js"
	want := hiddenFile()
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s differs from termtext: run go test ./remote/web -update (%v)", path, err)
	}
}

func hiddenFile() []byte {
	var b bytes.Buffer
	b.WriteString("// Made from internal/termtext by its test in this package: the characters that act, hide or\n// reorder, as first and last of each range.\nexport const hidden = [\n")
	first, last := rune(-1), rune(-2)
	end := func() {
		if first >= 0 {
			fmt.Fprintf(&b, "  [0x%04X, 0x%04X],\n", first, last)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !hides(r) {
			continue
		}
		if r != last+1 {
			end()
			first = r
		}
		last = r
	}
	end()
	b.WriteString("];\n")
	return b.Bytes()
}

func hides(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\u200D', r == '\uFE0F', r >= 0xD800 && r <= 0xDFFF:
		return false
	case unicode.Is(unicode.Hangul, r): // a syllable's parts need those before
		return strings.Contains(termtext.Safe("\u1100\u1161"+string(r)), "<U+") && strings.Contains(termtext.Safe(string(r)), "<U+")
	}
	list := termtext.HiddenIn("a" + string(r))
	return len(list) > 0 && list[0].Name != "unassigned code points"
}
