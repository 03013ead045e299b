package proc

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// markerName is the variable whose value marks the processes of one run.
const markerName = "ZCODER_RUN"

// newMarker returns a value that no other run has.
func newMarker() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails, as documented
	return hex.EncodeToString(b[:])
}

// withMarker returns env with the marker, and without any that it held.
func withMarker(env []string, marker string) []string {
	out := make([]string, 0, len(env)+1)
	out = append(out, markerName+"="+marker)
	for _, v := range env {
		if !strings.HasPrefix(v, markerName+"=") {
			out = append(out, v)
		}
	}
	return out
}

// watchdog is a shell that sleeps on a pipe whose other end only this program
// holds. When that closes because the program was killed, it kills what the run
// left: by group, and by marker where the system shows environments.
type watchdog struct {
	proc *os.Process
	pipe *os.File
}

const watchScript = `group=
while read -r word; do group=$word; done
[ -z "$group" ] || kill -9 "-$group"
[ -r /proc/self/environ ] || exit 0
empty=0
while [ "$empty" -lt 4 ]; do
	found=$(grep -ls "` + markerName + `=$1" /proc/[0-9]*/environ)
	if [ -z "$found" ]; then
		empty=$((empty + 1)) # a process that is just being started shows no environment
		sleep 0.1 || sleep 1
		continue
	fi
	empty=0
	for file in $found; do
		pid=${file#/proc/}
		kill -9 "${pid%/environ}"
	done
done`

func startWatchdog(env []string, marker string) (*watchdog, error) {
	shell := "/bin/sh"
	if executable(shell) != nil {
		var err error
		if shell, err = lookPath("sh", env); err != nil {
			return nil, fmt.Errorf("start the watching shell: %w", err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the watching shell: %w", err)
	}
	defer r.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the watching shell: %w", err), w.Close())
	}
	defer null.Close()
	p, err := os.StartProcess(shell, []string{"sh", "-c", watchScript, "zcoder-watch", marker}, &os.ProcAttr{
		Dir:   "/",
		Env:   []string{"PATH=/usr/bin:/bin"},
		Files: []*os.File{r, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the watching shell: %w", err), w.Close())
	}
	return &watchdog{proc: p, pipe: w}, nil
}

// group tells which process group to kill; 0 is none.
func (w *watchdog) group(pid int) {
	word := ""
	if pid > 0 {
		word = strconv.Itoa(pid)
	}
	_, _ = w.pipe.WriteString(word + "\n") // it may have been killed: then nothing watches
}

// release ends the watch; nothing is killed. A nil *watchdog does nothing.
func (w *watchdog) release() {
	if w == nil {
		return
	}
	_ = w.proc.Kill() // before the pipe closes
	_, _ = w.proc.Wait()
	_ = w.pipe.Close()
}
