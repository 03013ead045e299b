// Package policy turns a request into a verdict by rules alone: the guard against
// catastrophic commands, the profile, the rules of policy.toml and what was set at
// start, in that order of precedence.
//
// It is pure over the values it is given: it opens no file and asks nobody. What it
// must know of the machine (homes, mount points, the identity of a path) comes in
// through Facts, and rules are parsed from bytes that internal/app reads. The gate in
// package approval calls it, and `zcoder policy test` through Explain.
package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"

	"zcoder/internal/approval"
	"zcoder/internal/shellread"
)

// CommandPolicy is what was decided at start about shell commands. The zero value
// asks.
type CommandPolicy uint8

// The command policies.
const (
	AskCommands   CommandPolicy = iota
	AllowCommands               // --yes
	DenyCommands                // --deny-commands
)

var commandPolicies = [...]string{"ask", "allow", "deny"}

// String returns the name used in settings.
func (c CommandPolicy) String() string {
	if int(c) < len(commandPolicies) {
		return commandPolicies[c]
	}
	return fmt.Sprintf("policy(%d)", uint8(c))
}

// ParseCommandPolicy reads the name used in settings.
func ParseCommandPolicy(name string) (CommandPolicy, error) {
	for i, known := range commandPolicies {
		if name == known {
			return CommandPolicy(i), nil
		}
	}
	return AskCommands, fmt.Errorf("parse command policy %q: it is one of ask, allow, deny", name)
}

// Profile is what a profile demands that nothing may relax. The zero value demands
// nothing.
type Profile struct {
	Name              string
	CommandsAlwaysAsk bool // every command asks, whatever else says allow
	NoGrant           bool // `a` is not offered for commands
	RefuseYes         bool // AllowCommands is an error at start
	WorkersOff        bool // delegates are denied
	NoAllowRules      bool // allow rules do not apply
	GuardElsewhere    bool // the guard also judges commands for other hosts and containers
}

// Facts are what the rules know of the machine. Fields that are nil or empty make the
// rules know less, never allow more; Root must be set.
type Facts struct {
	Root        string   // canonical absolute path of the workspace
	Home        string   // home directory of the user
	OtherHomes  []string // home directories of other users
	MountPoints []string
	SettingsDir string // where zcoder keeps its own files

	// Env looks up the environment that commands get.
	Env func(name string) (value string, ok bool)
	// UserHome looks up the home directory of a named user.
	UserHome func(user string) (dir string, ok bool)
	// Identity returns which file a path leads to, links followed; ok is false when
	// it does not exist.
	Identity func(path string) (dev, ino uint64, ok bool)
	// IsLink reports whether the last component is a symbolic link.
	IsLink func(path string) bool
	// IsBlockDevice and IsRegular say what a path leads to, links followed.
	IsBlockDevice func(path string) bool
	IsRegular     func(path string) bool
	// Secret says why the content of a file is likely secret, or "". A name is
	// absolute, or relative where the directory is not known. Nil knows of none.
	Secret func(path string) string
}

// Config is what New needs. The zero value of each field but Facts.Root is safe.
type Config struct {
	Profile  Profile
	Commands CommandPolicy
	// ReadOnly reports whether everything but reading is refused at the moment. Nil
	// is false. It may be called from several goroutines.
	ReadOnly func() bool
	Rules    *Rules
	// Reload is called before each judgement. It returns changed with new rules when
	// the files changed, or the error of a bad edit, after which the rules in force
	// stay. Nil never changes them. It is called by one goroutine at a time.
	Reload  func() (rules *Rules, changed bool, err error)
	Facts   Facts
	Dialect shellread.Dialect // of commands in requests that name no shell
}

// Policy implements approval.Policy. Its methods may be called from several
// goroutines.
type Policy struct {
	cfg   Config
	guard guard

	mu      sync.Mutex
	rules   *Rules
	problem string
}

// New checks the configuration. Its error is for the person who starts the program.
func New(cfg Config) (*Policy, error) {
	if !path.IsAbs(cfg.Facts.Root) {
		return nil, fmt.Errorf("make policy: the workspace %q is not an absolute path", cfg.Facts.Root)
	}
	if cfg.Profile.RefuseYes && cfg.Commands == AllowCommands {
		return nil, fmt.Errorf("profile %q asks a person about every single command: --yes and the command policy allow are refused", cfg.Profile.Name)
	}
	if cfg.Commands > DenyCommands {
		return nil, errors.New("make policy: the command policy is unknown")
	}
	p := &Policy{cfg: cfg, rules: cfg.Rules}
	p.guard = guard{facts: cfg.Facts, elsewhere: cfg.Profile.GuardElsewhere}
	return p, nil
}

// Set replaces the rules. Nil means none.
func (p *Policy) Set(rules *Rules) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.problem = rules, ""
}

// current returns the rules in force, after asking whether they changed, and what is
// wrong with a newer version.
func (p *Policy) current() (*Rules, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cfg.Reload != nil {
		rules, changed, err := p.cfg.Reload()
		switch {
		case err != nil:
			p.problem = err.Error()
		case changed:
			p.rules, p.problem = rules, ""
		}
	}
	return p.rules, p.problem
}

// Judge implements approval.Policy.
func (p *Policy) Judge(r approval.Request) approval.Verdict {
	return p.judge(r, func(string, string) {})
}

// trace receives each step that is considered and what came of it.
type trace func(step, outcome string)

func (p *Policy) judge(r approval.Request, say trace) approval.Verdict {
	rules, problem := p.current()
	c := &considered{r: r, rules: rules, facts: p.cfg.Facts, say: say}
	if r.Effect == approval.Exec {
		c.reading = p.read(r)
		c.notes = c.reading.Lines()
	}
	if problem != "" {
		c.notes = append(c.notes, "the rules could not be read again, the last good ones stay in force: "+problem)
	}
	v := p.decide(c)
	v.Notes = c.notes
	say("verdict", v.Decision.String())
	return v
}

func (p *Policy) read(r approval.Request) shellread.Reading {
	o := shellread.Options{
		Dialect: p.cfg.Dialect, Dir: r.Dir, Root: p.cfg.Facts.Root, Env: p.cfg.Facts.Env, UserHome: p.cfg.Facts.UserHome,
	}
	if len(r.Shell) > 0 {
		o.Dialect = shellread.DialectOf(r.Shell[0])
	}
	if o.Dir == "" {
		o.Dir = p.cfg.Facts.Root
	}
	return shellread.Read(r.Text, o)
}

// considered is a request in the course of being judged.
type considered struct {
	r       approval.Request
	reading shellread.Reading
	rules   *Rules
	facts   Facts
	notes   []string
	say     trace
}

// decide applies the order of precedence: what denies, then what asks, then what
// allows.
func (p *Policy) decide(c *considered) approval.Verdict {
	if v, ok := p.denied(c); ok {
		return v
	}
	switch c.r.Effect {
	case approval.Read, approval.WorkspaceWrite:
		if p.cfg.Profile.CommandsAlwaysAsk && c.r.Effect == approval.WorkspaceWrite && len(c.r.Paths) == 0 {
			// A server's tool that claims to change only the workspace: nothing shows what.
			return ask("profile "+p.cfg.Profile.Name, "this profile asks for every call that changes something unseen", true)
		}
		return p.file(c)
	case approval.Exec:
		return p.command(c)
	}
	c.say("effect", c.r.Effect.String()+" asks for every call")
	return ask("effect "+c.r.Effect.String(), effectReason(c.r.Effect), true)
}

func (p *Policy) denied(c *considered) (approval.Verdict, bool) {
	exec := c.r.Effect == approval.Exec
	if exec {
		if reason := p.guard.check(c.reading); reason != "" {
			c.say("guard", reason)
			return deny("guard", reason), true
		}
		c.say("guard", "nothing catastrophic in sight")
	}
	if p.cfg.ReadOnly != nil && p.cfg.ReadOnly() && c.r.Effect != approval.Read {
		c.say("read-only", "refused")
		return deny("read-only mode", "read-only mode is on: nothing but reading is allowed; `/readonly off` ends it"), true
	}
	if p.cfg.Profile.WorkersOff && c.r.Effect == approval.Delegate {
		c.say("profile", "workers are off")
		return deny("profile "+p.cfg.Profile.Name, "other agents are switched off in this profile"), true
	}
	if exec && p.cfg.Commands == DenyCommands {
		c.say("command policy", "deny")
		return deny("--deny-commands", "commands are switched off for this run"), true
	}
	if c.r.Effect == approval.Delegate && c.r.Origin == approval.OriginRemote && p.cfg.Commands == DenyCommands {
		c.say("command policy", "deny")
		return deny("--deny-commands", "commands are switched off on this server, and other agents run some"), true
	}
	if m := c.match(approval.Deny); m != nil {
		return deny(m.name(), m.reason("a deny rule forbids it")), true
	}
	return approval.Verdict{}, false
}

// file judges reads and writes of workspace files.
func (p *Policy) file(c *considered) approval.Verdict {
	if v, ok := p.mustAsk(c); ok {
		return v
	}
	if m := c.match(approval.Ask); m != nil {
		return ask(m.name(), m.reason("an ask rule wants a person's answer"), true)
	}
	for _, use := range c.r.Paths {
		switch {
		case use.Write && c.r.Effect == approval.Read:
			return ask("effect read", "it says it reads but would write "+shown(use), true)
		case use.Write && use.Rel == "":
			return ask("workspace", "it would write outside the workspace: "+use.Path, true)
		case use.Write && p.cfg.Facts.holdsRules(use.Path, false):
			return ask("workspace", "it would change the rules or settings: "+shown(use), true)
		}
	}
	if c.r.Effect == approval.Read {
		return allow("reading", "reading the workspace needs no approval")
	}
	return allow("workspace", "writing in the workspace needs no approval")
}

// mustAsk answers for a call that names its own reasons to ask: only a rule that
// names all its paths answers in a person's stead.
func (p *Policy) mustAsk(c *considered) (approval.Verdict, bool) {
	if len(c.r.MustAsk) == 0 {
		return approval.Verdict{}, false
	}
	if !p.cfg.Profile.NoAllowRules {
		if m := c.allowsPaths(); m != nil {
			c.say("reasons to ask", "answered by "+m.name())
			return approval.Verdict{}, false
		}
	}
	c.say("reasons to ask", strings.Join(c.r.MustAsk, "; "))
	v := ask("request", strings.Join(c.r.MustAsk, "; "), true)
	return v, true
}

// command judges shell commands that nothing denies.
func (p *Policy) command(c *considered) approval.Verdict {
	if p.cfg.Profile.CommandsAlwaysAsk {
		c.say("profile", "every command asks")
		v := ask("profile "+p.cfg.Profile.Name, "this profile asks about every single command", true)
		v.NoGrant = p.cfg.Profile.NoGrant
		return v
	}
	if v, ok := p.mustAsk(c); ok {
		return v
	}
	if m := c.match(approval.Ask); m != nil {
		return ask(m.name(), m.reason("an ask rule wants a person's answer"), false)
	}
	if name, ok := c.writesRules(); ok {
		c.say("workspace", "it writes "+name)
		return ask("workspace", "it would change the rules or settings: "+name, true)
	}
	if c.changesTrust() {
		return ask("workspace", "it would change which MCP servers zcoder trusts or runs", true)
	}
	if p.cfg.Commands == AllowCommands {
		c.say("command policy", "allow")
		return allow("--yes", "commands were allowed at start")
	}
	if c.r.Origin != approval.OriginUser && c.r.Origin != approval.OriginRemote {
		c.say("origin", "another agent started this turn")
		return ask("origin "+c.r.Origin.String(), "another agent started this turn, so every command asks", false)
	}
	if m := p.allowed(c); m != nil {
		return allow(m.name(), m.reason("an allow rule covers every part of it"))
	}
	c.say("default", "ask")
	v := ask("default", "commands ask", false)
	v.Firm = false
	return v
}

func (p *Policy) allowed(c *considered) *match {
	if p.cfg.Profile.NoAllowRules {
		c.say("allow rules", "not in this profile")
		return nil
	}
	return c.allows()
}

// ask is a firm question; noGrant also keeps `a` from being offered.
func ask(rule, reason string, noGrant bool) approval.Verdict {
	return approval.Verdict{Decision: approval.Ask, Rule: rule, Reason: reason, Firm: true, NoGrant: noGrant}
}

func allow(rule, reason string) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow, Rule: rule, Reason: reason}
}

func deny(rule, reason string) approval.Verdict {
	return approval.Verdict{Decision: approval.Deny, Rule: rule, Reason: reason}
}

func effectReason(e approval.Effect) string {
	switch e {
	case approval.Network:
		return "it talks to the network"
	case approval.ExternalWrite:
		return "it may change something outside the workspace"
	case approval.Delegate:
		return "it hands work to another agent program"
	case approval.Peer:
		return "it sends a message to another agent"
	}
	return "what it may do is not known"
}

func shown(use approval.PathUse) string {
	if use.Rel != "" {
		return use.Rel
	}
	return use.Path
}

// rulesFile is where a workspace keeps rules of its own.
const rulesFile = ".zcoder/policy.toml"

// holdsRules reports whether writing a path changes the workspace's rules, in any
// letter case, or zcoder's own files. Removing a directory removes what it holds.
func (f Facts) holdsRules(name string, removes bool) bool {
	file := path.Join(f.Root, rulesFile)
	if strings.EqualFold(name, file) || strings.EqualFold(name, path.Dir(file)) {
		return true
	}
	dir := f.SettingsDir
	return dir != "" && (inside(dir, name) || removes && inside(name, dir))
}

// changesTrust reports whether a command is seen to have zcoder itself trust, add or
// run MCP servers.
func (c *considered) changesTrust() bool {
	for _, cmd := range c.reading.Commands {
		if path.Base(cmd.Program) != "zcoder" {
			continue
		}
		words := cmd.Words[min(1, len(cmd.Words)):]
		for i, w := range words {
			if w.Known && w.Value != "mcp" {
				continue
			}
			if i+1 >= len(words) || words[i+1].Value != "list" && words[i+1].Value != "get" {
				return true
			}
		}
	}
	return false
}

// writesRules reports whether a command is seen to change rules or settings.
func (c *considered) writesRules() (string, bool) {
	for _, w := range c.reading.Writes {
		if w.Elsewhere == "" && w.Path != "" && c.facts.holdsRules(w.Path, w.Op == shellread.Remove) {
			return w.Path, true
		}
	}
	return "", false
}
