package remote

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
)

// asks begins a turn that asks, and returns the approval_required event.
func (s *station) asks(prompt string) map[string]any {
	s.t.Helper()
	s.turn(prompt)
	list := s.until("approval_required")
	return list[len(list)-1]
}

func TestApprovalAnswers(t *testing.T) {
	for _, c := range []struct{ name, decision, choice, want string }{
		{"yes", "y", "once", "tool: ran ls\nassistant: done\nexit 0"},
		{"for the conversation", "a", "conversation", "tool: ran ls\nassistant: done\nexit 0"},
		{"no", "n", "no", "tool: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t)
			q := s.asks("run ls")
			s.must("POST", "/v1/approval", jsonOf("id", q["id"], "decision", c.decision, "reason", "because"))
			list := s.until("complete")
			if got := short(list); !strings.HasPrefix(got, "command? ls\n"+c.want) {
				t.Errorf("events:\n%s\nwant:\n%s", got, c.want)
			}
			var a *event.Answer
			for _, e := range s.host.logs["1_1"].events {
				if e.Kind == event.Answered {
					a = e.Answer
				}
			}
			if a == nil || a.Choice != c.choice || a.By != "remote" || a.Reason != "because" || a.Digest != q["digest"] {
				t.Errorf("answer = %+v", a)
			}
			if c.decision == "n" && len(s.host.ran()) > 0 {
				t.Errorf("ran %q", s.host.ran())
			}
		})
	}
}

// H08: the whole text is shown, and an answer can name what it was about.
func TestApprovalShowsEverything(t *testing.T) {
	s := newStation(t)
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprint("echo \u202e", i, "\x1b]0;x\x07"))
	}
	command := strings.Join(lines, "\n")
	q := s.asks("run " + command)
	if q["command"] != command || q["dir"] != "/work" || q["timeout"] != "2m0s" || q["kind"] != "command" || q["tool"] != "run" {
		t.Errorf("question = %.300v", q)
	}
	if id := q["id"].(string); strings.Trim(id, "0123456789_") != "" || id == "" {
		t.Errorf("id %q", id)
	}
	for _, bad := range []struct {
		body   string
		status int
	}{
		{jsonOf("id", q["id"], "decision", "y", "digest", strings.Repeat("0", 64)), 409},
		{jsonOf("id", q["id"], "decision", "yes"), 400},
		{jsonOf("id", q["id"]), 400},
		{jsonOf("decision", "y"), 400},
		{jsonOf("id", 5, "decision", "y"), 400},
		{jsonOf("id", "1_1", "decision", "y"), 409},
	} {
		if status, text := s.ask("POST", "/v1/approval", bad.body); status != bad.status {
			t.Errorf("%.80s = %d %s; want %d", bad.body, status, text, bad.status)
		}
	}
	if len(s.host.ran()) > 0 {
		t.Fatalf("ran %q", s.host.ran())
	}
	s.must("POST", "/v1/approval", jsonOf("id", q["id"], "decision", "y", "digest", q["digest"]))
	s.until("complete")
	if got := s.host.ran(); len(got) != 1 || got[0] != command {
		t.Errorf("ran %.100q", got)
	}
}

func TestFirstAnswerWins(t *testing.T) {
	s := newStation(t)
	q := s.asks("run ls")
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			status, _ := s.ask("POST", "/v1/approval", jsonOf("id", q["id"], "decision", "y"))
			mu.Lock()
			defer mu.Unlock()
			got[status]++
		})
	}
	wg.Wait()
	s.until("complete")
	if got[200] != 1 || got[409] != 19 || len(s.host.ran()) != 1 {
		t.Errorf("statuses %v, ran %q", got, s.host.ran())
	}
}

// H05: nobody answers; the turn goes on with a refusal.
func TestApprovalIsDeniedInTime(t *testing.T) {
	m := &manual{}
	s := newStation(t, func(c *Config) { c.AfterFunc = m.after })
	q := s.asks("run ls")
	m.fire(300 * time.Second)
	list := s.until("complete")
	if got := short(list); !strings.Contains(got, "nobody answered within 5m0s") || len(s.host.ran()) > 0 {
		t.Errorf("events:\n%s", got)
	}
	if status, _ := s.ask("POST", "/v1/approval", jsonOf("id", q["id"], "decision", "y")); status != 409 {
		t.Errorf("a late answer = %d", status)
	}
	if n := len(s.server.approvals); n != 0 {
		t.Errorf("%d approvals are kept", n)
	}
}

func TestApprovalEndsWithItsQuestion(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(s *station, call string)
	}{
		{"answered elsewhere", func(s *station, call string) {
			if err := s.host.current().Answer(call, event.Answer{Choice: "no"}); err != nil {
				s.t.Error(err)
			}
		}},
		{"cancelled", func(s *station, _ string) { s.must("POST", "/v1/cancel", "{}") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t)
			q := s.asks("run ls")
			var call string
			for _, e := range s.host.logs["1_1"].events {
				if e.Kind == event.Asked {
					call = e.Question.CallID
				}
			}
			c.end(s, call)
			s.until("complete")
			if status, _ := s.ask("POST", "/v1/approval", jsonOf("id", q["id"], "decision", "y")); status != 409 {
				t.Errorf("a later answer = %d", status)
			}
			if len(s.host.ran()) > 0 {
				t.Errorf("ran %q", s.host.ran())
			}
		})
	}
}

func TestEventsEndApprovals(t *testing.T) {
	for _, c := range []struct {
		name string
		end  event.Event
	}{
		{"answer", event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: "c"}}},
		{"result", event.Event{Kind: event.CallEnd, Result: &event.Result{CallID: "c"}}},
		{"end of the turn", event.Event{Kind: event.TurnEnd, End: &event.End{}}},
	} {
		s := newStation(t)
		count := func(e event.Event) int {
			s.host.current().Emit(e)
			f := s.server.follow()
			s.server.await(f, f.conv.LastSeq())
			s.server.mu.Lock()
			defer s.server.mu.Unlock()
			return len(s.server.approvals)
		}
		if n := count(event.Event{Kind: event.Asked, Question: &event.Question{CallID: "c"}}); n != 1 {
			t.Errorf("%d approvals wait after a question", n)
		}
		if n := count(event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: "other"}}); n != 1 {
			t.Errorf("%d approvals wait after the answer to another question", n)
		}
		if n := count(c.end); n != 0 {
			t.Errorf("%d approvals wait after the %s", n, c.name)
		}
	}
}

func TestChoice(t *testing.T) {
	for _, c := range []struct {
		decision  string
		grantable bool
		want      string
	}{
		{"y", true, "once"}, {"y", false, "once"}, {"n", true, "no"}, {"a", true, "conversation"}, {"a", false, "once"},
		{"", true, ""}, {"Y", true, ""}, {"conversation", true, ""},
	} {
		if got := choice(c.decision, event.Question{Grantable: c.grantable}); got != c.want {
			t.Errorf("choice(%q, %v) = %q; want %q", c.decision, c.grantable, got, c.want)
		}
	}
}

func TestKindOfAnApproval(t *testing.T) {
	for effect, want := range map[string]string{"exec": "command", "external-write": "external", "peer": "external", "unknown": "external"} {
		var p projection
		p.ask(&pending{id: "1_1", question: event.Question{Effect: effect, Text: "text", Summary: "s"}})
		if got := p.events[1].(approvalEvent); got.Kind != want || got.Command != "text" {
			t.Errorf("effect %s: %+v", effect, got)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name   string
		reason event.Reason
		err    error
		p      projection
		want   int
	}{
		{"complete", event.Complete, nil, projection{}, 0},
		{"a slash command", "", nil, projection{}, 0},
		{"a refusal for want of a person", event.Complete, nil, projection{unattended: 1}, 3},
		{"blocked", event.Blocked, nil, projection{}, 3},
		{"cancelled", event.Cancelled, nil, projection{}, 130},
		{"cancelled goal", event.Cancelled, nil, projection{goal: "paused"}, 130},
		{"error", event.Errored, nil, projection{}, 1},
		{"limit", event.Limited, nil, projection{}, 1},
		{"loop", event.Looped, nil, projection{}, 1},
		{"budget", event.Budget, nil, projection{}, 1},
		{"not done", "", errBadQuery, projection{}, 1},
		{"goal blocked", event.Complete, nil, projection{goal: "blocked"}, 3},
		{"goal out of budget", event.Budget, nil, projection{goal: "budget_limited"}, 1},
		{"goal complete", event.Complete, nil, projection{goal: "complete"}, 0},
	} {
		if got := c.p.exitCode(c.reason, c.err); got != c.want {
			t.Errorf("%s = %d; want %d", c.name, got, c.want)
		}
	}
}
