package repl

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

const (
	maxDiffLines  = 40  // of a diff that are shown
	maxBlockLines = 40  // of an approved request or a message that are shown whole
	blockHead     = 25  // of longer ones
	blockTail     = 10  //
	maxCells      = 500 // of one line of a diff or a summary
)

// section is what a piece of the transcript belongs to. Sections of different kinds
// are divided by an empty line.
type section uint8

const (
	nowhere section = iota
	sectionUser
	sectionText
	sectionTool
	sectionNote
	sectionEnd
)

// transcript shows events: finished lines on the screen, and what is under way for
// the status line. It keeps the last reply for copying.
type transcript struct {
	scr   *screen
	st    style
	now   func() time.Time
	prose prose
	last  section

	calls     map[string]event.Call
	questions map[string]event.Question
	asked     map[string]bool // calls whose whole text is on the screen
	mine      []string        // texts of User and Shell events that are on the screen already

	streamed strings.Builder // of the reply under way
	reply    string          // the last one
	thought  thinking
	told     bool // what was thought of the reply under way

	running  bool // a turn is
	phase    string
	detail   string
	since    time.Time // of the phase
	lastText time.Time // when text of the reply came
	output   string    // the last line of the running call's output
}

func newTranscript(scr *screen, st style, now func() time.Time) *transcript {
	return &transcript{
		scr: scr, st: st, now: now, prose: prose{st: st},
		calls: map[string]event.Call{}, questions: map[string]event.Question{}, asked: map[string]bool{},
	}
}

// show shows one event.
func (t *transcript) show(e event.Event) {
	switch e.Kind {
	case event.TurnStart:
		t.running = true
		t.setPhase("starting", "")
	case event.User:
		t.user(e.Text)
	case event.Relayed:
		t.relayed(e.Peer)
	case event.Shell:
		t.shell(e.Text)
	case event.Progress:
		t.progress(e.State)
	case event.Thinking:
		t.thought.add(e.Text, e.Time)
	case event.Content:
		t.content(e)
	case event.Reply:
		t.replied(e)
	case event.CallStart:
		t.called(e)
	case event.Output:
		t.addOutput(e.Text)
	case event.CallEnd:
		t.result(e.Result)
	case event.Asked:
		if e.Question != nil {
			t.questions[e.Question.CallID] = *e.Question
		}
	case event.Answered:
		t.answered(e.Answer)
	case event.Info, event.Printed:
		t.info(e.Text)
	case event.Warning:
		t.warning(e.Text)
	case event.Compacted:
		if e.Text == event.Rewound {
			t.note("the conversation forgets the turns that were undone")
			break
		}
		t.note("the conversation so far was replaced by a summary; the model goes on from it")
	case event.GoalState:
		t.goal(e.Goal)
	case event.Queued, event.Unqueued:
		t.queued(e)
	case event.TurnEnd:
		t.end(e)
	}
}

// goal tells how the goal stands; that it is active shows by its turns.
func (t *transcript) goal(g *event.Goal) {
	switch {
	case g == nil || g.State == "active":
	case g.State == "none":
		t.note("the goal is cleared")
	default:
		line := "goal " + g.State
		if g.Reason != "" && g.State != "verifying" {
			line += ": " + g.Reason
		}
		t.note(termtext.Line(line))
	}
}

// queued tells of input that waits, or no longer does. What is consumed shows as
// itself.
func (t *transcript) queued(e event.Event) {
	if e.Item == nil {
		return
	}
	text := termtext.Cut(termtext.Line(e.Item.Text), 80)
	switch {
	case e.Kind == event.Unqueued && e.Item.State == "discarded":
		t.note("no longer queued: " + text)
	case e.Kind == event.Unqueued:
	case e.Item.Mode == event.Command:
		t.note("queued, your command runs after this turn: " + text)
	case e.Item.Mode == event.Steer:
		t.note("queued, the model gets it after this step: " + text)
	default:
		t.note("queued for after this turn: " + text)
	}
}

// begin starts a section, divided from another one before it.
func (t *transcript) begin(s section) {
	switch {
	case t.last != sectionText || s == sectionText:
	case t.streamed.Len() > 0:
		t.scr.print(t.prose.interrupt())
	default:
		t.scr.print(t.prose.end())
	}
	if t.last == s && s == sectionText {
		return
	}
	t.scr.freshLine()
	if t.last != nowhere && t.last != s {
		t.scr.print("\n")
	}
	t.last = s
}

// user shows a message of a person, unless it is there already.
func (t *transcript) user(text string) {
	if !t.isMine(text) {
		t.message("› ", text)
	}
}

// message shows what a person sent, long ones in part.
func (t *transcript) message(prompt, text string) {
	t.begin(nowhere)
	t.begin(sectionUser)
	lines := bounded(termtext.Safe(text), t.st)
	prompt = termtext.Line(prompt)
	indent := strings.Repeat(" ", min(termtext.Width(prompt), 8))
	t.scr.print(t.st.cyan(prompt) + strings.Join(lines, "\n"+indent) + "\n")
}

// relayed shows a message of another instance, which nobody typed here.
func (t *transcript) relayed(p *event.Peer) {
	if p == nil {
		return
	}
	t.begin(nowhere)
	t.begin(sectionUser)
	from := fmt.Sprintf("from another zcoder: %s · pid %d · %s", termtext.Line(p.Project), p.PID, termtext.Line(p.Workspace))
	t.scr.print(t.st.yellow("⇄ ") + t.st.bold(termtext.Cut(from, maxCells)) + "\n")
	for _, line := range bounded(termtext.MarkBlanks(termtext.Safe(p.Message)), t.st) {
		t.scr.print(t.st.dim("  │ ") + line + "\n")
	}
}

// bounded returns the lines of safe text, head and tail when there are many.
func bounded(text string, st style) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= maxBlockLines {
		return lines
	}
	left := len(lines) - blockHead - blockTail
	cut := append([]string(nil), lines[:blockHead]...)
	cut = append(cut, st.dim(fmt.Sprintf("… %d of %d lines not shown here …", left, len(lines))))
	return append(cut, lines[len(lines)-blockTail:]...)
}

// expect says that text of a User or Shell event is on the screen already.
func (t *transcript) expect(text string) {
	const most = 16 // events that may never come
	t.mine = append(t.mine, text)
	t.mine = t.mine[max(0, len(t.mine)-most):]
}

func (t *transcript) isMine(text string) bool {
	for i, m := range t.mine {
		if m == text {
			t.mine = append(t.mine[:i], t.mine[i+1:]...)
			return true
		}
	}
	return false
}

func (t *transcript) shell(text string) {
	if t.isMine(text) {
		return
	}
	t.begin(sectionNote)
	for _, line := range bounded(termtext.Safe(text), t.st) {
		t.scr.print(t.st.dim(termtext.Cut(line, maxCells)) + "\n")
	}
}

func (t *transcript) setPhase(phase, detail string) {
	t.phase, t.detail, t.since, t.output = termtext.Line(phase), detail, t.now(), ""
}

func (t *transcript) progress(s *event.State) {
	if s != nil && (string(s.Phase) != t.phase || s.Detail != t.detail) {
		t.setPhase(string(s.Phase), s.Detail)
	}
}

func (t *transcript) content(e event.Event) {
	t.endThought(e.Time)
	t.lastText = t.now()
	text := e.Text
	if t.streamed.Len() == 0 && t.last != sectionText {
		if text = strings.TrimLeft(text, "\n"); text == "" {
			return
		}
	}
	t.streamed.WriteString(e.Text)
	t.begin(sectionText)
	t.scr.print(t.prose.write(text))
}

// replied ends a reply, and shows it when its pieces did not come.
func (t *transcript) replied(e event.Event) {
	if e.Reply == nil {
		return
	}
	m := e.Reply.Message
	if t.thought.words == 0 && !t.told {
		t.thought.add(m.Thinking, time.Time{})
	}
	t.endThought(e.Time)
	t.told = false
	if rest := t.missing(m.Content); rest != "" {
		t.begin(sectionText)
		t.scr.print(t.prose.write(rest))
	}
	t.endText()
	if strings.TrimSpace(m.Content) != "" {
		t.reply = m.Content
	}
}

// endText ends a reply's text, wherever it is.
func (t *transcript) endText() {
	rest := t.prose.end()
	if t.last == sectionText {
		t.scr.print(rest)
		t.scr.freshLine()
	}
	t.streamed.Reset()
}

// missing is the part of a reply that was not streamed.
func (t *transcript) missing(content string) string {
	seen := t.streamed.String()
	if seen == "" {
		return strings.TrimLeft(content, "\n")
	}
	rest, ok := strings.CutPrefix(strings.TrimLeft(content, "\n"), strings.TrimLeft(seen, "\n"))
	if !ok {
		return ""
	}
	return rest
}

// thinking counts what the model thinks.
type thinking struct {
	words       int
	inWord      bool
	start, last time.Time
}

func (t *thinking) add(text string, at time.Time) {
	if t.start.IsZero() {
		t.start = at
	}
	t.last = at
	for _, r := range text {
		space := unicode.IsSpace(r)
		if !space && !t.inWord {
			t.words++
		}
		t.inWord = !space
	}
}

func (t *transcript) endThought(at time.Time) {
	th := t.thought
	t.thought = thinking{}
	if th.words == 0 {
		return
	}
	t.told = true
	text := "thought"
	if took := at.Sub(th.start); !th.start.IsZero() && took >= time.Second {
		text += " for " + seconds(took)
	}
	t.toolNote(fmt.Sprintf("%s (%s)", text, plural(th.words, "word")))
}

// toolNote is a dim line between the lines of calls.
func (t *transcript) toolNote(text string) {
	t.begin(sectionTool)
	t.scr.print(t.st.dim("  "+text) + "\n")
}

func (t *transcript) called(e event.Event) {
	t.endThought(e.Time)
	if e.Call != nil {
		t.calls[e.Call.ID] = *e.Call
		t.setPhase("about to run", e.Call.Summary)
	}
}

// addOutput keeps the last line of a call's output for the status line.
func (t *transcript) addOutput(text string) {
	const enough = 4 << 10
	if len(text) > enough {
		text = text[len(text)-enough:]
	}
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if line := strings.TrimSpace(lines[len(lines)-1]); line != "" {
		t.output = termtext.Cut(termtext.Line(line), maxCells)
	}
}

// result shows the one line of a call, and the diff of an edit.
func (t *transcript) result(r *event.Result) {
	if r == nil {
		return
	}
	call := t.calls[r.CallID]
	delete(t.calls, r.CallID)
	t.output = ""
	if r.Name == "finish" && r.Status == "ok" {
		return
	}
	t.begin(sectionTool)
	t.whole(call)
	t.scr.print(t.resultLine(call, r) + "\n")
	t.diff(r.Diff)
}

// whole shows a command that ran without a question and is longer than its line.
func (t *transcript) whole(call event.Call) {
	lines := call.Whole()
	if lines == nil || t.asked[call.ID] {
		return
	}
	for _, line := range bounded(termtext.MarkBlanks(termtext.Safe(strings.Join(lines, "\n"))), t.st) {
		t.scr.print(t.st.dim("  │ ") + line + "\n")
	}
}

func (t *transcript) resultLine(call event.Call, r *event.Result) string {
	what := termtext.Cut(termtext.Line(call.Summary), maxCells)
	if what == "" {
		what = termtext.Line(r.Name)
	}
	outcome := termtext.Cut(termtext.Line(r.Line), maxCells)
	if strings.HasSuffix(what, "("+outcome+")") { // the call has said it
		outcome = ""
	}
	mark := t.st.green("●")
	switch r.Status {
	case "ok":
	case "failed":
		mark = t.st.red("●")
		outcome = t.st.red(withWord("failed", outcome))
	case "denied":
		mark = t.st.yellow("●")
		outcome = t.st.yellow(withWord("denied", outcome))
	default:
		mark = t.st.dim("●")
		outcome = withWord(termtext.Line(r.Status), outcome)
	}
	line := mark + " " + what
	if outcome != "" {
		line += t.st.dim(" · ") + outcome
	}
	if r.Took > 0 || r.Status == "ok" {
		line += t.st.dim(" · " + seconds(r.Took))
	}
	return line
}

// withWord puts the status before an outcome that does not say it.
func withWord(word, outcome string) string {
	switch {
	case outcome == "":
		return word
	case strings.HasPrefix(outcome, word), strings.HasPrefix(outcome, "refused"), strings.HasPrefix(outcome, "not executed"),
		strings.HasPrefix(outcome, "stopped"), strings.HasPrefix(outcome, "interrupted"):
		return outcome
	}
	return word + ": " + outcome
}

// diff shows a unified diff, coloured and bounded.
func (t *transcript) diff(diff string) {
	if diff == "" {
		return
	}
	const most = maxDiffLines * 4 * maxCells // bytes that can matter
	total := strings.Count(strings.TrimSuffix(diff, "\n"), "\n") + 1
	shown := 0
	for line := range strings.SplitSeq(diff[:cutBefore(diff, min(len(diff), most))], "\n") {
		if shown == maxDiffLines || line == "" && shown == total {
			break
		}
		t.scr.print("  " + t.diffLine(line) + "\n")
		shown++
	}
	if left := total - shown; left > 0 {
		t.scr.print(t.st.dim(fmt.Sprintf("  … %s of this change not shown", plural(left, "more line"))) + "\n")
	}
}

func (t *transcript) diffLine(line string) string {
	const enough = 4 * maxCells
	if len(line) > enough {
		line = line[:cutBefore(line, enough)] + "…"
	}
	text := termtext.Cut(termtext.Safe(line), maxCells)
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
		return t.st.bold(text)
	case strings.HasPrefix(line, "+"):
		return t.st.green(text)
	case strings.HasPrefix(line, "-"):
		return t.st.red(text)
	case strings.HasPrefix(line, "@@"):
		return t.st.cyan(text)
	}
	return text
}

// answered shows what was asked and what the answer was: the whole text, so that
// the scrollback tells what ran.
func (t *transcript) answered(a *event.Answer) {
	if a == nil {
		return
	}
	q, ok := t.questions[a.CallID]
	if !ok {
		return
	}
	delete(t.questions, a.CallID)
	t.asked[a.CallID] = true
	t.begin(sectionTool)
	head := termtext.Line(q.Tool) + ": "
	switch a.Choice {
	case "once":
		head = t.st.green("✓ ") + head + t.st.green("approved once")
	case "conversation":
		head = t.st.green("✓ ") + head + t.st.green("approved, and commands for the rest of this conversation")
	default:
		head = t.st.yellow("✗ ") + head + t.st.yellow("denied")
	}
	if a.By != "" {
		head += t.st.dim(" by " + termtext.Line(a.By))
	}
	t.scr.print(head + "\n")
	if where := requestPlace(q); where != "" {
		t.scr.print(t.st.dim("  "+where) + "\n")
	}
	for _, line := range bounded(termtext.MarkBlanks(termtext.Safe(q.Text)), t.st) {
		t.scr.print(t.st.dim("  │ ") + line + "\n")
	}
	if a.Reason != "" {
		t.scr.print("  reason: " + termtext.Line(a.Reason) + "\n")
	}
}

// requestPlace says where and how a request runs, on one line.
func requestPlace(q event.Question) string {
	var parts []string
	if q.Host != "" {
		parts = append(parts, "on "+termtext.Line(q.Host))
	}
	if len(q.Shell) > 0 {
		parts = append(parts, argv(q.Shell))
	}
	if q.Dir != "" {
		parts = append(parts, "in "+termtext.Line(q.Dir))
	}
	return strings.Join(parts, " · ")
}

// argv shows a program and its arguments.
func argv(words []string) string {
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = termtext.Line(w)
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\") {
			shown[i] = "'" + shown[i] + "'"
		}
	}
	return strings.Join(shown, " ")
}

func (t *transcript) info(text string) {
	t.begin(sectionNote)
	t.scr.print(termtext.Safe(strings.TrimSuffix(text, "\n")) + "\n")
}

func (t *transcript) note(text string) {
	t.begin(sectionNote)
	t.scr.print(t.st.dim(termtext.Safe(strings.TrimSuffix(text, "\n"))) + "\n")
}

func (t *transcript) warning(text string) {
	t.begin(sectionNote)
	t.scr.print(t.st.yellow("warning: ") + termtext.Safe(strings.TrimSuffix(text, "\n")) + "\n")
}

func (t *transcript) failure(text, hint string) {
	t.begin(sectionNote)
	t.scr.print(t.st.red("error: ") + termtext.Safe(strings.TrimSuffix(text, "\n")) + "\n")
	if hint != "" {
		t.scr.print("hint: " + termtext.Safe(strings.TrimSuffix(hint, "\n")) + "\n")
	}
}

// end shows how a turn ended, from what happened in it.
func (t *transcript) end(e event.Event) {
	t.running = false
	t.endThought(e.Time)
	clear(t.calls)
	clear(t.questions)
	if e.End == nil {
		return
	}
	t.endText()
	t.lastWords(*e.End)
	t.begin(sectionEnd)
	t.scr.print(t.closing(*e.End) + "\n")
}

// lastWords shows what a turn ends with beside its closing line.
func (t *transcript) lastWords(end event.End) {
	switch end.Reason {
	case event.Complete, event.Blocked:
		if strings.TrimSpace(end.Text) == "" || end.Text == t.reply && t.last == sectionText {
			return
		}
		t.begin(nowhere)
		t.begin(sectionText)
		t.scr.print(t.prose.write(strings.Trim(end.Text, "\n")) + t.prose.end())
		t.scr.freshLine()
		t.reply = end.Text
	case event.Errored:
		t.failure(end.Text, end.Hint)
	case event.Limited, event.Looped:
		t.warning(end.Text)
		if end.Hint != "" {
			t.scr.print("hint: " + termtext.Safe(end.Hint) + "\n")
		}
	}
}

func (t *transcript) closing(end event.End) string {
	word, paint := "done", t.st.green
	switch end.Reason {
	case event.Complete:
	case event.Blocked:
		word, paint = "blocked", t.st.yellow
	case event.Cancelled:
		word, paint = "stopped", t.st.yellow
	case event.Errored:
		word, paint = "ended with an error", t.st.red
	case event.Limited:
		word, paint = "stopped at a limit", t.st.yellow
	case event.Looped:
		word, paint = "stopped in a loop", t.st.yellow
	default:
		word = termtext.Line(string(end.Reason))
	}
	var facts []string
	facts = append(facts, changedFacts(end.Changed)...)
	facts = append(facts, commandFacts(end.Commands)...)
	if end.Failed > 0 {
		facts = append(facts, plural(end.Failed, "call")+" failed")
	}
	if end.Refused > 0 {
		facts = append(facts, fmt.Sprintf("%d refused", end.Refused))
	}
	if end.OutputTokens > 0 {
		facts = append(facts, tokens(end.OutputTokens)+" tokens")
	}
	if end.Window > 0 && end.PromptTokens > 0 {
		facts = append(facts, fmt.Sprintf("%d %% of %s", (100*end.PromptTokens+end.Window/2)/end.Window, tokens(end.Window)))
	}
	facts = append(facts, seconds(end.Took))
	return paint(word) + t.st.dim(" · "+strings.Join(facts, " · "))
}

func changedFacts(changed []string) []string {
	if len(changed) == 0 {
		return nil
	}
	const most = 3
	names := make([]string, 0, most)
	for _, path := range changed[:min(most, len(changed))] {
		names = append(names, termtext.Cut(termtext.Line(path), 60))
	}
	list := strings.Join(names, ", ")
	if len(changed) > most {
		list += fmt.Sprintf(", %d more", len(changed)-most)
	}
	return []string{fmt.Sprintf("%s changed (%s)", plural(len(changed), "file"), list)}
}

func commandFacts(commands []event.Ran) []string {
	const most = 3
	var facts []string
	for _, c := range commands[max(0, len(commands)-most):] {
		exit := "stopped"
		if c.Exit != nil {
			exit = fmt.Sprintf("exit %d", *c.Exit)
		}
		facts = append(facts, termtext.Cut(termtext.Line(c.Summary), 40)+" "+exit)
	}
	if n := len(commands) - most; n > 0 {
		facts = append([]string{plural(n, "earlier command")}, facts...)
	}
	return facts
}

// status is what is under way, for the status line.
func (t *transcript) status(now time.Time) string {
	what := t.phase
	if t.thought.words > 0 {
		what = "thinking, " + plural(t.thought.words, "word") + ","
	} else if t.detail != "" {
		what += " " + termtext.Cut(termtext.Line(t.detail), maxCells)
	}
	return what + " " + wholeSeconds(now.Sub(t.since))
}

// quiet reports whether text streams, so that no status line is needed.
func (t *transcript) quiet(now time.Time) bool {
	return t.phase == string(event.Generating) && t.thought.words == 0 && now.Sub(t.lastText) < 2*time.Second
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// seconds formats a duration as people read it: 0.0s, 12s, 2m05s, 1h02m.
func seconds(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	}
	return wholeSeconds(d)
}

func wholeSeconds(d time.Duration) string {
	s := int(max(d, 0) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// tokens formats a number of tokens: 340, 1.2k, 16k.
func tokens(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n%1024 == 0:
		return fmt.Sprintf("%dk", n/1024)
	case n < 10000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%dk", (n+500)/1000)
}
