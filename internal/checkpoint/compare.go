package checkpoint

import (
	"context"
	"strings"
)

// difference is one path that is not the same in two states. Of what is not there
// the kind is absent.
type difference struct {
	path     string
	old, new entry
}

// compare calls emit for each path that differs between the directories a and b,
// parents before what is in them. What one of the states does not know is no
// difference.
func (s *store) compare(ctx context.Context, rel string, a, b *dir, emit func(difference)) error {
	if a == b || !a.hash.IsZero() && a.hash == b.hash {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, j := 0, 0; i < len(a.entries) || j < len(b.entries); {
		var x, y *entry
		switch order := nameOrder(a.entries, i, b.entries, j); {
		case order < 0:
			x, y = &a.entries[i], b.missing()
			i++
		case order > 0:
			x, y = a.missing(), &b.entries[j]
			j++
		default:
			x, y = &a.entries[i], &b.entries[j]
			i, j = i+1, j+1
		}
		if x == nil || y == nil {
			continue
		}
		if err := s.pair(ctx, rel, x, y, emit); err != nil {
			return err
		}
	}
	return nil
}

func nameOrder(a []entry, i int, b []entry, j int) int {
	switch {
	case i == len(a):
		return 1
	case j == len(b):
		return -1
	}
	return strings.Compare(a[i].name, b[j].name)
}

// missing is what a name stands for that has no entry: nothing, or nil when that is
// not known.
func (d *dir) missing() *entry {
	if d.partial {
		return nil
	}
	return &entry{kind: absent}
}

func (s *store) pair(ctx context.Context, rel string, x, y *entry, emit func(difference)) error {
	if x.same(y) {
		return nil
	}
	rel = joinPath(rel, max(x.name, y.name))
	if !x.alike(y) {
		emit(difference{rel, *x, *y})
	}
	if x.kind == unkept || y.kind == unkept {
		return nil
	}
	old, err := s.inside(x)
	if err != nil {
		return err
	}
	now, err := s.inside(y)
	if err != nil {
		return err
	}
	return s.compare(ctx, rel, old, now, emit)
}

// inside returns what is in an entry: nothing, unless it is a directory.
func (s *store) inside(e *entry) (*dir, error) {
	if e.kind != folder {
		return &dir{}, nil
	}
	return s.below(e)
}

// alike is same without regard to what is in a directory.
func (e *entry) alike(o *entry) bool {
	if e.kind == folder && o.kind == folder {
		return e.sameAttributes(o)
	}
	return e.same(o)
}

// lookup returns what a state says of a path. It is false when the state does not
// know, or knows only that something is there.
func (s *store) lookup(d *dir, rel string) (entry, bool, error) {
	for {
		name, rest, more := strings.Cut(rel, "/")
		e := d.find(name)
		switch {
		case e == nil:
			return entry{name: name, kind: absent}, !d.partial, nil
		case e.kind == unkept:
			return *e, false, nil
		case !more:
			return *e, true, nil
		case e.kind != folder:
			return entry{kind: absent}, true, nil
		}
		var err error
		if d, err = s.below(e); err != nil {
			return entry{}, false, err
		}
		rel = rest
	}
}

// overlay returns the state d in which everything that kept knows stands as it is
// there. Both are states in memory.
func overlay(d, kept *dir) *dir {
	for i := range kept.entries {
		k := &kept.entries[i]
		have := d.find(k.name)
		switch {
		case k.kind == folder && have != nil && have.kind == folder:
			e := *have
			if e.dir = overlay(have.dir, k.dir); e.dir != have.dir {
				e.hash = e.dir.hash
				d = d.with(e)
			}
		case k.kind == absent && !d.partial:
			if have != nil {
				d = d.without(k.name)
			}
		default:
			d = d.with(*k)
		}
	}
	return d
}

// pin returns the state d that also knows the names in kept, so that the next scan
// looks at them.
func pin(d, kept *dir) *dir {
	for i := range kept.entries {
		k := &kept.entries[i]
		have := d.find(k.name)
		known := have != nil && have.kind != unkept
		switch {
		case known && k.dir != nil && (have.kind == folder || have.kind == absent):
			e := *have
			if e.dir == nil {
				e.dir = emptyState()
			}
			if e.dir = pin(e.dir, k.dir); e.dir != have.dir {
				if e.kind == folder {
					e.hash = e.dir.hash
				}
				d = d.with(e)
			}
		case known && have.ignored && !have.pinned:
			e := *have
			e.pinned = true
			d = d.with(e)
		case !known && (d.partial || have != nil):
			d = d.with(k.asPinned())
		}
	}
	return d
}

// asPinned is a name that is known of and was not looked at.
func (e *entry) asPinned() entry {
	p := entry{name: e.name, kind: absent, pinned: true}
	if e.dir == nil {
		return p
	}
	p.dir = pin(emptyState(), e.dir)
	if e.kind == folder {
		p.kind, p.mode, p.uid, p.gid = folder, e.mode, e.uid, e.gid
		p.stamp = e.stamp
	}
	return p
}

// insert returns the partial state d with a chain of entries, the outermost first,
// each in the one before. What d already knows stays.
func insert(d *dir, chain []entry) *dir {
	e := chain[0]
	have := d.find(e.name)
	if have != nil {
		e = *have
	}
	if len(chain) > 1 && (e.kind == folder || e.kind == absent) {
		below := e.dir
		if below == nil {
			below = emptyState()
		}
		if e.dir = insert(below, chain[1:]); e.kind == folder {
			e.hash = e.dir.hash
		}
	}
	if have != nil && *have == e {
		return d
	}
	return d.with(e)
}
