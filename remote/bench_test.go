package remote

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"zcoder/internal/event"
)

// BenchmarkEvent is the time from an event of the conversation to a client that follows
// it over loopback, with some clients that do the same.
func BenchmarkEvent(b *testing.B) {
	for _, n := range []int{1, 20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newStation(b).listen()
			first := s.follow("")
			first.told(has("1 session"))
			for range n - 1 {
				other := s.follow("")
				other.told(has("1 session"))
				go func() { // until the stream ends
					for range other.lines {
					}
				}()
			}
			latency(b, s, first)
		})
	}
}

// BenchmarkSlow is the same beside clients that follow and never read.
func BenchmarkSlow(b *testing.B) {
	for _, n := range []int{1, 20, 200} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := newStation(b).listen()
			for range n {
				conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
				if err != nil {
					b.Fatal(err)
				}
				defer conn.Close()
				fmt.Fprintf(conn, "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", stationToken)
			}
			first := s.follow("")
			first.told(has("1 session"))
			for range 8 { // more than the kernel keeps for the others
				s.host.current().Emit(event.Event{Kind: event.Content, Text: strings.Repeat("much ", 200_000)})
				first.next()
			}
			latency(b, s, first)
		})
	}
}

// latency reports the median and the 99th of a hundred times.
func latency(b *testing.B, s *station, c *sseClient) {
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		s.host.current().Emit(event.Event{Kind: event.Content, Text: "a few words of a reply "})
		if _, _, _, ok := c.next(); !ok {
			b.Fatal("the stream ended")
		}
		times = append(times, time.Since(begun))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
