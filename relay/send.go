package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// maxPings bounds the instances that are asked at the same time.
const maxPings = 16

// living asks each listed instance and returns those that answer.
func (n *Node) living(ctx context.Context, listed []Peer, keep func(Peer) bool) []Peer {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var alive []Peer
	slots := make(chan struct{}, maxPings)
	for _, p := range listed {
		if p.ID == n.id || keep != nil && !keep(p) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			state, err := n.ping(ctx, p.ID)
			if err != nil {
				return
			}
			p.State = state
			mu.Lock()
			defer mu.Unlock()
			alive = append(alive, p)
		})
	}
	wg.Wait()
	sort.Slice(alive, func(i, j int) bool {
		a, b := alive[i], alive[j]
		switch {
		case a.Project != b.Project:
			return a.Project < b.Project
		case a.PID != b.PID:
			return a.PID < b.PID
		}
		return a.ID < b.ID
	})
	return alive
}

func (n *Node) nextID() string { return n.id + "-" + strconv.FormatUint(n.counter.Add(1), 10) }

// ping asks an instance whether it is the one that its files name.
func (n *Node) ping(ctx context.Context, target string) (State, error) {
	id := n.nextID()
	a, _, err := n.exchange(ctx, target, id, header{Protocol: protocol, Type: "ping", MessageID: id, Target: target})
	if err != nil {
		return "", err
	}
	if a.Status != statusPong {
		return "", fmt.Errorf("ping instance %q: it said %s: %w", target, a.Status, ErrGone)
	}
	return a.State, nil
}

// Send hands a message to another instance and returns what it said. It blocks for
// at most twice the I/O timeout. When it is not clear whether the message arrived
// it is sent once more with the same id, which the receiver takes only once. The
// error wraps ErrRefused or ErrGone, or is about the message.
func (n *Node) Send(ctx context.Context, to Peer, body string) (Receipt, error) {
	if chars := utf8.RuneCountInString(body); chars < 1 || chars > n.o.Limits.MessageChars {
		return Receipt{}, fmt.Errorf("send a message: it has %d characters, and 1 to %d are allowed", chars, n.o.Limits.MessageChars)
	}
	if !utf8.ValidString(body) {
		return Receipt{}, errors.New("send a message: it is not valid UTF-8")
	}
	n.mu.Lock()
	err := n.publish(ctx) // the receiver looks at our manifest
	self := n.self
	n.mu.Unlock()
	if err != nil {
		return Receipt{}, err
	}
	id := n.nextID()
	message := enqueue{
		header: header{Protocol: protocol, Type: "enqueue", MessageID: id, Target: to.ID},
		Sender: n.id, PID: n.o.PID, Project: self.Project, Workspace: self.Workspace,
		Body: body, CreatedAt: n.o.Now().Unix(),
	}
	a, unclear, err := n.exchange(ctx, to.ID, id, message)
	if err != nil && unclear && ctx.Err() == nil {
		a, _, err = n.exchange(ctx, to.ID, id, message)
	}
	if err != nil {
		return Receipt{}, err
	}
	switch a.Status {
	case statusAccepted, statusDuplicate:
		return Receipt{ID: id, Position: a.Position, State: a.State}, nil
	}
	return Receipt{}, fmt.Errorf("%w: %s", ErrRefused, meaning(a.Status))
}

// meaning says in words why a message was refused.
func meaning(s status) string {
	switch s {
	case statusPaused:
		return "it is paused and takes no messages"
	case statusFull:
		return "its queue is full"
	case statusWrongTarget:
		return "another instance answers at its place"
	case statusUnsupported:
		return "it does not know this kind of message"
	}
	return "it does not accept it (" + string(s) + ")"
}

// exchange sends one request and reads its reply. unclear says that the receiver may
// have read it though there is an error.
func (n *Node) exchange(ctx context.Context, target, id string, request any) (a ack, unclear bool, err error) {
	body, err := encode(request)
	if err != nil {
		return a, false, fmt.Errorf("send to instance %q: %w", target, err)
	}
	if len(body) > n.o.Limits.FrameBytes {
		return a, false, fmt.Errorf("send to instance %q: the message takes %d bytes, and a frame holds %d", target, len(body), n.o.Limits.FrameBytes)
	}
	conn, err := n.dial(ctx, target)
	if err != nil {
		return a, false, fmt.Errorf("send to instance %q: %w: %w", target, ErrGone, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	a, err = converse(conn, body, n.o.Limits)
	if err == nil && a.MessageID != id && a.MessageID != "" {
		err = fmt.Errorf("the reply is about message %q", a.MessageID)
	}
	if err != nil {
		return a, true, fmt.Errorf("send to instance %q: %w: %w", target, ErrGone, errors.Join(ctx.Err(), err))
	}
	return a, false, nil
}

// dial connects to an instance's socket and makes sure whose it is.
func (n *Node) dial(ctx context.Context, target string) (*net.UnixConn, error) {
	reg := n.reg.Load()
	if _, ok := reg.socket(target); !ok {
		return nil, errors.New("it has no socket of ours")
	}
	dialer := net.Dialer{Timeout: n.o.Limits.IOTimeout}
	conn, err := dialer.DialContext(ctx, "unix", reg.socketPath(target))
	if err != nil {
		return nil, err
	}
	unixConn := conn.(*net.UnixConn)
	if !sameUser(unixConn, n.o.UID) {
		return nil, errors.Join(errors.New("its process belongs to another user"), conn.Close())
	}
	return unixConn, nil
}

// converse writes a request and reads the reply. A receiver may answer before it
// read everything, so that a failed write alone decides nothing.
func converse(conn net.Conn, body []byte, limits Limits) (ack, error) {
	if err := conn.SetDeadline(time.Now().Add(limits.IOTimeout)); err != nil {
		return ack{}, err
	}
	_, werr := conn.Write(appendFrame(body))
	reply, err := readFrame(conn, limits.FrameBytes)
	if err != nil {
		return ack{}, errors.Join(werr, err)
	}
	return readAck(reply)
}

// refuses reports whether nothing listens at a socket. Anything but a clear refusal
// counts as life.
func refuses(path string, timeout time.Duration) bool {
	conn, err := net.DialTimeout("unix", path, timeout)
	if err == nil {
		conn.Close()
		return false
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// exists reports whether any process has the id.
func exists(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }
