package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"zcoder/internal/approval"
	"zcoder/internal/checkpoint"
	"zcoder/internal/diff"
	"zcoder/internal/event"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// keeper keeps what the workspace was before each turn of a conversation, so that
// what a turn changed can be seen and undone. A nil keeper keeps nothing.
type keeper struct {
	*checkpoint.Keeper
	ctx context.Context // of the program

	mu    sync.Mutex
	turns map[checkpoint.ID]place // where the conversation was when a turn began
	named map[string]bool         // files whose change was said in this turn
	told  bool                    // that only edits are kept
}

// place is a point of a conversation: a length of the history as it was after so many
// compactions.
type place struct{ history, compactions int }

// openKeeper opens the checkpoints of a conversation and starts to look at the
// workspace. Without them the program works all the same, and says so.
func (w *workbench) openKeeper(session string) (*keeper, string) {
	if !w.v.Bool("checkpoints") {
		return nil, "undo: off"
	}
	ctx := context.Background()
	k, err := checkpoint.Open(ctx, checkpoint.Options{
		Store: filepath.Join(w.home, "checkpoints"), Root: w.ws.Root(), UserHome: w.p.UserHome, Session: session,
		Exclude: []string{w.home}, Limits: checkpoint.Limits{Store: int64(w.v.Int("checkpoints-max-mb")) << 20},
	})
	if err != nil {
		return nil, "undo: off, " + err.Error()
	}
	k.Begin(ctx)
	return &keeper{Keeper: k, ctx: ctx, turns: map[checkpoint.ID]place{}}, ""
}

// begin marks the state at the beginning of a turn.
func (k *keeper) begin(label string, at place) {
	if k == nil {
		return
	}
	k.mu.Lock()
	k.named = map[string]bool{}
	k.mu.Unlock()
	id, err := k.Turn(k.ctx, label)
	if err != nil {
		return // the first action says that it cannot be undone
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turns[id] = at
}

// before waits until what a request may change is kept: a tool's edit for its own
// files, anything else for the whole workspace. It returns a warning or "".
func (k *keeper) before(ctx context.Context, r approval.Request) string {
	if k == nil {
		return ""
	}
	err := k.keepFor(ctx, r)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	return "what this changes cannot be undone: " + err.Error()
}

func (k *keeper) keepFor(ctx context.Context, r approval.Request) error {
	if r.Effect != approval.WorkspaceWrite {
		return k.Ready(ctx)
	}
	var rels []string
	for _, p := range r.Paths {
		if p.Write {
			rels = append(rels, p.Rel)
		}
	}
	return k.KeepFile(ctx, rels...)
}

// end marks what the turn changed, and says what is not among the files that its tools
// edited: a command, an MCP server or somebody else changed that.
func (k *keeper) end(edited []string) []string {
	if k == nil {
		return nil
	}
	changes, err := k.After(k.ctx)
	if err != nil {
		return []string{"what the turn changed could not be noted: " + err.Error()}
	}
	return appendSaid(appendSaid(nil, k.besides(edited, changes.Files)), k.newLine())
}

// besides names, once, the changes that the closing lines of the turn do not.
func (k *keeper) besides(edited []string, changes []checkpoint.Change) string {
	const most = 5
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.named == nil {
		k.named = map[string]bool{}
	}
	for _, path := range edited {
		k.named[path] = true
	}
	var names []string
	for _, c := range changes {
		if !c.Dir && !k.named[c.Path] {
			k.named[c.Path] = true
			names = append(names, fmt.Sprintf("%s (%s)", termtext.Cut(c.Path, 60), c.What))
		}
	}
	if len(names) == 0 {
		return ""
	}
	rest := ""
	if n := len(names) - most; n > 0 {
		names, rest = names[:most], fmt.Sprintf(", %d more", n)
	}
	return "also changed in the workspace: " + strings.Join(names, ", ") + rest
}

// newLine is the line about the mode, once.
func (k *keeper) newLine() string {
	if k == nil || k.told {
		return ""
	}
	line := k.line()
	k.told = line != ""
	return line
}

func (k *keeper) close() error {
	if k == nil {
		return nil
	}
	return k.Close()
}

// undoLine says at the start what cannot be undone.
func (k *keeper) line() string {
	if k == nil {
		return ""
	}
	if mode, reason := k.Mode(); mode == checkpoint.EditsOnly {
		return "undo: edits only (" + reason + ")"
	}
	return ""
}

var errNoKeeper = withHint(errors.New("nothing is kept for undo in this conversation"), "the start line says why")

func (d *desk) cmdDiff(ctx context.Context, ui repl.UI, args string) error {
	k := d.conv().keeper
	if k == nil {
		return errNoKeeper
	}
	list := k.List()
	if len(list) == 0 {
		ui.Print("no turn has run yet")
		return nil
	}
	n, err := count(args, len(list))
	if err != nil {
		return err
	}
	changes, err := k.Diff(ctx, list[len(list)-n].ID, checkpoint.Now)
	if err != nil {
		return err
	}
	if len(changes.Files) == 0 {
		ui.Print("nothing changed since then")
		return nil
	}
	for _, c := range changes.Files {
		text, err := k.Unified(c, diff.Options{MaxLines: 400, MaxBytes: 64 << 10})
		if err != nil {
			return err
		}
		ui.Print(strings.TrimRight(text, "\n"))
	}
	return nil
}

// count reads how many turns back; none is one.
func count(args string, most int) (int, error) {
	args = strings.TrimSpace(args)
	if args == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 {
		return 0, withHint(fmt.Errorf("%q is no number of turns", args), "give 1 or more; /checkpoints lists the turns")
	}
	return min(n, most), nil
}

func (d *desk) cmdUndo(ctx context.Context, ui repl.UI, args string) error {
	k := d.conv().keeper
	if k == nil {
		return errNoKeeper
	}
	n, err := count(args, max(1, len(k.List())))
	if err != nil {
		return err
	}
	if d.conv().Busy() {
		return withHint(errors.New("a turn is running"), "stop it with Ctrl-C first")
	}
	report, done, err := restore(ui, func() (checkpoint.Report, error) { return k.PlanUndo(ctx, n) },
		func(force bool) (checkpoint.Report, error) { return k.Undo(ctx, n, force) })
	if err != nil || !done {
		return err
	}
	ui.Print(summaryOf("undone", report))
	ui.Print(checkpoint.CannotUndo)
	return d.offerRewind(ui, report)
}

func (d *desk) cmdRedo(ctx context.Context, ui repl.UI, _ string) error {
	k := d.conv().keeper
	if k == nil {
		return errNoKeeper
	}
	if d.conv().Busy() {
		return withHint(errors.New("a turn is running"), "stop it with Ctrl-C first")
	}
	report, done, err := restore(ui, nil, func(force bool) (checkpoint.Report, error) { return k.Redo(ctx, force) })
	if err != nil || !done {
		return err
	}
	printFiles(ui, report)
	ui.Print(summaryOf("redone", report))
	return nil
}

// restore lists what will be restored before it is, and asks exactly when somebody
// else changed one of the files since.
func restore(ui repl.UI, plan func() (checkpoint.Report, error), do func(force bool) (checkpoint.Report, error)) (r checkpoint.Report, done bool, err error) {
	if plan != nil {
		if r, err = plan(); err != nil {
			return r, false, err
		}
		printFiles(ui, r)
	}
	r, err = do(false)
	if errors.Is(err, checkpoint.ErrOthers) {
		if !confirmOthers(ui, r) {
			ui.Print("nothing was restored")
			return r, false, nil
		}
		r, err = do(true)
	}
	return r, err == nil, err
}

// confirmOthers lists what somebody else changed since, and asks.
func confirmOthers(ui repl.UI, r checkpoint.Report) bool {
	for _, l := range r.Others {
		ui.Warn(fmt.Sprintf("%s: %s", termtext.Line(l.Path), termtext.Line(l.Why)))
	}
	line, ok := ui.AskLine("Restore these all the same? [y/N] ")
	return ok && strings.EqualFold(strings.TrimSpace(line), "y")
}

// printFiles lists what is restored, what is not, and what git moved meanwhile.
func printFiles(ui repl.UI, r checkpoint.Report) {
	for _, c := range r.Files {
		line := fmt.Sprintf("%-9s %s", c.What, termtext.Line(c.Path))
		if c.From != "" {
			line += " (was " + termtext.Line(c.From) + ")"
		}
		ui.Print(line)
	}
	for _, l := range r.Left {
		ui.Warn(fmt.Sprintf("not restored: %s: %s", termtext.Line(l.Path), termtext.Line(l.Why)))
	}
	for _, m := range r.Moved {
		ui.Print(termtext.Line(fmt.Sprintf("git: %s moved from %s to %s since; it stays", m.Ref, refValue(m.From), refValue(m.To))))
	}
}

func summaryOf(done string, r checkpoint.Report) string {
	var labels []string
	for _, e := range r.Turns {
		labels = append(labels, strconv.Quote(termtext.Cut(termtext.Line(e.Label), 40)))
	}
	return fmt.Sprintf("%s: %s, %s", done, strings.Join(labels, ", "), plural(len(r.Files), "path", "paths"))
}

// refValue is a branch's name, or the first digits of a commit.
func refValue(s string) string {
	if s == "" {
		return "nothing"
	}
	if name, ok := strings.CutPrefix(s, "ref: "); ok {
		return strings.TrimPrefix(name, "refs/heads/")
	}
	return s[:min(len(s), 12)]
}

// offerRewind asks whether the conversation should forget the undone turns too.
func (d *desk) offerRewind(ui repl.UI, r checkpoint.Report) error {
	if len(r.Turns) == 0 {
		return nil
	}
	k := d.conv().keeper
	k.mu.Lock()
	at, known := k.turns[r.Turns[0].ID]
	k.mu.Unlock()
	if !known || at.compactions != d.conv().Compactions() || at.history > len(d.conv().History()) {
		d.conv().Emit(event.Event{Kind: event.Note, Text: "The user undid the file changes of the last turn. Read files again before you change them."})
		return nil
	}
	turns := "this turn"
	if n := len(r.Turns); n > 1 {
		turns = fmt.Sprintf("these %d turns", n)
	}
	line, ok := ui.AskLine("Shall the model forget " + turns + " too? [y/N] ")
	if !ok || !strings.EqualFold(strings.TrimSpace(line), "y") {
		d.conv().Emit(event.Event{Kind: event.Note, Text: "The user undid the file changes of the last turn. Read files again before you change them."})
		return nil
	}
	return d.conv().Rewind(at.history)
}

func (d *desk) cmdCheckpoints(_ context.Context, ui repl.UI, _ string) error {
	k := d.conv().keeper
	if k == nil {
		return errNoKeeper
	}
	list := k.List()
	if len(list) == 0 {
		ui.Print("no turn has run yet")
	}
	for i, e := range list {
		state := plural(e.Changes, "change", "changes")
		switch {
		case e.Undone:
			state = "undone"
		case !e.Kept:
			state += ", cannot be undone"
		}
		ui.Print(fmt.Sprintf("%3d  %s  %-20s %s", len(list)-i, e.Time.Local().Format("15:04"), state, termtext.Cut(termtext.Line(e.Label), 60)))
	}
	if line := k.line(); line != "" {
		ui.Print(line)
	}
	return nil
}

// place is where the conversation is now.
func (c *conversation) place() place {
	return place{history: len(c.History()), compactions: c.Compactions()}
}
