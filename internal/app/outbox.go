package app

import (
	"strconv"
	"sync"

	"zcoder/internal/event"
)

// outbox sends what was typed during a turn to a server, in order and without making
// the keyboard wait. What the server does not take comes back and is sent when the turn
// is over, so that nothing is lost.
type outbox struct {
	send     func(event.Item) error
	more     chan struct{} // has a value when there may be something to send
	returned chan struct{} // has a value when something came back
	over     chan struct{}

	mu    sync.Mutex
	n     int
	items []event.Item
	back  []string
}

func newOutbox(send func(event.Item) error) *outbox {
	o := &outbox{send: send, more: make(chan struct{}, 1), returned: make(chan struct{}, 1), over: make(chan struct{})}
	go o.run()
	return o
}

func (o *outbox) close() { close(o.over) }

func (o *outbox) put(mode event.Mode, text string) {
	o.mu.Lock()
	o.n++
	o.items = append(o.items, event.Item{ID: "q" + strconv.Itoa(o.n) + "-" + newCallID()[1:], Mode: mode, Text: text})
	o.mu.Unlock()
	signalOne(o.more)
}

// left takes the oldest text that came back.
func (o *outbox) left() (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.back) == 0 {
		return "", false
	}
	text := o.back[0]
	o.back = o.back[1:]
	return text, true
}

func (o *outbox) run() {
	for {
		select {
		case <-o.more:
		case <-o.over:
			return
		}
		for o.sendNext() {
		}
	}
}

func (o *outbox) sendNext() bool {
	o.mu.Lock()
	if len(o.items) == 0 {
		o.mu.Unlock()
		return false
	}
	item := o.items[0]
	o.items = o.items[1:]
	o.mu.Unlock()
	if o.send(item) != nil {
		o.mu.Lock()
		o.back = append(o.back, item.Text)
		o.mu.Unlock()
		signalOne(o.returned)
	}
	return true
}

// signalOne leaves a value in a channel of one, if there is none yet.
func signalOne(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
