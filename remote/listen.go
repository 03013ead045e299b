package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// maxSocketPath is the longest path of a socket in bytes that every system takes.
const maxSocketPath = 103

// Listen listens on HOST, HOST:PORT or unix:PATH; port counts when the address names
// none, and 0 is a free one. The socket of a path is the user's alone; one that a dead
// server left is replaced, one of a live server never. Closing the listener removes it.
func Listen(ctx context.Context, addr string, port int) (net.Listener, error) {
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		return listenUnix(ctx, path)
	}
	host, port, err := listenAddress(addr, port)
	if err != nil {
		return nil, hint(fmt.Errorf("listen on %q: %w", clip(addr, 200), err), "write HOST, HOST:PORT, [IPV6]:PORT or unix:PATH, such as 127.0.0.1:7337")
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, hint(err, "another program listens there; choose another --port")
	}
	return l, err
}

// Reachable reports whether other machines may reach a listener at this address.
func Reachable(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

func listenAddress(addr string, port int) (string, int, error) {
	host, named, err := hostPort(addr)
	if named != 0 {
		port = named
	}
	return host, port, err
}

// unixListener is a socket in a directory of the user's.
type unixListener struct {
	*net.UnixListener
	path string
	own  fs.FileInfo
	lock *os.File // held as long as the socket is served

	once sync.Once
	err  error
}

// Close stops listening and removes the socket.
func (l *unixListener) Close() error {
	l.once.Do(func() {
		info, err := os.Lstat(l.path)
		if err == nil && os.SameFile(info, l.own) {
			err = os.Remove(l.path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		l.err = errors.Join(l.UnixListener.Close(), err, l.lock.Close())
	})
	return l.err
}

func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if path == "" || path[0] == '@' || len(path) > maxSocketPath {
		return nil, hint(fmt.Errorf("listen on the socket %q: it is no path of 1 to %d bytes", clip(path, 200), maxSocketPath), "choose a shorter path, such as unix:/run/user/UID/zcoder/NAME.sock")
	}
	err := makeOwnDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("listen on the socket %q: %w", path, err)
	}
	lock, err := lockFile(path + ".lock")
	if errors.Is(err, errHeld) {
		return nil, live(path)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on the socket %q: %w", path, err)
	}
	l, err := bindUnix(ctx, path)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	l.lock = lock
	return l, nil
}

func live(path string) error {
	return hint(fmt.Errorf("listen on the socket %q: a live server listens there", path), "choose another path, or end that server")
}

// bindUnix makes the socket, whose directory nobody else can enter.
func bindUnix(ctx context.Context, path string) (*unixListener, error) {
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	l := &unixListener{UnixListener: listener.(*net.UnixListener), path: path}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(path, 0o600); err == nil {
		l.own, err = os.Lstat(path)
	}
	if err != nil {
		return nil, errors.Join(err, l.UnixListener.Close())
	}
	return l, nil
}

// removeStale makes room for the socket. Only a socket that nobody listens on is removed.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen on the socket %q: %w", path, err)
	}
	if info.Mode().Type() != fs.ModeSocket || !ours(info) {
		return hint(fmt.Errorf("listen on the socket %q: there is something else of this name (%v)", path, info.Mode()), "choose another path")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		conn.Close()
		return live(path)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("listen on the socket %q: look whether it is in use: %w", path, err)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("listen on the socket %q: %w", path, err)
	}
	return nil
}

// ours reports whether a file belongs to the user.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(st.Uid) == int64(os.Geteuid())
}
