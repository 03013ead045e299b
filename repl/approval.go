package repl

import (
	"fmt"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

const (
	// settleTime is how long a new dialog ignores keys, so that none that was meant
	// for the prompt answers it.
	settleTime = 500 * time.Millisecond
	// resettle is the same after the dialog scrolled by itself.
	resettle = 200 * time.Millisecond
	// The smallest dialog that can be read, in cells and in rows of the request.
	minDialogCols = 20
	minDialogRows = 4
	dialogFrame   = 3 // rows around the request
)

// decision is what a key in the dialog means.
type decision uint8

const (
	undecided decision = iota
	allowOnce
	allowConversation
	denyWithReason // the person may say why
	denyNow
	denyAndStop // the turn, and the question with it
)

// choice is the word for a decision in an event.Answer.
func (d decision) choice() string {
	switch d {
	case allowOnce:
		return "once"
	case allowConversation:
		return "conversation"
	}
	return "no"
}

// approval is the dialog of one question: what it shows, how it scrolls, and which
// keys answer. It knows no terminal; whoever owns it draws frame.
type approval struct {
	q    event.Question
	st   style
	from time.Time // keys before are ignored

	cols, rows int
	body       []string // the request, wrapped for cols
	top        int      // the first body row shown
	seen       bool     // the last body row was on the screen
	hint       string
}

func newApproval(q event.Question, st style, now time.Time, cols, rows int) *approval {
	a := &approval{q: q, st: st, from: now.Add(settleTime)}
	a.resize(cols, rows)
	return a
}

// fits reports whether a dialog can be read on a terminal of that size.
func fits(cols, rows int) bool { return cols >= minDialogCols && rows-dialogFrame >= minDialogRows }

func (a *approval) resize(cols, rows int) {
	if cols != a.cols {
		a.body = requestRows(a.q, a.st, cols)
	}
	a.cols, a.rows = cols, rows
	a.scrollTo(a.top)
}

func (a *approval) room() int { return max(a.rows-dialogFrame, 1) }

func (a *approval) scrollTo(top int) {
	a.top = max(0, min(top, len(a.body)-a.room()))
	if fits(a.cols, a.rows) && a.top+a.room() >= len(a.body) {
		a.seen = true
	}
}

// key takes a key that came at the given time; alone says that its byte was all that
// the terminal sent. Keys that come together are a paste, a reply of the terminal that came apart, or
// typed ahead: they scroll, and never allow anything.
func (a *approval) key(k key, at time.Time, alone bool) decision {
	if at.Before(a.from) {
		return undecided
	}
	a.hint = ""
	if k.alt {
		return undecided
	}
	switch k.name {
	case keyEsc:
		return denyNow
	case keyCtrl:
		if k.r == 'c' {
			return denyAndStop
		}
	case keyRune:
		return a.letter(k.r, at, alone)
	case keyPaste:
		a.hint = "a paste is no answer"
	case keyEnter:
		a.hint = "Enter is no answer: press " + a.choices()
	default:
		a.scroll(k)
	}
	return undecided
}

func (a *approval) scroll(k key) {
	page := max(a.room()-1, 1)
	switch k.name {
	case keyUp:
		a.scrollTo(a.top - 1)
	case keyDown:
		a.scrollTo(a.top + 1)
	case keyPageUp:
		a.scrollTo(a.top - page)
	case keyPageDown:
		a.scrollTo(a.top + page)
	case keyHome:
		a.scrollTo(0)
	case keyEnd:
		a.scrollTo(len(a.body))
	}
}

func (a *approval) letter(r rune, at time.Time, alone bool) decision {
	switch r {
	case 'y', 'Y', 'a', 'A':
		return a.allow(r|0x20, at, alone)
	case 'n', 'N':
		return denyWithReason
	case ' ':
		a.scroll(key{name: keyPageDown})
	case 'b':
		a.scroll(key{name: keyPageUp})
	case 'j':
		a.scroll(key{name: keyDown})
	case 'k':
		a.scroll(key{name: keyUp})
	case 'g':
		a.scroll(key{name: keyHome})
	case 'G':
		a.scroll(key{name: keyEnd})
	default:
		a.hint = "press " + a.choices()
		if r >= 0xff01 && r <= 0xff5e {
			a.hint = "that is a full-width letter: press plain " + a.choices()
		}
	}
	return undecided
}

func (a *approval) allow(r rune, at time.Time, alone bool) decision {
	switch {
	case !alone:
		a.hint = "several keys at once are no answer"
	case !fits(a.cols, a.rows):
		a.hint = "make the window larger to read it first"
	case r == 'a' && !a.q.Grantable && !aMeansOnce(a.q):
		a.hint = "only this one can be allowed: press " + a.choices()
	case !a.seen:
		a.scrollTo(len(a.body))
		a.from = at.Add(resettle)
		a.hint = "the end: press again to allow"
	case r == 'a' && a.q.Grantable:
		return allowConversation
	default:
		return allowOnce
	}
	return undecided
}

// aMeansOnce reports whether `a` allows no more than `y`: a command of a turn that
// another instance started asks each time.
func aMeansOnce(q event.Question) bool {
	return !q.Grantable && q.Origin == "peer" && q.Effect == "exec"
}

func (a *approval) choices() string {
	if a.q.Grantable || aMeansOnce(a.q) {
		return "y, a or n"
	}
	return "y or n"
}

// frame returns the rows of the dialog, at most as many and as wide as the screen.
func (a *approval) frame() []string {
	if !fits(a.cols, a.rows) {
		return tooSmall(a.cols, a.rows)
	}
	frame := []string{a.st.invert(pad(" Allow this? "+requestTitle(a.q), a.cols-1))}
	end := min(a.top+a.room(), len(a.body))
	frame = append(frame, a.body[a.top:end]...)
	for range a.room() - (end - a.top) {
		frame = append(frame, "")
	}
	where := fmt.Sprintf("line %d–%d of %d", a.top+1, end, len(a.body))
	switch {
	case a.hint != "":
		where += " · " + a.hint
	case end < len(a.body):
		where += " · ↓ or Space for more"
	}
	keys := "y once · n deny"
	if a.q.Grantable {
		keys = "y once · a this conversation · n deny"
	}
	if aMeansOnce(a.q) {
		keys = "y once · a once too · n deny"
	}
	return append(frame, a.st.dim(termtext.Cut(where, a.cols-1)), a.st.bold(termtext.Cut(keys, a.cols-1)))
}

func tooSmall(cols, rows int) []string {
	lines := termtext.Wrap("too small to show the request: make the window larger, or n denies", max(cols-1, 1))
	return lines[:min(len(lines), max(rows, 1))]
}

// requestTitle names what is asked, the host first.
func requestTitle(q event.Question) string {
	title := termtext.Line(q.Tool)
	if q.Host != "" {
		title = "on " + termtext.Line(q.Host) + ": " + title
	}
	return title
}

// pad makes a line exactly width cells wide.
func pad(line string, width int) string {
	line = termtext.Cut(line, width)
	return line + strings.Repeat(" ", max(0, width-termtext.Width(line)))
}

// requestRows is all that a person must see of a question, wrapped: nothing is cut.
func requestRows(q event.Question, st style, cols int) []string {
	b := requestBody{st: st, width: max(cols-1, 1)}
	if q.Host != "" {
		b.fact("host", termtext.Line(q.Host), st.invert)
	}
	b.fact("tool", toolFact(q), nil)
	b.fact("shell", argv(q.Shell), nil)
	b.fact("dir", termtext.Line(q.Dir), nil)
	b.fact("limit", termtext.Line(q.Timeout), nil)
	b.fact("asked by", termtext.Line(q.Origin), nil)
	for _, reason := range q.Reasons {
		b.fact("because", termtext.Line(reason), nil)
	}
	b.row("")
	b.text(q)
	notes := append([]string(nil), q.Notes...)
	for _, h := range termtext.HiddenIn(q.Text) {
		notes = append(notes, fmt.Sprintf("hidden characters: %s (%s)", h.Name, times(h.Count)))
	}
	if len(notes) > 0 {
		b.row("")
	}
	for _, note := range notes {
		b.note(termtext.Line(note))
	}
	return b.rows
}

func toolFact(q event.Question) string {
	if q.Effect == "" {
		return termtext.Line(q.Tool)
	}
	return termtext.Line(q.Tool) + " (" + termtext.Line(q.Effect) + ")"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// requestBody collects the rows of a request.
type requestBody struct {
	st    style
	width int
	rows  []string
}

func (b *requestBody) row(text string) { b.rows = append(b.rows, text) }

// fact adds a named value, over several rows when it is long.
func (b *requestBody) fact(name, value string, paint func(string) string) {
	if value == "" {
		return
	}
	const label = 9
	name += strings.Repeat(" ", max(1, label-len(name)))
	for i, part := range termtext.Wrap(value, max(b.width-label, 1)) {
		if i > 0 {
			name = strings.Repeat(" ", label)
		}
		if paint != nil {
			part = paint(part)
		}
		b.row(b.st.dim(name) + part)
	}
}

// text adds the request itself, its lines numbered.
func (b *requestBody) text(q event.Question) {
	if strings.TrimSpace(q.Text) == "" {
		b.row(b.st.yellow(termtext.Cut("warning: the text is empty", b.width)))
		if q.Text == "" {
			return
		}
	}
	lines := strings.Split(termtext.MarkBlanks(termtext.Safe(q.Text)), "\n")
	digits := len(fmt.Sprint(len(lines)))
	for i, line := range lines {
		gutter := fmt.Sprintf("%*d│", digits, i+1)
		for j, part := range termtext.Wrap(line, max(b.width-digits-1, 1)) {
			if j > 0 {
				gutter = strings.Repeat(" ", digits) + "│"
			}
			b.row(b.st.dim(gutter) + part)
		}
	}
}

func (b *requestBody) note(text string) {
	for i, part := range termtext.Wrap(text, max(b.width-2, 1)) {
		lead := "  "
		if i == 0 {
			lead = b.st.yellow("!") + " "
		}
		b.row(lead + part)
	}
}

// typedFor reads an answer to a question, see typedAnswer.
func typedFor(q event.Question, line string) (decision, string) {
	if aMeansOnce(q) && strings.EqualFold(strings.TrimSpace(line), "a") {
		return allowOnce, ""
	}
	return typedAnswer(line, q.Grantable)
}

// typedAnswer reads an answer that was typed as a line, on terminals without keys.
func typedAnswer(line string, grantable bool) (decision, string) {
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case word == "y" || word == "yes":
		return allowOnce, ""
	case word == "a" && grantable:
		return allowConversation, ""
	case word == "a":
		return undecided, "only this one can be allowed: type y or n"
	case word == "n" || word == "no":
		return denyWithReason, ""
	}
	if grantable {
		return undecided, "type y, a or n"
	}
	return undecided, "type y or n"
}
