package app

import (
	"strings"

	"zcoder/internal/config"
	"zcoder/internal/termtext"
)

// resumeLine says how to go on with a session: the flags that lead to it, as a line for
// the shell.
func resumeLine(v *config.Values, id string) string {
	words := []string{"zcoder"}
	flag := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name, shellWord(value))
		}
	}
	to := v.String("connect")
	flag("connect", to)
	switch {
	case to == "":
		flag("workspace", v.String("workspace"))
		if v.String("profile") != "coding" {
			flag("profile", v.String("profile"))
		}
	case strings.HasPrefix(to, "ssh://"):
		flag("profile", farProfile(v))
	default:
		flag("token-file", v.String("token-file"))
	}
	flag("resume", id)
	return "resume with: " + termtext.Line(strings.Join(words, " "))
}
