package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of a query, from the tool's contract.
const (
	maxQuery        = 8192 // bytes
	maxAlternatives = 16
)

// query is a compiled search. It does not change and may be shared.
type query struct {
	re *regexp.Regexp
	// needles are texts of which every line that matches holds at least one; empty
	// when there are no such texts.
	needles []needle
	// plain means that a line matches when it holds the one needle.
	plain bool
	// program is re as an automaton over bytes; nil when it would be too large.
	program *program
}

// parseQuery compiles the text of a search: alternatives on lines of their own, each
// a regular expression or, with literal set, plain text. Its error tells the model
// how to correct the query.
func parseQuery(text string, literal bool) (*query, error) {
	alternatives, err := splitQuery(text)
	if err != nil {
		return nil, err
	}
	plain := literal && len(alternatives) == 1
	for i, a := range alternatives {
		if literal {
			alternatives[i] = regexp.QuoteMeta(a)
			continue
		}
		if err := checkPattern(a); err != nil {
			return nil, err
		}
		plain = plain || (len(alternatives) == 1 && regexp.QuoteMeta(a) == a)
	}
	pattern := alternatives[0]
	if len(alternatives) > 1 {
		pattern = "(?:" + strings.Join(alternatives, ")|(?:") + ")"
	}
	return compileQuery(pattern, plain)
}

func splitQuery(text string) ([]string, error) {
	if len(text) > maxQuery {
		return nil, fmt.Errorf("query is %d bytes long; at most %d are taken", len(text), maxQuery)
	}
	var alternatives []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSuffix(line, "\r"); line != "" {
			alternatives = append(alternatives, line)
		}
	}
	switch {
	case len(alternatives) == 0:
		return nil, errors.New("query is empty: give the text or the regular expression to search for")
	case len(alternatives) > maxAlternatives:
		return nil, fmt.Errorf("query has %d lines; at most %d alternatives, one a line, are taken", len(alternatives), maxAlternatives)
	}
	return alternatives, nil
}

func compileQuery(pattern string, plain bool) (*query, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, patternError(pattern, err)
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, patternError(pattern, err)
	}
	q := &query{re: re, needles: newNeedles(requiredTexts(tree))}
	q.plain = plain && len(q.needles) == 1
	if !q.plain {
		q.program = compileProgram(tree)
	}
	return q, nil
}

func checkPattern(pattern string) error {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return patternError(pattern, err)
	}
	if needsNewline(tree) {
		return fmt.Errorf("query %q can never match: files are searched line by line, so \\n is in no line; search for one of the lines, or give alternatives on lines of their own", pattern)
	}
	return nil
}

// needsNewline reports whether every match would hold a line feed.
func needsNewline(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpLiteral:
		return strings.ContainsRune(string(re.Rune), '\n')
	case syntax.OpCharClass:
		return len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n'
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if needsNewline(sub) {
				return true
			}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needsNewline(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min > 0 && needsNewline(re.Sub[0])
	}
	return false
}

// patternError explains what RE2 syntax does not have.
func patternError(pattern string, err error) error {
	reason := err.Error()
	var detail *syntax.Error
	if errors.As(err, &detail) {
		reason = detail.Code.String()
		if detail.Expr != "" && detail.Expr != pattern {
			reason = fmt.Sprintf("%s: %s", reason, detail.Expr)
		}
	}
	return fmt.Errorf("query %q is not a regular expression in RE2 syntax (%s). %s", pattern, reason, patternHint(pattern, detail))
}

func patternHint(pattern string, detail *syntax.Error) string {
	for _, look := range []string{"(?=", "(?!", "(?<=", "(?<!", "(?>"} {
		if strings.Contains(pattern, look) {
			return "RE2 has no look-ahead, look-behind or atomic group: search for the wider text"
		}
	}
	if detail == nil {
		return literalHint
	}
	switch detail.Code {
	case syntax.ErrInvalidEscape:
		return escapeHint(detail.Expr)
	case syntax.ErrInvalidRepeatOp, syntax.ErrInvalidRepeatSize, syntax.ErrMissingRepeatArgument:
		return "A repetition needs one thing before it, is not stacked (no possessive ++) and counts to 1000 at most. " + literalHint
	case syntax.ErrLarge, syntax.ErrNestingDepth:
		return "Use a smaller one"
	}
	return literalHint
}

const literalHint = "To search for the text as it stands set literal=true, or put \\ before ( ) [ ] { } . * + ? | ^ $"

func escapeHint(escape string) string {
	switch {
	case len(escape) == 2 && escape[1] >= '1' && escape[1] <= '9':
		return "RE2 has no back-references"
	case escape == `\Z`:
		return `Use $ for the end of a line`
	case escape == `\<`, escape == `\>`:
		return `Use \b for the edge of a word`
	case escape == `\h`:
		return `Use [ \t] for blanks`
	}
	return literalHint
}
