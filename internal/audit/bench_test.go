package audit

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"zcoder/internal/approval"
)

// BenchmarkAppend appends and syncs a record, beside a bare write and fsync of a line
// of the same length. The goal is a ratio of 1.5.
func BenchmarkAppend(b *testing.B) { onLogs(b, appendSynced) }

// onLogs runs a benchmark on logs of several sizes.
func onLogs(b *testing.B, do func(b *testing.B, dir string, records int)) {
	sizes := []int{10, 1000}
	if testing.Short() {
		sizes = []int{1, 10}
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%dk", n), func(b *testing.B) { do(b, bigLog(b, n*1000), n*1000) })
	}
}

func appendSynced(b *testing.B, dir string, _ int) {
	l, err := Open(dir, Options{Now: time.Now, Instance: "i", Mask: func(s string) string { return s }})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	bare, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer bare.Close()
	r := approval.Record{Kind: "start", Request: request(), Sync: true}
	line := make([]byte, 480)
	line[len(line)-1] = '\n'
	var ours, theirs []time.Duration
	for b.Loop() {
		begun := time.Now()
		if err := l.Record(r); err != nil {
			b.Fatal(err)
		}
		mid := time.Now()
		if _, err := bare.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := bare.Sync(); err != nil {
			b.Fatal(err)
		}
		ours, theirs = append(ours, mid.Sub(begun)), append(theirs, time.Since(mid))
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	x, y := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(x.Microseconds()), "ours-µs")
	b.ReportMetric(float64(y.Microseconds()), "bare-µs")
	b.ReportMetric(float64(x)/float64(y), "ratio")
}

// BenchmarkAppendUnsynced appends without a sync.
func BenchmarkAppendUnsynced(b *testing.B) { onLogs(b, appendUnsynced) }

func appendUnsynced(b *testing.B, dir string, _ int) {
	l, err := Open(dir, Options{Now: time.Now, Mask: func(s string) string { return s }})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for b.Loop() {
		if err := l.Record(approval.Record{Kind: "start", Request: request()}); err != nil {
			b.Fatal(err)
		}
	}
}

// bigLog writes a log of n records of the usual size.
func bigLog(b *testing.B, n int) string {
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, logName))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l := &Log{o: Options{Mask: func(s string) string { return s }}}
	last := genesis()
	w := bufio.NewWriter(f)
	for i := range n {
		e := l.entry(approval.Record{Kind: "start", Request: request()})
		e.N, e.Time = int64(i+1), day.Add(time.Duration(i)*time.Second).Format(timeForm)
		line, next, err := e.line(last)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(line); err != nil {
			b.Fatal(err)
		}
		last = next
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		b.Fatal(err)
	}
	top, err := os.Create(filepath.Join(dir, headName))
	if err != nil {
		b.Fatal(err)
	}
	defer top.Close()
	if err := (head{Count: last.n, Hash: string(last.hash[:]), Size: info.Size()}).write(top); err != nil {
		b.Fatal(err)
	}
	return dir
}

// BenchmarkVerify reads and checks a log. The goal is 300 000 records a second.
func BenchmarkVerify(b *testing.B) { onLogs(b, verifyLog) }

func verifyLog(b *testing.B, dir string, n int) {
	for b.Loop() {
		if r, err := Verify(dir, time.Time{}); err != nil || !r.Whole() || r.Records != int64(n) {
			b.Fatal(r, err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkOpen opens a large log.
func BenchmarkOpen(b *testing.B) { onLogs(b, openLog) }

func openLog(b *testing.B, dir string, _ int) {
	for b.Loop() {
		l, err := Open(dir, Options{Now: time.Now})
		if err != nil {
			b.Fatal(err)
		}
		_ = l.Close()
	}
}
