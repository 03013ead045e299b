package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"zcoder/internal/approval"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// maxTitle bounds a title that a person gives, in characters.
const maxTitle = 200

// cleanTitle makes one line of a title.
func cleanTitle(text string) (string, error) {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if text == "" {
		return "", errors.New("the title is empty")
	}
	if r := []rune(text); len(r) > maxTitle {
		return "", fmt.Errorf("the title has %d characters, at most %d are possible", len(r), maxTitle)
	}
	return text, nil
}

// sessionLine describes a session in a list: id, age, turns, title.
func sessionLine(info store.Info, now time.Time) string {
	title := info.Title
	if title == "" {
		title = "(no title)"
	}
	return fmt.Sprintf("%-21s  %-8s %8s  %s", info.ID, age(now.Sub(info.Changed)), plural(info.Turns, "turn", "turns"), termtext.Line(title))
}

// sessionLineIn also says where the session was held, and whether that is gone.
func sessionLineIn(info store.Info, now time.Time, short func(string) string) string {
	line := sessionLine(info, now) + "  · " + termtext.Line(short(info.Workspace))
	if !isDir(info.Workspace) {
		line += " (gone)"
	}
	if info.Profile != "" && info.Profile != "coding" {
		line += " · " + termtext.Line(info.Profile)
	}
	return line
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (d *desk) cmdSessions(_ context.Context, ui repl.UI, args string) error {
	verb, rest, _ := strings.Cut(args, " ")
	rest = strings.TrimSpace(rest)
	if verb == "all" && d.w.origin == approval.OriginRemote {
		return withHint(errors.New("a server offers the conversations of its own workspace alone"), "/sessions lists them")
	}
	switch verb {
	case "", "all":
		return d.pickSession(ui, verb == "all")
	case "rename":
		return d.renameSession(ui, rest)
	case "delete":
		return d.deleteSession(ui, rest)
	case "search":
		return d.searchSessions(ui, rest)
	}
	if rest != "" {
		return withHint(fmt.Errorf("/sessions %q", args), "say /sessions, /sessions ID, all, search TEXT, rename [ID] TITLE or delete ID")
	}
	return d.goTo(ui, verb)
}

// pickSession lets the person choose, in this workspace or in all.
func (d *desk) pickSession(ui repl.UI, all bool) error {
	root, profile, title := d.w.ws.Root(), d.w.profile.Name, "Conversations in "+termtext.Line(d.w.shortPath(d.w.ws.Root()))
	if all {
		root, profile, title = "", "", "Conversations everywhere"
	}
	list, err := d.w.store.List(root, profile)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		ui.Print("no earlier conversations here; /sessions all lists those of every workspace")
		return nil
	}
	items, at := make([]string, len(list)), 0
	for i, info := range list {
		items[i] = sessionLine(info, time.Now())
		if all {
			items[i] = sessionLineIn(info, time.Now(), d.w.shortPath)
		}
		if info.ID == d.conv().Info().ID {
			at = i
		}
	}
	i, ok := ui.Choose(title, items, at)
	if !ok {
		return nil
	}
	return d.goTo(ui, list[i].ID)
}

// goTo goes on with another session.
func (d *desk) goTo(ui repl.UI, id string) error {
	if id == d.conv().Info().ID {
		ui.Print("that is the current conversation")
		return nil
	}
	if err := d.offered(id); err != nil {
		return withHint(err, "/sessions lists what there is")
	}
	c, notice, err := d.w.resume(id, false)
	if err != nil {
		return withHint(err, "/sessions lists what there is")
	}
	if err := d.switchTo(ui, c, "resumed "+id); err != nil {
		return err
	}
	if notice != "" {
		ui.Warn(notice)
	}
	return nil
}

// offered reports an error that wraps store.ErrUnknown for a conversation that is not the
// person's to have: whoever comes from afar has those of this workspace and profile alone.
func (d *desk) offered(id string) error {
	if d.w.origin != approval.OriginRemote {
		return nil
	}
	list, err := d.w.store.List(d.w.ws.Root(), d.w.profile.Name)
	if err != nil {
		return err
	}
	if id != d.conv().Info().ID && !slices.ContainsFunc(list, func(i store.Info) bool { return i.ID == id }) {
		return fmt.Errorf("find the conversation %q: %w", id, store.ErrUnknown)
	}
	return nil
}

// sessionID is the form of an id, to tell one from the first word of a title.
var sessionID = regexp.MustCompile(`^[0-9]+_[0-9]+$`)

func (d *desk) renameSession(ui repl.UI, args string) error {
	id := d.conv().Info().ID
	if first, rest, _ := strings.Cut(args, " "); sessionID.MatchString(first) {
		id, args = first, rest
	}
	title, err := cleanTitle(args)
	if err != nil {
		return withHint(err, "/sessions rename TITLE, or rename ID TITLE")
	}
	if id == d.conv().Info().ID {
		d.conv().Emit(event.Event{Kind: event.Titled, Text: title})
	} else if err := d.offered(id); err != nil {
		return err
	} else if err := d.w.store.Rename(id, title, time.Now()); err != nil {
		return err
	}
	ui.Print("renamed to " + title)
	return nil
}

func (d *desk) deleteSession(ui repl.UI, id string) error {
	switch {
	case id == "":
		return withHint(errors.New("/sessions delete needs an id"), "/sessions lists them")
	case id == d.conv().Info().ID:
		return withHint(errors.New("that is the current conversation"), "/new starts another one; then delete it")
	}
	if err := d.offered(id); err != nil {
		return err
	}
	if err := d.w.store.Remove(id); err != nil {
		return err
	}
	ui.Print("deleted " + id)
	return nil
}

func (d *desk) searchSessions(ui repl.UI, text string) error {
	if text == "" {
		return withHint(errors.New("/sessions search needs a text"), "/sessions search TEXT")
	}
	hits, err := d.w.store.Search(text, d.w.ws.Root(), d.w.profile.Name)
	if err != nil {
		return err
	}
	if len(hits) == 0 {
		ui.Print("nothing found in the conversations of this workspace")
		return nil
	}
	ui.Print(strings.Join(hitText(hits, func(i store.Info) string { return sessionLine(i, time.Now()) }), "\n"))
	return nil
}

func hitText(hits []store.Hit, head func(store.Info) string) []string {
	var lines []string
	for _, h := range hits {
		lines = append(lines, head(h.Info))
		for _, line := range h.Lines {
			lines = append(lines, "    "+termtext.Line(cutText(line, 160)))
		}
	}
	return lines
}

func cutText(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func (d *desk) completeSession(prefix string) []string {
	list, err := d.w.store.List(d.w.ws.Root(), d.w.profile.Name)
	if err != nil {
		return nil
	}
	before := ""
	if i := strings.LastIndexByte(prefix, ' '); i >= 0 {
		before = prefix[:i+1]
	}
	var names []string
	if before == "" {
		names = []string{"all", "delete", "rename", "search"}
	}
	for _, info := range list {
		names = append(names, before+info.ID)
	}
	var fit []string
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			fit = append(fit, name)
		}
	}
	return fit
}

// resume goes on with a stored conversation. One that is open in another process is
// continued as a copy. What does not fit here any more is said; nothing that was
// granted before holds.
func (w *workbench) resume(id string, unattended bool) (*conversation, string, error) {
	var notices []string
	log, loaded, err := w.store.Resume(id)
	if errors.Is(err, store.ErrInUse) && w.origin == approval.OriginRemote {
		// A client asked for this one by its id.
		return nil, "", withHint(fmt.Errorf("the session %s is open in another zcoder", id), "end that one first, or begin a new one with /new")
	}
	if errors.Is(err, store.ErrInUse) {
		from := id
		id, log, loaded, err = w.copySession(id)
		notices = append(notices, fmt.Sprintf("the session %s is open in another zcoder; this is a copy of it, %s", from, id))
	}
	if err != nil {
		return nil, "", err
	}
	info := loaded.Session()
	if info.Profile != "" && info.Profile != w.profile.Name {
		notices = append(notices, fmt.Sprintf("this session was held in the profile %s; the rules of %s hold now", info.Profile, w.profile.Name))
	}
	if loaded.Bad > 0 {
		notices = append(notices, fmt.Sprintf("%d damaged lines of the session were set aside", loaded.Bad))
	}
	c := w.converse(id, log, loaded.Events, unattended)
	if from := info.Workspace; from != "" && from != w.ws.Root() {
		notices = append(notices, w.movedNotice(id, from))
		c.tellMoved(from, w.ws.Root())
	}
	return c, termtext.Line(strings.Join(notices, "; ")), nil
}

func (w *workbench) movedNotice(id, from string) string {
	if isDir(from) {
		return fmt.Sprintf("this session was held in %s, and goes on in %s; zcoder --workspace %s --resume %s goes on there", from, w.ws.Root(), shellWord(from), id)
	}
	return fmt.Sprintf("this session was held in %s, which is gone; it goes on in %s", from, w.ws.Root())
}

// shellWord quotes a path or an address for a shell.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/.-_:@,+~", r) || unicode.IsLetter(r) || unicode.IsDigit(r)
	}
	if word != "" && word[0] != '~' && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// tellMoved tells the model, once, that the files are elsewhere now.
func (c *conversation) tellMoved(from, to string) {
	text := fmt.Sprintf("This conversation was held in the workspace %q before. The workspace is %q now: look at its files anew.", from, to)
	history := c.History()
	for i := len(history) - 1; i >= 0; i-- {
		if m := history[i]; m.Note && strings.HasPrefix(m.Content, "This conversation was held in the workspace ") {
			if m.Content == text {
				return
			}
			break
		}
	}
	c.Emit(event.Event{Kind: event.Note, Text: text})
}

// copySession stores a copy of a session that is open elsewhere, without the input
// that waits there.
func (w *workbench) copySession(id string) (string, *store.Log, store.Loaded, error) {
	loaded, err := w.store.Load(id)
	if err != nil {
		return "", nil, store.Loaded{}, err
	}
	next := store.NewID(time.Now(), rand.Uint32())
	log, err := w.store.Create(next)
	if err != nil {
		return "", nil, store.Loaded{}, err
	}
	kept := loaded.Events[:0]
	for _, e := range loaded.Events {
		switch e.Kind {
		case event.Queued, event.Unqueued:
			continue
		case event.Opened:
			info := *e.Session
			info.ID = next
			e.Session = &info
		}
		kept = append(kept, e)
		if err := log.Append(e); err != nil {
			return "", nil, store.Loaded{}, errors.Join(err, log.Close())
		}
	}
	loaded.Events = kept
	return next, log, loaded, nil
}

// sessionsCommand is `zcoder sessions`.
func sessionsCommand() subcommand {
	var all, asJSON, asMarkdown bool
	sub := config.Sub{
		Name: "sessions", Usage: "[list] | show ID | rename ID TITLE | delete ID… | export ID | search TEXT",
		Meaning: "list, show, rename, delete, export and search the stored sessions of this workspace", Settings: []string{"profile"},
		Flags: func(s *pflag.FlagSet) {
			s.BoolVar(&all, "all", false, "list or search: of every workspace and profile")
			s.BoolVar(&asJSON, "json", false, "list or export as JSON")
			s.BoolVar(&asMarkdown, "markdown", false, "export as Markdown (what export does anyway)")
		},
	}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		st, err := store.Open(sessionsDir(v))
		if err != nil {
			return statusFailed, err
		}
		s := &sessionShelf{p: p, store: st, all: all, asJSON: asJSON, root: canonical(p, v), profile: v.String("profile")}
		if all {
			s.root, s.profile = "", ""
		}
		if asJSON && asMarkdown {
			return statusUsage, subUsage("sessions", "--json and --markdown are one too many")
		}
		return s.run(v.Args())
	}}
}

// sessionShelf is what the subcommand works on.
type sessionShelf struct {
	p             Process
	store         *store.Store
	all, asJSON   bool
	root, profile string
}

func (s *sessionShelf) run(args []string) (int, error) {
	verb, rest := "list", args
	if len(args) > 0 {
		verb, rest = args[0], args[1:]
	}
	var err error
	switch {
	case verb == "list" && len(rest) == 0:
		err = s.list()
	case verb == "show" && len(rest) == 1:
		err = s.show(rest[0])
	case verb == "export" && len(rest) == 1:
		err = s.export(rest[0])
	case verb == "rename" && len(rest) >= 2:
		err = s.rename(rest[0], strings.Join(rest[1:], " "))
	case verb == "delete" && len(rest) >= 1:
		err = s.delete(rest)
	case verb == "search" && len(rest) >= 1:
		return s.search(strings.Join(rest, " "))
	default:
		return statusUsage, subUsage("sessions", "say list, show ID, rename ID TITLE, delete ID, export ID or search TEXT")
	}
	if errors.Is(err, store.ErrUnknown) {
		return statusUsage, &config.UsageError{Text: err.Error(), Hints: []string{"zcoder sessions --all lists what there is"}}
	}
	if err != nil {
		return statusFailed, err
	}
	return statusOK, nil
}

// line describes a session, with its workspace when all are listed.
func (s *sessionShelf) line(info store.Info) string {
	if !s.all {
		return sessionLine(info, time.Now())
	}
	return sessionLineIn(info, time.Now(), func(path string) string { return shortPath(path, s.p.UserHome) })
}

func (s *sessionShelf) list() error {
	list, err := s.store.List(s.root, s.profile)
	if err != nil {
		return err
	}
	if s.asJSON {
		return writeJSON(s.p.Stdout, list)
	}
	for _, info := range list {
		fmt.Fprintln(s.p.Stdout, s.line(info))
	}
	if len(list) == 0 {
		fmt.Fprintln(s.p.Stderr, "no sessions here; --all lists those of every workspace")
	}
	return nil
}

func writeJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}

func (s *sessionShelf) rename(id, title string) error {
	title, err := cleanTitle(title)
	if err != nil {
		return err
	}
	return s.store.Rename(id, title, time.Now())
}

func (s *sessionShelf) delete(ids []string) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, s.store.Remove(id))
	}
	return errors.Join(errs...)
}

// search prints what was found, and returns 1 for nothing.
func (s *sessionShelf) search(text string) (int, error) {
	hits, err := s.store.Search(text, s.root, s.profile)
	if err != nil {
		return statusFailed, err
	}
	for _, line := range hitText(hits, s.line) {
		fmt.Fprintln(s.p.Stdout, line)
	}
	if len(hits) == 0 {
		return statusFailed, nil
	}
	return statusOK, nil
}

// show prints a session in short: each request and how its turn ended.
func (s *sessionShelf) show(id string) error {
	record, err := loadTranscript(s.store, id)
	if err != nil {
		return err
	}
	fmt.Fprintln(s.p.Stdout, termtext.Safe(strings.Join(record.brief(), "\n")))
	return nil
}

func (s *sessionShelf) export(id string) error {
	record, err := loadTranscript(s.store, id)
	if err != nil {
		return err
	}
	if s.asJSON {
		return writeJSON(s.p.Stdout, record)
	}
	text := record.markdown()
	if isTerminal(s.p.Stdout) {
		text = termtext.Safe(text)
	}
	_, err = io.WriteString(s.p.Stdout, text)
	return err
}

// shortPath writes the home directory as ~.
func shortPath(path, home string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(home, "/")+"/"); ok {
		return "~/" + rest
	}
	return path
}

func sessionsDir(v *config.Values) string {
	if dir := v.String("sessions-dir"); dir != "" {
		return dir
	}
	return homePath(v, "sessions")
}
