package repl

import (
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"zcoder/internal/event"
)

// TestNothingForeignReachesTheTerminalRaw shows random events whose every text is
// hostile: a plain terminal gets letters, tabs and line ends, nothing that moves, colours,
// hides or turns round.
//
// PROPERTY_SEED repeats a run.
func TestNothingForeignReachesTheTerminalRaw(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PROPERTY_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("PROPERTY_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		var events []event.Event
		for range 1 + r.IntN(25) {
			events = append(events, hostileEvent(r))
		}
		out := shown(events...)
		at := strings.IndexFunc(out, func(c rune) bool {
			return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar)
		})
		if at >= 0 {
			t.Fatalf("the terminal gets %q after %q", out[at:min(len(out), at+8)], out[max(0, at-80):at])
		}
	}
}

var hostilePieces = []string{
	"word ", "\x1b[2J", "\x1b]52;c;eA==\x07", "\x9b31m", "\x1bP+q\x1b\\", "\r", "\b\b", "\x00", "\u202e", "\u200b", "\u0085", "\xff\xfe",
	"\n", "`", "**", "```\n", "- ", "é", "漢字", "\x1b[", "\t", "\u2028", "\U000e0041", "\ufeff", strings.Repeat("long ", 40),
}

func hostileText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(8) {
		b.WriteString(hostilePieces[r.IntN(len(hostilePieces))])
	}
	return b.String()
}

var everyKind = []event.Kind{
	event.User, event.Note, event.Relayed, event.Shell, event.TurnStart, event.Progress, event.Content, event.Thinking, event.Reply, event.CallStart,
	event.Output, event.CallEnd, event.Asked, event.Answered, event.Info, event.Printed, event.Warning, event.Compacted, event.Titled, event.Queued,
	event.Unqueued, event.GoalState, event.TurnEnd,
}

// hostileEvent fills all fields of an event, whatever it is about.
func hostileEvent(r *rand.Rand) event.Event {
	var e event.Event
	fill(r, reflect.ValueOf(&e).Elem())
	e.Kind = everyKind[r.IntN(len(everyKind))]
	return e
}

func fill(r *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostileText(r))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(r.IntN(1000)))
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return // arguments and pictures, which are not shown
		}
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	}
}
