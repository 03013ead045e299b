package app

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"zcoder/docs"
	"zcoder/internal/config"
	"zcoder/internal/manual"
)

// topic is the text of a document.
func topic(t *testing.T, name string) string {
	t.Helper()
	for _, topic := range docs.Topics() {
		if topic.Name == name {
			return topic.Text
		}
	}
	t.Fatalf("there is no document %q", name)
	return ""
}

func TestInterfacePageNamesEveryCommand(t *testing.T) {
	page := topic(t, "interface")
	for _, c := range (&desk{}).commands() {
		for _, name := range append([]string{c.Name}, c.Aliases...) {
			name, edits := strings.CutSuffix(name, "!")
			if !regexp.MustCompile("`/" + regexp.QuoteMeta(name) + "[` ]").MatchString(page) {
				t.Errorf("docs/interface.md lacks /%s", name)
			}
			if edits && !strings.Contains(page, "with a `!` behind the name") {
				t.Errorf("docs/interface.md does not say what /%s! is", name)
			}
		}
		row := regexp.MustCompile("(?m)^\\| `/.*" + regexp.QuoteMeta(c.Name) + "\\b.*$").FindString(page)
		if row != "" && c.Group == "" && strings.Contains(row, " *") != c.DuringTurn && !strings.Contains(row, "/agents") {
			t.Errorf("docs/interface.md is wrong about /%s during a turn: %s", c.Name, row)
		}
	}
}

// TestDocumentsNameFlagsThatThereAre looks at every `zcoder …` of the documents, in a
// line of commands and within a text.
func TestDocumentsNameFlagsThatThereAre(t *testing.T) {
	call := regexp.MustCompile("(?m)(?:^|`|\\| |›)zcoder( [^`\n]*)")
	flag := regexp.MustCompile(`(?:^| |\[)--([a-z][a-z-]*)`)
	subs := configSubs(subcommands())
	checked := 0
	for _, page := range docs.Topics() {
		for _, m := range call.FindAllStringSubmatch(page.Text, -1) {
			line, _, _ := strings.Cut(m[1], " -- ")
			sub, _, _ := config.FindSub(strings.Fields(line), subs)
			for _, f := range flag.FindAllStringSubmatch(line, -1) {
				checked++
				if !knows(sub, f[1]) {
					t.Errorf("docs/%s.md: zcoder %s has no flag --%s: %s", page.Name, sub.Name, f[1], m[0])
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d flags were found in the documents", checked)
	}
}

// knows reports whether a subcommand, or the main program, has a flag.
func knows(sub config.Sub, name string) bool {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	if sub.Flags != nil {
		sub.Flags(own)
	}
	for _, s := range config.Table() {
		if s.Flag != name && !slices.ContainsFunc(s.Switches, func(w config.Switch) bool { return w.Flag == name }) {
			continue
		}
		if sub.Name == "" || s.Name == "workspace" || s.Name == "help" || slices.Contains(sub.Settings, s.Name) {
			return true
		}
	}
	return own.Lookup(name) != nil
}

// TestManPageHasItsSections: the parts of documents that it takes are there.
func TestManPageHasItsSections(t *testing.T) {
	for _, part := range manPage(configSubs(subcommands())).Parts {
		if part.Text == "" && len(part.Entries) == 0 && part.Title != "OPTIONS" {
			t.Errorf("the section %q of the manual page is empty", part.Title)
		}
	}
	if manual.Section(topic(t, "interface"), "In the terminal") == "" {
		t.Error("the manual page has lost the keys")
	}
}
