package repl

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/event"
)

// shown returns what a plain terminal gets of events, one second apart.
func shown(events ...event.Event) string {
	var b bytes.Buffer
	s := &screen{out: &b, dumb: true, size: func() (int, int) { return 80, 24 }}
	now := start
	tr := newTranscript(s, style{plain: true}, func() time.Time { return now })
	for _, e := range events {
		now = now.Add(time.Second)
		e.Time = now
		tr.show(e)
		s.flush()
	}
	return b.String()
}

func say(text string) event.Event { return event.Event{Kind: event.Content, Text: text} }
func think(text string) event.Event {
	return event.Event{Kind: event.Thinking, Text: text}
}

func reply(content, thinking string) event.Event {
	return event.Event{Kind: event.Reply, Reply: &event.ModelReply{Message: chat.Message{Content: content, Thinking: thinking}}}
}

func call(id, summary string) event.Event {
	return event.Event{Kind: event.CallStart, Call: &event.Call{ID: id, Name: "x", Summary: summary}}
}

func result(r event.Result) event.Event { return event.Event{Kind: event.CallEnd, Result: &r} }
func end(e event.End) event.Event       { return event.Event{Kind: event.TurnEnd, End: &e} }

func code(n int) *int { return &n }

func TestTranscript(t *testing.T) {
	question := shortQuestion()
	for _, test := range []struct {
		name   string
		events []event.Event
		want   string
	}{
		{"a turn", []event.Event{
			{Kind: event.TurnStart}, {Kind: event.User, Text: "fix it\nplease"},
			think("I look "), think("at it"), say("I read "), say("it.\n"), reply("I read it.\n", "I look at it"),
			call("1", "read_file main.go"), result(event.Result{CallID: "1", Name: "read_file", Status: "ok", Line: "42 lines"}),
			call("2", "run_command go test"), result(event.Result{CallID: "2", Name: "run_command", Status: "failed", Line: "exit 1", Took: 12300 * time.Millisecond}),
			say("Done"), reply("Done", ""),
			end(event.End{Reason: event.Complete, Took: 65 * time.Second, Changed: []string{"a.go"}, Commands: []event.Ran{{Summary: "go test", Exit: code(1)}}, Failed: 1, OutputTokens: 1234, PromptTokens: 5000, Window: 16384}),
		}, `› fix it
  please

  thought for 2.0s (4 words)

I read it.

● read_file main.go · 42 lines · 0.0s
● run_command go test · failed: exit 1 · 12s

Done

done · 1 file changed (a.go) · go test exit 1 · 1 call failed · 1.2k tokens · 31 % of 16k · 1m05s
`},
		{"a reply without pieces", []event.Event{reply("\n\nHello", "two words")}, "  thought (2 words)\n\nHello\n"},
		{"the rest of a reply", []event.Event{say("Hel"), reply("Hello", "")}, "Hello\n"},
		{"leading empty lines", []event.Event{say("\n"), say("\n\nHello\n\nyou"), reply("\n\n\nHello\n\nyou", "")}, "Hello\n\nyou\n"},
		{"two replies", []event.Event{say("one"), reply("one", ""), say("two"), reply("two", "")}, "one\ntwo\n"},
		{"a notice in a code block", []event.Event{say("```\ncode **x"), {Kind: event.Info, Text: "notice"}, say("y**\n```\n"), reply("```\ncode **xy**\n```\n", "")},
			"```\ncode **x\n\nnotice\n\ny**\n```\n"},
		{"an edit", []event.Event{
			call("1", "replace_text a.go"), result(event.Result{CallID: "1", Name: "replace_text", Status: "ok", Line: "1 line", Diff: "--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-old \x1b[2J\n+new\n"}),
		}, "● replace_text a.go · 1 line · 0.0s\n  --- a/a.go\n  +++ b/a.go\n  @@ -1 +1 @@\n  -old \\x1b[2J\n  +new\n"},
		{"what the call has said", []event.Event{
			call("1", "replace_text a.go (+1 -1)"), result(event.Result{CallID: "1", Name: "replace_text", Status: "ok", Line: "+1 -1"}),
			call("2", "replace_text a.go (+1 -1)"), result(event.Result{CallID: "2", Name: "replace_text", Status: "failed", Line: "the file changed"}),
		}, "● replace_text a.go (+1 -1) · 0.0s\n● replace_text a.go (+1 -1) · failed: the file changed\n"},
		{"denied, cancelled, skipped", []event.Event{
			result(event.Result{Name: "a", Status: "denied", Line: "denied by you"}),
			result(event.Result{Name: "b", Status: "cancelled", Line: "stopped"}),
			result(event.Result{Name: "c", Status: "skipped", Line: "not executed"}),
			result(event.Result{Name: "d", Status: "denied", Line: "refused: no .git"}),
			result(event.Result{Name: "e", Status: "failed"}),
		}, "● a · denied by you\n● b · stopped\n● c · not executed\n● d · refused: no .git\n● e · failed\n"},
		{"approved", []event.Event{
			{Kind: event.Asked, Question: &question}, {Kind: event.Answered, Answer: &event.Answer{CallID: "c1", Choice: "conversation", By: "web"}},
		}, "✓ run_command: approved, and commands for the rest of this conversation by web\n  zsh -f -c · in /work/x\n  │ go test ./...\n"},
		{"denied with a reason", []event.Event{
			{Kind: event.Asked, Question: &question}, {Kind: event.Answered, Answer: &event.Answer{CallID: "c1", Choice: "no", Reason: "not\nnow"}},
		}, "✗ run_command: denied\n  zsh -f -c · in /work/x\n  │ go test ./...\n  reason: not⏎now\n"},
		{"finish", []event.Event{
			call("1", "finish"), result(event.Result{CallID: "1", Name: "finish", Status: "ok"}),
			end(event.End{Reason: event.Blocked, Text: "I need `x`.", Refused: 2, Commands: []event.Ran{{Summary: "a"}, {Summary: "b", Exit: code(0)}, {Summary: "c", Exit: code(0)}, {Summary: "d", Exit: code(0)}}}),
		}, "I need `x`.\n\nblocked · 1 earlier command · b exit 0 · c exit 0 · d exit 0 · 2 refused · 0.0s\n"},
		{"an answer that was streamed is not repeated", []event.Event{say("ok"), reply("ok", ""), end(event.End{Reason: event.Complete, Text: "ok"})}, "ok\n\ndone · 0.0s\n"},
		{"an error", []event.Event{say("par"), end(event.End{Reason: event.Errored, Text: "no server at \x1b[1m", Hint: "start ollama serve"})},
			"par\n\nerror: no server at \\x1b[1m\nhint: start ollama serve\n\nended with an error · 0.0s\n"},
		{"a limit", []event.Event{end(event.End{Reason: event.Limited, Text: "stopped after 3 rounds", Hint: "say go on"})},
			"warning: stopped after 3 rounds\nhint: say go on\n\nstopped at a limit · 0.0s\n"},
		{"many files", []event.Event{end(event.End{Reason: event.Complete, Changed: []string{"a", "b\x1b", "c", "d", "e"}})}, "done · 5 files changed (a, b\\x1b, c, 2 more) · 0.0s\n"},
		{"names with escapes", []event.Event{
			call("1", "read_file a\x1b[31m\nb"), result(event.Result{CallID: "1", Status: "ok", Line: "1\x07"}),
			{Kind: event.Warning, Text: "w\u202e"}, {Kind: event.Shell, Text: "$ id\n\x1b]52;c;x\x07"},
		}, "● read_file a\\x1b[31m⏎b · 1\\x07 · 0.0s\n\nwarning: w<U+202E>\n$ id\n\\x1b]52;c;x\\x07\n"},
		{"the queue", []event.Event{
			{Kind: event.Queued, Item: &event.Item{Mode: event.Steer, Text: "be\nquick"}},
			{Kind: event.Queued, Item: &event.Item{Mode: event.FollowUp, Text: "then"}},
			{Kind: event.Unqueued, Item: &event.Item{Text: "then", State: "discarded"}},
		}, "queued, the model gets it after this step: be⏎quick\nqueued for after this turn: then\nno longer queued: then\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := shown(test.events...); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestTranscriptBounds(t *testing.T) {
	q := longQuestion(100)
	got := shown(event.Event{Kind: event.Asked, Question: &q}, event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: q.CallID, Choice: "once"}})
	if !strings.Contains(got, "… 65 of 100 lines not shown here …") || !strings.Contains(got, "│ END\n") {
		t.Errorf("got\n%s", got)
	}
	q = longQuestion(40)
	got = shown(event.Event{Kind: event.Asked, Question: &q}, event.Event{Kind: event.Answered, Answer: &event.Answer{CallID: q.CallID, Choice: "once"}})
	if n := strings.Count(got, "│"); n != 40 {
		t.Errorf("%d lines of 40", n)
	}
	got = shown(result(event.Result{Name: "w", Status: "ok", Diff: strings.Repeat("+x\n", 100)}))
	if strings.Count(got, "+x") != maxDiffLines || !strings.Contains(got, "60 more lines of this change not shown") {
		t.Errorf("got\n%s", got)
	}
	from := time.Now()
	got = shown(result(event.Result{Name: "w", Status: "ok", Diff: "-" + strings.Repeat("ab", 25<<20) + "\n+" + strings.Repeat("漢\x1b", 12<<20) + "\n"}))
	if len(got) > 4*maxCells || time.Since(from) > 5*time.Second {
		t.Errorf("%d bytes of a diff of two huge lines in %v", len(got), time.Since(from))
	}
}

func TestTranscriptColours(t *testing.T) {
	var b bytes.Buffer
	s := &screen{out: &b, dumb: true, size: func() (int, int) { return 80, 24 }}
	tr := newTranscript(s, style{color: true}, func() time.Time { return start })
	tr.show(result(event.Result{Name: "edit", Status: "ok", Line: "ok", Diff: "-a\n+b\n"}))
	s.flush()
	want := "\x1b[32m●\x1b[0m edit\x1b[2m · \x1b[0mok\x1b[2m · 0.0s\x1b[0m\n  \x1b[31m-a\x1b[0m\n  \x1b[32m+b\x1b[0m\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestStatus(t *testing.T) {
	s := &screen{out: io.Discard, dumb: true, size: func() (int, int) { return 80, 24 }}
	now := start
	tr := newTranscript(s, style{}, func() time.Time { return now })
	tr.show(event.Event{Kind: event.TurnStart})
	tr.show(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Reading}})
	now = now.Add(12 * time.Second)
	if got := tr.status(now); got != "reading prompt 12s" {
		t.Errorf("%q", got)
	}
	tr.show(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Running, Detail: "run_command a\nb"}})
	tr.show(event.Event{Kind: event.Output, Text: "one\ntwo \x1b[1m\n\n"})
	if got := tr.status(now); got != "running run_command a⏎b 0s" || tr.output != `two \x1b[1m` {
		t.Errorf("%q %q", got, tr.output)
	}
	tr.show(event.Event{Kind: event.Progress, State: &event.State{Phase: event.Generating}})
	tr.show(event.Event{Kind: event.Thinking, Text: "one two three", Time: now})
	if got := tr.status(now.Add(3 * time.Second)); got != "thinking, 3 words, 3s" {
		t.Errorf("%q", got)
	}
	tr.show(event.Event{Kind: event.Content, Text: "x", Time: now})
	if !tr.quiet(now) || tr.quiet(now.Add(2*time.Second)) {
		t.Error("the status line is shown while text streams, or not when it stopped")
	}
}

// TestTranscriptLongLine checks that a line of 50 MB costs little memory.
func TestTranscriptLongLine(t *testing.T) {
	s, v := testScreen(80, 24)
	tr := newTranscript(s, style{}, func() time.Time { return start })
	s.setHold(true)
	piece := strings.Repeat("0123456789abcdef", 4<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 800 {
		tr.scr.print(tr.prose.write(piece))
		s.flush()
	}
	tr.scr.print(tr.prose.write("\nend\n"))
	s.flush()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if got := v.all(); !strings.HasSuffix(got, "more bytes of this line are not\nshown\nend") && !strings.Contains(got, "are not shown") {
		t.Errorf("the end is %q", got[max(0, len(got)-200):])
	}
}

// BenchmarkTranscript measures model text through sanitiser, renderer and screen,
// with and without a draft below it.
func BenchmarkTranscript(b *testing.B) {
	text := strings.Repeat("Some words of a reply with `code` and **bold** text, as models write it.\n- a list entry with ümlauts – and dashes\n\n```go\n\tif err != nil {\n\t\treturn err\n\t}\n```\n", 50)
	for _, draft := range []bool{false, true} {
		for _, size := range []int{64, 4096} {
			b.Run(fmt.Sprintf("draft=%v/piece=%d", draft, size), func(b *testing.B) {
				s := &screen{out: io.Discard, size: func() (int, int) { return 80, 24 }}
				tr := newTranscript(s, style{color: true}, time.Now)
				if draft {
					s.setHold(true)
					promptRegion(s, "a draft")
				}
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					for i := 0; i < len(text); i += size {
						tr.show(event.Event{Kind: event.Content, Text: text[i:min(i+size, len(text))]})
						s.flush()
					}
					tr.streamed.Reset()
				}
			})
		}
	}
}
