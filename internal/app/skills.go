package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/termtext"
	"zcoder/repl"
	"zcoder/skills"
)

// cmdSkills lists the skills, or looks for them again.
func (d *desk) cmdSkills(_ context.Context, ui repl.UI, arg string) error {
	switch arg {
	case "":
	case "reload":
		before, _ := d.w.stable()
		d.w.guide.library.Reload()
		if err := d.w.assemble(); err != nil {
			return err
		}
		if now, _ := d.w.stable(); now != before {
			ui.Print("the list of skills changed; the next request reads the conversation anew")
		}
	default:
		return withHint(fmt.Errorf("/skills %q", arg), "say /skills or /skills reload; /skill NAME activates one")
	}
	var active []string
	for _, a := range skills.ActiveIn(d.conv().History()) {
		active = append(active, a.Name)
	}
	ui.Print(strings.Join(d.w.skillLines(active), "\n"))
	if arg == "" && len(d.w.guide.library.Set().Skills) == 0 {
		ui.Print("/skills reload looks for them again")
	}
	return nil
}

// skillLines describe what was found, for a person.
func (w *workbench) skillLines(active []string) []string {
	set := w.guide.library.Set()
	var lines []string
	for _, k := range set.Skills {
		mark := "  "
		if slices.Contains(active, k.Name) {
			mark = "* "
		}
		lines = append(lines, fmt.Sprintf("%s%s (%s) %s", mark, k.Name, k.Of, k.Description), "    "+termtext.Line(w.shown(k.Dir)))
		for _, n := range k.Notes {
			lines = append(lines, "    note: "+termtext.Line(n))
		}
	}
	if len(set.Skills) == 0 {
		lines = append(lines, "there are no skills; `zcoder help skills` says where they go")
	}
	return append(lines, w.unusedLines()...)
}

func (w *workbench) unusedLines() []string {
	set := w.guide.library.Set()
	var lines []string
	for _, s := range set.Shadowed {
		lines = append(lines, fmt.Sprintf("shadowed: %s is hidden by %s", termtext.Line(w.shown(s.Dir)), termtext.Line(w.shown(s.By))))
	}
	for _, i := range set.Ignored {
		lines = append(lines, fmt.Sprintf("ignored: %s: %s", termtext.Line(w.shown(i.Path)), termtext.Line(i.Reason)))
	}
	return lines
}

// cmdSkill activates a skill by name.
func (d *desk) cmdSkill(_ context.Context, ui repl.UI, args string) error {
	name, text, _ := strings.Cut(strings.TrimSpace(args), " ")
	if name == "" {
		return withHint(fmt.Errorf("/skill needs a name"), "/skills lists them")
	}
	record, already, err := d.w.guide.library.Activate(name, skills.ActiveIn(d.conv().History()))
	switch {
	case err != nil:
		return withHint(err, "/skills lists what there is")
	case already:
		ui.Print("the skill " + name + " is active already")
	default:
		d.conv().Emit(event.Event{Kind: event.Note, Text: record})
		ui.Print("the skill " + name + " is active; it grants no permission")
	}
	if text = strings.TrimSpace(text); text != "" {
		ui.Submit(text)
	}
	return nil
}

func (d *desk) completeSkill(prefix string) []string {
	var names []string
	for _, k := range d.w.guide.library.Set().Skills {
		if strings.HasPrefix(k.Name, prefix) {
			names = append(names, k.Name)
		}
	}
	return names
}

// skillPrefix is `$name` at the start of a message.
var skillPrefix = regexp.MustCompile(`^\$([a-z0-9-]{1,64})(?:\s|$)`)

// activateNamed makes the skill active that a message begins with, if there is one of
// that name: other words with a dollar are words.
func (w *workbench) activateNamed(c *conversation, text string) []event.Event {
	m := skillPrefix.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	if _, ok := w.guide.library.Set().Find(m[1]); !ok {
		return nil
	}
	record, already, err := w.guide.library.Activate(m[1], skills.ActiveIn(c.History()))
	switch {
	case err != nil:
		return []event.Event{{Kind: event.Warning, Text: err.Error()}}
	case already:
		return nil
	}
	return []event.Event{{Kind: event.Info, Text: "the skill " + m[1] + " is active; it grants no permission"}, {Kind: event.Note, Text: record}}
}

// printSkills prints the list that the model gets; what is not used goes to stderr.
func (w *workbench) printSkills() error {
	text, _ := w.guide.library.Catalogue(w.v.Int("skill-catalog-max-bytes"))
	if text == "" {
		fmt.Fprintln(w.p.Stderr, "there are no skills; `zcoder help skills` says where they go")
	} else if _, err := io.WriteString(w.p.Stdout, text+"\n"); err != nil {
		return err
	}
	for _, line := range w.unusedLines() {
		fmt.Fprintln(w.p.Stderr, line)
	}
	return nil
}

// skillsCommand is `zcoder skills`.
func skillsCommand() subcommand {
	sub := config.Sub{Name: "skills", Usage: "list | lint DIR", Meaning: "list the skills in force, or check a skill: frontmatter, size, secrets, hidden text, injection"}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		args := v.Args()
		switch {
		case len(args) == 0, len(args) == 1 && args[0] == "list":
			w, err := open(p, v)
			if err != nil {
				return statusFailed, err
			}
			fmt.Fprintln(p.Stdout, termtext.Safe(strings.Join(w.skillLines(nil), "\n")))
			return statusOK, w.close()
		case len(args) == 2 && args[0] == "lint":
			return lintSkills(p, v, args[1])
		}
		return statusUsage, subUsage("skills", "say list, or lint DIR")
	}}
}

// lintSkills prints what is wrong with a skill, and returns 1 for errors.
func lintSkills(p Process, v *config.Values, dir string) (int, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(p.Dir, dir)
	}
	found, err := skills.Lint(dir, v.Int("skill-max-bytes"))
	if err != nil {
		return statusUsage, &config.UsageError{Text: err.Error(), Hints: []string{"name the directory of a skill, or one that holds skills"}}
	}
	bad := 0
	for _, f := range found {
		if f.Error {
			bad++
		}
		fmt.Fprintln(p.Stdout, termtext.Line(f.String()))
	}
	if bad > 0 {
		fmt.Fprintln(p.Stderr, plural(bad, "error", "errors"))
		return statusFailed, nil
	}
	return statusOK, nil
}
