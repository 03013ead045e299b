package gitstate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// BenchmarkDirty compares with git status over a clean tree of 10 000 files, in turn
// in one run.
func BenchmarkDirty(b *testing.B) {
	root := newRepo(b)
	for i := range 10_000 {
		write(b, fmt.Sprintf("%s/d%d/e%d/f%d.go", root, i/500, i/25%20, i), fmt.Sprint(i))
	}
	git(b, root, "add", ".")
	git(b, root, "commit", "-q", "-m", "many")
	var ours, theirs time.Duration
	n := 0
	for b.Loop() {
		start := time.Now()
		s, err := Read(context.Background(), root, Options{Deadline: plenty})
		must(b, err)
		if s.Dirty != Clean {
			b.Fatalf("%+v", s)
		}
		ours += time.Since(start)
		start = time.Now()
		cmd := exec.Command("git", "--no-optional-locks", "status", "--porcelain")
		cmd.Dir, cmd.Env = root, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
		must(b, cmd.Run())
		theirs += time.Since(start)
		n++
	}
	b.ReportMetric(float64(ours.Milliseconds())/float64(n), "ms")
	b.ReportMetric(float64(ours)/float64(theirs), "of-git-status")
	b.ReportMetric(0, "ns/op")
}
