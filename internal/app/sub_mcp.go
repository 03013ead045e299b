package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"zcoder/internal/config"
	"zcoder/internal/termtext"
	"zcoder/mcp"
)

// mcpFlags are the flags of `zcoder mcp`.
type mcpFlags struct {
	json, yes, claims, replace bool
	scope, kind, url, cwd      string
	env, headers               []string
}

func mcpCommand() subcommand {
	var f mcpFlags
	sub := config.Sub{
		Name: "mcp", Usage: "list | get NAME | add NAME -- COMMAND… | add NAME --url URL | remove NAME | enable NAME | disable NAME | test NAME | trust [NAME] | untrust [NAME] | login NAME | logout NAME",
		Meaning: "register, trust and try MCP servers",
		Flags: func(s *pflag.FlagSet) {
			s.BoolVar(&f.json, "json", false, "with list, get and test: print JSON")
			s.StringVar(&f.scope, "scope", "", "`SCOPE` of the entry: user (your own file) or project (.mcp.json of the workspace)")
			s.StringArrayVar(&f.env, "env", nil, "with add: a variable `NAME=VALUE` for the program; repeat it for more")
			s.StringVar(&f.url, "url", "", "with add: `URL` of a server over HTTP")
			s.StringVar(&f.kind, "type", "", "with add and --url: `KIND` of the connection, http or sse")
			s.StringArrayVar(&f.headers, "header", nil, "with add and --url: a header `'NAME: VALUE'`; repeat it for more")
			s.StringVar(&f.cwd, "cwd", "", "with add: run the program in `PATH`")
			s.BoolVar(&f.replace, "replace", false, "with add: take the place of a server of this name")
			s.BoolVar(&f.yes, "yes", false, "with trust: approve what is shown without a question")
			s.BoolVar(&f.claims, "accept-claims", false, "with trust --yes: also believe tools that claim to be milder than their names say")
		}}
	return subcommand{sub, func(ctx context.Context, p Process, v *config.Values) (int, error) {
		return runMCP(ctx, p, v, &f)
	}}
}

// mcpRun is one run of `zcoder mcp`.
type mcpRun struct {
	p    Process
	f    *mcpFlags
	hub  *mcp.Hub
	args []string // after the verb
}

func runMCP(ctx context.Context, p Process, v *config.Values, f *mcpFlags) (int, error) {
	home, err := makePrivate(v.String("home"))
	if err != nil {
		return statusFailed, fmt.Errorf("open the settings directory: %w", err)
	}
	args := v.Args()
	if len(args) == 0 {
		args = []string{"list"}
	}
	if f.scope != "" && f.scope != string(mcp.User) && f.scope != string(mcp.Project) {
		return statusUsage, subUsage("mcp", fmt.Sprintf("--scope is user or project, not %q", f.scope))
	}
	hub := mcp.Open(mcp.Options{
		Home: home, Root: canonical(p, v), Lookup: p.lookup, Version: version, Now: time.Now, Proxy: http.ProxyFromEnvironment, OnDemand: true,
		StartTimeout: v.Duration("mcp-startup-timeout"), CallTimeout: v.Duration("mcp-request-timeout"),
	})
	r := &mcpRun{p: p, f: f, hub: hub, args: args[1:]}
	ctx, stop, caught := catchSignals(ctx)
	defer stop()
	status, err := r.verb(ctx, args[0])
	err = errors.Join(err, hub.Close())
	if s := caught(); s != 0 {
		return s, nil
	}
	return status, err
}

// verb does what the first word says.
func (r *mcpRun) verb(ctx context.Context, verb string) (int, error) {
	if _, inside := r.p.lookup("ZCODER_COMMAND"); inside && verb != "list" && verb != "get" {
		return statusRefused, withHint(errors.New("a command of an agent may not change or run MCP servers"), "run it yourself, in a terminal of your own")
	}
	var need func(context.Context, string) error
	switch verb {
	case "list":
		return statusOK, r.list()
	case "trust":
		return r.trust(ctx)
	case "untrust":
		return statusOK, r.untrust()
	case "add":
		return r.add()
	case "get":
		need = r.get
	case "remove":
		need = r.remove
	case "enable":
		need = func(_ context.Context, name string) error { return r.enable(name, true) }
	case "disable":
		need = func(_ context.Context, name string) error { return r.enable(name, false) }
	case "test":
		need = r.test
	case "login":
		need = r.login
	case "logout":
		need = func(_ context.Context, name string) error { return r.hub.Logout(name) }
	default:
		return statusUsage, subUsage("mcp", fmt.Sprintf("there is no %q", verb))
	}
	if len(r.args) != 1 {
		return statusUsage, subUsage("mcp", verb+" takes the name of one server")
	}
	if err := need(ctx, r.args[0]); err != nil {
		return statusFailed, err
	}
	return statusOK, nil
}

func (r *mcpRun) print(lines ...string) {
	for _, line := range lines {
		if isTerminal(r.p.Stdout) {
			line = termtext.Safe(line)
		}
		fmt.Fprintln(r.p.Stdout, line)
	}
}

func (r *mcpRun) list() error {
	if r.f.json {
		var list []serverJSON
		for _, s := range r.hub.Servers() {
			list = append(list, jsonOf(s))
		}
		return r.printJSON(list)
	}
	r.print(serverLines(r.hub)...)
	return nil
}

func (r *mcpRun) get(_ context.Context, name string) error {
	s, err := r.hub.Server(name)
	if err != nil {
		return err
	}
	if r.f.json {
		return r.printJSON(jsonOf(s))
	}
	r.print(serverDetails(s)...)
	return nil
}

func (r *mcpRun) printJSON(v any) error {
	enc := json.NewEncoder(r.p.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// serverJSON is a server for programs.
type serverJSON struct {
	Name     string     `json:"name"`
	Scope    mcp.Scope  `json:"scope"`
	Type     mcp.Kind   `json:"type"`
	Standing string     `json:"standing"`
	Why      string     `json:"why,omitempty"`
	Command  string     `json:"command,omitempty"`
	Args     []string   `json:"args,omitempty"`
	URL      string     `json:"url,omitempty"`
	Env      []string   `json:"env,omitempty"` // names only
	Protocol string     `json:"protocol,omitempty"`
	Tokens   int        `json:"tokens"`
	Tools    []toolJSON `json:"tools,omitempty"`
}

type toolJSON struct {
	Name     string `json:"name"`
	Exposed  string `json:"exposed"`
	Effect   string `json:"effect"`
	Why      string `json:"why"`
	Offered  bool   `json:"offered"`
	Withheld string `json:"withheld,omitempty"`
	Tokens   int    `json:"tokens"`
}

func jsonOf(s mcp.Status) serverJSON {
	out := serverJSON{
		Name: s.Name, Scope: s.Scope, Type: s.Kind, Standing: string(s.Standing), Why: s.Why,
		Command: s.Command, Args: s.Args, URL: s.URL, Protocol: s.Protocol, Tokens: s.Tokens,
	}
	out.Env = slices.Sorted(maps.Keys(s.Env))
	for _, t := range s.Tools {
		out.Tools = append(out.Tools, toolJSON{t.Name, t.Exposed, mcp.EffectName(t.Effect), t.Why, t.Offered(), t.Withheld, t.Tokens})
	}
	return out
}

// add registers a server: the words after its name are its command.
func (r *mcpRun) add() (int, error) {
	if len(r.args) == 0 {
		return statusUsage, subUsage("mcp", "add takes a name and a command, or a name and --url")
	}
	s := mcp.Server{Name: r.args[0], Scope: mcp.User, Kind: mcp.Stdio, Cwd: r.f.cwd, URL: r.f.url}
	if r.f.scope == string(mcp.Project) {
		s.Scope = mcp.Project
	}
	if len(r.args) > 1 {
		s.Command, s.Args = r.args[1], r.args[2:]
	}
	if r.f.url != "" {
		s.Kind = mcp.HTTP
		if r.f.kind != "" {
			s.Kind = mcp.Kind(r.f.kind)
		}
	}
	var err error
	if s.Env, err = pairs(r.f.env, "=", "--env"); err == nil {
		s.Headers, err = pairs(r.f.headers, ":", "--header")
	}
	if err != nil {
		return statusUsage, subUsage("mcp", err.Error())
	}
	if s.URL == "" && len(s.Headers) > 0 || s.URL != "" && len(s.Env)+len(s.Cwd) > 0 {
		return statusUsage, subUsage("mcp", "--header goes with --url, --env and --cwd with a command")
	}
	if s.URL == "" && r.f.kind != "" {
		return statusUsage, subUsage("mcp", "--type goes with --url")
	}
	if err := r.hub.Add(s, r.f.replace); err != nil {
		return statusUsage, err
	}
	if s.Scope == mcp.Project {
		r.print(fmt.Sprintf("registered %s in %s; it runs after `zcoder mcp trust %s`", s.Name, mcp.ProjectFile, s.Name))
		return statusOK, nil
	}
	r.print(fmt.Sprintf("registered %s; `zcoder mcp test %s` tries it", s.Name, s.Name))
	return statusOK, nil
}

func pairs(list []string, sep, flag string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, sep)
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("%s %q is no NAME%sVALUE", flag, text, sep)
		}
		if sep == ":" {
			value = strings.TrimSpace(value)
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}

// where is the scope that a verb acts in.
func (r *mcpRun) where(name string) (mcp.Scope, error) {
	if r.f.scope != "" {
		return mcp.Scope(r.f.scope), nil
	}
	return r.hub.ScopeOf(name)
}

func (r *mcpRun) remove(_ context.Context, name string) error {
	scope, err := r.where(name)
	if err != nil {
		return err
	}
	if err := r.hub.Remove(scope, name); err != nil {
		return err
	}
	r.print("removed " + name)
	return nil
}

func (r *mcpRun) enable(name string, on bool) error {
	scope, err := r.where(name)
	if err != nil {
		return err
	}
	if err := r.hub.Enable(scope, name, on); err != nil {
		return err
	}
	word := "switched off "
	if on {
		word = "switched on "
	}
	if scope == mcp.Project {
		name += "; " + mcp.ProjectFile + " changed, so `zcoder mcp trust` asks again"
	}
	r.print(word + name)
	return nil
}

// test starts a server and prints its tools.
func (r *mcpRun) test(ctx context.Context, name string) error {
	r.hub.Start(ctx)
	if s, err := r.hub.Server(name); err == nil && s.Standing == mcp.Ready {
		// A launcher such as npx may download the server first.
		fmt.Fprintf(r.p.Stderr, "starting %s …\n", termtext.Line(name))
	}
	rv, err := r.hub.Try(ctx, name)
	if err != nil {
		r.complain(name)
		return err
	}
	r.hub.Refresh(ctx)
	if r.f.json {
		return r.get(ctx, name)
	}
	s, err := r.hub.Server(name)
	if err != nil {
		return err
	}
	r.print(serverDetails(s)...)
	if !rv.Same {
		return withHint(fmt.Errorf("the tools of %s are not the ones that were confirmed", name), "zcoder mcp trust %s shows what changed", name)
	}
	return nil
}

// complain shows what a server that failed wrote.
func (r *mcpRun) complain(name string) {
	lines, err := r.hub.Logs(name)
	if err != nil {
		return
	}
	for _, line := range lines[max(0, len(lines)-10):] {
		fmt.Fprintln(r.p.Stderr, "  "+termtext.Line(line))
	}
}

func (r *mcpRun) untrust() error {
	if len(r.args) > 1 {
		return subUsage("mcp", "untrust takes the name of one server, or none")
	}
	if err := r.hub.Untrust(strings.Join(r.args, "")); err != nil {
		return err
	}
	r.print("taken back")
	return nil
}

func (r *mcpRun) login(ctx context.Context, name string) error {
	err := r.hub.Login(ctx, name, func(address string) {
		fmt.Fprintln(r.p.Stderr, "open this address in a browser to log in:\n"+termtext.Line(address))
	})
	if err != nil {
		return err
	}
	r.print("logged in to " + name)
	return nil
}

// trust shows what is to be trusted and asks for it: on a terminal, or with its own
// --yes. What comes through a pipe is no answer.
func (r *mcpRun) trust(ctx context.Context) (int, error) {
	if len(r.args) > 1 {
		return statusUsage, subUsage("mcp", "trust takes the name of one server, or none")
	}
	r.hub.Start(ctx)
	a := asking{show: func(text string) { r.print(strings.TrimRight(text, "\n")) }}
	switch {
	case r.f.yes:
		a.ask = func(question string) bool { return true }
		a.claims = func([]string) bool { return r.f.claims }
	case isTerminal(r.p.Stdin) && isTerminal(r.p.Stdout):
		in := bufio.NewReader(r.p.Stdin)
		a.ask = func(question string) bool { return askLine(r.p.Stdout, in, question) }
	}
	if err := trustFlow(ctx, r.hub, strings.Join(r.args, ""), a); err != nil {
		if errors.Is(err, errNobody) {
			return statusRefused, err
		}
		return statusFailed, err
	}
	return statusOK, nil
}

func askLine(out *os.File, in *bufio.Reader, question string) bool {
	fmt.Fprintf(out, "%s [y/N] ", question)
	line, err := in.ReadString('\n')
	return err == nil && isYes(line) || errors.Is(err, io.EOF) && isYes(line)
}

// asking is how a person is shown what is to be trusted, and asked.
type asking struct {
	show func(text string)
	ask  func(question string) bool // nil: nobody can be asked
	// claims asks whether tools are believed that claim to be milder than their names
	// say; nil asks as for everything.
	claims func(tools []string) bool
}

var errNobody = errors.New("nothing was trusted: trust is given on a terminal, or with --yes")

// trustFlow lets a person approve servers of the project, and then the tools that
// they have. Each server is started once for that, after its content was approved.
func trustFlow(ctx context.Context, hub *mcp.Hub, name string, a asking) error {
	rv, err := hub.Review(name)
	if err != nil {
		return err
	}
	return trustReviewed(ctx, hub, rv, name, a)
}

// trustReviewed is trustFlow with what a person has to see.
func trustReviewed(ctx context.Context, hub *mcp.Hub, rv mcp.Review, name string, a asking) error {
	names := rv.Names
	if len(names) > 0 {
		a.show(rv.Text)
		if a.ask == nil {
			return withHint(errNobody, "zcoder mcp trust --yes approves what was shown")
		}
		if !a.ask(fmt.Sprintf("Let %s run here with exactly this content?", fewNames(names))) {
			a.show("nothing was trusted")
			return nil
		}
		if err := hub.Approve(rv); err != nil {
			return err
		}
	} else if name != "" {
		names = []string{name}
	}
	if len(names) == 0 {
		names = drifted(ctx, hub, a)
	}
	if len(names) == 0 {
		a.show("there is nothing to trust: no server of this project waits, and no tool changed")
	}
	var errs []error
	for _, n := range names {
		errs = append(errs, trustTools(ctx, hub, n, a, len(rv.Names) > 0))
	}
	return errors.Join(errs...)
}

// fewNames cuts a list of names for a question; what is asked about was shown in full.
func fewNames(list []string) string {
	const most = 10
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, ", ")
}

// drifted are the servers whose tools are not the pinned ones. It starts those that
// may run and do not.
func drifted(ctx context.Context, hub *mcp.Hub, a asking) []string {
	var list []string
	for _, s := range hub.Servers() {
		if s.Standing != mcp.Ready {
			continue
		}
		rv, err := hub.ReviewTools(ctx, s.Name)
		switch {
		case err != nil:
			a.show(err.Error())
		case !rv.Same:
			list = append(list, s.Name)
		}
	}
	return list
}

// trustTools lets a person confirm the tools of a server. first says that the server
// was just approved, so that a refusal takes that back.
func trustTools(ctx context.Context, hub *mcp.Hub, name string, a asking, first bool) error {
	rv, err := hub.ReviewTools(ctx, name)
	if err != nil {
		return withHint(err, "/mcp logs %s, or zcoder mcp test %s, shows what it wrote", name, name)
	}
	a.show(rv.Text)
	if a.ask == nil {
		return withHint(errNobody, "zcoder mcp trust --yes confirms what was shown")
	}
	if !a.ask(fmt.Sprintf("Offer these tools of %s, with these effects?", name)) {
		if first {
			a.show("nothing of " + name + " was trusted")
			return hub.Untrust(name)
		}
		if rv.First {
			a.show("no tools of " + name + " were confirmed")
			return nil
		}
		a.show("the tools stay as they were confirmed before")
		return nil
	}
	believe := false
	if len(rv.Claims) > 0 {
		if a.claims != nil {
			believe = a.claims(rv.Claims)
		} else {
			believe = a.ask(fmt.Sprintf("Believe what %s claim, so that they no longer ask for every call?", fewNames(rv.Claims)))
		}
	}
	if err := hub.Confirm(rv, believe); err != nil {
		return err
	}
	a.show("trusted: " + name)
	return nil
}
