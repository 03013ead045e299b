package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"zcoder/internal/approval"
	"zcoder/internal/event"
	"zcoder/mcp"
	"zcoder/repl"
)

// openServers reads which MCP servers are registered. It starts none of them, and
// without any it costs a look for two files.
func (w *workbench) openServers() error {
	kept := &spills{dir: w.runtime.Path(), left: maxSpilled}
	w.servers = mcp.Open(mcp.Options{
		Home: w.home, Root: w.ws.Root(), Given: w.given, Lookup: w.p.lookup, Version: version,
		StartTimeout: w.v.Duration("mcp-startup-timeout"), CallTimeout: w.v.Duration("mcp-request-timeout"),
		MaxOutput: w.v.Int("max-tool-output"), Vision: w.sees, Proxy: http.ProxyFromEnvironment, Now: time.Now,
		Spill: kept.keep,
	})
	w.onClose(w.servers.Close)
	for _, notice := range w.servers.Notices() {
		w.notices = append(w.notices, "note: "+notice)
	}
	return nil
}

// maxSpilled bounds, in bytes, all results of servers that are kept for commands to read.
const maxSpilled = 256 << 20

// spills keeps results of servers that were cut, until the program ends: they lie in
// its runtime directory, which goes then. Its method may be called from several
// goroutines.
type spills struct {
	dir string

	mu    sync.Mutex
	left  int // bytes
	count int
}

// keep stores a text and returns where. It refuses what does not fit: a file that was
// named to a model stays.
func (s *spills) keep(text string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(text) > s.left {
		return "", errors.New("the results that are kept already fill their space")
	}
	s.count++
	path := filepath.Join(s.dir, fmt.Sprintf("mcp-%d.txt", s.count))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		_ = os.Remove(path) // a part of it helps nobody
		return "", err
	}
	s.left -= len(text)
	return path, nil
}

// sees reports whether the model in use is known to take images.
func (w *workbench) sees() bool {
	b := w.brain
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts[b.model].Vision
}

// startServers starts the servers that may run, in the background. A run without a
// person waits for those whose tools are not known yet.
func (w *workbench) startServers(ctx context.Context, wait bool) {
	w.servers.Start(ctx)
	if wait {
		w.servers.AwaitFirst(ctx)
	}
}

// takeServers takes over, before a turn, what changed with the servers, and tells it.
// The loop says by itself that the prompt is read anew.
func (w *workbench) takeServers(c *conversation) {
	offer := w.servers.Refresh(context.Background())
	for _, notice := range offer.Notices {
		c.Emit(event.Event{Kind: event.Warning, Text: notice})
	}
	if offer.Changed == "" {
		return
	}
	if err := w.assemble(); err != nil {
		c.Emit(event.Event{Kind: event.Warning, Text: err.Error()})
		return
	}
	c.Emit(event.Event{Kind: event.Info, Text: "tools of MCP servers: " + offer.Changed})
}

// serverBill is what the tools of each server cost in every request.
func (w *workbench) serverBill() []string {
	var lines []string
	for _, s := range w.servers.Servers() {
		if s.Standing == mcp.Ready && s.Tokens > 0 {
			lines = append(lines, fmt.Sprintf("   of them MCP server %s: %s, ~%d tokens", s.Name, plural(offeredTools(s), "tool", "tools"), s.Tokens))
		}
	}
	return lines
}

func offeredTools(s mcp.Status) int {
	n := 0
	for _, t := range s.Tools {
		if t.Offered() {
			n++
		}
	}
	return n
}

// cmdServers is /mcp.
func (d *desk) cmdServers(ctx context.Context, ui repl.UI, args string) error {
	verb, name, _ := strings.Cut(args, " ")
	name = strings.TrimSpace(name)
	switch {
	case verb == "":
		ui.Print(strings.Join(serverLines(d.w.servers), "\n"))
		return nil
	case verb == "logs" && name != "":
		return d.showLogs(ui, name)
	case verb == "restart" && name != "":
		if err := d.w.servers.Restart(name); err != nil {
			return err
		}
		ui.Print("MCP server " + name + " starts again")
		return nil
	case verb == "reload" && name == "", verb == "trust":
		if d.conv().Busy() {
			return errors.New("wait until the turn is over")
		}
		if verb == "trust" {
			if d.w.origin == approval.OriginRemote && d.w.v.String("command-policy") == "deny" {
				return withHint(errors.New("commands are switched off on this server, and this would start one"), "run zcoder mcp trust there")
			}
			return trustFlow(ctx, d.w.servers, name, askIn(ui))
		}
		d.w.servers.Reload()
		d.w.startServers(d.ctx, false)
		ui.Print(strings.Join(serverLines(d.w.servers), "\n"))
		return nil
	case name == "":
		return d.showServer(ctx, ui, verb)
	}
	return withHint(fmt.Errorf("/mcp %s", args), "say /mcp, /mcp NAME, /mcp reload, /mcp trust [NAME], /mcp logs NAME or /mcp restart NAME")
}

func (d *desk) showLogs(ui repl.UI, name string) error {
	lines, err := d.w.servers.Logs(name)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		lines = []string{"MCP server " + name + " wrote nothing"}
	}
	ui.Print(strings.Join(lines, "\n"))
	return nil
}

// listPatience bounds the question for the resources of a server.
const listPatience = 5 * time.Second

// showServer shows one server with its tools, resources and prompts.
func (d *desk) showServer(ctx context.Context, ui repl.UI, name string) error {
	s, err := d.w.servers.Server(name)
	if err != nil {
		return withHint(err, "/mcp lists the servers")
	}
	lines := serverDetails(s)
	for _, p := range d.w.servers.Prompts() {
		if p.Server == name {
			lines = append(lines, fmt.Sprintf("  prompt    /%s:%s %s", p.Server, p.Name, promptUsage(p)))
		}
	}
	if s.State == mcp.Up && s.HasResources {
		ctx, cancel := context.WithTimeout(ctx, listPatience)
		defer cancel()
		list, err := d.w.servers.Resources(ctx, name)
		if err != nil {
			lines = append(lines, fmt.Sprintf("  resources cannot be listed: %v", err))
		}
		for _, r := range list {
			lines = append(lines, fmt.Sprintf("  resource  @%s:%s  %s", name, r.URI, r.Name))
		}
	}
	ui.Print(strings.Join(lines, "\n"))
	return nil
}

// askIn shows text and asks on the REPL's own terminal.
func askIn(ui repl.UI) asking {
	return asking{
		show: ui.Print,
		ask: func(question string) bool {
			line, ok := ui.AskLine(question + " [y/N] ")
			return ok && isYes(line)
		},
	}
}

func isYes(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

func (d *desk) completeServer(prefix string) []string {
	var list []string
	verb, rest, more := strings.Cut(prefix, " ")
	words := []string{"reload", "trust", "logs", "restart"}
	for _, s := range d.w.servers.Servers() {
		words = append(words, s.Name)
		if more && strings.HasPrefix(s.Name, rest) {
			list = append(list, verb+" "+s.Name)
		}
	}
	if more {
		return list
	}
	for _, word := range words {
		if strings.HasPrefix(word, prefix) {
			list = append(list, word)
		}
	}
	return list
}

// serverPrompts are the prompts of the servers as slash commands.
func (d *desk) serverPrompts() []repl.Command {
	var list []repl.Command
	for _, p := range d.w.servers.Prompts() {
		list = append(list, repl.Command{
			Name: p.Server + ":" + p.Name, Usage: promptUsage(p), Help: p.Description, Group: "Prompts of MCP servers",
			Run: func(ctx context.Context, ui repl.UI, args string) error {
				values, err := promptArgs(p, args)
				if err != nil {
					return err
				}
				text, err := d.w.servers.Ask(ctx, p.Server, p.Name, values, d.w.v.Int("mcp-prompt-max-bytes"))
				if err != nil {
					return err
				}
				// Never a command of the person's own, whatever the server wrote.
				ui.SetDraft("From the MCP server " + p.Server + ":\n" + text)
				return nil
			},
		})
	}
	return list
}

func promptUsage(p mcp.Prompt) string {
	var words []string
	for _, a := range p.Args {
		word := a.Name + "=…"
		if !a.Required {
			word = "[" + word + "]"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// promptArgs reads name=value words; with one argument the whole text is its value.
func promptArgs(p mcp.Prompt, text string) (map[string]string, error) {
	values := map[string]string{}
	if text = strings.TrimSpace(text); len(p.Args) == 1 && text != "" {
		values[p.Args[0].Name] = strings.TrimPrefix(text, p.Args[0].Name+"=")
	} else {
		for _, word := range strings.Fields(text) {
			name, value, ok := strings.Cut(word, "=")
			if !ok {
				return nil, withHint(fmt.Errorf("%q is no name=value", word), "/%s:%s %s", p.Server, p.Name, promptUsage(p))
			}
			values[name] = value
		}
	}
	for _, a := range p.Args {
		if _, ok := values[a.Name]; a.Required && !ok {
			return nil, withHint(fmt.Errorf("the argument %q is missing", a.Name), "/%s:%s %s", p.Server, p.Name, promptUsage(p))
		}
	}
	return values, nil
}

// maxResources bounds the resources that one message attaches.
const maxResources = 8

// withResources attaches the resources of servers that a message names as
// @server:uri, after what expand does.
func (w *workbench) withResources(expand func(context.Context, event.Input) event.Input) func(context.Context, event.Input) event.Input {
	return func(ctx context.Context, in event.Input) event.Input {
		in = expand(ctx, in)
		if w.servers.Empty() {
			return in
		}
		typed, _, _ := strings.Cut(in.Text, pipedMark)
		for _, m := range w.resourceMentions(typed) {
			in = w.attachResource(ctx, in, m)
		}
		return in
	}
}

// resourceMention is a resource that a message names.
type resourceMention struct{ server, uri string }

// resourceMentions finds @server:uri, each once, of servers that are registered.
func (w *workbench) resourceMentions(text string) []resourceMention {
	known := map[string]bool{}
	for _, s := range w.servers.Servers() {
		known[s.Name] = true
	}
	var list []resourceMention
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		rest, ok := strings.CutPrefix(word, "@")
		server, uri, colon := strings.Cut(rest, ":")
		m := resourceMention{server, strings.TrimRight(uri, ".,;!?)\"'")}
		if !ok || !colon || !known[server] || m.uri == "" || len(list) == maxResources || slices.Contains(list, m) {
			continue
		}
		list = append(list, m)
	}
	return list
}

func (w *workbench) attachResource(ctx context.Context, in event.Input, m resourceMention) event.Input {
	say := func(kind event.Kind, format string, args ...any) {
		in.Before = append(in.Before, event.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	got, err := w.servers.Read(ctx, m.server, m.uri)
	if err != nil {
		say(event.Warning, "@%s:%s was not attached: %v", m.server, m.uri, err)
		return in
	}
	say(event.Note, "The user attached the resource %s of the MCP server %s:\n%s", m.uri, m.server, got.Text)
	say(event.Info, "attached %s of MCP server %s (%d characters)", m.uri, m.server, len(got.Text))
	in.Images = append(in.Images, got.Images...)
	return in
}

// completeMention completes an @path, and the names of servers and their resources.
func (d *desk) completeMention(prefix string) []string {
	list := d.w.completePath(prefix)
	server, uri, colon := strings.Cut(prefix, ":")
	for _, s := range d.w.servers.Servers() {
		switch {
		case !colon && strings.HasPrefix(s.Name, prefix) && s.HasResources:
			list = append(list, s.Name+":")
		case colon && s.Name == server && s.State == mcp.Up && s.HasResources:
			ctx, cancel := context.WithTimeout(d.ctx, time.Second)
			resources, err := d.w.servers.Resources(ctx, server)
			cancel()
			for _, r := range resources {
				if err == nil && strings.HasPrefix(r.URI, uri) {
					list = append(list, server+":"+r.URI)
				}
			}
		}
	}
	return list
}
