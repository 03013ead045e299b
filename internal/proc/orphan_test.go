package proc

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// started runs a script that writes a pid to FIFO and goes on, and returns who it is,
// the pid, and what ends it.
func started(t *testing.T, script string) (Ident, int, func() Outcome) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "pid")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Skipf("mkfifo: %v %s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := sh(strings.ReplaceAll(script, "FIFO", fifo) + "\nwait")
	who := make(chan Ident, 1)
	s.OnStart = func(id Ident) { who <- id }
	ended := make(chan Outcome, 1)
	go func() {
		o, _ := Run(ctx, s)
		ended <- o
	}()
	data, err := os.ReadFile(fifo)
	if err != nil {
		t.Fatal(err)
	}
	var outcome *Outcome
	stop := func() Outcome {
		cancel()
		if outcome == nil {
			o := <-ended
			outcome = &o
		}
		return *outcome
	}
	t.Cleanup(func() { stop() })
	return <-who, pidFrom(t, string(data)), stop
}

func TestCancelFindsWhatClearedItsEnvironment(t *testing.T) {
	_, pid, stop := started(t, "setsid env -i /bin/sh -c 'echo $$ >FIFO; exec sleep 3117' </dev/null >/dev/null 2>&1 &")
	if o := stop(); !o.Cancelled {
		t.Errorf("outcome %+v", o)
	}
	if alive(pid) {
		t.Errorf("process %d runs on", pid)
	}
}

func TestEndOrphan(t *testing.T) {
	id, pid, stop := started(t, "setsid sh -c 'echo $$ >FIFO; exec sleep 3118' &")
	if !id.Running() || !Self().Running() {
		t.Fatalf("%+v or %+v does not run", id, Self())
	}
	other := id
	other.Start++ // the pid belongs to another process now
	other.Marker = newMarker()
	if found := EndOrphan(other); len(found) > 0 || !alive(pid) || other.Running() {
		t.Errorf("a process that only has the pid was ended: %v", found)
	}
	if found := EndOrphan(Ident{PID: os.Getpid(), Start: Self().Start}); found != nil {
		t.Errorf("without a marker %v was ended", found)
	}
	if found := EndOrphan(id); len(found) < 2 {
		t.Errorf("found %v, not the shell and its child", found)
	}
	if alive(pid) || id.Running() {
		t.Error("the run goes on")
	}
	stop()
}

func TestFollowFindsWhatACrashLeaves(t *testing.T) {
	dir := t.TempDir()
	s := sh("setsid env -i /bin/sh -c 'echo $$ >PID.new; mv PID.new PID; exec sleep 3119' </dev/null >/dev/null 2>&1 &\n" +
		"while ! [ -e PID ]; do sleep 0.01; done; sleep 0.3; kill -SEGV $$")
	s.Dir, s.Follow = dir, 20*time.Millisecond
	o := mustRun(t, s)
	data, err := os.ReadFile(filepath.Join(dir, "PID"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Signal != "SIGSEGV" || alive(pidFrom(t, string(data))) {
		t.Errorf("outcome %+v, or what it started runs on", o)
	}
}
