package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zcoder/internal/chat"
)

// server is one that answers from fields.
type server struct {
	models  []chat.ModelInfo
	facts   chat.ModelFacts
	missing bool
	err     error
}

func (s server) Models(context.Context) ([]chat.ModelInfo, error) { return s.models, s.err }
func (s server) BaseURL() string                                  { return "http://h:1" }
func (s server) Show(context.Context, string) (chat.ModelFacts, error) {
	if s.missing {
		return chat.ModelFacts{}, &chat.Error{Kind: chat.MissingModel, Text: "model 'm' not found", Hint: "pull it"}
	}
	return s.facts, s.err
}

// ollama is a server with what only an Ollama tells.
type ollama struct {
	server
	loaded []chat.LoadedModel
}

func (o ollama) Version(context.Context) (string, error)            { return "0.17.4", o.err }
func (o ollama) Loaded(context.Context) ([]chat.LoadedModel, error) { return o.loaded, nil }

// foreign is an Ollama behind another API.
type foreign struct{ server }

func (foreign) IsOllama(context.Context) bool { return true }

var able = chat.ModelFacts{Known: true, Tools: true, TrainedContext: 32768, Family: "qwen3"}

// well is a subject without a fault.
func well(t *testing.T) Subject {
	home := filepath.Join(t.TempDir(), "zcoder")
	for _, dir := range []string{home, filepath.Join(home, "audit")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return Subject{
		Server: ollama{server: server{models: []chat.ModelInfo{{Name: "m:latest", Size: 4_700_000_000}}, facts: able}}, Model: "m",
		Size: func(f chat.ModelFacts, loaded int) Window {
			return Window{Tokens: max(loaded, 16384), Source: "the default"}
		},
		Path: os.Getenv("PATH"), Shell: []string{"/bin/sh", "-c"}, Bwrap: filepath.Join(home, "none"),
		Terminal: Terminal{Is: true, Term: "xterm", Cols: 80, Rows: 24, UTF8: true},
		Home:     home, Private: []string{filepath.Join(home, "audit"), filepath.Join(home, "later")}, Settings: filepath.Join(home, "config.toml"),
		Policies: func() error { return nil }, Workspace: home,
		Audit: func() (int64, string, error) { return 12, "", nil },
	}
}

func TestExamine(t *testing.T) {
	write := func(t *testing.T, s *Subject, mode fs.FileMode) {
		if err := os.WriteFile(s.Settings, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(s.Settings, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name         string
		change       func(t *testing.T, s *Subject)
		check        string
		state        State
		text, remedy string // parts
	}{
		{"server", nil, "server", OK, "Ollama 0.17.4 at http://h:1, with 1 model", ""},
		{"no server", func(t *testing.T, s *Subject) {
			s.Server = ollama{server: server{err: &chat.Error{Text: "refused", Hint: "start it"}}}
		}, "server", Fail, "refused", "start it"},
		{"no server: the rest is not checked", func(t *testing.T, s *Subject) { s.Server = server{err: errors.New("x")} }, "window", Warn, "not checked", ""},
		{"other API", func(t *testing.T, s *Subject) { s.Server = server{facts: able} }, "server", OK, "chat-completions API at http://h:1, with 0 models", ""},
		{"Ollama behind it", func(t *testing.T, s *Subject) { s.Server = foreign{server{facts: able}} }, "server", Warn, "", "--provider ollama"},
		{"model", nil, "model", OK, "m · 4.7 GB · qwen3", ""},
		{"missing model", func(t *testing.T, s *Subject) { s.Server = server{missing: true} }, "model", Fail, "not found", "pull it"},
		{"missing model: tools are not checked", func(t *testing.T, s *Subject) { s.Server = server{missing: true} }, "tools", Warn, "not checked", ""},
		{"on the card", func(t *testing.T, s *Subject) {
			s.Server = ollama{server{facts: able}, []chat.LoadedModel{{Name: "m:latest", Size: 100, SizeVRAM: 100}}}
		}, "model", OK, "all of it on the graphics card", ""},
		{"half on the card", func(t *testing.T, s *Subject) {
			s.Server = ollama{server{facts: able}, []chat.LoadedModel{{Name: "m:latest", Size: 100, SizeVRAM: 62}}}
		}, "model", Warn, "62 % of it", "smaller"},
		{"tools", nil, "tools", OK, "calls tools", ""},
		{"no tools", func(t *testing.T, s *Subject) { s.Server = server{} }, "tools", Fail, "cannot call tools", "--model"},
		{"tools untold", func(t *testing.T, s *Subject) { s.Server = server{facts: chat.ModelFacts{Tools: true, Untold: true}} }, "tools", OK, "assumed", ""},
		{"window", nil, "window", OK, "16384 tokens, the default · trained for 32768", ""},
		{"window as loaded", func(t *testing.T, s *Subject) {
			s.Server = ollama{server{facts: able}, []chat.LoadedModel{{Name: "m:latest", Context: 32768}}}
		}, "window", OK, "32768 tokens, the default · loaded with 32768 · trained for 32768", ""},
		{"small window", func(t *testing.T, s *Subject) {
			s.Size = func(chat.ModelFacts, int) Window { return Window{Tokens: 4096, Source: "as you set it"} }
		}, "window", Warn, "4096", "--context-window"},
		{"window with a notice", func(t *testing.T, s *Subject) {
			s.Size = func(chat.ModelFacts, int) Window { return Window{Tokens: 16384, Notice: "loads again"} }
		}, "window", Warn, "", "loads again"},
		{"shell", nil, "shell", OK, "/bin/sh -c", ""},
		{"no shell", func(t *testing.T, s *Subject) { s.Shell = []string{"/nowhere/sh", "-c"} }, "shell", Fail, "/nowhere/sh", "install"},
		{"shell that does nothing", func(t *testing.T, s *Subject) { s.Shell = []string{"/bin/true", "-c"} }, "shell", Fail, "does not run", "install"},
		{"no git", func(t *testing.T, s *Subject) { s.Path = "bin:/nowhere" }, "git", Warn, "no git", "install git"},
		{"no sandbox", nil, "sandbox", OK, "not installed", ""},
		{"sandbox that does not work", func(t *testing.T, s *Subject) { s.Bwrap = "/bin/false" }, "sandbox", OK, "does not work here", ""},
		{"terminal", nil, "terminal", OK, "xterm, 80×24, UTF-8", ""},
		{"no terminal", func(t *testing.T, s *Subject) { s.Terminal.Is = false }, "terminal", OK, "not checked", ""},
		{"dumb", func(t *testing.T, s *Subject) { s.Terminal.Term = "dumb" }, "terminal", Warn, "plain lines", "TERM"},
		{"small", func(t *testing.T, s *Subject) { s.Terminal.Cols = 30 }, "terminal", Warn, "small", "60×10"},
		{"no UTF-8", func(t *testing.T, s *Subject) { s.Terminal.UTF8 = false }, "terminal", Warn, "not UTF-8", "LANG"},
		{"no settings", nil, "settings", OK, "defaults apply", ""},
		{"settings", func(t *testing.T, s *Subject) { write(t, s, 0o644) }, "settings", OK, "config.toml", ""},
		{"settings that others can change", func(t *testing.T, s *Subject) { write(t, s, 0o666) }, "settings", Fail, "mode 0666", "chmod 600"},
		{"key that others can read", func(t *testing.T, s *Subject) { write(t, s, 0o644); s.HoldsKey = true }, "settings", Warn, "holds a key", "chmod 600"},
		{"broken policy", func(t *testing.T, s *Subject) { s.Policies = func() error { return errors.New("policy.toml:3: x") } }, "settings", Fail, "policy.toml:3", "correct"},
		{"directories", nil, "directories", OK, "private", ""},
		{"open directory", func(t *testing.T, s *Subject) { os.Chmod(s.Private[0], 0o755) }, "directories", Fail, "audit is open to others (mode 0755)", "chmod 700"},
		{"a file in the way", func(t *testing.T, s *Subject) { os.WriteFile(s.Private[1], nil, 0o600) }, "directories", Fail, "not a directory", "move"},
		{"first start", func(t *testing.T, s *Subject) {
			s.Home, s.Private = filepath.Join(s.Home, "a", "b"), nil
		}, "directories", OK, "made at the first start", ""},
		{"disk", nil, "disk", OK, "free at", ""},
		{"audit", nil, "audit", OK, "12 records, the chain is whole", ""},
		{"no audit", func(t *testing.T, s *Subject) {
			s.Audit = func() (int64, string, error) { return 0, "", fs.ErrNotExist }
		}, "audit", OK, "nothing was recorded", ""},
		{"broken audit", func(t *testing.T, s *Subject) {
			s.Audit = func() (int64, string, error) { return 3, "a record is missing", nil }
		}, "audit", Fail, "a record is missing", "zcoder audit verify"},
		{"unreadable audit", func(t *testing.T, s *Subject) {
			s.Audit = func() (int64, string, error) { return 0, "", errors.New("not ours") }
		}, "audit", Fail, "not ours", "move it away"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := well(t)
			if tt.change != nil {
				tt.change(t, &s)
			}
			checks := Examine(t.Context(), s)
			if len(checks) != 12 || Failed(checks) != (tt.state == Fail) && tt.check != "window" && tt.check != "tools" {
				t.Errorf("%d checks, failed %t", len(checks), Failed(checks))
			}
			for _, c := range checks {
				if c.State != OK && c.Remedy == "" && !strings.HasPrefix(c.Text, "not checked") {
					t.Errorf("%s has no remedy", c.Name)
				}
				if c.Name != tt.check {
					continue
				}
				if c.State != tt.state || !strings.Contains(c.Text, tt.text) || !strings.Contains(c.Remedy, tt.remedy) {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

func TestPrint(t *testing.T) {
	checks := []Check{{"a", OK, "fine\x1b[31m", ""}, {"b", Warn, "so so", "do this"}, {"c", Fail, "bad", "do that"}}
	var b strings.Builder
	if err := Print(&b, checks); err != nil {
		t.Fatal(err)
	}
	want := "ok    a           fine\\x1b[31m\nwarn  b           so so\n      hint: do this\nfail  c           bad\n      hint: do that\n\n1 of 3 checks failed\n"
	if b.String() != want {
		t.Errorf("got %q", b.String())
	}
	b.Reset()
	if err := PrintJSON(&b, checks); err != nil {
		t.Fatal(err)
	}
	var back []Check
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || len(back) != 3 || back[2] != checks[2] {
		t.Errorf("%+v, %v", back, err)
	}
}
