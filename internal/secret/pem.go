package secret

import "strings"

// keySpans finds private-key blocks: whole ones, ones without an end or without a
// beginning, on one line, and with line ends written as `\n`.
func keySpans(s string) []span {
	if !strings.Contains(s, "PRIVATE KEY") {
		return nil
	}
	var spans []span
	at := 0
	for {
		start, body, ok := findLabel(s, at, "BEGIN ")
		if !ok {
			break
		}
		if end := tailOfKey(s[:start], at); end.end > 0 {
			spans = append(spans, end)
		}
		end := keyEnd(s, body)
		spans = append(spans, span{start, end, kindKey})
		at = end
	}
	if end := tailOfKey(s, at); end.end > 0 {
		spans = append(spans, end)
	}
	return spans
}

// keyEnd returns where the block ends whose body begins at body: after its own
// end label, else after the last line that can belong to a key.
func keyEnd(s string, body int) int {
	if next, _, another := findLabel(s, body, "BEGIN "); another {
		s = s[:next]
	}
	if _, end, ok := findLabel(s, body, "END "); ok {
		return end
	}
	return forward(s, body)
}

// tailOfKey finds a block in s[from:] whose beginning was cut off: an end label
// and the lines of a key before it. Without one the end of the span is 0.
func tailOfKey(s string, from int) span {
	start, end, ok := findLabel(s, from, "END ")
	if !ok {
		return span{}
	}
	return span{from + backward(s[from:start]), end, kindKey}
}

// findLabel finds the next `-----BEGIN … PRIVATE KEY-----` (or END) and returns
// where its dashes start and where the text after them does.
func findLabel(s string, from int, word string) (start, after int, ok bool) {
	for at := from; ; {
		i := strings.Index(s[at:], word)
		if i < 0 {
			return 0, 0, false
		}
		i += at
		at = i + len(word)
		before := strings.TrimRight(s[:i], " ")
		start = len(strings.TrimRight(before, "-"))
		label := s[at:min(at+maxLabel, len(s))]
		if n := strings.IndexAny(label, "-\n\r\\"); n >= 0 {
			label = label[:n]
		}
		_, more, private := strings.Cut(label, "PRIVATE KEY")
		if len(before)-start < 4 || i-len(before) > 1 || !private {
			continue
		}
		rest := s[at+len(label)-len(more):]
		rest = strings.TrimPrefix(rest, " BLOCK")
		if dashes := strings.TrimLeft(strings.TrimPrefix(rest, " "), "-"); len(rest)-len(dashes) > 1 {
			rest = dashes
		}
		return max(start, from), len(s) - len(rest), true
	}
}

// forward returns the end of the key lines of s from at on.
func forward(s string, at int) int {
	end := at
	for at < len(s) {
		n, sep := lineEnd(s[at:])
		line := s[at : at+n]
		if strings.TrimSpace(line) != "" {
			body, whole := keyPart(line)
			if body > 0 {
				end = at + body
			}
			if !whole {
				return end
			}
		}
		at += n + sep
	}
	return end
}

// backward returns where the key lines begin that s ends with.
func backward(s string) int {
	var starts []int
	for at := 0; at < len(s); {
		starts = append(starts, at)
		n, sep := lineEnd(s[at:])
		at += n + sep
	}
	begin, end := len(s), len(s)
	for i := len(starts) - 1; i >= 0; i-- {
		line := s[starts[i]:end]
		n, _ := lineEnd(line)
		line = line[:n]
		if strings.TrimSpace(line) != "" {
			run := len(line) - len(strings.TrimRightFunc(line, isKeyRune))
			switch {
			case isKeyLine(line):
				begin = starts[i]
			case run >= minLine: // perhaps with what grep puts before a line
				begin = starts[i] + n - run
			case run >= minRun:
				return starts[i] + n - run
			default:
				return begin
			}
		}
		end = starts[i]
	}
	return begin
}

const (
	// maxLabel is the length of the longest label, in bytes, with room to spare.
	maxLabel = 60
	// minRun is the length from which a run of base64 is taken for a part of a key
	// when other text stands beside it.
	minRun = 16
	// minLine is the same for the end of a line with a foreign start, e.g. the
	// name and number that grep prints.
	minLine = 32
)

// isKeyLine reports whether a line holds nothing but a part of a key block, apart
// from what a diff, a quotation or a program text puts around it.
func isKeyLine(line string) bool {
	line = strings.TrimLeft(line, " \t\"'>|+")
	for _, header := range []string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Charset:", "Hash:", "Subject:", "-----E"} {
		if strings.HasPrefix(line, header) {
			return true
		}
	}
	line = strings.TrimRight(line, " \t\r\"',+-")
	return strings.TrimLeftFunc(line, isKeyRune) == ""
}

// keyPart returns how much of the start of a line belongs to a key, and whether
// the whole line does.
func keyPart(line string) (n int, whole bool) {
	clean := strings.TrimRight(line, " \t\r\"',+")
	before := strings.TrimRightFunc(clean, isKeyRune)
	long := len(clean)-len(before) >= minLine
	if long && isLineMark(strings.TrimSpace(before)) || isKeyLine(line) {
		return len(strings.TrimRight(line, " \t\r")), true
	}
	return leadingRuns(line, len(line)-len(strings.TrimLeft(line, " \t\"'>|+")))
}

// isLineMark reports whether s is what tools print before a line: a file name, a
// number, a quote.
func isLineMark(s string) bool {
	return s != "" && !strings.ContainsAny(s, " \t") && strings.IndexByte(":-|>='\"`", s[len(s)-1]) >= 0
}

// leadingRuns measures the base64 at the start of a line that goes on with other
// text: runs with blanks between, the last one up to a delimiter.
func leadingRuns(line string, at int) (n int, whole bool) {
	for at < len(line) {
		rest := line[at:]
		run := len(rest) - len(strings.TrimLeftFunc(rest, isKeyRune))
		delimited := run < len(rest) && strings.IndexByte("\"'`,;)}]<", rest[run]) >= 0
		if run == 0 || run < minRun && !delimited {
			return n, false
		}
		at += run
		n = at
		if delimited {
			return n, false
		}
		blanks := len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
		if blanks == 0 && at < len(line) {
			return n, false
		}
		at += blanks
	}
	return n, true
}

func isKeyRune(r rune) bool {
	return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '+' || r == '/' || r == '='
}

// lineEnd returns the length of the first line and of what ends it: a line end, or
// one written as backslashes and a letter.
func lineEnd(s string) (n, sep int) {
	n = strings.IndexAny(s, "\n\\")
	if n < 0 {
		return len(s), 0
	}
	if s[n] == '\n' {
		return n, 1
	}
	slashes := len(s[n:]) - len(strings.TrimLeft(s[n:], `\`))
	after := s[n+slashes:]
	if after != "" && strings.IndexByte("nrt\n", after[0]) >= 0 {
		return n, slashes + 1
	}
	return n, slashes
}
