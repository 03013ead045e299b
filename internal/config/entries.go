package config

import (
	"strings"
)

// Group is a section of the table, for a manual.
type Group struct {
	Title   string
	Entries []Entry
}

// Entry is a flag or a variable and what it means.
type Entry struct{ Name, Meaning string }

// FlagGroups returns every flag by section, in the order of help.
func FlagGroups() []Group {
	return groups(func(s Setting) []Entry {
		var list []Entry
		if s.Flag != "" {
			list = append(list, Entry{strings.TrimSpace(flagNames(s.Flag, s.Short, s.Arg)), s.meaning()})
		}
		for _, sw := range s.Switches {
			list = append(list, Entry{"--" + sw.Flag, sw.Meaning})
		}
		return list
	})
}

// VariableGroups returns every variable by section, with its key in the settings file.
func VariableGroups() []Group {
	return groups(func(s Setting) []Entry {
		if s.Env == "" {
			return nil
		}
		name := s.Env
		if s.Key != "" {
			name += ", " + s.Key
		}
		return []Entry{{name, s.meaning()}}
	})
}

func groups(entries func(Setting) []Entry) []Group {
	var list []Group
	for _, s := range Table() {
		found := entries(s)
		if len(found) == 0 {
			continue
		}
		if len(list) == 0 || list[len(list)-1].Title != s.Section {
			list = append(list, Group{Title: s.Section})
		}
		last := &list[len(list)-1]
		last.Entries = append(last.Entries, found...)
	}
	return list
}

// meaning is what the setting means, with its default.
func (s Setting) meaning() string {
	if d := s.shownDefault(); d != "" && d != "0" && s.Kind != Bool {
		return s.Meaning + " (default " + d + ")"
	}
	return s.Meaning
}
