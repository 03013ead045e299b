package worker

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// reading is what was learnt from a worker's output so far.
type reading struct {
	say func(string)

	last    string // newest message of the worker
	fresh   bool   // the next piece begins a new message
	done    bool   // the event that closes a run in order came
	failure string // what it reported as its error
	asked   string // the question or permission that it stopped at
	denied  []string
	usage   Usage
}

// message sets the newest message.
func (r *reading) message(text string) {
	if strings.TrimSpace(text) != "" {
		r.last, r.fresh = cut(text, maxReply), true
	}
}

// piece adds to the newest message.
func (r *reading) piece(text string) {
	if r.fresh {
		r.last, r.fresh = "", false
	}
	if len(r.last) < maxReply {
		r.last = cut(r.last+text, maxReply)
	}
}

func (r *reading) fail(text string) {
	if text == "" {
		text = "it reported an error without a text"
	}
	r.failure = text
}

// deny notes an action that the worker was refused.
func (r *reading) deny(what string) {
	const most = 20
	if len(r.denied) < most {
		r.denied = append(r.denied, oneLine(what))
	}
}

// tell shows a line of progress.
func (r *reading) tell(what, about string) {
	if line := oneLine(strings.TrimSpace(what + " " + about)); line != "" {
		r.say(line)
	}
}

func (r *reading) reply() string { return strings.TrimSpace(strings.ToValidUTF8(r.last, "\uFFFD")) }

// end is how the process ended.
type end struct {
	code    int
	signal  string
	stderr  string
	bytes   int    // of standard output
	stopped Status // when we ended it
	harness Harness
}

// verdict says how the run ended. An exit status of 0 proves nothing: several workers
// end so when they were interrupted, stopped at a permission or had no model.
func (r *reading) verdict(e end) (Status, string) {
	switch {
	case e.stopped == TooLong:
		return TooLong, fmt.Sprintf("stopped: a line of its output has more than %d bytes, or all of it more than %d", maxLine, maxStream)
	case e.stopped == Cancelled:
		return Cancelled, "stopped"
	case e.stopped != "":
		return e.stopped, "stopped"
	case r.failure != "" && needsLogin(r.failure):
		return SignIn, oneLine(r.failure)
	case r.failure != "":
		return Failed, oneLine(r.failure)
	case !r.done:
		return r.brokenOff(e)
	case e.signal != "":
		return Killed, "ended by " + e.signal + " after its last message"
	case e.code != 0:
		return Failed, fmt.Sprintf("it ended with status %d after its last message%s", e.code, because(e.stderr))
	case r.asked != "":
		return Asks, oneLine(r.asked)
	case r.reply() == "" && len(r.denied) > 0:
		return Permission, "it ended without an answer after it was refused: " + strings.Join(r.denied, ", ")
	case r.reply() == "":
		return Empty, "it ended in order and said nothing"
	case strings.HasSuffix(r.reply(), "?"):
		return Asks, "its answer ends with a question"
	}
	return Done, ""
}

// brokenOff judges a run without its closing event.
func (r *reading) brokenOff(e end) (Status, string) {
	switch {
	case e.signal != "":
		return Killed, "ended by " + e.signal
	case e.code == e.harness.loginCode && e.code != 0, e.code != 0 && needsLogin(e.stderr):
		return SignIn, lastLine(e.stderr)
	case r.asked != "":
		return Permission, oneLine(r.asked)
	case e.code != 0:
		return Failed, fmt.Sprintf("it ended with status %d%s", e.code, because(e.stderr))
	case e.harness.stopsSilently && r.reply() == "":
		return Permission, "it ended without an answer, as it does at something that it would have to ask for" + because(e.stderr)
	case e.bytes == 0:
		return Empty, "it ended without any output" + because(e.stderr)
	}
	return Failed, "it ended without the event that closes a run, so its work may be incomplete" + because(e.stderr)
}

func because(stderr string) string {
	if line := lastLine(stderr); line != "" {
		return ": " + line
	}
	return ""
}

// loginWords are what workers say when nobody is signed in.
var loginWords = regexp.MustCompile(`(?i)not logged in|not signed in|please (run|use) .?/?login|log ?in (first|again|required)|sign in|login required|` +
	`invalid (x-)?api[ -]?key|incorrect api key|no api key|api key (is )?(not|missing|required)|missing api key|invalid auth method|set an auth method|` +
	`no auth|\bunauthorized\b|authentication[ _](error|failed|required)|\b(status|http|code|error)\W{0,4}401\b|\b401\b.{0,20}unauthor|oauth token (has )?expired|credentials? (not found|missing)`)

func needsLogin(text string) bool { return loginWords.MatchString(text) }

// lastLine is the last line of a text that says something, without escape sequences.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return oneLine(lines[len(lines)-1])
}

// oneLine makes one bounded line of a text.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	if len(text) <= maxDetail {
		return text
	}
	return cut(text, maxDetail-len("…")) + "…"
}

// cut returns at most n bytes of a text, whole runes.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
