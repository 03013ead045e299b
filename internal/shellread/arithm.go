package shellread

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithm reads an arithmetic expression. Shells evaluate the values of variables in
// it once more, so substitutions in subscripts held by a value run.
func (r *reader) arithm(s *scope, p place, x syntax.ArithmExpr) value {
	if !r.enter(p, "an arithmetic expression") {
		return number()
	}
	p.depth++
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		r.arithmWord(s, p, x)
	case *syntax.BinaryArithm:
		r.arithm(s, p, x.X)
		r.arithm(s, p, x.Y)
		if w, ok := x.X.(*syntax.Word); ok && isAssignOp(x.Op) && syntax.ValidName(w.Lit()) {
			s.set(w.Lit(), number(), number())
		}
	case *syntax.UnaryArithm:
		r.arithm(s, p, x.X)
	case *syntax.ParenArithm:
		r.arithm(s, p, x.X)
	case *syntax.FlagsArithm:
		if x.Flags != nil && strings.Contains(x.Flags.Value, "e") {
			r.note("a subscript with flags")
		}
		if x.X != nil {
			r.arithm(s, p, x.X)
		}
	}
	return number()
}

func (r *reader) arithmWord(s *scope, p place, w *syntax.Word) {
	for _, list := range r.word(s, p, w) {
		for _, f := range list {
			r.evaluated(s, p, f.lit)
			if syntax.ValidName(f.lit) && f.open == "" {
				r.evaluatedName(s, p, f.lit)
			}
			if f.open != "" && f.from != 0 && f.open != "a number" {
				r.note("arithmetic on a value that is not known: its subscripts could run commands")
			}
		}
	}
}

// evaluatedName reads what the value of a variable runs when it is evaluated.
func (r *reader) evaluatedName(s *scope, p place, name string) {
	v := r.lookup(s, p, name)
	for _, list := range v.alts {
		for _, f := range list {
			r.evaluated(s, p, f.lit)
		}
	}
	if v.open != "" && !v.num {
		r.note("arithmetic on a value that is not known: its subscripts could run commands")
	}
}

func (r *reader) evaluated(s *scope, p place, text string) {
	if strings.Contains(text, "[") && strings.ContainsAny(text, "$`") {
		r.note("a subscript in a value runs what its $(…) holds")
		r.document(s, p, text)
	}
}

func isAssignOp(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
		return true
	}
	return false
}

// test reads the words of [[ … ]].
func (r *reader) test(s *scope, p place, x syntax.TestExpr) {
	if !r.enter(p, "a test") {
		return
	}
	p.depth++
	switch x := x.(type) {
	case *syntax.Word:
		r.word(s, p, x)
	case *syntax.UnaryTest:
		for _, w := range r.testWords(s, p, x.X) {
			if x.Op == syntax.TsVarSet {
				r.evaluated(s, p, w.Value)
			}
		}
	case *syntax.BinaryTest:
		both := append(r.testWords(s, p, x.X), r.testWords(s, p, x.Y)...)
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, w := range both {
				r.evaluated(s, p, w.Value)
				if w.Known && syntax.ValidName(w.Value) {
					r.evaluatedName(s, p, w.Value)
				}
			}
		}
	case *syntax.ParenTest:
		r.test(s, p, x.X)
	}
}

func (r *reader) testWords(s *scope, p place, x syntax.TestExpr) []Word {
	if w, ok := x.(*syntax.Word); ok {
		return r.words(s, p, w)
	}
	r.test(s, p, x)
	return nil
}
