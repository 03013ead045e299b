package runtimedir

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func open(t *testing.T, p Places) *Dir {
	t.Helper()
	d, err := Open(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// realTemp is a fresh directory without links in its path.
func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func mkdir(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestPlace(t *testing.T) {
	base := realTemp(t)
	good := mkdir(t, filepath.Join(base, "run"), 0o700)
	loose := mkdir(t, filepath.Join(base, "loose"), 0o755)
	blanks := mkdir(t, filepath.Join(base, "with  blanks "), 0o755)
	sticky := mkdir(t, filepath.Join(base, "sticky"), 0o777|fs.ModeSticky)
	open777 := mkdir(t, filepath.Join(base, "open"), 0o777)
	foreign := mkdir(t, filepath.Join(base, "foreign"), 0o700)
	link := filepath.Join(base, "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tmp, err := filepath.EvalSymlinks("/tmp")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(foreign, 12345, 12345); err != nil {
		t.Logf("not root: the foreign directory is ours (%v)", err)
		foreign = filepath.Join(base, "none")
	}
	for _, c := range []struct{ name, runtime, temp, want string }{
		{"runtime", good, loose, good},
		{"runtime open to others", loose, sticky, sticky},
		{"runtime is a link", link, loose, loose},
		{"runtime is a file", file, loose, loose},
		{"runtime of another user", foreign, loose, loose},
		{"runtime relative", "run", loose, loose},
		{"runtime absent", filepath.Join(base, "none"), loose, loose},
		{"temp with blanks", "", blanks, blanks},
		{"temp through a link", "", link, good},
		{"temp writable for all", "", open777, tmp},
		{"temp of another user", "", foreign, tmp},
		{"temp relative", "", " ", tmp},
		{"nothing", "", "", tmp},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t, Places{Runtime: c.runtime, Temp: c.temp})
			if got := filepath.Dir(d.Path()); got != c.want {
				t.Errorf("the directory stands in %q, want %q", got, c.want)
			}
			info, err := os.Lstat(d.Path())
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != fs.ModeDir|0o700 {
				t.Errorf("mode %v, want drwx------", info.Mode())
			}
			if want := fmt.Sprintf("zcoder-%d-", os.Getpid()); !strings.HasPrefix(filepath.Base(d.Path()), want) {
				t.Errorf("name %q does not begin with %q", filepath.Base(d.Path()), want)
			}
			if err := d.Close(); err != nil || exists(d.Path()) {
				t.Errorf("after Close (%v) the directory exists: %v", err, exists(d.Path()))
			}
		})
	}
}

func TestStrictUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o777))
	d := open(t, Places{Temp: realTemp(t)})
	info, err := os.Lstat(d.Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestCloseRemovesAllAndOnlyItsOwn(t *testing.T) {
	base := realTemp(t)
	outside := filepath.Join(base, "outside")
	if err := os.WriteFile(outside, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, Places{Temp: base})
	mkdir(t, filepath.Join(d.Path(), "deep"), 0o700)
	if err := os.Symlink(outside, filepath.Join(d.Path(), "deep", "link")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if exists(d.Path()) || !exists(outside) {
		t.Errorf("directory there: %v, file outside there: %v", exists(d.Path()), exists(outside))
	}

	d = open(t, Places{Temp: base})
	if err := os.Rename(d.Path(), d.Path()+"-moved"); err != nil {
		t.Fatal(err)
	}
	mkdir(t, d.Path(), 0o700)
	if err := d.Close(); err == nil || !exists(d.Path()) {
		t.Errorf("Close = %v and removed a directory that is not its own", err)
	}
}

// plant makes a directory as a process with this id would have left it.
func plant(t *testing.T, base string, pid int, owner string) string {
	t.Helper()
	d := mkdir(t, filepath.Join(base, fmt.Sprintf("zcoder-%d-%016x", pid, time.Now().UnixNano())), 0o700)
	if owner != "" {
		if err := os.WriteFile(filepath.Join(d, "owner"), []byte(owner), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func makeOld(t *testing.T, path string) string {
	t.Helper()
	at := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSweep(t *testing.T) {
	const dead = 999999999 // above every pid_max
	us := os.Getpid()
	record := func(pid int, start string) string { return fmt.Sprintf("%d %s\n", pid, start) }
	for _, c := range []struct {
		name  string
		stays bool
		plant func(t *testing.T, base string) string
	}{
		{"dead", false, func(t *testing.T, base string) string { return plant(t, base, dead, record(dead, "boot/1")) }},
		{"alive", true, func(t *testing.T, base string) string { return plant(t, base, us, record(us, startTime(us))) }},
		{"id used again", false, func(t *testing.T, base string) string { return plant(t, base, us, record(us, "boot/1")) }},
		{"dead here, but locked", true, func(t *testing.T, base string) string {
			d := plant(t, base, dead, record(dead, "boot/1"))
			f, err := os.Open(filepath.Join(d, "owner"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			if err := lock(f, syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"no record yet", true, func(t *testing.T, base string) string { return plant(t, base, dead, "") }},
		{"no record, old", false, func(t *testing.T, base string) string { return makeOld(t, plant(t, base, dead, "")) }},
		{"no record, old, alive", true, func(t *testing.T, base string) string { return makeOld(t, plant(t, base, us, "")) }},
		{"empty record, old", false, func(t *testing.T, base string) string { return makeOld(t, plant(t, base, dead, "\n")) }},
		{"record of another", true, func(t *testing.T, base string) string { return plant(t, base, dead, record(dead-1, "boot/1")) }},
		{"record is a link", true, func(t *testing.T, base string) string {
			d := plant(t, base, dead, "")
			if err := os.Symlink("/dev/null", filepath.Join(d, "owner")); err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"record is a pipe", true, func(t *testing.T, base string) string {
			d := plant(t, base, dead, "")
			if err := syscall.Mkfifo(filepath.Join(d, "owner"), 0o600); err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"open to others", true, func(t *testing.T, base string) string {
			d := plant(t, base, dead, record(dead, "boot/1"))
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
			return d
		}},
		{"another name", true, func(t *testing.T, base string) string {
			return mkdir(t, filepath.Join(base, "zcoder-999999999-mine"), 0o700)
		}},
		{"a link to a directory", true, func(t *testing.T, base string) string {
			victim := mkdir(t, filepath.Join(base, "victim"), 0o700)
			if err := os.WriteFile(filepath.Join(victim, "owner"), []byte(record(dead, "boot/1")), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, filepath.Join(base, "zcoder-999999999-0123456789abcdef")); err != nil {
				t.Fatal(err)
			}
			return filepath.Join(victim, "owner")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := realTemp(t)
			path := c.plant(t, base)
			open(t, Places{Temp: base})
			if got := exists(path); got != c.stays {
				t.Errorf("after Open it exists: %v, want %v", got, c.stays)
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	base := realTemp(t)
	for range 20 {
		plant(t, base, 999999999, "999999999 boot/1\n")
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			d, err := Open(Places{Temp: base})
			if err != nil {
				t.Error(err)
				return
			}
			if !exists(filepath.Join(d.Path(), "owner")) {
				t.Error("another start removed a live directory")
			}
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	left, err := os.ReadDir(base)
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v (%v)", left, err)
	}
}

// TestKilledProcess lets another process open a directory, looks that it is left
// alone while the process lives, kills it and looks that it goes.
func TestKilledProcess(t *testing.T) {
	const variable = "RUNTIMEDIR_TEST_BASE"
	if base := os.Getenv(variable); base != "" {
		d, err := Open(Places{Temp: base})
		fmt.Println(d.Path(), err)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends
		return
	}
	base := realTemp(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestKilledProcess$")
	cmd.Env = append(os.Environ(), variable+"="+base)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	path, _, _ := strings.Cut(line, " ")
	if err != nil || !exists(path) {
		t.Fatalf("the other process said %q (%v)", line, err)
	}
	open(t, Places{Temp: base})
	if !exists(path) {
		t.Error("the directory of a live process was removed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	open(t, Places{Temp: base})
	if exists(path) {
		t.Error("the directory of a killed process stayed")
	}
}
