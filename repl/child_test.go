package repl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// TestMain runs the REPL itself when a terminal test started this binary again.
func TestMain(m *testing.M) {
	if os.Getenv("REPL_TEST_CHILD") != "" {
		os.Exit(childMain())
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "12") // terminal tests wait, they do not compute
	os.Exit(m.Run())
}

// childMain is a small app around Run with a conversation that does what it is told.
func childMain() int {
	ending := []os.Signal{syscall.SIGTERM, syscall.SIGHUP}
	if os.Getenv("TERM") != "dumb" {
		ending = append(ending, syscall.SIGINT)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	defer stop()
	dumb := os.Getenv("TERM") == "dumb"
	t := &Terminal{In: os.Stdin, Out: os.Stdout, Dumb: dumb, Color: os.Getenv("NO_COLOR") == ""}
	if dumb {
		interrupts := make(chan struct{}, 1)
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGINT)
		go func() {
			for range signals {
				interrupts <- struct{}{}
			}
		}()
		t.Interrupt = interrupts
	}
	conv := newFake()
	relay := newChildRelay()
	err := Run(ctx, Options{
		Incoming:     relay.next,
		Arrived:      relay.arrived,
		Backlog:      relay.backlog,
		Bell:         relay.arrived != nil,
		Conversation: conv,
		Terminal:     t,
		Banner:       "a test",
		Prompt: func() string {
			if conv.last() == "panic in the loop" {
				panic("a test panics in the loop")
			}
			return "> "
		},
		FirstInput: os.Getenv("REPL_TEST_FIRST"),
		History:    os.Getenv("REPL_TEST_HISTORY"),
		Mask:       func(line string) string { return strings.ReplaceAll(line, "ghp_secret", "•••") },
		Paths: func(prefix string) []string {
			return []string{"main.go", "main_test.go", "docs/"}
		},
		RunUser: func(ctx context.Context, command string, tty TTY) (string, error) {
			shown, err := childCommand(ctx, command, tty)
			conv.emit(event.Event{Kind: event.Shell, Text: shown})
			return shown, err
		},
		Steer: childQueue(conv, "steer"),
		Later: childQueue(conv, "later"),
		Edit: func(_ context.Context, text string, tty TTY) (string, error) {
			_, _ = io.WriteString(tty.Out, "editor\r\n")
			return text + " edited\nin two lines\n", nil
		},
		Commands: childCommands(conv),
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Printf("left; prompts %q\n", conv.prompts)
	return 0
}

// childCommand is a program that reads the terminal by itself.
func childCommand(_ context.Context, command string, tty TTY) (string, error) {
	if command == "panic" {
		panic("a test panics in a goroutine")
	}
	cols, rows := tty.Size()
	fmt.Fprintf(tty.Out, "\x1b[?1000hprogram %s %dx%d\r\ntype q", command, cols, rows)
	buf := make([]byte, 64)
	var got []byte
	for !strings.Contains(string(got), "q") {
		n, err := tty.In.Read(buf)
		if err != nil {
			return "", err
		}
		got = append(got, buf[:n]...)
	}
	fmt.Fprintf(tty.Out, " got %q", got)
	return "the record", nil
}

// childQueue takes messages during a turn, when the test wants that.
func childQueue(conv *fake, how string) func(string) error {
	if os.Getenv("REPL_TEST_QUEUE") == "" {
		return nil
	}
	return func(text string) error {
		if text == "no" {
			return errors.New("the queue is full")
		}
		conv.say(how + " " + text + "\n")
		return nil
	}
}

func childCommands(conv *fake) []Command {
	return []Command{
		{Name: "model", Usage: "[NAME]", Help: "choose a model", Group: "Model",
			Complete: func(string) []string { return []string{"qwen", "qwen-coder", "llama"} },
			Run: func(_ context.Context, ui UI, args string) error {
				if args != "" {
					ui.Print("model " + args)
					return nil
				}
				if i, ok := ui.Choose("Models", []string{"qwen", "qwen-coder", "llama"}, 1); ok {
					ui.Print(fmt.Sprint("picked ", i))
				}
				return nil
			}},
		{Name: "ask", Help: "ask a line", Run: func(_ context.Context, ui UI, _ string) error {
			line, ok := ui.AskLine("name: ")
			ui.Print(fmt.Sprintf("asked %q %v", line, ok))
			return nil
		}},
		{Name: "context", Help: "show the context", DuringTurn: true, Run: func(_ context.Context, ui UI, _ string) error {
			ui.Print("the context")
			return nil
		}},
		{Name: "new", Help: "start anew", Run: func(_ context.Context, ui UI, _ string) error {
			ui.Switch(newFake(), 0, "a new conversation")
			return nil
		}},
		{Name: "slow", Help: "wait", Run: func(ctx context.Context, _ UI, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		{Name: "panic", Help: "panic", Run: func(context.Context, UI, string) error { panic("a test panics in a command") }},
	}
}

// fake is a conversation that does what the prompts say.
type fake struct {
	mu      sync.Mutex
	more    *sync.Cond
	events  []event.Event
	answers chan event.Answer
	cancel  context.CancelFunc
	prompts []string
	turns   int
}

func newFake() *fake {
	f := &fake{answers: make(chan event.Answer, 1)}
	f.more = sync.NewCond(&f.mu)
	return f
}

func (f *fake) emit(e event.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Seq = int64(len(f.events) + 1)
	e.Time = time.Now()
	f.events = append(f.events, e)
	f.more.Broadcast()
}

func (f *fake) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		stop := context.AfterFunc(ctx, func() { f.mu.Lock(); defer f.mu.Unlock(); f.more.Broadcast() })
		defer stop()
		for {
			f.mu.Lock()
			for int64(len(f.events)) <= after && ctx.Err() == nil {
				f.more.Wait()
			}
			if ctx.Err() != nil {
				f.mu.Unlock()
				yield(event.Event{}, ctx.Err())
				return
			}
			e := f.events[after]
			f.mu.Unlock()
			after++
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (f *fake) Cancel() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel()
	}
}

func (f *fake) Answer(callID string, a event.Answer) error {
	f.emit(event.Event{Kind: event.Answered, Answer: &a})
	f.answers <- a
	return nil
}

func (f *fake) Prompt(ctx context.Context, in event.Input) (event.Reason, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.mu.Lock()
	f.cancel = cancel
	f.prompts = append(f.prompts, in.Text)
	f.turns++
	f.mu.Unlock()
	f.emit(event.Event{Kind: event.TurnStart})
	if in.Peer != nil {
		f.emit(event.Event{Kind: event.Relayed, Peer: in.Peer})
	} else {
		f.emit(event.Event{Kind: event.User, Text: in.Text})
	}
	began := time.Now()
	f.act(ctx, in.Text)
	end := event.End{Reason: event.Complete, Took: time.Since(began), OutputTokens: 12, PromptTokens: 5000, Window: 16384}
	if ctx.Err() != nil {
		end.Reason = event.Cancelled
	}
	f.emit(event.Event{Kind: event.TurnEnd, End: &end})
	if in.Text == "linger" { // a server says later that nothing follows
		pause(ctx, time.Second)
	}
	return end.Reason, nil
}

// act does what a prompt says.
func (f *fake) act(ctx context.Context, text string) {
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "wait":
		f.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Reading}})
		<-ctx.Done()
	case "lines": // slowly: one piece of a line each time
		n, _ := strconv.Atoi(rest)
		n = min(n, 1000)
		f.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Generating}})
		for i := range n {
			for _, piece := range []string{"line ", fmt.Sprint(i), " of the\n"} {
				f.say(piece)
				if !pause(ctx, 2*time.Millisecond) {
					return
				}
			}
		}
	case "flood": // faster than anybody reads, until it is stopped
		f.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Generating}})
		for i := 0; ctx.Err() == nil; i++ {
			f.say(fmt.Sprintf("some words of a long answer, line %d\n", i))
			if i%8 == 7 && !pause(ctx, time.Millisecond) {
				return
			}
		}
	case "ask":
		f.ask(ctx, rest)
	case "later":
		f.emit(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Reading}})
		if pause(ctx, 300*time.Millisecond) {
			f.ask(ctx, rest)
		}
	case "panic":
		if rest == "" {
			panic("a test panics in a turn")
		}
	case "timeout": // the turn ends while its question waits
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		f.ask(ctx, "1")
	default:
		f.say("you said " + strconv.Quote(text))
		f.reply("you said " + strconv.Quote(text))
	}
}

func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.prompts) == 0 {
		return ""
	}
	return f.prompts[len(f.prompts)-1]
}

func (f *fake) say(text string) { f.emit(event.Event{Kind: event.Content, Text: text}) }

func (f *fake) reply(text string) {
	f.emit(event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Role: chat.Assistant, Content: text}}})
}

// ask asks to run a command of so many lines.
func (f *fake) ask(ctx context.Context, lines string) {
	n, _ := strconv.Atoi(lines)
	n = min(n, 1000)
	q := shortQuestion()
	if n > 1 {
		q = longQuestion(n)
	}
	f.emit(event.Event{Kind: event.CallStart, Call: &event.Call{ID: q.CallID, Name: q.Tool, Summary: "run_command " + strings.SplitN(q.Text, "\n", 2)[0]}})
	f.emit(event.Event{Kind: event.Asked, Question: &q})
	r := event.Result{CallID: q.CallID, Name: q.Tool, Status: "denied", Line: "denied by you"}
	select {
	case a := <-f.answers:
		if a.Choice != "no" {
			r = event.Result{CallID: q.CallID, Name: q.Tool, Status: "ok", Line: "exit 0", Took: 1200 * time.Millisecond}
		}
		f.emit(event.Event{Kind: event.CallEnd, Result: &r})
		f.say(fmt.Sprintf("the answer was %s, %q", a.Choice, a.Reason))
	case <-ctx.Done():
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
