package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// probeTime bounds each program that is tried.
const probeTime = 5 * time.Second

// try runs a program and returns the first line of what it says.
func try(ctx context.Context, path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if ctx.Err() != nil {
		return line, fmt.Errorf("it did not end within %s", probeTime)
	}
	return line, err
}

// find returns where a program is in a PATH, or "".
func find(path, name string) string {
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// shell checks that commands can run.
func (s Subject) shell(ctx context.Context) Check {
	line := strings.Join(s.Shell, " ")
	args := append(append([]string(nil), s.Shell[1:]...), "exit 7")
	_, err := try(ctx, s.Shell[0], args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 {
		return Check{"shell", Fail, fmt.Sprintf("%s does not run a command: %v", line, err), "install zsh, bash or sh into the PATH"}
	}
	return Check{"shell", OK, line, ""}
}

func (s Subject) git(ctx context.Context) Check {
	const remedy = "install git: projects are easier to review and to take back with it"
	path := find(s.Path, "git")
	if path == "" {
		return Check{"git", Warn, "there is no git in the PATH", remedy}
	}
	version, err := try(ctx, path, "--version")
	if err != nil {
		return Check{"git", Warn, fmt.Sprintf("%s does not run: %v", path, err), remedy}
	}
	return Check{"git", OK, version, ""}
}

// sandbox tells whether commands could be fenced. It is information: no command is.
func (s Subject) sandbox(ctx context.Context) Check {
	const unfenced = "commands run unfenced, each after your approval"
	if _, err := os.Stat(s.Bwrap); s.Bwrap == "" || err != nil {
		return Check{"sandbox", OK, unfenced + "; bubblewrap is not installed", ""}
	}
	line, err := try(ctx, s.Bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "/bin/sh", "-c", "exit 0")
	if err != nil {
		return Check{"sandbox", OK, fmt.Sprintf("%s; bubblewrap is there but does not work here: %s", unfenced, strings.TrimSpace(line+" "+err.Error())), ""}
	}
	return Check{"sandbox", OK, unfenced + "; bubblewrap is there and works", ""}
}

// Smallest terminal in which dialogs can be read.
const (
	leastCols = 60
	leastRows = 10
)

func (s Subject) terminal(context.Context) Check {
	t := s.Terminal
	text := fmt.Sprintf("%s, %d×%d", t.Term, t.Cols, t.Rows)
	switch {
	case !t.Is:
		return Check{"terminal", OK, "not checked: this is not run in one", ""}
	case t.Term == "" || t.Term == "dumb":
		return Check{"terminal", Warn, fmt.Sprintf("TERM is %q: plain lines, no editing, typed answers", t.Term), "set TERM to what the terminal is, such as xterm-256color"}
	case t.Cols < leastCols || t.Rows < leastRows:
		return Check{"terminal", Warn, text + ": small", fmt.Sprintf("at least %d×%d shows dialogs well", leastCols, leastRows)}
	case !t.UTF8:
		return Check{"terminal", Warn, text + ": the locale is not UTF-8", "set LANG to a UTF-8 locale, such as C.UTF-8"}
	}
	return Check{"terminal", OK, text + ", UTF-8", ""}
}

// settings checks the settings file and the policy files. That the settings can be
// read is known: they were.
func (s Subject) settings(context.Context) Check {
	if err := s.Policies(); err != nil {
		return Check{"settings", Fail, err.Error(), "correct the file, or move it away"}
	}
	info, err := os.Stat(s.Settings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Check{"settings", OK, "no settings file, defaults apply: " + s.Settings, ""}
	case err != nil:
		return Check{"settings", Fail, err.Error(), "check " + s.Settings}
	case info.Mode().Perm()&0o022 != 0:
		return Check{"settings", Fail, fmt.Sprintf("%s can be changed by others (mode %04o)", s.Settings, info.Mode().Perm()), "chmod 600 " + s.Settings}
	case s.HoldsKey && info.Mode().Perm()&0o044 != 0:
		return Check{"settings", Warn, fmt.Sprintf("%s holds a key and can be read by others (mode %04o)", s.Settings, info.Mode().Perm()), "chmod 600 " + s.Settings}
	}
	return Check{"settings", OK, s.Settings, ""}
}

// directories checks that what is ours is private.
func (s Subject) directories(context.Context) Check {
	made := 0
	for _, dir := range append([]string{s.Home}, s.Private...) {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // made when it is needed
		case err != nil:
			return Check{"directories", Fail, err.Error(), "make it a directory of your own"}
		}
		if info.Mode()&fs.ModeSymlink != 0 { // as a home may be
			if info, err = os.Stat(dir); err != nil {
				return Check{"directories", Fail, err.Error(), "make it a directory of your own"}
			}
		}
		made++
		if !info.IsDir() {
			return Check{"directories", Fail, dir + " is not a directory", "move it away"}
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
			return Check{"directories", Warn, fmt.Sprintf("%s belongs to user %d, not to you", dir, st.Uid), "set ZCODER_HOME to a directory of your own, or chown -R it"}
		}
		if perm := info.Mode().Perm(); perm&0o077 != 0 {
			return Check{"directories", Fail, fmt.Sprintf("%s is open to others (mode %04o)", dir, perm), "chmod 700 " + dir}
		}
	}
	if made == 0 {
		return Check{"directories", OK, s.Home + " is made at the first start", ""}
	}
	return Check{"directories", OK, s.Home + ", private", ""}
}

// Free space in bytes below which a record may soon fail, and below which it is low.
const (
	noSpace  = 50 << 20
	lowSpace = 1 << 30
)

// disk checks the space where the records and the files are written.
func (s Subject) disk(context.Context) Check {
	least, where := uint64(1<<63), ""
	for _, dir := range []string{s.Home, s.Workspace} {
		free, err := space(dir)
		if err != nil {
			return Check{"disk", Warn, err.Error(), ""}
		}
		if free < least {
			least, where = free, dir
		}
	}
	c := Check{"disk", OK, fmt.Sprintf("%s free at %s", bytes(int64(least)), where), ""}
	switch {
	case least < noSpace:
		c.State, c.Remedy = Fail, "free some space: what cannot be recorded is not done"
	case least < lowSpace:
		c.State, c.Remedy = Warn, "free some space"
	}
	return c
}

// space is the free space of the file system that a path is on, or will be.
func space(path string) (uint64, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		if err == nil {
			return uint64(st.Bavail) * uint64(st.Bsize), nil
		}
		up := filepath.Dir(path)
		if !errors.Is(err, fs.ErrNotExist) || up == path {
			return 0, fmt.Errorf("find the free space at %q: %w", path, err)
		}
		path = up
	}
}

func (s Subject) audit(context.Context) Check {
	records, broken, err := s.Audit()
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && records == 0 && broken == "":
		return Check{"audit", OK, "nothing was recorded yet", ""}
	case err != nil:
		return Check{"audit", Fail, err.Error(), "nothing but reading is possible without the audit: move it away"}
	case broken != "":
		return Check{"audit", Fail, "the chain is broken: " + broken, "zcoder audit verify shows where; keep a copy, then move the directory away"}
	}
	return Check{"audit", OK, fmt.Sprintf("%s, the chain is whole", count(int(records), "record")), ""}
}
