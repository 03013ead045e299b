package search

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeTree writes a tree of about the given number of source-like files with nested
// directories, ignore files, a .git directory and some dropped and binary content.
func makeTree(tb testing.TB, root string, files int) {
	tb.Helper()
	r := rand.New(rand.NewPCG(7, 7))
	words := vocabulary(r)
	must(tb, os.MkdirAll(filepath.Join(root, ".git", "info"), 0o700))
	must(tb, os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.log\n/out/\n*.min.js\ntmp/\n!keep.log\ndocs/**/*.pdf\n"), 0o600))
	perDir := 24
	for made, dir := 0, 0; made < files; dir++ {
		path := root
		for n := dir; n > 0; n /= 7 {
			path = filepath.Join(path, fmt.Sprintf("%s%d", words[n%40], n%7))
		}
		must(tb, os.MkdirAll(path, 0o700))
		if dir%40 == 5 {
			must(tb, os.WriteFile(filepath.Join(path, ".gitignore"), []byte("*.tmp\n/gen_*\n"), 0o600))
		}
		for range min(perDir, files-made) {
			ext := []string{".go", ".go", ".ts", ".py", ".md", ".log", ".c"}[r.IntN(7)]
			name := fmt.Sprintf("%s_%s%d%s", words[r.IntN(len(words))], words[r.IntN(len(words))], made, ext)
			must(tb, os.WriteFile(filepath.Join(path, name), sourceText(r, words), 0o600))
			made++
		}
	}
}

func vocabulary(r *rand.Rand) []string {
	words := strings.Fields("func return if else for range err nil string int error context request result value name path file line buffer reader writer close open read write " +
		"import package struct interface map slice append len make new switch case default break continue const var type bool true false this that with from when then " +
		"handler server client config option flag parse token index match query search limit offset count total start stop timeout retry")
	syllables := strings.Fields("con ter re mi lo pa sen dor vi qua stra ple num bic tor el an ish ver gol")
	for len(words) < 2000 {
		var w strings.Builder
		for range 2 + r.IntN(3) {
			w.WriteString(syllables[r.IntN(len(syllables))])
		}
		words = append(words, w.String())
	}
	return words
}

func sourceText(r *rand.Rand, words []string) []byte {
	var b bytes.Buffer
	size := 600 + int(r.ExpFloat64()*4000)
	for b.Len() < size {
		b.WriteString(strings.Repeat("\t", r.IntN(4)))
		for n := 2 + r.IntN(7); n > 0; n-- {
			// Common words come first in the list, as they do in real text.
			w := words[int(float64(len(words))*r.Float64()*r.Float64()*r.Float64())]
			switch r.IntN(12) {
			case 0:
				w = strings.ToUpper(w[:1]) + w[1:]
			case 1:
				w += "_" + words[r.IntN(80)]
			case 2:
				w += fmt.Sprint(r.IntN(1000))
			}
			b.WriteString(w)
			b.WriteString([]string{" ", " ", " ", "(", ")", ".", ", ", " := ", ": ", " = "}[r.IntN(10)])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func splitLines(text string) []string { return strings.Split(text, "\n") }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
