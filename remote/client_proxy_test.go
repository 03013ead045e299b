package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
)

// badProxy passes connections on to a server and cuts, delays and repeats them.
type badProxy struct {
	t      *testing.T
	target string
	addr   string
	work   sync.WaitGroup

	mu             sync.Mutex
	rand           *rand.Rand
	open           map[net.Conn]bool
	closed         bool
	cuts, repeated int
}

func newBadProxy(t *testing.T, target string, seed uint64) *badProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &badProxy{t: t, target: target, addr: l.Addr().String(), rand: rand.New(rand.NewPCG(seed, 1)), open: map[net.Conn]bool{}}
	p.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		for c := range p.open {
			c.Close()
		}
		p.mu.Unlock()
		p.work.Wait()
	})
	return p
}

// keep remembers a connection, so that the end of the test closes it.
func (p *badProxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[c] = true; p.closed {
		c.Close()
	}
}

func (p *badProxy) done(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// fate is what happens to one connection: the bytes after which it is cut, each way.
type fate struct {
	up, down int
	repeat   bool
}

func (p *badProxy) fate() fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := fate{up: p.rand.IntN(3000), down: p.rand.IntN(10_000), repeat: p.rand.IntN(3) == 0}
	p.cuts++
	if f.repeat {
		p.repeated++
	}
	return f
}

func (p *badProxy) pass(c net.Conn) {
	p.keep(c)
	defer p.done(c)
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.keep(s)
	defer p.done(s)
	f := p.fate()
	var sent []byte
	var both sync.WaitGroup
	end := func() { c.Close(); s.Close() }
	both.Go(func() {
		defer end()
		sent = p.copy(s, c, f.up)
	})
	both.Go(func() {
		defer end()
		p.copy(c, s, f.down)
	})
	both.Wait()
	if f.repeat {
		p.again(sent)
	}
}

// copy passes bytes on until so many are, and returns the first ones.
func (p *badProxy) copy(to io.Writer, from io.Reader, most int) (head []byte) {
	buf := make([]byte, 1024)
	for most > 0 {
		n, err := from.Read(buf[:min(len(buf), most)])
		if head = append(head, buf[:n]...); len(head) > 1<<16 {
			head = head[:1<<16]
		}
		if p.delayed() {
			time.Sleep(time.Millisecond)
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return head
		}
		most -= n
	}
	return head
}

func (p *badProxy) delayed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rand.IntN(10) == 0
}

// again sends what a client sent to the server once more, and looks at no reply.
func (p *badProxy) again(sent []byte) {
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	p.keep(s)
	defer p.done(s)
	if _, err := s.Write(sent); err == nil {
		s.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		io.Copy(io.Discard, s)
	}
}

// TestTurnsThroughABadConnection: 500 turns, each with an approval, over connections that
// are cut, delayed and repeated, lose no event and run no command twice.
func TestTurnsThroughABadConnection(t *testing.T) {
	t.Parallel()
	rounds := 500
	if testing.Short() {
		rounds = 60
	}
	s := newStation(t).listen()
	p := newBadProxy(t, strings.TrimPrefix(s.url, "http://"), 7)
	dial := func() *Client {
		for {
			c, err := Dial(testContext(t), clientConfig(t, p.addr))
			if err == nil {
				t.Cleanup(func() { c.Close() })
				return c
			}
		}
	}
	c, other := dial(), dial()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	w := watchEvents(ctx, c, 0, answering(t, c, "once"))
	ow := watchEvents(ctx, other, 0, nil)
	var want []string
	for n := range rounds {
		command := fmt.Sprint("step ", n)
		want = append(want, command)
		if reason, err := c.Prompt(ctx, event.Input{Text: "run " + command}); reason != event.Complete || err != nil {
			t.Fatalf("turn %d: %q, %v", n, reason, err)
		}
		if have := c.f.position(); have != s.host.current().LastSeq() {
			t.Fatalf("turn %d: the prompt ended at event %d of %d", n, have, s.host.current().LastSeq())
		}
	}
	if got := s.host.ran(); !slices.Equal(got, want) {
		t.Errorf("%d commands ran, want %d: %q", len(got), len(want), got)
	}
	last := s.host.current().LastSeq()
	s.host.mu.Lock()
	log := slices.Clone(s.host.logs[s.host.conv.Info().ID].events)
	s.host.mu.Unlock()
	for name, w := range map[string]*watch{"the client": w, "the onlooker": ow} {
		w.until(t, name+"'s last event", func(e event.Event) bool { return e.Seq == last })
		sameAsLog(t, name, w.events, log, name == "the onlooker")
	}
	t.Logf("%d cuts, %d repeated connections", p.cuts, p.repeated)
}

// sameAsLog compares what a client saw with what the server stored. late allows for the
// pieces of replies that are over, which a server does not keep for those who come later.
func sameAsLog(t *testing.T, who string, seen, log []event.Event, late bool) {
	t.Helper()
	var stored []event.Event
	before := int64(0)
	for _, e := range seen {
		switch {
		case e.Kind.Live():
		case e.Seq > before:
			before = e.Seq
			stored = append(stored, e)
		case e.Kind != event.Warning && e.Kind != event.Info:
			t.Fatalf("%s: event %d %s came after event %d", who, e.Seq, e.Kind, before)
		}
	}
	if late {
		log = slices.DeleteFunc(slices.Clone(log), func(e event.Event) bool {
			return e.Kind == event.Content && !slices.ContainsFunc(stored, func(s event.Event) bool { return s.Seq == e.Seq })
		})
	}
	if len(stored) != len(log) {
		t.Fatalf("%s saw %d events of %d", who, len(stored), len(log))
	}
	for i := range log {
		got := stored[i]
		if got.Kind == event.Opened { // shown before it was stored
			got.Time = log[i].Time
		}
		if got.Question != nil {
			q := *got.Question
			q.Host, got.Question = "", &q
		}
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(log[i])
		if string(a) != string(b) {
			t.Fatalf("%s: event %d is\n%s\nand was\n%s", who, i+1, a, b)
		}
	}
}

// TestPollingARealServer: the polling half of the client and a server of ours understand
// each other too.
func TestPollingARealServer(t *testing.T) {
	s := newStation(t)
	addr := serveTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/hello" {
			s.server.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		s.server.ServeHTTP(rec, r)
		h := object{}
		if err := json.Unmarshal(rec.Body.Bytes(), &h); err != nil {
			t.Error(err)
		}
		delete(h, "stream")
		writeJSON(w, rec.Code, h)
	}))
	c := dialTest(t, clientConfig(t, addr))
	ctx := testContext(t)
	w := watchEvents(ctx, c, 0, answering(t, c, "once"))
	for _, prompt := range []string{"say hello", "run ls", "fail"} {
		if _, err := c.Prompt(ctx, event.Input{Text: prompt}); err != nil {
			t.Fatal(err)
		}
	}
	w.until(t, "the last end", func(e event.Event) bool { return e.Kind == event.TurnEnd && e.End.Reason == event.Errored })
	got := strings.Join(w.stored(), "\n")
	for _, want := range []string{"user say hello", "reply hello", "turn_end complete", "|run_command|ls|true", "answer once", "ok ran ls", "reply done", "warning no server"} {
		if !strings.Contains(got, want) {
			t.Errorf("nothing says %q:\n%s", want, got)
		}
	}
	if ran := s.host.ran(); len(ran) != 1 {
		t.Errorf("ran %q", ran)
	}
	again := clientConfig(t, addr)
	again.Continue = true
	late := dialTest(t, again)
	lw := watchEvents(ctx, late, 0, nil)
	lw.until(t, "the history", func(e event.Event) bool { return e.Kind == event.Reply && e.Reply.Message.Content == "done" })
}
