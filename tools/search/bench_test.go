package search

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"zcoder/internal/workspace"
)

// onTrees runs a benchmark on trees of several sizes.
func onTrees(b *testing.B, do func(*testing.B, *workspace.Workspace)) {
	sizes := []int{5000, 50000}
	if testing.Short() {
		sizes = []int{1000, 5000}
	}
	for _, files := range sizes {
		b.Run(fmt.Sprintf("%dk", files/1000), func(b *testing.B) {
			root := b.TempDir()
			makeTree(b, root, files)
			do(b, open(b, root, workspace.Options{}))
		})
	}
}

var benchQueries = []struct{ name, query string }{
	{"literal", "timeout_retry"},
	{"literal_common", "timeout"},
	{"regex", `qua[a-z]+stra_(limit|offset)`},
	{"regex_anchored", `^\s*func \w+ :=`},
	{"regex_without_literal", `[A-Z][a-z]+[0-9]{3}\s[(]`},
	{"word", `\bflag_token\b`},
	{"fold", `(?i)TIMEOUT_retry`},
	{"fold_common", `(?i)timeout`},
	{"alternatives", "timeout_retry\nlimit_offset\nflag_token"},
}

func runTool(b *testing.B, w *workspace.Workspace, tool string, a args) time.Duration {
	start := time.Now()
	action, err := plan(w, Options{}, tool, a)
	if err != nil {
		b.Fatal(err)
	}
	act(b, context.Background(), action)
	return time.Since(start)
}

// cost is what one run took.
type cost struct{ wall, cpu time.Duration }

func ourCost(f func() time.Duration) cost {
	before := cpuTime()
	wall := f()
	return cost{wall, cpuTime() - before}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func commandCost(cmd *exec.Cmd) cost {
	start := time.Now()
	cmd.Stdout = io.Discard
	_ = cmd.Run() // exit status 1 says that nothing matched
	return cost{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
}

func median(costs []cost, of func(cost) time.Duration) float64 {
	var list []time.Duration
	for _, c := range costs {
		list = append(list, of(c))
	}
	slices.Sort(list)
	return float64(list[len(list)/2])
}

func wall(c cost) time.Duration { return c.wall }
func cpu(c cost) time.Duration  { return c.cpu }

// BenchmarkSearch measures us and ripgrep in turn in one run and reports the ratios of
// the medians of wall and processor time. ripgrep's contain its start, about 2 ms.
// Without ripgrep there are our own times alone.
func BenchmarkSearch(b *testing.B) { onTrees(b, besideRipgrep) }

func besideRipgrep(b *testing.B, w *workspace.Workspace) {
	rg, missing := exec.LookPath("rg")
	ratio := func(name string, ours func() time.Duration, theirs ...string) {
		b.Run(name, func(b *testing.B) {
			var we, they []cost
			for b.Loop() {
				we = append(we, ourCost(ours))
				if missing == nil {
					cmd := exec.Command(rg, theirs...)
					cmd.Dir = w.Root()
					they = append(they, commandCost(cmd))
				}
			}
			if missing == nil {
				b.ReportMetric(median(we, wall)/median(they, wall), "×rg-wall")
				b.ReportMetric(median(we, cpu)/median(they, cpu), "×rg-cpu")
			}
			b.ReportMetric(median(we, wall)/1e6, "ms")
			b.ReportMetric(median(we, cpu)/1e6, "cpu-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, q := range benchQueries {
		theirs := []string{"-n"}
		for _, p := range splitLines(q.query) {
			theirs = append(theirs, "-e", p)
		}
		ratio(q.name, func() time.Duration { return runTool(b, w, "search", args{"query": q.query}) }, append(theirs, ".")...)
	}
	ratio("list", func() time.Duration { return runTool(b, w, "list_files", args{"max_entries": 100}) }, "--files")
}
