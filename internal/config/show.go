package config

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// shownValue is one setting as `zcoder config show --json` prints it.
type shownValue struct {
	Name     string `json:"name"`
	Value    any    `json:"value"`
	Source   string `json:"source"`
	Variable string `json:"variable,omitempty"`
	Key      string `json:"key,omitempty"`
	Flag     string `json:"flag,omitempty"`
}

// Show writes every setting with its value and the layer that set it, for
// `zcoder config show`: a table, or one JSON array. Secrets are hidden in both. The
// table holds values as they are: who prints it to a terminal makes it safe first.
func (v *Values) Show(w io.Writer, asJSON bool) error {
	list := []shownValue{}
	text := []string{}
	width, valueWidth := 0, 0
	for _, s := range Table() {
		if s.FlagOnly {
			continue
		}
		e := v.entry(s.Name)
		shown, plain := e.hidden()
		source := e.source
		if problem := v.Problem(s.Name); problem != "" {
			source += ", ignored: " + problem
		}
		list = append(list, shownValue{s.Name, shown, source, s.Env, s.Key, s.Flag})
		text = append(text, plain)
		width = max(width, len(s.Name))
		valueWidth = max(valueWidth, min(len(plain), 32))
	}
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(list)
	}
	var b strings.Builder
	for i, row := range list {
		fmt.Fprintf(&b, "%-*s  %-*s  %s\n", width, row.Name, valueWidth, text[i], row.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// hidden returns the value for JSON and for the table without what is secret.
func (e entry) hidden() (shown any, plain string) {
	plain = e.setting.format(e.value)
	switch {
	case e.setting.Secret && plain != "":
		return "[masked]", "[masked]"
	case e.setting.Kind == Text:
		plain = regexp.MustCompile(`://[^/@\s]*@`).ReplaceAllString(plain, "://[masked]@")
		return plain, e.setting.withUnit(plain)
	case e.setting.Kind == Duration, e.setting.Kind == AutoInt && plain == "auto":
		return plain, e.setting.withUnit(plain)
	}
	return e.value, e.setting.withUnit(plain)
}

// withUnit adds the unit to a number.
func (s Setting) withUnit(plain string) string {
	switch {
	case s.Kind == Duration:
		return plain + " seconds"
	case s.Unit != "" && plain != "auto":
		return plain + " " + s.Unit
	case plain == "":
		return "-"
	}
	return plain
}
