package remote

import (
	"context"
	"net/http"
	"sync"
)

// keptResults is how many results are remembered for requests that come again.
const keptResults = 1000

// results are the results of requests with an id of their own. A client that lost a
// reply asks again and gets the first result.
type results struct {
	mu    sync.Mutex
	known map[string]*result
	order []string // oldest first
}

type result struct {
	content any           // of the request; comparable
	done    chan struct{} // closed when it is known
	ok      bool          // then: it was a success, which alone is kept
	reply   reply
}

// once does what a request asks for, or returns the result of the first request of this
// kind and id. An empty id is no id.
func (s *Server) once(ctx context.Context, kind, id string, content any, do func() (reply, error)) (reply, error) {
	if id == "" {
		return do()
	}
	if !isItemID(id) {
		return reply{}, refuse(http.StatusBadRequest, "a request_id has 1 to 64 of A-Z a-z 0-9 _ -")
	}
	for {
		r, first := s.results.enter(kind+" "+id, content)
		if first {
			rep, err := do()
			s.results.settle(kind+" "+id, r, rep, err)
			return rep, err
		}
		if r.content != content {
			return reply{}, refuse(http.StatusConflict, "another request had this request_id")
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return reply{}, errClosing
		}
		if r.ok {
			return r.reply, nil
		}
	}
}

func (r *results) enter(key string, content any) (_ *result, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.known[key]; have != nil {
		return have, false
	}
	if r.known == nil {
		r.known = map[string]*result{}
	}
	if len(r.order) >= keptResults {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
	one := &result{content: content, done: make(chan struct{})}
	r.known[key] = one
	r.order = append(r.order, key)
	return one, true
}

func (r *results) settle(key string, one *result, rep reply, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.reply, one.ok = rep, err == nil
	close(one.done)
	if err == nil || r.known[key] != one {
		return
	}
	delete(r.known, key)
	for i, k := range r.order {
		if k == key {
			r.order = append(r.order[:i], r.order[i+1:]...)
			return
		}
	}
}
