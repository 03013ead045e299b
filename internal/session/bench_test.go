package session

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/tools"
)

// longSession makes a stored session of about n events, as turns of one request, two
// rounds with a call, and an answer.
func longSession(b *testing.B, n int) *store.Store {
	st, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	log, err := st.Create(propertyID)
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	seq := int64(0)
	add := func(e event.Event) {
		seq++
		e.Seq, e.Time, e.Turn = seq, time.Unix(1764509281, 0), fmt.Sprint("t", seq/10)
		if err := log.Append(e); err != nil {
			b.Fatal(err)
		}
	}
	add(event.Event{Kind: event.Opened, Session: &event.Session{ID: propertyID}})
	text := strings.Repeat("a line of text ", 7)
	for i := 0; seq < int64(n); i++ {
		add(event.Event{Kind: event.TurnStart})
		add(event.Event{Kind: event.User, Text: text})
		for round := range 2 {
			c := call(text).Calls
			c[0].ID = fmt.Sprint("c", i, "-", round)
			add(event.Event{Kind: event.Content, Text: text})
			add(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Role: chat.Assistant, Content: text, Calls: c}}})
			add(event.Event{Kind: event.CallStart, Call: &event.Call{ID: c[0].ID, Name: "run", Summary: "run"}})
			add(event.Event{Kind: event.CallEnd, Result: &event.Result{CallID: c[0].ID, Name: "run", Status: "ok", Text: text}})
		}
		add(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Role: chat.Assistant, Content: text}}})
		add(event.Event{Kind: event.TurnEnd, End: &event.End{Reason: event.Complete}})
	}
	return st
}

// roundsOfTurn is how many rounds a turn of benchSession has.
const roundsOfTurn = 10

// benchSession resumes a session whose model calls a tool in each round but the last,
// and whose log does not wait for the disk.
func benchSession(b *testing.B, st *store.Store) *Session {
	log, loaded, err := st.Resume(propertyID)
	if err != nil {
		b.Fatal(err)
	}
	reg, err := tools.NewRegistry(runTool{})
	if err != nil {
		b.Fatal(err)
	}
	calls, ids := 0, 0
	next := func() string { ids++; return fmt.Sprint("id", ids) }
	model := modelFunc(func(_ context.Context, _ chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
		calls++
		m := call("ls")
		if calls%roundsOfTurn == 0 {
			m = chat.Message{Role: chat.Assistant, Content: "done"}
			emit(chat.Delta{Content: "done"})
		}
		return chat.Reply{Message: m, Done: true, DoneReason: "stop"}, nil
	})
	return New(Config{
		Info: event.Session{ID: propertyID}, Log: &watchedLog{Log: log}, Origin: approval.OriginUser, Now: time.Now, NewTurnID: next,
		Gate: &approval.Gate{Policy: worldPolicy{}, Recorder: noRecorder{}},
		Turn: func() (string, agent.Config) {
			return "sys", agent.Config{Model: model, Tools: reg, Now: time.Now, NewID: next, MaxResult: 1000}
		},
	}, loaded.Events)
}

// BenchmarkRound runs turns after a history of so many events, with a model that takes
// no time. A session is replaced before it is much longer.
func BenchmarkRound(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		b.Run(size(n), func(b *testing.B) {
			st := longSession(b, n)
			var s *Session
			for turn := 0; b.Loop(); turn++ {
				if turn%20 == 0 {
					b.StopTimer()
					if s != nil {
						s.Close()
						st = longSession(b, n)
					}
					s = benchSession(b, st)
					b.StartTimer()
				}
				if _, err := s.Prompt(b.Context(), event.Input{Text: "go on"}); err != nil {
					b.Fatal(err)
				}
			}
			s.Close()
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N*roundsOfTurn), "ms/round")
		})
	}
}

// BenchmarkResume opens a stored session and makes it ready for the next prompt. It
// also reports the memory that the session then holds.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(size(n), func(b *testing.B) {
			st := longSession(b, n)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var s *Session
			for b.Loop() {
				if s != nil {
					s.Close()
				}
				s = benchSession(b, st)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "held-MB")
			s.Close()
		})
	}
}

func size(n int) string {
	if n >= 1000 {
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}
