package perf

import (
	"encoding/json"
	"fmt"
	"strings"

	"zcoder/internal/scripted"
)

// asked is what a request holds before the conversation.
type asked struct {
	Messages []struct{ Role, Content string }
	Tools    []json.RawMessage
}

// promptRows are the size of the first request and what of a later one is new.
func promptRows(l *lab) []row { return append(l.parts(), l.reread()...) }

// first is the first chat request with a window.
func (l *lab) first(window int) asked {
	var body []byte
	p := l.place(scripted.Options{Respond: func(r scripted.Recorded) string {
		body = r.Body
		return "> say Done."
	}}, fmt.Sprint("ZCODER_CONTEXT_WINDOW=", window))
	if out, err := p.command("--prompt", "hello").CombinedOutput(); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	var a asked
	if err := json.Unmarshal(body, &a); err != nil || len(a.Messages) == 0 {
		l.t.Fatalf("the request cannot be read: %v", err)
	}
	return a
}

func tokens(bytes int) float64 { return float64(bytes) / 4 }

// total is the size of the system prompt and all tools.
func (a asked) total() (n int) {
	for _, t := range a.Tools {
		n += len(t)
	}
	return n + len(a.Messages[0].Content)
}

func (l *lab) parts() []row {
	one := func(n int) []point { return []point{{"", tokens(n)}} }
	full, lite := l.first(65536), l.first(8192)
	rows := []row{
		{what: fmt.Sprintf("system prompt and %d tools", len(full.Tools)), unit: "tokens", goal: atMost(1900), points: one(full.total())},
		{what: fmt.Sprintf("the same for a window of 8k: %d tools", len(lite.Tools)), unit: "tokens", goal: atMost(1150), points: one(lite.total())},
		{what: "system prompt", unit: "tokens", points: one(len(full.Messages[0].Content))},
	}
	for _, t := range full.Tools {
		var tool struct{ Function struct{ Name string } }
		if err := json.Unmarshal(t, &tool); err != nil {
			l.t.Fatal(err)
		}
		rows = append(rows, row{what: "tool `" + tool.Function.Name + "`", unit: "tokens", points: one(len(t))})
	}
	return rows
}

// reread runs three turns with calls, the last two after a resume, and looks at what
// each request repeats of the one before.
func (l *lab) reread() []row {
	n := 0
	p := l.place(scripted.Options{Respond: func(scripted.Recorded) string {
		if n++; n%10 == 0 {
			return "> say Done."
		}
		return fmt.Sprintf(`> call read_file_range {"path":"log.txt","start_line":%d,"end_line":%d}`, n, n+30)
	}})
	p.write("log.txt", strings.Repeat("one more line of a log, with a number in it: 4711\n", 100))
	for _, args := range [][]string{{"--prompt", "one"}, {"--continue", "--prompt", "two"}, {"--continue", "--prompt", "three"}} {
		if out, err := p.command(args...).CombinedOutput(); err != nil {
			l.t.Fatalf("%v: %s", err, out)
		}
	}
	chats := p.server.Chats()
	var extend, again, fresh int
	for i := 1; i < len(chats); i++ {
		before := chats[i-1].PromptBytes
		if chats[i].CommonPrefix == before {
			extend++
		}
		again += before - chats[i].CommonPrefix
		fresh += chats[i].PromptBytes - before
	}
	rounds := len(chats) - 1
	return []row{
		{what: fmt.Sprintf("rounds that extend the request before byte for byte, of %d in three turns and over two resumes", rounds), unit: "%", goal: atLeast(100),
			points: []point{{"", 100 * float64(extend) / float64(rounds)}}},
		{what: "read again in a round", unit: "tokens", goal: atMost(0), points: []point{{"", tokens(again) / float64(rounds)}}},
		{what: "new in a round", unit: "tokens", points: []point{{"", tokens(fresh) / float64(rounds)}}},
		{what: "the last request", unit: "tokens", points: []point{{"", tokens(chats[rounds].PromptBytes)}}},
	}
}
