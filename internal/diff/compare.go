package diff

import (
	"bytes"
	"slices"
	"strings"
)

// span is one change: the lines [a,aEnd) are replaced by [b,bEnd). Indexes count
// from the start of a window.
type span struct{ a, aEnd, b, bEnd int }

const (
	// maxCompared is the number of lines on one side above which lines are not
	// compared one by one; interning them takes about 100 ns and 50 bytes each.
	maxCompared = 1 << 22
	// maxEdits bounds the memory of one search: 4 bytes times its square.
	maxEdits = 1 << 11
	// maxSteps bounds the time of all searches: a step takes about 2 ns.
	maxSteps = 1 << 25
)

// spans returns the changes of the window in order, with at least one unchanged
// line between two of them. Small changes far from each other are found without
// looking at the lines between them one by one.
func (w window) spans() []span {
	var out []span
	a, b := w.a, w.b
	at := span{}
	for {
		same := commonPrefix(a, b)
		n := countLines(a[:same])
		a, b = a[same:], b[same:]
		at.a, at.b = at.a+n, at.b+n
		if len(a) == 0 && len(b) == 0 {
			return out
		}
		x, y, ok := meet(a, b)
		if !ok {
			return append(out, compared(a, b, w.after, at)...)
		}
		out = append(out, compared(a[:x], b[:y], 0, at)...)
		at.a, at.b = at.a+countLines(a[:x]), at.b+countLines(b[:y])
		a, b = a[x:], b[y:]
	}
}

const (
	// nearby is how many lines of both sides together a change may have to be found
	// without comparing all.
	nearby = 128
	// quiet is how many equal lines must follow it.
	quiet = 64
)

// meet returns where two texts that begin differently go on alike for a while, if that
// is nearby, at the fewest lines from both starts.
func meet(a, b []byte) (x, y int, ok bool) {
	startsA, startsB := starts(a), starts(b)
	for sum := 1; sum <= nearby; sum++ {
		for i := max(0, sum-len(startsB)+1+quiet); i <= sum && i+quiet < len(startsA); i++ {
			j := sum - i
			run := a[startsA[i]:startsA[i+quiet]]
			if bytes.HasPrefix(b[startsB[j]:], run) {
				return startsA[i], startsB[j], true
			}
		}
	}
	return 0, 0, false
}

// starts are the offsets of the first lines.
func starts(text []byte) []int {
	list := make([]int, 1, nearby+quiet+1)
	for at := 0; len(list) < cap(list); {
		n := bytes.IndexByte(text[at:], '\n') + 1
		if n == 0 {
			break
		}
		at += n
		list = append(list, at)
	}
	return list
}

// compared compares all lines of two texts. Their last lines, after in number, are
// known to be equal. What it returns is shifted by at.
func compared(a, b []byte, after int, at span) []span {
	na, nb := countLines(a), countLines(b)
	if na > maxCompared || nb > maxCompared {
		return []span{{at.a, at.a + na - after, at.b, at.b + nb - after}}
	}
	ids := make(map[string]int32, na)
	c := comparison{
		a: intern(string(a), na, ids), b: intern(string(b), nb, ids),
		sameA: make([]bool, na), sameB: make([]bool, nb), ids: len(ids),
	}
	c.compare()
	out := c.spans()
	for i := range out {
		s := &out[i]
		s.a, s.aEnd, s.b, s.bEnd = s.a+at.a, s.aEnd+at.a, s.b+at.b, s.bEnd+at.b
	}
	return out
}

func intern(text string, lines int, ids map[string]int32) []int32 {
	out := make([]int32, 0, lines)
	for len(text) > 0 {
		n := strings.IndexByte(text, '\n') + 1
		if n == 0 {
			n = len(text)
		}
		id, ok := ids[text[:n]]
		if !ok {
			id = int32(len(ids))
			ids[text[:n]] = id
		}
		out = append(out, id)
		text = text[n:]
	}
	return out
}

// comparison pairs equal lines in order: the i-th true of sameA belongs to the
// i-th true of sameB.
type comparison struct {
	a, b         []int32
	sameA, sameB []bool
	ids          int // all numbers in a and b are below
	steps        int // left for searches
}

// compare searches the shortest edit; when that costs too much it splits the texts
// at lines that are unique in both, and searches between those. What still costs
// too much is replaced as a whole.
func (c *comparison) compare() {
	all := c.trim(span{0, len(c.a), 0, len(c.b)})
	c.steps = maxSteps / 2
	if c.search(all) {
		return
	}
	c.steps = maxSteps / 2
	last := span{all.a, 0, all.b, 0}
	for _, p := range append(c.anchors(all), [2]int{all.aEnd, all.bEnd}) {
		last.aEnd, last.bEnd = p[0], p[1]
		c.search(c.trim(last))
		last.a, last.b = p[0], p[1]
	}
}

// trim pairs the equal lines at both ends and returns what is between them.
func (c *comparison) trim(s span) span {
	for s.a < s.aEnd && s.b < s.bEnd && c.a[s.a] == c.b[s.b] {
		c.pair(s.a, s.b)
		s.a, s.b = s.a+1, s.b+1
	}
	for s.a < s.aEnd && s.b < s.bEnd && c.a[s.aEnd-1] == c.b[s.bEnd-1] {
		s.aEnd, s.bEnd = s.aEnd-1, s.bEnd-1
		c.pair(s.aEnd, s.bEnd)
	}
	return s
}

func (c *comparison) pair(i, j int) { c.sameA[i], c.sameB[j] = true, true }

// search pairs lines along a shortest edit (Myers' greedy algorithm). It returns
// false, having paired nothing, when that takes too many edits or steps.
func (c *comparison) search(s span) bool {
	a, b := c.a[s.a:s.aEnd], c.b[s.b:s.bEnd]
	if len(a) == 0 || len(b) == 0 || c.steps < 0 {
		return true
	}
	limit := min(len(a)+len(b), maxEdits)
	reach := make([]int32, 2*limit+3) // furthest x per diagonal, shifted by limit+1
	var trail [][]int32
	for d := 0; d <= limit; d++ {
		trail = append(trail, slices.Clone(reach[limit+1-d:limit+2+d]))
		for k := -d; k <= d; k += 2 {
			x := next(reach, limit+1+k, k == -d, k == d)
			y := x - k
			from := x
			for x < len(a) && y < len(b) && a[x] == b[y] {
				x, y = x+1, y+1
			}
			reach[limit+1+k] = int32(x)
			if c.steps -= 1 + x - from; c.steps < 0 {
				return false
			}
			if x >= len(a) && y >= len(b) {
				c.pairBack(s, trail)
				return true
			}
		}
	}
	return false
}

// next returns where diagonal i starts after one more edit: a line of b inserted
// (from the diagonal above) or a line of a removed (from the one below).
func next(reach []int32, i int, lowest, highest bool) int {
	if lowest || (!highest && reach[i-1] < reach[i+1]) {
		return int(reach[i+1])
	}
	return int(reach[i-1]) + 1
}

// pairBack follows the trail from the end to the start. trail[d] holds the reach
// before round d for the diagonals -d to d.
func (c *comparison) pairBack(s span, trail [][]int32) {
	x, y := s.aEnd-s.a, s.bEnd-s.b
	for d := len(trail) - 1; d >= 0; d-- {
		k := x - y
		before := trail[d]
		x0, y0 := 0, 0
		if d > 0 {
			if k == -d || (k != d && before[d+k-1] < before[d+k+1]) {
				k++
			} else {
				k--
			}
			x0 = int(before[d+k])
			y0 = x0 - k
		}
		for x > x0 && y > y0 {
			x, y = x-1, y-1
			c.pair(s.a+x, s.b+y)
		}
		x, y = x0, y0
	}
}

// anchors returns the longest rising sequence of lines that occur exactly once on
// each side, as index pairs, all paired.
func (c *comparison) anchors(s span) [][2]int {
	type place struct{ a, b, countA, countB int }
	seen := make([]place, c.ids)
	for i := s.a; i < s.aEnd; i++ {
		p := &seen[c.a[i]]
		p.a, p.countA = i, p.countA+1
	}
	for j := s.b; j < s.bEnd; j++ {
		p := &seen[c.b[j]]
		p.b, p.countB = j, p.countB+1
	}
	var unique [][2]int
	for i := s.a; i < s.aEnd; i++ {
		if p := seen[c.a[i]]; p.countA == 1 && p.countB == 1 {
			unique = append(unique, [2]int{p.a, p.b})
		}
	}
	rising := longestRising(unique)
	for _, p := range rising {
		c.pair(p[0], p[1])
	}
	return rising
}

// longestRising returns a longest subsequence whose second parts rise.
func longestRising(pairs [][2]int) [][2]int {
	var tails []int // index of the pair that ends the best sequence of each length
	prev := make([]int, len(pairs))
	for i, p := range pairs {
		n, _ := slices.BinarySearchFunc(tails, p[1], func(t, b int) int { return pairs[t][1] - b })
		prev[i] = -1
		if n > 0 {
			prev[i] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, i)
		} else {
			tails[n] = i
		}
	}
	out := make([][2]int, len(tails))
	if len(tails) == 0 {
		return out
	}
	for n, i := len(tails)-1, tails[len(tails)-1]; n >= 0; n, i = n-1, prev[i] {
		out[n] = pairs[i]
	}
	return out
}

func (c *comparison) spans() []span {
	var out []span
	i, j := 0, 0
	for i < len(c.a) || j < len(c.b) {
		s := span{a: i, b: j}
		for i < len(c.a) && !c.sameA[i] {
			i++
		}
		for j < len(c.b) && !c.sameB[j] {
			j++
		}
		if s.aEnd, s.bEnd = i, j; i > s.a || j > s.b {
			out = append(out, s)
			continue
		}
		i, j = i+1, j+1
	}
	return out
}
