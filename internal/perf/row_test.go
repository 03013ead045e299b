package perf

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// row is a line of a table: one quantity, at one size or at several.
type row struct {
	what   string
	unit   string
	goal   goal
	grows  growth
	points []point // the smallest size first
	why    string  // why there are none, or what the reader should know
}

// point is the median at one size. An empty size is the only one.
type point struct {
	size  string // such as 10k or 100MB
	value float64
}

// goal is a bound on the value at the largest size.
type goal struct {
	limit float64
	least bool
	set   bool
}

func atMost(limit float64) goal  { return goal{limit: limit, set: true} }
func atLeast(limit float64) goal { return goal{limit: limit, least: true, set: true} }

func (g goal) String() string {
	switch {
	case !g.set:
		return ""
	case g.least:
		return "≥ " + number(g.limit)
	}
	return "≤ " + number(g.limit)
}

func (g goal) holds(v float64) bool {
	if g.least {
		return v >= g.limit
	}
	return v <= g.limit
}

// growth is how a quantity may change with the size.
type growth int

const (
	unjudged growth = iota // it is not judged
	flat                   // not at all
	linear                 // in proportion
)

// Tolerances of the judgement: noise, caches and start-up costs are inside them.
const (
	flatTolerance   = 1.5  // ratio over all sizes
	linearTolerance = 1.15 // exponent of the size
)

// judge says how the values grew with the size, and whether they may.
func (r row) judge() (text string, fine bool) {
	if len(r.points) < 2 {
		return "", true
	}
	first, last := r.points[0], r.points[len(r.points)-1]
	size := amount(last.size) / amount(first.size)
	value := last.value / first.value
	if first.value == 0 {
		value = 1 + last.value
	}
	text = fmt.Sprintf("×%s → ×%s", number(size), number(value))
	if r.goal.least {
		value = 1 / value // a rate that falls is a cost that grows
	}
	switch r.grows {
	case flat:
		return text + ", flat", value <= flatTolerance
	case linear:
		return text, math.Log(value)/math.Log(size) <= linearTolerance
	}
	return text, true
}

var sized = regexp.MustCompile(`^([0-9.]+)(k|K|M|G)?`)

// amount is the number that a size stands for.
func amount(size string) float64 {
	m := sized.FindStringSubmatch(size)
	if m == nil {
		return math.NaN()
	}
	n, _ := strconv.ParseFloat(m[1], 64) // the pattern lets little else through
	return n * map[string]float64{"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}[m[2]]
}

// number writes three significant digits.
func number(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
			s = s[:i] + " " + s[i:]
		}
		return s
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a == 0:
		return "0"
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// cells are the columns: what, measured, goal, holds, growth.
func (r row) cells() []string {
	what := r.what
	if r.why != "" && len(r.points) > 0 {
		what += " (" + r.why + ")"
	}
	if len(r.points) == 0 {
		return []string{what, "not measured: " + r.why, r.goal.String(), "", ""}
	}
	var parts []string
	for _, p := range r.points {
		if p.size == "" {
			parts = append(parts, number(p.value))
			continue
		}
		parts = append(parts, p.size+": "+number(p.value))
	}
	verdict := ""
	if r.goal.set {
		verdict = "yes"
		if !r.goal.holds(r.points[len(r.points)-1].value) {
			verdict = "**no**"
		}
	}
	grew, fine := r.judge()
	if !fine {
		grew += " **too much**"
	}
	return []string{what, strings.Join(parts, " · ") + " " + r.unit, r.goal.String(), verdict, grew}
}

// misses says what does not hold, or "".
func (r row) misses() string {
	cells := r.cells()
	if len(r.points) > 0 && (strings.HasPrefix(cells[3], "**") || strings.HasSuffix(cells[4], "**")) {
		return fmt.Sprintf("%s: %s, goal %s, growth %s", cells[0], cells[1], cells[2], cells[4])
	}
	return ""
}

// table writes rows as Markdown.
func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | measured | goal | holds | size → cost |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		b.WriteString("| " + strings.Join(r.cells(), " | ") + " |\n")
	}
	return b.String()
}

// between replaces what stands between the markers of a page.
func between(page, text string) (string, error) {
	const begin, end = "<!-- measured: begin -->", "<!-- measured: end -->"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("the page has no %s and %s", begin, end)
	}
	return head + begin + "\n\n" + text + "\n" + end + tail, nil
}

func TestRows(t *testing.T) {
	for _, tt := range []struct {
		name string
		row  row
		want string
	}{
		{"one size", row{what: "a", unit: "ms", goal: atMost(5), points: []point{{"", 4.123}}}, "a|4.12 ms|≤ 5.00|yes|"},
		{"over the goal", row{what: "a", unit: "ms", goal: atMost(5), points: []point{{"", 6}}}, "a|6.00 ms|≤ 5.00|**no**|"},
		{"under the goal", row{what: "a", unit: "MB/s", goal: atLeast(200), points: []point{{"", 1234567}}}, "a|1 234 567 MB/s|≥ 200|yes|"},
		{"linear", row{what: "a", unit: "ms", grows: linear, points: []point{{"1k", 2}, {"10k", 21}}}, "a|1k: 2.00 · 10k: 21.0 ms|||×10.0 → ×10.5"},
		{"worse than linear", row{what: "a", unit: "ms", grows: linear, points: []point{{"1k", 2}, {"10k", 40}}}, "a|1k: 2.00 · 10k: 40.0 ms|||×10.0 → ×20.0 **too much**"},
		{"not flat", row{what: "a", unit: "ms", grows: flat, points: []point{{"1k", 2}, {"1M", 4}}}, "a|1k: 2.00 · 1M: 4.00 ms|||×1 000 → ×2.00, flat **too much**"},
		{"a rate that falls", row{what: "a", unit: "MB/s", goal: atLeast(1), grows: flat, points: []point{{"1", 8}, {"2", 4}}}, "a|1: 8.00 · 2: 4.00 MB/s|≥ 1.00|yes|×2.00 → ×0.5, flat **too much**"},
		{"a rate that rises", row{what: "a", unit: "MB/s", goal: atLeast(1), grows: flat, points: []point{{"1", 4}, {"2", 8}}}, "a|1: 4.00 · 2: 8.00 MB/s|≥ 1.00|yes|×2.00 → ×2.00, flat"},
		{"nothing", row{what: "a", unit: "ms", why: "no such benchmark"}, "a|not measured: no such benchmark|||"},
	} {
		if got := strings.Join(tt.row.cells(), "|"); got != tt.want {
			t.Errorf("%s: %s; want %s", tt.name, got, tt.want)
		}
	}
	got, err := between("head\n<!-- measured: begin -->\nold\n<!-- measured: end -->\ntail", "new")
	if want := "head\n<!-- measured: begin -->\n\nnew\n<!-- measured: end -->\ntail"; got != want || err != nil {
		t.Errorf("between = %q, %v; want %q", got, err, want)
	}
	if _, err := between("nothing here", "new"); err == nil {
		t.Error("a page without markers was accepted")
	}
}
