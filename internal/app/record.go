package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"zcoder/internal/approval"
	"zcoder/internal/audit"
	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// auditCommand is `zcoder audit`. It reads the record and changes nothing.
func auditCommand() subcommand {
	var since string
	sub := config.Sub{
		Name: "audit", Usage: "tail [N] | verify | grep PATTERN", Meaning: "read the record of every verdict, answer and action, or check its chain",
		Flags: func(s *pflag.FlagSet) {
			s.StringVar(&since, "since", "", "only records since `TIME`: 2h ago, or a day such as 2026-11-30")
		},
	}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		from, err := parseSince(since, time.Now())
		if err != nil {
			return statusUsage, subUsage("audit", err.Error())
		}
		dir := homePath(v, "audit")
		verb, rest := "tail", v.Args()
		if len(rest) > 0 {
			verb, rest = rest[0], rest[1:]
		}
		switch {
		case verb == "tail" && len(rest) <= 1:
			return auditTail(p, dir, rest)
		case verb == "verify" && len(rest) == 0:
			return auditVerify(p, dir, from)
		case verb == "grep" && len(rest) == 1:
			return auditGrep(p, dir, rest[0], from)
		}
		return statusUsage, subUsage("audit", "say tail, verify or grep PATTERN")
	}}
}

// parseSince reads a duration back from now, a day or a time; empty is the beginning.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("--since %q is neither a time such as 2h nor a day such as 2026-11-30", text)
}

func auditTail(p Process, dir string, args []string) (int, error) {
	n := 20
	if len(args) == 1 {
		var err error
		if n, err = strconv.Atoi(args[0]); err != nil || n < 1 {
			return statusUsage, subUsage("audit", fmt.Sprintf("tail %q: give a number of records", args[0]))
		}
	}
	list, err := audit.Tail(dir, n)
	if err != nil {
		return statusUsage, err
	}
	for _, e := range list {
		fmt.Fprintln(p.Stdout, termtext.Line(e.String()))
	}
	return statusOK, nil
}

// auditVerify returns 0 for a whole chain, 1 for a broken one, 2 for one that cannot
// be read.
func auditVerify(p Process, dir string, from time.Time) (int, error) {
	report, err := audit.Verify(dir, from)
	if err != nil {
		return statusUsage, err
	}
	fmt.Fprintln(p.Stdout, strings.TrimRight(termtext.Safe(report.String()), "\n"))
	if !report.Whole() {
		return statusFailed, nil
	}
	return statusOK, nil
}

func auditGrep(p Process, dir, pattern string, from time.Time) (int, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return statusUsage, subUsage("audit", fmt.Sprintf("the pattern %q: %v", pattern, err))
	}
	found := false
	for e, err := range audit.Grep(dir, re.Match, from) {
		if err != nil {
			return statusUsage, err
		}
		found = true
		fmt.Fprintln(p.Stdout, termtext.Line(e.String()))
	}
	if !found {
		return statusFailed, nil
	}
	return statusOK, nil
}

// policyCommand is `zcoder policy test`: the verdict on a command, step by step.
func policyCommand() subcommand {
	var origin string
	sub := config.Sub{
		Name: "policy", Usage: "test 'COMMAND'", Meaning: "explain the verdict that a command of the model would get",
		Settings: []string{"profile", "command-policy", "read-only"},
		Flags: func(s *pflag.FlagSet) {
			s.StringVar(&origin, "origin", "user", "`WHO` started the turn: user, remote or peer")
		},
	}
	return subcommand{sub, func(_ context.Context, p Process, v *config.Values) (int, error) {
		if args := v.Args(); len(args) != 2 || args[0] != "test" {
			return statusUsage, subUsage("policy", "say `zcoder policy test 'COMMAND'`, the command as one word")
		}
		from, ok := map[string]approval.Origin{"user": approval.OriginUser, "remote": approval.OriginRemote, "peer": approval.OriginPeer}[origin]
		if !ok {
			return statusUsage, subUsage("policy", fmt.Sprintf("--origin %q: it is user, remote or peer", origin))
		}
		w, err := open(p, v)
		if err != nil {
			return statusFailed, err
		}
		w.explain(v.Args()[1], from)
		return statusOK, w.close()
	}}
}

func (w *workbench) explain(command string, from approval.Origin) {
	e := w.policy.Explain(approval.Request{
		CallID: "test", Tool: "run_command", Effect: approval.Exec, Origin: from,
		Text: command, Shell: w.shell.Argv(), Dir: w.ws.Root(), Summary: "run_command " + command,
	})
	for _, s := range e.Steps[:max(0, len(e.Steps)-1)] { // the last one is the verdict
		fmt.Fprintf(w.p.Stdout, "%-24s %s\n", termtext.Line(s.Rule), termtext.Line(s.Outcome))
	}
	for _, note := range e.Verdict.Notes {
		fmt.Fprintf(w.p.Stdout, "reads as: %s\n", termtext.Line(note))
	}
	fmt.Fprintf(w.p.Stdout, "verdict: %s", e.Verdict.Decision)
	if e.Verdict.Reason != "" {
		fmt.Fprintf(w.p.Stdout, " (%s)", termtext.Line(e.Verdict.Reason))
	}
	fmt.Fprintln(w.p.Stdout)
}

// openAudit opens the record, and says at start when an earlier part of it is broken.
func (w *workbench) openAudit(dir string) error {
	log, err := audit.Open(dir, audit.Options{Now: time.Now, Mask: w.mask.Mask, Instance: newCallID()})
	if err != nil {
		return withHint(err, "nothing but reading is possible without the audit: free the disk or move %s away", dir)
	}
	w.audit = log
	w.onClose(log.Close)
	if notice := log.Notice(); notice != "" {
		w.notices = append(w.notices, "warning: "+notice)
	}
	return nil
}

// checkAudit looks through the whole chain in the background and tells of a break that
// the start did not see. The function it returns waits for it.
func (d *desk) checkAudit() (wait func()) {
	done := make(chan struct{})
	first := d.conv()
	go func() {
		defer close(done)
		report, err := audit.Verify(filepath.Join(d.w.home, "audit"), time.Time{})
		if err == nil && !report.Whole() {
			first.Emit(event.Event{Kind: event.Warning, Text: "the audit's chain is broken: zcoder audit verify says where"})
		}
	}()
	return func() { <-done }
}

var errNotRecorded = errors.New("the session cannot be stored")
