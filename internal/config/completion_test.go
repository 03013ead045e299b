package config

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// completedSubs are subcommands with what is hard to quote.
func completedSubs() []Sub {
	return []Sub{
		{Name: "shelf", Usage: "[list] | show ID | rename ID TITLE", Meaning: "don't lose: [it]", Settings: []string{"profile"},
			Flags: func(s *pflag.FlagSet) {
				s.BoolP("long", "l", false, `it's "all": [there] is \`)
				s.String("out", "", "a `FILE`")
			}},
		{Name: "help", Usage: "[TOPIC]", Meaning: "show it", Words: func() []string { return []string{"safety", "skills"} }},
	}
}

func TestCompletionNamesEveryFlag(t *testing.T) {
	long := map[string]string{"bash": "--", "zsh": "'--", "fish": " -l "}
	for _, shell := range Shells() {
		script := Completion(shell, completedSubs())
		for _, s := range Table() {
			if s.Flag != "" && !strings.Contains(script, long[shell]+s.Flag) {
				t.Errorf("%s: --%s is missing", shell, s.Flag)
			}
			for _, sw := range s.Switches {
				if !strings.Contains(script, long[shell]+sw.Flag) {
					t.Errorf("%s: --%s is missing", shell, sw.Flag)
				}
			}
		}
		for _, want := range []string{"coding sysadmin", "shelf", "list show rename", "safety skills", long[shell] + "out"} {
			if !strings.Contains(script, want) {
				t.Errorf("%s: %q is missing", shell, want)
			}
		}
	}
	if got := Completion("csh", nil); got != "" {
		t.Errorf("csh: %q", got)
	}
}

func TestWordsOfUsage(t *testing.T) {
	for usage, want := range map[string]string{
		"show [--json]":            "show",
		"[list] | show ID":         "list show",
		"tail [N] | verify":        "tail verify",
		"add NAME -- C… | add URL": "add",
		"test 'COMMAND'":           "test",
		"NAME":                     "",
		"[--model NAME]…":          "",
		"":                         "",
	} {
		if got := strings.Join(Sub{Usage: usage}.words(), " "); got != want {
			t.Errorf("words of %q = %q, want %q", usage, got, want)
		}
	}
}

// TestFlagsMeanOneThing: the scripts hold one list of the flags that a value follows.
func TestFlagsMeanOneThing(t *testing.T) {
	for _, s := range Table() {
		if s.Flag != "" && (s.Arg != "") != (s.Kind != Bool) {
			t.Errorf("--%s: a value follows, or not", s.Flag)
		}
	}
}

func TestMisspelt(t *testing.T) {
	names := []string{"sessions", "help", "mcp", "eval", "pull"}
	for _, tt := range []struct{ word, want string }{
		{"sesions", "sessions"}, {"sessoins", "sessions"}, {"session", "sessions"}, {"helpp", "help"},
		{"sessions", ""}, {"hello", ""}, {"map", ""}, {"explain", ""}, {"", ""},
	} {
		if got := Misspelt(tt.word, names); got != tt.want {
			t.Errorf("Misspelt(%q): got %q, want %q", tt.word, got, tt.want)
		}
	}
}
