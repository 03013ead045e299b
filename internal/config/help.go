package config

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

const (
	helpWidth  = 80
	helpColumn = 26
)

// ExitStatus is one exit status of the program.
type ExitStatus struct {
	Code    int
	Meaning string
}

// ExitStatuses returns the exit statuses in the order of help.
func ExitStatuses() []ExitStatus {
	return []ExitStatus{
		{0, "finished"},
		{1, "the turn ended in an error, a limit or the loop detector"},
		{2, "the command line or a setting is wrong"},
		{3, "finished, but something was refused because nobody could be asked, or the model said that it is blocked"},
		{129, "ended by the hang-up signal"},
		{130, "ended by an interrupt"},
		{143, "ended by the terminate signal"},
	}
}

// Help writes the text for --help: flags by section, subcommands, exit statuses.
func Help(w io.Writer, subs []Sub) error {
	var b strings.Builder
	b.WriteString(`usage: zcoder [flags] [words of the first prompt]
       zcoder [flags] --prompt TEXT
       zcoder SUBCOMMAND [words and flags]

An agent in the terminal that works with your own models.
Without a terminal on stdin and without --prompt, stdin is the prompt.
Flags stand before the words; a prompt that begins with -- stands behind --.
`)
	section := ""
	for _, s := range Table() {
		if s.Flag == "" && len(s.Switches) == 0 {
			continue
		}
		if s.Section != section {
			section = s.Section
			fmt.Fprintf(&b, "\n%s\n", section)
		}
		writeFlags(&b, s)
	}
	if len(subs) > 0 {
		b.WriteString("\nSubcommands\n")
		for _, sub := range subs {
			helpRow(&b, strings.TrimSpace("  "+sub.Name+" "+sub.Usage), sub.Meaning)
		}
	}
	b.WriteString("\nExit statuses\n")
	for _, e := range ExitStatuses() {
		helpRow(&b, fmt.Sprintf("%3d", e.Code), e.Meaning)
	}
	b.WriteString("\n")
	for _, line := range fill("Every setting has a variable, most also a key in $ZCODER_HOME/"+FileName+"; the order is default, file, variable, flag. See: zcoder config show. The documents: zcoder help", helpWidth) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// HelpSub writes the text for `zcoder SUB --help`.
func HelpSub(w io.Writer, sub Sub) error {
	var b strings.Builder
	fmt.Fprintf(&b, "usage: %s\n\n", strings.TrimSpace("zcoder "+sub.Name+" "+sub.Usage))
	for _, line := range fill(sub.Meaning, helpWidth) {
		b.WriteString(line + "\n")
	}
	b.WriteString("\nFlags\n")
	if sub.Flags != nil {
		own := pflag.NewFlagSet(sub.Name, pflag.ContinueOnError)
		own.SortFlags = false
		sub.Flags(own)
		own.VisitAll(func(f *pflag.Flag) {
			arg, text := pflag.UnquoteUsage(f)
			helpRow(&b, flagNames(f.Name, f.Shorthand, arg), text)
		})
	}
	for _, s := range Table() {
		if sub.takes(s.Name) {
			writeFlags(&b, s)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeFlags(b *strings.Builder, s Setting) {
	if s.Flag != "" {
		helpRow(b, flagNames(s.Flag, s.Short, s.Arg), s.meaning())
	}
	for _, sw := range s.Switches {
		helpRow(b, flagNames(sw.Flag, "", ""), sw.Meaning)
	}
}

func flagNames(long, short, arg string) string {
	names := "      --" + long
	if short != "" {
		names = "  -" + short + ", --" + long
	}
	return strings.TrimRight(names+" "+arg, " ")
}

func (s Setting) shownDefault() string {
	if s.Shown != "" {
		return s.Shown
	}
	return s.Default
}

// helpRow writes a name and its meaning in two columns; a long name has a line of
// its own.
func helpRow(b *strings.Builder, name, text string) {
	name = "  " + strings.TrimPrefix(name, "  ")
	lines := fill(text, helpWidth-helpColumn)
	if len(name) > helpColumn-2 {
		b.WriteString(name + "\n")
		name = ""
	}
	for _, line := range lines {
		fmt.Fprintf(b, "%-*s%s\n", helpColumn, name, line)
		name = ""
	}
}

// fill breaks text between words into lines of at most width bytes.
func fill(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
