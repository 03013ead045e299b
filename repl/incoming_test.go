package repl

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"zcoder/internal/event"
)

// childRelay is work from elsewhere: one more for each SIGUSR1, when the test wants
// that.
type childRelay struct {
	arrived chan struct{}
	mu      sync.Mutex
	waiting int
	taken   int
}

func newChildRelay() *childRelay {
	r := &childRelay{}
	if os.Getenv("REPL_TEST_RELAY") == "" {
		return r
	}
	r.arrived = make(chan struct{}, 1)
	got := make(chan os.Signal, 10)
	signal.Notify(got, syscall.SIGUSR1)
	go func() {
		for range got {
			r.mu.Lock()
			r.waiting++
			r.mu.Unlock()
			r.arrived <- struct{}{}
		}
	}()
	return r
}

func (r *childRelay) next() (event.Input, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == 0 {
		return event.Input{}, false
	}
	r.waiting--
	r.taken++
	text := fmt.Sprintf("relayed %d", r.taken)
	return event.Input{Text: text, Peer: &event.Peer{Instance: "7-8", PID: 7, Project: "api\x1b[2J", Workspace: "/w/api", Message: text + "\n\x1b]0;evil\x07 last line"}}, true
}

func (r *childRelay) backlog() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == 0 {
		return ""
	}
	return fmt.Sprintf("%d wait", r.waiting)
}

func (r *terminalRun) arrive() {
	r.t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		r.t.Fatal(err)
	}
}

// Work from elsewhere starts at an idle prompt at once; the draft stays, the bell
// rings, and nothing that it says reaches the terminal raw.
func TestTerminalIncomingKeepsTheDraft(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "REPL_TEST_RELAY=1")
	r.prompt("")
	r.send("my draft")
	r.prompt("my draft")
	r.arrive()
	r.see("⇄ from another zcoder: api")
	r.see("pid 7 · /w/api")
	r.see("│ relayed 1")
	r.see("last line")
	r.see("done ·")
	r.prompt("my draft")
	r.mu.Lock()
	raw := r.raw.String()
	r.mu.Unlock()
	if strings.Contains(raw, "\x1b]0;evil") || strings.Contains(raw, "api\x1b[2J") || !strings.Contains(raw, "\x07") {
		t.Errorf("raw output %q", raw)
	}
	r.send("\r")
	r.see(`you said "my draft"`)
}

// What came during a turn goes before what was typed in it, and then they take turns.
func TestTerminalIncomingAndTyped(t *testing.T) {
	t.Parallel()
	r := startChild(t, 80, 24, "REPL_TEST_RELAY=1")
	r.prompt("")
	r.enter("wait")
	r.see("reading prompt")
	r.arrive()
	r.see("1 wait") // signals that come together are one
	r.arrive()
	r.see("2 wait")
	r.send("typed\r")
	r.see("the draft is sent")
	r.send("\x1b")
	r.see(`you said "relayed 2"`)
	r.see("done ·")
	r.prompt("")
	r.send("\x04")
	r.see(`left; prompts ["wait" "relayed 1" "typed" "relayed 2"]`)
}

func TestAInAPeersQuestionMeansOnce(t *testing.T) {
	q := shortQuestion()
	q.Grantable, q.Origin = false, "peer"
	if !aMeansOnce(q) {
		t.Error("`a` has no meaning for a peer's command")
	}
	if got := tap(newApproval(q, style{plain: true}, start, 80, 24), start.Add(settleTime), "a"); got != allowOnce {
		t.Errorf("`a` decided %d", got)
	}
	if d, _ := typedFor(q, " A "); d != allowOnce {
		t.Errorf("typed `a` = %v", d)
	}
	for _, other := range []event.Question{{Origin: "peer", Effect: "peer"}, {Origin: "user", Effect: "exec"}, {Origin: "peer", Effect: "exec", Grantable: true}} {
		if aMeansOnce(other) {
			t.Errorf("`a` means once for %+v", other)
		}
	}
}
