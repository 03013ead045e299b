package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/event"
	"zcoder/internal/termtext"
	"zcoder/relay"
	"zcoder/repl"
	"zcoder/tools"
	"zcoder/tools/peer"
)

// Bounds of what is sent to other instances.
const (
	maxSends   = 8 // messages in one turn of the local user
	maxReplies = 3 // answers to one sender between two turns of the local user: a chain of instances ends there
)

// post is this process among the other instances, and what the running turn may send
// to them. A nil post is a relay that is off: its methods do nothing.
type post struct {
	w    *workbench
	node *relay.Node

	mu      sync.Mutex
	session string
	working *relay.Envelope // the message whose turn runs or is about to
	errand  *errand         // of the running turn
	replies map[string]int  // by sender, since the local user's last turn
	trouble string          // what was told last of the registry
}

// relayRows are the settings of the relay. A wrong one switches it off.
var relayRows = [...]string{"relay", "relay-dir", "relay-max-bytes", "relay-max-message-chars", "relay-max-queue", "relay-io-timeout"}

// openRelay makes this REPL an instance that others find. Whatever stands in the way
// is one warning, and the program works without.
func (w *workbench) openRelay(ctx context.Context, session string) {
	node, err := w.newNode(ctx, session)
	if err != nil {
		w.relayOff = err.Error()
		fmt.Fprintf(w.p.Stderr, "warning: other instances cannot reach this one: %s\nhint: ZCODER_RELAY=off switches the relay off, ZCODER_RELAY_DIR puts it elsewhere\n", termtext.Line(w.relayOff))
		return
	}
	if node == nil {
		w.relayOff = "it is switched off"
		return
	}
	w.onClose(node.Close)
	w.post = &post{w: w, node: node, session: session, replies: map[string]int{}}
}

// newNode returns nil when the relay is not wanted.
func (w *workbench) newNode(ctx context.Context, session string) (*relay.Node, error) {
	for _, name := range relayRows {
		if problem := w.v.Problem(name); problem != "" {
			return nil, errors.New(problem)
		}
	}
	mode := w.v.String("relay")
	if mode == "false" || w.scratch != "" {
		return nil, nil
	}
	uid := os.Geteuid()
	dir := relay.Directory(relay.Places{Set: w.v.String("relay-dir"), Runtime: w.p.getenv("XDG_RUNTIME_DIR"), Temp: w.p.getenv("TMPDIR"), UID: uid})
	if w.inWorkspace(dir) {
		return nil, fmt.Errorf("the relay directory %q lies in the workspace, where the model writes", dir)
	}
	return relay.Open(ctx, relay.Options{
		Directory: dir, Spool: filepath.Join(w.runtime.Path(), "relay"), UID: uid, PID: os.Getpid(),
		Self: w.self(session), Paused: mode == "paused", Now: time.Now,
		Limits: relay.Limits{
			FrameBytes: w.v.Int("relay-max-bytes"), MessageChars: w.v.Int("relay-max-message-chars"),
			Queue: w.v.Int("relay-max-queue"), IOTimeout: w.v.Duration("relay-io-timeout"),
		},
	})
}

func (w *workbench) inWorkspace(dir string) bool {
	if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(real, filepath.Base(dir))
	}
	rel, err := filepath.Rel(w.ws.Root(), dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// self is what other instances read of this one.
func (w *workbench) self(session string) relay.Self {
	root := w.ws.Root()
	return relay.Self{Project: relay.Project(root), Workspace: root, Session: session, Profile: w.profile.Name, Model: w.model()}
}

// describe tells others which session and model are current.
func (p *post) describe(session string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = session
	p.publish(p.errand != nil)
}

// publish keeps what goes wrong for the end of the turn.
func (p *post) publish(busy bool) {
	p.trouble = ""
	if err := p.node.Set(context.Background(), p.w.self(p.session), busy); err != nil {
		p.trouble = err.Error()
	}
}

// turnStarts adds the tools of a turn that may send: those that list instances and
// write to one. Other turns have neither, so that their prompt is the same in every
// mode of the program.
func (p *post) turnStarts(session string, in event.Input, cfg *agent.Config) {
	if p == nil {
		return
	}
	asked := in.Peer == nil && p.asked(in.Text)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.session = session
	p.publish(true)
	p.errand = p.leave(in, asked)
	if p.errand.left <= 0 {
		return
	}
	extra := []tools.Tool{
		peer.List(p.node),
		peer.Send(p.node, peer.Options{Leave: p.errand, Mask: p.w.mask.Mask, MaxChars: p.w.v.Int("relay-max-message-chars")}),
	}
	if prepare := cfg.Prepare; prepare != nil {
		cfg.Prepare = func(ctx context.Context) (agent.Setup, error) {
			setup, err := prepare(ctx)
			if setup.Tools != nil {
				setup.Tools = withTools(setup.Tools, extra...)
			}
			return setup, err
		}
	}
	cfg.Tools = withTools(cfg.Tools, extra...)
}

// asked decides whether the local user's text asks to contact another instance.
func (p *post) asked(text string) bool {
	if peer.AsksToTell(text) {
		return true
	}
	named, err := p.node.Peers(context.Background(), func(other relay.Peer) bool { return peer.Names(text, other) })
	return err == nil && len(named) > 0
}

// leave is what the turn may send: the local user's to whom the user says, a relayed
// one's once to its sender.
func (p *post) leave(in event.Input, asked bool) *errand {
	e := &errand{}
	switch {
	case in.Peer != nil:
		sender := in.Peer.Instance
		if p.replies[sender] < maxReplies {
			e.only, e.left = sender, 1
			e.sent = func() { p.mu.Lock(); defer p.mu.Unlock(); p.replies[sender]++ }
		}
		return e
	case asked:
		e.left = maxSends
	}
	clear(p.replies)
	return e
}

// turnEnds takes the leave back and finishes the message that the turn was about. It
// returns what the person should know.
func (p *post) turnEnds() []string {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errand.revoke()
	p.errand = nil
	var notices []string
	if p.working != nil {
		if err := p.node.Done(*p.working); err != nil {
			notices = append(notices, "relay: "+err.Error())
		}
		p.working = nil
	}
	before := p.trouble
	if p.publish(false); p.trouble != "" && p.trouble != before {
		notices = append(notices, "other instances cannot reach this one: "+p.trouble)
	}
	return notices
}

// errand is one turn's leave to send. It implements peer.Leave.
type errand struct {
	only string // the one instance, or "" for any
	sent func() // called for each message that goes

	mu   sync.Mutex
	left int
}

// May implements peer.Leave.
func (e *errand) May(instance string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.refusal(instance)
}

func (e *errand) refusal(instance string) error {
	switch {
	case e.left <= 0:
		return errors.New("no more messages may be sent in this turn")
	case e.only != "" && e.only != instance:
		return fmt.Errorf("in this turn only instance %s, which asked, may be written to", e.only)
	}
	return nil
}

// Spend implements peer.Leave.
func (e *errand) Spend(instance string) error {
	e.mu.Lock()
	err := e.refusal(instance)
	if err == nil {
		e.left--
	}
	e.mu.Unlock()
	if err == nil && e.sent != nil {
		e.sent()
	}
	return err
}

func (e *errand) revoke() {
	if e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.left = 0
	}
}

// withTools is a registry with more behind its tools, whose names nobody else has.
func withTools(base *tools.Registry, more ...tools.Tool) *tools.Registry {
	var list []tools.Tool
	for _, name := range base.Names() {
		if t, err := base.Lookup(name); err == nil {
			list = append(list, t)
		}
	}
	reg, err := tools.NewRegistry(append(list, more...)...)
	if err != nil {
		return base // a tool has one of the names, and came first
	}
	return reg
}

// incoming takes the next message for the REPL to start.
func (d *desk) incoming() (event.Input, bool) {
	p := d.w.post
	if p == nil {
		return event.Input{}, false
	}
	e, ok, err := p.node.Claim()
	if err != nil { // about its file; the message is whole
		d.conv().Emit(event.Event{Kind: event.Warning, Text: "relay: " + err.Error()})
	}
	if !ok {
		return event.Input{}, false
	}
	p.mu.Lock()
	p.working = &e
	p.mu.Unlock()
	return event.Input{Text: e.Record(), Peer: &event.Peer{
		Instance: e.Sender, PID: e.PID, Project: e.Project, Workspace: e.Workspace, Message: e.Body,
	}}, true
}

// relays reports whether a message of another instance is being worked on.
func (p *post) relays() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.working != nil
}

func (p *post) arrived() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.node.Arrived()
}

// backlog says how many messages wait, "" for none.
func (p *post) backlog() string {
	if p == nil || p.node.Depth() == 0 {
		return ""
	}
	return plural(p.node.Depth(), "message waits", "messages wait")
}

func (d *desk) relayCommands() []repl.Command {
	return []repl.Command{
		{Name: "list-agents", Help: "list the other instances that run now", DuringTurn: true, Run: d.cmdListAgents},
		{Name: "agents", Usage: "[pause|resume|drop ID]", Help: "show this instance and the messages that wait, refuse new ones, drop one", DuringTurn: true, Run: d.cmdAgents},
	}
}

func (d *desk) relayIsOff() error {
	return withHint(fmt.Errorf("the relay is off: %s", d.w.relayOff), "`zcoder help relay` tells of its settings")
}

func (d *desk) cmdListAgents(ctx context.Context, ui repl.UI, _ string) error {
	if d.w.post == nil {
		return d.relayIsOff()
	}
	peers, err := d.w.post.node.Peers(ctx, nil)
	if err != nil {
		return err
	}
	if len(peers) == 0 {
		ui.Print("no other instance runs")
		return nil
	}
	for _, p := range peers {
		ui.Print(fmt.Sprintf("%s  %s  %s  %s  %s  %s", p.ID, termtext.Line(p.Project), p.State, termtext.Line(p.Profile), termtext.Line(p.Model), termtext.Line(d.w.shortPath(p.Workspace))))
	}
	return nil
}

func (d *desk) cmdAgents(ctx context.Context, ui repl.UI, arg string) error {
	p := d.w.post
	if p == nil {
		return d.relayIsOff()
	}
	verb, id, _ := strings.Cut(arg, " ")
	id = strings.TrimSpace(id)
	switch verb {
	case "":
	case "pause", "resume":
		if err := p.node.Pause(ctx, verb == "pause"); err != nil {
			return err
		}
	case "drop":
		e, err := p.node.Drop(id)
		if err != nil {
			return withHint(fmt.Errorf("drop %q: %w", id, err), "/agents lists what waits")
		}
		ui.Print(fmt.Sprintf("dropped message %d of %s", e.Number, termtext.Line(e.Project)))
		return nil
	default:
		return withHint(fmt.Errorf("/agents %q", verb), "say /agents, /agents pause, /agents resume or /agents drop ID")
	}
	d.showPost(ui)
	return nil
}

// showPost prints this instance and what waits.
func (d *desk) showPost(ui repl.UI) {
	node := d.w.post.node
	state := string(node.State())
	if state == string(relay.Paused) {
		state = "paused: new messages are refused, /agents resume takes them again"
	}
	ui.Print(fmt.Sprintf("this instance: %s  %s  %s", node.ID(), termtext.Line(relay.Project(d.w.ws.Root())), state))
	for _, e := range node.Waiting() {
		ui.Print(fmt.Sprintf("%4d  from %s (pid %d)  %s", e.Number, termtext.Line(e.Project), e.PID, termtext.Cut(termtext.Line(e.Body), 60)))
	}
	d.w.post.mu.Lock()
	trouble := d.w.post.trouble
	d.w.post.mu.Unlock()
	if trouble != "" {
		ui.Warn("other instances cannot reach this one: " + trouble)
	}
}
