package audit

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zcoder/internal/approval"
)

// TestMain lets the test program play another zcoder that writes the same log.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_TEST_DIR"); dir != "" {
		os.Exit(writer(dir, os.Getenv("AUDIT_TEST_COUNT")))
	}
	os.Exit(m.Run())
}

// writer writes a number of records, or without one until it is killed.
func writer(dir, count string) int {
	l, err := Open(dir, Options{Now: time.Now, Instance: fmt.Sprint(os.Getpid()), Mask: func(s string) string { return s }})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if count == "" {
		fmt.Println("open")
	}
	n, err := strconv.Atoi(count)
	for i := 0; err != nil || i < n; i++ {
		r := approval.Record{Kind: "start", Request: request(), Detail: strings.Repeat("d", i%200), Sync: err != nil && i%3 == 0}
		if err := l.Record(r); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

func startWriter(t *testing.T, dir, count string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"AUDIT_TEST_DIR=" + dir, "AUDIT_TEST_COUNT=" + count}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// startEndless starts a writer that goes on until it is killed, and waits
// until its log is open: how long a program takes to get there is not ours.
func startEndless(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"AUDIT_TEST_DIR=" + dir}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the writer said %q: %v", line, err)
	}
	return cmd
}

// TestTwoPrograms has two programs append 1000 records each at the same time (L03).
func TestTwoPrograms(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	a, b := startWriter(t, dir, "1000"), startWriter(t, dir, "1000")
	for _, cmd := range []*exec.Cmd{a, b} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	r := verified(t, dir)
	if !r.Whole() || r.Records != 2000 || r.Unfinished != 0 {
		t.Errorf("got %+v", r)
	}
	for _, cmd := range []*exec.Cmd{a, b} {
		own := 0
		for e, err := range Grep(dir, func([]byte) bool { return true }, time.Time{}) {
			if err == nil && e.By == fmt.Sprint(cmd.Process.Pid) {
				own++
			}
		}
		if own != 1000 {
			t.Errorf("%d records of one program", own)
		}
	}
}

// TestKill kills a writer with SIGKILL again and again, at any moment (L04).
func TestKill(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	dir := filepath.Join(t.TempDir(), "audit")
	last, killed := int64(0), 0
	for i := range rounds {
		cmd := startEndless(t, dir)
		time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
		_ = cmd.Process.Kill()
		var exit *exec.ExitError
		if err := cmd.Wait(); errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			killed++
		}
		if i%10 != 0 && i != rounds-1 {
			continue
		}
		r := verified(t, dir)
		if !r.Whole() || r.Last < last {
			t.Fatalf("round %d: %+v", i, r)
		}
		last = r.Last
	}
	if killed != rounds || last == 0 {
		t.Errorf("%d of %d rounds were killed, %d records", killed, rounds, last)
	}
	t.Logf("%d records in %d rounds", last, rounds)
}

// smallDisk mounts a file system of a few pages.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := mount(dir, options); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	t.Cleanup(func() {
		for unmount(dir) == nil { // whatever was mounted over it as well
		}
	})
	return dir
}

// TestDiskFull fills the disk under the log (L04).
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t, "size=64k")
	dir := filepath.Join(disk, "audit")
	l := open(t, dir)
	put(t, l, "one")
	var err error
	written := int64(1)
	for range 1000 {
		if err = l.Record(approval.Record{Kind: "more", Detail: strings.Repeat("x", 190), Sync: true}); err != nil {
			break
		}
		written++
	}
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "write audit") {
		t.Fatalf("got %v after %d records", err, written)
	}
	if r := verified(t, dir); !r.Whole() || r.Records != written || r.Unfinished != 0 {
		t.Errorf("got %+v after %d records", r, written)
	}
	gate := approval.Gate{Policy: yes{}, Recorder: l}
	if _, err := gate.Authorize(t.Context(), *request()); err == nil || !strings.Contains(err.Error(), "nothing but reading is allowed") {
		t.Errorf("the gate said %v", err)
	}
	reading := approval.Request{CallID: "c2", Tool: "read_file", Effect: approval.Read}
	if _, err := gate.Authorize(t.Context(), reading); err != nil {
		t.Errorf("reading was refused: %v", err)
	}
}

type yes struct{}

func (yes) Judge(approval.Request) approval.Verdict {
	return approval.Verdict{Decision: approval.Allow}
}

// TestDiskFreedAgain goes on where a full disk had stopped it.
func TestDiskFreedAgain(t *testing.T) {
	disk := smallDisk(t, "size=64k")
	dir := filepath.Join(disk, "audit")
	l := open(t, dir)
	put(t, l, "one")
	filler := filepath.Join(disk, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()
	for err = nil; err == nil; {
		err = l.Record(approval.Record{Kind: "more", Detail: strings.Repeat("x", 190)})
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	put(t, l, "after")
	if r := verified(t, dir); !r.Whole() || l.Notice() != "" {
		t.Errorf("got %+v, notice %q", r, l.Notice())
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	disk := smallDisk(t, "size=64k")
	dir := filepath.Join(disk, "audit")
	put(t, open(t, dir), "one", "two")
	if err := remountReadOnly(disk); err != nil {
		t.Skipf("cannot remount here: %v", err)
	}
	if _, err := Open(dir, Options{Now: clock()}); !errors.Is(err, unix.EROFS) {
		t.Errorf("Open said %v", err)
	}
	if r := verified(t, dir); !r.Whole() || r.Records != 2 {
		t.Errorf("got %+v", r)
	}
}

// TestStoppedHolderOfTheLock checks that a program that hangs with the lock does not
// hang the others for ever.
func TestStoppedHolderOfTheLock(t *testing.T) {
	dir, _ := filled(t, 1)
	var files [2]*os.File
	for i := range files {
		f, err := os.Open(filepath.Join(dir, lockName))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	if err := lockFile(files[0], unix.LOCK_EX, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := lockFile(files[1], unix.LOCK_SH, 30*time.Millisecond); err == nil || !strings.Contains(err.Error(), "another program has held it for 30ms") {
		t.Errorf("got %v", err)
	}
}
