package relay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childMode makes the test binary an instance instead of a test.
const childMode = "RELAY_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		if err := runChild(mode); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child is an instance in a process of its own.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
	id  string
}

// startChild starts an instance: "idle" waits for its end of input, "send TARGET N"
// sends N messages to TARGET and tells of each that was acknowledged.
func startChild(t testing.TB, dir, project, mode string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(self)}
	c.cmd.Env = append(os.Environ(), childMode+"="+mode, "RELAY_TEST_DIR="+dir, "RELAY_TEST_PROJECT="+project, "GOMAXPROCS=1")
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close() })
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	c.out = bufio.NewScanner(stdout)
	if !c.out.Scan() {
		t.Fatalf("the other instance said nothing (%v)", c.out.Err())
	}
	c.id = c.out.Text()
	return c
}

func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

// runChild is the other process.
func runChild(mode string) error {
	project := os.Getenv("RELAY_TEST_PROJECT")
	spool, err := os.MkdirTemp(os.Getenv("RELAY_TEST_DIR"), "spool-") // the parent removes it, also after a kill
	if err != nil {
		return err
	}
	ctx := context.Background()
	n, err := Open(ctx, Options{
		Directory: filepath.Join(os.Getenv("RELAY_TEST_DIR"), "agents"), Spool: filepath.Join(spool, "spool"), UID: os.Geteuid(), PID: os.Getpid(),
		Self: Self{Project: project, Workspace: "/work/" + project}, Limits: DefaultLimits(), Now: time.Now,
	})
	if err != nil {
		return err
	}
	defer n.Close()
	fmt.Println(n.ID())
	var target string
	var count int
	if _, err := fmt.Sscanf(mode, "send %s %d", &target, &count); err == nil {
		return sendMany(ctx, n, target, count)
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent ends
	return nil
}

// sendMany tells each message's id before and after it is acknowledged; a full queue
// is tried again.
func sendMany(ctx context.Context, n *Node, target string, count int) error {
	for i := range count {
		for {
			receipt, err := n.Send(ctx, Peer{ID: target}, fmt.Sprintf("%s %d", n.ID(), i))
			if err == nil {
				fmt.Println("ack", receipt.ID, i)
				break
			}
			if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "full") {
				fmt.Println("error", i, err)
				break
			}
			time.Sleep(time.Millisecond) // the receiver drains at its own pace
		}
	}
	return nil
}
