package sizing

import (
	"strings"
	"testing"
)

func TestChoose(t *testing.T) {
	for _, tt := range []struct {
		name   string
		facts  Facts
		want   int
		notice string
	}{
		{"nothing known", Facts{}, 16384, ""},
		{"the model's limit is smaller", Facts{Trained: 8192}, 8192, ""},
		{"a tiny model", Facts{Trained: 4096, Loaded: 4096}, 4096, ""},
		{"loaded with enough", Facts{Loaded: 32768, Trained: 131072, Remembered: 65536}, 32768, ""},
		{"loaded below the floor", Facts{Loaded: 4096, Trained: 32768}, 16384, "only 4096 tokens: asking for 16384"},
		{"loaded below the floor, remembered", Facts{Loaded: 4096, Trained: 32768, Remembered: 24576}, 24576, "asking for 24576"},
		{"another default", Facts{Default: 32768}, 32768, ""},
		{"remembered", Facts{Remembered: 65536, Trained: 131072}, 65536, ""},
		{"remembered above the limit", Facts{Remembered: 65536, Trained: 32768}, 32768, ""},
		{"remembered below the floor", Facts{Remembered: 2048}, 16384, ""},
		{"explicit wins", Facts{Explicit: 12000, Loaded: 32768}, 12000, ""},
		{"explicit below the floor is warned", Facts{Explicit: 4096}, 4096, "very small"},
		{"explicit above the limit", Facts{Explicit: 65536, Trained: 32768}, 32768, "trained for 32768"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Choose(tt.facts)
			if got.Tokens != tt.want || !strings.Contains(got.Notice, tt.notice) || (tt.notice == "") != (got.Notice == "") {
				t.Errorf("Choose(%+v) = %+v; want %d tokens, notice with %q", tt.facts, got, tt.want, tt.notice)
			}
		})
	}
}

func TestFixed(t *testing.T) {
	for _, tt := range []struct {
		name             string
		explicit, window int
		tokens           int
		notice           string
	}{
		{"as it is", 0, 16384, 16384, ""},
		{"less", 9000, 16384, 9000, ""},
		{"more than there is", 32768, 16384, 16384, "16384 are used instead of 32768"},
		{"small", 0, 4096, 4096, "only 4096 tokens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Fixed(tt.explicit, tt.window)
			if got.Tokens != tt.tokens || !strings.Contains(got.Notice, tt.notice) || tt.notice == "" && got.Notice != "" || got.Source == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRaise(t *testing.T) {
	base := Growth{Window: 16384, Used: 12000, Trained: 131072, BytesPerToken: 100_000, Free: 8 << 30}
	change := func(f func(*Growth)) Growth { g := base; f(&g); return g }
	for _, tt := range []struct {
		name string
		g    Growth
		want int
	}{
		{"room and need", base, 32768},
		{"up to the model's limit", change(func(g *Growth) { g.Trained = 20000 }), 20000},
		{"half empty", change(func(g *Growth) { g.Used = 8000 }), 0},
		{"at the limit", change(func(g *Growth) { g.Trained = 16384 }), 0},
		{"no memory", change(func(g *Growth) { g.Free = 1 << 30 }), 0},
		{"memory unknown", change(func(g *Growth) { g.Free = 0 }), 0},
		{"cost unknown", change(func(g *Growth) { g.BytesPerToken = 0 }), 0},
		{"window unknown", change(func(g *Growth) { g.Window = 0 }), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := Raise(tt.g); got != tt.want || ok != (tt.want > 0) {
				t.Errorf("Raise(%+v) = %d, %v; want %d", tt.g, got, ok, tt.want)
			}
		})
	}
}
