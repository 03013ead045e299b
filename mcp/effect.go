package mcp

import (
	"slices"
	"strings"
	"unicode"

	"zcoder/internal/approval"
)

// Hints are what a server says of a tool's behaviour. Nil is unsaid.
type Hints struct {
	ReadOnly, Destructive, OpenWorld *bool
}

// Judgement is what a tool may do as far as can be told from outside.
type Judgement struct {
	Effect approval.Effect
	// Claim is the milder effect that the server claims and the tool's name
	// contradicts; a person may confirm it. Unknown when there is no such claim.
	Claim approval.Effect
	Why   string // e.g. "the server says so"
}

// judge classifies a tool by its hints, else by its name, else as external.
func judge(name string, h Hints) Judgement {
	claim, why := claimed(h)
	switch {
	case claim == approval.Unknown:
		if readsByName(name) {
			return Judgement{Effect: approval.Read, Why: "by its name"}
		}
		return Judgement{Effect: approval.ExternalWrite, Why: "nothing says that it only reads"}
	case claim == approval.ExternalWrite:
		return Judgement{Effect: claim, Why: why}
	case claim == approval.Read && writesByName(name), claim == approval.WorkspaceWrite && sendsByName(name):
		return Judgement{Effect: approval.ExternalWrite, Claim: claim, Why: "it claims " + claim.String() + ", its name says otherwise"}
	}
	return Judgement{Effect: claim, Why: why}
}

// claimed is the effect that the hints state, Unknown when they state none.
func claimed(h Hints) (approval.Effect, string) {
	is := func(b *bool, v bool) bool { return b != nil && *b == v }
	switch {
	case is(h.Destructive, true):
		return approval.ExternalWrite, "the server calls it destructive"
	case is(h.ReadOnly, true):
		return approval.Read, "the server says so"
	case is(h.ReadOnly, false) && is(h.OpenWorld, false):
		return approval.WorkspaceWrite, "the server says so"
	case is(h.ReadOnly, false):
		return approval.ExternalWrite, "the server says that it writes"
	}
	return approval.Unknown, ""
}

// The words that names are read by. A name counts by its first word; what a server
// claims is contradicted by any word.
var (
	readWords = []string{
		"get", "list", "read", "search", "find", "fetch", "show", "view", "inspect", "lookup", "query", "status",
		"check", "resolve", "describe", "explain", "analyse", "analyze", "locate", "scan", "echo",
	}
	sendWords = []string{
		"broadcast", "buy", "comment", "deploy", "email", "invite", "mail", "merge", "message", "notify", "order", "pay",
		"post", "publish", "push", "refund", "release", "reply", "send", "share", "submit", "transfer", "tweet", "upload",
	}
	// strongWords count also behind a word for reading, and inside a longer word.
	strongWords = []string{"delete", "destroy", "drop", "erase", "exec", "kill", "purge", "remove", "send", "wipe"}
	// runWords contradict a claim to change only the workspace.
	runWords   = []string{"account", "deploy", "exec", "execute", "kill", "reboot", "run", "shell", "shutdown", "spawn"}
	writeWords = append([]string{
		"add", "append", "apply", "approve", "archive", "assign", "ban", "block", "cancel", "clear", "close", "commit", "copy",
		"create", "delete", "destroy", "disable", "drop", "edit", "enable", "erase", "exec", "execute", "grant", "import", "insert",
		"install", "kill", "modify", "move", "patch", "purge", "put", "reboot", "register", "remove", "rename", "replace", "reset",
		"restart", "revoke", "rotate", "run", "save", "schedule", "set", "shutdown", "start", "stop", "subscribe", "terminate",
		"trigger", "truncate", "uninstall", "unlock", "update", "upgrade", "upsert", "wipe", "write",
	}, sendWords...)
)

// readsByName reports whether a name begins with a word for reading and names no
// second deed, as get_or_create does.
func readsByName(name string) bool {
	words := nameWords(name)
	if len(words) == 0 || !slices.Contains(readWords, words[0]) {
		return false
	}
	for i, w := range words {
		if i > 0 && slices.Contains(strongWords, w) {
			return false
		}
		if (w == "and" || w == "or" || w == "then") && i+1 < len(words) && slices.Contains(writeWords, words[i+1]) {
			return false
		}
	}
	return true
}

// writesByName reports whether a name speaks of writing: its first word is not one of
// reading, and some word is one of writing.
func writesByName(name string) bool {
	return !readsByName(name) && slices.ContainsFunc(nameWords(name), func(w string) bool {
		return slices.Contains(writeWords, w) || holdsOne(w, strongWords) || holdsOne(w, sendWords)
	})
}

// holdsOne reports whether a word has one of the stems in it, as deleteall has.
func holdsOne(word string, stems []string) bool {
	return slices.ContainsFunc(stems, func(stem string) bool { return strings.Contains(word, stem) })
}

func sendsByName(name string) bool {
	return !readsByName(name) && slices.ContainsFunc(nameWords(name), func(w string) bool {
		return slices.Contains(runWords, w) || holdsOne(w, sendWords)
	})
}

// nameWords divides a name at humps and at all that is no letter or digit.
func nameWords(name string) []string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			b.WriteByte(' ')
		case lower && unicode.IsUpper(r):
			b.WriteByte(' ')
			b.WriteRune(unicode.ToLower(r))
		default:
			b.WriteRune(unicode.ToLower(r))
		}
		lower = unicode.IsLower(r) || unicode.IsDigit(r)
	}
	return strings.Fields(b.String())
}

// EffectName is how effects of tools are called where people read them.
func EffectName(e approval.Effect) string {
	switch e {
	case approval.WorkspaceWrite:
		return "workspace"
	case approval.ExternalWrite:
		return "external"
	}
	return e.String()
}
