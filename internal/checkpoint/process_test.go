package checkpoint

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary stand for other processes.
func TestMain(m *testing.M) {
	switch os.Getenv("ZCODER_TEST_PROCESS") {
	case "loop":
		loopForEver(os.Args[1], os.Args[2], os.Args[3])
	case "unprivileged":
		os.Exit(unprivileged(os.Args[1]))
	}
	os.Exit(m.Run())
}

func selfCommand(what string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "ZCODER_TEST_PROCESS="+what)
	cmd.Stderr = os.Stderr
	return cmd
}

// check ends a process that stands for another one.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}

// loopForEver does turns, undos and redos until it is killed. Before each turn it
// leaves a plain copy of the tree.
func loopForEver(root, store, images string) {
	ctx := context.Background()
	k, err := Open(ctx, Options{Root: root, Store: store, Session: "s"})
	check(err)
	k.Begin(ctx)
	fmt.Println("open")
	for i := 0; ; i++ {
		id, err := k.Turn(ctx, "loop")
		check(err)
		raw, err := json.Marshal(plainCopy(root))
		check(err)
		check(os.WriteFile(filepath.Join(images, "tmp"), raw, 0o600))
		check(os.Rename(filepath.Join(images, "tmp"), filepath.Join(images, fmt.Sprint(id))))
		check(k.Ready(ctx))
		for j := range 5 {
			check(os.WriteFile(fmt.Sprintf("%s/f%d", root, j), []byte(strings.Repeat(fmt.Sprintln(i, j), 1+i*j%50)), 0o644))
		}
		_ = os.RemoveAll(fmt.Sprintf("%s/d%d", root, i%3))
		check(os.MkdirAll(fmt.Sprintf("%s/d%d/e", root, (i+1)%3), 0o755))
		check(os.WriteFile(fmt.Sprintf("%s/d%d/e/f", root, (i+1)%3), fmt.Append(nil, i), 0o600))
		_, err = k.After(ctx)
		check(err)
		if i%3 == 1 {
			_, err = k.Undo(ctx, 1+i%2, true)
			check(err)
		}
		if i%3 == 1 && i%2 == 0 {
			_, err = k.Redo(ctx, true)
			check(err)
		}
	}
}

// plainCopy is the tree as one text for each path.
func plainCopy(root string) map[string]string {
	m := map[string]string{}
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err == nil && path != root && !strings.HasPrefix(e.Name(), tempPrefix) {
			info, _ := e.Info()
			text, _ := os.ReadFile(path)
			m[strings.TrimPrefix(path, root+"/")] = fmt.Sprintf("%v %s", info.Mode(), text)
		}
		return nil
	})
	return m
}

// TestKill kills a process at any moment, again and again. The next one finds every
// turn that was kept, finishes what an undo began, and leaves nothing behind.
func TestKill(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 8
	}
	ctx := context.Background()
	root, store, images := quickDir(t), quickDir(t), quickDir(t)
	write(t, root+"/f0", "start")
	r := rand.New(rand.NewPCG(5, 5))
	cut := 0
	for round := range rounds {
		killLater(t, selfCommand("loop", root, store, images), time.Duration(r.IntN(60_000))*time.Microsecond)
		k, err := Open(ctx, Options{Root: root, Store: store, Session: "s"})
		must(t, err)
		k.Begin(ctx)
		k.running.Wait()
		if s := lastStep(k); s != nil && s.cut {
			if cut++; s.redo != 0 {
				_, err = k.Redo(ctx, true)
			} else {
				_, err = k.Undo(ctx, len(s.turns), true)
			}
			must(t, err)
		}
		report, err := k.Undo(ctx, 1, true)
		if errors.Is(err, ErrNothing) {
			must(t, k.Close())
			continue
		}
		must(t, err)
		if len(report.Left) > 0 {
			t.Fatalf("round %d: left %q", round, report.Left)
		}
		var want map[string]string
		must(t, json.Unmarshal([]byte(read(t, fmt.Sprintf("%s/%d", images, report.Turns[0].ID))), &want))
		if d := image(want).differ(image(plainCopy(root))); len(d) > 0 {
			t.Fatalf("round %d: after undo of turn %d: %s", round, report.Turns[0].ID, strings.Join(d, "\n"))
		}
		must(t, k.Close())
		noTemps(t, root)
	}
	t.Logf("%d undos or redos were cut", cut)
}

func lastStep(k *Keeper) *step {
	if len(k.history.steps) == 0 {
		return nil
	}
	return k.history.steps[len(k.history.steps)-1]
}

func killLater(t *testing.T, cmd *exec.Cmd, after time.Duration) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	time.Sleep(after) // the moment is what is tested
	must(t, cmd.Process.Kill())
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("the other process ended by itself: %v", err)
	}
}

func noTemps(t *testing.T, root string) {
	t.Helper()
	must(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			t.Errorf("%s is left", path)
		}
		return err
	}))
}

// TestKilledInTheMiddleOfAFile: the temporary file of a killed undo is swept, and
// nothing else of its kind.
func TestKilledInTheMiddleOfAFile(t *testing.T) {
	ctx := context.Background()
	k, root := startTree(t, Options{Session: "k"})
	act(t, k, "one", func() { write(t, root+"/dir/b.txt", "agent\n") })
	const temp = tempPrefix + "00112233445566ff"
	must(t, k.manifest.append(line{Kind: lineUndo, Step: 1, Turns: []ID{1}, Temp: temp, Tree: k.now.hash.String()}))
	must(t, k.manifest.append(line{Kind: lineUndo, Step: 2, Turns: []ID{1}, Temp: "b.txt", Tree: k.now.hash.String()}))
	write(t, root+"/dir/"+temp, "half")
	write(t, root+"/dir/"+tempPrefix+"aaaaaaaaaaaaaaaa", "of another process")
	o := k.o
	must(t, k.Close())
	k = openKeeper(t, o)
	k.Begin(ctx)
	k.running.Wait()
	must(t, k.Close())
	if exists(root+"/dir/"+temp) || !exists(root+"/dir/"+tempPrefix+"aaaaaaaaaaaaaaaa") || !exists(root+"/dir/b.txt") {
		t.Error("the wrong files were swept")
	}
}

// TestUnprivileged runs as a user for whom modes matter.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	base, err := os.MkdirTemp("/tmp", "zcoder-test-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(base) })
	must(t, os.Chmod(base, 0o777))
	exe := filepath.Join(base, "test")
	raw, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(exe, raw, 0o755))
	cmd := selfCommand("unprivileged", base)
	cmd.Path, cmd.Dir = exe, base
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// unprivileged takes rights away in a turn, in each way, and undoes it.
func unprivileged(base string) int {
	ctx := context.Background()
	root, bad := filepath.Join(base, "ws"), 0
	check(os.MkdirAll(root+"/dir/deep", 0o755))
	check(os.Mkdir(root+"/locked", 0o755))
	for _, name := range []string{"a", "dir/b", "dir/deep/c", "locked/d"} {
		check(os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	check(os.Chmod(root+"/locked", 0o555))
	k, err := Open(ctx, Options{Root: root, Store: base + "/store", Session: "s"})
	check(err)
	k.Begin(ctx)
	for name, do := range map[string]func(){
		"file unreadable":      func() { check(os.WriteFile(root+"/a", []byte("x"), 0)); check(os.Chmod(root+"/a", 0)) },
		"directory unreadable": func() { check(os.Chmod(root+"/dir", 0)) },
		"directory read-only": func() {
			check(os.WriteFile(root+"/dir/b", []byte("x"), 0))
			check(os.WriteFile(root+"/dir/new", []byte("x"), 0o444))
			check(os.Chmod(root+"/dir", 0o555))
		},
		"file in a read-only directory": func() { check(os.WriteFile(root+"/locked/d", []byte("x"), 0)) },
	} {
		before := plainCopy(root)
		_, err := k.Turn(ctx, name)
		check(err)
		check(k.Ready(ctx))
		do()
		_, err = k.After(ctx)
		check(err)
		r, err := k.Undo(ctx, 1, false)
		if d := image(before).differ(image(plainCopy(root))); err != nil || len(d) > 0 || len(r.Left) > 0 {
			fmt.Printf("%s: %v, differs %q, left %q\n", name, err, d, r.Left)
			bad = 1
		}
		for _, dir := range []string{"dir", "locked"} { // for the removal at the end
			info, err := os.Stat(filepath.Join(root, dir))
			check(err)
			if want := map[string]fs.FileMode{"dir": 0o755, "locked": 0o555}[dir]; info.Mode().Perm() != want {
				fmt.Printf("%s: %s has mode %v\n", name, dir, info.Mode())
				bad = 1
			}
		}
	}
	check(k.Close())
	return bad
}

// TestUserRepositoryIsNotTouched: hostile configuration runs nothing, the repository
// stays byte for byte, and an undo says what moved.
func TestUserRepositoryIsNotTouched(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so no repository can be made")
	}
	ctx := context.Background()
	root := quickDir(t)
	canary := quickDir(t) + "/canary"
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	write(t, root+"/a.txt", "a\n")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	first := git("rev-parse", "HEAD")
	write(t, root+"/.git/evil", "#!/bin/sh\necho ran >> "+canary+"\ncat\n")
	must(t, os.Chmod(root+"/.git/evil", 0o755))
	evil := root + "/.git/evil"
	write(t, root+"/.git/config", fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = %[1]s\n\thooksPath = %[1]s\n[filter \"x\"]\n\tclean = %[1]s\n\tsmudge = %[1]s\n\tprocess = %[1]s\n[diff \"x\"]\n\ttextconv = %[1]s\n[alias]\n\tstatus = !%[1]s\n", evil))
	write(t, root+"/.gitattributes", "* filter=x diff=x text\n")
	write(t, root+"/sub/.git", "gitdir: ../../elsewhere\n")
	write(t, root+"/sub/x", "x\r\n")
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_EXTERNAL_DIFF", evil)
	k := openKeeper(t, Options{Root: root, Store: quickDir(t)})
	k.Begin(ctx)
	all := func() map[string]string { return plainCopy(root + "/.git") }
	before, tree := all(), imageOf(t, root)
	act(t, k, "one", func() {
		write(t, root+"/a.txt", "agent\r\n")
		must(t, os.RemoveAll(root+"/sub"))
		write(t, root+"/sub/.git", "gitdir: /somewhere/else\n")
	})
	undo(t, k, 1, false)
	if d := tree.differ(imageOf(t, root)); len(d) > 0 {
		t.Errorf("%q", d)
	}
	if d := image(before).differ(image(all())); len(d) > 0 {
		t.Errorf("the repository changed: %q", d)
	}
	if read(t, root+"/sub/.git") != "gitdir: /somewhere/else\n" {
		t.Error("a pointer to a repository was restored")
	}
	if exists(canary) {
		t.Error("a program ran")
	}
	must(t, os.Remove(root+"/.git/config"))
	act(t, k, "two", func() {
		write(t, root+"/a.txt", "2\n")
		git("commit", "-q", "-a", "-m", "two")
		git("branch", "new")
	})
	second := git("rev-parse", "HEAD")
	r := undo(t, k, 1, false)
	want := []Move{{"refs/heads/main", first, second}, {"refs/heads/new", "", second}}
	if !slices.Equal(r.Moved, want) || git("rev-parse", "HEAD") != second || read(t, root+"/a.txt") != "a\n" {
		t.Errorf("moved %+v", r.Moved)
	}
	if entries, err := os.ReadDir(root); err != nil || len(entries) != 4 {
		t.Errorf("something was left in the workspace: %v", entries)
	}
}

// TestWithoutRepository: nothing is created where there was no repository.
func TestWithoutRepository(t *testing.T) {
	k, root := startTree(t, Options{})
	act(t, k, "one", func() { write(t, root+"/a.txt", "1\n") })
	r := undo(t, k, 1, false)
	if exists(root+"/.git") || len(r.Moved) > 0 {
		t.Errorf("moved %+v", r.Moved)
	}
}

// TestWorkspaceReplaced: an undo does not write into a directory that took the place
// of the workspace.
func TestWorkspaceReplaced(t *testing.T) {
	k, root := startTree(t, Options{})
	act(t, k, "one", func() { write(t, root+"/a.txt", "1\n") })
	must(t, os.Rename(root, root+"-away"))
	t.Cleanup(func() { os.RemoveAll(root + "-away") })
	write(t, root+"/a.txt", "of another\n")
	if _, err := k.Undo(context.Background(), 1, true); err == nil || read(t, root+"/a.txt") != "of another\n" {
		t.Errorf("error %v", err)
	}
}
