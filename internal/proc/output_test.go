package proc

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestOutputText(t *testing.T) {
	tests := []struct {
		name  string
		max   int
		parts []string
		want  string
		left  int64
	}{
		{"nothing", 100, nil, "", 0},
		{"short", 100, []string{"ab", "c"}, "abc", 0},
		{"exactly full", 10, []string{"0123456", "789"}, "0123456789", 0},
		{"one too many", 400, []string{strings.Repeat("h", 240), strings.Repeat("t", 161)},
			strings.Repeat("h", 240) + "\n[… 81 bytes (0 lines) left out …]\n" + strings.Repeat("t", 80), 81},
		{"lines", 400, []string{strings.Repeat("line\n", 1000)},
			strings.Repeat("line\n", 48) + "\n[… 4680 bytes (936 lines) left out …]\n" + strings.Repeat("line\n", 16), 4680},
		{"cut inside runes", 401, []string{strings.Repeat("€", 300)},
			strings.Repeat("€", 80) + "\n[… 579 bytes (0 lines) left out …]\n" + strings.Repeat("€", 27), 579},
		{"not UTF-8", 400, []string{strings.Repeat("\x80", 500)},
			strings.Repeat("\x80", 240) + "\n[… 180 bytes (0 lines) left out …]\n" + strings.Repeat("\x80", 80), 180},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutput(tt.max)
			for _, p := range tt.parts {
				o.add([]byte(p))
			}
			got, left := o.text()
			if got != tt.want || left != tt.left {
				t.Errorf("got %q, %d left; want %q, %d", got, left, tt.want, tt.left)
			}
			if len(tt.parts) > 0 && left > 0 && len(got) > tt.max {
				t.Errorf("%d bytes are over the bound %d", len(got), tt.max)
			}
		})
	}
}

// TestOutputAnyPieces checks against the whole stream, cut into pieces at random:
// the head is a prefix, the tail a suffix, and the count of the rest is right.
func TestOutputAnyPieces(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		max := 200 + rnd.IntN(2000)
		var whole []byte
		for line := 0; len(whole) < rnd.IntN(4*max)+1; line++ {
			whole = fmt.Appendf(whole, "line %d ä€😀\n", line)
		}
		o := newOutput(max)
		for rest := whole; len(rest) > 0; {
			n := min(1+rnd.IntN(1+rnd.IntN(max*2)), len(rest))
			o.add(rest[:n])
			rest = rest[n:]
		}
		text, left := o.text()
		if len(whole) <= max {
			if text != string(whole) || left != 0 {
				t.Fatalf("round %d: a short stream changed", round)
			}
			continue
		}
		head, rest, ok := strings.Cut(text, "\n[… ")
		_, tail, _ := strings.Cut(rest, " …]\n")
		if !ok || !utf8.ValidString(text) || len(text) > max {
			t.Fatalf("round %d: bad form or length %d > %d", round, len(text), max)
		}
		if !bytes.HasPrefix(whole, []byte(head)) || !bytes.HasSuffix(whole, []byte(tail)) {
			t.Fatalf("round %d: head or tail is not of the stream", round)
		}
		gone := whole[len(head) : len(whole)-len(tail)]
		want := fmt.Sprintf("%d bytes (%d lines) left out", len(gone), bytes.Count(gone, []byte("\n")))
		if int64(len(gone)) != left || !strings.Contains(text, want) {
			t.Fatalf("round %d: says %d left, want %q", round, left, want)
		}
	}
}

func TestOutputSince(t *testing.T) {
	o := newOutput(100) // 60 of the head, 40 of the tail
	o.add(bytes.Repeat([]byte("h"), 70))
	head, missing, tail, total := o.since(50)
	if string(head) != strings.Repeat("h", 10) || missing != 0 || len(tail) != 10 || total != 70 {
		t.Errorf("got %q %d %q %d", head, missing, tail, total)
	}
	o.add(bytes.Repeat([]byte("t"), 100))
	head, missing, tail, total = o.since(70)
	if len(head) != 0 || missing != 60 || string(tail) != strings.Repeat("t", 40) || total != 170 {
		t.Errorf("got %q %d %q %d", head, missing, tail, total)
	}
	if _, missing, tail, _ = o.since(170); missing != 0 || len(tail) != 0 {
		t.Errorf("got %d %q after the end", missing, tail)
	}
}

func TestRunes(t *testing.T) {
	tests := []struct {
		text         string
		whole, start int
	}{
		{"", 0, 0},
		{"abc", 3, 0},
		{"ab€", 5, 0},
		{"ab\xe2", 2, 0},
		{"ab\xe2\x82", 2, 0},
		{"ab\xf0\x9f\x98", 2, 0},
		{"ab\xff", 3, 0},
		{"\x82\xac ab", 5, 2},
		{"\x9f\x98\x80a", 4, 3},
		{"\x80\x80\x80\x80", 4, 0},
		{"\x80", 1, 1},
	}
	for _, tt := range tests {
		if got := wholeRunes([]byte(tt.text)); got != tt.whole {
			t.Errorf("wholeRunes(%q) = %d, want %d", tt.text, got, tt.whole)
		}
		if got := runeStart([]byte(tt.text)); got != tt.start {
			t.Errorf("runeStart(%q) = %d, want %d", tt.text, got, tt.start)
		}
	}
}
