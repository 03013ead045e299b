package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"zcoder/internal/approval"
)

// Kinds that only the log itself writes.
const (
	kindRecovered = "recovered" // closes a line that a crash cut off
	kindBroken    = "broken"    // tells of a break and goes on after it
)

// timeForm is the form of a time in a record: UTC, of one width.
const timeForm = "2006-01-02T15:04:05.000000Z"

// Bounds of what is stored, in bytes.
const (
	maxWord = 128
	maxText = 200
	// maxMasked is how much of a summary is masked before it is cut.
	maxMasked = 4096
	// maxLine is the longest line that can be a record.
	maxLine = 1 << 16
)

// Entry is one record as it is stored.
type Entry struct {
	N    int64  `json:"n"`
	Time string `json:"t"` // RFC 3339, UTC, microseconds
	By   string `json:"by,omitempty"`
	Kind string `json:"kind"`

	Turn    string `json:"turn,omitempty"`
	Call    string `json:"call,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Digest  string `json:"digest,omitempty"` // of the whole request
	Size    int    `json:"size,omitempty"`   // bytes of the text to approve
	Paths   int    `json:"paths,omitempty"`  // how many the request names
	Summary string `json:"summary,omitempty"`

	Verdict string `json:"verdict,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Firm    bool   `json:"firm,omitempty"`
	Choice  string `json:"choice,omitempty"`
	From    string `json:"from,omitempty"` // the frontend that answered
	Outcome string `json:"outcome,omitempty"`
	Detail  string `json:"detail,omitempty"`

	Torn    int64  `json:"torn,omitempty"` // bytes of the unfinished line before
	TornSum string `json:"torn_sha256,omitempty"`
}

// String returns the entry as one line for people. The text may hold what a
// terminal must not see raw.
func (e Entry) String() string {
	parts := []string{strconv.FormatInt(e.N, 10), e.Time, e.Kind}
	for _, p := range []string{e.Tool, e.Effect, e.Origin, e.Verdict, e.Choice, e.Outcome, e.Rule, e.Detail, e.Summary} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if e.Torn > 0 {
		parts = append(parts, fmt.Sprintf("unfinished record of %d bytes", e.Torn))
	}
	return strings.Join(parts, "  ")
}

// entry turns a record into what is stored of it: metadata and digests.
func (l *Log) entry(r approval.Record) Entry {
	e := Entry{By: clip(l.o.Instance, maxWord), Kind: clip(r.Kind, maxWord), Outcome: clip(r.Outcome, maxWord), Detail: l.masked(r.Detail)}
	if q := r.Request; q != nil {
		e.Turn, e.Call, e.Tool = clip(q.Turn, maxWord), clip(q.CallID, maxWord), clip(q.Tool, maxWord)
		e.Effect, e.Origin = q.Effect.String(), q.Origin.String()
		e.Digest, e.Size, e.Paths = q.Digest().String(), len(q.Text), len(q.Paths)
		if l.o.Mask != nil && (r.Kind == "verdict" || r.Kind == "start") {
			e.Summary = l.masked(q.Summary)
		}
	}
	if v := r.Verdict; v != nil {
		e.Verdict, e.Rule, e.Firm = v.Decision.String(), l.masked(v.Rule), v.Firm
	}
	if a := r.Answer; a != nil {
		e.Choice, e.From = a.Choice.String(), clip(a.By, maxWord)
	}
	return e
}

// masked hides secrets before the text is cut, since half a secret has another form.
func (l *Log) masked(s string) string {
	if s == "" {
		return ""
	}
	s = clip(s, maxMasked)
	if l.o.Mask != nil {
		s = l.o.Mask(s)
	}
	line, _, _ := strings.Cut(s, "\n")
	return clip(line, maxText)
}

func clip(s string, max int) string {
	if len(s) <= max {
		return s
	}
	for max > 0 && !utf8.RuneStart(s[max]) {
		max--
	}
	return s[:max]
}

// link is what the next record follows.
type link struct {
	n    int64
	hash [2 * sha256.Size]byte // hexadecimal
}

// genesis is what the first record follows.
func genesis() link {
	var l link
	for i := range l.hash {
		l.hash[i] = '0'
	}
	return l
}

const (
	frameHash = `{"hash":"`
	frameRec  = `","rec":`
	frameEnd  = `}`
	hashEnd   = len(frameHash) + 2*sha256.Size
	recBegin  = hashEnd + len(frameRec)
	recHead   = `{"n":`
	recTime   = `,"t":"`
)

// line returns the entry as a line after prev, and the link for the next.
func (e Entry) line(prev link) ([]byte, link, error) {
	var rec bytes.Buffer
	enc := json.NewEncoder(&rec)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, link{}, fmt.Errorf("encode record: %w", err)
	}
	payload := bytes.TrimRight(rec.Bytes(), "\n")
	next := link{n: e.N, hash: chained(nil, prev, payload)}
	line := make([]byte, 0, recBegin+len(payload)+2)
	line = append(line, frameHash...)
	line = append(line, next.hash[:]...)
	line = append(line, frameRec...)
	line = append(line, payload...)
	return append(line, frameEnd+"\n"...), next, nil
}

// chained returns the hash of a payload after prev. The buffer is scratch space.
func chained(buf []byte, prev link, payload []byte) (hexed [2 * sha256.Size]byte) {
	buf = append(append(buf[:0], prev.hash[:]...), payload...)
	sum := sha256.Sum256(buf)
	hex.Encode(hexed[:], sum[:])
	return hexed
}

// parseLine splits a line, without its end, into the stored link and the payload.
func parseLine(line []byte) (link, []byte, bool) {
	var l link
	if len(line) < recBegin+len(recHead)+len(frameEnd) || string(line[:len(frameHash)]) != frameHash ||
		string(line[hashEnd:recBegin]) != frameRec || line[len(line)-1] != frameEnd[0] {
		return l, nil, false
	}
	copy(l.hash[:], line[len(frameHash):hashEnd])
	payload := line[recBegin : len(line)-1]
	n, ok := number(payload)
	l.n = n
	return l, payload, ok
}

// number reads the record's number from the beginning of a payload.
func number(payload []byte) (n int64, ok bool) {
	if !bytes.HasPrefix(payload, []byte(recHead)) {
		return 0, false
	}
	rest := payload[len(recHead):]
	for i, c := range rest {
		switch {
		case c >= '0' && c <= '9' && i < 18:
			n = 10*n + int64(c-'0')
		default:
			return n, i > 0 && bytes.HasPrefix(rest[i:], []byte(recTime))
		}
	}
	return 0, false
}

// timeOf returns the time text of a payload.
func timeOf(payload []byte) string {
	_, rest, _ := bytes.Cut(payload, []byte(recTime))
	return string(rest[:min(len(rest), len(timeForm))])
}

// parseEntry decodes a line without its end.
func parseEntry(line []byte) (Entry, error) {
	var e Entry
	_, payload, ok := parseLine(line)
	if !ok {
		return e, fmt.Errorf("a line is not a record")
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		return e, fmt.Errorf("decode record: %w", err)
	}
	return e, nil
}

// sinceText returns the least time text of records since t.
func sinceText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeForm)
}
