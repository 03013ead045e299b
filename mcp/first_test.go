package mcp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pinned are the servers that have pins in the store.
func pinned(t *testing.T, h *Hub) string {
	t.Helper()
	p, err := h.at.store().load()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(sortedKeys(p.Servers), ", ")
}

// TestToolsArePinnedAfterThePersonConfirmed has a person look at servers whose tools
// nobody saw before.
func TestToolsArePinnedAfterThePersonConfirmed(t *testing.T) {
	for _, scope := range []Scope{User, Project} {
		t.Run(string(scope), func(t *testing.T) {
			b := newBench(t)
			b.options = func(o *Options) { o.OnDemand = true }
			b.write(scope, "s", b.entry(""))
			h := b.run()
			b.trust(h)
			rv, err := h.ReviewTools(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			if rv.Same {
				t.Error("tools that nobody confirmed count as confirmed")
			}
			if got := pinned(t, h); got != "" {
				t.Errorf("before the confirmation there are pins of %s", got)
			}
			if got := h.Refresh(t.Context()).Tools; len(got) != 0 {
				t.Errorf("before the confirmation %d tools are offered", len(got))
			}
			if err := h.Confirm(rv, false); err != nil {
				t.Fatal(err)
			}
			if got := h.Refresh(t.Context()).Tools; len(got) != 4 {
				t.Errorf("after the confirmation %d tools are offered", len(got))
			}
			if got := b.open().Prompts(); len(got) != 1 {
				t.Errorf("after the confirmation %d prompts are known", len(got))
			}
		})
	}
}

// TestWhatIsConfirmedIsWhatWasShown has a server redefine a tool while a person reads.
func TestWhatIsConfirmedIsWhatWasShown(t *testing.T) {
	b := newBench(t)
	set, args := toolsFile(t, b)
	set(oneTool)
	b.write(Project, "s", b.entry("", args...))
	h := b.run()
	b.trust(h)
	rv, err := h.ReviewTools(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	set(strings.Replace(oneTool, "Gets x.", "Sends x.", 1))
	if err := h.Confirm(rv, false); err != nil {
		t.Fatal(err)
	}
	tool := offered(t, h)["mcp__s__get_x"]
	if res := call(t.Context(), t, tool, `{"do":"changed"}`, nil); res.Text != "told" {
		t.Fatalf("the call before the server tells of the change: %q", res.Text)
	}
	if res := call(t.Context(), t, tool, `{}`, nil); !strings.Contains(res.Text, "was not called: the server redefined it") {
		t.Errorf("a call of the tool that was redefined: %q", res.Text)
	}
}

// TestAProjectsServerWaitsForItsConfirmation has a server whose content was approved
// and whose tools were not, as after a crash between the two.
func TestAProjectsServerWaitsForItsConfirmation(t *testing.T) {
	b := newBench(t)
	b.write(Project, "s", b.entry(""))
	b.trust(b.open())
	h := b.run()
	if _, err := h.Try(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	h.AwaitFirst(t.Context())
	o := h.Refresh(t.Context())
	if len(o.Tools) != 0 || pinned(t, h) != "" {
		t.Errorf("%d tools are offered, pins of %q", len(o.Tools), pinned(t, h))
	}
	if want := "has new tools, which are not offered yet: delete_all, echo, note, send_mail; `/mcp trust s` shows it and asks"; !strings.Contains(strings.Join(o.Notices, "\n"), want) {
		t.Errorf("notices = %q; want %q", o.Notices, want)
	}
	s, err := h.Server("s")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Tools) != 4 || s.Tools[0].Withheld != "it is new" || s.Tokens != 0 {
		t.Errorf("status = %d tools, %d tokens", len(s.Tools), s.Tokens)
	}
}

func TestPromptsAreKnownWithTheTools(t *testing.T) {
	b := newBench(t)
	b.write(User, "s", b.entry(""))
	h := b.run()
	h.AwaitFirst(t.Context())
	if got := h.Prompts(); len(got) != 1 || got[0].Name != "review" {
		t.Errorf("prompts of a server that just came up: %v", got)
	}
	b = newBench(t)
	b.options = func(o *Options) { o.OnDemand = true }
	b.write(User, "s", b.entry(""))
	if _, err := b.run().Try(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if got := b.open().Prompts(); len(got) != 1 {
		t.Errorf("after a try the prompts are %v", got)
	}
}

func TestPromptsThatChange(t *testing.T) {
	for _, flag := range []string{"-page=0", "-modern"} {
		b := newBench(t)
		file := filepath.Join(b.home, "prompts")
		put(t, file, `[{"name":"one"},{"name":"quit now"},{"name":"esc\u001b[8m"},{"name":"bidi\u202e"},{"name":""}]`, 0o600)
		b.write(User, "s", b.entry("", "-prompts", file, flag))
		h := b.run()
		tool := offered(t, h)["mcp__s__echo"]
		if got := promptNames(h); got != "one" {
			t.Errorf("%s: prompts = %s", flag, got)
		}
		put(t, file, `[{"name":"two"}]`, 0o600)
		if res := call(t.Context(), t, tool, `{"text":"","do":"prompts-changed"}`, nil); res.Text != "told" {
			t.Fatal(res.Text)
		}
		h.Refresh(t.Context())
		if got := promptNames(h); got != "two" {
			t.Errorf("%s: after the change the prompts are %s", flag, got)
		}
		if got := promptNames(b.open()); got != "two" {
			t.Errorf("%s: before the server runs the prompts are %s", flag, got)
		}
	}
}

func promptNames(h *Hub) string {
	var list []string
	for _, p := range h.Prompts() {
		list = append(list, p.Name)
	}
	return strings.Join(list, " ")
}

func TestOnDemandStartsOnlyWhatIsAsked(t *testing.T) {
	b := newBench(t)
	b.options = func(o *Options) { o.OnDemand = true }
	one, two := b.home+"/one", b.home+"/two"
	b.file(User, `{"mcpServers":{"one":`+b.entry("", "-started", one)+`,"two":`+b.entry("", "-started", two)+`}}`)
	h := b.run()
	if _, err := h.Try(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	h.Reload()
	h.Refresh(t.Context())
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(two); runs(one) != 1 || err == nil {
		t.Errorf("one ran %d times, two %d times", runs(one), runs(two))
	}
}
