package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	spec "github.com/mark3labs/mcp-go/mcp"
)

// Resource is something that a server lets be attached to a message.
type Resource struct{ URI, Name, Description string }

// Prompt is a request that a server has prepared.
type Prompt struct {
	Server, Name, Description string
	Args                      []PromptArg
}

// PromptArg is an argument of a prompt.
type PromptArg struct {
	Name     string
	Required bool
}

const (
	maxListed     = 1000 // resources, or prompts, of one server
	maxPromptArgs = 50   // arguments of one prompt
	maxURI        = 2000 // characters of a resource's address
)

// each lists what a server has under field, page by page: ask asks for the page at a
// cursor, take gets at most maxListed elements.
func (c *conn) each(ctx context.Context, field string, ask func(context.Context, spec.Cursor) error, take func(json.RawMessage)) error {
	left := maxListed
	var cursor spec.Cursor
	for range maxPages {
		var raw json.RawMessage
		err := ask(capture(ctx, &raw), cursor)
		if raw == nil {
			return c.failure(ctx, err)
		}
		page, err := membersLenient(raw)
		if err != nil {
			return err
		}
		list, _ := memberOf(page, field)
		_, err = eachElement(list.raw, left, func(one json.RawMessage) {
			left--
			take(one)
		})
		next, more := memberOf(page, "nextCursor")
		cursor = ""
		if more && json.Unmarshal(next.raw, &cursor) != nil || err != nil || cursor == "" || left == 0 {
			return err
		}
	}
	return nil
}

func pageAt(cursor spec.Cursor) spec.PaginatedRequest {
	return spec.PaginatedRequest{Params: spec.PaginatedParams{Cursor: cursor}}
}

// Resources lists what a server that runs, or can be started, offers.
func (h *Hub) Resources(ctx context.Context, name string) ([]Resource, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return nil, err
	}
	c, err := l.await(ctx)
	if err != nil || c.caps.Resources == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.dial.callTimeout(l.entry), errTimeout{h.dial.callTimeout(l.entry)})
	defer cancel()
	var list []Resource
	ask := func(ctx context.Context, at spec.Cursor) error {
		_, err := c.client.ListResourcesByPage(ctx, spec.ListResourcesRequest{PaginatedRequest: pageAt(at)})
		return err
	}
	err = c.each(ctx, "resources", ask, func(raw json.RawMessage) {
		var r struct{ URI, Name, Description string }
		if json.Unmarshal(raw, &r) == nil && r.URI != "" && plain(r.URI, maxURI) == r.URI {
			list = append(list, Resource{r.URI, plain(r.Name, 100), plain(r.Description, 200)})
		}
	})
	return list, err
}

// Attachment is the content of a resource, for a message.
type Attachment struct {
	Text   string
	Images [][]byte
}

// Read reads a resource of a server.
func (h *Hub) Read(ctx context.Context, name, uri string) (Attachment, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return Attachment{}, err
	}
	c, err := l.await(ctx)
	if err != nil {
		return Attachment{}, fmt.Errorf("MCP server %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.dial.callTimeout(l.entry), errTimeout{h.dial.callTimeout(l.entry)})
	defer cancel()
	var raw json.RawMessage
	_, err = c.client.ReadResource(capture(ctx, &raw), spec.ReadResourceRequest{Params: spec.ReadResourceParams{URI: uri}})
	if raw == nil {
		return Attachment{}, fmt.Errorf("MCP server %s: read %s: %w", name, plain(uri, 200), c.failure(ctx, err))
	}
	var r struct {
		Contents json.RawMessage `json:"contents"`
	}
	g := &gathered{vision: h.o.Vision != nil && h.o.Vision()}
	err = json.Unmarshal(raw, &r)
	if err == nil {
		err = g.addAll(r.Contents, g.resource)
	}
	if err != nil || len(g.texts) == 0 {
		return Attachment{}, fmt.Errorf("MCP server %s: %s has no content that can be read", name, plain(uri, 200))
	}
	return Attachment{Text: h.bound(g.text()), Images: g.images}, nil
}

// Prompts lists the prompts of all servers: as a server that runs has them, else as they
// were when it ran last. Those of a project's server come after its tools are confirmed.
func (h *Hub) Prompts() []Prompt {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Prompt
	for _, l := range h.sortedLinks() {
		for _, p := range l.promptsNow(h.reg.pins.server(l.key)) {
			out := Prompt{Server: l.entry.Name, Name: p.Name, Description: p.Description}
			for _, a := range p.Args {
				out.Args = append(out.Args, PromptArg(a))
			}
			list = append(list, out)
		}
	}
	return list
}

func (l *link) promptsNow(pin *serverPin) []promptPin {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case pin == nil && l.entry.Scope != User:
		return nil
	case l.known && l.seen.asked:
		return l.seen.prompts
	case pin == nil:
		return nil
	}
	return pin.Prompts
}

// promptWait bounds the question for the prompts of a server: they are a convenience
// that its tools do not wait for longer.
const promptWait = 5 * time.Second

// prompts lists the prompts of a server that can be called. Nil is that it cannot be
// said; why is noted in the log.
func (l *link) prompts(ctx context.Context, c *conn) []promptPin {
	list := []promptPin{}
	if c.caps.Prompts == nil {
		return list
	}
	ctx, cancel := context.WithTimeoutCause(ctx, promptWait, errTimeout{promptWait})
	defer cancel()
	ask := func(ctx context.Context, at spec.Cursor) error {
		_, err := c.client.ListPromptsByPage(ctx, spec.ListPromptsRequest{PaginatedRequest: pageAt(at)})
		return err
	}
	err := c.each(ctx, "prompts", ask, func(raw json.RawMessage) {
		var p spec.Prompt
		if json.Unmarshal(raw, &p) != nil || !isWord(p.Name) {
			return
		}
		pin := promptPin{Name: p.Name, Description: plain(p.Description, 200)}
		for _, a := range p.Arguments[:min(len(p.Arguments), maxPromptArgs)] {
			pin.Args = append(pin.Args, promptArg{Name: plain(a.Name, 60), Required: a.Required})
		}
		list = append(list, pin)
	})
	if err != nil {
		l.log.add("client: list the prompts: " + err.Error())
		return nil
	}
	return list
}

// isWord reports whether a name can stand in a slash command.
func isWord(name string) bool {
	return name != "" && len(name) <= 100 && plain(name, 100) == name && !strings.ContainsAny(name, " \t\n")
}

func samePrompts(a, b []promptPin) bool {
	return slices.EqualFunc(a, b, func(x, y promptPin) bool {
		return x.Name == y.Name && x.Description == y.Description && slices.Equal(x.Args, y.Args)
	})
}

// Ask has a server fill in one of its prompts. The text is at most max bytes.
func (h *Hub) Ask(ctx context.Context, name, prompt string, args map[string]string, max int) (string, error) {
	l, err := h.linkOf(name)
	if err != nil {
		return "", err
	}
	c, err := l.await(ctx)
	if err != nil {
		return "", fmt.Errorf("MCP server %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.dial.callTimeout(l.entry), errTimeout{h.dial.callTimeout(l.entry)})
	defer cancel()
	var raw json.RawMessage
	_, err = c.client.GetPrompt(capture(ctx, &raw), spec.GetPromptRequest{Params: spec.GetPromptParams{Name: prompt, Arguments: args}})
	if raw == nil {
		return "", fmt.Errorf("MCP server %s: prompt %s: %w", name, prompt, c.failure(ctx, err))
	}
	var r struct {
		Messages json.RawMessage `json:"messages"`
	}
	g := &gathered{}
	err = json.Unmarshal(raw, &r)
	if err == nil {
		_, err = eachElement(r.Messages, maxParts, func(one json.RawMessage) {
			var m struct{ Content part }
			if json.Unmarshal(one, &m) == nil {
				g.add(m.Content)
			}
		})
	}
	if err != nil {
		return "", fmt.Errorf("MCP server %s: prompt %s cannot be read", name, prompt)
	}
	text := plain(g.text(), len(raw)) // a person sees all of what they send
	if len(text) > max {
		return "", fmt.Errorf("the prompt is %d bytes long; at most %d are taken (mcp_prompt_max_bytes)", len(text), max)
	}
	return text, nil
}
