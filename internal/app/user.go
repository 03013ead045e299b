package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/chat"
	"zcoder/internal/event"
	"zcoder/internal/proc"
	"zcoder/internal/termtext"
	"zcoder/repl"
	"zcoder/tools"
)

// maxShown bounds what the model sees of a person's own command, in bytes.
const maxShown = 8192

// runUser runs a line that the person typed after "!", on the terminal, with the
// environment as it is. What it wrote, bounded, is what the next request can see;
// what was typed into it is not recorded.
func (d *desk) runUser(ctx context.Context, command string, tty repl.TTY) (shown string, err error) {
	if !d.confirmGuarded(command, tty) {
		return "", errors.New("the command was not run")
	}
	if rest, ok := inBackground(command); ok {
		return "", d.commandLater(rest)
	}
	argv := append(append([]string(nil), d.w.shell.Argv()...), command)
	out, err := onTerminal(ctx, proc.Spec{Argv: argv, Dir: d.w.ws.Root(), Env: d.w.p.Env, MaxOutput: maxShown}, tty)
	if err != nil {
		return "", err
	}
	shown = userRecord(command, out)
	d.conv().Emit(event.Event{Kind: event.Shell, Text: shown})
	return shown, nil
}

// onTerminal runs a child on the terminal that the REPL lends. Its two helpers end
// with the child, and when the REPL takes the terminal back.
func onTerminal(ctx context.Context, spec proc.Spec, tty repl.TTY) (proc.Outcome, error) {
	done := make(chan struct{})
	defer close(done)
	keys := make(chan []byte)
	go passKeys(tty.In, keys, done)
	sizes := make(chan proc.Size)
	go passSizes(tty, sizes, done)
	return proc.RunTTY(ctx, spec, proc.TTY{Keys: keys, Out: tty.Out, Size: sizeOf(tty), Resize: sizes})
}

func sizeOf(tty repl.TTY) proc.Size {
	cols, rows := tty.Size()
	return proc.Size{Rows: rows, Cols: cols}
}

func passKeys(in io.Reader, keys chan<- []byte, done <-chan struct{}) {
	for {
		buf := make([]byte, 1024)
		n, err := in.Read(buf)
		if n > 0 {
			select {
			case keys <- buf[:n]:
			case <-done:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func passSizes(tty repl.TTY, sizes chan<- proc.Size, done <-chan struct{}) {
	for {
		select {
		case <-tty.Resize:
		case <-done:
			return
		}
		select {
		case sizes <- sizeOf(tty):
		case <-done:
			return
		}
	}
}

func userRecord(command string, out proc.Outcome) string {
	end := fmt.Sprintf("Exit code: %d", out.ExitCode)
	if out.Signal != "" {
		end = "Ended by " + out.Signal
	}
	return shellRecord(command, end+"\n"+out.Output)
}

// shellRecord is what the model sees of a person's own command.
func shellRecord(command, result string) string {
	return fmt.Sprintf("The user ran a command in the workspace:\n$ %s\n%s", command, tools.Cut(result, maxShown))
}

// direct runs `! command` that did not come from the keyboard: it asks like a command
// of the model.
func (c *conversation) direct(ctx context.Context, command string) (event.Reason, error) {
	args := tools.NewArgs(map[string]any{"command": command}).JSON()
	return c.Direct(ctx, chat.ToolCall{Name: "run_command", Args: args}, func(res tools.Result) string {
		return shellRecord(command, res.Text)
	})
}

// confirmGuarded asks again before a typed command that the guard would refuse.
func (d *desk) confirmGuarded(command string, tty repl.TTY) bool {
	v := d.w.policy.Judge(approval.Request{
		Tool: "run_command", Effect: approval.Exec, Origin: approval.OriginUser, Text: command, Shell: d.w.shell.Argv(), Dir: d.w.ws.Root(),
	})
	if v.Decision != approval.Deny || v.Rule != "guard" {
		return true
	}
	fmt.Fprintf(tty.Out, "%s\r\nRun it all the same? Type yes: ", termtext.Line(v.Reason))
	line := readLine(tty)
	return line == "yes"
}

// readLine reads what is typed up to Enter, with an echo.
func readLine(tty repl.TTY) string {
	var line []byte
	key := make([]byte, 1)
	for {
		if n, err := tty.In.Read(key); n == 0 || err != nil || key[0] == 3 || key[0] == 4 {
			return ""
		}
		if key[0] == '\r' || key[0] == '\n' {
			_, _ = io.WriteString(tty.Out, "\r\n") // the terminal may be gone
			return string(line)
		}
		if key[0] >= ' ' && key[0] < 0x7f && len(line) < 16 {
			line = append(line, key[0])
			_, _ = tty.Out.Write(key)
		}
	}
}

// edit opens the draft in the person's editor.
func (d *desk) edit(ctx context.Context, text string, tty repl.TTY) (string, error) {
	return editText(ctx, d.w.p, d.w.runtime.Path(), d.w.ws.Root(), text, tty)
}

// editText opens a text in the person's editor, which works in dir. Until the editor ends,
// the text lies in a private directory.
func editText(ctx context.Context, p Process, private, dir, text string, tty repl.TTY) (string, error) {
	editor := cmp.Or(p.getenv("VISUAL"), p.getenv("EDITOR"), "vi")
	path := filepath.Join(private, "draft.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("write the draft: %w", err)
	}
	defer os.Remove(path)
	argv := append(strings.Fields(editor), path)
	out, err := onTerminal(ctx, proc.Spec{Argv: argv, Dir: dir, Env: p.Env}, tty)
	if err != nil {
		return "", withHint(err, "set EDITOR to an editor that is installed")
	}
	if out.ExitCode != 0 {
		return "", errors.New("the editor ended with an error; the draft is as it was")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the draft: %w", err)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// startNotices are warnings that belong under the start line.
func (w *workbench) startNotices() []string {
	notices := w.notices
	if owner := w.p.getenv("SUDO_USER"); owner != "" && os.Geteuid() == 0 {
		notices = append(notices, fmt.Sprintf("warning: this runs as root for %s; new files will belong to root, and settings are in %s", owner, w.home))
	}
	return notices
}
