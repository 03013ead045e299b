package shellread

import (
	"strings"
)

// Limits of what is followed; beyond them a value counts as unknown.
const (
	maxAlternatives = 64    // values that one variable or word may have
	maxValue        = 65536 // bytes of one value
	maxBraces       = 256   // words of one brace expansion
)

// field is one word after expansion.
type field struct {
	lit  string  // its value, quotes removed
	pat  string  // the same as a pattern, literal special characters escaped
	glob bool    // pat holds active pattern characters
	open string  // why the value is not fully known; "" when it is
	kept bool    // quoted, so it stays even when it is empty
	from origin  // what made it
	file *string // for an open name of a file: what the file is known to hold
}

// origin says which expansions a field came from.
type origin uint8

const (
	fromVariable origin = 1 << iota
	fromSubstitution
	fromBraces
	fromSplitting // of a value in one word
	fromEnvironment
)

// value is what a variable holds: one of the alternatives, each a list of elements,
// or, when open says why, something that cannot be known.
type value struct {
	alts  [][]field
	open  string
	num   bool // what cannot be known is a number
	array bool
}

func unset() value { return value{alts: [][]field{nil}} }

func literal(s string) field {
	return field{lit: s, pat: escapePattern(s), kept: true}
}

func scalar(s string) value { return value{alts: [][]field{{literal(s)}}} }

func unknown(why string) value { return value{open: why} }

func number() value { return value{open: "a number", num: true} }

// or is a value that is either v or w.
func (v value) or(w value) value {
	out := value{alts: append(v.alts[:len(v.alts):len(v.alts)], w.alts...), array: v.array || w.array}
	out.open, out.num = v.open, v.num
	if w.open != "" {
		out.num = w.num && (v.open == "" || v.num)
		out.open = w.open
	}
	if len(out.alts) > maxAlternatives {
		out.alts, out.open, out.num = out.alts[:maxAlternatives], "it has many possible values", false
	}
	return out
}

// joined turns each alternative into one element, with sep between.
func (v value) joined(sep string) value {
	out := value{open: v.open, num: v.num}
	for _, list := range v.alts {
		out.alts = append(out.alts, []field{joinFields(list, sep)})
	}
	return out
}

func joinFields(list []field, sep string) field {
	if len(list) == 1 {
		return list[0]
	}
	var lit, pat strings.Builder
	out := field{kept: true}
	for i, f := range list {
		if i > 0 {
			lit.WriteString(sep)
			pat.WriteString(escapePattern(sep))
		}
		lit.WriteString(f.lit)
		pat.WriteString(f.pat)
		out.glob = out.glob || f.glob
		out.from |= f.from
		if f.open != "" {
			out.open = f.open
		}
	}
	out.lit, out.pat = lit.String(), pat.String()
	return out
}

// constant returns the only string that the value can be.
func (v value) constant() (string, bool) {
	if v.open != "" || len(v.alts) != 1 {
		return "", false
	}
	f := joinFields(v.alts[0], " ")
	return f.lit, f.open == ""
}

// empty reports whether an alternative is unset or empty.
func emptyFields(list []field) bool {
	for _, f := range list {
		if f.lit != "" || f.open != "" {
			return false
		}
	}
	return true
}

const patternSpecial = `*?[]\(){}|<>^~#`

// escapePattern makes s match only itself.
func escapePattern(s string) string {
	if !strings.ContainsAny(s, patternSpecial) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(patternSpecial, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// hasPattern reports whether unquoted text holds pattern characters.
func hasPattern(s string) bool { return strings.ContainsAny(s, "*?[") }

// builder puts the alternatives of one word together, part by part.
type builder struct {
	alts []*partial
	over string // why more alternatives exist than are kept
}

// partial is one alternative in the making.
type partial struct {
	done     []field
	lit, pat []byte
	cur      field
	some     bool // cur has begun
}

func newBuilder() *builder { return &builder{alts: []*partial{{}}} }

// text appends the same text to every alternative.
func (b *builder) text(lit, pat string, glob, quoted bool) {
	for _, p := range b.alts {
		p.lit = append(p.lit, lit...)
		p.pat = append(p.pat, pat...)
		p.cur.glob = p.cur.glob || glob
		p.cur.kept = p.cur.kept || quoted
		p.some = true
	}
}

// open marks every alternative as not fully known.
func (b *builder) open(why string, from origin) {
	for _, p := range b.alts {
		p.cur.open, p.some = why, true
		p.cur.from |= from
	}
}

// value appends each alternative of v to each alternative so far.
func (b *builder) value(v value, quoted bool, from origin) {
	lists := v.alts
	if v.open != "" {
		lists = append(lists[:len(lists):len(lists)], []field{{open: v.open, kept: quoted}})
	}
	if len(lists) == 1 {
		for _, p := range b.alts {
			p.append(lists[0], quoted, from)
		}
		return
	}
	var out []*partial
	for _, p := range b.alts {
		for _, list := range lists {
			if len(out) == maxAlternatives {
				b.over = "it has many possible values"
				break
			}
			q := p.clone()
			q.append(list, quoted, from)
			out = append(out, q)
		}
	}
	b.alts = out
}

func (p *partial) clone() *partial {
	q := *p
	q.done = append([]field(nil), p.done...)
	q.lit = append([]byte(nil), p.lit...)
	q.pat = append([]byte(nil), p.pat...)
	return &q
}

func (p *partial) append(list []field, quoted bool, from origin) {
	if quoted && len(list) > 0 {
		p.cur.kept = true
	}
	for i, f := range list {
		if i > 0 {
			p.flush()
			p.cur.kept = quoted
			from |= fromSplitting
		}
		p.lit = append(p.lit, f.lit...)
		p.pat = append(p.pat, f.pat...)
		p.cur.glob = p.cur.glob || f.glob
		p.cur.from |= from | f.from
		p.some = p.some || f.lit != "" || f.open != ""
		if f.open != "" {
			p.cur.open, p.cur.file = f.open, f.file
		}
	}
}

func (p *partial) flush() {
	if p.some || p.cur.kept {
		p.cur.lit, p.cur.pat = string(p.lit), string(p.pat)
		p.done = append(p.done, p.cur)
	}
	p.cur, p.some, p.lit, p.pat = field{}, false, p.lit[:0], p.pat[:0]
}

// finish returns the alternatives, each a list of words.
func (b *builder) finish() [][]field {
	out := make([][]field, 0, len(b.alts))
	for _, p := range b.alts {
		p.flush()
		out = append(out, p.done)
	}
	if b.over != "" {
		out = append(out, []field{{open: b.over}})
	}
	return out
}
