package session

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"zcoder/internal/agent"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/tools"
)

func finishCall(status, response string) chat.Message {
	args, _ := json.Marshal(map[string]string{"status": status, "response": response})
	return chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{Name: "finish", Args: args}}}
}

func verdictCall(verdict, reason string) chat.Message {
	args, _ := json.Marshal(map[string]string{"verdict": verdict, "reason": reason, "next_action": "test it"})
	return chat.Message{Role: chat.Assistant, Calls: []chat.ToolCall{{Name: "verify_goal", Args: args}}}
}

// goalSession is a session with the finish tool, whose requests are kept.
func goalSession(t *testing.T, past []event.Event, replies ...chat.Message) (*Session, *memoryLog, *[]chat.Request) {
	t.Helper()
	s, log, requests := newSession(t, past, replies...)
	reg, err := tools.NewRegistry(runTool{}, agent.Finish())
	if err != nil {
		t.Fatal(err)
	}
	turn := s.cfg.Turn
	s.cfg.Turn = func() (string, agent.Config) {
		system, cfg := turn()
		cfg.Tools, cfg.IncompleteRetries = reg, 3
		return system, cfg
	}
	s.cfg.Goals = GoalConfig{MaxRejections: 3}
	return s, log, requests
}

func TestGoal(t *testing.T) {
	done := finishCall("complete", "it works")
	for _, tt := range []struct {
		name    string
		replies []chat.Message
		limit   int
		state   string
		reason  string
	}{
		{"accepted", []chat.Message{done, verdictCall("accept", "shown")}, 0, "complete", "shown"},
		{"rejected once, then accepted", []chat.Message{done, verdictCall("reject", "no test"), done, verdictCall("accept", "tested")}, 0, "complete", "tested"},
		{"an answer without finish goes on", []chat.Message{{Role: chat.Assistant, Content: "I did it"}, done, verdictCall("accept", "shown")}, 0, "complete", "shown"},
		{"three rejections", []chat.Message{done, verdictCall("reject", "a"), done, verdictCall("reject", "b"), done, verdictCall("reject", "c")}, 0, "blocked", "rejected 3 times: c"},
		{"blocked by the worker", []chat.Message{finishCall("blocked", "no key")}, 0, "blocked", "no key"},
		{"out of budget", []chat.Message{call("ls"), done}, 1, "budget_limited", "the budget of 1 tokens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _, requests := goalSession(t, nil, tt.replies...)
			countTokens(s)
			if tt.limit > 0 {
				go answerAll(t, s)
			}
			if _, err := s.StartGoal(t.Context(), "make it work", tt.limit); err != nil {
				t.Fatal(err)
			}
			g := s.Goal()
			if g.State != tt.state || !strings.Contains(g.Reason, tt.reason) {
				t.Errorf("goal = %+v after %d requests; want %s, %q", g, len(*requests), tt.state, tt.reason)
			}
			if g.Used == 0 {
				t.Error("no tokens were counted")
			}
		})
	}
}

// countTokens lets each reply count.
func countTokens(s *Session) {
	turn := s.cfg.Turn
	s.cfg.Turn = func() (string, agent.Config) {
		system, cfg := turn()
		inner := cfg.Model
		cfg.Model = modelFunc(func(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
			reply, err := inner.Chat(ctx, r, emit)
			reply.Usage = chat.Usage{PromptTokens: 100, OutputTokens: 10}
			return reply, err
		})
		return system, cfg
	}
}

func answerAll(t *testing.T, s *Session) {
	for e := range s.Events(t.Context(), 0) {
		if e.Kind == event.Asked {
			s.Answer(e.Question.CallID, event.Answer{Choice: "once"})
		}
	}
}

func TestTheVerifierLeavesNoTraceAndHasItsOwnTools(t *testing.T) {
	s, _, requests := goalSession(t, nil, finishCall("complete", "done"), verdictCall("accept", "fine"))
	if _, err := s.StartGoal(t.Context(), "x", 0); err != nil {
		t.Fatal(err)
	}
	verifier := (*requests)[1]
	var names []string
	for _, tool := range verifier.Tools {
		names = append(names, tool.Name)
	}
	if fmt.Sprint(names) != "[verify_goal]" || verifier.Messages[0].Content == "sys" {
		t.Errorf("the verifier's tools = %v, system %q", names, verifier.Messages[0].Content)
	}
	for _, m := range s.History() {
		for _, c := range m.Calls {
			if c.Name == "verify_goal" {
				t.Error("the verifier's call is in the history")
			}
		}
	}
}

func TestAGoalSurvivesARestartAsPaused(t *testing.T) {
	s, log, _ := goalSession(t, nil)
	go s.StartGoal(context.Background(), "x", 0)
	wait(t, s, event.TurnStart)
	again, _, _ := goalSession(t, log.events, finishCall("complete", "done"), verdictCall("accept", "fine"))
	if g := again.Goal(); g.State != "paused" || g.Objective != "x" {
		t.Fatalf("goal after a restart = %+v; want paused", g)
	}
	if _, err := again.ResumeGoal(t.Context()); err != nil || again.Goal().State != "complete" {
		t.Errorf("ResumeGoal = %v, goal %+v", err, again.Goal())
	}
	s.Cancel()
}

func TestPausingStopsTheTurn(t *testing.T) {
	s, _, _ := goalSession(t, nil)
	done := make(chan struct{})
	go func() { s.StartGoal(context.Background(), "x", 0); close(done) }()
	wait(t, s, event.TurnStart)
	if err := s.PauseGoal(); err != nil {
		t.Fatal(err)
	}
	<-done
	if g := s.Goal(); g.State != "paused" {
		t.Errorf("goal = %+v", g)
	}
	if err := s.ClearGoal(); err != nil || s.Goal().State != "none" {
		t.Errorf("ClearGoal = %v, goal %+v", err, s.Goal())
	}
}
