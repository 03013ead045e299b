package app

import (
	"strings"
	"testing"

	"zcoder/internal/chat"
	"zcoder/internal/ollama"
	"zcoder/internal/scripted"
	"zcoder/internal/sizing"
)

func TestGrow(t *testing.T) {
	script, err := scripted.Parse("> model test-model tools ctx=65536\n> loaded test-model ctx=16384")
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := scripted.New(script, scripted.Options{}).Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	client, err := ollama.New(ollama.Options{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	facts := chat.ModelFacts{Tools: true, TrainedContext: 65536, CacheBytesPerToken: 1000}
	plenty := func() int64 { return 8 << 30 }
	for _, tt := range []struct {
		name     string
		explicit int
		used     int
		free     func() int64
		want     int
	}{
		{"it needs more and there is room", 0, 12000, plenty, 32768},
		{"half empty", 0, 4000, plenty, 16384},
		{"no memory", 0, 12000, func() int64 { return 0 }, 16384},
		{"the person set it", 16384, 12000, plenty, 16384},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &brain{explicit: tt.explicit, memory: t.TempDir() + "/windows.json"}
			b.use(client, "test-model")
			b.facts["test-model"] = facts
			b.window["test-model"] = sizing.Choice{Tokens: 16384}
			notice := b.grow(t.Context(), tt.used, tt.free)
			if got := b.window["test-model"].Tokens; got != tt.want || (tt.want > 16384) != strings.Contains(notice, "raised from 16384 to 32768") {
				t.Errorf("window = %d, notice %q; want %d", got, notice, tt.want)
			}
		})
	}
}
