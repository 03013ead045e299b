package perf

import (
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"zcoder/internal/scripted"
)

const noProc = "there is no /proc here"

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// startRows are the costs before and beside the model.
func startRows(l *lab) []row {
	rows := l.oneShot()
	rows = append(rows, l.prompt())
	rows = append(rows, l.peak(), l.binary())
	return append(rows, l.idle()...)
}

// oneShot runs the empty program, one that prints its version, and a request, in turn.
func (l *lab) oneShot() []row {
	var asked atomic.Int64
	p := l.place(scripted.Options{Respond: func(scripted.Recorded) string {
		asked.Store(time.Now().UnixNano())
		return "> say Done."
	}})
	var empty, emptyCPU, version, first, whole, wholeCPU []float64
	run := func(cmd *exec.Cmd) (begun time.Time, wall, cpu float64) {
		cmd.Stdout, cmd.Stderr = io.Discard, io.Discard
		begun = time.Now()
		if err := cmd.Run(); err != nil {
			l.t.Fatalf("%v: %v", cmd.Args, err)
		}
		return begun, ms(time.Since(begun)), ms(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	}
	for i := range l.pick(8, 60) {
		nothing := exec.Command(l.empty)
		nothing.Env = p.env
		_, wall, cpu := run(nothing)
		_, told, _ := run(p.command("--version"))
		begun, took, used := run(p.command("--prompt", "hello"))
		if i < 2 {
			continue // the page cache is filled
		}
		empty, emptyCPU, version = append(empty, wall), append(emptyCPU, cpu), append(version, told)
		first = append(first, float64(asked.Load()-begun.UnixNano())/1e6)
		whole, wholeCPU = append(whole, took), append(wholeCPU, used)
	}
	one := func(v float64) []point { return []point{{"", v}} }
	return []row{
		{what: "the empty program", unit: "ms", points: one(median(empty))},
		{what: "`zcoder --version`", unit: "ms", points: one(median(version))},
		{what: "start to first model request of `zcoder --prompt`, above the empty program", unit: "ms", goal: atMost(8), points: one(median(first) - median(empty))},
		{what: "the same, all of it", unit: "ms", points: one(median(first))},
		{what: "a one-shot turn, above the empty program", unit: "ms", goal: atMost(15), points: one(median(whole) - median(empty))},
		{what: "its processor time, above the empty program", unit: "ms", points: one(median(wholeCPU) - median(emptyCPU))},
	}
}

// prompt is the time until the terminal takes input.
func (l *lab) prompt() row {
	p := l.place(scripted.Options{Ending: "Done."})
	var times []float64
	for range l.pick(4, 20) {
		x := p.terminal()
		when, _ := x.wait("›", 0)
		times = append(times, ms(when.Sub(x.begun)))
		x.end()
	}
	return row{what: "start to a prompt that takes input", unit: "ms", goal: atMost(40), points: []point{{"", median(times)}}}
}

// peak is the largest resident memory of a one-shot turn, looked at until it ends.
func (l *lab) peak() row {
	r := row{what: "peak memory of a one-shot turn", unit: "MB", goal: atMost(20), why: noProc}
	if !hasProc() {
		return r
	}
	p := l.place(scripted.Options{Ending: "Done."})
	var peaks []float64
	for range l.pick(3, 9) {
		cmd := p.command("--prompt", "hello")
		if err := cmd.Start(); err != nil {
			l.t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		peaks = append(peaks, highWater(cmd.Process.Pid, ended))
	}
	r.why, r.points = "", []point{{"", median(peaks)}}
	return r
}

func highWater(pid int, ended chan struct{}) (peak float64) {
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for {
		peak = max(peak, megabytes(pid, "VmHWM"))
		select {
		case <-ended:
			return peak
		case <-tick.C:
		}
	}
}

func (l *lab) binary() row {
	info, err := os.Stat(l.program)
	if err != nil {
		l.t.Fatal(err)
	}
	return row{what: "the program, stripped", unit: "MB", goal: atMost(20), points: []point{{"", float64(info.Size()) / 1e6}}}
}

// idle is what a terminal session costs in which nothing happens.
func (l *lab) idle() []row {
	memory := row{what: "memory of an idle session, peak", unit: "MB", goal: atMost(30), why: noProc}
	cpu := row{what: "processor time of an idle session, a minute", unit: "ms", goal: atMost(1), why: noProc}
	woken := row{what: "how often its threads wake, a minute", unit: "times", goal: atMost(10), why: noProc}
	if !hasProc() {
		return []row{memory, cpu, woken}
	}
	p := l.place(scripted.Options{Ending: "Done."}, "ZCODER_WARMUP=on")
	x := p.terminal()
	defer x.end()
	x.wait("›", 0)
	time.Sleep(5 * time.Second) // what starts beside the prompt is over, and the runtime's own work
	span := time.Duration(l.pick(3, 60)) * time.Second
	pid := x.cmd.Process.Pid
	before, waits := onCPU(pid)
	time.Sleep(span)
	after, later := onCPU(pid)
	a := time.Minute.Seconds() / span.Seconds()
	memory.why, cpu.why, woken.why = "", "", "the runtime's own, nothing polls"
	memory.points = []point{{"", megabytes(pid, "VmHWM")}}
	cpu.points = []point{{"", ms(after-before) * a}}
	woken.points = []point{{"", (later - waits) * a}}
	return []row{memory, cpu, woken}
}
