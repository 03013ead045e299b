package skills

import (
	"regexp"
	"slices"
	"sort"
	"strings"
)

// phrase is a way to steer a model against the person that it works for. Patterns are
// written for skeletons: lower case, single blanks, no punctuation.
type phrase struct {
	first   []string       // the words that it can begin with
	pattern *regexp.Regexp // from there on
	packed  *regexp.Regexp // the same without blanks; nil when it has a gap
	text    string
}

// phrases never changes.
var phrases = func() []phrase {
	const (
		earlier = `(previous|prior|above|earlier|preceding|existing|system|safety|developer|other|former)`
		rules   = `(instructions?|rules?|prompts?|guidelines?|messages?|guidance|constraints?|polic(y|ies)|restrictions?|directives?)`
		person  = `(user|human|person|operator|developer|owner|anyone|anybody|them)`
		secrets = `(secrets?|tokens?|passwords?|credentials?|api keys?|private keys?|ssh keys?|environment variables|env file|cookies)`
		hides   = "it hides something from the person"
		around  = "it goes around the approval"
	)
	never := []string{"do not", "don t", "dont", "never", "must not", "avoid"}
	var list []phrase
	for _, p := range []struct {
		first      []string
		rest, text string
	}{
		{[]string{"ignore", "disregard", "forget", "override", "bypass", "drop", "neglect"}, `( all| any| every)?( of)?( the| your| these| those| my| its)? ` + earlier + `( \w+)? ` + rules, "it sets earlier instructions aside"},
		{[]string{"ignore", "disregard", "forget"}, ` (everything|all|anything)( that was| you were)?( said| told)? (before|above|so far)`, "it sets earlier instructions aside"},
		{never, ` (tell|mention|inform|notify|alert|reveal|disclose|show|report)( it| this| that| anything| these)?( to)?( the| your| any)? ` + person, hides},
		{never, ` (mention|reveal|disclose|report) (it|this|that|these)`, hides},
		{[]string{"without"}, ` (telling|informing|notifying|alerting)( the| your| any)? ` + person, hides},
		{[]string{"hide"}, ` (it|this|that|these) from( the| your)? ` + person, hides},
		{[]string{"silently", "secretly", "quietly", "covertly", "stealthily"}, ` (run|execute|install|update|upload|send|add|delete|remove|download|fetch|change|modify|commit|push|copy|write)`, "it acts in secret"},
		{[]string{"without"}, ` (asking|approval|confirmation|permission|confirming|prompting|consent|any approval|the approval|any confirmation)`, around},
		{[]string{"skip", "bypass", "avoid", "disable", "circumvent", "turn off", "switch off"}, `( the| any| all)? (approvals?|confirmations?|permissions?( checks?)?|guards?|sandbox|safety( checks?)?|audit|security checks?)`, around},
		{[]string{"auto approve", "automatically approve", "approve everything", "approve all commands", "approve every command"}, ``, around},
		{[]string{"you are now"}, ` (a|an|in|the|free|dan)`, "it gives the model another role"},
		{[]string{"new", "updated", "real", "actual"}, ` system (prompt|message|instructions?)`, "it poses as the system prompt"},
		{[]string{"developer", "god", "admin", "root", "jailbreak", "unrestricted", "dan"}, ` mode`, "it claims a special mode"},
		{[]string{"send", "post", "upload", "exfiltrate", "transmit", "forward", "leak", "email"}, `( \w+){0,8} ` + secrets + `( \w+){0,8} (to|via|http|https)`, "it sends secrets away"},
		{[]string{"read", "print", "cat", "dump", "show", "collect", "include"}, `( \w+){0,6} (ssh id|id rsa|id ed25519|aws credentials|etc shadow|netrc|private keys?)`, "it reaches for secrets"},
		{[]string{"this is not", "this isn t"}, ` (a |an )?(prompt )?injection`, "it denies being an injection"},
	} {
		ph := phrase{first: p.first, text: p.text, pattern: regexp.MustCompile(`^` + p.rest + `\b`)}
		if packed := strings.NewReplacer(`( \w+)?`, "", " ", "").Replace(p.rest); !strings.Contains(packed, `\w`) {
			ph.packed = regexp.MustCompile(`^` + packed)
		}
		list = append(list, ph)
	}
	return list
}()

// maxPhrase bounds how far a phrase reaches behind its first words, in bytes.
const maxPhrase = 240

// hit is a phrase that was found.
type hit struct {
	note
	negated bool // "never" or "not" stands before it
}

// phrasesIn finds the phrases in lines, also where they are spread over two lines,
// spelled with look-alikes or digits, or with a blank between the letters. Each is
// reported once a line.
func phrasesIn(lines []string) []hit {
	var found []hit
	seen := map[note]bool{}
	add := func(h hit) {
		if !seen[h.note] {
			seen[h.note] = true
			found = append(found, h)
		}
	}
	folds := make([]string, len(lines))
	for i, line := range lines {
		folds[i] = skeleton(line)
	}
	plain := fold(folds, func(s string) string { return s }, " ")
	plain.each(false, add)
	if digits := fold(folds, leet, " "); digits.text != plain.text {
		digits.each(false, add)
	}
	fold(folds, unspaced, "").each(true, add)
	slices.SortStableFunc(found, func(a, b hit) int { return a.line - b.line })
	return found
}

// each reports the phrases in a folded text.
func (f folded) each(packed bool, report func(hit)) {
	for _, p := range phrases {
		pattern := p.pattern
		if packed {
			pattern = p.packed
		}
		if pattern == nil {
			continue
		}
		for _, first := range p.first {
			if packed {
				first = strings.ReplaceAll(first, " ", "")
			}
			for from := 0; ; {
				at := strings.Index(f.text[from:], first)
				if at < 0 {
					break
				}
				at += from
				from = at + len(first)
				if !packed && at > 0 && f.text[at-1] != ' ' {
					continue
				}
				if pattern.MatchString(f.text[from:min(len(f.text), from+maxPhrase)]) {
					report(hit{note{f.line(at), p.text}, negated(f.text[:at], first)})
				}
			}
		}
	}
}

// negated reports whether the words right before a phrase turn it around: "do not skip
// the confirmation", and for what begins with "without" a few words more: "never
// install a package without asking".
func negated(before, first string) bool {
	words, reach := strings.Fields(before[max(0, len(before)-60):]), 2
	if first == "without" {
		reach = 6
	}
	for _, w := range words[max(0, len(words)-reach):] {
		if w == "never" || w == "not" || w == "don" || w == "dont" {
			return true
		}
	}
	return false
}

// folded is a text that was folded line by line.
type folded struct {
	text   string
	starts []int // where each line begins
}

func fold(lines []string, by func(string) string, between string) folded {
	var f folded
	var b strings.Builder
	for _, line := range lines {
		f.starts = append(f.starts, b.Len())
		if s := by(line); s != "" {
			b.WriteString(s + between)
		}
	}
	f.text = b.String()
	return f
}

// line is the number of the line that an offset belongs to.
func (f folded) line(at int) int {
	return sort.Search(len(f.starts), func(i int) bool { return f.starts[i] > at })
}

// unspaced joins runs of at least four single letters: "i g n o r e" to "ignore", and
// drops all other text, which the plain form holds.
func unspaced(s string) string {
	var out, run []string
	flush := func() {
		if len(run) >= 4 {
			out = append(out, strings.Join(run, ""))
		}
		run = nil
	}
	for _, word := range strings.Fields(s) {
		if len([]rune(word)) == 1 {
			run = append(run, word)
			continue
		}
		flush()
	}
	flush()
	return strings.Join(out, "")
}
