package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// State is what a server does at the moment.
type State string

// The states of a server.
const (
	Idle     State = "idle"
	Starting State = "starting"
	Up       State = "up"
	Down     State = "down" // it failed to start, or ended
)

const (
	// A server that ended may be started maxStarts times within startWindow without
	// a person.
	maxStarts   = 3
	startWindow = time.Minute
)

// link is one server over its lives. Its methods may be called from several
// goroutines.
type link struct {
	hub   *Hub
	key   string // in the pins
	entry Entry
	log   *ring

	mu     sync.Mutex
	state  State
	conn   *conn         // while up
	ready  chan struct{} // closed when a start is over
	stop   chan struct{} // closed to end the run
	ended  chan struct{} // closed when the run is over
	err    error         // why it is down
	starts []time.Time
	seen   listing
	known  bool // seen is valid
	drift  drift
	// review says that a person is about to be asked for the tools, so that the first
	// use pins nothing.
	review bool
}

// listing is what a server said that it has.
type listing struct {
	tools   []Definition
	prompts []promptPin
	asked   bool // prompts is valid
	// noProbe says that the server did not bear the question which protocol it speaks.
	noProbe bool
}

// drift is how the tools that a server has differ from those that were pinned.
type drift struct{ changed, added, removed []string }

func (d drift) empty() bool { return len(d.changed)+len(d.added)+len(d.removed) == 0 }

// driftOf compares. Without a pin all tools are new.
func driftOf(pin *serverPin, live []Definition) drift {
	var d drift
	for _, now := range live {
		old, ok := pin.tool(now.Name)
		switch {
		case !ok:
			d.added = append(d.added, now.Name)
		case !sameDefinition(old.Definition, now):
			d.changed = append(d.changed, now.Name)
		}
	}
	if pin == nil {
		return d
	}
	for _, old := range pin.Tools {
		if !slices.ContainsFunc(live, func(l Definition) bool { return l.Name == old.Name }) {
			d.removed = append(d.removed, old.Name)
		}
	}
	return d
}

// sameDefinition compares all that the model and a person see of a tool.
func sameDefinition(a, b Definition) bool {
	x, err := a.digest()
	if err != nil {
		return false
	}
	y, err := b.digest()
	return err == nil && x == y
}

// withheld says why a pinned tool is not offered at the moment, or "".
func (l *link) withheld(tool string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case slices.Contains(l.drift.changed, tool):
		return "the server redefined it"
	case slices.Contains(l.drift.removed, tool):
		return "the server no longer has it"
	}
	return ""
}

// await returns the connection, and starts the server when it does not run. It waits
// for a start until ctx ends.
func (l *link) await(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	if l.state == Up {
		select {
		case <-l.conn.over:
			ended := l.ended
			l.mu.Unlock()
			return l.afterRun(ctx, ended)
		default:
		}
		defer l.mu.Unlock()
		return l.conn, nil
	}
	if l.state != Starting {
		if err := l.mayStart(); err != nil {
			l.mu.Unlock()
			return nil, err
		}
		l.begin()
	}
	ready := l.ready
	l.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != Up {
		return nil, l.err
	}
	return l.conn, nil
}

// afterRun waits for the end of a run whose connection was lost, and starts anew.
func (l *link) afterRun(ctx context.Context, ended <-chan struct{}) (*conn, error) {
	select {
	case <-ended:
		return l.await(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// mayStart bounds how often a server is started anew by itself.
func (l *link) mayStart() error {
	now := l.hub.o.Now()
	l.starts = slices.DeleteFunc(l.starts, func(t time.Time) bool { return now.Sub(t) > startWindow })
	if len(l.starts) >= maxStarts {
		return fmt.Errorf("it was started %d times within a minute and is down again (%w); /mcp restart %s starts it", len(l.starts), l.err, l.entry.Name)
	}
	l.starts = append(l.starts, now)
	return nil
}

// begin asks the hub to run the server. l.mu is held.
func (l *link) begin() {
	l.state, l.err = Starting, nil
	l.ready, l.stop, l.ended = make(chan struct{}), make(chan struct{}), make(chan struct{})
	if !l.hub.launch(l) {
		l.state, l.err = Down, errors.New("servers are not run at the moment")
		close(l.ready)
		close(l.ended)
	}
}

// start begins a run unless there is one, as often as it is asked to.
func (l *link) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == Idle || l.state == Down {
		l.starts = []time.Time{l.hub.o.Now()}
		l.begin()
	}
}

// end ends the run, if there is one, and waits for it. The server may be started
// again at once.
func (l *link) end() {
	l.mu.Lock()
	ended := l.ended
	if l.state == Idle || l.state == Down {
		l.mu.Unlock()
		return
	}
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	l.starts = nil
	l.mu.Unlock()
	<-ended
}

// run is one life of the server.
func (l *link) run(life context.Context) {
	// The next run, which may begin as soon as this one is down, has its own.
	stop, ended := l.stop, l.ended
	defer close(ended)
	life, cancel := context.WithCancel(life)
	defer cancel()
	go func() {
		select {
		case <-stop:
			cancel()
		case <-life.Done():
		}
	}()
	c, err := l.connect(life)
	if err != nil {
		l.settle(Down, nil, err)
		return
	}
	l.settle(Up, c, nil)
	why := errors.New("it was stopped")
	select {
	case <-c.over:
		why = c.why
	case <-life.Done():
	}
	c.close()
	l.settle(Down, nil, why)
}

// settle ends a start, or a run.
func (l *link) settle(s State, c *conn, err error) {
	if err != nil {
		l.log.add("client: " + err.Error())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.state == Starting
	l.state, l.conn, l.err = s, c, err
	if first {
		close(l.ready)
	}
}

// connect starts the server, lists its tools and compares them with the pins.
func (l *link) connect(life context.Context) (*conn, error) {
	entry, pin, err := l.hub.fresh(l)
	if err != nil {
		return nil, err
	}
	limit := l.hub.dial.startTimeout(entry)
	ctx, cancel := context.WithTimeoutCause(life, limit, errTimeout{limit})
	defer cancel()
	d, err := l.hub.dial.dial(life, ctx, entry, pin != nil && pin.NoProbe, l.log)
	if err == nil {
		if err = l.list(ctx, d.conn, d.noProbe); err == nil {
			return d.conn, nil
		}
		d.close()
	}
	if line := l.log.last(); strings.Contains(err.Error(), "exit status") && line != "" {
		err = fmt.Errorf("%w; its last words: %s", err, plain(line, 200))
	}
	return nil, err
}

// mayPin says whether the first use of one of the person's own servers pins its tools.
func (l *link) mayPin(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.review = !yes
}

// list lists the tools and prompts, and compares the tools with what was pinned. The
// first list of one of the person's own servers is pinned as it is; the tools of a
// project's or an editor's server are pinned when a person confirms them.
func (l *link) list(ctx context.Context, c *conn, noProbe bool) error {
	prompts := make(chan []promptPin, 1)
	go func() { prompts <- l.prompts(ctx, c) }()
	live, err := c.tools(ctx)
	if err != nil {
		err = fmt.Errorf("list the tools: %w", err)
	}
	l.mu.Lock()
	seen := listing{tools: live, noProbe: noProbe || l.seen.noProbe, prompts: l.seen.prompts, asked: l.seen.asked}
	first := l.entry.Scope == User && !l.review
	l.mu.Unlock()
	if list := <-prompts; list != nil {
		seen.prompts, seen.asked = list, true
	}
	if err != nil {
		return err
	}
	pin, err := l.hub.pinOf(l.key, seen, first)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen, l.known, l.drift = seen, true, driftOf(pin, live)
	return nil
}

// current makes sure that the list of tools is not older than the server's last word
// about it.
func (l *link) current(ctx context.Context, c *conn) error {
	if !c.stale.Load() {
		return nil
	}
	limit := l.hub.dial.callTimeout(l.entry)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTimeout{limit})
	defer cancel()
	err := l.list(ctx, c, false)
	if err != nil {
		c.stale.Store(true)
	}
	return err
}
