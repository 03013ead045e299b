package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/config"
	"zcoder/internal/termtext"
	"zcoder/repl"
)

// Pauses between two lines of a download's progress, on a terminal that can rewrite a
// line and on one that cannot.
const (
	pullRedraw = 200 * time.Millisecond
	pullLine   = 10 * time.Second
)

// errStopped is the error of a download that a person stopped.
var errStopped = errors.New("stopped")

// pull has the server download a model. show gets the progress, every now and then,
// and reports whether it can rewrite its line; how is what to enter to go on later.
func pull(ctx context.Context, client modelServer, name, how string, show func(line string) bool) error {
	p, ok := client.(puller)
	if !ok {
		return withHint(fmt.Errorf("the server at %s cannot pull models over this API", client.BaseURL()), "add the model where the server runs, or use --provider ollama")
	}
	meter := &pullMeter{now: time.Now}
	var next time.Time
	err := p.Pull(ctx, name, func(progress chat.PullProgress) {
		another := progress.Total != meter.last.Total
		meter.add(progress)
		if now := meter.now(); another || !now.Before(next) {
			next = now.Add(pullLine)
			if show(meter.line()) {
				next = now.Add(pullRedraw)
			}
		}
	})
	if err != nil && ctx.Err() != nil {
		return withHint(fmt.Errorf("%w: %s pulled, which the server keeps", errStopped, meter.held()), "%s goes on from there", how)
	}
	return err
}

// pullable checks a name before it is sent.
func pullable(name string) error {
	if name == "" || strings.ContainsAny(name, " \t\"'") {
		return fmt.Errorf("pull %q: expected the name of one model", name)
	}
	return nil
}

// cmdPull downloads a model, and uses it when there is no other.
func (d *desk) cmdPull(ctx context.Context, ui repl.UI, name string) error {
	if err := pullable(name); err != nil {
		return withHint(err, "/pull NAME, such as /pull qwen3-coder")
	}
	client, current := d.w.brain.current()
	err := pull(ctx, client, name, "/pull "+name, func(line string) bool {
		if ui.Status("pulling " + name + "  " + line) {
			return true
		}
		ui.Print(line)
		return false
	})
	if errors.Is(err, errStopped) {
		ui.Warn(err.Error() + "\n" + hintOf(err))
		return nil
	}
	if err != nil {
		return err
	}
	facts, err := client.Show(ctx, name)
	if err != nil {
		return err
	}
	ui.Print("pulled " + name)
	if !facts.Tools {
		ui.Warn(fmt.Sprintf("%s cannot call tools, so it cannot work as an agent", name))
		return nil
	}
	if _, err := d.w.brain.known(ctx); !missing(err) && !sameModel(name, current) {
		ui.Print("/model " + name + " uses it")
		return nil
	}
	return d.cmdModel(ctx, ui, name)
}

// pullCommand is `zcoder pull`.
func pullCommand() subcommand {
	sub := config.Sub{Name: "pull", Usage: "NAME", Meaning: "have the server download a model", Settings: []string{"host", "provider"}}
	return subcommand{sub, func(ctx context.Context, p Process, v *config.Values) (int, error) {
		name := strings.Join(v.Args(), " ")
		if err := pullable(name); err != nil {
			return statusUsage, subUsage("pull", "give the name of one model")
		}
		client, err := dialServer(v, v.String("host"), nil)
		if err != nil {
			return statusUsage, err
		}
		ctx, stop, caught := catchSignals(ctx)
		defer stop()
		if err := pullOn(ctx, p, client, name, "zcoder pull "+name); err != nil {
			return max(caught(), statusFailed), err
		}
		return statusOK, nil
	}}
}

// pullOn downloads a model with its progress on stderr, outside the REPL.
func pullOn(ctx context.Context, p Process, client modelServer, name, how string) error {
	rewrites := isTerminal(p.Stderr) && p.getenv("TERM") != "dumb" && p.getenv("TERM") != ""
	err := pull(ctx, client, name, how, func(line string) bool {
		if rewrites {
			fmt.Fprint(p.Stderr, "\r\x1b[K"+line)
		} else {
			fmt.Fprintln(p.Stderr, line)
		}
		return rewrites
	})
	if rewrites {
		fmt.Fprint(p.Stderr, "\r\x1b[K")
	}
	if err == nil {
		fmt.Fprintln(p.Stderr, "pulled "+termtext.Line(name))
	}
	return err
}

// offerPull asks, at the start and on the plain terminal, for a model to download when
// the server has none that is of use. none is the error when there is none then either.
func (d *desk) offerPull(ctx context.Context, t *repl.Terminal, none error) error {
	client, wanted := d.w.brain.current()
	if _, ok := client.(puller); !ok {
		return none
	}
	if list, err := able(ctx, client); err != nil || len(list) > 0 {
		return none // the person chose none of them
	}
	fmt.Fprintf(t.Out, "The server at %s has no model that can call tools.\n", client.BaseURL())
	fmt.Fprintf(t.Out, "Pull %s? It may be many gigabytes. [y, the name of another model, Enter for none] ", termtext.Line(wanted))
	line, err := readAnswer(t.In)
	name := strings.TrimSpace(line)
	switch strings.ToLower(name) {
	case "", "n", "no":
		return none
	case "y", "yes":
		name = wanted
	}
	if err = errors.Join(err, pullable(name)); err != nil {
		return err
	}
	stoppable, stop, _ := catchSignals(ctx)
	defer stop()
	if err := pullOn(stoppable, d.w.p, client, name, "zcoder pull "+name); err != nil {
		return err
	}
	d.w.brain.use(nil, name)
	d.w.rememberModel(name)
	return nil
}

// readAnswer reads a line and not a byte more, since the REPL reads on from there.
func readAnswer(in io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := in.Read(b); err != nil || b[0] == '\n' {
			return string(line), err
		}
		line = append(line, b[0])
	}
}
