package repl

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// dialog is something that has the whole screen and all keys.
type dialog struct {
	callID string // of the question that it is about, if any
	resize func(cols, rows int)
	frame  func() []string
	key    func(k key, at time.Time, alone bool)
	settle func(now time.Time) // keys from before do not count
}

// openDialog shows d on the alternate screen.
func (c *console) openDialog(d *dialog) {
	c.scr.leave()
	c.dialog = d
	c.t.setAlt(true)
	c.drawDialog()
	d.settle(c.o.Now())
}

func (c *console) drawDialog() {
	var b strings.Builder
	b.WriteString("\x1b[H")
	rows := c.dialog.frame()
	for i, row := range rows {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(row + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	c.scr.buf = append(c.scr.buf, b.String()...)
	c.scr.write()
}

func (c *console) closeDialog() {
	c.dialog = nil
	c.t.setAlt(false)
	c.scr.comeBack()
}

// asking is a line that is asked for in the place of the draft.
type asking struct {
	prompt string
	callID string // of the question that it is about, if any
	draft  change // to come back
	done   func(line string, ok bool)
	check  func(line string) string // dumb terminals: a complaint about a line
	from   time.Time                // lines before do not count
}

// ask reads a line; the draft comes back after it.
func (c *console) ask(a *asking) {
	a.draft = change{append([]rune(nil), c.ed.line...), c.ed.pos}
	c.asking = a
	c.hint = ""
	c.ed.set(nil, 0)
}

func (c *console) asked(line string, ok bool) {
	a := c.asking
	c.asking = nil
	c.ed.set(a.draft.line, a.draft.pos)
	a.done(line, ok)
}

// openQuestion shows the next question when nothing else has the keys.
func (c *console) openQuestion() {
	if c.left || len(c.waiting) == 0 || c.dialog != nil || c.handed != nil || c.asking != nil {
		return
	}
	q := c.waiting[0]
	c.waiting = c.waiting[1:]
	if c.search != nil {
		c.ed.set(c.search.draft.line, c.search.draft.pos)
		c.search = nil
	}
	cols, rows := c.t.size()
	switch {
	case !c.t.shows():
		c.cannotShow(q, "the output is no terminal")
	case c.t.Dumb:
		c.dumbApproval(q)
	case !fits(cols, rows):
		c.cannotShow(q, fmt.Sprintf("the terminal of %d×%d is too small", cols, rows))
	default:
		c.openApproval(q, cols, rows)
	}
}

// cannotShow denies what nobody can read.
func (c *console) cannotShow(q event.Question, why string) {
	c.tr.warning("denied without asking: " + why + " to show the request")
	c.answer(q, denyNow, why+" to show the request")
}

func (c *console) openApproval(q event.Question, cols, rows int) {
	a := newApproval(q, c.st, c.o.Now(), cols, rows)
	if c.o.Bell {
		c.bell()
	}
	c.openDialog(&dialog{
		callID: q.CallID,
		resize: a.resize,
		frame:  a.frame,
		settle: func(now time.Time) { a.from = now.Add(settleTime) },
		key: func(k key, at time.Time, alone bool) {
			d := a.key(k, at, alone)
			if d == undecided {
				c.drawDialog()
				return
			}
			c.closeDialog()
			c.decided(q, d)
		},
	})
}

// decided answers a question. After `n` it asks for the reason first; Ctrl-C stops the
// turn, and the question with it.
func (c *console) decided(q event.Question, d decision) {
	switch d {
	case denyWithReason:
		c.ask(&asking{
			prompt: "why not (Enter: no reason): ",
			callID: q.CallID,
			done:   func(line string, ok bool) { c.answer(q, d, strings.TrimSpace(line)) },
		})
	case denyAndStop: // an answer would let the turn go on until the stop came
		c.stop(false)
	default:
		c.answer(q, d, "")
	}
}

func (c *console) answer(q event.Question, d decision, reason string) {
	conv := c.conv
	a := event.Answer{CallID: q.CallID, Choice: d.choice(), Reason: reason, Digest: q.Digest}
	c.spawn(func() {
		if err := conv.Answer(q.CallID, a); err != nil {
			c.post(func() { c.tr.warning("the answer was not taken: " + err.Error()) })
		}
	})
}

// settled forgets a question that was answered, here or elsewhere.
func (c *console) settled(callID string) {
	if callID == "" {
		return
	}
	for i, q := range c.waiting {
		if q.CallID == callID {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			break
		}
	}
	if c.dialog != nil && c.dialog.callID == callID {
		c.closeDialog()
	}
	if c.asking != nil && c.asking.callID == callID {
		a := c.asking
		c.asking = nil
		c.ed.set(a.draft.line, a.draft.pos)
	}
}

// dumbApproval shows a request as lines and reads a typed answer.
func (c *console) dumbApproval(q event.Question) {
	cols, _ := c.t.size()
	c.tr.begin(nowhere)
	c.tr.begin(sectionTool)
	c.scr.println("Allow this? " + requestTitle(q))
	for _, row := range requestRows(q, c.st, cols) {
		c.scr.print(strings.TrimRight(row, " ") + "\n")
	}
	prompt := "y once, n deny: "
	if q.Grantable {
		prompt = "y once, a this conversation, n deny: "
	}
	a := &asking{prompt: prompt, callID: q.CallID, from: c.o.Now().Add(settleTime)}
	a.check = func(line string) string {
		_, complaint := typedFor(q, line)
		return complaint
	}
	a.done = func(line string, ok bool) {
		d := denyNow
		if ok {
			d, _ = typedFor(q, line)
		}
		c.decided(q, d)
	}
	c.ask(a)
}

// choose lets the person pick one of items; done gets -1 for none.
func (c *console) choose(title string, items []string, current int, done func(index int)) {
	if c.t.Dumb {
		c.dumbChoose(title, items, done)
		return
	}
	cols, rows := c.t.size()
	list := newChooser(c.st, title, items, current, cols, rows)
	c.openDialog(&dialog{
		resize: list.resize,
		frame:  list.frame,
		settle: func(time.Time) {},
		key: func(k key, _ time.Time, _ bool) {
			index, over := list.key(k)
			if !over {
				c.drawDialog()
				return
			}
			c.closeDialog()
			done(index)
		},
	})
}

func (c *console) dumbChoose(title string, items []string, done func(index int)) {
	c.scr.println(termtext.Line(title))
	for i, item := range items {
		c.scr.print(fmt.Sprintf("%3d  %s\n", i+1, termtext.Line(item)))
	}
	number := func(line string) (int, bool) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		return n - 1, err == nil && n >= 1 && n <= len(items)
	}
	c.ask(&asking{
		prompt: "number (Enter for none): ",
		check: func(line string) string {
			if _, ok := number(line); ok || strings.TrimSpace(line) == "" {
				return ""
			}
			return fmt.Sprintf("type a number from 1 to %d", len(items))
		},
		done: func(line string, ok bool) {
			if n, valid := number(line); ok && valid {
				done(n)
				return
			}
			done(-1)
		},
	})
}
