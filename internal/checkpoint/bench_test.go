package checkpoint

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sourceTree makes files that compress like source code, about 4.7 KB each.
func sourceTree(b testing.TB, root string, files int) {
	r := rand.New(rand.NewPCG(1, 2))
	words := make([]string, 400)
	for i := range words {
		words[i] = fmt.Sprintf("%x", r.Uint64()>>(r.IntN(48)))
	}
	var text bytes.Buffer
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("pkg%d", i/400), fmt.Sprintf("sub%d", i/20%20))
		if i%20 == 0 {
			must(b, os.MkdirAll(dir, 0o755))
		}
		text.Reset()
		for want := 500 + r.IntN(8500); text.Len() < want; {
			text.WriteString(words[r.IntN(len(words))])
			text.WriteByte(" \n\t("[r.IntN(4)])
		}
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.go", i)), text.Bytes(), 0o644))
	}
}

func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bareFirst is the work that no first snapshot can do without: read the tree, name
// each content, and write one pack with level 1 of deflate to the disk.
func bareFirst(b testing.TB, root, to string) {
	f, err := os.Create(to)
	must(b, err)
	sum := sha1.New()
	w := bufio.NewWriterSize(io.MultiWriter(f, sum), 1<<16)
	zw, _ := zlib.NewWriterLevel(w, zlib.BestSpeed)
	must(b, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_ = hashOf("blob", content)
		_, _ = w.Write(entryHead(3, int64(len(content))))
		zw.Reset(w)
		if _, err := zw.Write(content); err != nil {
			return err
		}
		return zw.Close()
	}))
	must(b, w.Flush())
	_, err = f.Write(sum.Sum(nil))
	must(b, err)
	must(b, f.Sync())
	must(b, f.Close())
}

// bareNext is the work that no later snapshot can do without.
func bareNext(b testing.TB, root string) (n int) {
	must(b, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		_, err = os.Lstat(path)
		n++
		return err
	}))
	return n
}

type cost struct{ wall, cpu []time.Duration }

func (c *cost) measure(do func()) {
	cpu, start := cpuTime(), time.Now()
	do()
	c.wall, c.cpu = append(c.wall, time.Since(start)), append(c.cpu, cpuTime()-cpu)
}

func median(list []time.Duration) time.Duration {
	list = slices.Clone(list)
	slices.Sort(list)
	return list[len(list)/2]
}

func report(b *testing.B, ours, bare *cost) {
	b.ReportMetric(float64(median(ours.wall).Microseconds())/1000, "ms")
	b.ReportMetric(float64(median(bare.wall).Microseconds())/1000, "bare-ms")
	b.ReportMetric(float64(median(ours.wall))/float64(median(bare.wall)), "wall-ratio")
	b.ReportMetric(float64(median(ours.cpu))/float64(median(bare.cpu)), "cpu-ratio")
	b.ReportMetric(0, "ns/op")
}

// sizes are the trees that are measured, with the times that each is.
func sizes() map[int]int {
	if testing.Short() {
		return map[int]int{1_000: 7, 20_000: 1}
	}
	return map[int]int{1_000: 15, 20_000: 5, 50_000: 3}
}

// BenchmarkFirst compares the first snapshot of a tree with reading it and writing
// one pack, in turn in one run. The goal is a ratio of at most 1.3.
func BenchmarkFirst(b *testing.B) {
	for files, rounds := range sizes() {
		b.Run(fmt.Sprintf("%dk", files/1000), func(b *testing.B) {
			root := tempRoot(b)
			sourceTree(b, root, files)
			bareNext(b, root)
			var ours, bare cost
			for b.Loop() {
				for range rounds {
					store := b.TempDir()
					bare.measure(func() { bareFirst(b, root, filepath.Join(store, "pack")) })
					k, err := Open(context.Background(), Options{Store: filepath.Join(store, "s"), Root: root, Session: "s"})
					must(b, err)
					ours.measure(func() {
						k.Begin(context.Background())
						must(b, k.waitForWork(context.Background()))
					})
					must(b, k.work.err)
					must(b, k.Close())
					must(b, os.RemoveAll(store))
				}
			}
			report(b, &ours, &bare)
		})
	}
}

// BenchmarkNext compares a snapshot of an unchanged tree with a walk that looks at
// each file. The goal is a ratio of at most 1.5.
func BenchmarkNext(b *testing.B) {
	for files, rounds := range sizes() {
		b.Run(fmt.Sprintf("%dk", files/1000), func(b *testing.B) {
			root, ctx := tempRoot(b), context.Background()
			sourceTree(b, root, files)
			k := openKeeper(b, Options{Store: b.TempDir(), Root: root})
			k.Begin(ctx)
			must(b, k.waitForWork(ctx))
			_, err := k.Turn(ctx, "what was too new to trust is read again")
			must(b, err)
			must(b, k.Ready(ctx))
			var ours, bare cost
			for b.Loop() {
				for range rounds * 3 {
					bare.measure(func() { bareNext(b, root) })
					ours.measure(func() {
						_, err := k.Turn(ctx, "next")
						must(b, err)
						must(b, k.waitForWork(ctx))
					})
				}
			}
			if mode, why := k.Mode(); mode != Full {
				b.Fatal(why)
			}
			report(b, &ours, &bare)
		})
	}
}
