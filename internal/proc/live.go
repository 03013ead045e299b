package proc

import (
	"fmt"
	"time"
)

// livePause is the least time between two calls that show output.
const livePause = 50 * time.Millisecond

// live shows output to a function, from a goroutine of its own and at a pace that
// does not slow the child. A nil *live does nothing.
type live struct {
	from *output
	emit func([]byte)
	wake chan struct{} // holds at most one
	stop chan struct{}
	done chan struct{}
	// shown is the length of the part of the stream that was shown or passed over.
	shown int64
	part  []byte // the beginning of a rune, held back
}

func newLive(from *output, emit func([]byte)) *live {
	if emit == nil {
		return nil
	}
	l := &live{from: from, emit: emit, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	go l.run()
	return l
}

// poke says that there is more output. It does not block.
func (l *live) poke() {
	if l == nil || len(l.wake) > 0 {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// close shows the rest and waits for the last call.
func (l *live) close() {
	if l == nil {
		return
	}
	close(l.stop)
	<-l.done
}

func (l *live) run() {
	defer close(l.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-pause.C:
		case <-l.stop:
			l.show(true)
			return
		}
		select {
		case <-l.wake:
		case <-l.stop:
			l.show(true)
			return
		}
		l.show(false)
		pause.Reset(livePause)
	}
}

// show emits what came since. A rune that is not complete waits, unless it is the
// end.
func (l *live) show(last bool) {
	head, missing, tail, total := l.from.since(l.shown)
	l.shown = total
	text := append(l.part, head...)
	l.part = nil
	if missing > 0 {
		text = text[:wholeRunes(text)]
		cut := runeStart(tail)
		text = fmt.Appendf(text, "\n[… %d bytes not shown live …]\n", missing+int64(cut))
		tail = tail[cut:]
	}
	text = append(text, tail...)
	if n := wholeRunes(text); n < len(text) && !last {
		l.part = append(l.part, text[n:]...)
		text = text[:n]
	}
	if len(text) > 0 {
		l.emit(text)
	}
}
