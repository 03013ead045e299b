package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zcoder/internal/scripted"
)

// TestSoak runs the program for a while as random people would, who share one home:
// one terminal session that is never killed, two that send each other messages and are
// killed now and then, one-shot runs of which many are killed, and clients of a server
// of which either is killed. Then it looks at what they leave: memory, descriptors, goroutines, processes, temporary files,
// sessions and the audit.
//
// SOAK is how long, such as 20m; SOAK_SEED repeats the choices, not their timing.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		t.Skip("`make soak` runs this: SOAK is how long, such as 20m")
	}
	if !hasProc() {
		t.Skip("the soak looks at processes through /proc, and there is none")
	}
	s := newSoak(t, length)
	s.run()
	s.report()
	s.look()
}

// soak is one run and what it counted.
type soak struct {
	t       *testing.T
	dir     string
	program string
	seed    uint64
	ends    time.Time

	prompts, stops, kills, answers, messages, compactions, oneShots, connections atomic.Int64

	people []*person
	mu     sync.Mutex
	clean  []int // processes that ended by themselves
}

func newSoak(t *testing.T, length time.Duration) *soak {
	t.Helper()
	l := newLab(t, true)
	// Names below the runtime directory must fit into a socket's address.
	dir, err := os.MkdirTemp("/tmp", "zs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &soak{t: t, dir: dir, program: l.program, seed: uint64(time.Now().UnixNano()), ends: time.Now().Add(length)}
	if text := os.Getenv("SOAK_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &s.seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SOAK_SEED=%d, for %v, in %s", s.seed, length, dir)
	return s
}

func (s *soak) over() bool { return time.Now().After(s.ends) || s.t.Failed() }

// run lets everybody live until the time is over.
func (s *soak) run() {
	var all sync.WaitGroup
	for i, live := range []func(*person){s.veteran, s.mortal, s.mortal, s.hasty, s.distant} {
		p := s.person([]string{"gamma", "alpha", "beta", "delta", "epsilon"}[i], uint64(i))
		s.people = append(s.people, p)
		all.Go(func() { live(p) })
	}
	stop := make(chan struct{})
	go s.tell(stop)
	all.Wait()
	close(stop)
}

// tell says now and then how far it is.
func (s *soak) tell(stop chan struct{}) {
	tick := time.NewTicker(30 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(os.Stderr, "%v left: %s\n", time.Until(s.ends).Round(time.Second), s.counts())
		case <-stop:
			return
		}
	}
}

func (s *soak) counts() string {
	return fmt.Sprintf("%d prompts in terminals, %d one-shot runs, %d stops, %d kills, %d approvals, %d messages between instances, %d compactions, %d remote connections",
		s.prompts.Load(), s.oneShots.Load(), s.stops.Load(), s.kills.Load(), s.answers.Load(), s.messages.Load(), s.compactions.Load(), s.connections.Load())
}

func (s *soak) report() { s.t.Log(s.counts()) }

// person is one who works in a workspace, with a model of the person's own.
type person struct {
	*soak
	name  string
	place *place
	r     *rand.Rand
	model *model
	term  *terminal
	at    int // in the terminal: what was seen
}

func (s *soak) person(name string, number uint64) *person {
	s.t.Helper()
	p := &person{soak: s, name: name, r: rand.New(rand.NewPCG(s.seed, number))}
	p.model = &model{soak: s, r: rand.New(rand.NewPCG(s.seed, 100+number))}
	p.place = newPlace(s.t, s.program, s.dir, scripted.Options{DropBodies: true, Respond: p.model.respond},
		"NO_COLOR=1", "GOTRACEBACK=all", "ZCODER_CONTEXT_WINDOW=8192", "ZCODER_HTTP_READ_TIMEOUT=20")
	p.place.ws = filepath.Join(s.dir, name)
	if err := os.MkdirAll(p.place.ws, 0o700); err != nil {
		s.t.Fatal(err)
	}
	p.place.write("log.txt", strings.Repeat("one more line of a log, with a number in it: 4711\n", 300))
	p.place.write("a.txt", strings.Repeat("x", 2000)+"\n")
	return p
}

func (p *person) fail(format string, args ...any) {
	p.t.Errorf(p.name+": "+format, args...)
}

// open starts a terminal session and waits for its prompt.
func (p *person) open(args ...string) bool {
	p.term, p.at = p.place.terminal(append([]string{"--yes"}, args...)...), 0
	return p.sees("›")
}

// patience bounds the wait for what the program must do soon.
const patience = 90 * time.Second

// sees waits until one of the texts comes.
func (p *person) sees(texts ...string) bool {
	_, ok := p.which(patience, texts...)
	if !ok {
		p.fail("none of %q comes; the terminal ends with %q", texts, p.term.tail())
	}
	return ok
}

// which waits for the first of the texts to come, behind what was seen.
func (p *person) which(limit time.Duration, texts ...string) (string, bool) {
	timer := time.After(limit)
	for {
		first, end := "", 1<<60
		for _, text := range texts {
			if _, at, ok := p.term.find(text, p.at); ok && at < end {
				first, end = text, at
			}
		}
		if first != "" {
			p.at = end
			return first, true
		}
		select {
		case <-p.term.more:
		case <-p.term.ended:
			return "", false
		case <-timer:
			return "", false
		}
	}
}

// closings are how the line begins that ends a turn.
var closings = []string{"\ndone\x1b[2m · ", "\nblocked\x1b[2m · ", "\nstopped\x1b[2m · ", "\nended with an error\x1b[2m · ", "\nstopped at a limit\x1b[2m · ", "\nstopped in a loop\x1b[2m · "}

const question = "Allow this?"

// turn types a line and sees to the turn's end. It may stop and steer meanwhile.
func (p *person) turn(line string) {
	p.prompts.Add(1)
	p.enter(line)
	if p.r.IntN(8) == 0 {
		time.Sleep(time.Duration(p.r.IntN(40)) * time.Millisecond)
		p.stops.Add(1)
		p.keys("\x03")
	}
	if p.r.IntN(10) == 0 {
		p.enter("and be quick")
	}
	p.until(line, closings...)
}

// enter types a line. Lines that come together would be a paste.
func (p *person) enter(line string) {
	time.Sleep(60 * time.Millisecond)
	p.keys("\x15" + line + "\r")
}

// until waits for one of the texts and answers what is asked before it comes.
func (p *person) until(what string, texts ...string) {
	for tries := 0; !p.t.Failed(); {
		seen, ok := p.which(patience/20, append(texts, question)...)
		switch {
		case ok && seen != question:
			return
		case ok:
			p.approve()
		case tries < 20 && !p.gone():
			// It may have come together with another line, and stand there unsent; or it
			// waits behind a turn that failed; or what stopped the turn took it along.
			p.keys([]string{"\r", "\x15/queue resume\r", "\x15and now?\r"}[tries%3])
			if tries++; tries == 8 {
				p.t.Logf("%s: %q takes long; the terminal ends with %q", p.name, what, p.term.tail())
			}
		default:
			p.fail("%q does not end; the terminal ends with %q", what, p.term.tail())
		}
	}
}

// approve presses y where the dialog is still open.
func (p *person) approve() {
	time.Sleep(600 * time.Millisecond) // the dialog's own rule: earlier keys do not count
	p.term.mu.Lock()
	open := bytes.LastIndex(p.term.text, []byte("\x1b[?1049h")) > bytes.LastIndex(p.term.text, []byte("\x1b[?1049l"))
	p.term.mu.Unlock()
	if open {
		p.at = p.term.at() // it may have been drawn several times
		p.answers.Add(1)
		p.keys("y")
	}
}

func (p *person) gone() bool {
	select {
	case <-p.term.ended:
		return true
	default:
		return false
	}
}

func (p *person) keys(keys string) {
	_, _ = p.term.master.WriteString(keys) // a program that ended is noticed where its text is awaited
}

// works asks for something, or runs a command by hand.
func (p *person) works() {
	if p.r.IntN(12) > 0 {
		p.turn(fmt.Sprint("request ", p.r.IntN(1000)))
		return
	}
	p.enter("! echo by hand")
	p.until("a command by hand", append(closings, "\x1b[?25hby hand")...) // it waits for a turn that a message started
}

// leave ends the session as a person does, whatever it is doing.
func (p *person) leave() {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		p.keys("\x03")
		time.Sleep(100 * time.Millisecond)
		p.keys("\x15\x04")
		select {
		case <-p.term.ended:
			p.ended()
			return
		case <-time.After(time.Second):
		}
	}
	p.fail("the program does not end; the terminal ends with %q", p.term.tail())
	p.kill()
}

func (p *person) ended() {
	_ = p.term.cmd.Wait() // its status depends on when it was asked to end
	p.term.master.Close()
	p.mu.Lock()
	p.clean = append(p.clean, p.term.cmd.Process.Pid)
	p.mu.Unlock()
}

// kill ends the whole program at once, without its knowing.
func (p *person) kill() {
	p.kills.Add(1)
	_ = p.term.cmd.Process.Kill() // it may have ended
	<-p.term.ended
	_ = p.term.cmd.Wait()
	p.term.master.Close()
}

// mortal lives many short lives: it works, tells the other one to work, is killed or
// leaves, and comes back.
func (s *soak) mortal(p *person) {
	other := map[string]string{"alpha": "beta", "beta": "alpha"}[p.name]
	p.model.other = other
	var how []string // the first time there is nothing to go on with
	for !s.over() {
		if !p.open(how...) {
			p.kill()
			return
		}
		for range 5 + p.r.IntN(30) {
			if s.over() {
				break
			}
			if p.r.IntN(12) == 0 {
				p.turn("tell the " + other + " instance to count")
				continue
			}
			p.works()
		}
		how = [][]string{nil, {"--continue"}}[p.r.IntN(2)]
		if p.r.IntN(2) == 0 {
			p.enter("request to be killed in")
			time.Sleep(time.Duration(p.r.IntN(60)) * time.Millisecond)
			p.kill()
			continue
		}
		p.leave()
	}
}

// hasty asks single questions, and kills half of the runs.
func (s *soak) hasty(p *person) {
	for !s.over() {
		s.oneShots.Add(1)
		ctx, stop := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, s.program, "--yes", "--json", "--prompt", "go")
		cmd.Env, cmd.Dir = p.place.env, p.place.ws
		killed := p.r.IntN(2) == 0
		if killed {
			s.kills.Add(1)
			time.AfterFunc(time.Duration(10+p.r.IntN(90))*time.Millisecond, stop)
		}
		err := cmd.Run()
		stop()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !killed {
			p.fail("%v", err)
			return
		}
		if exit != nil && exit.ExitCode() > 3 {
			p.fail("a one-shot run ended with status %d", exit.ExitCode())
		}
		p.fileIsWhole()
	}
}

func (p *person) fileIsWhole() {
	data, err := os.ReadFile(filepath.Join(p.place.ws, "a.txt"))
	if text := string(data); err != nil || text != strings.Repeat("x", 2000)+"\n" && text != strings.Repeat("y", 3000)+"\n" {
		p.fail("a.txt is torn: %d bytes, %v", len(data), err)
	}
}

// veteran works in one program all the time. What it holds must not grow.
func (s *soak) veteran(p *person) {
	if !p.open() {
		p.kill()
		return
	}
	var early holding
	for n := 1; !s.over(); n++ {
		switch {
		case n%60 == 0:
			p.fresh()
			if early.memory == 0 {
				early = p.holds()
			}
		case n%25 == 0:
			p.turn("request before a checkpoint")
			p.enter("/compact")
			p.until("/compact", "history shortened", "nothing to shorten", "too little")
		default:
			p.works()
		}
	}
	p.fresh()
	late := p.holds()
	p.t.Logf("the veteran held early %+v, at the end %+v", early, late)
	if early.memory > 0 {
		p.compare(early, late)
	}
	p.goroutines()
}

// fresh begins a new conversation.
func (p *person) fresh() {
	p.enter("/new")
	p.until("/new", "new conversation")
}

// goroutines has the program tell its goroutines, which ends it.
func (p *person) goroutines() {
	_ = p.term.cmd.Process.Signal(syscall.SIGQUIT)
	<-p.term.ended
	_ = p.term.cmd.Wait()
	p.term.master.Close()
	n := strings.Count(string(p.term.text), "\ngoroutine ")
	p.t.Logf("the veteran had %d goroutines", n)
	if n > 40 {
		p.fail("%d goroutines at the end:\n%s", n, p.term.text[max(0, len(p.term.text)-20000):])
	}
}
