package remote

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// privateDir is a short path of a directory that is ours alone.
func privateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestReadToken(t *testing.T) {
	dir := privateDir(t)
	good := strings.Repeat("Az09._~-", 4)
	for _, c := range []struct {
		name, text string
		mode       fs.FileMode
		want       string // of the error
	}{
		{"as it should be", good, 0o600, ""},
		{"read-only", good, 0o400, ""},
		{"with a line end", good + "\n", 0o600, ""},
		{"with line ends", good + "\r\n\r\n", 0o600, ""},
		{"group may read", good, 0o640, "other users may reach it (mode 0640)"},
		{"others may read", good, 0o604, "other users may reach it"},
		{"others may run", good, 0o601, "other users may reach it"},
		{"too short", good[:31], 0o600, "not the form of a token"},
		{"empty", "", 0o600, "not the form of a token"},
		{"a blank in it", good + " x", 0o600, "not the form of a token"},
		{"a blank behind", good + " \n", 0o600, "not the form of a token"},
		{"two lines", good + "\n" + good, 0o600, "not the form of a token"},
		{"letters of others", good + "ä", 0o600, "not the form of a token"},
		{"a long file", strings.Repeat("x", 5000), 0o600, "too large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(dir, "t")
			defer os.Remove(path)
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.mode); err != nil {
				t.Fatal(err)
			}
			got, err := ReadToken(path)
			if c.want == "" {
				if err != nil || got != good {
					t.Errorf("%q, %v", got, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || hintText(err) == "" {
				t.Errorf("%q, %v (hint %q); want an error with %q", got, err, hintText(err), c.want)
			}
			if err != nil && len(c.text) > 30 && strings.Contains(err.Error(), c.text[:30]) {
				t.Errorf("the error shows the file: %v", err)
			}
		})
	}
}

func TestReadTokenOfWhatIsNoFile(t *testing.T) {
	dir := privateDir(t)
	real := filepath.Join(dir, "real")
	if err := NewToken(real); err != nil {
		t.Fatal(err)
	}
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file", link: "it is a link", fifo: "not a regular file", dir: "not a regular file",
	} {
		if _, err := ReadToken(path); err == nil || !strings.Contains(err.Error(), want) || hintText(err) == "" {
			t.Errorf("%s: %v; want %q and a hint", path, err, want)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(real, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadToken(real); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("a file of another user: %v", err)
		}
	} else {
		t.Log("not root: no file of another user")
	}
}

func TestNewToken(t *testing.T) {
	dir := privateDir(t)
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	seen := map[string]bool{}
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := NewToken(path); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		token, err := ReadToken(path)
		if err != nil || len(token) != 43 {
			t.Errorf("%q, %v", token, err)
		}
		seen[token] = true
	}
	if len(seen) != 2 {
		t.Error("two tokens are the same")
	}
	before, _ := os.ReadFile(filepath.Join(dir, "a"))
	if err := NewToken(filepath.Join(dir, "a")); err == nil || hintText(err) == "" {
		t.Errorf("over a file: %v", err)
	}
	if err := os.Symlink(filepath.Join(dir, "away"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := NewToken(filepath.Join(dir, "link")); err == nil {
		t.Error("it writes through a link")
	}
	if after, _ := os.ReadFile(filepath.Join(dir, "a")); string(after) != string(before) {
		t.Error("it replaced a token")
	}
	if err := NewToken(filepath.Join(dir, "none", "x")); err == nil {
		t.Error("it makes directories")
	}
}

func TestLockName(t *testing.T) {
	dir := filepath.Join(privateDir(t), "remote")
	l, err := LockName(dir, "my server/1", "pid 42 in /work")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "my_server_1"); l.Dir() != want {
		t.Errorf("directory %q; want %q", l.Dir(), want)
	}
	if info, err := os.Lstat(l.Dir()); err != nil || info.Mode() != fs.ModeDir|0o700 {
		t.Errorf("directory: %v, %v", info, err)
	}
	for _, name := range []string{"my server/1", "my_server_1"} {
		_, err := LockName(dir, name, "pid 43")
		if err == nil || !strings.Contains(err.Error(), "a live server has it: pid 42 in /work") || hintText(err) == "" {
			t.Errorf("second lock of %q: %v", name, err)
		}
	}
	other, err := LockName(dir, "other", "pid 43")
	if err != nil {
		t.Error(err)
	} else if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := LockName(dir, "my server/1", "pid 44")
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, err := LockName(dir, "my server/1", "x"); err == nil || !strings.Contains(err.Error(), "pid 44") {
		t.Errorf("after a change of holders: %v", err)
	}
	if err := os.Remove(filepath.Join(again.Dir(), "lock")); err != nil {
		t.Fatal(err)
	}
	fresh, err := LockName(dir, "my server/1", "pid 45")
	if err != nil {
		t.Fatalf("after the lock file was removed: %v", err)
	}
	fresh.Close()
}

func TestLockNameOfOddNames(t *testing.T) {
	dir := privateDir(t)
	for _, name := range []string{"", ".", "..", "...", strings.Repeat("x", 101)} {
		if l, err := LockName(dir, name, ""); err == nil || hintText(err) == "" {
			t.Errorf("%.20q: %v, %v", name, l, err)
		}
	}
	for name, want := range map[string]string{"../../etc": ".._.._etc", "ä\x1b[m": "___m", "A-z_0.9": "A-z_0.9"} {
		l, err := LockName(dir, name, "")
		if err != nil || filepath.Base(l.Dir()) != want || filepath.Dir(l.Dir()) != dir {
			t.Errorf("%q: %v, %v; want %q", name, l, err, want)
			continue
		}
		l.Close()
	}
	if err := os.Symlink("/", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "loose"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "loose"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "loose"} {
		if _, err := LockName(dir, name, ""); err == nil {
			t.Errorf("the directory %q was taken", name)
		}
	}
}

func TestOneOfManyGetsTheLock(t *testing.T) {
	dir := privateDir(t)
	var mu sync.Mutex
	var locks []*NameLock
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if l, err := LockName(dir, "x", fmt.Sprint(i)); err == nil {
				mu.Lock()
				defer mu.Unlock()
				locks = append(locks, l)
			}
		})
	}
	wg.Wait()
	if len(locks) != 1 {
		t.Errorf("%d hold the lock", len(locks))
	}
	for _, l := range locks {
		l.Close()
	}
}

func TestListenTCP(t *testing.T) {
	for _, c := range []struct {
		addr, want string // want begins the address
		reach      bool
	}{
		{"127.0.0.1", "127.0.0.1:", false},
		{"localhost", "127.0.0.1:", false},
		{"[::1]", "[::1]:", false},
		{"0.0.0.0", "0.0.0.0:", true},
	} {
		l, err := Listen(t.Context(), c.addr, 0)
		if err != nil {
			if c.addr == "[::1]" {
				t.Logf("no IPv6 here: %v", err)
				continue
			}
			t.Fatal(err)
		}
		if got := l.Addr().String(); !strings.HasPrefix(strings.Replace(got, "[::]", "0.0.0.0", 1), c.want) || strings.HasSuffix(got, ":0") {
			t.Errorf("%s listens on %s", c.addr, got)
		}
		if got := Reachable(l.Addr()); got != c.reach {
			t.Errorf("Reachable(%s) = %v", l.Addr(), got)
		}
		_, err = Listen(t.Context(), l.Addr().String(), 7)
		if err == nil || !strings.Contains(hintText(err), "--port") {
			t.Errorf("a port in use: %v", err)
		}
		l.Close()
	}
	for _, addr := range []string{"", ":7337", "127.0.0.1:x", "127.0.0.1:70000", "::1", "http://localhost", "a b", "unix", "/tmp/x"} {
		l, err := Listen(t.Context(), addr, 0)
		if err == nil {
			t.Errorf("%q listens on %s", addr, l.Addr())
			l.Close()
		} else if addr != "unix" && hintText(err) == "" {
			t.Errorf("%q: no hint: %v", addr, err)
		}
	}
}

func TestListenUnix(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := filepath.Join(privateDir(t), "run")
	path := filepath.Join(dir, "s")
	s := newStation(t)
	l, err := Listen(t.Context(), "unix:"+path, 7337)
	if err != nil {
		t.Fatal(err)
	}
	if Reachable(l.Addr()) {
		t.Error("a socket counts as reachable")
	}
	for name, want := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, path: fs.ModeSocket | 0o600} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
	if _, err := Listen(t.Context(), "unix:"+path, 0); err == nil || !strings.Contains(err.Error(), "a live server listens there") {
		t.Errorf("a live socket: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.server.Serve(ctx, l) }()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, peer("GET", "/v1/model", ""))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("over the socket: %v, %v", resp, err)
	}
	conn.Close()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket stays")
	}
}

func TestStaleSockets(t *testing.T) {
	dir := privateDir(t)
	path := filepath.Join(dir, "s")
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	// Another program listens there without our lock.
	if _, err := Listen(t.Context(), "unix:"+path, 0); err == nil || !strings.Contains(err.Error(), "a live server listens there") {
		t.Errorf("a live socket of others: %v", err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()
	l, err := Listen(t.Context(), "unix:"+path, 0)
	if err != nil {
		t.Fatalf("a socket that a dead server left: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Error("a file that took the socket's place was removed")
	}
	for name, want := range map[string]string{path: "something else", filepath.Join(dir, strings.Repeat("x", 120)): "no path of 1 to"} {
		if _, err := Listen(t.Context(), "unix:"+name, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v; want %q", name, err, want)
		}
	}
	for _, name := range []string{"", "@abstract"} {
		if _, err := Listen(t.Context(), "unix:"+name, 0); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	loose := filepath.Join(dir, "loose")
	if err := os.Mkdir(loose, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(loose, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), "unix:"+filepath.Join(loose, "s"), 0); err == nil || !strings.Contains(err.Error(), "not private") {
		t.Errorf("in a directory open to others: %v", err)
	}
}

// lockHolder makes the test program hold a lock until it is killed.
const lockHolder = "ZCODER_TEST_LOCK_HOLDER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(lockHolder); dir != "" {
		_, err := LockName(dir, "x", "the child")
		fmt.Println(err)
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// The lock ends with a process that is killed.
func TestLockOfAKilledProcess(t *testing.T) {
	dir := privateDir(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), lockHolder+"="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatalf("the child says %q", line)
	}
	if _, err := LockName(dir, "x", ""); err == nil || !strings.Contains(err.Error(), "the child") {
		t.Errorf("while it lives: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	l, err := LockName(dir, "x", "")
	if err != nil {
		t.Fatalf("after it was killed: %v", err)
	}
	l.Close()
}
