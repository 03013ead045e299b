package remote

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"zcoder/internal/event"
)

// checkFeed: what subscribers get has rising numbers, is whole, and asks in the name of
// the server.
func checkFeed(t *testing.T, f *feed) {
	t.Helper()
	last, size := int64(0), 0
	for _, k := range f.events {
		if k.Seq < last || k.Seq == last && !unstored(k.Kind) {
			t.Fatalf("event %d %s came after event %d", k.Seq, k.Kind, last)
		}
		if !whole(k.Event) || k.Kind == event.Asked && k.Question.Host != "box" {
			t.Fatalf("not whole: %+v", k.Event)
		}
		last, size = k.Seq, size+k.size
	}
	if last > f.seq || size != f.size {
		t.Fatalf("at event %d with %d bytes; it says %d and %d", last, size, f.seq, f.size)
	}
}

// FuzzStream: a stream ends in an error or with whole events in order, however it is cut
// and whatever is in it.
func FuzzStream(f *testing.F) {
	f.Add([]byte("event: state\ndata: {\"session\":\"1_1\"}\n\nevent: event\nid: 1\ndata: {\"event\":{\"seq\":1,\"event\":\"info\"}}\n\n"))
	f.Add([]byte("event: event\ndata: {\"event\":{\"seq\":1,\"event\":\"question\",\"question\":{\"call_id\":\"c\"}},\"approval\":\"1_1\"}\n\n: beat\n\n"))
	f.Add([]byte("event: form\r\ndata: {\"id\":\"1\"}\r\n\r\nevent: switched\ndata: {\"session\":\"2_2\"}\n\n"))
	f.Add([]byte("data\ndata:\ndata: x\n\nevent: event\ndata: {\"event\":\ndata: {\"seq\":2,\"event\":\"output\"}}\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		feed := newFeed("box", "1_1", time.Now)
		feed.begin()
		s := sse{in: bufio.NewReaderSize(bytes.NewReader(in), 16), heard: func() {}}
		for {
			m, err := s.next()
			if err != nil {
				break
			}
			if len(m.data) > len(in) {
				t.Fatalf("a message of %d bytes from %d", len(m.data), len(in))
			}
			if feed.message(m) != nil {
				break
			}
		}
		checkFeed(t, feed)
	})
}

// FuzzPolled: whatever a plain server sends becomes whole events in order, and nothing
// that was asked stays open after the end.
func FuzzPolled(f *testing.F) {
	f.Add(`{"event":"message","role":"assistant","content":"x"}` + "\n" + `{"event":"tool","phase":"begin","tool_call_id":"c","name":"n","args":"{}"}`)
	f.Add(`{"event":"approval_required","id":"1_1","kind":"command","command":"ls"}` + "\n" + `{"event":"tool","phase":"complete","tool_call_id":"c","succeeded":1}`)
	f.Add(`{"event":"status","status":"\u202e"}` + "\n" + `{"event":"tool","args":"{\"command\":7}","succeeded":true}` + "\n" + `{"event":"message","role":"error","content":"\u001b"}`)
	f.Fuzz(func(t *testing.T, in string) {
		feed := newFeed("box", "1_1", time.Now)
		p := projector{f: feed}
		p.begin("1_9")
		for line := range strings.SplitSeq(in, "\n") {
			var e polled
			if json.Unmarshal([]byte(line), &e) == nil {
				p.take(e)
			}
		}
		p.end(event.Complete, "")
		checkFeed(t, feed)
		for _, a := range feed.asks {
			if !a.settled {
				t.Fatalf("question %q is open", a.callID)
			}
		}
	})
}

// FuzzPipeGreeting: no more is skipped than may be, and what comes after the greeting is
// left for the connection.
func FuzzPipeGreeting(f *testing.F) {
	f.Add([]byte("noise"), []byte("rest"))
	f.Add([]byte("zcoder-pipe"), []byte("\n"))
	f.Add([]byte("zcoder-pipe/1 x"), []byte{})
	f.Fuzz(func(t *testing.T, noise, rest []byte) {
		line := greeting("1.0")
		in := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(noise), strings.NewReader(line), bytes.NewReader(rest)), 16)
		skipped, got, err := skipNoise(in)
		if len(skipped) > maxPipeNoise+len(pipeMark) || len(got) > maxPipeLine+len(pipeMark) {
			t.Fatalf("%d bytes skipped, a greeting of %d", len(skipped), len(got))
		}
		if bytes.Contains(noise, []byte(pipeMark)) || len(noise) >= maxPipeNoise {
			return
		}
		left, rerr := io.ReadAll(in)
		if err != nil || rerr != nil || got != line[1:] || string(skipped) != string(noise)+"\n" || !bytes.Equal(left, rest) {
			t.Fatalf("skipped %q, greeting %q, left %q, %v", skipped, got, left, err)
		}
	})
}
