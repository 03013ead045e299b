package perf

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// lab is where the program is built and run.
type lab struct {
	t     *testing.T
	quick bool
	root  string // of the module
	dir   string // of the programs
	begun time.Time

	program string
	empty   string // a program with the same imports that does nothing
	efforts map[string]effort
}

func newLab(t *testing.T, quick bool) *lab {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, quick: quick, root: root, dir: t.TempDir(), begun: time.Now(), efforts: efforts}
	l.program = filepath.Join(l.dir, "zcoder")
	l.build(l.program)
	return l
}

// say tells how far it is, at once.
func (l *lab) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%4.0fs %s\n", time.Since(l.begun).Seconds(), fmt.Sprintf(format, args...))
}

// build makes the program as it is released.
func (l *lab) build(to string, more ...string) {
	l.t.Helper()
	args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", to}, more...)
	cmd := exec.Command("go", append(args, ".")...)
	cmd.Dir = l.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("build the program: %v\n%s", err, out)
	}
}

// buildEmpty makes the empty program: main.go is replaced by one that only imports.
func (l *lab) buildEmpty() {
	l.t.Helper()
	main := filepath.Join(l.dir, "main.go")
	overlay := filepath.Join(l.dir, "overlay.json")
	l.write(main, "package main\n\nimport _ \"zcoder/internal/app\"\n\nfunc main() {}\n")
	l.write(overlay, fmt.Sprintf(`{"Replace":{%q:%q}}`, filepath.Join(l.root, "main.go"), main))
	l.empty = filepath.Join(l.dir, "empty")
	l.build(l.empty, "-overlay", overlay)
}

func (l *lab) write(path, text string) {
	l.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// pick returns the number of repetitions for the mode.
func (l *lab) pick(quick, full int) int {
	if l.quick {
		return quick
	}
	return full
}

// machine says where the numbers come from.
func machine(root string) string {
	cpu := firstOf("/proc/cpuinfo", "model name")
	memory := firstOf("/proc/meminfo", "MemTotal")
	load, _ := os.ReadFile("/proc/loadavg")
	commit, _ := exec.Command("git", "-C", root, "describe", "--always", "--dirty").Output()
	kernel, _ := exec.Command("uname", "-sr").Output()
	return fmt.Sprintf("%s, %d cores, %s memory, %s, %s/%s, %s, load at the start %s, commit %s",
		or(cpu, "unknown processor"), runtime.NumCPU(), or(memory, "unknown"), strings.TrimSpace(string(kernel)), runtime.GOOS, runtime.GOARCH, runtime.Version(),
		or(strings.Join(strings.Fields(string(load))[:min(3, len(strings.Fields(string(load))))], " "), "unknown"), strings.TrimSpace(string(commit)))
}

func or(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

// firstOf is the value of a "key : value" line.
func firstOf(path, key string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
