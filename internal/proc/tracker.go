package proc

import (
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Tracker remembers what commands left running in the background. The zero value
// is ready; a nil *Tracker takes nothing. It is safe for concurrent use.
type Tracker struct {
	mu     sync.Mutex
	rests  []*remnant
	closed bool
}

// Job is a process in the background.
type Job struct {
	Survivor
	// Since is when the command that left it was started.
	Since time.Time
	// Kept says that the end of the turn does not end it.
	Kept bool
	// Output is the end of what it and others of the same command wrote to the
	// command's output since the command ended.
	Output string
}

// remnant is what one run left.
type remnant struct {
	fam     *family
	streams []*stream
	watch   *watchdog
	keep    bool
	since   time.Time
	tail    *output // what was written since the run ended
}

// maxJobOutput bounds the output of a job in the background, in bytes.
const maxJobOutput = 8192

// take makes t the owner of what a run left, and goes on reading its output so
// that writing does not end it. It reports false when t does not take it.
func (t *Tracker) take(r *remnant) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if markerSearch {
		r.watch.group(0) // the group's number may be given to others from now on
	}
	if r.keep {
		r.watch.release()
		r.watch = nil
	}
	r.tail = newOutput(maxJobOutput)
	for _, s := range r.streams {
		if !s.ended() {
			s.sink = r.tail.add
			s.start()
		}
	}
	t.rests = append(t.rests, r)
	return true
}

// release gives up what belongs to a remnant and ends nothing.
func (r *remnant) release() {
	r.watch.release()
	r.watch = nil
	for _, s := range r.streams {
		s.close()
	}
}

// Jobs returns what runs in the background now.
func (t *Tracker) Jobs() []Job {
	t.mu.Lock()
	defer t.mu.Unlock()
	var jobs []Job
	t.rests = slices.DeleteFunc(t.rests, func(r *remnant) bool {
		list := describe(r.fam.survivors())
		if len(list) == 0 {
			r.release()
			return true
		}
		text, _ := r.tail.text()
		for _, s := range list {
			jobs = append(jobs, Job{Survivor: s, Since: r.since, Kept: r.keep, Output: text})
		}
		return false
	})
	return jobs
}

// EndTurn ends what runs in the background and is not kept, and returns it. It
// blocks for up to DefaultGrace and a second more if a process does not end when
// it is asked to.
func (t *Tracker) EndTurn() []Survivor {
	var old []*remnant
	t.mu.Lock()
	t.rests = slices.DeleteFunc(t.rests, func(r *remnant) bool {
		if !r.keep {
			old = append(old, r)
		}
		return !r.keep
	})
	t.mu.Unlock()
	return end(old)
}

// Close ends what EndTurn ends and gives up the rest, which goes on running without
// a reader of its output. Runs that end later leave nothing.
func (t *Tracker) Close() []Survivor {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	ended := t.EndTurn()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.rests {
		r.release()
	}
	t.rests = nil
	return ended
}

// end asks all that is left to end, kills it after the grace, and returns what it
// found.
func end(rests []*remnant) []Survivor {
	if len(rests) == 0 {
		return nil
	}
	limit := time.Now().Add(DefaultGrace)
	var found []Survivor
	var fams []*family
	for _, r := range rests {
		found = append(found, describe(r.fam.survivors())...)
		r.fam.signal(unix.SIGTERM)
		fams = append(fams, r.fam)
	}
	for _, f := range fams {
		f.vanish(limit)
	}
	kill(fams, nil)
	for _, r := range rests {
		r.release()
	}
	return found
}

// signal sends to all living processes of the family.
func (f *family) signal(sig unix.Signal) {
	for _, p := range f.find() {
		p.signal(sig)
	}
}

// vanish waits until the family has no living process, or for the limit.
func (f *family) vanish(limit time.Time) {
	for pause := 2 * time.Millisecond; len(f.find()) > 0; pause = min(2*pause, 50*time.Millisecond) {
		rest := time.Until(limit)
		if rest <= 0 {
			return
		}
		time.Sleep(min(pause, rest))
	}
}

// kill kills families until they are gone, also what they start meanwhile, and
// returns what would not go. The extra kill is done in each round.
func kill(fams []*family, extra func()) []process {
	stop := time.Now().Add(killLimit)
	for {
		if extra != nil {
			extra()
		}
		var left []process
		for _, f := range fams {
			list := f.find()
			for _, p := range list {
				p.signal(unix.SIGKILL)
			}
			left = append(left, list...)
		}
		if len(left) == 0 || time.Now().After(stop) {
			return left
		}
		time.Sleep(2 * time.Millisecond) // the kernel needs a moment
	}
}
