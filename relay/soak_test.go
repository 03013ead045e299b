package relay

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// soaking reports whether the long tests run whole: `make soak`.
func soaking() bool { return os.Getenv("RELAY_SOAK") != "" }

// TestSoak has senders in processes of their own write to one receiver while some of
// them are killed: what was acknowledged runs once, and nothing runs twice. With
// RELAY_SOAK it is 20 senders, 20 000 acknowledged messages and 20 kills or more.
func TestSoak(t *testing.T) {
	s := soak{t: t, senders: 4, each: 100, kills: 3}
	if soaking() {
		s.senders, s.each, s.kills = 20, 1000, 20
	}
	s.run()
}

// soak is one run of TestSoak.
type soak struct {
	t             *testing.T
	senders, each int // messages of each sender that must be acknowledged
	kills         int

	mu       sync.Mutex
	acked    map[string]bool
	errors   []string
	killed   int
	children int
}

func (s *soak) run() {
	dir := shortDir(s.t)
	b := open(s.t, options(s.t, dir, "beta"))
	s.acked = map[string]bool{}
	stop, ran := make(chan struct{}), make(chan map[string]int, 1)
	go func() { ran <- drain(s.t, b, stop) }()
	start := time.Now()
	var wg sync.WaitGroup
	for i := range s.senders {
		wg.Go(func() { s.sender(dir, b.ID(), i) })
	}
	wg.Wait()
	took := time.Since(start)
	close(stop)
	s.judge(<-ran)
	s.t.Logf("%d messages acknowledged to %d senders (%d processes, %d killed) in %v: %.0f a second", len(s.acked), s.senders, s.children, s.killed, took.Round(time.Millisecond), float64(len(s.acked))/took.Seconds())
}

// sender runs processes one after the other until enough was acknowledged. Some are
// killed in the middle of their work.
func (s *soak) sender(dir, target string, number int) {
	random := rand.New(rand.NewPCG(uint64(number), 1))
	for left := s.each; left > 0; {
		c := startChild(s.t, dir, fmt.Sprintf("sender%d", number), fmt.Sprintf("send %s %d", target, left))
		mortal := -1
		s.mu.Lock()
		s.children++
		if s.killed < s.kills {
			s.killed++
			mortal = 1 + random.IntN(left)
		}
		s.mu.Unlock()
		done := 0
		for c.out.Scan() {
			s.heard(c.out.Text(), &done)
			if done == mortal {
				_ = c.cmd.Process.Kill() // what it said before that still counts
				mortal = -1
			}
		}
		_ = c.cmd.Wait()
		left -= done
	}
}

func (s *soak) heard(line string, done *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest, ok := strings.CutPrefix(line, "ack ")
	if !ok {
		s.errors = append(s.errors, line)
		return
	}
	id, _, ok := strings.Cut(rest, " ")
	if !ok {
		return // cut off by the kill: what it said of it is not known
	}
	s.acked[id] = true
	*done++
}

// drain runs what comes, counting each message, until stop and nothing waits.
func drain(t *testing.T, b *station, stop <-chan struct{}) map[string]int {
	ran := map[string]int{}
	for {
		e, ok, err := b.Claim()
		if err != nil {
			t.Error(err)
		}
		if ok {
			ran[e.ID]++
			if !strings.HasPrefix(e.Body, e.Sender+" ") {
				t.Errorf("message %s has the body %q", e.ID, e.Body)
			}
			if err := b.Done(e); err != nil {
				t.Error(err)
			}
			continue
		}
		select {
		case <-b.Arrived():
		case <-stop:
			if b.Depth() == 0 {
				return ran
			}
		}
	}
}

func (s *soak) judge(ran map[string]int) {
	lost, twice := 0, 0
	for id := range s.acked {
		if ran[id] == 0 {
			lost++
		}
	}
	for _, n := range ran {
		if n > 1 {
			twice++
		}
	}
	if lost > 0 || twice > 0 || len(s.errors) > 0 || len(s.acked) < s.senders*s.each || s.killed < s.kills {
		s.t.Errorf("%d acknowledged (%d wanted), %d lost, %d ran twice, %d killed (%d wanted), errors %v", len(s.acked), s.senders*s.each, lost, twice, s.killed, s.kills, s.errors[:min(5, len(s.errors))])
	}
}
