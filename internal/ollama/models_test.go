package ollama

import (
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"zcoder/internal/chat"
)

func TestModels(t *testing.T) {
	c, _ := play(t, "> model qwen3-coder:30b family=qwen3moe size=18556700000 params=30.5B quant=Q4_K_M\n> model other\n", Options{})
	models, err := c.Models(t.Context())
	want := chat.ModelInfo{Name: "qwen3-coder:30b", Size: 18556700000, Family: "qwen3moe", Parameters: "30.5B", Quantisation: "Q4_K_M",
		Modified: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)}
	if err != nil || len(models) != 2 || models[0] != want || models[1].Name != "other:latest" {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestNoModels(t *testing.T) {
	c, _ := play(t, "> no-models\n", Options{})
	if models, err := c.Models(t.Context()); err != nil || len(models) != 0 {
		t.Errorf("%+v, %v", models, err)
	}
}

func TestShow(t *testing.T) {
	c, _ := play(t, "> model a thinking vision ctx=262144 num_ctx=8192 family=qwen3 renderer=qwen3-coder parser=qwen3-coder\n> model b notools\n> model c thinking family=gptoss\n", Options{})
	show := func(name string) chat.ModelFacts {
		f, err := c.Show(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		f.Template = ""
		return f
	}
	want := chat.ModelFacts{Known: true, Tools: true, Thinking: true, Vision: true, ShowsThinking: true, TrainedContext: 262144, NumCtx: 8192,
		CacheBytesPerToken: 32 * 8 * 128 * 4, Family: "qwen3", Parameters: "7B", Quantisation: "Q4_K_M", Renderer: "qwen3-coder", Parser: "qwen3-coder"}
	if got := show("a"); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := show("b"); got.Tools || got.Thinking || got.TrainedContext != 32768 || got.NumCtx != 0 {
		t.Errorf("%+v", got)
	}
	if got := show("c:latest"); !got.ThinkLevels {
		t.Errorf("%+v", got)
	}
	_, err := c.Show(t.Context(), "nope:7b")
	if e := failure(t, err, chat.MissingModel, "model 'nope:7b' not found"); !strings.Contains(e.Hint, "ollama pull nope:7b") {
		t.Errorf("hint %q", e.Hint)
	}
}

// Servers of another age or make leave things out.
func TestShowOfOtherServers(t *testing.T) {
	tests := []struct {
		name, body string
		want       chat.ModelFacts
	}{
		{"without capabilities", `{"template":"{{ .Tools }}{{ .Thinking }}","details":{"family":"llama"}}`,
			chat.ModelFacts{Tools: true, Thinking: true, ShowsThinking: true, Family: "llama", Template: "{{ .Tools }}{{ .Thinking }}"}},
		{"nothing", `{}`, chat.ModelFacts{}},
		{"heads by layer", `{"capabilities":[],"model_info":{"general.architecture":"x","x.block_count":3,"x.attention.head_count_kv":[0,2,4],"x.attention.key_length":64,"x.context_length":1000}}`,
			chat.ModelFacts{Known: true, TrainedContext: 1000, CacheBytesPerToken: 6 * 64 * 4}},
		{"strange values", `{"model_info":{"general.architecture":7,".context_length":"x"},"parameters":"num_ctx  many\nstop  \"num_ctx 5\""}`, chat.ModelFacts{}},
		{"hosted", `{"capabilities":["tools"],"remote_host":"https://models.example"}`, chat.ModelFacts{Known: true, Tools: true, Remote: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, body("application/json", tt.body), Options{})
			if got, err := c.Show(t.Context(), "m"); err != nil || got != tt.want {
				t.Errorf("got %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
}

func TestLoadShowAndUnload(t *testing.T) {
	c, server := play(t, "> model m ctx=16384\n", Options{})
	loaded := func() []chat.LoadedModel {
		list, err := c.Loaded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if got := loaded(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if err := c.Load(t.Context(), "m", "10m", 65536); err != nil {
		t.Fatal(err)
	}
	got := loaded()
	if len(got) != 1 || got[0].Name != "m:latest" || got[0].Context != 16384 || got[0].Size == 0 || got[0].Expires.Before(time.Now()) {
		t.Errorf("%+v", got)
	}
	if err := c.Unload(t.Context(), "m"); err != nil || len(loaded()) != 0 {
		t.Errorf("%v, %+v", err, loaded())
	}
	var bodies []string
	for _, r := range server.Requests() {
		if r.Path == "/api/chat" {
			bodies = append(bodies, string(r.Body))
		}
	}
	want := []string{`{"model":"m","keep_alive":"10m","options":{"num_ctx":65536},"messages":[]}`, `{"model":"m","messages":[],"keep_alive":0}`}
	if !reflect.DeepEqual(bodies, want) {
		t.Errorf("got %q", bodies)
	}
	failure(t, c.Load(t.Context(), "nope", "", 0), chat.MissingModel, "not found")
}

func TestVersion(t *testing.T) {
	c, _ := play(t, "> version 0.0.0\n", Options{})
	if v, err := c.Version(t.Context()); err != nil || v != "0.0.0" {
		t.Errorf("%q, %v", v, err)
	}
	for name, answer := range map[string]string{"page": "<html>", "text": "hello", "other object": `{"a":1}`, "list": `[]`, "nothing": ""} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, body("text/plain", answer), Options{})
			_, err := c.Version(t.Context())
			failure(t, err, chat.BadResponse, "")
		})
	}
}

// Facts are short questions: they have a limit of their own; loading has none.
func TestQuestionsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, stop := pipe(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}), Options{Retries: 2})
		start := time.Now()
		_, err := c.Models(t.Context())
		failure(t, err, chat.IdleTimeout, "no answer began")
		if took := time.Since(start); took != 30*time.Second {
			t.Errorf("took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
		defer cancel()
		if err := c.Load(ctx, "m", "", 0); err != context.DeadlineExceeded {
			t.Errorf("load: %v", err)
		}
		stop()
	})
}

func TestPull(t *testing.T) {
	c, _ := play(t, "> pullable new:7b size=1000\n", Options{})
	var got []chat.PullProgress
	if err := c.Pull(t.Context(), "new:7b", func(p chat.PullProgress) { got = append(got, p) }); err != nil {
		t.Fatal(err)
	}
	first, last := got[0], got[len(got)-1]
	if first != (chat.PullProgress{Status: "pulling manifest"}) || last != (chat.PullProgress{Status: "success", Completed: 1000, Total: 1000}) {
		t.Errorf("%+v … %+v", first, last)
	}
	if _, err := c.Show(t.Context(), "new:7b"); err != nil {
		t.Error(err)
	}
	err := c.Pull(t.Context(), "nowhere", nil)
	if e := failure(t, err, chat.MissingModel, "pull model manifest: file does not exist"); !strings.Contains(e.Hint, "check the name") {
		t.Errorf("hint %q", e.Hint)
	}
}

// The server keeps what it has: a broken download goes on, unless nothing moves.
func TestPullResumes(t *testing.T) {
	const (
		manifest = `{"status":"pulling manifest"}` + "\n"
		half     = `{"status":"pulling a","digest":"a","total":100,"completed":50}` + "\n"
		whole    = `{"status":"pulling a","digest":"a","total":100,"completed":100}` + "\n" + `{"status":"pulling b","digest":"b","total":10}` + "\n"
		success  = `{"status":"success"}` + "\n"
	)
	tests := []struct {
		name    string
		answers []string
		kind    chat.Failure
		text    string
		asked   int32
	}{
		{"in one go", []string{manifest + half + whole + success}, "", "", 1},
		{"goes on twice", []string{manifest + half, manifest + whole, manifest + whole + success}, "", "", 3},
		{"goes on", []string{manifest + half, manifest + whole + success}, "", "", 2},
		{"nothing moves", []string{manifest, manifest}, chat.BrokenStream, "ended early", 1},
		{"error in mid-stream", []string{half + `{"error":"max retries exceeded: connection reset"}`}, chat.ServerFailure, "max retries exceeded", 1},
		{"no record", []string{"<html>"}, chat.BadResponse, "no record: <html>", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var asked atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body(ndjson, tt.answers[asked.Add(1)-1])(w, r)
			}, Options{})
			var last chat.PullProgress
			err := c.Pull(t.Context(), "m", func(p chat.PullProgress) { last = p })
			if tt.kind != "" {
				failure(t, err, tt.kind, tt.text)
			} else if err != nil || last != (chat.PullProgress{Status: "success", Completed: 100, Total: 110}) {
				t.Errorf("%v, %+v", err, last)
			}
			if asked.Load() != tt.asked {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}
