package repl

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"zcoder/internal/termtext"
)

// vt is a small model of a terminal: what we write, and no more. It wraps late, as
// terminals do, and does not reflow.
type vt struct {
	cols, rows int
	grid       [][]string // one entry a cell; "" is the second half of a wide one
	x, y       int
	wrap       bool // the next rune goes to the next row
	scrolled   []string
	main       *vt // the usual screen while the alternate one is shown
	modes      map[string]bool
	clipboard  string
	bells      int
	unknown    []string
	pending    string // an unfinished sequence
}

func newVT(cols, rows int) *vt {
	v := &vt{cols: cols, rows: rows, modes: map[string]bool{"?25": true}}
	v.clear()
	return v
}

func (v *vt) clear() {
	v.grid = nil
	for range v.rows {
		v.grid = append(v.grid, v.blank())
	}
}

func (v *vt) blank() []string {
	row := make([]string, v.cols)
	for i := range row {
		row[i] = " "
	}
	return row
}

func (v *vt) resize(cols, rows int) {
	old := v.grid
	v.cols, v.rows = cols, rows
	v.clear()
	drop := max(0, v.y-rows+1)
	for i, row := range old[:drop] {
		_ = i
		v.scrolled = append(v.scrolled, rowText(row))
	}
	for i, row := range old[drop:] {
		if i < rows {
			copy(v.grid[i], row)
		}
	}
	v.y -= drop
	v.x, v.wrap = min(v.x, cols-1), false
}

// Write feeds bytes.
func (v *vt) write(p string) {
	p = v.pending + p
	v.pending = ""
	for p != "" {
		n := v.step(p)
		if n == 0 {
			v.pending = p
			return
		}
		p = p[n:]
	}
}

func (v *vt) step(p string) int {
	switch c := p[0]; c {
	case '\r':
		v.x, v.wrap = 0, false
	case '\n':
		v.down()
	case '\b':
		v.x, v.wrap = max(v.x-1, 0), false
	case '\t':
		v.x = min(v.x/8*8+8, v.cols-1)
	case 0x07:
		v.bells++
	case 0x0f:
	case 0x1b:
		return v.escape(p)
	default:
		if c < 0x20 {
			v.unknown = append(v.unknown, fmt.Sprintf("%q", c))
			return 1
		}
		return v.text(p)
	}
	return 1
}

func (v *vt) text(p string) int {
	if !utf8.FullRuneInString(p) {
		return 0
	}
	n := clusterLen(p)
	cluster := p[:n]
	width := termtext.Width(cluster)
	if width == 0 {
		return n
	}
	if v.wrap || v.x+width > v.cols {
		v.x, v.wrap = 0, false
		v.down()
	}
	v.grid[v.y][v.x] = cluster
	for i := 1; i < width; i++ {
		v.grid[v.y][v.x+i] = ""
	}
	v.x += width
	if v.x >= v.cols {
		v.x, v.wrap = v.cols-1, true
	}
	return n
}

func (v *vt) down() {
	v.wrap = false
	if v.y < v.rows-1 {
		v.y++
		return
	}
	if v.main == nil {
		v.scrolled = append(v.scrolled, rowText(v.grid[0]))
	}
	v.grid = append(v.grid[1:], v.blank())
}

func (v *vt) escape(p string) int {
	if len(p) < 2 {
		return 0
	}
	switch p[1] {
	case '[':
		for i := 2; i < len(p); i++ {
			if p[i] >= 0x40 && p[i] < 0x7f {
				v.csi(p[i], p[2:i])
				return i + 1
			}
		}
		return 0
	case ']':
		end := strings.IndexByte(p, 0x07)
		if end < 0 {
			return 0
		}
		if data, ok := strings.CutPrefix(p[2:end], "52;c;"); ok {
			v.clipboard = data
		} else {
			v.unknown = append(v.unknown, p[:end])
		}
		return end + 1
	case '(':
		return min(len(p), 3)
	case '>':
		return 2
	}
	v.unknown = append(v.unknown, fmt.Sprintf("%q", p[:2]))
	return 2
}

func (v *vt) csi(final byte, params string) {
	n, _ := strconv.Atoi(params)
	v.wrap = v.wrap && final == 'm'
	switch final {
	case 'm':
	case 'A':
		v.y = max(v.y-max(n, 1), 0)
	case 'C':
		v.x = min(v.x+max(n, 1), v.cols-1)
	case 'H':
		v.x, v.y = 0, 0
	case 'J':
		if n == 2 {
			v.clear()
			return
		}
		v.eraseRow()
		for i := v.y + 1; i < v.rows; i++ {
			v.grid[i] = v.blank()
		}
	case 'K':
		v.eraseRow()
	case 'h', 'l':
		v.mode(params, final == 'h')
	default:
		v.unknown = append(v.unknown, params+string(final))
	}
}

func (v *vt) eraseRow() { copy(v.grid[v.y][v.x:], v.blank()) }

func (v *vt) mode(name string, on bool) {
	v.modes[name] = on
	if name != "?1049" {
		return
	}
	if on && v.main == nil {
		saved := *v
		v.main = &saved
		v.clear()
	}
	if !on && v.main != nil {
		m := v.main
		if m.cols != v.cols || m.rows != v.rows {
			m.resize(v.cols, v.rows)
		}
		v.grid, v.x, v.y, v.wrap, v.scrolled, v.main = m.grid, m.x, m.y, m.wrap, m.scrolled, nil
	}
}

func rowText(row []string) string { return strings.TrimRight(strings.Join(row, ""), " ") }

// screenText is what is visible, without the empty rows at its end.
func (v *vt) screenText() string {
	var rows []string
	for _, row := range v.grid {
		rows = append(rows, rowText(row))
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// all is the scrollback and what is visible.
func (v *vt) all() string {
	return strings.TrimLeft(strings.Join(append(append([]string(nil), v.scrolled...), v.screenText()), "\n"), "\n")
}

func (v *vt) cursorRow() string { return rowText(v.grid[v.y]) }

// testScreen is a screen that writes to a vt.
func testScreen(cols, rows int) (*screen, *vt) {
	v := newVT(cols, rows)
	s := &screen{out: vtWriter{v}, size: func() (int, int) { return v.cols, v.rows }}
	return s, v
}

type vtWriter struct{ v *vt }

func (w vtWriter) Write(p []byte) (int, error) {
	w.v.write(string(p))
	return len(p), nil
}

func promptRegion(s *screen, text string) {
	s.setRegion(region{[]string{"> " + text, "status"}, 0, 2 + len(text)})
	s.flush()
}

func TestScreen(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *screen)
		want string
	}{
		{"text", func(s *screen) { s.print("one\ntwo") }, "one\ntwo"},
		{"region after text", func(s *screen) { s.print("one\n"); promptRegion(s, "x") }, "one\n> x\nstatus"},
		{"text above the region", func(s *screen) { promptRegion(s, "x"); s.print("one\n"); s.flush() }, "one\n> x\nstatus"},
		{"open line goes on", func(s *screen) {
			s.print("on")
			promptRegion(s, "x")
			s.print("e\ntwo\n")
		}, "one\ntwo\n> x\nstatus"},
		{"held line", func(s *screen) {
			s.setHold(true)
			promptRegion(s, "x")
			s.print("one\ntw")
			s.flush()
			s.print("o\nth")
		}, "one\ntwo\n> x\nstatus"},
		{"held line is freed", func(s *screen) {
			s.setHold(true)
			promptRegion(s, "x")
			s.print("one\ntw")
			s.setHold(false)
			s.setRegion(region{})
		}, "one\ntw"},
		{"full row", func(s *screen) {
			s.print("0123456789")
			promptRegion(s, "x")
			s.print("ab\n")
		}, "0123456789\nab\n> x\nstatus"},
		{"full row that ends", func(s *screen) {
			s.print("0123456789")
			promptRegion(s, "x")
			s.print("\nab\n")
		}, "0123456789\nab\n> x\nstatus"},
		{"full row, region twice", func(s *screen) {
			s.print("0123456789")
			promptRegion(s, "x")
			promptRegion(s, "xy")
			s.setRegion(region{})
			s.flush()
			promptRegion(s, "z")
			s.print("ab")
		}, "0123456789\nab\n> z\nstatus"},
		{"wide letters at the margin", func(s *screen) {
			s.print("12345678漢字")
			promptRegion(s, "x")
			s.print("ok\n")
		}, "12345678漢\n字ok\n> x\nstatus"},
		{"tab", func(s *screen) {
			s.print("a\t")
			promptRegion(s, "x")
			s.print("b\n")
		}, "a       b\n> x\nstatus"},
		{"styled open line", func(s *screen) {
			s.print("\x1b[2mab\x1b[0m")
			promptRegion(s, "x")
			s.print("cd\n")
		}, "abcd\n> x\nstatus"},
		{"away", func(s *screen) {
			s.print("one")
			promptRegion(s, "x")
			s.leave()
			s.print(" more\ntwo\n")
			s.flush()
			s.comeBack()
		}, "one more\ntwo\n> x\nstatus"},
		{"lines of their own", func(s *screen) {
			s.print("open")
			s.println("line")
			s.println("line2")
		}, "open\nline\nline2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, v := testScreen(10, 8)
			test.do(s)
			s.flush()
			if got := v.all(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if len(v.unknown) > 0 {
				t.Errorf("unknown output %q", v.unknown)
			}
		})
	}
}

// FuzzScreen checks that the text that scrolled and was shown is the text that was
// printed, whatever is drawn below it in between.
func FuzzScreen(f *testing.F) {
	f.Add("one\ntwo three four five six\n", "abc", 3)
	f.Add("0123456789\n0123456789", "漢字", 1)
	f.Add("12345678漢字\n", "", 2)
	f.Fuzz(func(t *testing.T, text, draft string, step int) {
		text = strings.ReplaceAll(termtext.Safe(text), "\t", " ")
		draft = termtext.Line(draft)
		if step < 1 || strings.ContainsFunc(text, unicode.IsMark) || len(text) > 500 || len(draft) > 50 || termtext.Width(text) != plainWidth(text) {
			return
		}
		s, v := testScreen(10, 12)
		c := newCells()
		line := c.fromText(draft)
		for i, n := 0, 0; i < len(text); n++ {
			end := cutBefore(text, min(i+step, len(text)))
			if end <= i {
				end = len(text)
			}
			s.setHold(n%3 == 1)
			s.print(text[i:end])
			i = end
			s.setRegion(layoutDraft(style{plain: true}, "> ", c, line, n%(len(line)+1), v.cols, 4))
			s.flush()
		}
		s.setHold(false)
		s.setRegion(region{})
		s.flush()
		want := newVT(10, 12)
		want.write(strings.ReplaceAll(text, "\n", "\r\n"))
		if got := strings.TrimRight(v.all(), "\n"); got != strings.TrimRight(want.all(), "\n") {
			t.Fatalf("got\n%s\nwant\n%s", got, want.all())
		}
	})
}

// plainWidth is the width when each cluster is taken alone, which a terminal that
// gets them one by one does.
func plainWidth(text string) int {
	width := 0
	for line := range strings.SplitSeq(text, "\n") {
		for line != "" {
			n := clusterLen(line)
			width += termtext.Width(line[:n])
			line = line[n:]
		}
	}
	return width
}

func TestDraftLayout(t *testing.T) {
	for _, test := range []struct {
		name, text string
		pos, cols  int
		want       region
	}{
		{"empty", "", 0, 20, region{[]string{"> "}, 0, 2}},
		{"text", "abc", 1, 20, region{[]string{"> abc"}, 0, 3}},
		{"wraps", "abcdefghij", 10, 10, region{[]string{"> abcdefg", "hij"}, 1, 3}},
		{"cursor at the margin", "abcdefg", 7, 10, region{[]string{"> abcdefg"}, 0, 9}},
		{"new line", "ab\ncd", 5, 20, region{[]string{"> ab", "  cd"}, 1, 4}},
		{"cursor at a line end", "ab\ncd", 2, 20, region{[]string{"> ab", "  cd"}, 0, 4}},
		{"wide", "漢字x", 1, 20, region{[]string{"> 漢字x"}, 0, 4}},
		{"wide at the margin", "abcdef漢", 7, 10, region{[]string{"> abcdef", "漢"}, 1, 2}},
		{"family", "👨‍👩‍👧x", 1, 20, region{[]string{"> 👨‍👩‍👧x"}, 0, 4}},
		{"full-width", "ｙ。", 2, 20, region{[]string{"> ｙ。"}, 0, 6}},
		{"hidden", "a\u202eb", 3, 20, region{[]string{"> a<U+202E>b"}, 0, 12}},
		{"window", "1\n2\n3\n4\n5\n6\n7", 13, 20, region{[]string{"  4", "  5", "  6", "  7"}, 3, 3}},
		{"tiny", "漢", 1, 2, region{[]string{"…", "?"}, 1, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCells()
			got := layoutDraft(style{plain: true}, "> ", c, c.fromText(test.text), test.pos, test.cols, 4)
			if !got.equal(test.want) {
				t.Errorf("got %+q, want %+q", fmt.Sprint(got), fmt.Sprint(test.want))
			}
		})
	}
}
