package mcp

import (
	"os"
	"strings"
	"testing"
)

// given approves what an editor names, as an editor's session does.
func (b *bench) approveGiven(h *Hub) Review {
	b.t.Helper()
	rv, err := h.ReviewGiven()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := h.Approve(rv); err != nil {
		b.t.Fatal(err)
	}
	return rv
}

func standings(h *Hub) string {
	var list []string
	for _, s := range h.Servers() {
		list = append(list, s.Name+" "+string(s.Scope)+": "+string(s.Standing))
	}
	return strings.Join(list, ", ")
}

// TestServersOfAnEditor: they are trusted by their whole content, for one workspace,
// and no secret of them is stored.
func TestServersOfAnEditor(t *testing.T) {
	b := newBench(t)
	text := func(more string) []byte {
		return []byte(`{"mcpServers":{"ed":{"command":"/bin/true","env":{"API_KEY":"hunter2","HOME_IS":"${HOME}"}` + more + `}}}`)
	}
	offer := text("")
	b.options = func(o *Options) { o.Given = offer }
	h := b.open()
	if got := standings(h); got != "ed editor: not trusted" {
		t.Fatal(got)
	}
	if n := h.Notices(); len(n) != 0 {
		t.Errorf("notices %q: whoever runs the session asks", n)
	}
	rv := b.approveGiven(h)
	if strings.Contains(rv.Text, "hunter2") || !strings.Contains(rv.Text, "HOME_IS=${HOME}") || len(rv.Names) != 1 {
		t.Errorf("shown for %v:\n%s", rv.Names, rv.Text)
	}
	if got := standings(h); got != "ed editor: ready" {
		t.Error(got)
	}
	if data, err := os.ReadFile(h.at.store().path()); err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("stored: %s %v", data, err)
	}
	if e, err := h.entry("ed"); err != nil || e.ready.Env["HOME_IS"] != "${HOME}" {
		t.Errorf("a variable is put in: %v %v", e.ready.Env, err)
	}
	if got := standings(b.open()); got != "ed editor: ready" {
		t.Errorf("next time: %s", got)
	}
	root := b.root
	b.root = b.t.TempDir()
	if got := standings(b.open()); got != "ed editor: not trusted" {
		t.Errorf("in another workspace: %s", got)
	}
	b.root = root
	offer = text(`,"args":["-x"]`)
	h = b.open()
	if got := standings(h); got != "ed editor: changed" {
		t.Errorf("with another argument: %s", got)
	}
	if rv, err := h.ReviewGiven(); err != nil || !strings.Contains(rv.Text, `+  arg      "-x"`) {
		t.Errorf("what changed is not shown: %v\n%s", err, rv.Text)
	}
	offer = text("")
	h = b.open()
	if err := h.Untrust("ed"); err != nil {
		t.Error(err)
	}
	if got := standings(h); got != "ed editor: not trusted" {
		t.Errorf("after the trust was taken back: %s", got)
	}
}

// TestEditorServersGiveWay: a name that is registered stays what it is.
func TestEditorServersGiveWay(t *testing.T) {
	b := newBench(t)
	b.write(User, "ed", b.entry(""))
	b.options = func(o *Options) {
		o.Given = []byte(`{"mcpServers":{"ed":{"command":"/bin/false"},"web":{"type":"http","url":"ftp://x/"}}}`)
	}
	h := b.open()
	if got := standings(h); got != "ed user: ready, ed editor: overridden, web editor: broken" {
		t.Error(got)
	}
	if e, err := h.entry("ed"); err != nil || e.Scope != User {
		t.Errorf("the name stands for %v %v", e.Scope, err)
	}
	if rv, err := h.ReviewGiven(); err != nil || len(rv.Names) != 0 {
		t.Errorf("asked for %v, %v", rv.Names, err)
	}
}
