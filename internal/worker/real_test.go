package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realSettings are the files and variables that point a real worker at the stand-in.
// They relocate its home, which a person's worker must not do: the login is there.
func realSettings(name, home, url string) (files map[string]string, env []string, model string) {
	switch name {
	case "claude":
		return nil, []string{"CLAUDE_CONFIG_DIR=" + home + "/.claude", "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=sk-ant-stand-in"}, "stub"
	case "codex":
		return map[string]string{".codex/config.toml": "model = \"stub\"\nmodel_provider = \"x\"\n[model_providers.x]\nname = \"x\"\nbase_url = \"" + url + "/v1\"\nwire_api = \"responses\"\n"},
			[]string{"CODEX_HOME=" + home + "/.codex"}, ""
	case "opencode":
		return map[string]string{".config/opencode/opencode.json": `{"provider":{"x":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url + `/v1","apiKey":"k"},"models":{"stub":{}}}}}`},
			[]string{"XDG_CONFIG_HOME=" + home + "/.config", "XDG_DATA_HOME=" + home + "/.data", "XDG_STATE_HOME=" + home + "/.state", "XDG_CACHE_HOME=" + home + "/.cache"}, "x/stub"
	case "pi":
		return map[string]string{".pi/models.json": `{"providers":{"x":{"baseUrl":"` + url + `/v1","api":"openai-completions","apiKey":"k","models":[{"id":"stub"}]}}}`},
			[]string{"PI_CODING_AGENT_DIR=" + home + "/.pi"}, "x/stub"
	case "gemini":
		return map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
			[]string{"GEMINI_CLI_HOME=" + home, "GEMINI_API_KEY=stand-in-key", "GOOGLE_GEMINI_BASE_URL=" + url}, "gemini-2.5-flash"
	case "qwen":
		return map[string]string{".qwen/settings.json": `{"security":{"auth":{"selectedType":"openai"}}}`},
			[]string{"QWEN_HOME=" + home + "/.qwen", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=stand-in-key", "OPENAI_MODEL=stub"}, "stub"
	}
	return nil, nil, ""
}

// TestRealWorkers runs the programs from npm against the stand-in: a consultation must
// not make a file that the model asks for, an edit must. ZCODER_TEST_WORKERS names the
// directory with the programs.
func TestRealWorkers(t *testing.T) {
	bin := os.Getenv("ZCODER_TEST_WORKERS")
	if bin == "" {
		t.Skip("ZCODER_TEST_WORKERS does not name a directory with the real programs")
	}
	for _, h := range Table() {
		t.Run(h.Name, func(t *testing.T) {
			path, err := h.Find(bin, func(file string) bool { _, err := os.Stat(file); return err == nil })
			if err != nil {
				t.Skip(err)
			}
			for _, mode := range []Mode{Consult, Edit} {
				t.Run(mode.String(), func(t *testing.T) { runReal(t, h, path, bin, mode) })
			}
		})
	}
}

func runReal(t *testing.T, h Harness, path, bin string, mode Mode) {
	server := startStandIn(t)
	home, dir := realDir(t), realDir(t)
	server.file = filepath.Join(dir, "made.txt")
	files, env, model := realSettings(h.Name, home, server.url)
	for name, text := range files {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(home, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	env = append(env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "TERM=dumb")
	given := h.Environment(env, mode, model, 1, nil)
	r := Run(t.Context(), Spec{
		Harness: h, Path: path, Mode: mode, Model: model, Dir: dir, Env: given, Timeout: 100 * time.Second,
		Prompt:   Brief{Mode: mode, Request: "make the file made.txt"}.Prompt(),
		Progress: func(line string) { t.Log(line) },
	})
	t.Logf("version %s, %s", Version(t.Context(), path, given), r.Took)
	if r.Status != Done || !strings.Contains(r.Reply, standInAnswer) || len(r.Left) > 0 {
		t.Errorf("report %+v\nrequests %q", r, server.requests())
	}
	made, err := os.ReadFile(server.file)
	if exists := err == nil; exists != (mode == Edit) {
		t.Errorf("%s: the file exists: %v", mode, exists)
	}
	if mode == Edit && string(made) != "made\n" {
		t.Errorf("the file holds %q", made)
	}
}

// realDir is not below the directory for temporary files, where codex may always write.
func realDir(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "zcoder-test")
		err = os.MkdirAll(cache, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
