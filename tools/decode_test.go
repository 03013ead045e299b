package tools

import (
	"encoding/json"
	"strings"
	"testing"
)

var testSpec = Spec{Name: "run_command", Params: []Param{
	{Name: "command", Type: String, Required: true, Aliases: []string{"cmd"}},
	{Name: "cwd", Type: String},
	{Name: "timeout_seconds", Type: Integer, Min: 1, Max: 3600},
	{Name: "literal", Type: Boolean},
	{Name: "mode", Type: String, Enum: []string{"content", "files"}},
}}

func TestDecode(t *testing.T) {
	for _, tt := range []struct{ name, raw, want, err string }{
		{"object", `{"command":"ls","timeout_seconds":10}`, `{"command":"ls","timeout_seconds":10}`, ""},
		{"sorted keys", `{"timeout_seconds":10,"command":"ls"}`, `{"command":"ls","timeout_seconds":10}`, ""},
		{"no HTML escapes", `{"command":"a <b> & c"}`, `{"command":"a <b> & c"}`, ""},
		{"object in a string", `"{\"command\":\"ls\"}"`, `{"command":"ls"}`, ""},
		{"double-encoded", `"\"{\\\"command\\\":\\\"ls\\\"}\""`, `{"command":"ls"}`, ""},
		{"number as string", `{"command":"ls","timeout_seconds":"10"}`, `{"command":"ls","timeout_seconds":10}`, ""},
		{"whole float", `{"command":"ls","timeout_seconds":10.0}`, `{"command":"ls","timeout_seconds":10}`, ""},
		{"flag as string", `{"command":"ls","literal":"true"}`, `{"command":"ls","literal":true}`, ""},
		{"number for text", `{"command":42}`, `{"command":"42"}`, ""},
		{"alias", `{"cmd":"ls"}`, `{"command":"ls"}`, ""},
		{"quoted key", `{"\"command\"":"ls"}`, `{"command":"ls"}`, ""},
		{"one key in capitals", `{"Command":"ls"}`, `{"command":"ls"}`, ""},
		{"null is absent", `{"command":"ls","cwd":null}`, `{"command":"ls"}`, ""},
		{"trailing comma", `{"command":"ls",}`, `{"command":"ls"}`, ""},
		{"single quotes", `{'command':'say "hi" it\'s'}`, `{"command":"say \"hi\" it's"}`, ""},
		{"Python words", `{"command":"ls","literal":True,"cwd":None}`, `{"command":"ls","literal":true}`, ""},
		{"line break in a string", "{\"command\":\"a\nb\"}", `{"command":"a\nb"}`, ""},
		{"duplicate key in single quotes", `{'command':'ls','command':'rm',}`, "", "ambiguous arguments"},
		{"words in a string stay", `{"command":"True None, }",}`, `{"command":"True None, }"}`, ""},
		{"unquoted value", `{"command":ls}`, "", "not valid JSON"},
		{"duplicate key", `{"command":"ls","command":"rm"}`, "", "ambiguous arguments"},
		{"case-variant key", `{"command":"ls","Command":"rm -rf x"}`, "", "ambiguous arguments"},
		{"long s folds", `{"timeout_seconds":1,"timeout_ſeconds":2}`, "", "ambiguous arguments"},
		{"alias beside the name", `{"command":"ls","cmd":"rm"}`, "", `"command" is given twice, as "command" and as "cmd"`},
		{"name behind an alias", `{"cmd":"ls","command":"rm"}`, "", `"command" is given twice, as "cmd" and as "command"`},
		{"trailing data", `{"command":"ls"}{"command":"rm"}`, "", "text after the arguments"},
		{"missing", `{}`, "", `"command" is missing`},
		{"empty", ``, "", `"command" is missing`},
		{"null", `null`, "", `"command" is missing`},
		{"list", `[]`, "", "not an object"},
		{"cut short", `"{\"command\": \"a"`, "", "end too early"},
		{"unknown key", `{"command":"ls","time_seconds":1}`, "", `did you mean "timeout_seconds"?`},
		{"out of range", `{"command":"ls","timeout_seconds":7200}`, "", "from 1 to 3600, not 7200"},
		{"fraction", `{"command":"ls","timeout_seconds":1.5}`, "", "whole number"},
		{"object for text", `{"command":{"a":1}}`, "", "must be a string"},
		{"list for text", `{"command":["ls"]}`, "", "must be a string"},
		{"not in the list", `{"command":"ls","mode":"names"}`, "", "one of content, files"},
		{"half a surrogate", `{"command":"a\ud800"}`, "", "surrogate"},
		{"a real replacement character", `{"command":"a\ufffd"}`, "{\"command\":\"a\uFFFD\"}", ""},
		{"invalid UTF-8", "{\"command\":\"a\xff\"}", "", "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args, err := Decode(testSpec, json.RawMessage(tt.raw))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("Decode(%s) = %s, %v; want an error with %q", tt.raw, args.JSON(), err, tt.err)
				}
				return
			}
			if err != nil || string(args.JSON()) != tt.want {
				t.Errorf("Decode(%s) = %s, %v; want %s", tt.raw, args.JSON(), err, tt.want)
			}
		})
	}
}

func TestDecodeWithSchemaKeepsNestedValues(t *testing.T) {
	spec := Spec{Name: "mcp__x__y", Schema: json.RawMessage(`{"type":"object"}`)}
	args, err := Decode(spec, json.RawMessage(`{"b":{"n":12345678901234567890,"a":[1,{"z":null}]},"a":"x"}`))
	if want := `{"a":"x","b":{"a":[1,{"z":null}],"n":12345678901234567890}}`; err != nil || string(args.JSON()) != want {
		t.Errorf("Decode = %s, %v; want %s", args.JSON(), err, want)
	}
	if _, err := Decode(spec, json.RawMessage(`{"b":{"k":1,"K":2}}`)); err == nil {
		t.Error("Decode took a nested case-variant key")
	}
}

// FuzzDecode checks that whatever is accepted decodes to itself: there is one
// reading of the arguments, and it is the canonical one.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"command":"ls"}`, `"{\"command\":\"ls\"}"`, `{"command":"ls","Command":"rm"}`, `{"command":1e3,"cwd":true}`, `[`, `{"command":"\ud800"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := Decode(testSpec, json.RawMessage(raw))
		if err != nil {
			return
		}
		again, err := Decode(testSpec, args.JSON())
		if err != nil || string(again.JSON()) != string(args.JSON()) {
			t.Fatalf("%q decodes to %s, that to %s, %v", raw, args.JSON(), again.JSON(), err)
		}
	})
}

func TestLookup(t *testing.T) {
	r, err := NewRegistry(specOnly{testSpec})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run_command", "run_command\n", "functions.run_command"} {
		if _, err := r.Lookup(name); err != nil {
			t.Errorf("Lookup(%q): %v", name, err)
		}
	}
	for _, name := range []string{"Bash", "Run_Command", "", "run-command"} {
		if _, err := r.Lookup(name); err == nil || !strings.Contains(err.Error(), "run_command") {
			t.Errorf("Lookup(%q) = %v; want an error that lists the tools", name, err)
		}
	}
}

func TestCutKeepsHeadAndTail(t *testing.T) {
	got := Cut(strings.Repeat("é", 50)+"\n"+strings.Repeat("z", 100), 50)
	want := strings.Repeat("é", 30) + "\n[… 101 characters (1 lines) left out …]\n" + strings.Repeat("z", 20)
	if got != want {
		t.Errorf("Cut = %q; want %q", got, want)
	}
	if whole := strings.Repeat("é", 50); Cut(whole, 50) != whole {
		t.Error("Cut shortened a text of exactly the bound")
	}
}

func TestLead(t *testing.T) {
	for _, tt := range []struct{ name, raw, want string }{
		{"the first parameter, not the first argument", `{"cwd":"x","command":"ls","no":1}`, "ls"},
		{"by an alias", `{"cmd":"ls"}`, "ls"},
		{"in a string", `"{\"command\":\"ls\"}"`, "ls"},
		{"no text", `{"command":["ls"]}`, ""},
		{"absent", `{"cwd":"x"}`, ""},
		{"no object", `[1]`, ""},
		{"broken", `{"command":`, ""},
	} {
		if got := Lead(testSpec, json.RawMessage(tt.raw)); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := Lead(Spec{Name: "none"}, json.RawMessage(`{"a":"b"}`)); got != "" {
		t.Errorf("a tool without parameters: got %q", got)
	}
}
