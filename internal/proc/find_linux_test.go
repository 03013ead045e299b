package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999 20"
	tests := []struct {
		name, line string
		ok         bool
		want       process
	}{
		{"plain", "42 (sh) S" + rest, true, process{ident: ident{42, 999}, ppid: 1, pgid: 2, sid: 3}},
		{"zombie", "42 (sh) Z" + rest, true, process{ident: ident{42, 999}, ppid: 1, pgid: 2, sid: 3, zombie: true}},
		{"name with a parenthesis and a line end", "42 (a) Z (b\n) R" + rest, true, process{ident: ident{42, 999}, ppid: 1, pgid: 2, sid: 3}},
		{"empty", "", false, process{}},
		{"cut off", "42 (sh) S 1 2", false, process{}},
		{"no number", "42 (sh) S x 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999", false, process{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := parseStat([]byte(tt.line))
			if ok != tt.ok || ok && got != tt.want {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) (b\n) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999 20"))
	f.Add([]byte("() ) ("))
	f.Fuzz(func(t *testing.T, line []byte) { parseStat(line) }) // never panics
}

func TestHasMarker(t *testing.T) {
	marker := newMarker()
	pad := make([]byte, 40000) // longer than the buffer that is searched at a time
	for i := range pad {
		pad[i] = 'x'
	}
	for _, env := range [][]string{
		{markerName + "=" + marker},
		{"A=" + string(pad), markerName + "=" + marker},
		{"A=" + string(pad[:32768-2-7]), markerName + "=" + marker, "B=" + string(pad)}, // across two buffers
	} {
		cmd := exec.Command("sleep", "60")
		cmd.Env = env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for tries := 0; tries < 200 && !hasMarker(cmd.Process.Pid, marker); tries++ {
			time.Sleep(time.Millisecond) // a process that is just being started shows no environment yet
		}
		if !hasMarker(cmd.Process.Pid, marker) || hasMarker(cmd.Process.Pid, newMarker()) {
			t.Errorf("wrong for an environment of %d variables", len(env))
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if hasMarker(os.Getpid(), marker) {
		t.Error("our own environment holds the marker")
	}
}
