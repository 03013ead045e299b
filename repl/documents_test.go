package repl

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// letters are the letters that a function decides about.
func letters(t *testing.T, file, function string) []string {
	t.Helper()
	_, body, found := strings.Cut(read(t, file), "\nfunc "+function+"(")
	body, _, _ = strings.Cut(body, "\n}\n")
	var list []string
	for _, line := range regexp.MustCompile(`(?m)^\tcase '.*:$`).FindAllString(body, -1) {
		for _, m := range regexp.MustCompile(`'(.)'`).FindAllStringSubmatch(line, -1) {
			list = append(list, m[1])
		}
	}
	if !found || len(list) == 0 {
		t.Fatalf("%s: %s decides about no letter", file, function)
	}
	return list
}

// TestInterfacePageNamesEveryKey compares docs/interface.md with what the code decides
// about.
func TestInterfacePageNamesEveryKey(t *testing.T) {
	page := read(t, "../docs/interface.md")
	_, dialogs, found := strings.Cut(page, "## Approval")
	if !found {
		t.Fatal("docs/interface.md has no section about dialogs")
	}
	for _, l := range append(letters(t, "input.go", "(c *console) control"), letters(t, "editor.go", "(e *editor) editCtrl")...) {
		if !strings.Contains(page, "Ctrl-"+strings.ToUpper(l)) {
			t.Errorf("docs/interface.md lacks Ctrl-%s", strings.ToUpper(l))
		}
	}
	for _, l := range letters(t, "editor.go", "(e *editor) editAlt") {
		if !strings.Contains(page, "Alt-"+strings.ToUpper(l)) {
			t.Errorf("docs/interface.md lacks Alt-%s", strings.ToUpper(l))
		}
	}
	for _, l := range letters(t, "approval.go", "(a *approval) letter") {
		if l != " " && l != "Y" && l != "A" && l != "N" && !strings.Contains(dialogs, "`"+l+"`") {
			t.Errorf("docs/interface.md lacks the key %s of the dialog", l)
		}
	}
	for _, name := range []string{"Enter", "Alt-Enter", "Tab", "Backspace", "Alt-Backspace", "Esc", "Up", "Down", "Left", "Right", "Home", "End", "PageUp", "PageDown", "Delete", "Space"} {
		if !strings.Contains(page, name) {
			t.Errorf("docs/interface.md lacks the key %s", name)
		}
	}
}

func TestInterfacePageNamesOurCommands(t *testing.T) {
	page := read(t, "../docs/interface.md")
	edit := func(context.Context, string, TTY) (string, error) { return "", nil }
	for _, k := range (&console{o: Options{Edit: edit}}).commands() {
		for _, name := range append([]string{k.Name}, k.Aliases...) {
			if !regexp.MustCompile("`/" + regexp.QuoteMeta(name) + "[` ]").MatchString(page) {
				t.Errorf("docs/interface.md lacks /%s", name)
			}
		}
	}
}
