package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zcoder/internal/agent"
	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/tools"
)

// TestInvariants has random people talk to random models, over the real loop, gate and
// log, and looks at what the promises of the design say about it: one result for each
// call and one end for each turn, stored before shown, a permit for exactly what was
// asked, and the same history after a crash at any record.
//
// PROPERTY_SEED repeats a run, except for the order in which goroutines come.
func TestInvariants(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PROPERTY_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("PROPERTY_SEED=%d", seed)
	conversations := 40
	if testing.Short() {
		conversations = 20
	}
	seen := map[string]int{}
	for i := range conversations {
		w := newWorld(t, seed+uint64(i), seen)
		w.converse()
		w.crashes()
		if t.Failed() {
			t.Fatalf("conversation %d of PROPERTY_SEED=%d", i, seed)
		}
	}
	for _, must := range []string{"ok", "failed", "denied", "cancelled", "skipped", "complete", "error", "compacted", "interrupted", "asked", "steered"} {
		if seen[must] == 0 {
			t.Errorf("nothing was %s in %d conversations: the test does not reach it", must, conversations)
		}
	}
}

// world is one conversation and all that was seen of it.
type world struct {
	t    *testing.T
	seed uint64
	seen map[string]int // over all conversations

	dir     string
	store   *store.Store
	session *Session
	log     *watchedLog
	ids     atomic.Int64

	mu       sync.Mutex
	records  []approval.Record
	ran      []approval.Request
	shown    []event.Event
	requests []chat.Request
}

// watchedLog is the real log without waiting for the disk; it knows what was stored.
type watchedLog struct {
	*store.Log
	stored atomic.Int64
}

func (l *watchedLog) Append(e event.Event) error {
	err := l.Log.Append(e)
	if err == nil {
		l.stored.Store(e.Seq)
	}
	return err
}

func (l *watchedLog) Sync() error { return nil }

const propertyID = "1764509281_7"

func newWorld(t *testing.T, seed uint64, seen map[string]int) *world {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sessions")
	st, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	log, err := st.Create(propertyID)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, seed: seed, seen: seen, dir: dir, store: st}
	w.start(log, nil, 1)
	return w
}

// random returns a source of its own for each goroutine.
func (w *world) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, who)) }

// start begins a session over the log, with a model, a policy and a tool of the world.
func (w *world) start(log *store.Log, past []event.Event, life uint64) {
	w.log = &watchedLog{Log: log}
	reg, err := tools.NewRegistry(worldTool{w, "look", approval.Read}, worldTool{w, "run", approval.Exec}, worldTool{w, "write", approval.WorkspaceWrite}, agent.Finish())
	if err != nil {
		w.t.Fatal(err)
	}
	next := func() string { return fmt.Sprintf("id%d-%d", life, w.ids.Add(1)) }
	model := w.model(w.random(life * 10))
	w.session = New(Config{
		Info: event.Session{ID: propertyID}, Log: w.log, Origin: approval.OriginUser, Now: time.Now, NewTurnID: next,
		Gate: &approval.Gate{Policy: worldPolicy{}, Recorder: w},
		Turn: func() (string, agent.Config) {
			return "sys", agent.Config{
				Model: model, Tools: reg, Now: time.Now, NewID: next, MaxResult: 1500, IncompleteRetries: 1, MaxRounds: 12,
				Loops:   agent.LoopLimits{Repeat: 3, Cycle: 4},
				Prepare: func(context.Context) (agent.Setup, error) { return agent.Setup{Window: 2500}, nil },
				Compact: agent.CompactLimits{Percent: 60, MaxTokens: 200, KeepUser: 200, KeepRecent: 400, MinYield: 100, Retries: 1},
			}
		},
	}, past)
}

// model replies at random: text, calls in any number and state, a failure, silence.
func (w *world) model(r *rand.Rand) modelFunc {
	return func(ctx context.Context, q chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
		w.mu.Lock()
		w.requests = append(w.requests, q)
		w.mu.Unlock()
		m := chat.Message{Role: chat.Assistant}
		for range r.IntN(4) {
			text := fmt.Sprintf("word %d ", r.IntN(1000))
			m.Content += text
			emit(chat.Delta{Content: text})
		}
		switch r.IntN(12) {
		case 0:
			m.Calls = append(m.Calls, randomCall(r)) // was being written, and never runs
			return chat.Reply{}, &chat.Error{Kind: chat.ServerFailure, Text: "the server fell over", Partial: chat.Reply{Message: m}}
		case 1:
			w.stopSoon()
			<-ctx.Done()
			return chat.Reply{}, ctx.Err()
		case 2, 3, 4:
			m.Content += "that is all"
			emit(chat.Delta{Content: "that is all"})
		default:
			for range 1 + r.IntN(4) {
				m.Calls = append(m.Calls, randomCall(r))
			}
		}
		return chat.Reply{Message: m, Done: true, DoneReason: "stop", Usage: chat.Usage{OutputTokens: 5}}, nil
	}
}

// stopSoon has the person lose patience: what waits goes on only when it is stopped.
func (w *world) stopSoon() { time.AfterFunc(time.Millisecond, w.session.Cancel) }

func randomCall(r *rand.Rand) chat.ToolCall {
	name := []string{"look", "run", "write", "run", "finish", "nothing"}[r.IntN(6)]
	what := []string{"short", "long", "fail", "wait", "forbidden", "ask", "ask", "reject"}[r.IntN(8)]
	args, _ := json.Marshal(map[string]string{"text": fmt.Sprint(what, " ", r.IntN(1e6))})
	switch {
	case name == "finish":
		args = []byte(`{"status":"complete","response":"finished"}`)
	case r.IntN(12) == 0:
		args = []byte(`{"text":"ask one","Text":"ask two"}`)
	case r.IntN(12) == 0:
		args = args[:len(args)/2]
	}
	return chat.ToolCall{ID: "same", Name: name, Args: args}
}

// worldPolicy judges by the text alone.
type worldPolicy struct{}

func (worldPolicy) Judge(r approval.Request) approval.Verdict {
	switch {
	case strings.HasPrefix(r.Text, "forbidden"):
		return approval.Verdict{Decision: approval.Deny, Rule: "test", Reason: "not here"}
	case strings.HasPrefix(r.Text, "ask"):
		return approval.Verdict{}
	}
	return approval.Verdict{Decision: approval.Allow}
}

// Record implements approval.Recorder.
func (w *world) Record(r approval.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, r)
	return nil
}

// worldTool does what its text says.
type worldTool struct {
	w      *world
	name   string
	effect approval.Effect
}

func (x worldTool) Spec() tools.Spec {
	return tools.Spec{Name: x.name, Params: []tools.Param{{Name: "text", Type: tools.String, Required: true}}}
}

func (x worldTool) Plan(_ context.Context, c tools.Call) (tools.Action, error) {
	text := c.Args.Text("text")
	what, _, _ := strings.Cut(text, " ")
	if what == "reject" {
		return tools.Action{}, errors.New("this cannot be planned")
	}
	req := approval.Request{CallID: c.ID, Tool: x.name, Effect: x.effect, Summary: x.name, Text: text, Args: string(c.Args.JSON())}
	return tools.NewRequestAction(req, func(ctx context.Context, got approval.Request, out tools.Progress) tools.Result {
		x.w.runs(got)
		out("working\n")
		switch what {
		case "fail":
			return tools.Fail("it failed")
		case "wait":
			x.w.stopSoon()
			<-ctx.Done()
			return tools.Result{Status: tools.Cancelled, Text: "stopped"}
		case "long":
			return tools.Result{Status: tools.OK, Text: strings.Repeat("much output ", 200)}
		}
		return tools.Result{Status: tools.OK, Text: "did " + text}
	}), nil
}

// runs is where an action changes the world: its start must be on record, and what a
// person was asked must be what runs.
func (w *world) runs(r approval.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	starts, allowed := 0, false
	for _, rec := range w.records {
		if rec.Request == nil || rec.Request.Digest() != r.Digest() {
			continue
		}
		switch {
		case rec.Kind == "start":
			starts++
		case rec.Verdict != nil && rec.Verdict.Decision == approval.Allow, rec.Answer != nil && rec.Answer.Choice != approval.No:
			allowed = true
		}
	}
	if starts != 1 || !allowed {
		w.t.Errorf("%s %q runs with %d starts on record, allowed %v", r.Tool, r.Text, starts, allowed)
	}
	w.ran = append(w.ran, r)
}

// converse runs some turns, with a person who watches and interferes.
func (w *world) converse() {
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(ctx, w.random(2)) })
	w.settled(1)
	w.turns(w.random(3), 8)
	w.settled(w.session.LastSeq())
	stop()
	watching.Wait()
	live := w.session.History()
	if err := w.session.Close(); err != nil {
		w.t.Error(err)
	}
	loaded := w.load(w.store, 0)
	w.wellFormed(loaded)
	w.asShown(loaded)
	w.asAsked(loaded)
	w.sameHistory("the log", fold(loaded), live)
}

// turns prompts, and now and then compacts or undoes.
func (w *world) turns(r *rand.Rand, n int) {
	for range n {
		w.session.ResumeQueue()
		switch r.IntN(10) {
		case 0:
			_ = w.session.Compact(context.Background()) // too little would be saved, or the model fails
		case 1:
			if h := w.session.History(); len(h) > 0 {
				_ = w.session.Rewind(startOfTurn(h))
			}
		default:
			if _, err := w.session.Prompt(context.Background(), event.Input{Text: fmt.Sprint("request ", r.IntN(1000))}); err != nil {
				w.t.Error(err)
			}
		}
	}
}

// startOfTurn is the place of the newest request.
func startOfTurn(h []chat.Message) int {
	for i := len(h) - 1; i > 0; i-- {
		if h[i].Role == chat.User && !h[i].Note {
			return i
		}
	}
	return 0
}

// settled waits until the watcher has seen all.
func (w *world) settled(seq int64) {
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		w.mu.Lock()
		n := len(w.shown)
		last := n > 0 && w.shown[n-1].Seq >= seq
		w.mu.Unlock()
		if last || time.Now().After(deadline) {
			return
		}
	}
}

// watch sees every event as a frontend does, and answers, stops and steers at random.
func (w *world) watch(ctx context.Context, r *rand.Rand) {
	for e, err := range w.session.Events(ctx, 0) {
		if err != nil {
			return
		}
		w.mu.Lock()
		w.shown = append(w.shown, e)
		w.mu.Unlock()
		if !e.Kind.Live() && e.Kind != event.Opened && e.Seq > w.log.stored.Load() {
			w.t.Errorf("%s with number %d was shown, and only %d are stored", e.Kind, e.Seq, w.log.stored.Load())
		}
		switch {
		case e.Kind == event.Asked:
			w.answer(r, *e.Question)
		case e.Kind == event.Progress && e.State.Phase == event.Running && r.IntN(3) == 0, e.Kind == event.Progress && r.IntN(25) == 0, e.Kind == event.Output && r.IntN(2) == 0:
			w.session.Cancel()
		case r.IntN(25) == 0:
			w.session.Skip()
		case r.IntN(15) == 0:
			mode := []event.Mode{event.Steer, event.FollowUp}[r.IntN(2)]
			_, _ = w.session.Enqueue(event.Item{ID: fmt.Sprint("item", w.ids.Add(1)), Mode: mode, Text: "and this"}) // full is an answer too
		}
	}
}

// answer settles a question, rightly or not; two answers may come at once.
func (w *world) answer(r *rand.Rand, q event.Question) {
	choice := []string{"no", "once", "once", "conversation"}[r.IntN(4)]
	right := event.Answer{Choice: choice, Digest: q.Digest}
	switch r.IntN(6) {
	case 0:
		w.session.Cancel()
		return
	case 1:
		if err := w.session.Answer(q.CallID, event.Answer{Choice: "once", Digest: "another"}); err == nil {
			w.t.Error("an answer about another text was taken")
		}
	case 2:
		if err := w.session.Answer("another", right); !errors.Is(err, ErrSettled) {
			w.t.Errorf("an answer for another call: %v", err)
		}
	case 3:
		var both sync.WaitGroup
		var taken atomic.Int64
		for range 2 {
			both.Go(func() {
				if w.session.Answer(q.CallID, right) == nil {
					taken.Add(1)
				}
			})
		}
		both.Wait()
		if taken.Load() > 1 {
			w.t.Error("a question was settled twice")
		}
		return
	}
	_ = w.session.Answer(q.CallID, right) // the turn may have been stopped meanwhile
}

func (w *world) load(st *store.Store, bad int) []event.Event {
	w.t.Helper()
	loaded, err := st.Load(propertyID)
	if err != nil || loaded.Bad > bad {
		w.t.Fatalf("%d bad lines, %v", loaded.Bad, err)
	}
	return loaded.Events
}

func fold(events []event.Event) []chat.Message {
	var h []chat.Message
	for _, e := range events {
		h = event.Append(h, e)
	}
	return h
}

func (w *world) sameHistory(what string, got, want []chat.Message) {
	w.t.Helper()
	if len(got) != len(want) {
		w.t.Errorf("%s has %d records; want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if g, wt := asJSON(got[i]), asJSON(want[i]); g != wt {
			w.t.Errorf("%s has at %d\n%s\nwant\n%s", what, i, g, wt)
			return
		}
	}
}

func asJSON(v any) string {
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// wellFormed checks numbers, turns, calls and questions, and the history they make.
func (w *world) wellFormed(events []event.Event) {
	w.t.Helper()
	turn, open, asked := "", []string(nil), ""
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.t.Fatalf("event %d has the number %d: %s", i+1, e.Seq, asJSON(events[max(0, i-2):i+1]))
		}
		switch e.Kind {
		case event.TurnStart:
			if turn != "" {
				w.t.Fatalf("the turn %s began inside %s", e.Turn, turn)
			}
			turn = e.Turn
		case event.TurnEnd:
			if e.Turn != turn || len(open) > 0 {
				w.t.Fatalf("the turn %q ended; open were %q and the calls %q", e.Turn, turn, open)
			}
			turn = ""
			w.seen[string(e.End.Reason)]++
		case event.Reply:
			if len(open) > 0 {
				w.t.Fatalf("a reply came before the results of %q", open)
			}
			if !e.Reply.Partial && !e.Reply.Degenerate {
				for _, c := range e.Reply.Message.Calls {
					open = append(open, c.ID)
				}
			}
		case event.CallEnd:
			if len(open) == 0 || open[0] != e.Result.CallID {
				w.t.Fatalf("a result for %q; open are %q", e.Result.CallID, open)
			}
			open = open[1:]
			w.seen[e.Result.Status]++
		case event.Asked:
			asked = e.Question.CallID
			w.seen["asked"]++
		case event.Answered:
			if e.Answer.CallID != asked {
				w.t.Fatalf("an answer to %q; asked was %q", e.Answer.CallID, asked)
			}
			asked = ""
		case event.Compacted:
			w.seen["compacted"]++
		case event.User:
			if e.Item != nil {
				w.seen["steered"]++
			}
		}
	}
	if turn != "" || len(open) > 0 {
		w.t.Errorf("open at the end: the turn %q, the calls %q", turn, open)
	}
	w.answeredCalls(fold(events))
}

// answeredCalls checks that each call in a history is followed by its one result.
func (w *world) answeredCalls(h []chat.Message) {
	w.t.Helper()
	var open []string
	for i, m := range h {
		if m.Role == chat.ToolRole {
			if len(open) == 0 || open[0] != m.CallID {
				w.t.Fatalf("record %d answers %q; open are %q", i, m.CallID, open)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			w.t.Fatalf("record %d (%s) comes before the results of %q", i, m.Role, open)
		}
		for _, c := range m.Calls {
			open = append(open, c.ID)
		}
	}
}

// asShown compares what a frontend saw with what is stored.
func (w *world) asShown(stored []event.Event) {
	w.t.Helper()
	var shown []int64
	for _, e := range w.shown {
		if !e.Kind.Live() {
			shown = append(shown, e.Seq)
		}
	}
	if len(shown) != len(stored) || !slices.IsSorted(shown) {
		w.t.Errorf("%d events were shown, %d are stored", len(shown), len(stored))
	}
}

// asAsked checks that what a person was asked and allowed is what ran, and that
// nothing ran twice or after a no.
func (w *world) asAsked(events []event.Event) {
	w.t.Helper()
	questions, answers, status := map[string]event.Question{}, map[string]string{}, map[string]string{}
	for _, e := range events {
		switch e.Kind {
		case event.Asked:
			questions[e.Question.CallID] = *e.Question
		case event.Answered:
			answers[e.Answer.CallID] = e.Answer.Choice
		case event.CallEnd:
			status[e.Result.CallID] = e.Result.Status
		}
	}
	for i, r := range w.ran {
		q, wasAsked := questions[r.CallID]
		if wasAsked && (q.Text != r.Text || q.Digest != r.Digest().String() || answers[r.CallID] == "no") {
			w.t.Errorf("asked was %q, answered %q, and %q ran", q.Text, answers[r.CallID], r.Text)
		}
		if s := status[r.CallID]; s == "denied" || s == "skipped" || s == "" {
			w.t.Errorf("%q ran and its result is %q", r.Text, s)
		}
		if slices.ContainsFunc(w.ran[:i], func(o approval.Request) bool { return o.CallID == r.CallID }) {
			w.t.Errorf("%q ran twice", r.Text)
		}
	}
}

// crashes cuts the log where a kill could have left it, and goes on from there.
func (w *world) crashes() {
	data, err := os.ReadFile(filepath.Join(w.dir, propertyID+".jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.random(4)
	for life := range uint64(5) {
		w.crash(data[:1+r.IntN(len(data))], life+2)
	}
}

// crash resumes from a log that was cut: what it settles is well formed, resuming once
// more gives the same history, and the next request sends it.
func (w *world) crash(data []byte, life uint64) {
	w.dir = filepath.Join(w.t.TempDir(), "sessions")
	st, err := store.Open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, propertyID+".jsonl"), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	log, loaded, err := st.Resume(propertyID)
	if err != nil || loaded.Bad > 1 {
		w.t.Fatalf("resume: %d bad lines, %v", loaded.Bad, err)
	}
	if len(loaded.Events) == 0 {
		log.Close()
		return
	}
	w.start(log, loaded.Events, life)
	if w.session.LastSeq() > loaded.Events[len(loaded.Events)-1].Seq {
		w.seen["interrupted"]++
	}
	settled := slices.Clone(w.session.History())
	w.answeredCalls(settled)
	before := w.load(st, 1)
	w.sameHistory("the settled log", fold(before), settled)
	w.requests = nil
	w.session.PauseQueue()
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	_, err = w.session.Prompt(ctx, event.Input{Text: "go on"})
	stop()
	if err != nil {
		w.t.Error(err)
	}
	w.session.Close()
	after := w.load(st, 1)
	w.extends(settled, after[len(before):])
	w.wellFormed(after)
}

// extends checks that the first request after a crash sends the history as it was,
// unless that was shortened first.
func (w *world) extends(settled []chat.Message, since []event.Event) {
	w.t.Helper()
	short := slices.ContainsFunc(since, func(e event.Event) bool { return e.Kind == event.Compacted })
	if len(w.requests) == 0 || short || w.requests[0].Tools == nil {
		return // without tools it asks for a checkpoint
	}
	sent := w.requests[0].Messages[1:]
	w.sameHistory("the first request", sent[:min(len(sent), len(settled))], settled)
}
