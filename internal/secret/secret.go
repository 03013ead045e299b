// Package secret masks known secrets in text that leaves the exact record: the
// audit, the debug log, error texts, the input history and what a worker or a peer
// gets. Files, tool results and the session stay exact and never pass through it.
//
// It knows which variables are named like keys, their values, and the shapes of
// well-known tokens. It reads no environment: app hands it in. Text that comes in
// pieces has to be put together before it is masked.
//
// Limits: a secret that is encoded (base64, hex, reversed, split by a program) or
// that has neither a known value nor a known shape is not found; JSON escapes and
// percent encoding of known values are. Masking is the second line; not reading
// the source is the first.
package secret

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

const (
	// minValue is the length in bytes from which the value of a variable counts:
	// shorter ones stand in ordinary text.
	minValue = 8
	// minExtra is the same for values that the program itself names.
	minExtra = 4
)

// Masker masks known values and known shapes. A nil Masker masks shapes only. It
// may be used from several goroutines.
type Masker struct {
	first  [256]bool // bytes that a value begins with
	values []value   // longest first
}

type value struct{ text, kind string }

// span is a part of a text that is secret.
type span struct {
	start, end int
	kind       string
}

// New returns a masker for the values of the variables in env ("NAME=value") that
// are named like keys, and for extra, values that the program knows to be secret.
// Of env it takes values of at least 8 bytes that are not plainly a path, a number
// or a boolean; of extra those of at least 4.
func New(env []string, extra ...string) *Masker {
	m := &Masker{}
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		if len(text) >= minValue && Named(name) && !harmless(text) {
			m.add(text, name)
		}
	}
	for _, text := range extra {
		m.add(text, kindToken)
	}
	slices.SortStableFunc(m.values, func(a, b value) int { return len(b.text) - len(a.text) })
	return m
}

// add keeps a value in the spellings that sinks write: as it is, inside JSON with
// and without HTML escapes, and percent-encoded.
func (m *Masker) add(text, kind string) {
	spellings := []string{text, strings.TrimSpace(text), url.QueryEscape(text), url.PathEscape(text)}
	if b, err := json.Marshal(text); err == nil {
		quoted := string(b[1 : len(b)-1])
		plain := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(quoted)
		spellings = append(spellings, quoted, plain)
	}
	for _, s := range spellings {
		known := slices.ContainsFunc(m.values, func(v value) bool { return v.text == s })
		if len(s) < minExtra || known {
			continue
		}
		m.values = append(m.values, value{s, kind})
		m.first[s[0]] = true
	}
}

// Mask returns s with every known secret replaced by a marker that names its kind,
// e.g. "[masked: private key]" or "[masked: GITHUB_TOKEN]". Without one it returns
// s itself.
func (m *Masker) Mask(s string) string {
	spans := slices.Concat(m.valueSpans(s), shapeSpans(s), keySpans(s))
	if len(spans) == 0 {
		return s
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var b strings.Builder
	at, open := 0, span{end: -1}
	flush := func() {
		if open.end >= 0 {
			b.WriteString(s[at:open.start] + "[masked: " + open.kind + "]")
			at = open.end
		}
	}
	for _, sp := range spans {
		if sp.start < open.end {
			open.end = max(open.end, sp.end)
			continue
		}
		flush()
		open = sp
	}
	flush()
	return b.String() + s[at:]
}

func (m *Masker) valueSpans(s string) []span {
	if m == nil || len(m.values) == 0 {
		return nil
	}
	var spans []span
	for i := 0; i < len(s); i++ {
		if !m.first[s[i]] {
			continue
		}
		for _, v := range m.values {
			if strings.HasPrefix(s[i:], v.text) {
				spans = append(spans, span{i, i + len(v.text), v.kind})
				break
			}
		}
	}
	return spans
}

// ScrubEnv returns env for child processes: without our own variables (ZCODER_*,
// OLLAMA_API_KEY) and without those that hold secrets by their name. The others
// stay, in order. It does not change env.
func ScrubEnv(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, e := range env {
		name, text, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "ZCODER_") || name == "OLLAMA_API_KEY" || Named(name) && !harmless(text) {
			continue
		}
		kept = append(kept, e)
	}
	return kept
}
