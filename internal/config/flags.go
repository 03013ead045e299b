package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Sub is a subcommand as the command line sees it.
type Sub struct {
	Name     string
	Usage    string                 // what follows the name, e.g. "show | get NAME"
	Meaning  string                 // one line for --help
	Flags    func(s *pflag.FlagSet) // adds its own flags; may be nil
	Settings []string               // names of settings whose flags it takes besides --workspace
}

func (s Sub) takes(name string) bool {
	return name == "workspace" || name == "help" || slices.Contains(s.Settings, name)
}

// FindSub tells whether args call a subcommand: its name is the first word, at most
// --workspace stands before it. It returns the arguments without the name.
func FindSub(args []string, subs []Sub) (sub Sub, rest []string, ok bool) {
	at := 0
	for at < len(args) && args[at] != "--" {
		switch arg := args[at]; {
		case arg == "-w" || arg == "--workspace":
			at += 2
			continue
		case strings.HasPrefix(arg, "--workspace=") || strings.HasPrefix(arg, "-w") && len(arg) > 2:
			at++
			continue
		}
		i := slices.IndexFunc(subs, func(s Sub) bool { return s.Name == args[at] })
		if i < 0 {
			break
		}
		return subs[i], slices.Concat(args[:at], args[at+1:]), true
	}
	return Sub{}, nil, false
}

// givenFlag is a flag as it stood on the command line.
type givenFlag struct {
	setting Setting
	flag    string
	text    string
}

// flagValue hands what pflag reads to the loader, which judges it later: all
// errors then name their place in the same way.
type flagValue struct {
	l       *loader
	setting Setting
	flag    string
	fixed   string // the value that a switch gives
	kind    string
}

func (f *flagValue) String() string { return "" }
func (f *flagValue) Type() string   { return f.kind }

func (f *flagValue) Set(text string) error {
	if f.fixed != "" && text != "true" {
		return errors.New("it takes no value")
	}
	if f.fixed != "" {
		text = f.fixed
	}
	f.l.given = append(f.l.given, givenFlag{f.setting, f.flag, text})
	return nil
}

// addFlags adds the flag and the switches of a setting, unless a subcommand has
// its own by the name.
func (l *loader) addFlags(s Setting) {
	if s.Flag != "" {
		l.addFlag(&flagValue{l: l, setting: s, flag: s.Flag, kind: s.Arg}, s.Short, s.Kind == Bool)
	}
	for _, sw := range s.Switches {
		l.addFlag(&flagValue{l: l, setting: s, flag: sw.Flag, fixed: sw.Value}, "", true)
	}
}

func (l *loader) addFlag(f *flagValue, short string, bare bool) {
	if l.flags.Lookup(f.flag) != nil {
		return
	}
	if short != "" && l.flags.ShorthandLookup(short) != nil {
		short = ""
	}
	added := l.flags.VarPF(f, f.flag, short, "")
	if bare {
		added.NoOptDefVal = "true"
	}
}

// parseFlags reads the command line and turns pflag's errors into ours.
func (l *loader) parseFlags() error {
	err := l.flags.Parse(l.src.Args)
	if err == nil {
		return l.checkWords()
	}
	hint := []string{"see " + l.command + " --help"}
	var missing *pflag.ValueRequiredError
	if errors.As(err, &missing) {
		if missing.GetSpecifiedName() == "resume" {
			l.given = append(l.given, givenFlag{find(l.table, "resume"), "resume", ""})
			return nil
		}
		return &UsageError{fmt.Sprintf("flag %s needs a value", dashed(missing.GetSpecifiedName())), hint}
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		return l.unknownFlag(unknown.GetSpecifiedName(), hint)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return &UsageError{fmt.Sprintf("flag --%s: %q is not allowed: %v", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap()), hint}
	}
	return &UsageError{err.Error(), hint}
}

func (l *loader) unknownFlag(name string, hint []string) error {
	var names []string
	l.flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := Nearest(name, names); near != "" && len(name) > 1 {
		hint = append([]string{"did you mean --" + near + "?"}, hint...)
	}
	return &UsageError{fmt.Sprintf("unknown flag %s", dashed(name)), hint}
}

// checkWords refuses a flag of ours among the words of a prompt: what was meant is
// not clear, and words never act as flags.
func (l *loader) checkWords() error {
	if l.command != "zcoder" || l.flags.ArgsLenAtDash() == 0 {
		return nil
	}
	for i, word := range l.flags.Args() {
		name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if word == "--" {
			break
		}
		if i > 0 && strings.HasPrefix(word, "--") && l.flags.Lookup(name) != nil {
			return &UsageError{
				fmt.Sprintf("flag --%s stands behind the words of the prompt", name),
				[]string{"put flags before the prompt, or -- before a prompt that holds them"},
			}
		}
	}
	return nil
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// flagLayer judges the flags that were given. The last of one flag counts; two
// different flags for one setting exclude each other.
func (l *loader) flagLayer() (map[string]entry, error) {
	layer := map[string]entry{}
	by := map[string]givenFlag{}
	for _, g := range l.given {
		name := g.setting.Name
		if before, ok := by[name]; ok && before.flag != g.flag && before.text != g.text {
			return layer, &UsageError{Text: fmt.Sprintf("flags --%s and --%s exclude each other", before.flag, g.flag)}
		}
		by[name] = g
		value, err := g.setting.parse(g.text)
		if err != nil {
			return layer, &UsageError{Text: fmt.Sprintf("flag --%s: %v", g.flag, err)}
		}
		if path, ok := value.(string); ok && g.setting.Kind == Path {
			value = expandHome(path, l.src.UserHome)
		}
		layer[name] = entry{g.setting, value, "flag --" + g.flag}
	}
	return layer, nil
}
