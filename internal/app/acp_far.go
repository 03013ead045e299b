package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"zcoder/internal/acp"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/internal/termtext"
	"zcoder/remote"
)

// farEditor opens the conversations of an editor on a server. Of these one is current
// there; a prompt in another one makes that current first. It implements acp.Host.
type farEditor struct {
	p Process

	mu     sync.Mutex
	client *remote.Client // of the conversation that is current, as far as is known
	used   bool           // the one that the connection began with was given away
}

// bridgeEditor is serveEditor with the sessions of a server.
func bridgeEditor(ctx context.Context, p Process, v *config.Values, out io.Writer) error {
	addr, err := remote.ParseAddress(v.String("connect"))
	if err != nil {
		return err
	}
	d := dialer{p: p, v: v, addr: addr}
	client, err := d.connect(ctx, "", true)
	if err != nil {
		return err
	}
	defer d.close()
	f := &farEditor{p: p, client: client}
	err = serveEditor(ctx, p, out, f)
	return errors.Join(err, f.now().Close())
}

func (f *farEditor) now() *remote.Client {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.client
}

// Modes implements acp.Host: the profile is the server's.
func (f *farEditor) Modes() []acp.Mode {
	name := f.now().Info().Profile
	return []acp.Mode{{ID: name, Name: name, About: "the profile of the server"}}
}

// Images implements acp.Host: the connection carries none.
func (*farEditor) Images(context.Context) bool { return false }

// List implements acp.Host. The directories of an editor say nothing about a server:
// each of them stands for its workspace.
func (f *farEditor) List(ctx context.Context, dir string) ([]acp.Listed, error) {
	c := f.now()
	list, err := c.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = c.Info().Workspace
	}
	var out []acp.Listed
	for _, l := range list {
		if !l.Empty {
			out = append(out, acp.Listed{ID: l.ID, Dir: dir, Title: l.Title})
		}
	}
	return out, nil
}

// Open implements acp.Host.
func (f *farEditor) Open(ctx context.Context, s acp.Start) (acp.Conversation, error) {
	var c *remote.Client
	var err error
	if s.Session == "" {
		c, err = f.begin(ctx)
	} else {
		c, err = f.choose(ctx, s.Session)
	}
	if errors.Is(err, store.ErrUnknown) {
		return nil, fmt.Errorf("session %q: %w", s.Session, acp.ErrUnknown)
	}
	if err != nil {
		return nil, err
	}
	seat := &farSeat{host: f, id: c.Info().ID, client: c, moved: make(chan struct{})}
	for line := range strings.Lines(c.Hello().Notices) {
		seat.notices = append(seat.notices, strings.TrimSpace(line))
	}
	if len(s.Servers) > 0 {
		seat.notices = append(seat.notices, "the MCP servers of the editor are not used: the workspace is on "+c.Host()+", which has its own")
	}
	for _, notice := range seat.notices {
		fmt.Fprintln(f.p.Stderr, termtext.Line(notice))
	}
	return seat, nil
}

// begin gives away the conversation that the connection began with, if nothing was said
// in it, else a new one.
func (f *farEditor) begin(ctx context.Context) (*remote.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := !f.used && f.client.LastSeq() <= 1
	f.used = true
	if first {
		return f.client, nil
	}
	c, err := f.client.NewSession(ctx)
	if err != nil {
		return nil, err
	}
	f.client = c
	return c, nil
}

// choose makes a conversation the current one, and returns its client.
func (f *farEditor) choose(ctx context.Context, id string) (*remote.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = true
	if f.client.Info().ID == id {
		return f.client, nil
	}
	return f.take(ctx, id)
}

// back makes a conversation current again that another client went away from.
func (f *farEditor) back(ctx context.Context, id string) (*remote.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.take(ctx, id)
}

// take selects a conversation. f.mu is held.
func (f *farEditor) take(ctx context.Context, id string) (*remote.Client, error) {
	c, err := f.client.Select(ctx, id)
	if err != nil {
		return nil, err
	}
	f.client = c
	return c, nil
}

// farSeat is a conversation of an editor on a server. It implements acp.Conversation.
type farSeat struct {
	host *farEditor
	id   string

	mu      sync.Mutex
	notices []string       // that the person was not told yet
	client  *remote.Client // the last one of this conversation
	moved   chan struct{}  // closed and replaced with client
}

func (s *farSeat) now() (*remote.Client, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client, s.moved
}

func (s *farSeat) conv() *remote.Client {
	c, _ := s.now()
	return c
}

func (s *farSeat) use(c *remote.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != c {
		s.client = c
		close(s.moved)
		s.moved = make(chan struct{})
	}
}

func (s *farSeat) untold() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.notices
	s.notices = nil
	return list
}

// Info implements acp.Conversation.
func (s *farSeat) Info() event.Session { return s.conv().Info() }

// LastSeq implements acp.Conversation.
func (s *farSeat) LastSeq() int64 { return s.conv().LastSeq() }

// Answer implements acp.Conversation.
func (s *farSeat) Answer(callID string, a event.Answer) error { return s.conv().Answer(callID, a) }

// Enqueue implements acp.Conversation.
func (s *farSeat) Enqueue(item event.Item) (string, error) { return s.conv().Enqueue(item) }

// Close implements acp.Conversation. The conversation is the server's.
func (s *farSeat) Close() error { return nil }

// SetMode implements acp.Conversation.
func (s *farSeat) SetMode(context.Context, string) error {
	return withHint(fmt.Errorf("the profile of %s is %s", s.conv().Host(), s.Info().Profile), "it is chosen where the server is started")
}

// Commands implements acp.Conversation.
func (s *farSeat) Commands() []acp.Command {
	if !s.conv().Hello().Commands {
		return nil
	}
	var list []acp.Command
	for _, c := range new(desk).commands() {
		if c.Group == "" && !slices.Contains(notInEditors, c.Name) {
			list = append(list, acp.Command{Name: c.Name, About: c.Help, Usage: c.Usage})
		}
	}
	return list
}

// Events implements acp.Conversation: while another conversation is current there is
// nothing new.
func (s *farSeat) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for _, notice := range s.untold() {
			if !yield(event.Event{Kind: event.Info, Text: notice}, nil) {
				return
			}
		}
		for {
			client, moved := s.now()
			part, stop := context.WithCancel(ctx)
			watch := make(chan struct{})
			go func() {
				defer close(watch)
				select {
				case <-moved:
					stop()
				case <-part.Done():
				}
			}()
			more := true
			for e, err := range client.Events(part, after) {
				if err != nil {
					break
				}
				after = max(after, e.Seq)
				if more = yield(e, nil); !more {
					break
				}
			}
			stop()
			<-watch
			if !more {
				return
			}
			select {
			case <-moved:
			case <-ctx.Done():
				yield(event.Event{}, ctx.Err())
				return
			}
		}
	}
}

// Run implements acp.Conversation.
func (s *farSeat) Run(ctx context.Context, in event.Input, ask acp.Forms) (event.Reason, error) {
	c, err := s.host.choose(ctx, s.id)
	if err != nil {
		return "", err
	}
	s.use(c)
	reason, err := s.send(ctx, c, in, ask)
	if _, gone := switched(err); !gone || !errors.Is(err, remote.ErrNotSent) {
		return reason, err
	}
	if c, err = s.host.back(ctx, s.id); err != nil {
		return "", err
	}
	s.use(c)
	return s.send(ctx, c, in, ask)
}

// send sends a prompt, or a slash command of the server.
func (s *farSeat) send(ctx context.Context, c *remote.Client, in event.Input, ask acp.Forms) (event.Reason, error) {
	text := strings.TrimSpace(in.Text)
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || startsTurn(text) || !c.Hello().Commands {
		return c.Prompt(ctx, event.Input{Text: farText(c, withAttached(in)), Images: in.Images})
	}
	word, _, _ := strings.Cut(text[1:], " ")
	if slices.Contains(notInEditors, word) {
		return "", withHint(fmt.Errorf("/%s does not work in an editor", word), "the editor begins, lists and opens sessions itself")
	}
	out, err := c.Command(ctx, text, ask)
	switch {
	case err != nil:
		return "", err
	case out.Error != "":
		return "", withHint(errors.New(out.Error), "%s", out.Hint)
	case out.Draft != "":
		return "", withHint(errors.New("the command prepared a text, which an editor cannot take"), "send it yourself: %s", out.Draft)
	case out.Submit != "":
		return c.Prompt(ctx, event.Input{Text: out.Submit})
	}
	return out.Reason, nil
}

// maxFarAttached bounds the texts that go with a prompt to a server, in bytes.
const maxFarAttached = 64 << 10

// withAttached puts the texts of buffers behind the prompt, where no mention in them
// counts.
func withAttached(in event.Input) string {
	var b strings.Builder
	b.WriteString(in.Text)
	for i, a := range in.Attached {
		if i == 0 {
			b.WriteString(pipedMark)
		}
		text := a.Text
		if room := maxFarAttached - b.Len(); len(text) > room {
			text = strings.ToValidUTF8(text[:max(room, 0)], "") + "\n[cut here]"
		}
		fmt.Fprintf(&b, "%s, as the editor has it:\n%s\n", a.Name, text)
	}
	return b.String()
}
