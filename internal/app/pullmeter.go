package app

import (
	"fmt"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/termtext"
)

// speedSpan is how far back the speed of a download looks.
const speedSpan = 5 * time.Second

// pullMeter turns the progress of a download into one line: bytes, speed, time left.
// What the server had before does not count as speed.
type pullMeter struct {
	now     func() time.Time
	last    chat.PullProgress
	samples []pullSample // of the last few seconds, oldest first
}

type pullSample struct {
	at   time.Time
	done int64
}

// add takes the next report.
func (m *pullMeter) add(p chat.PullProgress) {
	now := m.now()
	if p.Total != m.last.Total {
		m.samples = nil // another part was announced: what is done of it may be old
	}
	m.last = p
	m.samples = append(m.samples, pullSample{now, p.Completed})
	for len(m.samples) > 2 && now.Sub(m.samples[1].at) >= speedSpan {
		m.samples = m.samples[1:]
	}
}

// speed is in bytes a second; 0 while it is not known.
func (m *pullMeter) speed() float64 {
	if len(m.samples) < 2 {
		return 0
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	took := last.at.Sub(first.at)
	if took < 500*time.Millisecond {
		return 0
	}
	return float64(last.done-first.done) / took.Seconds()
}

const barWidth = 10 // cells

// line is the progress in less than 80 columns.
func (m *pullMeter) line() string {
	p := m.last
	if p.Total <= 0 || p.Completed >= p.Total {
		return termtext.Line(p.Status)
	}
	full := int(p.Completed * barWidth / p.Total)
	parts := []string{
		"[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "]",
		fmt.Sprintf("%3d%%", p.Completed*100/p.Total),
		size(p.Completed) + " of " + size(p.Total),
	}
	if speed := m.speed(); speed > 0 {
		left := time.Duration(float64(p.Total-p.Completed) / speed * float64(time.Second))
		parts = append(parts, size(int64(speed))+"/s", timeLeft(left)+" left")
	}
	return strings.Join(parts, "  ")
}

// held says how much of the model the server has.
func (m *pullMeter) held() string {
	if m.last.Total <= 0 {
		return "nothing yet"
	}
	return size(m.last.Completed) + " of " + size(m.last.Total)
}

func timeLeft(d time.Duration) string {
	switch s := int(d.Seconds()); {
	case s < 60:
		return fmt.Sprintf("%d s", max(s, 1))
	case s < 3600:
		return fmt.Sprintf("%d:%02d min", s/60, s%60)
	case s < 100*3600:
		return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
	}
	return "days"
}
