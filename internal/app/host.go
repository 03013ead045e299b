package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/internal/worker"
	"zcoder/remote"
	"zcoder/repl"
)

// host is a desk whose person is elsewhere: the workbench as a server offers it. It
// implements remote.Host.
type host struct {
	*desk
	loading sync.Mutex // held while the model is loaded

	mu      sync.Mutex
	busy    bool   // loading is held
	failure string // why the last load failed
}

// openHost begins the conversation that the flags ask for, with nobody at the keyboard
// here.
func (w *workbench) openHost(ctx context.Context) (*host, error) {
	w.origin = approval.OriginRemote
	c, err := w.conversationFor(ctx, false)
	if err != nil {
		return nil, err
	}
	w.relayOff = "instances that serve remote clients take no part"
	return &host{desk: newDesk(ctx, w, c)}, nil
}

// close ends what runs and the conversation.
func (h *host) close() error {
	h.conv().Cancel()
	h.w.jobs.close()
	return h.conv().Close()
}

// Facts implements remote.Host.
func (h *host) Facts(ctx context.Context) remote.Facts {
	w := h.w
	facts := remote.Facts{
		Workspace: w.ws.Root(), Model: w.model(), Profile: w.profile.Name, CommandPolicy: w.v.String("command-policy"),
		GitStatus: w.gitLine(ctx), Readiness: h.Model(ctx, false), Version: version,
		Notices: strings.Join(append(w.guideLine(), w.startNotices()...), "\n"),
	}
	for _, one := range worker.Table() {
		if _, _, err := w.findWorker(one.Name); err == nil {
			facts.Harnesses = append(facts.Harnesses, one.Name)
		}
	}
	return facts
}

// modelPatience bounds how long the model server may take to say what is loaded.
const modelPatience = 5 * time.Second

// Model implements remote.Host.
func (h *host) Model(ctx context.Context, ensure bool) remote.Model {
	if h.w.v.Bool("demo") {
		return remote.Model{Status: remote.Ready}
	}
	state := h.readiness(ctx)
	if state.Status == remote.Ready || !ensure {
		return state
	}
	h.loading.Lock()
	defer h.loading.Unlock()
	if state = h.readiness(ctx); state.Status == remote.Ready {
		return state
	}
	h.noteLoad(true, nil)
	err := h.w.load(ctx)
	h.noteLoad(false, err)
	if err != nil {
		return remote.Model{Status: remote.Failed, Error: errorText(err)}
	}
	return remote.Model{Status: remote.Ready}
}

func (h *host) noteLoad(busy bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.failure = busy, ""
	if err != nil {
		h.failure = errorText(err)
	}
}

// readiness asks the model server and starts nothing. A model that is there and not
// loaded is warming: it will be when the next request needs it.
func (h *host) readiness(ctx context.Context) remote.Model {
	ctx, cancel := context.WithTimeout(ctx, modelPatience)
	defer cancel()
	facts, err := h.w.brain.known(ctx)
	if err != nil {
		return remote.Model{Status: remote.Failed, Error: errorText(err)}
	}
	client, model := h.w.brain.current()
	_, able := client.(loader)
	if _, there := loadedModel(ctx, client, model); there || !able || facts.Untold {
		return remote.Model{Status: remote.Ready}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.busy && h.failure != "" {
		return remote.Model{Status: remote.Failed, Error: h.failure}
	}
	return remote.Model{Status: remote.Warming}
}

func errorText(err error) string {
	if hint := hintOf(err); hint != "" {
		return err.Error() + "; " + hint
	}
	return err.Error()
}

// Current implements remote.Host.
func (h *host) Current() remote.Conversation { return h.conv() }

// Sessions implements remote.Host.
func (h *host) Sessions() ([]store.Info, error) {
	list, err := h.w.store.List(h.w.ws.Root(), h.w.profile.Name)
	if err != nil {
		return nil, err
	}
	now := h.conv().Info()
	if !slices.ContainsFunc(list, func(i store.Info) bool { return i.ID == now.ID }) {
		list = append([]store.Info{{ID: now.ID, Workspace: now.Workspace, Profile: now.Profile, Model: now.Model, Changed: time.Now()}}, list...)
	}
	return list, nil
}

// Past implements remote.Host.
func (h *host) Past(id string) ([]event.Event, error) {
	if err := h.offered(id); err != nil {
		return nil, err
	}
	loaded, err := h.w.store.Load(id)
	if errors.Is(err, store.ErrUnknown) {
		return nil, nil // the current one, which nobody has written to yet
	}
	return loaded.Events, err
}

// Select implements remote.Host.
func (h *host) Select(_ context.Context, id string) error {
	if id == h.conv().Info().ID {
		return nil
	}
	if err := h.offered(id); err != nil {
		return err
	}
	c, notice, err := h.w.resume(id, false)
	if err != nil {
		return err
	}
	if notice != "" {
		c.Emit(event.Event{Kind: event.Warning, Text: notice})
	}
	return h.switchTo(&farUI{host: h}, c, "")
}

// New implements remote.Host.
func (h *host) New(context.Context) (string, error) {
	c, err := h.w.start(false)
	if err != nil {
		return "", err
	}
	return c.Info().ID, h.switchTo(&farUI{host: h}, c, "")
}

// Run implements remote.Host. Two slashes send a text that begins with one.
func (h *host) Run(ctx context.Context, in event.Input, ask remote.UI) (event.Reason, error) {
	text := strings.TrimSpace(in.Text)
	switch {
	case strings.HasPrefix(text, "//"):
		in.Text = text[1:]
		return h.conv().Session.Prompt(ctx, in)
	case !strings.HasPrefix(text, "/"):
		return h.conv().Prompt(ctx, in)
	}
	command, args, err := h.command(text)
	if err != nil {
		return "", err
	}
	ui := &farUI{host: h, ask: ask}
	if err := command.Run(ctx, ui, args); err != nil || ui.submit == "" {
		return "", err
	}
	return h.conv().Prompt(ctx, event.Input{Text: strings.TrimPrefix(ui.submit, "/")})
}

// startsTurn reports whether conversation.Prompt knows the text.
func startsTurn(text string) bool { return text == queueResume || strings.HasPrefix(text, "/goal ") }

// RunNow implements remote.Host.
func (h *host) RunNow(ctx context.Context, text string, ask remote.UI) (bool, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "//") {
		return false, nil
	}
	command, args, err := h.command(text)
	if err != nil || !command.DuringTurn {
		return false, nil
	}
	return true, command.Run(ctx, &farUI{host: h, ask: ask}, args)
}

// command finds the slash command of a text.
func (h *host) command(text string) (repl.Command, string, error) {
	word, args, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	var names []string
	for _, c := range append(append(h.commands(), h.serverPrompts()...), h.helpCommand()) {
		if c.Name == word || slices.Contains(c.Aliases, word) {
			return c, strings.TrimSpace(args), nil
		}
		names = append(names, c.Name)
	}
	err := fmt.Errorf("there is no command /%s here", word)
	if near := config.Nearest(word, names); near != "" {
		return repl.Command{}, "", withHint(err, "did you mean /%s? Two slashes send a text that begins with one", near)
	}
	return repl.Command{}, "", withHint(err, "/help lists the commands; two slashes send a text that begins with one")
}

// helpCommand lists the commands for those who have no REPL.
func (h *host) helpCommand() repl.Command {
	return repl.Command{Name: "help", Help: "list the commands", DuringTurn: true, Run: func(_ context.Context, ui repl.UI, _ string) error {
		var lines []string
		for _, c := range append(h.commands(), h.serverPrompts()...) {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("/%-12s %s", strings.TrimSpace(c.Name+" "+c.Usage), c.Help)))
		}
		ui.Print(strings.Join(lines, "\n"))
		return nil
	}}
}

// farUI is what a slash command may do with a terminal that is not here: it writes into
// the conversation, where every client reads it.
type farUI struct {
	host   *host
	ask    remote.UI // nil: nobody can be asked
	submit string    // what the host runs itself, since the client will not
}

func (u *farUI) emit(kind event.Kind, text string) {
	if text = strings.TrimRight(text, "\n"); text != "" {
		u.host.conv().Emit(event.Event{Kind: kind, Text: text})
	}
}

func (u *farUI) Print(text string) { u.emit(event.Printed, text) }
func (u *farUI) Warn(text string)  { u.emit(event.Warning, text) }

func (u *farUI) Error(text, hint string) {
	if hint != "" {
		text += " (" + hint + ")"
	}
	u.emit(event.Warning, text)
}

func (u *farUI) Status(text string) bool {
	u.host.conv().Emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Running, Detail: text}})
	return true
}

func (u *farUI) Choose(title string, items []string, current int) (int, bool) {
	if u.ask == nil {
		return 0, false
	}
	i, ok := u.ask.Choose(title, items, current)
	return i, ok && i >= 0 && i < len(items)
}

func (u *farUI) AskLine(prompt string) (string, bool) {
	if u.ask == nil {
		return "", false
	}
	return u.ask.AskLine(prompt)
}

func (u *farUI) Submit(text string) {
	if u.ask == nil || !u.ask.Submit(text) {
		u.submit = text
	}
}

// SetDraft shows what would stand in a draft to be read before it is sent.
func (u *farUI) SetDraft(text string) {
	if u.ask == nil || !u.ask.Draft(text) {
		u.Print(text)
	}
}

func (u *farUI) Switch(_ repl.Conversation, _ int64, banner string) { u.Print(banner) }

// Copy and Quit concern a terminal alone.
func (u *farUI) Copy(string) {}
func (u *farUI) Quit()       {}

// load loads the model with the stable part of every request.
func (w *workbench) load(ctx context.Context) error {
	system, set := w.stable()
	return w.brain.warm(ctx, chat.Request{
		Messages: []chat.Message{{Role: chat.System, Content: system}}, Tools: set.Specs(),
	})
}
