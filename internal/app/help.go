package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"zcoder/docs"
	"zcoder/internal/config"
	"zcoder/internal/manual"
)

// Widths of a page of help, in columns.
const (
	pageWidth = 80  // where there is no terminal
	pageMax   = 100 // longer lines are hard to read
	pageMin   = 30
)

// helpCommand is `zcoder help`: the documents and the manual page.
func helpCommand() subcommand {
	var man bool
	sub := config.Sub{Name: "help", Usage: "[TOPIC]", Meaning: "list the documents, or show one of them, or the flags of a subcommand", Words: topicNames,
		Flags: func(s *pflag.FlagSet) { s.BoolVar(&man, "man", false, "print the page for man instead") }}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		subs := configSubs(subcommands())
		args := v.Args()
		switch {
		case man && len(args) == 0:
			return printed(p, manPage(subs).Roff())
		case man || len(args) > 1:
			return statusUsage, subUsage("help", "it takes one topic")
		case len(args) == 0:
			return printed(p, topicList())
		}
		return helpTopic(p, subs, args[0])
	}}
}

func printed(p Process, text string) (int, error) {
	if _, err := p.Stdout.WriteString(text); err != nil {
		return statusFailed, err
	}
	return statusOK, nil
}

// helpTopic prints a document, or the flags of the subcommand of that name. A name with
// docs/ and .md is one, too: messages and links have it so.
func helpTopic(p Process, subs []config.Sub, name string) (int, error) {
	name = strings.TrimSuffix(strings.TrimPrefix(name, "docs/"), ".md")
	for _, t := range docs.Topics() {
		if t.Name == name {
			return printed(p, manual.Text(t.Text, pageColumns(p)))
		}
	}
	names := topicNames()
	for _, sub := range subs {
		if sub.Name == name {
			return statusOK, config.HelpSub(p.Stdout, sub)
		}
		names = append(names, sub.Name)
	}
	e := &config.UsageError{Text: fmt.Sprintf("help: there is no topic %q", name), Hints: []string{"zcoder help lists the topics"}}
	if near := config.Nearest(name, names); near != "" {
		e.Hints = slices.Insert(e.Hints, 0, fmt.Sprintf("did you mean %q?", near))
	}
	return statusUsage, e
}

func topicNames() []string {
	var names []string
	for _, t := range docs.Topics() {
		names = append(names, t.Name)
	}
	return names
}

func topicList() string {
	var b strings.Builder
	b.WriteString("usage: zcoder help TOPIC\n\nTopics\n")
	for _, t := range docs.Topics() {
		fmt.Fprintf(&b, "  %-16s %s\n", t.Name, t.Title)
	}
	b.WriteString("\nzcoder --help lists the flags, zcoder SUBCOMMAND --help those of a subcommand.\nIn a conversation /help lists the commands.\n")
	return b.String()
}

// pageColumns is how wide a page is printed.
func pageColumns(p Process) int {
	if !isTerminal(p.Stdout) {
		return pageWidth
	}
	cols, _, err := term.GetSize(int(p.Stdout.Fd()))
	if err != nil || cols == 0 {
		return pageWidth
	}
	return max(pageMin, min(cols-1, pageMax))
}

// manPage puts the manual page together: the tables of the program and parts of its
// documents.
func manPage(subs []config.Sub) manual.Page {
	part := func(title, topic, section string) manual.Part {
		return manual.Part{Title: title, Text: docSection(topic, section)}
	}
	parts := []manual.Part{
		{Title: "SYNOPSIS", Text: "`zcoder` [*flags*] [*words of the first prompt*]\n\n`zcoder` [*flags*] `--prompt` *TEXT*\n\n`zcoder` *SUBCOMMAND* [*words and flags*]"},
		{Title: "DESCRIPTION", Text: manDescription},
		{Title: "OPTIONS"},
	}
	parts = append(parts, entryParts(config.FlagGroups())...)
	parts = append(parts, manual.Part{Title: "SUBCOMMANDS", Entries: subEntries(subs)},
		part("IN THE TERMINAL", "interface", "In the terminal"),
		part("APPROVAL", "interface", "Approval"),
		part("ONE REQUEST", "interface", "One request"),
		part("WHAT IS NOT PROTECTED", "safety", "What is not protected"),
		manual.Part{Title: "ENVIRONMENT AND SETTINGS FILE", Text: manSettings})
	parts = append(parts, entryParts(config.VariableGroups())...)
	return manual.Page{Name: "zcoder", Version: version, Summary: "an agent in the terminal that works with your own models",
		Parts: append(parts, exitPart(), manual.Part{Title: "SEE ALSO", Text: manSeeAlso})}
}

const manDescription = `An agent that reads, edits and tests in one directory tree, the workspace, with a model that you run
yourself, such as with Ollama. It asks before it runs a command, and can undo what a turn did to the files.

Words after the flags are the first request. With ` + "`--prompt`" + `, or without a terminal on standard input, it does one
request and ends. A request that begins with the name of a subcommand stands behind ` + "`--`" + `.`

const manSettings = "Each setting has a variable, most also a key in `$ZCODER_HOME/config.toml`; a flag is above a variable, " +
	"that above the file. `zcoder config show` prints each value and where it comes from."

const manSeeAlso = "`zcoder help` lists the documents, `zcoder help TOPIC` shows one; `zcoder doctor` checks what zcoder needs."

func exitPart() manual.Part {
	part := manual.Part{Title: "EXIT STATUS"}
	for _, e := range config.ExitStatuses() {
		part.Entries = append(part.Entries, manual.Entry{Name: fmt.Sprint(e.Code), Meaning: e.Meaning})
	}
	return part
}

func subEntries(subs []config.Sub) []manual.Entry {
	var list []manual.Entry
	for _, sub := range subs {
		list = append(list, manual.Entry{Name: strings.TrimSpace(sub.Name + " " + sub.Usage), Meaning: sub.Meaning})
	}
	return list
}

func entryParts(groups []config.Group) []manual.Part {
	var parts []manual.Part
	for _, g := range groups {
		part := manual.Part{Title: g.Title, Sub: true}
		for _, e := range g.Entries {
			part.Entries = append(part.Entries, manual.Entry(e))
		}
		parts = append(parts, part)
	}
	return parts
}

// docSection is a section of a document, which a test knows to be there.
func docSection(topic, title string) string {
	for _, t := range docs.Topics() {
		if t.Name == topic {
			return manual.Section(t.Text, title)
		}
	}
	return ""
}
