package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/store"
	"zcoder/remote"
)

// runClient works in the workspace of a server: one turn, or the REPL.
func runClient(ctx context.Context, p Process, v *config.Values) (int, error) {
	if v.Bool("demo") {
		return statusUsage, &config.UsageError{Text: "both --demo and --connect are given", Hints: []string{"give one of them"}}
	}
	prompt, once, err := firstPrompt(p, v)
	if err != nil {
		return statusUsage, err
	}
	addr, err := remote.ParseAddress(v.String("connect"))
	if err != nil {
		return statusUsage, err
	}
	if flag := serversFlag(v, addr); flag != "" {
		return statusUsage, &config.UsageError{Text: fmt.Sprintf("both --connect and %s are given: that is the server's to say", flag), Hints: []string{"start the server with it, or set it in the settings there"}}
	}
	ctx, stop, caught := catchHangups(ctx, once || !isDumb(p))
	defer stop()
	d := dialer{p: p, v: v, addr: addr}
	defer d.close()
	client, err := d.dial(ctx)
	if errors.Is(err, store.ErrUnknown) {
		return statusUsage, withHint(err, "zcoder --connect %s goes on without --resume; /sessions lists what there is", v.String("connect"))
	}
	if err != nil {
		return statusFailed, err
	}
	var status int
	if once {
		status, err = farOneShot(ctx, p, v, client, prompt)
	} else {
		status, err = farInteractive(ctx, p, v, &d, client, prompt)
	}
	if s := caught(); s != 0 {
		return s, nil
	}
	return status, err
}

// serversFlag is a flag whose effect would be on the server, which does not hear of it.
func serversFlag(v *config.Values, addr remote.Address) string {
	for _, name := range []string{
		"command-policy", "read-only", "workspace", "profile", "model", "provider", "host", "think", "keep-alive",
		"tool-exposure", "context-window", "compact-percent", "max-rounds", "max-time",
	} {
		if name == "profile" && addr.Kind == remote.SSH {
			continue // it travels in the first request
		}
		if flag, ok := strings.CutPrefix(v.Source(name), "flag "); ok {
			return flag
		}
	}
	return ""
}

// dialer connects to one server, over ssh to one that it starts there.
type dialer struct {
	p    Process
	v    *config.Values
	addr remote.Address
	end  func() // ends what was started for the connection; nil for nothing
}

func (d *dialer) close() {
	if d.end != nil {
		d.end()
	}
	d.end = nil
}

// dial connects for the conversation that the flags ask for. What the far side asks on
// the terminal, such as a passphrase, comes now.
func (d *dialer) dial(ctx context.Context) (*remote.Client, error) {
	newest := d.addr.Kind == remote.SSH && d.v.Bool("continue")
	client, err := d.connect(ctx, d.v.String("resume"), false)
	if err != nil || !newest {
		return client, err
	}
	// The server there has just begun, so its current conversation is a new one.
	list, err := client.Sessions(ctx)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	for _, s := range list {
		if !s.Empty {
			return client.Select(ctx, s.ID)
		}
	}
	return client, nil
}

// again connects anew after a connection was lost, if that is possible, and asks nothing
// on the terminal. An empty session is a new one.
func (d *dialer) again(ctx context.Context, session string) (*remote.Client, error) {
	d.close()
	return d.connect(ctx, session, true)
}

func (d *dialer) connect(ctx context.Context, session string, silent bool) (*remote.Client, error) {
	cfg := remote.ClientConfig{
		Address: d.addr, Session: session, Continue: d.v.Bool("continue"),
		NewID: newRequestID, Timeout: d.v.Duration("remote-request-timeout"), Now: time.Now,
	}
	var err error
	if d.addr.Kind == remote.SSH {
		cfg.Name = d.addr.Target()
		cfg.Pipe, d.end, err = startSSH(ctx, d.p, d.v, d.addr, silent)
	} else {
		cfg.Token, err = clientToken(d.v)
	}
	if err != nil {
		return nil, err
	}
	client, err := remote.Dial(ctx, cfg)
	if err != nil {
		d.close()
	}
	return client, err
}

func clientToken(v *config.Values) (string, error) {
	if v.String("token-file") == "" {
		return "", &config.UsageError{Text: "--connect needs --token-file", Hints: []string{"give the file with the server's token; ssh://HOST/WORKSPACE needs none"}}
	}
	return remote.ReadToken(v.String("token-file"))
}

func newRequestID() string { return fmt.Sprintf("%016x%016x", unguessable(), unguessable()) }

// farOneShot runs one turn on the server. Nobody is here to approve anything.
func farOneShot(ctx context.Context, p Process, v *config.Values, client *remote.Client, prompt string) (int, error) {
	asJSON := v.Bool("json")
	show := eventShower(p, asJSON)
	if err := showHeader(asJSON, show, client.Info()); err != nil {
		return statusFailed, err
	}
	refused, alone, goal := 0, map[string]bool{}, event.Goal{}
	end, err := drive(ctx, client, farText(client, prompt), func(e event.Event) error {
		switch e.Kind {
		case event.Asked:
			refused++
			go refuse(client, e.Question.CallID, e.Question.Digest)
		case event.Answered:
			alone[e.Answer.CallID] = e.Answer.Reason == nobodyHere
		case event.CallEnd:
			if !asJSON && alone[e.Result.CallID] {
				r := *e.Result
				r.Line = "nobody was there to ask"
				e.Result = &r
			}
		case event.GoalState:
			goal = *e.Goal
		}
		return show(e)
	})
	if err != nil {
		return statusFailed, err
	}
	if refused > 0 && !asJSON {
		fmt.Fprintf(p.Stderr, "hint: %s refused because nobody was there to approve; connect in a terminal to be asked\n", plural(refused, "call was", "calls were"))
	}
	if !asJSON {
		fmt.Fprintln(p.Stderr, resumeLine(v, client.Info().ID))
	}
	if end.Unattended += refused; end.Reason == "" {
		end.Reason = event.Complete // a command, which has no turn
	}
	return statusOf(end, goal), nil
}

// nobodyHere is the reason that a client gives for its refusals when no person is at it.
const nobodyHere = "nobody is there to approve it"

// refuse answers for the person who is not there. Another client may have been faster.
func refuse(client *remote.Client, callID, digest string) {
	_ = client.Answer(callID, event.Answer{Choice: "no", Reason: nobodyHere, By: "unattended client", Digest: digest})
}

// farText is a prompt as the server gets it. There, a text that begins with a slash is
// a command, unless it is one of those that start a turn anyway.
func farText(client *remote.Client, text string) string {
	if len(text) > 1 && text[0] == '/' && text[1] == '/' && !client.Hello().Commands {
		return text[1:]
	}
	return text
}

// farHistory is the file of lines typed for one workspace of one server.
func farHistory(v *config.Values, client *remote.Client) string {
	dir, err := makePrivate(filepath.Join(v.String("home"), "history"))
	if err != nil {
		return ""
	}
	return filepath.Join(dir, fileNameFor(client.Host()+":"+client.Info().Workspace))
}

// switched reports that the server went on with another conversation, and which.
func switched(err error) (session string, ok bool) {
	var s *remote.SwitchedError
	if errors.As(err, &s) {
		return s.Session, true
	}
	return "", false
}
