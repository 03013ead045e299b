package secret

import (
	"strconv"
	"strings"
)

// Named reports whether a variable of this name holds a secret by custom, e.g.
// GITHUB_TOKEN, apiKey or PGPASSWORD, but not KEY_FILE, MAX_TOKENS or PUBLIC_KEY.
func Named(name string) bool {
	words := nameWords(name)
	for len(words) > 1 && isNeutralEnd(words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return false
	}
	for _, w := range words {
		if isPublic(w) {
			return false
		}
	}
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch last {
	case "KEY":
		return !isPlainKey(before)
	case "PWD":
		return before != "" && before != "OLD"
	case "AUTH":
		return before != ""
	case "ID":
		return before == "KEY" && len(words) > 2 && words[len(words)-3] == "ACCESS"
	}
	return isSecretWord(last)
}

func isSecretWord(w string) bool {
	switch w {
	case "SECRETS", "PASS", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "CREDENTIALS", "COOKIE", "PAT",
		"PRIVKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY":
		return true
	}
	for _, end := range []string{"PASSWORD", "PASSWD", "SECRET", "APIKEY", "TOKEN"} {
		if strings.HasSuffix(w, end) {
			return true
		}
	}
	return false
}

// isPublic reports whether a word says that the value may be known, or is a count.
func isPublic(w string) bool {
	switch w {
	case "PUBLIC", "PUB", "MAX", "MIN", "NUM", "COUNT":
		return true
	}
	return false
}

// isPlainKey reports whether the word before KEY makes it the key of a table or of
// a keyboard.
func isPlainKey(w string) bool {
	switch w {
	case "CACHE", "SORT", "PRIMARY", "FOREIGN", "HOT", "PARTITION", "INDEX", "LOOKUP", "ANY", "SHORTCUT", "COMPOSE":
		return true
	}
	return false
}

// isNeutralEnd reports whether a last word says nothing about the kind of value:
// a number, a version or an environment.
func isNeutralEnd(w string) bool {
	switch w {
	case "PROD", "PRODUCTION", "DEV", "STAGING", "TEST", "LIVE", "OLD", "NEW", "VALUE", "BASE64", "B64", "RO", "RW":
		return true
	}
	_, err := strconv.Atoi(strings.TrimPrefix(w, "V"))
	return err == nil
}

// nameWords divides a name at underscores, dots, dashes and humps, in capitals.
func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if lower && r >= 'A' && r <= 'Z' {
			b.WriteByte(' ')
		}
		lower = r >= 'a' && r <= 'z'
		if r == '_' || r == '-' || r == '.' {
			r = ' '
		}
		b.WriteRune(r)
	}
	return strings.Fields(strings.ToUpper(b.String()))
}

// harmless reports whether a value is plainly no secret although its name says so:
// empty, a boolean, a number or a path.
func harmless(text string) bool {
	switch strings.ToLower(text) {
	case "", "true", "false", "yes", "no", "on", "off", "none", "null", "disabled", "enabled":
		return true
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return true
	}
	for _, start := range []string{"./", "../", "~/"} {
		if strings.HasPrefix(text, start) {
			return true
		}
	}
	// A secret in base64 may begin with a slash, but has few more.
	return strings.HasPrefix(text, "/") && strings.Count(text, "/") > 1 && !strings.ContainsAny(text, "+=")
}
