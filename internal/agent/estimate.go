package agent

import (
	"unicode/utf8"

	"zcoder/internal/chat"
)

// Known is what the server counted last: so many tokens for the request with the
// first Messages records of the history.
type Known struct {
	Tokens   int
	Messages int
	// Prefix identifies what stood before the history; empty is not known.
	Prefix string
}

// meter estimates how many tokens the next request has: what the server counted,
// plus a guess for what came since. The guess is calibrated by the count.
type meter struct {
	known   Known
	fixed   int     // characters of system prompt and tools
	counted int     // records whose characters were counted
	chars   int     // that they have
	perChar float64 // tokens for each character
}

// usualPerChar is the tokens for each character of code and English.
const usualPerChar = 0.25

func newMeter(system string, list []chat.Tool, known Known) meter {
	m := meter{known: known, fixed: len(system), perChar: usualPerChar}
	for _, t := range list {
		m.fixed += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return m
}

// size is the estimate for a request with this history.
func (m *meter) size(history []chat.Message) int {
	if m.known.Tokens > 0 && m.known.Messages <= len(history) {
		return m.known.Tokens + m.of(history[m.known.Messages:])
	}
	return int(float64(m.fixed)*m.perChar) + m.of(history)
}

// of is the estimate for some messages alone.
func (m *meter) of(list []chat.Message) int {
	return int(float64(chars(list))*m.perChar) + 4*len(list)
}

// take learns from what the server counted for the history that it was sent.
func (m *meter) take(u chat.Usage, history []chat.Message) {
	if u.PromptTokens <= 0 {
		return
	}
	m.known = Known{Tokens: u.PromptTokens, Messages: len(history)}
	m.chars += chars(history[m.counted:])
	m.counted = len(history)
	if all := m.fixed + m.chars; all > 2000 {
		m.perChar = min(1, max(0.1, float64(m.known.Tokens)/float64(all)))
	}
}

// forget drops the count: the history was replaced.
func (m *meter) forget() { m.known, m.counted, m.chars = Known{}, 0, 0 }

func chars(list []chat.Message) int {
	n := 0
	for _, m := range list {
		n += utf8.RuneCountInString(m.Content)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Args) + 20
		}
	}
	return n
}
