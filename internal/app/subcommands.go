package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"zcoder/internal/config"
)

// subcommands lists them in the order of help. Each call makes fresh ones, since
// their flags are read into them.
func subcommands() []subcommand {
	return []subcommand{
		configCommand(), policyCommand(), auditCommand(), sessionsCommand(), skillsCommand(), mcpCommand(), serverCommand(),
		promptCommand(), pullCommand(), doctorCommand(), evalCommand(),
		helpCommand(), completionCommand(),
	}
}

// onlyWord checks that a subcommand's words are none or this one.
func onlyWord(sub string, v *config.Values, word string) error {
	if args := v.Args(); len(args) > 1 || len(args) == 1 && args[0] != word {
		return subUsage(sub, fmt.Sprintf("there is no %q", strings.Join(args, " ")))
	}
	return nil
}

// configCommand takes the flags of all settings, and shows them as a layer.
func configCommand() subcommand {
	var asJSON bool
	sub := config.Sub{Name: "config", Usage: "show [--json]", Meaning: "print every setting and which layer set it, flags given here included", Settings: config.Names(),
		Flags: func(s *pflag.FlagSet) { s.BoolVar(&asJSON, "json", false, "print JSON") }}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		if err := onlyWord("config", v, "show"); err != nil {
			return statusUsage, err
		}
		return statusOK, v.Show(p.Stdout, asJSON)
	}}
}

// promptCommand needs no server: it shows the stable part of every request.
func promptCommand() subcommand {
	sub := config.Sub{Name: "prompt", Usage: "show", Meaning: "print exactly what the model is told before the conversation", Settings: []string{"profile"}}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		if len(v.Args()) == 0 {
			return statusUsage, subUsage("prompt", "say `zcoder prompt show`")
		}
		if err := onlyWord("prompt", v, "show"); err != nil {
			return statusUsage, err
		}
		w, err := open(p, v)
		if err != nil {
			return statusFailed, err
		}
		w.promptShow(p.Stdout)
		return statusOK, w.close()
	}}
}
