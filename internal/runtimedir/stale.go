package runtimedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// record is the file in each directory that says whose it is: process id and start
// time. Its owner holds a lock on it, which tells a live owner from a dead one also
// where process ids differ (another container on the same directory).
const record = "owner"

// unrecorded is how old a directory without a record must be before it counts as
// left over: its maker may not have come to writing one.
const unrecorded = 10 * time.Minute

var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^zcoder-([0-9]{1,10})-[0-9a-f]{16}$`) })

// writeRecord makes the record of this process in the directory name and locks it.
func writeRecord(root *os.Root, name string) (*os.File, error) {
	dir, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := dir.OpenFile(record, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = lock(f, syscall.LOCK_EX) // a sweep of another start may hold it for a moment
	if err == nil {
		_, err = fmt.Fprintf(f, "%d %s\n", os.Getpid(), startTime(os.Getpid()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), dir.Remove(record))
	}
	return f, nil
}

// sweep removes the directories below root whose process of this user is dead.
// What it cannot judge or remove stays.
func sweep(root *os.Root) {
	f, err := root.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1)
	for _, name := range names {
		if m := namePattern().FindStringSubmatch(name); m != nil {
			pid, _ := strconv.Atoi(m[1])
			removeStale(root, name, pid)
		}
	}
}

func removeStale(root *os.Root, name string, pid int) {
	info, err := root.Lstat(name)
	if err != nil || !private(info) {
		return
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return
	}
	defer dir.Close()
	if opened, err := dir.Stat("."); err != nil || !os.SameFile(opened, info) {
		return
	}
	held, stale := isStale(dir, info, pid)
	if held != nil {
		defer held.Close()
	}
	if stale {
		_ = root.RemoveAll(name) // what stays is tried again at the next start
	}
}

// isStale reports whether the process that made dir is dead. While the returned
// file is open nobody else removes the directory.
func isStale(dir *os.Root, info fs.FileInfo, pid int) (held *os.File, stale bool) {
	f, err := dir.OpenFile(record, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Since(info.ModTime()) > unrecorded && startTime(pid) == ""
	}
	if err != nil {
		return nil, false
	}
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || lock(f, syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return f, false
	}
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return f, false
	}
	recorded, started, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if recorded != strconv.Itoa(pid) {
		return f, time.Since(info.ModTime()) > unrecorded
	}
	return f, startTime(pid) == "" || startTime(pid) != started
}

func lock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
