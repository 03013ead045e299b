package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what Open needs. All but Paused are required.
type Options struct {
	Directory string // of the registry, absolute; made if its parent is there
	Spool     string // where the queue goes: a name in a private directory that is not there yet
	UID, PID  int    // of this process
	Self      Self
	Limits    Limits
	Paused    bool // start so that new messages are refused
	Now       func() time.Time
}

// Node is this instance in the registry. Its methods may be called from several
// goroutines.
type Node struct {
	o   Options
	id  string
	reg atomic.Pointer[registry]
	box *spool

	server  *server
	counter atomic.Uint64 // of messages sent
	arrived chan struct{}
	started int64
	sweep   sync.WaitGroup

	mu     sync.Mutex // guards what is said of this instance
	self   Self
	busy   bool
	paused bool
	shown  []byte // the manifest as it was published
	closed bool
}

// Open makes this process an instance that others find and can write to. It listens
// in goroutines of its own until Close.
func Open(ctx context.Context, o Options) (*Node, error) {
	if err := o.Self.check(); err != nil {
		return nil, fmt.Errorf("open the relay: %w", err)
	}
	reg, err := openRegistry(o.Directory, o.UID)
	if err != nil {
		return nil, err
	}
	n := &Node{o: o, box: newSpool(o.Spool, o.Limits.Queue), arrived: make(chan struct{}, 1), self: o.Self, paused: o.Paused, started: o.Now().Unix()}
	n.reg.Store(reg)
	n.server = newServer(o.Limits, o.UID, n.answer)
	if err := n.enter(ctx); err != nil {
		return nil, errors.Join(err, reg.close())
	}
	n.sweep.Go(n.removeStale)
	return n, nil
}

// idTries bounds the search for an id that nobody has.
const idTries = 16

// enter takes a fresh id, listens, and then publishes.
func (n *Node) enter(ctx context.Context) error {
	reg := n.reg.Load()
	for try := 0; ; try++ {
		id, err := newID(n.o.PID)
		if err != nil {
			return err
		}
		n.id = id
		if _, taken := reg.root.Lstat(manifestName(id)); taken == nil {
			err = fs.ErrExist
		} else {
			err = n.server.listen(ctx, reg.socketPath(id))
		}
		if err == nil {
			break
		}
		if !inUse(err) || try == idTries {
			return fmt.Errorf("open the relay: %w", err)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.publish(ctx); err != nil {
		return errors.Join(err, n.server.close(), ignoreGone(reg.root.Remove(socketName(n.id))))
	}
	return nil
}

// newID makes an id that nobody can foresee.
func newID(pid int) (string, error) {
	nonce, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 48))
	if err != nil {
		return "", fmt.Errorf("make an instance id: %w", err)
	}
	return strconv.Itoa(pid) + "-" + nonce.String(), nil
}

// ID is this instance's id.
func (n *Node) ID() string { return n.id }

// Directory is the registry's path.
func (n *Node) Directory() string { return n.reg.Load().path }

// Arrived has a value after messages were accepted or may be claimed again.
func (n *Node) Arrived() <-chan struct{} { return n.arrived }

func (n *Node) wake() {
	select {
	case n.arrived <- struct{}{}:
	default:
	}
}

// Set says what this instance is and does now. It publishes what changed, and puts
// back what somebody removed from the registry.
func (n *Node) Set(ctx context.Context, self Self, busy bool) error {
	if err := self.check(); err != nil {
		return fmt.Errorf("describe this instance: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.self, n.busy = self, busy
	return n.publish(ctx)
}

// Pause refuses new messages and keeps the accepted ones, or takes messages again.
func (n *Node) Pause(ctx context.Context, on bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = on
	if !on {
		n.wake()
	}
	return n.publish(ctx)
}

// State is what this instance tells others.
func (n *Node) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state()
}

func (n *Node) state() State {
	switch {
	case n.paused:
		return Paused
	case n.busy:
		return Busy
	}
	return Ready
}

// publish writes the manifest if it is not there as it should be. The socket comes
// first: what is published answers.
func (n *Node) publish(ctx context.Context) error {
	if n.closed {
		return nil
	}
	reg, err := n.revive(ctx)
	if err != nil {
		return err
	}
	data, err := encode(manifest{
		Protocol: protocol, ID: n.id, PID: n.o.PID, Project: n.self.Project, Workspace: n.self.Workspace,
		Session: n.self.Session, Profile: n.self.Profile, Model: n.self.Model,
		Socket: reg.socketPath(n.id), State: n.state(), StartedAt: n.started,
	})
	if err != nil {
		return fmt.Errorf("publish the manifest: %w", err)
	}
	if _, err := reg.root.Lstat(manifestName(n.id)); err == nil && string(data) == string(n.shown) {
		return nil
	}
	if err := reg.publish(n.id, data); err != nil {
		return err
	}
	n.shown = data
	return nil
}

// revive makes the directory and the socket again when somebody removed them. What
// stands in the socket's place is never taken away.
func (n *Node) revive(ctx context.Context) (*registry, error) {
	reg := n.reg.Load()
	if reg.check() != nil {
		fresh, err := openRegistry(n.o.Directory, n.o.UID)
		if err != nil {
			return nil, err
		}
		n.reg.Store(fresh)
		_ = reg.close() // of a directory that is gone
		reg = fresh
	}
	if info, ok := reg.socket(n.id); ok && n.server.isOwn(info) {
		return reg, nil
	}
	if err := n.server.listen(ctx, reg.socketPath(n.id)); err != nil {
		return nil, fmt.Errorf("listen again for other instances: %w", err)
	}
	return reg, nil
}

// Claim takes the oldest message that waits; there is none while the instance is
// paused. The caller runs it and calls Done, also when there is an error, which is
// about the message's file. Claim does not wait for anybody.
func (n *Node) Claim() (Envelope, bool, error) {
	if n.State() == Paused {
		return Envelope{}, false, nil
	}
	return n.box.claim()
}

// Done ends a claimed message, however its turn ended.
func (n *Node) Done(e Envelope) error { return n.box.done(e) }

// Waiting returns what was accepted and not claimed, oldest first.
func (n *Node) Waiting() []Envelope { return n.box.list() }

// Depth is how many messages wait. It never blocks.
func (n *Node) Depth() int { return int(n.box.depth.Load()) }

// Drop ends a message that waits without running it, named by its number or its id;
// ErrNoItem when there is none.
func (n *Node) Drop(name string) (Envelope, error) {
	return n.box.drop(func(e Envelope) bool { return strconv.FormatUint(e.Number, 10) == name || e.ID == name })
}

// Close leaves the registry, stops listening and waits for what is being answered.
// What waits is lost.
func (n *Node) Close() error {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.sweep.Wait()
	reg := n.reg.Load()
	info, there := reg.socket(n.id)
	errs := []error{ignoreGone(reg.root.Remove(manifestName(n.id))), n.server.close()}
	if there && n.server.isOwn(info) {
		errs = append(errs, ignoreGone(reg.root.Remove(socketName(n.id))))
	}
	if n.box.begun {
		errs = append(errs, os.RemoveAll(n.o.Spool))
	}
	errs = append(errs, reg.close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the relay: %w", err)
	}
	return nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// answer judges one request. It touches nothing but the spool.
func (n *Node) answer(data []byte, err error) ack {
	a := ack{Protocol: protocol, Type: "ack", Status: statusInvalid, State: n.State()}
	if err != nil {
		return a
	}
	e, id, verdict := read(data, n.id, n.o.Limits)
	a.MessageID, a.Status = id, verdict
	if verdict != "" {
		return a
	}
	if !n.vouched(e) {
		a.Status = statusInvalid
		return a
	}
	a.Status, a.Position = n.box.add(e, a.State == Paused)
	if a.Status == statusAccepted {
		n.wake()
	}
	return a
}

// vouched reports whether the sender is what its manifest says and lives. This keeps
// the shown sender truthful; it proves nothing, since every process of the user can
// write manifests.
func (n *Node) vouched(e Envelope) bool {
	reg := n.reg.Load()
	p, err := reg.manifest(e.Sender)
	if err != nil || p.PID != e.PID || p.Project != e.Project || p.Workspace != e.Workspace {
		return false
	}
	_, listens := reg.socket(e.Sender)
	return listens && alive(e.PID, n.o.UID)
}

// Peers returns the other instances that answer now, sorted by project and process
// id. keep chooses among those that are listed before any is asked; nil asks all. It
// blocks for at most the I/O timeout and a little.
func (n *Node) Peers(ctx context.Context, keep func(Peer) bool) ([]Peer, error) {
	n.mu.Lock()
	err := n.publish(ctx)
	n.mu.Unlock()
	if err != nil {
		return nil, err
	}
	listed, err := n.reg.Load().listed()
	if err != nil {
		return nil, err
	}
	return n.living(ctx, listed, keep), nil
}

// removeStale removes what dead instances left: the socket refuses, the process is
// gone, and both for some time. An id is never used again, so that nothing live can
// come into its place.
func (n *Node) removeStale() {
	reg := n.reg.Load()
	names, err := reg.names()
	if err != nil {
		return
	}
	for _, name := range names {
		if id, kind, ok := entryOf(name); ok && id != n.id && n.stale(reg, name, id, kind) {
			_ = reg.root.Remove(name) // what stays is tried again at the next start
		}
	}
}

// entryOf takes the name of a file in the registry apart.
func entryOf(name string) (id, kind string, ok bool) {
	for _, form := range [...][2]string{{prefix, socketSuffix}, {prefix, manifestSuffix}, {draftPrefix, draftSuffix}} {
		if id, ok = idOf(name, form[0], form[1]); ok {
			return id, form[1], true
		}
	}
	return "", "", false
}

func (n *Node) stale(reg *registry, name, id, kind string) bool {
	info, err := reg.root.Lstat(name)
	if err != nil || !reg.ours(info) || n.o.Now().Sub(info.ModTime()) < staleAge {
		return false
	}
	wanted := fs.FileMode(0)
	if kind == socketSuffix {
		wanted = fs.ModeSocket
	}
	if info.Mode().Type() != wanted || exists(pidOf(id)) {
		return false
	}
	if _, there := reg.socket(id); !there && kind != socketSuffix {
		return true
	}
	return refuses(reg.socketPath(id), n.o.Limits.IOTimeout)
}

// Project is the display name of a workspace.
func Project(workspace string) string {
	name := filepath.Base(workspace)
	if r := []rune(name); len(r) > maxProject {
		name = string(r[:maxProject])
	}
	return name
}
