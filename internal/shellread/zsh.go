package shellread

import (
	"strings"
)

// group reads (…) in a zsh word: file name qualifiers at its end, alternatives
// elsewhere.
func (r *reader) group(s *scope, p place, b *builder, text string, last bool) {
	inner := strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
	if last && !strings.ContainsAny(inner, "|(") {
		r.qualifiers(s, p, b, text, inner)
		return
	}
	if strings.ContainsAny(inner, "(") || strings.ContainsAny(inner, "$`") {
		b.open("a file name pattern that is not followed", 0)
		return
	}
	v := value{}
	for _, one := range strings.Split(inner, "|") {
		lit, pat, _ := unquoted(one)
		v.alts = append(v.alts, []field{{lit: lit, pat: pat, glob: true}})
	}
	b.value(v, false, 0)
}

// qualifiers reads zsh's glob qualifiers. Some run code, some select files.
func (r *reader) qualifiers(s *scope, p place, b *builder, text, inner string) {
	inner = strings.TrimPrefix(inner, "#q")
	flags, _, _ := strings.Cut(inner, ":")
	if at := strings.IndexAny(flags, "e+"); at >= 0 {
		r.opaque(text, "zsh runs code in a file name qualifier")
		code := inner[strings.IndexAny(inner, "e+")+1:]
		if len(code) > 1 && inner[at] == 'e' {
			code, _, _ = strings.Cut(code[1:], code[:1])
		}
		r.text(s.child(), p.deeper(), strings.Trim(code, `'"`))
		b.open("files that code selects", 0)
		return
	}
	if strings.Trim(flags, "NDTM./on") != "" {
		b.open("files that a qualifier selects", 0)
		return
	}
	b.text("", "", true, false)
}
