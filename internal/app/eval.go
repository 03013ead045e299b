package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"zcoder/internal/config"
	"zcoder/internal/eval"
	"zcoder/internal/event"
)

// evalLimit is the time that one scenario may take by default: enough for a large
// model on a slow machine.
const evalLimit = 15 * time.Minute

// evalCommand is `zcoder eval`.
func evalCommand() subcommand {
	var (
		models, names []string
		asJSON, list  bool
		limit         time.Duration
	)
	sub := config.Sub{Name: "eval", Usage: "[--model NAME]… [--scenario NAME]…", Meaning: "try models on small pieces of work, in workspaces of their own, and judge what comes of it",
		Settings: []string{"host", "provider", "context-window", "think", "keep-alive"},
		Flags: func(s *pflag.FlagSet) {
			s.StringSliceVarP(&models, "model", "m", nil, "`NAME` of a model; several one after the other")
			s.StringSliceVar(&names, "scenario", nil, "`NAME` of a scenario; all without it")
			s.BoolVar(&list, "list", false, "list the scenarios")
			s.BoolVar(&asJSON, "json", false, "print each result as a JSON line")
			s.DurationVar(&limit, "timeout", evalLimit, "most `TIME` for one scenario; 0 is no limit")
		}}
	return subcommand{sub, func(ctx context.Context, p Process, v *config.Values) (int, error) {
		if len(v.Args()) > 0 {
			return statusUsage, subUsage("eval", "name models with --model and scenarios with --scenario")
		}
		scenarios, err := eval.Scenarios(names...)
		if err != nil {
			return statusUsage, &config.UsageError{Text: err.Error(), Hints: []string{"zcoder eval --list describes them"}}
		}
		if list {
			return statusOK, listScenarios(p, scenarios)
		}
		if len(models) == 0 {
			models = []string{v.String("model")}
		}
		e := &evaluation{p: p, v: v, asJSON: asJSON}
		return e.run(ctx, eval.Options{Models: models, Scenarios: scenarios, Ask: e.ask, Limit: limit, Temp: p.getenv("TMPDIR"), Now: time.Now})
	}}
}

func listScenarios(p Process, list []eval.Scenario) error {
	for _, s := range list {
		if _, err := fmt.Fprintf(p.Stdout, "%-9s %s\n", s.Name, s.About); err != nil {
			return err
		}
	}
	return nil
}

// evaluation is one run of `zcoder eval`.
type evaluation struct {
	p      Process
	v      *config.Values
	asJSON bool
}

// run does the scenarios and prints them as they come.
func (e *evaluation) run(ctx context.Context, o eval.Options) (int, error) {
	ctx, stop, caught := catchSignals(ctx)
	defer stop()
	table := eval.NewTable(e.p.Stdout, o.Models)
	o.Report = table.Row
	if e.asJSON {
		o.Report = func(r eval.Result) error { return eval.JSON(e.p.Stdout, r) }
	}
	results, err := eval.Run(ctx, o)
	if !e.asJSON {
		err = errors.Join(err, table.Sum(results))
	}
	switch s := caught(); {
	case s != 0:
		return s, nil
	case err != nil:
		return statusFailed, err
	case eval.Failed(results):
		return statusFailed, nil
	}
	return statusOK, nil
}

// ask does one job with the whole program: its own home, workspace and session, with
// nobody to approve anything but what the policy of the job allows.
func (e *evaluation) ask(ctx context.Context, j eval.Job) (out eval.Outcome, err error) {
	settings := filepath.Join(j.Home, "zcoder")
	if err := os.Mkdir(settings, 0o700); err != nil {
		return out, fmt.Errorf("make the settings directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(settings, "policy.toml"), allowRules(j.Allow), 0o600); err != nil {
		return out, fmt.Errorf("write the policy: %w", err)
	}
	p := e.p
	p.Dir, p.UserHome, p.Env = j.Dir, j.Home, e.environment(j.Home, settings)
	v, err := config.Load(sources(p, []string{"--workspace", j.Dir, "--model", j.Model, "--profile", "coding", "--read-only=false",
		"--max-rounds", strconv.Itoa(j.Rounds), "--max-time", j.Limit.String()}))
	if err != nil {
		return out, err
	}
	w, err := open(p, v)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	c, err := w.start(true)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	out.End, err = drive(ctx, c, j.Prompt, func(ev event.Event) error {
		if ev.Kind == event.Reply && strings.TrimSpace(ev.Reply.Message.Content) != "" {
			out.Answer = ev.Reply.Message.Content
		}
		return nil
	})
	if out.End.Reason == event.Complete && out.End.Text != "" {
		out.Answer = out.End.Text // what finish was called with
	}
	return out, err
}

// environment is that of the process with another home, where no guidance and no skill
// of the person is, and with the settings of this run in place of those of its file and
// variables.
func (e *evaluation) environment(home, settings string) []string {
	ours := map[string]bool{"HOME": true, "XDG_CONFIG_HOME": true}
	for _, s := range config.Table() {
		ours[s.Env] = s.Env != ""
	}
	env := slices.DeleteFunc(slices.Clone(e.p.Env), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return ours[name]
	})
	env = append(env, e.v.Environ("home", "sessions-dir", "workspace", "model", "profile", "command-policy", "read-only", "max-rounds", "max-time")...)
	return append(env, "HOME="+home, "ZCODER_HOME="+settings)
}

// allowRules is a policy file that allows commands with these beginnings.
func allowRules(commands []string) []byte {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "[[allow]]\ntools = [\"run_command\"]\ncommands = [%q]\n", c)
	}
	return []byte(b.String())
}
