package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"zcoder/internal/event"
)

func complete(answer string, commands ...event.Ran) Outcome {
	return Outcome{End: event.End{Reason: event.Complete, Commands: commands}, Answer: answer}
}

func ended(command string, status int) event.Ran { return event.Ran{Summary: command, Exit: &status} }

func TestTheScenarios(t *testing.T) {
	all, err := Scenarios()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
		if len(s.Name) > 9 || s.Rounds < 3 || len(s.files) == 0 || len(s.answers) == 0 && s.match == nil && s.exact == "" && len(s.want) == 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
		for _, c := range s.Allow { // nothing that runs what is in a workspace
			if word, _, _ := strings.Cut(c, " "); word != "grep" && word != "diff" {
				t.Errorf("%s allows %q", s.Name, c)
			}
		}
		// Doing nothing passes no scenario that asks for something.
		dir := t.TempDir()
		if err := s.unpack(dir); err != nil {
			t.Fatal(err)
		}
		if why, err := s.judge(dir, complete("Sure.")); err != nil || why == "" && s.Name != "chat" {
			t.Errorf("%s passes when nothing is done: %v", s.Name, err)
		}
	}
	if want := []string{"read", "search", "create", "edit", "recover", "follow", "none", "chat", "skill", "long"}; !reflect.DeepEqual(names, want) {
		t.Errorf("got %q", names)
	}
	some, err := Scenarios("chat", "read")
	if err != nil || len(some) != 2 || some[0].Name != "read" {
		t.Errorf("%+v, %v", some, err)
	}
	if _, err := Scenarios("read", "write"); err == nil || !strings.Contains(err.Error(), `no scenario "write", only read, search,`) {
		t.Errorf("got %v", err)
	}
}

func TestParse(t *testing.T) {
	s, err := parse("x", "about: a\nprompt: do it\nallow: diff a b\nallow: grep\nrounds: 4\nfill: long.txt 3\nanswer: one\nran: diff = 1\n-- long.txt --\nmiddle\n-- d/e.txt --\ne\n\n-- want/e.txt --\nf")
	if err != nil {
		t.Fatal(err)
	}
	long := "line 1: the meeting of day 7 went on as planned, and nothing was decided.\nmiddle\nline 2: the meeting of day 14 went on as planned, and nothing was decided.\nline 3: the meeting of day 21 went on as planned, and nothing was decided.\n"
	if s.files["long.txt"] != long || s.files["d/e.txt"] != "e\n" || s.want["e.txt"] != "f\n" || s.Rounds != 4 || !reflect.DeepEqual(s.Allow, []string{"diff a b", "grep"}) || s.ran[0] != (ran{"diff", 1}) {
		t.Errorf("%+v", s)
	}
	for _, text := range []string{"prompt: x", "about: a\nprompt: b\nanswr: c", "about: a\nprompt: b\nrounds: many", "about: a\nprompt: b\nanswer-match: (", "about: a\nprompt: b\nran: x", "about: a\nprompt: b\nfill: f"} {
		if _, err := parse("x", text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

func TestJudge(t *testing.T) {
	const text = "about: a\nprompt: b\n%\n-- a.txt --\none\n-- b.txt --\ntwo\n-- want/b.txt --\nthree\n"
	for _, tt := range []struct {
		name, rules string
		change      func(dir string) error
		out         Outcome
		want        string // part of the reason; "" passes
	}{
		{"as asked for", "answer: Done", nil, complete("It is done."), ""},
		{"line ends at the end do not count", "", func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.txt"), []byte("three"), 0o600) }, complete("ok"), ""},
		{"not edited", "", func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.txt"), []byte("two\n"), 0o600) }, complete("ok"), "b.txt is not as asked for"},
		{"another changed", "", func(dir string) error { return os.WriteFile(filepath.Join(dir, "a.txt"), []byte("1"), 0o600) }, complete("ok"), "a.txt was changed"},
		{"removed", "", func(dir string) error { return os.Remove(filepath.Join(dir, "a.txt")) }, complete("ok"), "a.txt is not there"},
		{"one too many", "", func(dir string) error { return os.WriteFile(filepath.Join(dir, "c.txt"), nil, 0o600) }, complete("ok"), "c.txt was made"},
		{"a link instead", "", func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a.txt")), os.Symlink("/etc/hostname", filepath.Join(dir, "a.txt")))
		}, complete("ok"), "a.txt was changed"},
		{"answer lacks a word", "answer: port\nanswer: 7", nil, complete("the port"), `lacks "7"`},
		{"answer that does not match", "answer-match: a.*b", nil, complete("b a"), "not one that was asked for"},
		{"only the word", "answer-is: READY", nil, complete("ready.\n"), ""},
		{"more than the word", "answer-is: READY", nil, complete("I am READY"), `not "READY" alone`},
		{"no answer", "", nil, complete(" \n"), "no answer"},
		{"command ran", "ran: diff a = 1", nil, complete("ok", ended("diff a", 1)), ""},
		{"command did not run", "ran: diff a = 1", nil, complete("ok", ended("ls", 1)), "diff a did not run"},
		{"other status", "ran: diff a = 0", nil, complete("ok", ended("diff a", 1)), "did not end with status 0"},
		{"stopped", "ran: diff a = 0", nil, complete("ok", event.Ran{Summary: "diff a"}), "did not end with status 0"},
		{"turn failed", "", nil, Outcome{End: event.End{Reason: event.Errored, Text: "no server"}, Answer: "ok"}, "the turn ended with error: no server"},
		{"turn stopped", "", nil, Outcome{End: event.End{Reason: event.Cancelled}}, "the turn ended with cancelled"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parse("x", strings.Replace(text, "%", tt.rules, 1))
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			s.files["b.txt"] = "three\n" // as the model left it
			if err := s.unpack(dir); err != nil {
				t.Fatal(err)
			}
			s.files["b.txt"] = "two\n"
			if tt.change != nil {
				if err := tt.change(dir); err != nil {
					t.Fatal(err)
				}
			}
			why, err := s.judge(dir, tt.out)
			if err != nil || !strings.Contains(why, tt.want) || tt.want == "" && why != "" {
				t.Errorf("got %q, %v", why, err)
			}
		})
	}
}

func TestRun(t *testing.T) {
	scenarios, err := Scenarios("read", "create")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, 0)
	var dirs []string
	o := Options{
		Models: []string{"good", "bad"}, Scenarios: scenarios, Limit: time.Minute, Temp: t.TempDir(),
		Now: func() time.Time { now = now.Add(time.Second); return now },
		Ask: func(_ context.Context, j Job) (Outcome, error) {
			if j.Limit != time.Minute || j.Rounds != 12 {
				t.Errorf("%+v", j)
			}
			dirs = append(dirs, j.Dir)
			for _, dir := range []string{j.Dir, j.Home} {
				if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
					t.Errorf("%s: %v, %v", dir, info, err)
				}
			}
			if strings.HasPrefix(j.Prompt, "create") {
				return complete("Done"), os.WriteFile(filepath.Join(j.Dir, "greeting.txt"), []byte("good morning"), 0o600)
			}
			out := complete("The colour is vermilion.")
			if j.Model == "bad" {
				out.Answer = "red"
			}
			out.End.Rounds, out.End.PromptTokens, out.End.OutputTokens, out.End.FreshTokens = 2, 100, 20, 110
			return out, nil
		},
	}
	var text, lines strings.Builder
	table := NewTable(&text, o.Models)
	o.Report = func(r Result) error { return errors.Join(table.Row(r), JSON(&lines, r)) }
	results, err := Run(t.Context(), o)
	if err != nil || len(results) != 4 || !Failed(results) || Failed(results[:2]) {
		t.Fatalf("%+v, %v", results, err)
	}
	if err := table.Sum(results); err != nil {
		t.Fatal(err)
	}
	want := `model  scenario  result rounds  tokens in/out      time
good   read      pass        2     100     20      1.0s
good   create    pass        0       0      0      1.0s
bad    read      FAIL        2     100     20      1.0s  the answer lacks "vermilion"
bad    create    pass        0       0      0      1.0s
good: 2 of 2 passed · 110 tokens · 2.0s
bad: 1 of 2 passed · 110 tokens · 2.0s
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	if first, _, _ := strings.Cut(lines.String(), "\n"); first != `{"model":"good","scenario":"read","pass":true,"reason":"complete","rounds":2,"prompt_tokens":100,"output_tokens":20,"fresh_tokens":110,"took_ms":1000,"answer":"The colour is vermilion."}` {
		t.Errorf("got %s", first)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Dir(dir)); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
}

func TestRunStops(t *testing.T) {
	scenarios, err := Scenarios("read", "chat")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Models: []string{"m"}, Scenarios: scenarios, Temp: t.TempDir(), Now: time.Now, Ask: func(context.Context, Job) (Outcome, error) {
		cancel()
		return Outcome{}, nil
	}}
	if results, err := Run(ctx, o); err != context.Canceled || len(results) != 0 {
		t.Errorf("%+v, %v", results, err)
	}
	o.Ask = func(context.Context, Job) (Outcome, error) { return Outcome{}, errors.New("no home") }
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), `run scenario "read" with "m": no home`) {
		t.Errorf("got %v", err)
	}
}
