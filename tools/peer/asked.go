package peer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"zcoder/relay"
)

// minName is the shortest project name that counts as a word of its own, in
// characters: shorter ones stand in every text.
const minName = 2

// Names reports whether a text has an instance's id or project name as a word, in
// any letter case.
func Names(text string, p relay.Peer) bool {
	low := strings.ToLower(text)
	if hasWord(low, strings.ToLower(p.ID)) {
		return true
	}
	return utf8.RuneCountInString(p.Project) >= minName && hasWord(low, strings.ToLower(p.Project))
}

// hasWord reports whether word stands in text with nothing joined to it: no letter,
// digit, hyphen or underscore, and not as a part of a path or a file name.
func hasWord(text, word string) bool {
	for from := 0; word != ""; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		at := from + i
		if !joinedBefore(text[:at]) && !joinedAfter(text[at+len(word):]) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
	return false
}

func joinedBefore(text string) bool {
	r, size := utf8.DecodeLastRuneInString(text)
	if r == '.' { // the end of a sentence, or of a name's first part
		before, _ := utf8.DecodeLastRuneInString(text[:len(text)-size])
		return inName(before)
	}
	return inName(r)
}

func joinedAfter(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	if r == '.' {
		next, _ := utf8.DecodeRuneInString(text[size:])
		return inName(next)
	}
	return inName(r)
}

func inName(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(`-_/\`, r))
}

// AsksToTell reports whether one sentence of a text has a word for another instance
// together with a verb of telling.
func AsksToTell(text string) bool {
	for sentence := range strings.FieldsFuncSeq(breakSentences(text), func(r rune) bool { return r == sentenceEnd }) {
		if tells(strings.Fields(sentence)) {
			return true
		}
	}
	return false
}

const sentenceEnd = '\x00'

// breakSentences puts sentenceEnd where a sentence ends.
func breakSentences(text string) string {
	var b strings.Builder
	runes := []rune(text)
	for i, r := range runes {
		last := i == len(runes)-1 || unicode.IsSpace(runes[i+1])
		if r == '\n' || strings.ContainsRune(".!?;", r) && last {
			r = sentenceEnd
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Distances in a sentence, in words.
const (
	nearVerb = 4 // "send the other two agents": from a verb to the one who is told
	nearTo   = 3 // "write it up to the other instance": from "to"
)

// tells reads the words of one sentence. Some verbs count wherever they stand; others
// have further meanings and count before the one who is told: near, or with a "to".
func tells(words []string) bool {
	told, firm, let := false, false, false
	verb, to := -1, -1 // the last directed verb, and the last "to" behind one
	for i, word := range words {
		word = bare(word)
		switch {
		case isInstance(word) && !(word == "agent" && i > 0 && bare(words[i-1]) == "user"): // the header of a browser
			told = true
			if verb >= 0 && i-verb <= nearVerb && !isWriting(bare(words[verb])) || to >= 0 && i-to <= nearTo {
				return true
			}
		case isTelling(word), word == "know" && let:
			firm = true
		case word == "let":
			let = true
		case isDirected(word), isWriting(word):
			verb = i
		case word == "to" && verb >= 0:
			to = i
		}
		if told && firm {
			return true
		}
	}
	return false
}

// isWriting is a verb of telling only with "to": agents are also what is written.
func isWriting(word string) bool {
	switch word {
	case "write", "writes", "writing", "say", "says", "saying", "talk", "talking", "speak", "speaking":
		return true
	}
	return false
}

// bare is a word in lower case without the marks around it; "" when it is a path, a
// file name or code.
func bare(word string) string {
	word = strings.ToLower(strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }))
	for _, possessive := range []string{"'s", "’s"} {
		word = strings.TrimSuffix(word, possessive)
	}
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return ""
	}
	return word
}

func isInstance(word string) bool {
	switch word {
	case "instance", "instances", "agent", "agents", "peer", "peers", "zcoder", "zcoders":
		return true
	}
	return false
}

func isTelling(word string) bool {
	switch word {
	case "tell", "tells", "told", "telling",
		"ask", "asks", "asked", "asking",
		"inform", "informs", "informed", "informing",
		"notify", "notifies", "notified", "notifying",
		"contact", "contacts", "contacted", "contacting",
		"instruct", "instructs", "instructed", "instructing":
		return true
	}
	return false
}

func isDirected(word string) bool {
	switch word {
	case "send", "sends", "sent", "sending", "message", "messages", "messaging", "report", "reports", "reporting",
		"answer", "answers", "answering", "reply", "replies", "replying", "respond", "responds", "responding",
		"forward", "forwards", "forwarding", "relay", "relays", "relaying", "pass", "passes", "passing",
		"hand", "hands", "handing", "delegate", "delegates", "delegating", "request", "requests", "requesting",
		"ping", "pings", "pinging", "share", "shares", "sharing", "give", "gives", "giving", "warn", "warns", "warning", "remind", "reminds", "reminding":
		return true
	}
	return false
}
