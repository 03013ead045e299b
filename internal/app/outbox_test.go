package app

import (
	"errors"
	"slices"
	"testing"

	"zcoder/internal/event"
)

// TestOutboxKeepsWhatIsNotTaken: what the server takes goes in order; what it does not
// take comes back to be sent later.
func TestOutboxKeepsWhatIsNotTaken(t *testing.T) {
	sent := make(chan string)
	o := newOutbox(func(item event.Item) error {
		sent <- string(item.Mode) + " " + item.Text
		if item.Text == "two" || item.Text == "three" {
			return errors.New("no turn is running")
		}
		return nil
	})
	defer o.close()
	for _, text := range []string{"one", "two", "three", "four"} {
		o.put(event.Steer, text)
	}
	var got []string
	for range 4 {
		got = append(got, <-sent)
	}
	if want := []string{"steer one", "steer two", "steer three", "steer four"}; !slices.Equal(got, want) {
		t.Errorf("sent %q", got)
	}
	var back []string
	for len(back) < 2 {
		<-o.returned
		for text, ok := o.left(); ok; text, ok = o.left() {
			back = append(back, text)
		}
	}
	if !slices.Equal(back, []string{"two", "three"}) {
		t.Errorf("back %q", back)
	}
}
