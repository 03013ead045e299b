package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"zcoder/tools"
)

// Options are what a Hub needs. Home, Root, Lookup and Now are required.
type Options struct {
	Home string // $ZCODER_HOME
	Root string // the workspace, canonical
	// Given is a registry text that no file holds: the servers of an editor. It does
	// not change.
	Given []byte
	// Lookup returns a variable of the person's environment.
	Lookup  func(name string) (string, bool)
	Version string // of this program
	// StartTimeout and CallTimeout hold where an entry says nothing.
	StartTimeout, CallTimeout time.Duration
	// MaxOutput bounds a result in characters; 0 is no bound.
	MaxOutput int
	// Spill stores the whole of a result that was cut, and returns where; nil does
	// not.
	Spill func(text string) (path string, err error)
	// Vision reports whether the model in use takes images; nil is false.
	Vision func() bool
	// Proxy is the proxy for servers over HTTP; nil is none.
	Proxy func(*http.Request) (*url.URL, error)
	Now   func() time.Time
	// OnDemand has Start, and what reads the files again, start no server by itself:
	// one starts when it is asked for something.
	OnDemand bool
	// Transport replaces how servers are reached, for tests.
	Transport func(Entry) (transport.Interface, error)
}

// Hub holds the registered servers, runs them and offers their tools. Its methods may
// be called from several goroutines.
type Hub struct {
	o    Options
	at   places
	dial *dialer

	launches chan *link
	served   chan struct{} // closed when nothing is launched any more
	running  atomic.Bool
	runs     sync.WaitGroup

	mu      sync.Mutex
	cancel  context.CancelFunc // of the runs, once started
	reg     *registry
	stamps  [3]stamp
	links   map[string]*link // by key
	offered []tools.Tool     // as the files, the pins and the servers say now
	taken   []tools.Tool     // what the turns have
	problem []string         // why tools are not offered
	told    map[string]bool  // notices that were given
	schemas map[string]json.RawMessage
}

// Open reads the registry. It starts no server.
func Open(o Options) *Hub {
	h := &Hub{
		o: o, at: places{home: o.Home, root: o.Root, given: o.Given, lookup: o.Lookup},
		dial: &dialer{
			home: o.Home, root: o.Root, version: o.Version, start: o.StartTimeout, call: o.CallTimeout,
			web: newHTTP(o.Proxy), other: o.Transport,
		},
		launches: make(chan *link), served: make(chan struct{}), links: map[string]*link{}, told: map[string]bool{}, schemas: map[string]json.RawMessage{},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reload()
	h.taken = h.offered
	return h
}

// Empty reports whether no server is registered and nothing is wrong.
func (h *Hub) Empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.reg.entries)+len(h.reg.problems) == 0
}

// Start starts the servers that may run, in the background. They end with ctx, or
// with Close.
func (h *Hub) Start(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cancel != nil {
		return
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.running.Store(true)
	h.runs.Add(1)
	go h.serve(ctx)
	h.startNew()
}

// startNew starts the servers that never ran. h.mu is held.
func (h *Hub) startNew() {
	if !h.running.Load() || h.o.OnDemand {
		return
	}
	for _, l := range h.sortedLinks() {
		if !l.everStarted() {
			l.start()
		}
	}
}

// serve runs servers as they are asked for.
func (h *Hub) serve(ctx context.Context) {
	defer h.runs.Done()
	defer close(h.served)
	for {
		select {
		case l := <-h.launches:
			h.runs.Add(1)
			go func() {
				defer h.runs.Done()
				l.run(ctx)
			}()
		case <-ctx.Done():
			return
		}
	}
}

// launch asks serve to run a link. It reports false when servers are not run, or no
// longer.
func (h *Hub) launch(l *link) bool {
	if !h.running.Load() {
		return false
	}
	select {
	case h.launches <- l:
		return true
	case <-h.served:
		return false
	}
}

// Close ends all servers with everything that they started, and waits for it.
func (h *Hub) Close() error {
	h.mu.Lock()
	cancel := h.cancel
	h.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	h.runs.Wait()
	return nil
}

// stamp is by what a change of a file is noticed.
type stamp struct {
	size int64
	time time.Time
}

func (h *Hub) stampNow() [3]stamp {
	var out [3]stamp
	for i, path := range []string{h.at.userFile(), h.at.projectFile(), h.at.store().path()} {
		if info, err := os.Lstat(path); err == nil {
			out[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return out
}

// reload reads the registry again and makes a link for each server that may run.
// Links of others are taken away; the caller ends what it gets. h.mu is held.
func (h *Hub) reload() (gone []*link) {
	h.stamps = h.stampNow()
	h.reg = h.at.read()
	keep := map[string]*link{}
	for _, e := range h.reg.entries {
		if e.Standing != Ready {
			continue
		}
		key := pinKey(e.Scope, h.o.Root, e.Name)
		if l := h.links[key]; l != nil && sameEntry(l.entry, e) {
			keep[key] = l
			continue
		}
		keep[key] = &link{hub: h, key: key, entry: e, log: &ring{}, state: Idle}
	}
	for key, l := range h.links {
		if keep[key] != l {
			gone = append(gone, l)
		}
	}
	h.links = keep
	for key, l := range keep {
		l.mu.Lock()
		if l.known {
			l.drift = driftOf(h.reg.pins.server(key), l.seen.tools)
		}
		l.mu.Unlock()
	}
	h.offered, h.problem = h.offer()
	return gone
}

func sameEntry(a, b Entry) bool {
	return string(a.Raw) == string(b.Raw) && a.Program.differs(b.Program) == "" && slices.Equal(a.env, b.env)
}

// sortedLinks returns the links in the order of their keys. h.mu is held.
func (h *Hub) sortedLinks() []*link {
	var list []*link
	for _, key := range sortedKeys(h.links) {
		list = append(list, h.links[key])
	}
	return list
}

// fresh reads the registry again for a server that is about to start: only what is
// trusted now may run.
func (h *Hub) fresh(l *link) (Entry, *serverPin, error) {
	reg := h.at.read()
	e := reg.find(l.entry.Name, l.entry.Scope)
	switch {
	case e == nil:
		return Entry{}, nil, errors.New("it is no longer registered")
	case e.Standing == Ready && !sameEntry(*e, l.entry):
		return Entry{}, nil, errors.New("its entry changed; /mcp reload takes it over")
	case e.Standing != Ready:
		return Entry{}, nil, fmt.Errorf("it is %s: %s", e.Standing, e.Why)
	}
	return *e, reg.pins.server(l.key), nil
}

// pinOf returns the pin of a server, nil when a person has to confirm its tools first.
// Of one of the person's own servers the first use makes it. What else is remembered
// of a server, which grants nothing, is brought up to date.
func (h *Hub) pinOf(key string, seen listing, first bool) (*serverPin, error) {
	p, err := h.at.store().load()
	if err != nil {
		return nil, err
	}
	pin := p.server(key)
	if pin == nil && !first || pin != nil && pin.remembers(seen) {
		return pin, nil
	}
	err = h.at.store().change(func(p *pins) {
		if pin = p.server(key); pin == nil && first {
			pin = &serverPin{Tools: pinsOf(seen.tools, nil)}
		}
		if pin != nil {
			pin.remember(seen)
			p.setServer(key, pin)
		}
	})
	return pin, err
}

// pinsOf makes pins of definitions. accept names the tools whose claims a person
// confirmed.
func pinsOf(live []Definition, accept func(Definition) string) []toolPin {
	list := make([]toolPin, 0, len(live))
	for _, d := range live {
		t := toolPin{Definition: d}
		if accept != nil {
			t.Accepted = accept(d)
		}
		list = append(list, t)
	}
	return list
}

// linkOf returns the link of the server that a name stands for.
func (h *Hub) linkOf(name string) (*link, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.reg.entryFor(name)
	if err != nil {
		return nil, err
	}
	if l := h.links[pinKey(e.Scope, h.o.Root, e.Name)]; l != nil {
		return l, nil
	}
	if e.Why == "" {
		return nil, fmt.Errorf("the MCP server %q is %s", name, e.Standing)
	}
	return nil, fmt.Errorf("the MCP server %q is %s: %s", name, e.Standing, e.Why)
}

// entry returns the entry that a name stands for.
func (h *Hub) entry(name string) (Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.reg.entryFor(name)
	if err != nil {
		return Entry{}, err
	}
	return *e, nil
}
