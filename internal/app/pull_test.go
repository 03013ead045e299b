package app

import (
	"testing"
	"time"

	"zcoder/internal/chat"
)

func TestPullMeter(t *testing.T) {
	const gb = 1_000_000_000
	type report struct {
		after time.Duration
		p     chat.PullProgress
	}
	at := func(after time.Duration, done, total int64) report {
		return report{after, chat.PullProgress{Status: "pulling a", Completed: done, Total: total}}
	}
	for _, tt := range []struct {
		name    string
		reports []report
		want    string
	}{
		{"nothing known", []report{{0, chat.PullProgress{Status: "pulling manifest"}}}, "pulling manifest"},
		{"no speed yet", []report{at(0, 0, 4*gb)}, "[..........]    0%  0 kB of 4.0 GB"},
		{"speed and time left", []report{at(0, 0, 4*gb), at(2*time.Second, gb, 4*gb)}, "[##........]   25%  1.0 GB of 4.0 GB  500 MB/s  6 s left"},
		{"what was there is no speed", []report{at(0, 3*gb, 4*gb), at(time.Second, 3*gb+1_000_000, 4*gb)}, "[#######...]   75%  3.0 GB of 4.0 GB  1 MB/s  16:39 min left"},
		{"only the last seconds count", []report{at(0, 0, 4*gb), at(time.Second, gb, 4*gb), at(5*time.Second, gb, 4*gb), at(5*time.Second, gb+5_000_000, 4*gb)},
			"[##........]   25%  1.0 GB of 4.0 GB  1 MB/s  49:55 min left"},
		{"another part", []report{at(0, 0, gb), at(time.Second, gb, gb), at(time.Second, gb, 2*gb)}, "[#####.....]   50%  1.0 GB of 2.0 GB"},
		{"stalled", []report{at(0, gb, 4*gb), at(time.Minute, gb, 4*gb)}, "[##........]   25%  1.0 GB of 4.0 GB"},
		{"slow", []report{at(0, 0, 4*gb), at(time.Second, 200_000, 4*gb)}, "[..........]    0%  200 kB of 4.0 GB  200 kB/s  5:33 h left"},
		{"all there", []report{at(0, gb, gb)}, "pulling a"},
		{"a status that is not clean", []report{{0, chat.PullProgress{Status: "a\x1b[31m"}}}, `a\x1b[31m`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(0, 0)
			m := &pullMeter{now: func() time.Time { return now }}
			for _, r := range tt.reports {
				now = now.Add(r.after)
				m.add(r.p)
			}
			if got := m.line(); got != tt.want || len(got) >= 80 {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
