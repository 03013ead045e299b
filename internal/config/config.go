// Package config holds the settings table, one entry per setting, and reads the
// layers over it: default < user file < environment < flag. The same table makes
// --help, `zcoder config show` and docs/configuration.md.
//
// It knows names, kinds, ranges and where a value came from. It reads nothing by
// itself: arguments, environment and files come in through Sources, and app is the
// only caller. It does not know what a setting does.
package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// FileName is the name of the user's settings file in $ZCODER_HOME.
const FileName = "config.toml"

// Sources is where settings come from.
type Sources struct {
	Args     []string                          // the arguments without the program's name
	Env      func(name string) (string, bool)  // like os.LookupEnv; nil: no variables
	ReadFile func(path string) ([]byte, error) // like os.ReadFile; nil: no file
	UserHome string                            // the user's home directory, or ""
}

// UsageError says that the command line or a setting is wrong. The program ends
// with exit status 2.
type UsageError struct {
	Text  string   // what is wrong, lower case, with the value and its place
	Hints []string // what to do instead, each for a line of its own
}

// Error returns the text without the hints.
func (e *UsageError) Error() string { return e.Text }

// Values are the settings of this run. They do not change; any goroutine may read
// them.
//
// The getters panic for a name that the table does not hold or that has another
// kind: that is a mistake in the program, not in its use.
type Values struct {
	entries  map[string]entry
	problems map[string]string // of lenient settings, by name
	args     []string
	dash     int
}

type entry struct {
	setting Setting
	value   any // string, bool, int, time.Duration or []string, by kind
	source  string
}

// Load reads the settings of the main program. With --help or --version it stops
// at the flags, so that a broken file does not stand in the way. Every error is a
// *UsageError.
func Load(src Sources) (*Values, error) {
	l := newLoader(src)
	l.flags.SetInterspersed(false)
	for _, s := range l.table {
		l.addFlags(s)
	}
	return l.load()
}

// LoadSub reads the settings for a subcommand, whose name is no longer in
// src.Args. Its own flags, --workspace, --help and those in sub.Settings may stand
// before and after its words. Every error is a *UsageError.
func LoadSub(sub Sub, src Sources) (*Values, error) {
	l := newLoader(src)
	l.command = "zcoder " + sub.Name
	if sub.Flags != nil {
		sub.Flags(l.flags)
	}
	for _, s := range l.table {
		if sub.takes(s.Name) {
			l.addFlags(s)
		}
	}
	return l.load()
}

// loader collects the layers of one run.
type loader struct {
	src     Sources
	table   []Setting
	flags   *pflag.FlagSet
	command string
	given   []givenFlag
	entries map[string]entry
	// problems are values of lenient settings that are not allowed.
	problems map[string]string
}

func newLoader(src Sources) *loader {
	l := &loader{src: src, table: Table(), command: "zcoder", entries: map[string]entry{}, problems: map[string]string{}}
	if l.src.Env == nil {
		l.src.Env = func(string) (string, bool) { return "", false }
	}
	l.flags = pflag.NewFlagSet("zcoder", pflag.ContinueOnError)
	l.flags.Usage = func() {}
	l.flags.SortFlags = false
	return l
}

func (l *loader) load() (*Values, error) {
	parseErr := l.parseFlags()
	flags, err := l.flagLayer()
	if asked := flags["help"].value == true || flags["version"].value == true; asked {
		parseErr, err = nil, nil
	} else if parseErr == nil && err == nil {
		err = l.lowerLayers()
	}
	if parseErr != nil {
		return nil, parseErr
	}
	if err != nil {
		return nil, err
	}
	for name, e := range flags {
		l.entries[name] = e
	}
	if err := l.fillDefaults(); err != nil {
		return nil, err
	}
	return &Values{entries: l.entries, problems: l.problems, args: l.flags.Args(), dash: l.flags.ArgsLenAtDash()}, nil
}

// lowerLayers reads the file and, over it, the environment.
func (l *loader) lowerLayers() error {
	home, err := l.home()
	if err != nil {
		return err
	}
	if err := l.fileLayer(filepath.Join(home.value.(string), FileName)); err != nil {
		return err
	}
	l.entries["home"] = home
	for _, s := range l.table {
		text, ok := l.src.Env(s.Env)
		if s.Env == "" || !ok || text == "" || s.Name == "home" {
			continue
		}
		if err := l.set(s, text, "variable "+s.Env, "env "+s.Env); err != nil {
			return err
		}
	}
	return nil
}

// home finds the settings directory, which the file is read from.
func (l *loader) home() (entry, error) {
	s := find(l.table, "home")
	if path, _ := l.src.Env(s.Env); path != "" {
		path = expandHome(path, l.src.UserHome)
		if !filepath.IsAbs(path) {
			return entry{}, &UsageError{Text: fmt.Sprintf("variable %s: %q is not an absolute path", s.Env, path)}
		}
		return entry{s, filepath.Clean(path), "env " + s.Env}, nil
	}
	base, _ := l.src.Env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(base) {
		base = filepath.Join(l.src.UserHome, ".config")
	}
	if !filepath.IsAbs(base) {
		return entry{}, &UsageError{Text: "find the settings directory: the user has no home directory", Hints: []string{"set " + s.Env + " to an absolute path"}}
	}
	return entry{s, filepath.Join(base, "zcoder"), sourceDefault}, nil
}

// set parses text and stores it as the value of the highest layer so far. where
// names the place in errors, source in `config show`.
func (l *loader) set(s Setting, text, where, source string) error {
	value, err := s.parse(text)
	if err != nil {
		return l.refuse(s, where+": "+err.Error(), source)
	}
	l.put(s, value, source)
	return nil
}

// refuse is the error of a value that is not allowed. For a lenient setting it is
// nil, and the default stands.
func (l *loader) refuse(s Setting, problem, source string) error {
	if !s.Lenient {
		return &UsageError{Text: problem}
	}
	value, err := s.parse(s.Default)
	if err != nil {
		return fmt.Errorf("default of %s: %w", s.Name, err)
	}
	l.put(s, value, source)
	l.problems[s.Name] = problem
	return nil
}

func (l *loader) put(s Setting, value any, source string) {
	if path, ok := value.(string); ok && s.Kind == Path {
		value = expandHome(path, l.src.UserHome)
	}
	l.entries[s.Name] = entry{s, value, source}
	delete(l.problems, s.Name) // of a lower layer
}

func (l *loader) fillDefaults() error {
	for _, s := range l.table {
		if _, ok := l.entries[s.Name]; ok {
			continue
		}
		value, err := s.parse(s.Default)
		if err != nil {
			return &UsageError{Text: fmt.Sprintf("default of %s: %v", s.Name, err)}
		}
		l.entries[s.Name] = entry{s, value, sourceDefault}
	}
	home, _ := l.entries["home"].value.(string)
	if e := l.entries["sessions-dir"]; e.source == sourceDefault {
		e.value = filepath.Join(home, "sessions")
		l.entries["sessions-dir"] = e
	}
	return nil
}

const sourceDefault = "default"

// expandHome replaces a leading "~/", which no shell expands in a file or behind a
// "=".
func expandHome(path, home string) string {
	if home == "" || path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	return filepath.Join(home, path[1:])
}

// String returns a setting of kind Text, Path or Enum.
func (v *Values) String(name string) string { return get[string](v, name) }

// Bool returns a setting of kind Bool.
func (v *Values) Bool(name string) bool { return get[bool](v, name) }

// Int returns a setting of kind Int or AutoInt; "auto" is 0.
func (v *Values) Int(name string) int { return get[int](v, name) }

// Duration returns a setting of kind Duration.
func (v *Values) Duration(name string) time.Duration { return get[time.Duration](v, name) }

// List returns a setting of kind List. The caller does not change it.
func (v *Values) List(name string) []string { return get[[]string](v, name) }

// Source tells which layer set the value: "default", "FILE:LINE", "env NAME" or
// "flag --NAME".
func (v *Values) Source(name string) string { return v.entry(name).source }

// Environ returns the settings that are not at their default, but for these names, as
// variables for another run of the program: NAME=value, secrets included.
func (v *Values) Environ(except ...string) []string {
	var env []string
	for _, s := range Table() {
		e := v.entry(s.Name)
		if s.Env == "" || e.source == sourceDefault || slices.Contains(except, s.Name) {
			continue
		}
		text := s.format(e.value)
		if d, ok := e.value.(time.Duration); ok {
			text = d.String()
		}
		env = append(env, s.Env+"="+text)
	}
	return env
}

// Problem tells what is wrong with the value of a lenient setting, with its place; ""
// for nothing. The setting has its default then.
func (v *Values) Problem(name string) string { return v.problems[name] }

// Args returns the words after the flags.
func (v *Values) Args() []string { return v.args }

// ArgsBeforeDash returns how many of Args stand before a "--", or -1 without one.
func (v *Values) ArgsBeforeDash() int { return v.dash }

func (v *Values) entry(name string) entry {
	e, ok := v.entries[name]
	if !ok {
		panic(fmt.Sprintf("config: there is no setting %q", name))
	}
	return e
}

func get[T any](v *Values, name string) T {
	value, ok := v.entry(name).value.(T)
	if !ok {
		panic(fmt.Sprintf("config: setting %q holds a %T", name, v.entry(name).value))
	}
	return value
}
