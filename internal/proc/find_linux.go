package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// markerSearch says that processes can be found by their environment.
const markerSearch = true

// processes reads the process table. What ends meanwhile is left out.
func processes() []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var list []process
	buf := make([]byte, 1024)
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := parseStat(readSmall("/proc/"+name+"/stat", buf)); ok {
			list = append(list, p)
		}
	}
	return list
}

// readSmall reads the beginning of a file of /proc in three system calls.
func readSmall(path string, buf []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// parseStat reads a line of /proc/PID/stat. The name in parentheses may hold
// anything, a parenthesis too.
func parseStat(line []byte) (process, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 2 || end < open {
		return process{}, false
	}
	const state, ppid, pgid, sid, start = 0, 1, 2, 3, 19 // fields after the name
	fields := bytes.Fields(line[end+1:])
	if len(fields) <= start {
		return process{}, false
	}
	p := process{zombie: fields[state][0] == 'Z' || fields[state][0] == 'X'}
	ok := true
	number := func(b []byte) int {
		n, err := strconv.Atoi(string(b))
		ok = ok && err == nil
		return n
	}
	p.pid = number(line[:open-1])
	p.ppid, p.pgid, p.sid = number(fields[ppid]), number(fields[pgid]), number(fields[sid])
	p.start = uint64(number(fields[start]))
	return p, ok
}

func lookup(pid int) (process, bool) {
	return parseStat(readSmall("/proc/"+strconv.Itoa(pid)+"/stat", make([]byte, 1024)))
}

// maxEnviron bounds how much of an environment is searched, in bytes.
const maxEnviron = 4 << 20

func hasMarker(pid int, marker string) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer f.Close()
	want := []byte(markerName + "=" + marker)
	buf := make([]byte, 32768)
	kept := 0
	for total := 0; total < maxEnviron; {
		n, err := f.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], want) {
			return true
		}
		if err != nil {
			return false
		}
		total += n
		end := kept + n
		kept = copy(buf, buf[max(0, end-len(want)):end])
	}
	return false
}

func commandLine(pid int) string {
	dir := "/proc/" + strconv.Itoa(pid)
	line := readSmall(dir+"/cmdline", make([]byte, maxCommandLine))
	line = bytes.ReplaceAll(bytes.TrimRight(line, "\x00"), []byte{0}, []byte{' '})
	if len(line) == 0 {
		line = bytes.TrimSpace(readSmall(dir+"/comm", make([]byte, 64)))
	}
	return string(line[:wholeRunes(line)])
}

// holders returns the processes that have the given pipe or terminal open.
func holders(s *stream, self int) []process {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return nil
	}
	var link string
	_ = conn.Control(func(fd uintptr) { link, _ = os.Readlink("/proc/self/fd/" + strconv.Itoa(int(fd))) })
	if !strings.HasPrefix(link, "pipe:") {
		return nil
	}
	var list []process
	for _, p := range processes() {
		// A child of ours that has not reached its program yet has all our files.
		if p.pid != self && p.ppid != self && !p.zombie && hasOpen(p.pid, link) {
			list = append(list, p)
		}
	}
	return list
}

func hasOpen(pid int, link string) bool {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, f := range files {
		if target, err := os.Readlink(f); err == nil && target == link {
			return true
		}
	}
	return false
}

// signal sends to a process, and to no other that got its pid since: the handle is
// taken before the start time is compared.
func (id ident) signal(sig unix.Signal) {
	p, err := os.FindProcess(id.pid)
	if err != nil {
		return
	}
	defer p.Release()
	if now, ok := lookup(id.pid); ok && now.ident == id {
		_ = p.Signal(sig) // it may end at any moment, or belong to another user
	}
}

// blockUntilExit returns when the child has ended. It stays a zombie, so that its
// pid is nobody else's.
func blockUntilExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// widen makes a pipe hold more, so that a flood needs fewer turns. It is a matter
// of speed only.
func widen(f *os.File) {
	if conn, err := f.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
	}
}
