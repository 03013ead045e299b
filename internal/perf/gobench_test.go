package perf

import (
	"bytes"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is a quantity that a Go benchmark reports.
type source struct {
	what string
	pkg  string // below the module's root
	// name is the benchmark's, without "Benchmark". Where it holds a group, that is the
	// size, and each benchmark that matches gives a point.
	name   string
	metric string // as the benchmark prints it
	unit   string
	scale  float64 // from metric to unit; 0 is 1
	goal   goal
	grows  growth
	why    string
}

// effort is how a package's benchmarks are run. The zero value is three times a third
// of a second.
type effort struct {
	time  string
	count int
}

// metrics are the values of one package's benchmarks: by name, then by unit.
type metrics map[string]map[string][]float64

var benchLine = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$`)

func parseBench(out string) metrics {
	m := metrics{}
	for line := range strings.Lines(out) {
		parts := benchLine.FindStringSubmatch(strings.TrimSpace(line))
		if parts == nil {
			continue
		}
		fields := strings.Fields(parts[2])
		for i := 0; i+1 < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				break
			}
			if m[parts[1]] == nil {
				m[parts[1]] = map[string][]float64{}
			}
			m[parts[1]][fields[i+1]] = append(m[parts[1]][fields[i+1]], v)
		}
	}
	return m
}

func median(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// take makes the row of a source.
func (m metrics) take(s source) row {
	r := row{what: s.what, unit: s.unit, goal: s.goal, grows: s.grows, why: s.why}
	name := regexp.MustCompile("^" + s.name + "$")
	for have, units := range m {
		match := name.FindStringSubmatch(have)
		if match == nil || len(units[s.metric]) == 0 {
			continue
		}
		p := point{value: median(units[s.metric])}
		if s.scale != 0 {
			p.value *= s.scale
		}
		if len(match) > 1 {
			p.size = match[1]
		}
		r.points = append(r.points, p)
	}
	slices.SortFunc(r.points, func(a, b point) int { return int(amount(a.size) - amount(b.size)) })
	if len(r.points) == 0 {
		r.why = "Benchmark" + s.name + " of " + s.pkg + " gave no " + s.metric
	}
	return r
}

// goBench runs the benchmarks of one package. What fails gives no values.
func (l *lab) goBench(pkg string, names []string) metrics {
	e := l.efforts[pkg]
	if e.time == "" {
		e.time = "300ms"
	}
	if e.count == 0 {
		e.count = 3
	}
	args := []string{"test", "-run", "^$", "-timeout", "20m", "-bench", "^Benchmark(" + strings.Join(names, "|") + ")$"}
	if l.quick {
		args, e = append(args, "-short"), effort{"50ms", 1}
	}
	args = append(args, "-benchtime", e.time, "-count", fmt.Sprint(e.count), "./"+pkg)
	l.say("go %s", strings.Join(args, " "))
	cmd := exec.Command("go", args...)
	cmd.Dir = l.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.say("the benchmarks of %s failed (%v):\n%s", pkg, err, out[max(0, len(out)-2000):])
	}
	return parseBench(string(bytes.ToValidUTF8(out, nil)))
}

// goBenches runs all benchmarks that sources name, each package once.
func (l *lab) goBenches(list []source) []row {
	names := map[string]map[string]bool{}
	for _, s := range list {
		top, _, _ := strings.Cut(s.name, "/")
		if names[s.pkg] == nil {
			names[s.pkg] = map[string]bool{}
		}
		names[s.pkg][top] = true
	}
	got := map[string]metrics{}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		got[pkg] = l.goBench(pkg, slices.Sorted(maps.Keys(names[pkg])))
	}
	var rows []row
	for _, s := range list {
		rows = append(rows, got[s.pkg].take(s))
	}
	return rows
}

func TestBenchLines(t *testing.T) {
	m := parseBench("goos: linux\nBenchmarkA/10k/x-2   \t 3\t 2000 ns/op\t 1.5 ×rg-wall\nBenchmarkA/10k/x-2  3  4000 ns/op\nBenchmarkA/10k/x-2  3  3000 ns/op\nBenchmarkA/1k/x  3  300 ns/op\nPASS\n")
	r := m.take(source{what: "a", name: `A/(\w+)/x`, metric: "ns/op", unit: "µs", scale: 1e-3})
	if got, want := strings.Join(r.cells(), "|"), "a|1k: 0.3 · 10k: 3.00 µs|||×10.0 → ×10.0"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if r := m.take(source{what: "a", pkg: "p", name: "B", metric: "ns/op"}); r.why == "" {
		t.Error("a missing benchmark has no reason")
	}
}
