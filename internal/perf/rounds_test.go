package perf

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"zcoder/internal/scripted"
)

// roundRows run 200 rounds that read 5 KB each in one terminal session.
func roundRows(l *lab) []row {
	cost := row{what: "processor time of a round of the whole program, by rounds so far", unit: "ms", why: noProc}
	memory := row{what: "memory after 200 rounds and 1 MB of history, peak", unit: "MB", goal: atMost(45), why: noProc}
	if !hasProc() {
		return []row{cost, memory}
	}
	const rounds = 200
	var used []time.Duration
	var pid atomic.Int64
	p := l.place(scripted.Options{Respond: func(scripted.Recorded) string {
		cpu, _ := onCPU(int(pid.Load()))
		if used = append(used, cpu); len(used) > rounds {
			return "> say All is read."
		}
		return fmt.Sprintf(`> call read_file_range {"path":"log.txt","start_line":%d,"end_line":%d}`, len(used), len(used)+99)
	}})
	p.write("log.txt", strings.Repeat("one more line of a log, with a number in it: 4711\n", 400))
	x := p.terminal()
	pid.Store(int64(x.cmd.Process.Pid))
	x.wait("›", 0)
	x.send("read it\r")
	x.wait(bell, 0)
	at := func(round int) float64 {
		var list []float64
		for i := round - 9; i <= round; i++ {
			list = append(list, ms(used[i]-used[i-1]))
		}
		return median(list)
	}
	cost.why, cost.points = "", []point{{"10", at(10)}, {"100", at(100)}, {"200", at(200)}}
	memory.why, memory.points = "", []point{{"", megabytes(x.cmd.Process.Pid, "VmHWM")}}
	x.end()
	return []row{cost, memory}
}
