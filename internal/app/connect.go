package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"zcoder/internal/config"
	"zcoder/internal/event"
	"zcoder/internal/termtext"
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
	ctx, stop, caught := catchHangups(ctx, !once && isTerminal(p.Stdout))
	defer stop()
	client, closeLink, err := connectTo(ctx, p, v, addr)
	if err != nil {
		return statusFailed, err
	}
	defer closeLink()
	var status int
	if once {
		status, err = farOneShot(ctx, p, v, client, prompt)
	} else {
		status, err = farInteractive(ctx, p, v, client, prompt)
	}
	if s := caught(); s != 0 {
		return s, nil
	}
	return status, err
}

// connectTo connects to a server, over ssh to one that it starts there. closeLink ends
// what was started for it.
func connectTo(ctx context.Context, p Process, v *config.Values, addr remote.Address) (_ *remote.Client, closeLink func(), err error) {
	cfg := remote.ClientConfig{
		Address: addr, Session: v.String("resume"), Continue: v.Bool("continue"),
		NewID: newRequestID, Timeout: v.Duration("remote-request-timeout"), Now: time.Now,
	}
	closeLink = func() {}
	if addr.Kind == remote.SSH {
		if cfg.Pipe, closeLink, err = startSSH(ctx, p, v, addr); err != nil {
			return nil, nil, err
		}
	} else if cfg.Token, err = clientToken(v); err != nil {
		return nil, nil, err
	}
	client, err := remote.Dial(ctx, cfg)
	if err != nil {
		closeLink()
		return nil, nil, err
	}
	return client, closeLink, nil
}

func clientToken(v *config.Values) (string, error) {
	if v.String("token-file") == "" {
		return "", &config.UsageError{Text: "--connect needs --token-file", Hints: []string{"give the file with the server's token; ssh://HOST/WORKSPACE needs none"}}
	}
	return remote.ReadToken(v.String("token-file"))
}

func newRequestID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }

// farOneShot runs one turn on the server. Nobody is here to approve anything.
func farOneShot(ctx context.Context, p Process, v *config.Values, client *remote.Client, prompt string) (int, error) {
	asJSON := v.Bool("json")
	show := eventShower(p, asJSON)
	if err := showHeader(asJSON, show, client.Info()); err != nil {
		return statusFailed, err
	}
	refused, goal := 0, event.Goal{}
	end, err := drive(ctx, client, farText(client, prompt), func(e event.Event) error {
		switch e.Kind {
		case event.Asked:
			refused++
			go refuse(client, e.Question.CallID, e.Question.Digest)
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
		fmt.Fprintf(p.Stderr, "resume with: zcoder --connect %s --resume %s\n", termtext.Line(v.String("connect")), termtext.Line(client.Info().ID))
	}
	if end.Unattended += refused; end.Reason == "" {
		end.Reason = event.Complete // a command, which has no turn
	}
	return statusOf(end, goal), nil
}

// refuse answers for the person who is not there. Another client may have been faster.
func refuse(client *remote.Client, callID, digest string) {
	_ = client.Answer(callID, event.Answer{Choice: "no", Reason: "nobody is there to approve it", By: "unattended client", Digest: digest})
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

// switched reports that another client went on with another conversation, and which.
func switched(err error) (session string, ok bool) {
	var s *remote.SwitchedError
	if errors.As(err, &s) {
		return s.Session, true
	}
	return "", false
}
