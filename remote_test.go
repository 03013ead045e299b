package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// farScripts are the scripts of the REPL, which pass as they are when the workspace is
// a server's.
var farScripts = []string{
	"term_deny", "term_dumb", "term_git", "term_goal", "term_hostile", "term_jobs",
	"term_steer", "term_undo", "term_undo_compact", "term_whole", "term_workers", "term_workers_ends", "term_delegate", "sysadmin",
}

// TestScriptsOverTCP runs them with a server on loopback.
func TestScriptsOverTCP(t *testing.T) { runFar(t, "tcp", farScripts) }

func runFar(t *testing.T, way string, names []string) {
	var files []string
	for _, name := range names {
		files = append(files, filepath.Join("testdata", "script", name+".txtar"))
	}
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
	cmd  *exec.Cmd
	said *bufio.Reader
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
	stderr, err := f.cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := f.cmd.Start(); err != nil {
		return "", err
	}
	f.said = bufio.NewReader(stderr)
	var all strings.Builder
	for {
		line, err := f.said.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			return "", fmt.Errorf("the server did not start: %s", all.String())
		}
		if i := strings.LastIndex(line, " on "); strings.HasPrefix(line, "serving ") && i > 0 {
			go func() { _, _ = io.Copy(io.Discard, f.said) }()
			return strings.TrimSpace(line[i+4:]), nil
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
	if err := f.cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() != 143 {
		return fmt.Errorf("the server ended with %v", err)
	}
	return nil
}
