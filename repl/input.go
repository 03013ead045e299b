package repl

import (
	"slices"
	"strings"
	"time"

	"zcoder/internal/termtext"
)

// pasteTail is how long after a paste what comes belongs to it still.
const pasteTail = 50 * time.Millisecond

// take takes what the terminal sent.
func (c *console) take(k chunk) {
	switch {
	case k.end:
		c.leave(nil)
	case c.handed != nil:
		c.handed.in.add(k.data)
	case c.t.Dumb:
		c.typedLines(k)
	default:
		c.takeKeys(k)
	}
}

func (c *console) takeKeys(k chunk) {
	c.escSeq++
	c.expireBefore(k.at)
	var keys []key
	if c.dec.state == inPaste && len(k.data) == 1 && k.data[0] == 0x03 {
		keys = c.dec.endPaste() // its end got lost
	} else {
		keys = c.dec.feed(k.data)
	}
	for _, one := range c.burst(keys, k.at) {
		c.key(one, k.at, len(k.data) == 1)
	}
	switch c.dec.wait() {
	case waitEsc:
		c.expireIn(escTime)
	case waitSequence:
		c.expireIn(sequenceTime)
	}
}

// expireBefore decides an unfinished sequence whose time was up when more came, should
// its timer be late.
func (c *console) expireBefore(at time.Time) {
	limit := sequenceTime
	if c.dec.wait() == waitEsc {
		limit = escTime
	}
	if at.Sub(c.lastInput) > limit {
		for _, k := range c.dec.expire() {
			c.key(k, at, true)
		}
	}
	c.lastInput = at
}

// expireIn decides an unfinished sequence unless more comes before.
func (c *console) expireIn(d time.Duration) {
	seq := c.escSeq
	c.after(d, func() {
		if seq != c.escSeq {
			return
		}
		for _, k := range c.dec.expire() {
			c.key(k, c.o.Now(), true)
		}
	})
}

// burst looks at keys that came at once. Several lines at once are a paste of a
// terminal that does not mark it: one text, with what follows immediately, in which
// nothing is a command key. Neither is it in what follows a marked paste immediately,
// but for one Return at which enter looks twice.
func (c *console) burst(keys []key, at time.Time) []key {
	soon := at.Sub(c.lastPaste) < pasteTail
	first := slices.IndexFunc(keys, func(k key) bool { return k.name == keyPaste })
	switch {
	case first < 0 && (isLines(keys) || soon && c.unmarked && len(keys) > 0):
		c.lastPaste, c.unmarked = at, true
		return []key{{name: keyPaste, text: keysText(keys)}}
	case first < 0 && !soon:
		return keys
	case first >= 0:
		c.unmarked = false
	}
	c.lastPaste = at
	first = max(first, 0)
	kept := keys[:first:first]
	for i, k := range keys[first:] {
		switch {
		case k.name == keyPaste, k.name == keyRune && !k.alt:
			kept = append(kept, k)
		case k.name == keyEnter && i == len(keys[first:])-1 && !isLines(keys[first:]):
			k.alt = true
			kept = append(kept, k)
		case k.name == keyEnter:
			kept = append(kept, key{name: keyNewline})
		}
	}
	return kept
}

// isLines reports whether keys are text with a line end that something follows.
func isLines(keys []key) bool {
	ends, text := 0, 0
	for i, k := range keys {
		switch k.name {
		case keyEnter:
			if i < len(keys)-1 {
				ends++
			}
		case keyRune:
			text++
		}
	}
	return ends > 0 && text > 0
}

func keysText(keys []key) string {
	var b strings.Builder
	for _, k := range keys {
		switch k.name {
		case keyRune:
			b.WriteRune(k.r)
		case keyEnter:
			b.WriteByte('\n')
		case keyTab:
			b.WriteByte('\t')
		case keyPaste:
			b.WriteString(k.text)
		}
	}
	return b.String()
}

// key takes one key.
func (c *console) key(k key, at time.Time, alone bool) {
	if c.dialog != nil {
		if k.name == keyCtrl && k.r == 'z' {
			c.suspend()
			return
		}
		c.dialog.key(k, at, alone)
		return
	}
	c.hint = ""
	if c.handed != nil || c.search != nil && c.searchKey(k) {
		return
	}
	if c.prefixX {
		c.prefixX = false
		if k.name == keyCtrl && k.r == 'e' {
			c.editDraft()
			return
		}
	}
	if c.command(k) {
		return
	}
	if c.ed.edit(k) {
		c.queued = false
	}
}

// command does a key that is not editing.
func (c *console) command(k key) bool {
	switch k.name {
	case keyEnter:
		c.enter(k.alt)
	case keyEsc:
		c.escape()
	case keyTab:
		c.complete()
	case keyUp, keyDown:
		c.vertical(k.name == keyDown)
	case keyPageUp, keyPageDown:
	case keyCtrl:
		return c.control(k.r)
	default:
		return false
	}
	return true
}

func (c *console) control(r rune) bool {
	switch r {
	case 'c':
		c.interrupt()
	case 'd':
		if !c.ed.empty() {
			c.ed.edit(key{name: keyDelete})
			c.queued = false
			return true
		}
		c.endOfInput()
	case 'g':
		c.queueWith(c.o.Later)
	case 'l':
		c.scr.clear()
	case 'n', 'p':
		c.vertical(r == 'n')
	case 'r':
		c.startSearch()
	case 'x':
		c.prefixX = true
	case 'z':
		c.suspend()
	default:
		return false
	}
	return true
}

// interrupt is Ctrl-C: it stops what runs and keeps the draft, else clears it.
func (c *console) interrupt() {
	switch {
	case c.asking != nil:
		a := c.asking
		c.asked("", false)
		if a.callID != "" && c.inTurn() {
			c.stop(false)
		}
	case c.inTurn():
		c.stop(false)
	case c.running != nil:
		c.running.cancel()
	case !c.ed.empty():
		c.hist.remember(c.ed.take())
	default:
		c.hint = "Ctrl-D leaves"
	}
}

func (c *console) escape() {
	switch {
	case c.asking != nil:
		c.asked("", false)
	case c.inTurn():
		c.stop(true)
	}
}

// endOfInput is Ctrl-D on an empty draft.
func (c *console) endOfInput() {
	switch {
	case c.asking != nil:
		c.asked("", false)
	case c.prompting && !c.awaitEnd && !c.tr.running && c.running == nil && c.handed == nil:
		c.leaving = true // unless another turn follows
	case c.busy():
		c.hint = "Ctrl-C stops what runs, then Ctrl-D leaves"
	default:
		c.leave(nil)
	}
}

// vertical moves between the lines of the draft, and from its first and last line
// through the history.
func (c *console) vertical(down bool) {
	if c.ed.upDown(down) || c.asking != nil {
		return
	}
	text, back, ok := c.hist.step(down, change{c.ed.line, c.ed.pos})
	switch {
	case !ok:
	case back != nil:
		c.ed.set(back.line, back.pos)
	default:
		c.ed.setText(text)
	}
	c.queued = false
}

// enter is Return. doubtful says that it came at once with a paste.
func (c *console) enter(doubtful bool) {
	text := c.ed.text()
	if c.asking != nil {
		c.ed.take()
		c.asked(text, true)
		return
	}
	switch {
	case strings.TrimSpace(text) == "":
		return
	case doubtful && isCommand(text):
		c.hint = "pasted: Enter runs it"
		return
	case c.ed.pos == len(c.ed.line) && isContinued(text):
		c.ed.edit(key{name: keyBackspace})
		c.ed.edit(key{name: keyNewline})
		return
	case c.busy():
		c.enterBusy(text)
		return
	}
	c.ed.take()
	c.entered(text)
}

// isContinued reports whether text ends with a backslash that is not itself escaped.
func isContinued(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// isCommand reports whether text does something else than being sent.
func isCommand(text string) bool {
	return strings.HasPrefix(text, "!") || strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//")
}

// enterBusy is Return while something runs.
func (c *console) enterBusy(text string) {
	switch {
	case isCommand(text) && text[0] == '/':
		c.slashBusy(text)
	case text[0] != '!' && c.inTurn() && c.o.Steer != nil:
		c.queueWith(c.o.Steer)
	case text[0] == '!' && c.inTurn() && c.o.Command != nil && strings.TrimSpace(text[1:]) != "":
		c.queueCommand(strings.TrimSpace(text[1:]))
	default:
		c.queued = true
		if !c.inTurn() {
			c.hint = "the draft is sent when " + c.running.line + " is done"
		}
	}
}

// queueWith hands the draft to the conversation's queue. It stays when that says no.
func (c *console) queueWith(add func(text string) error) {
	text := c.ed.text()
	if !c.inTurn() || add == nil || c.asking != nil || strings.TrimSpace(text) == "" || isCommand(text) {
		return
	}
	message := text
	if strings.HasPrefix(text, "//") {
		message = text[1:]
	}
	c.handOn(add, message, text)
}

// queueCommand hands a command of the person to the conversation's queue.
func (c *console) queueCommand(command string) {
	if c.asking == nil {
		c.handOn(c.o.Command, command, c.ed.text())
	}
}

// handOn gives text away and takes the draft, unless it is refused.
func (c *console) handOn(add func(text string) error, text, draft string) {
	if err := add(text); err != nil {
		c.tr.failure(err.Error(), hintOf(err))
		return
	}
	c.ed.take()
	c.record(draft)
}

// entered takes a whole input: it is shown, recorded and done.
func (c *console) entered(text string) {
	c.record(text)
	if !c.t.Dumb {
		c.tr.message(c.o.Prompt(), text)
	} else {
		c.tr.last = sectionUser
	}
	c.dispatch(text)
}

// record keeps a line for Up.
func (c *console) record(text string) {
	if err := c.hist.add(text); err != nil && !c.histErr {
		c.histErr = true
		c.tr.warning(err.Error())
	}
}

// search looks back through the history while the person types.
type search struct {
	text  string
	at    int // the entry that is shown; len(entries) for none
	draft change
}

func (c *console) startSearch() {
	if c.asking != nil {
		return
	}
	c.hist.sync()
	c.search = &search{at: len(c.hist.entries), draft: change{append([]rune(nil), c.ed.line...), c.ed.pos}}
}

// searchKey takes a key during a search, and returns false when the search is over
// and the key is for the draft.
func (c *console) searchKey(k key) bool {
	s := c.search
	switch {
	case k.name == keyRune && !k.alt:
		s.text += string(k.r)
		c.find(len(c.hist.entries))
	case k.name == keyBackspace:
		r := []rune(s.text)
		s.text = string(r[:max(len(r)-1, 0)])
		c.find(len(c.hist.entries))
	case k.name == keyCtrl && k.r == 'r':
		c.find(s.at)
	case k.name == keyEsc, k.name == keyCtrl && (k.r == 'c' || k.r == 'g'):
		c.search = nil
		c.ed.set(s.draft.line, s.draft.pos)
	default:
		c.search = nil
		return false
	}
	return true
}

func (c *console) find(before int) {
	s := c.search
	i, ok := c.hist.find(s.text, before)
	if s.text == "" || !ok {
		c.hint = "nothing found"
		return
	}
	s.at = i
	c.ed.setText(c.hist.entries[i])
}

// typedLines takes lines of a dumb terminal. What came at once is one text.
func (c *console) typedLines(k chunk) {
	text := strings.ToValidUTF8(string(k.data), "\uFFFD")
	text = strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	c.scr.lostLine()
	c.prompted = -1
	if a := c.asking; a != nil {
		c.typedAnswer(a, text, k.at)
		return
	}
	if rest, ok := strings.CutSuffix(text, `\`); ok && isContinued(text) {
		c.ed.insert(rest + "\n")
		return
	}
	if !c.ed.empty() {
		text = c.ed.take() + text
	}
	switch {
	case strings.TrimSpace(text) == "":
	case c.busy():
		c.ed.setText(text)
		c.enterBusy(text)
		if c.queued {
			c.tr.note("it is sent when what runs is done")
		}
	default:
		c.entered(text)
	}
}

func (c *console) typedAnswer(a *asking, text string, at time.Time) {
	switch {
	case at.Before(a.from):
		c.tr.note("that came before the question could be read")
	case strings.Contains(text, "\n"):
		c.tr.note("several lines at once are no answer")
	case a.check != nil && a.check(text) != "":
		c.tr.note(a.check(text))
	default:
		c.asked(text, true)
	}
}

// interrupted is Ctrl-C on a terminal that makes a signal of it.
func (c *console) interrupted() {
	if c.handed != nil {
		return
	}
	c.scr.lostLine()
	c.prompted = -1
	c.interrupt()
	if c.hint != "" {
		c.tr.note(c.hint)
		c.hint = ""
	}
}

// dumbPrompt prints the prompt as text when it is the person's turn and something
// was printed since the last time.
func (c *console) dumbPrompt() {
	if c.handed != nil || c.left || c.asking == nil && c.busy() {
		return
	}
	if c.prompted == c.scr.printed {
		return
	}
	if c.asking == nil && c.tr.last != nowhere {
		c.tr.begin(nowhere)
	}
	c.scr.freshLine()
	prompt := c.promptText()
	if c.asking == nil && !c.ed.empty() {
		prompt = "> "
	}
	c.scr.print(termtext.Line(prompt))
	c.prompted = c.scr.printed
}
