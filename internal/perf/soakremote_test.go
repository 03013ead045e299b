package perf

import (
	"path/filepath"
	"syscall"
	"time"
)

// distant works through a server: one client asks, another watches, and clients and
// server are killed or leave now and then.
func (s *soak) distant(p *person) {
	token := filepath.Join(s.dir, "token")
	if out, err := p.place.command("server", "token", token).CombinedOutput(); err != nil {
		p.fail("make a token: %v: %s", err, out)
		return
	}
	socket := "unix:" + filepath.Join(s.dir, "run", "far.sock")
	connect := []string{"--connect", socket, "--token-file", token}
	for !s.over() {
		server := p.place.terminal("--server", "far", "--yes", "--token-file", token, "--listen", socket)
		p.term, p.at = server, 0
		if !p.sees("serving") {
			p.kill()
			return
		}
		for lives := 1 + p.r.IntN(4); lives > 0 && !s.over(); lives-- {
			p.visit(connect)
		}
		p.term = server
		if p.r.IntN(2) == 0 {
			p.kill()
			continue
		}
		_ = server.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-server.ended:
			p.ended()
		case <-time.After(patience):
			p.fail("the server does not end; the terminal ends with %q", server.tail())
			p.kill()
		}
	}
}

// visit is one life of a client, with a second one that comes later and only watches.
func (p *person) visit(connect []string) {
	p.term, p.at = p.place.terminal(connect...), 0
	p.connections.Add(2)
	if !p.sees("›") {
		p.kill()
		return
	}
	watcher := p.place.terminal(append([]string{"--continue"}, connect...)...)
	for range 3 + p.r.IntN(20) {
		if p.over() {
			break
		}
		p.turn("far request")
	}
	if p.r.IntN(2) == 0 {
		p.enter("far request to be left alone")
		time.Sleep(time.Duration(p.r.IntN(60)) * time.Millisecond)
		p.kill()
	} else {
		p.leave()
	}
	p.term = watcher
	if p.r.IntN(2) == 0 {
		p.kill()
	} else {
		p.leave()
	}
}
