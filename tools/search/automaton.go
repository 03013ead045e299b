package search

import (
	"regexp/syntax"
	"slices"
)

// automaton runs a program deterministically: each state is a set of nodes, made
// when it is first met, so that a byte costs one step through a table. One
// goroutine uses it.
//
// What a line's edges and word edges demand is decided when the next byte is known,
// so a match shows one byte late.
type automaton struct {
	*program
	width  int     // entries of a state in table
	table  []int32 // next state by state and class: its offset in table, or one of the marks
	states []state
	known  map[string]int32
	line   int32 // state at the start of a line
	idle   int32 // state in which nothing has begun and no word precedes
	stay   [256]bool
	kept   int // nodes in states
	work   int // nodes followed so far

	seen []uint32 // generation in which a node was reached
	gen  uint32
	todo []int32
	next []int32
}

// state is a set of nodes and the kind of the byte before.
type state struct {
	nodes []int32
	after before
}

type before uint8

const (
	afterStart before = iota
	afterWord
	afterOther
)

const (
	markUnknown = -1
	markMatch   = -2

	maxTable = 1 << 18 // entries
	maxKept  = 1 << 18 // nodes in states
	maxWork  = 1 << 22 // nodes followed while states were made
)

func newAutomaton(p *program) *automaton {
	a := &automaton{program: p, width: len(p.members), seen: make([]uint32, len(p.nodes))}
	a.reset()
	return a
}

func (a *automaton) reset() {
	a.table, a.states, a.known, a.kept = a.table[:0], a.states[:0], map[string]int32{}, 0
	a.line = a.state(nil, a.kind(afterStart))
	a.idle = a.state(nil, a.kind(afterOther))
	for c := range 256 {
		a.stay[c] = a.step(a.idle, int(a.classes[c])) == a.idle
	}
}

// kind drops the differences that the expression does not ask about.
func (a *automaton) kind(b before) before {
	switch {
	case b == afterStart && !a.looks.start, b == afterWord && !a.looks.word:
		return afterOther
	}
	return b
}

// state returns the offset of the state for a list of nodes, which it sorts.
func (a *automaton) state(nodes []int32, after before) int32 {
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	key := make([]byte, 0, 1+2*len(nodes))
	key = append(key, byte(after))
	for _, n := range nodes {
		key = append(key, byte(n), byte(n>>8))
	}
	if s, ok := a.known[string(key)]; ok {
		return s
	}
	s := int32(len(a.table))
	a.known[string(key)] = s
	a.states = append(a.states, state{slices.Clone(nodes), after})
	a.kept += 16 + len(nodes)
	for range a.width {
		a.table = append(a.table, markUnknown)
	}
	return s
}

// find returns the index of the byte at which a line of buf is first known to match,
// at or after from, which begins a line. That byte belongs to the line or ends it;
// the index is len(buf) when the line has no end. It returns -1 when no line matches.
func (a *automaton) find(buf []byte, from int) int {
	s, idle := a.line, a.idle
	classes, stay, table := &a.classes, &a.stay, a.table
	for i := from; i < len(buf); i++ {
		if s == idle {
			for i < len(buf) && stay[buf[i]] {
				i++
			}
			if i == len(buf) {
				break
			}
		}
		class := int(classes[buf[i]])
		n := table[int(s)+class]
		if n < 0 {
			if n == markUnknown {
				n = a.step(s, class)
				table = a.table
			}
			if n == markMatch {
				return i
			}
		}
		s = n
	}
	if len(buf) > from && buf[len(buf)-1] == '\n' {
		return -1
	}
	if a.step(s, classEnd) == markMatch {
		return len(buf)
	}
	return -1
}

// worn reports whether making states took so long that the expression itself is the
// better way.
func (a *automaton) worn() bool { return a.work > maxWork }

// step returns where a state goes with a byte of a class, and keeps the answer.
func (a *automaton) step(s int32, class int) int32 {
	if n := a.table[int(s)+class]; n != markUnknown {
		return n
	}
	from := a.states[int(s)/a.width]
	nodes, matched := a.advance(from, class)
	if matched {
		a.table[int(s)+class] = markMatch
		return markMatch
	}
	after := a.kind(afterOther)
	switch {
	case class == classEnd:
		after = a.kind(afterStart)
	case isWord(a.members[class]):
		after = a.kind(afterWord)
	}
	if len(a.table) > maxTable || a.kept > maxKept {
		nodes = slices.Clone(nodes)
		a.reset()
		return a.state(nodes, after)
	}
	n := a.state(nodes, after)
	a.table[int(s)+class] = n
	return n
}

// advance follows all nodes of a state over one byte. The result is valid until the
// next call.
func (a *automaton) advance(from state, class int) (nodes []int32, matched bool) {
	holds := a.holds(from.after, class)
	a.gen++
	a.todo = append(append(a.todo[:0], from.nodes...), a.start)
	a.next = a.next[:0]
	member := a.members[class]
	for len(a.todo) > 0 {
		at := a.todo[len(a.todo)-1]
		a.todo = a.todo[:len(a.todo)-1]
		if a.seen[at] == a.gen {
			continue
		}
		a.seen[at] = a.gen
		a.work++
		switch n := &a.nodes[at]; n.kind {
		case nodeMatch:
			return nil, true
		case nodeSplit:
			a.todo = append(a.todo, n.other, n.out)
		case nodeWhen:
			if n.look&^holds == 0 {
				a.todo = append(a.todo, n.out)
			}
		case nodeByte:
			if class != classEnd && n.set.has(member) {
				a.next = append(a.next, n.out)
			}
		}
	}
	return a.next, false
}

// holds returns what is true of the place between two bytes.
func (a *automaton) holds(after before, class int) syntax.EmptyOp {
	var holds syntax.EmptyOp
	if after == afterStart {
		holds |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if class == classEnd {
		holds |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if (after == afterWord) != (class != classEnd && isWord(a.members[class])) {
		return holds | syntax.EmptyWordBoundary
	}
	return holds | syntax.EmptyNoWordBoundary
}
