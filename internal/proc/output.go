package proc

import (
	"bytes"
	"fmt"
	"sync"
	"unicode/utf8"
)

// markerRoom is the space kept free for the line that names what was left out.
const markerRoom = 80

// output keeps the head and the tail of a stream of any length in bounded memory.
// It is safe for concurrent use.
type output struct {
	max int // bytes

	mu    sync.Mutex
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
	lines int64 // line ends in all of it
}

func newOutput(max int) *output {
	if max <= 0 {
		max = DefaultMaxOutput
	}
	return &output{max: max}
}

func (o *output) headMax() int { return o.max * 6 / 10 }
func (o *output) tailMax() int { return o.max - o.headMax() }

// add takes the next piece of the stream.
func (o *output) add(p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	o.lines += int64(bytes.Count(p, []byte{'\n'}))
	if room := o.headMax() - len(o.head); room > 0 {
		k := min(room, len(p))
		o.head = append(o.head, p[:k]...)
		p = p[k:]
	}
	if room := o.tailMax() - len(o.tail); room > 0 {
		k := min(room, len(p))
		o.tail = append(o.tail, p[:k]...)
		p = p[k:]
	}
	if over := len(p) - o.tailMax(); over > 0 {
		p = p[over:]
	}
	k := copy(o.tail[o.next:], p)
	o.next += k
	if k < len(p) || o.next == o.tailMax() {
		o.next = copy(o.tail, p[k:])
	}
}

// straight returns the kept tail in order.
func (o *output) straight() []byte {
	return append(append(make([]byte, 0, len(o.tail)), o.tail[o.next:]...), o.tail[:o.next]...)
}

// text returns what was kept and the number of bytes that were not.
func (o *output) text() (string, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	head, tail := o.head, o.straight()
	if o.total <= int64(o.max) {
		return string(head) + string(tail), 0
	}
	head = head[:wholeRunes(head)]
	tail = tail[min(markerRoom, len(tail)):]
	tail = tail[runeStart(tail):]
	left := o.total - int64(len(head)+len(tail))
	lines := o.lines - int64(bytes.Count(head, []byte{'\n'})+bytes.Count(tail, []byte{'\n'}))
	return fmt.Sprintf("%s\n[… %d bytes (%d lines) left out …]\n%s", head, left, lines, tail), left
}

// since returns what came after the first pos bytes of the stream, as far as it
// was kept: the rest of the head, the number of bytes missing after it, and the
// rest of the tail.
func (o *output) since(pos int64) (head []byte, missing int64, tail []byte, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := int64(len(o.head)); pos < n {
		head = bytes.Clone(o.head[pos:])
		pos = n
	}
	tail = o.straight()
	begin := o.total - int64(len(tail))
	if pos >= begin {
		return head, 0, tail[pos-begin:], o.total
	}
	return head, begin - pos, tail, o.total
}

// wholeRunes returns the length of p without a rune that is cut off at its end.
func wholeRunes(p []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if c := p[len(p)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(p[len(p)-back:]) {
				return len(p) - back
			}
			return len(p)
		}
	}
	return len(p)
}

// runeStart returns the offset of the first byte of p that begins a rune; what
// cannot be the rest of a rune counts as a beginning.
func runeStart(p []byte) int {
	for i := range min(utf8.UTFMax-1, len(p)) {
		if utf8.RuneStart(p[i]) {
			return i
		}
	}
	if len(p) >= utf8.UTFMax && !utf8.RuneStart(p[utf8.UTFMax-1]) {
		return 0
	}
	return min(utf8.UTFMax-1, len(p))
}
