// Package repl is the interactive frontend: lines in, slash commands, the events of
// a conversation on the terminal, the approval dialog, and the keys that stop things.
//
// It knows one conversation by four methods and nothing of models, tools, sessions,
// files or processes: app passes in what commands, completion and `! command` need.
// It reads no environment and no standard stream by itself. The draft is edited by
// readline; one key router before it owns the terminal's input.
//
// Everything runs in the goroutine of Run; other goroutines read the terminal, wait
// for the conversation or run a command, and hand their results to it.
package repl

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"

	"zcoder/internal/event"
)

// Conversation is what the REPL drives. A local session and a remote one both fit.
type Conversation interface {
	// Prompt runs a turn and blocks until its end.
	Prompt(ctx context.Context, in event.Input) (event.Reason, error)
	// Cancel stops the running turn; it may return before the turn ended.
	Cancel()
	// Answer settles a question.
	Answer(callID string, a event.Answer) error
	// Events yields the events after a sequence number and waits for more. When it
	// ends before ctx does, it is called again with what was seen last.
	Events(ctx context.Context, after int64) iter.Seq2[event.Event, error]
}

// Options is what Run works with. Conversation and Terminal are required.
type Options struct {
	Conversation Conversation
	// After is the sequence number after which events are shown at first.
	After    int64
	Terminal *Terminal
	// Commands are the slash commands beside /help, /copy, /edit, /terminal and
	// /quit, which are the REPL's own unless one here has the name.
	Commands []Command
	// More returns commands that come and go; it is asked often and must not block.
	// Nil: none.
	More func() []Command
	// Other finds a command that neither list has; it must not block. Nil: none.
	Other func(name string) (Command, bool)
	// History is the file that keeps the input lines, made with mode 0600; empty
	// keeps them in memory. Mask returns a line as it may be stored.
	History string
	Mask    func(line string) string
	// Paths returns the completions of an @path, without the @.
	Paths func(prefix string) []string
	// RunUser runs a person's `! command` on the terminal and blocks until its end. Nil
	// hands the line to the conversation.
	// shown is the text of the Shell event that the conversation gets for it, before
	// or after RunUser returns; the REPL does not show that one again.
	RunUser func(ctx context.Context, command string, tty TTY) (shown string, err error)
	// Edit lets a person edit text in an editor on the terminal.
	Edit func(ctx context.Context, text string, tty TTY) (string, error)
	// Steer takes a message that was entered during a turn; when it is nil the
	// message is sent at the end of the turn.
	Steer func(text string) error
	// Later takes a message for after the turn, which Ctrl-G ends; nil is none.
	Later func(text string) error
	// Command takes a `! command` that was entered during a turn; when it is nil the
	// draft waits for the end of the turn.
	Command func(command string) error
	// Waiting returns input that waited for the end of what ran, once each, as if it
	// were typed now. It is asked whenever nothing runs and must not block. Nil: none.
	Waiting func() (text string, ok bool)
	// Incoming returns work that comes from elsewhere and starts now. It is asked when
	// nothing runs, before what the person entered meanwhile, and the draft stays; after
	// one such turn what the person entered goes first. It must not block. Nil: none.
	Incoming func() (in event.Input, ok bool)
	// Arrived has a value when Incoming, which rings with Bell, or Waiting may have more.
	Arrived <-chan struct{}
	// Backlog says in a few words how much of that waits, "" for nothing. It is asked
	// often and must not block. Nil: nothing.
	Backlog func() string
	// Skip stops the turn for Esc, going on with what is queued; nil cancels.
	Skip func()
	// Banner is shown first.
	Banner string
	// Prompt returns the text before the draft; it must not block. It is asked
	// often. Nil is "› ".
	Prompt func() string
	// FirstInput is entered at the start as if typed.
	FirstInput string
	// KeepRunning leaves a turn running when the person leaves: somebody else's machine
	// works on it.
	KeepRunning bool
	// Bell rings when an answer or a question waits.
	Bell bool
	// Now and After are the clock, for tests; nil is the real one. AfterFunc calls f
	// in a goroutine of its own, and not after stop unless it was called already.
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func())
}

// Command is a slash command.
type Command struct {
	Name    string // without the slash
	Aliases []string
	Usage   string // of the arguments, e.g. "[NAME]"
	Help    string // one line
	Group   string // heading in /help
	// DuringTurn says that it may run while a turn does.
	DuringTurn bool
	// Complete returns the completions of the arguments so far; it may block.
	Complete func(prefix string) []string
	// Run runs it in a goroutine of its own. An error is shown; when it has a
	// method Hint() string, that too. ctx ends when the person presses Ctrl-C.
	Run func(ctx context.Context, ui UI, args string) error
}

// UI is what commands may do with the terminal. Its methods may be called from any
// goroutine while the command runs; those that ask block until there is an answer,
// and give none when the command's ctx ends. Text need not be safe.
type UI interface {
	Print(text string)
	Warn(text string)
	Error(text, hint string)
	// Status shows what the command is at in the status row, instead of its name. It
	// reports whether there is such a row: dumb terminals have none.
	Status(text string) bool
	// Choose lets the person pick one of items.
	Choose(title string, items []string, current int) (index int, ok bool)
	// AskLine reads a line that is kept nowhere.
	AskLine(prompt string) (line string, ok bool)
	// Submit enters text after the command, as if typed.
	Submit(text string)
	// SetDraft puts text into the prompt.
	SetDraft(text string)
	// Switch goes on with another conversation and shows its events after a
	// sequence number.
	Switch(c Conversation, after int64, banner string)
	// Copy offers text to the terminal's clipboard.
	Copy(text string)
	Quit()
}

// TTY is the terminal while a program of the person has it. In gives what is typed,
// byte for byte; Out passes bytes on as they are.
type TTY struct {
	In   io.Reader
	Out  io.Writer
	Size func() (cols, rows int)
	// Resize has a value after the size changed.
	Resize <-chan struct{}
}

// ErrTerminalGone is returned by Run when the terminal can no longer be written.
var ErrTerminalGone = errors.New("the terminal is gone")

// Run talks to the person until they leave, and returns nil then. It blocks. When
// ctx ends it returns ctx's cause: signals that end the program are app's to turn
// into that. The terminal is as before afterwards, whatever
// happened; a turn that runs is cancelled and waited for.
func Run(ctx context.Context, o Options) error {
	c, err := newConsole(ctx, o)
	if err != nil {
		return err
	}
	return c.run()
}
