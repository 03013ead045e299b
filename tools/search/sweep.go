package search

import (
	"sync"
	"sync/atomic"
)

// sweep visits the files below a directory with several workers. Each directory and
// each batch of files is one task, so that neither a flat nor a deep tree leaves
// workers idle. The order of visits is not fixed; that of results must not depend
// on it.
type sweep struct {
	*walker
	stop *atomic.Bool

	mu    sync.Mutex
	wake  sync.Cond
	tasks []task // last in, first out: directories close soon
	busy  int
}

// task is a directory to enter or files to visit. It holds dir.
type task struct {
	dir   *directory
	enter string // name of a directory in dir; "" for dir itself
	files []string
}

// visitor sees the files that one worker finds.
type visitor interface {
	visit(d *directory, name string)
	leftOut() *left
}

const batch = 64 // files

// run visits everything below start with one goroutine for each visitor and returns
// when all have ended: when nothing is left or soon after stop is set.
func (s *sweep) run(start task, visitors []visitor) {
	s.wake.L = &s.mu
	s.tasks = append(s.tasks, start)
	var workers sync.WaitGroup
	for _, v := range visitors {
		workers.Go(func() { s.work(v) })
	}
	workers.Wait()
	for _, t := range s.tasks {
		t.dir.release()
	}
}

func (s *sweep) work(v visitor) {
	for {
		t, ok := s.take()
		if !ok {
			return
		}
		if t.files != nil {
			s.files(t.dir, t.files, v)
			t.dir.release()
		} else {
			s.enterTask(t, v)
		}
		s.done()
	}
}

// take waits for a task. It returns false when there will be none.
func (s *sweep) take() (task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.tasks) == 0 && s.busy > 0 {
		s.wake.Wait()
	}
	if len(s.tasks) == 0 || s.stop.Load() {
		return task{}, false
	}
	t := s.tasks[len(s.tasks)-1]
	s.tasks[len(s.tasks)-1] = task{}
	s.tasks = s.tasks[:len(s.tasks)-1]
	s.busy++
	return t, true
}

func (s *sweep) done() {
	s.mu.Lock()
	s.busy--
	if s.busy == 0 && len(s.tasks) == 0 || s.stop.Load() {
		s.wake.Broadcast()
	}
	s.mu.Unlock()
}

func (s *sweep) put(tasks []task) {
	if len(tasks) == 0 {
		return
	}
	s.mu.Lock()
	s.tasks = append(s.tasks, tasks...)
	s.mu.Unlock()
	s.wake.Broadcast()
}

// enterTask opens the directory of a task, hands out what is below it, and visits
// the first files itself.
func (s *sweep) enterTask(t task, v visitor) {
	d := t.dir
	if t.enter != "" {
		var err error
		d, err = t.dir.child(t.enter)
		if err != nil {
			v.leftOut().fail(t.dir.path(t.enter), err)
		}
		t.dir.release()
		if err != nil {
			return
		}
	}
	defer d.release()
	if t.enter != "" && d.id == s.settings {
		v.leftOut().settings = true
		return
	}
	seen, err := s.look(d, v.leftOut())
	if err != nil {
		v.leftOut().fail(d.rel, err)
		return
	}
	v.leftOut().links += len(seen.links)
	v.leftOut().odd += len(seen.odd)
	var tasks []task
	for _, name := range seen.dirs {
		tasks = append(tasks, task{dir: d.hold(), enter: name})
	}
	first := seen.files[:min(batch, len(seen.files))]
	for rest := seen.files[len(first):]; len(rest) > 0; {
		n := min(batch, len(rest))
		tasks = append(tasks, task{dir: d.hold(), files: rest[:n]})
		rest = rest[n:]
	}
	s.put(tasks)
	s.files(d, first, v)
}

func (s *sweep) files(d *directory, names []string, v visitor) {
	for _, name := range names {
		if s.stop.Load() {
			return
		}
		v.visit(d, name)
	}
}
