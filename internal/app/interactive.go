package app

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// desk is a frontend's side of the workbench: the conversation that is current and
// what its commands need.
type desk struct {
	w     *workbench
	ctx   context.Context // of the whole frontend, for completions
	cur   atomic.Pointer[conversation]
	items atomic.Int64
}

func newDesk(ctx context.Context, w *workbench, c *conversation) *desk {
	d := &desk{w: w, ctx: ctx}
	d.cur.Store(c)
	return d
}

// conv is the current conversation.
func (d *desk) conv() *conversation { return d.cur.Load() }

// interactive talks to the person until they leave.
func (w *workbench) interactive(ctx context.Context, first string) (int, error) {
	t, closeTerminal := openTerminal(w.p)
	defer closeTerminal()
	ctx, stop, caught := catchHangups(ctx, !t.Dumb)
	defer stop()
	c, err := w.conversationFor(ctx, false)
	if err != nil {
		return statusUsage, err
	}
	d := newDesk(ctx, w, c)
	err = w.ensureModel(ctx, d.chooseAtStart(t))
	if missing(err) {
		err = d.offerPull(ctx, t, err)
	}
	if err != nil {
		c.Close()
		return statusFailed, err
	}
	w.openRelay(ctx, c.Info().ID)
	w.startServers(ctx, false)
	warm := w.warmUp(ctx)
	checked := func() {}
	if len(w.notices) == 0 {
		checked = d.checkAudit()
	}
	err = repl.Run(ctx, d.options(t, first))
	warm()
	checked()
	status := w.leave(d, caught())
	if s := caught(); s != 0 {
		return s, nil
	}
	return status, err
}

// leave says how to come back, and frees the model if that is wanted.
func (w *workbench) leave(d *desk, signalled int) int {
	if n := w.jobs.close(); n > 0 {
		fmt.Fprintf(w.p.Stderr, "ended %s in the background\n", plural(n, "job", "jobs"))
	}
	used := len(d.conv().History()) > 0
	id := d.conv().Info().ID
	if err := d.conv().Close(); err != nil {
		report(w.p, err)
		return statusFailed
	}
	if used && !w.v.Bool("demo") {
		fmt.Fprintln(w.p.Stderr, resumeLine(w.v, id))
	}
	if w.v.Bool("unload-at-exit") && signalled == 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 5*time.Second)
		defer cancel()
		client, model := w.brain.current()
		if u, ok := client.(unloader); ok {
			if err := u.Unload(ctx, model); err != nil {
				report(w.p, err)
			}
		}
	}
	return statusOK
}

// catchHangups ends the context on TERM and HUP, and on an INT from elsewhere: in a
// terminal of ours Ctrl-C is a key, in a dumb one it is a signal for the REPL.
func catchHangups(ctx context.Context, raw bool) (_ context.Context, stop func(), caught func() int) {
	if raw {
		return catchSignals(ctx)
	}
	return endOn(ctx, syscall.SIGTERM, syscall.SIGHUP)
}

// isDumb reports whether control bytes would not reach a terminal that knows them.
func isDumb(p Process) bool {
	return p.getenv("TERM") == "dumb" || p.getenv("TERM") == "" || !isTerminal(p.Stdout)
}

// openTerminal is the terminal as the environment describes it. stop ends what it
// watches.
func openTerminal(p Process) (t *repl.Terminal, stop func()) {
	dumb := isDumb(p)
	t = &repl.Terminal{In: p.Stdin, Out: p.Stdout, Dumb: dumb, Color: !dumb && p.getenv("NO_COLOR") == ""}
	if !dumb {
		return t, func() {}
	}
	breaks := make(chan struct{}, 1)
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT)
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-got:
				select {
				case breaks <- struct{}{}:
				default:
				}
			case <-ended:
				return
			}
		}
	}()
	t.Interrupt = breaks
	return t, func() { signal.Stop(got); close(ended) }
}

func (d *desk) options(t *repl.Terminal, first string) repl.Options {
	return repl.Options{
		Conversation: d.conv(),
		Terminal:     t,
		Commands:     d.commandsWithHints(),
		More:         d.serverPrompts,
		History:      d.historyFile(),
		Mask:         d.w.mask.Mask,
		Paths:        d.completeMention,
		RunUser:      d.runUser,
		Edit:         d.edit,
		Steer:        d.steer,
		Command:      func(command string) error { return d.enqueue(event.Command, command) },
		Waiting:      d.waiting,
		Later:        func(text string) error { return d.enqueue(event.FollowUp, text) },
		Incoming:     d.incoming,
		Arrived:      d.w.post.arrived(),
		Backlog:      d.w.post.backlog,
		Skip:         func() { d.conv().Skip() },
		Banner:       d.banner(),
		Prompt:       d.prompt,
		FirstInput:   first,
		Bell:         d.w.v.Bool("bell"),
	}
}

// banner is the start line: where, with what, and what holds.
func (d *desk) banner() string {
	w := d.w
	parts := []string{"zcoder " + version, termtext.Line(w.shortPath(w.ws.Root())), w.model()}
	if w.profile.Name != "coding" {
		parts = append(parts, w.profile.Name)
	}
	if line := w.gitLine(d.ctx); line != "" {
		parts = append(parts, line)
	}
	if w.readOnly.Load() {
		parts = append(parts, "read-only")
	}
	lines := []string{strings.Join(parts, " · ")}
	if w.v.Bool("demo") {
		lines = append(lines, "This is a demonstration: the model's replies are prepared; the tools, the approval and the files are real.", "A command will ask for your approval: y runs it once, n refuses.")
	} else {
		lines = append(lines, "/help lists the commands, Ctrl-D leaves")
	}
	lines = append(lines, w.guideLine()...)
	if line := d.conv().keeper.newLine(); line != "" {
		lines = append(lines, termtext.Line(line))
	}
	if d.conv().undoNotice != "" {
		lines = append(lines, termtext.Line(d.conv().undoNotice))
	}
	return strings.Join(append(lines, w.startNotices()...), "\n")
}

// shortPath writes the home directory as ~.
func (w *workbench) shortPath(path string) string { return shortPath(path, w.p.UserHome) }

func (d *desk) prompt() string {
	mark := "› "
	if d.w.profile.Name == "sysadmin" {
		mark = "sysadmin › "
	}
	if d.w.readOnly.Load() {
		mark = "read-only " + mark
	}
	if backlog := d.w.post.backlog(); backlog != "" {
		mark = backlog + " " + mark
	}
	return mark
}

// historyFile is the file of typed lines, one for each workspace.
func (d *desk) historyFile() string {
	dir, err := makePrivate(filepath.Join(d.w.home, "history"))
	if err != nil {
		return ""
	}
	return filepath.Join(dir, fileNameFor(d.w.ws.Root()))
}

func (d *desk) nextItem() string {
	return "q" + strconv.FormatInt(d.items.Add(1), 10) + "-" + newCallID()[1:]
}

// steer takes a line that was entered during a turn. What the person writes does not
// become part of what another instance asked for.
func (d *desk) steer(text string) error {
	if d.w.post.relays() {
		return d.enqueue(event.FollowUp, text)
	}
	return d.enqueue(event.Steer, text)
}

// waiting is what the queue starts when nothing runs: a command of the person, or a
// turn for what stood behind it.
func (d *desk) waiting() (text string, ok bool) {
	if command, ok := d.conv().ClaimCommand(); ok {
		return "! " + command, true
	}
	if _, ok := d.conv().Next(); ok {
		return "/" + queueResume, true
	}
	return "", false
}

// commandsWithHints shows what to do next under an error.
func (d *desk) commandsWithHints() []repl.Command {
	list := d.commands()
	for i := range list {
		run := list[i].Run
		list[i].Run = func(ctx context.Context, ui repl.UI, args string) error {
			err := run(ctx, ui, args)
			if hint := hintOf(err); hint != "" {
				return hinted{err, hint}
			}
			return err
		}
	}
	return list
}

// ensureModel checks that the server has the model. If it has not and another one
// that calls tools is there, choose decides; nil takes the only one.
func (w *workbench) ensureModel(ctx context.Context, choose func(items []string) (int, bool)) error {
	if w.v.Bool("demo") {
		return nil
	}
	if name := w.rememberedModel(); name != "" && w.v.Source("model") == "default" {
		w.brain.use(nil, name)
	}
	_, err := w.brain.known(ctx)
	if !missing(err) {
		return nil // other failures are told by the first turn, with their hint
	}
	client, wanted := w.brain.current()
	list, lerr := able(ctx, client)
	if lerr != nil || len(list) == 0 || w.v.Source("model") != "default" && choose == nil {
		return err
	}
	i, ok := 0, len(list) == 1
	if !ok && choose != nil {
		items := make([]string, len(list))
		for i, m := range list {
			items[i] = fmt.Sprintf("%s  %s", termtext.Line(m.Name), size(m.Size))
		}
		i, ok = choose(items)
	}
	if !ok {
		return withHint(err, "the server has these that can call tools: %s; choose with --model", modelNames(list))
	}
	w.brain.use(nil, list[i].Name)
	w.rememberModel(list[i].Name)
	fmt.Fprintf(w.p.Stderr, "note: the server does not have %s; using %s\n", termtext.Line(wanted), termtext.Line(list[i].Name))
	return nil
}

// warmUp loads the model in the background while the person types. The function it
// returns ends it and waits.
func (w *workbench) warmUp(ctx context.Context) func() {
	if !w.v.Bool("warmup") || w.v.Bool("demo") {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	w.brain.warming(cancel)
	go func() {
		defer close(done)
		_ = w.load(ctx) // whatever fails is told by the first turn
	}()
	return func() { cancel(); <-done }
}
