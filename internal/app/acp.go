package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"zcoder/internal/acp"
	"zcoder/internal/approval"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/internal/termtext"
	"zcoder/profiles"
)

// runEditor speaks the Agent Client Protocol with the editor at the other end of stdin
// and stdout, until that goes or a signal comes.
func runEditor(ctx context.Context, p Process, v *config.Values) (int, error) {
	if err := editorUsage(v); err != nil {
		return statusUsage, err
	}
	if isTerminal(p.Stdin) {
		fmt.Fprintln(p.Stderr, "note: --acp is for editors, which start zcoder themselves; Ctrl-C ends it")
	}
	ctx, stop, caught := catchSignals(ctx)
	defer stop()
	// An editor that went away is an error of a write, not the end of the process.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	out := p.Stdout
	p.Stdout = p.Stderr // nothing but the protocol goes to the editor
	var err error
	if v.String("connect") != "" {
		err = bridgeEditor(ctx, p, v, out)
	} else {
		err = serveEditor(ctx, p, out, &editorHost{p: p, v: v})
	}
	if s := caught(); s != 0 {
		return s, nil
	}
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		return statusFailed, err
	}
	return statusOK, nil
}

func serveEditor(ctx context.Context, p Process, out io.Writer, h acp.Host) error {
	return acp.Serve(ctx, p.Stdin, out, h, acp.Options{
		Version: version, NewID: newRequestID,
		Log: func(line string) { fmt.Fprintln(p.Stderr, termtext.Line(line)) },
	})
}

// editorUsage refuses flags whose values the editor gives.
func editorUsage(v *config.Values) error {
	flag := ""
	switch {
	case v.String("prompt") != "" || len(v.Args()) > 0:
		flag = "a prompt"
	case v.String("resume") != "":
		flag = "--resume"
	case v.Bool("continue"):
		flag = "--continue"
	case strings.HasPrefix(v.Source("workspace"), "flag"):
		flag = "--workspace"
	case v.Bool("json"):
		flag = "--json"
	case v.String("server") != "":
		flag = "--server"
	}
	switch {
	case flag != "":
		return &config.UsageError{Text: fmt.Sprintf("both --acp and %s are given", flag), Hints: []string{"the editor chooses the workspace and the session, and sends the prompts"}}
	case v.Bool("demo"):
		return &config.UsageError{Text: "both --acp and --demo are given", Hints: []string{"give one of them"}}
	}
	return nil
}

// editorHost opens the conversations of an editor: each with a workbench of its own, so
// that they do not disturb each other. It implements acp.Host.
type editorHost struct {
	p Process
	v *config.Values // of the command line; conversations load their own
}

// Modes implements acp.Host.
func (*editorHost) Modes() []acp.Mode {
	about := map[string]string{
		profiles.Coding:   "work on the files of the workspace; commands ask unless rules allow them",
		profiles.Sysadmin: "look after this machine; every single command asks",
	}
	var list []acp.Mode
	for _, name := range profiles.Names() {
		list = append(list, acp.Mode{ID: name, Name: name, About: about[name]})
	}
	return list
}

// Images implements acp.Host: it asks about the model that a session here begins with.
func (e *editorHost) Images(ctx context.Context) bool {
	w := &workbench{p: e.p, v: e.v, brain: &brain{}}
	if w.openHome() != nil {
		return false
	}
	model := e.v.String("model")
	if kept := readMemory(modelMemory(w.home))[canonical(e.p, e.v)]; kept != "" && e.v.Source("model") == "default" {
		model = kept
	}
	if w.dial(e.v.String("host"), model) != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, modelPatience)
	defer cancel()
	facts, err := w.brain.known(ctx)
	return err == nil && facts.Vision
}

// List implements acp.Host.
func (e *editorHost) List(_ context.Context, dir string) ([]acp.Listed, error) {
	st, err := store.Open(sessionsDir(e.v))
	if err != nil {
		return nil, err
	}
	list, err := st.List(realDir(dir), "")
	if err != nil {
		return nil, err
	}
	var out []acp.Listed
	for _, i := range list {
		at := i.Workspace
		if dir != "" {
			at = dir // the same place, as the editor names it
		}
		out = append(out, acp.Listed{ID: i.ID, Dir: at, Title: i.Title, Changed: i.Changed})
	}
	return out, nil
}

// realDir is a directory as sessions store it; none stays none.
func realDir(dir string) string {
	if dir == "" {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// Open implements acp.Host.
func (e *editorHost) Open(ctx context.Context, s acp.Start) (acp.Conversation, error) {
	if !isDir(s.Dir) {
		return nil, fmt.Errorf("the directory %q does not exist", s.Dir)
	}
	given, err := givenServers(s.Servers)
	if err != nil {
		return nil, err
	}
	seat := &editorSeat{host: e, ctx: ctx, dir: s.Dir, given: given}
	if s.Session == "" {
		seat.at, err = e.sit(ctx, seat.place(e.v.String("profile")), func(w *workbench) (*conversation, error) { return w.conversationFor(ctx, false) })
		return seat, err
	}
	info, err := e.stored(s.Session, s.Dir)
	if err != nil {
		return nil, err
	}
	profile := info.Profile
	if profile == "" {
		profile = e.v.String("profile")
	}
	seat.at, err = e.sit(ctx, seat.place(profile), func(w *workbench) (*conversation, error) { return w.goOn(ctx, s.Session) })
	return seat, err
}

// stored finds a stored session that may go on in a directory: where it was held, or
// anywhere when that is gone.
func (e *editorHost) stored(id, dir string) (event.Session, error) {
	st, err := store.Open(sessionsDir(e.v))
	if err != nil {
		return event.Session{}, err
	}
	loaded, err := st.Load(id)
	if errors.Is(err, store.ErrUnknown) {
		return event.Session{}, fmt.Errorf("session %q: %w", id, acp.ErrUnknown)
	}
	if err != nil {
		return event.Session{}, err
	}
	info := loaded.Session()
	if info.Workspace != realDir(dir) && isDir(info.Workspace) {
		return info, withHint(fmt.Errorf("the session %s was held in %s", id, info.Workspace), "open that directory to go on with it")
	}
	return info, nil
}

// goOn goes on with a stored session under its own id.
func (w *workbench) goOn(ctx context.Context, id string) (*conversation, error) {
	w.noteGuidance()
	w.openJobs(ctx)
	log, loaded, err := w.store.Resume(id)
	if errors.Is(err, store.ErrInUse) {
		return nil, withHint(fmt.Errorf("the session %s is open in another zcoder", id), "end it there first")
	}
	if err != nil {
		return nil, err
	}
	c := w.converse(id, log, loaded.Events, false)
	if from := loaded.Session().Workspace; from != "" && from != w.ws.Root() {
		c.tellMoved(from, w.ws.Root())
	}
	w.recordSwitch(id)
	return c, nil
}

// renew begins the session of an id that nothing was stored of.
func (w *workbench) renew(ctx context.Context, id string) (*conversation, error) {
	w.noteGuidance()
	w.openJobs(ctx)
	log, err := w.store.Create(id)
	if err != nil {
		return nil, err
	}
	w.recordSwitch(id)
	return w.converse(id, log, nil, false), nil
}

// editorPlace is where and how a conversation is held.
type editorPlace struct {
	dir, profile string
	given        []byte // the editor's MCP servers
}

// bench opens the workbench of a conversation, with the settings of the command line.
func (e *editorHost) bench(at editorPlace) (*workbench, error) {
	args := e.p.Args
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	args = append(slices.Clone(args), "--workspace="+at.dir, "--profile="+at.profile)
	v, err := config.Load(sources(e.p, args))
	if err != nil {
		return nil, err
	}
	return openWith(e.p, v, func(w *workbench) {
		w.given = at.given
		w.relayOff = "instances that an editor runs take no part"
		w.origin = approval.OriginUser
	})
}

// sit opens a workbench and a conversation on it.
func (e *editorHost) sit(ctx context.Context, at editorPlace, begin func(*workbench) (*conversation, error)) (*sitting, error) {
	w, err := e.bench(at)
	if err != nil {
		return nil, err
	}
	s, err := w.seat(ctx, begin)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return s, nil
}

// sitting is a workbench with its conversation, as an editor has it.
type sitting struct {
	*host
	warmed  func()   // ends the warm-up
	notices []string // that the person was not told yet
}

// seat begins a conversation on the workbench.
func (w *workbench) seat(ctx context.Context, begin func(*workbench) (*conversation, error)) (*sitting, error) {
	c, err := begin(w)
	if err != nil {
		return nil, err
	}
	s := &sitting{host: &host{desk: newDesk(ctx, w, c)}}
	asking, cancel := context.WithTimeout(ctx, modelPatience)
	defer cancel()
	if err := w.ensureModel(asking, nil); err != nil {
		w.notices = append(w.notices, "warning: "+errorText(err))
	}
	s.notices = w.startNotices()
	for _, notice := range s.notices {
		fmt.Fprintln(w.p.Stderr, termtext.Line(notice))
	}
	w.startServers(ctx, false)
	s.warmed = w.warmUp(ctx)
	return s, nil
}

func (s *sitting) close() error {
	s.warmed()
	return errors.Join(s.host.close(), s.w.close())
}

// tell emits the notices of the start, before the first turn.
func (s *sitting) tell() {
	for _, notice := range s.notices {
		kind := event.Info
		text, warned := strings.CutPrefix(notice, "warning: ")
		if warned {
			kind = event.Warning
		}
		s.conv().Emit(event.Event{Kind: kind, Text: strings.TrimPrefix(text, "note: ")})
	}
	s.notices = nil
}
