package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/ollama"
	"zcoder/internal/scripted"
)

// realServer is a client of the server that ZCODER_TEST_OLLAMA names, and a program
// that uses it with the small model that calls tools.
func realServer(t *testing.T) (*ollama.Client, *program) {
	t.Helper()
	host := os.Getenv("ZCODER_TEST_OLLAMA")
	if host == "" {
		t.Skip("no real server: ZCODER_TEST_OLLAMA names none (make test-real does)")
	}
	client, err := ollama.New(ollama.Options{Host: host})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Unload(t.Context(), "micro-tools"); err != nil {
		t.Fatal(err)
	}
	for tries := 0; window(t, client) != 0; tries++ {
		if tries == 100 {
			t.Fatal("the server does not unload the model")
		}
		time.Sleep(50 * time.Millisecond) // the server tells nobody when it is done
	}
	script, err := scripted.Parse("> no-models")
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, scripted.New(script, scripted.Options{}))
	for i, e := range p.env {
		switch {
		case strings.HasPrefix(e, "OLLAMA_HOST="):
			p.env[i] = "OLLAMA_HOST=" + host
		case strings.HasPrefix(e, "ZCODER_MODEL="):
			p.env[i] = "ZCODER_MODEL=micro-tools"
		}
	}
	return client, p
}

func window(t *testing.T, client *ollama.Client) int {
	t.Helper()
	m, _ := loadedModel(t.Context(), client, "micro-tools")
	return m.Context
}

func TestRealMainJobAndSizing(t *testing.T) {
	client, p := realServer(t)
	p.write("notes.txt", "hello foo\n")
	status, stdout, stderr := p.run("--yes", "--prompt", "in notes.txt replace foo with bar")
	if status != statusOK || !strings.Contains(stdout, "notes.txt updated") {
		t.Fatalf("status %d, %q, %s", status, stdout, stderr)
	}
	if data, _ := os.ReadFile(filepath.Join(p.dir, "notes.txt")); string(data) != "hello bar\n" {
		t.Errorf("notes.txt = %q", data)
	}
	if got := window(t, client); got != 16384 {
		t.Errorf("loaded with a window of %d; want the default of 16384", got)
	}
	if status, stdout, _ = p.run("--yes", "--prompt", "run: cat notes.txt"); status != statusOK || !strings.Contains(stdout, "hello bar") {
		t.Errorf("status %d, %q", status, stdout)
	}

	// A set window is taken, and one that is loaded stays.
	p.run("--context-window", "12288", "--prompt", "read notes.txt")
	if got := window(t, client); got != 12288 {
		t.Errorf("loaded with %d; want 12288 as set", got)
	}
	p.run("--prompt", "read notes.txt")
	if got := window(t, client); got != 12288 {
		t.Errorf("loaded with %d; want 12288 as it was loaded", got)
	}
}

func TestRealWarmUpLoadsWithTheWindow(t *testing.T) {
	client, _ := realServer(t)
	b := &brain{memory: filepath.Join(t.TempDir(), "windows.json")}
	b.use(client, "micro-tools")
	b.warm(t.Context(), chat.Request{Messages: []chat.Message{{Role: chat.System, Content: "You are a test."}}})
	if got := window(t, client); got != 16384 {
		t.Errorf("warmed with a window of %d; want 16384", got)
	}
}
