package proc

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// beside runs two things in turn, so that both meet the same load, and reports the
// ratios of the medians of wall time and of the least processor time, children
// included; the latter depends least on what else the machine does.
func beside(b *testing.B, ours, bare func()) {
	var a, c cost
	for b.Loop() {
		a.add(ours)
		c.add(bare)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(a.wall(), "ours-ms")
	b.ReportMetric(c.wall(), "bare-ms")
	b.ReportMetric(a.wall()/c.wall(), "wall-ratio")
	b.ReportMetric(a.cpu()/c.cpu(), "cpu-ratio")
}

type cost struct{ walls, cpus []float64 }

func (c *cost) add(f func()) {
	cpu, begun := used(), time.Now()
	f()
	c.walls = append(c.walls, float64(time.Since(begun).Microseconds())/1000)
	c.cpus = append(c.cpus, used()-cpu)
}

func (c *cost) wall() float64 { slices.Sort(c.walls); return c.walls[len(c.walls)/2] }
func (c *cost) cpu() float64  { return slices.Min(c.cpus) }

// used is the processor time of this program and its children, in milliseconds.
func used() (ms float64) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		_ = unix.Getrusage(who, &u)
		ms += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
	}
	return ms
}

// BenchmarkFlood runs a command that writes 300 MB, beside the same command with
// its output read by cat. The goal is a ratio of 1.2.
func BenchmarkFlood(b *testing.B) {
	for _, producer := range []struct{ name, script string }{
		{"zero", "head -c 300000000 /dev/zero"},
		{"lines", "yes 0123456789012345678901234567890123456789 | head -c 300000000"},
	} {
		b.Run(producer.name, func(b *testing.B) {
			beside(b, func() {
				s := sh(producer.script)
				s.OnOutput = func([]byte) {}
				if o, err := Run(b.Context(), s); err != nil || o.ExitCode != 0 || len(o.Output) > DefaultMaxOutput {
					b.Fatal(o.ExitCode, err, len(o.Output))
				}
			}, func() {
				if err := exec.Command("/bin/sh", "-c", "{ "+producer.script+"; } | cat >/dev/null").Run(); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}

// BenchmarkShort runs a command that does nothing, beside the bare library.
func BenchmarkShort(b *testing.B) {
	beside(b, func() {
		if _, err := Run(b.Context(), sh("true")); err != nil {
			b.Fatal(err)
		}
	}, func() {
		if err := exec.Command("/bin/sh", "-c", "true").Run(); err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkFind reads the process table of this machine.
func BenchmarkFind(b *testing.B) {
	f := &family{marker: newMarker(), child: ident{pid: os.Getpid(), start: 1 << 62}}
	for b.Loop() {
		f.find()
	}
	b.ReportMetric(float64(len(processes())), "processes")
}
