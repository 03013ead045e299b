package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/audit"
	"zcoder/internal/config"
	"zcoder/internal/demo"
	"zcoder/internal/ownfile"
	"zcoder/internal/policy"
	"zcoder/internal/proc"
	"zcoder/internal/runtimedir"
	"zcoder/internal/secret"
	"zcoder/internal/store"
	"zcoder/internal/workspace"
	"zcoder/mcp"
	"zcoder/profiles"
	"zcoder/tools"
	"zcoder/tools/file"
	"zcoder/tools/patch"
	"zcoder/tools/search"
	"zcoder/tools/shell"
)

// workbench is everything that the conversations of one process share.
type workbench struct {
	p       Process
	v       *config.Values
	home    string // $ZCODER_HOME, canonical
	scratch string // of a demonstration: its project and home; else ""
	profile profiles.Profile
	origin  approval.Origin // of what people type
	mask    *secret.Masker
	shell   shell.Program

	ws      *workspace.Workspace
	store   *store.Store
	audit   *audit.Log
	policy  *policy.Policy
	tracker *proc.Tracker
	runtime *runtimedir.Dir
	brain   *brain
	tools   *tools.Registry
	builtin []tools.Tool // all but those of skills, and finish
	readers []tools.Tool // the read-only tools, for verifiers
	guide   guidance
	system  string
	workers workers
	jobs    *jobs
	setMu   sync.Mutex // guards tools and system once turns run
	servers *mcp.Hub
	given   []byte // MCP servers that an editor names

	notices  []string // for the start
	post     *post    // nil while the relay is off
	relayOff string   // why it is

	readOnly atomic.Bool
	gate     atomic.Pointer[approval.Gate] // of the current conversation
	closers  []func() error
}

// open builds the workbench. What it opened is closed by close, also after an error.
func open(p Process, v *config.Values) (*workbench, error) {
	return openWith(p, v, func(*workbench) {})
}

// openWith is open after a change to the empty workbench.
func openWith(p Process, v *config.Values, change func(*workbench)) (*workbench, error) {
	w := &workbench{p: p, v: v, mask: secret.New(p.Env), origin: approval.OriginUser}
	change(w)
	for _, step := range []func() error{
		w.openDemo, w.openHome, w.openProfile, w.openWorkspace, w.openGuidance, w.openRuntime, w.openRecords, w.openServers, w.openTools, w.openPolicy, w.openModel,
	} {
		if err := step(); err != nil {
			return nil, errors.Join(err, w.close())
		}
	}
	return w, nil
}

func (w *workbench) onClose(f func() error) { w.closers = append(w.closers, f) }

// close releases everything, the newest first.
func (w *workbench) close() error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	w.closers = nil
	return errors.Join(errs...)
}

func (w *workbench) openHome() error {
	dir := w.v.String("home")
	if w.scratch != "" {
		dir = filepath.Join(w.scratch, "home")
	}
	home, err := makePrivate(dir)
	if err != nil {
		return fmt.Errorf("open the settings directory: %w", err)
	}
	w.home = home
	ownfile.Sweep(home)
	return nil
}

// makePrivate makes a directory of ours and returns its canonical path.
func makePrivate(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}

func (w *workbench) openProfile() error {
	profile, err := profiles.ByName(w.v.String("profile"))
	if err != nil {
		return &config.UsageError{Text: err.Error()}
	}
	w.profile = profile
	if profile.RefuseYes && w.v.String("command-policy") == "allow" {
		return &config.UsageError{
			Text:  fmt.Sprintf("the profile %s asks for every single command, so allowing all (set by %s) is refused", profile.Name, w.v.Source("command-policy")),
			Hints: []string{"leave --yes and ZCODER_COMMAND_POLICY=allow away"},
		}
	}
	w.readOnly.Store(w.v.Bool("read-only"))
	return nil
}

// Delays of the demonstration, so that it can be read along.
const (
	demoWord  = 25 * time.Millisecond
	demoFirst = 400 * time.Millisecond
)

// openDemo starts the scripted model and unpacks the sample project.
func (w *workbench) openDemo() error {
	if !w.v.Bool("demo") {
		return nil
	}
	word, first := demoWord, demoFirst
	if !isTerminal(w.p.Stdout) {
		word, first = 0, 0
	}
	url, stop, err := demo.Start(word, first)
	if err != nil {
		return err
	}
	w.onClose(func() error { stop(); return nil })
	w.brain = &brain{}
	if err := w.dial(url, demo.Model); err != nil {
		return err
	}
	return w.unpackDemo()
}

// unpackDemo makes the scratch place of a demonstration: the sample project, and
// settings of its own, so that it leaves nothing behind.
func (w *workbench) unpackDemo() error {
	dir, err := os.MkdirTemp(w.p.getenv("TMPDIR"), "zcoder-demo-")
	if err != nil {
		return fmt.Errorf("make a place for the sample project: %w", err)
	}
	w.scratch = dir
	w.onClose(func() error { return os.RemoveAll(dir) })
	project := filepath.Join(dir, "receipt")
	if err := os.Mkdir(project, 0o755); err != nil {
		return fmt.Errorf("make a place for the sample project: %w", err)
	}
	return demo.Unpack(project)
}

func (w *workbench) openWorkspace() error {
	root := w.v.String("workspace")
	if w.scratch != "" {
		root = filepath.Join(w.scratch, "receipt")
	}
	if root == "" {
		root = w.p.Dir
	}
	journal := filepath.Join(w.home, "journal")
	ws, err := workspace.Open(root, workspace.Options{SettingsDir: w.home, UserHome: w.p.UserHome, Journal: journal})
	if err != nil {
		return &config.UsageError{Text: err.Error(), Hints: []string{"name a directory with --workspace"}}
	}
	w.ws = ws
	w.onClose(ws.Close)
	if err := workspace.CleanTemps(journal); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(w.p.Stderr, "warning: temporary files of an earlier run could not be removed: %v\n", err)
	}
	return nil
}

func (w *workbench) openRuntime() error {
	dir, err := runtimedir.Open(runtimedir.Places{Runtime: w.p.getenv("XDG_RUNTIME_DIR"), Temp: w.p.getenv("TMPDIR")})
	if err != nil {
		return err
	}
	w.runtime = dir
	w.onClose(dir.Close)
	w.tracker = &proc.Tracker{}
	w.onClose(func() error { w.tracker.Close(); return nil })
	return nil
}

func (w *workbench) openRecords() error {
	var err error
	dir := sessionsDir(w.v)
	if w.scratch != "" {
		dir = filepath.Join(w.home, "sessions")
	}
	if w.store, err = store.Open(dir); err != nil {
		return err
	}
	return w.openAudit(filepath.Join(w.home, "audit"))
}

func (w *workbench) openTools() error {
	w.shell = shell.Find(w.p.getenv("PATH"))
	max := w.v.Int("max-tool-output")
	files := file.New(w.ws, file.Options{MaxOutput: max})
	found := search.New(w.ws, search.Options{MaxOutput: max})
	edit := patch.New(w.ws, patch.Options{})
	run := shell.New(w.ws, shell.Options{Shell: w.shell, Env: w.commandEnv(), MaxOutput: max, Tracker: w.tracker, KeepDetached: w.keepDetached})
	w.builtin = append(append(append([]tools.Tool{}, found...), files...), edit, run)
	if t, ok := w.delegateTool(); ok {
		w.builtin = append(w.builtin, t)
	}
	for _, t := range w.builtin {
		switch t.Spec().Name {
		case "list_files", "read_file", "read_file_range", "search":
			w.readers = append(w.readers, t)
		}
	}
	return w.assemble()
}

func (w *workbench) openModel() error {
	if w.brain == nil {
		w.brain = &brain{}
		if err := w.dial(w.v.String("host"), w.v.String("model")); err != nil {
			return err
		}
	}
	b := w.brain
	b.explicit, b.keepAlive = w.v.Int("context-window"), w.v.String("keep-alive")
	b.fallback = w.v.Int("context-fallback")
	b.think = map[string]string{"true": "on", "false": "off"}[w.v.String("think")]
	if b.think == "" {
		b.think = w.v.String("think")
	}
	b.asked = w.v.Source("think") != "default"
	b.memory = windowMemory(w.home)
	return w.assembleLite()
}

// dial points the brain at a server and a model.
func (w *workbench) dial(host, model string) error {
	client, err := w.newClient(host)
	if err != nil {
		return err
	}
	w.brain.use(client, model)
	return nil
}

// recordSwitch notes in the audit that another session is the current one.
func (w *workbench) recordSwitch(id string) {
	// A record that fails is refused again, and said, with the next action.
	_ = w.audit.Record(approval.Record{Kind: "session", Detail: id})
}

// conversationFor is the one that the flags ask for: a new one, the newest, or one
// by its id.
func (w *workbench) conversationFor(ctx context.Context, unattended bool) (*conversation, error) {
	w.noteGuidance()
	w.openJobs(ctx)
	id := w.v.String("resume")
	if w.v.Bool("continue") && id != "" {
		return nil, &config.UsageError{Text: "both --resume and --continue are given", Hints: []string{"give one of them"}}
	}
	if w.v.Bool("continue") {
		list, err := w.store.List(w.ws.Root(), w.profile.Name)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, &config.UsageError{Text: "there is no earlier session of this workspace and profile", Hints: []string{"leave --continue away to start one"}}
		}
		id = list[0].ID
	}
	var c *conversation
	var err error
	if id == "" {
		c, err = w.start(unattended)
	} else {
		c, err = w.resumeOrList(id, unattended)
	}
	if err != nil {
		return nil, err
	}
	w.recordSwitch(c.Info().ID)
	return c, nil
}

// resumeOrList resumes a session; for an unknown id the error lists what there is.
func (w *workbench) resumeOrList(id string, unattended bool) (*conversation, error) {
	c, notice, err := w.resume(id, unattended)
	if errors.Is(err, store.ErrUnknown) {
		return nil, w.unknownSession(id)
	}
	if err != nil {
		return nil, err
	}
	if notice != "" {
		fmt.Fprintln(w.p.Stderr, "note: "+notice)
	}
	return c, nil
}

func (w *workbench) unknownSession(id string) error {
	list, err := w.store.List(w.ws.Root(), w.profile.Name)
	if err != nil {
		return err
	}
	usage := &config.UsageError{Text: fmt.Sprintf("there is no session %q in this workspace and profile", id)}
	for _, info := range list {
		usage.Hints = append(usage.Hints, sessionLine(info, time.Now()))
	}
	if len(list) == 0 {
		usage.Hints = []string{"no session was stored here yet"}
	}
	return usage
}
