package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zcoder/internal/scripted"
)

// program runs the real program in a workspace of its own.
type program struct {
	t         *testing.T
	home, dir string
	env       []string
}

func newProgram(t *testing.T, server *scripted.Server) *program {
	t.Helper()
	url, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	p := &program{t: t, home: t.TempDir(), dir: t.TempDir()}
	p.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.home, "TERM=dumb", "OLLAMA_HOST=" + url, "ZCODER_MODEL=test-model",
		"ZCODER_HOME=" + filepath.Join(p.home, "zcoder"), "XDG_RUNTIME_DIR=", "TMPDIR=" + t.TempDir(),
	}
	return p
}

func (p *program) write(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// run returns the exit status and what was written.
func (p *program) run(args ...string) (status int, stdout, stderr string) {
	p.t.Helper()
	null, err := os.Open(os.DevNull)
	if err != nil {
		p.t.Fatal(err)
	}
	defer null.Close()
	out, errs := p.file(), p.file()
	defer out.Close()
	defer errs.Close()
	status = Run(context.Background(), Process{
		Args: args, Env: p.env, Dir: p.dir, UserHome: p.home, Stdin: null, Stdout: out, Stderr: errs,
	})
	return status, p.read(out), p.read(errs)
}

func (p *program) file() *os.File {
	f, err := os.CreateTemp(p.t.TempDir(), "out")
	if err != nil {
		p.t.Fatal(err)
	}
	return f
}

func (p *program) read(f *os.File) string {
	data, err := os.ReadFile(f.Name())
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

const summaryJSON = `{"schema_version":1,"objective":"count plums","constraints":[],"decisions":[],"artifacts":["log.txt"],"facts":["seen so far"],"completed":["read"],"active":[],"blocked":[],"next":["read on"]}`

// TestALongSessionAt8k is a turn of 200 rounds in a small window: it must finish its
// task, shorten the history at least three times, never lose the request, and never
// make the server cut or reload.
func TestALongSessionAt8k(t *testing.T) {
	script, err := scripted.Parse("> model test-model tools ctx=8192")
	if err != nil {
		t.Fatal(err)
	}
	const request = "Count the plums in log.txt and write the number to plums.txt."
	rounds, compactions := 0, 0
	server := scripted.New(script, scripted.Options{Respond: func(r scripted.Recorded) string {
		body := string(r.Body)
		if strings.Contains(body, "Write the checkpoint of this conversation") {
			compactions++
			return "> say " + summaryJSON
		}
		rounds++
		if !strings.Contains(body, request) {
			return "> status 500 the request was lost"
		}
		switch {
		case rounds < 200:
			return fmt.Sprintf(`> call read_file_range {"path":"log.txt","start_line":%d,"end_line":%d}`, rounds, rounds+30)
		case rounds == 200:
			return `> call write_file {"path":"plums.txt","content":"230\n"}`
		}
		return "> say There are 230."
	}})
	p := newProgram(t, server)
	p.write("log.txt", strings.Repeat("one more line with a plum in it, and some words besides\n", 230))
	status, stdout, stderr := p.run("--prompt", request)
	if status != statusOK || stdout != "There are 230.\n" {
		t.Fatalf("status %d, stdout %q, stderr ends %q", status, stdout, tail(stderr))
	}
	if data, err := os.ReadFile(filepath.Join(p.dir, "plums.txt")); err != nil || string(data) != "230\n" {
		t.Errorf("plums.txt = %q, %v", data, err)
	}
	if compactions < 3 {
		t.Errorf("%d compactions; want at least 3", compactions)
	}
	if windows := server.Windows(); len(windows) != 1 || windows[0] != 8192 {
		t.Errorf("the requests named the windows %v; want 8192 alone", windows)
	}
}

func tail(s string) string { return s[max(0, len(s)-500):] }
