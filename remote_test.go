package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"zcoder/remote/conform"
)

// farScripts are the scripts of the REPL, which pass as they are when the workspace is
// a server's.
var farScripts = []string{
	"term_deny", "term_dumb", "term_git", "term_goal", "term_hostile", "term_jobs",
	"term_steer", "term_undo", "term_undo_compact", "term_whole", "term_workers", "term_workers_ends", "term_delegate", "sysadmin",
}

// TestScriptsOverTCP runs them with a server on loopback.
func TestScriptsOverTCP(t *testing.T) {
	names := farScripts
	if testing.Short() {
		names = names[:4]
	}
	runFar(t, "tcp", names)
}

func runFar(t *testing.T, way string, names []string) {
	var files []string
	for _, name := range names {
		files = append(files, filepath.Join("testdata", "script", name+".txtar"))
	}
	runScripts(t, way, files)
}

func runScripts(t *testing.T, way string, files []string) {
	p := scriptParams()
	p.Dir, p.Files = "", files
	p.Setup = func(env *testscript.Env) error {
		env.Setenv("FAR", way)
		return setup(env)
	}
	testscript.Run(t, p)
}

// farServer is the server of a terminal script whose client runs in the terminal.
type farServer struct {
	cmd   *exec.Cmd
	ready string // the line that said so
}

// overTCP starts a server that has the flags of a command line, and returns the
// client's command line.
func (t *terminal) overTCP(argv []string, env []string) ([]string, error) {
	token := filepath.Join(t.ts.Getenv("WORK"), "far.token")
	if _, err := os.Stat(token); err != nil {
		if err := os.WriteFile(token, []byte(strings.Repeat("t0ken", 8)+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	at := slices.Index(argv, "zcoder")
	program := find(t.ts.Getenv("PATH"), "zcoder")
	args := append([]string{"--server", "script", "--port", "0", "--token-file", token}, argv[at+1:]...)
	client := []string{"zcoder", "--token-file", token}
	if slices.Contains(argv, "--continue") {
		client = append(client, "--continue")
	}
	t.far = &farServer{cmd: exec.Command(program, args...)}
	t.far.cmd.Dir = t.ts.MkAbs(".")
	t.far.cmd.Env = env
	for _, word := range argv[:at] { // env NAME=VALUE
		if strings.Contains(word, "=") {
			t.far.cmd.Env = append(t.far.cmd.Env, word)
		}
	}
	addr, err := t.far.start()
	return append(client, "--connect", addr), err
}

// start starts the server and returns where it listens.
func (f *farServer) start() (string, error) {
	if err := f.await("serving "); err != nil {
		return "", err
	}
	_, addr, _ := strings.Cut(f.ready, " as script on ")
	return addr, nil
}

// await starts the server and waits for a line that begins so.
func (f *farServer) await(beginning string) error {
	stderr, err := f.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := f.cmd.Start(); err != nil {
		return err
	}
	said := bufio.NewReader(stderr)
	var all strings.Builder
	for {
		line, err := said.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return fmt.Errorf("the server did not start: %s", all.String())
		}
		if strings.HasPrefix(line, beginning) {
			f.ready = strings.TrimSpace(line)
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return nil
		}
	}
}

// end ends the server as an administrator would, and waits.
func (f *farServer) end() error {
	if err := f.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	late := time.AfterFunc(termPatience, func() { _ = f.cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := f.cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() != 143 && exit.ExitCode() != 255 { // 255 is sshd's
		return fmt.Errorf("the server ended with %v", err)
	}
	return nil
}

// sshScripts are those whose flags are a client's own: over ssh the far command line is
// constant.
var sshScripts = []string{"term_deny", "term_git", "term_goal", "term_hostile", "term_jobs", "term_steer", "term_undo", "term_workers_ends", "sysadmin"}

// TestScriptsOverSSH runs them with a real sshd on loopback.
func TestScriptsOverSSH(t *testing.T) {
	for _, program := range []string{"sshd", "ssh", "ssh-keygen"} {
		if sshProgram(program) == "" {
			t.Skipf("no %s is installed here", program)
		}
	}
	runFar(t, "ssh", sshScripts)
	runScripts(t, "ssh", []string{filepath.Join("testdata", "far", "ssh_lost.txtar"), filepath.Join("testdata", "far", "ssh_keep.txtar"), filepath.Join("testdata", "far", "ssh_lost_early.txtar")})
}

// sshProgram finds a program of OpenSSH; the server is not in everybody's PATH.
func sshProgram(name string) string {
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/bin") {
		if path := filepath.Join(dir, name); isProgram(path) {
			return path
		}
	}
	return ""
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// overSSH starts an sshd that hands the script's environment to what it starts, and
// returns the client's command line and environment.
func (t *terminal) overSSH(argv, env []string) ([]string, []string, error) {
	dir := t.ts.Getenv("WORK")
	port, err := t.startSSHD(dir, env)
	if err != nil {
		return nil, nil, err
	}
	if err := writeSSHClient(dir, port); err != nil {
		return nil, nil, err
	}
	for i, entry := range env {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			env[i] = "PATH=" + filepath.Join(dir, "sshbin") + ":" + path
		}
	}
	env = append(env, "ZCODER_REMOTE_PROGRAM="+find(t.ts.Getenv("PATH"), "zcoder"))
	return append(argv, "--connect", fmt.Sprintf("ssh://%s@127.0.0.1:%d%s", sshUser(), port, t.ts.MkAbs("."))), env, nil
}

// sshUser is who the tests run as: nobody else may log in.
func sshUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}

// startSSHD starts the server and returns its port once it listens.
func (t *terminal) startSSHD(dir string, env []string) (int, error) {
	for _, key := range []string{"hostkey", "userkey"} {
		if err := newKey(filepath.Join(dir, key)); err != nil {
			return 0, err
		}
	}
	if os.Geteuid() == 0 { // where it separates privileges
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return 0, err
		}
	}
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	quoted := make([]string, len(env))
	for i, entry := range env {
		quoted[i] = `"` + entry + `"`
	}
	config := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s/hostkey\nAuthorizedKeysFile %s/userkey.pub\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPidFile none\nSetEnv %s\n",
		port, dir, dir, strings.Join(quoted, " "))
	path := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return 0, err
	}
	t.far = &farServer{cmd: exec.Command(sshProgram("sshd"), "-D", "-e", "-f", path)}
	return port, t.far.await("Server listening on")
}

func newKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	out, err := exec.Command(sshProgram("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make a key: %w: %s", err, out)
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// writeSSHClient puts an ssh first in the PATH that uses the script's keys.
func writeSSHClient(dir string, port int) error {
	config := fmt.Sprintf("Host *\nPort %d\nIdentityFile %s/userkey\nIdentitiesOnly yes\nUserKnownHostsFile %s/known_hosts\nStrictHostKeyChecking accept-new\nBatchMode yes\n", port, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "ssh_config"), []byte(config), 0o600); err != nil {
		return err
	}
	bin := filepath.Join(dir, "sshbin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(bin, "ssh"), []byte(fmt.Sprintf("#!/bin/sh\necho $$ >%s/ssh.pid\nexec %s -F %s/ssh_config \"$@\" 2>%s/ssh.err\n", dir, sshProgram("ssh"), dir, dir)), 0o700)
}

// TestServerOnABrokenPipe: a write to a client that went away does not kill the server,
// which may have a turn to keep.
func TestServerOnABrokenPipe(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(program)
	cmd.Args = []string{"zcoder", "--server", "ssh", "--stdio"}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(termPatience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	if line, err := bufio.NewReader(out).ReadString('/'); err != nil {
		t.Errorf("greeted with %q, %v", line, err)
	}
	out.Close()
	// The preface and empty settings of HTTP/2, which the server answers.
	if _, err := io.WriteString(in, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// TestConformance has the program itself answer the suite that is written from the
// protocol's contract, as existing clients would ask.
func TestConformance(t *testing.T) {
	dir := t.TempDir()
	const token = "conformance.conformance.conformance"
	for _, name := range []string{"home", "ws", "run"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Args = []string{"zcoder", "--server", "script", "--port", "0", "--token-file", file, "--workspace", filepath.Join(dir, "ws")}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "ZCODER_HOME=" + filepath.Join(dir, "home"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"), "OLLAMA_HOST=127.0.0.1:9"}
	far := &farServer{cmd: cmd}
	addr, err := far.start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := far.end(); err != nil {
			t.Error(err)
		}
	})
	conform.Run(t, conform.Target{Address: addr, Token: token, Quick: "/checkpoints", Asks: "! echo conforms", Command: "echo conforms", Long: "! sleep 600"})
}
