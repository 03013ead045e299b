package perf

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"zcoder/internal/scripted"
)

// terminalRows type and stream in a real terminal.
func terminalRows(l *lab) []row { return append(l.keys(), l.stream()...) }

// keys types letters while a reply streams.
func (l *lab) keys() []row {
	text := strings.Repeat("some more words of a long reply of the model ", 2000)
	p := l.place(scripted.Options{WordDelay: time.Millisecond, Respond: func(scripted.Recorded) string { return "> say " + text }})
	x := p.terminal()
	x.wait("›", 0)
	x.send("talk\r")
	x.wait("long reply", 0)
	var times []float64
	for range l.pick(1, 4) {
		for _, letter := range "αβγδεζηθικλμνξοπρστυφχψω" {
			from, begun := x.at(), time.Now()
			x.send(string(letter))
			when, _ := x.wait(string(letter), from)
			times = append(times, ms(when.Sub(begun)))
			time.Sleep(10 * time.Millisecond) // as a person types, and the reply goes on
		}
		x.send("\x15") // the line is emptied
		time.Sleep(20 * time.Millisecond)
	}
	x.send("\x03")
	_, stopped := x.wait("stopped", 0)
	x.wait("›", stopped)
	x.end()
	worst := times[0]
	for _, t := range times {
		worst = max(worst, t)
	}
	return []row{
		{what: "key to screen while a reply streams", unit: "ms", goal: atMost(5), points: []point{{"", median(times)}}},
		{what: "the slowest key", unit: "ms", points: []point{{"", worst}}},
	}
}

// stream sends a long reply as fast as the program takes it.
func (l *lab) stream() []row {
	r := row{what: "reply text through the whole program, by processor time, records of 512 bytes", unit: "MB/s", goal: atLeast(20), why: noProc}
	wall := row{what: "the same by the clock, terminal included", unit: "MB/s", why: noProc}
	if !hasProc() {
		return []row{r, wall}
	}
	size := l.pick(4, 20) * 1_000_000
	p := l.place(scripted.Options{Ending: "Done."})
	body := streamOf(size)
	begun := make(chan time.Time, 1)
	p.env = append(p.env, "OLLAMA_HOST="+serve(l.t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/chat" {
			p.server.ServeHTTP(w, r)
			return
		}
		begun <- time.Now()
		w.Header().Set("Content-Type", "application/x-ndjson")
		_, _ = w.Write(body) // a client that leaves is seen in the terminal
	})))
	x := p.terminal()
	x.wait("›", 0)
	before, _ := onCPU(x.cmd.Process.Pid)
	x.send("talk\r")
	when, _ := x.wait(bell, 0)
	after, _ := onCPU(x.cmd.Process.Pid)
	x.end()
	mb := float64(size) / 1e6
	r.why, r.points = "", []point{{"", mb / (after - before).Seconds()}}
	wall.why, wall.points = "", []point{{"", mb / when.Sub(<-begun).Seconds()}}
	return []row{r, wall}
}

func streamOf(size int) []byte {
	text := strings.Repeat("Some words of a reply with `code` and **bold** text, as models write it.\n- a list entry with ümlauts – and dashes\n", 5)[:512]
	text = strings.ToValidUTF8(text, "")
	piece, _ := json.Marshal(text) // a string always encodes
	var b bytes.Buffer
	for n := 0; n < size; n += len(text) {
		b.WriteString(`{"model":"test-model","created_at":"2026-11-30T12:30:34.956799253Z","message":{"role":"assistant","content":`)
		b.Write(piece)
		b.WriteString("},\"done\":false}\n")
	}
	b.WriteString(`{"model":"test-model","created_at":"2026-11-30T12:30:35Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":10}` + "\n")
	return b.Bytes()
}
