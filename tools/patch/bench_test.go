package patch

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkLargeFile plans and does a patch at the start, in the middle and at the end
// of a file, in memory where there is such a place; every other patch takes back the
// one before.
func BenchmarkLargeFile(b *testing.B) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		b.Setenv("TMPDIR", "/dev/shm") // what the disk costs is measured elsewhere
	}
	for _, size := range []int{6, 60} {
		b.Run(fmt.Sprintf("%dMB", size), func(b *testing.B) {
			const text = "the quick brown fox jumps over the lazy dogs....."
			lines := size * 1_000_000 / (len(text) + 11)
			var content strings.Builder
			for i := range lines {
				fmt.Fprintf(&content, "%8d: %s\n", i, text)
			}
			there, back := "", ""
			for _, at := range []int{10, lines / 2, lines - 10} {
				context := fmt.Sprintf("@@ -%d,2 +%d,2 @@\n %8d: %s\n", at+1, at+1, at, text)
				old := fmt.Sprintf("%8d: %s\n", at+1, text)
				there += context + "-" + old + "+new\n"
				back += context + "-new\n+" + old
			}
			w := newBench(b, map[string]string{"f": content.String()})
			patches := []string{onF(there), onF(back)}
			b.SetBytes(int64(content.Len()))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				w.apply(patches[i%2])
			}
		})
	}
}
