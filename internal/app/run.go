package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"

	"zcoder/internal/config"
	"zcoder/internal/demo"
)

// version is the program's own; builds of a release set it with -ldflags.
var version = "0.1.0-dev"

// run reads the command line and does what it asks for.
func run(ctx context.Context, p Process) (int, error) {
	subs := subcommands()
	if sub, rest, ok := config.FindSub(p.Args, configSubs(subs)); ok {
		return runSub(ctx, p, subs, sub, rest)
	}
	v, err := config.Load(sources(p, p.Args))
	if err != nil {
		return statusUsage, err
	}
	switch {
	case v.Bool("help"):
		return statusOK, config.Help(p.Stdout, configSubs(subs))
	case v.Bool("version"):
		info, ok := debug.ReadBuildInfo()
		if !ok {
			info = &debug.BuildInfo{GoVersion: runtime.Version()}
		}
		return printed(p, "zcoder "+versionText(info)+"\n")
	}
	if v.Bool("print-instructions") || v.Bool("print-skills") {
		return printGuidance(p, v)
	}
	switch {
	case v.Bool("acp"):
		return runEditor(ctx, p, v)
	case v.String("server") != "":
		return runServer(ctx, p, v)
	case v.String("connect") != "":
		return runClient(ctx, p, v)
	}
	return runMain(ctx, p, v)
}

// versionText tells the version and how this program was built: with which Go, for what,
// and from which commit, where that is known.
func versionText(info *debug.BuildInfo) string {
	facts := map[string]string{}
	for _, s := range info.Settings {
		facts[s.Key] = s.Value
	}
	text := fmt.Sprintf("%s (%s %s/%s", version, info.GoVersion, runtime.GOOS, runtime.GOARCH)
	if commit := facts["vcs.revision"]; commit != "" {
		day, _, _ := strings.Cut(facts["vcs.time"], "T")
		text += fmt.Sprintf(", commit %.12s of %s", commit, day)
	}
	if facts["vcs.modified"] == "true" {
		text += ", changed"
	}
	return text + ")"
}

func sources(p Process, args []string) config.Sources {
	return config.Sources{Args: args, Env: p.lookup, ReadFile: readSettings, UserHome: p.UserHome}
}

// maxSettings bounds the settings file, in bytes.
const maxSettings = 1 << 20

// readSettings reads the settings file without waiting for one that is a pipe.
func readSettings(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSettings {
		return nil, fmt.Errorf("%q is not a regular file of at most 1 MiB", path)
	}
	return io.ReadAll(f)
}

// runMain runs the agent: a one-shot turn, or the REPL.
func runMain(ctx context.Context, p Process, v *config.Values) (status int, err error) {
	prompt, once, err := firstPrompt(p, v)
	if err != nil {
		return statusUsage, err
	}
	w, err := open(p, v)
	if err != nil {
		return statusOK, err // Run tells wrong settings from failures
	}
	defer func() {
		if cerr := w.close(); err == nil && cerr != nil {
			err = cerr
		}
	}()
	if once {
		if prompt, err = oneShotText(prompt); err != nil {
			return statusUsage, err
		}
		return w.oneShot(ctx, prompt)
	}
	return w.interactive(ctx, prompt)
}

// oneShotText applies the rules for slashes: two send a text that begins with one, and
// of the commands only those that start a turn make sense here.
func oneShotText(prompt string) (string, error) {
	if rest, ok := strings.CutPrefix(prompt, "//"); ok {
		return "/" + rest, nil
	}
	word, _, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	if !strings.HasPrefix(word, "/") || word == "/goal" || prompt == queueResume {
		return prompt, nil
	}
	return "", &config.UsageError{
		Text:  fmt.Sprintf("there is no command %q for a single request", word),
		Hints: []string{"/goal OBJECTIVE works here, the other commands only at the prompt", "begin with // to send a text that begins with a slash"},
	}
}

// maxStdin bounds what is read from a pipe as a prompt or its context, in bytes.
const maxStdin = 1 << 20

// firstPrompt is what is asked first, and whether that is all. A pipe on stdin is the
// prompt, or adds context to the one that is given.
func firstPrompt(p Process, v *config.Values) (prompt string, once bool, err error) {
	prompt = v.String("prompt")
	words := strings.Join(v.Args(), " ")
	interactive := isTerminal(p.Stdin)
	once = prompt != "" || !interactive
	if words != "" && prompt != "" {
		return "", false, &config.UsageError{Text: fmt.Sprintf("both --prompt and the words %q are given", words), Hints: []string{"give one of them"}}
	}
	if prompt == "" {
		prompt = words
		if err := misspelt(v); err != nil {
			return "", false, err
		}
	}
	if prompt == "" && v.Bool("demo") && interactive {
		prompt = demo.Prompt
	}
	if !once {
		return prompt, false, nil
	}
	piped, err := readPipe(p, prompt == "-" || prompt == "")
	if err != nil {
		return "", false, err
	}
	prompt = joinPrompt(prompt, piped)
	if prompt == "" && v.Bool("demo") {
		prompt = demo.Prompt
	}
	if prompt == "" {
		return "", false, &config.UsageError{Text: "there is no prompt", Hints: []string{"give one with --prompt, on stdin, or run zcoder in a terminal"}}
	}
	return prompt, true, nil
}

func joinPrompt(prompt, piped string) string {
	switch {
	case prompt == "-" || prompt == "":
		return strings.TrimSpace(piped)
	case strings.TrimSpace(piped) == "":
		return prompt
	}
	return prompt + pipedMark + piped
}

// readPipe reads stdin when it is a pipe or a file. Only a prompt that must come from
// there waits for it: an open pipe that nobody writes to would wait for ever, so
// context is taken only from a regular file or a pipe that has something to say.
func readPipe(p Process, needed bool) (string, error) {
	info, err := p.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice != 0 {
		return "", nil // closed, or /dev/null
	}
	if !needed && !info.Mode().IsRegular() && !readable(p.Stdin) {
		return "", nil
	}
	data, err := io.ReadAll(io.LimitReader(p.Stdin, maxStdin+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if len(data) > maxStdin {
		return "", &config.UsageError{Text: fmt.Sprintf("stdin holds more than %d bytes", maxStdin), Hints: []string{"put it into a file of the workspace and name it in the prompt"}}
	}
	return strings.ToValidUTF8(string(data), "\uFFFD"), nil
}

// subcommand is `zcoder NAME …`.
type subcommand struct {
	config.Sub
	run func(ctx context.Context, p Process, v *config.Values) (int, error)
}

func configSubs(subs []subcommand) []config.Sub {
	list := make([]config.Sub, len(subs))
	for i, s := range subs {
		list[i] = s.Sub
	}
	return list
}

func runSub(ctx context.Context, p Process, subs []subcommand, sub config.Sub, rest []string) (int, error) {
	v, err := config.LoadSub(sub, sources(p, rest))
	if err != nil {
		return statusUsage, err
	}
	if v.Bool("help") {
		return statusOK, config.HelpSub(p.Stdout, sub)
	}
	for _, s := range subs {
		if s.Name == sub.Name {
			return s.run(ctx, p, v)
		}
	}
	return statusUsage, fmt.Errorf("run subcommand %q: it has no body", sub.Name)
}

// misspelt is the error of a request that is nothing but a subcommand with a slip in it.
func misspelt(v *config.Values) error {
	if len(v.Args()) != 1 || v.ArgsBeforeDash() == 0 {
		return nil
	}
	var names []string
	for _, s := range subcommands() {
		names = append(names, s.Name)
	}
	word := v.Args()[0]
	if name := config.Misspelt(word, names); name != "" {
		return &config.UsageError{Text: fmt.Sprintf("%q is no subcommand", word), Hints: []string{
			"did you mean zcoder " + name + "?", "a request of this one word stands behind --",
		}}
	}
	return nil
}

// subUsage is the error of a subcommand that was called wrongly.
func subUsage(sub, text string) error {
	return &config.UsageError{Text: sub + ": " + text, Hints: []string{
		"zcoder " + sub + " --help shows how",
		fmt.Sprintf("a request that begins with the word %q stands behind --", sub),
	}}
}

func homePath(v *config.Values, parts ...string) string {
	return filepath.Join(append([]string{v.String("home")}, parts...)...)
}
