package proc

import (
	"os"
)

// Ident tells a process, and the run that it leads, from every other one, also after
// its pid was given to another process. It may be stored.
type Ident struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`            // in the system's own unit, since the system started
	Marker string `json:"marker,omitempty"` // of the run; empty for Self
}

// Self is this process.
func Self() Ident {
	now, _ := lookup(os.Getpid())
	return Ident{PID: os.Getpid(), Start: now.start}
}

// Running reports whether the process runs. One that only got its pid does not count.
func (id Ident) Running() bool {
	now, ok := lookup(id.PID)
	return ok && !now.zombie && now.start == id.Start
}

// EndOrphan ends what is left of a run whose program ended without doing so, and
// returns what it found. It asks first and kills what is there after DefaultGrace.
// Where the system shows environments only what carries the run's marker is found,
// else only what descends from the child as long as that lives.
func EndOrphan(id Ident) []Survivor {
	if id.PID <= 1 || id.Start == 0 {
		return nil
	}
	f := &family{marker: id.Marker, child: ident{pid: id.PID, start: id.Start}, self: os.Getpid(), reaped: true}
	if f.marker == "" {
		return nil
	}
	if id.Running() && (!markerSearch || hasMarker(id.PID, id.Marker)) {
		f.known = []ident{f.child}
	}
	found := describe(f.find())
	end([]*remnant{{fam: f}})
	return found
}
