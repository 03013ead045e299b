package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"zcoder/tools"
)

// relistWait bounds the question for a list of tools at the start of a turn.
const relistWait = 5 * time.Second

// Offer is what the next turn gets.
type Offer struct {
	Tools []tools.Tool
	// Changed says in what the tools differ from the ones offered before, or is "".
	Changed string
	// Notices are for the person, each given once.
	Notices []string
}

// Refresh takes over what changed since: files that were edited, servers that were
// trusted, tools that came, went or were redefined. It is called between turns, so
// that the tools of a turn are stable, and waits at most a few seconds for servers
// that said that their tools changed.
func (h *Hub) Refresh(ctx context.Context) Offer {
	h.relist(ctx)
	h.mu.Lock()
	var gone []*link
	if h.stampNow() != h.stamps {
		gone = h.reload()
		h.startNew()
	} else {
		h.offered, h.problem = h.offer()
	}
	o := Offer{Changed: changes(h.taken, h.offered)}
	h.taken = h.offered
	o.Tools = h.taken
	o.Notices = h.untold(h.notices())
	h.mu.Unlock()
	endAll(gone)
	return o
}

// Notices are what the person should know now, each given once.
func (h *Hub) Notices() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.untold(h.notices())
}

// Tools returns what the last Refresh did, or at first what is known before any
// server runs.
func (h *Hub) Tools() []tools.Tool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken
}

func (l *link) everStarted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready != nil
}

// endAll ends servers that may no longer run, in parallel, and waits.
func endAll(list []*link) {
	done := make(chan struct{})
	for _, l := range list {
		go func() {
			l.end()
			done <- struct{}{}
		}()
	}
	for range list {
		<-done
	}
}

// relist asks servers for their tools that said that these changed.
func (h *Hub) relist(ctx context.Context) {
	h.mu.Lock()
	list := h.sortedLinks()
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, relistWait)
	defer cancel()
	for _, l := range list {
		l.mu.Lock()
		c := l.conn
		l.mu.Unlock()
		if c == nil {
			continue
		}
		if err := l.current(ctx, c); err != nil {
			l.log.add("client: " + err.Error())
		}
	}
}

// AwaitFirst waits for the person's servers that never ran before, whose tools are not
// known before they do. Each is waited for as long as its start may take.
func (h *Hub) AwaitFirst(ctx context.Context) {
	h.mu.Lock()
	var waits []<-chan struct{}
	for _, l := range h.sortedLinks() {
		if l.entry.Scope == User && h.reg.pins.server(l.key) == nil {
			waits = append(waits, l.settled())
		}
	}
	h.mu.Unlock()
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
}

// settled is closed when the start that is under way is over.
func (l *link) settled() <-chan struct{} {
	l.start()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ready
}

// changes says how the tools offered differ.
func changes(before, after []tools.Tool) string {
	names := func(list []tools.Tool) map[string]string {
		m := make(map[string]string, len(list))
		for _, t := range list {
			s := t.Spec()
			m[s.Name] = s.Description + "\x00" + string(s.Schema)
		}
		return m
	}
	old, now := names(before), names(after)
	var parts []string
	for _, n := range sortedKeys(now) {
		if text, ok := old[n]; !ok {
			parts = append(parts, "+"+n)
		} else if text != now[n] {
			parts = append(parts, "~"+n)
		}
	}
	for _, n := range sortedKeys(old) {
		if _, ok := now[n]; !ok {
			parts = append(parts, "-"+n)
		}
	}
	return strings.Join(fewOf(parts), " ")
}

// fewOf cuts a list that is shown in one line.
func fewOf(list []string) []string {
	const most = 6
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}

// untold leaves out what was told before. h.mu is held.
func (h *Hub) untold(list []string) []string {
	var out []string
	for _, text := range list {
		if !h.told[text] {
			h.told[text] = true
			out = append(out, text)
		}
	}
	return out
}

// notices describes everything that is not as it should be. h.mu is held.
func (h *Hub) notices() []string {
	list := append(slices.Clone(h.reg.problems), h.problem...)
	var waiting []string
	for _, e := range h.reg.entries {
		switch e.Standing {
		case Untrusted:
			if e.Scope == Editor {
				continue // whoever runs the session asks
			}
			waiting = append(waiting, e.Name)
		case Changed:
			list = append(list, fmt.Sprintf("MCP server %s is stopped: %s; `/mcp trust %s` shows it and asks", e.Name, e.Why, e.Name))
		case Broken:
			list = append(list, fmt.Sprintf("MCP server %s cannot be used: %s", e.Name, e.Why))
		}
		if e.Overrides {
			list = append(list, fmt.Sprintf("the project's MCP server %s is used instead of yours", e.Name))
		}
	}
	if len(waiting) > 0 {
		list = append(list, fmt.Sprintf("this project wants to run MCP servers that nobody approved: %s; `/mcp trust` shows them and asks", strings.Join(fewOf(waiting), ", ")))
	}
	for _, l := range h.sortedLinks() {
		list = append(list, l.notices(h.reg.pins.server(l.key) == nil)...)
	}
	return list
}

func (l *link) notices(first bool) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := l.entry.Name
	var list []string
	if l.state == Starting && first && l.entry.Scope == User {
		list = append(list, fmt.Sprintf("MCP server %s runs for the first time; its tools join at the next turn", name))
	}
	if l.state == Down && l.err != nil {
		list = append(list, fmt.Sprintf("MCP server %s is down: %v; `/mcp logs %s` shows what it wrote", name, l.err, name))
	}
	for _, part := range []struct {
		what  string
		names []string
	}{{"redefined", l.drift.changed}, {"has new tools, which are not offered yet:", l.drift.added}, {"no longer has", l.drift.removed}} {
		if len(part.names) > 0 {
			list = append(list, fmt.Sprintf("MCP server %s %s %s; `/mcp trust %s` shows it and asks", name, part.what, plain(strings.Join(part.names, ", "), 200), name))
		}
	}
	return list
}
