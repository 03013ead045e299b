package shellread

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// braces expands {a,b} and {1..3} to the words they stand for, as lists of parts. It
// reports false when there are too many.
func (r *reader) braces(p place, w *syntax.Word) ([][]syntax.WordPart, bool) {
	some := false
	for _, part := range w.Parts {
		switch x := part.(type) {
		case *syntax.Lit:
			if p.dialect == Zsh && strings.HasPrefix(x.Value, "(") && strings.Contains(x.Value, "{") {
				return [][]syntax.WordPart{w.Parts}, true // code in a qualifier
			}
			some = some || strings.Contains(x.Value, "{")
		case *syntax.BraceExp:
			some = true
		}
	}
	if !some {
		return [][]syntax.WordPart{w.Parts}, true
	}
	// A copy: the tree may be read again, and positions must stay.
	word := &syntax.Word{Parts: append([]syntax.WordPart(nil), w.Parts...)}
	syntax.SplitBraces(word)
	return braceWords(word.Parts)
}

func braceWords(parts []syntax.WordPart) ([][]syntax.WordPart, bool) {
	out := [][]syntax.WordPart{nil}
	for _, part := range parts {
		exp, ok := part.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], part)
			}
			continue
		}
		choices, ok := braceChoices(exp)
		if !ok || len(choices)*len(out) > maxBraces {
			return nil, false
		}
		var next [][]syntax.WordPart
		for _, before := range out {
			for _, choice := range choices {
				next = append(next, append(before[:len(before):len(before)], choice...))
			}
		}
		out = next
	}
	return out, true
}

func braceChoices(exp *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	if exp.Sequence {
		return braceSequence(exp)
	}
	var out [][]syntax.WordPart
	for _, elem := range exp.Elems {
		words, ok := braceWords(elem.Parts)
		if !ok || len(out)+len(words) > maxBraces {
			return nil, false
		}
		out = append(out, words...)
	}
	return out, true
}

func braceSequence(exp *syntax.BraceExp) ([][]syntax.WordPart, bool) {
	first, last, step := exp.Elems[0].Lit(), exp.Elems[1].Lit(), 1
	if len(exp.Elems) > 2 {
		step, _ = strconv.Atoi(exp.Elems[2].Lit())
		step = max(step, -step, 1)
	}
	from, err1 := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	letters := err1 != nil || err2 != nil
	if letters {
		if len(first) != 1 || len(last) != 1 {
			return nil, false
		}
		from, to = int(first[0]), int(last[0])
	}
	count := max(from-to, to-from)/step + 1
	if count <= 0 || count > maxBraces {
		return nil, false
	}
	if to < from {
		step = -step
	}
	var out [][]syntax.WordPart
	for i := 0; i < count; i++ {
		text := strconv.Itoa(from + i*step)
		if letters {
			text = string(rune(from + i*step))
		}
		out = append(out, []syntax.WordPart{&syntax.Lit{Value: text}})
	}
	return out, true
}
