package proc

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// markerSearch says that processes can be found by their environment.
const markerSearch = false

const zombieState = 5 // SZOMB of sys/proc.h

// processes reads the process table.
func processes() []process {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	list := make([]process, 0, len(all))
	for i := range all {
		list = append(list, fromKinfo(&all[i]))
	}
	return list
}

func fromKinfo(k *unix.KinfoProc) process {
	start := k.Proc.P_starttime
	p := process{
		ident:  ident{pid: int(k.Proc.P_pid), start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		ppid:   int(k.Eproc.Ppid),
		pgid:   int(k.Eproc.Pgid),
		zombie: k.Proc.P_stat == zombieState,
	}
	p.sid, _ = unix.Getsid(p.pid)
	return p
}

func lookup(pid int) (process, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, false
	}
	return fromKinfo(k), true
}

func hasMarker(int, string) bool { return false }

func commandLine(pid int) string {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return ""
	}
	var name []byte
	for _, c := range k.Proc.P_comm {
		name = append(name, byte(c))
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	return string(name[:min(len(name), maxCommandLine)])
}

func holders(*stream, int) []process { return nil }

// signal sends to a process if it is still the same one.
func (id ident) signal(sig unix.Signal) {
	if now, ok := lookup(id.pid); ok && now.ident == id {
		_ = unix.Kill(id.pid, sig) // it may end at any moment, or belong to another user
	}
}

// blockUntilExit returns when the child has ended. It stays a zombie, so that its
// pid is nobody else's. waitid is no use here: it returns for a stopped child too.
func blockUntilExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	unix.CloseOnExec(queue)
	event := []unix.Kevent_t{{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}}
	for {
		_, err := unix.Kevent(queue, event, event, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func widen(*os.File) {}
