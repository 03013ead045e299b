package proc

import (
	"context"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// drainLimit is how long the end of a run waits for background processes and
	// for the end of the output.
	drainLimit = 200 * time.Millisecond
	// killLimit is how long killed processes have to vanish before they are
	// reported as survivors: one that hangs in the kernel does not end.
	killLimit = time.Second
)

// run is one started child.
type run struct {
	spec    Spec
	fam     *family
	proc    *os.Process
	watch   *watchdog
	streams []*stream
	out     *output
	live    *live
	input   *input
	begun   time.Time
	exited  chan struct{} // closed when the child is a zombie
	// interrupt asks the child's processes to end.
	interrupt unix.Signal
	took      time.Duration
}

// plumbing is what the child gets and what has to be closed afterwards.
type plumbing struct {
	child  []*os.File // standard input, output, error of the child
	ours   []*os.File // closed when the start fails
	theirs []*os.File // closed after the start
}

func (p *plumbing) abandon() {
	for _, f := range append(p.ours, p.theirs...) {
		_ = f.Close()
	}
}

// startPiped starts a child whose output comes through pipes.
func startPiped(s Spec, path string) (*run, error) {
	var p plumbing
	r, err := p.connect(s)
	if err == nil {
		err = r.start(path, &p, &syscall.SysProcAttr{Setsid: true})
	}
	if err != nil {
		p.abandon()
		return nil, err
	}
	return r, nil
}

// connect makes the pipes and the run that reads them.
func (p *plumbing) connect(s Spec) (*run, error) {
	r := &run{spec: s, out: newOutput(s.MaxOutput), interrupt: unix.SIGINT}
	stdin, err := p.stdin(r)
	if err != nil {
		return nil, err
	}
	stderr, err := p.output(r, r.collect)
	if err != nil {
		return nil, err
	}
	stdout := stderr
	if s.Stdout != nil {
		if stdout, err = p.output(r, func(b []byte) { _, _ = s.Stdout.Write(b) }); err != nil {
			return nil, err
		}
	}
	p.child = []*os.File{stdin, stdout, stderr}
	return r, nil
}

// collect keeps a piece of output and has it shown.
func (r *run) collect(b []byte) {
	r.out.add(b)
	r.live.poke()
}

func (p *plumbing) stdin(r *run) (*os.File, error) {
	switch in := r.spec.Stdin.(type) {
	case nil:
		null, err := os.Open(os.DevNull)
		if err == nil {
			p.theirs = append(p.theirs, null)
		}
		return null, err
	case *os.File:
		return in, nil
	default:
		rd, wr, err := os.Pipe()
		if err == nil {
			p.theirs = append(p.theirs, rd)
			p.ours = append(p.ours, wr)
			r.input = &input{from: in, to: wr, done: make(chan struct{})}
		}
		return rd, err
	}
}

func (p *plumbing) output(r *run, sink func([]byte)) (*os.File, error) {
	rd, wr, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	widen(wr)
	p.ours = append(p.ours, rd)
	p.theirs = append(p.theirs, wr)
	r.streams = append(r.streams, &stream{file: rd, sink: sink})
	return wr, nil
}

// start starts the watchdog and the child, and all that goes along with it.
func (r *run) start(path string, p *plumbing, sys *syscall.SysProcAttr) error {
	marker := newMarker()
	watch, err := startWatchdog(r.spec.Env, marker)
	if err != nil {
		return err
	}
	r.begun = time.Now()
	child, err := os.StartProcess(path, r.spec.Argv, &os.ProcAttr{
		Dir:   r.spec.Dir,
		Env:   withMarker(r.spec.Env, marker),
		Files: p.child,
		Sys:   sys,
	})
	if err != nil {
		watch.release()
		return bare(err)
	}
	for _, f := range p.theirs {
		_ = f.Close()
	}
	watch.group(child.Pid)
	r.proc, r.watch = child, watch
	self, _ := lookup(child.Pid) // a zombie has an entry too
	r.fam = &family{marker: marker, child: ident{pid: child.Pid, start: self.start}, self: os.Getpid()}
	if r.spec.OnStart != nil {
		r.spec.OnStart(Ident{PID: child.Pid, Start: self.start, Marker: marker})
	}
	r.live = newLive(r.out, r.spec.OnOutput)
	for _, s := range r.streams {
		s.start()
	}
	r.input.start()
	r.exited = make(chan struct{})
	go func() {
		defer close(r.exited)
		blockUntilExit(child.Pid)
		r.took = time.Since(r.begun)
	}()
	return nil
}

// wait waits for the child's end, brings it about if it must, and cleans up.
func (r *run) wait(ctx context.Context) Outcome {
	var late <-chan time.Time
	if r.spec.Timeout > 0 {
		timer := time.NewTimer(r.spec.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	var look <-chan time.Time
	if r.spec.Follow > 0 {
		ticker := time.NewTicker(r.spec.Follow)
		defer ticker.Stop()
		look = ticker.C
	}
	var o Outcome
	for ended := false; !ended; {
		ended = true
		select {
		case <-r.exited:
		case <-ctx.Done():
			o.Cancelled = true
		case <-late:
			o.TimedOut = true
		case <-look:
			r.fam.find()
			ended = false
		}
	}
	var left []process
	if o.Cancelled || o.TimedOut {
		left = r.end()
	} else {
		left = r.settle()
	}
	r.finish(&o, left)
	return o
}

// settle waits a moment for background processes and for the end of the output,
// and returns the processes that stay.
func (r *run) settle() []process {
	limit := time.Now().Add(drainLimit)
	for pause := 2 * time.Millisecond; ; pause *= 2 {
		left := r.fam.survivors()
		if len(left) == 0 && r.outputEnds(limit) {
			return nil
		}
		rest := time.Until(limit)
		if rest <= 0 {
			return append(left, r.holders(left)...)
		}
		time.Sleep(min(pause, rest))
	}
}

// outputEnds waits for the end of all output until the limit.
func (r *run) outputEnds(limit time.Time) bool {
	late := time.NewTimer(time.Until(limit))
	defer late.Stop()
	for _, s := range r.streams {
		select {
		case <-s.done:
		case <-late.C:
			return false
		}
	}
	return true
}

// holders are processes known by nothing but our pipe, which they have open.
func (r *run) holders(left []process) []process {
	var more []process
	for _, s := range r.streams {
		if s.ended() {
			continue
		}
		for _, p := range holders(s, r.fam.self) {
			if !contains(left, p) && !contains(more, p) && p.ident != r.fam.child {
				more = append(more, p)
				r.fam.known = append(r.fam.known, p.ident)
			}
		}
	}
	return more
}

func contains(list []process, p process) bool {
	for _, q := range list {
		if q.ident == p.ident {
			return true
		}
	}
	return false
}

// end interrupts the run's processes, kills what is left after the grace and
// returns what even that did not end. The child is not reaped yet, so its pid is
// also the group's and the session's.
func (r *run) end() []process {
	grace := r.spec.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	limit := time.NewTimer(grace)
	defer limit.Stop()
	stop := time.Now().Add(grace)
	// Whoever clears the environment and changes the session is known by its parent
	// alone, and only as long as that lives.
	r.fam.find()
	_ = unix.Kill(-r.fam.child.pid, r.interrupt)
	select {
	case <-r.exited:
		// What ignores an interrupt, as background processes of a shell do, may
		// still end in order.
		r.fam.signal(unix.SIGTERM)
		r.fam.vanish(stop)
	case <-limit.C:
	}
	left := kill([]*family{r.fam}, r.killGroup)
	if len(left) == 0 && !r.outputEnds(time.Now().Add(drainLimit)) && len(r.holders(nil)) > 0 {
		left = kill([]*family{r.fam}, r.killGroup)
	}
	select {
	case <-r.exited:
	case <-time.After(killLimit):
	}
	return left
}

func (r *run) killGroup() { _ = unix.Kill(-r.fam.child.pid, unix.SIGKILL) }

// finish reaps the child, hands over or ends what it left, and fills the outcome.
func (r *run) finish(o *Outcome, left []process) {
	o.Survivors = describe(left)
	r.reap(o)
	r.input.stop()
	held := false
	for _, s := range r.streams {
		s.stop()
		held = held || !s.ended()
	}
	r.live.close()
	o.Output, o.Truncated = r.out.text()
	rest := &remnant{fam: r.fam, streams: r.streams, watch: r.watch, keep: r.spec.KeepDetached, since: r.begun}
	switch {
	case len(left) == 0 && !held, o.Cancelled, o.TimedOut:
		rest.release()
	case !r.spec.Tracker.take(rest):
		end([]*remnant{rest})
	}
}

// reap collects the child's exit status. A child that hangs in the kernel is
// collected when it ends.
func (r *run) reap(o *Outcome) {
	select {
	case <-r.exited:
	default:
		o.ExitCode, o.Took = -1, time.Since(r.begun)
		go func() {
			<-r.exited
			_, _ = r.proc.Wait()
		}()
		return
	}
	o.Took = r.took
	state, err := r.proc.Wait()
	r.fam.reaped = true
	if err != nil {
		o.ExitCode = -1
		return
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	o.ExitCode = status.ExitStatus()
	if status.Signaled() {
		o.ExitCode = 128 + int(status.Signal())
		o.Signal = unix.SignalName(status.Signal())
	}
}

// input copies to the child what its standard input shall hold. A nil *input does
// nothing.
type input struct {
	from io.Reader
	to   *os.File
	done chan struct{}
}

func (in *input) start() {
	if in == nil {
		return
	}
	go func() {
		defer close(in.done)
		_, _ = io.Copy(in.to, in.from) // a child need not read all of it
		_ = in.to.Close()
	}()
}

func (in *input) stop() {
	if in == nil {
		return
	}
	_ = in.to.Close()
	if c, ok := in.from.(io.Closer); ok {
		_ = c.Close()
	}
	<-in.done
}
