package repl

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"zcoder/internal/event"
)

// cutConversation ends its events after a few, as a server may.
type cutConversation struct {
	*fake
	asked  []int64 // after which events were asked for
	events int64   // how many there are
}

func (c *cutConversation) Events(ctx context.Context, after int64) iter.Seq2[event.Event, error] {
	c.asked = append(c.asked, after)
	return func(yield func(event.Event, error) bool) {
		for seq := after + 1; seq <= min(after+2, c.events); seq++ {
			if !yield(event.Event{Seq: seq, Kind: event.Info, Text: "x"}, nil) {
				return
			}
		}
		yield(event.Event{}, errors.New("cut off"))
	}
}

func TestSubscriptionGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, v := testScreen(80, 24)
		ctx, cancel := context.WithCancel(t.Context())
		c := &console{
			o:   Options{Now: time.Now, AfterFunc: func(d time.Duration, f func()) func() { timer := time.AfterFunc(d, f); return func() { timer.Stop() } }},
			scr: s, t: &Terminal{}, ctx: ctx, inbox: make(chan func(), 1),
		}
		c.tr = newTranscript(s, style{plain: true}, time.Now)
		conv := &cutConversation{fake: newFake(), events: 5}
		c.conv = conv
		c.subscribe()
		for over := time.After(20 * time.Second); over != nil; {
			select {
			case f := <-c.inbox:
				f()
			case <-over:
				over = nil
			}
		}
		cancel()
		c.wg.Wait()
		if c.seen != 5 {
			t.Errorf("seen %d events", c.seen)
		}
		// At once while something comes, then after 1, 2, 4 and 8 seconds.
		if want := []int64{0, 2, 4, 5, 5, 5, 5, 5}; !slices.Equal(conv.asked, want) {
			t.Errorf("asked after %v, want %v", conv.asked, want)
		}
		s.flush()
		if got := v.all(); strings.Count(got, "trying again: cut off") != 1 {
			t.Errorf("shown\n%s", got)
		}
	})
}

func TestRunNeedsATerminal(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Run(t.Context(), Options{Conversation: newFake(), Terminal: &Terminal{In: f, Out: f}}); err == nil {
		t.Error("no error")
	}
	if err := Run(t.Context(), Options{}); err == nil {
		t.Error("no error without a conversation")
	}
}

func TestNearest(t *testing.T) {
	c := &console{o: Options{Commands: []Command{{Name: "model"}, {Name: "sessions"}, {Name: "new", Aliases: []string{"clear"}}, {Name: "context"}}}}
	for word, want := range map[string]string{
		"hlep": "help", "modle": "model", "mod": "model", "session": "sessions", "claer": "new", "ex": "quit",
		"xyzzy": "", "contxt": "context", "etc/hosts": "", "": "", "quti": "quit",
	} {
		if got := c.nearest(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	one, two := newHistory(path, nil), newHistory(path, nil)
	add := func(h *history, line string) {
		t.Helper()
		if err := h.add(line); err != nil {
			t.Fatal(err)
		}
	}
	up := func(h *history) string { text, _, _ := h.step(false, change{}); return text }
	add(one, "a")
	add(two, "b\nc")
	add(one, "d")
	add(one, "d")
	for _, want := range []string{"d", "b\nc", "a", ""} {
		if got := up(two); got != want {
			t.Errorf("two: %q, want %q", got, want)
		}
	}
	for _, want := range []string{"d", "b\nc", "a", ""} {
		if got := up(one); got != want {
			t.Errorf("one: %q, want %q", got, want)
		}
	}
	three := newHistory(path, nil)
	if got := up(three); got != "d" {
		t.Errorf("three: %q", got)
	}
	if _, back, ok := three.step(true, change{}); !ok || back == nil {
		t.Error("no way back to the draft")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	add(one, "e")
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestHistoryBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	line := strings.Repeat("x", 9000)
	var b strings.Builder
	b.WriteString("not JSON\n")
	for range 600 {
		b.WriteString(`"` + line + "\"\n\"y\"\n")
	}
	if err := os.WriteFile(path, []byte(b.String()+`"unfinished`), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHistory(path, nil)
	h.sync()
	if n := len(h.entries); n == 0 || n > maxHistory {
		t.Errorf("%d entries", n)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxHistoryFile || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := h.add(strings.Repeat("z", maxHistoryLine+1)); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(path); after.Size() != info.Size() {
		t.Error("a huge line was stored")
	}
	if h.entries[len(h.entries)-1][0] != 'z' {
		t.Error("it is not kept in memory")
	}
}

func TestChooser(t *testing.T) {
	c := newChooser(style{plain: true}, "Pick\x1b", []string{"one", "two\n", "three", "four"}, 1, 40, 5)
	press := func(s string) (int, bool) {
		var d decoder
		for _, k := range append(d.feed([]byte(s)), d.expire()...) {
			if i, done := c.key(k); done {
				return i, true
			}
		}
		return -1, false
	}
	if got := strings.Join(c.frame(), "\n"); got != "Pick\\x1b\n  one\n> two⏎                                 \n  three\n2 of 4 · Enter picks, Esc leaves, type…" {
		t.Errorf("frame\n%s", got)
	}
	if i, done := press("\x1b[B\x1b[B\x1b[B\r"); !done || i != 3 {
		t.Errorf("down to the end: %d %v", i, done)
	}
	if i, done := press("HRE\r"); !done || i != 2 {
		t.Errorf("narrowed: %d %v", i, done)
	}
	if _, done := press("zzz\r"); done {
		t.Error("picked nothing")
	}
	if i, done := press("\x7f\x7f\x7f\x7f\x7f\x7f\x1b[H\r"); !done || i != 0 {
		t.Errorf("widened again: %d %v", i, done)
	}
	if i, done := press("\x1b"); !done || i != -1 {
		t.Errorf("Esc: %d %v", i, done)
	}
}

// FuzzConsole checks that no input makes the loop panic, whatever opens, and that
// what it writes is what a terminal understands.
func FuzzConsole(f *testing.F) {
	f.Add("hello\r|/model\r|\x1b[B\r|ask 1\r|y|\x03|\x12he\r|/he\t\t|@m\t\t|!ls\r|q", 40, 10)
	f.Add("\x1b[200~/quit\n\x1b[201~\r|\x1a|\x0c|\x18\x05|wait\r|/copy\r|//x\r|\x1b|\x07|/ask\r|x\r|\x04", 3, 2)
	f.Fuzz(func(t *testing.T, script string, cols, rows int) {
		if cols < 2 || rows < 1 || cols > 200 || rows > 100 || len(script) > 400 {
			return
		}
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer null.Close()
		conv := newFake()
		c, err := newConsole(t.Context(), Options{
			Conversation: conv,
			Terminal:     &Terminal{In: null, Out: null, Size: func() (int, int) { return cols, rows }, Suspend: func() {}},
			Commands:     childCommands(conv)[:4],
			Paths:        func(string) []string { return []string{"main.go", "mä"} },
			RunUser:      childCommand,
			Edit:         func(_ context.Context, text string, _ TTY) (string, error) { return text + "e", nil },
			Later:        func(string) error { return nil },
			AfterFunc:    func(time.Duration, func()) func() { return func() {} },
		})
		if err != nil {
			t.Fatal(err)
		}
		v := newVT(cols, rows)
		c.scr.out = vtWriter{v}
		defer c.ed.close()
		c.subscribe()
		at := start
		for _, keys := range strings.Split(script, "|") {
			if c.left {
				break
			}
			at = at.Add(time.Second)
			c.take(chunk{data: []byte(keys), at: at})
			c.settle()
			for range 5 { // what the goroutines do, as far as they are
				select {
				case f := <-c.inbox:
					f()
					c.settle()
				default:
				}
			}
		}
		c.bye()
		c.wg.Wait()
		if len(v.unknown) > 0 {
			t.Fatalf("wrote %q", v.unknown)
		}
	})
}
