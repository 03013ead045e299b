package search

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// program is a regular expression as a nondeterministic automaton over the bytes of
// one line. It does not change and may be shared.
//
// Characters outside ASCII that stand in a class are taken for any run of bytes
// above 0x7F: the automaton then accepts more lines than the expression, and inexact
// says that a line with such bytes has to be checked with the expression itself.
type program struct {
	nodes   []node
	start   int32
	inexact bool
	classes [256]uint8 // bytes that no node tells apart have one class; line feed is classEnd
	members []byte     // a byte of each class
	looks   looks
}

// looks says which places of a line the expression asks about.
type looks struct{ start, word bool }

type nodeKind uint8

const (
	nodeFail  nodeKind = iota
	nodeMatch          // the expression has matched
	nodeSplit          // go on at out and at other
	nodeWhen           // go on at out where look holds
	nodeByte           // take a byte of set and go on at out
)

type node struct {
	kind       nodeKind
	out, other int32
	look       syntax.EmptyOp
	set        *byteSet
}

const (
	maxNodes = 4000
	classEnd = 0 // the class of the end of a line
)

// compileProgram returns nil when the automaton would be too large.
func compileProgram(tree *syntax.Regexp) *program {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > maxNodes/2 {
		return nil
	}
	p := &program{nodes: make([]node, len(prog.Inst)), start: int32(prog.Start)}
	for i := range prog.Inst {
		p.translate(i, &prog.Inst[i])
		if len(p.nodes) > maxNodes {
			return nil
		}
	}
	p.classify()
	return p
}

func (p *program) translate(i int, inst *syntax.Inst) {
	out := int32(inst.Out)
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		p.nodes[i] = node{kind: nodeSplit, out: out, other: int32(inst.Arg)}
	case syntax.InstCapture, syntax.InstNop:
		p.nodes[i] = node{kind: nodeSplit, out: out, other: out}
	case syntax.InstEmptyWidth:
		look := syntax.EmptyOp(inst.Arg)
		p.nodes[i] = node{kind: nodeWhen, out: out, look: look}
		p.looks.start = p.looks.start || look&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0
		p.looks.word = p.looks.word || look&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0
	case syntax.InstMatch:
		p.nodes[i] = node{kind: nodeMatch}
	case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
		p.nodes[i] = p.runes(inst, out)
	}
}

// runes makes the node for one character: bytes for ASCII, and what other
// characters need.
func (p *program) runes(inst *syntax.Inst, out int32) node {
	ascii := &byteSet{}
	some := false
	for c := range byte(utf8.RuneSelf) {
		if c != '\n' && inst.MatchRune(rune(c)) {
			ascii.add(c)
			some = true
		}
	}
	wide, exact := wideRunes(inst)
	result := node{}
	if some {
		result = node{kind: nodeByte, set: ascii, out: out}
	}
	if !exact {
		return p.either(result, p.wideRun(out))
	}
	for _, r := range wide {
		result = p.either(result, p.encoded(r, out))
	}
	return result
}

// wideRunes returns the characters outside ASCII that inst takes, when they are few
// enough to be spelt out.
func wideRunes(inst *syntax.Inst) (list []rune, exact bool) {
	const few = 4
	if len(inst.Rune) == 1 {
		list = append(list, inst.Rune[0])
		if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
			for r := unicode.SimpleFold(inst.Rune[0]); r != inst.Rune[0]; r = unicode.SimpleFold(r) {
				list = append(list, r)
			}
		}
	}
	for i := 0; i+1 < len(inst.Rune); i += 2 {
		for r := max(inst.Rune[i], utf8.RuneSelf); r <= inst.Rune[i+1]; r++ {
			if list = append(list, r); len(list) > few {
				return nil, false
			}
		}
	}
	wide := list[:0]
	for _, r := range list {
		if r == utf8.RuneError {
			return nil, false
		}
		if r >= utf8.RuneSelf {
			wide = append(wide, r)
		}
	}
	return wide, true
}

func (p *program) add(n node) int32 {
	p.nodes = append(p.nodes, n)
	return int32(len(p.nodes) - 1)
}

func (p *program) either(a, b node) node {
	if a.kind == nodeFail {
		return b
	}
	return node{kind: nodeSplit, out: p.add(a), other: p.add(b)}
}

// encoded takes exactly the bytes of r.
func (p *program) encoded(r rune, out int32) node {
	text := utf8.AppendRune(nil, r)
	var n node
	for i := len(text) - 1; i >= 0; i-- {
		set := &byteSet{}
		set.add(text[i])
		n = node{kind: nodeByte, set: set, out: out}
		if i > 0 {
			out = p.add(n)
		}
	}
	return n
}

// wideRun takes one or more bytes above 0x7F.
func (p *program) wideRun(out int32) node {
	p.inexact = true
	set := &byteSet{}
	set.addRange(utf8.RuneSelf, 0xFF)
	again := p.add(node{})
	first := node{kind: nodeByte, set: set, out: again}
	p.nodes[again] = node{kind: nodeSplit, out: out, other: p.add(first)}
	return first
}

// byteSet is a set of bytes.
type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }
func (s *byteSet) add(c byte)      { s[c>>6] |= 1 << (c & 63) }

func (s *byteSet) addRange(lo, hi byte) {
	for c := int(lo); c <= int(hi); c++ {
		s.add(byte(c))
	}
}

// classify puts bytes that behave alike into one class.
func (p *program) classify() {
	distinct := map[byteSet]bool{}
	for _, n := range p.nodes {
		if n.kind == nodeByte {
			distinct[*n.set] = true
		}
	}
	if p.looks.word {
		word := byteSet{}
		for c := range 256 {
			if isWord(byte(c)) {
				word.add(byte(c))
			}
		}
		distinct[word] = true
	}
	var class [256]int
	for set := range distinct {
		class = refine(class, &set)
	}
	p.number(class)
}

// refine splits each class into the bytes that are in set and those that are not.
func refine(class [256]int, set *byteSet) [256]int {
	var numbers [256][2]int // plus one; 0 is not given yet
	count := 0
	for c := range class {
		side := 0
		if set.has(byte(c)) {
			side = 1
		}
		number := &numbers[class[c]][side]
		if *number == 0 {
			count++
			*number = count
		}
		class[c] = *number - 1
	}
	return class
}

// number keeps class 0 for the line feed and gives the others dense numbers.
func (p *program) number(class [256]int) {
	var numbers [256]uint8
	p.members = []byte{'\n'}
	for c := range class {
		if c == '\n' {
			continue
		}
		number := &numbers[class[c]]
		if *number == 0 {
			*number = uint8(len(p.members))
			p.members = append(p.members, byte(c))
		}
		p.classes[c] = *number
	}
	p.classes['\n'] = classEnd
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
