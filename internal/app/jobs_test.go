package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zcoder/internal/event"
	"zcoder/internal/proc"
)

func TestInBackground(t *testing.T) {
	for command, want := range map[string]string{
		"make test &": "make test", "make test&": "make test", " a && b & ": "a && b",
		"a &&": "", `echo \&`: "", "&": "", " & ": "", "a": "", "a & b": "",
	} {
		got, ok := inBackground(command)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q, %v", command, got, ok)
		}
	}
}

func newJobs(t *testing.T) (*jobs, func() []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	var told []string
	j := &jobs{dir: t.TempDir(), ctx: ctx, cancel: cancel, reports: map[string][]event.Event{}, tell: func(e event.Event) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, e.Text)
	}}
	t.Cleanup(func() { j.close() })
	return j, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return told
	}
}

func TestJobs(t *testing.T) {
	j, told := newJobs(t)
	one, err := j.start("s1", "!", "make", func(_ context.Context, _ *job, log *jobLog) (string, string) {
		log.add([]byte(strings.Repeat("x", maxJobLog) + "no room"))
		log.add([]byte("none at all"))
		return "exit 0", "record"
	})
	if err != nil {
		t.Fatal(err)
	}
	<-one.over
	if got := told(); len(got) != 2 || !strings.Contains(got[0], "job j1 runs") || !strings.Contains(got[1], "job j1 ended") {
		t.Errorf("told %q", got)
	}
	if got := j.take("s2"); got != nil {
		t.Errorf("another session got %v", got)
	}
	if got := j.take("s1"); len(got) != 1 || got[0].Text != "record" || j.take("s1") != nil {
		t.Errorf("the session got %v", got)
	}
	info, err := os.Stat(one.log)
	if err != nil || info.Size() > maxJobLog+100 || info.Mode().Perm() != 0o600 {
		t.Errorf("log: %v, %v", info, err)
	}
	tail, err := tailOf(one.log, 60)
	if err != nil || !strings.Contains(tail, "it is full") || strings.Contains(tail, "none at all") {
		t.Errorf("tail %q, %v", tail, err)
	}
}

func TestJobsAreBoundedAndEnd(t *testing.T) {
	j, told := newJobs(t)
	wait := func(ctx context.Context, _ *job, _ *jobLog) (string, string) {
		<-ctx.Done()
		return "cancelled", ""
	}
	for range maxJobs {
		if _, err := j.start("s", "!", "wait", wait); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := j.start("s", "!", "one more", wait); err == nil {
		t.Error("there is no bound")
	}
	if n := j.close(); n != maxJobs || len(told()) != maxJobs {
		t.Errorf("%d ended, told %q", n, told())
	}
	if _, err := j.start("s", "!", "late", wait); err == nil {
		t.Error("a job began while the program ends")
	}
}

// TestOrphansAreEnded: what a killed program left is ended by its record; what a
// living one runs, and a process that only has the pid, are not.
func TestOrphansAreEnded(t *testing.T) {
	dir := t.TempDir()
	type child struct {
		id   proc.Ident
		over chan struct{}
	}
	begin := func() child {
		c := child{over: make(chan struct{})}
		who := make(chan proc.Ident, 1)
		go func() {
			defer close(c.over)
			_, _ = proc.Run(t.Context(), proc.Spec{Argv: []string{"sleep", "3121"}, Env: os.Environ(), OnStart: func(id proc.Ident) { who <- id }})
		}()
		c.id = <-who
		return c
	}
	write := func(name string, r jobRecord) {
		data, err := json.Marshal(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dead := proc.Ident{PID: os.Getpid(), Start: proc.Self().Start - 1} // our pid, another process
	orphan, reused, owned := begin(), begin(), begin()
	other := reused.id
	other.Start++
	other.Marker = fmt.Sprintf("%024d", 0)
	write("orphan", jobRecord{dead, orphan.id, "make"})
	write("reused", jobRecord{dead, other, "make"})
	write("owned", jobRecord{proc.Self(), owned.id, "make"})
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	notices := cleanJobs(dir)
	<-orphan.over
	if len(notices) != 1 || !strings.Contains(notices[0], "sleep 3121") {
		t.Errorf("notices %q", notices)
	}
	if !reused.id.Running() || !owned.id.Running() {
		t.Error("a process of somebody else was ended")
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(left) != 2 {
		t.Errorf("records left: %v, %v", left, err)
	}
}
