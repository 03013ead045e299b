package app

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"zcoder/internal/config"
	"zcoder/internal/termtext"
	"zcoder/remote"
	"zcoder/remote/web"
)

// runServer offers the workspace to clients until a signal comes.
func runServer(ctx context.Context, p Process, v *config.Values) (int, error) {
	if err := serverUsage(v); err != nil {
		return statusUsage, err
	}
	ctx, stop, caught := catchSignals(ctx)
	defer stop()
	var err error
	if v.Bool("stdio") {
		err = servePipe(ctx, p, v)
	} else {
		err = serveAddress(ctx, p, v)
	}
	if s := caught(); s != 0 && err == nil {
		return s, nil
	}
	if err != nil {
		return statusFailed, err
	}
	return statusOK, nil
}

// serverUsage refuses flags that make no sense beside --server.
func serverUsage(v *config.Values) error {
	switch {
	case v.String("prompt") != "" || len(v.Args()) > 0:
		return &config.UsageError{Text: "--server takes no prompt", Hints: []string{"clients send prompts: zcoder --connect HOST --token-file FILE"}}
	case v.String("connect") != "":
		return &config.UsageError{Text: "both --server and --connect are given", Hints: []string{"give one of them"}}
	case v.Bool("web") && v.Bool("stdio"):
		return &config.UsageError{Text: "both --web and --stdio are given", Hints: []string{"a page needs an address: leave --stdio away"}}
	case !v.Bool("stdio") && v.String("token-file") == "":
		return &config.UsageError{Text: "--server needs --token-file", Hints: []string{"zcoder server token FILE makes one; give the same to the clients"}}
	}
	return nil
}

// station is a workspace that is served.
type station struct {
	w      *workbench
	host   *host
	server *remote.Server
	warmed func() // ends the warm-up
}

// openStation opens the workbench and a server for it. ctx is that of everything that
// runs in it.
func openStation(ctx context.Context, p Process, v *config.Values, token string) (*station, error) {
	w, err := open(p, v)
	if err != nil {
		return nil, err
	}
	h, err := w.openHost(ctx)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	w.startServers(ctx, false)
	s := &station{w: w, host: h, warmed: w.warmUp(ctx)}
	afterFunc := func(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
	var page remote.Page
	if v.Bool("web") {
		page = web.New(web.Config{Token: token, AfterFunc: afterFunc})
	}
	s.server = remote.New(ctx, remote.Config{
		Page: page, Host: h, Name: v.String("server"), Token: token, AllowHosts: w.hostNames(),
		MaxBody: int64(v.Int("remote-max-request-bytes")), ApprovalTimeout: v.Duration("remote-approval-timeout"),
		Now: time.Now, Random: unguessable, AfterFunc: afterFunc,
		Warn: func(line string) { fmt.Fprintln(p.Stderr, "warning: "+termtext.Line(line)) },
	})
	return s, nil
}

// unguessable makes the numbers of ids that are nobody's to guess.
func unguessable() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// close ends what runs, the conversation, and the workbench.
func (s *station) close() error {
	s.warmed()
	return errors.Join(s.server.Close(), s.host.close(), s.w.close())
}

// hostNames are the names by which clients may call this server.
func (w *workbench) hostNames() []string {
	names := w.v.List("allow-host")
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(w.v.String("listen")); err == nil {
		return append(names, host)
	}
	return append(names, w.v.String("listen"))
}

func serveAddress(ctx context.Context, p Process, v *config.Values) (err error) {
	token, err := remote.ReadToken(v.String("token-file"))
	if err != nil {
		return err
	}
	name := v.String("server")
	lock, err := remote.LockName(filepath.Join(v.String("home"), "remote"), name, fmt.Sprintf("pid %d in %s", os.Getpid(), p.Dir))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	listener, err := remote.Listen(ctx, v.String("listen"), v.Int("port"))
	if err != nil {
		return err
	}
	s, err := openStation(ctx, p, v, token)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.announce(listener.Addr())
	return s.server.Serve(ctx, listener)
}

// announce says where the server is and how to reach it.
func (s *station) announce(addr net.Addr) {
	out, v := s.w.p.Stderr, s.w.v
	at := addr.String()
	if addr.Network() == "unix" {
		at = "unix:" + at
	}
	fmt.Fprintf(out, "serving %s as %s on %s\n", termtext.Line(s.w.shortPath(s.w.ws.Root())), termtext.Line(v.String("server")), termtext.Line(at))
	fmt.Fprintf(out, "connect with: zcoder --connect %s --token-file %s\n", termtext.Line(at), termtext.Line(shellWord(v.String("token-file"))))
	if v.Bool("web") {
		announcePage(out, addr, v.String("token-file"))
	}
	if remote.Reachable(addr) {
		fmt.Fprintln(out, "warning: other machines can reach this address, and what goes over the network is not encrypted: whoever reads the token there can use this workspace\nhint: leave --listen away and go through ssh: zcoder --connect ssh://HOST/WORKSPACE, or ssh -L")
	}
	if within(v.String("token-file"), s.w.ws.Root()) {
		fmt.Fprintln(out, "warning: the token file lies in the workspace, where the model reads files without asking\nhint: keep it elsewhere, and make a new token if it was there for long")
	}
	if s.w.v.String("command-policy") == "allow" {
		fmt.Fprintln(out, "warning: commands run without asking (--yes)")
	}
}

// announcePage says where the page is, and what it means that others can reach it.
func announcePage(out io.Writer, addr net.Addr, tokenFile string) {
	login := "log in with the token in " + termtext.Line(shellWord(tokenFile))
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		fmt.Fprintln(out, "the page is on this socket: ssh -L 7337:SOCKET brings it to a browser elsewhere; "+login)
		return
	}
	host := tcp.IP.String()
	if name, err := os.Hostname(); err == nil && tcp.IP.IsUnspecified() {
		host = name
	}
	fmt.Fprintf(out, "in a browser: http://%s/ and %s\n", termtext.Line(net.JoinHostPort(host, strconv.Itoa(tcp.Port))), login)
	if remote.Reachable(addr) {
		fmt.Fprintln(out, "warning: the page can be reached from other machines, by plain http: who listens on the network reads the token at the login, and can approve commands in your place")
	}
}

// within reports whether a file lies in a directory, links followed.
func within(file, dir string) bool {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return false
	}
	if real, err = filepath.Abs(real); err != nil {
		return false
	}
	rel, err := filepath.Rel(dir, real)
	return err == nil && filepath.IsLocal(rel)
}

// servePipe serves one client over stdin and stdout, in the workspace that its first
// request names.
func servePipe(ctx context.Context, p Process, v *config.Values) error {
	// A client that went away is an error of a write, not the end of the process, which has
	// a turn to stop or to keep.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	var s *station
	keep := false
	err := remote.PipeServe(ctx, remote.PipeServer{
		Conn: stdio{p.Stdin, p.Stdout}, Version: version,
		Open: func(_ context.Context, r remote.Opening) (http.Handler, error) {
			opened, err := openFor(ctx, p, r)
			if err != nil {
				return nil, err
			}
			s, keep = opened, r.Keep
			return s.server, nil
		},
	})
	if s == nil {
		return err
	}
	if keep {
		err = errors.Join(err, s.server.Idle(ctx))
	}
	return errors.Join(err, s.close())
}

// openFor opens what a client on a pipe asks for. Its words become values of flags and
// nothing else.
func openFor(ctx context.Context, p Process, r remote.Opening) (*station, error) {
	args := append(append([]string(nil), p.Args...), "--workspace="+r.Workspace)
	if r.Profile != "" {
		args = append(args, "--profile="+r.Profile)
	}
	v, err := config.Load(sources(p, args))
	if err != nil {
		return nil, err
	}
	return openStation(ctx, p, v, "")
}

// stdio is the program's own streams as one pipe.
type stdio struct {
	io.Reader
	out *os.File
}

func (s stdio) Write(b []byte) (int, error) { return s.out.Write(b) }

// Close ends both directions, so that a read that waits returns.
func (s stdio) Close() error {
	err := s.out.Close()
	if in, ok := s.Reader.(io.Closer); ok {
		err = errors.Join(err, in.Close())
	}
	return err
}
