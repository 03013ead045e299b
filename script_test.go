package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"zcoder/internal/acpstub"
	"zcoder/internal/mcpstub"
	"zcoder/internal/scripted"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"zcoder":  main,
		"acpstub": func() { os.Exit(acpstub.Main(os.Args[1:])) },
		"mcpstub": func() { os.Exit(mcpstub.Main(os.Args[1:])) },
	})
}

// TestScripts runs the program as its users do, against the scripted model server.
// Verbs of ours:
//
//	model FILE        starts a model server that plays FILE and points OLLAMA_HOST at it
//	model -lax FILE   the same; unused replies are no failure
//	requests FILE     writes the bodies of the chat requests so far, one a line
//	prefix N          fails unless N chat requests were made and each extends the one before, byte
//	                  for byte, with one context window
//	mode MODE PATH    fails unless the permission bits of PATH are MODE
//	readme FILE       writes the session of README.md as a terminal script
//	commands DOC FILE writes the commands of a page in docs as a shell script, but for
//	                  those that need what a test does not have
//	session DOC N FILE writes the N-th session of a page as a terminal script
//	term FILE         runs a program in a terminal as FILE says (see term_test.go)
func TestScripts(t *testing.T) { testscript.Run(t, scriptParams()) }

func scriptParams() testscript.Params {
	return testscript.Params{
		Dir:                filepath.Join("testdata", "script"),
		RequireUniqueNames: true,
		Setup:              setup,
		Condition:          condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"model":    cmdModel,
			"requests": cmdRequests,
			"mode":     cmdMode,
			"prefix":   cmdPrefix,
			"term":     cmdTerm,
			"readme":   cmdReadme,
			"commands": cmdCommands,
			"session":  cmdSession,
		},
	}
}

// condition knows npm-servers and npm-acp: what .ci/real-mcp and .ci/real-acp install is
// there.
func condition(name string) (bool, error) {
	switch name {
	case "npm-servers":
		return os.Getenv("ZCODER_TEST_MCP_NPM") != "", nil
	case "npm-acp":
		return os.Getenv("ZCODER_TEST_ACP_NPM") != "", nil
	}
	return false, fmt.Errorf("unknown condition %q", name)
}

// setup gives each script a home of its own and a workspace to work in.
func setup(env *testscript.Env) error {
	env.Values["holder"] = &holder{t: env.T()}
	home := filepath.Join(env.WorkDir, "home")
	for _, dir := range []string{home, filepath.Join(env.WorkDir, "ws"), filepath.Join(env.WorkDir, "run")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	for name, value := range map[string]string{
		"HOME": home, "ZCODER_HOME": filepath.Join(home, "zcoder"), "ZCODER_MODEL": "test-model",
		"XDG_RUNTIME_DIR": filepath.Join(env.WorkDir, "run"), "OLLAMA_HOST": "127.0.0.1:9", "TERM": "dumb", "SHELL": "/bin/sh",
		"ZCODER_WARMUP": "off", "NPM_SERVERS": os.Getenv("ZCODER_TEST_MCP_NPM"), "ACP_NPM": os.Getenv("ZCODER_TEST_ACP_NPM"),
	} {
		env.Setenv(name, value)
	}
	return nil
}

// holder is a script's model server.
type holder struct {
	t      testscript.T
	server *scripted.Server
}

// fail ends the script at its end, when ts.Fatalf would panic.
func (h *holder) fail(why string) {
	h.t.Log(why)
	h.t.FailNow()
}

func held(ts *testscript.TestScript) *holder { return ts.Value("holder").(*holder) }

func cmdModel(ts *testscript.TestScript, neg bool, args []string) {
	lax := len(args) == 2 && args[0] == "-lax"
	if neg || len(args) == 0 || len(args) > 1 && !lax {
		ts.Fatalf("usage: model [-lax] FILE")
	}
	script, err := scripted.Parse(ts.ReadFile(filepath.Join(ts.Getenv("WORK"), args[len(args)-1])))
	ts.Check(err)
	server := scripted.New(script, scripted.Options{})
	url, stop, err := server.Start()
	ts.Check(err)
	ts.Setenv("OLLAMA_HOST", url)
	held(ts).server = server
	ts.Defer(func() {
		stop()
		if failures := server.Failures(); len(failures) > 0 {
			held(ts).fail("the model server: " + strings.Join(failures, "; "))
		}
		if n := server.Unused(); n > 0 && !lax {
			held(ts).fail(fmt.Sprintf("the model server has %d replies left", n))
		}
	})
}

func cmdRequests(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: requests FILE")
	}
	server := held(ts).server
	if server == nil {
		ts.Fatalf("no model server runs")
	}
	var b strings.Builder
	for _, r := range chats(server) {
		b.Write(r.Body)
		b.WriteByte('\n')
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o600))
}

// chats are the chat requests of either API, warming ones included.
func chats(server *scripted.Server) []scripted.Recorded {
	var list []scripted.Recorded
	for _, r := range server.Requests() {
		if r.Path == "/api/chat" || r.Path == "/v1/chat/completions" {
			list = append(list, r)
		}
	}
	return list
}

func cmdPrefix(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: prefix N")
	}
	server := held(ts).server
	made := chats(server)
	if fmt.Sprint(len(made)) != args[0] {
		ts.Fatalf("%d chat requests, not %s", len(made), args[0])
	}
	for i := 1; i < len(made); i++ {
		if made[i].CommonPrefix != made[i-1].PromptBytes {
			ts.Fatalf("request %d shares %d bytes with the one before, which has %d", i+1, made[i].CommonPrefix, made[i-1].PromptBytes)
		}
	}
	if windows := server.Windows(); len(windows) != 1 {
		ts.Fatalf("the requests name %d context windows: %v", len(windows), windows)
	}
}

func cmdReadme(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: readme FILE")
	}
	session, err := readmeSession()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(session), 0o600))
}

func cmdCommands(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: commands DOC FILE")
	}
	text, err := os.ReadFile(filepath.Join("docs", args[0]))
	ts.Check(err)
	script := "set -ex\n" + strings.TrimPrefix(strings.Join(fences(string(text))["sh"], ""), twoCommands)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(script), 0o600))
}

func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode MODE PATH")
	}
	info, err := os.Lstat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, not %s", args[1], got, args[0])
	}
}
