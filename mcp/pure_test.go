package mcp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client/transport"
	spec "github.com/mark3labs/mcp-go/mcp"

	"zcoder/internal/approval"
	"zcoder/internal/proc"
)

func TestExposedNames(t *testing.T) {
	long := strings.Repeat("n", 200)
	for _, c := range []struct{ server, tool, want string }{
		{"fs", "read_file", "mcp__fs__read_file"},
		{"a.b", "get-x", "mcp__a_b__get-x"},
		{"s", "x y/é", "mcp__s__x_y__"},
	} {
		if got := exposedName(c.server, c.tool); got != c.want {
			t.Errorf("exposedName(%q, %q) = %q; want %q", c.server, c.tool, got, c.want)
		}
	}
	one, two := exposedName("s", long+"1"), exposedName("s", long+"2")
	if len(one) != maxName || one == two {
		t.Errorf("long names: %d bytes, equal %v", len(one), one == two)
	}
}

func TestEffects(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		tool  string
		hints Hints
		want  approval.Effect
		claim approval.Effect
	}{
		"destructive":              {"get_x", Hints{ReadOnly: &yes, Destructive: &yes}, approval.ExternalWrite, 0},
		"read-only":                {"directory_tree", Hints{ReadOnly: &yes}, approval.Read, 0},
		"writes a closed world":    {"create_file", Hints{ReadOnly: &no, OpenWorld: &no}, approval.WorkspaceWrite, 0},
		"writes an open world":     {"create_file", Hints{ReadOnly: &no, OpenWorld: &yes}, approval.ExternalWrite, 0},
		"writes":                   {"create_file", Hints{ReadOnly: &no}, approval.ExternalWrite, 0},
		"closed world alone":       {"create_file", Hints{OpenWorld: &no}, approval.ExternalWrite, 0},
		"closed world, reads":      {"list_files", Hints{OpenWorld: &no}, approval.Read, 0},
		"get":                      {"get_user", Hints{}, approval.Read, 0},
		"humps":                    {"searchFiles", Hints{}, approval.Read, 0},
		"dashes":                   {"list-repos", Hints{}, approval.Read, 0},
		"upper case":               {"GET_THING", Hints{}, approval.Read, 0},
		"a longer word":            {"getter_x", Hints{}, approval.ExternalWrite, 0},
		"two deeds":                {"get_or_create_user", Hints{}, approval.ExternalWrite, 0},
		"two deeds, and":           {"read_and_delete", Hints{}, approval.ExternalWrite, 0},
		"unknown":                  {"frobnicate", Hints{}, approval.ExternalWrite, 0},
		"read-only, unknown":       {"frobnicate", Hints{ReadOnly: &yes}, approval.Read, 0},
		"read-only, deletes":       {"delete_all", Hints{ReadOnly: &yes}, approval.ExternalWrite, approval.Read},
		"read-only, sends":         {"bulkSend", Hints{ReadOnly: &yes}, approval.ExternalWrite, approval.Read},
		"workspace, sends":         {"send_mail", Hints{ReadOnly: &no, OpenWorld: &no}, approval.ExternalWrite, approval.WorkspaceWrite},
		"read-only, reads updates": {"list_updates_and_posts", Hints{ReadOnly: &yes}, approval.Read, 0},
		"empty":                    {"", Hints{}, approval.ExternalWrite, 0},
	} {
		j := judge(c.tool, c.hints)
		if j.Effect != c.want || j.Claim != c.claim || j.Why == "" {
			t.Errorf("%s: %s is %s, claim %s (%s); want %s, claim %s", name, c.tool, j.Effect, j.Claim, j.Why, c.want, c.claim)
		}
	}
}

func TestAnnotationsOfAWrongTypeAreUnsaid(t *testing.T) {
	for _, text := range []string{
		`{"readOnlyHint":"true"}`, `{"readOnlyHint":true,"destructiveHint":"true"}`, `{"readOnlyHint":false,"readOnlyHint":true}`,
		`{"readOnlyHint":true,"ReadOnlyHint":false}`, `{"READONLYHINT":true}`, `[]`, `true`, ``,
	} {
		d := Definition{Name: "delete_x", Annotations: json.RawMessage(text)}
		if h := d.hints(); h != (Hints{}) {
			t.Errorf("%s counts as a claim", text)
		}
	}
	d := Definition{Name: "x", Annotations: json.RawMessage(`{"title":"T","readOnlyHint":true,"destructiveHint":null}`)}
	if h := d.hints(); h.ReadOnly == nil || !*h.ReadOnly || h.Destructive != nil {
		t.Errorf("hints = %+v", h)
	}
}

func TestNormalise(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"plain":       {`{"type":"object","properties":{"a":{"type":"string","description":"x"}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"string","description":"x"}},"required":["a"]}`},
		"order":       {`{"properties":{"z":{"type":"string"},"a":{"type":"integer"}}}`, `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}}}`},
		"exotic":      {`{"$schema":"x","type":"object","additionalProperties":false,"properties":{"n":{"type":"number","minimum":1,"exclusiveMaximum":9,"default":3,"title":"N","format":"x","pattern":"y"}}}`, `{"type":"object","properties":{"n":{"type":"number"}}}`},
		"ref":         {`{"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"b":{"type":"boolean"}}}}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"boolean"}}}}}`},
		"recursion":   {`{"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","properties":{"next":{"$ref":"#/$defs/A"},"v":{"type":"string"}}}}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{"next":{},"v":{"type":"string"}}}}}`},
		"outside ref": {`{"properties":{"a":{"$ref":"http://evil/x.json"},"b":{"$ref":"#/nowhere"}}}`, `{"type":"object","properties":{"a":{},"b":{}}}`},
		"nullable":    {`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":["integer","null"]}}}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`},
		"choice":      {`{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`},
		"constants":   {`{"properties":{"a":{"anyOf":[{"const":"x"},{"const":"y"}]},"b":{"const":1}}}`, `{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"enum":[1]}}}`},
		"all of":      {`{"properties":{"a":{"allOf":[{"$ref":"#/definitions/B"}],"description":"d"}},"definitions":{"B":{"type":"string","enum":["<",">"]}}}`, `{"type":"object","properties":{"a":{"type":"string","description":"d","enum":["<",">"]}}}`},
		"lists":       {`{"properties":{"a":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}},"minItems":1}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}}}}`},
		"tuple":       {`{"properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}`},
		"top choice":  {`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}}}]}`, `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`},
		"booleans":    {`{"properties":{"a":true,"b":false}}`, `{"type":"object","properties":{"a":{},"b":{}}}`},
		"required":    {`{"properties":{"a":{}},"required":["a","b",3]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`},
		"unknown req": {`{"properties":{"a":{}},"required":["a","b"]}`, `{"type":"object","properties":{"a":{}},"required":["a"]}`},
		"case":        {`{"properties":{"a":{"type":"string"},"A":{"type":"integer"}}}`, `{"type":"object","properties":{"a":{"type":"string"},"A":{"type":"integer"}}}`},
		"none":        {``, emptySchema},
		"true":        {`true`, emptySchema},
		"list":        {`[1]`, emptySchema},
		"string":      {`{"type":"string"}`, emptySchema},
		"broken":      {`{"properties":{`, emptySchema},
	} {
		if got := string(normalise(json.RawMessage(c.in))); got != c.want {
			t.Errorf("%s: %s; want %s", name, got, c.want)
		}
	}
}

func TestNormaliseBoundsDepthAndSize(t *testing.T) {
	deep := strings.Repeat(`{"type":"object","properties":{"x":`, 40) + `{"type":"string"}` + strings.Repeat(`}}`, 40)
	if n := strings.Count(string(normalise(json.RawMessage(deep))), `"x"`); n != maxSchemaDepth+1 {
		t.Errorf("%d levels are left", n)
	}
	var props []string
	for i := range 300 {
		props = append(props, quoted(strings.Repeat("p", 20)+string(rune('a'+i%26))+string(rune('a'+i/26)))+`:{"type":"string","description":"`+strings.Repeat("w", 200)+`"}`)
	}
	wide := normalise(json.RawMessage(`{"properties":{` + strings.Join(props[:120], ",") + `}}`))
	if len(wide) > maxSchemaSize || bytes.Contains(wide, []byte("www")) || len(wide) < 1000 {
		t.Errorf("a wide schema has %d bytes", len(wide))
	}
	if got := normalise(json.RawMessage(`{"properties":{` + strings.Join(props, ",") + `}}`)); string(got) != emptySchema {
		t.Errorf("a schema that is too wide has %d bytes", len(got))
	}
	bomb := `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},"b":{"anyOf":[{"$ref":"#/$defs/c"},{"$ref":"#/$defs/c"}]},"c":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`
	if got := normalise(json.RawMessage(bomb)); len(got) > maxSchemaSize {
		t.Errorf("a bomb has %d bytes", len(got))
	}
}

// realSchemas are those of real servers, with their words taken out.
func realSchemas(t testing.TB) map[string]json.RawMessage {
	data, err := os.ReadFile("testdata/schemas.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []struct {
		Tool   string
		Schema json.RawMessage
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	m := map[string]json.RawMessage{}
	for _, e := range list {
		m[e.Tool] = e.Schema
	}
	return m
}

func TestSchemasOfRealServers(t *testing.T) {
	schemas := realSchemas(t)
	if len(schemas) < 50 {
		t.Fatalf("%d schemas", len(schemas))
	}
	for tool, raw := range schemas {
		out := normalise(raw)
		checkSchema(t, tool, out)
		// Every argument is still there.
		var before, after struct {
			Properties map[string]json.RawMessage
			Required   []string
		}
		if json.Unmarshal(raw, &before) != nil || json.Unmarshal(out, &after) != nil {
			t.Fatalf("%s: not readable", tool)
		}
		for name := range before.Properties {
			if after.Properties[name] == nil {
				t.Errorf("%s: the argument %s is lost", tool, name)
			}
		}
		if !slices.Equal(before.Required, after.Required) {
			t.Errorf("%s: requires %v; want %v", tool, after.Required, before.Required)
		}
	}
}

// checkSchema fails unless a schema has only what every server of models takes.
func checkSchema(t testing.TB, name string, raw json.RawMessage) {
	t.Helper()
	if len(raw) > maxSchemaSize || !json.Valid(raw) {
		t.Fatalf("%s: %d bytes: %.200s", name, len(raw), raw)
	}
	var top map[string]any
	if json.Unmarshal(raw, &top) != nil || top["type"] != "object" || top["properties"] == nil {
		t.Fatalf("%s: not an object with properties: %.200s", name, raw)
	}
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		s, ok := v.(map[string]any)
		if !ok || depth > 2*maxSchemaDepth+4 {
			t.Fatalf("%s: %v at depth %d", name, v, depth)
		}
		for k, v := range s {
			switch k {
			case "type", "description":
				if _, ok := v.(string); !ok {
					t.Fatalf("%s: %s is %v", name, k, v)
				}
			case "enum", "required":
				if _, ok := v.([]any); !ok {
					t.Fatalf("%s: %s is %v", name, k, v)
				}
			case "items":
				walk(v, depth+1)
			case "anyOf":
				for _, one := range v.([]any) {
					walk(one, depth+1)
				}
			case "properties":
				for _, one := range v.(map[string]any) {
					walk(one, depth+1)
				}
			default:
				t.Fatalf("%s: the keyword %q is left", name, k)
			}
		}
	}
	walk(top, 0)
}

func FuzzNormalise(f *testing.F) {
	for _, raw := range realSchemas(f) {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := normalise(raw)
		checkSchema(t, "fuzz", out)
		if again := normalise(out); string(again) != string(out) && len(out) < maxSchemaSize/2 {
			checkSchema(t, "again", again)
		}
	})
}

func TestPlainText(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"escapes":     {"a\x1b[31mb\x1b]0;title\x07c\x1b(Bd", "abcBd"},
		"csi":         {"a\u009b31mb", "ab"},
		"open escape": {"a\x1b[", "a"},
		"zero width":  {"a\u200bb\u2060c\ufeffd", "abcd"},
		"reorders":    {"a\u202eb\u2066c", "abc"},
		"tags":        {"a\U000e0041\U000e0062b", "ab"},
		"selectors":   {"a\ufe0fb\U000e0100c", "abc"},
		"controls":    {"a\x00b\rc\x7fd", "abcd"},
		"lines":       {" a\n\tb ", "a\n\tb"},
		"blanks":      {"a\u00a0b\u3000c", "a b c"},
		"fillers":     {"a\u3164b\u115fc\u2800d", "abcd"},
		"invalid":     {"a\xffb", "ab"},
		"words":       {"Grüße, 世界 🙂", "Grüße, 世界 🙂"},
	} {
		if got := plain(c.in, 100); got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
	if got := plain("abcdef", 3); got != "abc …" {
		t.Errorf("cut: %q", got)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[8m\u200bb", 5)
	f.Fuzz(func(t *testing.T, text string, max int) {
		max = max&0x3ff + 1
		got := plain(text, max)
		if n := utf8.RuneCountInString(got); n > max+2 {
			t.Errorf("%d characters of at most %d", n, max)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && r != '…' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%U is left in %q", r, got)
			}
		}
	})
}

func TestEntries(t *testing.T) {
	for name, c := range map[string]struct {
		entry string
		want  string // part of the problem, "" for none
		check func(Server) bool
	}{
		"stdio":        {`{"command":"x","args":["a"],"env":{"K":"v"}}`, "", func(s Server) bool { return s.Kind == Stdio && s.Enabled }},
		"http":         {`{"url":"https://x/"}`, "", func(s Server) bool { return s.Kind == HTTP }},
		"streamable":   {`{"type":"streamableHttp","url":"https://x/"}`, "", func(s Server) bool { return s.Kind == HTTP }},
		"sse":          {`{"type":"sse","url":"https://x/"}`, "", func(s Server) bool { return s.Kind == SSE }},
		"off":          {`{"command":"x","enabled":false}`, "", func(s Server) bool { return !s.Enabled }},
		"disabled":     {`{"command":"x","disabled":true}`, "", func(s Server) bool { return !s.Enabled }},
		"times":        {`{"command":"x","startupTimeout":1.5,"requestTimeout":300}`, "", func(s Server) bool { return s.StartTimeout.Milliseconds() == 1500 && s.CallTimeout.Seconds() == 300 }},
		"unknown":      {`{"command":"x","autoApprove":["y"],"icon":1}`, "", func(s Server) bool { return slices.Equal(s.Unknown, []string{"autoApprove", "icon"}) }},
		"oauth":        {`{"url":"https://x/","oauth":{"clientId":"c","scopes":["a"]}}`, "", func(s Server) bool { return s.OAuth.ClientID == "c" }},
		"no command":   {`{"args":["x"]}`, `"command" is missing`, nil},
		"no url":       {`{"type":"http"}`, `"url" is missing`, nil},
		"both":         {`{"command":"x","type":"http","url":"https://x/"}`, `"url" and a "command"`, nil},
		"both, stdio":  {`{"command":"x","type":"stdio","url":"https://x/"}`, `both "command" and "url"`, nil},
		"kind":         {`{"type":"carrier pigeon","command":"x"}`, `must be stdio, http or sse`, nil},
		"args":         {`{"command":"x","args":"a b"}`, `"args" must be a list of texts`, nil},
		"null":         {`{"command":null}`, `"command" must be a text`, nil},
		"twice":        {`{"command":"x","command":"y"}`, `stands twice`, nil},
		"twice, case":  {`{"command":"x","Command":"y"}`, `stands twice`, nil},
		"env":          {`{"command":"x","env":{"A=B":"y"}}`, `no name of a variable`, nil},
		"time":         {`{"command":"x","requestTimeout":0}`, `number of seconds up to 3600`, nil},
		"not an entry": {`["x"]`, `not an object`, nil},
	} {
		s, err := parseServer("s", User, json.RawMessage(c.entry))
		switch {
		case c.want == "" && (err != nil || !c.check(s)):
			t.Errorf("%s: %+v, %v", name, s, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v; want %q in it", name, err, c.want)
		}
	}
}

func TestOneBadEntryDoesNotHideTheOthers(t *testing.T) {
	list, err := parseFile([]byte(`{"mcpServers":{"bad":{"args":1},"good":{"command":"x"},"b d":{"command":"x"}}}`), User)
	if err != nil || len(list) != 3 || list[0].problem == "" || list[1].problem != "" || list[2].problem == "" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestEditsOfAFile(t *testing.T) {
	entry := json.RawMessage(`{"command":"x"}`)
	for name, c := range map[string]struct {
		in, want string
		edit     func([]byte) ([]byte, error)
	}{
		"new file":      {"", "{\n  \"mcpServers\": {\n    \"n\": {\n      \"command\": \"x\"\n    }\n  }\n}\n", func(d []byte) ([]byte, error) { return withEntry(d, "n", entry) }},
		"no servers":    {`{"a":1}`, `{"a":1, "mcpServers": ` + "{\n  \"n\": {\n    \"command\": \"x\"\n  }\n}}", func(d []byte) ([]byte, error) { return withEntry(d, "n", entry) }},
		"replace":       {`{"mcpServers":{"n":{"old":1},"m":{}}}`, "{\"mcpServers\":{\"n\":{\n  \"command\": \"x\"\n},\"m\":{}}}", func(d []byte) ([]byte, error) { return withEntry(d, "n", entry) }},
		"remove first":  {`{"mcpServers":{ "a":{}, "b":{} }}`, `{"mcpServers":{ "b":{} }}`, func(d []byte) ([]byte, error) { return withoutEntry(d, "a") }},
		"remove last":   {`{"mcpServers":{ "a":{}, "b":{} }}`, `{"mcpServers":{ "a":{} }}`, func(d []byte) ([]byte, error) { return withoutEntry(d, "b") }},
		"remove only":   {`{"mcpServers":{ "a":{} },"z":0}`, `{"mcpServers":{},"z":0}`, func(d []byte) ([]byte, error) { return withoutEntry(d, "a") }},
		"set field":     {`{"mcpServers":{"a":{"enabled" : true,"x":1}}}`, `{"mcpServers":{"a":{"enabled" : false,"x":1}}}`, func(d []byte) ([]byte, error) { return withField(d, "a", "enabled", []byte("false")) }},
		"byte order":    {"\ufeff{\"mcpServers\":{\"a\":{},\"b\":{}}}", "\ufeff{\"mcpServers\":{\"b\":{}}}", func(d []byte) ([]byte, error) { return withoutEntry(d, "a") }},
		"quoted braces": {`{"mcpServers":{"a":{"command":"}{\"","args":["\\"]},"b":{}}}`, `{"mcpServers":{"b":{}}}`, func(d []byte) ([]byte, error) { return withoutEntry(d, "a") }},
	} {
		got, err := c.edit([]byte(c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
	if _, err := withoutEntry([]byte(`{"mcpServers":{}}`), "a"); err == nil {
		t.Error("a server that is not there was removed")
	}
}

func FuzzRegistryFile(f *testing.F) {
	f.Add([]byte(`{"mcpServers":{"a":{"command":"x","enabled":true},"b":{"url":"https://x/${A:-b}"}},"other":[1,{"x":"}"}]}`))
	f.Add([]byte("\ufeff{\n\t\"mcpServers\" : {\n\t\t\"a\" : {\"command\":\"x\"}\n\t}\n}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseFile(data, Project)
		if err != nil || len(list) == 0 {
			return
		}
		name := list[0].Name
		added, err := withEntry(data, "brand-new", json.RawMessage(`{"command":"x"}`))
		if err != nil {
			t.Fatalf("add: %v", err)
		}
		after, err := parseFile(added, Project)
		if err != nil || (len(after) != len(list)+1 && !slices.ContainsFunc(list, func(e fileEntry) bool { return e.Name == "brand-new" })) {
			t.Fatalf("add: %d entries of %d, %v: %q", len(after), len(list), err, added)
		}
		for i := range list {
			if list[i].Name != "brand-new" && string(after[i].Raw) != string(list[i].Raw) {
				t.Fatalf("add changed %q", list[i].Name)
			}
		}
		removed, err := withoutEntry(data, name)
		if err != nil {
			t.Fatalf("remove: %v", err)
		}
		if after, err := parseFile(removed, Project); err != nil || len(after) != len(list)-1 {
			t.Fatalf("remove: %d entries of %d, %v: %q", len(after), len(list), err, removed)
		}
	})
}

func TestExpansion(t *testing.T) {
	env := map[string]string{"A": "one", "EMPTY": "", "API_TOKEN": "t"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	for name, c := range map[string]struct{ in, want, err string }{
		"plain":      {"$A $$ ${", "", "no closing brace"},
		"value":      {"x${A}y${A}", "xoney" + "one", ""},
		"default":    {"${B:-two}${EMPTY:-three}", "twothree", ""},
		"empty":      {"[${EMPTY}]", "[]", ""},
		"unset":      {"${B}", "", "the variable B is not set"},
		"no name":    {"${A B}", "", "names no variable"},
		"not nested": {"${B:-${A}}", "${A}", ""},
		"dollar":     {"$A", "$A", ""},
	} {
		x := &expander{lookup: lookup}
		got, err := x.expand(c.in, "args")
		if c.err == "" && name != "not nested" && (err != nil || got != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %q, %v; want %q %q", name, got, err, c.want, c.err)
		}
	}
	guarded := &expander{lookup: lookup, guarded: true}
	if _, err := guarded.expand("${API_TOKEN}", "headers"); err == nil {
		t.Error("a credential goes into a header of a project's server")
	}
	if _, err := guarded.expand("${MY_SECRET:-x}", "url"); err == nil {
		t.Error("a credential that is not set has a default in a url")
	}
	if got, err := guarded.expand("${API_TOKEN}", "env"); err != nil || got != "t" {
		t.Errorf("a declared variable: %q, %v", got, err)
	}
}

// FuzzStdioLines reads output in any pieces: it never panics, keeps bounded memory and
// gives an answer to the call that waits.
func FuzzStdioLines(f *testing.F) {
	f.Add([]byte("hello\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"), 3)
	f.Add([]byte("\ufeff{\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}}\r\n{\"method\":\"a\",\"id\":\"q\"}\n{\"method\":\"n\"}\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		s := newStdio(proc.Spec{}, &ring{})
		s.max, s.cancel = 1<<10, func() {}
		ch := make(chan *transport.JSONRPCResponse, 1)
		s.pending[spec.NewRequestId(int64(1)).String()] = ch
		size = size&0xff + 1
		for i := 0; i < len(data); i += size {
			s.read(data[i:min(i+size, len(data))])
			if cap(s.line) > 1<<20 || len(s.line) > s.max {
				t.Fatalf("%d bytes of a line are kept", len(s.line))
			}
		}
	})
}

func TestOfApprovalOnlyDescriptionsAreNamed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "_test.go") && strings.Contains(string(text), "approval.Gate") {
			t.Errorf("%s names the gate: a tool describes and acts, it does not authorise", file)
		}
	}
}

func TestNamesContradictClaims(t *testing.T) {
	yes, no := true, false
	readOnly, workspace := Hints{ReadOnly: &yes}, Hints{ReadOnly: &no, OpenWorld: &no}
	for _, tt := range []struct {
		name  string
		hints Hints
		want  approval.Effect
	}{
		{"get_file", readOnly, approval.Read},
		{"list_workflow_runs", readOnly, approval.Read},
		{"deleteall", readOnly, approval.ExternalWrite},
		{"sendmail", readOnly, approval.ExternalWrite},
		{"HTTPPost", readOnly, approval.ExternalWrite},
		{"deletes_repo", readOnly, approval.ExternalWrite},
		{"getDeleteAll", Hints{}, approval.ExternalWrite},
		{"query_delete_rows", Hints{}, approval.ExternalWrite},
		{"get_posts", Hints{}, approval.Read},
		{"edit_file", workspace, approval.WorkspaceWrite},
		{"delete_account", workspace, approval.ExternalWrite},
		{"run_shell", workspace, approval.ExternalWrite},
	} {
		if got := judge(tt.name, tt.hints).Effect; got != tt.want {
			t.Errorf("%s with %+v = %s; want %s", tt.name, tt.hints, got, tt.want)
		}
	}
}
