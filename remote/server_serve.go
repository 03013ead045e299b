package remote

import (
	"container/list"
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// shutdownTime is how long requests in progress may take when the server ends.
const shutdownTime = 5 * time.Second

// Serve answers the connections of a listener, within bounds, until ctx ends, and
// closes it. It returns nil when ctx ended. The turn that runs goes on until Close.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if s.guard.private {
		return errors.Join(hint(errors.New("serve without a token: anybody could use it"), tokenHint), l.Close())
	}
	d := &door{Listener: l, most: s.limits.connections, waiting: list.New(), streaming: list.New()}
	server := s.httpServer(ctx, d)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(d) }()
	select {
	case err := <-ended:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	case <-s.over:
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	var err error
	if server.Shutdown(late) != nil {
		err = server.Close()
	}
	<-ended
	return err
}

func (s *Server) httpServer(ctx context.Context, d *door) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: s, Protocols: protocols, DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout: s.limits.read, ReadTimeout: s.limits.read, WriteTimeout: s.limits.write,
		IdleTimeout: s.limits.linger, MaxHeaderBytes: maxHeader,
		ErrorLog:    log.New(warner(s.warn), "", 0),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnState:   d.note,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
}

func (s *Server) warn(line string) {
	if s.cfg.Warn != nil {
		s.cfg.Warn(line)
	}
}

// warner makes a function a Writer of lines.
type warner func(line string)

func (w warner) Write(p []byte) (int, error) {
	w(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

type connKey struct{}

// connOf is the connection of a request, nil when Serve did not accept it.
func connOf(r *http.Request) *connection {
	c, _ := r.Context().Value(connKey{}).(*connection)
	return c
}

// door accepts connections and keeps their number bounded. At the bound the one is
// closed that has waited longest without an admitted request; when there is none, the
// oldest stream, whose client goes on by number; when there is none, the new one.
type door struct {
	net.Listener
	most int

	mu        sync.Mutex
	open      int
	waiting   *list.List // of *connection: not admitted yet, or idle
	streaming *list.List // of *connection: with a stream
}

// connection is one that came through the door. The door's lock guards its place.
type connection struct {
	net.Conn
	door  *door
	in    *list.List // nil: works on an admitted request
	place *list.Element
	gone  bool
}

// Accept returns the next connection that there is room for.
func (d *door) Accept() (net.Conn, error) {
	for {
		conn, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := d.enter(conn); c != nil {
			return c, nil
		}
		conn.Close()
	}
}

func (d *door) enter(conn net.Conn) *connection {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open >= d.most {
		oldest := d.waiting.Front()
		if oldest == nil {
			oldest = d.streaming.Front()
		}
		if oldest == nil {
			return nil
		}
		c := oldest.Value.(*connection)
		c.leave()
		c.Conn.Close()
	}
	d.open++
	c := &connection{Conn: conn, door: d}
	c.move(d.waiting)
	return c
}

// move puts a connection at the end of a list, or in none. The lock is held.
func (c *connection) move(to *list.List) {
	if c.in != nil {
		c.in.Remove(c.place)
	}
	if c.in = to; to != nil && !c.gone {
		c.place = to.PushBack(c)
	} else {
		c.in = nil
	}
}

// leave takes a connection out of the count. The lock is held.
func (c *connection) leave() {
	if !c.gone {
		c.gone = true
		c.move(nil)
		c.door.open--
	}
}

// note follows the states of connections.
func (d *door) note(conn net.Conn, state http.ConnState) {
	c := conn.(*connection)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case state == http.StateIdle, state == http.StateActive && c.in == d.waiting:
		c.move(d.waiting)
	case state == http.StateClosed, state == http.StateHijacked:
		c.leave()
	}
}

// admitted says that the connection has a request of somebody with the token.
func (c *connection) admitted() {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	c.move(nil)
}

// streams says that the connection carries a stream, or does not any more.
func (c *connection) streams(on bool) {
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	if on {
		c.move(c.door.streaming)
	} else {
		c.move(nil)
	}
}

// CloseWrite ends what is sent, so that the other side reads an error that is sent
// before everything it sent was read.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
