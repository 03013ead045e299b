package app

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zcoder/internal/acp"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/scripted"
)

// nobody answers no form.
type nobody struct{}

func (nobody) Choose(string, []string, int) (int, bool)    { return 0, false }
func (nobody) AskLine(string) (string, bool)               { return "", false }
func (nobody) Confirm(string, string, string, string) bool { return false }

// editorProgram is the host of an editor against a scripted model.
func editorProgram(t *testing.T, script string) (*editorHost, *program) {
	t.Helper()
	parsed, err := scripted.Parse(script)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(t, scripted.New(parsed, scripted.Options{}))
	process := Process{Args: []string{"--acp"}, Env: append(p.env, "ZCODER_WARMUP=off"), Dir: p.dir, UserHome: p.home, Stdout: p.file(), Stderr: p.file()}
	v, err := config.Load(sources(process, process.Args))
	if err != nil {
		t.Fatal(err)
	}
	return &editorHost{p: process, v: v}, p
}

func beginEditor(t *testing.T, h *editorHost, s acp.Start) acp.Conversation {
	t.Helper()
	c, err := h.Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEditorSessionsAtOnce: two sessions in one workspace work at the same time; each
// asks for its own commands, and a grant is that of one session alone.
func TestEditorSessionsAtOnce(t *testing.T) {
	h, p := editorProgram(t, "> say unused")
	const rounds = 4
	var work sync.WaitGroup
	asked := make([]int, 2)
	for n := range 2 {
		c := beginEditor(t, h, acp.Start{Dir: p.dir})
		ctx, stop := context.WithCancel(t.Context())
		var watching sync.WaitGroup
		watching.Add(1)
		go func() {
			defer watching.Done()
			for e, err := range c.Events(ctx, 0) {
				if err != nil {
					return
				}
				if e.Kind == event.Asked {
					asked[n]++
					choice := []string{"conversation", "once"}[n]
					if err := c.Answer(e.Question.CallID, event.Answer{Choice: choice, Digest: e.Question.Digest}); err != nil {
						t.Error(err)
					}
				}
			}
		}()
		work.Add(1)
		go func() {
			defer work.Done()
			for i := range rounds {
				reason, err := c.Run(ctx, event.Input{Text: fmt.Sprintf("! echo %d >>out%d", i, n)}, nobody{})
				if err != nil || reason != event.Complete {
					t.Errorf("session %d: %s %v", n, reason, err)
				}
			}
			stop()
			watching.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}()
	}
	work.Wait()
	for n := range 2 {
		data, err := os.ReadFile(filepath.Join(p.dir, fmt.Sprint("out", n)))
		if err != nil || string(data) != "0\n1\n2\n3\n" {
			t.Errorf("session %d wrote %q, %v", n, data, err)
		}
	}
	if asked[0] != 1 || asked[1] != rounds {
		t.Errorf("asked %v times", asked)
	}
}

// TestEditorSessionStart: where a session may begin and go on.
func TestEditorSessionStart(t *testing.T) {
	h, p := editorProgram(t, "> say hello")
	c := beginEditor(t, h, acp.Start{Dir: p.dir})
	id := c.Info().ID
	if _, err := c.Run(t.Context(), event.Input{Text: "hi"}, nobody{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(p.dir, "file")
	p.write("file", "x")
	for _, test := range []struct {
		name  string
		start acp.Start
		want  string
	}{
		{"no such directory", acp.Start{Dir: filepath.Join(p.dir, "none")}, "does not exist"},
		{"a file", acp.Start{Dir: file}, "does not exist"},
		{"no such session", acp.Start{Dir: p.dir, Session: "1_1"}, "no such session"},
		{"no id", acp.Start{Dir: p.dir, Session: "../x"}, "no such session"},
		{"another directory", acp.Start{Dir: p.home, Session: id}, "was held in"},
		{"open already", acp.Start{Dir: p.dir, Session: id}, "is open in another zcoder"},
		{"a server without a name for its variable", acp.Start{Dir: p.dir, Servers: []acp.Server{{Name: "x", Command: "y", Env: map[string]string{"": "v"}}}}, "no name of a variable"},
	} {
		if _, err := h.Open(t.Context(), test.start); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := beginEditor(t, h, acp.Start{Dir: p.dir, Session: id})
	if err := again.SetMode(t.Context(), "sysadmin"); err == nil || !strings.Contains(err.Error(), "fixed once something was said") {
		t.Errorf("the mode changes: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// TestEditorAttachments: texts of buffers share the room for attachments with mentions,
// and images go only to a model that sees them.
func TestEditorAttachments(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\nx")
	for _, test := range []struct{ name, model, images, want string }{
		{"blind", "> model test-model tools\n\n> expect-not \"images\"\n> expect could not be passed on\n> say ok", "warning: the images were not sent: the model test-model cannot see images; /model shows which ones can", ""},
		{"seeing", "> model test-model tools vision\n\n> expect \"images\"\n> say ok", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			script := strings.Replace(test.model, "> say ok", "> expect The user attached m.go (2 lines), as the editor has it\n> expect [cut here:\n> say ok", 1)
			h, p := editorProgram(t, script)
			if got := h.Images(t.Context()); got != (test.name == "seeing") {
				t.Errorf("images are said to be possible: %v", got)
			}
			c := beginEditor(t, h, acp.Start{Dir: p.dir})
			defer c.Close()
			in := event.Input{Text: "see", Images: [][]byte{png}, Attached: []event.Attachment{{Name: "m.go", Text: "a\nb\n"}, {Name: "big", Text: strings.Repeat("line\n", 20_000)}}}
			if reason, err := c.Run(t.Context(), in, nobody{}); err != nil || reason != event.Complete {
				t.Fatal(reason, err)
			}
			var said bytes.Buffer
			ctx, stop := context.WithCancel(t.Context())
			stop()
			for e, err := range c.Events(ctx, 0) {
				if err != nil {
					break
				}
				fmt.Fprintf(&said, "%s: %s\n", e.Kind, e.Text)
			}
			if !strings.Contains(said.String(), test.images) || test.images == "" && strings.Contains(said.String(), "warning") {
				t.Errorf("said:\n%.2000s", said.String())
			}
		})
	}
}

func TestServerNames(t *testing.T) {
	list, err := givenServers([]acp.Server{{Name: "My Server!", Command: "a"}, {Name: "My-Server", URL: "http://h/"}, {Name: "my-server", Command: "d"}, {Name: "…", Command: "b"}, {Name: strings.Repeat("x", 200), Command: "c"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"My-Server":{"command":"a"}`, `"My-Server-2":{"type":"http","url":"http://h/"}`, `"my-server-3":{"command":"d"}`, `"server":{"command":"b"}`, `"` + strings.Repeat("x", 76) + `":`} {
		if !bytes.Contains(list, []byte(want)) {
			t.Errorf("%s does not hold %s", list, want)
		}
	}
}
