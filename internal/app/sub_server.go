package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"zcoder/internal/config"
	"zcoder/internal/termtext"
	"zcoder/remote"
)

// serverCommand is `zcoder server`.
func serverCommand() subcommand {
	sub := config.Sub{
		Name: "server", Usage: "token FILE | unit NAME",
		Meaning:  "make a token for server and clients, or print a systemd user unit that serves this workspace",
		Settings: []string{"token-file", "listen", "port", "profile"},
	}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		args := v.Args()
		if len(args) != 2 {
			return statusUsage, subUsage("server", "say `zcoder server token FILE` or `zcoder server unit NAME`")
		}
		switch args[0] {
		case "token":
			return newToken(p, args[1])
		case "unit":
			return printUnit(p, v, args[1])
		}
		return statusUsage, subUsage("server", fmt.Sprintf("there is no %q", args[0]))
	}}
}

func newToken(p Process, path string) (int, error) {
	if err := remote.NewToken(path); err != nil {
		return statusFailed, err
	}
	fmt.Fprintf(p.Stdout, "made %s\nserve with:   zcoder --server NAME --token-file %s\nconnect with: zcoder --connect HOST --token-file FILE, with a copy of it\n", termtext.Line(path), termtext.Line(shellWord(path)))
	return statusOK, nil
}

// printUnit writes a unit of systemd for the user's own services.
func printUnit(p Process, v *config.Values, name string) (int, error) {
	token := v.String("token-file")
	if token == "" {
		return statusUsage, subUsage("server", "unit needs --token-file FILE; `zcoder server token FILE` makes one")
	}
	if !unitName.MatchString(name) {
		return statusUsage, subUsage("server", fmt.Sprintf("%q is no name for a unit: use letters, digits and _ . -", name))
	}
	program, err := os.Executable()
	if err != nil {
		return statusFailed, fmt.Errorf("find this program: %w", err)
	}
	workspace := v.String("workspace")
	if workspace == "" {
		workspace = p.Dir
	}
	for _, path := range []*string{&token, &workspace} {
		if *path, err = filepath.Abs(*path); err != nil {
			return statusFailed, err
		}
	}
	words := []string{program, "--server", name, "--token-file", token, "--workspace", workspace, "--profile", v.String("profile"), "--listen", v.String("listen"), "--port", strconv.Itoa(v.Int("port"))}
	for i, word := range words {
		if words[i], err = unitWord(word); err != nil {
			return statusUsage, subUsage("server", err.Error())
		}
	}
	file := "zcoder-" + name + ".service"
	fmt.Fprintf(p.Stdout, unitText, file, file, words[6], strings.Join(words, " "))
	return statusOK, nil
}

var unitName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)

const unitText = `# Put this into ~/.config/systemd/user/%s, then:
#   systemctl --user daemon-reload
#   systemctl --user enable --now %s
#   loginctl enable-linger      # for a server that runs while you are not logged in
[Unit]
Description=zcoder in %s

[Service]
ExecStart=%s
Restart=on-failure
KillMode=mixed

[Install]
WantedBy=default.target
`

// unitWord quotes a word for ExecStart of systemd, where $ and %% have a meaning.
func unitWord(word string) (string, error) {
	for _, r := range word {
		if r < ' ' || r == 0x7f {
			return "", fmt.Errorf("%q cannot stand in a unit: it has a control character", word)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$").Replace(word) + `"`, nil
}
