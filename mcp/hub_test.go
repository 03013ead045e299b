package mcp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/mcpstub"
	"zcoder/tools"
)

// stubEnv makes the test binary be the stub server.
const stubEnv = "ZCODER_TEST_MCPSTUB"

func TestMain(m *testing.M) {
	if os.Getenv(stubEnv) == "1" {
		os.Exit(mcpstub.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// bench is a home and a workspace.
type bench struct {
	t          *testing.T
	home, root string
	env        map[string]string
	options    func(*Options)
}

func newBench(t *testing.T) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, home: t.TempDir(), root: root, env: map[string]string{"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "AWS_SECRET_ACCESS_KEY": "x"}}
}

// entry is the text of an entry that runs the stub.
func (b *bench) entry(extra string, args ...string) string {
	exe, err := os.Executable()
	if err != nil {
		b.t.Fatal(err)
	}
	list, _ := json.Marshal(args)
	if args == nil {
		list = []byte("[]")
	}
	text := `{"command":` + quoted(exe) + `,"args":` + string(list) + `,"env":{"` + stubEnv + `":"1"}`
	if extra != "" {
		text += "," + extra
	}
	return text + "}"
}

func (b *bench) write(scope Scope, name, entry string) {
	b.t.Helper()
	b.file(scope, `{"mcpServers":{`+quoted(name)+`:`+entry+`}}`)
}

func (b *bench) file(scope Scope, text string) {
	b.t.Helper()
	path := places{home: b.home, root: b.root}.fileOf(scope)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) open() *Hub {
	o := Options{
		Home: b.home, Root: b.root, Lookup: func(n string) (string, bool) { v, ok := b.env[n]; return v, ok },
		Version: "test", StartTimeout: 10 * time.Second, CallTimeout: 10 * time.Second, MaxOutput: 4000, Now: time.Now,
	}
	if b.options != nil {
		b.options(&o)
	}
	return Open(o)
}

// run opens a hub whose servers run until the test is over.
func (b *bench) run() *Hub {
	h := b.open()
	h.Start(b.t.Context())
	b.t.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return h
}

// trust approves the project's file and its tools as they are.
func (b *bench) trust(h *Hub, names ...string) {
	b.t.Helper()
	rv, err := h.Review("")
	if err != nil {
		b.t.Fatal(err)
	}
	if err := h.Approve(rv); err != nil {
		b.t.Fatal(err)
	}
	for _, n := range names {
		tr, err := h.ReviewTools(b.t.Context(), n)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := h.Confirm(tr, false); err != nil {
			b.t.Fatal(err)
		}
	}
}

// lineOf waits for a server's first list and returns the tools that are offered.
func offered(t *testing.T, h *Hub) map[string]tools.Tool {
	t.Helper()
	h.AwaitFirst(t.Context())
	m := map[string]tools.Tool{}
	for _, tool := range h.Refresh(t.Context()).Tools {
		m[tool.Spec().Name] = tool
	}
	return m
}

type allowAll struct{}

func (allowAll) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}

type noRecord struct{}

func (noRecord) Record(approval.Record) error { return nil }

// call calls a tool as the loop does, with a gate that allows all.
func call(ctx context.Context, t *testing.T, tool tools.Tool, args string, progress tools.Progress) tools.Result {
	t.Helper()
	if tool == nil {
		t.Fatal("the tool is not offered")
	}
	decoded, err := tools.Decode(tool.Spec(), json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	action, err := tool.Plan(ctx, tools.Call{ID: "c1", Args: decoded})
	if err != nil {
		t.Fatal(err)
	}
	gate := &approval.Gate{Policy: allowAll{}, Recorder: noRecord{}}
	permit, err := gate.Authorize(ctx, action.Request())
	if err != nil {
		t.Fatal(err)
	}
	res, err := action.Do(ctx, permit, progress)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func names(m map[string]tools.Tool) string { return strings.Join(sortedKeys(m), " ") }

func TestStdioServerOfBothGenerations(t *testing.T) {
	for name, args := range map[string][]string{
		"2025-11-25":                      nil,
		"2026-07-28":                      {"-modern"},
		"legacy that dies of the unknown": {"-unknown", "death"},
		"pages":                           {"-page", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write(User, "stub", b.entry("", args...))
			h := b.run()
			got := offered(t, h)
			if want := "mcp__stub__delete_all mcp__stub__echo mcp__stub__note mcp__stub__send_mail"; names(got) != want {
				t.Fatalf("tools = %s; want %s\nlog: %v", names(got), want, h.Servers())
			}
			res := call(t.Context(), t, got["mcp__stub__echo"], `{"text":"hello"}`, nil)
			if res.Status != tools.OK || res.Text != "echo: hello" {
				t.Errorf("result = %+v", res)
			}
		})
	}
}
