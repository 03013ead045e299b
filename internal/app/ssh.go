package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"zcoder/internal/config"
	"zcoder/internal/termtext"
	"zcoder/remote"
)

// Bounds of the system's ssh.
const (
	sshPatience  = 5 * time.Second // for its end, once its input is closed
	wordPatience = 2 * time.Second // for the last words on standard error, which come behind the end of its output
	maxSaid      = 4096            // bytes kept of them
)

// startSSH starts zcoder on another machine through the system's ssh, whose
// configuration, agent and known hosts apply. It may ask for a passphrase on the
// terminal, so it stays in our process group; silent, it asks and prints nothing.
func startSSH(ctx context.Context, p Process, v *config.Values, addr remote.Address, silent bool) (_ *remote.Pipe, end func(), err error) {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return nil, nil, withHint(fmt.Errorf("connect to %s: %w", addr, err), "install the OpenSSH client")
	}
	cmd := exec.Command(path, sshArgs(addr, v.String("remote-program"), silent)...)
	cmd.Env = p.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start ssh: %w", err)
	}
	said := &said{}
	heard, over := make(chan struct{}), make(chan struct{})
	go func() {
		said.read(stderr)
		close(heard)
		_ = cmd.Wait() // how it ended shows in what it said
		close(over)
	}()
	end = func() {
		in.Close()
		select {
		case <-over:
		case <-time.After(sshPatience):
			_ = cmd.Process.Kill()
			<-over
		}
	}
	pipe, err := remote.PipeDial(ctx, remote.PipeClient{
		Conn: process{out, in}, Version: version,
		Opening: remote.Opening{Workspace: addr.Workspace, Profile: farProfile(v), Keep: v.Bool("keep")},
		Noise: func(skipped []byte) {
			if silent {
				return
			}
			for line := range strings.Lines(string(skipped)) {
				fmt.Fprintf(p.Stderr, "%s: %s\n", termtext.Line(addr.Target()), termtext.Line(strings.TrimRight(line, "\r\n")))
			}
		},
		Said: func() string {
			select {
			case <-heard:
			case <-time.After(wordPatience):
			}
			return said.text()
		},
	})
	if err != nil {
		end()
		return nil, nil, err
	}
	return pipe, end, nil
}

// sshArgs is the command line of ssh. The far shell gets one constant text; where to
// work travels in the first request.
func sshArgs(addr remote.Address, program string, silent bool) []string {
	args := []string{"-T"}
	if silent {
		args = append(args, "-o", "BatchMode=yes")
	}
	if addr.Port != 0 {
		args = append(args, "-p", strconv.Itoa(addr.Port))
	}
	host := addr.Host
	if addr.User != "" {
		host = addr.User + "@" + host
	}
	return append(args, "--", host, program+" --server ssh --stdio")
}

// farProfile is the profile that the person asked for; the other side's own settings
// decide otherwise.
func farProfile(v *config.Values) string {
	if v.Source("profile") == "default" {
		return ""
	}
	return v.String("profile")
}

// process is the two streams of a child.
type process struct {
	io.ReadCloser
	in io.WriteCloser
}

func (c process) Write(b []byte) (int, error) { return c.in.Write(b) }
func (c process) Close() error                { return errors.Join(c.in.Close(), c.ReadCloser.Close()) }

// said keeps the last lines that ssh and the far side wrote on standard error.
type said struct {
	mu   sync.Mutex
	tail string
}

func (s *said) read(r io.Reader) {
	buf := make([]byte, 1024)
	for {
		n, err := r.Read(buf)
		s.mu.Lock()
		s.tail += string(buf[:n])
		s.tail = s.tail[max(0, len(s.tail)-maxSaid):]
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *said) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ToValidUTF8(s.tail, "\uFFFD")
}
