package search

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// maxNeedles bounds the texts that are looked for one by one before a query is left
// to the automaton.
const maxNeedles = 6

// requiredTexts returns texts of which every match of re holds at least one, found
// to be the rarest such set, or nothing.
func requiredTexts(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		text := string(re.Rune)
		if re.Flags&syntax.FoldCase != 0 && !caseless(re.Rune) || strings.ContainsRune(text, utf8.RuneError) {
			return nil
		}
		return []string{text}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if texts := requiredTexts(sub); worth(texts) > worth(best) {
				best = texts
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			texts := requiredTexts(sub)
			if texts == nil || len(all)+len(texts) > maxNeedles {
				return nil
			}
			all = append(all, texts...)
		}
		return all
	case syntax.OpCapture, syntax.OpPlus:
		return requiredTexts(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredTexts(re.Sub[0])
		}
	}
	return nil
}

// worth estimates how much a set of texts narrows a search: by its most frequent
// one, less what each further one costs.
func worth(texts []string) int {
	if len(texts) == 0 {
		return 0
	}
	least := rarity(texts[0])
	for _, text := range texts[1:] {
		least = min(least, rarity(text))
	}
	return least - 30*(len(texts)-1)
}

// caseless reports whether letter case makes no difference to any of the runes.
func caseless(runes []rune) bool {
	for _, r := range runes {
		if r >= utf8.RuneSelf || 'a' <= r|0x20 && r|0x20 <= 'z' {
			return false
		}
	}
	return true
}

// frequent lists bytes from the most to the least frequent in source text; the
// others are rarer still.
const frequent = " etnrasoi\tlcdpumf.hg_,(b)\"-=y/v0:;w\n1x*{}k2SET'>C<RANI[]3q#DPL$FMOBj4+85z&\\U6V97H@WG!|?%`XKY^QJ~Z"

// commonness is 0 for a rare byte and grows to about 100 for the most frequent.
func commonness(c byte) int {
	if at := strings.IndexByte(frequent, c); at >= 0 {
		return len(frequent) - at
	}
	return 0
}

// rarity estimates how rarely a text occurs.
func rarity(text string) int {
	sum := 0
	for i := range len(text) {
		sum += 130 - commonness(text[i])
	}
	return sum
}

// leastWorth is what a set of texts must reach so that looking for it first pays.
const leastWorth = 160

// needle finds a text by the rarest of its bytes.
type needle struct {
	text []byte
	rare int // index of the rarest byte
}

// newNeedles returns nil for texts that occur everywhere.
func newNeedles(texts []string) []needle {
	if worth(texts) < leastWorth {
		return nil
	}
	needles := make([]needle, len(texts))
	for i, text := range texts {
		needles[i] = newNeedle(text)
	}
	return needles
}

func newNeedle(text string) needle {
	n := needle{text: []byte(text)}
	for i := range n.text {
		if commonness(n.text[i]) < commonness(n.text[n.rare]) {
			n.rare = i
		}
	}
	return n
}

// index returns where the text begins in buf at or after from, or -1.
func (n *needle) index(buf []byte, from int) int {
	rare := n.text[n.rare]
	misses := 0
	for at := from + n.rare; ; at++ {
		if at >= len(buf) {
			return -1
		}
		skip := bytes.IndexByte(buf[at:], rare)
		if skip < 0 {
			return -1
		}
		at += skip
		start := at - n.rare
		if len(buf)-start < len(n.text) {
			return -1
		}
		if bytes.Equal(buf[start:start+len(n.text)], n.text) {
			return start
		}
		// The byte is frequent here: compare at every place instead.
		if misses++; misses > 4+(at-from)>>6 {
			rest := bytes.Index(buf[start+1:], n.text)
			if rest < 0 {
				return -1
			}
			return start + 1 + rest
		}
	}
}
