package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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

// maxListed bounds the resources and prompts of one server.
const maxListed = 1000

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
	for r, err := range c.client.IterResources(ctx, spec.ListResourcesRequest{}) {
		if err != nil {
			return list, c.failure(ctx, err)
		}
		list = append(list, Resource{r.URI, plain(r.Name, 100), plain(r.Description, 200)})
		if len(list) == maxListed {
			break
		}
	}
	return list, nil
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
		Contents []part `json:"contents"`
	}
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Contents) == 0 {
		return Attachment{}, fmt.Errorf("MCP server %s: %s has no content that can be read", name, plain(uri, 200))
	}
	g := &gathered{vision: h.o.Vision != nil && h.o.Vision()}
	for _, p := range r.Contents {
		g.resource(p)
	}
	return Attachment{Text: h.bound(g.text()), Images: g.images}, nil
}

// Prompts lists the prompts of all servers, as they were when these ran last.
func (h *Hub) Prompts() []Prompt {
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []Prompt
	for _, l := range h.sortedLinks() {
		pin := h.reg.pins.server(l.key)
		if pin == nil {
			continue
		}
		for _, p := range pin.Prompts {
			out := Prompt{Server: l.entry.Name, Name: p.Name, Description: p.Description}
			for _, a := range p.Args {
				out.Args = append(out.Args, PromptArg(a))
			}
			list = append(list, out)
		}
	}
	return list
}

// notePrompts stores the names of a server's prompts, so that they are known before
// it runs. What fails is noted in the log: prompts are a convenience.
func (l *link) notePrompts(life context.Context, c *conn) {
	if c.caps.Prompts == nil {
		return
	}
	ctx, cancel := context.WithTimeout(life, l.hub.dial.startTimeout(l.entry))
	defer cancel()
	var list []promptPin
	for p, err := range c.client.IterPrompts(ctx, spec.ListPromptsRequest{}) {
		if err != nil || len(list) == maxListed {
			break
		}
		if !isWord(p.Name) {
			continue
		}
		pin := promptPin{Name: p.Name, Description: plain(p.Description, 200)}
		for _, a := range p.Arguments {
			pin.Args = append(pin.Args, promptArg{Name: plain(a.Name, 60), Required: a.Required})
		}
		list = append(list, pin)
	}
	if err := l.hub.storePrompts(l.key, list); err != nil {
		l.log.add("client: " + err.Error())
	}
}

// isWord reports whether a name can stand in a slash command.
func isWord(name string) bool {
	return name != "" && len(name) <= 100 && plain(name, 100) == name && !strings.ContainsAny(name, " \t\n")
}

func (h *Hub) storePrompts(key string, list []promptPin) error {
	p, err := h.at.store().load()
	if err != nil {
		return err
	}
	if pin := p.server(key); pin == nil || samePrompts(pin.Prompts, list) {
		return nil
	}
	return h.at.store().change(func(p *pins) {
		if pin := p.server(key); pin != nil {
			pin.Prompts = list
		}
	})
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
		Messages []struct {
			Content part `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return "", fmt.Errorf("MCP server %s: prompt %s cannot be read", name, prompt)
	}
	g := &gathered{}
	for _, m := range r.Messages {
		g.add(m.Content)
	}
	text := g.text()
	if len(text) > max {
		return "", fmt.Errorf("the prompt is %d bytes long; at most %d are taken (mcp_prompt_max_bytes)", len(text), max)
	}
	return text, nil
}
