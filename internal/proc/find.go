package proc

import "slices"

// ident is a process beyond doubt: a pid that was given to another process since
// has another start time.
type ident struct {
	pid   int
	start uint64 // in the system's own unit
}

// process is one line of the process table.
type process struct {
	ident
	ppid, pgid, sid int
	zombie          bool
}

// family is what belongs to one run, by the signs that its processes carry.
type family struct {
	marker string // value of ZCODER_RUN
	child  ident  // the child itself, leader of its session and group
	self   int    // our own pid, never part of it
	// known are processes that were found before.
	known []ident
	// reaped says that the child's pid may be given to another process.
	reaped bool
}

// find returns the living processes of the family and remembers them. The child is
// among them while it runs.
func (f *family) find() []process {
	all := processes()
	in := make(map[int]bool)
	anchored := !f.reaped
	for _, p := range all {
		if slices.Contains(f.known, p.ident) {
			in[p.pid] = true
			anchored = anchored || p.sid == f.child.pid
		}
	}
	for _, p := range all {
		if p.start >= f.child.start && (anchored && p.sid == f.child.pid || !in[p.pid] && hasMarker(p.pid, f.marker)) {
			in[p.pid] = true
		}
	}
	delete(in, f.self)
	f.addChildren(all, in)
	var found []process
	for _, p := range all {
		if in[p.pid] && !p.zombie {
			found = append(found, p)
		}
	}
	f.known = f.known[:0]
	for _, p := range found {
		f.known = append(f.known, p.ident)
	}
	return found
}

// addChildren completes the set with the children of its members.
func (f *family) addChildren(all []process, in map[int]bool) {
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.ppid] && !in[p.pid] && p.pid != f.self && p.start >= f.child.start {
				in[p.pid] = true
				grown = true
			}
		}
	}
}

// survivors are the processes of the family without the child itself.
func (f *family) survivors() []process {
	return slices.DeleteFunc(f.find(), func(p process) bool { return p.ident == f.child })
}

func describe(list []process) []Survivor {
	var out []Survivor
	for _, p := range list {
		out = append(out, Survivor{PID: p.pid, Command: commandLine(p.pid)})
	}
	return out
}

// maxCommandLine bounds a command line as shown, in bytes.
const maxCommandLine = 200
