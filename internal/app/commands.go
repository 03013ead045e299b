package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/internal/session"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// commands are the slash commands that need more than the REPL itself has.
func (d *desk) commands() []repl.Command {
	return append(append(d.relayCommands(), d.workerCommands()...), []repl.Command{
		{Name: "model", Usage: "[NAME]", Help: "show the models and choose one", Run: d.cmdModel, Complete: d.completeModel},
		{Name: "pull", Usage: "NAME", Help: "have the server download a model", Run: d.cmdPull},
		{Name: "host", Usage: "[HOST]", Help: "show or change the model server", Run: d.cmdHost},
		{Name: "new", Aliases: []string{"clear"}, Help: "start a new conversation", Run: d.cmdNew},
		{Name: "sessions", Usage: "[ID|all|search TEXT|rename [ID] TITLE|delete ID]", Help: "list earlier conversations and go on with one", Run: d.cmdSessions, Complete: d.completeSession},
		{Name: "context", Help: "show what fills the window", DuringTurn: true, Run: d.cmdContext},
		{Name: "compact", Help: "shorten the history now", Run: d.cmdCompact},
		{Name: "retry", Help: "repeat the last request", Run: d.cmdRetry},
		{Name: "init", Help: "have an AGENTS.md drafted for this project", Run: d.cmdInit},
		{Name: "readonly", Usage: "[on|off]", Help: "refuse every effect but reading", DuringTurn: true, Run: d.cmdReadOnly},
		{Name: "diff", Usage: "[N]", Help: "show what the last turns changed", DuringTurn: true, Run: d.cmdDiff},
		{Name: "undo", Usage: "[N]", Help: "restore the files that the last turns changed", Run: d.cmdUndo},
		{Name: "redo", Help: "take the last /undo back", Run: d.cmdRedo},
		{Name: "checkpoints", Help: "list the turns and what can be undone", DuringTurn: true, Run: d.cmdCheckpoints},
		{Name: "jobs", Usage: "[show ID|cancel ID]", Help: "list what runs in the background, show or end it", DuringTurn: true, Run: d.cmdJobs},
		{Name: "instructions", Usage: "[show]", Help: "list the AGENTS.md files in force, or show their texts", DuringTurn: true, Run: d.cmdInstructions},
		{Name: "skills", Usage: "[reload]", Help: "list the skills", Run: d.cmdSkills},
		{Name: "skill", Usage: "NAME [TEXT]", Help: "activate a skill, and send TEXT", Run: d.cmdSkill, Complete: d.completeSkill},
		{Name: "mcp", Usage: "[NAME|reload|trust [NAME]|logs NAME|restart NAME]", Help: "list the MCP servers, and act on one", DuringTurn: true, Run: d.cmdServers, Complete: d.completeServer},
		{Name: "queue", Usage: "[list|resume|drop ID]", Help: "show and change the input that waits", DuringTurn: true, Run: d.cmdQueue},
		{Name: "goal", Usage: "[status|pause|resume|clear|[--tokens N] OBJECTIVE]", Help: "work on an objective until a verifier accepts it", DuringTurn: true, Run: d.cmdGoal},
		{Name: "later", Usage: "TEXT", Help: "send TEXT when the turn is over", DuringTurn: true, Run: d.cmdLater},
	}...)
}

func (d *desk) cmdModel(ctx context.Context, ui repl.UI, name string) error {
	client, current := d.w.brain.current()
	if name == "" {
		picked, err := d.pickModel(ctx, ui)
		if err != nil || picked == "" {
			return err
		}
		name = picked
	}
	facts, err := client.Show(ctx, name)
	if err != nil {
		return err
	}
	if !facts.Tools {
		return withHint(fmt.Errorf("the model %q cannot call tools", name), "choose another with /model")
	}
	if sameModel(name, current) {
		ui.Print("model: " + name)
		return nil
	}
	d.w.brain.use(nil, name)
	d.w.rememberModel(name)
	d.w.post.describe(d.conv().Info().ID)
	ui.Print(fmt.Sprintf("model: %s · the next request loads it and reads the conversation anew", name))
	return nil
}

// pickModel lets the person choose among the server's models.
func (d *desk) pickModel(ctx context.Context, ui repl.UI) (string, error) {
	client, current := d.w.brain.current()
	all, err := client.Models(ctx)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "", withHint(errors.New("the server has no models"), "/pull qwen3-coder gets one")
	}
	items, at := make([]string, len(all)), 0
	for i, m := range all {
		facts, err := client.Show(ctx, m.Name)
		mark := "  "
		if sameModel(m.Name, current) {
			mark, at = "* ", i
		}
		items[i] = mark + modelLine(m, facts, err)
	}
	i, ok := ui.Choose("Models on "+client.BaseURL(), items, at)
	if !ok {
		return "", nil
	}
	return all[i].Name, nil
}

func (d *desk) completeModel(prefix string) []string {
	ctx, cancel := context.WithTimeout(d.ctx, time.Second)
	defer cancel()
	client, _ := d.w.brain.current()
	all, err := client.Models(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range all {
		if strings.HasPrefix(m.Name, prefix) {
			names = append(names, m.Name)
		}
	}
	return names
}

func (d *desk) cmdHost(_ context.Context, ui repl.UI, host string) error {
	client, _ := d.w.brain.current()
	if host == "" {
		ui.Print("model server: " + client.BaseURL())
		return nil
	}
	if d.w.origin == approval.OriginRemote && apiKey(d.w.v) != "" {
		return withHint(errors.New("the model server cannot be changed from afar: it would get this machine's API key"), "start the server there with --host")
	}
	next, err := d.w.newClient(host)
	if err != nil {
		return err
	}
	d.w.brain.use(next, "")
	ui.Print("model server: " + next.BaseURL())
	return nil
}

func (d *desk) cmdNew(_ context.Context, ui repl.UI, _ string) error {
	c, err := d.w.start(false)
	if err != nil {
		return err
	}
	return d.switchTo(ui, c, "new conversation")
}

// switchTo makes another conversation the current one. A grant ends with the old.
func (d *desk) switchTo(ui repl.UI, c *conversation, banner string) error {
	old := d.cur.Swap(c)
	d.w.recordSwitch(c.Info().ID)
	d.w.post.describe(c.Info().ID)
	ui.Switch(c, 0, banner)
	return old.Close()
}

func (d *desk) cmdContext(ctx context.Context, ui repl.UI, _ string) error {
	bill, err := d.w.bill(ctx, d.conv())
	if err != nil {
		return err
	}
	ui.Print(strings.Join(bill, "\n"))
	return nil
}

func (d *desk) cmdCompact(ctx context.Context, ui repl.UI, _ string) error {
	if len(d.conv().History()) == 0 {
		ui.Print("there is nothing to shorten yet")
		return nil
	}
	return d.conv().Compact(ctx)
}

func (d *desk) cmdRetry(_ context.Context, ui repl.UI, _ string) error {
	history := d.conv().History()
	for i := len(history) - 1; i >= 0; i-- {
		if m := history[i]; m.Role == chat.User && !m.Note {
			ui.Submit(m.Content)
			return nil
		}
	}
	return errors.New("there is no request to repeat yet")
}

// initPrompt asks for the guidance file that agents read.
const initPrompt = `Look at this project and write AGENTS.md in its root: guidance for coding agents in at most 40 lines. ` +
	`State what the project is, how to build it, how to run its tests (the exact commands, tried out), how the directories are laid out, and the conventions that the code shows. ` +
	`Only what you verified in the files. If AGENTS.md exists, improve it and keep what is right.`

func (d *desk) cmdInit(_ context.Context, ui repl.UI, _ string) error {
	ui.Print("what it writes is in force from the next conversation on: /new begins one")
	ui.Submit(initPrompt)
	return nil
}

func (d *desk) cmdReadOnly(_ context.Context, ui repl.UI, arg string) error {
	switch arg {
	case "on":
		d.w.readOnly.Store(true)
	case "off":
		if d.w.v.Bool("read-only") {
			return withHint(errors.New("the program was started with --read-only"), "start it without the flag to allow changes")
		}
		d.w.readOnly.Store(false)
	case "":
	default:
		return withHint(fmt.Errorf("/readonly %q", arg), "say /readonly on or /readonly off")
	}
	state := "off: changes are possible, commands ask"
	if d.w.readOnly.Load() {
		state = "on: every effect but reading is refused"
	}
	ui.Print("read-only is " + state)
	return nil
}

func (d *desk) cmdQueue(_ context.Context, ui repl.UI, arg string) error {
	verb, id, _ := strings.Cut(arg, " ")
	switch verb {
	case "", "list":
		d.showQueue(ui)
		return nil
	case "resume":
		d.conv().ResumeQueue()
		if _, ok := d.conv().Next(); ok && !d.conv().Busy() {
			ui.Submit("/" + queueResume)
		}
		return nil
	case "drop":
		if err := d.conv().Drop(d.itemID(strings.TrimSpace(id))); err != nil {
			return withHint(fmt.Errorf("drop %q: %w", id, err), "/queue lists what waits")
		}
		return nil
	}
	return withHint(fmt.Errorf("/queue %q", verb), "say /queue, /queue resume or /queue drop ID")
}

// itemID completes the number of a queued item, as q1 for q1-1a2b3c4d.
func (d *desk) itemID(id string) string {
	items, _ := d.conv().Pending()
	for _, i := range items {
		if strings.HasPrefix(i.ID, id+"-") {
			return i.ID
		}
	}
	return id
}

func (d *desk) showQueue(ui repl.UI) {
	items, paused := d.conv().Pending()
	if len(items) == 0 {
		ui.Print("nothing waits")
		return
	}
	for _, i := range items {
		ui.Print(fmt.Sprintf("%-6s %-9s %s", i.ID, i.Mode, termtext.Line(i.Text)))
	}
	if paused {
		ui.Print("the queue is paused: /queue resume goes on")
	}
}

func (d *desk) cmdLater(_ context.Context, ui repl.UI, text string) error {
	if text == "" {
		return withHint(errors.New("/later needs a text"), "/later TEXT sends it when the turn is over")
	}
	if !d.conv().Busy() {
		ui.Submit(text)
		return nil
	}
	return d.enqueue(event.FollowUp, text)
}

func (d *desk) enqueue(mode event.Mode, text string) error {
	_, err := d.conv().Enqueue(event.Item{ID: d.nextItem(), Mode: mode, Text: text})
	if errors.Is(err, session.ErrQueueFull) {
		return withHint(err, "/queue drop ID makes room")
	}
	return err
}
