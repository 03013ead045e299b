package termtext

import (
	"fmt"
	"unicode"
)

// The kinds that a person is told of.
const (
	kindReorders   = "reorders text"
	kindInvisible  = "invisible"
	kindBlank      = "draws a blank"
	kindVariation  = "variation selectors"
	kindTag        = "invisible tag characters"
	kindPrivate    = "private use characters"
	kindUnassigned = "unassigned code points"
)

// kindOf names what is wrong with a rune that is not shown.
func kindOf(r rune) string {
	switch {
	case unicode.Is(unicode.Bidi_Control, r):
		return kindReorders
	case unicode.Is(unicode.Variation_Selector, r):
		return kindVariation
	case r >= 0xE0000 && r <= 0xE007F:
		return kindTag
	case unicode.Is(unicode.Co, r):
		return kindPrivate
	case drawsBlank(r), r == 0x2028, r == 0x2029:
		return kindBlank
	case unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Cf):
		return kindInvisible
	}
	return kindUnassigned
}

// hiddenName is the kind for those with many members, the rune and its kind for
// the others.
func hiddenName(r rune, kind string) string {
	switch kind {
	case kindReorders, kindInvisible, kindBlank:
		return fmt.Sprintf("<U+%04X> %s", r, kind)
	}
	return kind
}

func controlName(r rune) string {
	if r == 0x1B || r == 0x9B {
		return fmt.Sprintf(`\x%02x terminal escape`, r)
	}
	return fmt.Sprintf(`\x%02x control character`, r)
}
