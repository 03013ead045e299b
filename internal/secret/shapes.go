package secret

import (
	"regexp"
	"strings"
	"sync"
)

// The kinds that markers name.
const (
	kindToken    = "token"
	kindAuth     = "authorization"
	kindPassword = "password"
	kindCookie   = "cookie"
	kindKey      = "private key"
)

// maxWindow is how far a shape is followed from its needle, in bytes, within one
// line. A token that goes on is followed to its end.
const maxWindow = 1024

// shape is a form that only secrets have.
type shape struct {
	kind    string
	needles []string       // each match begins with one of them
	re      *regexp.Regexp // begins with ^ at the needle; its first group, or all of it, is secret
	before  string         // stands before the needle in the same line, not far away
	starts  bool           // no letter, digit, _ or - may stand before the needle
	check   func(string) bool
}

func (sh shape) after(before string) shape { sh.before = before; return sh }

func (sh shape) start() shape { sh.starts = true; return sh }

// fits reports whether what stands before the needle at s[i] allows a match.
func (sh shape) fits(s string, i int) bool {
	if sh.starts && i > 0 && (isNameByte(s[i-1]) || s[i-1] == '-') {
		return false
	}
	if sh.before == "" {
		return true
	}
	line := s[max(0, i-maxWindow):i]
	line = line[strings.LastIndexByte(line, '\n')+1:]
	return strings.Contains(line, sh.before)
}

// shapes compiles the table at the first use: most runs mask little, and start-up
// must not wait for it.
var shapes = sync.OnceValue(func() []shape {
	const (
		is    = `\\*["']?\s*[:=]\s*\\*["']?` // between a name and its value, also inside JSON
		value = `([^\s"'\\,;<>&]{8,})`
	)
	s := func(kind, needles, re string, check func(string) bool) shape {
		return shape{kind: kind, needles: strings.Fields(needles), re: regexp.MustCompile("^(?:" + re + ")"), check: check}
	}
	return []shape{
		s("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", `gh[pousr]_[A-Za-z0-9]{20,}`, nil),
		s("GitHub token", "github_pat_", `github_pat_[A-Za-z0-9_]{20,}`, nil),
		s("GitLab token", "glpat- gldt- glrt-", `gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}`, nil),
		s("API key", "sk-", `sk-[A-Za-z0-9_-]{16,}`, hasDigit).start(),
		s("API key", "sk_live_ sk_test_ rk_live_ rk_test_", `[sr]k_(?:live|test)_[A-Za-z0-9]{16,}`, nil).start(),
		s("API key", "AIza", `AIza[A-Za-z0-9_-]{35}`, nil).start(),
		s("API key", "ya29.", `ya29\.[A-Za-z0-9_-]{20,}`, nil).start(),
		s("API key", "SG.", `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, nil).start(),
		s("API key", "npm_ hf_", `(?:npm|hf)_[A-Za-z0-9]{30,}`, hasDigit).start(),
		s("API key", "pypi- dckr_pat_", `(?:pypi-|dckr_pat_)[A-Za-z0-9_-]{20,}`, hasDigit).start(),
		s(kindKey, "AGE-SECRET-KEY-1", `AGE-SECRET-KEY-1[A-Z0-9]{40,}`, nil),
		s("AWS key", "AKIA ASIA", `A[KS]IA[A-Z0-9]{16}\b`, nil).start(),
		s("AWS key", "ecret_access_key ECRET_ACCESS_KEY", `(?i:ecret_access_key)`+is+`([A-Za-z0-9/+=]{20,})`, nil),
		s("Slack token", "xox", `xox[abeoprs]-[A-Za-z0-9-]{10,}`, nil),
		s("Slack token", "xapp-", `xapp-[0-9]-[A-Za-z0-9-]{10,}`, nil),
		s("Slack token", "hooks.slack.com/services/", `hooks\.slack\.com/services/([A-Za-z0-9/]{20,})`, nil),
		s("JWT", "eyJ", `eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`, nil),
		s(kindAuth, "uthorization UTHORIZATION", `(?i:uthorization)`+is+`(?:(?i:bearer|basic|token|negotiate|apikey|key)\s+)?`+value, tokenLike),
		s(kindToken, "earer EARER", `(?i:earer)\s+([A-Za-z0-9._~+/-]{16,}=*)`, tokenLike),
		s(kindToken, "api-key Api-Key API-KEY auth-token Auth-Token access-token Access-Token private-token Private-Token PRIVATE-TOKEN "+
			"vault-token Vault-Token job-token Job-Token JOB-TOKEN deploy-token Deploy-Token security-token Security-Token",
			`[A-Za-z]+-[A-Za-z]+`+is+value, tokenLike),
		s(kindCookie, "ookie: OOKIE:", `(?i:ookie):\s*([^\s=;,]+=[^\s;,]{8,}(?:;\s*[^\s=;,]+=[^\s;,]+)*)`, hasDigit),
		s(kindPassword, "://", `://[^\s/:@"'<>]*:([^\s/"'<>]+)@`, notPlaceholder),
		s(kindToken, "://", `://([^\s/:@"'<>]{20,})@`, hasDigit),
		s(kindPassword, "machine", `machine\s+\S+\s+login\s+\S+\s+password\s+([^\s\\"']+)`, notPlaceholder),
		s(kindPassword, "-u", `-u[ =]?["']?[^\s:"'$]+:([^\s"']+)`, notPlaceholder).after("curl"),
		s(kindPassword, "--user", `--user[ =]["']?[^\s:"'$]+:([^\s"']+)`, notPlaceholder).after("curl"),
		s(kindToken, "_auth", `_auth(?:Token)?\s*=\s*`+value, tokenLike),
		s(kindToken, `"auth`, `"auth\\*"\s*:\s*\\*"([A-Za-z0-9+/=]{12,})`, nil),
	}
})

// shapeSpans finds the parts of s that have a known shape.
func shapeSpans(s string) []span {
	var spans []span
	for _, sh := range shapes() {
		for _, needle := range sh.needles {
			spans = sh.find(spans, s, needle)
		}
	}
	return append(spans, assignmentSpans(s)...)
}

func (sh shape) find(spans []span, s, needle string) []span {
	for at := 0; ; {
		i := strings.Index(s[at:], needle)
		if i < 0 {
			return spans
		}
		i += at
		at = i + len(needle)
		if !sh.fits(s, i) {
			continue
		}
		m := sh.re.FindStringSubmatchIndex(window(s[i:]))
		if m == nil {
			continue
		}
		start, end := i+m[0], i+m[1]
		if len(m) > 2 {
			start, end = i+m[2], i+m[3]
		}
		if sh.check != nil && !sh.check(s[start:end]) {
			continue
		}
		if end == i+maxWindow {
			end += tokenRun(s[end:])
		}
		spans = append(spans, span{start, end, sh.kind})
		at = max(at, end)
	}
}

// window returns the first line of s, or its beginning.
func window(s string) string {
	s = s[:min(len(s), maxWindow)]
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return s[:n]
	}
	return s
}

func tokenRun(s string) int {
	for i := range len(s) {
		if !isNameByte(s[i]) && strings.IndexByte("-.~+/=", s[i]) < 0 {
			return i
		}
	}
	return len(s)
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

// assignmentSpans finds values that the text itself gives to a name: a variable
// named like a key (MY_API_KEY=…, "MY_API_KEY": "…") or such a parameter of a
// query (?access_token=…).
func assignmentSpans(s string) []span {
	var spans []span
	for at := 0; ; {
		i := strings.IndexAny(s[at:], "=:")
		if i < 0 {
			return spans
		}
		i += at
		at = i + 1
		name, before := nameBefore(s, i)
		kind := name
		switch {
		case s[i] == ':' && !strings.Contains(name, "_"):
			continue
		case s[i] == '=' && isQuery(before) && isQueryKey(name):
			kind = kindToken
		case !isVariable(name) || !Named(name):
			continue
		}
		start, end := valueAfter(s, i)
		text := s[start:end]
		if len(text) < minValue || !tokenLike(text) || harmless(text) || kind == name && !hasDigit(text) {
			continue
		}
		if len(text) == maxWindow {
			end += tokenRun(s[end:])
		}
		spans = append(spans, span{start, end, kind})
		at = end
	}
}

// nameBefore returns the name that ends before s[i], perhaps quoted, and what
// stands before it.
func nameBefore(s string, i int) (name, before string) {
	end := len(strings.TrimRight(s[:i], `\"'`))
	start := end
	for start > 0 && end-start < 64 && (isNameByte(s[start-1]) || s[start-1] == '-') {
		start--
	}
	return s[start:end], s[:start]
}

// valueAfter returns the bounds of the value after the sign at s[i].
func valueAfter(s string, i int) (start, end int) {
	start = i + 1
	for start < len(s) && strings.IndexByte(" \\\"'", s[start]) >= 0 {
		start++
	}
	if s[i] == '=' && start > i+1 && s[i+1] == ' ' {
		return start, start // prose and programs put blanks around the sign
	}
	limit := min(len(s), start+maxWindow)
	n := strings.IndexAny(s[start:limit], " \t\r\n\"'\\,;<>&#")
	if n < 0 {
		return start, limit
	}
	return start, start + n
}

func isQuery(before string) bool {
	return strings.HasSuffix(before, "?") || strings.HasSuffix(before, "&") || strings.HasSuffix(before, `\u0026`)
}

func isQueryKey(name string) bool {
	switch strings.ToLower(name) {
	case "sig", "signature", "x-amz-signature", "code":
		return true
	}
	return Named(name)
}

// isVariable reports whether name is written like an environment variable.
func isVariable(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' || r == '-' })
}

func hasDigit(s string) bool { return strings.ContainsAny(s, "0123456789") }

// tokenLike tells a token from a word of a sentence or a placeholder.
func tokenLike(s string) bool {
	if !notPlaceholder(s) {
		return false
	}
	if hasDigit(s) || len(s) >= 20 {
		return true
	}
	for i := 1; i < len(s); i++ {
		if s[i-1] >= 'a' && s[i-1] <= 'z' && s[i] >= 'A' && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// notPlaceholder reports whether s is no variable, format verb, row of stars or
// marker of ours.
func notPlaceholder(s string) bool {
	return !strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "{") && !strings.HasPrefix(s, "%s") &&
		!strings.HasPrefix(s, "[masked:") && strings.Trim(s, "*xX.…") != ""
}
