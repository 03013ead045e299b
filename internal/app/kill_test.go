package app

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zcoder/internal/audit"
	"zcoder/internal/scripted"
	"zcoder/internal/store"
)

func TestMain(m *testing.M) {
	if os.Getenv("ZCODER_TEST_MAIN") != "" {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// TestKilledAtAnyMoment kills the whole program while it writes, patches and runs
// commands: afterwards each file is whole, each session loads, the audit verifies, no
// temporary file is left after the next start and no process is.
func TestKilledAtAnyMoment(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skipf("processes cannot be looked at here: %v", err)
	}
	rounds := 300
	if testing.Short() {
		rounds = 25
	}
	script, err := scripted.Parse("> model test-model tools ctx=32768")
	if err != nil {
		t.Fatal(err)
	}
	n, asked := 0, make(chan struct{}, 1)
	server := scripted.New(script, scripted.Options{DropBodies: true, Respond: func(scripted.Recorded) string {
		n++
		select {
		case asked <- struct{}{}:
		default:
		}
		switch n % 4 {
		case 0:
			return fmt.Sprintf(`> call write_file {"path":"a.txt","content":"%s"}`, strings.Repeat("x", 2000)+"\\n")
		case 1:
			return fmt.Sprintf(`> call write_file {"path":"a.txt","content":"%s"}`, strings.Repeat("y", 3000)+"\\n")
		case 2:
			return `> call run_command {"command":"sleep 100 & echo started; sleep 0.01; setsid sleep 100 & sleep 0.02"}`
		}
		return `> call apply_patch {"patch":"--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+new\n--- a/b.txt\n+++ /dev/null\n"}`
	}})
	p := newProgram(t, server)
	for i := range rounds {
		after := time.Duration(rand.IntN(70)) * time.Millisecond
		if i%3 == 0 {
			p.killed(after, nil)
		} else {
			p.killed(after, asked)
		}
		p.fileIsWhole()
	}
	p.recordsAreWhole()
	p.nothingRuns()
	if status, _, stderr := p.run("config", "show"); status != statusOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	p.run("prompt", "show") // a start cleans up
	if left, _ := filepath.Glob(filepath.Join(p.dir, ".zcoder-tmp-*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// killed starts a turn and kills the program after a while, which begins when it asks
// the model: how long a program takes to get there is not ours. Nil: when it starts.
func (p *program) killed(after time.Duration, asked <-chan struct{}) {
	p.t.Helper()
	cmd := exec.Command(os.Args[0], "--yes", "--prompt", "go")
	cmd.Env = append(append([]string(nil), p.env...), "ZCODER_TEST_MAIN=1")
	cmd.Dir = p.dir
	select {
	case <-asked: // of the one before
	default:
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	if asked != nil {
		select {
		case <-asked:
		case <-time.After(time.Minute):
			p.t.Error("the program asks no model")
		}
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait() // it was killed
}

func (p *program) fileIsWhole() {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, "a.txt"))
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(data)
	if text != strings.Repeat("x", 2000)+"\n" && text != strings.Repeat("y", 3000)+"\n" {
		p.t.Fatalf("a.txt is torn: %d bytes", len(text))
	}
}

func (p *program) recordsAreWhole() {
	p.t.Helper()
	dir := filepath.Join(p.home, "zcoder")
	report, err := audit.Verify(filepath.Join(dir, "audit"), time.Time{})
	if err != nil || !report.Whole() || report.Records == 0 {
		p.t.Errorf("audit: %v, %v", report, err)
	}
	st, err := store.Open(filepath.Join(dir, "sessions"))
	if err != nil {
		p.t.Fatal(err)
	}
	list, err := st.List("", "")
	if err != nil || len(list) == 0 {
		p.t.Fatalf("%d sessions, %v", len(list), err)
	}
	for _, info := range list {
		log, loaded, err := st.Resume(info.ID)
		if err != nil || loaded.Bad > 1 {
			p.t.Errorf("session %s: %d bad lines, %v", info.ID, loaded.Bad, err)
			continue
		}
		log.Close()
	}
}

// nothingRuns waits shortly until no process works in the workspace.
func (p *program) nothingRuns() {
	p.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		left := processesIn(p.dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Errorf("processes are left: %v", left)
			return
		}
		time.Sleep(20 * time.Millisecond) // the kernel tells nobody when a process of a process ends
	}
}

// processesIn lists the processes whose working directory is dir.
func processesIn(dir string) []string {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var list []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == dir {
			cmdline, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list = append(list, filepath.Base(filepath.Dir(link))+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return list
}
