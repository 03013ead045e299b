package perf

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"zcoder/internal/event"
	"zcoder/internal/store"
)

// holding is what a process has.
type holding struct {
	memory      float64 // resident, in MB
	descriptors int
	threads     float64
	children    int
}

func (p *person) holds() holding {
	time.Sleep(2 * time.Second) // what a turn leaves to its end is over
	pid := p.term.cmd.Process.Pid
	h := holding{memory: megabytes(pid, "VmRSS"), threads: status(pid, "Threads")}
	if list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); err == nil {
		h.descriptors = len(list)
	}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range lists {
		data, _ := os.ReadFile(name)
		h.children += len(strings.Fields(string(data)))
	}
	return h
}

func (p *person) compare(early, late holding) {
	if late.memory > early.memory*1.5+10 {
		p.fail("memory grew from %.1f to %.1f MB", early.memory, late.memory)
	}
	if late.descriptors > early.descriptors+4 {
		p.fail("descriptors grew from %d to %d", early.descriptors, late.descriptors)
	}
	if late.threads > early.threads+8 {
		p.fail("threads grew from %.0f to %.0f", early.threads, late.threads)
	}
	if late.children > 0 {
		p.fail("%d children are left at the prompt", late.children)
	}
}

// look checks what all of it left on the machine.
func (s *soak) look() {
	s.processes()
	s.tidy()
	s.sockets()
	s.sessions()
	s.audit()
}

// processes waits shortly until none works below the directory.
func (s *soak) processes() {
	deadline := time.Now().Add(20 * time.Second)
	for {
		left := s.working()
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("%d processes are left: %q", len(left), left[:min(10, len(left))])
			return
		}
		time.Sleep(50 * time.Millisecond) // the kernel tells nobody when a process of a process ends
	}
}

func (s *soak) working() []string {
	var list []string
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, s.dir+"/") {
			command, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list = append(list, filepath.Base(filepath.Dir(link))+" "+strings.ReplaceAll(string(command), "\x00", " "))
		}
	}
	return list
}

// command runs the program once more in a workspace.
func (s *soak) command(ws string, args ...string) (string, error) {
	cmd := exec.Command(s.program, args...)
	cmd.Dir = filepath.Join(s.dir, ws)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(s.dir, "home"), "ZCODER_HOME=" + filepath.Join(s.dir, "home", "zcoder"),
		"XDG_RUNTIME_DIR=" + filepath.Join(s.dir, "run"), "TMPDIR=" + filepath.Join(s.dir, "tmp"), "OLLAMA_HOST=127.0.0.1:9"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// tidy opens each workspace once more, as if a day later, which removes what kills left,
// and looks for temporary files.
func (s *soak) tidy() {
	for _, path := range s.temporary() {
		day := time.Now().Add(-24 * time.Hour)
		if err := os.Chtimes(path, day, day); err != nil {
			s.t.Error(err)
		}
	}
	for _, p := range s.people {
		if p.open() {
			p.leave()
		} else {
			p.kill()
		}
	}
	if left := s.temporary(); len(left) > 0 {
		s.t.Errorf("temporary files are left: %q", left)
	}
}

// temporary lists what looks like a temporary file.
func (s *soak) temporary() (list []string) {
	own := filepath.Join(s.dir, "tmp")
	_ = filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error { // what vanishes is none
		if err == nil && path != own && (strings.Contains(e.Name(), "tmp") || strings.HasPrefix(path, own)) {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// sockets are left by what was killed alone.
func (s *soak) sockets() {
	for _, pid := range s.clean {
		if list, _ := filepath.Glob(filepath.Join(s.dir, "run", "*", fmt.Sprintf("a-%d-*", pid))); len(list) > 0 {
			s.t.Errorf("an instance that ended by itself left %q", list)
		}
	}
}

// sessions checks each log: one end of each turn and one result of each call, but for
// what was killed last.
func (s *soak) sessions() {
	st, err := store.Open(filepath.Join(s.dir, "home", "zcoder", "sessions"))
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := st.List("", "")
	if err != nil || len(list) == 0 {
		s.t.Errorf("%d sessions, %v", len(list), err)
	}
	turns, events := 0, 0
	for _, info := range list {
		log, loaded, err := st.Resume(info.ID)
		if err != nil {
			s.t.Errorf("session %s: %v", info.ID, err)
			continue
		}
		log.Close()
		if int64(loaded.Bad) > s.kills.Load() {
			s.t.Errorf("session %s: %d bad lines", info.ID, loaded.Bad)
		}
		n, wrong := wellFormed(loaded.Events)
		if wrong != "" {
			s.t.Errorf("session %s: %s", info.ID, wrong)
		}
		turns, events = turns+n, events+len(loaded.Events)
	}
	s.t.Logf("%d sessions with %d turns and %d events are well formed", len(list), turns, events)
}

// wellFormed counts the turns, and says what is wrong with them.
func wellFormed(events []event.Event) (turns int, wrong string) {
	turn, open := "", []string(nil)
	for _, e := range events {
		switch e.Kind {
		case event.TurnStart:
			if turn != "" {
				return turns, fmt.Sprintf("turn %s began inside %s", e.Turn, turn)
			}
			turn = e.Turn
			turns++
		case event.TurnEnd:
			if e.Turn != turn || len(open) > 0 {
				return turns, fmt.Sprintf("turn %q ended inside %q, without results of %q", e.Turn, turn, open)
			}
			turn = ""
		case event.Reply:
			if !e.Reply.Partial && !e.Reply.Degenerate {
				for _, c := range e.Reply.Message.Calls {
					open = append(open, c.ID)
				}
			}
		case event.CallEnd:
			if e.Result.Direct {
				continue
			}
			i := slices.Index(open, e.Result.CallID)
			if i < 0 {
				return turns, fmt.Sprintf("a result of %q, which is not open", e.Result.CallID)
			}
			open = slices.Delete(open, i, i+1)
		}
	}
	return turns, ""
}

func (s *soak) audit() {
	out, err := s.command("alpha", "audit", "verify")
	s.t.Logf("audit verify: %s", strings.TrimSpace(out))
	if err != nil {
		s.t.Errorf("audit verify: %v", err)
	}
}
