package agent

import (
	"crypto/sha256"
	"fmt"

	"zcoder/internal/chat"
	"zcoder/tools"
)

// LoopLimits say when repeated rounds count as a loop. Zero Repeat switches the
// detector off.
type LoopLimits struct {
	Repeat int // identical outcomes in a row; one more for identical requests with other results
	Cycle  int // longest cycle, in rounds
}

// loopDetector compares rounds by what they asked and by what they got. It warns
// once, and stops the next round that goes on with the cycle.
type loopDetector struct {
	limits   LoopLimits
	asked    []signature
	got      []signature
	warnedAt int // length of the cycle that was warned of; 0: none
}

type signature [sha256.Size]byte

// after takes a round that was run and returns a warning when it completes a loop.
func (d *loopDetector) after(calls []chat.ToolCall, results []tools.Result) string {
	if d.limits.Repeat <= 0 {
		return ""
	}
	asked := signCalls(calls)
	d.asked = append(d.asked, asked)
	d.got = append(d.got, signResults(asked, results))
	d.trim()
	for cycle := 1; cycle <= d.limits.Cycle; cycle++ {
		switch {
		case repeats(d.got, cycle) >= d.limits.Repeat:
			d.warnedAt = cycle
			return fmt.Sprintf("The last %s repeated %d times with the same results.", rounds(cycle), d.limits.Repeat)
		case repeats(d.asked, cycle) >= d.limits.Repeat+1:
			d.warnedAt = cycle
			return fmt.Sprintf("The last %s repeated %d times.", rounds(cycle), d.limits.Repeat+1)
		}
	}
	d.warnedAt = 0
	return ""
}

// before looks at the calls of the next round and returns why they must not run, or
// "" when they may.
func (d *loopDetector) before(calls []chat.ToolCall) string {
	if d.warnedAt == 0 || len(d.asked) < d.warnedAt || d.asked[len(d.asked)-d.warnedAt] != signCalls(calls) {
		return ""
	}
	return fmt.Sprintf("the model went on with the same %s after a warning", rounds(d.warnedAt))
}

// trim keeps what the longest cycle needs.
func (d *loopDetector) trim() {
	keep := d.limits.Cycle * (d.limits.Repeat + 1)
	if n := len(d.asked); n > keep {
		d.asked, d.got = d.asked[n-keep:], d.got[n-keep:]
	}
}

func rounds(n int) string {
	if n == 1 {
		return "round"
	}
	return fmt.Sprintf("%d rounds", n)
}

// repeats counts how often the last cycle rounds stand at the end of the list.
func repeats(list []signature, cycle int) int {
	n := len(list)
	count := 1
	for (count+1)*cycle <= n && same(list[n-cycle:], list[n-(count+1)*cycle:n-count*cycle]) {
		count++
	}
	if cycle > n {
		return 0
	}
	return count
}

func same(a, b []signature) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// signCalls reads the arguments in a canonical form, since servers send their keys
// in random order.
func signCalls(calls []chat.ToolCall) signature {
	h := sha256.New()
	for _, c := range calls {
		fmt.Fprintf(h, "%q %q\n", c.Name, canonical(c))
	}
	return signature(h.Sum(nil))
}

func canonical(c chat.ToolCall) string {
	args, err := tools.Decode(tools.Spec{Name: c.Name, Schema: []byte("{}")}, c.Args)
	if err != nil {
		return string(c.Args)
	}
	return string(args.JSON())
}

func signResults(asked signature, results []tools.Result) signature {
	h := sha256.New()
	h.Write(asked[:])
	for _, res := range results {
		fmt.Fprintf(h, "%q %q\n", res.Status, res.Text)
	}
	return signature(h.Sum(nil))
}
