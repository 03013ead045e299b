package remote

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"zcoder/internal/event"
)

func TestTurnEvents(t *testing.T) {
	for _, c := range []struct{ name, prompt, extra, answer, want string }{
		{"an answer", "say hello", "", "", "assistant: hello\nexit 0"},
		{"a failure", "fail", "", "", "error: no server\nstart it\nexit 1"},
		{"a command", "run ls", "", "y", "command? ls\ntool: ran ls\nassistant: done\nexit 0"},
		{"a command for a structured client", "run ls", "structured_events", "y",
			"tool begin run {\"command\":\"ls\"}\ncommand? ls\ntool running run {\"command\":\"ls\"}\ntool complete run {\"command\":\"ls\"}\nassistant: done\nexit 0"},
		{"a slash command", "/print some text", "", "", "system: some text\nexit 0"},
		{"a slash command that fails", "/fail it is broken", "", "", "error: it is broken\ndo better\nexit 1"},
		{"a slash command that makes another conversation current", "/new", "", "", "system: new conversation\nexit 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t)
			body := jsonOf("prompt", c.prompt)
			if c.extra != "" {
				body = jsonOf("prompt", c.prompt, c.extra, true)
			}
			s.must("POST", "/v1/turn", body)
			if c.answer != "" {
				list := s.until("approval_required")
				s.must("POST", "/v1/approval", jsonOf("id", list[len(list)-1]["id"], "decision", c.answer))
			}
			list := s.until("complete")
			if got := short(list); got != c.want {
				t.Errorf("events:\n%s\nwant:\n%s", got, c.want)
			}
			s.idle()
			if e := s.must("GET", fmt.Sprintf("/v1/events?after=%d", len(list)), ""); e["event"] != "none" {
				t.Errorf("after the last event comes %v", e)
			}
			if e := s.must("GET", "/v1/events?after=0", ""); e["seq"] != 1.0 {
				t.Errorf("the events are not kept: %v", e)
			}
		})
	}
}

// TestAQuestionToNobody: a client that shows no questions is told that there was one.
func TestAQuestionToNobody(t *testing.T) {
	s := newStation(t)
	s.turn("/choose a,b")
	if got := short(s.until("complete")); got != "system: this asks a person, and nobody can be asked now: Which?\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

func TestToolEventHasTheDiff(t *testing.T) {
	s := newStation(t)
	s.must("POST", "/v1/turn", jsonOf("prompt", "run ls", "structured_events", true))
	list := s.until("approval_required")
	s.must("POST", "/v1/approval", jsonOf("id", list[len(list)-1]["id"], "decision", "y"))
	for _, e := range s.until("complete") {
		if e["event"] == "tool" && e["phase"] == "complete" {
			if e["succeeded"] != true || e["diff"] != "-a\n+b\n" || e["result"] != "ran ls" {
				t.Errorf("complete event = %v", e)
			}
			return
		}
	}
	t.Error("no complete event")
}

func TestTheNextTurnBeginsAtOne(t *testing.T) {
	s := newStation(t)
	one := s.turn("say one")
	s.until("complete")
	s.idle()
	two := s.turn("say two")
	list := s.until("complete")
	if got := short(list); got != "assistant: two\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
	if one == two || !isID(one) || !isID(two) {
		t.Errorf("turn ids %q and %q", one, two)
	}
}

// H07: of many prompts at once one runs.
func TestOneTurnForAllClients(t *testing.T) {
	s := newStation(t)
	var mu sync.Mutex
	got := map[int]int{}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			status, text := s.ask("POST", "/v1/turn", jsonOf("prompt", "wait"))
			mu.Lock()
			defer mu.Unlock()
			got[status]++
			if status == 409 && text != `{"error":"a remote turn is already running"}` {
				t.Errorf("409 %s", text)
			}
		})
	}
	wg.Wait()
	if got[202] != 1 || got[409] != 19 {
		t.Errorf("statuses %v; want one 202 and 19 409", got)
	}
	s.blocked()
	for path, body := range map[string]string{"/v1/session/new": "{}", "/v1/session/select": jsonOf("id", "1_1")} {
		if status, _ := s.ask("POST", path, body); status != 409 {
			t.Errorf("POST %s during a turn = %d", path, status)
		}
	}
	close(s.host.release)
	s.until("complete")
	if n := len(s.host.prompts); n != 1 {
		t.Errorf("%d prompts ran", n)
	}
}

func TestRequestIDs(t *testing.T) {
	s := newStation(t)
	body := jsonOf("prompt", "say one", "request_id", "r1")
	first := s.must("POST", "/v1/turn", body)["turn_id"]
	s.until("complete")
	s.idle()
	if again := s.must("POST", "/v1/turn", body)["turn_id"]; again != first {
		t.Errorf("the same request got %v, then %v", first, again)
	}
	if status, _ := s.ask("POST", "/v1/turn", jsonOf("prompt", "say two", "request_id", "r1")); status != 409 {
		t.Errorf("another prompt with the id = %d", status)
	}
	if status, _ := s.ask("POST", "/v1/turn", jsonOf("prompt", "say two", "request_id", "a b")); status != 400 {
		t.Errorf("a bad id = %d", status)
	}
	if n := len(s.host.prompts); n != 1 {
		t.Errorf("%d prompts ran", n)
	}
	made := s.must("POST", "/v1/session/new", jsonOf("request_id", "r1"))["id"]
	if again := s.must("POST", "/v1/session/new", jsonOf("request_id", "r1"))["id"]; again != made {
		t.Errorf("the same request made %v, then %v", made, again)
	}
}

// A refused request is not remembered: the same id may succeed later.
func TestRequestIDOfARefusal(t *testing.T) {
	s := newStation(t)
	s.turn("wait")
	s.blocked()
	body := jsonOf("prompt", "say late", "request_id", "r1")
	if status, _ := s.ask("POST", "/v1/turn", body); status != 409 {
		t.Fatalf("during a turn = %d", status)
	}
	close(s.host.release)
	s.idle()
	s.must("POST", "/v1/turn", body)
	if got := short(s.until("complete")); got != "assistant: late\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

func TestOneRequestManyTimesAtOnce(t *testing.T) {
	s := newStation(t)
	var mu sync.Mutex
	ids := map[any]int{}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			id := s.must("POST", "/v1/turn", jsonOf("prompt", "say one", "request_id", "r1"))["turn_id"]
			mu.Lock()
			defer mu.Unlock()
			ids[id]++
		})
	}
	wg.Wait()
	s.idle()
	if len(ids) != 1 || len(s.host.prompts) != 1 {
		t.Errorf("turns %v, %d prompts", ids, len(s.host.prompts))
	}
}

func TestOpenDocumentsAreANote(t *testing.T) {
	s := newStation(t)
	s.must("POST", "/v1/turn", jsonOf("prompt", "say x", "open_documents", "main.go\nb.go"))
	s.until("complete")
	in := s.host.prompts[0]
	if len(in.Before) != 1 || in.Before[0].Kind != event.Note || !strings.HasSuffix(in.Before[0].Text, "main.go\nb.go") {
		t.Errorf("before the input: %+v", in.Before)
	}
}

func TestCancel(t *testing.T) {
	s := newStation(t)
	if status, _ := s.ask("POST", "/v1/cancel", "{}"); status != 409 {
		t.Errorf("cancel without a turn = %d", status)
	}
	for _, prompt := range []string{"wait", "/wait"} {
		id := s.turn(prompt)
		s.blocked()
		for _, c := range []struct {
			body   string
			status int
		}{
			{jsonOf("session_id", "1_1"), 400},
			{jsonOf("turn_id", id), 400},
			{jsonOf("continue_queued", true), 400},
			{jsonOf("session_id", "1_1", "turn_id", "5_5"), 409},
			{jsonOf("session_id", "1_9", "turn_id", id), 409},
			{jsonOf("session_id", "1_1", "turn_id", id), 200},
		} {
			if status, text := s.ask("POST", "/v1/cancel", c.body); status != c.status {
				t.Errorf("cancel %s = %d %s; want %d", c.body, status, text, c.status)
			}
		}
		if got := short(s.until("complete")); got != "exit 130" {
			t.Errorf("%s: events:\n%s", prompt, got)
		}
		s.idle()
	}
	s.turn("wait")
	s.blocked()
	s.must("POST", "/v1/cancel", "{}")
	if got := short(s.until("complete")); got != "exit 130" {
		t.Errorf("events:\n%s", got)
	}
}

func TestCancelAndGoOn(t *testing.T) {
	s := newStation(t)
	id := s.turn("wait")
	s.blocked()
	s.must("POST", "/v1/input", jsonOf("session_id", "1_1", "turn_id", id, "message_id", "m1", "text", "say next", "mode", "follow_up"))
	got := s.must("POST", "/v1/cancel", jsonOf("session_id", "1_1", "turn_id", id, "continue_queued", true))
	if got["continued"] != true {
		t.Errorf("reply = %v", got)
	}
	if got := short(s.until("complete")); got != "user: say next\nassistant: next\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

func TestInput(t *testing.T) {
	s := newStation(t)
	id := s.turn("wait")
	s.blocked()
	send := func(pairs ...any) (int, string) {
		return s.ask("POST", "/v1/input", jsonOf(append([]any{"session_id", "1_1", "turn_id", id}, pairs...)...))
	}
	for _, c := range []struct {
		name   string
		pairs  []any
		status int
		want   string
	}{
		{"steer", []any{"message_id", "m1", "text", "say steered"}, 200, `{"message_id":"m1","state":"accepted"}`},
		{"the same again", []any{"message_id", "m1", "text", "say steered", "mode", "steer"}, 200, `{"message_id":"m1","state":"accepted"}`},
		{"other content", []any{"message_id", "m1", "text", "say other"}, 409, ""},
		{"other mode", []any{"message_id", "m1", "text", "say steered", "mode", "follow_up"}, 409, ""},
		{"a command", []any{"message_id", "m2", "text", "ls", "mode", "command"}, 400, ""},
		{"no text", []any{"message_id", "m2", "text", ""}, 400, ""},
		{"too much text", []any{"message_id", "m2", "text", strings.Repeat("x", 65537)}, 400, ""},
		{"as much as there may be", []any{"message_id", "m3", "text", strings.Repeat("x", 65536), "mode", "follow_up"}, 200, ""},
		{"a bad id", []any{"message_id", "m 2", "text", "x"}, 400, ""},
		{"a long id", []any{"message_id", strings.Repeat("m", 65), "text", "x"}, 400, ""},
		{"no id", []any{"text", "x"}, 400, ""},
		{"another session", []any{"message_id", "m2", "text", "x", "session_id", "9_9"}, 404, ""},
		{"another turn", []any{"message_id", "m2", "text", "x", "turn_id", "9_9"}, 409, ""},
	} {
		if status, text := send(c.pairs...); status != c.status || c.want != "" && text != c.want {
			t.Errorf("%s = %d %.100s; want %d %s", c.name, status, text, c.status, c.want)
		}
	}
	list := s.must("POST", "/v1/input/list", jsonOf("session_id", "1_1"))
	if list["turn_id"] != id || !strings.HasPrefix(list["pending"].(string), "m1 steer: say steered\nm3 follow_up: x") {
		t.Errorf("list = %.200v", list)
	}
	if got := s.must("POST", "/v1/input/drop", jsonOf("session_id", "1_1", "message_id", "m3"))["state"]; got != "discarded" {
		t.Errorf("drop = %v", got)
	}
	close(s.host.release)
	if got := short(s.until("complete")); got != "assistant: done\nuser: say steered\nassistant: steered\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
	for path, want := range map[string]string{"status": "consumed", "drop": "consumed"} {
		if got := s.must("POST", "/v1/input/"+path, jsonOf("session_id", "1_1", "message_id", "m1"))["state"]; got != want {
			t.Errorf("%s of what was taken = %v", path, got)
		}
	}
	if status, _ := s.ask("POST", "/v1/input/status", jsonOf("session_id", "1_1", "message_id", "m9")); status != 404 {
		t.Errorf("status of an unknown message = %d", status)
	}
	if status, text := send("message_id", "m1", "text", "say steered"); status != 200 || !strings.Contains(text, "consumed") {
		t.Errorf("the same after the turn = %d %s", status, text)
	}
	s.idle()
	if status, _ := send("message_id", "m4", "text", "late"); status != 409 {
		t.Errorf("input after the turn = %d", status)
	}
}

// A turn that does not look at its queue again takes no input.
func TestInputAtTheEndOfATurn(t *testing.T) {
	s := newStation(t)
	id := s.turn("wait")
	s.blocked()
	s.server.mu.Lock()
	s.server.turn.sealed = true
	s.server.mu.Unlock()
	if status, _ := s.ask("POST", "/v1/input", jsonOf("session_id", "1_1", "turn_id", id, "message_id", "m1", "text", "say late")); status != 409 {
		t.Errorf("= %d", status)
	}
	close(s.host.release)
	s.until("complete")
}

// Input that a slash command's turn took has nobody else to start it.
func TestInputDuringASlashCommand(t *testing.T) {
	s := newStation(t)
	id := s.turn("/wait")
	s.blocked()
	s.must("POST", "/v1/input", jsonOf("session_id", "1_1", "turn_id", id, "message_id", "m1", "text", "say later"))
	close(s.host.release)
	if got := short(s.until("complete")); got != "user: say later\nassistant: later\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

func TestSlashCommandsBesideATurn(t *testing.T) {
	s := newStation(t)
	s.turn("wait")
	s.blocked()
	if got := s.must("POST", "/v1/turn", jsonOf("prompt", "/print beside"))["turn_id"]; got != "" {
		t.Errorf("turn id = %q", got)
	}
	s.must("POST", "/v1/turn", jsonOf("prompt", "/fail badly"))
	if status, _ := s.ask("POST", "/v1/turn", jsonOf("prompt", "/new")); status != 409 {
		t.Errorf("a command that may not = %d", status)
	}
	close(s.host.release)
	if got := short(s.until("complete")); got != "system: beside\nsystem: badly\ndo better\nassistant: done\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
}

func TestModelIsLoadedOnceForATurn(t *testing.T) {
	s := newStation(t)
	s.server.limits.patience = time.Millisecond
	s.host.model, s.host.loaded = Model{Status: Warming}, make(chan Model)
	got := s.must("POST", "/v1/turn", jsonOf("prompt", "say hello"))
	if got["model_status"] != "warming" {
		t.Errorf("reply = %v", got)
	}
	if status, _ := s.ask("POST", "/v1/turn", jsonOf("prompt", "say other")); status != 409 {
		t.Errorf("a second turn = %d", status)
	}
	for _, r := range [][]string{{"GET", "/v1/model", ""}, {"POST", "/v1/model/ensure", "{}"}} {
		if got := s.must(r[0], r[1], r[2]); got["model_status"] != "warming" {
			t.Errorf("%s = %v", r[1], got)
		}
	}
	if n := len(s.host.prompts); n != 0 {
		t.Errorf("%d prompts ran before the model was there", n)
	}
	s.host.loaded <- Model{Status: Ready}
	if got := short(s.until("complete")); got != "assistant: hello\nexit 0" {
		t.Errorf("events:\n%s", got)
	}
	if s.host.ensured != 1 || len(s.host.prompts) != 1 {
		t.Errorf("loaded %d times, ran %d times", s.host.ensured, len(s.host.prompts))
	}
}

func TestModelThatCannotBeLoaded(t *testing.T) {
	s := newStation(t)
	s.host.model, s.host.loaded = Model{Status: Warming}, make(chan Model)
	s.turn("say hello")
	s.host.loaded <- Model{Status: Failed, Error: "out of memory"}
	if got := short(s.until("complete")); got != "error: the model could not be loaded: out of memory\nexit 1" {
		t.Errorf("events:\n%s", got)
	}
	if n := len(s.host.prompts); n != 0 {
		t.Errorf("%d prompts ran", n)
	}
}

func TestCancelWhileTheModelIsLoaded(t *testing.T) {
	s := newStation(t)
	s.host.model, s.host.loaded = Model{Status: Warming}, make(chan Model)
	s.turn("say hello")
	s.must("POST", "/v1/cancel", "{}")
	if got := short(s.until("complete")); got != "exit 130" {
		t.Errorf("events:\n%s", got)
	}
	if n := len(s.host.prompts); n != 0 {
		t.Errorf("%d prompts ran", n)
	}
}

func TestEnsure(t *testing.T) {
	m := &manual{}
	s := newStation(t, func(c *Config) { c.AfterFunc = m.after })
	s.host.model, s.host.loaded = Model{Status: Warming}, make(chan Model)
	if got := s.must("GET", "/v1/model", ""); got["model_status"] != "warming" || s.host.ensured != 0 {
		t.Errorf("model = %v, loaded %d times", got, s.host.ensured)
	}
	reply := make(chan map[string]any)
	go func() { reply <- s.must("POST", "/v1/model/ensure", "{}") }()
	var got map[string]any
	for got == nil {
		select {
		case got = <-reply:
		case <-time.After(time.Millisecond):
			m.fire(3 * time.Second)
		}
	}
	if got["model_status"] != "warming" {
		t.Errorf("ensure = %v", got)
	}
	s.host.loaded <- Model{Status: Failed, Error: "no such model"}
	for start := time.Now(); s.must("GET", "/v1/model", "")["model_status"] != "error" && time.Since(start) < limit; {
		time.Sleep(time.Millisecond)
	}
	s.host.mu.Lock()
	s.host.loaded = nil
	s.host.mu.Unlock()
	if got := s.must("POST", "/v1/model/ensure", "{}"); got["model_status"] != "error" || got["model_error"] != "no such model" {
		t.Errorf("ensure = %v", got)
	}
}
