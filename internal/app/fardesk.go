package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/runtimedir"
	"zcoder/internal/secret"
	"zcoder/internal/store"
	"zcoder/internal/termtext"
	"zcoder/remote"
	"zcoder/repl"
)

// farDesk is the REPL's side of a server's workspace: what is the server's goes there,
// the rest is done here.
type farDesk struct {
	p      Process
	v      *config.Values
	out    *outbox
	dialer *dialer

	mu     sync.Mutex
	client *remote.Client
	shift  int64 // added to the numbers of its events
}

func (f *farDesk) conv() *remote.Client {
	client, _ := f.following()
	return client
}

// farInteractive talks to the person until they leave. What runs on the server then
// goes on.
func farInteractive(ctx context.Context, p Process, v *config.Values, d *dialer, client *remote.Client, first string) (int, error) {
	t, closeTerminal := openTerminal(p)
	defer closeTerminal()
	f := &farDesk{p: p, v: v, dialer: d, client: client}
	f.out = newOutbox(func(item event.Item) error {
		_, err := f.conv().Enqueue(item)
		return err
	})
	defer f.out.close()
	if err := repl.Run(ctx, f.options(t, first)); err != nil && ctx.Err() == nil {
		return statusFailed, err
	}
	last := f.conv()
	fmt.Fprintln(p.Stderr, resumeLine(v, last.Info().ID))
	if last.Busy() {
		fmt.Fprintln(p.Stderr, "note: the turn goes on there; what it asks waits for a client, and is denied in the end")
	}
	return statusOK, last.Close()
}

func (f *farDesk) options(t *repl.Terminal, first string) repl.Options {
	o := repl.Options{
		Conversation: farConversation{f},
		Terminal:     t,
		Commands:     f.commands(),
		Other:        f.prompts,
		History:      farHistory(f.v, f.conv()),
		Mask:         secret.New(f.p.Env).Mask,
		Edit:         f.edit,
		Skip:         func() { f.conv().Skip() },
		Banner:       f.banner(),
		Prompt:       f.prompt,
		FirstInput:   first,
		Bell:         f.v.Bool("bell"),
		KeepRunning:  true,
	}
	if f.conv().Hello().InputQueue {
		o.Steer = func(text string) error { f.out.put(event.Steer, text); return nil }
		o.Later = func(text string) error { f.out.put(event.FollowUp, text); return nil }
		o.Waiting, o.Arrived = f.out.left, f.out.returned
	}
	return o
}

// farConversation is what the REPL drives: the server's conversation, over a connection
// that may be a new one.
type farConversation struct{ f *farDesk }

// Prompt implements repl.Conversation. It escapes what the server would take for a
// command: in the REPL, what arrives here was meant for the model, or starts a turn.
// When ctx ends the turn goes on: the person leaves, or has asked for its end already.
func (c farConversation) Prompt(ctx context.Context, in event.Input) (event.Reason, error) {
	client := c.f.conv()
	if strings.HasPrefix(in.Text, "/") && !startsTurn(in.Text) && client.Hello().Commands {
		in.Text = "/" + in.Text
	}
	type end struct {
		reason event.Reason
		err    error
	}
	over := make(chan end, 1)
	go func() {
		reason, err := client.Prompt(context.WithoutCancel(ctx), in)
		var s *remote.SwitchedError
		if errors.As(err, &s) {
			err = whatElse(client, s)
		}
		over <- end{reason, err}
	}()
	select {
	case e := <-over:
		return e.reason, e.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Cancel implements repl.Conversation.
func (c farConversation) Cancel() { c.f.conv().Cancel() }

// Answer implements repl.Conversation.
func (c farConversation) Answer(callID string, a event.Answer) error {
	return c.f.conv().Answer(callID, a)
}

// Events implements repl.Conversation. A connection that cannot be opened again by the
// client is made anew, and a server that was started anew is asked to take the
// conversation up again. That another client went on with another one is told; the
// person decides what to do.
func (c farConversation) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		client, shift := c.f.following()
		for e, err := range client.Events(ctx, after-shift) {
			var s *remote.SwitchedError
			switch {
			case errors.Is(err, remote.ErrLost) && ctx.Err() == nil:
				e, err = c.f.reconnect(ctx, client, after)
			case errors.As(err, &s):
				c.f.elsewhere(ctx, client, s, after, yield)
				return
			default:
				e.Seq += shift
				after = max(after, e.Seq)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// elsewhere handles that another conversation is the server's current one.
func (f *farDesk) elsewhere(ctx context.Context, client *remote.Client, s *remote.SwitchedError, seen int64, yield func(event.Event, error) bool) {
	if s.Anew {
		if text, ok := f.takeUp(ctx, client, s.Session, seen); ok {
			yield(event.Event{Kind: event.Warning, Text: text}, nil)
			return
		}
	}
	err := whatElse(client, s)
	if yield(event.Event{Kind: event.Warning, Text: err.Error() + "; " + hintOf(err)}, nil) {
		<-ctx.Done()
	}
}

// takeUp has a server that was started anew go on with the person's conversation, if
// nobody uses the one that it began; when nothing of it was kept, it takes that one. It
// returns what to tell of it.
func (f *farDesk) takeUp(ctx context.Context, client *remote.Client, begun string, seen int64) (text string, ok bool) {
	own := client.Info().ID
	now, found, err := client.Current(ctx)
	if err != nil || !found || !now.Empty && now.ID != own {
		return "", false
	}
	next, err := client.Select(ctx, own)
	text = "the server was started anew, and the conversation goes on; what ran there ended"
	if errors.Is(err, store.ErrUnknown) {
		next, err = client.With(ctx, begun)
		text = "the server was started anew, " + replaced
	}
	if err != nil {
		return "", false
	}
	f.use(next, seen)
	return text, true
}

// replaced says that a conversation in which nothing was said ended with its server.
const replaced = "with another conversation: the one before is not kept there"

// whatElse says what a person can do when the conversation is not the current one.
func whatElse(client *remote.Client, s *remote.SwitchedError) error {
	why := "another client went on with conversation " + s.Session
	if s.Anew {
		why = "the server was started anew, with conversation " + s.Session
	}
	return withHint(errors.New(why), "/sessions %s goes on with it here, /sessions %s with this one", s.Session, client.Info().ID)
}

// use goes on with another client. One of another conversation has its own numbers, which
// come after what was seen.
func (f *farDesk) use(client *remote.Client, seen int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if client.Info().ID != f.client.Info().ID {
		f.shift = seen
	}
	f.client = client
}

// following is the client, and what is added to the numbers of its events.
func (f *farDesk) following() (*remote.Client, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.client, f.shift
}

// reconnect replaces a lost connection, and tells of it.
func (f *farDesk) reconnect(ctx context.Context, lost *remote.Client, seen int64) (event.Event, error) {
	client, err := f.dialer.again(ctx, lost.Info().ID)
	text := "the connection was lost, and is back; what ran there ended, unless --keep was given"
	if errors.Is(err, store.ErrUnknown) {
		client, err = f.dialer.again(ctx, "")
		text = "the connection was lost, and is back " + replaced
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("%w; connect again: %w", remote.ErrLost, err)
	}
	f.use(client, seen)
	_ = lost.Close() // it is over already
	return event.Event{Kind: event.Warning, Text: text}, nil
}

// banner says whose workspace this is.
func (f *farDesk) banner() string {
	c, h := f.conv(), f.conv().Hello()
	parts := []string{"zcoder " + version, "on " + c.Host() + ": " + h.Workspace, h.Model}
	if h.Profile != "coding" && h.Profile != "" {
		parts = append(parts, h.Profile)
	}
	if h.GitStatus != "" {
		parts = append(parts, h.GitStatus)
	}
	lines := []string{termtext.Line(strings.Join(parts, " · ")), "files, commands and their rules are that machine's · /help lists the commands, Ctrl-D leaves"}
	if h.Notices != "" {
		lines = append(lines, strings.Split(termtext.Safe(h.Notices), "\n")...)
	}
	if h.CommandPolicy == "allow" {
		lines = append(lines, "commands run there without asking")
	}
	if h.Readiness.Status == remote.Failed {
		lines = append(lines, termtext.Line("the model is not ready: "+h.Readiness.Error))
	}
	return strings.Join(lines, "\n")
}

func (f *farDesk) prompt() string {
	if f.conv().Hello().Profile == "sysadmin" {
		return "sysadmin › "
	}
	return "› "
}

// commands are those of a desk. Their state is the server's, so they go there, but for
// those that have routes of their own.
func (f *farDesk) commands() []repl.Command {
	own := map[string]func(context.Context, repl.UI, string) error{
		"new": f.cmdNew, "sessions": f.cmdSessions, "queue": f.cmdQueue, "later": f.cmdLater,
	}
	list := new(desk).commands()
	for i := range list {
		name := list[i].Name
		list[i].Complete = nil
		if list[i].Run = own[name]; list[i].Run == nil {
			list[i].Run = func(ctx context.Context, ui repl.UI, args string) error { return f.forward(ctx, ui, name, args) }
		}
	}
	return list
}

// prompts are those of the server's MCP servers, which only it knows: /SERVER:PROMPT.
func (f *farDesk) prompts(name string) (repl.Command, bool) {
	return repl.Command{Name: name, Run: func(ctx context.Context, ui repl.UI, args string) error {
		return f.forward(ctx, ui, name, args)
	}}, strings.Contains(name, ":") && f.conv().Hello().Commands
}

// forward has the server handle a command. What it prints comes as events.
func (f *farDesk) forward(ctx context.Context, ui repl.UI, name, args string) error {
	c := f.conv()
	if !c.Hello().Commands {
		return withHint(fmt.Errorf("/%s is the server's, and this server takes no commands", name), "use zcoder there, or ask the model")
	}
	out, err := c.Command(ctx, strings.TrimSpace("/"+name+" "+args), ui)
	var s *remote.SwitchedError
	switch {
	case errors.As(err, &s) && errors.Is(err, remote.ErrNotSent):
		return whatElse(c, s)
	case errors.As(err, &s):
		next, err := c.With(ctx, s.Session)
		if err == nil {
			f.switchTo(ui, next, "resumed "+s.Session)
		}
		return err
	case err != nil:
		return err
	case out.Error != "" && out.Hint != "":
		return withHint(errors.New(out.Error), "%s", out.Hint)
	case out.Error != "":
		return errors.New(out.Error)
	}
	if out.Submit != "" {
		enter(ui, out.Submit)
	}
	if out.Draft != "" {
		ui.SetDraft(out.Draft)
	}
	return nil
}

// enter enters what a server wants entered after a command: a message, or what starts a
// turn there. Any other command waits for the person to send it, so that no server has one
// done here.
func enter(ui repl.UI, text string) {
	if strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "//") {
		ui.SetDraft(text)
		return
	}
	ui.Submit(text)
}

// edit opens the draft in the person's editor, on this machine.
func (f *farDesk) edit(ctx context.Context, text string, tty repl.TTY) (_ string, err error) {
	dir, err := runtimedir.Open(runtimedir.Places{Runtime: f.p.getenv("XDG_RUNTIME_DIR"), Temp: f.p.getenv("TMPDIR")})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return editText(ctx, f.p, dir.Path(), f.p.Dir, text, tty)
}

func (f *farDesk) cmdNew(ctx context.Context, ui repl.UI, _ string) error {
	c, err := f.conv().NewSession(ctx)
	if err != nil {
		return err
	}
	f.switchTo(ui, c, "new conversation")
	return nil
}

func (f *farDesk) switchTo(ui repl.UI, c *remote.Client, banner string) {
	f.use(c, 0)
	ui.Switch(farConversation{f}, 0, banner)
}

// cmdSessions lists and selects by the protocol's own routes; the rest is a command of
// the server.
func (f *farDesk) cmdSessions(ctx context.Context, ui repl.UI, args string) error {
	if args != "" && !sessionID.MatchString(args) {
		return f.forward(ctx, ui, "sessions", args)
	}
	id := args
	if id == "" {
		var err error
		if id, err = f.chooseSession(ctx, ui); err != nil || id == "" {
			return err
		}
	}
	c, err := f.conv().Select(ctx, id)
	if err != nil {
		return withHint(err, "/sessions lists what there is")
	}
	f.switchTo(ui, c, "resumed "+id)
	return nil
}

func (f *farDesk) chooseSession(ctx context.Context, ui repl.UI) (string, error) {
	list, err := f.conv().Sessions(ctx)
	if err != nil {
		return "", err
	}
	items, at := make([]string, len(list)), 0
	for i, s := range list {
		title := s.Title
		if title == "" {
			title = "(no title)"
		}
		items[i] = termtext.Line(s.ID + "  " + title)
		if s.Current {
			at = i
		}
	}
	i, ok := ui.Choose("Conversations on "+termtext.Line(f.conv().Host()), items, at)
	if !ok {
		return "", nil
	}
	return list[i].ID, nil
}

func (f *farDesk) cmdQueue(ctx context.Context, ui repl.UI, arg string) error {
	c := f.conv()
	if c.Hello().Commands {
		return f.forward(ctx, ui, "queue", arg)
	}
	verb, id, _ := strings.Cut(arg, " ")
	switch verb {
	case "", "list":
		text, err := c.Pending(ctx)
		if err != nil {
			return err
		}
		if text == "" {
			text = "nothing waits"
		}
		ui.Print(text)
		return nil
	case "resume":
		if !c.Busy() {
			ui.Submit("/" + queueResume)
		}
		return nil
	case "drop":
		if err := c.Drop(ctx, strings.TrimSpace(id)); err != nil {
			return withHint(fmt.Errorf("drop %q: %w", id, err), "/queue lists what waits")
		}
		return nil
	}
	return withHint(fmt.Errorf("/queue %q", verb), "say /queue, /queue resume or /queue drop ID")
}

func (f *farDesk) cmdLater(_ context.Context, ui repl.UI, text string) error {
	if text == "" {
		return withHint(errors.New("/later needs a text"), "/later TEXT sends it when the turn is over")
	}
	if !f.conv().Busy() {
		ui.Submit(text)
		return nil
	}
	f.out.put(event.FollowUp, text)
	return nil
}
