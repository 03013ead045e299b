package relay

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkAccept sends messages of 200 bytes from some senders to one receiver that
// drains its queue: with the spool in memory, where $XDG_RUNTIME_DIR is, and on the
// disk of the temporary directory. It reports accepted messages a second, and the
// 99th percentile of the time from the connect to the acknowledgement.
func BenchmarkAccept(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("memory/%d", n), func(b *testing.B) { benchmarkAccept(b, "/dev/shm", n) })
		b.Run(fmt.Sprintf("disk/%d", n), func(b *testing.B) { benchmarkAccept(b, b.TempDir(), n) })
	}
}

func benchmarkAccept(b *testing.B, spools string, n int) {
	spool, err := os.MkdirTemp(spools, "zs-")
	if err != nil {
		b.Skip("no place for the spool: ", err)
	}
	defer os.RemoveAll(spool)
	dir := shortDir(b)
	o := options(b, dir, "beta")
	o.Spool = filepath.Join(spool, "spool")
	receiver := open(b, o)
	var senders []*station
	for range n {
		senders = append(senders, open(b, options(b, dir, "alpha")))
	}
	stop := make(chan struct{})
	var draining sync.WaitGroup
	draining.Go(func() {
		for {
			if e, ok, _ := receiver.Claim(); ok {
				_ = receiver.Done(e)
				continue
			}
			select {
			case <-receiver.Arrived():
			case <-stop:
				return
			}
		}
	})
	body := string(make([]byte, 200))
	times := make([]time.Duration, b.N)
	var next, full atomic.Int64
	used := cpuTime(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, s := range senders {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(b.N) {
					return
				}
				for {
					start := time.Now()
					_, err := s.Send(b.Context(), receiver.peer(), body)
					if times[i] = time.Since(start); err == nil {
						break
					}
					if !errors.Is(err, ErrRefused) {
						b.Error(err)
						return
					}
					full.Add(1)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	used = cpuTime(b) - used
	close(stop)
	draining.Wait()
	slices.Sort(times)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(used.Nanoseconds())/1000/float64(b.N), "cpu-µs/message")
	b.ReportMetric(float64(full.Load())/float64(b.N), "full/message")
}

// cpuTime is what this process used so far: senders, receiver and consumer together.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPeers looks at a registry with some other instances.
func BenchmarkPeers(b *testing.B) {
	for _, n := range []int{8, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := shortDir(b)
			a := open(b, options(b, dir, "alpha"))
			for range n {
				open(b, options(b, dir, "other"))
			}
			for b.Loop() {
				if peers, err := a.Peers(b.Context(), nil); err != nil || len(peers) != n {
					b.Fatalf("%d peers (%v)", len(peers), err)
				}
			}
		})
	}
}

// BenchmarkConnect is what a connection and one byte each way cost by themselves, to
// compare with in one run.
func BenchmarkConnect(b *testing.B) {
	path := shortDir(b) + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1)
			_, _ = conn.Read(buf)
			_, _ = conn.Write(buf)
			conn.Close()
		}
	}()
	buf := make([]byte, 1)
	var times []time.Duration
	for b.Loop() {
		start := time.Now()
		conn, err := net.Dial("unix", path)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = conn.Write(buf)
		_, _ = conn.Read(buf)
		conn.Close()
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
