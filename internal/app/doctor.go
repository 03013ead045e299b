package app

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"zcoder/internal/audit"
	"zcoder/internal/chat"
	"zcoder/internal/config"
	"zcoder/internal/doctor"
	"zcoder/tools/shell"
)

// bubblewrap is where distributions put it; their rules for it name this path.
const bubblewrap = "/usr/bin/bwrap"

// doctorCommand is `zcoder doctor`. It makes and changes nothing.
func doctorCommand() subcommand {
	var asJSON bool
	sub := config.Sub{Name: "doctor", Usage: "[--json]", Meaning: "check server, model, window, shell, terminal and records, with what to do about each",
		Settings: []string{"model", "host", "provider", "context-window", "profile"},
		Flags:    func(s *pflag.FlagSet) { s.BoolVar(&asJSON, "json", false, "print JSON") }}
	return subcommand{sub, func(ctx context.Context, p Process, v *config.Values) (int, error) {
		if len(v.Args()) > 0 {
			return statusUsage, subUsage("doctor", "it takes no words")
		}
		client, err := dialServer(v, v.String("host"), nil)
		if err != nil {
			return statusUsage, err
		}
		ctx, stop, caught := catchSignals(ctx)
		defer stop()
		checks := doctor.Examine(ctx, subject(p, v, client))
		if s := caught(); s != 0 {
			return s, nil
		}
		print := doctor.Print
		if asJSON {
			print = doctor.PrintJSON
		}
		if err := print(p.Stdout, checks); err != nil {
			return statusFailed, err
		}
		if doctor.Failed(checks) {
			return statusFailed, nil
		}
		return statusOK, nil
	}}
}

// subject gathers what the doctor looks at.
func subject(p Process, v *config.Values, client modelServer) doctor.Subject {
	root, home := canonical(p, v), v.String("home")
	model := v.String("model")
	if name := readMemory(modelMemory(home))[root]; name != "" && v.Source("model") == "default" {
		model = name
	}
	b := &brain{explicit: v.Int("context-window"), memory: windowMemory(home)}
	b.use(client, model)
	settings := filepath.Join(home, config.FileName)
	return doctor.Subject{
		Server: client, Provider: v.String("provider"), Model: model,
		Size: func(facts chat.ModelFacts, loaded int) doctor.Window {
			c := b.sized(facts, loaded)
			return doctor.Window{Tokens: c.Tokens, Source: c.Source, Notice: c.Notice}
		},
		Path: p.getenv("PATH"), Shell: shell.Find(p.getenv("PATH")).Argv(), Bwrap: bubblewrap, Terminal: terminalFacts(p),
		Home: home, Private: []string{sessionsDir(v), filepath.Join(home, "audit"), filepath.Join(home, "history"), filepath.Join(home, "journal")},
		Settings: settings, HoldsKey: strings.HasPrefix(v.Source("api-key"), settings), Workspace: root,
		Policies: func() error { _, err := policyFiles(home, root).load(); return err },
		Audit:    func() (int64, string, error) { return auditState(filepath.Join(home, "audit")) },
	}
}

func terminalFacts(p Process) doctor.Terminal {
	t := doctor.Terminal{Is: isTerminal(p.Stdin) && isTerminal(p.Stdout), Term: p.getenv("TERM")}
	if t.Is {
		// A size that is not told stays zero, and shows.
		t.Cols, t.Rows, _ = term.GetSize(int(p.Stdout.Fd()))
	}
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = p.getenv(name); locale != "" {
			break
		}
	}
	locale = strings.ToUpper(locale)
	t.UTF8 = strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
	return t
}

func auditState(dir string) (records int64, broken string, err error) {
	if _, err := os.Stat(dir); err != nil {
		return 0, "", err
	}
	report, err := audit.Verify(dir, time.Time{})
	if err == nil && !report.Whole() {
		broken = report.Breaks[0].Reason
	}
	return report.Records, broken, err
}
