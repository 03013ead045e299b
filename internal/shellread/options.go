package shellread

import (
	"strings"
)

// options are the leading options of a command.
type options struct {
	n    int              // how many words they take
	vals map[string]field // by letter or full long name; flags hold an empty field
	open bool             // one of the words is not known
}

// parseOptions reads leading options. takes holds the letters of short options with
// a value, long the names of long ones that take theirs as the next word.
func parseOptions(words []field, takes string, long ...string) options {
	o := options{vals: map[string]field{}}
	for o.n < len(words) {
		f := words[o.n]
		text := f.lit
		if f.open != "" && (text == "" || text[0] == '-') {
			o.open = true
			return o
		}
		if len(text) < 2 || text[0] != '-' {
			return o
		}
		o.n++
		if text == "--" {
			return o
		}
		if strings.HasPrefix(text, "--") {
			o.long(words, text[2:], long)
		} else {
			o.short(words, f, takes)
		}
	}
	return o
}

func (o *options) long(words []field, text string, long []string) {
	name, value, given := strings.Cut(text, "=")
	full := fullName(name, long)
	switch {
	case given:
		o.vals[full] = literal(value)
	case isIn(full, long) && o.n < len(words):
		o.vals[full] = words[o.n]
		o.n++
	default:
		o.vals[full] = field{}
	}
}

func (o *options) short(words []field, f field, takes string) {
	text := f.lit[1:]
	for i := 0; i < len(text); i++ {
		key := text[i : i+1]
		if strings.Contains(takes, key) {
			switch {
			case i+1 < len(text):
				v := literal(text[i+1:])
				v.open = f.open
				o.vals[key] = v
			case o.n < len(words):
				o.vals[key] = words[o.n]
				o.n++
			}
			return
		}
		o.vals[key] = field{}
	}
}

// fullName completes an abbreviated long option.
func fullName(name string, long []string) string {
	for _, full := range long {
		if name == full {
			return full
		}
	}
	for _, full := range long {
		if len(name) > 1 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return name
}

func isIn(name string, list []string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

// has reports whether one of the options is given.
func (o options) has(names ...string) bool {
	_, ok := o.value(names...)
	return ok
}

// value returns the value of the first of the options that is given.
func (o options) value(names ...string) (field, bool) {
	for _, name := range names {
		if f, ok := o.vals[name]; ok {
			return f, true
		}
	}
	return field{}, false
}

// anywhere reads options wherever they stand, as GNU programs do, and returns the
// other words.
func anywhere(words []field, takes string, long ...string) (options, []field) {
	all := options{vals: map[string]field{}}
	var rest []field
	for len(words) > 0 {
		o := parseOptions(words, takes, long...)
		for k, v := range o.vals {
			all.vals[k] = v
		}
		ended := o.n > 0 && words[o.n-1].lit == "--" && words[o.n-1].open == ""
		words = words[o.n:]
		if ended {
			return all, append(rest, words...)
		}
		if len(words) > 0 {
			all.open = all.open || o.open
			rest, words = append(rest, words[0]), words[1:]
		}
	}
	return all, rest
}
