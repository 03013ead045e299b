package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// run is one command line with its surroundings.
type run struct {
	args []string
	env  map[string]string
	file string // text of /h/.config/zcoder/config.toml, or "" for none
}

func (r run) sources() Sources {
	return Sources{
		Args:     r.args,
		UserHome: "/h",
		Env:      func(name string) (string, bool) { v, ok := r.env[name]; return v, ok },
		ReadFile: func(path string) ([]byte, error) {
			if r.file == "" || path != "/h/.config/zcoder/config.toml" {
				return nil, fs.ErrNotExist
			}
			return []byte(r.file), nil
		},
	}
}

func load(t *testing.T, r run) *Values {
	t.Helper()
	v, err := Load(r.sources())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return v
}

func words(s string) []string { return strings.Fields(s) }

func TestLayers(t *testing.T) {
	file := "# mine\nmodel = \"from-file\"\n\nmax_rounds = 7\n"
	env := map[string]string{"ZCODER_MODEL": "from-env"}
	const path = "/h/.config/zcoder/config.toml"
	for _, c := range []struct {
		name                string
		run                 run
		setting, want, from string
	}{
		{"default", run{}, "model", "qwen3-coder:latest", "default"},
		{"file", run{file: file}, "model", "from-file", path + ":2"},
		{"environment over file", run{file: file, env: env}, "model", "from-env", "env ZCODER_MODEL"},
		{"flag over environment", run{file: file, env: env, args: words("-m from-flag")}, "model", "from-flag", "flag --model"},
		{"last flag", run{args: words("-m a --model=b")}, "model", "b", "flag --model"},
		{"empty variable", run{file: file, env: map[string]string{"ZCODER_MODEL": ""}}, "model", "from-file", path + ":2"},
		{"own variable name", run{env: map[string]string{"OLLAMA_HOST": "h:1"}}, "host", "h:1", "env OLLAMA_HOST"},
		{"home of the user in a path", run{args: words("--workspace=~/x")}, "workspace", "/h/x", "flag --workspace"},
		{"home", run{}, "home", "/h/.config/zcoder", "default"},
		{"home below XDG", run{env: map[string]string{"XDG_CONFIG_HOME": "/x"}}, "home", "/x/zcoder", "default"},
		{"relative XDG is ignored", run{env: map[string]string{"XDG_CONFIG_HOME": "x"}}, "home", "/h/.config/zcoder", "default"},
		{"home by variable", run{env: map[string]string{"ZCODER_HOME": "~/z/"}}, "home", "/h/z", "env ZCODER_HOME"},
		{"sessions follow home", run{env: map[string]string{"ZCODER_HOME": "/z"}}, "sessions-dir", "/z/sessions", "default"},
		{"sessions by file", run{file: `sessions_dir = "~/s"`}, "sessions-dir", "/h/s", path + ":1"},
		{"think off in the file", run{file: "think = false"}, "think", "false", path + ":1"},
		{"think level", run{args: words("--think HIGH")}, "think", "high", "flag --think"},
		{"think on", run{env: map[string]string{"ZCODER_THINK": "on"}}, "think", "true", "env ZCODER_THINK"},
		{"no-think", run{args: words("--no-think")}, "think", "false", "flag --no-think"},
		{"yes", run{args: words("--yes")}, "command-policy", "allow", "flag --yes"},
		{"deny-commands over the environment", run{args: words("--deny-commands"), env: map[string]string{"ZCODER_COMMAND_POLICY": "allow"}}, "command-policy", "deny", "flag --deny-commands"},
		{"prompt that looks like a flag", run{args: []string{"-p", "--yes"}}, "prompt", "--yes", "flag --prompt"},
		{"resume with an id", run{args: words("--resume 17_ab -p go")}, "resume", "17_ab", "flag --resume"},
		{"resume without an id", run{args: words("-m x --resume")}, "resume", "", "flag --resume"},
		{"no resume", run{}, "resume", "", "default"},
		{"keep-alive number in the file", run{file: "keep_alive = -1"}, "keep-alive", "-1", path + ":1"},
		{"BOM and CRLF", run{file: "\ufeffmodel = \"m\"\r\nprofile = 'sysadmin'\r\n"}, "profile", "sysadmin", path + ":2"},
		{"quoted key", run{file: "\n\"profile\" = 'sysadmin'"}, "profile", "sysadmin", path + ":2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := load(t, c.run)
			if got := v.String(c.setting); got != c.want {
				t.Errorf("%s = %q, want %q", c.setting, got, c.want)
			}
			if got := v.Source(c.setting); got != c.from {
				t.Errorf("source of %s = %q, want %q", c.setting, got, c.from)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	v := load(t, run{
		file: "max_time = \"15m\"\nhttp_read_timeout = 60\nproject_doc_fallbacks = [\n  'A.md', # first\n  'B.md',\n]\ncontext_window = 32_768\nbell = false",
		env:  map[string]string{"ZCODER_UNLOAD_AT_EXIT": "YES", "ZCODER_LOOP_REPEAT_LIMIT": "5"},
		args: words("--no-warmup --read-only=off --debug"),
	})
	for name, want := range map[string]bool{"bell": false, "unload-at-exit": true, "warmup": false, "read-only": false, "debug": true, "json": false} {
		if got := v.Bool(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	for name, want := range map[string]int{"context-window": 32768, "loop-repeat-limit": 5, "context-fallback": 16384, "max-rounds": 0} {
		if got := v.Int(name); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]time.Duration{"max-time": 15 * time.Minute, "http-read-timeout": time.Minute, "first-byte-timeout": 0} {
		if got := v.Duration(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if got, want := v.List("project-doc-fallbacks"), []string{"A.md", "B.md"}; !slices.Equal(got, want) {
		t.Errorf("project-doc-fallbacks = %q, want %q", got, want)
	}
	v = load(t, run{env: map[string]string{"ZCODER_PROJECT_DOC_FALLBACKS": "A.md, B.md,", "ZCODER_CONTEXT_WINDOW": "auto"}})
	if got, want := v.List("project-doc-fallbacks"), []string{"A.md", "B.md"}; !slices.Equal(got, want) {
		t.Errorf("project-doc-fallbacks = %q, want %q", got, want)
	}
	if got := v.Int("context-window"); got != 0 {
		t.Errorf("context-window auto = %d, want 0", got)
	}
}

func TestErrors(t *testing.T) {
	const path = "/h/.config/zcoder/config.toml"
	env := func(name, value string) run { return run{env: map[string]string{name: value}} }
	for _, c := range []struct {
		name string
		run  run
		want string
		hint string
	}{
		{"unknown flag", run{args: words("--modle x")}, "unknown flag --modle", "did you mean --model?"},
		{"unknown short flag", run{args: words("-x")}, "unknown flag -x", "see zcoder --help"},
		{"flag without a value", run{args: words("--model")}, "flag --model needs a value", "see zcoder --help"},
		{"short flag without a value", run{args: words("-p")}, "flag -p needs a value", "see zcoder --help"},
		{"switch with a value", run{args: words("--yes=false")}, `flag --yes: "false" is not allowed: it takes no value`, ""},
		{"range, flag", run{args: words("--compact-at 95")}, `flag --compact-at: "95" is out of range: give 25 to 90 percent`, ""},
		{"range, variable", env("ZCODER_MAX_OUTPUT_TOKENS", "10"), `variable ZCODER_MAX_OUTPUT_TOKENS: "10" is out of range: give 256 to 16777216 tokens`, ""},
		{"range, file", run{file: "\ncompact_percent = 10"}, path + `:2: compact_percent: "10" is out of range: give 25 to 90 percent`, ""},
		{"negative time", run{args: words("--max-time -5s")}, `flag --max-time: "-5s" is out of range: give 0 to 604800 seconds, or a time such as 15m`, ""},
		{"no number", run{args: words("--max-rounds many")}, `flag --max-rounds: "many" is not allowed: give 0 to 1000000 rounds`, ""},
		{"huge number", run{args: words("--max-rounds 99999999999999999999")}, `flag --max-rounds: "99999999999999999999" is not allowed: give 0 to 1000000 rounds`, ""},
		{"no boolean", env("ZCODER_BELL", "maybe"), `variable ZCODER_BELL: "maybe" is not allowed: give true or false`, ""},
		{"no member", env("ZCODER_COMMAND_POLICY", "always"), `variable ZCODER_COMMAND_POLICY: "always" is not allowed: give ask, allow or deny`, ""},
		{"window", run{args: words("--context-window big")}, `flag --context-window: "big" is not allowed: give auto, or 1024 to 16777216 tokens`, ""},
		{"keep-alive", run{args: words("--keep-alive soon")}, `flag --keep-alive: "soon" is not allowed: give seconds, a time such as 10m, 0 or -1`, ""},
		{"NUL", run{args: []string{"-m", "a\x00b"}}, "flag --model: it holds a NUL byte", ""},
		{"yes and deny", run{args: words("--yes --deny-commands")}, "flags --yes and --deny-commands exclude each other", ""},
		{"flag behind the words", run{args: words("fix it --yes")}, "flag --yes stands behind the words of the prompt", "put flags before the prompt, or -- before a prompt that holds them"},
		{"flag with a value behind the words", run{args: words("fix it --model=x")}, "flag --model stands behind the words of the prompt", ""},
		{"unknown key", run{file: "model = 'x'\n\ncontext_windw = 1"}, path + `:3: unknown setting "context_windw"`, `did you mean "context_window"?`},
		{"dashes in a key", run{file: "context-window = 1"}, path + `:1: unknown setting "context-window"`, `did you mean "context_window"?`},
		{"nothing near", run{file: "something_else = 1"}, path + `:1: unknown setting "something_else"`, ""},
		{"home is no key", run{file: "home = '/x'"}, path + `:1: unknown setting "home"`, ""},
		{"flag is no key", run{file: "prompt = 'x'"}, path + `:1: unknown setting "prompt"`, ""},
		{"table", run{file: "model = 'x'\n[context]\nwindow = 1"}, path + ":2: unknown table [context]: settings stand outside tables", ""},
		{"dotted key", run{file: "context.window = 1"}, path + `:1: unknown setting "context.window"`, ""},
		{"text for a number", run{file: "max_rounds = \"7\""}, path + ":1: max_rounds: it is a text in quotes, but has to be a whole number, 0 to 1000000 rounds", ""},
		{"number for a text", run{file: "\n\nmodel = 7"}, path + ":3: model: it is a whole number, but has to be a text in quotes", ""},
		{"text for a boolean", run{file: "bell = 'off'"}, path + ":1: bell: it is a text in quotes, but has to be true or false", ""},
		{"boolean for a member", run{file: "command_policy = true"}, path + ":1: command_policy: it is true or false, but has to be ask, allow or deny", ""},
		{"fraction for a time", run{file: "max_time = 1.5"}, path + `:1: max_time: it is a number with a fraction, but has to be a whole number of seconds or a text such as "15m"`, ""},
		{"number in a list", run{file: "project_doc_fallbacks = ['a', 1]"}, path + ":1: project_doc_fallbacks: it holds a whole number, but has to be a list of texts", ""},
		{"text for a list", run{file: "project_doc_fallbacks = 'a'"}, path + ":1: project_doc_fallbacks: it is a text in quotes, but has to be a list of texts", ""},
		{"broken file", run{file: "model = 'x'\nbell = \n"}, path + ":2: ", ""},
		{"key twice", run{file: "model = 'x'\nbell = true\nmodel = 'y'\n"}, path + ":3: ", ""},
		{"relative home", env("ZCODER_HOME", "x"), `variable ZCODER_HOME: "x" is not an absolute path`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(c.run.sources())
			var usage *UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("Load gave %v, want a UsageError", err)
			}
			if got := usage.Error(); got != c.want && !(strings.HasSuffix(c.want, ": ") && strings.HasPrefix(got, c.want)) {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if c.hint != "" && !slices.Contains(usage.Hints, c.hint) {
				t.Errorf("hints %q do not hold %q", usage.Hints, c.hint)
			}
		})
	}
}

func TestUnreadableFileAndNoHome(t *testing.T) {
	_, err := Load(Sources{UserHome: "/h", ReadFile: func(string) ([]byte, error) { return nil, fs.ErrPermission }})
	if err == nil || err.Error() != `read settings file "/h/.config/zcoder/config.toml": permission denied` {
		t.Errorf("Load = %v", err)
	}
	_, err = Load(Sources{})
	if err == nil || err.Error() != "find the settings directory: the user has no home directory" {
		t.Errorf("Load = %v", err)
	}
}

func TestHelpAndVersionNeedNoSoundSettings(t *testing.T) {
	for _, args := range []string{"--help", "-h", "-V --bogus", "--help --compact-at 99", "--version"} {
		v, err := Load(run{args: words(args), file: "nonsense"}.sources())
		if err != nil {
			t.Errorf("%s: %v", args, err)
		} else if !v.Bool("help") && !v.Bool("version") {
			t.Errorf("%s: neither help nor version is set", args)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"none", nil, nil},
		{"after flags", []string{"-m", "x", "fix", "the bug"}, []string{"fix", "the bug"}},
		{"unknown dashes among words", words("explain rm -rf and --force"), words("explain rm -rf and --force")},
		{"behind dashes", words("-- --yes do it"), words("--yes do it")},
		{"dashes among words", words("run it -- --yes"), words("run it -- --yes")},
		{"single dash", words("- x"), words("- x")},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := load(t, run{args: c.args})
			if !slices.Equal(v.Args(), c.want) {
				t.Errorf("Args = %q, want %q", v.Args(), c.want)
			}
			if got := v.String("command-policy"); got != "ask" {
				t.Errorf("words set command-policy to %s", got)
			}
		})
	}
}

func TestSubcommands(t *testing.T) {
	var long bool
	subs := []Sub{
		{Name: "sessions", Usage: "[list]", Meaning: "list the stored sessions", Settings: []string{"profile"},
			Flags: func(s *pflag.FlagSet) { s.BoolVar(&long, "long", false, "print `all` there is") }},
		{Name: "config", Usage: "show", Meaning: "print the settings"},
	}
	for _, c := range []struct {
		name, args string
		sub        string
		rest       string
	}{
		{"first word", "sessions list", "sessions", "list"},
		{"behind a workspace", "-w /x sessions list", "sessions", "-w /x list"},
		{"behind a long workspace", "--workspace=/x config show", "config", "--workspace=/x show"},
		{"a prompt", "fix sessions", "", ""},
		{"behind another flag", "-m x sessions", "sessions", "-m x"},
		{"behind flags of every form", "--provider=openai --host h -mx --yes sessions list", "sessions", "--provider=openai --host h -mx --yes list"},
		{"a value of that name", "-m sessions", "", ""},
		{"a long value of that name", "--model sessions", "", ""},
		{"behind a flag that is not known", "--modle sessions", "", ""},
		{"behind a short flag that is not known", "-x sessions", "", ""},
		{"behind short flags in one", "-hw /x sessions", "sessions", "-hw /x"},
		{"a single dash", "- sessions", "", ""},
		{"flags alone", "--yes --demo", "", ""},
		{"behind dashes", "-- sessions", "", ""},
		{"a workspace of that name", "-w sessions", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub, rest, ok := FindSub(words(c.args), subs)
			if ok != (c.sub != "") || sub.Name != c.sub || !slices.Equal(rest, words(c.rest)) {
				t.Errorf("FindSub = %q, %q, %v", sub.Name, rest, ok)
			}
		})
	}

	for _, args := range []string{"list --long --workspace /x --profile sysadmin", "--workspace=/x --profile=sysadmin list --long", "--long -w /x --profile sysadmin -- list"} {
		long = false
		v, err := LoadSub(subs[0], run{args: words(args), file: "model = 'm'"}.sources())
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		if !long || v.String("workspace") != "/x" || v.String("profile") != "sysadmin" || v.String("model") != "m" || !slices.Equal(v.Args(), []string{"list"}) {
			t.Errorf("%s: long %v, workspace %q, profile %q, model %q, words %q", args, long, v.String("workspace"), v.String("profile"), v.String("model"), v.Args())
		}
	}
	_, err := LoadSub(subs[0], run{args: words("list --yes")}.sources())
	var usage *UsageError
	if !errors.As(err, &usage) || usage.Text != "zcoder sessions takes no flag --yes" ||
		!slices.Equal(usage.Hints, []string{"see zcoder sessions --help", `a request that begins with the word "sessions" stands behind --`}) {
		t.Errorf("a flag of the main program: %v", err)
	}
	_, err = LoadSub(subs[1], run{args: words("-m x show")}.sources())
	if err == nil || err.Error() != "zcoder config takes no flag -m" {
		t.Errorf("a short flag of the main program: %v", err)
	}
	_, err = LoadSub(subs[0], run{args: words("list --lon")}.sources())
	if !errors.As(err, &usage) || !slices.Equal(usage.Hints, []string{"did you mean --long?", "see zcoder sessions --help"}) {
		t.Errorf("a misspelt flag: %v", err)
	}
	if v, err := LoadSub(subs[1], run{args: words("show --help"), file: "nonsense"}.sources()); err != nil || !v.Bool("help") {
		t.Errorf("help of a subcommand: %v", err)
	}
	var b bytes.Buffer
	if err := HelpSub(&b, subs[0]); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"usage: zcoder sessions [list]\n", "list the stored sessions", "      --long all", "  -w, --workspace PATH", "--profile coding|sysadmin", "-h, --help"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("help of a subcommand lacks %q:\n%s", want, b.String())
		}
	}
}

func TestTableIsSound(t *testing.T) {
	seen := map[string]string{}
	once := func(kind, name, by string) {
		if name == "" {
			return
		}
		if other, ok := seen[kind+name]; ok {
			t.Errorf("%s %q belongs to %s and %s", kind, name, other, by)
		}
		seen[kind+name] = by
	}
	for _, s := range Table() {
		once("name", s.Name, s.Name)
		once("flag", s.Flag, s.Name)
		once("short", s.Short, s.Name)
		once("variable", s.Env, s.Name)
		once("key", s.Key, s.Name)
		for _, sw := range s.Switches {
			once("flag", sw.Flag, s.Name)
			if _, err := s.parse(sw.Value); err != nil || sw.Meaning == "" {
				t.Errorf("switch --%s: %v, meaning %q", sw.Flag, err, sw.Meaning)
			}
		}
		if _, err := s.parse(s.Default); err != nil {
			t.Errorf("default of %s: %v", s.Name, err)
		}
		if s.Meaning == "" || s.Section == "" || s.Kind == Enum && len(s.Enum) < 2 {
			t.Errorf("%s lacks a meaning, a section or members", s.Name)
		}
		if (s.Kind == Int || s.Kind == AutoInt || s.Kind == Duration) && s.Max <= s.Min {
			t.Errorf("%s has the range %d to %d", s.Name, s.Min, s.Max)
		}
	}
}

func TestHelp(t *testing.T) {
	var b bytes.Buffer
	if err := Help(&b, []Sub{{Name: "config", Usage: "show", Meaning: "print the settings"}}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for i, line := range strings.Split(text, "\n") {
		if len(line) > 80 || strings.TrimRight(line, " ") != line {
			t.Errorf("line %d has %d bytes: %q", i+1, len(line), line)
		}
	}
	for _, s := range Table() {
		if s.Flag != "" && !strings.Contains(text, "--"+s.Flag) {
			t.Errorf("help lacks --%s", s.Flag)
		}
	}
	for _, want := range []string{
		"  -h, --help  ", "      --host URL  ", "  -m, --model NAME  ", "  -w, --workspace PATH", "  -p, --prompt TEXT", "  -V, --version",
		"  config show ", "\n  2 ", "\n  130 ", "\n  143 ", "\n  129 ", "--no-think", "--deny-commands", "(default qwen3-coder:latest)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("help lacks %q", want)
		}
	}
}

func TestShow(t *testing.T) {
	v := load(t, run{
		file: "\nmax_rounds = 5",
		env:  map[string]string{"OLLAMA_API_KEY": "s3cret-of-mine", "ZCODER_API_KEY": "s3cret-too", "OLLAMA_HOST": "https://bob:hunter2@h:1/"},
		args: words("--max-time 2m"),
	})
	var text, asJSON bytes.Buffer
	if err := errors.Join(v.Show(&text, false), v.Show(&asJSON, true)); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{text.String(), asJSON.String()} {
		if strings.Contains(out, "s3cret") || strings.Contains(out, "hunter2") {
			t.Errorf("a secret is shown:\n%s", out)
		}
	}
	got := map[string]string{}
	for line := range strings.Lines(text.String()) {
		fields := strings.Fields(line)
		got[fields[0]] = strings.Join(fields[1:], " ")
	}
	for name, want := range map[string]string{
		"max-rounds":     "5 rounds /h/.config/zcoder/config.toml:2",
		"api-key":        "[masked] env ZCODER_API_KEY",
		"ollama-api-key": "[masked] env OLLAMA_API_KEY",
		"host":           "https://[masked]@h:1/ env OLLAMA_HOST",
		"max-time":       "120 seconds flag --max-time",
		"context-window": "auto default",
		"debug-log":      "- default",
		"sessions-dir":   "/h/.config/zcoder/sessions default",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	var list []map[string]any
	if err := json.Unmarshal(asJSON.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != len(got) {
		t.Errorf("%d settings as JSON, %d as text", len(list), len(got))
	}
	i := slices.IndexFunc(list, func(m map[string]any) bool { return m["name"] == "max-rounds" })
	if i < 0 || list[i]["value"] != 5.0 || list[i]["source"] != "/h/.config/zcoder/config.toml:2" || list[i]["variable"] != "ZCODER_MAX_ROUNDS" || list[i]["key"] != "max_rounds" || list[i]["flag"] != "max-rounds" {
		t.Errorf("max-rounds as JSON: %v", list[i])
	}
}

func TestReferencePage(t *testing.T) {
	const path = "../../docs/configuration.md"
	want := Reference()
	if *update {
		if err := errors.Join(os.MkdirAll("../../docs", 0o777), os.WriteFile(path, []byte(want), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/configuration.md differs from the table: run go test ./internal/config -update")
	}
	for _, s := range Table() {
		if s.Env != "" && !strings.Contains(want, "`"+s.Env+"`") {
			t.Errorf("the page lacks %s", s.Env)
		}
	}
}

func TestGettersPanicForMistakes(t *testing.T) {
	v := load(t, run{})
	for name, call := range map[string]func(){
		"unknown name": func() { v.String("modle") },
		"wrong kind":   func() { v.Int("model") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
}

// FuzzFile holds: any file gives values or a UsageError that names the file, and
// the line where there is one.
func FuzzFile(f *testing.F) {
	for _, s := range []string{"model = 'x'\n[a]\n", "max_rounds = 0x10", "a.b = {c = 1}", "[[x]]\n", "\"mod\\u0065l\" = \"\"\"\nx\"\"\"", "bell = true # x\n\n", "'' = 1", "project_doc_fallbacks = [[], 1]", "\ufeff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		_, err := Load(run{file: file}.sources())
		var usage *UsageError
		if err != nil && (!errors.As(err, &usage) || !strings.HasPrefix(usage.Text, "/h/.config/zcoder/config.toml:")) {
			t.Fatalf("%q: %v", file, err)
		}
	})
}

// FuzzArgs holds: any command line gives values or a UsageError, and what follows
// "--" never becomes a flag.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{"--yes", "-p x --resume", "-mx -wy z", "--compact-at=5", "--no-think --think=high", "-- --yes", "--=x", "-", "-hV"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		var usage *UsageError
		if _, err := Load(run{args: args}.sources()); err != nil && !errors.As(err, &usage) {
			t.Fatalf("%q: %v", args, err)
		}
		v := load(t, run{args: append([]string{"--"}, args...)})
		if !slices.Equal(v.Args(), args) || v.Source("command-policy") != "default" {
			t.Fatalf("-- %q: words %q, command-policy from %s", args, v.Args(), v.Source("command-policy"))
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	r := run{args: words("-m x -p hello"), file: "model = 'x'\nmax_rounds = 7\n", env: map[string]string{"OLLAMA_HOST": "h"}}
	for b.Loop() {
		if _, err := Load(r.sources()); err != nil {
			b.Fatal(err)
		}
	}
}

// What Environ gives, another run reads as the same settings.
func TestEnviron(t *testing.T) {
	v := load(t, run{
		file: "max_rounds = 5\nproject_doc_fallbacks = ['A.md', 'B.md']\nbell = false",
		env:  map[string]string{"ZCODER_API_KEY": "k", "ZCODER_HTTP_READ_TIMEOUT": "1500ms", "ZCODER_MODEL": "m"},
		args: words("--context-window 8192 --no-think --prompt x"),
	})
	env := map[string]string{}
	for _, e := range v.Environ("model") {
		name, value, _ := strings.Cut(e, "=")
		env[name] = value
	}
	want := map[string]string{"ZCODER_MAX_ROUNDS": "5", "ZCODER_PROJECT_DOC_FALLBACKS": "A.md,B.md", "ZCODER_BELL": "false", "ZCODER_API_KEY": "k",
		"ZCODER_HTTP_READ_TIMEOUT": "1.5s", "ZCODER_CONTEXT_WINDOW": "8192", "ZCODER_THINK": "false"}
	if !maps.Equal(env, want) {
		t.Errorf("got %q", env)
	}
	again := load(t, run{env: env})
	for name := range want {
		if s := again.Environ(); !slices.Contains(s, name+"="+want[name]) {
			t.Errorf("%s: %q", name, s)
		}
	}
}
