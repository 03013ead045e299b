package gitstate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const plenty = 10 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// git runs git in dir with nothing of this machine's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b", "GIT_EDITOR=true",
	}
	out, err := cmd.CombinedOutput()
	if err != nil && args[0] != "merge" && args[0] != "rebase" && args[0] != "cherry-pick" {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return string(out)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// newRepo makes a repository with one commit.
func newRepo(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed, so no repositories can be made")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	git(t, root, "init", "-q", "-b", "main")
	write(t, root+"/a.txt", "a\n")
	write(t, root+"/dir/b.txt", "b\n")
	write(t, root+"/dir-1", "sorts between dir and dir/\n")
	git(t, root, "add", ".")
	git(t, root, "commit", "-q", "-m", "one")
	return root
}

func read(t testing.TB, root string) State {
	t.Helper()
	s, err := Read(context.Background(), root, Options{Deadline: plenty})
	must(t, err)
	return s
}

func TestRead(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, root string)
		want State // Repository and Branch "main" are added, Commit is not compared
	}{
		{"fresh commit", func(*testing.T, string) {}, State{Dirty: Clean}},
		{"touched, same content", func(t *testing.T, root string) {
			must(t, os.Chtimes(root+"/a.txt", time.Unix(5, 0), time.Unix(5, 0)))
		}, State{Dirty: Clean}},
		{"changed, same size", func(t *testing.T, root string) { write(t, root+"/a.txt", "x\n") }, State{Dirty: Dirty}},
		{"deleted", func(t *testing.T, root string) { must(t, os.Remove(root+"/a.txt")) }, State{Dirty: Dirty}},
		{"mode", func(t *testing.T, root string) { must(t, os.Chmod(root+"/a.txt", 0o755)) }, State{Dirty: Dirty}},
		{"mode that is not looked at", func(t *testing.T, root string) {
			git(t, root, "config", "core.filemode", "false")
			must(t, os.Chmod(root+"/a.txt", 0o755))
		}, State{Dirty: Clean}},
		{"staged", func(t *testing.T, root string) {
			write(t, root+"/a.txt", "x\n")
			git(t, root, "add", ".")
		}, State{Dirty: Dirty}},
		{"staged and taken back in the work tree", func(t *testing.T, root string) {
			write(t, root+"/a.txt", "x\n")
			git(t, root, "add", ".")
			write(t, root+"/a.txt", "a\n")
		}, State{Dirty: Dirty}},
		{"untracked", func(t *testing.T, root string) { write(t, root+"/new/x", "") }, State{Dirty: Dirty}},
		{"untracked empty directory", func(t *testing.T, root string) { must(t, os.Mkdir(root+"/new", 0o755)) }, State{Dirty: Clean}},
		{"untracked FIFO", func(t *testing.T, root string) { must(t, syscall.Mkfifo(root+"/fifo", 0o644)) }, State{Dirty: Clean}},
		{"file became a link", func(t *testing.T, root string) {
			must(t, os.Remove(root+"/a.txt"))
			must(t, os.Symlink("dir/b.txt", root+"/a.txt"))
		}, State{Dirty: Dirty}},
		{"directory became a link", func(t *testing.T, root string) {
			must(t, os.Rename(root+"/dir", root+"/.git/dir"))
			must(t, os.Symlink(".git/dir", root+"/dir"))
		}, State{Dirty: Dirty}},
		{"ignored", func(t *testing.T, root string) {
			write(t, root+"/.git/info/exclude", "*.o\nbuild/\n")
			write(t, root+"/x.o", "")
			write(t, root+"/build/deep/file", "")
		}, State{Dirty: Clean}},
		{"link", func(t *testing.T, root string) {
			must(t, os.Symlink("a.txt", root+"/l"))
			git(t, root, "add", ".")
			git(t, root, "commit", "-q", "-m", "two")
		}, State{Dirty: Clean}},
		{"index version 4", func(t *testing.T, root string) { git(t, root, "update-index", "--index-version", "4") }, State{Dirty: Clean}},
		{"split index", func(t *testing.T, root string) { git(t, root, "update-index", "--split-index") }, State{Dirty: Unknown}},
		{"packed", func(t *testing.T, root string) {
			for i := range 20 {
				write(t, root+"/a.txt", strings.Repeat(fmt.Sprint(i), 100))
				git(t, root, "commit", "-q", "-a", "-m", strings.Repeat("the same long message ", 50)+fmt.Sprint(i))
			}
			git(t, root, "gc", "-q", "--aggressive", "--prune=now")
		}, State{Dirty: Clean}},
		{"detached", func(t *testing.T, root string) { git(t, root, "checkout", "-q", "--detach") }, State{Branch: "-", Detached: true, Dirty: Clean}},
		{"branch with a slash", func(t *testing.T, root string) { git(t, root, "checkout", "-q", "-b", "feature/x") }, State{Branch: "feature/x", Dirty: Clean}},
		{"branch without a commit", func(t *testing.T, root string) { git(t, root, "checkout", "-q", "--orphan", "fresh") }, State{Branch: "fresh", Dirty: Dirty}},
		{"attributes and a change of the same size", func(t *testing.T, root string) {
			write(t, root+"/.gitattributes", "*.txt filter=x\n")
			git(t, root, "add", ".")
			git(t, root, "commit", "-q", "-m", "two")
			write(t, root+"/a.txt", "x\n")
		}, State{Dirty: Unknown}},
		{"merge in conflict", func(t *testing.T, root string) {
			conflict(t, root)
			git(t, root, "merge", "other")
		}, State{Dirty: Dirty, Operation: "merge"}},
		{"rebase in conflict", func(t *testing.T, root string) {
			conflict(t, root)
			git(t, root, "rebase", "other")
		}, State{Branch: "main", Detached: true, Dirty: Dirty, Operation: "rebase"}},
		{"cherry-pick in conflict", func(t *testing.T, root string) {
			conflict(t, root)
			git(t, root, "cherry-pick", "other")
		}, State{Dirty: Dirty, Operation: "cherry-pick"}},
		{"nested repository", func(t *testing.T, root string) { git(t, root, "init", "-q", "sub") }, State{Dirty: Dirty}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := newRepo(t)
			tt.do(t, root)
			got := read(t, root)
			if status := git(t, root, "--no-optional-locks", "status", "--porcelain"); got.Dirty != Unknown && (got.Dirty == Dirty) != (status != "") {
				t.Errorf("dirty: %v, git says %q", got.Dirty, status)
			}
			want := tt.want
			want.Repository, want.Commit = true, got.Commit
			switch want.Branch {
			case "":
				want.Branch = "main"
			case "-":
				want.Branch = ""
			}
			if got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
			if commit := got.Commit; commit != "" && commit != strings.TrimSpace(git(t, root, "rev-parse", "HEAD")) {
				t.Errorf("commit %q", commit)
			}
		})
	}
}

// conflict makes a branch "other" that cannot be merged.
func conflict(t *testing.T, root string) {
	git(t, root, "checkout", "-q", "-b", "other")
	write(t, root+"/a.txt", "other\n")
	git(t, root, "commit", "-q", "-a", "-m", "other")
	git(t, root, "checkout", "-q", "main")
	write(t, root+"/a.txt", "main\n")
	git(t, root, "commit", "-q", "-a", "-m", "main")
}

// TestLikeGit changes work trees at random, with nested ignore files, and compares
// with git status.
func TestLikeGit(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			root := newRepo(t)
			r := rand.New(rand.NewPCG(uint64(seed), 3))
			names := []string{"a", "b", "a.b", "a-b", "x.o", "é", "sp ace", "c"}
			path := func() string {
				var parts []string
				for range 1 + r.IntN(3) {
					parts = append(parts, names[r.IntN(len(names))])
				}
				return filepath.Join(append([]string{root}, parts...)...)
			}
			for range 25 {
				switch p := path(); r.IntN(8) {
				case 0:
					_ = os.RemoveAll(p)
				case 1:
					rules := []string{"*.o\n", "a/\n", "!x.o\n", "/b\n", "**/c\n", "*\n!*/\n!.gitignore\n"}
					if info, err := os.Stat(p); err == nil && info.IsDir() {
						write(t, p+"/.gitignore", rules[r.IntN(len(rules))])
					}
				case 2, 3:
					git(t, root, "add", "-A")
					git(t, root, "commit", "-q", "--allow-empty", "-m", "x")
				case 4:
					_ = os.Chmod(p, 0o755)
				default:
					if os.MkdirAll(filepath.Dir(p), 0o755) == nil {
						_ = os.WriteFile(p, fmt.Append(nil, r.IntN(3)), 0o644)
					}
				}
				status := git(t, root, "--no-optional-locks", "status", "--porcelain=v2", "-z")
				if got := read(t, root).Dirty; got == Unknown || (got == Dirty) != (status != "") {
					t.Fatalf("dirty: %v, git says %q", got, status)
				}
			}
		})
	}
}

// canaries is a configuration in which each thing that git runs for somebody leaves
// a file.
func canaries(t *testing.T, root, canary string) {
	program := filepath.Join(root, ".git", "canary")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> "+canary+"\ncat\n"), 0o755))
	for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "fsmonitor-watchman", "reference-transaction"} {
		must(t, os.Symlink(program, filepath.Join(root, ".git/hooks", hook)))
	}
	settings := fmt.Sprintf(`[core]
	fsmonitor = %[1]s
	hooksPath = .git/hooks
	pager = %[1]s
	sshCommand = %[1]s
	editor = %[1]s
	alternateRefsCommand = %[1]s
[filter "x"]
	clean = %[1]s
	smudge = %[1]s
	process = %[1]s
[diff]
	external = %[1]s
[diff "x"]
	textconv = %[1]s
	command = %[1]s
[alias]
	status = !%[1]s
	st = !%[1]s
[include]
	path = /dev/stdin
[credential]
	helper = %[1]s
[gpg]
	program = %[1]s
[uploadpack]
	packObjectsHook = %[1]s
`, program)
	f, err := os.OpenFile(filepath.Join(root, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(settings)
	must(t, err)
	must(t, f.Close())
	write(t, root+"/.git/info/attributes", "* filter=x diff=x\n")
	write(t, root+"/.gitattributes", "* filter=x diff=x\n")
	must(t, os.Chtimes(root+"/a.txt", time.Unix(5, 0), time.Unix(5, 0)))
}

func TestHostileConfigurationRunsNothing(t *testing.T) {
	root := newRepo(t)
	canary := filepath.Join(t.TempDir(), "canary")
	canaries(t, root, canary)
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
	t.Setenv("GIT_CONFIG_VALUE_0", filepath.Join(root, ".git/canary"))
	t.Setenv("GIT_EXTERNAL_DIFF", filepath.Join(root, ".git/canary"))
	before, err := os.ReadFile(filepath.Join(root, ".git/index"))
	must(t, err)
	s := read(t, root)
	if s.Branch != "main" || s.Dirty == Clean {
		t.Errorf("state %+v", s)
	}
	if refs := Refs(context.Background(), root); refs["refs/heads/main"] != s.Commit {
		t.Errorf("refs %v", refs)
	}
	if text, err := os.ReadFile(canary); err == nil {
		t.Fatalf("a program ran: %s", text)
	}
	if after, err := os.ReadFile(filepath.Join(root, ".git/index")); err != nil || string(after) != string(before) {
		t.Error("the index was changed")
	}
	// The canaries do sing: git itself runs them.
	cmd := exec.Command("git", "status")
	cmd.Dir, cmd.Env = root, []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	_ = cmd.Run()
	if _, err := os.Stat(canary); err != nil {
		t.Error("git ran no canary either, so this test shows nothing")
	}
}

// TestNotOfThisWorkspace: what lies outside is read for HEAD alone.
func TestNotOfThisWorkspace(t *testing.T) {
	main := newRepo(t)
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	commit := strings.TrimSpace(git(t, main, "rev-parse", "HEAD"))
	tests := []struct {
		name, root string
		make       func(root string)
		want       State
	}{
		{"linked work tree", base + "/linked", func(root string) { git(t, main, "worktree", "add", "-q", "-b", "side", root) },
			State{Repository: true, Branch: "side", Commit: commit, Worktree: true, Outside: true}},
		{"relative pointer", base + "/relative", func(root string) {
			rel, err := filepath.Rel(root, main+"/.git")
			must(t, err)
			write(t, root+"/.git", "gitdir: "+rel+"\n")
		}, State{Repository: true, Branch: "main", Commit: commit, Worktree: true, Outside: true}},
		{"link to another repository", base + "/link", func(root string) {
			must(t, os.Mkdir(root, 0o755))
			must(t, os.Symlink(main+"/.git", root+"/.git"))
		}, State{Repository: true, Branch: "main", Commit: commit, Outside: true}},
		{"below a repository", main + "/dir", func(string) {}, State{Repository: true, Branch: "main", Commit: commit, Outside: true}},
		{"pointer to nothing", base + "/nothing", func(root string) { write(t, root+"/.git", "gitdir: /nonexistent\n") }, State{}},
		{"pointer to a file of the system", base + "/passwd", func(root string) { write(t, root+"/.git", "gitdir: /etc/passwd\n") }, State{}},
		{"FIFO for .git", base + "/fifo", func(root string) {
			must(t, os.Mkdir(root, 0o755))
			must(t, syscall.Mkfifo(root+"/.git", 0o644))
		}, State{}},
		{"FIFO for HEAD", base + "/fifohead", func(root string) {
			must(t, os.MkdirAll(root+"/.git", 0o755))
			must(t, syscall.Mkfifo(root+"/.git/HEAD", 0o644))
		}, State{}},
		{"no repository", base + "/plain", func(root string) { must(t, os.Mkdir(root, 0o755)) }, State{}},
		{"HEAD that leads away", base + "/away", func(root string) {
			write(t, root+"/.git/HEAD", "ref: refs/heads/../../../../etc/passwd\n")
		}, State{Repository: true, Dirty: Unknown}},
		{"HEAD that is a secret", base + "/secret", func(root string) {
			must(t, os.MkdirAll(root+"/.git", 0o755))
			must(t, os.Symlink("/etc/hostname", root+"/.git/HEAD"))
		}, State{Repository: true, Dirty: Unknown}},
		{"another user's", base + "/foreign", func(root string) {
			git(t, base, "clone", "-q", main, root)
			if err := os.Chown(root+"/.git", 12345, 12345); err != nil {
				t.Skip("only root can give files away")
			}
		}, State{Repository: true, Branch: "main", Commit: commit, Foreign: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.make(tt.root)
			got := read(t, tt.root)
			if got.Repository && tt.want.Commit == "" {
				got.Dirty = Unknown
			}
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
	refs := Refs(context.Background(), base+"/linked")
	if len(refs) != 2 || refs["HEAD"] != "ref: refs/heads/side" || refs["refs/heads/side"] != commit {
		t.Errorf("of a repository outside: %v", refs)
	}
}

// TestHostileObjects: FIFOs and nonsense in the place of objects make no answer, and
// nothing waits.
func TestHostileObjects(t *testing.T) {
	tests := []struct {
		name string
		do   func(t *testing.T, root, object string)
	}{
		{"FIFO for the commit", func(t *testing.T, _, object string) { must(t, syscall.Mkfifo(object, 0o644)) }},
		{"nonsense for the commit", func(t *testing.T, _, object string) { write(t, object, "nonsense") }},
		{"FIFO for an index of a pack", func(t *testing.T, root, _ string) {
			must(t, os.MkdirAll(root+"/.git/objects/pack", 0o755))
			must(t, syscall.Mkfifo(root+"/.git/objects/pack/pack-1.idx", 0o644))
		}},
		{"alternates", func(t *testing.T, root, _ string) { write(t, root+"/.git/objects/info/alternates", "/nonexistent\n") }},
		{"FIFO for the index", func(t *testing.T, root, _ string) {
			must(t, os.Remove(root+"/.git/index"))
			must(t, syscall.Mkfifo(root+"/.git/index", 0o644))
		}},
		{"nonsense for the index", func(t *testing.T, root, _ string) {
			write(t, root+"/.git/index", "DIRC\x00\x00\x00\x02\xff\xff\xff\xff"+strings.Repeat("x", 1000))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := newRepo(t)
			commit := strings.TrimSpace(git(t, root, "rev-parse", "HEAD"))
			object := filepath.Join(root, ".git/objects", commit[:2], commit[2:])
			must(t, os.Remove(object))
			tt.do(t, root, object)
			if got := read(t, root); got.Dirty != Unknown || got.Branch != "main" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestLargeIgnoredTree: what is ignored is not entered, and a deadline is kept.
func TestLargeIgnoredTree(t *testing.T) {
	root := newRepo(t)
	write(t, root+"/.gitignore", "node_modules/\n")
	git(t, root, "add", ".")
	git(t, root, "commit", "-q", "-m", "ignore")
	for i := range 20 {
		for j := range 50 {
			write(t, fmt.Sprintf("%s/node_modules/p%d/f%d", root, i, j), "")
		}
	}
	if got := read(t, root); got.Dirty != Clean {
		t.Errorf("%+v", got)
	}
	start := time.Now()
	got, err := Read(context.Background(), root, Options{Deadline: time.Nanosecond})
	must(t, err)
	if got.Dirty != Unknown || got.Branch != "main" || time.Since(start) > time.Second {
		t.Errorf("%+v after %v", got, time.Since(start))
	}
	if got, _ := Read(context.Background(), root, Options{}); got.Dirty != Unknown {
		t.Errorf("without being asked: %+v", got)
	}
}

func TestRefs(t *testing.T) {
	root := newRepo(t)
	git(t, root, "branch", "old")
	git(t, root, "pack-refs", "--all")
	git(t, root, "branch", "deep/new")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "two")
	git(t, root, "tag", "v1")
	want := map[string]string{"HEAD": "ref: refs/heads/main"}
	for line := range strings.Lines(git(t, root, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")) {
		name, commit, _ := strings.Cut(strings.TrimSpace(line), " ")
		want[name] = commit
	}
	if got := Refs(context.Background(), root); fmt.Sprint(got) != fmt.Sprint(want) || len(want) != 4 {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := Refs(context.Background(), "/"); got != nil {
		t.Errorf("without a repository: %v", got)
	}
}

func FuzzParseIndex(f *testing.F) {
	if _, err := exec.LookPath("git"); err == nil {
		root := newRepo(f)
		for _, version := range []string{"2", "4"} {
			git(f, root, "update-index", "--index-version", version)
			index, err := os.ReadFile(root + "/.git/index")
			must(f, err)
			f.Add(index)
		}
	}
	f.Add([]byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00" + strings.Repeat("x", 20)))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := parseIndex(b)
		if err != nil {
			return
		}
		before := ""
		for _, e := range entries {
			if e.path < before || !plainPath(e.path) || len(e.path) > len(b)*len(b) {
				t.Fatalf("path %q after %q", e.path, before)
			}
			before = e.path
		}
		treeOf(entries)
	})
}
