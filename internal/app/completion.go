package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"zcoder/internal/config"
)

// completionCommand is `zcoder completion`.
func completionCommand() subcommand {
	shells := config.Shells()
	sub := config.Sub{Name: "completion", Usage: strings.Join(shells, " | "), Meaning: "print a script that has the shell complete flags and subcommands"}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		args := v.Args()
		if len(args) != 1 || !slices.Contains(shells, args[0]) {
			return statusUsage, subUsage("completion", fmt.Sprintf("name a shell: %s", strings.Join(shells, ", ")))
		}
		return printed(p, config.Completion(args[0], configSubs(subcommands())))
	}}
}
