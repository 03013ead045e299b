package search

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"zcoder/internal/workspace"
)

// benchTree makes the tree that the benchmarks share and removes it at the end.
func benchTree(b *testing.B) *workspace.Workspace {
	b.Helper()
	root := b.TempDir()
	files := 20000
	if testing.Short() {
		files = 2000
	}
	if dir := os.Getenv("SEARCH_TREE"); dir != "" {
		root = dir
		if _, err := os.Stat(filepath.Join(dir, ".git")); err != nil {
			makeTree(b, root, 50000)
		}
	} else {
		makeTree(b, root, files)
	}
	return open(b, root, workspace.Options{})
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

func BenchmarkSearch(b *testing.B) {
	w := benchTree(b)
	for _, q := range benchQueries {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				runTool(b, w, "search", args{"query": q.query})
			}
		})
	}
}

func BenchmarkList(b *testing.B) {
	w := benchTree(b)
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				runTool(b, w, "list_files", args{"max_entries": n})
			}
		})
	}
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

// BenchmarkAgainstRipgrep measures both in turn in one run and reports the ratios of
// the medians of wall and processor time. ripgrep's contain its start, about 2 ms.
func BenchmarkAgainstRipgrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("rg is not installed, so there is nothing to compare with")
	}
	w := benchTree(b)
	ratio := func(name string, ours func() time.Duration, theirs ...string) {
		b.Run(name, func(b *testing.B) {
			var we, they []cost
			for b.Loop() {
				we = append(we, ourCost(ours))
				cmd := exec.Command(rg, theirs...)
				cmd.Dir = w.Root()
				they = append(they, commandCost(cmd))
			}
			b.ReportMetric(median(we, wall)/median(they, wall), "×rg-wall")
			b.ReportMetric(median(we, cpu)/median(they, cpu), "×rg-cpu")
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
