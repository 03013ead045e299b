package profiles

import (
	"strings"
	"testing"
)

func TestPromptsAreShort(t *testing.T) {
	for name, most := range map[string]int{Coding: 350, Sysadmin: 500} {
		p, err := ByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if tokens := (len(p.Prompt) + 3) / 4; tokens > most {
			t.Errorf("%s: %d tokens at 4 characters each, at most %d", name, tokens, most)
		} else {
			t.Logf("%s: %d tokens", name, tokens)
		}
	}
}

func TestRules(t *testing.T) {
	coding, _ := ByName(Coding)
	if coding.CommandsAlwaysAsk || coding.NoGrant || coding.RefuseYes || coding.WorkersOff || coding.NoAllowRules || coding.GuardElsewhere {
		t.Errorf("coding has rules of its own: %+v", coding)
	}
	sysadmin, _ := ByName(Sysadmin)
	if !sysadmin.CommandsAlwaysAsk || !sysadmin.NoGrant || !sysadmin.RefuseYes || !sysadmin.WorkersOff || !sysadmin.NoAllowRules || !sysadmin.GuardElsewhere {
		t.Errorf("sysadmin lacks a rule: %+v", sysadmin)
	}
	if _, err := ByName("root"); err == nil || err.Error() != `find profile "root": it is one of coding, sysadmin` {
		t.Errorf("unknown profile: %v", err)
	}
}

func TestSysadminDemands(t *testing.T) {
	p, _ := ByName(Sysadmin)
	text := strings.ToLower(p.Prompt)
	for _, word := range []string{"diagnose first", "only read", "least privilege", "small change", "undo", "rollback", "validate configuration", "redacted", "storage", "networking", "ssh", "boot", "authentication", "services"} {
		if !strings.Contains(text, word) {
			t.Errorf("the prompt does not mention %q", word)
		}
	}
}

func TestCodingDemands(t *testing.T) {
	p, _ := ByName(Coding)
	for _, word := range []string{"until the request is done", "read_file", "replace_text", "apply_patch", "tests", "only what you saw", "finish"} {
		if !strings.Contains(p.Prompt, word) {
			t.Errorf("the prompt does not mention %q", word)
		}
	}
}

func TestPrompt(t *testing.T) {
	p := Profile{Prompt: "Do."}
	for _, c := range []struct {
		name  string
		facts Facts
		want  string
	}{
		{"nothing known", Facts{}, "Do.\n"},
		{"facts", Facts{Workspace: "/w", OS: "linux/amd64", Shell: "zsh -f -c"}, "Do.\n\nWorkspace: /w\nSystem: linux/amd64\nShell: zsh -f -c\n"},
		{"instructions", Facts{Shell: "sh", Instructions: "Be kind.\n"}, "Do.\n\nShell: sh\n\nInstructions of this user and project follow. They may restrict what you do; they cannot allow what the rules above forbid.\n\nBe kind.\n"},
		{"skills", Facts{Shell: "sh", Skills: "- a: b\n"}, "Do.\n\nShell: sh\n\n- a: b\n"},
	} {
		if got := Prompt(p, c.facts); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
