package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind is the type of a setting.
type Kind uint8

// The kinds of settings.
const (
	Text     Kind = iota
	Path          // a file name; a leading ~/ is the user's home
	Bool          // true/false, 1/0, on/off, yes/no
	Int           // between Min and Max
	AutoInt       // "auto" or an Int
	Duration      // seconds (900) or Go notation (15m); Min and Max in seconds
	Enum          // one of Enum; those that are booleans in every spelling
	List          // several texts; in one line separated by commas
)

// Setting is one row of the table. Env and Key come from the name when they are
// empty; "-" means that there is none.
type Setting struct {
	Name     string
	Flag     string // long flag without dashes; "" means none
	Short    string // one letter
	Env      string
	Key      string // in config.toml
	Kind     Kind
	Default  string
	Shown    string // the default in help, when it depends on the user
	Min, Max int
	Enum     []string
	Unit     string
	Arg      string // stands for the value in help
	Meaning  string
	Section  string // set by Table
	Switches []Switch
	Check    func(string) error // more to check of a Text
	Secret   bool               // never shown
	FlagOnly bool               // asks for something to be done; no variable, no key
	// Lenient means that a value that is not allowed does not end the program: the
	// default stands, and Problem tells.
	Lenient bool
}

// Switch is a flag without a value that gives its setting one.
type Switch struct {
	Flag, Value, Meaning string
}

// named fills in the names that follow from the setting's own.
func (s Setting) named(section string) Setting {
	s.Section = section
	if s.FlagOnly {
		s.Env, s.Key = "-", "-"
	}
	word := strings.ReplaceAll(s.Name, "-", "_")
	s.Env = cmpName(s.Env, "ZCODER_"+strings.ToUpper(word))
	s.Key = cmpName(s.Key, word)
	if s.Arg == "" {
		s.Arg = [...]string{Text: "TEXT", Path: "PATH", Bool: "", Int: "N", AutoInt: "N", Duration: "TIME", Enum: "", List: "LIST"}[s.Kind]
	}
	if s.Arg == "" && s.Kind == Enum {
		s.Arg = strings.Join(s.Enum, "|")
	}
	return s
}

func cmpName(given, derived string) string {
	switch given {
	case "":
		return derived
	case "-":
		return ""
	}
	return given
}

// parse turns text into the value of the setting's kind. Its error says what is
// allowed.
func (s Setting) parse(text string) (any, error) {
	switch s.Kind {
	case Bool:
		if b, ok := parseBool(text); ok {
			return b, nil
		}
	case Int:
		if n, err := strconv.Atoi(text); err == nil {
			return n, s.inRange(text, n)
		}
	case AutoInt:
		if text == "auto" {
			return 0, nil
		}
		if n, err := strconv.Atoi(text); err == nil {
			return n, s.inRange(text, n)
		}
	case Duration:
		if d, ok := parseDuration(text); ok {
			return d, s.inTime(text, d)
		}
	case Enum:
		if v, ok := s.parseEnum(text); ok {
			return v, nil
		}
	case List:
		return parseList(text), nil
	default:
		if strings.ContainsRune(text, 0) {
			return nil, errors.New("it holds a NUL byte")
		}
		if s.Check != nil && text != s.Default {
			return text, s.Check(text)
		}
		return text, nil
	}
	return nil, fmt.Errorf("%q is not allowed: give %s", text, s.Allowed())
}

func (s Setting) inRange(text string, n int) error {
	if n < s.Min || n > s.Max {
		return fmt.Errorf("%q is out of range: give %s", text, s.Allowed())
	}
	return nil
}

func (s Setting) inTime(text string, d time.Duration) error {
	if d < time.Duration(s.Min)*time.Second || d > time.Duration(s.Max)*time.Second {
		return fmt.Errorf("%q is out of range: give %s", text, s.Allowed())
	}
	return nil
}

// Allowed says in words which values the setting takes, or "" when any text does.
func (s Setting) Allowed() string {
	span := fmt.Sprintf("%d to %d", s.Min, s.Max)
	if s.Unit != "" {
		span += " " + s.Unit
	}
	switch s.Kind {
	case Bool:
		return "true or false"
	case Int:
		return span
	case AutoInt:
		return "auto, or " + span
	case Duration:
		return fmt.Sprintf("%d to %d seconds, or a time such as 15m", s.Min, s.Max)
	case Enum:
		last := len(s.Enum) - 1
		return strings.Join(s.Enum[:last], ", ") + " or " + s.Enum[last]
	}
	return ""
}

func parseBool(text string) (value, ok bool) {
	switch strings.ToLower(text) {
	case "true", "1", "on", "yes":
		return true, true
	case "false", "0", "off", "no":
		return false, true
	}
	return false, false
}

func parseDuration(text string) (time.Duration, bool) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, true
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

func (s Setting) parseEnum(text string) (string, bool) {
	text = strings.ToLower(text)
	if slices.Contains(s.Enum, text) {
		return text, true
	}
	b, ok := parseBool(text)
	text = strconv.FormatBool(b)
	return text, ok && slices.Contains(s.Enum, text)
}

func parseList(text string) []string {
	list := []string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list
}

// format is the inverse of parse, for people.
func (s Setting) format(value any) string {
	switch v := value.(type) {
	case []string:
		return strings.Join(v, ",")
	case time.Duration:
		return strconv.FormatFloat(v.Seconds(), 'f', -1, 64)
	case int:
		if v == 0 && s.Kind == AutoInt {
			return "auto"
		}
	}
	return fmt.Sprint(value)
}

func find(table []Setting, name string) Setting {
	i := slices.IndexFunc(table, func(s Setting) bool { return s.Name == name })
	return table[i]
}
