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
	Words    func() []string        // what its first word can be, where Usage does not list it; may be nil
}

func (s Sub) takes(name string) bool {
	return name == "workspace" || name == "help" || slices.Contains(s.Settings, name)
}

// FindSub tells whether args call a subcommand: its name is the first word behind the
// flags of the main program. It returns the arguments without the name; LoadSub judges
// whether the subcommand takes the flags before it.
func FindSub(args []string, subs []Sub) (sub Sub, rest []string, ok bool) {
	at := firstWord(args)
	if at == len(args) {
		return Sub{}, nil, false
	}
	i := slices.IndexFunc(subs, func(s Sub) bool { return s.Name == args[at] })
	if i < 0 {
		return Sub{}, nil, false
	}
	return subs[i], slices.Concat(args[:at], args[at+1:]), true
}

// firstWord returns the index of the first word behind the flags. It is len(args) when
// there is none, and when "--" or a flag that is not known stands before it.
func firstWord(args []string) int {
	var valued map[string]bool
	for at := 0; at < len(args); at++ {
		arg := args[at]
		if arg == "--" {
			return len(args)
		}
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			return at
		}
		if valued == nil {
			valued = valuedFlags()
		}
		next, known := takesNext(arg, valued)
		if !known {
			return len(args)
		}
		if next {
			at++
		}
	}
	return len(args)
}

// valuedFlags tells for each flag of the table, long or short, whether a value follows.
func valuedFlags() map[string]bool {
	valued := map[string]bool{}
	for _, s := range Table() {
		for _, name := range []string{s.Flag, s.Short} {
			if name != "" {
				valued[name] = s.Kind != Bool
			}
		}
		for _, sw := range s.Switches {
			valued[sw.Flag] = false
		}
	}
	return valued
}

// takesNext reports whether the value of the flag in arg is the next argument, and
// whether the flag is known.
func takesNext(arg string, valued map[string]bool) (next, known bool) {
	if long, ok := strings.CutPrefix(arg, "--"); ok {
		name, _, given := strings.Cut(long, "=")
		value, known := valued[name]
		return value && !given, known
	}
	for i := 1; i < len(arg); i++ {
		value, known := valued[arg[i:i+1]]
		if !known || value {
			return i == len(arg)-1, known
		}
	}
	return false, true
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
	if _, known := valuedFlags()[name]; known {
		sub := strings.TrimPrefix(l.command, "zcoder ")
		return &UsageError{
			fmt.Sprintf("%s takes no flag %s", l.command, dashed(name)),
			append(hint, fmt.Sprintf("a request that begins with the word %q stands behind --", sub)),
		}
	}
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
