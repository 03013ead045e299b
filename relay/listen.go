package relay

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxConnections bounds the connections that are read at the same time. With more,
// the oldest is closed: who sends a whole frame at once is served, however many do not.
const maxConnections = 128

// acceptPause is how long no connection is taken after the system had no room for
// one.
const acceptPause = 20 * time.Millisecond

// server reads one frame from each connection and answers it. It knows the answer
// function and nothing else.
type server struct {
	limits Limits
	uid    int
	answer func(frame []byte, err error) ack

	mu       sync.Mutex
	listener *net.UnixListener
	own      fs.FileInfo // of the socket
	open     *list.List  // of net.Conn, oldest first
	closed   bool
	done     chan struct{} // closed by close
	wg       sync.WaitGroup
}

func newServer(limits Limits, uid int, answer func([]byte, error) ack) *server {
	return &server{limits: limits, uid: uid, answer: answer, open: list.New(), done: make(chan struct{})}
}

// listen takes connections at a path that must be free, in place of where it
// listened before.
func (s *server) listen(ctx context.Context, path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("listen on %q: the path has %d bytes, and a socket's at most %d; a shorter relay directory helps", path, len(path), maxSocketPath)
	}
	l, info, err := bind(ctx, path)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errors.Join(net.ErrClosed, l.Close())
	}
	if s.listener != nil {
		s.listener.Close()
	}
	s.listener, s.own = l, info
	s.wg.Go(func() { s.accept(l) })
	return nil
}

// bind makes a socket that is private from the first moment. Bind fails when
// something has the name already, so that no live socket is ever taken over.
func bind(ctx context.Context, path string) (*net.UnixListener, fs.FileInfo, error) {
	var config net.ListenConfig
	config.Control = func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) { err = closeSocketMode(int(fd)) })
		return errors.Join(cerr, err)
	}
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, nil, err
	}
	l := listener.(*net.UnixListener)
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	info, err := os.Lstat(path)
	if err == nil && info.Mode() != fs.ModeSocket|0o600 {
		err = fmt.Errorf("listen on %q: the socket has mode %v", path, info.Mode())
	}
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	return l, info, nil
}

func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, fs.ErrExist)
}

// isOwn reports whether info is the socket that this server listens on.
func (s *server) isOwn(info fs.FileInfo) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own != nil && os.SameFile(s.own, info)
}

func (s *server) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			s.take(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // out of descriptors, or a peer that left at once
			select {
			case <-time.After(acceptPause):
			case <-s.done:
				return
			}
		}
	}
}

// take serves a connection, and closes the oldest one when there are too many.
func (s *server) take(conn *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	if s.open.Len() >= maxConnections {
		s.open.Remove(s.open.Front()).(net.Conn).Close()
	}
	place := s.open.PushBack(conn)
	s.wg.Go(func() {
		s.serve(conn, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open.Remove(place)
		})
	})
}

// serve answers one request. wholly is called when the frame was read, or cannot be.
func (s *server) serve(conn *net.UnixConn, wholly func()) {
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(s.limits.IOTimeout)); err != nil || !sameUser(conn, s.uid) {
		wholly()
		return
	}
	frame, err := readFrame(conn, s.limits.FrameBytes)
	wholly()
	reply, err := encode(s.answer(frame, err))
	if err != nil {
		return // it has only texts and numbers: it can always be encoded
	}
	_, _ = conn.Write(appendFrame(reply)) // a sender that does not hear it asks again
}

// sameUser reports whether the process at the other end belongs to the user.
func sameUser(conn *net.UnixConn, uid int) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	other := -1
	cerr := raw.Control(func(fd uintptr) { other, err = peerUID(int(fd)) })
	return cerr == nil && err == nil && other == uid
}

// close stops listening and waits for what is being answered. The socket file stays.
func (s *server) close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	close(s.done)
	var err error
	if s.listener != nil {
		err = s.listener.Close()
	}
	for e := s.open.Front(); e != nil; e = e.Next() {
		e.Value.(net.Conn).Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return err
}
