package repl

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// runningCommand is a slash command that runs.
type runningCommand struct {
	line   string // the command's name
	status string // what it is at, for the status line, or ""
	since  time.Time
	cancel context.CancelFunc
}

// handover is the terminal in the hands of a program of the person.
type handover struct {
	in      *ttyInput
	resize  chan struct{}
	records []event.Event // Shell events that came meanwhile
}

// known is a slash command: one of app's, or one of ours, which run in the loop.
type known struct {
	Command
	own func(args string)
}

// commands lists what there is. app's come first and win.
func (c *console) commands() []known {
	var list []known
	taken := map[string]bool{}
	add := func(k known) {
		if !taken[k.Name] {
			taken[k.Name] = true
			list = append(list, k)
		}
	}
	for _, command := range c.o.Commands {
		add(known{Command: command})
	}
	if c.o.More != nil {
		for _, command := range c.o.More() {
			add(known{Command: command})
		}
	}
	for _, k := range []known{
		{Command{Name: "help", Aliases: []string{"?"}, Help: "list the commands", DuringTurn: true}, c.help},
		{Command{Name: "copy", Usage: "[N]", Help: "copy the last answer, or its code block N", DuringTurn: true}, c.copyReply},
		{Command{Name: "edit", Usage: "[TEXT]", Help: "write in your editor (also Ctrl-X Ctrl-E)"}, c.edit},
		{Command{Name: "terminal", Help: "what this terminal can do, and the keys", DuringTurn: true}, c.describeTerminal},
		{Command{Name: "quit", Aliases: []string{"exit", "q"}, Help: "leave (also Ctrl-D)", DuringTurn: true}, func(string) { c.leave(nil) }},
	} {
		if k.Name != "edit" || c.o.Edit != nil {
			k.Group = "Terminal"
			add(k)
		}
	}
	return list
}

// lookup finds a command by name or alias.
func (c *console) lookup(name string) (known, bool) {
	list := c.commands()
	for _, k := range list {
		if k.Name == name {
			return k, true
		}
	}
	for _, k := range list {
		for _, alias := range k.Aliases {
			if alias == name {
				return k, true
			}
		}
	}
	if c.o.Other != nil {
		k, ok := c.o.Other(name)
		return known{Command: k}, ok
	}
	return known{}, false
}

// splitCommand divides "/name args".
func splitCommand(text string) (name, args string) {
	name = strings.TrimPrefix(text, "/")
	if i := strings.IndexAny(name, " \t\n"); i >= 0 {
		name, args = name[:i], strings.TrimSpace(name[i:])
	}
	return name, args
}

// dispatch does what an input says.
func (c *console) dispatch(text string) {
	switch {
	case strings.HasPrefix(text, "//"):
		c.send(text[1:])
	case strings.HasPrefix(text, "/"):
		c.slash(text)
	case strings.HasPrefix(text, "!"):
		c.userCommand(strings.TrimSpace(text[1:]))
	default:
		c.send(text)
	}
}

func (c *console) slash(text string) {
	name, args := splitCommand(text)
	k, ok := c.lookup(name)
	if !ok {
		c.unknown(name)
		return
	}
	if k.own != nil {
		k.own(args)
		return
	}
	c.start(k.Command, args)
}

// slashBusy is a command that was entered while something runs.
func (c *console) slashBusy(text string) {
	name, args := splitCommand(text)
	k, ok := c.lookup(name)
	switch {
	case !ok:
		c.ed.take()
		c.record(text)
		c.unknown(name)
	case !k.DuringTurn || c.running != nil && k.own == nil:
		c.hint = "/" + k.Name + " waits until what runs is done"
		c.queued = true
	default:
		c.ed.take()
		c.record(text)
		if k.own != nil {
			k.own(args)
			return
		}
		c.start(k.Command, args)
	}
}

// unknown says that there is no such command, and which is near.
func (c *console) unknown(name string) {
	hint := "start the message with // to send it as it is; /help lists the commands"
	if near := c.nearest(name); near != "" {
		hint = "did you mean /" + near + "? " + hint
	}
	c.tr.failure(fmt.Sprintf("there is no command %q", "/"+name), hint)
}

// nearest returns the command whose name is most like name, if any is.
func (c *console) nearest(name string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range c.commands() {
		for _, candidate := range append([]string{k.Name}, k.Aliases...) {
			d := distance(name, candidate)
			if len(name) > 1 && strings.HasPrefix(candidate, name) {
				d = min(d, 1)
			}
			if d < least && d < len(candidate) {
				best, least = k.Name, d
			}
		}
	}
	return best
}

// distance counts the edits from a to b: letters put in, left out, changed, or
// swapped with their neighbour.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := func() []int { return make([]int, len(b)+1) }
	before, last, next := row(), row(), row()
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last, next = last, next, before
	}
	return last[len(b)]
}

// start runs one of app's commands in its own goroutine.
func (c *console) start(command Command, args string) {
	ctx, cancel := context.WithCancel(c.ctx)
	run := &runningCommand{line: "/" + command.Name, since: c.o.Now(), cancel: cancel}
	c.running = run
	c.spawn(func() {
		defer cancel()
		err := command.Run(ctx, &ui{c, ctx}, args)
		stopped := ctx.Err() != nil
		c.post(func() {
			c.running = nil
			switch {
			case err == nil:
			case stopped:
				c.tr.note(run.line + " was stopped")
			default:
				c.tr.failure(err.Error(), hintOf(err))
			}
		})
	})
}

// userCommand runs a person's own command on the terminal.
func (c *console) userCommand(command string) {
	switch {
	case command == "":
		c.tr.failure("there is no command after the !", "for example: ! git status")
		return
	case c.o.RunUser == nil:
		c.send("! " + command)
		return
	}
	var shown string
	var err error
	c.handOver(func(ctx context.Context, tty TTY) {
		shown, err = c.o.RunUser(ctx, command, tty)
	}, func() {
		if shown != "" {
			c.tr.expect(shown)
		}
		if err != nil {
			c.tr.failure(err.Error(), hintOf(err))
		}
	})
}

// handOver gives the terminal to run, and calls done when it is back.
func (c *console) handOver(run func(context.Context, TTY), done func()) {
	c.scr.freshLine()
	c.scr.leave()
	if !c.t.Dumb {
		_, _ = io.WriteString(c.t.Out, modesOff)
	}
	out := &ttyOutput{out: c.t.Out}
	h := &handover{in: newTTYInput(), resize: make(chan struct{}, 1)}
	c.handed = h
	c.spawn(func() {
		defer h.in.close()
		run(c.ctx, TTY{In: h.in, Out: out, Size: c.t.size, Resize: h.resize})
		c.post(func() {
			c.handed = nil
			c.takeBack(out)
			done()
			for _, e := range h.records {
				c.tr.show(e)
			}
		})
	})
}

// takeBack makes the screen ours again, whatever the program left behind.
func (c *console) takeBack(out *ttyOutput) {
	reset := ""
	if !c.t.Dumb {
		reset = afterProgram + modesOn
	}
	if out.midLine() {
		reset = "\r\n" + reset
	}
	_, _ = io.WriteString(c.t.Out, reset)
	c.scr.lostLine()
	c.scr.comeBack()
	c.prompted = -1
	c.tr.last = sectionNote
}

// edit opens the editor with text.
func (c *console) edit(text string) {
	var edited string
	var err error
	c.handOver(func(ctx context.Context, tty TTY) {
		edited, err = c.o.Edit(ctx, text, tty)
	}, func() {
		if err != nil {
			c.tr.failure(err.Error(), hintOf(err))
			edited = text
		}
		c.ed.setText(strings.TrimRight(edited, "\n"))
	})
}

// editDraft opens the editor with the draft.
func (c *console) editDraft() {
	if c.o.Edit == nil || c.busy() || c.asking != nil {
		c.hint = "the editor opens when nothing runs"
		return
	}
	c.edit(c.ed.take())
}

func (c *console) help(string) {
	var b strings.Builder
	var groups []string
	lines := map[string][]string{}
	for _, k := range c.commands() {
		group := k.Group
		if group == "" {
			group = "Commands"
		}
		if lines[group] == nil {
			groups = append(groups, group)
		}
		head := "/" + k.Name
		if k.Usage != "" {
			head += " " + k.Usage
		}
		for _, alias := range k.Aliases {
			head += ", /" + alias
		}
		if len(head) > 24 {
			head += "\n" + strings.Repeat(" ", 26)
		}
		lines[group] = append(lines[group], fmt.Sprintf("  %-24s %s", head, k.Help))
	}
	for _, group := range groups {
		b.WriteString(group + "\n" + strings.Join(lines[group], "\n") + "\n")
	}
	b.WriteString("Input\n" + strings.Join([]string{
		"  " + fmt.Sprintf("%-24s %s", "! COMMAND", "run a command of your own; the model sees it"),
		"  " + fmt.Sprintf("%-24s %s", "//TEXT", "send a message that starts with a slash"),
		"  " + fmt.Sprintf("%-24s %s", "@PATH", "name a file; Tab completes it"),
		"  " + fmt.Sprintf("%-24s %s", `Alt-Enter, \ at the end`, "go on in a new line"),
	}, "\n"))
	c.tr.info(b.String())
}

// copyReply copies the last reply, or one of its code blocks.
func (c *console) copyReply(args string) {
	text, what := c.tr.reply, "the last answer"
	if text == "" {
		c.tr.failure("there is no answer to copy yet", "")
		return
	}
	if args != "" {
		blocks := codeBlocks(text)
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > len(blocks) {
			c.tr.failure(fmt.Sprintf("the last answer has no code block %q", args), fmt.Sprintf("it has %s", plural(len(blocks), "code block")))
			return
		}
		text, what = blocks[n-1], fmt.Sprintf("code block %d", n)
	}
	c.copy(text, what)
}

// copy offers text to the clipboard.
func (c *console) copy(text, what string) {
	if c.t.Dumb || !c.t.shows() {
		c.tr.failure("this terminal has no clipboard that we can reach", "")
		return
	}
	data := base64.StdEncoding.EncodeToString([]byte(text))
	c.scr.buf = append(c.scr.buf, "\x1b]52;c;"+data+"\x07"...)
	c.tr.note(fmt.Sprintf("offered %s to the terminal's clipboard (%s)", what, plural(len(text), "byte")))
}

func (c *console) describeTerminal(string) {
	cols, rows := c.t.size()
	color := "yes"
	if !c.st.color {
		color = "no"
	}
	lines := []string{fmt.Sprintf("size %d×%d · colours %s", cols, rows, color)}
	if c.t.Dumb {
		c.tr.info(lines[0] + "\nno control bytes are sent: lines are edited by the terminal itself, questions are answered with typed lines")
		return
	}
	for _, line := range [][2]string{
		{"Enter", "send"},
		{`Alt-Enter, \ Enter`, "new line"},
		{"Ctrl-C", "stop what runs and keep the draft; else clear the draft"},
		{"Esc", "stop the turn"},
		{"Ctrl-D", "leave, on an empty line"},
		{"Ctrl-Z", "suspend"},
		{"Up, Down, Ctrl-R", "earlier lines, search in them"},
		{"Tab", "complete /commands and @paths"},
		{"Ctrl-A/E, Alt-B/F", "start, end; by words"},
		{"Ctrl-W/U/K, Ctrl-Y", "cut the word before, all before, all after; put it back"},
		{"Ctrl-L", "clear the screen"},
		{"Ctrl-X Ctrl-E", "edit the draft in your editor"},
	} {
		lines = append(lines, fmt.Sprintf("  %-22s %s", line[0], line[1]))
	}
	lines = append(lines, "pastes are one message, however many lines they have (bracketed paste is on)")
	c.tr.info(strings.Join(lines, "\n"))
}

// ui is UI for one command.
type ui struct {
	c   *console
	ctx context.Context
}

// do runs f in the loop and waits for it.
func (u *ui) do(f func()) {
	done := make(chan struct{})
	if !u.c.post(func() { f(); close(done) }) {
		return
	}
	select {
	case <-done:
	case <-u.c.ctx.Done():
	}
}

func (u *ui) Print(text string) { u.do(func() { u.c.tr.info(text) }) }
func (u *ui) Warn(text string)  { u.do(func() { u.c.tr.warning(text) }) }
func (u *ui) Error(text, hint string) {
	u.do(func() { u.c.tr.failure(text, hint) })
}
func (u *ui) Status(text string) bool {
	u.do(func() {
		if u.c.running != nil {
			u.c.running.status = termtext.Line(text)
		}
	})
	return !u.c.t.Dumb
}
func (u *ui) Copy(text string) { u.do(func() { u.c.copy(text, "the text") }) }
func (u *ui) Quit()            { u.do(func() { u.c.leave(nil) }) }
func (u *ui) Submit(text string) {
	u.do(func() { u.c.submits = append(u.c.submits, text) })
}

func (u *ui) SetDraft(text string) {
	u.do(func() {
		if a := u.c.asking; a != nil {
			line := u.c.ed.shorten(text)
			a.draft = change{line, len(line)}
			return
		}
		u.c.ed.setText(text)
	})
}

func (u *ui) Switch(conv Conversation, after int64, banner string) {
	u.do(func() {
		c := u.c
		reply := c.tr.reply
		c.tr.begin(nowhere)
		c.conv, c.seen, c.waiting = conv, after, nil
		c.awaitEnd, c.queued = false, false
		c.tr = newTranscript(c.scr, c.st, c.o.Now)
		c.tr.reply = reply
		if banner != "" {
			c.tr.info(banner)
		}
		c.subscribe()
	})
}

func (u *ui) Choose(title string, items []string, current int) (int, bool) {
	picked := make(chan int, 1)
	u.do(func() {
		if u.c.dialog != nil || u.c.asking != nil || u.c.handed != nil || len(items) == 0 {
			picked <- -1
			return
		}
		u.c.choose(title, items, current, func(index int) { picked <- index })
	})
	select {
	case index := <-picked:
		return max(index, 0), index >= 0
	case <-u.ctx.Done():
		return 0, false
	}
}

func (u *ui) AskLine(prompt string) (string, bool) {
	type answer struct {
		line string
		ok   bool
	}
	got := make(chan answer, 1)
	u.do(func() {
		if u.c.dialog != nil || u.c.asking != nil || u.c.handed != nil {
			got <- answer{}
			return
		}
		u.c.ask(&asking{prompt: termtext.Line(prompt), done: func(line string, ok bool) { got <- answer{line, ok} }})
	})
	select {
	case a := <-got:
		return a.line, a.ok
	case <-u.ctx.Done():
		return "", false
	}
}
