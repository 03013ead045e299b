package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"zcoder/internal/acp"
	"zcoder/internal/event"
	"zcoder/internal/worker"
	"zcoder/mcp"
	"zcoder/profiles"
	"zcoder/repl"
)

// editorSeat is a conversation of an editor. Its mode can change while it is empty. It
// implements acp.Conversation.
type editorSeat struct {
	host  *editorHost
	ctx   context.Context // of the connection
	dir   string          // as the editor names it
	given []byte          // its MCP servers

	mu    sync.Mutex
	at    *sitting
	asked bool // whether its MCP servers may run
}

func (s *editorSeat) place(profile string) editorPlace {
	return editorPlace{dir: s.dir, profile: profile, given: s.given}
}

func (s *editorSeat) now() *sitting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

// Info implements acp.Conversation.
func (s *editorSeat) Info() event.Session { return s.now().conv().Info() }

// LastSeq implements acp.Conversation.
func (s *editorSeat) LastSeq() int64 { return s.now().conv().LastSeq() }

// Events implements acp.Conversation.
func (s *editorSeat) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return s.now().conv().Events(ctx, after)
}

// Answer implements acp.Conversation.
func (s *editorSeat) Answer(callID string, a event.Answer) error {
	return s.now().conv().Answer(callID, a)
}

// Enqueue implements acp.Conversation.
func (s *editorSeat) Enqueue(item event.Item) (string, error) { return s.now().conv().Enqueue(item) }

// Close implements acp.Conversation.
func (s *editorSeat) Close() error { return s.now().close() }

// SetMode implements acp.Conversation.
func (s *editorSeat) SetMode(ctx context.Context, mode string) error {
	if _, err := profiles.ByName(mode); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.at.conv().Info().ID
	if s.at.conv().LastSeq() > 1 {
		return withHint(fmt.Errorf("the mode of a session is fixed once something was said in it, and this one is %s", s.at.w.profile.Name), "begin a new session for the mode %s", mode)
	}
	w, err := s.host.bench(s.place(mode))
	if err != nil {
		return err
	}
	if err := s.at.close(); err != nil {
		return errors.Join(err, w.close())
	}
	at, err := w.seat(s.ctx, func(w *workbench) (*conversation, error) { return w.renew(s.ctx, id) })
	if err != nil {
		return errors.Join(err, w.close())
	}
	s.at = at
	return nil
}

// notInEditors are commands whose matter is the editor's or the terminal's.
var notInEditors = []string{"new", "clear", "sessions", "later", "list-agents", "agents"}

// Commands implements acp.Conversation.
func (s *editorSeat) Commands() []acp.Command {
	at := s.now()
	var list []acp.Command
	for _, c := range slices.Concat(at.commands(), at.serverPrompts(), []repl.Command{at.helpCommand()}) {
		if at.hasWorker(c) && !slices.Contains(notInEditors, c.Name) {
			list = append(list, acp.Command{Name: c.Name, About: c.Help, Usage: c.Usage})
		}
	}
	return list
}

// hasWorker reports whether the agent that a command is about is installed; true for
// other commands.
func (s *sitting) hasWorker(c repl.Command) bool {
	if c.Group != "Other agents" {
		return true
	}
	if s.w.profile.WorkersOff {
		return false
	}
	for _, one := range worker.Table() {
		about := c.Name == "workers" || strings.TrimSuffix(c.Name, "!") == one.Name || strings.TrimSuffix(c.Name, "-model") == one.Name
		if _, _, err := s.w.findWorker(one.Name); about && err == nil {
			return true
		}
	}
	return false
}

// Run implements acp.Conversation.
func (s *editorSeat) Run(ctx context.Context, in event.Input, ask acp.Forms) (event.Reason, error) {
	at := s.now()
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(in.Text), "/"), " ")
	if strings.HasPrefix(strings.TrimSpace(in.Text), "/") && slices.Contains(notInEditors, word) {
		return "", withHint(fmt.Errorf("/%s does not work in an editor", word), "the editor begins, lists and opens sessions itself")
	}
	at.tell()
	if s.firstAsk() {
		s.trustGiven(ctx, at, ask)
	}
	return at.Run(ctx, at.visible(ctx, in), editorUI{ask})
}

// editorUI is what a command may do with an editor: ask, and nothing else. What it
// wants entered the host runs, what it drafts is printed. It implements remote.UI.
type editorUI struct{ acp.Forms }

func (editorUI) Submit(string) bool { return false }
func (editorUI) Draft(string) bool  { return false }

func (s *editorSeat) firstAsk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.asked && len(s.given) > 0
	s.asked = true
	return first
}

// visible takes away images that the model could not see, and says so.
func (s *sitting) visible(ctx context.Context, in event.Input) event.Input {
	if len(in.Images) == 0 {
		return in
	}
	facts, err := s.w.brain.known(ctx)
	why := fmt.Sprintf("the model %s cannot see images; /model shows which ones can", s.w.model())
	if err == nil && facts.Vision {
		if !slices.ContainsFunc(in.Images, func(b []byte) bool { return !looksLikeImage(b) }) {
			return in
		}
		why = "one of them is neither PNG, JPEG, GIF nor WebP"
	}
	in.Images = nil
	in.Before = append(in.Before,
		event.Event{Kind: event.Warning, Text: "the images were not sent: " + why},
		event.Event{Kind: event.Note, Text: "The next message came with images, which could not be passed on."})
	return in
}

// trustGiven asks whether the MCP servers that the editor names may run, as for those
// of a project: what was approved before, and is the same, asks nothing.
func (s *editorSeat) trustGiven(ctx context.Context, at *sitting, ask acp.Forms) {
	rv, err := at.w.servers.ReviewGiven()
	if err == nil && len(rv.Names) > 0 {
		var shown []string
		say := func(text string) { shown = append(shown, text) }
		err = trustReviewed(ctx, at.w.servers, rv, "", asking{show: say, ask: func(question string) bool {
			text := strings.Join(shown, "\n")
			shown = nil
			return ask.Confirm(question, text, "Yes", "No")
		}})
		if text := strings.Join(shown, "\n"); text != "" {
			at.conv().Emit(event.Event{Kind: event.Info, Text: text})
		}
	}
	if err != nil && ctx.Err() == nil {
		at.conv().Emit(event.Event{Kind: event.Warning, Text: "MCP servers of the editor: " + errorText(err)})
	}
}

// givenServers is the registry text of what an editor names.
func givenServers(list []acp.Server) ([]byte, error) {
	if len(list) == 0 {
		return nil, nil
	}
	entries, taken := map[string]json.RawMessage{}, map[string]bool{}
	for _, s := range list {
		name := serverName(s.Name, taken)
		kind := mcp.Stdio
		if s.URL != "" {
			kind = mcp.HTTP
		}
		raw, err := mcp.EntryText(mcp.Server{Name: name, Scope: mcp.Editor, Kind: kind, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.URL, Headers: s.Headers})
		if err != nil {
			return nil, fmt.Errorf("the MCP server %q: %w", s.Name, err)
		}
		entries[name] = raw
	}
	return json.Marshal(map[string]any{"mcpServers": entries})
}

// serverName makes a name that a server can have of one that is for people, and takes it.
// Names that differ in letter case alone are one name in a registry.
func serverName(text string, taken map[string]bool) string {
	const most = 76
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, text), "-.")
	name = name[:min(len(name), most)]
	if name == "" {
		name = "server"
	}
	for base, n := name, 2; taken[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[strings.ToLower(name)] = true
	return name
}
