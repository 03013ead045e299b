package file

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxCompared is how much of a file is searched for similar lines, in bytes.
	maxCompared = 8 << 20
	// maxGraded is how many lines are compared letter by letter.
	maxGraded = 20000
	// maxQuoted and maxQuote bound the lines that an error shows: how many, and how
	// many characters of each.
	maxQuoted, maxQuote = 8, 160
	// similar is the least likeness of a line that is worth showing, in percent.
	similar = 50
	// telling is the least length of a new text whose presence says something, in bytes.
	telling = 8
)

// explain says why old is not in s and how to correct the call. It never guesses an
// edit.
func explain(ctx context.Context, s source, old, text string) string {
	found := func(text string) []int { return s.lines(s.find([]byte(text), 2)) }
	if plain := withoutGutter(old); plain != old && len(found(plain)) > 0 {
		return "old_text holds the line numbers that read_file_range shows; send the lines without the numbers"
	}
	if plain := unescape(old); plain != old && len(found(plain)) > 0 {
		return `old_text holds the characters \n, \t or \" where the file has a line end, a tab or a quote; send those themselves, escaped once in JSON`
	}
	if len(strings.TrimSpace(text)) >= telling && !strings.Contains(old, text) {
		if at := found(text); len(at) == 1 {
			return fmt.Sprintf("old_text is not in the file, but new_text is, at line %d: this edit seems to be made already", at[0])
		}
	}
	lines := splitLines(s.lf)
	wanted := trimBlank(strings.Split(string(lineFeeds([]byte(old), true)), "\n"))
	if at := findBlock(lines, wanted, sameBlanks); at >= 0 {
		return "old_text differs only in blanks (tabs, spaces) from these lines; copy them exactly:\n" + quoteLines(lines, at, len(wanted))
	}
	if at := findBlock(lines, wanted, sameLetters); at >= 0 {
		return "old_text differs only in quotes, dashes, blanks, letter case or Unicode form from these lines; copy them exactly:\n" + quoteLines(lines, at, len(wanted))
	}
	return nearestLines(ctx, lines, wanted)
}

// withoutGutter removes "12: " from the front of all lines, if all have it.
func withoutGutter(old string) string {
	lines := strings.Split(old, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		plain := gutter.ReplaceAllString(line, "")
		if plain == line {
			return old
		}
		lines[i] = plain
	}
	return strings.Join(lines, "\n")
}

var gutter = regexp.MustCompile(`^\s*\d+(: ?|\t|\s*[|→] ?)`)

func unescape(s string) string {
	return strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", `\t`, "\t", `\"`, `"`).Replace(s)
}

func splitLines(text []byte) []string {
	text = text[:min(len(text), maxCompared)]
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func trimBlank(lines []string) []string {
	for len(lines) > 1 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 1 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// sameBlanks makes lines equal that differ in their blanks.
func sameBlanks(line string) string { return strings.Join(strings.Fields(line), " ") }

// sameLetters makes lines equal that a model, or an editor, often mixes up.
func sameLetters(line string) string {
	return strings.ToLower(norm.NFKC.String(strings.Map(plainRune, line)))
}

func plainRune(r rune) rune {
	switch {
	case r == '‘' || r == '’' || r == '‚' || r == '‛' || r == '`' || r == '´':
		return '\''
	case r == '“' || r == '”' || r == '„' || r == '«' || r == '»':
		return '"'
	case unicode.Is(unicode.Pd, r) || r == '−':
		return '-'
	case unicode.IsSpace(r) || unicode.In(r, unicode.Cf):
		return -1
	}
	return r
}

// findBlock returns the index of the first lines that equal wanted under key, or -1.
func findBlock(lines, wanted []string, key func(string) string) int {
	keys := make([]string, len(wanted))
	for i, line := range wanted {
		keys[i] = key(line)
	}
	have := make([]string, len(lines))
	for i, line := range lines {
		have[i] = key(line)
	}
	for i := 0; i+len(keys) <= len(have); i++ {
		if slices.Equal(have[i:i+len(keys)], keys) {
			return i
		}
	}
	return -1
}

// nearestLines shows the lines that are most like the longest one of wanted.
func nearestLines(ctx context.Context, lines, wanted []string) string {
	long := 0
	for i := range wanted {
		if len(strings.TrimSpace(wanted[i])) > len(strings.TrimSpace(wanted[long])) {
			long = i
		}
	}
	best, at := similar-1, -1
	want := pairsOf(wanted[long])
	for i, line := range lines[:min(len(lines), maxGraded)] {
		if ctx.Err() != nil {
			break
		}
		if n := want.likeness(line); n > best {
			best, at = n, i
		}
	}
	if at < 0 {
		return fmt.Sprintf("old_text is not in the file (%s) and no line is like it; read the file again", count(len(lines), "line"))
	}
	start := max(0, at-long)
	return "old_text is not in the file. The nearest lines are below; copy the text exactly:\n" + quoteLines(lines, start, len(wanted))
}

// pairs counts the pairs of letters of a line, without blanks and letter case.
type pairs struct {
	seen  map[[2]rune]int
	total int
}

func pairsOf(line string) pairs {
	p := pairs{seen: map[[2]rune]int{}}
	eachPair(line, func(pair [2]rune) {
		p.seen[pair]++
		p.total++
	})
	return p
}

func eachPair(line string, visit func([2]rune)) {
	const most = 1000 // characters of a line that count
	var last rune
	n := 0
	for _, r := range line {
		if unicode.IsSpace(r) {
			continue
		}
		r = unicode.ToLower(r)
		if last != 0 {
			visit([2]rune{last, r})
		}
		if last = r; n > most {
			return
		}
		n++
	}
}

// likeness is twice the common pairs by all pairs, in percent.
func (p pairs) likeness(line string) int {
	if p.total == 0 || len(line) < p.total/3 {
		return 0
	}
	left := make(map[[2]rune]int)
	common, total := 0, 0
	eachPair(line, func(pair [2]rune) {
		total++
		if n := p.seen[pair]; left[pair] < n {
			left[pair]++
			common++
		}
	})
	return 200 * common / (p.total + total)
}

// quoteLines shows lines as JSON strings, so that tabs are seen and can be copied.
func quoteLines(lines []string, at, n int) string {
	var b bytes.Buffer
	for i := at; i < min(at+n, len(lines)); i++ {
		if i-at == maxQuoted {
			fmt.Fprintf(&b, "[and %s]\n", count(min(at+n, len(lines))-i, "more line"))
			break
		}
		line := []rune(lines[i])
		cut := ""
		if len(line) > maxQuote {
			line, cut = line[:maxQuote], " [cut]"
		}
		fmt.Fprintf(&b, "%d: ", i+1)
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(string(line)) // a string always encodes
		b.Truncate(b.Len() - 1)
		b.WriteString(cut + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}
