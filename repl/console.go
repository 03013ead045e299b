package repl

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

const (
	inboxSize = 64
	// What is gathered before it is shown when more waits: bytes and time.
	flushBytes = 32 << 10
	flushTime  = 3 * time.Millisecond
	// A lone ESC is the key when nothing follows within escTime; a sequence that
	// does not end within sequenceTime is dropped.
	escTime      = 40 * time.Millisecond
	sequenceTime = time.Second
	// maxRetry is the longest pause before events are asked for again.
	maxRetry = 30 * time.Second
)

// console is the state of Run. Everything but what its goroutines post belongs to
// the goroutine of run.
type console struct {
	o    Options
	t    *Terminal
	st   style
	scr  *screen
	tr   *transcript
	ed   *editor
	hist *history
	dec  decoder

	ctx     context.Context // of everything that Run starts; ends with it
	cancel  context.CancelFunc
	wg      sync.WaitGroup
	input   chan chunk
	inbox   chan func()
	signals chan os.Signal
	left    bool
	err     error

	conv        Conversation
	seen        int64 // the last event shown
	unsubscribe context.CancelFunc

	prompting  bool // Prompt runs
	awaitEnd   bool // and its end was not shown yet
	started    bool // its turn was
	leaving    bool // when it returns, if no turn began meanwhile
	cancelTurn context.CancelFunc
	stopping   bool
	queued     bool // the draft is sent when the turn ends
	relayed    bool // the last turn came from elsewhere
	submits    []string

	running *runningCommand
	handed  *handover
	dialog  *dialog
	asking  *asking
	search  *search
	waiting []event.Question // that were not shown yet

	hint      string
	escSeq    int // of the timer for an unfinished sequence
	ticking   bool
	lastInput time.Time // when the terminal sent something
	lastPaste time.Time // when there was a paste
	unmarked  bool      // and the terminal did not mark it
	prefixX   bool      // Ctrl-X was pressed
	prompted  int       // dumb terminals: what was printed when the prompt was
	resumed   time.Time
	histErr   bool // the history's trouble was told
}

// newConsole checks the options and makes what needs no terminal.
func newConsole(ctx context.Context, o Options) (*console, error) {
	if o.Conversation == nil || o.Terminal == nil || o.Terminal.In == nil || o.Terminal.Out == nil {
		return nil, fmt.Errorf("run the REPL: a conversation and a terminal are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.AfterFunc == nil {
		o.AfterFunc = func(d time.Duration, f func()) func() {
			timer := time.AfterFunc(d, f)
			return func() { timer.Stop() }
		}
	}
	if o.Prompt == nil {
		o.Prompt = func() string { return "› " }
	}
	c := &console{o: o, t: o.Terminal, conv: o.Conversation, seen: o.After, prompted: -1}
	c.st = style{plain: c.t.Dumb, color: c.t.Color && !c.t.Dumb}
	c.scr = &screen{out: c.t.Out, dumb: c.t.Dumb, size: c.t.size}
	c.tr = newTranscript(c.scr, c.st, o.Now)
	c.hist = newHistory(o.History, o.Mask)
	c.input = make(chan chunk)
	c.inbox = make(chan func(), inboxSize)
	c.signals = make(chan os.Signal, 4)
	ed, err := newEditor()
	if err != nil {
		return nil, fmt.Errorf("start the line editor: %w", err)
	}
	c.ed = ed
	c.ctx, c.cancel = context.WithCancel(ctx)
	return c, nil
}

// run is Run. Whatever ends it, a panic included, the terminal is restored first.
func (c *console) run() error {
	defer c.ed.close()
	defer c.cancel()
	reader, err := newReader(c.t, c.o.Now)
	if err != nil {
		return err
	}
	if err := c.t.take(); err != nil {
		return err
	}
	defer c.t.Restore()
	signal.Notify(c.signals, c.wanted()...)
	defer signal.Stop(c.signals)
	c.spawn(func() { reader.run(c.deliver) })
	if c.o.Banner != "" {
		c.tr.info(c.o.Banner)
	}
	if c.o.FirstInput != "" {
		c.submits = append(c.submits, c.o.FirstInput)
	}
	c.subscribe()
	c.loop()
	c.bye()
	reader.stop()
	c.wg.Wait()
	return c.err
}

// wanted lists the signals that change the terminal under us. SIGTSTP is not one: once
// a Go program was notified of it, nothing brings its default action back.
func (c *console) wanted() []os.Signal {
	list := []os.Signal{syscall.SIGCONT}
	if c.t.Resize == nil {
		list = append(list, syscall.SIGWINCH)
	}
	return list
}

// bye leaves the screen tidy, gives the terminal back and stops what runs.
func (c *console) bye() {
	if c.dialog != nil {
		c.closeDialog()
	}
	if c.scr.away {
		c.scr.comeBack()
	}
	c.scr.setRegion(region{})
	c.scr.setHold(false)
	c.scr.freshLine()
	c.scr.flush()
	c.t.Restore()
	if c.handed != nil {
		c.handed.in.close()
	}
	if c.prompting && !c.o.KeepRunning {
		c.spawn(c.conv.Cancel)
	}
	c.cancel()
}

// spawn runs f in a goroutine that Run waits for. Should f panic, the terminal is
// restored before the program dies.
func (c *console) spawn(f func()) {
	c.wg.Add(1)
	go func() {
		defer c.wg.Done()
		ok := false
		defer func() {
			if !ok {
				c.t.Restore()
			}
		}()
		f()
		ok = true
	}()
}

// post has f run by the loop. It reports whether the loop still runs.
func (c *console) post(f func()) bool {
	select {
	case c.inbox <- f:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *console) deliver(k chunk) bool {
	select {
	case c.input <- k:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// after has f run by the loop later.
func (c *console) after(d time.Duration, f func()) (stop func()) {
	return c.o.AfterFunc(d, func() { c.post(f) })
}

// loop takes one thing after the other until the person leaves. Keys go first.
func (c *console) loop() {
	for {
		c.settle()
		if c.left {
			return
		}
		select {
		case k := <-c.input:
			c.take(k)
			continue
		default:
		}
		select {
		case k := <-c.input:
			c.take(k)
		case f := <-c.inbox:
			f()
			c.gather()
		case s := <-c.signals:
			c.signal(s)
		case <-c.t.Resize:
			c.resized()
		case <-c.t.Interrupt:
			c.interrupted()
		case <-c.o.Arrived:
			if c.o.Incoming != nil {
				c.ring()
			}
		case <-c.ctx.Done():
			c.leave(context.Cause(c.ctx))
		}
	}
}

// gather takes what waits besides, so that a burst of events is shown at once.
func (c *console) gather() {
	from := c.o.Now()
	for !c.left && len(c.scr.buf) < flushBytes && c.o.Now().Sub(from) < flushTime {
		select {
		case f := <-c.inbox:
			f()
		default:
			return
		}
	}
}

// leave ends the loop.
func (c *console) leave(err error) {
	c.left = true
	if c.err == nil {
		c.err = err
	}
}

// settle does what follows from the state: the next question, the next input, the
// rows below the text.
func (c *console) settle() {
	c.openQuestion()
	c.nextInput()
	c.compose()
	c.tick()
	c.scr.flush()
	if c.scr.err != nil {
		c.leave(ErrTerminalGone)
	}
}

// busy reports whether a turn, a command or a program of the person runs.
func (c *console) busy() bool { return c.inTurn() || c.running != nil || c.handed != nil }

func (c *console) inTurn() bool { return c.prompting || c.awaitEnd || c.tr.running }

// promptShows reports whether the draft stands below the text. While something runs
// it does from the first key on.
func (c *console) promptShows() bool {
	return c.asking != nil || c.search != nil || !c.busy() || !c.ed.empty()
}

// compose says what stands below the text.
func (c *console) compose() {
	if c.t.Dumb {
		c.dumbPrompt()
		return
	}
	if c.scr.away {
		return
	}
	cols, rows := c.t.size()
	var r region
	shows := c.promptShows()
	if !c.busy() && c.tr.last != nowhere {
		c.tr.begin(nowhere)
	}
	c.scr.setHold(shows)
	if shows {
		r = layoutDraft(c.st, c.promptText(), c.ed.cells, c.ed.line, c.ed.pos, cols, min(rows-3, rows/2+1))
	}
	if status := c.statusText(shows); status != "" && rows > 1 {
		r.rows = append(r.rows, c.st.dim(termtext.Cut(status, max(cols-1, 1))))
		if !shows {
			r.row, r.col = len(r.rows)-1, min(termtext.Width(status), max(cols-1, 0))
		}
	}
	c.scr.setRegion(r)
}

func (c *console) promptText() string {
	switch {
	case c.search != nil:
		return "search " + c.search.text + ": "
	case c.asking != nil:
		return c.asking.prompt
	}
	return c.o.Prompt()
}

// statusText is the last row: what runs, or a hint.
func (c *console) statusText(promptShows bool) string {
	if c.hint != "" {
		return c.hint
	}
	now := c.o.Now()
	switch {
	case c.asking != nil:
		return ""
	case c.stopping && c.inTurn():
		return "stopping, " + c.tr.status(now)
	case c.running != nil:
		if c.running.status != "" {
			return c.running.status + " · Ctrl-C stops"
		}
		return c.running.line + " " + wholeSeconds(now.Sub(c.running.since)) + " · Ctrl-C stops"
	case !c.inTurn() || !promptShows && c.tr.quiet(now):
		return ""
	}
	status := c.tr.status(now) + " · Esc/Ctrl-C stops"
	if c.o.Backlog != nil {
		if backlog := c.o.Backlog(); backlog != "" {
			status = backlog + " · " + status
		}
	}
	if c.queued {
		status += " · the draft is sent at the end of the turn"
	}
	if c.tr.output != "" {
		status += " · " + c.tr.output
	}
	return status
}

// tick redraws the seconds, once a second and only while something runs.
func (c *console) tick() {
	if c.ticking || c.t.Dumb || c.scr.away || !c.busy() {
		return
	}
	c.ticking = true
	c.after(time.Second, func() { c.ticking = false })
}

// subscribe starts to show the conversation's events after the last one seen.
func (c *console) subscribe() {
	if c.unsubscribe != nil {
		c.unsubscribe()
	}
	ctx, cancel := context.WithCancel(c.ctx)
	c.unsubscribe = cancel
	s := subscription{c: c, ctx: ctx, conv: c.conv, after: c.seen}
	c.spawn(s.run)
}

// subscription hands events of one conversation to the loop, and asks again when
// they end.
type subscription struct {
	c     *console
	ctx   context.Context
	conv  Conversation
	after int64
}

func (s *subscription) run() {
	pause := time.Duration(0)
	for {
		got, err := s.follow()
		if s.ctx.Err() != nil {
			return
		}
		switch {
		case got:
			pause = 0
		case pause == 0:
			pause = time.Second
		default:
			pause = min(2*pause, maxRetry)
		}
		if pause == time.Second {
			s.c.post(func() { s.c.lost(s.ctx, err) })
		}
		if !s.wait(pause) {
			return
		}
	}
}

// follow shows events until they end, and reports whether there were any.
func (s *subscription) follow() (got bool, last error) {
	for e, err := range s.conv.Events(s.ctx, s.after) {
		if err != nil {
			return got, err
		}
		got = true
		s.after = max(s.after, e.Seq)
		if !s.c.post(func() {
			if s.ctx.Err() == nil {
				s.c.event(e)
			}
		}) {
			return got, nil
		}
	}
	return got, nil
}

func (s *subscription) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	over := make(chan struct{})
	defer s.c.o.AfterFunc(d, func() { close(over) })()
	select {
	case <-over:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// lost tells that no events come.
func (c *console) lost(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	c.awaitEnd = false
	if err == nil {
		err = fmt.Errorf("it ended")
	}
	c.tr.warning("nothing more is heard of the conversation, trying again: " + err.Error())
}

// event shows one event and does what it asks for.
func (c *console) event(e event.Event) {
	c.seen = max(c.seen, e.Seq)
	if e.Kind == event.Shell && c.handed != nil {
		c.handed.records = append(c.handed.records, e)
		return
	}
	c.tr.show(e)
	switch e.Kind {
	case event.TurnStart:
		c.started, c.leaving = true, false
	case event.Asked:
		if e.Question != nil {
			c.waiting = append(c.waiting, *e.Question)
		}
	case event.Answered:
		if e.Answer != nil {
			c.settled(e.Answer.CallID)
		}
	case event.CallEnd: // a question that was not answered is none any more
		if e.Result != nil {
			c.settled(e.Result.CallID)
		}
	case event.TurnEnd:
		c.turnEnded()
	}
}

func (c *console) turnEnded() {
	c.awaitEnd, c.stopping, c.waiting = false, false, nil
	if c.dialog != nil {
		c.settled(c.dialog.callID)
	}
	if c.asking != nil {
		c.settled(c.asking.callID)
	}
	c.ring()
}

// ring tells a person who looks elsewhere.
func (c *console) ring() {
	if c.o.Bell {
		c.bell()
	}
}

func (c *console) bell() {
	if !c.t.Dumb {
		c.scr.buf = append(c.scr.buf, 0x07)
	}
}

// send starts a turn. The text is on the screen already.
func (c *console) send(text string) {
	c.relayed = false
	c.tr.expect(text)
	c.startTurn(event.Input{Text: text})
}

// startTurn starts a turn with what a person sent, or with what came from elsewhere.
func (c *console) startTurn(in event.Input) {
	c.prompting, c.awaitEnd, c.started, c.stopping = true, true, false, false
	c.tr.setPhase("starting", "")
	ctx, cancel := context.WithCancel(c.ctx)
	c.cancelTurn = cancel
	conv := c.conv
	c.spawn(func() {
		defer cancel()
		_, err := conv.Prompt(ctx, in)
		c.post(func() { c.promptDone(in, err) })
	})
}

// promptDone ends what startTurn started. A message of the person that was not taken
// comes back.
func (c *console) promptDone(in event.Input, err error) {
	c.prompting, c.cancelTurn = false, nil
	if c.leaving {
		c.leave(nil)
		return
	}
	if err == nil {
		return
	}
	c.awaitEnd, c.queued = false, false
	c.tr.failure(err.Error(), hintOf(err))
	if !c.started && in.Peer == nil {
		c.tr.isMine(in.Text)
		if c.ed.empty() && c.asking == nil && !c.t.Dumb {
			c.ed.setText(in.Text)
		}
	}
}

func hintOf(err error) string {
	if h, ok := err.(interface{ Hint() string }); ok {
		return h.Hint()
	}
	return ""
}

// stop ends the running turn. The second time it does not rely on the conversation,
// and gives up waiting for an end that nobody owes us.
func (c *console) stop(skip bool) {
	switch {
	case c.stopping && c.cancelTurn != nil:
		c.cancelTurn()
		return
	case c.stopping:
		c.awaitEnd, c.tr.running, c.stopping = false, false, false
		return
	}
	c.stopping = true
	stop := c.conv.Cancel
	if skip && c.o.Skip != nil {
		stop = c.o.Skip
	}
	if !skip {
		c.queued = false
	}
	c.spawn(stop)
}

// nextInput starts what waits for the end of a turn or command: what came from
// elsewhere and what the person entered, in turns when there is both.
func (c *console) nextInput() {
	if c.left || c.busy() || c.dialog != nil || c.asking != nil || c.search != nil {
		return
	}
	if !c.relayed && c.nextIncoming() || c.nextEntered() {
		return
	}
	if c.relayed {
		c.nextIncoming()
	}
}

func (c *console) nextIncoming() bool {
	if c.o.Incoming == nil {
		return false
	}
	in, ok := c.o.Incoming()
	if ok {
		c.relayed = true
		c.startTurn(in)
	}
	return ok
}

func (c *console) nextEntered() bool {
	if len(c.submits) > 0 {
		text := c.submits[0]
		c.submits = c.submits[1:]
		c.entered(text)
		return true
	}
	if c.o.Waiting != nil {
		if text, ok := c.o.Waiting(); ok {
			c.entered(text)
			return true
		}
	}
	if !c.queued {
		return false
	}
	c.queued, c.hint = false, ""
	text := c.ed.text()
	if strings.TrimSpace(text) == "" {
		return false
	}
	c.ed.take()
	c.entered(text)
	return true
}

// signal handles what changed the terminal under us.
func (c *console) signal(s os.Signal) {
	switch s {
	case syscall.SIGWINCH:
		c.resized()
	case syscall.SIGCONT:
		if c.o.Now().Sub(c.resumed) > settleTime {
			c.cameBack()
		}
	}
}

// resized fits everything to the new size, at once: the longer we wait, the more
// likely is it that the terminal has another size by then.
func (c *console) resized() {
	if c.handed != nil {
		select {
		case c.handed.resize <- struct{}{}:
		default:
		}
		return
	}
	if c.dialog != nil {
		cols, rows := c.t.size()
		c.dialog.resize(cols, rows)
		c.drawDialog()
	}
	c.scr.touch()
}

// suspend stops the program until the shell continues it.
func (c *console) suspend() {
	alt := c.dialog != nil
	if alt {
		c.t.setAlt(false)
	} else if !c.scr.away {
		c.scr.setRegion(region{})
		c.scr.flush()
	}
	c.t.Restore()
	if c.o.Terminal.Suspend != nil {
		c.o.Terminal.Suspend()
	} else {
		c.stopGroup()
	}
	c.resumed = c.o.Now()
	c.cameBack()
}

// stopGroup stops the process group, as the terminal would have done, so that a shell
// that waits for a parent of ours sees its job stopped. Where nobody could continue
// it, the kernel ignores that.
func (c *console) stopGroup() {
	const ignored = 300 * time.Millisecond
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return
	}
	over := make(chan struct{})
	defer c.o.AfterFunc(ignored, func() { close(over) })()
	for {
		select {
		case s := <-c.signals:
			if s == syscall.SIGCONT {
				return
			}
		case <-over:
			return
		}
	}
}

// cameBack takes the terminal again after the program was stopped: its modes and
// what the screen shows are unknown.
func (c *console) cameBack() {
	if err := c.t.take(); err != nil {
		c.leave(err)
		return
	}
	c.scr.lostLine()
	if c.dialog != nil {
		c.t.setAlt(true)
		cols, rows := c.t.size()
		c.dialog.resize(cols, rows)
		c.dialog.settle(c.o.Now())
		c.drawDialog()
	}
}
